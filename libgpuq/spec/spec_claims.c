/* Claims of devices: those of a job file, and those of a pod template. */
#include "libgpuq/spec/spec_int.h"

#include <string.h>

#include "libgpuq/cel/cel.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/spec_kinds.h"

/* Read each expression; the place of a wrong one is that of its error, where it is on one line. */
static int check_selectors(struct gpuq_reader *r, const struct gpuq_val *v,
			   const struct gpuq_strlist *selectors)
{
	const struct gpuq_val *list = gpuq_get(v, "selectors");
	const size_t mark = gpuq_reader_enter(r, "selectors");
	struct gpuq_err err = GPUQ_ERR_INIT;

	for (size_t i = 0; i < selectors->n; i++) {
		const struct gpuq_val *at =
			list && list->type == GPUQ_LIST && i < list->n ? list->items[i] : list;
		const struct gpuq_cel *e;
		struct gpuq_val there;
		uint32_t column = 1;
		int rc;

		rc = gpuq_cel_read(r->arena, selectors->items[i], strlen(selectors->items[i]), &e,
				   &column, &err);
		if (rc == 0)
			continue;
		if (rc != GPUQ_EINVAL)
			return gpuq_no_memory(r->err);
		gpuq_reader_enter_item(r, i);
		if (!at)
			return spec_fail(r, v, rc, "%s", err.text);
		there = *at;
		/* A quote stands before the text. */
		if (there.at.line)
			there.at.col += column - 1 + !at->plain;
		return spec_fail(r, &there, rc, "%s", err.text);
	}
	gpuq_reader_leave(r, mark);
	return 0;
}

static int check_option(struct gpuq_reader *r, const struct gpuq_val *v, int64_t count, bool all,
			const struct gpuq_strlist *selectors)
{
	if (all && count)
		return spec_fail(r, v, GPUQ_EINVAL, "expected either count or all");
	return check_selectors(r, v, selectors);
}

/* A name that Kubernetes accepts for an object, or, with 63 bytes and no dots, for a claim in a pod. Jobs that were
 * stored with another one keep it: they fail where they start. */
static int check_name(struct gpuq_reader *r, const struct gpuq_val *v, const char *key,
		      const char *name, bool label)
{
	const struct gpuq_val *at = gpuq_get(v, key);

	if (!name || r->stored || spec_object_name_ok(name, label))
		return 0;
	gpuq_reader_enter(r, key);
	return spec_fail(r, at ? at : v, GPUQ_EINVAL,
			 "expected a DNS %s, as names of Kubernetes are: at most %d lower-case "
			 "letters, digits%s and '-', the first and the last a letter or digit, "
			 "not '%.70s'",
			 label ? "label" : "subdomain", label ? 63 : 253, label ? "" : ", '.'",
			 name);
}

static int option_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct gpuq_claim_option *o = obj;
	const int rc = check_name(r, v, "class", o->class_, false);

	return rc < 0 ? rc : check_option(r, v, o->count, o->all, &o->selectors);
}

static int check_names(struct gpuq_reader *r, const struct gpuq_val *v, const struct gpuq_claim *c)
{
	int rc = check_name(r, v, "name", c->name, true);

	if (rc == 0)
		rc = check_name(r, v, "claim", c->claim, false);
	if (rc == 0)
		rc = check_name(r, v, "template", c->template_, false);
	return rc == 0 ? check_name(r, v, "class", c->class_, false) : rc;
}

static int claim_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct gpuq_claim *c = obj;
	const int n = !!c->claim + !!c->template_ + !!c->class_ + (c->n_first > 0);
	const int rc = check_names(r, v, c);

	if (rc < 0)
		return rc;
	if (n != 1)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected exactly one of claim, template, class, first");
	if (!c->class_ && (c->count || c->all || c->selectors.n))
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected count, all and selectors beside class alone");
	return check_option(r, v, c->count, c->all, &c->selectors);
}

/* clang-format off */
#define O(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_claim_option, member), __VA_ARGS__ }
#define D(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_claim, member), __VA_ARGS__ }

static const struct gpuq_field option_fields[] = {
	O("class", STR, class_, .flags = GPUQ_F_REQUIRED, .doc = "DeviceClass of the devices."),
	O("count", INT, count, .min = 1, .max = GPUQ_CLAIM_DEVICES_MAX, .doc = "Number of devices; default 1."),
	O("all", BOOL, all, .doc = "Every device of the node that fits."),
	O("selectors", STRLIST, selectors, .doc = "Expressions that hold for each of the devices, see gpuq-cel(7)."),
	{ .key = NULL },
};

static const struct gpuq_schema option_schema = {
	.name = "alternative", .size = sizeof(struct gpuq_claim_option), .fields = option_fields,
	.check = option_check,
};

static const struct gpuq_field claim_fields[] = {
	D("name", STR, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY, .doc = "Name of the claim in the pod."),
	D("claim", STR, claim, .doc = "A ResourceClaim of the queue's namespace, which its pods share."),
	D("template", STR, template_, .doc = "A ResourceClaimTemplate of that namespace: each pod has a claim of its own."),
	D("class", STR, class_, .doc = "DeviceClass of the devices: gpuqd makes a claim for each pod."),
	D("count", INT, count, .min = 1, .max = GPUQ_CLAIM_DEVICES_MAX, .doc = "Number of devices of the class; default 1."),
	D("all", BOOL, all, .doc = "Every device of the node that fits; for jobs with exclusive."),
	D("selectors", STRLIST, selectors, .doc = "Expressions that hold for each of the devices, see gpuq-cel(7)."),
	D("first", OBJECTS, first, .sub = &option_schema, .min = 1, .max = GPUQ_CLAIM_OPTIONS_MAX, .doc = "Alternatives {class, count, all, selectors}; the first that can be had is taken."),
	D("shares", INT, shares, .flags = GPUQ_F_HIDDEN, .min = 0, .max = GPUQ_GPUS_PER_POD_MAX,
	  .doc = "Devices of a claim that pods share; gpuqd fills it in."),
	{ .key = NULL },
};

const struct gpuq_schema gpuq_claim_schema = {
	.name = "claim", .size = sizeof(struct gpuq_claim), .fields = claim_fields,
	.check = claim_check,
};
/* clang-format on */

/* ---- the pod template ---- */

/* Read spec.resourceClaims: [{name, resourceClaimName or resourceClaimTemplateName}]. */
int spec_read_claims(struct gpuq_reader *r, const struct gpuq_val *spec, struct gpuq_group *g)
{
	const struct gpuq_val *list;
	int rc = spec_want_type(r, spec, "resourceClaims", GPUQ_LIST, &list);
	size_t mark;

	if (rc < 0 || !list || list->n == 0)
		return rc;
	mark = gpuq_reader_enter(r, "resourceClaims");
	if (list->n > GPUQ_CLAIMS_MAX)
		return spec_fail(r, list, GPUQ_ERANGE, "expected at most %u claims",
				 GPUQ_CLAIMS_MAX);
	g->claims = gpuq_arena_calloc(r->arena, list->n, sizeof(*g->claims));
	if (!g->claims)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < list->n; i++) {
		const struct gpuq_val *v = list->items[i];
		struct gpuq_claim *c = &g->claims[i];
		const size_t item = gpuq_reader_enter_item(r, i);

		if (v->type != GPUQ_MAP)
			return spec_fail(r, v, GPUQ_EINVAL, "expected a claim: a map, not %s",
					 gpuq_type_name(v->type));
		rc = spec_want_str(r, v, "name", &c->name);
		if (rc == 0)
			rc = spec_want_str(r, v, "resourceClaimName", &c->claim);
		if (rc == 0)
			rc = spec_want_str(r, v, "resourceClaimTemplateName", &c->template_);
		if (rc < 0)
			return rc;
		if (!c->name || !spec_name_ok(c->name) || !c->claim == !c->template_)
			return spec_fail(r, v, GPUQ_EINVAL,
					 "expected a name, and either resourceClaimName or "
					 "resourceClaimTemplateName");
		gpuq_reader_leave(r, item);
	}
	g->n_claims = list->n;
	gpuq_reader_leave(r, mark);
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool spec_claims_same(const struct gpuq_group *a, const struct gpuq_group *b)
{
	if (a->n_claims != b->n_claims)
		return false;
	for (size_t i = 0; i < a->n_claims; i++)
		if (strcmp(a->claims[i].name, b->claims[i].name) != 0 ||
		    !same_text(a->claims[i].claim, b->claims[i].claim) ||
		    !same_text(a->claims[i].template_, b->claims[i].template_))
			return false;
	return true;
}
