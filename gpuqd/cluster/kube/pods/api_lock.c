#include <config.h>

#include "gpuqd/cluster/kube/pods/api_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/http/http_node.h"
#include "gpuqd/cluster/kube/pods/api_create.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/devices/hami.h"

#define RETRY_US INT64_C(1000000) /* of a lock that others hold */
#define FORBIDDEN_US INT64_C(30000000)
/* The plugin that has served a pod removes its lock, without looking whose it is by then: until it had time to,
 * no other pod may have it. */
#define RELEASE_US INT64_C(2000000)
#define RELEASES_MAX 8 /* tries; then it grows stale */

struct lock {
	struct lock *next;
	struct asks *asks;
	char *node, *pod, *owner; /* "NAMESPACE,POD" */
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
	bool held, leaving, told;
	unsigned n_releases;
};

static void look(struct lock *l);

static void free_lock(struct lock *l)
{
	struct lock **at = &l->asks->locks;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	http_cancel(l->req);
	loop_cancel(l->timer);
	free(l->node);
	free(l->pod);
	free(l->owner);
	free(l);
}

static void on_timer(void *arg)
{
	struct lock *l = arg;

	l->timer = NULL;
	look(l);
}

static void again(struct lock *l, int64_t wait_us)
{
	if (l->leaving && ++l->n_releases > RELEASES_MAX)
		free_lock(l);
	else
		l->timer = loop_after(l->asks->loop, wait_us, on_timer, l);
}

/* Report once why the pod is not created yet. */
static void tell(struct lock *l, const char *words)
{
	const struct cluster_sink *sink = l->asks->sink;
	char text[400];

	if (l->told || l->leaving)
		return;
	l->told = true;
	snprintf(text, sizeof(text), "node %.100s: %.280s", l->node, words);
	sink->created(sink->arg, l->pod, ASK_RETRY, "", text);
}

/* A request failed: try again later. A change of the node meanwhile is no failure. */
static void failed(struct lock *l, const struct http_answer *answer)
{
	struct status st;

	status_read(answer, &st);
	asks_paused(l->asks, answer);
	if (st.kind == STATUS_CONFLICT) {
		again(l, 0);
	} else if (st.kind == STATUS_FORBIDDEN) {
		if (!l->told)
			log_warn("kube.lock_off",
				 "node=%s error=%s: no pod is created there (see gpuq doctor)",
				 LOGS(l->node), LOGS(st.text));
		tell(l, "gpuqd may not lock it, see etc/kubernetes/optional/hami.yaml");
		again(l, FORBIDDEN_US);
	} else if (st.kind == STATUS_GONE && l->leaving) {
		free_lock(l);
	} else {
		if (st.kind != STATUS_LATER && st.kind != STATUS_UNKNOWN)
			tell(l, st.text);
		again(l, backoff_next_us(&l->back, ASK_FIRST_US, ASK_MAX_US));
	}
}

static void on_written(void *arg, const struct http_answer *answer)
{
	struct lock *l = arg;
	struct status st;

	l->req = NULL;
	status_read(answer, &st);
	if (st.kind != STATUS_DONE) {
		failed(l, answer);
	} else if (l->leaving) {
		free_lock(l);
	} else {
		l->held = true;
		creates_go_on(l->asks);
	}
}

/* Write the lock, or remove it, provided that the node has not changed since it was read. */
static void write_lock(struct lock *l, const char *version)
{
	const time_t now = (time_t)(loop_wall_us(l->asks->loop) / 1000000);
	char text[700], day[32];
	json_t *patch;
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(text, sizeof(text), "%s,%s", day, l->owner);
	patch = l->leaving ? json_pack("{s:{s:s, s:{s:n}}}", "metadata", "resourceVersion", version,
				       "annotations", HAMI_LOCK)
			   : json_pack("{s:{s:s, s:{s:s}}}", "metadata", "resourceVersion", version,
				       "annotations", HAMI_LOCK, text);
	l->req = http_node_patch(l->asks->http, l->node, patch, on_written, l);
}

/* True if the lock may be taken: there is none, it is ours, or older than it may be. One whose time cannot be
 * read is stale. Else *at_us is since when it is held. */
static bool is_free(const struct lock *l, const char *text, int64_t *at_us)
{
	const char *comma = strchr(text, ',');
	char day[64];

	if (!*text || (comma && strcmp(comma + 1, l->owner) == 0))
		return true;
	snprintf(day, sizeof(day), "%.*s", comma ? (int)(comma - text) : 63, text);
	*at_us = kube_time_us(day);
	return *at_us == 0 || loop_wall_us(l->asks->loop) - *at_us >= l->asks->lock_us;
}

/* Say which pod holds it: "TIME,NAMESPACE,POD", or older forms without the last. */
static void tell_wait(const struct lock *l, const char *text, int64_t at_us)
{
	const struct cluster_sink *sink = l->asks->sink;
	const char *holder = strchr(text, ',');
	const char *pod = holder ? strchr(holder + 1, ',') : NULL;
	char namespace_[254] = "";
	struct turn_wait w = { .node = l->node,
			       .namespace_ = namespace_,
			       .pod = pod      ? pod + 1
				      : holder ? holder + 1
					       : "(not named)",
			       .since_us = at_us,
			       .until_us = at_us + l->asks->lock_us,
			       .lock = true };

	if (pod)
		snprintf(namespace_, sizeof(namespace_), "%.*s", (int)(pod - holder - 1),
			 holder + 1);
	if (sink->waits && !l->leaving)
		sink->waits(sink->arg, l->pod, &w);
}

/* True if a pod of ours has the lock or asks for it. but: other than by this one, nor by those that leave it. */
static bool is_wanted(const struct asks *a, const char *node, const char *owner,
		      const struct lock *but)
{
	for (const struct lock *l = a->locks; l; l = l->next)
		if (l != but && (!but || !l->leaving) && strcmp(l->node, node) == 0 &&
		    strcmp(l->owner, owner) == 0)
			return true;
	return false;
}

static void on_read(void *arg, const struct http_answer *answer)
{
	struct lock *l = arg;
	json_t *node = answer->complete ? json_loadb(answer->body, answer->n, 0, NULL) : NULL;
	const json_t *meta = json_object_get(node, "metadata");
	const char *text = kube_str(json_object_get(meta, "annotations"), HAMI_LOCK);
	const char *comma = strchr(text, ',');
	char words[300];
	int64_t at_us;

	l->req = NULL;
	if (answer->status < 200 || answer->status >= 300 || !meta) {
		failed(l, answer);
	} else if (l->leaving && (!(comma && strcmp(comma + 1, l->owner) == 0) ||
				  is_wanted(l->asks, l->node, l->owner, l))) {
		free_lock(l); /* it names another pod by now, or none */
	} else if (l->leaving || is_free(l, text, &at_us)) {
		write_lock(l, kube_str(meta, "resourceVersion"));
	} else {
		snprintf(words, sizeof(words), "locked for %.250s", comma ? comma + 1 : text);
		tell(l, words);
		tell_wait(l, text, at_us);
		again(l, RETRY_US);
	}
	json_decref(node);
}

static void look(struct lock *l)
{
	int64_t wait_us = asks_pause_us(l->asks);

	/* Its pod may be there. */
	if (l->leaving && !l->asks->listed && wait_us < RELEASE_US)
		wait_us = RELEASE_US;
	if (wait_us > 0)
		l->timer = loop_after(l->asks->loop, wait_us, on_timer, l);
	else
		l->req = http_node_read(l->asks->http, l->node, on_read, l);
}

struct lock *lock_assume(struct asks *a, const char *node, const char *namespace_, const char *pod)
{
	struct lock *l = calloc(1, sizeof(*l));

	if (!l)
		abort(); /* as loop_after() */
	l->asks = a;
	l->node = strdup(node);
	l->pod = strdup(pod);
	if (asprintf(&l->owner, "%s,%s", namespace_, pod) < 0 || !l->node || !l->pod)
		abort();
	l->held = true;
	l->next = a->locks;
	a->locks = l;
	return l;
}

struct lock *lock_take(struct asks *a, const char *node, const char *namespace_, const char *pod)
{
	struct lock *l = lock_assume(a, node, namespace_, pod);

	l->held = false;
	look(l);
	return l;
}

void lock_left(struct asks *a, const char *node, const char *text)
{
	const char *owner = strchr(text, ',');
	const char *pod = owner ? strchr(owner + 1, ',') : NULL;
	char namespace_[254];

	if (!pod || (size_t)(pod - owner) > sizeof(namespace_) ||
	    !kube_is_own_name(pod + 1, a->cluster_id) || is_wanted(a, node, owner + 1, NULL))
		return;
	snprintf(namespace_, sizeof(namespace_), "%.*s", (int)(pod - owner - 1), owner + 1);
	lock_release(lock_assume(a, node, namespace_, pod + 1), true);
}

bool lock_is_held(const struct lock *l)
{
	return l->held;
}

void lock_release(struct lock *l, bool served)
{
	if (!l)
		return;
	/* One that is being asked for may be on the node already. */
	http_cancel(l->req);
	loop_cancel(l->timer);
	l->req = NULL;
	l->leaving = true;
	l->timer = served ? loop_after(l->asks->loop, RELEASE_US, on_timer, l) : NULL;
	if (!served)
		look(l);
}

void lock_free_all(struct asks *a)
{
	while (a->locks)
		free_lock(a->locks);
}
