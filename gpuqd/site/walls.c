#include "gpuqd/site/walls.h"

#include <string.h>

#include "gpuqd/site/site.h"

#define HOPS_MAX 64 /* a parent is known and there is no circle: checked when it was read */

static const struct site_queue *above(const struct site *s, const struct site_queue *q)
{
	return q->parent ? site_queue_find(s, q->parent) : NULL;
}

static const char *namespace_of(const struct site *s, const struct site_queue *q)
{
	for (int hops = 0; q && hops < HOPS_MAX; q = above(s, q), hops++)
		if (q->namespace_)
			return q->namespace_;
	return "";
}

static bool is_leaf(const struct site *s, const struct site_queue *q)
{
	site_each(site_queue, s->queues, other)
		if (other->parent && strcmp(other->parent, q->name) == 0)
			return false;
	return true;
}

/* Return the one user that may submit to it; NULL = several, or a group, or all. */
static const char *only_user(const struct site *s, const struct site_queue *q)
{
	for (int hops = 0; q && hops < HOPS_MAX; q = above(s, q), hops++)
		if (q->users.n || q->groups.n)
			return q->users.n == 1 && !q->groups.n ? q->users.items[0] : NULL;
	return NULL;
}

static bool lets_in_one(const struct site *s, const struct site_queue *q)
{
	const char *ns = namespace_of(s, q), *user = only_user(s, q);

	site_each(site_queue, s->queues, other) {
		const char *one;

		if (!is_leaf(s, other) || strcmp(namespace_of(s, other), ns) != 0)
			continue;
		one = only_user(s, other);
		if (!one || !user || strcmp(one, user) != 0)
			return false;
	}
	return user != NULL;
}

static struct site_mounts mounts_of(const struct gpuq_strlist *l)
{
	if (l->n == 1 && strcmp(l->items[0], "any") == 0)
		return (struct site_mounts){ .kind = WALL_ANY };
	if (l->n == 1 && strcmp(l->items[0], "owner") == 0)
		return (struct site_mounts){ .kind = WALL_OWNER };
	return (struct site_mounts){ .kind = WALL_LIST, .globs = *l };
}

void walls_of_queue(const struct site *s, const char *queue, struct site_walls *out)
{
	const struct site_queue *const leaf = site_queue_find(s, queue), *q = leaf;
	bool secrets = false, maps = false, claims = false;

	*out = (struct site_walls){
		.pod_policy = NULL,
		.secrets.kind = leaf && lets_in_one(s, leaf) ? WALL_ANY : WALL_OWNER,
	};
	for (int hops = 0; q && hops < HOPS_MAX; q = above(s, q), hops++) {
		if (!out->pod_policy)
			out->pod_policy = q->pod_policy;
		if (!secrets && (secrets = q->secrets.n > 0))
			out->secrets = mounts_of(&q->secrets);
		if (!maps && (maps = q->config_maps.n > 0))
			out->config_maps = mounts_of(&q->config_maps);
		if (!claims && (claims = q->volume_claims.n > 0))
			out->volume_claims = mounts_of(&q->volume_claims);
		out->tokens |= q->service_account_token;
	}
	if (!out->pod_policy)
		out->pod_policy = s->pod_policy ? s->pod_policy : "baseline";
}

static bool is_glob(const char *s)
{
	while (*s && strchr("abcdefghijklmnopqrstuvwxyz0123456789.-*?", *s))
		s++;
	return !*s;
}

const char *walls_check(const struct gpuq_strlist *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *p = l->items[i];
		const bool word = strcmp(p, "any") == 0 || strcmp(p, "owner") == 0;

		if (word && l->n > 1)
			return "expected any or owner alone, or a list of names";
		if (!*p || !is_glob(p))
			return "expected any, owner, or names as Kubernetes has them, with * and ?";
	}
	return NULL;
}
