/* script.h - what a queue has scripts do, and what their submitters should know
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit.
 */
#ifndef GPUQD_FLOW_SCRIPT_SCRIPT_H
#define GPUQD_FLOW_SCRIPT_SCRIPT_H

#include "gpuqd/state/model.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

/* A job that is submitted. */
struct script_job {
	const struct model *m;
	const struct queue *queue;
	const char *user;
	const struct gpuq_spec *spec; /* as submitted */
	const struct gpuq_spec *whole; /* with what the site adds to it */
};

/* Ask the client for the directory of submission where the queue has it that scripts carry it: GPUQ_ENOENT with
 * field "code". For Kubernetes. */
int script_check_code(const struct script_job *j, struct gpuq_err *err);

/* Append a line to warnings for a script that is submitted from a directory that its pods do not have. For Kubernetes:
 * elsewhere they have it. */
void script_warn_directory(const struct script_job *j, struct gpuq_buf *warnings);

/* True if the queue or the site has it that this job, a script with lines of Slurm or of sbatch, runs in the first of its
 * pods alone, and the job does not say. */
bool script_launches(const struct script_job *j);

/* Append a line to warnings for a script of sbatch that starts tasks in several pods, by srun or mpirun, as if it ran once:
 * every pod runs it. */
void script_warn_pods(const struct script_job *j, struct gpuq_buf *warnings);

#endif
