/* slurm_words.h - states, reasons, times and errors as Slurm says them
 *
 * Touches  the server, standard error; else memory only.
 * Used by  slurm_*.c.
 */
#ifndef GPUQ_SLURM_SLURM_WORDS_H
#define GPUQ_SLURM_SLURM_WORDS_H

#include <pwd.h>

#include "gpuq/cli.h"
#include "gpuq/out.h"

/* Return the user as this machine knows it, until the next call; NULL = it does not, or the name is NULL or empty. */
const struct passwd *slurm_user(const char *name);
/* Return SLURM_JOB_ID: of an element that has started its own number, else that of the job. */
int64_t slurm_number(const struct gpuq_val *job);
/* "2026-11-22T09:00:00" in local time; none for null or absent. */
void slurm_time(struct gpuq_buf *out, const struct gpuq_val *us, const char *none);
/* Append when it ended, or will by its time limit once it has started; else none. */
void slurm_end_time(struct gpuq_buf *out, const struct gpuq_val *job, const char *none);
/* A line with the date, as lists with --long begin. */
void slurm_date(void);
/* The time limit, or "UNLIMITED". */
void slurm_limit(struct gpuq_buf *out, const struct gpuq_val *job);
/* "1-02:03:04", always with hours. */
void slurm_elapsed(struct gpuq_buf *out, int64_t us);
/* Return the job's state as squeue and sacct name it; letters: its short form. */
const char *slurm_state(const struct gpuq_val *job, bool letters);
/* Return squeue's word for the reason why it is pending, or ended badly; "None". */
const char *slurm_reason(const struct gpuq_val *job);
/* The same of one that has ended badly, or NULL: "NonZeroExitCode", "TimeLimit". */
const char *slurm_end_reason(const struct gpuq_val *job);
/* "code:signal". */
void slurm_exit(struct gpuq_buf *out, const struct gpuq_val *job);
/* Cores of all its pods; where none are counted, one for each. */
void slurm_cpus(struct gpuq_buf *out, const struct gpuq_val *job);
/* "16G", of all its pods and of one; "0" where none is counted. */
void slurm_all_memory(struct gpuq_buf *out, const struct gpuq_val *job);
void slurm_memory(struct gpuq_buf *out, const struct gpuq_val *job);
/* "cpu=8,mem=16G,node=1,gres/gpu=4" of what is counted. */
void slurm_tres(struct gpuq_buf *out, const struct gpuq_val *job);
/* "afterok:12(unfulfilled)" and the like; "(null)". */
void slurm_dependency(struct gpuq_buf *out, const struct gpuq_val *job);
/* "gres/gpu:4", empty without devices. */
void slurm_gres(struct gpuq_buf *out, const struct gpuq_val *job);

/* Words of sinfo and squeue for -o ("%.18i %j") from those of -O ("JobID:18,Name"): the
 * column's letter by its word. NULL after a message. */
struct slurm_field {
	const char *word;
	char letter;
};
const char *slurm_format(const struct cli *c, const struct slurm_field *fields, const char *text);

/* "%all": every column of the table, with | between them. NULL: no memory. */
const char *slurm_all(const struct cli *c, const struct column *cols);

/* A time of sacct's --starttime, in each form of its manual, as an instant of local time: now-1days,
 * 2026-11-22T09:00, 1122, 112226, 11/22, 22:00:01, 9:00PM, noon, uts1700000000. 0 or GPUQ_EINVAL. */
int slurm_instant(const char *text, int64_t *us);

/* True if the queue is one that takes jobs, a partition: no other of the list is below it. */
bool slurm_is_partition(const struct gpuq_val *queues, const struct gpuq_val *queue);
/* True if jobs of the queue may have devices of the node: neither it nor one above has the limit 0 there. */
bool slurm_may_use(const struct gpuq_val *queues, const struct gpuq_val *queue,
		   const struct gpuq_val *node);

/* An error of the server: message, and 1, or 255 when there is none. */
int slurm_fail(const struct gpuq_err *err);
/* Say it in the words that programs look for where the job does not exist. */
int slurm_fail_job(struct gpuq_err *err);

/* Jobs that filters name (slurm.c's -A and -q as well). */
bool slurm_keep(const struct cli *c, const struct gpuq_val *job);

/* Return a copy of what stands for an array, as the elements of it that ended without a start: "40_[2,4-5]",
 * cancelled. NULL: there are none, or there is no memory. */
struct gpuq_val *slurm_rest(struct gpuq_arena *a, const struct gpuq_val *job);

/* It stands for an array whose elements have all ended, each with a line of its own. */
bool slurm_is_spent_array(const struct gpuq_val *job);

/* Call fn for the objects of a list, in order; of jobs keys (NULL: all; ended by NULL) say what
 * is wanted, as in gpuq_stream_rows. Returns 0 or an error code. */
typedef void (*slurm_each_fn)(void *arg, const struct gpuq_val *obj);
int slurm_each(struct cli *c, const char *method, const struct gpuq_val *params,
	       const char *const *keys, slurm_each_fn fn, void *arg, struct gpuq_err *err);

#endif
