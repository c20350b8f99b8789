#include "gpuqd/cluster/kube/pods/api_bind.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/claims/claim_body.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/adopt/gate.h"
#include "gpuqd/cluster/kube/watch/decode_object.h"

#define CLAIM_BINDING "resourceclaims/binding"
#define STRATEGIC "application/strategic-merge-patch+json"
#define MERGE "application/merge-patch+json"
#define FORBIDDEN_US                                                                               \
	(60 * INT64_C(1000000)) /* a right that lacks is tried no more often, as in watch.c */

/* A write whose outcome is seen in the object. */
struct asks_write {
	const char *method, *content_type; /* of static words */
	const char *key; /* one of a key is under way at a time; the next is asked for again */
	const char *path;
	json_t *body; /* taken over */
	const char *pod; /* that waits for it; "" none */
	const char *claim; /* the resource of a claim of devices, a static word; NULL = of none */
	const struct pod_ref *
		gated; /* the pod waits behind gpuqd's gate, which is opened first; NULL = it does not */
};

/* The way to a pod behind the gate: it is read, the gate opened, the pod bound. */
enum gate_step { GATE_NONE, GATE_READ, GATE_OPEN };

struct binding {
	UT_hash_handle hh;
	struct asks *asks;
	const char *method, *content_type; /* of static words */
	char *key, *path, *body, *pod;
	const char *claim; /* as in struct asks_write */
	enum gate_step gate; /* the next one; NONE = the write itself */
	char *gated, *uid, *node; /* path of the pod; NULL = it has no gate */
	json_t *opening;
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
};

static void go(struct binding *b);

static void free_binding(struct binding *b)
{
	HASH_DEL(b->asks->bindings, b);
	http_cancel(b->req);
	loop_cancel(b->timer);
	free(b->key);
	free(b->path);
	free(b->body);
	free(b->pod);
	free(b->gated);
	free(b->uid);
	free(b->node);
	json_decref(b->opening);
	free(b);
}

static void on_timer(void *arg)
{
	struct binding *b = arg;

	b->timer = NULL;
	go(b);
}

static void on_allowed(void *arg)
{
	struct asks *a = arg;

	a->bind_again = NULL;
	a->sink->objects_known(a->sink->arg, OBJECT_BINDING, true, NULL);
}

/* Without the right, jobs that need it wait in their queue, and one tries now and then. */
static void forbidden(struct asks *a, const char *why)
{
	if (a->bind_again || !a->sink->objects_known)
		return;
	log_warn("kube.bind_off",
		 "error=%s: jobs whose pods have to be bound wait (see gpuq doctor)", LOGS(why));
	a->sink->objects_known(a->sink->arg, OBJECT_BINDING, false, why);
	a->bind_again = loop_after(a->loop, FORBIDDEN_US, on_allowed, a);
}

static void on_claims_allowed(void *arg)
{
	struct asks *a = arg;

	a->claim_again = NULL;
	a->sink->objects_known(a->sink->arg, OBJECT_ALLOCATING, true, NULL);
}

/* As forbidden(), of claims of devices. */
static void claims_forbidden(struct asks *a, const char *resource, const char *why)
{
	if (a->claim_again || !a->sink->objects_known)
		return;
	log_warn("kube.claims_off",
		 "resource=%s error=%s: jobs with claims of devices wait (see gpuq doctor)",
		 resource, LOGS(why));
	a->sink->objects_known(a->sink->arg, OBJECT_ALLOCATING, false, why);
	a->claim_again = loop_after(a->loop, FORBIDDEN_US, on_claims_allowed, a);
}

static void refused(struct binding *b, int status, const char *why)
{
	const struct cluster_sink *sink = b->asks->sink;
	struct asks *a = b->asks;
	const char *claim = b->claim;
	char *pod = b->pod;

	b->pod = NULL;
	free_binding(b);
	/* From 1.36 on this right is examined with the object. */
	if (claim && status == 422 && strstr(why, CLAIM_BINDING) && strstr(why, "permission")) {
		claim = CLAIM_BINDING;
		status = 403;
	}
	if (status == 403 && claim)
		claims_forbidden(a, claim, why);
	else if (status == 403)
		forbidden(a, why);
	if (claim && sink->claim_refused)
		sink->claim_refused(sink->arg, pod, claim, why);
	if (!claim && sink->not_bound)
		sink->not_bound(sink->arg, pod, why);
	free(pod);
}

/* Take the pod as it is, and go to the next step; false: it is another of that name. */
static bool pass_gate(struct binding *b, const struct http_answer *answer)
{
	json_t *pod =
		answer->complete ? json_loadb(answer->body, answer->n, JSON_ALLOW_NUL, NULL) : NULL;
	const bool same = strcmp(kube_str(json_object_get(pod, "metadata"), "uid"), b->uid) == 0;

	if (b->gate == GATE_READ && same && gate_is_closed(pod)) {
		json_decref(b->opening);
		b->opening = gate_opening(pod, b->node);
		b->gate = GATE_OPEN;
	} else {
		b->gate = GATE_NONE;
	}
	json_decref(pod);
	return same;
}

static void on_end(void *arg, const struct http_answer *answer)
{
	struct binding *b = arg;
	struct status st;

	if (b->gate == GATE_OPEN)
		(void)FAILPOINT("kube.gate.answered");
	else if (b->gate == GATE_READ)
		;
	else if (b->claim)
		(void)FAILPOINT("kube.claim.answered");
	else
		(void)FAILPOINT("kube.bind.answered");
	b->req = NULL;
	asks_paused(b->asks, answer);
	status_read(answer, &st);
	if (b->gate != GATE_NONE && st.kind == STATUS_DONE) {
		if (pass_gate(b, answer))
			go(b);
		else
			free_binding(b);
		return;
	}
	if (b->gate == GATE_OPEN)
		b->gate = GATE_READ; /* it may be open, or the pod another */
	switch (st.kind == STATUS_CONFLICT && b->gate != GATE_NONE ? STATUS_LATER : st.kind) {
	case STATUS_LATER:
	case STATUS_UNKNOWN:
	case STATUS_EXPIRED: {
		int64_t wait_us = backoff_next_us(&b->back, ASK_FIRST_US, ASK_MAX_US);

		if (wait_us < answer->retry_us)
			wait_us = answer->retry_us;
		b->timer = loop_after(b->asks->loop, wait_us, on_timer, b);
		break;
	}
	case STATUS_FORBIDDEN:
	case STATUS_QUOTA:
	case STATUS_CLUSTER:
	case STATUS_REFUSED:
		refused(b, answer->status, st.text);
		break;
	default: /* done; or it is gone, or has a node already: the watch reports it */
		free_binding(b);
	}
}

/* Send a step on the way to the pod. */
static void send_gate(struct binding *b)
{
	const bool opens = b->gate == GATE_OPEN;
	char *text = opens && b->opening ? json_dumps(b->opening, JSON_COMPACT) : NULL;
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = opens ? "PATCH" : "GET",
				  .body = text,
				  .n_body = text ? strlen(text) : 0,
				  .content_type = opens ? MERGE : NULL,
				  .on_end = on_end,
				  .arg = b };

	if (opens && !text)
		abort(); /* as loop_after() */
	if (opens)
		(void)FAILPOINT("kube.gate");
	gpuq_buf_printf(&path, "%s%s", b->gated, opens ? "?fieldManager=gpuqd" : "");
	call.path = gpuq_buf_str(&path);
	b->req = http_start(b->asks->http, &call);
	gpuq_buf_done(&path);
	free(text);
}

static void go(struct binding *b)
{
	const struct http_call call = { .method = b->method,
					.path = b->path,
					.body = b->body,
					.n_body = strlen(b->body),
					.content_type = b->content_type,
					.on_end = on_end,
					.arg = b };
	const int64_t wait_us = asks_pause_us(b->asks);

	if (wait_us > 0) {
		b->timer = loop_after(b->asks->loop, wait_us, on_timer, b);
		return;
	}
	if (b->gate != GATE_NONE) {
		send_gate(b);
		return;
	}
	if (!b->claim)
		(void)FAILPOINT("kube.bind");
	b->req = http_start(b->asks->http, &call);
}

static const char *namespace_of(const struct asks *a, const char *namespace_)
{
	return namespace_ && *namespace_ ? namespace_ : a->namespace_;
}

static void behind_gate(struct binding *b, const struct pod_ref *ref)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;

	url_object(&path, namespace_of(b->asks, ref->namespace_), "pods", ref->name);
	b->gate = GATE_READ;
	b->gated = strdup(gpuq_buf_str(&path));
	b->uid = strdup(ref->uid);
	b->node = strdup(ref->node);
	if (!b->gated || !b->uid || !b->node)
		abort();
	gpuq_buf_done(&path);
}

static void asks_write(struct asks *a, const struct asks_write *w)
{
	struct binding *b = NULL;

	HASH_FIND_STR(a->bindings, w->key, b);
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			abort(); /* as loop_after() */
		b->asks = a;
		b->method = w->method;
		b->content_type = w->content_type;
		b->claim = w->claim;
		b->key = strdup(w->key);
		b->path = strdup(w->path);
		b->body = json_dumps(w->body, JSON_COMPACT);
		b->pod = strdup(w->pod);
		if (!b->key || !b->path || !b->body || !b->pod)
			abort();
		if (w->gated)
			behind_gate(b, w->gated);
		HASH_ADD_KEYPTR(hh, a->bindings, b->key, strlen(b->key), b);
		go(b);
	} /* else it is being seen to; asked again, if that was for another node */
	json_decref(w->body);
}

/* Write to a volume claim of the pod. Takes the body over. */
static void claim_patch(struct asks *a, const struct pod_ref *ref, const char *claim, json_t *body)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct asks_write w;

	url_object(&path, namespace_of(a, ref->namespace_), "persistentvolumeclaims", claim);
	gpuq_buf_adds(&path, "?fieldManager=gpuqd");
	w = (struct asks_write){ .method = "PATCH",
				 .content_type = MERGE,
				 .key = gpuq_buf_str(&path),
				 .path = gpuq_buf_str(&path),
				 .body = body,
				 .pod = pod_ref_as(ref) };
	asks_write(a, &w);
	gpuq_buf_done(&path);
}

void asks_claim_select(struct asks *a, const struct pod_ref *ref, const char *claim)
{
	claim_patch(a, ref, claim,
		    json_pack("{s:{s:{s:s}}}", "metadata", "annotations", KUBE_A_SELECTED_NODE,
			      ref->node));
}

/* It may be written once, while the claim is unbound: the volume controller does the rest. */
void asks_claim_volume(struct asks *a, const struct pod_ref *ref, const char *claim,
		       const char *volume)
{
	claim_patch(a, ref, claim, json_pack("{s:{s:s}}", "spec", "volumeName", volume));
}

void asks_bind(struct asks *a, const struct pod_ref *ref)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct asks_write w;

	url_object(&path, namespace_of(a, ref->namespace_), "pods", ref->name);
	gpuq_buf_adds(&path, "/binding?fieldManager=gpuqd");
	w = (struct asks_write){ .method = "POST",
				 .key = gpuq_buf_str(&path),
				 .path = gpuq_buf_str(&path),
				 .pod = pod_ref_as(ref),
				 .gated = ref->gated ? ref : NULL };
	/* The uid: never another pod that has the name by now. */
	w.body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "apiVersion", "v1",
			   "kind", "Binding", "metadata", "name", ref->name, "uid", ref->uid,
			   "target", "apiVersion", "v1", "kind", "Node", "name", ref->node);
	asks_write(a, &w);
	gpuq_buf_done(&path);
}

static bool is_of_status(enum claim_step step)
{
	return step == CLAIM_ALLOCATE || step == CLAIM_RESERVE || step == CLAIM_RELEASE;
}

static void pass_failpoint(enum claim_step step)
{
	switch (step) {
	case CLAIM_MAKE:
		(void)FAILPOINT("kube.claim.make");
		break;
	case CLAIM_MARK:
		break;
	case CLAIM_ALLOCATE:
	case CLAIM_RESERVE:
		(void)FAILPOINT("kube.claim.allocate");
		break;
	case CLAIM_RELEASE:
		(void)FAILPOINT("kube.claim.release");
		break;
	case CLAIM_DROP:
		(void)FAILPOINT("kube.claim.drop");
		break;
	}
}

void asks_claim(struct asks *a, const char *version, const struct claim_ask *ask)
{
	const bool deletes = ask->step == CLAIM_DROP && !ask->claim->leaving;
	const bool makes = ask->step == CLAIM_MAKE;
	struct asks_write w = { .method = makes     ? "POST"
					  : deletes ? "DELETE"
						    : "PATCH",
				.content_type = makes || deletes ? NULL : STRATEGIC,
				.pod = ask->pod ? ask->pod->name : "",
				.claim = is_of_status(ask->step) ? "resourceclaims/status"
								 : "resourceclaims" };
	struct gpuq_buf path = GPUQ_BUF_INIT, key = GPUQ_BUF_INIT;

	gpuq_buf_printf(&path, "/apis/" CLAIM_GROUP "/%s/namespaces/%s/resourceclaims", version,
			namespace_of(a, ask->namespace_));
	gpuq_buf_printf(&key, "%s/%s %d", gpuq_buf_str(&path), ask->name, ask->step);
	if (!makes) {
		gpuq_buf_addc(&path, '/');
		url_escape(&path, ask->name);
	}
	pass_failpoint(ask->step);
	w.body = claim_body(ask, version, a->cluster_id);
	if (is_of_status(ask->step))
		gpuq_buf_adds(&path, "/status");
	if (!deletes)
		gpuq_buf_adds(&path, "?fieldManager=gpuqd");
	w.path = gpuq_buf_str(&path);
	w.key = gpuq_buf_str(&key);
	if (w.body)
		asks_write(a, &w);
	gpuq_buf_done(&path);
	gpuq_buf_done(&key);
}

void bindings_free_all(struct asks *a)
{
	struct binding *b, *next;

	HASH_ITER(hh, a->bindings, b, next)
		free_binding(b);
	loop_cancel(a->bind_again);
	loop_cancel(a->claim_again);
}
