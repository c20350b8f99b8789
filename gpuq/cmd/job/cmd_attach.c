/* gpuq attach: the input and output of a job that runs; leaving it leaves the job alone. */
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/cmd/job/stdio.h"
#include "gpuq/cmd/job/target.h"

int cmd_attach(struct cli *c)
{
	struct stdio io = { .method = "job.attach", .keys = true };
	int code = EXIT_USAGE;

	if (!stdio_options(c, &io, &code))
		return code;
	io.params = target_params(c, c->args.rest[0], &code);
	if (!io.params)
		return code;
	gpuq_put(&c->arena, io.params, "replay", gpuq_bool(&c->arena, true));
	switch (stdio_run(c, &io)) {
	case STDIO_ENDED:
		return EXIT_DONE;
	case STDIO_DETACHED:
	case STDIO_SIGNAL:
		cli_say("detached; job %s keeps running", c->args.rest[0]);
		return EXIT_DONE;
	case STDIO_LOST:
		if (!io.opened || io.err.code != GPUQ_EUNKNOWN)
			break;
		cli_say("the connection to the server broke; job %s keeps running: gpuq attach %s "
			"connects again",
			c->args.rest[0], c->args.rest[0]);
		return EXIT_SERVER;
	case STDIO_FAILED:
		break;
	}
	return cli_fail(&io.err, true);
}
