/* ask_nodes.h - the nodes of asks: which have come, which boot, on which jobs may start
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  ask.c, state/node.c, state/pod.c, snapshot/, flow/provision, state/view. */
#ifndef GPUQD_STATE_ASKS_ASK_NODES_H
#define GPUQD_STATE_ASKS_ASK_NODES_H

#include "gpuqd/state/asks/ask.h"

#include "libgpuq/names.h"

struct node;
struct provision_machine;

/* Return the ask that the node came for, stale or not; NULL = none. */
const struct ask *ask_of_node(const struct model *m, const char *node, bool *stale);
/* Return how many of its nodes have not come; 0 once it was served. */
uint32_t ask_lacks(const struct ask *a);
/* True if it is not ready yet, has no devices yet, or is still tainted for that by Kubernetes or an
 * autoscaler. */
bool ask_node_boots(const struct node *n);
/* Write how a node that does not boot differs from the machine it should be. False: it does not. */
bool ask_node_differs(const struct node *n, const struct provision_machine *m, char *out,
		      size_t room);
/* True if it boots, or differs still; machine NULL = it may be any. */
bool ask_node_is_awaited(const struct node *n, const struct provision_machine *machine);
/* Return how many of those that have come are awaited, before it is served. */
uint32_t ask_boots(const struct model *m, const struct ask *a);
/* True if jobs may start on its nodes. booking_us: for how long they are kept unused. */
bool ask_is_open(const struct model *m, const struct ask *a, int64_t booking_us, int64_t now_us);
/* True if the node came for a request on whose nodes no job has started yet: it boots, waits for the others, or is
 * booked for the jobs that the request was made for. */
bool ask_node_is_kept(const struct model *m, const struct node *n);
/* Return what a node that came for a request is: awaited with others, or of an attempt that is over; else
 * `state`. */
enum gpuq_node_state ask_node_state(const struct model *m, const struct node *n,
				    enum gpuq_node_state state);
/* True if it ended and must be kept: of nodes that come late, or have not gone, nothing is to be used. */
bool ask_lingers(const struct ask *a);
/* True if pods are, or may still be, on its nodes. */
bool ask_has_pods(const struct model *m, const struct ask *a);
/* True if some pod on its nodes was created: its booking has been taken up. */
bool ask_was_taken(const struct model *m, const struct ask *a);
/* True if no pod is to be created on the node yet: it came by a request of which it is not known, after a start,
 * whether it has expired meanwhile. */
bool ask_keeps_back(const struct model *m, const struct node *n);

/* A node was reported: it may be one that was asked for. */
void ask_node_seen(struct model *m, const struct node *n);
void ask_node_gone(struct model *m, const char *name);
/* A pod was placed there. */
void ask_node_used(struct model *m, const char *name);

/* Note that it is served, once all its nodes are there and ready. */
void ask_serve(struct model *m, struct ask *a);
/* Nothing starts any more on the nodes that have come. */
void ask_mark_stale(struct ask *a);

#endif
