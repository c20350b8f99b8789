/* scancel: silent when all went well. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/filter.h"
#include "gpuq/lines.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

struct picked {
	const struct cli *c;
	struct gpuq_val *ids;
};

/* Filters that the server does not know, and the question. */
static void pick(void *arg, const struct gpuq_val *job)
{
	struct picked *p = arg;
	struct gpuq_buf id = GPUQ_BUF_INIT;
	char answer[16] = "";

	if (view_job_ended(job) || !slurm_keep(p->c, job))
		return;
	if (gpuq_get_int(job, "array_index", -1) >= 0)
		gpuq_buf_printf(&id, "%" PRId64 "_%" PRId64, gpuq_get_int(job, "id", 0),
				gpuq_get_int(job, "array_index", 0));
	else
		gpuq_buf_printf(&id, "%" PRId64, gpuq_get_int(job, "id", 0));
	if (opt_given(&p->c->args, OPT_S_INTERACTIVE)) {
		printf("Cancel job_id=%s name=%s partition=%s [y/n]? ", gpuq_buf_str(&id),
		       gpuq_get_str(job, "name", "?"), gpuq_get_str(job, "queue", "?"));
		fflush(stdout);
		if (!fgets(answer, sizeof(answer), stdin))
			answer[0] = 'n';
	}
	if (!opt_given(&p->c->args, OPT_S_INTERACTIVE) || answer[0] == 'y' || answer[0] == 'Y')
		gpuq_add(p->c->args.arena, p->ids,
			 gpuq_str(p->c->args.arena,
				  gpuq_arena_strdup(p->c->args.arena, gpuq_buf_str(&id))));
	gpuq_buf_done(&id);
}

/* One that has ended is no error, as with Slurm: programs cancel what may be over. */
static int complain(const struct cli *c, const struct gpuq_val *reply)
{
	const struct gpuq_val *errors = gpuq_get(reply, "errors");
	int code = EXIT_DONE;

	for (size_t i = 0; errors && errors->type == GPUQ_LIST && i < errors->n; i++) {
		const bool over = strcmp(gpuq_get_str(errors->items[i], "name", ""), "gone") == 0;
		struct gpuq_buf id = GPUQ_BUF_INIT;

		if (over && !opt_given(&c->args, OPT_VERBOSE))
			continue;
		view_cell(&id, gpuq_get(errors->items[i], "id"));
		cli_say("error: Kill job error on job id %s: %s%s", gpuq_buf_str(&id),
			strcmp(gpuq_get_str(errors->items[i], "name", ""), "not_found") == 0
				? "Invalid job id specified: "
				: "",
			gpuq_get_str(errors->items[i], "msg",
				     gpuq_get_str(errors->items[i], "name", "?")));
		gpuq_buf_done(&id);
		code = over ? code : 1;
	}
	return code;
}

int slurm_scancel(struct cli *c)
{
	const char *name = c->args.val[OPT_SIGNAL];
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *ids = gpuq_list(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (c->args.n_rest == 0 && !filter_given(&c->args) &&
	    !opt_given(&c->args, OPT_S_ACCOUNTS) && !opt_given(&c->args, OPT_S_QOS))
		return cli_usage(c, "expected jobs, or options that select jobs"), 1;
	rc = cli_connect(c, &err);
	if (rc == 0)
		rc = filter_put(c, params, &err);
	for (int i = 0; rc == 0 && i < c->args.n_rest; i++)
		rc = filter_ids(a, c->args.rest[i], ids, &err);
	if (rc == 0 && ids->n)
		gpuq_set(a, params, "ids", ids);
	if (rc == 0 && (opt_given(&c->args, OPT_S_ACCOUNTS) || opt_given(&c->args, OPT_S_QOS) ||
			opt_given(&c->args, OPT_S_INTERACTIVE))) {
		struct picked p = { c, gpuq_list(a) };

		rc = slurm_each(c, "job.list", params, NULL, pick, &p, &err);
		if (rc == 0 && p.ids->n == 0)
			return EXIT_DONE;
		params = gpuq_map(a);
		gpuq_put(a, params, "ids", p.ids);
	}
	if (rc == 0 && name) {
		const int number = gpuq_signal_number(name);

		if (number == 0)
			return cli_usage(c, "--signal %s: expected a signal such as USR1", name), 1;
		gpuq_put(a, params, "signal", gpuq_int(a, number));
		if (opt_given(&c->args, OPT_S_BATCH))
			gpuq_put(a, params, "first_only", gpuq_bool(a, true));
	}
	if (rc == 0)
		rc = cli_call(c, "job.cancel", params, NULL, &reply, &err);
	if (rc < 0)
		return slurm_fail(&err);
	if (opt_given(&c->args, OPT_VERBOSE))
		cli_say("%" PRId64 " job%s", gpuq_get_int(reply, "matched", 0),
			line_s(gpuq_get_int(reply, "matched", 0)));
	return complain(c, reply);
}
