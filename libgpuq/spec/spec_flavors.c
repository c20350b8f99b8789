/* `flavor` of a job and `flavors` of a queue: kinds of device, and how long each is waited for. */
#include "libgpuq/spec/spec_kinds.h"

#include <string.h>

#include "libgpuq/units.h"

#define SPEC_OF(field)                                                                             \
	((struct gpuq_spec *)(void *)((char *)(field)-offsetof(struct gpuq_spec, flavors)))
#define CSPEC_OF(field)                                                                            \
	((const struct gpuq_spec *)(const void *)((const char *)(field)-offsetof(struct gpuq_spec, \
										 flavors)))
#define PRICE_MAX INT64_C(1000000) /* of a currency, for a device and hour */

struct entry {
	const char *name;
	struct gpuq_flavor_rule rule;
};

static int price_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	if (v->type == GPUQ_INT && v->i > 0 && v->i <= PRICE_MAX)
		*(int64_t *)out = v->i * 1000000;
	else if (v->type == GPUQ_REAL && v->d >= 1e-6 && v->d <= (double)PRICE_MAX)
		*(int64_t *)out = (int64_t)(v->d * 1e6 + 0.5);
	else
		return gpuq_reader_fail(
			r, v, GPUQ_EINVAL,
			"expected a price for a device and hour, above 0 and at most 1000000");
	return 0;
}

static struct gpuq_val *price_write(struct gpuq_arena *a, const void *in)
{
	const int64_t micro = *(const int64_t *)in;

	if (micro == 0)
		return NULL;
	return micro % 1000000 == 0 ? gpuq_int(a, micro / 1000000) : gpuq_real(a, micro / 1e6);
}

static const struct gpuq_custom price_kind = { price_read, price_write };

/* clang-format off */
static const struct gpuq_field entry_fields[] = {
	{ .key = "name", .kind = GPUQ_K_NAME, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct entry, name), .doc = "The flavor." },
	{ .key = "for", .kind = GPUQ_K_DURATION, .min = GPUQ_US_PER_S, .max = INT64_MAX,
	  .offset = offsetof(struct entry, rule.for_us), .doc = "Time that it is waited for." },
	{ .key = "refusals", .kind = GPUQ_K_INT, .min = 1, .max = GPUQ_REFUSALS_MAX,
	  .offset = offsetof(struct entry, rule.refusals),
	  .doc = "Failed requests for its nodes after which it is not waited for any longer." },
	{ .key = "max_price", .kind = GPUQ_K_CUSTOM, .custom = &price_kind, .form = "number",
	  .offset = offsetof(struct entry, rule.max_price_micro),
	  .doc = "Price per device and hour above which its nodes are not used." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema entry_schema = { .name = "flavor",
						 .size = sizeof(struct entry),
						 .fields = entry_fields };

static bool has_rule(const struct gpuq_flavor_rule *r)
{
	return gpuq_flavor_waits(r) || r->max_price_micro > 0;
}

static int entry_read(struct gpuq_reader *r, const struct gpuq_val *v, struct entry *out)
{
	*out = (struct entry){ 0 };
	if (v->type == GPUQ_MAP)
		return gpuq_schema_read(r, &entry_schema, v, out);
	out->name = v->type == GPUQ_STR ? v->s : v->src;
	if (!out->name)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected the name of a flavor, or {name, for, refusals, "
					"max_price}");
	return 0;
}

/* An entry that waits has no effect where nothing follows. */
static int last_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct entry *last)
{
	if (r->stored || !gpuq_flavor_waits(&last->rule))
		return 0;
	return gpuq_reader_fail(
		r, v, GPUQ_EINVAL,
		"the last flavor is not followed by another: expected no 'for' and no "
		"'refusals' with %s",
		last->name);
}

bool gpuq_flavor_waits(const struct gpuq_flavor_rule *r)
{
	return r->for_us > 0 || r->refusals > 0;
}

int gpuq_flavors_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_strlist *names,
		      const struct gpuq_flavor_rule **rules)
{
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;
	struct gpuq_strlist got = { gpuq_arena_calloc(r->arena, n + 1, sizeof(*got.items)), n };
	struct gpuq_flavor_rule *of = gpuq_arena_calloc(r->arena, n + 1, sizeof(*of));
	bool any = false;

	if (!got.items || !of)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *one = v->type == GPUQ_LIST ? v->items[i] : v;
		const size_t mark =
			v->type == GPUQ_LIST ? gpuq_reader_enter_item(r, i) : strlen(r->path);
		struct entry e;
		int rc = entry_read(r, one, &e);

		if (rc == 0 && i + 1 == n)
			rc = last_check(r, one, &e);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
		got.items[i] = gpuq_arena_strdup(r->arena, e.name);
		if (!got.items[i])
			return gpuq_no_memory(r->err);
		of[i] = e.rule;
		any |= has_rule(&e.rule);
	}
	*names = got;
	*rules = any ? of : NULL;
	return 0;
}

struct gpuq_val *gpuq_flavors_write(struct gpuq_arena *a, const struct gpuq_strlist *names,
				    const struct gpuq_flavor_rule *rules)
{
	struct gpuq_val *v = names->n ? gpuq_list(a) : NULL;

	for (size_t i = 0; i < names->n; i++) {
		const struct entry e = { names->items[i],
					 rules ? rules[i] : (struct gpuq_flavor_rule){ 0 } };

		gpuq_add(a, v,
			 has_rule(&e.rule) ? gpuq_schema_write(a, &entry_schema, &e)
					   : gpuq_str(a, e.name));
	}
	return v;
}

/* Read NAME[:TIME],... */
int spec_flavors_parse(struct gpuq_arena *a, const char *text, struct gpuq_spec *out,
		       struct gpuq_err *err)
{
	static const char *const want =
		"expected names of flavors such as a100-spot:20m,a100, with a time "
		"of one that others follow, not '%.80s'";
	struct gpuq_flavor_rule *rules;
	struct gpuq_strlist l;
	bool any = false;

	if (spec_split(a, text, ',', &l) < 0)
		return gpuq_no_memory(err);
	rules = gpuq_arena_calloc(a, l.n + 1, sizeof(*rules));
	if (!rules)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < l.n; i++) {
		const char *colon = strchr(l.items[i], ':');

		if (colon &&
		    (i + 1 == l.n || gpuq_duration_parse(colon + 1, &rules[i].for_us, NULL) < 0 ||
		     rules[i].for_us < GPUQ_US_PER_S))
			return gpuq_fail(err, GPUQ_EINVAL, want, text);
		if (colon) {
			any = true;
			l.items[i] =
				gpuq_arena_strndup(a, l.items[i], (size_t)(colon - l.items[i]));
			if (!l.items[i])
				return gpuq_no_memory(err);
		}
		if (!spec_name_ok(l.items[i]))
			return gpuq_fail(err, GPUQ_EINVAL, want, text);
	}
	out->flavors = l;
	out->flavor_rules = any ? rules : NULL;
	return 0;
}

static int flavors_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_spec *s = SPEC_OF(out);

	return gpuq_flavors_read(r, v, &s->flavors, &s->flavor_rules);
}

static struct gpuq_val *flavors_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_spec *s = CSPEC_OF(in);

	return gpuq_flavors_write(a, &s->flavors, s->flavor_rules);
}

const struct gpuq_custom spec_flavors_kind = { flavors_read, flavors_write };
