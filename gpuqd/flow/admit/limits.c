#include "gpuqd/flow/admit/limits.h"
#include "gpuqd/snapshot/cost.h"

#include <inttypes.h>
#include <string.h>

#include "libgpuq/units.h"

/* The jobs that a limit counts: NULL = all users, any queue, any qos. */
struct scope {
	const char *what, *name; /* "queue", "vision" */
	const char *per; /* "", " per user" */
	const struct queue *queue;
	const char *user, *qos, *group;
};

static bool in_group(const struct model *m, const char *user, const char *group)
{
	const struct site_user *u = site_user_find(m->site, user);

	return u && gpuq_strlist_has(&u->groups, group);
}

static bool counts(const struct model *m, const struct scope *s, const struct job *j)
{
	const struct queue *q = j->queue;

	if ((s->user && strcmp(j->user, s->user) != 0) || (s->qos && strcmp(j->qos, s->qos) != 0) ||
	    (s->group && !in_group(m, j->user, s->group)))
		return false;
	while (q && s->queue && q != s->queue)
		q = q->parent;
	return q != NULL;
}

static int submitted(const struct draft *d, const struct scope *s, int64_t most,
		     struct gpuq_err *err)
{
	const int64_t n = d->spec.array.n_ranges ? d->spec.array.size : 1;
	int64_t have = d->n_before;

	if (most == GPUQ_UNLIMITED)
		return 0;
	for (const struct job *j = d->m->jobs; j; j = j->next)
		if (!j->ended && j != d->instead && counts(d->m, s, j))
			have += j->array ? j->array->n_waiting : 1;
	if (have + n <= most)
		return 0;
	return gpuq_fail_field(err, GPUQ_ELIMIT, "queue",
			       "%s %s allows %" PRId64 " job%s%s: it has %" PRId64 ", and %" PRId64
			       " more would exceed that",
			       s->what, s->name, most, most == 1 ? "" : "s", s->per, have, n);
}

/* Return the memory of the largest device that the job may get; 0 = not known, or it asks for none. */
static int64_t largest_device(const struct draft *d)
{
	const struct gpuq_strlist *wanted = &d->spec.flavors;
	int64_t most_mib = 0;
	bool asks = false;

	for (size_t i = 0; i < d->spec.n_groups; i++)
		asks |= d->spec.groups[i].gpu_memory_bytes > 0;
	for (const struct node *n = asks ? d->m->nodes : NULL; n; n = n->hh.next)
		if (n->n_devices && !n->gone && node_is_of(d->m, n, wanted) &&
		    n->devices[0].memory_mib > most_mib)
			most_mib = n->devices[0].memory_mib;
	return most_mib << 20;
}

/* Refuse a job that requests more devices than it may ever have. */
static int devices(const struct draft *d, const struct scope *s, int64_t most_milli,
		   struct gpuq_err *err)
{
	int64_t asked, allowed = most_milli;
	char want[32], most[32];

	for (size_t i = 0; i < d->spec.n_groups; i++)
		if (d->spec.groups[i].mig)
			allowed = cost_allowed(most_milli);
	if (most_milli == GPUQ_UNLIMITED || cost_of_spec(&d->spec, 0) <= allowed)
		return 0;
	/* A part by its memory is charged the less, the larger the device is. */
	asked = cost_of_spec(&d->spec, largest_device(d));
	if (asked <= allowed)
		return 0;
	gpuq_milli_print(asked, want, sizeof(want));
	gpuq_milli_print(most_milli, most, sizeof(most));
	return gpuq_fail_field(err, GPUQ_ELIMIT, "gpus",
			       "the job requests %s GPU%s, %s %s allows %s%s", want,
			       asked == 1000 ? "" : "s", s->what, s->name, most, s->per);
}

static int64_t milli(int64_t n)
{
	return n > INT64_MAX / 1000 ? GPUQ_UNLIMITED : n * 1000;
}

static int64_t larger(int64_t x, int64_t y)
{
	return x > y ? x : y;
}

/* Return the largest limit of the queue among the flavors that the job may use: those it names,
 * else all flavors. */
static int64_t largest(const struct draft *d, const struct site_amount *limit)
{
	const struct gpuq_strlist *wanted = &d->spec.flavors;
	int64_t most = 0;

	if (!limit->given || !limit->per_flavor || limit->n == 0)
		return limit->given && !limit->per_flavor ? limit->all : GPUQ_UNLIMITED;
	for (size_t i = 0; i < wanted->n; i++)
		most = larger(most, site_amount_of(limit, wanted->items[i], GPUQ_UNLIMITED));
	for (size_t i = 0; wanted->n == 0 && i < limit->n; i++)
		most = larger(most, limit->amounts[i]);
	for (const struct node *n = d->m->nodes; wanted->n == 0 && n; n = n->hh.next)
		if (n->n_devices || n->fact.n_mig)
			most = larger(most, site_amount_of(limit, n->flavor, GPUQ_UNLIMITED));
	return most;
}

static int of_caps(const struct draft *d, struct scope all, const struct site_cap *gpus,
		   const struct site_cap *jobs, struct gpuq_err *err)
{
	struct scope user = all, job = all;
	int rc;

	user.user = d->who->user;
	user.per = " per user";
	job.per = " per job";
	rc = devices(d, &job, milli(gpus->job), err);
	if (rc == 0)
		rc = devices(d, &all, milli(gpus->queue), err);
	if (rc == 0)
		rc = devices(d, &user, milli(gpus->user), err);
	if (rc == 0)
		rc = submitted(d, &user, jobs->user, err);
	return rc < 0 ? rc : submitted(d, &all, jobs->queue, err);
}

int limits_check(const struct draft *d, struct gpuq_err *err)
{
	const struct site_user *user = site_user_find(d->m->site, d->who->user);
	int rc = 0;

	for (const struct queue *q = d->queue; q && rc == 0; q = q->parent) {
		const struct scope s = { .what = "queue", .name = q->name, .per = "", .queue = q };

		rc = of_caps(d, s, &q->site->max_gpus, &q->site->max_submitted, err);
		if (rc == 0)
			rc = devices(d, &s, largest(d, &q->site->limit), err);
	}
	if (rc == 0) {
		const struct scope s = { "qos", d->qos->name, "", NULL, NULL, d->qos->name, NULL };

		rc = of_caps(d, s, &d->qos->max_gpus, &d->qos->max_submitted, err);
	}
	if (rc == 0 && user) {
		const struct scope s = { "user", user->name, "", NULL, user->name, NULL, NULL };

		rc = devices(d, &s, milli(user->max_gpus), err);
		if (rc == 0)
			rc = submitted(d, &s, user->max_submitted, err);
	}
	for (size_t i = 0; rc == 0 && user && i < user->groups.n; i++) {
		const struct site_group *g = site_group_find(d->m->site, user->groups.items[i]);
		const struct scope s = { "group", user->groups.items[i], "", NULL, NULL,
					 NULL,    user->groups.items[i] };

		rc = g ? devices(d, &s, milli(g->max_gpus), err) : 0;
		if (rc == 0 && g)
			rc = submitted(d, &s, g->max_submitted, err);
	}
	return rc;
}

int limits_check_stored(const struct draft *d, struct gpuq_err *err)
{
	const struct site *site = d->m->site;
	struct stored s = index_stored_of(d->m, d->who->user);
	char most[32];

	/* A change of a single element is not stored as a spec. */
	if (d->who->operator_ || (d->instead && d->instead->key.index >= 0))
		return 0;
	s.n_jobs += d->stored_before.n_jobs + (d->instead ? 0 : 1);
	s.bytes += d->stored_before.bytes + (int64_t)d->bytes.len -
		   (d->instead ? (int64_t)d->instead->spec_bytes : 0);
	if (!d->instead && site->max_submitted != GPUQ_UNLIMITED && s.n_jobs > site->max_submitted)
		return gpuq_fail(err, GPUQ_ELIMIT,
				 "a user may have %" PRId64
				 " jobs that have not ended (max_submitted), this would be number "
				 "%" PRId64 " of %s: wait until some have ended, cancel some, or "
				 "submit an array, which counts as one",
				 site->max_submitted, s.n_jobs, d->who->user);
	if (site->max_stored_bytes == GPUQ_UNLIMITED || s.bytes <= site->max_stored_bytes)
		return 0;
	gpuq_bytes_print(site->max_stored_bytes, most, sizeof(most));
	return gpuq_fail(err, GPUQ_ELIMIT,
			 "the jobs of a user that have not ended may take %s as submitted "
			 "(max_stored), with this one those of %s take %" PRId64
			 " bytes: wait until some have ended, cancel some, or put large "
			 "scripts and environments into files",
			 most, d->who->user, s.bytes);
}
