#include "gpuqd/flow/admit/apply_reserve.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/flow/admit/access.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/view/cards.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define OCCURRENCES_MAX 366 /* of a repetition, examined */
#define HOUR_US (3600 * GPUQ_US_PER_S)

struct reserving {
	const struct model *m;
	const struct site *old, *new_;
	const char *who;
	int64_t now_us; /* wall time */
};

static const struct site_reservation *find(const struct site *s, const char *name)
{
	site_each(site_reservation, s->reservations, r)
		if (strcmp(r->name, name) == 0)
			return r;
	return NULL;
}

static bool is_on(const struct site_reservation *r, const struct node *n)
{
	for (size_t i = 0; i < r->nodes.n; i++)
		if (strcmp(r->nodes.items[i], n->name) == 0)
			return true;
	return r->nodes.n == 0 && r->pool && strcmp(r->pool, n->pool) == 0;
}

/* Return the devices that it holds: of nodes that are there, cards that are cut into instances as well; of a pool that
 * can grow those that may come. */
static int64_t milli_of(const struct reserving *x, const struct site_reservation *r)
{
	const struct site_pool *p =
		r->pool && r->nodes.n == 0 ? site_pool_growing(x->new_, r->pool) : NULL;
	int64_t milli = 0, left = p ? p->provisioning->max_nodes : 0;

	if (r->gpus_milli > 0)
		return r->gpus_milli;
	node_each(x->m, n)
		if (is_on(r, n) && !n->gone) {
			milli += (int64_t)n->n_devices * 1000 + cards_of(n).total_milli;
			left--;
		}
	return milli + (left > 0 ? left * p->provisioning->machine->gpus * 1000 : 0);
}

/* True if it is for jobs alone: neither maintenance nor nodes of a cloud. */
static bool is_plain(const struct site_reservation *r)
{
	return !r->external && !site_reservation_has(r, "maintenance");
}

/* True if it is the user's own: the right to reserve is for oneself. */
static bool is_theirs(const struct reserving *x, const struct site_reservation *r)
{
	const struct site_user *u = site_user_find(x->old, x->who);

	return u && u->reserve.may && is_plain(r) && r->users.n == 1 &&
	       strcmp(r->users.items[0], x->who) == 0;
}

static bool is_managed(const struct reserving *x, const struct site_reservation *r)
{
	const struct site_queue *q = r->queue ? site_queue_find(x->old, r->queue) : NULL;

	return q && is_plain(r) && access_realm(x->old, q, x->who);
}

/* ---- a user's limits ---- */

/* Return the device-us that are left of it, up to GPUQ_UNLIMITED. */
static int64_t left_us(const struct reserving *x, const struct site_reservation *r)
{
	const struct recur when = site_reservation_when(r);
	const int64_t milli = milli_of(x, r);
	int64_t t = x->now_us, sum = 0;

	for (int i = 0; i < OCCURRENCES_MAX; i++) {
		const int64_t start = recur_at(&when, t);
		const int64_t end = amount_sum(start, r->duration_us);

		if (start == GPUQ_UNLIMITED)
			return sum;
		sum = amount_sum(sum, amount_times((end - (start > t ? start : t)) / 1000, milli));
		t = end;
	}
	return GPUQ_UNLIMITED;
}

static int64_t last_start(const struct site_reservation *r, int64_t now_us)
{
	const struct recur when = site_reservation_when(r);
	int64_t t = now_us, last = r->start_us;

	for (int i = 0; i < OCCURRENCES_MAX; i++) {
		const int64_t start = recur_at(&when, t);

		if (start == GPUQ_UNLIMITED)
			return last;
		last = start;
		t = amount_sum(start, r->duration_us);
	}
	return GPUQ_UNLIMITED;
}

static int check_user(const struct reserving *x, const struct site_reservation *r,
		      struct gpuq_err *err)
{
	const struct site_reserve *may = &site_user_find(x->old, x->who)->reserve;
	char ahead[32];
	int64_t sum_us = 0;

	gpuq_duration_print(may->ahead_us, ahead, sizeof(ahead));
	if (may->ahead_us != GPUQ_UNLIMITED &&
	    last_start(r, x->now_us) > amount_sum(x->now_us, may->ahead_us))
		return gpuq_fail(err, GPUQ_EPERM,
				 "reservation %s: %s may reserve at most %s ahead, which holds for "
				 "each repetition: set an earlier start, or until",
				 r->name, x->who, ahead);
	site_each(site_reservation, x->new_->reservations, o)
		if (is_theirs(x, o))
			sum_us = amount_sum(sum_us, left_us(x, o));
	if (may->gpu_hours != GPUQ_UNLIMITED && sum_us > amount_times(may->gpu_hours, HOUR_US))
		return gpuq_fail(err, GPUQ_EPERM,
				 "reservation %s: %s would hold %" PRId64
				 " GPU-hours, the maximum is %" PRId64,
				 r->name, x->who, (sum_us + HOUR_US - 1) / HOUR_US, may->gpu_hours);
	return 0;
}

/* ---- a manager's quota ---- */

/* True if the queue is top or below it. */
static bool is_in(const struct site *s, const char *queue, const struct site_queue *top)
{
	const struct site_queue *q = queue ? site_queue_find(s, queue) : NULL;

	for (size_t hops = 0; q && hops <= s->queues.n; hops++) {
		if (strcmp(q->name, top->name) == 0)
			return true;
		q = q->parent ? site_queue_find(s, q->parent) : NULL;
	}
	return false;
}

static bool overlaps(const struct site_reservation *o, int64_t start, int64_t end)
{
	const struct recur when = site_reservation_when(o);

	return recur_at(&when, start) < end;
}

/* The quota of the flavor; of all flavors together where it names none. */
static int64_t quota_of(const struct site_queue *q, const char *flavor)
{
	int64_t sum = 0;

	if (!q->quota.given)
		return 0;
	if (flavor || !q->quota.per_flavor)
		return site_amount_of(&q->quota, flavor ? flavor : "", 0);
	for (size_t i = 0; i < q->quota.n; i++)
		sum = amount_sum(sum, q->quota.amounts[i]);
	return sum;
}

/* Check that what the manager's queues hold at one time is within the quota of the topmost of
 * them. */
static int check_manager(const struct reserving *x, const struct site_reservation *r,
			 struct gpuq_err *err)
{
	const struct site_queue *q = site_queue_find(x->old, r->queue);
	const struct site_queue *top = access_realm(x->old, q, x->who);
	const int64_t quota = quota_of(top, r->flavor);
	const struct recur when = site_reservation_when(r);
	char have[32], need[32];
	int64_t t = x->now_us;

	for (int i = 0; i < OCCURRENCES_MAX; i++) {
		const int64_t start = recur_at(&when, t), end = amount_sum(start, r->duration_us);
		int64_t sum = 0;

		if (start == GPUQ_UNLIMITED)
			break;
		site_each(site_reservation, x->new_->reservations, o)
			if (is_in(x->new_, o->queue, top) && is_plain(o) &&
			    (!r->flavor || !o->flavor || strcmp(r->flavor, o->flavor) == 0) &&
			    overlaps(o, start, end))
				sum = amount_sum(sum, milli_of(x, o));
		if (sum > quota) {
			gpuq_milli_print(quota, have, sizeof(have));
			gpuq_milli_print(sum, need, sizeof(need));
			return gpuq_fail(err, GPUQ_EPERM,
					 "reservation %s: with it the reservations of queue %s "
					 "would hold %s devices at one time, its quota is %s",
					 r->name, top->name, need, have);
		}
		t = end;
	}
	return 0;
}

int apply_reserve_allowed(const struct model *m, const struct site *new_,
			  const struct gpuq_val *change, const char *who, int64_t now_us,
			  struct gpuq_err *err)
{
	const struct reserving x = { m, m->site, new_, who, now_us };
	const char *name = strchr(gpuq_get_str(change, "object", "/"), '/') + 1;
	const struct site_reservation *was = find(m->site, name), *is = find(new_, name);
	const bool managed = (!was || is_managed(&x, was)) && (!is || is_managed(&x, is));
	/* With a queue it would count in what the managers of that have reserved. */
	const bool theirs =
		(!was || is_theirs(&x, was)) && (!is || (is_theirs(&x, is) && !is->queue));

	if (!managed && !theirs)
		return gpuq_fail(
			err, GPUQ_EPERM,
			"reservation %s: only an operator may do that; managers may reserve for "
			"queues that they manage, users with reserve in the site for "
			"themselves alone (--users %s, without --queue)",
			name, who);
	if (!is)
		return 0;
	return managed ? check_manager(&x, is, err) : check_user(&x, is, err);
}
