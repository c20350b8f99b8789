/* The shepherd as a program of its own, as gpuqd --shepherd runs it. */
#include "gpuqd/cluster/local/shepherd.h"

int main(int argc, char **argv)
{
	return shepherd_main(argc, argv);
}
