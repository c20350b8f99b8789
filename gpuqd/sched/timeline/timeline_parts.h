/* timeline_parts.h - parts of devices over time
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, timeline.c, timeline_displace.c, timeline_free.c, timeline_pack.c and others.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_PARTS_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_PARTS_H

#include "gpuqd/sched/timeline/timeline_int.h"

/* True if the request includes parts of devices. */
bool timeline_parts_asked(const struct snap_request *r);
/* Note that a pod releases its devices at end_us; sign -1: it takes them then. */
void timeline_parts_end(struct cycle *c, uint32_t device, int32_t milli, int64_t bytes,
			int64_t end_us);
/* Compute devices at t, as timeline_free_at(), with whole and parted derived from them. */
void timeline_parts_free_at(struct cycle *c, uint32_t job, int64_t t, bool amounts,
			    struct amounts *out);
/* Lower them to the minimum that holds beginning between t and end leave. */
void timeline_parts_least(struct cycle *c, uint32_t job, int64_t t, int64_t end,
			  struct amounts *least);
/* Hold part of a device during [start, end) for a job, or for a reservation. Both numbers of m for
 * what is left then are those before this hold. */
void timeline_parts_hold(struct cycle *c, const struct mark *m);
/* As timeline_spend(), for one device. */
void timeline_parts_spend(struct cycle *c, uint32_t device, int64_t start, int64_t end,
			  int32_t milli, int64_t bytes, int sign);
/* Compute what a hold leaves to a job that starts at t. */
void timeline_parts_spare(const struct cycle *c, const struct mark *m, uint32_t job, int64_t t,
			  int32_t *milli, int64_t *bytes);
/* True if this hold is in the way of a job that starts at t. */
bool timeline_parts_bars(const struct cycle *c, const struct mark *m, uint32_t job, int64_t t);
/* Return the first hold to which a part of a device, held from now on, leaves too little; or
 * NULL. */
const struct mark *timeline_parts_clash(const struct cycle *c, uint32_t job, uint32_t device,
					int32_t milli, int64_t bytes);
/* Compute what the current places take of a device, and what a running job holds of it. */
void timeline_parts_at_hand(const struct cycle *c, const struct snap_request *r, uint32_t device,
			    int32_t *milli, int64_t *bytes);
void timeline_parts_held(const struct cycle *c, uint32_t job, uint32_t device, int32_t *milli,
			 int64_t *bytes);
/* Remove the holds of a job; reduce those of a reservation on a node by this many devices. */
void timeline_parts_unplan(struct cycle *c, uint32_t job);
void timeline_parts_used(struct cycle *c, uint32_t reservation, uint32_t node, uint32_t whole);
/* Mark whole devices of a node that a reservation is to keep from start on. */
void timeline_parts_keep(struct cycle *c, uint32_t reservation, uint32_t node, int64_t start,
			 uint32_t whole);
/* Return the bytes of a device that a part of it takes. */
int64_t timeline_parts_bytes(const struct cycle *c, uint32_t device, int32_t milli,
			     const struct snap_group *g);

#endif
