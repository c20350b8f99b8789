/* view.h - objects of the wire as people and as scripts read them
 *
 * Owns     nothing.
 * Touches  memory; the local time zone.
 * Used by  the commands that print objects, lists (out.c, lines.c, cols_job.c), slurm, top.
 *
 * On the wire a time is int64 microseconds; --json shows RFC 3339, tables show local
 * time or durations as squeue does.
 */
#ifndef GPUQ_VIEW_H
#define GPUQ_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* The object for --json: a copy with "v" (version of this output) first and times as
 * text. NULL when the arena is exhausted. */
struct gpuq_val *view_json(struct gpuq_arena *a, const struct gpuq_val *obj);

/* A value in one cell: null is "-", a number its digits, lists and maps joined by
 * commas ("a100=32,h100=8"). */
void view_cell(struct gpuq_buf *out, const struct gpuq_val *v);

/* "17", "17_3", or "17_[4-99%10]" for the waiting elements of an array. */
void view_job_id(struct gpuq_buf *out, const struct gpuq_val *job);

/* The enum gpuq_job_state of a job object, -1 when it has none that is known. */
int view_job_state(const struct gpuq_val *job);

/* It has run: devices were its own at some time. */
bool view_job_started(const struct gpuq_val *job);
bool view_job_ended(const struct gpuq_val *job);

/* Microseconds it has run (till now_us or its end); 0 before it started. */
int64_t view_job_elapsed_us(const struct gpuq_val *job, int64_t now_us);

/* Number of pods in a job object, and the node of the i-th; "" = none. In a
 * row, the key "pods.node" is enough. */
size_t view_pods(const struct gpuq_val *job);
const char *view_pod_node(const struct gpuq_val *job, size_t i);

/* Names of the nodes of its pods, folded: "n[01-04],x". Appends nothing without pods.
 * Returns the number of nodes. */
size_t view_job_nodes(struct gpuq_buf *out, const struct gpuq_val *job);

/* squeue's last column: the nodes, or "(Reason)". */
void view_job_place(struct gpuq_buf *out, const struct gpuq_val *job);

/* The file that key (stdout, stderr) of a job names, as far as it is known: of an array's
 * waiting elements the marks stay. "-" where there is none. */
void view_job_file(struct gpuq_buf *out, const struct gpuq_val *job, const char *key);

/* Print MiB in the largest unit, "512Gi"; "-" for null or absent. */
void view_mib(struct gpuq_buf *out, const struct gpuq_val *mib);

/* Print `before`, and "rdma/hca 3/8": how many are free of those that the key `all` counts. Bytes are in their
 * largest unit. */
void view_free(struct gpuq_buf *out, const char *before, const char *name, const struct gpuq_val *v,
	       const char *all);

/* Local time, "2026-11-21 15:26:29"; "-" for null or absent. */
void view_time(struct gpuq_buf *out, const struct gpuq_val *us);

/* "0.33 EUR", of the cost and the currency of a row; - where there are no prices. */
void view_money(struct gpuq_buf *out, const struct gpuq_val *row);

/* A number that may be an integer or a real; dflt for anything else. */
double view_number(const struct gpuq_val *v, double dflt);

/* Fold names: sorted (n2 before n10), doubles dropped, runs as n[01-04]. names is
 * reordered. Returns how many names are left. */
size_t view_fold(struct gpuq_buf *out, const char **names, size_t n);

/* Order of names as people count: runs of digits by value. */
int view_natural(const char *a, const char *b);

/* Return a number of the job's `used`; -1 = not known. */
int64_t view_used(const struct gpuq_val *job, const char *key);
/* Return user and system time together in ms; -1 = not known. */
int64_t view_used_cpu_ms(const struct gpuq_val *job);

#endif
