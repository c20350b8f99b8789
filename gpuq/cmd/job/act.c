#include "gpuq/cmd/job/act.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/filter.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"

static void print_ids(const struct gpuq_val *jobs)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	for (size_t i = 0; i < jobs->n; i++) {
		gpuq_buf_addc(&text, ' ');
		view_job_id(&text, jobs->items[i]);
	}
	puts(gpuq_buf_str(&text) + (text.len > 0));
	gpuq_buf_done(&text);
}

static void warn(const struct gpuq_val *warnings)
{
	for (size_t i = 0; warnings && warnings->type == GPUQ_LIST && i < warnings->n; i++)
		if (warnings->items[i]->type == GPUQ_STR)
			cli_say("warning: %s", warnings->items[i]->s);
}

/* Print the errors. Returns the exit code: 254 if every error is a job that does not exist. */
static int complain(const struct gpuq_val *errors)
{
	int code = EXIT_DONE;

	for (size_t i = 0; errors && errors->type == GPUQ_LIST && i < errors->n; i++) {
		const struct gpuq_val *e = errors->items[i];
		const char *name = gpuq_get_str(e, "name", "");
		const char *msg = gpuq_get_str(e, "msg", NULL);
		struct gpuq_buf id = GPUQ_BUF_INIT;

		view_cell(&id, gpuq_get(e, "id"));
		/* The server's sentence may name the job already. */
		if (!msg)
			cli_say("job %s: %s", gpuq_buf_str(&id), name);
		else if (strstr(msg, gpuq_buf_str(&id)))
			cli_say("%s", msg);
		else
			cli_say("job %s: %s", gpuq_buf_str(&id), msg);
		gpuq_buf_done(&id);
		if (strcmp(name, gpuq_err_name(GPUQ_ENOENT)) != 0)
			code = EXIT_REFUSED;
		else if (code == EXIT_DONE)
			code = EXIT_NO_JOB;
	}
	return code;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *ids = gpuq_list(a), *more;
	int rc = filter_put(c, params, err);

	for (int i = 0; i < c->args.n_rest && rc == 0; i++)
		rc = filter_ids(a, c->args.rest[i], ids, err);
	if (rc < 0 || c->args.n_rest == 0)
		return rc;
	more = gpuq_get(params, "ids"); /* of --jobs */
	for (size_t i = 0; more && i < more->n; i++)
		gpuq_add(a, ids, more->items[i]);
	gpuq_set(a, params, "ids", ids);
	return 0;
}

int act(struct cli *c, const char *method, const struct gpuq_val *extra, const char *done,
	const char *would)
{
	const bool dry_run = opt_given(&c->args, OPT_DRY_RUN);
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_val *jobs;
	int64_t matched;

	if (c->args.n_rest == 0 && !filter_given(&c->args))
		return cli_usage(c, "expected job ids, or filters such as --me");
	for (size_t i = 0; extra && i < extra->n; i++)
		gpuq_put(a, params, extra->pairs[i].key, extra->pairs[i].val);
	if (dry_run)
		gpuq_put(a, params, "dry_run", gpuq_bool(a, true));
	if (cli_connect(c, &err) < 0)
		return cli_fail(&err, false);
	if (fill(c, params, &err) < 0)
		return cli_usage(c, "%s", err.text);
	if (cli_call(c, method, params, dry_run ? "" : NULL, &reply, &err) < 0)
		return cli_fail(&err, true);
	if (opt_given(&c->args, OPT_JSON)) {
		if (out_json(reply) < 0)
			return EXIT_REFUSED;
		return complain(gpuq_get(reply, "errors"));
	}
	matched = gpuq_get_int(reply, "matched", 0);
	jobs = gpuq_get(reply, "jobs");
	printf("%s %" PRId64 " job%s\n", dry_run ? would : done, matched, line_s(matched));
	if ((dry_run || opt_given(&c->args, OPT_VERBOSE)) && jobs && jobs->type == GPUQ_LIST &&
	    jobs->n > 0)
		print_ids(jobs);
	warn(gpuq_get(reply, "warnings"));
	return complain(gpuq_get(reply, "errors"));
}
