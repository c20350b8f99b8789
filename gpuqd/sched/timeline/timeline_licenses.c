#include "gpuqd/sched/timeline/timeline_licenses.h"

#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/timeline/timeline_int.h"

/* The timeline of licenses: when running jobs release theirs, and which start reservations count on
 * them. They belong to no node, so a start reservation holds them from its time on, wherever it
 * is. */

void timeline_licenses_end(struct cycle *c, uint32_t job, int64_t end_us)
{
	const struct snap_request *r = cycle_request(c, job);
	struct future *f = c->timeline->future;

	for (uint32_t i = 0; end_us != GPUQ_UNLIMITED && i < r->n_licenses; i++) {
		struct license_end *e = cycle_push(c, &f->license_ends, &f->n_license_ends,
						   &f->room_license_ends, sizeof(*e), 1);

		if (e)
			*e = (struct license_end){ end_us, r->licenses[i].license,
						   r->licenses[i].count };
	}
}

/* Return how many of the license the job takes. */
static int64_t asks_for(const struct cycle *c, uint32_t job, uint32_t license)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t i = 0; i < r->n_licenses; i++)
		if (r->licenses[i].license == license)
			return r->licenses[i].count;
	return 0;
}

/* Return how many are free at t, beside all start reservations but the job's own. */
static int64_t free_at(const struct cycle *c, uint32_t job, uint32_t license, int64_t t)
{
	const struct future *f = c->timeline->future;
	int64_t n = holdings_license_free(c, license);

	for (uint32_t i = 0; i < f->n_license_ends; i++)
		if (f->license_ends[i].license == license && f->license_ends[i].end_us <= t)
			n = amount_sum(n, f->license_ends[i].count);
	for (uint32_t i = 0; i < f->n_planned; i++) {
		const struct planned *p = &f->planned[i];

		if (p->job != job && p->start_us <= t && timeline_end(c, p->job, p->start_us) > t)
			n -= asks_for(c, p->job, license);
	}
	return n;
}

const struct planned *timeline_licenses_clash(const struct cycle *c, uint32_t job, int64_t t,
					      int64_t end)
{
	const struct snap_request *r = cycle_request(c, job);
	const struct planned *first = NULL;
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; f && i < r->n_licenses; i++)
		for (uint32_t k = 0; k < f->n_planned; k++) {
			const struct planned *p = &f->planned[k];
			const uint32_t license = r->licenses[i].license;

			if (p->job == job || p->start_us >= end ||
			    timeline_end(c, p->job, p->start_us) <= t ||
			    (first && first->start_us <= p->start_us) ||
			    asks_for(c, p->job, license) == 0)
				continue;
			if (free_at(c, job, license, p->start_us > t ? p->start_us : t) <
			    r->licenses[i].count)
				first = p;
		}
	return first;
}

bool timeline_licenses_fit(const struct cycle *c, uint32_t job, int64_t t, int64_t end)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t i = 0; i < r->n_licenses; i++)
		if (free_at(c, job, r->licenses[i].license, t) < r->licenses[i].count)
			return false;
	return timeline_licenses_clash(c, job, t, end) == NULL;
}

const struct planned *timeline_licenses_wanted(const struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);
	const struct planned *first = NULL;
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < r->n_licenses; i++)
		for (uint32_t k = 0; k < f->n_planned; k++) {
			const struct planned *p = &f->planned[k];
			const uint32_t license = r->licenses[i].license;

			/* The licenses free then count the job as gone. */
			if (p->job != job && (!first || p->start_us < first->start_us) &&
			    asks_for(c, p->job, license) > 0 &&
			    free_at(c, job, license, p->start_us) < r->licenses[i].count)
				first = p;
		}
	return first;
}
