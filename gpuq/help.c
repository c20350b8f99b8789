/* Help, made from the tables of commands and options. */
#include "gpuq/help.h"

#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"

#define OPTION_COLUMNS 30

static void print_option(void *arg, const struct opt *o)
{
	bool *jobs = arg; /* their heading has been printed */
	char left[96];
	size_t n;

	if (o->id < 0 && !*jobs)
		puts("\nOptions of the job, which override those in a file:");
	*jobs = o->id < 0;
	n = (size_t)snprintf(left, sizeof(left), "  %c%c%c --%s%s%s%s", o->letter ? '-' : ' ',
			     o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
			     o->arg == ARG_NONE       ? ""
			     : o->arg == ARG_OPTIONAL ? "[="
						      : "=",
			     o->arg == ARG_NONE ? ""
			     : o->metavar       ? o->metavar
						: "VALUE",
			     o->arg == ARG_OPTIONAL ? "]" : "");
	if (n >= OPTION_COLUMNS)
		printf("%s\n%*s", left, OPTION_COLUMNS, "");
	else
		printf("%-*s", OPTION_COLUMNS, left);
	printf(" %s%s\n",
	       o->id == OPT_S_IGNORED   ? "ignored: "
	       : o->id == OPT_S_REFUSED ? "refused: "
					: "",
	       o->doc ? o->doc : "");
}

static void print_command(const struct command *cmd)
{
	bool jobs = false;

	printf("Usage: %s%s [OPTION]...%s%s\n%s.\n", cmd->slurm ? "" : "gpuq ", cmd->name,
	       *cmd->synopsis ? " " : "", cmd->synopsis, cmd->summary);
	if (cmd->alias)
		printf("Also called gpuq %s.\n", cmd->alias);
	puts("\nOptions:");
	opt_each(cmd, print_option, &jobs);
	printf("\nSee also: man gpuq-%s\n", cmd->slurm ? "slurm" : cmd->name);
}

void help_print(const struct command *cmd)
{
	if (cmd) {
		print_command(cmd);
		return;
	}
	puts("Usage: gpuq [--server=ADDR] [--ca=FILE] [--token-file=FILE] COMMAND [OPTION]... "
	     "[ARGUMENT]...\n"
	     "A queue for GPU jobs.\n\nCommands:");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-12s %s\n", c->name, c->summary);
	puts("\nSee gpuq COMMAND --help, and man gpuq.");
}

int cmd_help(struct cli *c)
{
	const struct command *cmd;

	if (c->args.n_rest == 0) {
		help_print(NULL);
		return EXIT_DONE;
	}
	cmd = command_find(c->args.rest[0]);
	if (!cmd)
		return cli_usage(c, "no command %s", c->args.rest[0]);
	help_print(cmd);
	return EXIT_DONE;
}
