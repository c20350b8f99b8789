/* view.h - the model's objects as people and programs see them
 *
 * Owns     the JSON names of gpuq-json(5).
 * Touches  memory only; reads the model, never changes it.
 * Used by  rpc/ (replies), state/record/record (a finished job's record is its last view).
 *
 * Instants are int64 microseconds, or null; the client prints them for people.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_H
#define GPUQD_STATE_VIEW_VIEW_H

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Return devices from thousandths: whole numbers stay integers; GPUQ_UNLIMITED is "unlimited". */
struct gpuq_val *view_devices(struct gpuq_arena *a, int64_t milli);
/* Return a string; null for NULL and "". */
struct gpuq_val *view_word(struct gpuq_arena *a, const char *s);
/* A MIG profile as jobs name it. */
struct gpuq_val *view_profile(struct gpuq_arena *a, const char *profile);
/* Return the state as people see it: a pending job for which nodes were requested is PROVISIONING. */
enum gpuq_job_state view_job_state(const struct job *j);
/* Return the role that can end a trouble: "user", "operator"; the word for none if it ends by itself. */
const char *view_trouble_who(enum trouble_whose whose);
/* Return the word of an isolation; null for ISOLATION_NO_DEVICES. */
struct gpuq_val *view_isolation(struct gpuq_arena *a, int isolation);
struct gpuq_val *view_instant(struct gpuq_arena *a, int64_t us); /* null for 0 */
/* Return "17" or "17_3"; NULL when the arena is exhausted. */
const char *view_key(struct gpuq_arena *a, struct job_key key);

/* Return trees in a; NULL when it is exhausted. now_us is for values that still grow. */
struct gpuq_val *view_job(struct gpuq_arena *a, const struct model *m, const struct job *j,
			  int64_t now_us);

/* Jobs as rows: a list of the values of some keys, in their order, as MessagePack. A key may be
 * that of a part ("pods.node": the node of each pod); an unknown key gives null. */
struct view_row;
struct gpuq_strlist;
/* Make a row in a, with borrowed names: both must outlive it. NULL: no memory. */
struct view_row *view_row_new(struct gpuq_arena *a, const struct gpuq_strlist *keys,
			      int64_t ahead_us);
/* Append the row of a job, or of a job's object; out->failed is set without memory. */
void view_row_job(const struct view_row *r, struct gpuq_buf *out, struct gpuq_arena *scratch,
		  const struct model *m, const struct job *j, int64_t now_us);
void view_row_object(const struct view_row *r, struct gpuq_buf *out, struct gpuq_arena *scratch,
		     const struct gpuq_val *job);

/* Put the keys of a job that its description alone decides into v: cores, comment and so on. */
void view_spec_facts(struct gpuq_arena *a, struct gpuq_val *v, const struct gpuq_spec *spec);

/* Return a job that was not stored (a dry run): id and state are null. */
struct gpuq_val *view_spec(struct gpuq_arena *a, const struct gpuq_spec *spec, const char *user,
			   int64_t time_limit_us);
struct gpuq_val *
view_queue(struct gpuq_arena *a, const struct model *m, const struct queue *q,
	   int64_t used_ms, /* of budget_spending() */
	   struct gpuq_val *resources); /* of view_queue_resources(); NULL = none */
/* Return the countable resources and instances that queues and those below them hold, {name: count} by the
 * queue's ix; NULL: no memory. */
struct gpuq_val **view_queue_resources(struct gpuq_arena *a, const struct model *m);
/* Put what is known of how long requests of a pool took into v; known may be NULL. */
struct ask_pool;
void view_ask_waits(struct gpuq_arena *a, struct gpuq_val *v, const struct ask_pool *known);
/* Return devices by their use, jobs by state; {gpus, devices, jobs}. */
struct gpuq_val *view_status(struct gpuq_arena *a, const struct model *m, int64_t now_us);

#endif
