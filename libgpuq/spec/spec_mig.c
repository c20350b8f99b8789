/* Instances of MIG profiles: one profile, a list of which a job takes any, or none by name where an
 * instance may stand in for a share of a device. */
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/spec/spec_kinds.h"

#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"

/* Add a profile to those of a group. stored: earlier versions took some that are larger than a card. */
static int add(struct gpuq_arena *a, const char *profile, bool stored, struct gpuq_group *g,
	       struct gpuq_err *err)
{
	if (!profile)
		return gpuq_no_memory(err);
	if (!spec_mig_ok(profile))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a MIG profile such as 1g.10gb, not '%.40s'", profile);
	if (!stored && !spec_mig_fits(profile))
		return gpuq_fail(err, GPUQ_EINVAL, SPEC_MIG_LARGE, profile);
	if (!g->mig) {
		g->mig = profile;
		return 0;
	}
	if (!g->mig_more.items)
		g->mig_more.items =
			gpuq_arena_calloc(a, GPUQ_MIG_PROFILES_MAX, sizeof(*g->mig_more.items));
	if (!g->mig_more.items)
		return gpuq_no_memory(err);
	if (g->mig_more.n + 1 >= GPUQ_MIG_PROFILES_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u MIG profiles",
				 GPUQ_MIG_PROFILES_MAX);
	g->mig_more.items[g->mig_more.n++] = profile;
	return 0;
}

static void forget(struct gpuq_group *g)
{
	g->mig = NULL;
	g->mig_more = (struct gpuq_strlist){ NULL, 0 };
}

int spec_mig_parse(struct gpuq_arena *a, const char *text, struct gpuq_group *g,
		   struct gpuq_err *err)
{
	int rc = 0;

	forget(g);
	for (bool more = true; rc == 0 && more;) {
		const size_t n = strcspn(text, ",");

		rc = add(a, gpuq_arena_strndup(a, text, n), false, g, err);
		more = text[n] == ',';
		text += n + more;
	}
	return rc;
}

static int mig_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, mig);
	const bool list = v->type == GPUQ_LIST;
	const size_t n = list ? v->n : 1;

	forget(g);
	if (n == 0)
		return spec_fail(r, v, GPUQ_EINVAL, "expected at least one MIG profile");
	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *item = list ? v->items[i] : v;
		const size_t mark = list ? gpuq_reader_enter_item(r, i) : 0;
		const char *text = spec_scalar(r->arena, item);
		struct gpuq_err err = GPUQ_ERR_INIT;
		int rc;

		if (!text || item->type == GPUQ_BOOL)
			return spec_fail(r, item, GPUQ_EINVAL,
					 "expected a MIG profile such as 1g.10gb, or a list of "
					 "such, not %s",
					 gpuq_type_name(item->type));
		rc = add(r->arena, text, r->stored, g, &err);
		if (rc < 0)
			return spec_fail(r, item, rc, "%s", err.text);
		if (list)
			gpuq_reader_leave(r, mark);
	}
	return 0;
}

static struct gpuq_val *mig_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, mig);
	struct gpuq_val *list;

	if (!g->mig || g->mig_more.n == 0)
		return g->mig ? gpuq_str(a, g->mig) : NULL;
	list = gpuq_list(a);
	gpuq_add(a, list, gpuq_str(a, g->mig));
	for (size_t i = 0; i < g->mig_more.n; i++)
		gpuq_add(a, list, gpuq_str(a, g->mig_more.items[i]));
	return list;
}

const struct gpuq_custom spec_mig_kind = { mig_read, mig_write };

/* ---- checks ---- */

int spec_mig_check(const struct gpuq_group *g, const char **key, struct gpuq_err *err)
{
	*key = "mig";
	if (g->mig && !spec_mig_ok(g->mig))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a MIG profile such as 1g.10gb, not '%.40s'", g->mig);
	for (size_t i = 0; i < g->mig_more.n; i++) {
		const char *one = g->mig_more.items[i];
		bool twice = gpuq_profile_same(one, g->mig);

		for (size_t k = 0; k < i; k++)
			twice |= gpuq_profile_same(one, g->mig_more.items[k]);
		if (twice)
			return gpuq_fail(err, GPUQ_EINVAL, "expected each profile once: %.40s",
					 one);
	}
	for (size_t i = 0; g->mig && g->gpus_milli > 1000 && i <= g->mig_more.n; i++) {
		const char *one = i ? g->mig_more.items[i - 1] : g->mig;

		*key = "gpus";
		if (gpuq_profile_is_shared(one))
			return gpuq_fail(err, GPUQ_EINVAL,
					 "expected 1 of %.40s, not %lld: several replicas may be "
					 "of the same instance",
					 one, (long long)(g->gpus_milli / 1000));
	}
	*key = "mig";
	if (g->mig_more.n && g->template_)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected one profile: the pod template names one");
	if (!g->mig_ok)
		return 0;
	*key = "mig_ok";
	if (g->template_)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected none with a pod template, which names its resources");
	if (g->mig)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected either mig, which names profiles, or mig_ok");
	if (g->gpu_memory_bytes == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected gpu_memory beside it, which the instance must have");
	return 0;
}

int spec_mig_check_job(const struct gpuq_spec *s, struct gpuq_err *err)
{
	const char *had = NULL;

	for (size_t i = 0; i < s->n_groups; i++) {
		const struct gpuq_group *g = &s->groups[i];

		if (!g->mig_more.n && !g->mig_ok && !(g->mig && gpuq_profile_is_any(g->mig)))
			continue;
		if (had)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "expected one group with several profiles, replicas or "
					 "mig_ok: %.63s "
					 "and %.63s have them",
					 had, g->name);
		had = g->name;
	}
	return 0;
}
