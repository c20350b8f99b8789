/* world_int.h - what the files of the world share
 *
 * Used by  world*.c only.
 */
#ifndef GPUQD_SIM_WORLD_INT_H
#define GPUQD_SIM_WORLD_INT_H

#include "gpuqd/sim/world.h"

#define WORLD_FLAVORS_MAX 64

int world_no_memory(struct gpuq_err *err);
bool world_knows(const char *const *list, uint32_t n, const char *name);
/* A time of the file, or what stands for an absent one. */
int64_t world_time_or(const struct world *w, int64_t t, int64_t absent);
/* Room for one more in a table in the arena, which moves when it grows; NULL with err. */
void *world_append(struct world *w, void *table, uint32_t *n, uint32_t *room, size_t size,
		   struct gpuq_err *err);

/* world_usage.c: what was used. */
int world_make_usage(struct world *w, struct gpuq_err *err);
int world_pass(struct world *w, int64_t to_us, struct gpuq_err *err); /* time goes by */
void world_fill_usage(const struct world *w, uint32_t queue, struct snap_queue *out);
void world_add_usages(const struct world *w, struct snapshot *s); /* after the queues */
void world_set_policy(const struct world *w, struct snap_config *c);

/* world_idle.c: before time goes by; when a job has been idle too long if it goes on like
 * this (GPUQ_UNLIMITED = never); whether it has been now. */
void world_idle_pass(struct world *w, int64_t to_us);
int64_t world_idle_due_us(const struct world *w, const struct sim_job *j);
bool world_idle_is_due(const struct world *w, const struct sim_job *j);

/* Since when nothing but others has stood in its way: holds, begin time, dependencies. */
int64_t world_eligible_us(const struct world *w, const struct sim_job *j);
/* The case's reservations, once nodes and queues have been added in order. */
int world_add_calendar(struct world *w, struct snapshot *s, struct gpuq_err *err);

/* Does the calendar promise more than there is? GPUQ_EINVAL names the reservation. */
int world_check_calendar(struct world *w, struct gpuq_err *err);

int world_make_jobs(struct world *w, struct gpuq_err *err);

#endif
