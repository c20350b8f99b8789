/* gpuq run: submit, follow the output, end with the job's exit code. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cmd/job/attend.h"
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/cmd/job/stdio.h"
#include "gpuq/cmd/job/submission.h"
#include "libgpuq/limits.h"

int cmd_run(struct cli *c)
{
	struct submission s = { .jobs = NULL };
	struct attend t = { .n_targets = 0 };
	struct stdio io = { .method = "job.attach", .keys = true };
	const char *key;
	int code;

	code = submission_read(c, &s);
	if (code >= 0)
		return code;
	if (s.specs.n != 1)
		return cli_usage(c,
				 "%s holds %zu jobs, and run takes one; gpuq submit --wait takes "
				 "them all",
				 c->args.rest[0], s.specs.n);
	key = c->args.val[OPT_KEY];
	if (key && (!*key || strlen(key) > GPUQ_KEY_BYTES_MAX))
		return cli_usage(c, "--key: expected 1 to %u bytes", GPUQ_KEY_BYTES_MAX);
	if (!attend_options(c, &t, &code))
		return code;
	if (!stdio_options(c, &io, &code))
		return code;
	s.specs.items[0].context.interactive = true;
	s.specs.items[0].input_open |= io.input;
	s.specs.items[0].tty |= io.tty;
	if ((io.input || io.tty) && s.specs.items[0].array.n_ranges)
		return cli_usage(c, "an array has no single input: omit -it");
	code = submission_send(c, &s, false);
	if (code >= 0)
		return code;
	t.targets = submission_targets(c, &s, &t.n_targets);
	if (!t.targets) {
		cli_say("out of memory");
		return EXIT_SERVER;
	}
	/* Standard output belongs to the job. */
	cli_say("submitted job %" PRId64, t.targets[0].id);
	t.ours = true;
	t.keep = opt_given(&c->args, OPT_KEEP);
	t.output = s.specs.items[0].array.n_ranges == 0;
	if (!t.output)
		cli_say("an array's output is in gpuq logs %" PRId64 "_INDEX", t.targets[0].id);
	t.io = io.input || io.tty ? &io : NULL;
	t.prefix = gpuq_spec_pods(&s.specs.items[0]) > 1;
	return attend(c, &t);
}
