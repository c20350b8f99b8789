/* objects_rig.h - a model that knows objects of the cluster, and snapshots of it */
#ifndef TESTS_UNIT_OBJECTS_RIG_H
#define TESTS_UNIT_OBJECTS_RIG_H

#include <criterion/criterion.h>

#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/record/model_apply.h"
#include "tests/unit/model_rig.h"

static inline int tell(struct model *m, enum event_type type, const struct object_fact *f)
{
	struct event ev = { .type = type, .at_us = T0, .object = f };

	return model_apply(m, &ev, NULL);
}

static inline void known(struct model *m, enum object_kind kind, bool is)
{
	struct event ev = { .type = EV_OBJECTS_KNOWN, .at_us = T0 };

	ev.objects.kind = kind;
	ev.objects.known = is;
	ev.objects.home = "home";
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
}

static inline struct model *world_of(int64_t gpus)
{
	struct model *m = fresh(2, gpus);

	rig_site(m, "{version: 1, queues: [{name: default}, {name: far, namespace: away}]}");
	for (int k = 0; k < N_OBJECT_KINDS; k++)
		known(m, (enum object_kind)k, true);
	return m;
}

static inline struct model *world(void)
{
	return world_of(4);
}

static inline struct object_fact fact(enum object_kind kind, const char *namespace_,
				      const char *name)
{
	return (struct object_fact){ .kind = kind,
				     .namespace_ = namespace_,
				     .name = name,
				     .volume = "",
				     .class_ = "",
				     .selected = "" };
}

static inline struct snapshot *look(struct model *m)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL;

	cr_assert_eq(snapshot_take(m, T0, &s, &err), 0, "%s", err.text);
	return s;
}

/* Group 0 of the request of job i. */
static inline const struct snap_group *group(const struct snapshot *s, uint32_t i)
{
	return &s->requests[s->jobs[i].request].groups[0];
}

#endif
