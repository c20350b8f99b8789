#include "gpuqd/sched/quota/users.h"

#include "gpuqd/sched/quota/holdings_int.h"
#include "gpuqd/util/amount.h"

struct user_use *users_use(struct cycle *c, uint32_t queue, uint32_t user)
{
	struct holdings *h = c->holdings;
	const uint32_t mask = h->n_user_slots - 1;
	uint32_t at = (queue * UINT32_C(2654435761) ^ user * UINT32_C(2246822519)) & mask;
	struct user_use *u;

	for (; h->user_slots[at]; at = (at + 1) & mask) {
		u = &h->user_uses[h->user_slots[at] - 1];
		if (u->queue == queue && u->user == user)
			return u;
	}
	u = CYCLE_PUSH(c, h, user_uses, 1);
	if (!u)
		return NULL;
	*u = (struct user_use){ .queue = queue, .user = user };
	h->user_slots[at] = h->n_user_uses;
	return u;
}

bool users_limited(const struct snap_queue *q)
{
	return q->user_max_running != GPUQ_UNLIMITED || q->user_max_gpus_milli != GPUQ_UNLIMITED;
}

void users_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct holdings *h = c->holdings;
	uint64_t room = 64, limiting = 0, pairs, by_jobs;
	uint32_t depth = 0;

	for (uint32_t q = 0; q < s->n_queues; q++) {
		const uint32_t p = s->queues[q].parent;

		h->per_user[q] = users_limited(&s->queues[q]) || (p != SNAP_NONE && h->per_user[p]);
		limiting += users_limited(&s->queues[q]);
		depth = s->queues[q].depth > depth ? s->queues[q].depth : depth;
	}
	if (limiting == 0)
		return;
	/* At most one entry for each user of each such queue, and for each job on each
	 * queue of its path; the table is never more than half full. */
	pairs = limiting * s->n_users;
	by_jobs = (uint64_t)s->n_jobs * (depth + 1);
	while (room < 2 * (pairs < by_jobs ? pairs : by_jobs))
		room *= 2;
	h->n_user_slots = (uint32_t)room;
	h->user_slots = cycle_alloc(c, room, sizeof(*h->user_slots));
}

void users_count(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t q = j->queue; q != SNAP_NONE && c->holdings->per_user[q];
	     q = c->s->queues[q].parent) {
		struct user_use *u;

		if (!users_limited(&c->s->queues[q]))
			continue;
		u = users_use(c, q, j->user);
		if (!u)
			return;
		u->running += starts;
		u->gpus_milli = amount_sum(u->gpus_milli, gpus_milli);
	}
}
