#include "gpuqd/devices/dra/dra_cards.h"

#include <string.h>

#include "gpuqd/devices/dra/dra_match.h"
#include "libgpuq/spec/profile.h"

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

/* The card of a device, as far as its attributes tell. */
struct names {
	const char *uuid;
	const char *parent; /* of a MIG instance; "" = it is none, or does not tell */
};

static const char *text_of(const struct dra_at *at, const char *name)
{
	const struct dra_word *w = dra_own_word(at, false, name);

	return w && w->type == GPUQ_CEL_STRING ? w->text : "";
}

static struct names names_of(const struct dra_at *at)
{
	return (struct names){ text_of(at, "uuid"), dra_parent(at) };
}

/* Two devices are of one card where they draw on the same counter set, or one names the other, or both a third. */
static bool same_card(const struct dra_at *x, const struct names *nx, const struct dra_at *y,
		      const struct names *ny)
{
	return strcmp(x->slice->pool, y->slice->pool) == 0 &&
	       strcmp(x->slice->driver, y->slice->driver) == 0 &&
	       ((*nx->parent &&
		 (strcmp(nx->parent, ny->parent) == 0 || strcmp(nx->parent, ny->uuid) == 0)) ||
		(*ny->parent && strcmp(ny->parent, nx->uuid) == 0) || shares(x->device, y->device));
}

/* True if the device is a part of another one of its card: of one that is no instance, or takes more of their
 * counters; of equals the first stands for the card. */
static bool is_part(const struct dra_at *all, const struct names *names, size_t n, size_t at)
{
	const struct dra_at *x = &all[at];
	const int64_t own = weight(x->device);

	if (x->device->n_consumes == 0 && !*names[at].parent)
		return false;
	for (size_t i = 0; i < n; i++) {
		int64_t more;

		if (i == at || !same_card(x, &names[at], &all[i], &names[i]))
			continue;
		if (!*names[at].parent != !*names[i].parent) {
			if (*names[at].parent)
				return true;
			continue;
		}
		more = weight(all[i].device);
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
	struct names *names = gpuq_arena_calloc(a, n + 1, sizeof(*names));
	struct dra_at *cards = gpuq_arena_calloc(a, n + 1, sizeof(*cards));
	size_t n_cards = 0;

	*out = cards;
	if (!counted || !names || !cards)
		return 0;
	for (size_t i = 0; i < n; i++) {
		counted[i] = dra_is_usual(all[i].slice->driver);
		names[i] = names_of(&all[i]);
	}
	for (size_t i = 0; i < classes->n; i++)
		dra_class_selects(d, classes->items[i], all, n, a, counted);
	for (size_t i = 0; i < n; i++)
		if (counted[i] && !is_part(all, names, n, i))
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
	const struct dra_at at = { slice, device, NULL };
	struct names own;

	/* Mostly it is a card itself. */
	for (size_t i = 0; i < n; i++)
		if (strcmp(cards[i].device->name, device->name) == 0 &&
		    strcmp(cards[i].slice->pool, slice->pool) == 0 &&
		    strcmp(cards[i].slice->driver, slice->driver) == 0)
			return i;
	own = names_of(&at);
	for (size_t i = 0; i < n; i++) {
		const struct names of_card = names_of(&cards[i]);

		if (same_card(&cards[i], &of_card, &at, &own))
			return i;
	}
	return n;
}

size_t dra_cards_one(const struct dra_at *cards, size_t n_cards, size_t card,
		     const struct dra_at *all, size_t n, struct dra_at *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t of = dra_card_of(cards, n_cards, all[i].slice, all[i].device);

		if (of == card || of == n_cards)
			out[kept++] = all[i];
	}
	return kept;
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

const char *dra_parent(const struct dra_at *at)
{
	return strcmp(text_of(at, "type"), "mig") == 0 ? text_of(at, "parentUUID") : "";
}

const char *dra_profile(const struct dra_at *at)
{
	return strcmp(text_of(at, "type"), "mig") == 0 ? text_of(at, "profile") : "";
}

bool dra_may_be_part(const struct dra_slice *s)
{
	for (uint32_t i = 0; i < s->n_devices; i++) {
		const struct dra_at at = { s, &s->devices[i], NULL };

		if (s->devices[i].n_consumes || *dra_parent(&at))
			return true;
	}
	return false;
}

/* Return how much of a counter the device consumes. */
static int64_t consumed(const struct dra_device *d, const struct dra_counter *c)
{
	for (uint32_t i = 0; i < d->n_consumes; i++)
		if (strcmp(d->consumes[i].name, c->name) == 0 &&
		    strcmp(d->consumes[i].set, c->set) == 0)
			return d->consumes[i].milli;
	return 0;
}

/* Return the mean of the shares of the card's counters that the part takes, in thousandths: parts that fit beside one
 * another are no more than the card. */
static int64_t of_counters(const struct dra_device *card, const struct dra_device *part)
{
	int64_t sum = 0, n = 0;

	for (uint32_t i = 0; i < card->n_consumes; i++) {
		int64_t all = card->consumes[i].milli, own = consumed(part, &card->consumes[i]);

		/* Amounts beyond 2^52 need not be exact. */
		for (; all > INT64_C(1) << 52 || own > INT64_C(1) << 52; own >>= 1)
			all >>= 1;
		if (all <= 0)
			continue;
		sum += own <= 0 ? 0 : own < all ? own * 1000 / all : 1000;
		n++;
	}
	return n > 0 ? sum / n : 1000;
}

int64_t dra_part_milli(const struct dra_at *cards, size_t n, const struct dra_at *at)
{
	const char *profile = dra_profile(at);
	const struct gpuq_slices s = gpuq_profile_slices(profile);
	const size_t card = dra_card_of(cards, n, at->slice, at->device);
	int64_t milli = 1000;

	/* Without a word of its card an instance is one. */
	if (*profile && (*dra_parent(at) || at->device->n_consumes))
		milli = s.has * 1000 / s.of;
	else if (card < n && cards[card].device != at->device && at->device->n_consumes)
		milli = of_counters(cards[card].device, at->device);
	return milli < 1 ? 1 : milli < 1000 ? milli : 1000;
}
