#include "gpuqd/state/view/cards.h"

#include "gpuqd/devices/backend.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/cost.h"

static const char *product_of(const struct node *n)
{
	return gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
}

static int64_t sevenths(const char *profile, int64_t count)
{
	const int64_t milli = cost_of_profile(profile);

	/* A seventh is rounded up where it is charged; seven of them are a card. */
	return milli % 250 == 0 ? count * milli : count * (milli * 7 / 1000) * 1000 / 7;
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
		out.cut_milli += sevenths(f->profile, f->count);
		out.taken_milli += sevenths(
			f->profile, n->foreign_mig[i] < f->count ? n->foreign_mig[i] : f->count);
	}
	out.total_milli = (out.cut_milli + 999) / 1000 * 1000;
	if (out.total_milli < most * 1000)
		out.total_milli = most * 1000;
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && p->n_devices == 0)
			out.taken_milli += p->gpus_milli;
	if (out.taken_milli > out.cut_milli)
		out.taken_milli = out.cut_milli;
	return out;
}

bool cards_any_of_gpushare(const struct model *m)
{
	node_each(m, n)
		if (!n->gone && n->backend && strcmp(n->backend->pool, "gpushare") == 0)
			return true;
	return false;
}
