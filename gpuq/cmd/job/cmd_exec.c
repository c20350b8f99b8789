/* gpuq exec: a program beside a job, in its environment; its exit code is ours. */
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/cmd/job/stdio.h"
#include "gpuq/cmd/job/target.h"

/* The command's own code passes through, so what is ours stands above it. */
static int refused(const struct gpuq_err *err)
{
	const int code = cli_fail(err, true);

	return code == EXIT_REFUSED ? EXIT_REJECTED : code;
}

int cmd_exec(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct stdio io = { .method = "job.exec" };
	struct gpuq_val *command = gpuq_list(a);
	const char *job = c->args.rest[0];
	int code = EXIT_SERVER;

	/* Options may stand behind the job as well; the dashes end them. */
	if (opt_parse(c->cmd, c->args.n_rest, c->args.rest, true, &c->args) < 0)
		return EXIT_SERVER;
	if (c->args.n_rest == 0)
		return cli_usage(c, "expected a command after the job");
	for (int i = 0; i < c->args.n_rest; i++)
		gpuq_add(a, command, gpuq_str(a, c->args.rest[i]));
	if (!stdio_options(c, &io, &code))
		return code;
	io.params = target_params(c, job, &code);
	if (!io.params)
		return code;
	gpuq_put(a, io.params, "command", command);
	gpuq_put(a, io.params, "tty", gpuq_bool(a, io.tty));
	switch (stdio_run(c, &io)) {
	case STDIO_ENDED:
		return io.exit_code;
	case STDIO_SIGNAL:
		return 128 + io.signo;
	case STDIO_LOST:
		if (io.opened && io.err.code == GPUQ_EUNKNOWN)
			cli_say("the connection to the server broke: the program in job %s is "
				"ended",
				job);
		else
			cli_fail(&io.err, false);
		return io.opened ? EXIT_INFRA : EXIT_SERVER;
	case STDIO_FAILED:
		if (!io.opened)
			return refused(&io.err);
		cli_fail(&io.err, false);
		return EXIT_INFRA;
	case STDIO_DETACHED:
		break;
	}
	return EXIT_SERVER;
}
