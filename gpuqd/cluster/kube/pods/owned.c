#include "gpuqd/cluster/kube/pods/owned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/pods/label.h"
#include "gpuqd/cluster/kube/pods/mounts.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define AGAIN_US INT64_C(2000000)

struct thing {
	struct thing *next;
	enum mount_kind kind;
	char name[];
};

struct owned {
	struct loop *loop;
	struct http *http;
	struct owned_sink sink;
	const struct site_walls *walls; /* while it begins */
	struct http_req *req;
	struct loop_timer *again;
	struct thing *things; /* that are left; the first is being looked up */
	bool told;
	char owner[LABEL_ROOM], user[128], namespace_[64];
};

static const char *const plurals[N_MOUNT_KINDS] = { "secrets", "configmaps",
						    "persistentvolumeclaims" };
static const char *const words[N_MOUNT_KINDS] = { "Secret", "ConfigMap", "PersistentVolumeClaim" };
/* Folder of the manifests that has the right. */
static const char *const rights[N_MOUNT_KINDS] = { "optional/secrets.yaml", "base", "base" };

static void look(struct owned *w);

static void drop_first(struct owned *w)
{
	struct thing *t = w->things;

	w->things = t->next;
	free(t);
}

void owned_cancel(struct owned *w)
{
	if (!w)
		return;
	while (w->things)
		drop_first(w);
	http_cancel(w->req);
	loop_cancel(w->again);
	free(w);
}

static void end(struct owned *w, const char *why)
{
	const struct owned_sink sink = w->sink;

	owned_cancel(w);
	sink.done(sink.arg, why);
}

static void on_again(void *arg)
{
	struct owned *w = arg;

	w->again = NULL;
	look(w);
}

static void later(struct owned *w, const char *why)
{
	w->again = loop_after(w->loop, AGAIN_US, on_again, w);
	if (!w->told)
		w->sink.trying(w->sink.arg, why);
	w->told = true;
}

static bool is_owned(const struct owned *w, const struct http_answer *a)
{
	json_t *o = json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL);
	const char *label = kube_str(kube_path(o, "metadata", "labels"), KUBE_L_USER);
	const bool same = *label && strcmp(label, w->owner) == 0;

	json_decref(o);
	return same;
}

static void answered(void *arg, const struct http_answer *a)
{
	struct owned *w = arg;
	const struct thing *t = w->things;
	char why[480];
	struct status st;

	w->req = NULL;
	status_read(a, &st);
	if (st.kind == STATUS_DONE && is_owned(w, a)) {
		drop_first(w);
		if (w->things)
			look(w);
		else
			end(w, "");
	} else if (st.kind == STATUS_DONE) {
		snprintf(why, sizeof(why),
			 "%s %.128s: not of user %.64s: %s of this queue need the label %s=%s",
			 words[t->kind], t->name, w->user, mounts_key(t->kind), KUBE_L_USER,
			 w->owner);
		end(w, why);
	} else if (st.kind == STATUS_FORBIDDEN) {
		snprintf(
			why, sizeof(why),
			"%s %.128s: gpuqd has no right to read its owner, and %s of this queue are "
			"`owner`; the right is in etc/kubernetes/%s",
			words[t->kind], t->name, mounts_key(t->kind), rights[t->kind]);
		end(w, why);
	} else {
		snprintf(why, sizeof(why), "%s %.128s: %.256s", words[t->kind], t->name, st.text);
		later(w, why);
	}
}

static void look(struct owned *w)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .metadata = true, .on_end = answered, .arg = w };

	url_object(&path, w->namespace_, plurals[w->things->kind], w->things->name);
	call.path = gpuq_buf_str(&path);
	w->req = http_start(w->http, &call);
	gpuq_buf_done(&path);
}

static int note(void *arg, enum mount_kind kind, const char *name, const char *path)
{
	struct owned *w = arg;
	struct thing *t = w->things;

	(void)path;
	while (t && (t->kind != kind || strcmp(t->name, name) != 0))
		t = t->next;
	if (t || mounts_rule(w->walls, kind)->kind != WALL_OWNER)
		return 0;
	t = calloc(1, sizeof(*t) + strlen(name) + 1);
	if (!t)
		abort(); /* left out, it would be mounted unseen */
	t->kind = kind;
	memcpy(t->name, name, strlen(name) + 1);
	t->next = w->things;
	w->things = t;
	return 0;
}

struct owned *owned_start(struct loop *l, struct http *h, const char *namespace_,
			  const struct pod_order *o, const struct owned_sink *sink)
{
	struct owned *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->walls = &o->walls;
	if (o->group < o->spec->n_groups)
		mounts_each(&o->spec->groups[o->group], note, w);
	w->walls = NULL;
	if (!w->things) {
		free(w);
		return NULL;
	}
	w->loop = l;
	w->http = h;
	w->sink = *sink;
	snprintf(w->namespace_, sizeof(w->namespace_), "%s", namespace_);
	snprintf(w->user, sizeof(w->user), "%s", o->user);
	label_value(o->user, w->owner);
	look(w);
	return w;
}
