#include "gpuqd/cluster/kube/pods/api_create.h"

#include <config.h>

#include "gpuqd/cluster/kube/pods/api_int.h"
#include "gpuqd/cluster/kube/pods/api_turn.h"
#include "gpuqd/cluster/kube/pods/api_post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "gpuqd/cluster/kube/pods/api_remove.h"
#include "gpuqd/cluster/kube/pods/code.h"
#include "gpuqd/cluster/kube/pods/mounts.h"
#include "gpuqd/cluster/kube/pods/owned.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/pods/podspec.h"
#include "gpuqd/cluster/kube/pods/podspec_code.h"
#include "gpuqd/cluster/kube/pods/podspec_share.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/room.h"

enum { BESIDE_SCRIPT, BESIDE_SERVICE, N_BESIDES };

struct create {
	UT_hash_handle hh;
	TAILQ_ENTRY(create) wait; /* for the object at `waits_for` */
	struct beside *waits_for;
	struct asks *asks;
	char *key, *namespace_, *name, *token;
	char *pod; /* JSON */
	char *beside[N_BESIDES], *beside_name[N_BESIDES];
	char *pod_policy;
	uint32_t attempt;
	int next; /* the beside to see to next; N_BESIDES = the pod */
	struct owned *owned; /* being looked up: what it names */
	struct post *post;
	struct loop_timer *fail;
	char why[448];
	bool leave; /* signalled to end meanwhile */
	char *uid; /* the watch has shown it; NULL = not yet */
	char *node;
	int64_t share_units; /* see turn_take(); 0 = any number may be under way */
	const struct backend
		*chooser; /* the plugin of the node chooses by what is free; NULL = it does not */
	struct backend_room want; /* for it */
	uint32_t n_node_devices;
	int64_t device_mib;
	bool told; /* that it waits for room */
	int64_t grace_us;
};

/* One object that several pods of an attempt need: made once. */
struct beside {
	UT_hash_handle hh;
	TAILQ_HEAD(, create) waiting;
	struct asks *asks;
	char *path, *body, *name;
	uint32_t attempt; /* that saw it there */
	struct rest *rest; /* it is to go once it is known to be there, or not */
	struct post *post; /* NULL = it is there */
};

static const char *const plurals[N_BESIDES] = { "configmaps", "services" };

static void go_on(struct create *c);

static void free_create(struct create *c)
{
	if (c->waits_for)
		TAILQ_REMOVE(&c->waits_for->waiting, c, wait);
	HASH_DEL(c->asks->creates, c);
	owned_cancel(c->owned);
	post_cancel(c->post);
	loop_cancel(c->fail);
	for (int i = 0; i < N_BESIDES; i++) {
		free(c->beside[i]);
		free(c->beside_name[i]);
	}
	free(c->key);
	free(c->namespace_);
	free(c->name);
	free(c->token);
	free(c->uid);
	free(c->pod);
	free(c->pod_policy);
	free(c->node);
	free(c);
}

/* The create has ended. If the pod was signalled to end meanwhile, that follows. */
static void finish(struct create *c, enum ask_outcome o, const char *uid, const char *message)
{
	const struct cluster_sink *sink = c->asks->sink;
	struct asks *a = c->asks;
	bool leave = c->leave;
	int64_t grace_us = c->grace_us;
	char *name = c->name, *ns = c->namespace_, *token = c->token;
	struct pod_ref ref = { .name = name, .namespace_ = ns, .uid = uid, .token = token };

	c->name = c->namespace_ = c->token = NULL;
	free_create(c);
	if (o != ASK_OK)
		turn_over(a, name, false);
	if (!leave || o == ASK_OK)
		sink->created(sink->arg, name, o, uid, message);
	if (leave && o == ASK_OK)
		asks_delete(a, &ref, grace_us);
	else if (leave)
		sink->deleted(sink->arg, name, ASK_OK, "it was never created");
	free(name);
	free(ns);
	free(token);
}

/* The same for one that the cluster refused for its own reasons. */
static void finish_refused(struct create *c, const struct refusal *r)
{
	const struct cluster_sink *sink = c->asks->sink;
	char *name = c->name;

	if (c->leave || !sink->refused) {
		finish(c, ASK_REFUSED, "", r->words);
		return;
	}
	turn_over(c->asks, name, false);
	c->name = NULL;
	free_create(c);
	sink->refused(sink->arg, name, r);
	free(name);
}

static void on_fail(void *arg)
{
	struct create *c = arg;

	char why[sizeof(c->why)];

	memcpy(why, c->why, sizeof(why)); /* c goes before it is reported */
	c->fail = NULL;
	finish(c, ASK_REFUSED, "", why);
}

/* ---- beside the pod ---- */

static void free_beside(struct beside *b)
{
	HASH_DEL(b->asks->besides, b);
	post_cancel(b->post);
	free(b->path);
	free(b->body);
	free(b->name);
	free(b);
}

static void beside_trying(void *arg, enum ask_outcome o, const char *message)
{
	struct beside *b = arg;
	struct create *c;

	TAILQ_FOREACH(c, &b->waiting, wait)
		b->asks->sink->created(b->asks->sink->arg, c->name, o, "", message);
}

/* The post has ended; r: it was refused for the cluster's sake, else o and message tell. */
static void beside_over(struct beside *b, enum ask_outcome o, const struct refusal *r,
			const char *message)
{
	TAILQ_HEAD(, create) waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct create *c;
	char text[480];

	b->post = NULL;
	if (b->rest) {
		struct rest *rest = b->rest;
		struct asks *a = b->asks;
		char *path = b->path;

		b->path = NULL;
		free_beside(b);
		removal_path(a, path, rest);
		free(path);
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", b->name, message);
	TAILQ_FOREACH(c, &b->waiting, wait)
		c->waits_for = NULL;
	TAILQ_CONCAT(&waiting, &b->waiting, wait);
	if (o != ASK_OK) { /* before anyone hears of it and asks anew */
		free_beside(b);
	} else {
		free(b->body); /* a megabyte, perhaps */
		b->body = NULL;
	}
	while ((c = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, c, wait);
		if (o == ASK_OK)
			go_on(c);
		else if (r)
			finish_refused(c, r);
		else
			finish(c, o, "", text);
	}
}

static void beside_done(void *arg, enum ask_outcome o, const json_t *object, const char *message)
{
	(void)object;
	beside_over(arg, o, NULL, message);
}

static void beside_refused(void *arg, const struct refusal *r)
{
	beside_over(arg, ASK_REFUSED, r, r->words);
}

/* A user who may write to the namespace could have put another script under the name, to have it
 * run in a job of ours: the content decides. */
static bool beside_ours(void *arg, const json_t *object)
{
	static const char *const keys[] = { "data", "binaryData" };
	struct beside *b = arg;
	json_t *want = json_loads(b->body, 0, NULL);
	const char *id = kube_str(kube_path(object, "metadata", "labels"), KUBE_L_CLUSTER);
	bool same = strcmp(id, b->asks->cluster_id) == 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && same; i++) {
		json_t *x = json_object_get(want, keys[i]), *y = json_object_get(object, keys[i]);

		same = (!x && !y) || (x && y && json_equal(x, y));
	}
	if (same && kube_path(want, "spec", "selector"))
		same = json_equal(kube_path(want, "spec", "selector"),
				  kube_path(object, "spec", "selector"));
	json_decref(want);
	return same;
}

static void beside_make(struct create *c, int which, const char *path)
{
	struct beside *b = calloc(1, sizeof(*b));
	struct post_call call = { .namespace_ = c->namespace_,
				  .plural = plurals[which],
				  .ours = beside_ours,
				  .trying = beside_trying,
				  .done = beside_done,
				  .refused = beside_refused };

	if (!b)
		abort();
	TAILQ_INIT(&b->waiting);
	b->asks = c->asks;
	b->path = strdup(path);
	b->body = c->beside[which];
	c->beside[which] = NULL;
	b->name = strdup(c->beside_name[which]);
	if (!b->path || !b->body || !b->name)
		abort();
	b->attempt = c->attempt;
	HASH_ADD_KEYPTR(hh, c->asks->besides, b->path, strlen(b->path), b);
	TAILQ_INSERT_TAIL(&b->waiting, c, wait);
	c->waits_for = b;
	call.name = b->name;
	call.body = b->body;
	call.arg = b;
	b->post = post_start(c->asks, &call);
}

/* true: it is there. A new attempt asks anew: what its forerunner needed may have been
 * deleted by others, and that may be why there is a new attempt. */
static bool beside_there(struct create *c, int which)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct beside *b;

	url_object(&path, c->namespace_, plurals[which], c->beside_name[which]);
	HASH_FIND_STR(c->asks->besides, gpuq_buf_str(&path), b);
	if (b && !b->post && b->attempt != c->attempt) {
		free_beside(b);
		b = NULL;
	}
	if (!b) {
		beside_make(c, which, gpuq_buf_str(&path));
	} else if (b->post) {
		TAILQ_INSERT_TAIL(&b->waiting, c, wait);
		c->waits_for = b;
	}
	gpuq_buf_done(&path);
	free(c->beside[which]);
	c->beside[which] = NULL;
	return b && !b->post;
}

bool beside_forget(struct asks *a, const char *path, struct rest *rest)
{
	struct beside *b;

	HASH_FIND_STR(a->besides, path, b);
	if (!b || !TAILQ_EMPTY(&b->waiting))
		return false;
	if (!b->post) {
		free_beside(b);
		return false;
	}
	/* A removal that overtakes it would leave it there for ever. */
	b->rest = rest;
	post_abandon(b->post);
	return true;
}

void beside_free_all(struct asks *a)
{
	struct beside *b, *next;

	HASH_ITER(hh, a->besides, b, next)
		free_beside(b);
}

/* ---- the pod ---- */

static bool pod_ours(void *arg, const json_t *object)
{
	const struct create *c = arg;

	return strcmp(kube_str(kube_path(object, "metadata", "annotations"), KUBE_A_TOKEN),
		      c->token) == 0;
}

static void pod_trying(void *arg, enum ask_outcome o, const char *message)
{
	const struct create *c = arg;

	c->asks->sink->created(c->asks->sink->arg, c->name, o, "", message);
}

static void pod_done(void *arg, enum ask_outcome o, const json_t *object, const char *message)
{
	struct create *c = arg;
	char *seen = c->uid;
	const char *uid = seen ? seen : "";

	if (object)
		uid = kube_str(json_object_get(object, "metadata"), "uid");
	c->post = NULL;
	c->uid = NULL;
	finish(c, o, uid, message);
	free(seen);
}

static void pod_refused(void *arg, const struct refusal *r)
{
	struct create *c = arg;

	c->post = NULL;
	finish_refused(c, r);
}

/* Return the first device that the plugin of the node will choose, by what the pods hold that are there by now, not
 * those that wait; -1 = it would refuse the pod. Sets alone: nothing of them can change before it chooses. */
static int chosen(struct create *c, bool *alone)
{
	struct backend_room *rooms = calloc(c->n_node_devices + 1, sizeof(*rooms));
	int device;

	if (!rooms)
		abort();
	*alone = rooms_of(c->asks->rooms, c->node, c->device_mib, rooms, c->n_node_devices) == 0;
	device = c->chooser->choose(c->want, rooms, c->n_node_devices);
	free(rooms);
	return device;
}

#define NO_ROOM "the device plugin of its node has chosen its devices for other pods"

/* True if there is room for it. Devices that were planned for it may be held by another pod, for which the plugin has chosen
 * otherwise: pods that end make room. */
static bool has_room(struct create *c)
{
	const struct cluster_sink *sink = c->asks->sink;
	bool alone;

	if (!c->chooser || chosen(c, &alone) >= 0)
		return true;
	if (!c->told)
		sink->created(sink->arg, c->name, ASK_RETRY, "", NO_ROOM);
	c->told = true;
	if (sink->troubled)
		sink->troubled(sink->arg, c->name, BACKEND_NO_ROOM, NO_ROOM, TROUBLE_ROOM);
	return false;
}

static void write_choice(struct create *c)
{
	bool alone;
	const int device = chosen(c, &alone);
	char *text;

	if (podspec_choice(c->pod, c->chooser, device, alone, &text) != 0)
		abort(); /* as loop_after() */
	free(c->pod);
	c->pod = text;
}

static void go_on(struct create *c)
{
	struct post_call call = { .namespace_ = c->namespace_,
				  .plural = "pods",
				  .name = c->name,
				  .paced = true,
				  .metadata = true,
				  .ours = pod_ours,
				  .trying = pod_trying,
				  .pod_policy = c->pod_policy,
				  .done = pod_done,
				  .refused = pod_refused,
				  .arg = c };

	for (; c->next < N_BESIDES; c->next++)
		if (c->beside[c->next] && !beside_there(c, c->next)) {
			c->next++; /* waiting for it; what follows comes after */
			return;
		}
	if (c->share_units &&
	    (!has_room(c) || !turn_take(c->asks, c->node, c->share_units, c->namespace_, c->name)))
		return;
	if (c->chooser)
		write_choice(c);
	call.body = c->pod;
	c->post = post_start(c->asks, &call);
}

void creates_go_on(struct asks *a)
{
	struct create *c, *next;

	HASH_ITER(hh, a->creates, c, next)
		if (c->share_units && c->next == N_BESIDES && !c->owned && !c->post && !c->fail &&
		    !c->waits_for)
			go_on(c);
}

static void owned_trying(void *arg, const char *why)
{
	const struct create *c = arg;

	c->asks->sink->created(c->asks->sink->arg, c->name, ASK_RETRY, "", why);
}

static void owned_done(void *arg, const char *why)
{
	struct create *c = arg;

	c->owned = NULL;
	if (*why)
		finish(c, ASK_REFUSED, "", why);
	else
		go_on(c);
}

static char *text_of(json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT);

	json_decref(v);
	return text;
}

/* Write the ConfigMap, unless another pod of the job has it there or on its way: with an archive it is a megabyte. */
static int build_files(struct create *c, const struct pod_order *o, struct gpuq_err *err)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	char *archive = NULL;
	const struct beside *b;
	json_t *v = NULL;
	int rc = 0;

	url_object(&path, c->namespace_, plurals[BESIDE_SCRIPT], c->beside_name[BESIDE_SCRIPT]);
	HASH_FIND_STR(c->asks->besides, gpuq_buf_str(&path), b);
	gpuq_buf_done(&path);
	if (o->code && podspec_code_is_file(o) && b && (b->post || b->attempt == c->attempt)) {
		c->beside[BESIDE_SCRIPT] = strdup("{}");
		return 0;
	}
	if (o->code && podspec_code_is_file(o))
		rc = code_read(o->code, &archive, err);
	if (rc == 0)
		rc = podspec_files(o, archive, &v, err);
	if (rc == 0)
		c->beside[BESIDE_SCRIPT] = text_of(v);
	free(archive);
	return rc;
}

static int build(struct create *c, const struct pod_order *o, struct gpuq_err *err)
{
	char name[PODSPEC_NAME_ROOM];
	json_t *v;
	/* The rules of the queue may have changed since it was submitted. */
	int rc = o->walls.pod_policy ? mounts_check(o->spec, &o->walls, err) : 0;

	if (rc == 0)
		rc = podspec_pod(o, &v, err);
	if (rc != 0)
		return rc;
	c->pod = text_of(v);
	if (podspec_has_files(o)) {
		podspec_script_name(o->cluster_id, o->job, name);
		c->beside_name[BESIDE_SCRIPT] = strdup(name);
		rc = build_files(c, o, err);
		if (rc != 0)
			return rc;
	}
	if (podspec_has_service(o)) {
		rc = podspec_service(o, &v, err);
		if (rc != 0)
			return rc;
		podspec_service_name(o->cluster_id, o->job, o->array_index, name);
		c->beside[BESIDE_SERVICE] = text_of(v);
		c->beside_name[BESIDE_SERVICE] = strdup(name);
	}
	if (!c->pod || !c->beside[BESIDE_SCRIPT] != !podspec_has_files(o) ||
	    !c->beside[BESIDE_SERVICE] != !podspec_has_service(o))
		return gpuq_fail(err, GPUQ_ENOMEM, "the pod cannot be written as JSON");
	return 0;
}

static char *key_of(const char *namespace_, const char *name)
{
	char *key = NULL;

	if (asprintf(&key, "%s/%s", namespace_, name) < 0)
		abort();
	return key;
}

static struct create *find(struct asks *a, const char *namespace_, const char *name)
{
	char *key = key_of(namespace_, name);
	struct create *c;

	HASH_FIND_STR(a->creates, key, c);
	free(key);
	return c;
}

void asks_create(struct asks *a, const struct pod_order *o)
{
	const char *ns = o->namespace_ && *o->namespace_ ? o->namespace_ : a->namespace_;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct create *c = find(a, ns, o->name);
	const struct backend *b;
	struct backend_place p;

	if (c) /* asked again: it is being seen to */
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	c->asks = a;
	c->attempt = o->attempt;
	c->key = key_of(ns, o->name);
	c->namespace_ = strdup(ns);
	c->name = strdup(o->name);
	c->token = strdup(o->token);
	c->node = strdup(o->node);
	c->pod_policy = strdup(o->walls.pod_policy ? o->walls.pod_policy : "");
	if (podspec_shared(o, &b, &p) && b->turn != TURN_MANY)
		c->share_units = b->turn == TURN_EQUAL  ? p.units
				 : b->turn == TURN_LOCK ? UNSERVED_LOCK
							: UNSERVED_NODE;
	if (b && b->choose) {
		c->chooser = b;
		c->want = p.want;
		c->n_node_devices = o->n_node_devices;
		c->device_mib = o->device_mib;
	}
	if (!c->node || !c->pod_policy || !c->namespace_ || !c->name || !c->token)
		abort();
	HASH_ADD_KEYPTR(hh, a->creates, c->key, strlen(c->key), c);
	made_note(a, o->job, o->array_index, podspec_has_files(o), podspec_has_service(o),
		  o->attempt > 0);
	/* The script of an array is the array's. */
	if (o->array_index >= 0 && podspec_has_files(o))
		made_note(a, o->job, -1, true, false, false);
	if (build(c, o, &err) != 0) {
		snprintf(c->why, sizeof(c->why), "%s", err.text);
		c->fail = loop_after(a->loop, 0, on_fail, c);
		return;
	}
	c->owned = owned_start(a->loop, a->http, ns, o,
			       &(struct owned_sink){ c, owned_trying, owned_done });
	if (!c->owned)
		go_on(c);
}

static void on_never(void *arg)
{
	struct create *c = arg;

	c->fail = NULL;
	finish(c, ASK_REFUSED, "", "it is to be deleted");
}

bool create_leave(struct asks *a, const struct pod_ref *ref, int64_t grace_us)
{
	const char *ns = ref->namespace_ && *ref->namespace_ ? ref->namespace_ : a->namespace_;
	struct create *c = find(a, ns, ref->name);

	if (!c)
		return false;
	c->leave = true;
	c->grace_us = grace_us;
	if (c->post) {
		post_abandon(c->post);
	} else if (!c->fail) {
		/* Nothing was sent for it yet. */
		owned_cancel(c->owned);
		c->owned = NULL;
		if (c->waits_for)
			TAILQ_REMOVE(&c->waits_for->waiting, c, wait);
		c->waits_for = NULL;
		c->fail = loop_after(a->loop, 0, on_never, c);
	}
	return true;
}

void create_shown(struct asks *a, const struct pod_fact *f)
{
	struct create *c = find(a, f->namespace_, f->name);

	if (!c || !c->post || c->uid || strcmp(c->token, f->token) != 0)
		return;
	c->uid = strdup(f->uid);
	if (!c->uid)
		abort();
	post_made(c->post);
}

void create_free_all(struct asks *a)
{
	struct create *c, *next;

	HASH_ITER(hh, a->creates, c, next)
		free_create(c);
}
