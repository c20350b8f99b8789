#include "gpuqd/cluster/kube/http/backoff.h"

#include <sys/random.h>

int64_t random_between(int64_t low, int64_t high)
{
	uint64_t r = 0;

	if (high <= low || getrandom(&r, sizeof(r), GRND_NONBLOCK) != (ssize_t)sizeof(r))
		return low;
	return low + (int64_t)(r % (uint64_t)(high - low + 1));
}

int64_t backoff_next_us(struct backoff *b, int64_t first_us, int64_t max_us)
{
	int64_t wait_us = first_us;

	for (unsigned i = 0; i < b->fails && wait_us < max_us; i++)
		wait_us *= 2;
	if (wait_us > max_us)
		wait_us = max_us;
	b->fails++;
	return wait_us / 2 + random_between(0, wait_us / 2);
}
