/* users.h - what users hold in queues that limit them
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  holdings.c. */
#ifndef GPUQD_SCHED_QUOTA_USERS_H
#define GPUQD_SCHED_QUOTA_USERS_H

#include "gpuqd/sched/quota/cycle.h"

/* The holdings of one user in a queue with limits per user. */
struct user_use {
	uint32_t queue, user;
	int64_t running, gpus_milli; /* jobs, and thousandths of devices */
};

/* Note which queues limit users, themselves or above them, and make room for these. */
void users_init(struct cycle *c);
bool users_limited(const struct snap_queue *q); /* by this very queue */
/* Count pods of a job in all queues of its path that limit users; starts: the job as well. */
void users_count(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts);
/* Return what the user holds in a queue that limits users; NULL, and `failed` is set, without
 * memory. */
struct user_use *users_use(struct cycle *c, uint32_t queue, uint32_t user);

#endif
