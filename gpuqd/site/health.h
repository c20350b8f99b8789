/* health.h - conditions and taints of nodes that keep new work away
 *
 * Owns     the table of the usual ones: of Kubernetes itself, of node-problem-detector and of the
 *          agents that watch GPUs. The site's `health` comes before it.
 * Touches  nothing.
 * Used by  state/node.c.
 */
#ifndef GPUQD_SITE_HEALTH_H
#define GPUQD_SITE_HEALTH_H

#include <stdbool.h>

struct site;

/* Return the reason, such as "a GPU reported an Xid error"; NULL = the node is well. on: the
 * condition's status is True. */
const char *health_of_condition(const struct site *s, const char *type, bool on);
const char *health_of_taint(const struct site *s, const char *key);

/* True if such a condition, or such a taint, tells that the node is taken away soon. */
bool health_takes_condition(const char *type, bool on);
bool health_takes_taint(const char *key);

#endif
