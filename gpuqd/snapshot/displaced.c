#include "gpuqd/snapshot/displaced.h"

#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/snapshot/cost.h"
#include "libgpuq/spec/profile.h"

int64_t displaced_devices(const struct node *n)
{
	const struct pod *p;
	int64_t milli = 0;

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] >= n->n_offered)
				milli += p->gpus_milli / p->n_devices;
	return milli;
}

int64_t displaced_instances(const struct node *n)
{
	const struct pod *p;
	int64_t exact = 0;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && model_pod_mig(p) &&
		    !model_offers_instances(n, model_pod_mig(p)))
			exact += cost_exact(model_pod_mig(p), model_pod_instances(p));
	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];
		const int64_t more = model_instances_held(n, f->profile) - f->count;

		/* None at all: its plugin is being started, or does not tell how many there are. */
		if (more > 0 && f->count > 0)
			exact += cost_exact(f->profile, more);
	}
	return (exact * 1000 + COST_EXACT - 1) / COST_EXACT;
}

int64_t displaced_left(const struct model *m, const struct node *n)
{
	const char *device = n->fact.device;
	const int64_t r = n->fact.replicas > 1 ? n->fact.replicas : 1;
	int64_t left;

	if (!device || !*device || !n->backend || (n->backend->parts && !n->backend->by_replica) ||
	    !node_offers(n, device))
		return GPUQ_UNLIMITED;
	left = node_ledger_free(m, n, device);
	for (uint32_t i = 0; i < n->n_offered && i < n->n_devices; i++)
		if (!n->devices[i].healthy &&
		    (n->foreign_on[i].milli > 0 || model_device_is_held(n, i)))
			left += r;
	return left > 0 ? left : 0;
}

int64_t displaced_replicas(const struct node *n, uint32_t device, int64_t replica_milli,
			   int64_t *milli)
{
	const struct pod *p;
	int64_t count = 0;

	*milli = 0;
	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] == device) {
				const int64_t part = p->gpus_milli / p->n_devices;

				count += (part + replica_milli - 1) / replica_milli;
				*milli += part;
			}
	return count;
}
