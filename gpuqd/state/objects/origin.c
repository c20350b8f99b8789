#include "gpuqd/state/objects/origin.h"

#include <stdlib.h>
#include <string.h>

struct origins {
	struct origin *jobs;
	struct origin_pod *pods;
};

/* An entry, and the text that its words are in. */
struct entry {
	struct origin o; /* first: struct origin * is struct entry * */
	char *text;
};

/* Cut the next word off; "" at the end. */
static const char *word(char **at, const char *ends)
{
	char *s = *at + strspn(*at, ends);
	const size_t n = strcspn(s, ends);

	*at = s + n + (s[n] != '\0');
	s[n] = '\0';
	return s;
}

static size_t count(const char *text, size_t n, char c)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += text[i] == c;
	return found;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

void origin_add(struct origins **all, uint32_t job, const char *owner, size_t n_owner,
		const char *pods, size_t n_pods)
{
	struct entry *e = must(calloc(1, sizeof(*e)));
	const uint32_t most = (uint32_t)count(pods, n_pods, ',') + 1;
	char *at = must(calloc(1, n_owner + n_pods + 2)), *list = at + n_owner + 1;

	if (!*all)
		*all = must(calloc(1, sizeof(**all)));
	e->text = at;
	memcpy(at, owner, n_owner);
	memcpy(list, pods, n_pods);
	e->o.job = job;
	e->o.kind = word(&at, " ");
	e->o.name = word(&at, " ");
	e->o.namespace_ = word(&at, " ");
	e->o.uid = word(&at, " ");
	e->o.gated = strcmp(word(&at, " "), ORIGIN_GATED) == 0;
	e->o.pods = must(calloc(most, sizeof(*e->o.pods)));
	while (*list && e->o.n_pods < most) {
		struct origin_pod *p = &e->o.pods[e->o.n_pods], *other;

		p->of = &e->o;
		p->place = e->o.n_pods++;
		p->name = word(&list, " ");
		p->uid = word(&list, ",");
		HASH_FIND_STR((*all)->pods, p->uid, other);
		if (*p->uid && !other)
			HASH_ADD_KEYPTR(hh, (*all)->pods, p->uid, strlen(p->uid), p);
	}
	HASH_ADD(hh, (*all)->jobs, job, sizeof(e->o.job), &e->o);
}

void origin_drop(struct origins **all, uint32_t job)
{
	struct origin *o = NULL;
	struct origin_pod *p;

	if (*all)
		HASH_FIND(hh, (*all)->jobs, &job, sizeof(job), o);
	if (!o)
		return;
	for (uint32_t i = 0; i < o->n_pods; i++) {
		HASH_FIND_STR((*all)->pods, o->pods[i].uid, p);
		if (p == &o->pods[i])
			HASH_DEL((*all)->pods, p);
	}
	HASH_DEL((*all)->jobs, o);
	free(o->pods);
	free(((struct entry *)o)->text);
	free(o);
	if ((*all)->jobs)
		return;
	free(*all);
	*all = NULL;
}

void origin_free(struct origins *all)
{
	while (all)
		origin_drop(&all, all->jobs->job);
}

const struct origin *origin_of(const struct origins *all, uint32_t job)
{
	struct origin *o = NULL;

	if (all)
		HASH_FIND(hh, all->jobs, &job, sizeof(job), o);
	return o;
}

const struct origin_pod *origin_find(const struct origins *all, const char *uid)
{
	struct origin_pod *p = NULL;

	if (all && *uid)
		HASH_FIND_STR(all->pods, uid, p);
	return p;
}

const struct origin *origin_first(const struct origins *all)
{
	return all ? all->jobs : NULL;
}
