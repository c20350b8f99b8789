#include "gc.h"
#include "audit.h"
#include "pods.h"
#include "write.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* Work for later: an object to look at again. Looking twice does no harm, so
 * nothing is ever taken out of the queue early. */
struct chore {
	STAILQ_ENTRY(chore) link;
	int64_t due_us;
	char uid[];
};

STAILQ_HEAD(queue, chore);

/* Which objects name an owner, by the owner's uid. */
struct owner {
	UT_hash_handle hh;
	char **dependents; /* uids */
	size_t n, cap;
	char uid[];
};

static struct {
	struct event_base *base;
	struct event *timer;
	int64_t delay_us, orphan_us;
	struct queue dependents, orphans;
	struct owner *owners;
} gc;

static void arm(void)
{
	int64_t due = INT64_MAX, wait;
	struct timeval tv;

	if (!STAILQ_EMPTY(&gc.dependents))
		due = STAILQ_FIRST(&gc.dependents)->due_us;
	if (!STAILQ_EMPTY(&gc.orphans) && STAILQ_FIRST(&gc.orphans)->due_us < due)
		due = STAILQ_FIRST(&gc.orphans)->due_us;
	if (due == INT64_MAX)
		return;
	wait = due - mono_us();
	if (wait < 1000)
		wait = 1000;
	tv = (struct timeval){ wait / SECOND_US, wait % SECOND_US };
	evtimer_add(gc.timer, &tv);
}

static void queue_add(struct queue *q, const char *uid, int64_t delay_us)
{
	struct chore *c = xmalloc(sizeof(*c) + strlen(uid) + 1);

	c->due_us = mono_us() + delay_us;
	strcpy(c->uid, uid);
	STAILQ_INSERT_TAIL(q, c, link);
	if (!evtimer_pending(gc.timer, NULL))
		arm();
}

static void owner_add(const char *owner_uid, const char *uid)
{
	struct owner *o;

	HASH_FIND_STR(gc.owners, owner_uid, o);
	if (!o) {
		o = xcalloc(1, sizeof(*o) + strlen(owner_uid) + 1);
		strcpy(o->uid, owner_uid);
		HASH_ADD_STR(gc.owners, uid, o);
	}
	if (o->n == o->cap) {
		o->cap = o->cap ? o->cap * 2 : 2;
		o->dependents = xrealloc(o->dependents, o->cap * sizeof(*o->dependents));
	}
	o->dependents[o->n++] = xstrdup(uid);
}

static void owner_free(struct owner *o)
{
	HASH_DEL(gc.owners, o);
	for (size_t i = 0; i < o->n; i++)
		free(o->dependents[i]);
	free(o->dependents);
	free(o);
}

static void add_owners(const struct version *v)
{
	for (size_t i = 0; i < v->facts->n_owners; i++)
		owner_add(v->facts->owners[i], v->facts->uid);
}

static bool same_owners(const struct facts *a, const struct facts *b)
{
	if (a->n_owners != b->n_owners)
		return false;
	for (size_t i = 0; i < a->n_owners; i++) {
		if (strcmp(a->owners[i], b->owners[i]) != 0)
			return false;
	}
	return true;
}

static bool node_missing(const struct version *v)
{
	const char *node = v->facts->pod.node;

	return v->kind == &kinds[KIND_PODS] && node && *node &&
	       !store_find(&kinds[KIND_NODES], "", node);
}

static void orphan_pods(const char *node)
{
	struct obj *o, *tmp;

	HASH_ITER(hh, kinds[KIND_PODS].objs, o, tmp) {
		if (strcmp(o->v->facts->pod.node, node) == 0)
			queue_add(&gc.orphans, o->v->facts->uid, gc.orphan_us);
	}
}

static void owner_gone(const char *uid)
{
	struct owner *o;

	HASH_FIND_STR(gc.owners, uid, o);
	if (!o)
		return;
	for (size_t i = 0; i < o->n; i++)
		queue_add(&gc.dependents, o->dependents[i], gc.delay_us);
	owner_free(o);
}

static void on_event(const struct event *e)
{
	const struct version *v = e->cur;

	if (e->type == EVENT_DELETED) {
		owner_gone(v->facts->uid);
		if (v->kind == &kinds[KIND_NODES])
			orphan_pods(v->facts->name);
		return;
	}
	if (e->prev && e->prev->facts == v->facts)
		return;
	if (!e->prev || !same_owners(e->prev->facts, v->facts))
		add_owners(v);
	/* Bound, or created on, a node that is not there. */
	if (node_missing(v))
		queue_add(&gc.orphans, v->facts->uid, gc.orphan_us);
}

/* The past changed: index anew and look at everything that has an owner. */
static void on_reset(void)
{
	struct owner *owner, *otmp;

	HASH_ITER(hh, gc.owners, owner, otmp)
		owner_free(owner);
	for (size_t i = 0; i < KIND_COUNT; i++) {
		struct obj *o, *tmp;

		HASH_ITER(hh, kinds[i].objs, o, tmp) {
			add_owners(o->v);
			gc_check_owners(o->v);
			if (node_missing(o->v))
				queue_add(&gc.orphans, o->v->facts->uid, gc.orphan_us);
		}
	}
}

static bool owners_gone(const struct version *v)
{
	for (size_t i = 0; i < v->facts->n_owners; i++) {
		if (store_by_uid(v->facts->owners[i]))
			return false;
	}
	return v->facts->n_owners > 0;
}

void gc_check_owners(const struct version *v)
{
	if (owners_gone(v))
		queue_add(&gc.dependents, v->facts->uid, gc.delay_us);
}

static void collect_dependent(struct obj *o)
{
	const struct delete_options opt = { .grace_s = -1 };
	struct version *v = version_ref(o->v);

	if (owners_gone(v) && !v->deletion_us) {
		write_delete_object(o, &opt);
		audit_write("gc", v);
	}
	version_unref(v);
}

/* As the PodGC does with pods of nodes that are gone: fail, then remove by force. */
static void collect_orphan(struct obj *o)
{
	struct version *v = version_ref(o->v);

	if (node_missing(v)) {
		if (!phase_terminal(v->phase))
			pods_add_condition(o, "DisruptionTarget", "DeletionByPodGC",
					   "PodGC: node no longer exists");
		audit_write("podgc", v);
		pods_finish(o);
	}
	version_unref(v);
}

static void run_queue(struct queue *q, void (*collect)(struct obj *o))
{
	const int64_t now = mono_us();
	struct chore *c;

	while ((c = STAILQ_FIRST(q)) && c->due_us <= now) {
		struct obj *o = store_by_uid(c->uid);

		STAILQ_REMOVE_HEAD(q, link);
		if (o)
			collect(o);
		free(c);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	run_queue(&gc.dependents, collect_dependent);
	run_queue(&gc.orphans, collect_orphan);
	arm();
}

/* Content first, asking again until there is none left. */
struct ending {
	struct event *timer;
	char uid[UID_SIZE];
};

static bool namespace_purge(const char *ns)
{
	const struct delete_options opt = { .grace_s = -1 };
	bool empty = true;

	for (size_t i = 0; i < KIND_COUNT; i++) {
		struct obj *o, *tmp;

		HASH_ITER(hh, kinds[i].objs, o, tmp) {
			if (!kinds[i].namespaced || strcmp(o->v->facts->ns, ns) != 0)
				continue;
			if (o->v->deletion_us || !write_delete_object(o, &opt))
				empty = false;
		}
	}
	return empty;
}

static void on_ending(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval tv = { 0, 20 * 1000 };
	struct ending *e = arg;
	struct obj *o = store_by_uid(e->uid);

	(void)fd;
	(void)what;
	if (o && !namespace_purge(o->v->facts->name)) {
		evtimer_add(e->timer, &tv);
		return;
	}
	if (o)
		store_remove(o);
	event_free(e->timer);
	free(e);
}

void gc_delete_namespace(struct obj *o)
{
	const struct timeval tv = { 0, 1000 };
	struct version_edit edit = { .status = "{\"phase\":\"Terminating\"}",
				     .status_len = 23,
				     .deletion_us = now_us() };
	struct ending *e;

	if (o->v->deletion_us)
		return;
	e = xcalloc(1, sizeof(*e));
	strcpy(e->uid, o->v->facts->uid);
	e->timer = evtimer_new(gc.base, on_ending, e);
	evtimer_add(e->timer, &tv);
	store_update(o, version_edit(o->v, store_next_rv(), &edit));
}

void gc_init(struct event_base *base, int64_t delay_us, int64_t orphan_us)
{
	gc.base = base;
	gc.delay_us = delay_us;
	gc.orphan_us = orphan_us;
	STAILQ_INIT(&gc.dependents);
	STAILQ_INIT(&gc.orphans);
	gc.timer = evtimer_new(base, on_timer, NULL);
	store_listen(on_event, on_reset);
}

static void queue_done(struct queue *q)
{
	struct chore *c;

	while ((c = STAILQ_FIRST(q))) {
		STAILQ_REMOVE_HEAD(q, link);
		free(c);
	}
}

void gc_done(void)
{
	struct owner *o, *tmp;

	HASH_ITER(hh, gc.owners, o, tmp)
		owner_free(o);
	queue_done(&gc.dependents);
	queue_done(&gc.orphans);
	event_free(gc.timer);
}
