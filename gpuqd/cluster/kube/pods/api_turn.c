#include "gpuqd/cluster/kube/pods/api_turn.h"
#include "gpuqd/cluster/kube/pods/api_create.h"
#include "gpuqd/cluster/kube/pods/api_lock.h"
#include "gpuqd/devices/backend.h"

#include <stdlib.h>
#include <string.h>

/* A plugin that finds its pod by the amount alone confuses two that wait on one node for the
 * same amount, or any two: the second is created when the first has its device. */

struct turn {
	struct turn *next;
	struct asks *asks;
	struct loop_timer *end;
	struct loop_timer *silent; /* of a plugin that was given the lock */
	struct lock *lock; /* NULL = it needs none */
	int64_t units;
	int64_t since_us, until_us; /* wall clock; until 0 = served or gone */
	bool spent; /* it keeps others waiting no longer */
	bool served; /* by the plugin, which removes the lock */
	char *node, *pod;
};

static void free_turn(struct turn *t)
{
	loop_cancel(t->end);
	loop_cancel(t->silent);
	lock_release(t->lock, t->served);
	free(t->node);
	free(t->pod);
	free(t);
}

static void end(struct turn **at)
{
	struct turn *t = *at;
	struct asks *a = t->asks;

	*at = t->next;
	free_turn(t);
	creates_go_on(a);
}

static void on_end(void *arg)
{
	struct turn *t = arg;

	t->end = NULL;
	t->spent = true;
	creates_go_on(t->asks);
}

static void on_silent(void *arg)
{
	struct turn *t = arg;
	const struct cluster_sink *sink = t->asks->sink;

	t->silent = NULL;
	if (sink->troubled)
		sink->troubled(sink->arg, t->pod, BACKEND_TROUBLE,
			       "the device plugin of its node does not allocate its devices",
			       TROUBLE_PLUGIN);
}

/* Note that a pod is under way. ends: after a while the others wait no longer for it. */
static struct turn *note(struct asks *a, const char *node, int64_t units, const char *pod,
			 bool ends)
{
	struct turn *t;

	t = calloc(1, sizeof(*t));
	if (!t)
		abort(); /* as loop_after() */
	t->asks = a;
	t->units = units;
	t->since_us = loop_wall_us(a->loop);
	t->node = strdup(node);
	t->pod = strdup(pod);
	if (!t->node || !t->pod)
		abort();
	if (ends) {
		t->end = loop_after(a->loop, a->turn_us, on_end, t);
		t->until_us = t->since_us + a->turn_us;
	}
	t->next = a->turns;
	a->turns = t;
	return t;
}

/* True if it holds the lock that it needs. From then on the plugin is waited for. */
static bool has_lock(struct turn *t)
{
	if (!t->lock)
		return true;
	if (!lock_is_held(t->lock))
		return false;
	if (!t->silent)
		t->silent = loop_after(t->asks->loop, t->asks->plugin_us, on_silent, t);
	return true;
}

/* Report which pod another waits for. */
static void tell_wait(const struct turn *t, const char *pod)
{
	const struct cluster_sink *sink = t->asks->sink;
	const struct turn_wait w = { .node = t->node,
				     .namespace_ = "",
				     .pod = t->pod,
				     .since_us = t->since_us,
				     .until_us = t->until_us };

	if (sink->waits)
		sink->waits(sink->arg, pod, &w);
}

bool turn_take(struct asks *a, const char *node, int64_t units, const char *namespace_,
	       const char *pod)
{
	struct turn *t;

	/* Pods of an earlier process may be under way. */
	if (!a->listed)
		return false;
	for (t = a->turns; t; t = t->next)
		if (strcmp(t->node, node) == 0 && strcmp(t->pod, pod) == 0)
			return has_lock(t);
	for (t = a->turns; t; t = t->next)
		if (!t->spent && strcmp(t->node, node) == 0 &&
		    (t->units == units || t->units < 0 || units < 0)) {
			tell_wait(t, pod);
			return false;
		}
	t = note(a, node, units, pod, units > 0);
	if (units == UNSERVED_LOCK)
		t->lock = lock_take(a, node, namespace_, pod);
	return has_lock(t);
}

void turn_seen(struct asks *a, const char *node, int64_t units, const char *namespace_,
	       const char *pod, bool theirs)
{
	struct turn *t;

	for (t = a->turns; t; t = t->next)
		if (strcmp(t->node, node) == 0 && strcmp(t->pod, pod) == 0)
			return;
	t = note(a, node, units, pod, theirs || units > 0);
	if (units == UNSERVED_LOCK)
		t->lock = lock_assume(a, node, namespace_, pod);
	has_lock(t);
}

void turn_over(struct asks *a, const char *pod, bool served)
{
	for (struct turn **at = &a->turns; *at; at = &(*at)->next)
		if (strcmp((*at)->pod, pod) == 0) {
			(*at)->served = served;
			end(at);
			return;
		}
}

void turn_free_all(struct asks *a)
{
	struct turn *t;

	while ((t = a->turns) != NULL) {
		a->turns = t->next;
		free_turn(t);
	}
}
