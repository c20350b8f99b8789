/* watch_int.h - what the files of watch.h share; private to them
 *
 * watch.c          lists and watches; nodes and pods
 * watch_objects.c  the kinds that pods depend on
 * watch_requests.c requests for nodes
 * watch_jobs.c     Jobs that make pods
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_WATCH_INT_H
#define GPUQD_CLUSTER_KUBE_WATCH_WATCH_INT_H

#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/split.h"
#include "gpuqd/cluster/kube/watch/watch.h"
#include "gpuqd/state/objects/object.h"

enum step { STEP_LIST, STEP_WATCH, STEP_PROBE };

struct watch;
struct kind;

/* The list and the watch of one kind of object. */
struct reflector {
	struct watch *watch;
	const struct kind *kind;
	struct known *known;
	enum step step;
	bool listed, fresh; /* a list has been completed; the watch is open */
	char *version; /* newest heard, NULL before the first list */
	char *page_version, *next_page;
	uint64_t list; /* number of the list that is being, or was last, taken */
	bool relist; /* the running watch must not be taken up again */
	bool answered, off; /* of an optional kind: listed or off, for the first time; off */
	struct split split;
	struct http_req *req;
	struct loop_timer *retry, *settle;
	struct loop_timer *rest; /* its end, or the next look whether it may begin */
	bool resting, paused; /* the watch is not read; bytes have come meanwhile */
	bool fed; /* since the last look */
	struct backoff back;
	int64_t opened_us, broken_us; /* monotonic; wall clock, 0 = not broken */
	uint64_t events; /* of the running watch */
	uint64_t skipped, skipped_before, said; /* before: at the list's beginning */
	int64_t said_us;
	char why[448];
};

struct kind {
	const char *word, *path;
	void (*seen)(struct reflector *r, struct kube_object *o);
	void (*deleted)(struct reflector *r, struct kube_object *o);
	void (*gone)(void *arg, const struct known_thing *t);
	/* gpuqd works without it. The first list comes before that of pods; where it is not
	 * allowed, or the kind not served, the kind is off until it is. */
	bool optional;
	/* Called for an optional kind that is no object of pods: a complete list has come, or none
	 * can be read. */
	void (*known)(struct reflector *r, bool on);
	enum object_kind object; /* of watch_objects.c */
	const char *selector; /* of labels; NULL = all */
};

struct watch {
	struct loop *loop;
	struct http *http;
	const char *cluster_id;
	const struct cluster_sink *sink;
	struct watch_before before; /* all set, or none */
	watch_placeholder_fn on_placeholder;
	void *on_placeholder_arg;
	struct reflector nodes, pods;
	struct reflector objects[OBJECT_BINDING]; /* by kind */
	/* Requests for nodes; its kind NULL = they are not wanted. */
	struct reflector requests;
	watch_request_fn request_seen;
	watch_requests_fn requests_known;
	void *requests_arg;
	struct job_watches *jobs; /* watch_jobs.c; NULL = none are wanted */
	struct missing *missing; /* pods of ours that may be gone */
	struct loop_timer *stale_timer;
	bool stale, begun; /* begun: all was known once */
};

void watch_init(struct watch *w, struct reflector *r, const struct kind *kind);
void watch_fini(struct reflector *r);
/* Log, now and then, that an object could not be read. */
void watch_skip(struct reflector *r, const char *why);
/* Begin to list and watch. */
void watch_begin(struct reflector *r);
/* Pods are listed once every optional kind is known or off. */
void watch_answered(struct reflector *r);

#endif
