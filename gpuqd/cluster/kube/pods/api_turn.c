#include "gpuqd/cluster/kube/pods/api_turn.h"
#include "gpuqd/cluster/kube/pods/api_create.h"

#include <stdlib.h>
#include <string.h>

/* A plugin that finds its pod by the amount alone confuses two that wait on one node for the
 * same amount: the second is created when the first has its device, or after a minute. */
#define TURN_US (60 * INT64_C(1000000))

struct turn {
	struct turn *next;
	struct asks *asks;
	struct loop_timer *end;
	int64_t units;
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
	struct turn *t = arg, **at = &t->asks->turns;

	t->end = NULL;
	while (*at != t)
		at = &(*at)->next;
	end(at);
}

bool turn_take(struct asks *a, const char *node, int64_t units, const char *pod)
{
	struct turn *t;

	for (t = a->turns; t; t = t->next)
		if (t->units == units && strcmp(t->node, node) == 0)
			return strcmp(t->pod, pod) == 0;
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
	return true;
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
