/* Looking up what a site has. */
#include "gpuqd/site/site_find.h"

#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "libgpuq/spec/toleration.h"

const struct site_queue *site_queue_find(const struct site *s, const char *name)
{
	site_each(site_queue, s->queues, q)
		if (strcmp(q->name, name) == 0)
			return q;
	return NULL;
}

const struct site_queue *site_queue_above(const struct site *s, const struct site_queue *q)
{
	return q->parent ? site_queue_find(s, q->parent) : NULL;
}

const struct site_user *site_user_find(const struct site *s, const char *name)
{
	site_each(site_user, s->users, u)
		if (strcmp(u->name, name) == 0)
			return u;
	return NULL;
}

const struct site_group *site_group_find(const struct site *s, const char *name)
{
	site_each(site_group, s->groups, g)
		if (strcmp(g->name, name) == 0)
			return g;
	return NULL;
}

bool site_pool_grows(const struct site_pool *p)
{
	return p->provisioning && p->provisioning->kind != PROVISION_NONE;
}

bool site_pool_requests(const struct site_pool *p)
{
	return p->provisioning && p->provisioning->kind == PROVISION_REQUEST;
}

bool site_pool_evictable(const struct site_pool *p)
{
	return p->evictable || (p->provisioning && p->provisioning->evictable);
}

const struct site_pool *site_pool_find(const struct site *s, const char *name)
{
	site_each(site_pool, s->pools, p)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

const struct site_pool *site_pool_growing(const struct site *s, const char *name)
{
	const struct site_pool *p = site_pool_find(s, name);

	return p && site_pool_grows(p) ? p : NULL;
}

bool site_pool_tolerates(const struct site_pool *p, const char *key, const char *value,
			 const char *effect)
{
	const struct gpuq_toleration *all = p ? p->tolerations.items : NULL;

	for (size_t i = 0; all && i < p->tolerations.n; i++)
		if (gpuq_tolerates(&all[i], key, value, effect))
			return true;
	return false;
}

int64_t site_amount_of(const struct site_amount *a, const char *flavor, int64_t dflt)
{
	if (!a->given)
		return dflt;
	if (!a->per_flavor)
		return a->all;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->flavors[i], flavor) == 0)
			return a->amounts[i];
	return dflt;
}

bool site_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *back = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			back = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++back;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

int64_t site_code_keep_us(const struct site *s)
{
	return s->code ? s->code->keep_us : GPUQ_CODE_KEEP_S * GPUQ_US_PER_S;
}

bool site_launches(const struct site *s, const struct site_queue *q)
{
	while (q && !q->launch.yes && !q->launch.no)
		q = site_queue_above(s, q);
	return q ? q->launch.yes : s->launch.yes;
}
