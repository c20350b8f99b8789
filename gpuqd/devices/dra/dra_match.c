#include "gpuqd/devices/dra/dra_match.h"

#include <stdio.h>
#include <string.h>

/* Requests are served one after the other, options in their order, devices in that of the node; where
 * one leads nowhere, the next is tried, up to so many times. */
#define STEPS_MAX 20000u

/* An option of a request, and the devices that it selects. */
struct choice {
	const struct dra_option *is;
	bool *selects; /* by device */
	uint32_t n; /* of them */
};

struct wanted {
	const struct dra_request *is;
	const struct dra_spec *spec;
	uint32_t claim;
	struct choice *choices;
};

struct solving {
	const struct dra *d;
	const struct dra_at *devices;
	size_t n_devices;
	struct gpuq_arena *a;
	struct wanted *wanted;
	size_t n_wanted;
	bool *taken; /* by device: in use, or picked */
	struct dra_pick *picks;
	size_t *at; /* the device of each pick */
	size_t n_picks, room;
	uint32_t steps;
};

/* ---- what an option selects ---- */

/* A name of a domain is "domain/name". */
static bool look(void *arg, bool capacity, const char *domain, size_t n_domain, const char *name,
		 size_t n_name, struct gpuq_cel_value *out)
{
	const struct dra_device *d = arg;

	for (uint32_t i = 0; i < dra_count_words(d); i++) {
		const struct dra_word *w = dra_word_at(d, i);

		if (w->capacity != capacity || strncmp(w->name, domain, n_domain) != 0 ||
		    w->name[n_domain] != '/' || strlen(w->name + n_domain + 1) != n_name ||
		    memcmp(w->name + n_domain + 1, name, n_name) != 0)
			continue;
		*out = (struct gpuq_cel_value){ .type = (enum gpuq_cel_type)w->type };
		if (w->type == GPUQ_CEL_STRING || w->type == GPUQ_CEL_VERSION) {
			out->s = w->text;
			out->n = strlen(w->text);
		} else {
			out->i = w->number;
		}
		return true;
	}
	return false;
}

static bool tolerates(const struct dra_option *o, const struct dra_taint *t)
{
	for (uint32_t i = 0; i < o->n_tolerations; i++) {
		const struct gpuq_toleration *x = &o->tolerations[i];

		if ((!*x->effect || strcmp(x->effect, t->effect) == 0) &&
		    (strcmp(x->key, t->key) == 0 || (!*x->key && x->exists)) &&
		    (x->exists || strcmp(x->value, t->value) == 0))
			return true;
	}
	return false;
}

bool dra_tolerates(const struct dra_option *o, const struct dra_device *d)
{
	for (uint32_t i = 0; i < d->n_taints; i++)
		if ((strcmp(d->taints[i].effect, "NoSchedule") == 0 ||
		     strcmp(d->taints[i].effect, "NoExecute") == 0) &&
		    !tolerates(o, &d->taints[i]))
			return false;
	return d->odd == NULL;
}

/* Drop devices for which one of the expressions does not hold. Those were read before: dra_check(). */
static bool restrict_to(struct solving *s, const struct gpuq_strlist *selectors, bool *selects)
{
	for (size_t i = 0; i < selectors->n; i++) {
		const struct gpuq_cel *e;
		uint32_t column;

		if (gpuq_cel_read(s->a, selectors->items[i], strlen(selectors->items[i]), &e,
				  &column, NULL) != 0)
			return false;
		for (size_t k = 0; k < s->n_devices; k++) {
			const struct gpuq_cel_device device = {
				(void *)(uintptr_t)s->devices[k].device,
				s->devices[k].slice->driver, look
			};

			selects[k] = selects[k] && gpuq_cel_holds(e, &device);
		}
	}
	return true;
}

void dra_class_selects(const struct dra *d, const char *class_, const struct dra_at *devices,
		       size_t n_devices, struct gpuq_arena *a, bool *selects)
{
	struct solving s = { .d = d, .devices = devices, .n_devices = n_devices, .a = a };
	const struct dra_class *c = dra_class(d, class_);
	bool *of = gpuq_arena_calloc(a, n_devices + 1, sizeof(*of));

	for (size_t i = 0; of && i < n_devices; i++)
		of[i] = true;
	if (!c || *c->odd || !of || !restrict_to(&s, &c->selectors, of))
		return;
	for (size_t i = 0; i < n_devices; i++)
		selects[i] |= of[i];
}

bool dra_option_selects(const struct dra *d, const struct dra_option *o,
			const struct dra_at *devices, size_t n_devices, struct gpuq_arena *a,
			bool *selects)
{
	struct solving s = { .d = d, .devices = devices, .n_devices = n_devices, .a = a };
	const struct dra_class *c = dra_class(d, o->class_);

	for (size_t i = 0; i < n_devices; i++)
		selects[i] = true;
	return c && !*c->odd && restrict_to(&s, &c->selectors, selects) &&
	       restrict_to(&s, &o->selectors, selects);
}

static bool prepare_choice(struct solving *s, const struct dra_option *o, struct choice *c)
{
	const struct dra_class *class_ = dra_class(s->d, o->class_);

	c->is = o;
	c->selects = gpuq_arena_calloc(s->a, s->n_devices + 1, sizeof(*c->selects));
	if (!c->selects || !class_)
		return false;
	for (size_t k = 0; k < s->n_devices; k++)
		c->selects[k] = dra_tolerates(o, s->devices[k].device);
	if (!restrict_to(s, &class_->selectors, c->selects) ||
	    !restrict_to(s, &o->selectors, c->selects))
		return false;
	for (size_t k = 0; k < s->n_devices; k++)
		c->n += c->selects[k];
	return true;
}

static bool prepare(struct solving *s, const struct dra_spec *const *specs, size_t n_specs)
{
	size_t n = 0;

	for (size_t i = 0; i < n_specs; i++)
		n += specs[i]->n_requests;
	s->wanted = gpuq_arena_calloc(s->a, n + 1, sizeof(*s->wanted));
	s->taken = gpuq_arena_calloc(s->a, s->n_devices + 1, sizeof(*s->taken));
	s->room = DRA_RESULTS_MAX * n_specs;
	s->at = gpuq_arena_calloc(s->a, s->room + 1, sizeof(*s->at));
	if (!s->wanted || !s->taken || !s->at)
		return false;
	for (size_t i = 0; i < n_specs; i++)
		for (uint32_t k = 0; k < specs[i]->n_requests; k++) {
			const struct dra_request *r = &specs[i]->requests[k];
			struct wanted *w = &s->wanted[s->n_wanted++];

			*w = (struct wanted){ r, specs[i], (uint32_t)i, NULL };
			w->choices = gpuq_arena_calloc(s->a, r->n_options + 1, sizeof(*w->choices));
			for (uint32_t o = 0; o < r->n_options; o++)
				if (!w->choices ||
				    !prepare_choice(s, &r->options[o], &w->choices[o]))
					return false;
		}
	return true;
}

/* ---- what may be picked beside what is picked ---- */

/* Return how much of a counter devices in use take. */
static int64_t consumed(const struct solving *s, const struct dra_slice *of,
			const struct dra_counter *c)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->n_devices; i++) {
		const struct dra_at *x = &s->devices[i];

		if (!s->taken[i] || x->device->n_consumes == 0 ||
		    strcmp(x->slice->pool, of->pool) != 0 ||
		    strcmp(x->slice->driver, of->driver) != 0)
			continue;
		for (uint32_t k = 0; k < x->device->n_consumes; k++) {
			const struct dra_counter *o = &x->device->consumes[k];

			if (strcmp(o->name, c->name) == 0 && strcmp(o->set, c->set) == 0 &&
			    __builtin_add_overflow(sum, o->milli, &sum))
				return INT64_MAX;
		}
	}
	return sum;
}

static bool counters_allow(const struct solving *s, const struct dra_at *x)
{
	for (uint32_t i = 0; i < x->device->n_consumes; i++) {
		const struct dra_counter *c = &x->device->consumes[i];
		const int64_t has = dra_counter(s->d, x->slice, c->set, c->name);

		if (has < 0 || consumed(s, x->slice, c) > has - c->milli)
			return false;
	}
	return true;
}

/* True if the constraint concerns a request, or one of its subrequests. */
static bool concerns(const struct dra_constraint *c, const struct dra_request *r,
		     const struct dra_option *o)
{
	const size_t n = strlen(r->name);

	for (size_t i = 0; i < c->requests.n; i++) {
		const char *name = c->requests.items[i];

		if (strcmp(name, r->name) == 0 ||
		    (strncmp(name, r->name, n) == 0 && name[n] == '/' &&
		     strcmp(name + n + 1, o->name) == 0))
			return true;
	}
	return c->requests.n == 0;
}

static bool same_value(const struct dra_word *a, const struct dra_word *b)
{
	if (!a || !b || a->type != b->type)
		return false;
	return a->type == GPUQ_CEL_STRING || a->type == GPUQ_CEL_VERSION
		       ? strcmp(a->text, b->text) == 0
		       : a->number == b->number;
}

static bool constraints_allow(const struct solving *s, const struct wanted *w,
			      const struct dra_option *o, const struct dra_at *x)
{
	for (uint32_t i = 0; i < w->spec->n_constraints; i++) {
		const struct dra_constraint *c = &w->spec->constraints[i];
		const struct dra_word *own = dra_word(x->device, false, c->attribute);

		if (!concerns(c, w->is, o))
			continue;
		if (!own)
			return false;
		for (size_t k = 0; k < s->n_picks; k++) {
			const struct dra_pick *p = &s->picks[k];

			if (p->claim == w->claim && concerns(c, p->request, p->option) &&
			    !same_value(own, dra_word(p->device, false, c->attribute)))
				return false;
		}
	}
	return true;
}

/* ---- the search ---- */

static bool serve(struct solving *s, size_t wanted);

/* Pick `left` more devices of the choice, none before the device `from`. */
static bool pick(struct solving *s, size_t wanted, const struct choice *c, int64_t left,
		 size_t from)
{
	const struct wanted *w = &s->wanted[wanted];

	if (left == 0)
		return serve(s, wanted + 1);
	for (size_t i = from; i < s->n_devices && s->steps < STEPS_MAX; i++) {
		const struct dra_at *x = &s->devices[i];

		if (!c->selects[i] || s->taken[i])
			continue;
		s->steps++;
		if (s->n_picks == s->room || !counters_allow(s, x) ||
		    !constraints_allow(s, w, c->is, x))
			continue;
		s->taken[i] = true;
		s->at[s->n_picks] = i;
		s->picks[s->n_picks++] =
			(struct dra_pick){ w->claim, w->is, c->is, x->slice, x->device };
		if (pick(s, wanted, c, left - 1, i + 1))
			return true;
		s->n_picks--;
		s->taken[i] = false;
	}
	return false;
}

static bool serve(struct solving *s, size_t wanted)
{
	const struct wanted *w = &s->wanted[wanted];

	if (wanted == s->n_wanted)
		return true;
	for (uint32_t o = 0; o < w->is->n_options; o++) {
		const struct choice *c = &w->choices[o];
		const int64_t n = c->is->all ? (int64_t)c->n : c->is->count;

		if (n > 0 && n <= (int64_t)c->n && n <= DRA_RESULTS_MAX && pick(s, wanted, c, n, 0))
			return true;
	}
	return false;
}

/* Search anew, with these devices in use. */
static bool solve(struct solving *s, const bool *taken, bool of_others)
{
	for (size_t i = 0; i < s->n_devices; i++)
		s->taken[i] = (of_others && s->devices[i].used) || (taken && taken[i]);
	s->n_picks = 0;
	s->steps = 0;
	return serve(s, 0);
}

/* ---- the objects that a claim names ---- */

static int check_selectors(const struct gpuq_strlist *selectors, const char *kind, const char *name,
			   struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < selectors->n; i++) {
		struct gpuq_err why = GPUQ_ERR_INIT;
		const struct gpuq_cel *e;
		uint32_t column;

		if (gpuq_cel_read(&a, selectors->items[i], strlen(selectors->items[i]), &e, &column,
				  &why) == 0)
			continue;
		rc = gpuq_fail(err, GPUQ_EINVAL, "selector %zu of %s%s: %s", i + 1, kind, name,
			       why.text);
	}
	gpuq_arena_done(&a);
	return rc;
}

static int check_class(const struct dra *d, const char *name, struct gpuq_err *err)
{
	const struct dra_class *c = dra_class(d, name);

	if (!c)
		return gpuq_fail(err, GPUQ_ENOENT, "DeviceClass %s does not exist", name);
	if (*c->odd)
		return gpuq_fail(err, GPUQ_EINVAL, "DeviceClass %s: %s is not served", name,
				 c->odd);
	return check_selectors(&c->selectors, "DeviceClass ", name, err);
}

int dra_check(const struct dra *d, const struct dra_spec *spec, struct gpuq_err *err)
{
	int rc = 0;

	if (*spec->odd)
		return gpuq_fail(err, GPUQ_EINVAL, "%s is not served", spec->odd);
	for (uint32_t i = 0; rc == 0 && i < spec->n_requests; i++)
		for (uint32_t k = 0; rc == 0 && k < spec->requests[i].n_options; k++) {
			const struct dra_option *o = &spec->requests[i].options[k];

			rc = check_class(d, o->class_, err);
			if (rc == 0)
				rc = check_selectors(&o->selectors, "request ",
						     spec->requests[i].name, err);
		}
	return rc;
}

/* ---- what is asked of this file ---- */

enum dra_fit dra_match(const struct dra *d, const struct dra_at *devices, size_t n_devices,
		       const bool *taken, const struct dra_spec *const *specs, size_t n_specs,
		       struct gpuq_arena *a, struct dra_pick *picks, size_t *n_picks,
		       struct gpuq_err *why)
{
	struct solving s = { .d = d, .devices = devices, .n_devices = n_devices, .a = a };

	*n_picks = 0;
	for (size_t i = 0; i < n_specs; i++)
		if (dra_check(d, specs[i], why) != 0)
			return DRA_WAITS;
	s.picks = picks;
	if (!prepare(&s, specs, n_specs))
		return DRA_WAITS;
	if (!solve(&s, taken, true))
		return solve(&s, NULL, false) ? DRA_FULL : DRA_NEVER;
	*n_picks = s.n_picks;
	return DRA_FITS;
}

uint32_t dra_fits(const struct dra *d, const struct dra_at *devices, size_t n_devices,
		  const struct dra_spec *const *specs, size_t n_specs, uint32_t most)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct solving s = { .d = d, .devices = devices, .n_devices = n_devices, .a = &a };
	bool *taken = gpuq_arena_calloc(&a, n_devices + 1, sizeof(*taken));
	uint32_t n = 0;
	bool served = true;

	for (size_t i = 0; i < n_specs; i++)
		served &= dra_check(d, specs[i], NULL) == 0;
	s.picks = gpuq_arena_calloc(&a, DRA_RESULTS_MAX * n_specs + 1, sizeof(*s.picks));
	served = served && s.picks && taken && prepare(&s, specs, n_specs);
	while (served && n < most && solve(&s, taken, true)) {
		n++;
		for (size_t i = 0; i < s.n_picks; i++)
			taken[s.at[i]] = true;
		if (s.n_picks == 0)
			n = most;
	}
	gpuq_arena_done(&a);
	return n;
}
