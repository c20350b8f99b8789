/* backoff.h - how long to wait before trying again
 *
 * Owns     nothing: a count of failures in its user's struct.
 * Touches  the kernel's random numbers, so that clients do not march in step.
 * Used by  watch.c, api.c, logs.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_BACKOFF_H
#define GPUQD_CLUSTER_KUBE_HTTP_BACKOFF_H

#include <stdint.h>

struct backoff {
	unsigned fails;
};

/* first_us doubled with each failure up to max_us, less up to half of it. Counts one
 * more failure. */
int64_t backoff_next_us(struct backoff *b, int64_t first_us, int64_t max_us);

/* A number in [low, high]. */
int64_t random_between(int64_t low, int64_t high);

#endif
