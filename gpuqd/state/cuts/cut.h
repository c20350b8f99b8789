/* cut.h - nodes that are given another layout of MIG instances
 *
 * Owns     struct node_cut, what is known of the last time that a node was cut; in the model, changed
 *          by NODE_CUT.
 * Touches  memory only.
 * Used by  state/ (the model and its records), snapshot/ (nodes that may be cut), carry/ (decides),
 *          flow/cut (has it done).
 *
 * A cut is the decision of a cycle that an idle node gets a layout which its pool allows. It is stored
 * before the label of the node is set, and nothing starts there until it is over:
 *
 *   SET ─ the node has the layout, and offers it ─> DONE
 *    ├─ the manager failed, or the time is over ─> BACK ─ the label is as before, and the manager is
 *    │                                                     done with it, or the time is over ─> FAILED
 *    └─ the label cannot be set ─> FAILED
 */
#ifndef GPUQD_STATE_CUTS_CUT_H
#define GPUQD_STATE_CUTS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"

#define CUT_LABEL "nvidia.com/mig.config" /* the layout that a node is to have */
#define CUT_LABEL_STATE "nvidia.com/mig.config.state" /* what became of it */
#define CUT_PENDING "pending" /* the manager has not begun, or is at it */
#define CUT_SUCCESS "success"
#define CUT_FAILURE "failed"

#define CUT_STATES(X)                                                                              \
	X(SET, "set", "its layout is being set")                                                   \
	X(BACK, "back", "that failed, and the layout before is being restored")                    \
	X(DONE, "done", "it has the layout")                                                       \
	X(FAILED, "failed", "it was not cut")

enum cut_state {
#define X(sym, word, doc) CUT_##sym,
	CUT_STATES(X)
#undef X
		N_CUT_STATES
};

extern const char *const cut_state_words[N_CUT_STATES];

struct model;
struct node;

struct node_cut {
	enum cut_state state;
	const char *layout; /* interned */
	const char *before; /* value of the label before it; interned; "" = it had none */
	int64_t at_us; /* when it was decided */
	int64_t since_us; /* since when it is in this state */
	uint32_t cards; /* of the node */
	struct job_key job; /* for which it was decided */
	const char *message; /* why it failed; interned; "" = it did not */
};

/* True if the layout of the node is being changed: nothing starts there. */
bool cut_is_under_way(const struct node *n);
/* True if the node offers what the layout makes of it, and its labels tell that it has it. */
bool cut_is_there(const struct node *n, const char *layout);
/* True if no pod of gpuq, nor a device of a foreign pod, is on the node. */
bool cut_node_is_idle(const struct node *n);
/* Write what is shown of the node, "MIG layout all-1g.10gb is being set"; false: nothing is. */
bool cut_note(const struct node *n, char *out, size_t room);

int cut_apply(struct model *m, const struct event *ev, struct gpuq_err *err);
#endif
