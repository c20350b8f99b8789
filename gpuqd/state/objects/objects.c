#include "gpuqd/state/objects/objects.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/util/block.h"
#include "gpuqd/util/require.h"
#include "libgpuq/spec/resource.h"

/* An object, and all that its fact points to behind it, in one block. */
struct object {
	UT_hash_handle hh;
	struct object_fact fact; /* in one block of its own */
	size_t n_key;
	char *key; /* namespace NUL name */
};

/* Additions to pods of one queue. */
struct learnt {
	UT_hash_handle hh;
	int64_t cpu_milli, memory_bytes; /* what admission added to pods of this queue */
	char queue[];
};

struct objects {
	struct object *all[N_OBJECT_KINDS]; /* by namespace and name */
	bool known[N_OBJECT_KINDS]; /* the first listing has ended: absent means absent */
	char *why[N_OBJECT_KINDS]; /* words of the cluster for what is not known; NULL = none */
	struct learnt *learnt;
	char *home; /* the namespace of gpuqd */
	struct dra *dra;
};

/* ---- the block of an object ---- */

static const char *take_str(struct block *b, const char *s)
{
	return s && *s ? block_take_str(b, s) : "";
}

/* Copy one requirement into the block; its values come after their list, as block_take() is called
 * in the same order when sizes are counted. */
static void take_require(struct block *b, const struct gpuq_require *from, struct gpuq_require *to)
{
	const char **items = block_take(b, NULL, from->values.n * sizeof(*items));
	const char *key = take_str(b, from->key);

	for (size_t i = 0; i < from->values.n; i++) {
		const char *s = take_str(b, from->values.items[i]);

		if (items)
			items[i] = s;
	}
	if (to)
		*to = (struct gpuq_require){ key, from->op, { items, from->values.n } };
}

/* Copy the terms of an affinity. In the pass that only counts bytes the block gives NULL, and
 * nothing is written. */
static const struct gpuq_term *take_terms(struct block *b, const struct gpuq_term *from, size_t n)
{
	struct gpuq_term *to = block_take(b, NULL, n * sizeof(*to));

	for (size_t t = 0; t < n; t++) {
		struct gpuq_require *all = block_take(b, NULL, from[t].n * sizeof(*all));

		for (size_t i = 0; i < from[t].n; i++)
			take_require(b, &from[t].all[i], all ? &all[i] : NULL);
		if (to)
			to[t] = (struct gpuq_term){ .all = all, .n = from[t].n };
	}
	return to;
}

static const struct gpuq_toleration *take_tolerations(struct block *b, const struct object_fact *f)
{
	struct gpuq_toleration *to = block_take(b, NULL, f->n_tolerations * sizeof(*to));

	for (size_t i = 0; i < f->n_tolerations; i++) {
		struct gpuq_toleration one = f->tolerations[i];

		one.key = take_str(b, one.key);
		one.value = take_str(b, one.value);
		one.effect = take_str(b, one.effect);
		if (to)
			to[i] = one;
	}
	return to;
}

static const struct gpuq_amount *take_amounts(struct block *b, const struct object_fact *f)
{
	struct gpuq_amount *to = block_take(b, NULL, f->n_amounts * sizeof(*to));

	for (size_t i = 0; i < f->n_amounts; i++) {
		const char *name = take_str(b, f->amounts[i].name);

		if (to)
			to[i] = (struct gpuq_amount){ name, f->amounts[i].count };
	}
	return to;
}

/* Fill the block; called twice: for its size, and to write. */
static struct object *fill(struct block *b, const struct object_fact *f)
{
	const size_t n_namespace = strlen(f->namespace_) + 1, n_name = strlen(f->name) + 1;
	struct object *o = block_take(b, NULL, sizeof(*o));
	char *key = block_take(b, NULL, n_namespace + n_name);
	struct object_fact to = *f;

	if (key) {
		memcpy(key, f->namespace_, n_namespace);
		memcpy(key + n_namespace, f->name, n_name);
		to.namespace_ = key;
		to.name = key + n_namespace;
	}
	to.volume = take_str(b, f->volume);
	to.class_ = take_str(b, f->class_);
	to.selected = take_str(b, f->selected);
	to.required = take_terms(b, f->required, f->n_required);
	to.tolerations = take_tolerations(b, f);
	to.amounts = take_amounts(b, f);
	if (o) {
		o->fact = to;
		o->key = key;
		o->n_key = n_namespace + n_name - 1;
	}
	return o;
}

/* Return a copy of the fact in one allocation: the first pass adds up the size, the second writes. */
static struct object *object_new(const struct object_fact *f)
{
	struct block b = { 0 };

	fill(&b, f);
	b = (struct block){ .at = calloc(1, b.n) };
	if (!b.at)
		abort(); /* the ledger is on disk: a restart is the recovery */
	return fill(&b, f);
}

/* ---- all of them ---- */

struct objects *objects_new(void)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (o) {
		o->home = strdup("");
		o->dra = dra_new();
	}
	if (!o || !o->home || !o->dra) {
		if (o) {
			free(o->home);
			dra_free(o->dra);
		}
		free(o);
		return NULL;
	}
	return o;
}

/* Forget all objects of a kind. */
static void clear(struct objects *o, enum object_kind kind)
{
	struct object *x, *next;

	HASH_ITER(hh, o->all[kind], x, next) {
		HASH_DEL(o->all[kind], x);
		free(x);
	}
}

void objects_free(struct objects *o)
{
	struct learnt *l, *next_learnt;

	if (!o)
		return;
	for (int k = 0; k < N_OBJECT_KINDS; k++) {
		clear(o, (enum object_kind)k);
		free(o->why[k]);
	}
	HASH_ITER(hh, o->learnt, l, next_learnt) {
		HASH_DEL(o->learnt, l);
		free(l);
	}
	dra_free(o->dra);
	free(o->home);
	free(o);
}

struct objects *objects_copy(const struct objects *o)
{
	struct objects *to = objects_new();
	struct dra *dra = to ? dra_copy(o->dra) : NULL;

	if (!dra) {
		objects_free(to);
		return NULL;
	}
	dra_free(to->dra);
	to->dra = dra;
	for (int k = 0; to && k < N_OBJECT_KINDS; k++) {
		for (const struct object *x = o->all[k]; x; x = x->hh.next)
			objects_seen(to, &x->fact);
		objects_known(to, k, o->known[k], o->why[k], o->home);
	}
	for (const struct learnt *l = to ? o->learnt : NULL; l; l = l->hh.next)
		objects_learn(to, l->queue, l->cpu_milli, l->memory_bytes);
	return to;
}

#define NAME_MAX_BYTES 256 /* of a namespace or a name: Kubernetes allows 253 */

/* Return an object by its names; NULL = it is not known. */
static struct object *find(const struct objects *o, enum object_kind kind, const char *namespace_,
			   const char *name)
{
	const size_t n_namespace = strlen(namespace_) + 1, n_name = strlen(name);
	char key[2 * NAME_MAX_BYTES];
	struct object *x = NULL;

	/* Kubernetes allows no names that long, so no object has one. */
	if (n_namespace + n_name > sizeof(key))
		return NULL;
	memcpy(key, namespace_, n_namespace);
	memcpy(key + n_namespace, name, n_name);
	HASH_FIND(hh, o->all[kind], key, n_namespace + n_name, x);
	return x;
}

/* True if the terms are the same in the same order: another order is another fact, which costs a
 * write and changes nothing. */
static bool terms_same(const struct object_fact *a, const struct object_fact *b)
{
	if (a->n_required != b->n_required)
		return false;
	for (size_t t = 0; t < a->n_required; t++) {
		const struct gpuq_term *x = &a->required[t], *y = &b->required[t];

		if (x->n != y->n)
			return false;
		for (size_t i = 0; i < x->n; i++)
			if (strcmp(x->all[i].key, y->all[i].key) != 0 ||
			    x->all[i].op != y->all[i].op ||
			    !gpuq_strlist_same(&x->all[i].values, &y->all[i].values))
				return false;
	}
	return true;
}

static bool tolerations_same(const struct object_fact *a, const struct object_fact *b)
{
	if (a->n_tolerations != b->n_tolerations)
		return false;
	for (size_t i = 0; i < a->n_tolerations; i++) {
		const struct gpuq_toleration *x = &a->tolerations[i], *y = &b->tolerations[i];

		if (x->exists != y->exists || x->seconds != y->seconds ||
		    strcmp(x->key, y->key) != 0 || strcmp(x->value, y->value) != 0 ||
		    strcmp(x->effect, y->effect) != 0)
			return false;
	}
	return true;
}

/* True if both facts say the same of an object; its kind and names are equal already. */
static bool same(const struct object_fact *a, const struct object_fact *b)
{
	return a->cpu_milli == b->cpu_milli && a->memory_bytes == b->memory_bytes &&
	       a->state == b->state && a->waits == b->waits && a->makes_none == b->makes_none &&
	       a->selects == b->selects && a->size_bytes == b->size_bytes && a->modes == b->modes &&
	       a->block == b->block && a->unclaimed == b->unclaimed &&
	       strcmp(a->volume, b->volume) == 0 && strcmp(a->class_, b->class_) == 0 &&
	       strcmp(a->selected, b->selected) == 0 && terms_same(a, b) &&
	       tolerations_same(a, b) &&
	       gpuq_amounts_same(a->amounts, a->n_amounts, b->amounts, b->n_amounts);
}

/* Keep an object of resource.k8s.io. */
static bool dra_seen(struct dra *d, const struct object_fact *f)
{
	switch (f->kind) {
	case OBJECT_SLICE:
		return dra_slice_seen(d, f->dra.slice);
	case OBJECT_DEVICE_CLASS:
		return dra_class_seen(d, f->dra.class_);
	case OBJECT_DEVICE_CLAIM:
		return dra_claim_seen(d, f->dra.claim);
	default:
		return dra_template_seen(d, f->dra.template_);
	}
}

static bool dra_gone(struct dra *d, enum object_kind kind, const char *namespace_, const char *name)
{
	switch (kind) {
	case OBJECT_SLICE:
		return dra_slice_gone(d, name);
	case OBJECT_DEVICE_CLASS:
		return dra_class_gone(d, name);
	case OBJECT_DEVICE_CLAIM:
		return dra_claim_gone(d, namespace_, name);
	default:
		return dra_template_gone(d, namespace_, name);
	}
}

const char *objects_namespace(const struct objects *o, const char *namespace_)
{
	return *namespace_ ? namespace_ : o->home;
}

const struct dra *objects_dra(const struct objects *o)
{
	return o->dra;
}

bool objects_seen(struct objects *o, const struct object_fact *f)
{
	struct object *x;

	if (object_is_dra(f->kind))
		return dra_seen(o->dra, f);
	if (strlen(f->namespace_) >= NAME_MAX_BYTES || strlen(f->name) >= NAME_MAX_BYTES)
		return false;
	x = find(o, f->kind, f->namespace_, f->name);
	if (x && same(&x->fact, f))
		return false;
	/* An object is replaced as a whole, since it is one block. */
	if (x) {
		HASH_DEL(o->all[f->kind], x);
		free(x);
	}
	x = object_new(f);
	HASH_ADD_KEYPTR(hh, o->all[f->kind], x->key, x->n_key, x);
	return true;
}

bool objects_gone(struct objects *o, enum object_kind kind, const char *namespace_,
		  const char *name)
{
	struct object *x;

	if (object_is_dra(kind))
		return dra_gone(o->dra, kind, namespace_, name);
	x = find(o, kind, namespace_, name);
	if (!x)
		return false;
	HASH_DEL(o->all[kind], x);
	free(x);
	return true;
}

void objects_known(struct objects *o, enum object_kind kind, bool known, const char *why,
		   const char *home)
{
	char *copy = strdup(home), *words = !known && why ? strdup(why) : NULL;

	if (!copy || (!known && why && !words))
		abort();
	free(o->why[kind]);
	o->why[kind] = words;
	free(o->home);
	o->home = copy;
	o->known[kind] = known;
	if (!known)
		clear(o, kind);
	if (!known && object_is_dra(kind))
		dra_clear(o->dra, (enum dra_kind)(kind - OBJECT_SLICE));
}

bool objects_is_known(const struct objects *o, enum object_kind kind)
{
	return o->known[kind];
}

const char *objects_claims_lack(const struct objects *o, const char **words)
{
	static const struct {
		enum object_kind kind;
		const char *what;
	} needed[] = {
		{ OBJECT_SLICE, "resource.k8s.io" },
		{ OBJECT_DEVICE_CLASS, "resource.k8s.io" },
		{ OBJECT_DEVICE_CLAIM, "resource.k8s.io" },
		{ OBJECT_DEVICE_TEMPLATE, "resource.k8s.io" },
		{ OBJECT_BINDING, "pods/binding" },
		{ OBJECT_ALLOCATING, "resourceclaims/status" },
	};

	*words = NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!o->known[needed[i].kind]) {
			*words = o->why[needed[i].kind];
			return needed[i].what;
		}
	return NULL;
}

size_t objects_count(const struct objects *o, enum object_kind kind)
{
	return HASH_COUNT(o->all[kind]);
}

const struct object_fact *objects_find(const struct objects *o, enum object_kind kind,
				       const char *namespace_, const char *name)
{
	const bool spaced = kind == OBJECT_LIMITS || kind == OBJECT_CLAIM;
	const struct object *x = find(o, kind, spaced && !*namespace_ ? o->home : namespace_, name);

	return x ? &x->fact : NULL;
}

/* ---- requests ---- */

/* Add amounts; a sum out of range stays at the largest number. */
static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool is_in(const struct objects *o, const struct object *x, const char *namespace_)
{
	return strcmp(x->fact.namespace_, *namespace_ ? namespace_ : o->home) == 0;
}

/* The largest of several LimitRanges: which of them the apiserver takes is not defined. */
static void defaults_of(const struct objects *o, const char *namespace_, int64_t *cpu_milli,
			int64_t *memory_bytes)
{
	*cpu_milli = *memory_bytes = 0;
	for (const struct object *x = o->all[OBJECT_LIMITS]; x; x = x->hh.next) {
		if (!is_in(o, x, namespace_))
			continue;
		if (x->fact.cpu_milli > *cpu_milli)
			*cpu_milli = x->fact.cpu_milli;
		if (x->fact.memory_bytes > *memory_bytes)
			*memory_bytes = x->fact.memory_bytes;
	}
}

/* Return the additions learnt for a queue; NULL = nothing was learnt. */
static struct learnt *learnt_of(const struct objects *o, const char *queue)
{
	struct learnt *l = NULL;

	HASH_FIND_STR(o->learnt, queue, l);
	return l;
}

void objects_add_known(const struct objects *o, struct objects_pod *p)
{
	const struct object *x = NULL;
	int64_t cpu_milli, memory_bytes;

	defaults_of(o, p->namespace_, &cpu_milli, &memory_bytes);
	/* A LimitRange applies only where the pod requests nothing; a RuntimeClass adds to any pod. */
	if (p->cpu_milli == 0)
		p->cpu_milli = cpu_milli;
	if (p->memory_bytes == 0)
		p->memory_bytes = memory_bytes;
	if (p->runtime_class && *p->runtime_class)
		x = find(o, OBJECT_RUNTIME, "", p->runtime_class);
	if (!x)
		return;
	p->cpu_milli = add(p->cpu_milli, x->fact.cpu_milli);
	p->memory_bytes = add(p->memory_bytes, x->fact.memory_bytes);
}

/* Return the amount of that name, which is added where there is none; NULL: no room for it. */
static struct gpuq_amount *amount_in(struct gpuq_amount *out, size_t *n, size_t room,
				     const char *name)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(out[i].name, name) == 0)
			return &out[i];
	if (*n == room)
		return NULL;
	out[*n] = (struct gpuq_amount){ name, 0 };
	return &out[(*n)++];
}

/* True for the name of an extended resource, DOMAIN/NAME: a device plugin offers it, and a container that
 * names 0 of it is as well off as without. Kubernetes' own names have no domain. A default of theirs is
 * a limit that the container is to have: ephemeral-storage: 0 would be none at all, so that the
 * operator's default is left to apply, and is counted. */
static bool is_extended(const char *name)
{
	return strchr(name, '/') != NULL;
}

bool objects_defaults(const struct objects *o, const char *namespace_, struct gpuq_arena *a,
		      struct gpuq_strlist *out)
{
	size_t room = 0;

	/* One name may stand in several LimitRanges: there is room for all of them. */
	*out = (struct gpuq_strlist){ NULL, 0 };
	for (const struct object *x = o->all[OBJECT_LIMITS]; x; x = x->hh.next)
		room += is_in(o, x, namespace_) ? x->fact.n_amounts : 0;
	if (room == 0)
		return true;
	out->items = gpuq_arena_calloc(a, room, sizeof(*out->items));
	if (!out->items)
		return false;
	for (const struct object *x = o->all[OBJECT_LIMITS]; x; x = x->hh.next)
		for (size_t i = 0; i < x->fact.n_amounts && is_in(o, x, namespace_); i++) {
			const char *name = x->fact.amounts[i].name;

			if (is_extended(name) && !gpuq_strlist_has(out, name))
				out->items[out->n++] = name;
		}
	return true;
}

size_t objects_add_amounts(const struct objects *o, const struct objects_pod *p,
			   const struct gpuq_amount *has, size_t n_has, struct gpuq_amount *out,
			   size_t room)
{
	const struct object *runtime = p->runtime_class && *p->runtime_class
					       ? find(o, OBJECT_RUNTIME, "", p->runtime_class)
					       : NULL;
	size_t n = n_has < room ? n_has : room;

	if (n)
		memcpy(out, has, n * sizeof(*out));
	for (const struct object *x = o->all[OBJECT_LIMITS]; x; x = x->hh.next)
		for (size_t i = 0; i < x->fact.n_amounts && is_in(o, x, p->namespace_); i++) {
			const struct gpuq_amount *d = &x->fact.amounts[i];
			struct gpuq_amount *to =
				is_extended(d->name) || gpuq_amounts_get(has, n_has, d->name)
					? NULL
					: amount_in(out, &n, room, d->name);

			if (to && d->count > to->count)
				to->count = d->count;
		}
	for (size_t i = 0; runtime && i < runtime->fact.n_amounts; i++) {
		const struct gpuq_amount *more = &runtime->fact.amounts[i];
		/* Devices are not counted by name: takes_overhead_device() keeps such pods from
		 * being made. */
		struct gpuq_amount *to = gpuq_resource_kind(more->name) == GPUQ_RESOURCE_COUNTED
						 ? amount_in(out, &n, room, more->name)
						 : NULL;

		if (to)
			to->count = add(to->count, more->count);
	}
	return gpuq_amounts_sort(out, n);
}

void objects_add(const struct objects *o, struct objects_pod *p)
{
	const struct learnt *l = learnt_of(o, p->queue);

	objects_add_known(o, p);
	if (!l)
		return;
	p->cpu_milli = add(p->cpu_milli, l->cpu_milli);
	p->memory_bytes = add(p->memory_bytes, l->memory_bytes);
}

bool objects_adds(const struct objects *o, const char *queue, const char *namespace_)
{
	const struct learnt *l = learnt_of(o, queue);
	int64_t cpu_milli, memory_bytes;

	for (const struct object *x = o->all[OBJECT_LIMITS]; x; x = x->hh.next)
		if (x->fact.n_amounts && is_in(o, x, namespace_))
			return true;
	defaults_of(o, namespace_, &cpu_milli, &memory_bytes);
	return cpu_milli || memory_bytes || (l && (l->cpu_milli || l->memory_bytes));
}

bool objects_would_learn(const struct objects *o, const char *queue, int64_t cpu_milli,
			 int64_t memory_bytes)
{
	const struct learnt *l = learnt_of(o, queue);

	/* Nothing, where nothing was learnt before, is no news. */
	return l ? l->cpu_milli != cpu_milli || l->memory_bytes != memory_bytes
		 : cpu_milli || memory_bytes;
}

bool objects_learn(struct objects *o, const char *queue, int64_t cpu_milli, int64_t memory_bytes)
{
	struct learnt *l = learnt_of(o, queue);

	if (!objects_would_learn(o, queue, cpu_milli, memory_bytes))
		return false;
	if (!l) {
		l = calloc(1, sizeof(*l) + strlen(queue) + 1);
		if (!l)
			abort();
		memcpy(l->queue, queue, strlen(queue) + 1);
		HASH_ADD_STR(o->learnt, queue, l);
	}
	l->cpu_milli = cpu_milli;
	l->memory_bytes = memory_bytes;
	return true;
}

bool objects_has_learnt(const struct objects *o, const char *queue)
{
	return learnt_of(o, queue) != NULL;
}

/* ---- claims ---- */

enum objects_claim objects_claim(const struct objects *o, const char *namespace_, const char *name,
				 const struct object_fact **volume)
{
	const struct object_fact *c;
	const struct object *class_, *v;

	*volume = NULL;
	/* Where gpuqd may not read these objects it assumes that they restrict nothing: the cluster
	 * refuses what does not fit. */
	if (!o->known[OBJECT_CLAIM])
		return OBJECTS_CLAIM_FREE;
	c = objects_find(o, OBJECT_CLAIM, namespace_, name);
	if (!c || c->state == CLAIM_LOST)
		return OBJECTS_CLAIM_MISSING;
	if (c->state == CLAIM_BOUND) {
		v = find(o, OBJECT_VOLUME, "", c->volume);
		if (!o->known[OBJECT_VOLUME])
			return OBJECTS_CLAIM_FREE;
		if (!v)
			return OBJECTS_CLAIM_MISSING;
		*volume = &v->fact;
		return v->fact.n_required ? OBJECTS_CLAIM_TIED : OBJECTS_CLAIM_FREE;
	}
	if (!o->known[OBJECT_CLASS])
		return OBJECTS_CLAIM_FREE;
	class_ = *c->class_ ? find(o, OBJECT_CLASS, "", c->class_) : NULL;
	if (!class_ || !class_->fact.waits || !o->known[OBJECT_BINDING])
		return OBJECTS_CLAIM_UNBOUND;
	if (*c->volume && o->known[OBJECT_VOLUME]) {
		v = find(o, OBJECT_VOLUME, "", c->volume);
		*volume = v ? &v->fact : NULL;
		return v ? OBJECTS_CLAIM_WAITS : OBJECTS_CLAIM_UNBOUND;
	}
	*volume = &class_->fact;
	if (!class_->fact.makes_none)
		return OBJECTS_CLAIM_WAITS;
	/* Which volumes a selector means is left to people, who bind it by hand. */
	return o->known[OBJECT_VOLUME] && !c->selects ? OBJECTS_CLAIM_CHOOSES
						      : OBJECTS_CLAIM_UNBOUND;
}

bool objects_is_one_pod(const struct objects *o, const char *namespace_, const char *name)
{
	const struct object_fact *c =
		o->known[OBJECT_CLAIM] ? objects_find(o, OBJECT_CLAIM, namespace_, name) : NULL;

	return c && (c->modes & ACCESS_ONE_POD);
}

static int by_name(const void *x, const void *y)
{
	const struct object_fact *a = *(const struct object_fact *const *)x,
				 *b = *(const struct object_fact *const *)y;
	const int spaces = strcmp(a->namespace_, b->namespace_);

	return spaces ? spaces : strcmp(a->name, b->name);
}

const struct object_fact **objects_one_pod(const struct objects *o, struct gpuq_arena *a, size_t *n)
{
	const size_t room = HASH_COUNT(o->all[OBJECT_CLAIM]);
	const struct object_fact **out =
		gpuq_arena_calloc(a, room + 1, sizeof(struct object_fact *));

	*n = 0;
	for (const struct object *x = o->all[OBJECT_CLAIM]; out && o->known[OBJECT_CLAIM] && x;
	     x = x->hh.next)
		if (x->fact.modes & ACCESS_ONE_POD)
			out[(*n)++] = &x->fact;
	/* No two are alike: any sort gives the same order. */
	if (*n)
		qsort(out, *n, sizeof(struct object_fact *), by_name);
	return out;
}

/* True if the claim may have the volume, as Kubernetes matches them. */
static bool serves(const struct object_fact *v, const struct object_fact *c)
{
	return v->unclaimed && strcmp(v->class_, c->class_) == 0 && v->block == c->block &&
	       (c->modes & ~v->modes) == 0 && v->size_bytes >= c->size_bytes;
}

const struct object_fact *objects_volume(const struct objects *o, const char *namespace_,
					 const char *name, const struct object_fact *after)
{
	const struct object_fact *c = objects_find(o, OBJECT_CLAIM, namespace_, name);
	const struct object *x = o->all[OBJECT_VOLUME];

	if (!c)
		return NULL;
	if (after) {
		x = find(o, OBJECT_VOLUME, "", after->name);
		x = x ? x->hh.next : NULL;
	}
	while (x && !serves(&x->fact, c))
		x = x->hh.next;
	return x ? &x->fact : NULL;
}

bool objects_may_bind(const struct objects *o)
{
	return o->known[OBJECT_CLAIM] && o->known[OBJECT_CLASS] && o->known[OBJECT_BINDING];
}

bool objects_fits(const struct object_fact *f, const char *node, const struct gpuq_strmap *labels)
{
	/* One term suffices, all of whose requirements hold; a term without any matches nothing. */
	for (size_t t = 0; t < f->n_required; t++) {
		const struct gpuq_term *term = &f->required[t];
		bool all = term->n > 0;

		for (size_t i = 0; i < term->n && all; i++) {
			const char *value = NULL;

			if (strcmp(term->all[i].key, REQUIRE_NAME_KEY) == 0)
				value = node;
			for (size_t k = 0; k < labels->n && !value; k++)
				if (strcmp(labels->keys[k], term->all[i].key) == 0)
					value = labels->vals[k];
			all = require_holds(&term->all[i], value);
		}
		if (all)
			return true;
	}
	return f->n_required == 0;
}
