/* census_watch.h - check of the device accounts before every decision
 *
 * Owns     nothing. A node whose devices do not add up is frozen (no more starts there) and
 *          thawed when they do again; both are logged, and shown with the node.
 * Touches  the journal.
 * Used by  flow/schedule.c, before a snapshot is taken.
 */
#ifndef GPUQD_FLOW_CENSUS_WATCH_H
#define GPUQD_FLOW_CENSUS_WATCH_H

struct journal;

void census_watch(struct journal *j);

#endif
