/* slurm_salloc.h - jobs that are waited for in Slurm's words
 *
 * Touches  the server, standard error.
 * Used by  slurm_scontrol.c, slurm_submit.c.
 */
#ifndef GPUQ_SLURM_SLURM_SALLOC_H
#define GPUQ_SLURM_SLURM_SALLOC_H

#include "gpuq/cli.h"

/* --immediate[=SECONDS] as microseconds, 0 when it was not given; negative after a message. */
int64_t slurm_immediate_us(const struct cli *c);

/* Wait until job id has started, in Slurm's words on standard error unless quiet; one that
 * has not within immediate_us (0: any time) is cancelled. Returns false with the exit code
 * when it never did. A signal is left for the caller to take (cli_signals_seen), with false
 * and *code 0. */
bool slurm_wait_start(struct cli *c, int64_t id, int64_t immediate_us, bool quiet, int *code);

/* Cancel job id, or send it a signal (0 = cancel). */
void slurm_tell_job(struct cli *c, int64_t id, int signo);

#endif
