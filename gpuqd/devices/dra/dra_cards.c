#include "gpuqd/devices/dra/dra_cards.h"

#include <string.h>

#include "gpuqd/devices/dra/dra_match.h"

/* Words with which the names of drivers, and of their classes, begin whose devices are GPUs and
 * their like, without being told. */
static const char *const usual[] = { "gpu.", "mig.", "vfio.gpu.", "tpu." };

bool dra_is_usual(const char *name)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (strncmp(name, usual[i], strlen(usual[i])) == 0)
			return true;
	return false;
}

bool dra_counts(const char *class_, const struct gpuq_strlist *classes)
{
	return dra_is_usual(class_) || gpuq_strlist_has(classes, class_);
}

/* Return how much of all counters the device consumes; the sum only orders devices of one pool. */
static int64_t weight(const struct dra_device *d)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < d->n_consumes; i++)
		if (__builtin_add_overflow(sum, d->consumes[i].milli, &sum))
			return INT64_MAX;
	return sum;
}

/* Two devices are of one card where they draw on the same counter set. */
static bool shares(const struct dra_device *a, const struct dra_device *b)
{
	for (uint32_t i = 0; i < a->n_consumes; i++)
		for (uint32_t k = 0; k < b->n_consumes; k++)
			if (strcmp(a->consumes[i].set, b->consumes[k].set) == 0)
				return true;
	return false;
}

/* True if the device is a part of another one: both share counters, of which the other takes more, or
 * as much and comes first. */
static bool is_part(const struct dra_at *all, size_t n, size_t at)
{
	const struct dra_at *x = &all[at];
	const int64_t own = x->device->n_consumes ? weight(x->device) : 0;

	for (size_t i = 0; x->device->n_consumes && i < n; i++) {
		const struct dra_at *o = &all[i];
		int64_t more;

		if (i == at || o->device->n_consumes == 0 ||
		    strcmp(o->slice->pool, x->slice->pool) != 0 ||
		    strcmp(o->slice->driver, x->slice->driver) != 0 ||
		    !shares(x->device, o->device))
			continue;
		more = weight(o->device);
		if (more > own || (more == own && i < at))
			return true;
	}
	return false;
}

size_t dra_cards_among(const struct dra *d, const struct dra_at *all, size_t n,
		       const struct gpuq_strlist *classes, struct gpuq_arena *a,
		       struct dra_at **out)
{
	bool *counted = gpuq_arena_calloc(a, n + 1, sizeof(*counted));
	struct dra_at *cards = gpuq_arena_calloc(a, n + 1, sizeof(*cards));
	size_t n_cards = 0;

	*out = cards;
	if (!counted || !cards)
		return 0;
	for (size_t i = 0; i < n; i++)
		counted[i] = dra_is_usual(all[i].slice->driver);
	for (size_t i = 0; i < classes->n; i++)
		dra_class_selects(d, classes->items[i], all, n, a, counted);
	for (size_t i = 0; i < n; i++)
		if (counted[i] && !is_part(all, n, i))
			cards[n_cards++] = all[i];
	return n_cards;
}

size_t dra_cards(const struct dra *d, const char *node, const struct gpuq_strlist *classes,
		 struct gpuq_arena *a, struct dra_at **out, const char **odd)
{
	struct dra_at *all;
	const size_t n = dra_node(d, node, a, &all, odd);

	return dra_cards_among(d, all, n, classes, a, out);
}

size_t dra_card_of(const struct dra_at *cards, size_t n, const struct dra_slice *slice,
		   const struct dra_device *device)
{
	size_t first = n;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(cards[i].slice->pool, slice->pool) != 0 ||
		    strcmp(cards[i].slice->driver, slice->driver) != 0)
			continue;
		if (strcmp(cards[i].device->name, device->name) == 0)
			return i;
		if (first == n && shares(cards[i].device, device))
			first = i;
	}
	return first;
}

bool dra_is_well(const struct dra_device *d)
{
	for (uint32_t i = 0; i < d->n_taints; i++)
		if (strcmp(d->taints[i].effect, "NoSchedule") == 0 ||
		    strcmp(d->taints[i].effect, "NoExecute") == 0)
			return false;
	return d->odd == NULL;
}

const struct dra_word *dra_own_word(const struct dra_at *at, bool capacity, const char *name)
{
	const size_t n = strlen(at->slice->driver);

	for (uint32_t i = 0; i < dra_count_words(at->device); i++) {
		const struct dra_word *w = dra_word_at(at->device, i);

		if (w->capacity == capacity && strncmp(w->name, at->slice->driver, n) == 0 &&
		    w->name[n] == '/' && strcmp(w->name + n + 1, name) == 0)
			return w;
	}
	return NULL;
}
