#include "gpuqd/site/walls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/names.h"

#define HOPS_MAX 64 /* a parent is known and there is no circle: checked when it was read */

/* ---- queues that let in one user ---- */

/* A queue with what it has of those above it. */
struct settled {
	struct site_queue *q;
	const char *namespace_; /* "" = none */
	const char *user; /* the one that may submit to it; NULL = several, or a group, or all */
	bool parent; /* other queues are below it */
};

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct settled *)x)->q->name, ((const struct settled *)y)->q->name);
}

/* By namespace; the leaves of each come first. */
static int by_namespace(const void *x, const void *y)
{
	const struct settled *a = x, *b = y;
	const int rc = strcmp(a->namespace_, b->namespace_);

	return rc ? rc : a->parent - b->parent;
}

/* Return the queue with this name; NULL = none, or no name. */
static struct settled *find(struct settled *all, size_t n, const char *name)
{
	struct site_queue q = { .name = name };
	const struct settled key = { .q = &q };

	return name ? bsearch(&key, all, n, sizeof(*all), by_name) : NULL;
}

/* Settle the namespace and the one user of a queue. all is in the order of names. */
static void inherit(struct settled *all, size_t n, struct settled *of)
{
	const struct settled *s = of;
	bool users = false;

	of->namespace_ = NULL;
	for (int hops = 0; s && hops < HOPS_MAX; s = find(all, n, s->q->parent), hops++) {
		const struct site_queue *q = s->q;

		if (!of->namespace_)
			of->namespace_ = q->namespace_;
		if (!users && (users = q->users.n || q->groups.n) && q->users.n == 1 &&
		    !q->groups.n)
			of->user = q->users.items[0];
	}
	if (!of->namespace_)
		of->namespace_ = "";
}

/* Settle those of one namespace, the leaves of which come first. */
static void settle(const struct settled *all, size_t n)
{
	const bool leaves = !all[0].parent;
	const char *user = all[0].user;

	for (size_t i = 1; user && i < n && !all[i].parent; i++)
		if (!all[i].user || strcmp(all[i].user, user) != 0)
			user = NULL;
	for (size_t i = 0; i < n; i++)
		all[i].q->one_user =
			all[i].user && (!leaves || (user && strcmp(all[i].user, user) == 0));
}

int walls_settle(struct site *s, struct gpuq_err *err)
{
	const size_t n = s->queues.n;
	struct site_queue *queues = s->queues.items;
	struct settled *all = calloc(n + 1, sizeof(*all));

	if (!all)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < n; i++)
		all[i].q = &queues[i];
	qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++) {
		struct settled *parent = find(all, n, all[i].q->parent);

		if (parent)
			parent->parent = true;
		inherit(all, n, &all[i]);
	}
	qsort(all, n, sizeof(*all), by_namespace);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(all[to].namespace_, all[from].namespace_) == 0;
		     to++)
			;
		settle(all + from, to - from);
	}
	free(all);
	return 0;
}

/* ---- the walls of a queue ---- */

/* Return what a list of mounts allows: two words, or globs of names. */
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
		.secrets.kind = leaf && leaf->one_user ? WALL_ANY : WALL_OWNER,
	};
	for (int hops = 0; q && hops < HOPS_MAX; q = site_queue_above(s, q), hops++) {
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

/* True if it has only the characters of names of objects, * and ?. */
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
			return "expected any, owner, or names as in Kubernetes, with * and ?";
	}
	return NULL;
}

int walls_check_isolation(struct gpuq_reader *r, const struct gpuq_val *v, struct site *s, size_t i)
{
	struct site_queue *q = (struct site_queue *)s->queues.items + i;
	const struct site_queue *most = q;
	char what[256];
	size_t m1, m2;
	int rc;

	if (q->isolation == GPUQ_ISOLATION_NONE)
		return 0;
	for (const struct site_queue *up = q; up;
	     up = up->parent ? site_queue_find(s, up->parent) : NULL)
		most = up->isolation > most->isolation ? up : most;
	/* A stored site is printed with the isolation that has effect, so that a file made of it is taken. */
	if (r->stored)
		q->isolation = most->isolation;
	if (most == q || r->stored)
		return 0;
	snprintf(what, sizeof(what), "expected at least %s, which the queue %s above it demands",
		 gpuq_isolation_word((enum gpuq_isolation)most->isolation), most->name);
	m1 = gpuq_reader_enter(r, "queues");
	m2 = gpuq_reader_enter_member(r, gpuq_get(v, "queues"), i);
	rc = gpuq_reader_fail_key(r, gpuq_get(v, "queues")->items[i], "isolation", what);
	gpuq_reader_leave(r, m2);
	gpuq_reader_leave(r, m1);
	return rc;
}
