#include "gpuqd/state/cuts/claim_part.h"

#include <string.h>

#include <utlist.h>

#include "gpuqd/devices/dra/dra_cards.h"

/* Return the pod of gpuq's that a claim was made for; NULL = of none. */
static const struct pod *pod_of(const struct node *n, const struct dra_claim *c)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (c && *c->owner && model_pod_takes(p) && strcmp(p->uid, c->owner) == 0)
			return p;
	return NULL;
}

static int64_t memory_mib(const struct dra_at *at)
{
	const struct dra_word *w = dra_own_word(at, true, "memory");

	return w ? w->number / 1000 >> 20 : -1;
}

/* Parts that share counters are possible ones: they are there once they are allocated. */
static bool is_there(const struct dra_at *at)
{
	return at->used || at->device->n_consumes == 0;
}

size_t claim_part_list(const struct model *m, const struct node *n, struct gpuq_arena *a,
		       struct claim_part **out)
{
	const struct dra *d = objects_dra(m->objects);
	struct gpuq_strlist classes;
	struct dra_at *at, *cards;
	const char *odd;
	size_t n_at, n_cards, n_out = 0;

	*out = NULL;
	if (!node_is_of_claims(n))
		return 0;
	model_classes(m, a, &classes);
	n_at = dra_node(d, n->name, a, &at, &odd);
	n_cards = dra_cards_among(d, at, n_at, &classes, a, &cards);
	*out = gpuq_arena_calloc(a, n_at + 1, sizeof(**out));
	for (size_t i = 0; *out && i < n_at; i++) {
		const struct dra_at *x = &at[i];
		const int64_t milli = is_there(x) ? dra_part_milli(cards, n_cards, x) : 1000;
		const char *profile = dra_profile(x);

		if (milli < 1000)
			(*out)[n_out++] = (struct claim_part){ dra_card_of(cards, n_cards, x->slice,
									   x->device),
							       *profile ? profile : NULL,
							       milli,
							       memory_mib(x),
							       pod_of(n, x->used),
							       x->used != NULL };
	}
	return n_out;
}
