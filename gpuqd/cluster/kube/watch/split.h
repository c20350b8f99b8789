/* split.h - cuts a byte stream into single JSON objects
 *
 * Owns     the unfinished object, at most GPUQ_KUBE_OBJECT_BYTES_MAX of it.
 * Touches  memory only.
 * Used by  watch.c; tests and fuzz targets.
 *
 * A watch is a stream of JSON objects; a LIST is one object whose `items` may be a
 * hundred megabytes. Either is cut, in chunks of any size, into objects small enough
 * to be parsed one at a time, so that memory stays flat. The pieces are not validated:
 * the parser of the single object does that, and one bad object affects only itself.
 *
 * Members that gpuq never reads are replaced by 0 before the object is handed on,
 * because they are most of its bytes: managedFields, a node's images, a container's
 * environment and their like (objects and lists of those names, wherever they stand). Those are the
 * members of nodes and pods; other kinds may mean something else by such a name: see whole.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_SPLIT_H
#define GPUQD_CLUSTER_KUBE_WATCH_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

enum split_kind {
	SPLIT_STREAM, /* objects one after another: a watch */
	SPLIT_LIST, /* one object: its items one by one, then or before them its metadata */
};

enum split_what { SPLIT_OBJECT, SPLIT_META };

/* One object; the bytes live until the callback returns. false ends the feeding. */
typedef bool (*split_fn)(void *arg, enum split_what what, const char *json, size_t n);

struct split {
	enum split_kind kind;
	split_fn fn;
	void *arg;
	bool whole; /* set after split_init(): nothing is left out but managedFields */
	/* counts for logs and metrics */
	uint64_t objects, too_big, too_deep, garbage;
	/* private */
	struct gpuq_buf buf;
	size_t taken_bytes; /* of the object being cut, pruned members not counted */
	unsigned depth, base, prune_depth;
	bool cutting, pruning, bad, in_string, escaped, stopped, resync, key_is_prune;
	bool list_open, list_done, in_items;
	enum split_what what;
	char last[16]; /* the latest string, if short: it may turn out to be a key */
	unsigned n_last;
	char key[16]; /* key of the value that follows, at the list's top level */
};

void split_init(struct split *s, enum split_kind kind, split_fn fn, void *arg);
void split_done(struct split *s);

/* Feed n bytes. Returns 0; GPUQ_EPROTO when a LIST is no such object (an HTML page);
 * GPUQ_ECANCELED when the callback answered false (feed no more); GPUQ_ENOMEM. */
int split_feed(struct split *s, const char *bytes, size_t n, struct gpuq_err *err);

/* The stream has ended: GPUQ_EPROTO if it ended inside an object, else 0. */
int split_end(const struct split *s, struct gpuq_err *err);

#endif
