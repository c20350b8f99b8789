#include "gpuqd/devices/dra/dra_copy.h"

#include <stdlib.h>
#include <string.h>

/* Each object is filled twice: first its bytes are counted, then they are written. Structs come on
 * multiples of 8, strings one behind the other. */
struct pen {
	unsigned char *at; /* NULL: they are counted */
	size_t n;
};

static void *take(struct pen *p, const void *from, size_t n)
{
	void *to;

	p->n = (p->n + 7) & ~(size_t)7;
	to = p->at ? p->at + p->n : NULL;
	if (to && from && n)
		memcpy(to, from, n);
	p->n += n;
	return to;
}

static const char *text(struct pen *p, const char *s)
{
	const size_t n = strlen(s) + 1;
	char *to = p->at ? (char *)p->at + p->n : NULL;

	if (n == 1)
		return "";
	if (to)
		memcpy(to, s, n);
	p->n += n;
	return to;
}

static struct gpuq_strlist texts(struct pen *p, const struct gpuq_strlist *from)
{
	const char **items = take(p, NULL, from->n * sizeof(*items));

	for (size_t i = 0; i < from->n; i++) {
		const char *s = text(p, from->items[i]);

		if (items)
			items[i] = s;
	}
	return (struct gpuq_strlist){ items, from->n };
}

void dra_block_done(struct dra_block *b)
{
	free(b->at);
	*b = (struct dra_block){ 0 };
}

/* ---- slices ---- */

static bool is_text(const struct dra_word *w)
{
	return w->type == GPUQ_CEL_STRING || w->type == GPUQ_CEL_VERSION;
}

static bool same_word(const struct dra_word *a, const struct dra_word *b)
{
	return a->type == b->type && a->capacity == b->capacity &&
	       (a->name == b->name || strcmp(a->name, b->name) == 0) &&
	       (is_text(a) ? strcmp(a->text, b->text) == 0 : a->number == b->number);
}

/* True if the device has that word; where, if it is where that of another device is. */
static bool has_word(const struct dra_device *d, const struct dra_word *w, uint32_t where)
{
	if (where < dra_count_words(d) && same_word(dra_word_at(d, where), w))
		return true;
	for (uint32_t i = 0; i < dra_count_words(d); i++)
		if (same_word(dra_word_at(d, i), w))
			return true;
	return false;
}

/* The words that all devices of a slice have, of which there is one copy. */
struct common {
	const struct dra_device *first; /* whose words they are */
	uint64_t which; /* of its words */
	const struct dra_word *kept; /* NULL: they are counted */
	uint16_t n;
	/* The last name and text of the other words, by their index, and their copies. */
	struct {
		const char *name, *name_kept, *text, *text_kept;
	} last[DRA_WORDS_MAX];
};

static bool is_common(const struct common *c, const struct dra_word *w, uint32_t where)
{
	if (where < c->first->n_words && c->which >> where & 1 &&
	    same_word(&c->first->words[where], w))
		return true;
	for (uint32_t i = 0; c->which && i < c->first->n_words; i++)
		if (c->which >> i & 1 && same_word(&c->first->words[i], w))
			return true;
	return false;
}

static struct dra_word word(struct pen *p, const struct dra_word *from)
{
	struct dra_word w = *from;

	w.name = text(p, from->name);
	if (is_text(from))
		w.text = text(p, from->text);
	return w;
}

/* Copy the words that all devices have: of a slice of the ledger those that are so already. */
static struct common common_of(struct pen *p, const struct dra_slice *s)
{
	struct common c = { .first = s->devices };
	struct dra_word *to;
	uint32_t n = 0;

	if (s->n_devices && c.first->n_common) {
		to = take(p, NULL, c.first->n_common * sizeof(*to));
		for (; n < c.first->n_common; n++) {
			const struct dra_word w = word(p, &c.first->common[n]);

			if (to)
				to[n] = w;
		}
		c.kept = to;
		c.n = (uint16_t)n;
		return c;
	}
	for (uint32_t i = 0; s->n_devices > 1 && i < c.first->n_words; i++) {
		bool all = true;

		for (uint32_t k = 1; all && k < s->n_devices; k++)
			all = has_word(&s->devices[k], &c.first->words[i], i);
		c.which |= (uint64_t)all << i;
		c.n += all;
	}
	to = take(p, NULL, c.n * sizeof(*to));
	for (uint32_t i = 0; c.n && i < c.first->n_words; i++) {
		struct dra_word w;

		if (!(c.which >> i & 1))
			continue;
		w = word(p, &c.first->words[i]);
		if (to)
			to[n++] = w;
	}
	c.kept = to;
	return c;
}

/* Copy a string, unless it is that of the device before. */
static const char *again(struct pen *p, const char *s, const char **last, const char **kept)
{
	if (!*last || strcmp(*last, s) != 0) {
		*last = s;
		*kept = text(p, s);
	}
	return *kept;
}

/* Copy the other words of a device; their names are mostly those of the device before. */
static const struct dra_word *words(struct pen *p, struct common *c, struct dra_device *one)
{
	const struct dra_device from = *one;
	struct dra_word *to;
	uint16_t n = 0;

	for (uint32_t i = 0; i < from.n_words; i++)
		n += !is_common(c, &from.words[i], i);
	to = take(p, NULL, n * sizeof(*to));
	one->n_words = n;
	one->n_common = c->n;
	one->common = c->kept;
	n = 0;
	for (uint32_t i = 0; i < from.n_words; i++) {
		struct dra_word w = from.words[i];

		if (is_common(c, &w, i))
			continue;
		w.name = again(p, w.name, &c->last[i].name, &c->last[i].name_kept);
		if (is_text(&w))
			w.text = again(p, w.text, &c->last[i].text, &c->last[i].text_kept);
		if (to)
			to[n] = w;
		n++;
	}
	return to;
}

static const struct dra_counter *counters(struct pen *p, const struct dra_counter *from, size_t n)
{
	struct dra_counter *to = take(p, from, n * sizeof(*to));

	for (size_t i = 0; i < n; i++) {
		const char *set = text(p, from[i].set), *name = text(p, from[i].name);

		if (to) {
			to[i].set = set;
			to[i].name = name;
		}
	}
	return to;
}

static const struct dra_taint *taints(struct pen *p, const struct dra_taint *from, size_t n)
{
	struct dra_taint *to = take(p, NULL, n * sizeof(*to));

	for (size_t i = 0; i < n; i++) {
		const struct dra_taint one = { text(p, from[i].key), text(p, from[i].value),
					       text(p, from[i].effect) };

		if (to)
			to[i] = one;
	}
	return to;
}

static const struct dra_slice *fill_slice(struct pen *p, const struct dra_slice *s)
{
	struct dra_slice *to = take(p, s, sizeof(*to));
	struct dra_device *devices = take(p, s->devices, s->n_devices * sizeof(*devices));
	const struct dra_counter *sets = counters(p, s->counters, s->n_counters);
	struct common common = common_of(p, s);
	const char *const name = text(p, s->name), *const driver = text(p, s->driver);
	const char *const pool = text(p, s->pool), *const node = text(p, s->node);

	for (uint32_t i = 0; i < s->n_devices; i++) {
		const struct dra_device *d = &s->devices[i];
		struct dra_device one = *d;

		one.name = text(p, d->name);
		one.words = words(p, &common, &one);
		one.consumes = counters(p, d->consumes, d->n_consumes);
		one.taints = taints(p, d->taints, d->n_taints);
		if (devices)
			devices[i] = one;
	}
	if (to) {
		to->name = name;
		to->driver = driver;
		to->pool = pool;
		to->node = node;
		to->devices = devices;
		to->counters = sets;
	}
	return to;
}

/* ---- requests ---- */

static struct dra_option option(struct pen *p, const struct dra_option *from)
{
	struct dra_option o = *from;
	struct gpuq_toleration *to;

	o.name = text(p, from->name);
	o.class_ = text(p, from->class_);
	o.selectors = texts(p, &from->selectors);
	to = take(p, from->tolerations, from->n_tolerations * sizeof(*to));
	for (uint32_t i = 0; i < from->n_tolerations; i++) {
		const char *key = text(p, from->tolerations[i].key);
		const char *value = text(p, from->tolerations[i].value);
		const char *effect = text(p, from->tolerations[i].effect);

		if (to) {
			to[i].key = key;
			to[i].value = value;
			to[i].effect = effect;
		}
	}
	o.tolerations = to;
	return o;
}

static struct dra_spec spec(struct pen *p, const struct dra_spec *s)
{
	struct dra_request *requests = take(p, NULL, s->n_requests * sizeof(*requests));
	struct dra_constraint *constraints = take(p, NULL, s->n_constraints * sizeof(*constraints));
	struct dra_spec to = *s;

	for (uint32_t i = 0; i < s->n_requests; i++) {
		const struct dra_request *r = &s->requests[i];
		const char *name = text(p, r->name);
		struct dra_option *options = take(p, NULL, r->n_options * sizeof(*options));

		for (uint32_t k = 0; k < r->n_options; k++) {
			const struct dra_option one = option(p, &r->options[k]);

			if (options)
				options[k] = one;
		}
		if (requests)
			requests[i] = (struct dra_request){ name, options, r->n_options };
	}
	for (uint32_t i = 0; i < s->n_constraints; i++) {
		const char *attribute = text(p, s->constraints[i].attribute);
		const struct gpuq_strlist names = texts(p, &s->constraints[i].requests);

		if (constraints)
			constraints[i] = (struct dra_constraint){ attribute, names };
	}
	to.requests = requests;
	to.constraints = constraints;
	to.config = text(p, s->config);
	to.odd = text(p, s->odd);
	return to;
}

static const struct dra_class *fill_class(struct pen *p, const struct dra_class *c)
{
	struct dra_class *to = take(p, NULL, sizeof(*to));
	const struct dra_class one = { .name = text(p, c->name),
				       .selectors = texts(p, &c->selectors),
				       .extended = text(p, c->extended),
				       .config = text(p, c->config),
				       .odd = text(p, c->odd) };

	if (to)
		*to = one;
	return to;
}

static const struct dra_claim *fill_claim(struct pen *p, const struct dra_claim *c)
{
	struct dra_claim *to = take(p, NULL, sizeof(*to)), one = *c;
	struct dra_result *results = take(p, NULL, c->n_results * sizeof(*results));

	one.namespace_ = text(p, c->namespace_);
	one.name = text(p, c->name);
	one.uid = text(p, c->uid);
	one.version = text(p, c->version);
	one.owner = text(p, c->owner);
	one.owner_name = text(p, c->owner_name);
	one.pod_claim = text(p, c->pod_claim);
	one.node = text(p, c->node);
	one.spec = spec(p, &c->spec);
	one.reserved = texts(p, &c->reserved);
	one.consumers = texts(p, &c->consumers);
	for (uint32_t i = 0; i < c->n_results; i++) {
		const struct dra_result *r = &c->results[i];
		const struct dra_result own = { text(p, r->request), text(p, r->driver),
						text(p, r->pool), text(p, r->device) };

		if (results)
			results[i] = own;
	}
	one.results = results;
	if (to)
		*to = one;
	return to;
}

static const struct dra_template *fill_template(struct pen *p, const struct dra_template *t)
{
	struct dra_template *to = take(p, NULL, sizeof(*to));
	const char *namespace_ = text(p, t->namespace_), *name = text(p, t->name);
	const struct dra_spec s = spec(p, &t->spec);

	if (to)
		*to = (struct dra_template){ namespace_, name, s };
	return to;
}

#define COPY(type, name)                                                                           \
	const struct type *dra_copy_##name(struct dra_block *b, const struct type *from)           \
	{                                                                                          \
		struct pen p = { 0 };                                                              \
                                                                                                   \
		fill_##name(&p, from);                                                             \
		b->n = p.n;                                                                        \
		b->at = malloc(p.n);                                                               \
		if (!b->at)                                                                        \
			abort();                                                                   \
		p = (struct pen){ .at = b->at };                                                   \
		return fill_##name(&p, from);                                                      \
	}

COPY(dra_slice, slice)
COPY(dra_class, class)
COPY(dra_claim, claim)
COPY(dra_template, template)

/* ---- whether something changed ---- */

static bool same_words(const struct dra_device *a, const struct dra_device *b)
{
	if (dra_count_words(a) != dra_count_words(b))
		return false;
	for (uint32_t i = 0; i < dra_count_words(a); i++)
		if (!has_word(b, dra_word_at(a, i), i))
			return false;
	return true;
}

static bool same_counters(const struct dra_counter *a, size_t n_a, const struct dra_counter *b,
			  size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (a[i].milli != b[i].milli || strcmp(a[i].set, b[i].set) != 0 ||
		    strcmp(a[i].name, b[i].name) != 0)
			return false;
	return true;
}

static bool same_taints(const struct dra_device *a, const struct dra_device *b)
{
	if (a->n_taints != b->n_taints)
		return false;
	for (uint32_t i = 0; i < a->n_taints; i++)
		if (strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
		    strcmp(a->taints[i].value, b->taints[i].value) != 0 ||
		    strcmp(a->taints[i].effect, b->taints[i].effect) != 0)
			return false;
	return true;
}

bool dra_same_slice(const struct dra_slice *a, const struct dra_slice *b)
{
	if (a->generation != b->generation || a->n_slices != b->n_slices ||
	    a->n_devices != b->n_devices || strcmp(a->driver, b->driver) != 0 ||
	    strcmp(a->pool, b->pool) != 0 || strcmp(a->node, b->node) != 0 ||
	    !same_counters(a->counters, a->n_counters, b->counters, b->n_counters))
		return false;
	for (uint32_t i = 0; i < a->n_devices; i++) {
		const struct dra_device *x = &a->devices[i], *y = &b->devices[i];

		if (strcmp(x->name, y->name) != 0 || x->odd != y->odd || !same_words(x, y) ||
		    !same_taints(x, y) ||
		    !same_counters(x->consumes, x->n_consumes, y->consumes, y->n_consumes))
			return false;
	}
	return true;
}

static bool same_option(const struct dra_option *a, const struct dra_option *b)
{
	if (a->all != b->all || a->count != b->count || a->n_tolerations != b->n_tolerations ||
	    strcmp(a->name, b->name) != 0 || strcmp(a->class_, b->class_) != 0 ||
	    !gpuq_strlist_same(&a->selectors, &b->selectors))
		return false;
	for (uint32_t i = 0; i < a->n_tolerations; i++) {
		const struct gpuq_toleration *x = &a->tolerations[i], *y = &b->tolerations[i];

		if (x->exists != y->exists || strcmp(x->key, y->key) != 0 ||
		    strcmp(x->value, y->value) != 0 || strcmp(x->effect, y->effect) != 0)
			return false;
	}
	return true;
}

bool dra_same_spec(const struct dra_spec *a, const struct dra_spec *b)
{
	if (a->n_requests != b->n_requests || a->n_constraints != b->n_constraints ||
	    strcmp(a->config, b->config) != 0 || strcmp(a->odd, b->odd) != 0)
		return false;
	for (uint32_t i = 0; i < a->n_requests; i++) {
		const struct dra_request *x = &a->requests[i], *y = &b->requests[i];

		if (x->n_options != y->n_options || strcmp(x->name, y->name) != 0)
			return false;
		for (uint32_t k = 0; k < x->n_options; k++)
			if (!same_option(&x->options[k], &y->options[k]))
				return false;
	}
	for (uint32_t i = 0; i < a->n_constraints; i++)
		if (strcmp(a->constraints[i].attribute, b->constraints[i].attribute) != 0 ||
		    !gpuq_strlist_same(&a->constraints[i].requests, &b->constraints[i].requests))
			return false;
	return true;
}

bool dra_same_class(const struct dra_class *a, const struct dra_class *b)
{
	return gpuq_strlist_same(&a->selectors, &b->selectors) &&
	       strcmp(a->extended, b->extended) == 0 && strcmp(a->config, b->config) == 0 &&
	       strcmp(a->odd, b->odd) == 0;
}
