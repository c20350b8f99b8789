#include "gpuqd/cluster/kube/pods/api_turn.h"
#include "gpuqd/cluster/kube/pods/api_create.h"

#include <stdlib.h>
#include <string.h>

/* A plugin that finds its pod by the amount alone confuses two that wait on one node for the
 * same amount, or any two: the second is created when the first has its device, or after a minute. */
#define TURN_US (60 * INT64_C(1000000))

struct turn {
	struct turn *next;
	struct asks *asks;
	struct loop_timer *end;
	int64_t units;
	bool spent; /* it keeps others waiting no longer */
	char *node, *pod;
};

static void end(struct turn **at)
{
	struct turn *t = *at;
	struct asks *a = t->asks;

	*at = t->next;
	loop_cancel(t->end);
	free(t->node);
	free(t->pod);
	free(t);
	creates_go_on(a);
}

static void on_end(void *arg)
{
	struct turn *t = arg;

	t->end = NULL;
	t->spent = true;
	creates_go_on(t->asks);
}

/* Note that a pod is under way, and is for a minute at most. */
static void note(struct asks *a, const char *node, int64_t units, const char *pod)
{
	struct turn *t;

	t = calloc(1, sizeof(*t));
	if (!t)
		abort(); /* as loop_after() */
	t->asks = a;
	t->units = units;
	t->node = strdup(node);
	t->pod = strdup(pod);
	if (!t->node || !t->pod)
		abort();
	t->end = loop_after(a->loop, TURN_US, on_end, t);
	t->next = a->turns;
	a->turns = t;
}

bool turn_take(struct asks *a, const char *node, int64_t units, const char *pod)
{
	struct turn *t;

	for (t = a->turns; t; t = t->next)
		if (strcmp(t->node, node) == 0 && strcmp(t->pod, pod) == 0)
			return true;
	for (t = a->turns; t; t = t->next)
		if (!t->spent && strcmp(t->node, node) == 0 &&
		    (t->units == units || t->units < 0 || units < 0))
			return false;
	note(a, node, units, pod);
	return true;
}

void turn_seen(struct asks *a, const char *node, int64_t units, const char *pod)
{
	for (struct turn *t = a->turns; t; t = t->next)
		if (strcmp(t->node, node) == 0 && strcmp(t->pod, pod) == 0)
			return;
	note(a, node, units, pod);
}

void turn_over(struct asks *a, const char *pod)
{
	for (struct turn **at = &a->turns; *at; at = &(*at)->next)
		if (strcmp((*at)->pod, pod) == 0) {
			end(at);
			return;
		}
}

void turn_free_all(struct asks *a)
{
	struct turn *t;

	while ((t = a->turns) != NULL) {
		a->turns = t->next;
		loop_cancel(t->end);
		free(t->node);
		free(t->pod);
		free(t);
	}
}
