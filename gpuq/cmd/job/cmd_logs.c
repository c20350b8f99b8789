/* gpuq logs: the output of a job. */
#include <stdlib.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/cmd/job/logs.h"

/* A number option in [min, max]; -1 when not given, -2 after a message. */
static int64_t number(const struct cli *c, enum opt_id id, const char *name)
{
	const char *text = c->args.val[id];
	char *end;
	long long n;

	if (!text)
		return -1;
	n = strtoll(text, &end, 10);
	if (!*text || *end || n < 0 || n > 1000000000) {
		cli_usage(c, "--%s %s: expected a number from 0", name, text);
		return -2;
	}
	return n;
}

static int count_pods(void *arg, const struct gpuq_val *job)
{
	*(int64_t *)arg = gpuq_get_int(job, "pod_count", 1);
	return 0;
}

int cmd_logs(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t pods = 1;
	struct target target;
	struct follow f = { .c = c, .targets = &target, .n_targets = 1, .attempt = -1 };
	struct logs l = {
		.follow = opt_given(&c->args, OPT_FOLLOW),
		.raw = opt_given(&c->args, OPT_RAW),
		.timestamps = opt_given(&c->args, OPT_TIMESTAMPS),
	};
	enum follow_end end;
	int code = EXIT_DONE;

	if (filter_id(c->args.rest[0], &target.id, &target.index, &err) < 0)
		return cli_usage(c, "%s", err.text);
	l.pod = number(c, OPT_POD, "pod");
	l.tail_lines = number(c, OPT_TAIL, "tail");
	l.attempt = number(c, OPT_ATTEMPT, "attempt");
	if (l.pod == -2 || l.tail_lines == -2 || l.attempt == -2)
		return EXIT_USAGE;
	if (opt_given(&c->args, OPT_SINCE) &&
	    filter_instant("since", c->args.val[OPT_SINCE], &l.since_us, &err) < 0)
		return cli_usage(c, "%s", err.text);

	/* How many pods there are decides the form; an unknown job ends here. */
	if (job_for_each(c, target.id, target.index, count_pods, &pods, &err) < 0)
		return cli_fail(&err, true);
	l.prefix = l.pod < 0 && pods > 1;

	f.begun_us = cli_mono_us();
	if (l.follow)
		cli_signals_catch();
	end = logs_print(&l, &f, &err);
	if (end == FOLLOW_FAILED)
		code = cli_fail(&err, true);
	/* ^C is how one leaves a follow. */
	logs_done(&l);
	follow_done(&f);
	return code;
}
