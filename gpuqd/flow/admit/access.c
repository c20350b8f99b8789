#include "gpuqd/flow/admit/access.h"

#include <stddef.h>
#include <string.h>

#include "gpuqd/flow/admit/submit.h"

static bool has(const struct gpuq_strlist *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i], name) == 0)
			return true;
	return false;
}

static bool in_group(const struct model *m, const struct gpuq_strlist *groups, const char *user)
{
	site_each(site_user, m->site->users, u) {
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
	/* The nearest queue that names any user or group decides. */
	for (; q; q = q->parent)
		if (q->site->users.n || q->site->groups.n)
			return has(&q->site->users, user) || in_group(m, &q->site->groups, user);
	return true;
}

unsigned access_job(const struct model *m, const struct queue *q, const char *owner,
		    const struct submit_who *who)
{
	unsigned rights = 0;

	if (strcmp(owner, who->user) == 0 || who->as_owner)
		rights |= ACCESS_OWN;
	if (access_manage(m, q, who->user, who->operator_))
		rights |= ACCESS_MANAGE;
	if (who->operator_)
		rights |= ACCESS_OPERATE;
	return rights;
}

/* ---- what pods run as ---- */

/* Keys of a queue that decide what its pods are and what they can reach. */
static const size_t pod_keys[] = {
	offsetof(struct site_queue, namespace_),
	offsetof(struct site_queue, service_account),
	offsetof(struct site_queue, image),
	offsetof(struct site_queue, pod_policy),
};

static const struct site_queue *above(const struct site *s, const struct site_queue *q)
{
	return q->parent ? site_queue_find(s, q->parent) : NULL;
}

static const char *inherited(const struct site *s, const struct site_queue *q, size_t key)
{
	for (; q; q = above(s, q)) {
		const char *const *value = (const void *)((const char *)q + key);

		if (*value)
			return *value;
	}
	return "";
}

static struct gpuq_strlist pull_secrets(const struct site *s, const struct site_queue *q)
{
	for (; q; q = above(s, q))
		if (q->image_pull_secrets.n)
			return q->image_pull_secrets;
	return (struct gpuq_strlist){ NULL, 0 };
}

bool access_same_pods(const struct site *s, const char *queue, const struct site *other_site,
		      const char *other_queue)
{
	const struct site_queue *x = site_queue_find(s, queue);
	const struct site_queue *y = site_queue_find(other_site, other_queue);
	const struct gpuq_strlist a = pull_secrets(s, x), b = pull_secrets(other_site, y);
	bool same = a.n == b.n;

	for (size_t i = 0; same && i < sizeof(pod_keys) / sizeof(pod_keys[0]); i++)
		same = strcmp(inherited(s, x, pod_keys[i]),
			      inherited(other_site, y, pod_keys[i])) == 0;
	for (size_t i = 0; same && i < a.n; i++)
		same = strcmp(a.items[i], b.items[i]) == 0;
	return same;
}
