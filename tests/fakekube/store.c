#include "store.h"

#include <string.h>

#define LISTENERS_MAX 16

static struct {
	uint64_t rv;
	uint64_t oldest; /* every change after this one is in the ring */
	struct event *ring;
	size_t cap;
	struct obj *by_uid;
	store_event_fn on_event[LISTENERS_MAX];
	store_reset_fn on_reset[LISTENERS_MAX];
	size_t n_listeners;
	bool telling;
} st;

void store_init(size_t history)
{
	st.cap = history;
	st.ring = xcalloc(history, sizeof(*st.ring));
	st.rv = st.oldest = 1;
}

void store_listen(store_event_fn on_event, store_reset_fn on_reset)
{
	if (st.n_listeners == LISTENERS_MAX)
		abort();
	st.on_event[st.n_listeners] = on_event;
	st.on_reset[st.n_listeners++] = on_reset;
}

uint64_t store_rv(void)
{
	return st.rv;
}

uint64_t store_next_rv(void)
{
	return st.rv + 1;
}

uint64_t store_oldest_rv(void)
{
	return st.oldest;
}

static struct event *slot(uint64_t rv)
{
	return &st.ring[rv % st.cap];
}

const struct event *store_event(uint64_t rv)
{
	return slot(rv);
}

static size_t make_key(char *key, size_t size, struct kind *kind, const char *ns, const char *name)
{
	const int n = kind->namespaced ? snprintf(key, size, "%s/%s", ns, name)
				       : snprintf(key, size, "%s", name);

	return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

struct obj *store_find(struct kind *kind, const char *ns, const char *name)
{
	char key[640];
	const size_t len = make_key(key, sizeof(key), kind, ns, name);
	struct obj *o = NULL;

	if (len)
		HASH_FIND(hh, kind->objs, key, len, o);
	return o;
}

struct obj *store_by_uid(const char *uid)
{
	struct obj *o;

	HASH_FIND(hh_uid, st.by_uid, uid, strlen(uid), o);
	return o;
}

size_t store_count(const struct kind *kind)
{
	return HASH_COUNT(kind->objs);
}

static struct obj *obj_link(struct version *v)
{
	const struct facts *f = v->facts;
	const size_t size = strlen(f->ns) + strlen(f->name) + 2;
	struct obj *o = xcalloc(1, sizeof(*o) + size);
	const size_t len = make_key(o->key, size, v->kind, f->ns, f->name);

	o->v = v;
	HASH_ADD_KEYPTR(hh, v->kind->objs, o->key, len, o);
	HASH_ADD_KEYPTR(hh_uid, st.by_uid, f->uid, strlen(f->uid), o);
	return o;
}

/* The uid's index points into the facts: a new version brings a new place. */
static void obj_swap(struct obj *o, struct version *v)
{
	if (o->v->facts != v->facts) {
		HASH_DELETE(hh_uid, st.by_uid, o);
		HASH_ADD_KEYPTR(hh_uid, st.by_uid, v->facts->uid, strlen(v->facts->uid), o);
	}
	version_unref(o->v);
	o->v = v;
}

static void obj_unlink(struct obj *o)
{
	HASH_DELETE(hh, o->v->kind->objs, o);
	HASH_DELETE(hh_uid, st.by_uid, o);
	version_unref(o->v);
	free(o);
}

/* Takes over the references. */
static void record(enum event_type type, struct version *cur, struct version *prev)
{
	struct event *e;

	if (cur->rv != st.rv + 1 || st.telling)
		abort(); /* a write inside a listener, or a version made too early */
	st.rv++;
	e = slot(st.rv);
	version_unref(e->cur);
	version_unref(e->prev);
	*e = (struct event){ type, cur, prev };
	if (st.rv - st.oldest > st.cap)
		st.oldest = st.rv - st.cap;
	st.telling = true;
	for (size_t i = 0; i < st.n_listeners; i++)
		st.on_event[i](e);
	st.telling = false;
}

struct obj *store_add(struct version *v)
{
	struct obj *o = obj_link(v);

	record(EVENT_ADDED, version_ref(v), NULL);
	return o;
}

void store_update(struct obj *o, struct version *v)
{
	struct version *prev = version_ref(o->v);

	obj_swap(o, v);
	record(EVENT_MODIFIED, version_ref(v), prev);
}

void store_remove(struct obj *o)
{
	static const struct version_edit no_edit;
	struct version *prev = version_ref(o->v);
	struct version *last = version_edit(prev, st.rv + 1, &no_edit);

	obj_unlink(o);
	record(EVENT_DELETED, last, prev);
}

void store_compact(uint64_t rv)
{
	if (rv > st.rv)
		rv = st.rv;
	for (uint64_t i = st.oldest + 1; i <= rv; i++) {
		struct event *e = slot(i);

		version_unref(e->cur);
		version_unref(e->prev);
		*e = (struct event){ 0 };
	}
	if (rv > st.oldest)
		st.oldest = rv;
}

void store_reset(void)
{
	for (size_t i = 0; i < st.n_listeners; i++) {
		if (st.on_reset[i])
			st.on_reset[i]();
	}
}

int store_rewind(uint64_t rv)
{
	if (rv < st.oldest || rv > st.rv)
		return -1;
	for (; st.rv > rv; st.rv--) {
		struct event *e = slot(st.rv);
		const struct version *key = e->cur;
		struct obj *o = store_find(key->kind, key->facts->ns, key->facts->name);

		switch (e->type) {
		case EVENT_ADDED:
			obj_unlink(o);
			break;
		case EVENT_MODIFIED:
			obj_swap(o, version_ref(e->prev));
			break;
		case EVENT_DELETED:
			obj_link(version_ref(e->prev));
			break;
		}
		version_unref(e->cur);
		version_unref(e->prev);
		*e = (struct event){ 0 };
	}
	/* A restored apiserver starts with no history. */
	store_compact(rv);
	store_reset();
	return 0;
}

void store_load(struct version *v)
{
	obj_link(v);
}

void store_set_rv(uint64_t rv)
{
	st.rv = st.oldest = rv;
}

void store_done(void)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		struct obj *o, *tmp;

		HASH_ITER(hh, kinds[i].objs, o, tmp)
			obj_unlink(o);
	}
	store_compact(st.rv);
	free(st.ring);
}
