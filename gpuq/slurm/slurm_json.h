/* slurm_json.h - squeue, sacct and sinfo --json, in the words of Slurm's data_parser
 *
 * Touches  standard output.
 * Used by  slurm_squeue.c, slurm_sacct.c, slurm_sinfo.c.
 *
 * One object, as Slurm 24.11 prints it (v0.0.42): numbers that may be missing are {set, infinite,
 * number}, states are lists. Members without a counterpart here are left out. gpuq's own objects, one
 * a line, are those of gpuq queue, history and nodes --json.
 */
#ifndef GPUQ_SLURM_SLURM_JSON_H
#define GPUQ_SLURM_SLURM_JSON_H

#include "gpuq/cli.h"
#include "libgpuq/val.h"

/* Print jobs, a list of job objects; returns an exit code. */
int slurm_json_squeue(struct cli *c, const struct gpuq_val *jobs);
int slurm_json_sacct(struct cli *c, const struct gpuq_val *jobs);

/* Nodes of one partition in one state, for sinfo. */
struct slurm_json_nodes {
	const struct gpuq_val *queue, *nodes; /* nodes: a list of node objects, all in one state */
	const char *state, *flag; /* "IDLE", and NULL or what it is beside: "DRAIN" */
};
/* Add the entry to a list in c's arena; print the list; returns an exit code. */
void slurm_json_add_nodes(struct cli *c, struct gpuq_val *list, const struct slurm_json_nodes *n);
int slurm_json_sinfo(struct cli *c, struct gpuq_val *list);

#endif
