/* line.h - ranks of the pending jobs of a queue
 *
 * Owns     nothing.
 * Touches  reads the model: the priorities that the last cycle gave to jobs.
 * Used by  rpc (prio.list, job.why).
 *
 * A queue may be long: the result made here is small, and does not need the model again.
 */
#ifndef GPUQD_FLOW_ADVISE_LINE_H
#define GPUQD_FLOW_ADVISE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* A pending job and its rank. */
struct line_place {
	struct job_key key;
	uint32_t queue; /* its number */
	int64_t total, submit_us;
	uint32_t place, of; /* line_number(): from 1; pending jobs there */
};

/* True if it has a rank in a queue, and a cycle has given it a priority. */
bool line_has(const struct job *j);
void line_stand(const struct job *j, struct line_place *out); /* without place */
/* < 0: a ranks before b. Queue by queue. */
int line_cmp(const struct line_place *a, const struct line_place *b);
/* Sort all pending jobs by queue and rank, and number them. */
void line_number(struct line_place *all, size_t n);

/* Return the rank of j, as a map made in a:
 *   place, waiting   its rank in its queue, and the number of pending jobs there
 *   terms     its priority's terms and their `total`
 *   ahead     up to ten before it, nearest first: {job, user, queue, gpus, priority, by:
 *             the term that decides, points: by how many}
 * null, and ahead empty, as long as no cycle has seen it. */
struct gpuq_val *line_view(const struct job *j, struct gpuq_arena *a);

#endif
