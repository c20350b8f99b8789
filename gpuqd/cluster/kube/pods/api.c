#include "gpuqd/cluster/kube/pods/api_int.h"
#include "gpuqd/cluster/kube/pods/api_lock.h"
#include "gpuqd/cluster/kube/pods/api_turn.h"
#include "gpuqd/cluster/kube/pods/api_bind.h"
#include "gpuqd/cluster/kube/pods/api_remove.h"
#include "gpuqd/cluster/kube/pods/api_create.h"
#include "gpuqd/cluster/kube/pods/refused.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/pods/podspec.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/room.h"

#define SECOND_US INT64_C(1000000)
#define BURST_US SECOND_US /* creates of one second may go at once */

struct made {
	UT_hash_handle hh;
	struct made_key key;
	bool script, service;
};

/* Objects of a job that are being removed. */
struct rest {
	UT_hash_handle hh;
	struct made_key key;
	struct asks *asks;
	struct loop_timer *begun; /* counts as one that is waited for */
	unsigned waiting;
	bool failed;
};

int asks_new(struct loop *l, struct http *h, const char *namespace_, const char *cluster_id,
	     int64_t creates_per_s, const struct cluster_sink *sink, struct asks **out,
	     struct gpuq_err *err)
{
	struct asks *a = calloc(1, sizeof(*a));

	if (!a)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	a->loop = l;
	a->http = h;
	a->namespace_ = namespace_;
	a->cluster_id = cluster_id;
	a->sink = sink;
	a->rooms = rooms_new();
	a->plugin_us = a->lock_us = a->turn_us = INT64_MAX / 4;
	a->gap_us = creates_per_s > 0 ? SECOND_US / creates_per_s : 0;
	*out = a;
	return 0;
}

void asks_plugin_times(struct asks *a, int64_t plugin_us, int64_t lock_us, int64_t turn_us)
{
	a->turn_us = turn_us;
	a->plugin_us = plugin_us;
	a->lock_us = lock_us;
}

void asks_free(struct asks *a)
{
	struct made *m, *next;
	struct rest *r, *next_rest;

	if (!a)
		return;
	create_free_all(a);
	removal_free_all(a);
	beside_free_all(a);
	turn_free_all(a);
	lock_free_all(a);
	refused_free_all(a);
	bindings_free_all(a);
	rooms_free(a->rooms);
	HASH_ITER(hh, a->rests, r, next_rest) {
		HASH_DEL(a->rests, r);
		loop_cancel(r->begun);
		free(r);
	}
	HASH_ITER(hh, a->made, m, next) {
		HASH_DEL(a->made, m);
		free(m);
	}
	free(a);
}

int64_t asks_pause_us(const struct asks *a)
{
	int64_t left = a->pause_us - loop_mono_us(a->loop);

	/* Not all in the same moment afterwards. */
	return left > 0 ? left + random_between(0, SECOND_US / 2) : 0;
}

void asks_paused(struct asks *a, const struct http_answer *answer)
{
	int64_t until;

	if (answer->status != 429 && !(answer->status == 503 && answer->retry_us))
		return;
	until = loop_mono_us(a->loop) + (answer->retry_us ? answer->retry_us : SECOND_US);
	if (until > a->pause_us)
		a->pause_us = until;
}

int64_t asks_turn_us(struct asks *a)
{
	int64_t now = loop_mono_us(a->loop), wait;

	if (!a->gap_us)
		return 0;
	if (a->next_us < now - BURST_US)
		a->next_us = now - BURST_US;
	a->next_us += a->gap_us;
	wait = a->next_us - now;
	return wait > 0 ? wait : 0;
}

static struct made *find(struct asks *a, const struct made_key *key)
{
	struct made *m;

	HASH_FIND(hh, a->made, key, sizeof(*key), m);
	return m;
}

void made_note(struct asks *a, uint32_t job, int64_t array_index, bool script, bool service,
	       bool earlier)
{
	struct made_key key = { .job = job, .array_index = array_index };
	struct made *m = find(a, &key);

	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			abort();
		m->key = key;
		m->script = m->service = earlier;
		HASH_ADD(hh, a->made, key, sizeof(m->key), m);
	}
	m->script |= script;
	m->service |= service;
}

/* An object that could not be removed is retried by the next process. */
void rest_done(struct rest *r, bool gone)
{
	struct asks *a = r->asks;
	struct made_key key = r->key;
	bool failed = r->failed |= !gone;

	if (--r->waiting > 0)
		return;
	HASH_DEL(a->rests, r);
	free(r);
	if (!failed)
		a->sink->job_forgotten(a->sink->arg, (uint32_t)key.job, key.array_index);
}

static void on_begun(void *arg)
{
	struct rest *r = arg;

	r->begun = NULL;
	rest_done(r, true);
}

static void remove_beside(struct rest *r, const char *namespace_, const char *plural,
			  const char *name)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;

	url_object(&path, namespace_, plural, name);
	r->waiting++;
	if (!beside_forget(r->asks, gpuq_buf_str(&path), r))
		removal_path(r->asks, gpuq_buf_str(&path), r);
	gpuq_buf_done(&path);
}

/* The script belongs to all elements of an array, so it goes with the array. A job
 * that another process started is asked for both: it may have had them. */
void asks_job_forget(struct asks *a, uint32_t job, int64_t array_index, const char *namespace_)
{
	struct made_key key = { .job = job, .array_index = array_index };
	struct made *m = find(a, &key);
	const char *ns = namespace_ && *namespace_ ? namespace_ : a->namespace_;
	char name[PODSPEC_NAME_ROOM];
	struct rest *r;

	HASH_FIND(hh, a->rests, &key, sizeof(key), r);
	if (r) /* asked again: it is being seen to */
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		abort();
	r->key = key;
	r->asks = a;
	r->waiting = 1;
	r->begun = loop_after(a->loop, 0, on_begun, r);
	HASH_ADD(hh, a->rests, key, sizeof(r->key), r);
	if (!m || m->service) {
		podspec_service_name(a->cluster_id, job, array_index, name);
		remove_beside(r, ns, "services", name);
	}
	if (array_index < 0 && (!m || m->script)) {
		podspec_script_name(a->cluster_id, job, name);
		remove_beside(r, ns, "configmaps", name);
	}
	if (m) {
		HASH_DEL(a->made, m);
		free(m);
	}
}

/* Note what it holds of devices that a plugin chooses, before what waits for it goes on. True if it has left some. */
static bool note_room(struct asks *a, const struct pod_fact *f, bool gone, const char *name)
{
	const int64_t each = f->n_devices ? f->gpus_milli / (int64_t)f->n_devices : 0;

	if (gone || f->phase == POD_SUCCEEDED || f->phase == POD_FAILED)
		return rooms_leave(a->rooms, name);
	if (f->chosen && f->n_devices && *f->node)
		rooms_hold(a->rooms, name, f->node, f->devices, f->n_devices, each,
			   f->device_bytes >> 20);
	return false;
}

static void note_turn(struct asks *a, const struct pod_fact *f, bool gone, int64_t units,
		      const char *name, bool theirs)
{
	if (gone || f->phase != POD_PENDING || !f->unserved)
		turn_over(a, name, !gone && !f->unserved);
	else if (*f->node)
		turn_seen(a, f->node, units, f->namespace_, name, theirs);
}

void asks_shown(struct asks *a, const struct pod_fact *f, bool gone)
{
	const bool left = note_room(a, f, gone, f->name);

	create_shown(a, f);
	note_turn(a, f, gone, f->unserved, f->name, false);
	if (left)
		creates_go_on(a);
}

void asks_shown_foreign(struct asks *a, const struct pod_fact *f, bool gone)
{
	char name[600];
	bool left;

	/* No pod of ours has such a name. */
	snprintf(name, sizeof(name), "%s/%s", f->namespace_, f->name);
	left = note_room(a, f, gone, name);
	if (f->unserved || a->turns)
		note_turn(a, f, gone, f->unserved < 0 ? UNSERVED_NODE : f->unserved, name, true);
	if (left)
		creates_go_on(a);
}

void asks_listed(struct asks *a)
{
	a->listed = true;
	creates_go_on(a);
}

void asks_shown_node(struct asks *a, const struct node_fact *n)
{
	if (n->lock)
		lock_left(a, n->name, n->lock);
}
