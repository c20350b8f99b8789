/* line.h - who stands where among the jobs that wait in a queue
 *
 * Owns     nothing.
 * Touches  reads the model: what the last cycle told jobs of their priority.
 * Used by  rpc (prio.list, job.why).
 *
 * A line is long: what is made of it here is small, and does not need the model again.
 */
#ifndef GPUQD_FLOW_LINE_H
#define GPUQD_FLOW_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* A job that waits, and where. */
struct line_place {
	struct job_key key;
	uint32_t queue; /* its number */
	int64_t total, submit_us;
	uint32_t place, of; /* line_number(): from 1; so many wait there */
};

/* Does it stand in a line, and has a cycle told it what its priority is? */
bool line_has(const struct job *j);
void line_stand(const struct job *j, struct line_place *out); /* without place */
/* < 0: a's turn comes before b's. Queue by queue. */
int line_cmp(const struct line_place *a, const struct line_place *b);
/* Into the order of their lines, with their places: all that wait. */
void line_number(struct line_place *all, size_t n);

/* Where j stands, as a map made in a:
 *   place, waiting   its place in the line of its queue, of so many
 *   terms     its priority's terms and their `total`
 *   ahead     up to ten before it, nearest first: {job, user, queue, gpus, priority, by:
 *             the term that puts it there, points: by how many}
 * null, and nobody ahead, as long as no cycle has seen it. */
struct gpuq_val *line_view(const struct job *j, struct gpuq_arena *a);

#endif
