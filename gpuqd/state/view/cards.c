#include "gpuqd/state/view/cards.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/cost.h"

/* True if the only instances of one slice with that memory are those of twice the memory, of which a
 * card has four: of A100-80, H100-80, H200 and B200; on cards of 40 GB 1g.10gb is one as well. */
static bool is_double(const char *profile, const char *product)
{
	static const char *const doubles[] = { "1g.20gb", "1g.24gb", "1g.35gb", "1g.36gb",
					       "1g.45gb" };

	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
		if (strncmp(profile, doubles[i], strlen(doubles[i])) == 0)
			return true;
	if (strncmp(profile, "1g.10gb", 7) != 0)
		return false;
	for (; *product; product++)
		if (strncmp(product, "40GB", 4) == 0)
			return true;
	return false;
}

/* Return the number of instances of the profile that a card has room for. */
static int64_t slots_of(const char *profile, const char *product)
{
	const int64_t milli = cost_of_profile(profile);

	if (is_double(profile, product))
		return 4;
	/* Three slices of compute have half of the memory, two a quarter, and four of seven are
	 * more than half. */
	return milli > 500 ? 1 : milli > 400 ? 2 : milli > 250 ? 3 : milli == 250 ? 4 : 7;
}

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
		const int64_t slots = slots_of(f->profile, product);
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
