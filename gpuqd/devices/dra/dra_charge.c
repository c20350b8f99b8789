#include "gpuqd/devices/dra/dra_charge.h"

#include <string.h>

#include "gpuqd/devices/dra/dra_match.h"
#include "gpuqd/devices/dra/dra_weights.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"

/* A search over all nodes for the largest device that an option selects. */
struct search {
	const struct dra *d;
	const struct dra_option *is;
	const struct gpuq_strlist *classes;
	int64_t most; /* 0 = none yet */
};

static void look_at(void *arg, const char *node)
{
	struct search *s = arg;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_at *at, *cards;
	const char *odd;
	const size_t n = s->most < 1000 ? dra_node(s->d, node, &a, &at, &odd) : 0;
	bool *selects = n ? gpuq_arena_calloc(&a, n, sizeof(*selects)) : NULL;
	size_t n_cards;

	if (selects && dra_option_selects(s->d, s->is, at, n, &a, selects)) {
		n_cards = dra_cards_among(s->d, at, n, s->classes, &a, &cards);
		for (size_t i = 0; i < n && s->most < 1000; i++) {
			const int64_t one = selects[i] ? dra_part_milli(cards, n_cards, &at[i]) : 0;

			s->most = one > s->most ? one : s->most;
		}
	}
	gpuq_arena_done(&a);
}

/* Append words, each with its end. */
static void put_words(struct gpuq_buf *to, const struct gpuq_strlist *words)
{
	for (size_t i = 0; i < words->n; i++)
		gpuq_buf_printf(to, "%s\n", words->items[i]);
	gpuq_buf_addc(to, '\n');
}

/* Return the thousandths that one device of the option is charged. */
static int64_t weight_of(const struct dra *d, const struct dra_option *o,
			 const struct gpuq_strlist *classes)
{
	struct dra_weights *kept = dra_weights(d);
	struct search s = { d, o, classes, 0 };
	struct gpuq_buf key = GPUQ_BUF_INIT;

	if (!kept)
		return 1000;
	gpuq_buf_printf(&key, "%s\n", o->class_);
	put_words(&key, &o->selectors);
	put_words(&key, classes);
	if (!dra_weights_find(kept, gpuq_buf_str(&key), &s.most)) {
		dra_each_node(d, look_at, &s);
		/* Before there are any, they are whole ones. */
		s.most = s.most > 0 ? s.most : 1000;
		dra_weights_keep(kept, gpuq_buf_str(&key), s.most);
	}
	gpuq_buf_done(&key);
	return s.most;
}

struct sum {
	int64_t devices, milli;
	bool whole; /* one of them is no part */
};

/* Add the option of a request that is charged most, or least. */
static void add(const struct dra *d, const struct dra_request *r,
		const struct gpuq_strlist *classes, bool least, struct sum *to)
{
	struct sum one = { 0, 0, false };

	for (uint32_t k = 0; k < r->n_options; k++) {
		const struct dra_option *o = &r->options[k];
		const bool counts = dra_counts(o->class_, classes) && !o->all;
		const int64_t n = !counts                      ? 0
				  : o->count < DRA_RESULTS_MAX ? o->count
							       : DRA_RESULTS_MAX;
		const int64_t each = n ? weight_of(d, o, classes) : 0;

		if (k == 0 || (least ? n * each < one.milli : n * each > one.milli))
			one = (struct sum){ n, n * each, each == 1000 };
	}
	to->devices += one.devices;
	to->milli += one.milli;
	to->whole |= one.whole;
}

int64_t dra_charge(const struct dra *d, const struct dra_spec *const *specs, size_t n,
		   const struct gpuq_strlist *classes, bool least)
{
	struct sum s = { 0, 0, false };

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < specs[i]->n_requests; k++)
			add(d, &specs[i]->requests[k], classes, least, &s);
	return !s.whole && s.milli < 1000 ? s.milli : s.devices * 1000;
}

int64_t dra_charge_all(const struct dra *d, const struct dra_spec *specs, size_t n,
		       const struct gpuq_strlist *classes)
{
	const struct dra_spec *all[GPUQ_CLAIMS_MAX];

	for (size_t i = 0; i < n; i++)
		all[i] = &specs[i];
	return dra_charge(d, all, n, classes, false);
}
