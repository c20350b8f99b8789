#include "gpuqd/state/view/cards.h"

#include "gpuqd/devices/backend.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/displaced.h"
#include "libgpuq/spec/profile.h"

static const char *product_of(const struct node *n)
{
	return gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
}

/* A seventh is rounded up where it is charged, and a replica of it down; all of a card are a card. */
static int64_t exactly(const char *profile, int64_t count)
{
	return cost_exact(profile, count) * 1000 / COST_EXACT;
}

/* Return how many replicas of a profile gpuq's pods have; of whole instances 0: those count as they are charged. */
static int64_t replicas_held(const struct node *n, const char *profile)
{
	return gpuq_profile_is_shared(profile) ? model_instances_held(n, profile) : 0;
}

struct cards cards_of(const struct node *n)
{
	const char *product = product_of(n);
	struct cards out = { 0 };
	int64_t most = 0;
	const struct pod *p;

	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];
		const int64_t slots = cost_instances(f->profile, product);
		const int64_t cards = (f->count + slots - 1) / slots;

		most = cards > most ? cards : most;
		const int64_t held = n->foreign_mig[i] + replicas_held(n, f->profile);

		out.cut_milli += exactly(f->profile, f->count);
		out.taken_milli += exactly(f->profile, held < f->count ? held : f->count);
	}
	out.total_milli = (out.cut_milli + 999) / 1000 * 1000;
	if (out.total_milli < most * 1000)
		out.total_milli = most * 1000;
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && p->n_devices == 0 &&
		    !(model_pod_mig(p) && gpuq_profile_is_shared(model_pod_mig(p))))
			out.taken_milli += p->gpus_milli;
	/* Devices that were cut under pods that hold them. */
	if (n->n_offered == 0)
		out.taken_milli += displaced_devices(n);
	if (out.taken_milli > out.cut_milli)
		out.taken_milli = out.cut_milli;
	return out;
}

int64_t cards_refused(const struct node *n, const struct cards *c, int64_t now_us)
{
	int64_t milli = 0;

	for (size_t i = 0; i < n->fact.n_mig; i++)
		milli += exactly(n->fact.mig[i].profile,
				 node_lacks_instances(n, n->fact.mig[i].profile, now_us));
	return milli < c->cut_milli - c->taken_milli ? milli : c->cut_milli - c->taken_milli;
}

bool cards_any_of(const struct model *m, const char *sharing)
{
	node_each(m, n)
		if (!n->gone && n->backend && strcmp(n->backend->pool, sharing) == 0)
			return true;
	return false;
}
