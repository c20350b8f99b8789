/* joblog.h - the log of a job during its life
 *
 * Owns     the form of an event for readers, and the records of TABLE_LOG.
 * Touches  memory only.
 * Used by  state/record/model_apply (writes), state/record/history_index (forgets),
 *          rpc methods (show).
 *
 * Every event of a job is an entry, numbered from 0, in the same transaction as the event.
 * The beginning and the end of a long life are kept: the first JOBLOG_FIRST entries
 * and the last ones, JOBLOG_MAX in all. They stay as long as the job's record does. The
 * submission has no entry: it is in the job's record.
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
#define JOBLOG_PODS 16 /* of an attempt: of further ones only how they failed */

struct job;
struct model;

/* Return an event as people and programs see it: {time, event, job, attempt, pod, who, ...};
 * members without a value are left out. NULL when a is exhausted. */
struct gpuq_val *joblog_event_view(struct gpuq_arena *a, const struct event *ev);

/* Return the job of an event; id 0 = no job's. */
struct job_key joblog_event_job(const struct event *ev);

/* Return the entry of a submission, from the object of view_job or of the history. */
struct gpuq_val *joblog_submitted(struct gpuq_arena *a, const struct gpuq_val *job);

/* Write the key of an entry. out: CHANGE_KEY_BYTES_MAX bytes; return the length. */
size_t joblog_key(unsigned char *out, struct job_key job, uint32_t n);

/* An entry around the application of an event: begin collects its values before they change, end
 * writes it if the event was applied. */
struct joblog_entry {
	struct gpuq_arena mem;
	struct gpuq_val *val; /* NULL = nothing */
	struct job *job; /* NULL = not there yet */
	struct job_key key;
	uint32_t n; /* place in the log */
};
void joblog_begin(struct model *m, const struct event *ev, struct joblog_entry *e);
void joblog_end(struct model *m, struct joblog_entry *e, bool applied);

/* Write an entry that follows from events without being one: all its pods run; it has ended. n: the
 * number of the entry. */
void joblog_started(struct model *m, const struct job *j, uint32_t n, int64_t at_us);
void joblog_ended(struct model *m, const struct job *j, uint32_t n);

/* Remove the n entries of a job. */
void joblog_forget(struct batch *out, struct job_key job, uint32_t n);

#endif
