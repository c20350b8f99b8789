#include "gpuqd/flow/adopt/strays.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "libgpuq/arena.h"

struct member {
	UT_hash_handle hh; /* by uid */
	struct gpuq_arena mem;
	struct adopt_fact f;
};

struct strays {
	struct member *all;
};

struct stray_pods {
	struct member **members;
	const struct adopt_fact **facts;
	size_t n;
};

static const char *copy(struct member *m, const char *s)
{
	s = gpuq_arena_strdup(&m->mem, s ? s : "");
	if (!s)
		abort(); /* as loop_after() */
	return s;
}

static void member_free(struct member *m)
{
	gpuq_arena_done(&m->mem);
	free(m);
}

static bool is_of(const struct member *m, const char *namespace_, const char *gang)
{
	return strcmp(m->f.namespace_, namespace_) == 0 && strcmp(m->f.gang, gang) == 0;
}

uint32_t strays_add(struct strays **g, const struct adopt_fact *f)
{
	struct member *m = calloc(1, sizeof(*m)), *it, *next;
	uint32_t n = 0;

	strays_remove(g, f->uid); /* the last one takes the list with it */
	if (!*g)
		*g = calloc(1, sizeof(**g));
	if (!m || !*g)
		abort();
	m->f = *f;
	m->f.namespace_ = copy(m, f->namespace_);
	m->f.name = copy(m, f->name);
	m->f.uid = copy(m, f->uid);
	m->f.owner_kind = copy(m, f->owner_kind);
	m->f.owner_name = copy(m, f->owner_name);
	m->f.owner_uid = copy(m, f->owner_uid);
	m->f.gang = copy(m, f->gang);
	m->f.manifest = copy(m, f->manifest);
	HASH_ADD_KEYPTR(hh, (*g)->all, m->f.uid, strlen(m->f.uid), m);
	HASH_ITER(hh, (*g)->all, it, next)
		n += is_of(it, f->namespace_, f->gang);
	return n;
}

static void shrink(struct strays **g)
{
	if ((*g)->all)
		return;
	free(*g);
	*g = NULL;
}

struct stray_pods *strays_take(struct strays **g, const char *namespace_, const char *gang)
{
	struct stray_pods *p = calloc(1, sizeof(*p));
	struct member *it, *next;
	const size_t most = *g ? HASH_COUNT((*g)->all) : 0;

	if (p) {
		p->members = calloc(most + 1, sizeof(*p->members));
		p->facts = calloc(most + 1, sizeof(*p->facts));
	}
	if (!p || !p->members || !p->facts)
		abort();
	if (*g) {
		HASH_ITER(hh, (*g)->all, it, next) {
			if (!is_of(it, namespace_, gang))
				continue;
			HASH_DEL((*g)->all, it);
			p->members[p->n] = it;
			p->facts[p->n++] = &it->f;
		}
		shrink(g);
	}
	return p;
}

const struct adopt_fact **strays_facts(struct stray_pods *p, size_t *n)
{
	*n = p->n;
	return p->facts;
}

void strays_done(struct stray_pods *p)
{
	for (size_t i = 0; i < p->n; i++)
		member_free(p->members[i]);
	free(p->members);
	free(p->facts);
	free(p);
}

void strays_remove(struct strays **g, const char *uid)
{
	struct member *m = NULL;

	if (!*g)
		return;
	HASH_FIND_STR((*g)->all, uid, m);
	if (!m)
		return;
	HASH_DEL((*g)->all, m);
	member_free(m);
	shrink(g);
}

void strays_free(struct strays *g)
{
	struct member *m, *next;

	if (!g)
		return;
	HASH_ITER(hh, g->all, m, next) {
		HASH_DEL(g->all, m);
		member_free(m);
	}
	free(g);
}
