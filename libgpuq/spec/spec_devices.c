/* The requests of a Kubernetes pod, in each dialect of GPU sharing.
 *
 * Sources: the request of a pod is component-helpers' resource/helpers.go (sum of
 * containers, against the largest init container, sidecars added to both). Dialects:
 * NVIDIA's device plugin, Tencent's gpu-manager, Aliyun's gpushare, HAMi, KAI.
 *
 * A share of one device belongs to one container: none of the sharing systems can
 * give one device to two containers of a pod reliably, so that is refused here and
 * not found out on the node. */
#include "libgpuq/spec/spec_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"
#include "libgpuq/units.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define VCUDA_BLOCK_BYTES (256 * MIB)
#define COUNT_MAX INT64_C(100000000)

#define R_GPU "nvidia.com/gpu"
#define R_MIG "nvidia.com/mig-"
#define R_CORE "tencent.com/vcuda-core"
#define R_VMEM "tencent.com/vcuda-memory"
#define R_ALIYUN "aliyun.com/gpu-mem"
#define R_HAMI_MEM "nvidia.com/gpumem"
#define R_HAMI_PERCENT "nvidia.com/gpumem-percentage"
#define R_HAMI_CORES "nvidia.com/gpucores"
#define R_HAMI_PRIORITY "nvidia.com/priority"
#define R_ALIYUN_COUNT "aliyun.com/gpu-count"
#define A_CORE_LIMIT "tencent.com/vcuda-core-limit"
#define A_FRACTION "gpu-fraction"
#define A_MEMORY "gpu-memory"
#define A_DEVICES "gpu-fraction-num-devices"
#define A_CONTAINER "gpu-fraction-container-name"

static const char *const lists[] = { "containers", "initContainers", NULL };

enum dialect { NVIDIA, MIG, TENCENT, ALIYUN, KAI, N_DIALECTS };

static const struct {
	const char *name; /* ends with '-': a prefix */
	enum dialect dialect;
	bool share; /* of one device: one container only */
	int64_t bytes; /* that one of it is, where it counts memory */
	int64_t most; /* of a container */
} words[] = {
	{ R_GPU, NVIDIA, false, 0, GPUQ_GPUS_PER_POD_MAX },
	{ R_HAMI_MEM, NVIDIA, true, MIB, COUNT_MAX },
	{ R_HAMI_PERCENT, NVIDIA, true, 0, 100 },
	{ R_HAMI_CORES, NVIDIA, true, 0, 100 },
	{ R_MIG, MIG, false, 0, COUNT_MAX },
	{ R_CORE, TENCENT, false, 0, 100 * (int64_t)GPUQ_GPUS_PER_POD_MAX },
	{ R_VMEM, TENCENT, false, VCUDA_BLOCK_BYTES, COUNT_MAX },
	{ R_ALIYUN, ALIYUN, true, GIB, COUNT_MAX },
};

/* ---- one value ---- */

/* Write the count of the resource that comes nearest to the text. Returns out. */
static const char *nearest_of(const char *res, const char *text, char out[SPEC_NEAREST_ROOM])
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, res) == 0)
			return spec_nearest_count(text, words[i].bytes, words[i].most, out);
	return spec_nearest_count(text, 0, COUNT_MAX, out);
}

static int parse(struct gpuq_reader *r, const struct gpuq_val *v, enum spec_unit unit,
		 const char *res, int64_t *out)
{
	char near[SPEC_NEAREST_ROOM];
	const char *text = spec_scalar(r->arena, v), *p = text;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t n = 0;
	int rc = 0;

	if (!text || v->type == GPUQ_BOOL)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a quantity, not %s",
				 gpuq_type_name(v->type));
	switch (unit) {
	case SPEC_COUNT:
		if (!spec_digits(&p, 0, COUNT_MAX, &n) || *p)
			return spec_fail(r, v, GPUQ_EINVAL,
					 "expected a whole number without a unit, not '%.40s'%s",
					 text, nearest_of(res, text, near));
		break;
	case SPEC_CPU:
		rc = gpuq_milli_parse(text, &n, &err);
		break;
	case SPEC_BYTES:
		rc = gpuq_bytes_parse(text, &n, &err);
		break;
	}
	if (rc < 0)
		return spec_fail(r, v, rc, "%s", err.text);
	if (n < 0)
		return spec_fail(r, v, GPUQ_ERANGE, "expected 0 or more, not '%.40s'", text);
	*out = n;
	return 0;
}

/* Return the amount of res in `resources`: the request, else the limit; 0 without either. */
static int asked(struct gpuq_reader *r, const struct gpuq_val *resources, const char *res,
		 enum spec_unit unit, int64_t *out)
{
	static const char *const kinds[] = { "requests", "limits" };
	const struct gpuq_val *v[2] = { 0 };
	int64_t n[2] = { 0, 0 };
	const size_t mark = gpuq_reader_enter(r, "resources");

	for (int k = 0; k < 2; k++) {
		const struct gpuq_val *map = gpuq_get(resources, kinds[k]);
		const size_t inner = gpuq_reader_enter(r, kinds[k]);
		int rc;

		if (map && map->type != GPUQ_MAP && map->type != GPUQ_NULL)
			return spec_fail(r, map, GPUQ_EINVAL, "expected a map of resources, not %s",
					 gpuq_type_name(map->type));
		v[k] = gpuq_get(map, res);
		if (v[k]) {
			gpuq_reader_enter(r, res);
			rc = parse(r, v[k], unit, res, &n[k]);
			if (rc == 0)
				rc = spec_pages_check(r, v[k], res, n[k]);
			if (rc < 0)
				return rc;
			if (k == 1 && v[0] && n[1] < n[0])
				return spec_fail(r, v[1], GPUQ_EINVAL,
						 "expected at least what requests say");
			if (k == 1 && v[0] && unit == SPEC_COUNT && n[1] != n[0])
				return spec_fail(r, v[1], GPUQ_EINVAL,
						 "expected the same number as in requests: devices "
						 "are not overcommitted");
		} else if (k == 1 && v[0] && unit == SPEC_COUNT) {
			gpuq_reader_enter(r, res);
			return spec_fail(r, v[0], GPUQ_EINVAL,
					 "expected a limit equal to the request: devices are not "
					 "overcommitted");
		}
		gpuq_reader_leave(r, inner);
	}
	gpuq_reader_leave(r, mark);
	*out = v[0] ? n[0] : n[1];
	return 0;
}

/* ---- the whole pod ---- */

static int add(struct gpuq_reader *r, const struct gpuq_val *at, int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		return spec_fail(r, at, GPUQ_ERANGE, "requests more than can be counted");
	return 0;
}

static bool is_sidecar(const struct gpuq_val *container)
{
	return strcmp(gpuq_get_str(container, "restartPolicy", ""), "Always") == 0;
}

int spec_pod_request(struct gpuq_reader *r, const struct gpuq_val *spec, const char *res,
		     enum spec_unit unit, int64_t *out)
{
	int64_t app = 0, init = 0, sidecars = 0, total;

	for (int k = 0; lists[k]; k++) {
		const struct gpuq_val *list = gpuq_get(spec, lists[k]);
		const size_t mark = gpuq_reader_enter(r, lists[k]);

		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
			const struct gpuq_val *c = list->items[i];
			const size_t item = gpuq_reader_enter_item(r, i);
			int64_t req = 0, cand;
			int rc = asked(r, gpuq_get(c, "resources"), res, unit, &req);

			cand = req;
			if (rc == 0 && (k == 0 || is_sidecar(c)))
				rc = add(r, c, &app, req);
			if (rc == 0 && k == 1)
				rc = add(r, c, &cand, sidecars);
			if (rc < 0)
				return rc;
			if (k == 1 && is_sidecar(c))
				sidecars = cand;
			if (k == 1 && cand > init)
				init = cand;
			gpuq_reader_leave(r, item);
		}
		gpuq_reader_leave(r, mark);
	}
	total = app > init ? app : init;
	if (unit != SPEC_COUNT) {
		const struct gpuq_val *pod = gpuq_get(spec, "resources");
		const struct gpuq_val *overhead = gpuq_path(spec, "overhead", res, NULL);
		int64_t n = 0;
		int rc = 0;

		/* Requests of the pod as a whole stand in place of its containers'. */
		if (gpuq_path(pod, "requests", res, NULL) || gpuq_path(pod, "limits", res, NULL))
			rc = asked(r, pod, res, unit, &total);
		if (rc == 0 && overhead) {
			const size_t mark = gpuq_reader_enter(r, "overhead");

			gpuq_reader_enter(r, res);
			rc = parse(r, overhead, unit, res, &n);
			if (rc == 0)
				rc = spec_pages_check(r, overhead, res, n);
			gpuq_reader_leave(r, mark);
		}
		if (rc == 0)
			rc = add(r, spec, &total, n);
		if (rc < 0)
			return rc;
	}
	*out = total;
	return 0;
}

/* ---- requests by dialect ---- */

struct found {
	const char *by[N_DIALECTS]; /* the first key of each dialect */
	const char *mig; /* profile */
	const struct gpuq_val *sharer; /* the container that requests a share */
	const char *share_list;
	size_t share_ix;
	bool several; /* more containers than the sharer ask */
};

/* Names that no device comes with, and that are not counted. */
static int look_at_remark(struct gpuq_reader *r, const struct gpuq_pair *p, bool asks)
{
	const char *text = spec_scalar(r->arena, p->val);
	const char *problem = strcmp(p->key, R_ALIYUN_COUNT) == 0
				      ? "tells how many devices a node has: request " R_ALIYUN
			      : strcmp(p->key, R_HAMI_PRIORITY) == 0 && !asks
				      ? "expected " R_GPU
					" beside it: it is the priority of a pod with devices"
				      : NULL;

	if (!problem || r->stored || (text && strcmp(text, "0") == 0))
		return 0;
	gpuq_reader_enter(r, p->key);
	return spec_fail(r, p->val, GPUQ_EINVAL, "%s", problem);
}

/* Those of the requests and limits of a container, when it is known whether it requests devices. */
static int look_at_remarks(struct gpuq_reader *r, const struct gpuq_val *container, bool asks)
{
	static const char *const kinds[] = { "requests", "limits" };
	const size_t mark = gpuq_reader_enter(r, "resources");

	for (int m = 0; m < 2; m++) {
		const struct gpuq_val *map = gpuq_path(container, "resources", kinds[m], NULL);
		const size_t at = gpuq_reader_enter(r, kinds[m]);

		for (size_t j = 0; map && map->type == GPUQ_MAP && j < map->n; j++) {
			int rc = look_at_remark(r, &map->pairs[j], asks);

			if (rc < 0)
				return rc;
		}
		gpuq_reader_leave(r, at);
	}
	gpuq_reader_leave(r, mark);
	return 0;
}

static int look_at_key(struct gpuq_reader *r, const struct gpuq_pair *p, struct found *f,
		       bool *asks, bool *shares)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *name = words[i].name;
		const size_t n = strlen(name);

		if (name[n - 1] == '-' ? strncmp(p->key, name, n) != 0 : strcmp(p->key, name) != 0)
			continue;
		if (!f->by[words[i].dialect])
			f->by[words[i].dialect] = p->key;
		*asks = true;
		*shares |= words[i].share;
		if (words[i].dialect == MIG) {
			if (!spec_mig_ok(p->key + n)) {
				gpuq_reader_enter(r, p->key);
				return spec_fail(r, p->val, GPUQ_EINVAL,
						 "expected a MIG profile such as " R_MIG "1g.10gb");
			}
			if (!r->stored && !spec_mig_fits(p->key + n)) {
				gpuq_reader_enter(r, p->key);
				return spec_fail(r, p->val, GPUQ_EINVAL, SPEC_MIG_LARGE,
						 p->key + n);
			}
			if (f->mig && strcmp(f->mig, p->key + n) != 0) {
				gpuq_reader_enter(r, p->key);
				return spec_fail(r, p->val, GPUQ_EINVAL,
						 "expected one MIG profile in a pod, this one also "
						 "requests %s",
						 f->mig);
			}
			f->mig = p->key + n;
		}
	}
	return 0;
}

static int look(struct gpuq_reader *r, const struct gpuq_val *spec, struct found *f)
{
	static const char *const kinds[] = { "requests", "limits" };
	size_t askers = 0;

	for (int k = 0; lists[k]; k++) {
		const struct gpuq_val *list = gpuq_get(spec, lists[k]);
		const size_t mark = gpuq_reader_enter(r, lists[k]);

		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
			const size_t item = gpuq_reader_enter_item(r, i);
			bool asks = false, shares = false;

			for (int m = 0; m < 2; m++) {
				const struct gpuq_val *map =
					gpuq_path(list->items[i], "resources", kinds[m], NULL);
				const size_t at = gpuq_reader_enter(r, "resources");
				int rc = 0;

				gpuq_reader_enter(r, kinds[m]);
				for (size_t j = 0; map && map->type == GPUQ_MAP && j < map->n;
				     j++) {
					rc = look_at_key(r, &map->pairs[j], f, &asks, &shares);
					if (rc < 0)
						return rc;
				}
				gpuq_reader_leave(r, at);
			}
			askers += asks;
			if (look_at_remarks(r, list->items[i], asks) < 0)
				return GPUQ_EINVAL;
			if (asks && (!f->sharer || shares)) {
				f->sharer = list->items[i];
				f->share_list = lists[k];
				f->share_ix = i;
			}
			gpuq_reader_leave(r, item);
		}
		gpuq_reader_leave(r, mark);
	}
	f->several = askers > 1;
	return 0;
}

static int one_container(struct gpuq_reader *r, const struct found *f, const char *what)
{
	if (!f->several)
		return 0;
	gpuq_reader_enter(r, f->share_list);
	gpuq_reader_enter_item(r, f->share_ix);
	return spec_fail(r, f->sharer, GPUQ_EINVAL,
			 "expected one container to request all of %s: only one can have a share "
			 "of a device",
			 what);
}

/* Value of res in the sharing container. */
static int share_of(struct gpuq_reader *r, const struct found *f, const char *res, int64_t *out)
{
	const size_t mark = gpuq_reader_enter(r, f->share_list);
	int rc;

	gpuq_reader_enter_item(r, f->share_ix);
	rc = asked(r, gpuq_get(f->sharer, "resources"), res, SPEC_COUNT, out);
	if (rc == 0)
		gpuq_reader_leave(r, mark);
	return rc;
}

static int share_fail(struct gpuq_reader *r, const struct found *f, const char *res,
		      const char *text)
{
	const struct gpuq_val *map = gpuq_get(f->sharer, "resources");
	const struct gpuq_val *v = gpuq_path(map, "limits", res, NULL);
	const char *kind = v ? "limits" : "requests";

	if (!v)
		v = gpuq_path(map, "requests", res, NULL);
	gpuq_reader_enter(r, f->share_list);
	gpuq_reader_enter_item(r, f->share_ix);
	gpuq_reader_enter(r, "resources");
	gpuq_reader_enter(r, kind);
	gpuq_reader_enter(r, res);
	return spec_fail(r, v ? v : f->sharer, GPUQ_EINVAL, "%s", text);
}

/* ---- the dialects ---- */

static int percent_fail(struct gpuq_reader *r, const struct found *f, int64_t percent)
{
	char text[192];

	snprintf(text, sizeof(text),
		 "expected as much as " R_HAMI_PERCENT ", which is %" PRId64
		 ", where the pod has several devices, or memory in MiB by " R_HAMI_MEM,
		 percent);
	return share_fail(r, f, R_HAMI_CORES, text);
}

static int read_nvidia(struct gpuq_reader *r, const struct gpuq_val *spec, const struct found *f,
		       struct gpuq_group *g)
{
	const struct gpuq_val *res = gpuq_get(f->sharer, "resources");
	int64_t n = 0, mem = 0, percent = 0, cores = 0;
	bool hami = false;
	int rc;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].dialect == NVIDIA && words[i].share &&
		    (gpuq_path(res, "limits", words[i].name, NULL) ||
		     gpuq_path(res, "requests", words[i].name, NULL)))
			hami = true;
	rc = spec_pod_request(r, spec, R_GPU, SPEC_COUNT, &n);
	if (rc < 0)
		return rc;
	if (n > (int64_t)GPUQ_GPUS_PER_POD_MAX)
		return share_fail(r, f, R_GPU,
				  "expected at most 1024 devices: the nearest is 1024");
	g->gpus_milli = 1000 * n;
	if (!hami)
		return 0;
	rc = one_container(r, f, "nvidia.com/gpumem and nvidia.com/gpucores");
	if (rc == 0)
		rc = share_of(r, f, R_HAMI_MEM, &mem);
	if (rc == 0)
		rc = share_of(r, f, R_HAMI_PERCENT, &percent);
	if (rc == 0)
		rc = share_of(r, f, R_HAMI_CORES, &cores);
	if (rc < 0)
		return rc;
	if (cores > 100)
		return share_fail(r, f, R_HAMI_CORES,
				  "expected a percentage from 0 to 100: the nearest is 100");
	if (percent > 100)
		return share_fail(r, f, R_HAMI_PERCENT,
				  "expected a percentage from 0 to 100: the nearest is 100");
	if (mem && percent)
		return share_fail(r, f, R_HAMI_PERCENT,
				  "expected either nvidia.com/gpumem or a percentage, not both");
	if (n == 0 && !r->stored &&
	    (gpuq_path(res, "limits", R_GPU, NULL) || gpuq_path(res, "requests", R_GPU, NULL)))
		return share_fail(r, f, R_GPU,
				  "expected at least 1 beside " R_HAMI_MEM " and " R_HAMI_CORES);
	if (n == 0)
		n = 1; /* as HAMi's webhook has it */
	g->gpus_milli = percent && percent < 100 && n == 1 ? 10 * percent : 1000 * n;
	g->gpu_memory_bytes = mem * MIB;
	g->gpu_cores = cores;
	/* A part of each of several devices is one of the cores, and of as much memory. */
	if (percent && percent < 100 && n > 1) {
		if (cores && cores != percent)
			return percent_fail(r, f, percent);
		g->gpu_cores = percent;
	}
	return 0;
}

static int read_mig(struct gpuq_reader *r, const struct gpuq_val *spec, const struct found *f,
		    struct gpuq_group *g)
{
	int64_t n = 0;
	int rc = spec_pod_request(r, spec, f->by[MIG], SPEC_COUNT, &n);

	if (rc < 0)
		return rc;
	if (n < 1 || n > (int64_t)GPUQ_GPUS_PER_POD_MAX)
		return share_fail(r, f, f->by[MIG], "expected 1 to 1024 instances");
	if (n > 1 && gpuq_profile_is_shared(f->mig) && !r->stored)
		return share_fail(r, f, f->by[MIG],
				  "expected 1: several replicas may be of the same instance");
	g->gpus_milli = 1000 * n;
	g->mig = f->mig;
	return 0;
}

/* Name the whole devices next to what was requested. */
static int core_fail(struct gpuq_reader *r, const struct found *f, int64_t core)
{
	const int64_t below = core / 100 * 100, most = 100 * (int64_t)GPUQ_GPUS_PER_POD_MAX;
	char text[256];

	snprintf(text, sizeof(text),
		 "expected 1 to 99 (percent of one device) or a multiple of 100 (whole devices): "
		 "core "
		 "above 100 must be a multiple of 100, such as %" PRId64 " or %" PRId64,
		 below < most ? below : most - 100, below < most ? below + 100 : most);
	return share_fail(r, f, R_CORE, text);
}

/* gpu-manager: 100 core = one device; below that memory in blocks is needed too. */
static int read_tencent(struct gpuq_reader *r, const struct gpuq_val *spec, struct found *f,
			struct gpuq_group *g)
{
	int64_t core = 0, mem = 0, total = 0;
	bool share = false;

	for (int k = 0; lists[k]; k++) {
		const struct gpuq_val *list = gpuq_get(spec, lists[k]);

		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
			int rc;

			f->sharer = list->items[i];
			f->share_list = lists[k];
			f->share_ix = i;
			rc = share_of(r, f, R_CORE, &core);
			if (rc == 0)
				rc = share_of(r, f, R_VMEM, &mem);
			if (rc < 0)
				return rc;
			if (core == 0 && mem == 0)
				continue;
			if (core == 0)
				return share_fail(r, f, R_VMEM,
						  "expected " R_CORE " beside it: both are needed");
			if (core < 100 && mem == 0)
				return share_fail(
					r, f, R_CORE,
					"expected " R_VMEM
					" (in blocks of 256 MiB) beside it: both are needed "
					"for a part of a device");
			if (core > 100 && core % 100)
				return core_fail(r, f, core);
			if (core > 100 * (int64_t)GPUQ_GPUS_PER_POD_MAX)
				return share_fail(
					r, f, R_CORE,
					"expected at most 1024 devices: the nearest is 102400");
			if (core < 100) {
				rc = one_container(r, f, "tencent.com/vcuda-core");
				if (rc < 0)
					return rc;
				share = true;
				g->gpus_milli = 10 * core;
				g->gpu_memory_bytes = mem * VCUDA_BLOCK_BYTES;
			}
		}
	}
	if (share)
		return 0;
	const int rc = spec_pod_request(r, spec, R_CORE, SPEC_COUNT, &total);

	if (rc == 0)
		g->gpus_milli = 10 * total;
	return rc;
}

/* How far a pod of gpu-manager may use idle cores, which its owner writes. */
static int check_core_limit(struct gpuq_reader *r, const struct gpuq_val *annotations,
			    const struct gpuq_group *g)
{
	const struct gpuq_val *v = gpuq_get(annotations, A_CORE_LIMIT);
	const int64_t core = g->gpus_milli < 1000 ? g->gpus_milli / 10 : 100;
	const char *text = v ? spec_scalar(r->arena, v) : NULL, *p = text;
	int64_t n = 0;
	size_t mark;

	if (!v || r->stored || (text && spec_digits(&p, 1, 100, &n) && !*p && n >= core))
		return 0;
	mark = gpuq_reader_enter(r, "metadata");
	gpuq_reader_enter(r, "annotations");
	gpuq_reader_enter(r, A_CORE_LIMIT);
	spec_fail(r, v, GPUQ_EINVAL,
		  "expected \"%lld\" to \"100\", percent of a device: at least " R_CORE,
		  (long long)core);
	gpuq_reader_leave(r, mark);
	return GPUQ_EINVAL;
}

/* gpushare counts GiB, or MiB where its plugin was told so; no device has 1024 GiB,
 * so that larger numbers are MiB. */
static int read_aliyun(struct gpuq_reader *r, const struct found *f, struct gpuq_group *g)
{
	int64_t n = 0;
	int rc = one_container(r, f, R_ALIYUN);

	if (rc == 0)
		rc = share_of(r, f, R_ALIYUN, &n);
	if (rc < 0)
		return rc;
	if (n == 0)
		return share_fail(r, f, R_ALIYUN, "expected at least 1 (GiB of one device)");
	g->gpus_milli = 1000;
	g->gpu_memory_bytes = n >= 1024 ? n * MIB : n * GIB;
	return 0;
}

/* The container that has the part of a device, where its owner names it. */
static int check_container(struct gpuq_reader *r, const struct gpuq_val *annotations,
			   const struct gpuq_val *spec)
{
	const struct gpuq_val *v = gpuq_get(annotations, A_CONTAINER);
	const char *name = gpuq_get_str(annotations, A_CONTAINER, "");

	if (!v || r->stored)
		return 0;
	for (int k = 0; lists[k]; k++) {
		const struct gpuq_val *list = gpuq_get(spec, lists[k]);

		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
			if (strcmp(gpuq_get_str(list->items[i], "name", ""), name) == 0)
				return 0;
	}
	gpuq_reader_enter(r, A_CONTAINER);
	return spec_fail(r, v, GPUQ_EINVAL, "expected the name of a container, not '%.63s'", name);
}

/* KAI says it in annotations of the pod. */
static int read_kai(struct gpuq_reader *r, const struct gpuq_val *annotations,
		    const struct gpuq_val *spec, struct gpuq_group *g)
{
	const struct gpuq_val *fraction = gpuq_get(annotations, A_FRACTION);
	const struct gpuq_val *memory = gpuq_get(annotations, A_MEMORY);
	const struct gpuq_val *devices = gpuq_get(annotations, A_DEVICES);
	int64_t n = 0;
	size_t mark;
	int rc;

	mark = gpuq_reader_enter(r, "metadata");
	gpuq_reader_enter(r, "annotations");
	if (fraction && memory) {
		gpuq_reader_enter(r, A_MEMORY);
		return spec_fail(r, memory, GPUQ_EINVAL,
				 "expected either " A_FRACTION " or " A_MEMORY ", not both");
	}
	if (devices && strcmp(gpuq_get_str(annotations, A_DEVICES, "1"), "1") != 0) {
		gpuq_reader_enter(r, A_DEVICES);
		return spec_fail(
			r, devices, GPUQ_EINVAL,
			"expected \"1\": shares of several devices cannot be requested together");
	}
	rc = check_container(r, annotations, spec);
	if (rc < 0)
		return rc;
	if (fraction) {
		const char *text = spec_scalar(r->arena, fraction);
		char near[SPEC_NEAREST_ROOM];

		gpuq_reader_enter(r, A_FRACTION);
		const bool number = text && gpuq_milli_parse(text, &n, NULL) == 0;

		if (!number || n < 10 || n > 990 || n % 10)
			return spec_fail(r, fraction, GPUQ_EINVAL,
					 "expected a part of a device from \"0.01\" to \"0.99\" in "
					 "hundredths%s",
					 spec_nearest(number ? (double)n / 1000 : NAN, 0.01, 0.99,
						      0.01, near));
		g->gpus_milli = n;
		gpuq_reader_leave(r, mark);
		return 0;
	}
	gpuq_reader_enter(r, A_MEMORY);
	rc = parse(r, memory, SPEC_COUNT, R_HAMI_MEM, &n); /* of as much */
	if (rc < 0)
		return rc;
	if (n == 0)
		return spec_fail(r, memory, GPUQ_EINVAL, "expected MiB of one device, at least 1");
	g->gpus_milli = 1000;
	g->gpu_memory_bytes = n * MIB;
	gpuq_reader_leave(r, mark);
	return 0;
}

int spec_devices_read(struct gpuq_reader *r, const struct gpuq_val *meta,
		      const struct gpuq_val *spec, struct gpuq_group *g)
{
	const struct gpuq_val *annotations = gpuq_get(meta, "annotations");
	struct gpuq_group ask = { 0 };
	struct found f = { 0 };
	enum dialect one = N_DIALECTS;
	const size_t mark = gpuq_reader_enter(r, "spec");
	int rc = look(r, spec, &f);

	if (rc < 0)
		return rc;
	f.by[KAI] = gpuq_get(annotations, A_FRACTION) ? A_FRACTION
		    : gpuq_get(annotations, A_MEMORY) ? A_MEMORY
						      : NULL;
	for (enum dialect d = 0; d < N_DIALECTS; d++) {
		if (!f.by[d])
			continue;
		if (one != N_DIALECTS)
			return spec_fail(
				r, spec, GPUQ_EINVAL,
				"expected devices in one dialect: %s and %s cannot be asked "
				"together",
				f.by[one], f.by[d]);
		one = d;
	}
	switch (one) {
	case NVIDIA:
		rc = read_nvidia(r, spec, &f, &ask);
		break;
	case MIG:
		rc = read_mig(r, spec, &f, &ask);
		break;
	case TENCENT:
		rc = read_tencent(r, spec, &f, &ask);
		if (rc == 0) {
			gpuq_reader_leave(r, mark);
			rc = check_core_limit(r, annotations, &ask);
			gpuq_reader_enter(r, "spec");
		}
		break;
	case ALIYUN:
		rc = read_aliyun(r, &f, &ask);
		break;
	case KAI:
		gpuq_reader_leave(r, mark);
		rc = read_kai(r, annotations, spec, &ask);
		if (rc == 0)
			gpuq_reader_enter(r, "spec");
		break;
	case N_DIALECTS:
		break;
	}
	if (rc == 0)
		rc = spec_pod_request(r, spec, "cpu", SPEC_CPU, &ask.cpu_milli);
	if (rc == 0)
		rc = spec_pod_request(r, spec, "memory", SPEC_BYTES, &ask.memory_bytes);
	if (rc == 0)
		rc = spec_resources_of_pod(r, spec, &ask);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);
	g->gpus_milli = ask.gpus_milli;
	g->gpu_memory_bytes = ask.gpu_memory_bytes;
	g->gpu_cores = ask.gpu_cores;
	g->mig = ask.mig;
	g->cpu_milli = ask.cpu_milli;
	g->memory_bytes = ask.memory_bytes;
	g->resources = ask.resources;
	g->n_resources = ask.n_resources;
	return 0;
}
