/* A job in a reservation: the reservation exists, its owner may use it, and the job starts on its
 * nodes and not before it begins. */
#include "gpuqd/flow/admit/draft_reservation.h"

#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/flow/admit/draft_int.h"

static int find(const struct draft *d, const struct site_reservation **out, struct gpuq_err *err)
{
	const char *name = d->spec.reservation, *names[128];
	size_t n = 0;

	site_each(site_reservation, d->m->site->reservations, r) {
		if (strcmp(r->name, name) == 0) {
			*out = r;
			return 0;
		}
		if (n < 127)
			names[n++] = r->name;
	}
	names[n] = NULL;
	return draft_unknown("reservation", "reservation", name, names, err);
}

/* True if the user may use it, by the rule of reservations_owns(). */
static bool may_use(const struct draft *d, const struct site_reservation *r)
{
	bool in_queue = !r->queue;

	if (site_reservation_has(r, "maintenance") || (in_queue && r->users.n == 0))
		return false;
	for (const struct queue *q = d->queue; !in_queue && q; q = q->parent)
		in_queue = strcmp(q->name, r->queue) == 0;
	return in_queue && gpuq_strlist_passes(&r->users, d->who->user);
}

int draft_check_reservation(struct draft *d, struct gpuq_err *err)
{
	const struct site_reservation *r;
	const int64_t wall_us = walltime_of(d->now_us, d->m->ahead_us);
	int64_t start_us;
	int rc;

	if (!d->spec.reservation)
		return 0;
	rc = find(d, &r, err);
	if (rc < 0)
		return rc;
	if (!may_use(d, r))
		return gpuq_fail_field(err, GPUQ_EPERM, "reservation",
				       "reservation %s is not for jobs of %s in queue %s", r->name,
				       d->who->user, d->queue->name);
	start_us = site_reservation_start(r, wall_us);
	if (start_us > wall_us && start_us > d->spec.begin_us)
		d->spec.begin_us = start_us;
	for (size_t i = 0; i < d->spec.n_groups && r->nodes.n; i++)
		if (d->spec.groups[i].nodes.n == 0)
			d->spec.groups[i].nodes = r->nodes;
	return 0;
}
