/* charge_keep.h - what single pods were charged is forgotten with the history
 *
 * Owns     nothing. Touches the journal, the store.
 * Used by  history_keep.c.
 *
 * The book of days (TABLE_USAGE) is kept for ever: reports of whole days stay as they are.
 * Records of single pods are what lets a report begin inside a day; of days that ended
 * before the history that is kept they go, and a report that begins there begins with the day.
 */
#ifndef GPUQD_FLOW_REPORT_CHARGE_KEEP_H
#define GPUQD_FLOW_REPORT_CHARGE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

struct journal;

/* Forget some of what is older than keep_us (0 = nothing ever is). Returns whether there may
 * be more; what was forgotten must have left the disk before it is called again. */
bool charge_keep_some(struct journal *j, int64_t keep_us);

#endif
