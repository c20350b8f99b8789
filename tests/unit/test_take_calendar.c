/* Reservations in a snapshot: those to come, those that end jobs, and for a day those that have. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "gpuqd/snapshot/snapshot_take.h"
#include "tests/unit/model_rig.h"

#define MINUTE (60 * GPUQ_US_PER_S)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* Take a snapshot of a site with that one reservation, now after its start. */
static struct snapshot *taken(struct model *m, const char *keys, int64_t now_us)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL;
	char start[64], text[400];

	gpuq_instant_print(T0, start, sizeof(start));
	snprintf(text, sizeof(text),
		 "{version: 1, queues: [{name: default}], reservations: [{name: r, start: '%s', "
		 "gpus: "
		 "1, %s}]}",
		 start, keys);
	rig_site(m, text);
	cr_assert_eq(snapshot_take(m, now_us, &s, &err), 0, "%s", err.text);
	return s;
}

static const struct {
	const char *keys;
	int64_t after_us; /* its start */
	uint32_t n; /* occurrences in the snapshot, and of the first: */
	bool ends_jobs;
	int64_t start_us; /* after T0 */
} rows[] = {
	{ "duration: 1h, queue: default", 0, 1, true, 0 },
	{ "duration: 1h, queue: default, at_end: evict", 30 * MINUTE, 1, true, 0 },
	{ "duration: 1h, queue: default, at_end: keep", 30 * MINUTE, 1, false, 0 },
	/* It has ended: a day long its jobs are still to be signalled. */
	{ "duration: 1h, queue: default", HOUR, 1, true, 0 },
	{ "duration: 1h, queue: default", DAY + HOUR - 1, 1, true, 0 },
	{ "duration: 1h, queue: default", DAY + HOUR, 0, false, 0 },
	{ "duration: 1h, queue: default, at_end: keep", HOUR, 0, false, 0 },
	/* A recurring one: the last, and those of a week to come. */
	{ "duration: 1h, queue: default, every: 5d", HOUR, 3, true, 0 },
	{ "duration: 1h, queue: default, every: 5d", 2 * DAY, 2, true, 5 * DAY },
	{ "duration: 1h, queue: default, every: 5d", 5 * DAY + 2 * HOUR, 3, true, 5 * DAY },
};

Test(take_calendar, what_ended_is_there_for_a_day_where_it_ends_jobs)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = fresh(1, 1);
		struct snapshot *s = taken(m, rows[i].keys, T0 + rows[i].after_us);

		cr_expect_eq(s->n_reservations, rows[i].n, "row %zu: %u", i, s->n_reservations);
		if (s->n_reservations > 0 && rows[i].n > 0) {
			cr_expect_eq(s->reservations[0].ends_jobs, rows[i].ends_jobs, "row %zu", i);
			cr_expect_eq(s->reservations[0].start_us, T0 + rows[i].start_us, "row %zu",
				     i);
		}
		snapshot_free(s);
		model_free(m);
	}
}
