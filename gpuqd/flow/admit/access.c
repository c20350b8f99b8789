#include "gpuqd/flow/admit/access.h"

#include <stddef.h>
#include <string.h>

#include "gpuqd/flow/admit/submit.h"
#include "gpuqd/site/pod_keys.h"
#include "gpuqd/site/walls.h"
#include "gpuqd/state/record/token.h"

/* True if any of groups is in said, which is joined by commas. */
static bool is_said(const struct gpuq_strlist *groups, const char *said)
{
	for (; said && *said; said += strcspn(said, ","), said += *said == ',')
		for (size_t i = 0; i < groups->n; i++) {
			const size_t n = strlen(groups->items[i]);

			if (n == strcspn(said, ",") && memcmp(said, groups->items[i], n) == 0)
				return true;
		}
	return false;
}

static bool in_group(const struct model *m, const struct gpuq_strlist *groups, const char *user)
{
	site_each(site_user, m->site->users, u) {
		if (strcmp(u->name, user) != 0)
			continue;
		for (size_t i = 0; i < u->groups.n; i++)
			if (gpuq_strlist_has(groups, u->groups.items[i]))
				return true;
	}
	return false;
}

bool access_manage(const struct model *m, const struct queue *q, const char *user, bool operator_)
{
	(void)m;
	for (; q && !operator_; q = q->parent)
		operator_ = gpuq_strlist_has(&q->site->managers, user);
	return operator_;
}

bool access_submit(const struct model *m, const struct queue *q, const char *user,
		   const char *groups, bool operator_)
{
	if (access_manage(m, q, user, operator_))
		return true;
	/* The nearest queue that names any user or group decides. */
	for (; q; q = q->parent)
		if (q->site->users.n || q->site->groups.n)
			return gpuq_strlist_has(&q->site->users, user) ||
			       in_group(m, &q->site->groups, user) ||
			       is_said(&q->site->groups, groups);
	return true;
}

unsigned access_job(const struct model *m, const struct queue *q, const char *owner,
		    const struct submit_who *who)
{
	unsigned rights = 0;

	if (!token_has_queue(who->queues, q))
		return 0;
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
};

static bool same_mounts(const struct site_mounts *a, const struct site_mounts *b)
{
	return a->kind == b->kind && gpuq_strlist_same(&a->globs, &b->globs);
}

static bool same_walls(const struct site_walls *a, const struct site_walls *b)
{
	return strcmp(a->pod_policy, b->pod_policy) == 0 && same_mounts(&a->secrets, &b->secrets) &&
	       same_mounts(&a->config_maps, &b->config_maps) &&
	       same_mounts(&a->volume_claims, &b->volume_claims) && a->tokens == b->tokens;
}

static const char *inherited(const struct site *s, const struct site_queue *q, size_t key)
{
	for (; q; q = site_queue_above(s, q)) {
		const char *const *value = (const void *)((const char *)q + key);

		if (*value)
			return *value;
	}
	return "";
}

static struct gpuq_strlist inherited_list(const struct site *s, const struct site_queue *q,
					  size_t key)
{
	for (; q; q = site_queue_above(s, q)) {
		const struct gpuq_strlist *l = (const void *)((const char *)q + key);

		if (l->n)
			return *l;
	}
	return (struct gpuq_strlist){ NULL, 0 };
}

bool access_same_pods(const struct site *s, const char *queue, const struct site *other_site,
		      const char *other_queue)
{
	const struct site_queue *x = site_queue_find(s, queue);
	const struct site_queue *y = site_queue_find(other_site, other_queue);
	static const size_t lists[] = { offsetof(struct site_queue, image_pull_secrets),
					offsetof(struct site_queue, service_accounts) };
	struct site_walls w, v;
	bool same;

	walls_of_queue(s, queue, &w);
	walls_of_queue(other_site, other_queue, &v);
	same = same_walls(&w, &v) && pod_keys_same(s, queue, other_site, other_queue);

	for (size_t i = 0; same && i < sizeof(pod_keys) / sizeof(pod_keys[0]); i++)
		same = strcmp(inherited(s, x, pod_keys[i]),
			      inherited(other_site, y, pod_keys[i])) == 0;
	for (size_t i = 0; same && i < sizeof(lists) / sizeof(lists[0]); i++) {
		const struct gpuq_strlist a = inherited_list(s, x, lists[i]);
		const struct gpuq_strlist b = inherited_list(other_site, y, lists[i]);

		same = gpuq_strlist_same(&a, &b);
	}
	return same;
}
