#include "gpuqd/core/model_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/civil.h"

/* Two books. Days: what pods that ended were charged, for reports and budgets by period.
 * Accounts: what counts for fair shares, which fades; they know what runs, too. */

#define FORGOTTEN ((usage_q32)1 << 22) /* a thousandth of a GPU-second */

struct usage *usage_get(struct model *m, const unsigned char *bytes, size_t n)
{
	struct usage *u = NULL;

	HASH_FIND(hh, m->usages, bytes, n, u);
	if (!u) {
		u = calloc(1, sizeof(*u) + n);
		if (!u)
			abort();
		u->len = (uint16_t)n;
		memcpy(u->bytes, bytes, n);
		HASH_ADD_KEYPTR(hh, m->usages, u->bytes, n, u);
	}
	return u;
}

/* The i-th of the strings that a key joins; "" when there is none. */
static void key_part(const unsigned char *bytes, size_t n, int i, char *out, size_t room)
{
	size_t from = 0, len = 0;

	for (; i > 0 && from < n; from++)
		i -= bytes[from] == '\0';
	while (i == 0 && from + len < n && bytes[from + len] && len + 1 < room)
		len++;
	if (len)
		memcpy(out, bytes + from, len);
	out[len] = '\0';
}

static struct queue *account_queue(const struct model *m, const struct account *a)
{
	char name[CHANGE_KEY_BYTES_MAX];

	key_part(a->bytes, a->len, 0, name, sizeof(name));
	return queue_find(m, name);
}

struct account *account_get(struct model *m, const unsigned char *bytes, size_t n)
{
	struct account *a = NULL;

	HASH_FIND(hh, m->accounts, bytes, n, a);
	if (!a) {
		a = calloc(1, sizeof(*a) + n);
		if (!a)
			abort();
		a->len = (uint16_t)n;
		memcpy(a->bytes, bytes, n);
		a->queue = account_queue(m, a);
		HASH_ADD_KEYPTR(hh, m->accounts, a->bytes, n, a);
	}
	return a;
}

void accounts_collect(struct model *m, struct batch *out)
{
	struct account *a;

	while ((a = m->dirty_accounts) != NULL) {
		m->dirty_accounts = a->dirty_next;
		a->dirty = false;
		record_account(a, out);
	}
}

static void account_drop(struct model *m, struct account *a)
{
	struct account **at = &m->dirty_accounts;

	while (a->dirty && *at != a)
		at = &(*at)->dirty_next;
	if (a->dirty)
		*at = a->dirty_next;
	batch_put(&m->direct, TABLE_ACCOUNT, a->bytes, a->len, NULL, 0);
	HASH_DEL(m->accounts, a);
	free(a);
}

static int64_t budget_half_life(const struct queue *q)
{
	return q->site->budget ? q->site->budget->half_life_us : 0;
}

/* Of a user, not of a budget. */
static bool account_is_users(const struct account *a)
{
	char user[CHANGE_KEY_BYTES_MAX];

	key_part(a->bytes, a->len, 1, user, sizeof(user));
	return *user != '\0';
}

void accounts_expire(struct model *m, int64_t now_us)
{
	struct account *a, *at;

	HASH_ITER (hh, m->accounts, a, at) {
		const int64_t half_life = a->queue && !account_is_users(a)
						  ? budget_half_life(a->queue)
						  : m->policy.usage_half_life_us;

		if (a->a.rate_milli == 0 && usage_at(&a->a, now_us, half_life) < FORGOTTEN)
			account_drop(m, a);
	}
}

void accounts_free(struct model *m)
{
	struct account *a, *at;

	HASH_ITER (hh, m->accounts, a, at) {
		HASH_DEL(m->accounts, a);
		free(a);
	}
}

static int64_t rate_of(const struct model *m, const char *flavor)
{
	site_each(site_flavor, m->site->flavors, f)
	{
		if (strcmp(f->name, flavor) == 0)
			return f->rate_milli;
	}
	return 1000;
}

/* ---- accounts ---- */

enum turn { BEGINS, ENDS };

static void change_account(struct model *m, const unsigned char *key, size_t n, enum turn what,
			   int64_t milli, int64_t at_us, int64_t now_us, int64_t half_life_us)
{
	struct account *a = account_get(m, key, n);

	if (!a->dirty) {
		a->dirty = true;
		a->dirty_next = m->dirty_accounts;
		m->dirty_accounts = a;
	}
	if (what == BEGINS) {
		usage_begin(&a->a, milli, at_us, now_us, half_life_us);
		return;
	}
	/* More than was begun is not given back: it began before there were accounts. */
	usage_end(&a->a, a->a.rate_milli < milli ? a->a.rate_milli : milli, at_us, now_us,
		  half_life_us);
}

static void change_budget(struct model *m, const struct queue *q, const struct pod *p,
			  enum turn what, int64_t at_us, int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	change_account(m, key, key_strs(key, q->name, "", p->job->flavor, "", NULL), what,
		       p->gpus_milli, at_us, now_us, budget_half_life(q));
}

static void change_accounts(struct model *m, const struct pod *p, enum turn what, int64_t at_us,
			    int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const struct job *j = p->job;

	if (p->gpus_milli == 0)
		return;
	change_account(m, key, key_strs(key, j->queue->name, j->user, j->flavor, j->qos, NULL),
		       what, p->gpus_milli, at_us, now_us, m->policy.usage_half_life_us);
	for (const struct queue *q = j->queue; q; q = q->parent)
		if (budget_half_life(q))
			change_budget(m, q, p, what, at_us, now_us);
}

/* Has the queue's budget accounts? */
static bool has_accounts(const struct model *m, const struct queue *q)
{
	for (const struct account *a = m->accounts; a; a = a->hh.next)
		if (a->queue == q && !account_is_users(a))
			return true;
	return false;
}

void usage_site_changed(struct model *m, int64_t now_us)
{
	struct account *a, *at;
	struct pod *p;

	HASH_ITER (hh, m->accounts, a, at) {
		a->queue = account_queue(m, a);
		if (!account_is_users(a) && (!a->queue || !budget_half_life(a->queue)))
			account_drop(m, a);
	}
	for (uint32_t i = 0; i < m->n_queues; i++) {
		const struct queue *top = m->queues[i], *q;

		if (!budget_half_life(top) || has_accounts(m, top))
			continue;
		/* A new budget counts from now on. */
		job_each(m, j)
		{
			for (q = j->queue; q && q != top;)
				q = q->parent;
			DL_FOREACH2(j->pods, p, job_next)
			if (q && pod_takes(p) && p->start_us && p->gpus_milli)
				change_budget(m, top, p, BEGINS, now_us, now_us);
		}
	}
}

void model_each_account(const struct model *m, int64_t now_us, account_fn fn, void *arg)
{
	for (const struct account *a = m->accounts; a; a = a->hh.next) {
		char user[CHANGE_KEY_BYTES_MAX], flavor[CHANGE_KEY_BYTES_MAX];
		char qos[CHANGE_KEY_BYTES_MAX];
		const struct site_qos *how;
		usage_q32 used;

		if (!a->queue)
			continue;
		key_part(a->bytes, a->len, 1, user, sizeof(user));
		key_part(a->bytes, a->len, 2, flavor, sizeof(flavor));
		key_part(a->bytes, a->len, 3, qos, sizeof(qos));
		how = *user ? site_qos_find(m->site, qos) : NULL;
		used = usage_at(&a->a, now_us,
				*user ? m->policy.usage_half_life_us : budget_half_life(a->queue));
		used = usage_scaled(used, rate_of(m, flavor));
		if (!fn(arg, a->queue, user,
			usage_scaled(used, how ? how->usage_factor_milli : 1000)))
			return;
	}
}

/* ---- days ---- */

int64_t usage_gpu_us(int64_t gpus_milli, int64_t from_us, int64_t to_us)
{
	const int64_t dt = to_us > from_us ? to_us - from_us : 0;

	return dt / 1000 * gpus_milli + dt % 1000 * gpus_milli / 1000;
}

static int64_t at_rate(const struct model *m, const char *flavor, int64_t gpu_us)
{
	const int64_t rate = rate_of(m, flavor);

	return rate == 1000 ? gpu_us : gpu_us / 1000 * rate + gpu_us % 1000 * rate / 1000;
}

static void charge_day(struct model *m, const struct job *j, int64_t day, int64_t gpu_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct usage *u;
	char text[24];

	if (gpu_us <= 0)
		return;
	snprintf(text, sizeof(text), "%08lld", (long long)civil_number(day));
	u = usage_get(m, key, key_strs(key, j->queue->name, j->user, j->flavor, text, NULL));
	u->gpu_us += gpu_us;
	u->dirty = m->usages_dirty = true;
	for (struct queue *q = j->queue; q; q = q->parent)
		if (q->spent_known && day >= q->spent_from)
			q->spent_us += at_rate(m, j->flavor, gpu_us);
}

/* Every day is charged its own part. */
static void charge_days(struct model *m, const struct pod *p, int64_t from_us, int64_t to_us)
{
	const int64_t total = usage_gpu_us(p->gpus_milli, from_us, to_us);
	int64_t charged = 0, day = civil_day(from_us);

	for (; day < civil_day(to_us); day++) {
		const int64_t until =
			usage_gpu_us(p->gpus_milli, from_us, (day + 1) * CIVIL_DAY_US);

		charge_day(m, p->job, day, until - charged);
		charged = until;
	}
	charge_day(m, p->job, day, total - charged);
}

/* ---- pods ---- */

void usage_pod_started(struct model *m, const struct pod *p, int64_t now_us)
{
	change_accounts(m, p, BEGINS, p->start_us < now_us ? p->start_us : now_us, now_us);
}

void usage_pod_ended(struct model *m, const struct pod *p, int64_t counted_us, int64_t end_us,
		     int64_t now_us)
{
	if (!p->start_us)
		return; /* it never ran */
	if (counted_us && counted_us != p->start_us)
		change_accounts(m, p, ENDS, counted_us, now_us);
	if (counted_us != p->start_us)
		usage_pod_started(m, p, now_us);
	change_accounts(m, p, ENDS, end_us < now_us ? end_us : now_us, now_us);
	if (end_us > p->start_us)
		charge_days(m, p, p->start_us, end_us);
}

/* ---- budgets ---- */

static bool below(const struct queue *q, const struct queue *top)
{
	while (q && q != top)
		q = q->parent;
	return q != NULL;
}

/* Count anew what pods that ended were charged since a day. */
static void count_spent(const struct model *m, struct queue *top, int64_t from)
{
	const int64_t number = from == INT64_MIN ? 0 : civil_number(from);

	top->spent_us = 0;
	for (const struct usage *u = m->usages; u; u = u->hh.next) {
		char part[CHANGE_KEY_BYTES_MAX];
		const struct queue *q;

		key_part(u->bytes, u->len, 3, part, sizeof(part));
		if (strtoll(part, NULL, 10) < number)
			continue;
		key_part(u->bytes, u->len, 0, part, sizeof(part));
		q = queue_find(m, part);
		if (!q || !below(q, top))
			continue;
		key_part(u->bytes, u->len, 2, part, sizeof(part));
		top->spent_us += at_rate(m, part, u->gpu_us);
	}
	top->spent_from = from;
	top->spent_known = true;
}

/* What is asked of every queue; by ix. */
struct spending {
	const struct model *m;
	int64_t now_us, *used_ms, *reset_us;
	int64_t *from_us; /* what runs counts from then on; INT64_MAX = it does not */
};

static bool add_fading(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	struct spending *s = arg;

	if (!*user)
		s->used_ms[q->ix] += (int64_t)((used >> 16) * 1000 >> 16);
	return true;
}

/* What ended, and since when what runs counts. True: it fades. */
static bool look_up(struct spending *s, struct queue *q)
{
	int64_t first, next;

	s->used_ms[q->ix] = s->reset_us[q->ix] = 0;
	s->from_us[q->ix] = INT64_MAX;
	if (budget_half_life(q))
		return true;
	civil_period(q->site->budget ? q->site->budget->period : 0, civil_day(s->now_us), &first,
		     &next);
	if (next != INT64_MAX)
		s->reset_us[q->ix] = next * CIVIL_DAY_US;
	if (!q->spent_known || q->spent_from != first)
		count_spent(s->m, q, first);
	s->used_ms[q->ix] = q->spent_us / 1000;
	s->from_us[q->ix] = first == INT64_MIN ? 0 : first * CIVIL_DAY_US;
	return false;
}

static void add_running(struct spending *s, const struct pod *p)
{
	if (!pod_takes(p) || !p->start_us)
		return;
	for (const struct queue *q = p->job->queue; q; q = q->parent) {
		const int64_t from = s->from_us[q->ix];
		const int64_t us = usage_gpu_us(p->gpus_milli,
						p->start_us > from ? p->start_us : from, s->now_us);

		s->used_ms[q->ix] += at_rate(s->m, p->job->flavor, us) / 1000;
	}
}

void model_spending(const struct model *m, int64_t now_us, int64_t *used_ms, int64_t *reset_us)
{
	struct spending s = { m, now_us, used_ms, reset_us, NULL };
	const struct pod *p;
	bool fades = false;

	s.from_us = calloc(m->n_queues ? m->n_queues : 1, sizeof(*s.from_us));
	if (!s.from_us)
		abort();
	for (uint32_t i = 0; i < m->n_queues; i++)
		fades |= look_up(&s, m->queues[i]);
	if (fades)
		model_each_account(m, now_us, add_fading, &s);
	node_each(m, n)
	{
		DL_FOREACH2(n->pods, p, node_next)
		add_running(&s, p);
	}
	free(s.from_us);
}
