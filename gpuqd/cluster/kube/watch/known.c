#include "gpuqd/cluster/kube/watch/known.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
static _Thread_local bool out_of_memory;
#define uthash_nonfatal_oom(entry) (out_of_memory = true)
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	struct known_thing t;
	size_t n_key;
	char text[]; /* the key "namespace/name", then namespace, name, uid, token, node */
};

struct known {
	struct entry *head;
};

struct known *known_new(void)
{
	return calloc(1, sizeof(struct known));
}

void known_free(struct known *k)
{
	struct entry *e, *next;

	if (!k)
		return;
	HASH_ITER(hh, k->head, e, next) {
		HASH_DEL(k->head, e);
		free(e);
	}
	free(k);
}

static struct entry *find(const struct known *k, const char *namespace_, const char *name)
{
	size_t n_ns = strlen(namespace_), n_name = strlen(name);
	struct entry *e = NULL;
	char key[600]; /* the API allows 63 + 253 */

	if (n_ns + n_name + 2 > sizeof(key))
		return NULL;
	memcpy(key, namespace_, n_ns);
	key[n_ns] = '/';
	memcpy(key + n_ns + 1, name, n_name);
	HASH_FIND(hh, k->head, key, n_ns + 1 + n_name, e);
	return e;
}

const struct known_thing *known_find(const struct known *k, const char *namespace_,
				     const char *name)
{
	const struct entry *e = find(k, namespace_, name);

	return e ? &e->t : NULL;
}

static const char *put(char **at, const char *s)
{
	const char *here = *at;

	*at = stpcpy(*at, s) + 1;
	return here;
}

static bool same(const struct known_thing *a, const struct known_thing *b)
{
	return strcmp(a->uid, b->uid) == 0 && strcmp(a->token, b->token) == 0 &&
	       strcmp(a->node, b->node) == 0;
}

int known_set(struct known *k, const struct known_thing *t)
{
	struct entry *old = find(k, t->namespace_, t->name), *e;
	size_t n_ns = strlen(t->namespace_), n_name = strlen(t->name);
	char *at;

	if (n_ns + n_name > 512)
		return GPUQ_ENOMEM; /* no object of the API has such a name */
	if (old && same(&old->t, t)) {
		old->t.phase = t->phase;
		old->t.list = t->list;
		return 0;
	}
	e = calloc(1, sizeof(*e) + 2 * (n_ns + n_name) + strlen(t->uid) + strlen(t->token) +
			      strlen(t->node) + 8);
	if (!e)
		return GPUQ_ENOMEM;
	at = e->text;
	e->n_key = n_ns + 1 + n_name;
	memcpy(at, t->namespace_, n_ns);
	at[n_ns] = '/';
	memcpy(at + n_ns + 1, t->name, n_name);
	at += e->n_key + 1;
	e->t = *t;
	e->t.namespace_ = put(&at, t->namespace_);
	e->t.name = put(&at, t->name);
	e->t.uid = put(&at, t->uid);
	e->t.token = put(&at, t->token);
	e->t.node = put(&at, t->node);
	if (old) {
		HASH_DEL(k->head, old);
		free(old);
	}
	out_of_memory = false;
	HASH_ADD_KEYPTR(hh, k->head, e->text, e->n_key, e);
	if (out_of_memory) {
		free(e);
		return GPUQ_ENOMEM;
	}
	return 0;
}

void known_drop(struct known *k, const char *namespace_, const char *name)
{
	struct entry *e = find(k, namespace_, name);

	if (!e)
		return;
	HASH_DEL(k->head, e);
	free(e);
}

void known_missing(struct known *k, uint64_t list,
		   void (*fn)(void *arg, const struct known_thing *t), void *arg)
{
	struct entry *e, *next;

	HASH_ITER(hh, k->head, e, next)
		if (e->t.list != list)
			fn(arg, &e->t);
}

void known_sweep(struct known *k, uint64_t list, void (*fn)(void *arg, const struct known_thing *t),
		 void *arg)
{
	struct entry *e, *next;

	HASH_ITER(hh, k->head, e, next) {
		if (e->t.list == list)
			continue;
		HASH_DEL(k->head, e);
		fn(arg, &e->t);
		free(e);
	}
}

void known_each(const struct known *k, void (*fn)(void *arg, const struct known_thing *t),
		void *arg)
{
	for (const struct entry *e = k->head; e; e = e->hh.next)
		fn(arg, &e->t);
}

size_t known_count(const struct known *k)
{
	return HASH_COUNT(k->head);
}
