#include "gpuqd/state/model_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/civil.h"
#include "libgpuq/units.h"

/* One of two books (the other: accounting.c). Accounts: usage for fair shares and for budgets that
 * decay; they include running jobs. */

#define FORGOTTEN ((usage_q32)1 << 22) /* a thousandth of a GPU-second */

void account_key_part(const unsigned char *bytes, size_t n, int i, char *out, size_t room)
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

/* Return the queue of an account; NULL if it was deleted. */
static struct queue *account_queue(const struct model *m, const struct account *a)
{
	char name[CHANGE_KEY_BYTES_MAX];

	account_key_part(a->bytes, a->len, 0, name, sizeof(name));
	return model_find_queue(m, name);
}

/* Note that the account is to be stored, once. */
static void account_dirty(struct model *m, struct account *a)
{
	if (a->dirty)
		return;
	a->dirty = true;
	a->dirty_next = m->dirty_accounts;
	m->dirty_accounts = a;
}

struct account *account_get(struct model *m, const unsigned char *bytes, size_t n)
{
	struct account *a = NULL;

	HASH_FIND(hh, m->accounts, bytes, n, a);
	if (!a) {
		a = calloc(1, sizeof(*a) + n + 1); /* the last part ends in NUL, too */
		if (!a)
			abort();
		a->len = (uint16_t)n;
		memcpy(a->bytes, bytes, n);
		a->queue = account_queue(m, a);
		HASH_ADD_KEYPTR(hh, m->accounts, a->bytes, n, a);
	}
	return a;
}

/* Delete an account, from the list of those to be stored as well. */
static void account_drop(struct model *m, struct account *a)
{
	struct account **at = &m->dirty_accounts;

	while (a->dirty && *at != a)
		at = &(*at)->dirty_next;
	if (a->dirty)
		*at = a->dirty_next;
	change_batch_put(&m->direct, TABLE_ACCOUNT, a->bytes, a->len, NULL, 0);
	HASH_DEL(m->accounts, a);
	free(a);
}

/* True for a user's account, false for a budget's. */
static bool account_is_users(const struct account *a)
{
	char user[CHANGE_KEY_BYTES_MAX];

	account_key_part(a->bytes, a->len, 1, user, sizeof(user));
	return *user != '\0';
}

/* True for one user's part of a budget. */
static bool account_is_purse(const struct account *a)
{
	char owner[CHANGE_KEY_BYTES_MAX];

	account_key_part(a->bytes, a->len, 4, owner, sizeof(owner));
	return *owner != '\0';
}

void account_expire_all(struct model *m, int64_t now_us)
{
	struct account *a, *at;

	HASH_ITER(hh, m->accounts, a, at) {
		const int64_t half_life = a->queue && !account_is_users(a)
						  ? budget_half_life(a->queue)
						  : m->policy.usage_half_life_us;

		/* Nothing runs on it, and its sum has decayed to nothing. */
		if (a->a.rate_milli == 0 && usage_at(&a->a, now_us, half_life) < FORGOTTEN)
			account_drop(m, a);
	}
}

void account_free_all(struct model *m)
{
	struct account *a, *at;

	HASH_ITER(hh, m->accounts, a, at) {
		HASH_DEL(m->accounts, a);
		free(a);
	}
}

int64_t account_rate_of(const struct model *m, const char *flavor)
{
	site_each(site_flavor, m->site->flavors, f) {
		if (strcmp(f->name, flavor) == 0)
			return f->rate_milli;
	}
	return 1000;
}

/* ---- accounts ---- */

enum turn { BEGINS, ENDS };

/* Begin or end a use of devices on the account with this key, which is made when it is not there.
 */
static void change_account(struct model *m, const unsigned char *key, size_t n, enum turn what,
			   int64_t milli, int64_t at_us, int64_t now_us, int64_t half_life_us)
{
	struct account *a = account_get(m, key, n);

	account_dirty(m, a);
	if (what == BEGINS) {
		usage_begin(&a->a, milli, at_us, now_us, half_life_us);
		return;
	}
	/* No more is released than was begun: the rest began before there were accounts. */
	usage_end(&a->a, a->a.rate_milli < milli ? a->a.rate_milli : milli, at_us, now_us,
		  half_life_us);
}

/* Write the key of the user's own part of such a budget. */
static size_t purse_key(unsigned char *key, const struct queue *q, const struct job *j)
{
	return change_key_strs(key, q->name, "", j->life->flavor, j->qos, j->user, NULL);
}

/* True if the queue has a decaying budget that limits each user's part. */
static bool has_purses(const struct queue *q)
{
	return budget_half_life(q) && q->budget->user_gpu_minutes != GPUQ_UNLIMITED;
}

/* Begin or end the use of a pod's devices in the decaying budget of a queue, and in its user's
 * part. */
static void change_budget(struct model *m, const struct queue *q, const struct pod *p,
			  enum turn what, int64_t at_us, int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	size_t n = purse_key(key, q, p->job);
	struct account *a = NULL;

	if (has_purses(q))
		change_account(m, key, n, what, p->gpus_milli, at_us, now_us, budget_half_life(q));
	n = change_key_strs(key, q->name, "", p->job->life->flavor, p->job->qos, NULL);

	HASH_FIND(hh, m->accounts, key, n, a);
	/* It began when accounts of budgets did not distinguish qos. */
	if (what == ENDS && (!a || a->a.rate_milli < p->gpus_milli))
		n = change_key_strs(key, q->name, "", p->job->life->flavor, "", NULL);
	change_account(m, key, n, what, p->gpus_milli, at_us, now_us, budget_half_life(q));
}

/* Begin or end the use of a pod's devices in its user's account, and in all decaying budgets above
 * it. */
static void change_accounts(struct model *m, const struct pod *p, enum turn what, int64_t at_us,
			    int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const struct job *j = p->job;

	if (p->gpus_milli == 0)
		return;
	change_account(m, key,
		       change_key_strs(key, j->queue->name, j->user, j->life->flavor, j->qos, NULL),
		       what, p->gpus_milli, at_us, now_us, m->policy.usage_half_life_us);
	for (const struct queue *q = j->queue; q; q = q->parent)
		if (budget_half_life(q))
			change_budget(m, q, p, what, at_us, now_us);
}

/* Begin or end the use of running pods in the decaying budgets above them. */
static void change_running(struct model *m, enum turn what, int64_t now_us)
{
	const struct pod *p;

	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next) {
			if (!model_pod_takes(p) || !p->start_us || p->gpus_milli == 0)
				continue;
			for (const struct queue *q = p->job->queue; q; q = q->parent)
				if (budget_half_life(q))
					change_budget(m, q, p, what, now_us, now_us);
		}
	}
}

/* Running use is ended under the old budgets and begun under the new ones, so that no change of the
 * site charges a budget for another's time. */
void account_site_changing(struct model *m, int64_t now_us)
{
	change_running(m, ENDS, now_us);
}

void account_site_changed(struct model *m, int64_t now_us)
{
	struct account *a, *at;

	HASH_ITER(hh, m->accounts, a, at) {
		a->queue = account_queue(m, a);
		/* A budget that the site no longer has leaves no account. */
		if (!account_is_users(a) && (!a->queue || !budget_half_life(a->queue) ||
					     (account_is_purse(a) && !has_purses(a->queue))))
			account_drop(m, a);
	}
	/* A new budget counts from now on. */
	change_running(m, BEGINS, now_us);
}

void account_refund(struct model *m, const struct pod *p, int64_t from_us, int64_t to_us,
		    int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	for (const struct queue *q = p->job->queue; q; q = q->parent) {
		struct account *a;

		if (!budget_half_life(q))
			continue;
		a = account_get(
			m, key,
			change_key_strs(key, q->name, "", p->job->life->flavor, p->job->qos, NULL));
		usage_give_back(&a->a, p->gpus_milli, from_us, to_us, now_us, budget_half_life(q));
		account_dirty(m, a);
		if (!has_purses(q))
			continue;
		a = account_get(m, key, purse_key(key, q, p->job));
		usage_give_back(&a->a, p->gpus_milli, from_us, to_us, now_us, budget_half_life(q));
		account_dirty(m, a);
	}
}

void account_set(struct model *m, const char *queue, const char *user, usage_q32 used,
		 int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct account *a = account_get(m, key, change_key_strs(key, queue, user, "", "", NULL));

	a->a = (struct usage_account){ .sum = used, .at_us = now_us };
	account_dirty(m, a);
}

/* ---- grants ---- */

/* Return the account of a queue's grants; NULL if there were none. */
static struct account *grant_of(const struct model *m, const struct queue *q)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const size_t n = change_key_strs(key, q->name, "", "", "", NULL);
	struct account *a = NULL;

	HASH_FIND(hh, m->accounts, key, n, a);
	return a;
}

int64_t account_granted_ms(const struct model *m, const struct queue *q, int64_t now_us)
{
	const struct account *a = grant_of(m, q);
	const usage_q32 left = a ? usage_at(&a->a, now_us, budget_half_life(q)) : 0;

	return (int64_t)((left >> 16) * 1000 >> 16);
}

void account_grant(struct model *m, const struct queue *q, int64_t gpu_us, int64_t now_us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct account *a = account_get(m, key, change_key_strs(key, q->name, "", "", "", NULL));
	const usage_q32 amount = usage_of(1000, gpu_us < 0 ? -gpu_us : gpu_us, 0);

	/* A grant decays like the use that it pays for. */
	a->a.sum = usage_at(&a->a, now_us, budget_half_life(q));
	a->a.at_us = now_us;
	a->a.sum = gpu_us >= 0 ? a->a.sum + amount : a->a.sum > amount ? a->a.sum - amount : 0;
	account_dirty(m, a);
}

/* Return the part behind that one; the end, which is a NUL, when there is none. */
static const char *next_part(const struct account *a, const char *part)
{
	const char *end = (const char *)a->bytes + a->len, *next = part + strlen(part) + 1;

	return next < end ? next : end;
}

void account_each(const struct model *m, int64_t now_us, account_fn fn, void *arg)
{
	for (const struct account *a = m->accounts; a; a = a->hh.next) {
		const char *user = next_part(a, (const char *)a->bytes);
		const char *flavor = next_part(a, user), *qos = next_part(a, flavor);
		const struct site_qos *how;
		usage_q32 used;

		if (!a->queue)
			continue;
		if ((!*user && !*flavor) || *next_part(a, qos))
			continue; /* a grant, or a purse; counted with the budget */
		how = site_qos_find(m->site, qos);
		used = usage_at(&a->a, now_us,
				*user ? m->policy.usage_half_life_us : budget_half_life(a->queue));
		used = usage_scaled(used, account_rate_of(m, flavor));
		if (!fn(arg, a->queue, user,
			usage_scaled(used, how ? how->usage_factor_milli : 1000)))
			return;
	}
}

int64_t account_purse_ms(const struct model *m, const struct queue *q, const char *user,
			 int64_t now_us)
{
	usage_q32 sum = 0;

	for (const struct account *a = m->accounts; a; a = a->hh.next) {
		char owner[CHANGE_KEY_BYTES_MAX], flavor[CHANGE_KEY_BYTES_MAX];
		char qos[CHANGE_KEY_BYTES_MAX];
		const struct site_qos *how;

		account_key_part(a->bytes, a->len, 4, owner, sizeof(owner));
		if (a->queue != q || strcmp(owner, user) != 0)
			continue;
		account_key_part(a->bytes, a->len, 2, flavor, sizeof(flavor));
		account_key_part(a->bytes, a->len, 3, qos, sizeof(qos));
		how = site_qos_find(m->site, qos);
		sum += usage_scaled(usage_scaled(usage_at(&a->a, now_us, budget_half_life(q)),
						 account_rate_of(m, flavor)),
				    how ? how->usage_factor_milli : 1000);
	}
	return (int64_t)((sum >> 16) * 1000 >> 16);
}

/* ---- pods ---- */

void account_pod_started(struct model *m, const struct pod *p, int64_t now_us)
{
	const int64_t from = p->start_us > p->charged_us ? p->start_us : p->charged_us;

	change_accounts(m, p, BEGINS, from < now_us ? from : now_us, now_us);
}

void account_pod_more(struct model *m, const struct pod *p, int64_t milli, int64_t now_us)
{
	struct pod more = *p;

	more.gpus_milli = milli;
	change_accounts(m, &more, BEGINS, now_us, now_us);
}

void account_pod_ended(struct model *m, const struct pod *p, int64_t counted_us, int64_t end_us,
		       int64_t now_us)
{
	if (!p->start_us)
		return; /* it never ran */
	/* Devices that it took over do not count from its start. */
	if (counted_us && p->charged_us)
		counted_us = p->start_us;
	/* Its start became known late, or was corrected: what was counted from the wrong instant is
	 * replaced. */
	if (counted_us && counted_us != p->start_us)
		change_accounts(m, p, ENDS, counted_us, now_us);
	if (counted_us != p->start_us)
		account_pod_started(m, p, now_us);
	change_accounts(m, p, ENDS, end_us < now_us ? end_us : now_us, now_us);
}
