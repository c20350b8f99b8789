#include "gpuqd/cluster/kube/adopt/suspended.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/adopt/gate.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "libgpuq/limits.h"

#define CONTROLLER "kubernetes.io/job-controller"

static const json_t *template_of(const json_t *job)
{
	return kube_path(job, "spec", "template");
}

static const char *gate_of_others(const json_t *job)
{
	const json_t *g;
	size_t i;

	json_array_foreach(kube_path(template_of(job), "spec", "schedulingGates"), i, g)
	{
		if (!gate_is_ours(g))
			return kube_str(g, "name");
	}
	return NULL;
}

static bool has_ended(const json_t *job)
{
	const json_t *c;
	size_t i;

	json_array_foreach(kube_path(job, "status", "conditions"), i, c)
	{
		const char *type = kube_str(c, "type");

		if ((strcmp(type, "Complete") == 0 || strcmp(type, "Failed") == 0) &&
		    strcmp(kube_str(c, "status"), "True") == 0)
			return true;
	}
	return false;
}

static int64_t number(const json_t *spec, const char *key, int64_t without)
{
	const json_t *v = json_object_get(spec, key);

	return json_is_integer(v) ? json_integer_value(v) : without;
}

/* Check what gpuqd would start. */
static enum suspended_state examine(const json_t *job, struct gpuq_err *why)
{
	const json_t *spec = json_object_get(job, "spec");
	const char *by = kube_str(spec, "managedBy"), *gate = gate_of_others(job);
	const int64_t width = number(spec, "parallelism", 1);
	const int64_t total = number(spec, "completions", width);
	const int64_t at_once = total < width ? total : width;

	if (*by && strcmp(by, CONTROLLER) != 0)
		gpuq_fail(why, GPUQ_EINVAL, "its managedBy is %.100s: that makes its pods", by);
	else if (json_is_true(json_object_get(spec, "manualSelector")))
		gpuq_fail(why, GPUQ_EINVAL,
			  "it has manualSelector: pods that wait behind no gate might be its own");
	else if (gate)
		gpuq_fail(why, GPUQ_EINVAL,
			  "its template has the scheduling gate %.100s of others: remove it", gate);
	else if (at_once < 1 || at_once > (int64_t)GPUQ_PODS_MAX)
		gpuq_fail(why, GPUQ_ERANGE, "expected 1 to %u pods at once, not %" PRId64,
			  GPUQ_PODS_MAX, at_once);
	else
		return SUSPENDED_WAITS;
	return SUSPENDED_REFUSED;
}

enum suspended_state suspended_state(const json_t *job, struct gpuq_err *why)
{
	const json_t *meta = json_object_get(job, "metadata");
	const char *cancelled = kube_str(json_object_get(meta, "annotations"), KUBE_A_CANCELLED);
	const bool suspended = json_is_true(kube_path(job, "spec", "suspend"));

	if (*kube_str(meta, "deletionTimestamp"))
		gpuq_fail(why, GPUQ_ENOENT, "its Job is being deleted");
	else if (has_ended(job))
		gpuq_fail(why, GPUQ_ENOENT, "its Job has ended");
	else if (gate_is_closed(template_of(job)))
		return suspended ? SUSPENDED_TO_RESTORE : SUSPENDED_GATED;
	else if (!suspended)
		gpuq_fail(why, GPUQ_ENOENT, "its Job was started by another client");
	else if (*cancelled)
		gpuq_fail(why, GPUQ_ENOENT, "job %.20s of it was cancelled", cancelled);
	else
		return examine(job, why);
	return SUSPENDED_NOT_OURS;
}

bool suspended_has_begun(const json_t *job)
{
	return *kube_str(json_object_get(job, "status"), "startTime") != '\0';
}

static json_t *patch(const json_t *job, const char *member, json_t *body)
{
	const json_t *meta = json_object_get(job, "metadata");

	return json_pack("{s:{s:s, s:s}, s:o}", "metadata", "uid", kube_str(meta, "uid"),
			 "resourceVersion", kube_str(meta, "resourceVersion"), member, body);
}

static json_t *with_gates(const json_t *job, bool ours)
{
	return json_pack("{s:{s:o}}", "spec", "schedulingGates", gate_list(template_of(job), ours));
}

json_t *suspended_to_start(const json_t *job)
{
	return patch(job, "spec",
		     json_pack("{s:b, s:o}", "suspend", 0, "template", with_gates(job, true)));
}

json_t *suspended_to_stop(const json_t *job, uint32_t cancelled)
{
	json_t *v = patch(job, "spec", json_pack("{s:b}", "suspend", 1));
	char id[16];

	snprintf(id, sizeof(id), "%" PRIu32, cancelled);
	if (v && cancelled)
		json_object_set_new(json_object_get(v, "metadata"), "annotations",
				    json_pack("{s:s}", KUBE_A_CANCELLED, id));
	return v;
}

json_t *suspended_to_reset(const json_t *job)
{
	return patch(job, "status", json_pack("{s:n}", "startTime"));
}

json_t *suspended_to_restore(const json_t *job)
{
	return patch(job, "spec", json_pack("{s:o}", "template", with_gates(job, false)));
}

static void inherit(json_t *to, const json_t *from, const char *key)
{
	json_t *map = json_object_get(to, key), *v;
	const char *name;

	if (!json_is_object(to))
		return;
	if (!json_is_object(map)) {
		map = json_object();
		json_object_set_new(to, key, map);
	}
	json_object_foreach((json_t *)(uintptr_t)json_object_get(from, key), name, v)
	{
		if (!json_object_get(map, name))
			json_object_set(map, name, v);
	}
}

void suspended_inherit(json_t *pod, const json_t *job)
{
	json_t *meta = json_object_get(pod, "metadata");
	const json_t *from = json_object_get(job, "metadata");

	inherit(meta, from, "labels");
	inherit(meta, from, "annotations");
}

json_t *suspended_pod(const json_t *job)
{
	const json_t *meta = json_object_get(job, "metadata");
	json_t *pod = json_deep_copy(template_of(job)), *own;

	if (!json_is_object(pod)) {
		json_decref(pod);
		pod = json_object();
	}
	own = json_object_get(pod, "metadata");
	if (!json_is_object(own)) {
		own = json_object();
		json_object_set_new(pod, "metadata", own);
	}
	json_object_set(own, "name", json_object_get(meta, "name"));
	json_object_set(own, "namespace", json_object_get(meta, "namespace"));
	json_object_set(own, "uid", json_object_get(meta, "uid"));
	suspended_inherit(pod, job);
	return pod;
}
