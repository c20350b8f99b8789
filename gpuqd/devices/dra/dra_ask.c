#include "gpuqd/devices/dra/dra_ask.h"

#include <string.h>

/* The names of alternatives that gpuqd makes, in their order. */
static const char *const names[] = {
	"alt1", "alt2", "alt3", "alt4", "alt5", "alt6", "alt7", "alt8"
};

static struct dra_option option_of(const char *name, const char *class_, int64_t count, bool all,
				   const struct gpuq_strlist *selectors)
{
	return (struct dra_option){ .name = name,
				    .class_ = class_,
				    .selectors = *selectors,
				    .all = all,
				    .count = all     ? 0
					     : count ? count
						     : 1 };
}

bool dra_spec_of(struct gpuq_arena *a, const struct gpuq_claim *c, struct dra_spec *out)
{
	const size_t n = c->n_first ? c->n_first : 1;
	struct dra_option *options = gpuq_arena_calloc(a, n, sizeof(*options));
	struct dra_request *r = gpuq_arena_calloc(a, 1, sizeof(*r));

	if (!options || !r || n > sizeof(names) / sizeof(names[0]))
		return false;
	for (size_t i = 0; i < c->n_first; i++)
		options[i] = option_of(names[i], c->first[i].class_, c->first[i].count,
				       c->first[i].all, &c->first[i].selectors);
	if (c->n_first == 0)
		options[0] = option_of("", c->class_, c->count, c->all, &c->selectors);
	*r = (struct dra_request){ c->name, options, (uint32_t)n };
	*out = (struct dra_spec){ .requests = r, .n_requests = 1, .config = "", .odd = "" };
	return true;
}

int64_t dra_devices_of(const struct dra_spec *s, const struct gpuq_strlist *classes, bool *all)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < s->n_requests; i++) {
		int64_t most = 0;

		for (uint32_t k = 0; k < s->requests[i].n_options; k++) {
			const struct dra_option *o = &s->requests[i].options[k];

			if (!dra_counts(o->class_, classes))
				continue;
			*all |= o->all;
			if (!o->all && o->count > most)
				most = o->count;
		}
		sum += most < DRA_RESULTS_MAX ? most : DRA_RESULTS_MAX;
	}
	return sum;
}

int64_t dra_least_of(const struct dra_spec *s, const struct gpuq_strlist *classes)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < s->n_requests; i++) {
		int64_t least = DRA_RESULTS_MAX;

		for (uint32_t k = 0; k < s->requests[i].n_options; k++) {
			const struct dra_option *o = &s->requests[i].options[k];
			const int64_t n = dra_counts(o->class_, classes) ? o->count : 0;

			least = n < least ? n : least;
		}
		sum += least;
	}
	return sum;
}

int64_t dra_devices_on(const struct dra *d, const char *node, const struct dra_spec *const *specs,
		       size_t n, const struct gpuq_strlist *classes)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_pick *picks = gpuq_arena_calloc(&a, n * DRA_RESULTS_MAX + 1, sizeof(*picks));
	struct dra_at *at;
	const char *odd;
	const size_t n_at = dra_node(d, node, &a, &at, &odd);
	size_t n_picks = 0;
	struct dra_at *cards = NULL;
	size_t n_cards = 0;
	bool *taken;
	int64_t sum = 0;

	for (size_t i = 0; i < n_at; i++)
		at[i].used = NULL;
	if (picks && n_at &&
	    dra_match(d, at, n_at, NULL, specs, n, &a, picks, &n_picks, NULL) == DRA_FITS)
		n_cards = dra_cards_among(d, at, n_at, classes, &a, &cards);
	taken = gpuq_arena_calloc(&a, n_cards + 1, sizeof(*taken));
	/* All parts of a card are one device. */
	for (size_t i = 0; taken && i < n_picks; i++) {
		const size_t card = dra_card_of(cards, n_cards, picks[i].slice, picks[i].device);

		if (!dra_counts(picks[i].option->class_, classes))
			continue;
		sum += card == n_cards || !taken[card];
		taken[card] = card < n_cards;
	}
	gpuq_arena_done(&a);
	return sum;
}

bool dra_named_before(const struct gpuq_group *g, size_t at)
{
	for (size_t i = 0; g->claims[at].claim && i < at; i++)
		if (g->claims[i].claim && strcmp(g->claims[i].claim, g->claims[at].claim) == 0)
			return true;
	return false;
}

enum dra_found dra_find(const struct dra *d, const struct gpuq_claim *c, const char *namespace_,
			struct gpuq_arena *a, struct dra_spec *out, const struct dra_claim **claim)
{
	const struct dra_template *t;

	*claim = NULL;
	if (c->claim) {
		*claim = dra_claim(d, namespace_, c->claim);
		if (*claim)
			*out = (*claim)->spec;
		return *claim ? DRA_FOUND : DRA_MISSING;
	}
	if (c->template_) {
		t = dra_template(d, namespace_, c->template_);
		if (t)
			*out = t->spec;
		return t ? DRA_FOUND : DRA_MISSING;
	}
	return dra_spec_of(a, c, out) ? DRA_FOUND : DRA_MISSING;
}
