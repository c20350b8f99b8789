#include "gpuqd/snapshot/snapshot_take_caps.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/snapshot_take_usage.h"
#include "libgpuq/units.h"

#define MILLI_MOST (INT64_MAX / 1000)
/* More than all other terms of the priority: a job whose user is out of budget ranks last. */
#define OUT_OF_BUDGET (INT64_C(1) << 60)

/* Caps by their subject; strings and queues of the model are compared by address. */
struct known {
	UT_hash_handle hh;
	struct {
		const void *a, *b,
			*c; /* addresses in the site and the model that make up the key */
	} key;
	uint32_t ix; /* cap or set */
	bool demoted;
};

struct snap_caps {
	const struct model *m;
	struct snapshot *s;
	struct gpuq_arena *mem;
	struct known *caps, *sets; /* made already, by what they are about */
	int64_t now_us;
	bool any; /* there is a limit of any kind */
};

/* True if the cap limits anything. */
static bool limits(const struct site_cap *c)
{
	return c->user != GPUQ_UNLIMITED || c->queue != GPUQ_UNLIMITED || c->job != GPUQ_UNLIMITED;
}

/* True if the site has any limit that is counted by caps. Most sites have none, and then no job
 * needs a set. */
static bool any_limit(const struct model *m)
{
	site_each(site_qos, m->site->qos, q) {
		if (limits(&q->max_running) || limits(&q->max_gpus))
			return true;
	}
	site_each(site_user, m->site->users, u) {
		if (u->max_running != GPUQ_UNLIMITED || u->max_gpus != GPUQ_UNLIMITED)
			return true;
	}
	site_each(site_group, m->site->groups, g) {
		if (g->max_running != GPUQ_UNLIMITED || g->max_gpus != GPUQ_UNLIMITED)
			return true;
	}
	for (uint32_t i = 0; i < m->n_queues; i++)
		if (m->queues[i]->budget &&
		    m->queues[i]->budget->user_gpu_minutes != GPUQ_UNLIMITED)
			return true;
	return false;
}

struct snap_caps *snapshot_caps_new(const struct model *m, struct snapshot *s, int64_t now_us,
				    struct gpuq_arena *mem)
{
	struct snap_caps *c = gpuq_arena_calloc(mem, 1, sizeof(*c));

	if (c)
		*c = (struct snap_caps){ m, s, mem, NULL, NULL, now_us, any_limit(m) };
	return c;
}

void snapshot_caps_done(struct snap_caps *c)
{
	if (!c)
		return;
	HASH_CLEAR(hh, c->caps);
	HASH_CLEAR(hh, c->sets);
}

/* Return the entry for a subject, made if there is none (*fresh); NULL without memory. */
static struct known *look(struct snap_caps *c, struct known **table, const void *a, const void *b,
			  const void *d, bool *fresh)
{
	struct known *k = NULL, probe = { 0 };

	probe.key.a = a;
	probe.key.b = b;
	probe.key.c = d;
	HASH_FIND(hh, *table, &probe.key, sizeof(probe.key), k);
	*fresh = !k;
	if (k)
		return k;
	k = gpuq_arena_calloc(c->mem, 1, sizeof(*k));
	if (!k)
		return NULL;
	k->key = probe.key;
	k->ix = SNAP_NONE;
	HASH_ADD(hh, *table, key, sizeof(k->key), k);
	return k;
}

/* Return devices in thousandths; what is out of range is unlimited. */
static int64_t milli(int64_t devices)
{
	return devices > MILLI_MOST ? GPUQ_UNLIMITED : devices * 1000;
}

struct adding {
	struct snap_caps *c;
	struct snap_capset set; /* that the job gets */
	uint32_t n;
	bool demoted; /* out of budget: the job ranks last */
};

/* Add a cap. about, user: the key of the cap. */
static void add(struct adding *x, const void *about, const char *user, const struct snap_cap *cap)
{
	struct known *k;
	bool fresh;

	if (x->n == SNAP_CAPS_MAX ||
	    (cap->max_running == GPUQ_UNLIMITED && cap->max_gpus_milli == GPUQ_UNLIMITED &&
	     cap->left_gpu_ms == GPUQ_UNLIMITED && cap->job_max_gpus_milli == GPUQ_UNLIMITED))
		return;
	k = look(x->c, &x->c->caps, about, user, NULL, &fresh);
	if (k && fresh)
		k->ix = snapshot_add_cap(x->c->s, cap);
	if (k && k->ix != SNAP_NONE)
		x->set.caps[x->n++] = k->ix;
}

/* Add a cap on running jobs and on their devices. */
static void add_jobs_and_gpus(struct adding *x, const void *about, const char *user,
			      const char *name, enum gpuq_reason code, int64_t jobs, int64_t gpus)
{
	const struct snap_cap cap = { name,        (int)code,      jobs,
				      milli(gpus), GPUQ_UNLIMITED, GPUQ_UNLIMITED };

	add(x, about, user, &cap);
}

/* Note when a soft budget is exhausted while jobs of its user run. */
static void wake_when_used_up(const struct snap_caps *c, const struct queue *q, const char *user,
			      int64_t left_ms)
{
	const int64_t rate = left_ms > 0 ? budget_user_rate_milli(c->m, q, user) : 0;

	if (rate > 0)
		snapshot_wake(&c->s->config,
			      amount_sum(c->now_us, amount_times(left_ms, 1000000) / rate + 1));
}

/* Add the caps that follow from the user's part of budgets on the path. A soft budget that is used
 * up demotes the job instead of refusing it. */
static void add_budgets(struct adding *x, const struct queue *q, const char *user)
{
	for (; q; q = q->parent) {
		const struct site_budget *b = q->budget;
		struct snap_cap cap = { NULL, GPUQ_R_BUDGET, GPUQ_UNLIMITED, GPUQ_UNLIMITED,
					0,    GPUQ_UNLIMITED };

		if (!b || b->user_gpu_minutes == GPUQ_UNLIMITED)
			continue;
		cap.left_gpu_ms = b->user_gpu_minutes * 60000 -
				  budget_user_spent_ms(x->c->m, q, user, x->c->now_us);
		cap.name = gpuq_arena_printf(x->c->mem, "%s/%s", q->name, user);
		if (b->mode == 0) {
			x->demoted |= cap.left_gpu_ms <= 0;
			wake_when_used_up(x->c, q, user, cap.left_gpu_ms);
		} else if (cap.name)
			add(x, q, user, &cap);
	}
}

/* Add every cap that holds for jobs of a user in a queue under a qos: budgets, the qos, the user,
 * the user's groups. */
static void add_all(struct adding *x, const struct queue *q, const char *name, const char *qos_name)
{
	struct gpuq_arena *mem = x->c->mem;
	const struct site *site = x->c->m->site;
	const struct site_qos *qos = site_qos_find(site, qos_name);
	const struct site_user *user = site_user_find(site, name);

	add_budgets(x, q, name);
	if (qos) {
		const struct snap_cap all = {
			gpuq_arena_printf(mem, "qos/%s", qos->name),
			GPUQ_R_LIMIT_QUEUE,
			qos->max_running.queue,
			milli(qos->max_gpus.queue),
			GPUQ_UNLIMITED,
			milli(qos->max_gpus.job),
		};

		add(x, qos, NULL, &all);
		add_jobs_and_gpus(x, qos, name,
				  gpuq_arena_printf(mem, "qos/%s/%s", qos->name, name),
				  GPUQ_R_LIMIT_USER, qos->max_running.user, qos->max_gpus.user);
	}
	if (user)
		add_jobs_and_gpus(x, user, NULL, gpuq_arena_printf(mem, "user/%s", user->name),
				  GPUQ_R_LIMIT_USER, user->max_running, user->max_gpus);
	for (size_t i = 0; user && i < user->groups.n; i++) {
		const struct site_group *g = site_group_find(site, user->groups.items[i]);

		if (g)
			add_jobs_and_gpus(x, g, NULL, gpuq_arena_printf(mem, "group/%s", g->name),
					  GPUQ_R_LIMIT_USER, g->max_running, g->max_gpus);
	}
}

void snapshot_caps_fill(struct snap_caps *c, const struct queue *q, const char *user,
			const char *qos, struct snap_job *out)
{
	const struct site_qos *how = site_qos_find(c->m->site, qos);
	const char *known_user = model_interned(c->m, user), *known_qos = model_interned(c->m, qos);
	struct known *k;
	bool fresh;

	if (how)
		out->charge_milli = how->usage_factor_milli;
	if (!c->any)
		return;
	/* Jobs of one user, queue and qos count against the same caps. */
	user = known_user ? known_user : user;
	qos = known_qos ? known_qos : qos;
	k = look(c, &c->sets, q, user, qos, &fresh);
	if (k && fresh) {
		struct adding x = { .c = c };

		memset(x.set.caps, 0xff, sizeof(x.set.caps));
		add_all(&x, q, user, qos);
		k->demoted = x.demoted;
		if (x.n)
			k->ix = snapshot_add_capset(c->s, &x.set);
	}
	if (!k)
		return;
	out->capset = k->ix;
	if (k->demoted)
		out->boost -= OUT_OF_BUDGET;
}
