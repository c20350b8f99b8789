/* ledger_report.h - usage between two instants, by user, queue, flavor and day
 *
 * Owns     the rows while they are added up.
 * Touches  the model and the store, reads only.
 * Used by  rpc/method/m_usage.c.
 *
 * Whole days come from the model's daily sums; a day that the report begins or ends within comes
 * from the records of single pods, a piece at a time, so that the loop is not held; running pods
 * and nominated placements are added as of now.
 */
#ifndef GPUQD_FLOW_REPORT_LEDGER_REPORT_H
#define GPUQD_FLOW_REPORT_LEDGER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/model.h"

struct store;
struct ledger_report;

enum {
	REPORT_BY_USER = 1,
	REPORT_BY_QUEUE = 2,
	REPORT_BY_FLAVOR = 4,
	REPORT_BY_DAY = 8,
	REPORT_BY_ISOLATION = 16
};

struct ledger_report_opts {
	int64_t since_us, until_us; /* until may be in the future: only what has happened counts */
	int64_t now_us;
	unsigned by; /* REPORT_BY_*: columns that separate rows */
	const struct gpuq_strlist *users, *queues; /* only these, empty = all; borrowed */
	unsigned isolations; /* only these, a bit each; 0 = all */
};

/* Use of a countable resource or of MIG instances, in units (GiB where they are bytes) x us. */
struct ledger_amount {
	struct ledger_amount *next;
	int64_t us;
	char name[];
};

/* A row. Strings of columns that do not separate rows are NULL; day is INT64_MIN then. */
struct ledger_row {
	const char *user, *queue, *flavor;
	int isolation; /* ISOLATION_NO_DEVICES: it does not separate rows, or is not known */
	int64_t day;
	int64_t us[N_CHARGES]; /* device-us */
	int64_t cost_micro, n_pods;
	struct used_sum used; /* by pods that ended */
	struct ledger_amount *amounts; /* in the order of their names */
};

/* Begin a report: running pods and whole days are added at once, as of now. st may be NULL: only
 * whole days then. NULL: out of memory. */
struct ledger_report *ledger_report_new(const struct model *m, struct store *st,
					const struct ledger_report_opts *o);
void ledger_report_free(struct ledger_report *r);

/* Read on; first called when what was applied before ledger_report_new() is durable. m is the
 * current model. 1: call again; 0: done; negative: the store failed. */
int ledger_report_step(struct ledger_report *r, const struct model *m, struct gpuq_err *err);

/* Return the rows in order of user, queue, flavor, day; valid until the report is freed. Empty rows
 * are left out. */
const struct ledger_row *const *ledger_report_rows(struct ledger_report *r, size_t *n);

#endif
