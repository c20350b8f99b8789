/* slurm.h - the commands of Slurm, for people and scripts that know them
 *
 * Owns     the tables of names (slurm.c) and options (slurm_options.c), Slurm's words for
 *          states, reasons and times. Everything else is gpuq's: parser, filters, lists, calls.
 * Used by  commands.c, which hands over when the program is called by such a name.
 *
 * The names are symbolic links in a folder of their own (gpuq-slurm(7)), never in the
 * default path. Exit codes are Slurm's, and 255 when no server answers.
 */
#ifndef GPUQ_SLURM_SLURM_H
#define GPUQ_SLURM_SLURM_H

#include "gpuq/cli.h"
#include "gpuq/out.h"

#define SLURM_ALLOCATION "GPUQ_ALLOCATION" /* in what salloc runs: the job */

/* The command that argv[0] names, by what it is called with, or NULL. */
const struct command *slurm_find(int argc, char **argv);

/* Their options; each table ends with name == NULL. */
extern const struct opt slurm_common_opts[], slurm_which_opts[];
extern const struct opt sbatch_opts[], salloc_opts[], srun_opts[], step_opts[];
extern const struct opt squeue_opts[], scancel_opts[], sinfo_opts[], sacct_opts[];
extern const struct opt scontrol_opts[], sshare_opts[], sprio_opts[], sacctmgr_opts[];

int slurm_sacct(struct cli *c);
int slurm_sacctmgr(struct cli *c);
int slurm_salloc(struct cli *c);
int slurm_sbatch(struct cli *c);
int slurm_scancel(struct cli *c);
int slurm_scontrol(struct cli *c);
int slurm_show(struct cli *c, int n, char **words); /* scontrol show WORDS */
int slurm_sinfo(struct cli *c);
int slurm_sprio(struct cli *c);
int slurm_squeue(struct cli *c);
int slurm_srun(struct cli *c);
int slurm_sshare(struct cli *c);
int slurm_step(struct cli *c); /* srun inside a job: the tasks of this pod */

/* ---- submitting ---- */

/* Put what the environment says (PREFIX_PARTITION...) behind the options of the job, and the
 * job's name (may be NULL) behind that. */
bool slurm_environment(struct cli *c, const char *prefix, const char *name);

/* Jobs are processes of this machine. Needs a connection. */
bool slurm_is_local(const struct cli *c);

/* --immediate[=SECONDS] as microseconds, 0 when it was not given; negative after a message. */
int64_t slurm_immediate_us(const struct cli *c);

/* Wait until job id has started, in Slurm's words on standard error unless quiet; one that
 * has not within immediate_us (0: any time) is cancelled. Returns false with the exit code
 * when it never did. A signal is left for the caller to take (cli_signals_seen), with false
 * and *code 0. */
bool slurm_wait_start(struct cli *c, int64_t id, int64_t immediate_us, bool quiet, int *code);

/* Cancel job id, or send it a signal (0 = cancel). */
void slurm_tell_job(struct cli *c, int64_t id, int signo);

/* ---- words ---- */

/* "2026-11-22T09:00:00" in local time; none for null or absent. */
void slurm_time(struct gpuq_buf *out, const struct gpuq_val *us, const char *none);
/* A line with the date, as lists with --long begin. */
void slurm_date(void);
/* The time limit, or "UNLIMITED". */
void slurm_limit(struct gpuq_buf *out, const struct gpuq_val *job);
/* "1-02:03:04", always with hours. */
void slurm_elapsed(struct gpuq_buf *out, int64_t us);
/* Return the job's state as squeue and sacct name it; letters: its short form. */
const char *slurm_state(const struct gpuq_val *job, bool letters);
/* Return squeue's word for the reason why it is pending; "None". */
const char *slurm_reason(const struct gpuq_val *job);
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

/* now-1days, today, 2026-11-22, 09:00 ... as an instant of local time. 0 or GPUQ_EINVAL. */
int slurm_instant(const char *text, int64_t *us);

/* An error of the server: message, and 1, or 255 when there is none. */
int slurm_fail(const struct gpuq_err *err);
/* Say it in the words that programs look for where the job does not exist. */
int slurm_fail_job(struct gpuq_err *err);

/* Jobs that filters name (slurm.c's -A and -q as well). */
bool slurm_keep(const struct cli *c, const struct gpuq_val *job);

/* It stands for an array whose elements have all ended, each with a line of its own. */
bool slurm_is_spent_array(const struct gpuq_val *job);

/* Call fn for the objects of a list, in order; of jobs keys (NULL: all; ended by NULL) say what
 * is wanted, as in gpuq_stream_rows. Returns 0 or an error code. */
typedef void (*slurm_each_fn)(void *arg, const struct gpuq_val *obj);
int slurm_each(struct cli *c, const char *method, const struct gpuq_val *params,
	       const char *const *keys, slurm_each_fn fn, void *arg, struct gpuq_err *err);

#endif
