/* charge_keep.h - charge records of single pods expire with the history
 *
 * Owns     nothing. Touches the journal, the store.
 * Used by  history_keep.c.
 *
 * The daily sums (TABLE_USAGE) are kept for ever: reports of whole days stay as they are. Records
 * of single pods are what lets a report begin within a day; those of days that ended before the
 * history that is kept are deleted, and a report that begins there begins with the day.
 */
#ifndef GPUQD_FLOW_REPORT_CHARGE_KEEP_H
#define GPUQD_FLOW_REPORT_CHARGE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

struct journal;

/* Delete some of what is older than keep_us (0 = keep all). Returns whether there may be more; the
 * deletions must be durable before it is called again. */
bool charge_keep_some(struct journal *j, int64_t keep_us);

#endif
