/* gpuq top, as gpuq has it: the program that draws it is beside gpuq where that was built,
 * and is installed in a directory of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"

#define NAME "gpuq-top"

int cmd_top(struct cli *c)
{
	char path[4096];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(NAME));
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		memcpy(slash + 1, NAME, sizeof(NAME));
		execv(path, c->argv);
	}
	execv(PKGLIBEXECDIR "/" NAME, c->argv);
	cli_say("%s: %s", PKGLIBEXECDIR "/" NAME, strerror(errno));
	return EXIT_REFUSED;
}
