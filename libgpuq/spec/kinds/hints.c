/* Labels and annotations of a manifest for queueing and device-sharing systems. */
#include "libgpuq/spec/kinds/hints.h"

#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/names.h"
#include "libgpuq/spec/spec_check.h"
#include "libgpuq/spec/spec_template.h"
#include "libgpuq/spec/spec_util.h"
#include "libgpuq/units.h"

/* Keys by which manifests name their queue, ours first. */
static const char *const queue_keys[] = { "gpuq.io/queue", "kueue.x-k8s.io/queue-name",
					  "kai.scheduler/queue", NULL };

static int read_queue(struct gpuq_reader *r, const struct gpuq_val *metas[2], struct gpuq_spec *out)
{
	static const char *const maps[] = { "labels", "annotations" };
	const char *key = NULL;

	for (int k = 0; queue_keys[k]; k++) {
		for (int m = 0; m < 4; m++) {
			const struct gpuq_val *v =
				gpuq_path(metas[m / 2], maps[m % 2], queue_keys[k], NULL);

			if (!v || v->type != GPUQ_STR)
				continue;
			if (out->queue && strcmp(out->queue, v->s) != 0)
				return spec_fail(
					r, v, GPUQ_EINVAL,
					"expected one queue: %s says '%.63s', %s says '%.63s'", key,
					out->queue, queue_keys[k], v->s);
			if (!spec_name_ok(v->s))
				return spec_fail(r, v, GPUQ_EINVAL,
						 "expected the name of a queue in %s, not '%.63s'",
						 queue_keys[k], v->s);
			key = queue_keys[k];
			out->queue = v->s;
		}
	}
	return 0;
}

struct hint {
	const char *key, **to;
	bool name; /* of something: is one, or is refused */
};

/* The first string of each key in the labels and annotations of both. */
static int find_hints(struct gpuq_reader *r, const struct gpuq_val *metas[2],
		      const struct hint *hints, size_t n)
{
	static const char *const maps[] = { "labels", "annotations" };

	for (size_t i = 0; i < n; i++) {
		for (int m = 0; m < 4; m++) {
			const struct gpuq_val *v =
				gpuq_path(metas[m / 2], maps[m % 2], hints[i].key, NULL);

			if (!v || v->type != GPUQ_STR || *hints[i].to)
				continue;
			if (hints[i].name && !spec_name_ok(v->s)) {
				gpuq_reader_enter(r, maps[m % 2]);
				gpuq_reader_enter(r, hints[i].key);
				return spec_fail(r, v, GPUQ_EINVAL, "expected a name, not '%.63s'",
						 v->s);
			}
			*hints[i].to = v->s;
		}
	}
	return 0;
}

/* Read further hints of labels and annotations for a queueing system. */
static int read_hints(struct gpuq_reader *r, const struct gpuq_val *metas[2], struct gpuq_spec *out)
{
	struct gpuq_group *g = &out->groups[0];
	const char *time = NULL, *max_s = NULL, *min_pods = NULL, *flavor = NULL, *spot = NULL, *p;
	const struct hint hints[] = {
		{ "gpuq.io/account", &out->account, true },
		{ "gpuq.io/qos", &out->qos, true },
		{ "gpuq.io/time", &time, false },
		{ "gpuq.io/flavor", &flavor, false },
		{ "gpuq.io/spot", &spot, false },
		{ "kueue.x-k8s.io/max-exec-time-seconds", &max_s, false },
		{ "kueue.x-k8s.io/job-min-parallelism", &min_pods, false },
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t n;
	int rc = find_hints(r, metas, hints, sizeof(hints) / sizeof(hints[0]));

	if (rc < 0)
		return rc;
	if (time && gpuq_duration_parse(time, &out->time_us, &err) < 0)
		return spec_fail(r, metas[0], GPUQ_EINVAL, "gpuq.io/time: %s", err.text);
	if (max_s && !time) {
		p = max_s;
		if (!spec_digits(&p, 1, INT32_MAX, &n) || *p)
			return spec_fail(r, metas[0], GPUQ_EINVAL,
					 "kueue.x-k8s.io/max-exec-time-seconds: expected seconds");
		out->time_us = n * GPUQ_US_PER_S;
	}
	if (min_pods) {
		p = min_pods;
		if (!spec_digits(&p, 1, g->pods_max, &n) || *p)
			return spec_fail(r, metas[0], GPUQ_EINVAL,
					 "kueue.x-k8s.io/job-min-parallelism: expected 1 to "
					 "parallelism");
		g->pods_min = n;
	}
	if (flavor && spec_flavors_parse(r->arena, flavor, out, &err) < 0)
		return spec_fail(r, metas[0], GPUQ_EINVAL, "gpuq.io/flavor: %s", err.text);
	while (spot && out->spot < N_GPUQ_SPOTS && strcmp(spot, gpuq_spots[out->spot]) != 0)
		out->spot++;
	if (out->spot == N_GPUQ_SPOTS)
		return spec_fail(r, metas[0], GPUQ_EINVAL,
				 "gpuq.io/spot: expected auto, avoid, allow or only");
	return 0;
}

/* Where the pods of one group stand. */
static int read_topology(struct gpuq_reader *r, const struct gpuq_val *metas[2],
			 struct gpuq_group *g)
{
	const char *slice_level = NULL, *slice_size = NULL;
	const struct hint hints[] = {
		{ "kueue.x-k8s.io/podset-required-topology", &g->topology_required, false },
		{ "kueue.x-k8s.io/podset-preferred-topology", &g->topology_preferred, false },
		{ "kueue.x-k8s.io/podset-slice-required-topology", &slice_level, false },
		{ "kueue.x-k8s.io/podset-slice-size", &slice_size, false },
		{ "kai.scheduler/topology-required-placement", &g->topology_required, false },
		{ "kai.scheduler/topology-preferred-placement", &g->topology_preferred, false },
	};
	int rc = find_hints(r, metas, hints, sizeof(hints) / sizeof(hints[0]));

	if (rc < 0)
		return rc;
	if (slice_level || slice_size) {
		const char *p = slice_size;
		int64_t n;

		if (!slice_level || !slice_size || !spec_digits(&p, 1, GPUQ_PODS_MAX, &n) || *p)
			return spec_fail(r, metas[0], GPUQ_EINVAL,
					 "kueue.x-k8s.io/podset-slice-size: expected a number of "
					 "pods, and podset-slice-required-topology beside it");
		g->slices = gpuq_arena_calloc(r->arena, 1, sizeof(*g->slices));
		if (!g->slices)
			return gpuq_no_memory(r->err);
		g->slices[0] = (struct gpuq_slice){ slice_level, n };
		g->n_slices = 1;
	}
	return 0;
}

/* Annotations by which other systems place pods, without effect here. Those that choose devices are
 * refused: spec_words.c. */
static const struct {
	const char *key, *text;
} unused[] = {
	{ "nvidia.com/mig-profile-preference", "is not used: request nvidia.com/mig-PROFILE" },
	{ "nvidia.com/vgpu-mode", "is not used: how devices are shared is set for a pool" },
	{ "nvidia.com/numa-bind", "is not used: placement is set for a pool" },
	{ "hami.io/node-scheduler-policy", "is not used: placement is set for a pool" },
	{ "hami.io/gpu-scheduler-policy", "is not used: placement is set for a pool" },
	{ "alpha.jobset.sigs.k8s.io/exclusive-topology", "is not used for placement: topology is" },
	{ "scheduling.k8s.io/group-name", "is not used: the pods of a job start together" },
};

void hints_warn(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *of)
{
	const struct gpuq_val *notes = gpuq_get(of, "annotations");

	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++) {
		const struct gpuq_val *v = gpuq_get(notes, unused[i].key);
		const size_t mark = strlen(r->path);

		if (!v)
			continue;
		gpuq_reader_enter(r, "annotations");
		gpuq_reader_enter(r, unused[i].key);
		spec_warn(r, warnings, v, "%s", unused[i].text);
		gpuq_reader_leave(r, mark);
	}
}

static int read_foreign(struct gpuq_reader *r, struct gpuq_buf *warnings,
			const struct gpuq_val *meta, bool flavors)
{
	const struct gpuq_val *notes = gpuq_get(meta, "annotations");

	for (size_t i = 0; !flavors && notes && notes->type == GPUQ_MAP && i < notes->n; i++) {
		const struct gpuq_pair *p = &notes->pairs[i];
		const char *problem = spec_word_fault(p->key, SPEC_WORD_FLAVOR);

		if (!problem)
			continue;
		gpuq_reader_enter(r, "annotations");
		gpuq_reader_enter(r, p->key);
		return spec_fail(r, p->val, GPUQ_EINVAL, "%s", problem);
	}
	hints_warn(r, warnings, meta);
	return 0;
}

int hints_read(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *meta,
	       struct gpuq_spec *out)
{
	const struct gpuq_val *metas[2] = { meta, NULL };
	const struct gpuq_val *notes = gpuq_get(meta, "annotations"), *before = notes;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < out->n_groups; i++) {
		metas[1] = gpuq_get(out->groups[i].template_, "metadata");
		if (i == 0)
			rc = read_queue(r, metas, out);
		if (rc == 0 && i == 0)
			rc = read_hints(r, metas, out);
		if (rc == 0 && i == 0)
			rc = read_foreign(r, warnings, meta, out->flavors.n > 0);
		if (rc == 0)
			rc = read_topology(r, metas, &out->groups[i]);
		/* The annotations of a Pod are the object's own; groups may have one template. */
		notes = gpuq_get(metas[1], "annotations");
		if (rc == 0 && notes != before)
			rc = read_foreign(r, i ? NULL : warnings, metas[1], out->flavors.n > 0);
	}
	return rc;
}
