#include "kubelet.h"
#include "audit.h"
#include "facts.h"
#include "kubelet_admit.h"
#include "kubelet_status.h"
#include "pods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum kpod_state { K_SEEN, K_STARTING, K_RUNNING, K_STOPPING, K_DONE };

struct knode {
	UT_hash_handle hh;
	struct res alloc, used;
	bool present, down;
	char ip[16];
	LIST_HEAD(, kpod) pods;
	char name[];
};

struct kpod {
	UT_hash_handle hh;
	LIST_ENTRY(kpod) link;
	struct knode *node;
	struct facts *facts;
	enum kpod_state state;
	struct event *timer;
	bool charged, rebooted;
	bool unreported; /* the API does not know the state yet */
	int64_t timer_us; /* when the time of this state is over, monotonic */
	char pod_ip[16];
	struct pod_status st;
	char reason[64], message[160];
	char uid[UID_SIZE];
};

static struct {
	struct event_base *base;
	struct event *scan;
	struct knode *nodes;
	struct kpod *pods;
	unsigned n_ips;
} kl;

static void kpod_arm(struct kpod *p, int64_t us)
{
	const struct timeval tv = { us / SECOND_US, us % SECOND_US };

	p->timer_us = mono_us() + us;
	evtimer_add(p->timer, &tv);
}

/* Have a look at the pod in the next turn of the loop. */
static void kpod_kick(struct kpod *p)
{
	event_active(p->timer, EV_TIMEOUT, 0);
}

static struct kpod *kpod_find(const char *uid)
{
	struct kpod *p;

	HASH_FIND_STR(kl.pods, uid, p);
	return p;
}

/* The pod as the API has it, if it is this node's there: a rewind may have
 * taken it back to before it was bound. */
static struct obj *kpod_obj(const struct kpod *p)
{
	struct obj *o = store_by_uid(p->uid);

	return o && strcmp(o->v->facts->pod.node, p->node->name) == 0 ? o : NULL;
}

static void kpod_free(struct kpod *p)
{
	HASH_DEL(kl.pods, p);
	LIST_REMOVE(p, link);
	event_free(p->timer);
	facts_unref(p->facts);
	free(p);
}

static void kpod_charge(struct kpod *p, bool on)
{
	struct res r = p->facts->pod.requests;

	if (p->charged == on)
		return;
	p->charged = on;
	res_set(&r, RES_PODS, 1);
	res_add(&p->node->used, &r, on ? 1 : -1);
}

static void scan_soon(void)
{
	const struct timeval tv = { 0, 0 };

	evtimer_add(kl.scan, &tv);
}

/* Tell the API, and finish a pod that is being deleted. */
static void kpod_report(struct kpod *p)
{
	struct obj *o = kpod_obj(p);
	struct version_edit e = { 0 };
	static struct buf b; /* kept from pod to pod */

	p->unreported = p->node->down && o;
	if (p->unreported || !o || o->v->raw)
		return;
	p->st.pod_ip = p->pod_ip;
	p->st.host_ip = p->node->ip;
	b.len = 0;
	kubelet_status_text(&b, o->v->facts, &p->st);
	e.status = b.s;
	e.status_len = b.len;
	store_update(o, version_edit(o->v, store_next_rv(), &e));
	if (p->state == K_DONE && o->v->deletion_us)
		pods_finish(o);
}

/* The containers are no more. */
static void kpod_stopped(struct kpod *p, enum phase phase, int exit_code, const char *why)
{
	evtimer_del(p->timer);
	p->state = K_DONE;
	p->st.phase = phase;
	p->st.exit_code = exit_code;
	p->st.container_reason = why;
	p->st.ended_us = now_us();
	kpod_charge(p, false);
	audit_run_end(p->facts, phase, exit_code);
}

static void kpod_reject(struct kpod *p, const char *reason)
{
	p->state = K_DONE;
	p->st.phase = PHASE_FAILED;
	snprintf(p->reason, sizeof(p->reason), "%s", reason);
	p->st.reason = p->reason;
	p->st.message = p->message;
	kpod_report(p);
}

static void kpod_admit(struct kpod *p)
{
	const struct play *play = &p->facts->pod.play;
	const char *reason = kubelet_refusal(p->facts, &p->node->alloc, &p->node->used, p->rebooted,
					     p->message, sizeof(p->message));

	if (reason) {
		kpod_reject(p, reason);
		return;
	}
	kpod_charge(p, true);
	p->state = K_STARTING;
	p->timer_us = INT64_MAX;
	if (play->waiting) {
		p->st.phase = PHASE_PENDING;
		p->st.container_reason = play->waiting;
		kpod_report(p);
	} else {
		kpod_arm(p, play->start_us);
	}
}

/* Until the containers end by themselves or their time is up. */
static void arm_end(struct kpod *p, int64_t ran_us)
{
	const struct pod_facts *f = &p->facts->pod;
	int64_t end = f->play.hang ? INT64_MAX : f->play.run_us;

	if (f->deadline_s && f->deadline_s * SECOND_US < end)
		end = f->deadline_s * SECOND_US;
	p->timer_us = INT64_MAX;
	if (end != INT64_MAX)
		kpod_arm(p, end > ran_us ? end - ran_us : 0);
}

static void kpod_run(struct kpod *p, int64_t started_us)
{
	const unsigned n = kl.n_ips++;

	p->state = K_RUNNING;
	p->st.phase = PHASE_RUNNING;
	p->st.started_us = started_us;
	if (!*p->pod_ip)
		snprintf(p->pod_ip, sizeof(p->pod_ip), "10.%u.%u.%u", 128 + n / 62500 % 127,
			 n / 250 % 250, 1 + n % 250);
	audit_run(p->facts);
}

/* Run time is over: by itself or by activeDeadlineSeconds. */
static void kpod_end(struct kpod *p)
{
	const struct pod_facts *f = &p->facts->pod;
	const int64_t ran = now_us() - p->st.started_us;

	if (f->deadline_s && (f->play.hang || f->play.run_us > f->deadline_s * SECOND_US) &&
	    ran + 1000 >= f->deadline_s * SECOND_US) {
		p->st.reason = "DeadlineExceeded";
		p->st.message = "Pod was active on the node longer than the specified deadline";
		kpod_stopped(p, PHASE_FAILED, 137, "Error");
	} else if (f->play.oom) {
		kpod_stopped(p, PHASE_FAILED, 137, "OOMKilled");
	} else if (f->play.oom_child) {
		kpod_stopped(p, PHASE_SUCCEEDED, 0, "OOMKilled");
	} else if (f->play.exit_code) {
		kpod_stopped(p, PHASE_FAILED, f->play.exit_code, "Error");
	} else {
		kpod_stopped(p, PHASE_SUCCEEDED, 0, "Completed");
	}
	kpod_report(p);
}

/* How long the containers take to leave, at most grace_s. */
static void kpod_stop(struct kpod *p, int64_t grace_s)
{
	const struct play *play = &p->facts->pod.play;
	const bool killed = play->slow_exit_us > grace_s * SECOND_US;
	const int64_t wait = killed ? grace_s * SECOND_US : play->slow_exit_us;

	if (p->state == K_STOPPING && mono_us() + wait >= p->timer_us)
		return;
	p->state = K_STOPPING;
	p->st.exit_code = killed ? 137 : play->term_exit_code;
	kpod_arm(p, wait);
}

static void kpod_killed(struct kpod *p)
{
	const int code = p->st.exit_code;

	kpod_stopped(p, code ? PHASE_FAILED : PHASE_SUCCEEDED, code, code ? "Error" : "Completed");
	kpod_report(p);
}

/* The API wants the pod away, or has already forgotten it. */
static void kpod_leave(struct kpod *p, struct obj *o)
{
	switch (p->state) {
	case K_SEEN:
	case K_STARTING:
		kpod_stopped(p, PHASE_FAILED, 137, "ContainerStatusUnknown");
		kpod_report(p);
		break;
	case K_RUNNING:
	case K_STOPPING:
		/* Without an object (deleted by force) the grace is short: the
		 * containers still take the time they take to leave. */
		kpod_stop(p, o ? o->v->deletion_grace_s : p->facts->pod.grace_s);
		break;
	case K_DONE:
		if (p->unreported)
			kpod_report(p);
		else
			pods_finish(o);
		break;
	}
}

/* Advance the pod's state when its time is over. */
static void kpod_next(struct kpod *p)
{
	switch (p->state) {
	case K_STARTING:
		kpod_run(p, now_us());
		arm_end(p, 0);
		kpod_report(p);
		break;
	case K_RUNNING:
		kpod_end(p);
		break;
	case K_STOPPING:
		kpod_killed(p);
		break;
	case K_SEEN:
	case K_DONE:
		break;
	}
}

/* The time of a state is over, or something about the pod has changed. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct kpod *p = arg;
	struct obj *o = kpod_obj(p);
	const bool timed =
		p->state == K_STARTING || p->state == K_RUNNING || p->state == K_STOPPING;
	const bool due = timed && mono_us() >= p->timer_us;
	/* A kubelet that is cut off does not see deletions. */
	const bool leave = !p->node->down && (!o || o->v->deletion_us);

	(void)fd;
	(void)what;
	if (p->state == K_STOPPING && due) {
		kpod_next(p);
	} else if (leave && (p->state != K_DONE || o)) {
		kpod_leave(p, o);
	} else if (p->state == K_SEEN && !p->node->down) {
		kpod_admit(p);
	} else if (due) {
		kpod_next(p);
	} else if (p->unreported && !p->node->down) {
		kpod_report(p);
	}
	if (p->state == K_DONE && !kpod_obj(p)) {
		if (store_by_uid(p->uid))
			scan_soon(); /* it may be another node's by now */
		kpod_free(p);
		return;
	}
	/* A kick takes the timer out: put it back. */
	if (p->state != K_SEEN && p->state != K_DONE && p->timer_us != INT64_MAX &&
	    !evtimer_pending(p->timer, NULL)) {
		const int64_t rest = p->timer_us - mono_us();

		kpod_arm(p, rest > 0 ? rest : 0);
	}
}

static struct knode *knode_get(const char *name)
{
	struct knode *n;

	HASH_FIND_STR(kl.nodes, name, n);
	if (!n) {
		const unsigned i = HASH_COUNT(kl.nodes);

		n = xcalloc(1, sizeof(*n) + strlen(name) + 1);
		strcpy(n->name, name);
		snprintf(n->ip, sizeof(n->ip), "10.%u.%u.%u", 1 + i / 62500 % 100, i / 250 % 250,
			 1 + i % 250);
		LIST_INIT(&n->pods);
		HASH_ADD_STR(kl.nodes, name, n);
	}
	return n;
}

static struct kpod *kpod_new(struct knode *n, const struct version *v)
{
	struct kpod *p = xcalloc(1, sizeof(*p));

	p->node = n;
	p->facts = v->facts;
	p->facts->refs++;
	snprintf(p->uid, sizeof(p->uid), "%s", v->facts->uid);
	p->timer = evtimer_new(kl.base, on_timer, p);
	LIST_INSERT_HEAD(&n->pods, p, link);
	HASH_ADD_STR(kl.pods, uid, p);
	return p;
}

/* A bound pod, new or changed. */
static void see_pod(const struct version *v)
{
	const char *node = v->facts->pod.node;
	struct kpod *p;
	struct knode *n;

	if (!*node || v->raw)
		return;
	p = kpod_find(v->facts->uid);
	if (p) {
		if (v->deletion_us || p->unreported)
			kpod_kick(p);
		return;
	}
	HASH_FIND_STR(kl.nodes, node, n);
	if (!n || !n->present || phase_terminal(v->phase))
		return;
	kpod_kick(kpod_new(n, v));
}

static void node_read(struct knode *n, const struct version *v)
{
	json_t *j = version_json(v), *status = json_object_get(j, "status"), *c;
	const bool was_down = n->down;
	const char *broken;
	struct kpod *p;
	size_t i;

	res_read(&n->alloc, json_object_get(status, "allocatable"));
	/* The plugin of that resource is dead, and the apiserver has not been told. */
	broken = json_string_value(
		json_object_get(json_object_get(json_object_get(j, "metadata"), "annotations"),
				"gpuq.test/broken"));
	if (broken)
		res_set(&n->alloc, res_id(broken), 0);
	n->down = false;
	json_array_foreach(json_object_get(status, "conditions"), i, c)
	{
		const char *type = json_string_value(json_object_get(c, "type"));
		const char *is = json_string_value(json_object_get(c, "status"));

		if (type && is && strcmp(type, "Ready") == 0)
			n->down = strcmp(is, "Unknown") == 0;
	}
	json_decref(j);
	if (was_down && !n->down) {
		LIST_FOREACH(p, &n->pods, link)
			kpod_kick(p);
	}
}

/* The machine is no more, and so is all that ran there. */
static void node_gone(struct knode *n)
{
	struct kpod *p;

	n->present = false;
	LIST_FOREACH(p, &n->pods, link) {
		if (p->state != K_DONE)
			kpod_stopped(p, PHASE_FAILED, 137, "ContainerStatusUnknown");
		p->unreported = true; /* there is no client to tell */
	}
}

static void see_node(const struct event *e)
{
	struct knode *n = knode_get(e->cur->facts->name);

	if (e->type == EVENT_DELETED) {
		node_gone(n);
		return;
	}
	node_read(n, e->cur);
	if (!n->present) {
		n->present = true;
		scan_soon(); /* pods may have been bound to it before */
	}
}

static void on_event(const struct event *e)
{
	struct kpod *p;

	if (e->cur->kind == &kinds[KIND_NODES]) {
		see_node(e);
	} else if (e->cur->kind == &kinds[KIND_PODS] && e->type != EVENT_DELETED) {
		see_pod(e->cur);
	} else if (e->cur->kind == &kinds[KIND_PODS]) {
		p = kpod_find(e->cur->facts->uid);
		if (p)
			kpod_kick(p);
	}
}

static void on_scan(evutil_socket_t fd, short what, void *arg)
{
	struct obj *o, *tmp;

	(void)fd;
	(void)what;
	(void)arg;
	HASH_ITER(hh, kinds[KIND_PODS].objs, o, tmp)
		see_pod(o->v);
}

/* The past changed. Running pods keep running: pods that the API lost are stopped, states that
 * it lost are reported again, and pods that came back after they were gone are new to the
 * kubelet. */
static void on_reset(void)
{
	struct obj *o, *tmp;
	struct knode *n, *ntmp;
	struct kpod *p, *ptmp;

	HASH_ITER(hh, kl.nodes, n, ntmp) {
		const struct obj *node = store_find(&kinds[KIND_NODES], "", n->name);

		if (!node && n->present)
			node_gone(n);
		else if (node)
			node_read(n, node->v);
	}
	HASH_ITER(hh, kinds[KIND_NODES].objs, o, tmp) {
		n = knode_get(o->v->facts->name);
		if (!n->present)
			node_read(n, o->v);
		n->present = true;
	}
	HASH_ITER(hh, kl.pods, p, ptmp) {
		o = kpod_obj(p);
		if (!o || o->v->phase != p->st.phase) {
			p->unreported = p->st.phase != PHASE_NONE;
			kpod_kick(p);
		}
	}
	scan_soon();
}

/* When the status says that the containers started; now if it does not. */
static int64_t started_at(const struct version *v)
{
	json_t *j = version_json(v);
	const char *s =
		json_string_value(json_object_get(json_object_get(j, "status"), "startTime"));
	const int64_t us = s ? time_parse(s) : -1;

	json_decref(j);
	return us > 0 ? us : now_us();
}

void kubelet_resume(void)
{
	struct obj *o, *tmp;

	HASH_ITER(hh, kinds[KIND_PODS].objs, o, tmp) {
		struct knode *n;
		struct kpod *p;

		HASH_FIND_STR(kl.nodes, o->v->facts->pod.node, n);
		if (o->v->phase != PHASE_RUNNING || o->v->raw || !n)
			continue;
		p = kpod_new(n, o->v);
		kpod_charge(p, true);
		strcpy(p->pod_ip, o->v->pod_ip);
		kpod_run(p, started_at(o->v));
		if (o->v->deletion_us)
			kpod_kick(p);
		else
			arm_end(p, now_us() - p->st.started_us);
	}
}

int kubelet_node_reboot(const char *name)
{
	struct knode *n;
	struct kpod *p;

	HASH_FIND_STR(kl.nodes, name, n);
	if (!n || !n->present)
		return -1;
	LIST_FOREACH(p, &n->pods, link) {
		if (p->state == K_DONE || p->state == K_SEEN)
			continue;
		kpod_stopped(p, PHASE_FAILED, 137, "ContainerStatusUnknown");
		p->st = (struct pod_status){ 0 };
		p->state = K_SEEN;
		p->rebooted = true;
		kpod_kick(p);
	}
	return 0;
}

bool kubelet_node_is_down(const char *name)
{
	const struct knode *n;

	HASH_FIND_STR(kl.nodes, name, n);
	return n && n->down;
}

bool kubelet_times(const char *uid, int64_t *started_us, int64_t *ended_us)
{
	const struct kpod *p = kpod_find(uid);

	if (!p)
		return false;
	*started_us = p->st.started_us;
	*ended_us = p->st.ended_us;
	return true;
}

void kubelet_init(struct event_base *base)
{
	kl.base = base;
	kl.scan = evtimer_new(base, on_scan, NULL);
	store_listen(on_event, on_reset);
}

void kubelet_done(void)
{
	struct knode *n, *ntmp;
	struct kpod *p, *tmp;

	HASH_ITER(hh, kl.pods, p, tmp)
		kpod_free(p);
	HASH_ITER(hh, kl.nodes, n, ntmp) {
		HASH_DEL(kl.nodes, n);
		free(n);
	}
	event_free(kl.scan);
}
