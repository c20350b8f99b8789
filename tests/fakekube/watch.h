/* watch.h - open watches
 *
 * Owns     the streams, their selectors, bookmarks and ends.
 */
#ifndef FAKEKUBE_WATCH_H
#define FAKEKUBE_WATCH_H

#include "api.h"
#include "faults.h"

void watch_init(struct event_base *base, int64_t bookmark_us);
/* Begin a watch, spoiled by f. Takes over the request unless it makes a reply
 * (r->code set), which refuses it. */
void watch_start(const struct call *call, const struct fault *f, struct reply *r);
/* End all watches of all types, as a restart does. */
void watch_close_all(void);
unsigned watch_count(void);

#endif
