/* timeline_pack.h - placing jobs beside what is planned
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, emit.c, gangs.c, nominated.c, relocate.c and others.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_PACK_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_PACK_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Does anything planned begin before the job would end, if it started now? */
bool timeline_binds(struct cycle *c, uint32_t job);
/* As pack_job, leaving what is planned what it counts on; *bar = some of that. */
bool timeline_pack(struct cycle *c, uint32_t job, uint32_t flavor, struct future_bar *bar);
/* As pack_job; nothing planned is touched, not even for a time. */
bool timeline_pack_strictly(struct cycle *c, uint32_t job, uint32_t flavor);
/* After that: when the places have to be left again for what is planned; 0 = never. */
int64_t timeline_yield_us(const struct cycle *c);
/* ...and how long the job is given there, when that is less than it asked for; 0 = that. Of
 * a job that was not placed by timeline_pack(): what its deadline leaves it. */
int64_t timeline_given_us(const struct cycle *c, uint32_t job);
/* Nodes that somebody counts on, at whatever time, whom the job would be in the way. */
void timeline_keep_off(struct cycle *c, uint32_t job, uint64_t *set);

/* Does what the places at hand take of the node of a hold leave it what it counts on? */
bool timeline_spares(const struct cycle *c, const struct booked *b, uint32_t job);
/* As pack_job, honouring the calendar alone. */
bool timeline_pack_on_planned(struct cycle *c, uint32_t job, uint32_t flavor);

/* Jobs that run ahead of what is planned leave in time for it. */
void timeline_yield(struct cycle *c);
void timeline_evict(struct cycle *c, uint32_t job, enum gpuq_cause cause, uint32_t claimant,
		    const char *rule);
/* Was it told to leave in this cycle? */
bool timeline_leaves(const struct cycle *c, uint32_t job);
/* Another plan may come out at t. */
void timeline_wake(struct cycle *c, int64_t t);

#endif
