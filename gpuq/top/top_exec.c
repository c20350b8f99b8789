/* gpuq top, as gpuq has it: the program that draws it is beside gpuq where that was built,
 * and is installed in a directory of its own. */
#include <errno.h>
#include <string.h>

#include "gpuq/file.h"
#include "gpuq/cli.h"
#include "gpuq/command.h"

int cmd_top(struct cli *c)
{
	const char *path = file_exec_beside("gpuq-top", c->argv);

	cli_say("%s: %s", path, strerror(errno));
	return EXIT_REFUSED;
}
