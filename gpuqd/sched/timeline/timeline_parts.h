/* timeline_parts.h - parts of devices over time
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, timeline.c, timeline_displace.c, timeline_free.c, timeline_pack.c and others.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_PARTS_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_PARTS_H

#include "gpuqd/sched/timeline/timeline.h"

/* Does any job that is pending or runs ask for parts of devices? */
bool timeline_parts_asked(const struct snapshot *s);
/* A pod gives back its devices at end_us; sign -1: it takes them then. */
void timeline_parts_end(struct cycle *c, uint32_t device, int32_t milli, int64_t bytes,
			int64_t end_us);
/* Devices at t, as timeline_free_at(), with whole and parted as they follow. */
void timeline_parts_free_at(struct cycle *c, uint32_t job, int64_t t, bool amounts,
			    struct amounts *out);
/* Lower them to the least that holds beginning between t and end leave. */
void timeline_parts_least(struct cycle *c, uint32_t job, int64_t t, int64_t end,
			  struct amounts *least);
/* Hold part of a device during [start, end) for a job, or for a reservation. Both numbers of
 * what is left then are those before it. */
void timeline_parts_hold(struct cycle *c, const struct mark *m);
/* As timeline_spend(), of one device. */
void timeline_parts_spend(struct cycle *c, uint32_t device, int64_t start, int64_t end,
			  int32_t milli, int64_t bytes, int sign);
/* What a hold leaves a job that starts at t. */
void timeline_parts_spare(const struct cycle *c, const struct mark *m, uint32_t job, int64_t t,
			  int32_t *milli, int64_t *bytes);
/* Is this hold in the way of a job that starts at t? */
bool timeline_parts_bars(const struct cycle *c, const struct mark *m, uint32_t job, int64_t t);
/* The first hold that a part of a device, held from now on, leaves too little; or NULL. */
const struct mark *timeline_parts_clash(const struct cycle *c, uint32_t job, uint32_t device,
					int32_t milli, int64_t bytes);
/* All that the places at hand take of a device, and all that a running job holds of it. */
void timeline_parts_at_hand(const struct cycle *c, const struct snap_request *r, uint32_t device,
			    int32_t *milli, int64_t *bytes);
void timeline_parts_held(const struct cycle *c, uint32_t job, uint32_t device, int32_t *milli,
			 int64_t *bytes);
/* The holds of a job are gone; those of a reservation on a node are so many devices less. */
void timeline_parts_unplan(struct cycle *c, uint32_t job);
void timeline_parts_used(struct cycle *c, uint32_t reservation, uint32_t node, uint32_t whole);
/* Whole devices of a node that a reservation is to keep from start on. */
void timeline_parts_keep(struct cycle *c, uint32_t reservation, uint32_t node, int64_t start,
			 uint32_t whole);
/* The bytes of a device that a part of it takes. */
int64_t timeline_parts_bytes(const struct cycle *c, uint32_t device, int32_t milli,
			     const struct snap_group *g);

#endif
