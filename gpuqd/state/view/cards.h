/* cards.h - cards that are cut into MIG instances: how many there are, and what they leave
 *
 * Owns     nothing. Touches memory only.
 * Used by  census.c, view.c, rpc (rights), flow/admit (what a reservation holds).
 */
#ifndef GPUQD_STATE_VIEW_CARDS_H
#define GPUQD_STATE_VIEW_CARDS_H

#include "gpuqd/state/model.h"

/* Cards of a node that are cut into instances, in thousandths. */
struct cards {
	int64_t total_milli; /* whole cards */
	int64_t cut_milli; /* what their instances are of it */
	int64_t taken_milli; /* by pods, of gpuq and others; at most cut_milli */
};

/* Count those of a node. Which instances share a card is not known: they are taken to be cut as
 * full as can be. */
struct cards cards_of(const struct node *n);

/* Return what of them is not in use and refused by the node's kubelet. */
int64_t cards_refused(const struct node *n, const struct cards *c, int64_t now_us);

/* True if the cards of some node are shared by that system: "gpushare", "hami", a word of sharing of pools. */
bool cards_any_of(const struct model *m, const char *sharing);

#endif
