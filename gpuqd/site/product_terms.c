#include "gpuqd/site/product_terms.h"

#include <string.h>

#include "gpuqd/site/product.h"

/* Above the 100 that each of a job's own preferences may have. */
#define KIND_WEIGHT 10000

/* Return the requirement of a kind that one of n names means. */
static struct gpuq_require one_of(const struct gpuq_strlist *kinds, const char *const *names,
				  size_t n, struct gpuq_arena *a)
{
	struct gpuq_require r = { PRODUCT_LABEL, GPUQ_OP_IN, { NULL, 0 } };

	r.values.items = gpuq_arena_calloc(a, kinds->n + 1, sizeof(*r.values.items));
	for (size_t k = 0; r.values.items && k < kinds->n; k++) {
		size_t i = 0;

		while (i < n && !product_is(kinds->items[k], names[i]))
			i++;
		if (i < n)
			r.values.items[r.values.n++] = kinds->items[k];
	}
	/* No node has it now. */
	if (r.values.items && r.values.n == 0)
		r.values.items[r.values.n++] = names[0];
	return r;
}

void product_require(const struct gpuq_strlist *kinds, const struct gpuq_strlist *names,
		     struct gpuq_arena *a, struct product_terms *required)
{
	const struct gpuq_require r = one_of(kinds, names->items, names->n, a);
	const size_t n = required->n ? required->n : 1;
	struct gpuq_term *terms = gpuq_arena_calloc(a, n, sizeof(*terms));

	for (size_t i = 0; r.values.items && terms && i < n; i++) {
		const size_t had = required->n ? required->items[i].n : 0;
		struct gpuq_require *all = gpuq_arena_calloc(a, had + 1, sizeof(*all));

		if (!all)
			return;
		if (had)
			memcpy(all, required->items[i].all, had * sizeof(*all));
		all[had] = r;
		terms[i] = (struct gpuq_term){ .all = all, .n = had + 1 };
	}
	if (r.values.items && terms)
		*required = (struct product_terms){ terms, n };
}

void product_prefer(const struct gpuq_strlist *kinds, const struct gpuq_strlist *names,
		    struct gpuq_arena *a, struct product_terms *preferred)
{
	struct gpuq_term *terms = gpuq_arena_calloc(a, preferred->n + names->n, sizeof(*terms));
	size_t n = preferred->n;

	if (!terms)
		return;
	if (n)
		memcpy(terms, preferred->items, n * sizeof(*terms));
	for (size_t i = 0; i + 1 < names->n; i++) {
		struct gpuq_require *all = gpuq_arena_calloc(a, 1, sizeof(*all));

		if (!all)
			return;
		*all = one_of(kinds, &names->items[i], 1, a);
		terms[n++] = (struct gpuq_term){
			.all = all, .n = 1, .weight = KIND_WEIGHT * (int64_t)(names->n - 1 - i)
		};
	}
	*preferred = (struct product_terms){ terms, n };
}
