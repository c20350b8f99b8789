/* The shepherd as a program of its own, as gpuqd --shepherd runs it. With --list it
 * prints the names of the failpoints that are compiled in. */
#include <stdio.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/cluster/local/shepherd/shepherd.h"

static void print_name(void *arg, const char *name)
{
	(void)arg;
	puts(name);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		failpoint_each(print_name, NULL);
		return 0;
	}
	return shepherd_main(argc, argv);
}
