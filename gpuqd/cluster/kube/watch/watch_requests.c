/* Requests for nodes, kept up to date as nodes and pods are. */
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/watch/decode_request.h"
#include "gpuqd/cluster/kube/watch/watch_objects.h"

static void tell_gone(struct reflector *r, const char *name, const char *token)
{
	const struct capacity_fact f = { .name = name, .token = token };

	if (*token)
		r->watch->request_seen(r->watch->requests_arg, &f, true);
}

static void request_seen(struct reflector *r, struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct capacity_fact f;
	struct known_thing t = { .node = "", .list = r->list };
	const struct known_thing *old;

	if (kube_read_request(o, r->watch->cluster_id, &f, &err) != 0) {
		watch_skip(r, err.text);
		return;
	}
	if (!*f.token) /* another's */
		return;
	old = known_find(r->known, f.namespace_, f.name);
	/* Deleted and made again between two looks: two requests, one name. */
	if (old && strcmp(old->uid, f.uid) != 0)
		tell_gone(r, old->name, old->token);
	t.namespace_ = f.namespace_;
	t.name = f.name;
	t.uid = f.uid;
	t.token = f.token;
	if (known_set(r->known, &t) != 0) {
		watch_skip(r, "no memory");
		return;
	}
	r->watch->request_seen(r->watch->requests_arg, &f, false);
}

static void request_deleted(struct reflector *r, struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct capacity_fact f;

	if (kube_read_request(o, r->watch->cluster_id, &f, &err) != 0) {
		watch_skip(r, err.text);
		return;
	}
	known_drop(r->known, f.namespace_, f.name);
	tell_gone(r, f.name, f.token);
}

static void request_gone(void *arg, const struct known_thing *t)
{
	tell_gone(arg, t->name, t->token);
}

static void known(struct reflector *r, bool on)
{
	r->watch->requests_known(r->watch->requests_arg, on, on ? "" : r->why);
}

#define KIND(version)                                                                              \
	{                                                                                          \
		.word = "provisioningrequests",                                                    \
		.path = "/apis/autoscaling.x-k8s.io/" version "/provisioningrequests",             \
		.seen = request_seen, .deleted = request_deleted, .gone = request_gone,            \
		.optional = true, .known = known                                                   \
	}

static const struct {
	const char *version;
	struct kind kind;
} kinds[] = { { "v1", KIND("v1") }, { "v1beta1", KIND("v1beta1") } };

void watch_requests(struct watch *w, const char *version, watch_request_fn seen,
		    watch_requests_fn known_fn, void *arg)
{
	if (w->requests.kind)
		watch_fini(&w->requests);
	memset(&w->requests, 0, sizeof(w->requests));
	for (size_t i = 0; version && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].version, version) != 0)
			continue;
		w->request_seen = seen;
		w->requests_known = known_fn;
		w->requests_arg = arg;
		watch_init(w, &w->requests, &kinds[i].kind);
		if (!w->requests.known)
			abort(); /* as loop_after() */
		w->requests.answered = true; /* pods do not wait for these */
		watch_begin(&w->requests);
	}
}
