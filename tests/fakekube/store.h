/* store.h - the objects, their resourceVersion and the history of changes
 *
 * Owns     all objects, the counter of resourceVersions, and one ring of the
 *          last changes of all types. Each write takes the next number and
 *          enters the ring, so the ring is indexed by resourceVersion.
 * Used by  whoever reads or writes; whoever must know of every change
 *          registers a listener. A listener may not write: it sets a timer.
 */
#ifndef FAKEKUBE_STORE_H
#define FAKEKUBE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define uthash_fatal(msg) abort()
#include <stdlib.h>
#include <uthash.h>

#include "version.h"

struct obj {
	struct version *v;
	UT_hash_handle hh; /* in kind->objs, by key */
	UT_hash_handle hh_uid;
	char key[]; /* "ns/name", or "name" */
};

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED };

/* cur is what watchers see: for DELETED the last state with the number of the
 * deletion. prev is the state before; NULL for ADDED. */
struct event {
	enum event_type type;
	struct version *cur, *prev;
};

/* Called after each write. */
typedef void (*store_event_fn)(const struct event *e);
/* Called when the past was changed (rewind): look at everything anew. */
typedef void (*store_reset_fn)(void);

void store_init(size_t history);
void store_listen(store_event_fn on_event, store_reset_fn on_reset);

uint64_t store_rv(void);
/* The number the next write must carry. */
uint64_t store_next_rv(void);
/* The oldest resourceVersion that a watch can start from. */
uint64_t store_oldest_rv(void);
/* The change that made rv; it must lie in (oldest, store_rv()]. */
const struct event *store_event(uint64_t rv);

struct obj *store_find(struct kind *kind, const char *ns, const char *name);
struct obj *store_by_uid(const char *uid);
size_t store_count(const struct kind *kind);

/* Write. v must have been made with store_next_rv(); the reference is taken over. */
struct obj *store_add(struct version *v);
void store_update(struct obj *o, struct version *v);
void store_remove(struct obj *o);

/* Forget the history before rv. */
void store_compact(uint64_t rv);
/* Take the state back to what it was at rv, as after restoring a copy of etcd.
 * Returns 0, or -1 when the history does not reach back so far. */
int store_rewind(uint64_t rv);
/* Enter an object without history and set the counter: loading a saved state. */
void store_load(struct version *v);
void store_set_rv(uint64_t rv);
/* Have every listener look at the state anew: after loading. */
void store_reset(void);
void store_done(void);

#endif
