/* Kubernetes manifests as jobs: v1 Pod, batch/v1 Job, and a List of those.
 *
 * The pod template is kept as its owner wrote it, for the cluster adapter; what the
 * scheduler needs is read from it. Fields of a pod that gpuq does not know pass
 * through, the apiserver judges them; fields of a Job are all judged here, because no
 * apiserver will ever see the Job. */
#include "libgpuq/spec/spec_int.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
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

/* Read further hints of labels and annotations for a queueing system. */
static int read_hints(struct gpuq_reader *r, const struct gpuq_val *metas[2], struct gpuq_spec *out)
{
	static const char *const maps[] = { "labels", "annotations" };
	struct gpuq_group *g = &out->groups[0];
	const char *time = NULL, *max_s = NULL, *min_pods = NULL, *flavor = NULL, *p;
	const char *slice_level = NULL, *slice_size = NULL;
	const struct {
		const char *key, **to;
		bool name; /* of something: is one, or is refused */
	} hints[] = {
		{ "gpuq.io/account", &out->account, true },
		{ "gpuq.io/qos", &out->qos, true },
		{ "gpuq.io/time", &time, false },
		{ "gpuq.io/flavor", &flavor, false },
		{ "kueue.x-k8s.io/max-exec-time-seconds", &max_s, false },
		{ "kueue.x-k8s.io/job-min-parallelism", &min_pods, false },
		{ "kueue.x-k8s.io/podset-required-topology", &g->topology_required, false },
		{ "kueue.x-k8s.io/podset-preferred-topology", &g->topology_preferred, false },
		{ "kueue.x-k8s.io/podset-slice-required-topology", &slice_level, false },
		{ "kueue.x-k8s.io/podset-slice-size", &slice_size, false },
		{ "kai.scheduler/topology-required-placement", &g->topology_required, false },
		{ "kai.scheduler/topology-preferred-placement", &g->topology_preferred, false },
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t n;

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
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
	if (slice_level || slice_size) {
		p = slice_size;
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
	if (flavor && spec_split(r->arena, flavor, ',', &out->flavors) < 0)
		return gpuq_no_memory(r->err);
	return 0;
}

/* The shorter of two limits; 0 is none. */
static void limit_time(struct gpuq_spec *out, int64_t seconds)
{
	const int64_t us = seconds * GPUQ_US_PER_S;

	if (seconds && (out->time_us == 0 || us < out->time_us))
		out->time_us = us;
}

static int read_restart(struct gpuq_reader *r, struct gpuq_buf *warnings,
			const struct gpuq_val *pod, bool is_job, int64_t backoff,
			struct gpuq_spec *out)
{
	static const char *const policies[] = { "Never", "OnFailure", "Always", NULL };
	const struct gpuq_val *v = gpuq_get(pod, "restartPolicy");
	const char *policy = NULL;
	int i = 0, rc = spec_want_str(r, pod, "restartPolicy", &policy);
	size_t mark;

	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(r, "restartPolicy");
	while (policy && policies[i] && strcmp(policies[i], policy) != 0)
		i++;
	if (policy && (!policies[i] || (is_job && i == 2)))
		return spec_fail(r, v, GPUQ_EINVAL, "expected Never or OnFailure%s, not '%.40s'",
				 is_job ? "" : " or Always", policy);
	if (policy && i == 2)
		spec_warn(r, warnings, v,
			  "a job ends: it is not started again after it ended well");
	gpuq_reader_leave(r, mark);
	if (backoff < 0 && policy && i == 1)
		backoff = 6; /* Kubernetes' default */
	if (backoff > 0)
		out->retry = (struct gpuq_retry){ .limit = backoff,
						  .on = GPUQ_RETRY_INFRA | GPUQ_RETRY_FAILURE |
							GPUQ_RETRY_OOM };
	return 0;
}

/* The device list of an image or a habit of copying (the gpushare sample has "all")
 * would show a pod every device of its node: it is taken out, and that is said. */
static int strip_device_env(struct gpuq_reader *r, struct gpuq_buf *warnings, struct gpuq_val *spec)
{
	static const char *const keys[] = { "containers", "initContainers", NULL };

	for (int k = 0; keys[k]; k++) {
		struct gpuq_val *list = gpuq_get(spec, keys[k]);

		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
			struct gpuq_val *env = gpuq_get(list->items[i], "env");
			size_t kept = 0;

			if (!env || env->type != GPUQ_LIST)
				continue;
			for (size_t e = 0; e < env->n; e++) {
				struct gpuq_val *one = env->items[e];
				const char *value = gpuq_get_str(one, "value", "");

				if (strcmp(gpuq_get_str(one, "name", ""),
					   "NVIDIA_VISIBLE_DEVICES") == 0 &&
				    strcmp(value, "void") != 0 && strcmp(value, "none") != 0)
					spec_warn(r, warnings, one,
						  "NVIDIA_VISIBLE_DEVICES is omitted: gpuqd sets "
						  "the devices");
				else
					env->items[kept++] = one;
			}
			env->n = (uint32_t)kept;
		}
	}
	return 0;
}

/* Return the metadata that a pod keeps: gpuqd sets names and identities. */
static struct gpuq_val *pod_metadata(struct gpuq_arena *a, const struct gpuq_val *meta)
{
	static const char *const kept[] = { "labels", "annotations", NULL };
	struct gpuq_val *out = gpuq_map(a);

	for (int k = 0; kept[k] && out; k++) {
		struct gpuq_val *v = gpuq_get(meta, kept[k]);

		if (v && v->type != GPUQ_NULL && !gpuq_put(a, out, kept[k], v))
			return NULL;
	}
	if (out && meta)
		out->at = meta->at;
	return out;
}

/* Common to both kinds: the template into group 0, what the pod's own fields say about
 * the job. r stands where the template is. */
static int read_pod(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *meta,
		    const struct gpuq_val *spec, const struct gpuq_val *at, struct gpuq_spec *out)
{
	struct gpuq_group *g = &out->groups[0];
	struct gpuq_val *tmpl = gpuq_map(r->arena);
	struct gpuq_val *copy = spec ? gpuq_val_copy(r->arena, spec) : NULL;
	struct gpuq_val *kept = pod_metadata(r->arena, meta);
	int64_t seconds = 0, grace = 0;
	int rc;

	if (!spec || spec->type != GPUQ_MAP) {
		gpuq_reader_enter(r, "spec");
		return spec_fail(r, spec ? spec : at, GPUQ_EINVAL,
				 "expected a map with containers");
	}
	if (!tmpl || !copy || !kept || !gpuq_put(r->arena, tmpl, "metadata", kept) ||
	    !gpuq_put(r->arena, tmpl, "spec", copy))
		return gpuq_no_memory(r->err);
	tmpl->at = at->at;
	rc = strip_device_env(r, warnings, copy);
	if (rc == 0)
		rc = spec_template_read(r, warnings, tmpl, g);
	if (rc < 0)
		return rc;
	const size_t mark = gpuq_reader_enter(r, "spec");

	rc = spec_want_int(r, spec, "activeDeadlineSeconds", 1, INT32_MAX, &seconds);
	if (rc == 0)
		rc = spec_want_int(r, spec, "terminationGracePeriodSeconds", 0, INT32_MAX, &grace);
	if (rc < 0)
		return rc;
	limit_time(out, seconds);
	out->grace_us = grace * GPUQ_US_PER_S;
	gpuq_reader_leave(r, mark);
	g->template_ = tmpl;
	return 0;
}

static int check_keys(struct gpuq_reader *r, const struct gpuq_val *map, const char *const *known)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct gpuq_val at = { .at = map->pairs[i].at };
		const char *near;
		int k = 0;

		while (known[k] && strcmp(known[k], map->pairs[i].key) != 0)
			k++;
		if (known[k])
			continue;
		near = gpuq_nearest(map->pairs[i].key, known);
		gpuq_reader_enter(r, map->pairs[i].key);
		return spec_fail(r, &at, GPUQ_EINVAL, "unknown key%s%s%s",
				 near ? "; did you mean '" : "", near ? near : "",
				 near ? "'?" : "");
	}
	return 0;
}

/* Everything a batch/v1 Job may say; the second half is understood, but not used. */
static const char *const job_keys[] = { "parallelism",
					"completions",
					"completionMode",
					"backoffLimit",
					"activeDeadlineSeconds",
					"template",
					"suspend",
					"ttlSecondsAfterFinished",
					"selector",
					"manualSelector",
					"managedBy",
					"podReplacementPolicy",
					"backoffLimitPerIndex",
					"podFailurePolicy",
					"successPolicy",
					"maxFailedIndexes",
					NULL };
static const char *const job_unused[] = { "podFailurePolicy", "successPolicy", "maxFailedIndexes",
					  NULL };

static int read_job(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *spec,
		    struct gpuq_spec *out)
{
	struct gpuq_group *g = &out->groups[0];
	const struct gpuq_val *tmpl, *meta;
	const char *mode = "NonIndexed";
	int64_t parallelism = 1, completions = -1, backoff = -1, per_index = -1, seconds = 0;
	size_t mark;
	int rc = check_keys(r, spec, job_keys);

	if (rc == 0)
		rc = spec_want_int(r, spec, "parallelism", 1, GPUQ_PODS_MAX, &parallelism);
	if (rc == 0)
		rc = spec_want_int(r, spec, "completions", 1, GPUQ_ARRAY_MAX, &completions);
	if (rc == 0)
		rc = spec_want_int(r, spec, "backoffLimit", 0, GPUQ_RETRY_MAX, &backoff);
	if (rc == 0)
		rc = spec_want_int(r, spec, "backoffLimitPerIndex", 0, GPUQ_RETRY_MAX, &per_index);
	if (rc == 0)
		rc = spec_want_int(r, spec, "activeDeadlineSeconds", 1, INT32_MAX, &seconds);
	if (rc == 0)
		rc = spec_want_str(r, spec, "completionMode", &mode);
	if (rc == 0)
		rc = spec_want_type(r, spec, "template", GPUQ_MAP, &tmpl);
	if (rc < 0)
		return rc;
	if (strcmp(mode, "NonIndexed") != 0 && strcmp(mode, "Indexed") != 0) {
		gpuq_reader_enter(r, "completionMode");
		return spec_fail(r, gpuq_get(spec, "completionMode"), GPUQ_EINVAL,
				 "expected NonIndexed or Indexed, not '%.40s'", mode);
	}
	for (int i = 0; job_unused[i]; i++) {
		const struct gpuq_val *v = gpuq_get(spec, job_unused[i]);

		if (v && v->type != GPUQ_NULL) {
			mark = gpuq_reader_enter(r, job_unused[i]);
			spec_warn(r, warnings, v, "is not used");
			gpuq_reader_leave(r, mark);
		}
	}
	if (!tmpl) {
		gpuq_reader_enter(r, "template");
		return spec_fail(r, spec, GPUQ_EINVAL, "expected a map with metadata and spec");
	}
	mark = gpuq_reader_enter(r, "template");
	rc = spec_want_type(r, tmpl, "metadata", GPUQ_MAP, &meta);
	if (rc == 0)
		rc = read_pod(r, warnings, meta, gpuq_get(tmpl, "spec"), tmpl, out);
	if (rc < 0)
		return rc;
	gpuq_reader_enter(r, "spec");
	rc = read_restart(r, warnings, gpuq_get(tmpl, "spec"), true,
			  per_index >= 0 ? per_index : backoff, out);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);

	limit_time(out, seconds);
	if (completions > parallelism) {
		/* Each completion is a job of its own, as many at once as there were pods. */
		char set[48];
		struct gpuq_err err = GPUQ_ERR_INIT;

		snprintf(set, sizeof(set), "0-%lld%%%lld", (long long)(completions - 1),
			 (long long)parallelism);
		rc = gpuq_array_parse(r->arena, set, &out->array, &err);
		if (rc < 0)
			return spec_fail(r, spec, rc, "completions: %s", err.text);
	} else {
		g->pods_min = g->pods_max =
			completions > 0 && completions < parallelism ? completions : parallelism;
	}
	return 0; /* JOB_COMPLETION_INDEX is known, and set, when a pod starts */
}

/* metadata.name, or what generateName begins with, as a name of ours. */
static int read_name(struct gpuq_reader *r, const struct gpuq_val *meta, struct gpuq_spec *out)
{
	const char *name = NULL, *base = NULL, *ns = NULL;
	const size_t mark = gpuq_reader_enter(r, "metadata");
	int rc = spec_want_str(r, meta, "name", &name);

	if (rc == 0)
		rc = spec_want_str(r, meta, "generateName", &base);
	if (rc == 0)
		rc = spec_want_str(r, meta, "namespace", &ns);
	if (rc < 0)
		return rc;
	if (name && (strlen(name) > 253 || strspn(name, "abcdefghijklmnopqrstuvwxyz"
							"0123456789.-") != strlen(name))) {
		gpuq_reader_enter(r, "name");
		return spec_fail(r, gpuq_get(meta, "name"), GPUQ_EINVAL,
				 "expected lower case letters, digits, '-' and '.', not '%.80s'",
				 name);
	}
	if (name || base) {
		out->name = spec_name_from(r->arena, name ? name : base);
		if (!out->name)
			return gpuq_no_memory(r->err);
	}
	if (ns && !spec_name_ok(ns)) {
		gpuq_reader_enter(r, "namespace");
		return spec_fail(r, gpuq_get(meta, "namespace"), GPUQ_EINVAL,
				 "expected the name of a namespace, not '%.80s'", ns);
	}
	out->namespace_ = ns;
	gpuq_reader_leave(r, mark);
	return 0;
}

bool spec_is_manifest(const struct gpuq_val *doc)
{
	return gpuq_get(doc, "apiVersion") != NULL;
}

bool spec_is_list(const struct gpuq_val *doc)
{
	return spec_is_manifest(doc) && strcmp(gpuq_get_str(doc, "kind", ""), "List") == 0;
}

size_t spec_manifest_count(const struct gpuq_val *doc)
{
	const struct gpuq_val *items = gpuq_get(doc, "items");

	if (!spec_is_list(doc))
		return 1;
	return items && items->type == GPUQ_LIST ? items->n : 0;
}

int spec_manifest_read(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *doc,
		       struct gpuq_spec *out)
{
	static const char *const keys[] = {
		"apiVersion", "kind", "metadata", "spec", "status", NULL
	};
	const char *api = gpuq_get_str(doc, "apiVersion", "");
	const char *kind = gpuq_get_str(doc, "kind", "");
	const bool is_pod = strcmp(api, "v1") == 0 && strcmp(kind, "Pod") == 0;
	const bool is_job = strcmp(api, "batch/v1") == 0 && strcmp(kind, "Job") == 0;
	const struct gpuq_val *meta, *spec, *metas[2] = { NULL, NULL };
	struct gpuq_spec got = { 0 };
	size_t mark;
	int rc;

	if (!is_pod && !is_job) {
		gpuq_reader_enter(r, "kind");
		return spec_fail(r, gpuq_get(doc, "kind") ? gpuq_get(doc, "kind") : doc,
				 GPUQ_EINVAL, "expected v1 Pod or batch/v1 Job, not '%.40s %.40s'",
				 api, kind);
	}
	rc = check_keys(r, doc, keys);
	if (rc == 0)
		rc = spec_want_type(r, doc, "metadata", GPUQ_MAP, &meta);
	if (rc == 0)
		rc = spec_want_type(r, doc, "spec", GPUQ_MAP, &spec);
	if (rc < 0)
		return rc;
	if (!spec) {
		gpuq_reader_enter(r, "spec");
		return spec_fail(r, doc, GPUQ_EINVAL, "expected a map");
	}
	spec_defaults(&got);
	got.groups = gpuq_arena_calloc(r->arena, 1, sizeof(*got.groups));
	if (!got.groups)
		return gpuq_no_memory(r->err);
	got.n_groups = 1;
	spec_group_defaults(&got.groups[0]);

	rc = read_name(r, meta, &got);
	metas[0] = meta;
	if (rc == 0 && is_pod) {
		rc = read_pod(r, warnings, meta, spec, doc, &got);
		mark = gpuq_reader_enter(r, "spec");
		if (rc == 0)
			rc = read_restart(r, warnings, spec, false, -1, &got);
		if (rc == 0)
			gpuq_reader_leave(r, mark);
	} else if (rc == 0) {
		mark = gpuq_reader_enter(r, "metadata");
		rc = spec_read_metadata(r, meta);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
		mark = gpuq_reader_enter(r, "spec");
		rc = read_job(r, warnings, spec, &got);
		if (rc == 0)
			gpuq_reader_leave(r, mark);
		metas[1] = gpuq_path(spec, "template", "metadata", NULL);
	}
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(r, "metadata");
	rc = read_queue(r, metas, &got);
	if (rc == 0)
		rc = read_hints(r, metas, &got);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);
	*out = got;
	return 0;
}
