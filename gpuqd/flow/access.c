#include "gpuqd/flow/access.h"

#include <string.h>

static bool has(const struct gpuq_strlist *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i], name) == 0)
			return true;
	return false;
}

static bool in_group(const struct model *m, const struct gpuq_strlist *groups, const char *user)
{
	site_each(site_user, m->site->users, u)
	{
		if (strcmp(u->name, user) != 0)
			continue;
		for (size_t i = 0; i < u->groups.n; i++)
			if (has(groups, u->groups.items[i]))
				return true;
	}
	return false;
}

bool access_manage(const struct model *m, const struct queue *q, const char *user, bool operator_)
{
	(void)m;
	for (; q && !operator_; q = q->parent)
		operator_ = has(&q->site->managers, user);
	return operator_;
}

bool access_submit(const struct model *m, const struct queue *q, const char *user, bool operator_)
{
	if (access_manage(m, q, user, operator_))
		return true;
	/* The nearest queue that names anybody decides. */
	for (; q; q = q->parent)
		if (q->site->users.n || q->site->groups.n)
			return has(&q->site->users, user) || in_group(m, &q->site->groups, user);
	return true;
}

bool access_job(const struct model *m, const struct queue *q, const char *owner, const char *user,
		bool operator_)
{
	return strcmp(owner, user) == 0 || access_manage(m, q, user, operator_);
}
