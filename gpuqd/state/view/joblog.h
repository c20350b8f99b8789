/* joblog.h - what is written down about a job while it lives
 *
 * Owns     the form of an event for readers, and the records of TABLE_LOG.
 * Touches  memory only.
 * Used by  state/record/model_apply (writes), state/record/history_index (forgets), rpc methods (show).
 *
 * Every event that befalls a job is an entry, numbered from 0, in the transaction of what it
 * tells. Of a long life the beginning and the end are kept: the first JOBLOG_FIRST entries
 * and the last ones, JOBLOG_MAX in all. They stay as long as the job's record does. That it
 * was submitted is not written again: its record says so.
 */
#ifndef GPUQD_STATE_VIEW_JOBLOG_H
#define GPUQD_STATE_VIEW_JOBLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "gpuqd/state/event.h"
#include "libgpuq/val.h"

#define JOBLOG_MAX 256
#define JOBLOG_FIRST 32
#define JOBLOG_PODS 16 /* of an attempt: of the others only how they failed */

struct job;
struct model;

/* An event as people and programs see it: {time, event, job, attempt, pod, who, ...};
 * members without a value are left out. NULL when a is exhausted. */
struct gpuq_val *joblog_event_view(struct gpuq_arena *a, const struct event *ev);

/* Whose it is; id 0 = no job's. */
struct job_key joblog_event_job(const struct event *ev);

/* That a job was submitted, from the object of view_job or of the history. */
struct gpuq_val *joblog_submitted(struct gpuq_arena *a, const struct gpuq_val *job);

/* Keys. out: CHANGE_KEY_BYTES_MAX bytes; the length is returned. */
size_t joblog_key(unsigned char *out, struct job_key job, uint32_t n);

/* Around the application of an event: begin finds out what there is to be told while it is
 * still so, end writes it down if the event was applied. */
struct joblog_entry {
	struct gpuq_arena mem;
	struct gpuq_val *val; /* NULL = nothing */
	struct job *job; /* NULL = not there yet */
	struct job_key key;
	uint32_t n;
};
void joblog_begin(struct model *m, const struct event *ev, struct joblog_entry *e);
void joblog_end(struct model *m, struct joblog_entry *e, bool applied);

/* What follows from events without being one: all its pods run; it has ended. n: the number of
 * the entry. */
void joblog_started(struct model *m, const struct job *j, uint32_t n, int64_t at_us);
void joblog_ended(struct model *m, const struct job *j, uint32_t n);

/* Take away the entries of a job that has n of them. */
void joblog_forget(struct batch *out, struct job_key job, uint32_t n);

#endif
