/* reservations_fit.h - whether the cluster has enough for all reservations
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/apply (a reservation is made or changed), gpuq-sim.
 *
 * Jobs, running or pending, do not matter here: a reservation takes precedence over them. It does
 * not fit where earlier reservations leave too little of the flavor and in the pool that it
 * requests, or have the nodes that it names. One that requests more than there is altogether waits
 * for machines that are still to come: that is no conflict. Maintenance never conflicts: it states
 * which nodes are not available. An amount is of whole devices; a node that is named is reserved with all cards. */
#ifndef GPUQD_SCHED_TIMELINE_RESERVATIONS_FIT_H
#define GPUQD_SCHED_TIMELINE_RESERVATIONS_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/util/recur.h"

#define CALENDAR_NONE UINT32_MAX

struct calendar_node {
	uint32_t flavor, pool; /* the caller's numbers */
	int64_t milli; /* all of its cards */
	int64_t cut_milli; /* of them, those that can be had in parts alone, or not at all */
};

struct calendar_entry {
	struct recur when; /* its occurrences */
	int64_t milli; /* an amount anywhere; 0 = the nodes */
	uint32_t flavor, pool; /* of an amount; CALENDAR_NONE = any */
	const uint32_t *nodes;
	uint32_t n_nodes;
	bool maintenance; /* no job runs there: it conflicts with nothing */
};

struct calendar_misfit {
	uint32_t with; /* one of the conflicting entries: the one that begins last */
	int64_t at_us; /* when there is first too little */
	int64_t have_milli, need_milli; /* then, of the kind that it requests */
	int64_t earliest_us; /* start at or after its own, from which it fits; GPUQ_UNLIMITED = none
			      * was found */
};

/* True if the entries before `which` leave room for it, from now on; else false with *out. As many
 * occurrences of recurring entries are evaluated as can matter for planning. */
bool reservations_fits(const struct calendar_node *nodes, uint32_t n_nodes,
		       const struct calendar_entry *entries, uint32_t which, int64_t now_us,
		       struct calendar_misfit *out);

#endif
