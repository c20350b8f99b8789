#include "gpuqd/flow/advise/why_holders.h"

#include <string.h>

#include "gpuqd/state/view/view.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define USERS_MAX 5u /* of one line that are named */

#define WHYS(X)                                                                                    \
	X(NOT_PREEMPTIBLE, "not_preemptible")                                                      \
	X(OWN_QUEUE, "own_queue")                                                                  \
	X(UNLIMITED, "unlimited_quota")                                                            \
	X(QUOTA, "quota")                                                                          \
	X(NOT_RECLAIMABLE, "not_reclaimable")                                                      \
	X(MIN_RUNTIME, "min_runtime")                                                              \
	X(FAIR_SHARE, "fair_share")                                                                \
	X(ROOM, "room")

enum stays {
#define X(sym, word) STAYS_##sym,
	WHYS(X)
#undef X
		N_STAYS
};

static const char *const words[N_STAYS] = {
#define X(sym, word) word,
	WHYS(X)
#undef X
};

struct line {
	int64_t milli, jobs;
	uint32_t users[USERS_MAX];
	uint32_t n_users;
};

/* Return for how long after its start other queues may not preempt a job. */
static int64_t protected_us(const struct snapshot *s, const struct snap_job *j)
{
	if (j->min_runtime_us > 0)
		return j->min_runtime_us;
	for (uint32_t q = j->queue; q != SNAP_NONE; q = s->queues[q].parent)
		if (s->queues[q].reclaim_min_runtime_us >= 0)
			return s->queues[q].reclaim_min_runtime_us;
	return s->config.reclaim_min_runtime_us;
}

static bool is_reclaimable(const struct snapshot *s, uint32_t queue)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = s->queues[q].parent)
		if (!s->queues[q].reclaimable)
			return false;
	return true;
}

static enum stays stays_by(const struct why_case *c, const struct snap_job *j, uint32_t flavor)
{
	const struct snapshot *s = c->s;
	const size_t at = (size_t)j->queue * s->n_res + flavor;

	if (!j->preemptible)
		return STAYS_NOT_PREEMPTIBLE;
	if (j->queue == s->jobs[c->job].queue)
		return STAYS_OWN_QUEUE;
	if (s->shares[at].quota == GPUQ_UNLIMITED)
		return STAYS_UNLIMITED;
	if (c->p->allocated[at] <= s->shares[at].quota)
		return STAYS_QUOTA;
	if (!is_reclaimable(s, j->queue))
		return STAYS_NOT_RECLAIMABLE;
	if (amount_later(j->start_us, protected_us(s, j)) > s->config.now_us)
		return STAYS_MIN_RUNTIME;
	if (c->p->allocated[at] <= c->p->fair_share[at])
		return STAYS_FAIR_SHARE;
	return STAYS_ROOM;
}

static bool may_use(const struct why_case *c, uint32_t flavor)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];

	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		if (r->flavor_ix[i] == flavor)
			return true;
	return false;
}

static void count_job(const struct why_case *c, const struct snap_job *j, struct line *lines)
{
	struct line *l = NULL;
	bool known = false;

	for (uint32_t i = 0; i < j->n_allocs; i++) {
		const struct snap_alloc *a = &c->s->allocs[j->alloc_first + i];
		const uint32_t flavor = c->s->nodes[a->node].flavor;

		if (a->milli == 0 || !may_use(c, flavor))
			continue;
		l = &lines[(size_t)j->queue * N_STAYS + stays_by(c, j, flavor)];
		l->milli += (int64_t)a->n_devices * a->milli;
	}
	if (!l)
		return;
	l->jobs++;
	for (uint32_t i = 0; i < l->n_users; i++)
		known |= l->users[i] == j->user;
	if (!known && l->n_users < USERS_MAX)
		l->users[l->n_users++] = j->user;
}

struct gpuq_val *why_holders(const struct why_case *c)
{
	const size_t n = (size_t)c->s->n_queues * N_STAYS;
	struct line *lines = gpuq_arena_calloc(c->a, n ? n : 1, sizeof(*lines));
	struct gpuq_val *list = gpuq_list(c->a);

	if (!lines || c->s->requests[c->s->jobs[c->job].request].gpus_milli == 0)
		return list;
	for (uint32_t i = 0; i < c->s->n_jobs; i++)
		if (c->s->jobs[i].state == SNAP_RUNNING)
			count_job(c, &c->s->jobs[i], lines);
	for (size_t i = 0; i < n; i++) {
		struct gpuq_val *v, *users;

		if (lines[i].jobs == 0)
			continue;
		v = gpuq_map(c->a);
		users = gpuq_list(c->a);
		gpuq_put(c->a, v, "queue", gpuq_str(c->a, c->s->queues[i / N_STAYS].name));
		for (uint32_t u = 0; u < lines[i].n_users; u++)
			gpuq_add(c->a, users, gpuq_str(c->a, c->s->users[lines[i].users[u]]));
		gpuq_put(c->a, v, "users", users);
		gpuq_put(c->a, v, "jobs", gpuq_int(c->a, lines[i].jobs));
		gpuq_put(c->a, v, "gpus", view_devices(c->a, lines[i].milli));
		gpuq_put(c->a, v, "why", gpuq_str(c->a, words[i % N_STAYS]));
		gpuq_add(c->a, list, v);
	}
	return list;
}
