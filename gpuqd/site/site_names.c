/* References between the objects of a site. */
#include <string.h>

#include "gpuqd/site/site_merge.h"
#include "libgpuq/units.h"

#define NAMES_MAX 512
#define GROUPS_MAX 8
#define DAY_US (86400 * GPUQ_US_PER_S)

struct checking {
	struct gpuq_reader r; /* knows the place in the file */
	const struct site *s;
	const struct gpuq_val *v; /* the tree that was read, to blame an item of it */
};

/* Names of `always` (may be NULL) and of the list; the nearest among them is reported. */
static bool known(const struct gpuq_val *v, const char *list, const char *always, const char *name,
		  const char **near)
{
	const struct gpuq_val *members = gpuq_get(v, list);
	const char *names[NAMES_MAX + 1];
	size_t n = 0;

	if (always) {
		if (strcmp(name, always) == 0)
			return true;
		names[n++] = always;
	}
	for (uint32_t i = 0; members && i < members->n; i++) {
		const char *m = gpuq_get_str(members->items[i], "name", "");

		if (strcmp(m, name) == 0)
			return true;
		if (n < NAMES_MAX)
			names[n++] = m;
	}
	names[n] = NULL;
	*near = gpuq_nearest(name, names);
	return false;
}

/* Member i of a list has `name` under key (and sub, where that is a map): is it one of
 * `among`? */
static int check(struct checking *c, const char *list, size_t i, const char *key, const char *sub,
		 const char *name, const char *among, const char *what, const char *always)
{
	const struct gpuq_val *member = gpuq_get(c->v, list)->items[i];
	const struct gpuq_val *at = gpuq_get(member, key);
	const char *near = NULL;
	size_t mark;
	int rc;

	if (!name || known(c->v, among, always, name, &near))
		return 0;
	if (sub && gpuq_get(at, sub))
		at = gpuq_get(at, sub);
	for (uint32_t k = 0; at && at->type == GPUQ_LIST && k < at->n; k++)
		if (at->items[k]->type == GPUQ_STR && strcmp(at->items[k]->s, name) == 0)
			at = at->items[k];
	mark = gpuq_reader_enter(&c->r, list);
	gpuq_reader_enter_member(&c->r, gpuq_get(c->v, list), i);
	gpuq_reader_enter(&c->r, key);
	if (sub)
		gpuq_reader_enter(&c->r, sub);
	rc = gpuq_reader_fail(&c->r, at, GPUQ_EINVAL, "no %s is named %s%s%s%s", what, name,
			      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
	gpuq_reader_leave(&c->r, mark);
	return rc;
}

/* Check the flavors that an amount names. */
static int check_amount(struct checking *c, size_t i, const char *key, const struct site_amount *a)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < a->n; k++)
		rc = check(c, "queues", i, key, a->flavors[k], a->flavors[k], "flavors", "flavor",
			   "default");
	return rc;
}

/* Something about member i that only a second look tells. */
static int wrong(struct checking *c, const char *list, size_t i, const char *key, const char *what)
{
	const struct gpuq_val *member = gpuq_get(c->v, list)->items[i];
	const size_t mark = gpuq_reader_enter(&c->r, list);
	int rc;

	gpuq_reader_enter_member(&c->r, gpuq_get(c->v, list), i);
	gpuq_reader_enter(&c->r, key);
	rc = gpuq_reader_fail(&c->r, gpuq_get(member, key) ? gpuq_get(member, key) : member,
			      GPUQ_EINVAL, "%s", what);
	gpuq_reader_leave(&c->r, mark);
	return rc;
}

bool site_is_dns(const char *s, bool dots)
{
	const size_t most = dots ? 253 : 63, n = strlen(s);
	bool edge = true; /* a letter or digit must come */

	for (size_t i = 0; i < n; i++) {
		const bool plain = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');

		if (!plain && (edge || (s[i] != '-' && (s[i] != '.' || !dots || s[i - 1] == '-'))))
			return false;
		edge = s[i] == '.';
	}
	return n > 0 && n <= most && !edge && s[n - 1] != '-';
}

/* A name of a service account, in which * and ? stand for letters. */
static bool is_account(const char *s)
{
	const char *p = s;

	while (*p && strchr("abcdefghijklmnopqrstuvwxyz0123456789-.*?", *p))
		p++;
	return p > s && !*p;
}

/* Found out when the first pod is made, they would be a job's trouble. */
static int check_kube_names(struct checking *c, size_t i, const struct site_queue *q)
{
	const struct {
		const char *key, *name;
	} names[] = {
		{ "service_account", q->service_account },
		{ "priority_class", q->priority_class },
	};
	static const char of_dots[] = "expected a name as in Kubernetes: a-z, 0-9, and - "
				      "or . inside";

	if (q->namespace_ && !site_is_dns(q->namespace_, false))
		return wrong(c, "queues", i, "namespace",
			     "expected a namespace as in Kubernetes: a-z, 0-9, and - inside");
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (names[k].name && !site_is_dns(names[k].name, true))
			return wrong(c, "queues", i, names[k].key, of_dots);
	for (size_t k = 0; k < q->service_accounts.n; k++)
		if (!is_account(q->service_accounts.items[k]))
			return wrong(c, "queues", i, "service_accounts",
				     "expected any, or names as in Kubernetes, with * and ?");
	for (size_t k = 0; k < q->image_pull_secrets.n; k++)
		if (!site_is_dns(q->image_pull_secrets.items[k], true))
			return wrong(c, "queues", i, "image_pull_secrets", of_dots);
	return 0;
}

/* Removing the last name from a list must not open the queue to all users. */
static int check_users(struct checking *c, size_t i, const struct site_queue *q)
{
	static const char *const keys[] = { "users", "groups" };
	const struct gpuq_val *member = gpuq_get(c->v, "queues")->items[i];

	for (size_t k = 0; k < 2 && q->users.n + q->groups.n == 0; k++) {
		const struct gpuq_val *list = gpuq_get(member, keys[k]);

		if (list && list->type == GPUQ_LIST && list->n == 0)
			return wrong(
				c, "queues", i, keys[k],
				"expected at least one name, or null: then those of the parent "
				"queue may submit, or all users");
	}
	return 0;
}

/* It would pass for a time that is not given. */
static int check_times(struct checking *c, size_t i, const struct site_queue *q)
{
	const struct {
		const char *key;
		int64_t us;
	} times[] = {
		{ "default_time", q->default_time_us },
		{ "max_time", q->max_time_us },
		{ "idle", q->idle_us },
		{ "start_timeout", q->start_timeout_us },
	};
	const struct gpuq_val *member = gpuq_get(c->v, "queues")->items[i];

	for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
		const struct gpuq_val *at = gpuq_get(member, times[k].key);

		if (at && at->type != GPUQ_NULL && times[k].us == 0)
			return wrong(c, "queues", i, times[k].key,
				     "expected a time above 0; null removes the key");
	}
	return 0;
}

/* Check what a queue names, and what its keys mean together. */
static int check_queue(struct checking *c, size_t i, const struct site_queue *q)
{
	int rc = check_amount(c, i, "quota", &q->quota);

	if (rc == 0)
		rc = check_amount(c, i, "limit", &q->limit);
	if (rc == 0)
		rc = check_amount(c, i, "lend", &q->lend);
	if (rc == 0)
		rc = check_amount(c, i, "shared_quota", &q->shared_quota);
	for (size_t k = 0; rc == 0 && k < q->flavors.n; k++)
		rc = check(c, "queues", i, "flavors", NULL, q->flavors.items[k], "flavors",
			   "flavor", "default");
	if (rc == 0)
		rc = check_users(c, i, q);
	if (rc == 0)
		rc = check_times(c, i, q);
	return rc == 0 ? check_kube_names(c, i, q) : rc;
}

/* Check that the repetitions of a reservation do not overlap, and have one period. */
static int check_repeats(struct checking *c, size_t i, const struct site_reservation *r)
{
	static const char *const flags[] = { "daily", "weekly", "recurring" };
	static const int64_t days[] = { 1, 7, 7 };

	for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
		if (!site_reservation_has(r, flags[k]))
			continue;
		if (k > 0 && site_reservation_has(r, "daily"))
			return wrong(c, "reservations", i, "flags",
				     "expected either daily or weekly (also as recurring)");
		if (r->every_us <= 0 && r->duration_us > days[k] * DAY_US)
			return wrong(
				c, "reservations", i, "duration",
				days[k] == 1
					? "longer than a day, after which it repeats (daily)"
					: "longer than 7 days, after which it repeats (weekly)");
	}
	if (r->every_us > 0 && r->every_us < r->duration_us)
		return wrong(c, "reservations", i, "every", "expected no less than its duration");
	return 0;
}

/* Check the flags of a reservation, and what they need beside them. */
static int check_flags(struct checking *c, size_t i, const struct site_reservation *r)
{
	for (size_t k = 0; k < r->flags.n; k++) {
		const char *const *f = site_reservation_flags;

		while (*f && strcmp(*f, r->flags.items[k]) != 0)
			f++;
		if (!*f)
			return wrong(c, "reservations", i, "flags",
				     "expected maintenance, daily, weekly, recurring (weekly) or "
				     "release-unused");
	}
	if (r->until_us > 0 && site_reservation_every_us(r) == 0)
		return wrong(c, "reservations", i, "until",
			     "expected every, or the flag daily or weekly, beside it");
	if (r->except.n > 0 && site_reservation_every_us(r) == 0)
		return wrong(c, "reservations", i, "except",
			     "expected every, or the flag daily or weekly, beside it");
	if (r->until_us > 0 && r->until_us <= r->start_us)
		return wrong(c, "reservations", i, "until", "expected a time after its start");
	if (r->release_after_us > r->duration_us)
		return wrong(c, "reservations", i, "release_after",
			     "longer than its duration: nothing would be released");
	return 0;
}

/* Check that a reservation lasts, and reserves something in one way only. */
static int check_extent(struct checking *c, size_t i, const struct site_reservation *r)
{
	if (r->duration_us <= 0)
		return wrong(c, "reservations", i, "duration", "expected a duration above 0");
	if (r->gpus_milli > 0 && r->nodes.n > 0)
		return wrong(c, "reservations", i, "gpus", "expected either gpus or nodes");
	if (r->gpus_milli <= 0 && r->nodes.n == 0 && !r->pool)
		return wrong(c, "reservations", i, "gpus",
			     "expected gpus, nodes or a pool: else it holds nothing");
	return 0;
}

/* Check the names in a reservation, then its extent and its flags. */
static int check_reservation(struct checking *c, size_t i, const struct site_reservation *r)
{
	int rc = check(c, "reservations", i, "queue", NULL, r->queue, "queues", "queue", NULL);

	if (rc == 0)
		rc = check(c, "reservations", i, "flavor", NULL, r->flavor, "flavors", "flavor",
			   "default");
	if (rc == 0)
		rc = check(c, "reservations", i, "pool", NULL, r->pool, "pools", "pool", "default");
	if (rc == 0)
		rc = check_extent(c, i, r);
	if (rc == 0)
		rc = check_repeats(c, i, r);
	return rc == 0 ? check_flags(c, i, r) : rc;
}

/* More limits than one job can be held against (SNAP_CAPS_MAX). */
static int check_groups(struct checking *c, size_t i, const struct site_user *u)
{
	size_t n = 0;

	for (size_t k = 0; k < u->groups.n; k++) {
		const struct site_group *g = site_group_find(c->s, u->groups.items[k]);

		n += g && (g->max_running != GPUQ_UNLIMITED || g->max_gpus != GPUQ_UNLIMITED);
	}
	return n <= GROUPS_MAX ? 0
			       : wrong(c, "users", i, "groups",
				       "expected at most 8 groups that have limits");
}

int site_check_names(const struct site *s, const struct gpuq_val *v, const char *file,
		     struct gpuq_err *err)
{
	struct checking c = { .r = { .file = file, .by_name = true, .err = err }, .s = s, .v = v };
	const struct site_queue *q = s->queues.items;
	const struct site_reservation *r = s->reservations.items;
	const struct site_user *u = s->users.items;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->queues.n; i++)
		rc = check_queue(&c, i, &q[i]);
	for (size_t i = 0; rc == 0 && i < s->reservations.n; i++)
		rc = check_reservation(&c, i, &r[i]);
	for (size_t i = 0; rc == 0 && i < s->users.n; i++)
		rc = check(&c, "users", i, "default_queue", NULL, u[i].default_queue, "queues",
			   "queue", NULL);
	for (size_t i = 0; rc == 0 && i < s->users.n; i++)
		rc = check_groups(&c, i, &u[i]);
	return rc == 0 ? adoption_check_names(&c.r, v, s) : rc;
}
