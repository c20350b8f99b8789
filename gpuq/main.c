/* gpuq: the command line of gpuqd. The table of commands, and the way into one. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"

int main(int argc, char **argv)
{
	/* Only which bytes are characters: numbers and dates are the same everywhere. */
	setlocale(LC_CTYPE, "");
	return cli_main(argc, argv);
}
