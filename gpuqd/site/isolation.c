#include "gpuqd/site/isolation.h"

#include <stdio.h>

#include "libgpuq/names.h"

int isolation_check(struct gpuq_reader *r, const struct gpuq_val *v, struct site *s, size_t i)
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
