#include "gpuqd/devices/dra/dra_choice.h"

#include <string.h>

#define COMBINATIONS_MAX 4096u /* of which the first are looked at */

/* Return how many combinations there are, 0 = too many; *n_open: of how many requests. */
static uint32_t combinations(const struct dra_spec *const *specs, size_t n, uint32_t *n_open)
{
	uint32_t all = 1;

	*n_open = 0;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < specs[i]->n_requests; k++) {
			*n_open += specs[i]->requests[k].n_options > 1;
			all *= specs[i]->requests[k].n_options;
			if (all == 0 || all > COMBINATIONS_MAX)
				return 0;
		}
	return all;
}

bool dra_choose(const struct dra_spec *const *specs, size_t n, struct gpuq_alternatives choice,
		struct gpuq_arena *a, struct dra_spec *out)
{
	uint32_t n_open, left = combinations(specs, n, &n_open), at = choice.first - 1u;

	for (size_t i = 0; i < n; i++)
		out[i] = *specs[i];
	if (choice.first == 0)
		return true;
	if (choice.last < choice.first || choice.last > left ||
	    (choice.last > choice.first && n_open > 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct dra_request *all = gpuq_arena_calloc(a, out[i].n_requests + 1, sizeof(*all));

		if (!all)
			return false;
		for (uint32_t k = 0; k < out[i].n_requests; k++) {
			all[k] = specs[i]->requests[k];
			if (all[k].n_options <= 1)
				continue;
			left /= all[k].n_options;
			all[k].options += at / left;
			all[k].n_options = choice.last - choice.first + 1u;
			at %= left;
		}
		out[i].requests = all;
	}
	return true;
}

static bool same_result(const struct dra_result *r, const struct dra_request *q,
			const struct dra_option *o)
{
	const size_t n = strlen(q->name);

	return strncmp(r->request, q->name, n) == 0 && r->request[n] == '/' &&
	       strcmp(r->request + n + 1, o->name) == 0;
}

bool dra_chosen(const struct dra_claim *c, const struct dra_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_requests; i++) {
		const struct dra_request *q = &spec->requests[i];
		bool has = c->spec.n_requests != spec->n_requests ||
			   c->spec.requests[i].n_options <= 1;

		for (uint32_t k = 0; k < c->n_results && !has; k++)
			for (uint32_t o = 0; o < q->n_options && !has; o++)
				has = same_result(&c->results[k], q, &q->options[o]);
		if (!has)
			return false;
	}
	return true;
}

/* ---- the list ---- */

struct listing {
	const struct dra *d;
	const struct dra_spec *specs[GPUQ_CLAIMS_MAX];
	const struct dra_claim *allocated[GPUQ_CLAIMS_MAX]; /* NULL = it is not */
	size_t n;
	const struct gpuq_strlist *classes;
	struct dra_choice *out;
	uint32_t n_out;
	bool full;
};

/* Return what a combination is charged; -1 = an allocated claim has another one. */
static int64_t charge_of(const struct listing *l, uint32_t number, struct gpuq_arena *a)
{
	const struct gpuq_alternatives is = { (uint16_t)number, (uint16_t)number };
	struct dra_spec specs[GPUQ_CLAIMS_MAX];

	if (!dra_choose(l->specs, l->n, is, a, specs))
		return -1;
	for (size_t i = 0; i < l->n; i++)
		if (l->allocated[i] && !dra_chosen(l->allocated[i], &specs[i]))
			return -1;
	return dra_charge_all(l->d, specs, l->n, l->classes);
}

/* Add the combinations first to last as one choice, while there is room for it. */
static void add(struct listing *l, uint32_t first, uint32_t last, int64_t milli)
{
	l->full |= l->n_out == DRA_CHOICES_MAX;
	if (!l->full)
		l->out[l->n_out++] =
			(struct dra_choice){ { (uint16_t)first, (uint16_t)last }, milli };
}

/* List combinations one by one; after neighbours that are charged the same, any of these, if pods may mix. */
static void list(struct listing *l, uint32_t n, bool mixes)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	uint32_t run = 0; /* the first of the present neighbours */
	int64_t of_run = -1;

	for (uint32_t i = 1; i <= n + 1 && !l->full; i++) {
		const int64_t charge = i <= n ? charge_of(l, i, &a) : -1;

		gpuq_arena_reset(&a);
		if (charge < 0 || charge != of_run) {
			if (mixes && of_run >= 0 && i - run > 1)
				add(l, run, i - 1, of_run);
			run = i;
			of_run = charge;
		}
		if (charge >= 0)
			add(l, i, i, charge);
	}
	gpuq_arena_done(&a);
}

uint32_t dra_choices(const struct dra *d, const struct gpuq_claim *claims, size_t n_claims,
		     const char *namespace_, const struct gpuq_strlist *classes, bool mixes,
		     struct dra_choice out[DRA_CHOICES_MAX])
{
	struct listing l = { .d = d, .n = n_claims, .classes = classes, .out = out };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_spec specs[GPUQ_CLAIMS_MAX];
	uint32_t n = 1, n_open = 0;
	int64_t least, most, counted = 0;
	bool all = false;

	for (size_t i = 0; n && i < n_claims; i++) {
		const struct dra_claim *claim;

		if (dra_find(d, &claims[i], namespace_, &a, &specs[i], &claim) != DRA_FOUND)
			n = 0;
		else
			counted += dra_devices_of(&specs[i], classes, &all);
		l.specs[i] = &specs[i];
		l.allocated[i] = n && claim && claim->allocated ? claim : NULL;
	}
	most = n && counted ? dra_charge(d, l.specs, l.n, classes, false) : 0;
	least = most ? dra_charge(d, l.specs, l.n, classes, true) : 0;
	if (n && most > 0 && !all) {
		n = combinations(l.specs, l.n, &n_open);
		if (n_open == 0 && n)
			add(&l, 0, 0, most);
		if (n_open && n)
			list(&l, n, mixes && n_open == 1);
		if (l.n_out && mixes && n_open > 1 && least == most)
			add(&l, 0, 0, most);
		/* With some that do not count the job would be one of devices, and one of none. */
		if (n_open && (n == 0 || (l.n_out && least == 0))) {
			l.n_out = 1;
			out[0] = (struct dra_choice){ { 0, 0 }, most };
		} else if (l.full) {
			out[DRA_CHOICES_MAX - 1] = (struct dra_choice){ { 0, 0 }, most };
		}
	}
	gpuq_arena_done(&a);
	return most > 0 ? l.n_out : 0;
}

const struct dra_choice *dra_choice_most(const struct dra_choice *all, uint32_t n)
{
	const struct dra_choice *most = all;

	for (uint32_t i = 1; i < n; i++)
		if (all[i].milli > most->milli)
			most = &all[i];
	return most;
}
