/* Aliyun's gpushare: memory of one device, in GiB or MiB, to one container. Nothing is said of cores.
 * Its plugin finds a pod by the sum of units that the kubelet asks it for, among those that wait, in
 * the order of their times; what it finds has the device that is written there. */
#include "gpuqd/devices/gpushare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend_int.h"
#include "libgpuq/spec/resource.h"

#define UNITS_MAX_GIB 1024

const struct backend *gpushare_offer(int64_t total, int64_t count, int64_t *device_mib)
{
	const int64_t one = total / (count > 0 ? count : 1);

	if (one <= 0)
		return NULL;
	*device_mib = one > UNITS_MAX_GIB ? one : one * backend_gib.unit_mib;
	return one > UNITS_MAX_GIB ? &backend_mib : &backend_gib;
}

static bool takes(const struct gpuq_group *g)
{
	/* All cores with a part of the memory are a device without other users, which it cannot give. */
	return g->gpus_milli <= 1000 && g->gpu_cores < 100;
}

static int validate(const struct gpuq_group *g, const struct backend_shape *s, struct gpuq_err *err)
{
	if (g->gpus_milli > 1000)
		return gpuq_fail(
			err, GPUQ_ERANGE,
			"a part of each of %" PRId64 " devices is requested, and the nodes that "
			"share devices (gpushare) give a pod a part of one: expected gpus: 1; "
			"parts of several are given by HAMi, KAI and DRA",
			g->gpus_milli / 1000);
	if (g->gpu_cores >= 100)
		return gpuq_fail(
			err, GPUQ_ERANGE,
			"all cores of a device are requested, and the nodes that share devices "
			"(gpushare) do not limit them: expected gpu_memory or a part in gpus");
	return backend_check_memory(g, s, err);
}

static int place(const struct backend *b, const struct backend_ask *ask, struct gpuq_arena *a,
		 struct backend_place *out, struct gpuq_err *err)
{
	const int64_t device = ask->device_mib / b->unit_mib;
	const int64_t units = backend_units_of(ask->group->gpu_memory_bytes, ask->milli,
					       ask->device_mib, b->unit_mib);

	if (ask->n_devices != 1)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests several devices, the node gives one");
	if (device <= 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the node does not report the memory of its devices");
	if (units > device)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests %" PRId64 " units of memory, a device has %" PRId64,
				 units, device);
	out->limits[out->n_limits++] = (struct gpuq_amount){ GPUSHARE_RESOURCE, units };
	out->units = units;
	backend_note_word(out, GPUSHARE_ASSIGNED, "false");
	return backend_note_number(out, a, GPUSHARE_INDEX, ask->devices[0]) != 0 ||
			       backend_note_number(out, a, GPUSHARE_DEVICE, device) != 0 ||
			       backend_note_number(out, a, GPUSHARE_POD, units) != 0 ||
			       backend_note_number(out, a, GPUSHARE_TIME,
						   backend_rising_ns(ask->now_us)) != 0
		       ? gpuq_no_memory(err)
		       : 0;
}

static int observe(const struct gpuq_strmap *notes, const struct gpuq_amount *asks, size_t n_asks,
		   struct gpuq_arena *a, struct backend_seen *out)
{
	const int64_t pod = strtoll(gpuq_strmap_text(notes, GPUSHARE_POD), NULL, 10);
	const int64_t asked = gpuq_amounts_get(asks, n_asks, GPUSHARE_RESOURCE);
	const int64_t device = strtoll(gpuq_strmap_text(notes, GPUSHARE_DEVICE), NULL, 10);
	const char *text = gpuq_strmap_text(notes, GPUSHARE_INDEX);

	/* The annotation may be absent, or say less than the kubelet counts for it. */
	out->memory_units = pod > asked ? pod : asked;
	if (pod > 0 && strcmp(gpuq_strmap_text(notes, GPUSHARE_ASSIGNED), "false") == 0)
		out->unserved = pod;
	if (pod > 0 && device > 0 && pod <= device && pod < (1 << 30))
		out->gpus_milli = pod * 1000 / device > 0 ? pod * 1000 / device : 1;
	return *text ? backend_indexes(text, a, &out->devices, &out->n_devices) : 0;
}

/* Pods of both units look alike: the first row observes them. */
#define GPUSHARE(word_, unit, observe_)                                                            \
	{                                                                                          \
		.word = (word_), .pool = "gpushare", .title = "gpushare", .by_memory = true,       \
		.parts = true, .decided = true, .turn = TURN_EQUAL, .unit_mib = (unit),            \
		.takes = takes, .validate = validate, .place = place, .observe = (observe_)        \
	}

const struct backend backend_gib = GPUSHARE("gpushare", 1024, observe);
const struct backend backend_mib = GPUSHARE("gpushare-mib", 1, NULL);
