#include "gpuqd/devices/dra/dra.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/devices/dra/dra_cards.h"
#include "gpuqd/devices/dra/dra_copy.h"
#include "gpuqd/devices/dra/dra_weights.h"

/* A list of slices; of few, so that it is searched from its beginning. */
struct list {
	struct slice **items;
	uint32_t n, room;
};

/* The slices of one pool, or of one node. */
struct bundle {
	UT_hash_handle hh;
	struct list slices;
	size_t n_key;
	char key[];
};

struct slice {
	UT_hash_handle hh;
	struct bundle *pool, *node; /* node NULL = they belong to none */
	struct dra_block block;
	const struct dra_slice *is;
};

/* A class, a claim or a template, by its namespace and name. */
struct thing {
	UT_hash_handle hh;
	struct dra_block block;
	size_t n_key;
	char *key;
	union dra_fact is;
};

/* A device that claims are allocated to. */
struct used {
	UT_hash_handle hh;
	const struct thing *by;
	uint32_t n; /* claims; two only after a mistake */
	size_t n_key;
	char key[];
};

struct dra {
	struct slice *slices; /* by name */
	struct bundle *pools, *nodes;
	struct thing *classes, *claims, *templates;
	struct used *used;
	size_t bytes, n_elsewhere;
	size_t n_cut; /* slices whose devices may be parts of cards */
	struct dra_weights *weights;
};

#define KEY_MAX 1024u

/* Join words by NULs; 0 = they are too long for names of Kubernetes. */
static size_t key_of(char key[KEY_MAX], const char *const *words, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t len = strlen(words[i]) + 1;

		if (len > KEY_MAX - at)
			return 0;
		memcpy(key + at, words[i], len);
		at += len;
	}
	return at;
}

#define KEY(key, ...)                                                                              \
	key_of(key, (const char *const[]){ __VA_ARGS__ },                                          \
	       sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

struct dra *dra_new(void)
{
	struct dra *d = calloc(1, sizeof(*d));

	if (d)
		d->weights = calloc(1, sizeof(*d->weights));
	if (d && !d->weights) {
		free(d);
		return NULL;
	}
	return d;
}

struct dra_weights *dra_weights(const struct dra *d)
{
	return d->n_cut ? d->weights : NULL;
}

/* ---- slices ---- */

/* Keep a slice at the end of a list, which grows by doubling. */
static void list_add(struct list *l, struct slice *s)
{
	if (l->n == l->room) {
		const uint32_t room = l->room ? l->room * 2 : 2;
		struct slice **items = realloc(l->items, room * sizeof(struct slice *));

		if (!items)
			abort(); /* all of this is reported anew after a restart */
		l->items = items;
		l->room = room;
	}
	l->items[l->n++] = s;
}

/* Take a slice out of a list; the order of the others stays. */
static void list_drop(struct list *l, const struct slice *s)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->items[i] == s) {
			l->items[i] = l->items[--l->n];
			return;
		}
}

/* Put the slice into the bundle of that key. */
static struct bundle *bundle_join(struct bundle **all, const char *key, size_t n, struct slice *s)
{
	struct bundle *b = NULL;

	HASH_FIND(hh, *all, key, n, b);
	if (!b) {
		b = calloc(1, sizeof(*b) + n);
		if (!b)
			abort();
		memcpy(b->key, key, n);
		b->n_key = n;
		HASH_ADD_KEYPTR(hh, *all, b->key, n, b);
	}
	list_add(&b->slices, s);
	return b;
}

/* Forget that the slice is of this pool, and the pool with its last slice. */
static void bundle_leave(struct bundle **all, struct bundle *b, const struct slice *s)
{
	list_drop(&b->slices, s);
	if (b->slices.n)
		return;
	HASH_DEL(*all, b);
	free(b->slices.items);
	free(b);
}

static struct slice *slice_find(const struct dra *d, const char *name)
{
	struct slice *s = NULL;

	HASH_FIND_STR(d->slices, name, s);
	return s;
}

/* Forget a slice wherever it is listed: of all, of its node, of its pool. */
static void slice_drop(struct dra *d, struct slice *s)
{
	HASH_DEL(d->slices, s);
	d->n_cut -= dra_may_be_part(s->is);
	dra_weights_clear(d->weights);
	bundle_leave(&d->pools, s->pool, s);
	if (s->node)
		bundle_leave(&d->nodes, s->node, s);
	else
		d->n_elsewhere--;
	d->bytes -= s->block.n;
	dra_block_done(&s->block);
	free(s);
}

bool dra_slice_seen(struct dra *d, const struct dra_slice *is)
{
	struct slice *s = slice_find(d, is->name);
	char key[KEY_MAX];
	const size_t n = KEY(key, is->driver, is->pool);

	if (n == 0 || (s && dra_same_slice(s->is, is)) ||
	    (!s && HASH_COUNT(d->slices) >= DRA_SLICES_MAX))
		return false;
	if (s)
		slice_drop(d, s);
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->is = dra_copy_slice(&s->block, is);
	HASH_ADD_KEYPTR(hh, d->slices, s->is->name, strlen(s->is->name), s);
	s->pool = bundle_join(&d->pools, key, n, s);
	if (*is->node)
		s->node = bundle_join(&d->nodes, is->node, strlen(is->node) + 1, s);
	else
		d->n_elsewhere++;
	d->bytes += s->block.n;
	d->n_cut += dra_may_be_part(s->is);
	dra_weights_clear(d->weights);
	return true;
}

bool dra_slice_gone(struct dra *d, const char *name)
{
	struct slice *s = slice_find(d, name);

	if (s)
		slice_drop(d, s);
	return s != NULL;
}

const struct dra_slice *dra_slice(const struct dra *d, const char *name)
{
	const struct slice *s = slice_find(d, name);

	return s ? s->is : NULL;
}

size_t dra_count_slices(const struct dra *d)
{
	return HASH_COUNT(d->slices);
}

size_t dra_bytes(const struct dra *d)
{
	return d->bytes;
}

size_t dra_count_elsewhere(const struct dra *d)
{
	return d->n_elsewhere;
}

void dra_each_node(const struct dra *d, void (*fn)(void *arg, const char *node), void *arg)
{
	for (const struct bundle *b = d->nodes; b; b = b->hh.next)
		fn(arg, b->key);
}

/* ---- classes, claims, templates ---- */

static struct thing *thing_find(struct thing *all, const char *namespace_, const char *name)
{
	char key[KEY_MAX];
	const size_t n = KEY(key, namespace_, name);
	struct thing *t = NULL;

	if (n)
		HASH_FIND(hh, all, key, n, t);
	return t;
}

/* Forget an object with all that it points to, which is one block. */
static void thing_drop(struct thing **all, struct thing *t)
{
	HASH_DEL(*all, t);
	dra_block_done(&t->block);
	free(t->key);
	free(t);
}

/* Add an object by its names; one that is there already is replaced. */
static struct thing *thing_new(struct thing **all, const char *namespace_, const char *name)
{
	char key[KEY_MAX];
	const size_t n = KEY(key, namespace_, name);
	struct thing *t = n ? calloc(1, sizeof(*t)) : NULL;

	if (n == 0)
		return NULL;
	if (t)
		t->key = malloc(n);
	if (!t || !t->key)
		abort();
	memcpy(t->key, key, n);
	t->n_key = n;
	HASH_ADD_KEYPTR(hh, *all, t->key, n, t);
	return t;
}

static bool thing_gone(struct thing **all, const char *namespace_, const char *name)
{
	struct thing *t = thing_find(*all, namespace_, name);

	if (t)
		thing_drop(all, t);
	return t != NULL;
}

bool dra_class_seen(struct dra *d, const struct dra_class *c)
{
	struct thing *t = thing_find(d->classes, "", c->name);

	if (t && dra_same_class(t->is.class_, c))
		return false;
	dra_weights_clear(d->weights);
	if (t)
		thing_drop(&d->classes, t);
	t = thing_new(&d->classes, "", c->name);
	if (t)
		t->is.class_ = dra_copy_class(&t->block, c);
	return t != NULL;
}

bool dra_template_seen(struct dra *d, const struct dra_template *is)
{
	struct thing *t = thing_find(d->templates, is->namespace_, is->name);

	if (t && dra_same_spec(&t->is.template_->spec, &is->spec))
		return false;
	if (t)
		thing_drop(&d->templates, t);
	t = thing_new(&d->templates, is->namespace_, is->name);
	if (t)
		t->is.template_ = dra_copy_template(&t->block, is);
	return t != NULL;
}

static struct used *used_find(const struct dra *d, const char *driver, const char *pool,
			      const char *device, char key[KEY_MAX], size_t *n)
{
	struct used *u = NULL;

	*n = KEY(key, driver, pool, device);
	if (*n)
		HASH_FIND(hh, d->used, key, *n, u);
	return u;
}

/* Note of each device which claim has it: what is in use is asked by device, not by claim. */
static void claim_use(struct dra *d, const struct thing *t)
{
	char key[KEY_MAX];
	size_t n;

	for (uint32_t i = 0; i < t->is.claim->n_results; i++) {
		const struct dra_result *r = &t->is.claim->results[i];
		struct used *u = used_find(d, r->driver, r->pool, r->device, key, &n);

		if (n == 0)
			continue;
		if (!u) {
			u = calloc(1, sizeof(*u) + n);
			if (!u)
				abort();
			memcpy(u->key, key, n);
			u->n_key = n;
			HASH_ADD_KEYPTR(hh, d->used, u->key, n, u);
		}
		u->by = t;
		u->n++;
	}
}

/* True if the claim is allocated to the device. */
static bool has(const struct dra_claim *c, const struct dra_result *r)
{
	for (uint32_t i = 0; i < c->n_results; i++)
		if (strcmp(c->results[i].device, r->device) == 0 &&
		    strcmp(c->results[i].pool, r->pool) == 0 &&
		    strcmp(c->results[i].driver, r->driver) == 0)
			return true;
	return false;
}

/* The reverse of claim_use(), before a claim is replaced or goes. */
static void claim_release(struct dra *d, const struct thing *t)
{
	char key[KEY_MAX];
	size_t n;

	for (uint32_t i = 0; i < t->is.claim->n_results; i++) {
		const struct dra_result *r = &t->is.claim->results[i];
		struct used *u = used_find(d, r->driver, r->pool, r->device, key, &n);

		if (!u)
			continue;
		if (--u->n == 0) {
			HASH_DEL(d->used, u);
			free(u);
			continue;
		}
		for (const struct thing *o = d->claims; u->by == t && o; o = o->hh.next)
			if (o != t && has(o->is.claim, r))
				u->by = o;
	}
}

bool dra_claim_seen(struct dra *d, const struct dra_claim *c)
{
	struct thing *t = thing_find(d->claims, c->namespace_, c->name);

	if (t && strcmp(t->is.claim->version, c->version) == 0 &&
	    strcmp(t->is.claim->uid, c->uid) == 0)
		return false;
	if (t) {
		claim_release(d, t);
		thing_drop(&d->claims, t);
	}
	t = thing_new(&d->claims, c->namespace_, c->name);
	if (!t)
		return false;
	t->is.claim = dra_copy_claim(&t->block, c);
	claim_use(d, t);
	return true;
}

bool dra_claim_gone(struct dra *d, const char *namespace_, const char *name)
{
	struct thing *t = thing_find(d->claims, namespace_, name);

	if (t) {
		claim_release(d, t);
		thing_drop(&d->claims, t);
	}
	return t != NULL;
}

bool dra_class_gone(struct dra *d, const char *name)
{
	dra_weights_clear(d->weights);
	return thing_gone(&d->classes, "", name);
}

bool dra_template_gone(struct dra *d, const char *namespace_, const char *name)
{
	return thing_gone(&d->templates, namespace_, name);
}

const struct dra_class *dra_class(const struct dra *d, const char *name)
{
	const struct thing *t = thing_find(d->classes, "", name);

	return t ? t->is.class_ : NULL;
}

#define CLASS_RESOURCE "deviceclass.resource.kubernetes.io/"

const struct dra_class *dra_class_of_resource(const struct dra *d, const char *resource)
{
	const struct dra_class *found = NULL;

	if (strncmp(resource, CLASS_RESOURCE, sizeof(CLASS_RESOURCE) - 1) == 0)
		return dra_class(d, resource + sizeof(CLASS_RESOURCE) - 1);
	for (const struct thing *t = d->classes; t; t = t->hh.next)
		if (strcmp(t->is.class_->extended, resource) == 0 &&
		    (!found || strcmp(t->is.class_->name, found->name) < 0))
			found = t->is.class_;
	return found;
}

const struct dra_claim *dra_claim(const struct dra *d, const char *namespace_, const char *name)
{
	const struct thing *t = thing_find(d->claims, namespace_, name);

	return t ? t->is.claim : NULL;
}

const struct dra_claim *dra_claim_of(const struct dra *d, const char *pod_uid,
				     const char *pod_claim)
{
	for (const struct thing *t = d->claims; t; t = t->hh.next)
		if (*t->is.claim->owner && strcmp(t->is.claim->owner, pod_uid) == 0 &&
		    strcmp(t->is.claim->pod_claim, pod_claim) == 0)
			return t->is.claim;
	return NULL;
}

const char *dra_claim_node(const struct dra *d, const struct dra_claim *c)
{
	const struct bundle *pool = NULL;
	char key[KEY_MAX];
	size_t n;

	if (*c->node || c->n_results == 0)
		return c->node;
	n = KEY(key, c->results[0].driver, c->results[0].pool);
	if (n)
		HASH_FIND(hh, d->pools, key, n, pool);
	return pool ? pool->slices.items[0]->is->node : "";
}

const struct dra_template *dra_template(const struct dra *d, const char *namespace_,
					const char *name)
{
	const struct thing *t = thing_find(d->templates, namespace_, name);

	return t ? t->is.template_ : NULL;
}

void dra_each_claim(const struct dra *d, bool (*fn)(void *arg, const struct dra_claim *c),
		    void *arg)
{
	for (const struct thing *t = d->claims; t && fn(arg, t->is.claim); t = t->hh.next)
		;
}

void dra_each_class(const struct dra *d, bool (*fn)(void *arg, const struct dra_class *c),
		    void *arg)
{
	for (const struct thing *t = d->classes; t && fn(arg, t->is.class_); t = t->hh.next)
		;
}

/* ---- all of it ---- */

static void clear_things(struct thing **all)
{
	struct thing *t, *next;

	HASH_ITER(hh, *all, t, next)
		thing_drop(all, t);
}

static void clear_slices(struct dra *d)
{
	struct slice *s, *next;

	HASH_ITER(hh, d->slices, s, next)
		slice_drop(d, s);
}

static void clear_claims(struct dra *d)
{
	struct used *u, *next;

	clear_things(&d->claims);
	HASH_ITER(hh, d->used, u, next) {
		HASH_DEL(d->used, u);
		free(u);
	}
}

void dra_clear(struct dra *d, enum dra_kind kind)
{
	switch (kind) {
	case DRA_SLICES:
		clear_slices(d);
		break;
	case DRA_CLASSES:
		clear_things(&d->classes);
		dra_weights_clear(d->weights);
		break;
	case DRA_CLAIMS:
		clear_claims(d);
		break;
	case DRA_TEMPLATES:
		clear_things(&d->templates);
		break;
	}
}

void dra_free(struct dra *d)
{
	if (!d)
		return;
	clear_slices(d);
	clear_claims(d);
	clear_things(&d->classes);
	clear_things(&d->templates);
	dra_weights_clear(d->weights);
	free(d->weights);
	free(d);
}

struct dra *dra_copy(const struct dra *d)
{
	struct dra *to = dra_new();

	if (!to)
		return NULL;
	for (const struct slice *s = d->slices; s; s = s->hh.next)
		dra_slice_seen(to, s->is);
	for (const struct thing *t = d->classes; t; t = t->hh.next)
		dra_class_seen(to, t->is.class_);
	for (const struct thing *t = d->claims; t; t = t->hh.next)
		dra_claim_seen(to, t->is.claim);
	for (const struct thing *t = d->templates; t; t = t->hh.next)
		dra_template_seen(to, t->is.template_);
	return to;
}

/* ---- the devices of a node ---- */

/* True if all slices of the newest generation of the pool are there; *newest is its number. */
static bool is_complete(const struct list *pool, int64_t *newest)
{
	int64_t n = 0, want = -1;

	*newest = INT64_MIN;
	for (uint32_t i = 0; i < pool->n; i++)
		if (pool->items[i]->is->generation > *newest)
			*newest = pool->items[i]->is->generation;
	for (uint32_t i = 0; i < pool->n; i++) {
		const struct dra_slice *s = pool->items[i]->is;

		if (s->generation != *newest)
			continue;
		if (want >= 0 && want != s->n_slices)
			return false;
		want = s->n_slices;
		n++;
	}
	return n == want;
}

static int by_name(const void *x, const void *y)
{
	const struct dra_at *a = x, *b = y;
	int c = strcmp(a->slice->driver, b->slice->driver);

	if (c == 0)
		c = strcmp(a->slice->pool, b->slice->pool);
	/* gpu-2 before gpu-10. */
	if (c == 0 && strlen(a->device->name) != strlen(b->device->name))
		c = strlen(a->device->name) < strlen(b->device->name) ? -1 : 1;
	return c ? c : strcmp(a->device->name, b->device->name);
}

/* Pools have names of their driver alone: two drivers may call theirs alike. */
static bool same_pool(const struct dra_at *x, const struct dra_at *y)
{
	return strcmp(x->slice->driver, y->slice->driver) == 0 &&
	       strcmp(x->slice->pool, y->slice->pool) == 0;
}

/* Leave out pools in which two devices have one name: to all allocators such a pool is invalid. The list
 * is sorted. Returns how many devices are left. */
static size_t leave_invalid(struct dra_at *at, size_t n, struct gpuq_arena *a, const char **odd)
{
	size_t kept = 0;

	for (size_t i = 0, next; i < n; i = next) {
		const char *twice = NULL;

		for (next = i + 1; next < n && same_pool(&at[i], &at[next]); next++)
			if (strcmp(at[next - 1].device->name, at[next].device->name) == 0)
				twice = at[next].device->name;
		if (twice) {
			*odd = gpuq_arena_printf(
				a,
				"pool %.80s of its ResourceSlices has device %.80s "
				"twice",
				at[i].slice->pool, twice);
			if (!*odd)
				*odd = "a pool of its ResourceSlices has a device twice";
			continue;
		}
		memmove(at + kept, at + i, (next - i) * sizeof(*at));
		kept += next - i;
	}
	return kept;
}

size_t dra_node(const struct dra *d, const char *node, struct gpuq_arena *a, struct dra_at **out,
		const char **odd)
{
	const struct bundle *b = NULL;
	size_t n = 0, room = 0, n_key;
	char key[KEY_MAX];
	struct dra_at *at;

	*out = NULL;
	*odd = NULL;
	HASH_FIND(hh, d->nodes, node, strlen(node) + 1, b);
	for (uint32_t i = 0; b && i < b->slices.n; i++)
		room += b->slices.items[i]->is->n_devices;
	if (room == 0)
		return 0;
	at = gpuq_arena_calloc(a, room, sizeof(*at));
	for (uint32_t i = 0; at && i < b->slices.n; i++) {
		const struct slice *s = b->slices.items[i];
		int64_t newest;

		if (!is_complete(&s->pool->slices, &newest)) {
			*odd = "ResourceSlices of its pools are not complete";
			continue;
		}
		for (uint32_t k = 0; s->is->generation == newest && k < s->is->n_devices; k++) {
			const struct dra_device *dev = &s->is->devices[k];
			const struct used *u =
				used_find(d, s->is->driver, s->is->pool, dev->name, key, &n_key);

			at[n++] = (struct dra_at){ s->is, dev, u ? u->by->is.claim : NULL };
		}
	}
	if (n > DRA_NODE_DEVICES_MAX) {
		*odd = gpuq_arena_printf(a,
					 "its ResourceSlices have %zu devices: at most %u are "
					 "credible",
					 n, DRA_NODE_DEVICES_MAX);
		if (!*odd)
			*odd = "its ResourceSlices have too many devices";
		return 0;
	}
	if (n > 1)
		qsort(at, n, sizeof(*at), by_name);
	n = leave_invalid(at, n, a, odd);
	*out = at;
	return n;
}

int64_t dra_counter(const struct dra *d, const struct dra_slice *s, const char *set,
		    const char *name)
{
	const struct slice *own = slice_find(d, s->name);

	for (uint32_t i = 0; own && i < own->pool->slices.n; i++) {
		const struct dra_slice *o = own->pool->slices.items[i]->is;

		for (uint32_t k = 0; o->generation == s->generation && k < o->n_counters; k++)
			if (strcmp(o->counters[k].name, name) == 0 &&
			    strcmp(o->counters[k].set, set) == 0)
				return o->counters[k].milli;
	}
	return -1;
}

const struct dra_word *dra_word(const struct dra_device *d, bool capacity, const char *name)
{
	for (uint32_t i = 0; i < dra_count_words(d); i++) {
		const struct dra_word *w = dra_word_at(d, i);

		if (w->capacity == capacity && strcmp(w->name, name) == 0)
			return w;
	}
	return NULL;
}
