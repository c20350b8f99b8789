#include "libgpuq/spec/resource.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/selector.h"
#include "libgpuq/units.h"

#define MIB (INT64_C(1) << 20)
#define HUGE_PAGES "hugepages-"

/* Devices that count without being told. */
const char *const gpuq_resource_others[] = {
	"amd.com/gpu",
	"gpu.intel.com/i915",
	"gpu.intel.com/xe",
	"habana.ai/gaudi",
	"google.com/tpu",
	"aws.amazon.com/neuron",
	NULL,
};
const char *const *const gpuq_resource_accelerators = &gpuq_resource_others[3];

/* Requests for shared devices in several dialects (gpuq-job(5), MANIFESTS). */
const char *const gpuq_resource_words[] = {
	"nvidia.com/gpumem",   "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
	"nvidia.com/priority", "tencent.com/vcuda-core",       "tencent.com/vcuda-memory",
	"aliyun.com/gpu-mem",  "aliyun.com/gpu-count",         NULL,
};

static const char *const remarks[] = { "nvidia.com/priority", "aliyun.com/gpu-count", NULL };

static const char *const own[] = { "cpu", "memory", "pods", NULL };

static bool is_among(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* True for DOMAIN/NAME, as Kubernetes has it. */
static bool is_qualified(const char *name)
{
	return strchr(name, '/') && gpuq_label_key_ok(name);
}

enum gpuq_resource_kind gpuq_resource_kind(const char *name)
{
	if (is_among(own, name))
		return GPUQ_RESOURCE_OWN;
	if (strcmp(name, GPUQ_RESOURCE_GPU) == 0 || is_among(gpuq_resource_others, name))
		return GPUQ_RESOURCE_DEVICE;
	if (strcmp(name, GPUQ_RESOURCE_SHARED) == 0)
		return GPUQ_RESOURCE_REPLICA;
	if (begins(name, GPUQ_RESOURCE_MIG))
		return GPUQ_RESOURCE_INSTANCE;
	if (begins(name, GPUQ_RESOURCE_GRES))
		return is_qualified(name) ? GPUQ_RESOURCE_MAPPED : GPUQ_RESOURCE_UNKNOWN;
	if (is_among(gpuq_resource_words, name))
		return GPUQ_RESOURCE_WORD;
	if (gpuq_resource_is_bytes(name) || is_qualified(name))
		return GPUQ_RESOURCE_COUNTED;
	return GPUQ_RESOURCE_UNKNOWN;
}

bool gpuq_resource_is_bytes(const char *name)
{
	return begins(name, HUGE_PAGES) || strcmp(name, GPUQ_RESOURCE_STORAGE) == 0;
}

/* As Kubernetes has it: no such name is that of an extended resource, and kubelets take no other from a device
 * plugin. */
const char *gpuq_resource_never(const char *name)
{
	static const char quota[] = "requests.";
	/* The claims of a DeviceClass are the way to request it: draft_devices() tells that. */
	static const char class_[] = "deviceclass.resource.kubernetes.io/";

	if (!strchr(name, '/') || begins(name, class_))
		return NULL;
	if (begins(name, quota))
		return "expected the resource without requests., which names it in quotas alone";
	if (strstr(name, "kubernetes.io/"))
		return "expected an extended resource, whose domain does not end in kubernetes.io: "
		       "those names are Kubernetes' own";
	return NULL;
}

/* Huge pages are requested as a whole number of them: "hugepages-2Mi" has their size. */
static int check_pages(const struct gpuq_amount *amount, struct gpuq_err *err)
{
	const char *size = amount->name + strlen(HUGE_PAGES);
	int64_t page = 0, next;

	if (gpuq_bytes_parse(size, &page, NULL) != 0 || page < 1 || page > GPUQ_RESOURCE_BYTES_MAX)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected the size of a page in the name, such as hugepages-2Mi");
	if (amount->count % page == 0)
		return 0;
	next = (amount->count / page + 1) * page;
	return next % MIB
		       ? gpuq_fail(err, GPUQ_EINVAL, "expected a multiple of %.20s", size)
		       : gpuq_fail(err, GPUQ_EINVAL, "expected a multiple of %.20s, such as %lldMi",
				   size, (long long)(next / MIB));
}

int gpuq_amount_check(const struct gpuq_amount *amount, struct gpuq_err *err)
{
	const int64_t most = gpuq_resource_is_bytes(amount->name) ? GPUQ_RESOURCE_BYTES_MAX
								  : GPUQ_RESOURCE_COUNT_MAX;

	if (amount->count < 1 || amount->count > most)
		return gpuq_fail(err, GPUQ_ERANGE, "expected 1 to %lld, not %lld", (long long)most,
				 (long long)amount->count);
	return begins(amount->name, HUGE_PAGES) ? check_pages(amount, err) : 0;
}

bool gpuq_resource_is_accelerator(const char *name)
{
	return is_among(gpuq_resource_accelerators, name);
}

bool gpuq_resource_is_remark(const char *name)
{
	return is_among(remarks, name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct gpuq_amount *)a)->name, ((const struct gpuq_amount *)b)->name);
}

size_t gpuq_amounts_sort(struct gpuq_amount *items, size_t n)
{
	size_t kept = 0;

	if (n > 1)
		qsort(items, n, sizeof(*items), by_name);
	for (size_t i = 0; i < n; i++) {
		if (items[i].count == 0)
			continue;
		if (kept && strcmp(items[kept - 1].name, items[i].name) == 0) {
			if (__builtin_add_overflow(items[kept - 1].count, items[i].count,
						   &items[kept - 1].count))
				items[kept - 1].count = INT64_MAX;
			continue;
		}
		items[kept++] = items[i];
	}
	return kept;
}

bool gpuq_amounts_same(const struct gpuq_amount *a, size_t n_a, const struct gpuq_amount *b,
		       size_t n_b)
{
	for (size_t i = 0; n_a == n_b && i < n_a; i++)
		if (a[i].count != b[i].count || strcmp(a[i].name, b[i].name) != 0)
			return false;
	return n_a == n_b;
}

int64_t gpuq_amounts_get(const struct gpuq_amount *items, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(items[i].name, name) == 0)
			return items[i].count;
	return 0;
}
