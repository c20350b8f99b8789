/* ledger_report.h - what was used between two instants, by whom, where, of what
 *
 * Owns     the rows while they are added up.
 * Touches  the model and the store, reads only.
 * Used by  rpc/method/m_usage.c.
 *
 * Whole days come from the model's book of days; the days in which the report begins or
 * ends inside come from the records of single pods, a part of them at a time, so that the
 * loop is not held; what still runs and is still promised is added as it stands.
 */
#ifndef GPUQD_FLOW_REPORT_LEDGER_REPORT_H
#define GPUQD_FLOW_REPORT_LEDGER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/model.h"

struct store;
struct ledger_report;

enum { REPORT_BY_USER = 1, REPORT_BY_QUEUE = 2, REPORT_BY_FLAVOR = 4, REPORT_BY_DAY = 8 };

struct ledger_report_opts {
	int64_t since_us, until_us; /* until may be in the future: what has happened counts */
	int64_t now_us;
	unsigned by; /* REPORT_BY_*: what tells one row from another */
	const struct gpuq_strlist *users, *queues; /* only these, empty = all; borrowed */
};

/* A row. Strings are NULL where rows are not told apart by them; day is INT64_MIN then. */
struct ledger_row {
	const char *user, *queue, *flavor;
	int64_t day;
	int64_t us[N_CHARGES]; /* device-us */
	int64_t cost_micro, n_pods;
};

/* Begin: what runs and whole days are added at once, as of now. st may be NULL: only whole
 * days then. NULL when there is no memory. */
struct ledger_report *ledger_report_new(const struct model *m, struct store *st,
					const struct ledger_report_opts *o);
void ledger_report_free(struct ledger_report *r);

/* Read on; first called when what was applied before ledger_report_new() is durable. m as it
 * is now. 1: call again; 0: all is read; negative: the store failed. */
int ledger_report_step(struct ledger_report *r, const struct model *m, struct gpuq_err *err);

/* In order of user, queue, flavor, day; valid until the report is freed. Rows of nothing
 * are left out. */
const struct ledger_row *const *ledger_report_rows(struct ledger_report *r, size_t *n);

#endif
