/* Rights over keys of the site, and the changes that could cost a running job its devices. */
#include "gpuqd/flow/admit/apply_access.h"

#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/site/walls.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/admit/apply_reserve.h"

enum {
	OWN = POLICY_OWN, /* a manager may change it of the managed queue itself */
	BELOW = POLICY_BELOW, /* and of queues below it */
	CALM = 4, /* has no effect on running jobs */
};

/* Keys of a queue that are not listed are for operators only and may cause evictions; those that
 * the scheduler reads say it in their rows. How a queue's
 * resources are divided among the queues below it (quota, weight...) is its manager's decision; how
 * much the queue itself gets is not. Nor is what pods may do, nor how its work is protected from
 * other queues. */
/* clang-format off */
static const struct {
	const char *key;
	unsigned may;
} queue_keys[] = {
	{ "users", OWN | BELOW | CALM },
	{ "groups", OWN | BELOW | CALM },
	{ "default_time", OWN | BELOW | CALM },
	{ "closed", OWN | BELOW | CALM },
	{ "flavors", OWN | BELOW },
	{ "managers", BELOW | CALM },
	{ "max_time", BELOW | CALM },
	{ "idle", BELOW | CALM },
	{ "max_submitted", BELOW | CALM },
	{ "start_timeout", BELOW | CALM },
	{ "max_running", BELOW },
	{ "max_gpus", BELOW },
	{ "quota", BELOW },
	{ "limit", BELOW },
	{ "lend", BELOW },
	{ "shared_quota", BELOW },
	{ "budget", BELOW },
	{ "parent", BELOW },
	{ "image", CALM }, /* what other users' pods execute */
	{ "volumes", CALM },
	{ "workdir", CALM },
	{ "code", CALM },
	{ "logs_keep", CALM },
	{ "env", CALM },
	{ "namespace", CALM },
	{ "service_account", CALM },
	{ "priority_class", CALM },
	{ "service_accounts", CALM },
	{ "image_pull_secrets", CALM },
	{ "pod_policy", CALM },
	{ "secrets", CALM },
	{ "config_maps", CALM },
	{ "volume_claims", CALM },
	{ "service_account_token", CALM },
	{ "qos", CALM },
	{ "node_loss", CALM },
	{ "accounting_finalizer", CALM },
	{ "start", CALM },
#define X(kind, member, key, scenario, dflt, recorded, how, names, least, most, may, doc) \
	{ key, may },
	POLICY_QUEUE_KEYS(X)
#undef X
};
/* clang-format on */

static unsigned of_key(const char *key)
{
	for (size_t i = 0; i < sizeof(queue_keys) / sizeof(queue_keys[0]); i++)
		if (strcmp(queue_keys[i].key, key) == 0)
			return queue_keys[i].may;
	return 0;
}

static bool manages(const struct site *s, const struct site_queue *q, const char *who)
{
	for (size_t hops = 0; q && hops <= s->queues.n; hops++) {
		if (gpuq_strlist_has(&q->managers, who))
			return true;
		q = site_queue_above(s, q);
	}
	return false;
}

const struct site_queue *access_realm(const struct site *s, const struct site_queue *q,
				      const char *who)
{
	const struct site_queue *found = NULL;

	for (; q && manages(s, q, who); q = site_queue_above(s, q))
		found = q;
	return found;
}

/* True if the topmost queue that the user manages has a quota of its own. Without one the quotas
 * below it add up to its quota, and raising them would take from other queues. */
static bool quota_is_own(const struct site *s, const struct site_queue *q, const char *who)
{
	const struct site_queue *top = access_realm(s, q, who);

	return top && top->quota.given;
}

static int check_keys(const struct site *s, const struct site_queue *q, const char *who,
		      const struct gpuq_val *keys, unsigned need, struct gpuq_err *err)
{
	for (uint32_t i = 0; keys && i < keys->n; i++) {
		const char *key = keys->pairs[i].key;

		if (!(of_key(key) & need))
			return gpuq_fail(err, GPUQ_EPERM,
					 "queue %s: only an operator may change %s", q->name, key);
		if (strcmp(key, "quota") == 0 && !quota_is_own(s, q, who))
			return gpuq_fail(err, GPUQ_EPERM,
					 "queue %s: an operator must give the managed queue a "
					 "quota before its manager can divide it",
					 q->name);
	}
	return 0;
}

/* True if q is strictly below a queue that the user manages. The caller passes the old site. */
static bool is_below(const struct site *s, const struct site_queue *q, const char *who)
{
	const struct site_queue *above = q ? site_queue_above(s, q) : NULL;

	return above && manages(s, above, who);
}

static int check_queue(const struct site *old, const struct site *new_,
		       const struct gpuq_val *change, const char *who, struct gpuq_err *err)
{
	const char *name = strchr(gpuq_get_str(change, "object", "/"), '/') + 1;
	const struct site_queue *was = site_queue_find(old, name),
				*is = site_queue_find(new_, name);
	/* Rights come from the old site: a change cannot make its author a manager. */
	const struct site_queue *parent =
		!was && is && is->parent ? site_queue_find(old, is->parent) : NULL;
	const struct site_queue *new_parent =
		is && is->parent ? site_queue_find(old, is->parent) : NULL;
	const bool below = was ? is_below(old, was, who) : parent && manages(old, parent, who);
	unsigned need = below ? BELOW : OWN;
	int rc;

	if (was ? !manages(old, was, who) : !below)
		return gpuq_fail(
			err, GPUQ_EPERM,
			"queue %s: only an operator or a manager of a queue above it may do "
			"that",
			name);
	if (!is && !below)
		return gpuq_fail(
			err, GPUQ_EPERM,
			"queue %s: only an operator, or a manager of a queue above it, may "
			"remove it",
			name);
	if (was && is && gpuq_get(gpuq_get(change, "new"), "parent") &&
	    !(new_parent && manages(old, new_parent, who)))
		return gpuq_fail(err, GPUQ_EPERM, "queue %s: only managers of queue %s may do that",
				 name, is->parent);
	if (was && is && gpuq_get(gpuq_get(change, "new"), "parent") &&
	    !access_same_pods(old, name, new_, name))
		return gpuq_fail(
			err, GPUQ_EPERM,
			"queue %s: only an operator may put it below queue %s: its pods would "
			"get another namespace, service account, image, volumes, environment, "
			"pull secrets or pod policy",
			name, is->parent);
	if (was && is && !is->parent && was->parent)
		return gpuq_fail(err, GPUQ_EPERM,
				 "queue %s: only an operator may put it at the top", name);
	rc = check_keys(old, was ? was : parent, who, gpuq_get(change, "old"), need, err);
	return rc < 0 ? rc
		      : check_keys(old, was ? was : parent, who, gpuq_get(change, "new"), need,
				   err);
}

/* True if pods of the queue may mount any Secret of their namespace. */
static bool mounts_secrets(const struct site *s, const char *queue)
{
	struct site_walls w;

	walls_of_queue(s, queue, &w);
	return w.secrets.kind == WALL_ANY;
}

/* Check that Secrets stay behind their wall. Its default follows from the users of all queues of a
 * namespace: one who narrows these to one user must not come by the Secrets of the others. */
static int check_secrets(const struct site *old, const struct site *new_, struct gpuq_err *err)
{
	site_each(site_queue, new_->queues, q) {
		const struct site_queue *was = q;

		while (was && !site_queue_find(old, was->name))
			was = site_queue_above(new_, was);
		if (was && !mounts_secrets(old, was->name) && mounts_secrets(new_, q->name))
			return gpuq_fail(
				err, GPUQ_EPERM,
				"queue %s: only an operator may leave one user in its "
				"namespace, whose jobs could mount all Secrets there; with "
				"secrets: owner a manager may",
				q->name);
	}
	return 0;
}

int apply_allowed(const struct model *m, const struct site *new_, const struct gpuq_val *changes,
		  const char *who, int64_t now_us, struct gpuq_err *err)
{
	for (uint32_t i = 0; i < changes->n; i++) {
		const char *object = gpuq_get_str(changes->items[i], "object", "");
		int rc;

		if (strncmp(object, "reservation/", 12) == 0)
			rc = apply_reserve_allowed(m, new_, changes->items[i], who, now_us, err);
		else if (strncmp(object, "queue/", 6) == 0)
			rc = check_queue(m->site, new_, changes->items[i], who, err);
		else
			rc = gpuq_fail(err, GPUQ_EPERM, "%s: only an operator may change it",
				       object);
		if (rc < 0)
			return rc;
	}
	return check_secrets(m->site, new_, err);
}

static bool all_calm(const struct gpuq_val *keys)
{
	for (uint32_t i = 0; keys && i < keys->n; i++)
		if (!(of_key(keys->pairs[i].key) & CALM))
			return false;
	return true;
}

bool apply_may_evict(const struct gpuq_val *changes)
{
	for (uint32_t i = 0; i < changes->n; i++) {
		const struct gpuq_val *c = changes->items[i];
		const char *object = gpuq_get_str(c, "object", "");

		if (strncmp(object, "user/", 5) == 0 || strncmp(object, "group/", 6) == 0)
			continue;
		if (strncmp(object, "queue/", 6) != 0 || !all_calm(gpuq_get(c, "old")) ||
		    !all_calm(gpuq_get(c, "new")))
			return true;
	}
	return false;
}
