/* pack.h - what packing and topology share
 *
 * Used by  pack.c, score.c, topology*.c, reasons.c only.
 */
#ifndef GPUQD_SCHED_PLACE_PACK_H
#define GPUQD_SCHED_PLACE_PACK_H

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/quota/cycle.h"

/* How nodes are chosen. All but the first exist for comparison. */
enum pack_policy { PACK_DEFAULT, PACK_BESTFIT, PACK_FGD };

void pack_init(struct cycle *c, enum pack_policy policy, bool unhurried);

/* The nodes that a search may use: sets of nodes, ANDed with these (NULL = all nodes). */
struct masks {
	const uint64_t *fit, *flavor, *tier, *domain, *also; /* NULL = does not restrict */
	const uint64_t *skip; /* excludes these */
	const uint64_t *dear; /* these as well: limits leave less than what is charged there */
};

/* Return the part of word w of a set that a search may use. */
static inline uint64_t masks_of(const struct masks *m, uint64_t word, uint32_t w)
{
	if (m->fit)
		word &= m->fit[w];
	if (m->flavor)
		word &= m->flavor[w];
	if (m->tier)
		word &= m->tier[w];
	if (m->domain)
		word &= m->domain[w];
	if (m->also)
		word &= m->also[w];
	if (m->skip)
		word &= ~m->skip[w];
	if (m->dear)
		word &= ~m->dear[w];
	return word;
}

/* Equal pods of one group that are to be placed: `pods` of them, numbered from index. */
struct batch {
	struct need one; /* of each pod */
	uint32_t group, index, pods; /* the pods index .. index + pods - 1 of the group */
};

/* Place all of them, wherever the masks allow. False: some places may have been taken, and are to
 * be undone by the caller. */
bool pack_pods(struct cycle *c, const struct batch *b, struct masks *m);

/* Return the nodes where the group's pods may run, whatever its preferences. */
struct masks pack_masks(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group);

/* Place the minimum of all groups, one group after the other, in an order that mostly works; with
 * few groups, in any order. False: no place was taken. */
bool pack_groups(struct cycle *c, uint32_t job, uint32_t flavor);

/* Return how far the node would be from the cluster's cpu and memory per free device, in 1024ths of
 * a device. 0 without free devices: nothing is stranded there. */
int64_t pack_imbalance(const struct cycle *c, uint32_t node, const struct need *n);

/* score.c: choose the best node for one pod of a group by what it would strand. False: best fit is
 * as good, or the only way. *node = SNAP_NONE: no node has room. */
bool score_choose(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
		  const struct need *need, const struct masks *m, uint32_t *node);

/* Place every pod of the job's gang on nodes of that flavor (SNAP_NONE for jobs without devices).
 * False: nothing has changed. */
bool pack_job(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for more pods of one group, from that index on, only on nodes of the domain (NULL =
 * anywhere), where they are charged no more than `spare` beyond the least. */
bool pack_more(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group, uint32_t index,
	       uint32_t pods, const uint64_t *domain, int64_t spare);
/* Keep jobs off these nodes (NULL = none) from now on. */
void pack_bar(struct cycle *c, const uint64_t *set);
/* Note that less is free than there is, as start reservations count on it; or no longer. */
void pack_withhold(struct cycle *c, bool on);
/* Start over with the nodes that the job excludes, for a search beside packing; return the nodes
 * that the job packed last must not use. */
void pack_exclude(struct cycle *c, uint32_t job);
const uint64_t *pack_skipped(const struct cycle *c);
/* Release the places, but keep the list of them. */
void pack_undo(struct cycle *c, uint32_t job);

#endif
