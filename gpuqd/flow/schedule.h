/* schedule.h - when to decide, on what, and what follows
 *
 * Owns     the debounce: one cycle soon after something changed, and at the next
 *          instant that matters by time alone.
 * Touches  the journal; calls the pure core (snapshot, sched_cycle).
 * Used by  daemon.c (makes it), flow/reconcile (tells it that the cluster is in view).
 */
#ifndef GPUQD_FLOW_SCHEDULE_H
#define GPUQD_FLOW_SCHEDULE_H

#include <stdbool.h>

#include "gpuqd/core/model.h"
#include "gpuqd/core/snapshot.h"
#include "libgpuq/err.h"

struct journal;
struct schedule;
struct spool;

int schedule_new(struct journal *j, struct schedule **out, struct gpuq_err *err);
void schedule_free(struct schedule *s);

/* Nothing is placed until the cluster has been listed: foreign pods are not known. */
void schedule_ready(struct schedule *s, bool ready);
void schedule_kick(struct schedule *s); /* something changed */

/* From now on every cycle is recorded there; NULL = none is. It must outlive the schedule. */
void schedule_record(struct schedule *s, struct spool *to);

/* The model as a sealed snapshot; free with snapshot_free(). packed: what was sealed is
 * appended there (snapshot_pack.h); NULL = nowhere. Pure. */
int snapshot_take_packed(const struct model *m, int64_t now_us, struct gpuq_buf *packed,
			 struct snapshot **out, struct gpuq_err *err);
int snapshot_take(const struct model *m, int64_t now_us, struct snapshot **out,
		  struct gpuq_err *err);
/* The queues and what their users have used, without nodes and jobs. */
int snapshot_take_usage(const struct model *m, int64_t now_us, struct snapshot **out,
			struct gpuq_err *err);

#endif
