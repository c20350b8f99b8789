/* gpuq drain and gpuq resume: start nothing more on nodes, and use them again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "libgpuq/hostlist.h"

/* Names of the nodes that change, folded by the line. */
static void print_nodes(const struct gpuq_val *nodes)
{
	for (uint32_t i = 0; nodes && nodes->type == GPUQ_LIST && i < nodes->n; i++) {
		const struct gpuq_val *n = nodes->items[i];
		struct gpuq_buf line = GPUQ_BUF_INIT;
		const int64_t jobs = gpuq_get_int(n, "jobs", 0);

		gpuq_buf_printf(&line, "%s", gpuq_get_str(n, "name", ""));
		if (jobs)
			gpuq_buf_printf(&line, " (%" PRId64 " job%s)", jobs, line_s(jobs));
		if (!gpuq_get_bool(n, "changed", true))
			gpuq_buf_adds(&line, ": unchanged");
		{
			struct gpuq_buf clean = GPUQ_BUF_INIT;

			term_clean_str(&clean, gpuq_buf_str(&line));
			printf("  %s\n", gpuq_buf_str(&clean));
			gpuq_buf_done(&clean);
		}
		gpuq_buf_done(&line);
	}
}

static void print_jobs(const struct cli *c, int64_t jobs)
{
	const bool one = jobs == 1;

	printf(", on which %" PRId64 " job%s ", jobs, one ? "" : "s");
	if (!opt_given(&c->args, OPT_REQUEUE))
		printf("%s running", one ? "keeps" : "keep");
	else
		printf("%s requeued", one ? "is" : "are");
}

static int act_on_nodes(struct cli *c, const char *method, const char *done, const char *would)
{
	const bool dry_run = opt_given(&c->args, OPT_DRY_RUN);
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *names = gpuq_list(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t changed, matched, jobs;

	for (int i = 0; i < c->args.n_rest; i++)
		if (hostlist_expand(a, c->args.rest[i], HOSTLIST_GLOBS, names, &err) < 0)
			return cli_usage(c, "%s", err.text);
	gpuq_put(a, params, "names", names);
	if (c->args.val[OPT_REASON])
		gpuq_put(a, params, "why", gpuq_str(a, c->args.val[OPT_REASON]));
	if (opt_given(&c->args, OPT_REQUEUE))
		gpuq_put(a, params, "requeue", gpuq_bool(a, true));
	if (dry_run)
		gpuq_put(a, params, "dry_run", gpuq_bool(a, true));
	if (cli_call(c, method, params, dry_run ? "" : NULL, &reply, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(reply) < 0 ? EXIT_REFUSED : EXIT_DONE;
	matched = gpuq_get_int(reply, "matched", 0);
	changed = gpuq_get_int(reply, "changed", 0);
	jobs = gpuq_get_int(reply, "jobs", 0);
	printf("%s %" PRId64 " node%s", dry_run ? would : done, changed, line_s(changed));
	if (matched != changed)
		printf(" (%" PRId64 " unchanged)", matched - changed);
	if (jobs && strcmp(method, "node.drain") == 0)
		print_jobs(c, jobs);
	putchar('\n');
	if (dry_run || opt_given(&c->args, OPT_VERBOSE))
		print_nodes(gpuq_get(reply, "nodes"));
	return EXIT_DONE;
}

int cmd_drain(struct cli *c)
{
	return act_on_nodes(c, "node.drain", "Drained", "Would drain");
}

int cmd_resume(struct cli *c)
{
	return act_on_nodes(c, "node.resume", "Resumed", "Would resume");
}
