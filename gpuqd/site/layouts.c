#include "gpuqd/site/layouts.h"

#include <stddef.h>
#include <string.h>

#include "gpuqd/site/site_rows.h"
#include "libgpuq/units.h"

#define LAYOUTS_MAX 32

static const struct gpuq_field fields[] = {
	F(site_layouts, "manager", GPUQ_K_BOOL, manager,
	  .doc = "whether gpuqd instructs the MIG manager of its nodes"),
	F(site_layouts, "layouts", GPUQ_K_STRLIST, names,
	  .doc = "layouts that its nodes may get, in order of preference"),
	F(site_layouts, "timeout", GPUQ_K_DURATION, timeout_us, .min = GPUQ_US_PER_S,
	  .max = 86400 * GPUQ_US_PER_S, .doc = "time in which a node must have its layout"),
	F(site_layouts, "again", GPUQ_K_DURATION, again_us, .max = 30 * 86400 * GPUQ_US_PER_S,
	  .doc = "time in which a node does not get the same layout again, unless it had another "
		 "in between"),
	END,
};

static void defaults(void *obj)
{
	struct site_layouts *l = obj;

	l->timeout_us = 900 * GPUQ_US_PER_S;
	l->again_us = 3600 * GPUQ_US_PER_S;
}

/* True if it reads "1g.10gb", "1g.10gb.me" or "1g.10gb+me". */
static bool is_profile(const char *text)
{
	static const char digits[] = "0123456789";
	const size_t slices = strspn(text, digits);
	const char *at = text + slices + 2;
	size_t gib;

	if (slices < 1 || slices > 2 || strncmp(text + slices, "g.", 2) != 0)
		return false;
	gib = strspn(at, digits);
	if (gib < 1 || gib > 4 || strncmp(at + gib, "gb", 2) != 0)
		return false;
	at += gib + 2;
	return !*at || strcmp(at, ".me") == 0 || strcmp(at, "+me") == 0;
}

const char *layouts_profile(const char *name)
{
	static const char prefix[] = "all-";
	const char *rest = name + sizeof(prefix) - 1;
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	if (strcmp(rest, "disabled") == 0)
		return "";
	return is_profile(rest) ? rest : NULL;
}

bool layouts_are_on(const struct site_layouts *l)
{
	return l && l->manager;
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_layouts *l = obj;

	for (uint32_t i = 0; !l->manager && i < v->n; i++)
		if (v->pairs[i].val->type != GPUQ_NULL && strcmp(v->pairs[i].key, "manager") != 0)
			return gpuq_reader_fail_key(r, v, v->pairs[i].key,
						    "has no effect without manager: true");
	if (!l->manager)
		return 0;
	if (l->names.n == 0)
		return gpuq_reader_fail_key(r, v, "layouts",
					    "missing; manager: true needs it, such as "
					    "[all-1g.10gb]");
	if (l->names.n > LAYOUTS_MAX)
		return gpuq_reader_fail_key(r, v, "layouts", "expected 32 layouts at most");
	for (size_t i = 0; i < l->names.n; i++) {
		if (!layouts_profile(l->names.items[i]))
			return gpuq_reader_fail_key(
				r, v, "layouts",
				"expected all-PROFILE such as all-1g.10gb, or all-disabled: what "
				"another layout makes of a node is not known");
		for (size_t k = 0; k < i; k++)
			if (strcmp(l->names.items[i], l->names.items[k]) == 0)
				return gpuq_reader_fail_key(r, v, "layouts",
							    "expected each layout once");
	}
	return 0;
}

const struct gpuq_schema site_layouts_schema = { .name = "mig",
						 .size = sizeof(struct site_layouts),
						 .fields = fields,
						 .defaults = defaults,
						 .check = check };
