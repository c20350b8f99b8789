/* world_int.h - shared by the files of the world
 *
 * Used by  world*.c only.
 */
#ifndef GPUQD_SIM_WORLD_INT_H
#define GPUQD_SIM_WORLD_INT_H

#include "gpuqd/sim/world.h"

#define WORLD_POOL_LABEL "gpuq-sim/pool" /* of nodes: the pool */
#include "gpuqd/snapshot/snapshot_take_more.h"

#define WORLD_FLAVORS_MAX 64

bool world_knows(const char *const *list, uint32_t n, const char *name);
/* Convert a time of the file; absent: the value for an absent one. */
int64_t world_time_or(const struct world *w, int64_t t, int64_t absent);
/* Return room for one more in a table in the arena, which moves when it grows; NULL with err. */
void *world_append(struct world *w, void *table, uint32_t *n, uint32_t *room, size_t size,
		   struct gpuq_err *err);

/* Convert an instant of the file; absent: the value for an absent one. */
int64_t world_at_or(const struct world *w, int64_t t, int64_t absent);
const struct sc_queue *world_queue(const struct world *w,
				   const char *name); /* NULL: there is none */

/* world_model.c: the case's site, nodes and past use, as a model; before the first job. */
int world_make_model(struct world *w, struct gpuq_err *err);
int world_make_past(struct world *w, struct gpuq_err *err); /* past use; after the jobs */

int world_node_event(struct world *w, const struct sim_node *n,
		     struct gpuq_err *err); /* as it is now */
/* Return the class of the model for a job with these properties. */
const char *world_qos(struct world *w, const struct sc_job *j);

/* world_more.c: what a case has beyond the model. */
void world_more(struct world *w, struct snapshot_more *out);
int64_t world_runtime(const struct world *w, int64_t t, int64_t absent);

/* Apply an event, at now_us unless it has its own time; its effects on a job are noted. */
int world_event(struct world *w, struct event *ev, struct gpuq_err *err);
int world_event_fn(void *world, struct event *ev,
		   struct gpuq_err *err); /* the same, as a callback */
/* Report the state of that job to the model, for later jobs that depend on it. */
int world_tell_past(struct world *w, const struct sim_job *j, struct gpuq_err *err);
void world_token(char out[33]); /* of every attempt */
int world_start_pods(struct world *w, struct sim_job *j, int64_t at_us, struct gpuq_err *err);
const struct job *
world_model_job(const struct world *w,
		const struct sim_job *j); /* NULL: pending in its array, or ended */
int world_end_pods(struct world *w, const struct job *j, bool all, int exit_code,
		   struct gpuq_err *err);
/* Apply the events of a plan. */
int world_happen(struct world *w, const struct snapshot *s, const struct plan *p,
		 struct gpuq_err *err);
/* Fill the readings of all jobs. */
int world_read(struct world *w, struct gpuq_err *err);

/* Check that reservations do not exceed the cluster. GPUQ_EINVAL names the reservation. */
int world_check_calendar(struct world *w, struct gpuq_err *err);

/* world_jobs.c */
int world_make_jobs(struct world *w, struct gpuq_err *err);
uint32_t world_group_of(const struct sim_template *t, const struct sc_tasks *tasks);
/* world_submit.c: submit all of the template's jobs to the model; queue: their queue. */
int world_tell_job(struct world *w, struct sim_template *t, const char *queue,
		   struct gpuq_err *err);
/* world_seat.c: find the devices of the last job that was listed; then place all of them in the
 * model, in the order in which they started. */
int world_seat_job(struct world *w, const struct sc_job *spec, struct gpuq_err *err);
int world_place_jobs(struct world *w, struct gpuq_err *err);

#endif
