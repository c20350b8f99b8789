/* strays.h - pods that start together, until all of them are there
 *
 * Owns     copies of what is known of them.
 * Touches  memory only.
 * Used by  adopt.c.
 */
#ifndef GPUQD_FLOW_ADOPT_STRAYS_H
#define GPUQD_FLOW_ADOPT_STRAYS_H

#include "gpuqd/cluster/cluster.h"

struct stray_pods;
struct strays; /* NULL = none waits */

/* Add a pod, or replace what is known of it. Return how many of its gang are there. */
uint32_t strays_add(struct strays **g, const struct adopt_fact *f);
/* Take the pods of that gang out; the facts live until strays_done(). */
struct stray_pods *strays_take(struct strays **g, const char *namespace_, const char *gang);
const struct adopt_fact **strays_facts(struct stray_pods *p, size_t *n);
void strays_done(struct stray_pods *p);
void strays_remove(struct strays **g, const char *uid);
void strays_free(struct strays *g);

#endif
