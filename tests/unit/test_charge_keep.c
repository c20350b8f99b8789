/* Charges of single pods are deleted; the sums of reports are not. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "gpuqd/util/civil.h"
#include "gpuqd/flow/report/charge_keep.h"
#include "gpuqd/flow/report/ledger_report.h"
#include "gpuqd/store/read.h"
#include "gpuqd/store/write.h"
#include "tests/unit/journal_rig.h"
#include "gpuqd/state/record/model_apply.h"

#define HOUR_US (3600 * GPUQ_US_PER_S)
#define KEEP_US (366 * CIVIL_DAY_US)
#define OLD (civil_day(T0) * CIVIL_DAY_US) /* years ago */

static struct journal_rig rig;

/* All that was applied is on disk. */
static void settle(void)
{
	struct batch b;
	struct gpuq_err err = GPUQ_ERR_INIT;

	change_batch_init(&b);
	model_collect(rig.model, &b);
	cr_assert_eq(b.n ? store_write_now(rig.store, &b, &err) : 0, 0, "%s", err.text);
	change_batch_done(&b);
}

/* A job of one device from then until then. */
static void ran(uint32_t id, int64_t from_us, int64_t to_us)
{
	const struct job_key key = { id, -1 };
	enum event_type type;

	cr_assert_null(submit_text(rig.model, "{gpus: 1, command: [a]}", NULL));
	cr_assert_eq(place_at(rig.model, key, 1, "n0", 0, from_us), 0);
	cr_assert_eq(pod_event(rig.model, EV_POD_STARTED, key, 0, 0, from_us, 0, 0), 0);
	cr_assert_eq(pod_event(rig.model, EV_POD_ENDED, key, 0, 0, to_us, 0, 0), 0);
	cr_assert_eq(pod_event(rig.model, EV_POD_GONE, key, 0, 0, to_us, 0, 0), 0);
	cr_assert_eq(verdict(rig.model, key, to_us, &type), 0);
	settle();
}

/* Device-hours that were used between two instants. */
static double used(int64_t since_us, int64_t until_us)
{
	const struct ledger_report_opts o = { .since_us = since_us,
					      .until_us = until_us,
					      .now_us = loop_now_us(rig.loop),
					      .by = REPORT_BY_USER };
	struct ledger_report *r = ledger_report_new(rig.model, rig.store, &o);
	const struct ledger_row *const *rows;
	struct gpuq_err err = GPUQ_ERR_INIT;
	double hours = 0;
	size_t n;
	int rc;

	while ((rc = ledger_report_step(r, rig.model, &err)) > 0)
		;
	cr_assert_eq(rc, 0, "%s", err.text);
	rows = ledger_report_rows(r, &n);
	for (size_t i = 0; i < n; i++)
		hours += (double)rows[i]->us[CHARGE_USED] / (double)HOUR_US;
	ledger_report_free(r);
	return hours;
}

static void forget(int64_t keep_us)
{
	while (charge_keep_some(rig.journal, keep_us))
		settle();
	settle();
}

Test(charge_keep, reports_stay_as_they_are)
{
	int64_t now;

	journal_rig_open(&rig, fresh(1, 2));
	now = loop_now_us(rig.loop);
	ran(1, OLD + 6 * HOUR_US, OLD + 54 * HOUR_US); /* over three days: 18 + 24 + 6 hours */
	ran(2, now - 3 * HOUR_US, now - HOUR_US);
	const size_t before = store_count(rig.store, TABLE_CHARGE);

	cr_assert_geq(before, 4);
	cr_expect_float_eq(used(OLD, now), 50, 0.001);
	cr_expect_float_eq(used(OLD + 12 * HOUR_US, OLD + 2 * CIVIL_DAY_US), 36, 0.001);
	cr_expect_float_eq(used(now - 2 * HOUR_US, now), 1, 0.001);

	forget(0);
	cr_expect_eq(store_count(rig.store, TABLE_CHARGE), before, "0 keeps all");
	forget(KEEP_US);
	cr_expect_lt(store_count(rig.store, TABLE_CHARGE), before);
	cr_expect_gt(store_count(rig.store, TABLE_CHARGE), 0, "those of today stay");
	/* Whole days of the past, and any instant of what is kept. */
	cr_expect_float_eq(used(OLD, now), 50, 0.001);
	cr_expect_float_eq(used(OLD, OLD + CIVIL_DAY_US), 18, 0.001);
	cr_expect_float_eq(used(OLD + CIVIL_DAY_US, OLD + 2 * CIVIL_DAY_US), 24, 0.001);
	cr_expect_float_eq(used(OLD + 2 * CIVIL_DAY_US, OLD + 3 * CIVIL_DAY_US), 6, 0.001);
	cr_expect_float_eq(used(now - 2 * HOUR_US, now), 1, 0.001);
	/* From within such a day: all of it, once. */
	cr_expect_float_eq(used(OLD + 12 * HOUR_US, OLD + 2 * CIVIL_DAY_US), 42, 0.001);
	journal_rig_close(&rig);
}

/* A day is read record by record, or as a whole from its first record that goes on. */
Test(charge_keep, half_a_day_forgotten_counts_once)
{
	struct event ev = { .type = EV_CHARGES_EXPIRED };
	struct charge_key key;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t now;

	journal_rig_open(&rig, fresh(1, 2));
	now = loop_now_us(rig.loop);
	ran(1, OLD + 6 * HOUR_US, OLD + 8 * HOUR_US);
	ran(2, OLD + 10 * HOUR_US, OLD + 12 * HOUR_US);
	size_t n = change_key_u32(key.bytes, (uint32_t)civil_number(civil_day(OLD)));

	n += change_key_pod(key.bytes + n, 1, -1, 0, 0);
	cr_assert_eq(n, CHARGE_KEY_BYTES);
	key.len = (uint8_t)change_key_cluster(key.bytes, n, CLUSTER_DEFAULT);
	ev.at_us = now;
	ev.charges.first_day = civil_day(now) - 366;
	ev.charges.keys = &key;
	ev.charges.n = 1;
	cr_assert_eq(model_apply(rig.model, &ev, &err), 0);
	settle();
	cr_expect_float_eq(used(OLD, OLD + CIVIL_DAY_US), 4, 0.001);
	cr_expect_float_eq(used(OLD + 9 * HOUR_US, OLD + CIVIL_DAY_US), 4, 0.001);
	journal_rig_close(&rig);
}
