#include "gpuqd/sched/place/packer.h"

#include <stdlib.h>

#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/quota/cycle.h"

struct packer {
	struct gpuq_arena mem;
	struct cycle c;
	struct plan_pod *pods;
	uint32_t room_pods;
};

static const enum pack_policy policies[] = { PACK_DEFAULT, PACK_BESTFIT, PACK_FGD };

int packer_new(const struct snapshot *s, enum packer_policy policy, struct packer **out,
	       struct gpuq_err *err)
{
	struct packer *p;

	if (!s->sealed)
		return gpuq_fail(err, GPUQ_EINVAL, "the snapshot has not been sealed");
	p = calloc(1, sizeof(*p));
	if (!p)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	p->mem = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	p->c = (struct cycle){ .s = s, .mem = &p->mem };
	feasibility_init(&p->c);
	pack_init(&p->c, policies[policy], true);
	nodes_init(&p->c);
	if (p->c.failed) {
		packer_free(p);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	*out = p;
	return 0;
}

void packer_free(struct packer *p)
{
	if (!p)
		return;
	gpuq_arena_done(&p->c.scratch);
	gpuq_arena_done(&p->mem);
	free(p);
}

int packer_place(struct packer *p, uint32_t job, const struct plan_pod **pods, uint32_t *n_pods,
		 const uint32_t **devices, struct gpuq_err *err)
{
	struct cycle *c = &p->c;
	const struct snap_request *r = cycle_request(c, job);
	const uint32_t n = r->gpus_milli > 0 ? r->n_flavor_ix : 1;
	bool placed = false;

	gpuq_arena_reset(&c->scratch);
	for (uint32_t i = 0; i < n && !placed && !c->failed; i++)
		placed = pack_job(c, job, r->gpus_milli > 0 ? r->flavor_ix[i] : SNAP_NONE);
	if (placed && p->room_pods < c->places.n_pods) {
		p->room_pods = c->places.n_pods;
		p->pods = cycle_alloc(c, p->room_pods, sizeof(*p->pods));
	}
	if (c->failed)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (uint32_t i = 0; placed && i < c->places.n_pods; i++) {
		const struct place *at = &c->places.pods[i];

		p->pods[at->index] = (struct plan_pod){
			.group = at->group,
			.index = at->index,
			.node = at->node,
			.device_first = at->device_first,
			.n_devices = at->n_devices,
			.milli = at->n_devices ? at->milli : 0,
		};
	}
	if (placed) {
		*pods = p->pods;
		*n_pods = c->places.n_pods;
		*devices = c->places.devices;
	}
	return placed;
}
