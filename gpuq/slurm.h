/* slurm.h - the commands of Slurm, for people and scripts that know them
 *
 * Owns     the table of names and options (slurm.c), Slurm's words for states, reasons and
 *          times. Everything else is gpuq's: parser, filters, lists, calls.
 * Used by  commands.c, which hands over when the program is called by such a name.
 *
 * The names are symbolic links in a folder of their own (gpuq-slurm(7)), never in the
 * default path. Exit codes are Slurm's, and 255 when no server answers.
 */
#ifndef GPUQ_SLURM_H
#define GPUQ_SLURM_H

#include "gpuq/cli.h"
#include "gpuq/out.h"

/* The command of that name, or NULL. path is argv[0]. */
const struct command *slurm_find(const char *path);

int slurm_sacct(struct cli *c);
int slurm_sbatch(struct cli *c);
int slurm_scancel(struct cli *c);
int slurm_scontrol(struct cli *c);
int slurm_sinfo(struct cli *c);
int slurm_squeue(struct cli *c);
int slurm_srun(struct cli *c);
int slurm_step(struct cli *c); /* srun inside a job: the tasks of this pod */

/* ---- words ---- */

/* "2026-11-22T09:00:00" in local time; none for null or absent. */
void slurm_time(struct gpuq_buf *out, const struct gpuq_val *us, const char *none);
/* The time limit, or "UNLIMITED". */
void slurm_limit(struct gpuq_buf *out, const struct gpuq_val *job);
/* "1-02:03:04", always with hours. */
void slurm_elapsed(struct gpuq_buf *out, int64_t us);
/* What squeue and sacct call the job's state; letters: its short form. */
const char *slurm_state(const struct gpuq_val *job, bool letters);
/* What squeue calls why it waits; "None". */
const char *slurm_reason(const struct gpuq_val *job);
/* "code:signal". */
void slurm_exit(struct gpuq_buf *out, const struct gpuq_val *job);
/* "gres/gpu:4", empty without devices. */
void slurm_gres(struct gpuq_buf *out, const struct gpuq_val *job);

/* Words of sinfo and squeue for -o ("%.18i %j") from those of -O ("JobID:18,Name"): the
 * column's letter by its word. NULL after a message. */
struct slurm_field {
	const char *word;
	char letter;
};
const char *slurm_format(const struct cli *c, const struct slurm_field *fields, const char *text);

/* now-1days, today, 2026-11-22, 09:00 ... as an instant of local time. 0 or GPUQ_EINVAL. */
int slurm_instant(const char *text, int64_t *us);

/* An error of the server: message, and 1, or 255 when there is none. */
int slurm_fail(const struct gpuq_err *err);

/* Jobs that filters name (slurm.c's -A and -q as well). */
bool slurm_keep(const struct cli *c, const struct gpuq_val *job);

/* Call fn for the objects of a list, in order. Returns 0 or an error code. */
typedef void (*slurm_each_fn)(void *arg, const struct gpuq_val *obj);
int slurm_each(struct cli *c, const char *method, const struct gpuq_val *params, slurm_each_fn fn,
	       void *arg, struct gpuq_err *err);

#endif
