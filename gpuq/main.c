/* gpuq: the command line of gpuqd. The table of commands is in commands.c. */
#include "gpuq/cli.h"
#include "gpuq/command.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
