/* Tencent's gpu-manager: hundredths of the cores of a device, and blocks of its memory. Its plugin serves
 * the first pod that waits on its node with the number of cores it is asked for, and chooses the device
 * itself: a pod with annotations that name another one is refused. So an index is a prediction, made for the
 * first attempt alone; whole devices are left to the plugin, which writes down what it chose. Pods that
 * wait with equal cores could be confused, so one is under way at a time.
 *
 * The plugin chooses by what the pods there hold when the kubelet asks it, not by what was planned for pods that
 * wait for their turn: it is predicted when the turn has come. Should a pod of the node end before the kubelet asks,
 * the choice may be another: a pod demands the device that it names only on a node without other pods. */
#include "gpuqd/devices/gpu_manager.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend_int.h"
#include "libgpuq/limits.h"

int64_t gpu_manager_offer(int64_t cores, int64_t blocks, int64_t *device_mib)
{
	const int64_t n = cores / VCUDA_CORES;

	if (n <= 0 || blocks / n <= 0)
		return 0;
	*device_mib = blocks / n * VCUDA_BLOCK_MIB;
	return n;
}

static bool takes(const struct gpuq_group *g)
{
	/* All cores with a part of the memory would be a whole device to the plugin. */
	return !backend_shares(g) || (g->gpus_milli <= 1000 && g->gpu_cores < VCUDA_CORES);
}

static int validate(const struct gpuq_group *g, const struct backend_shape *s, struct gpuq_err *err)
{
	if (g->gpus_milli > 1000)
		return gpuq_fail(
			err, GPUQ_ERANGE,
			"a part of each of %" PRId64 " devices is requested, and the nodes that "
			"share devices (gpu-manager) give a pod a part of one or whole ones: "
			"expected gpus: 1; parts of several are given by HAMi, KAI and DRA",
			g->gpus_milli / 1000);
	return backend_check_memory(g, s, err);
}

static int soft_limit(const struct gpuq_group *g, struct gpuq_arena *a, struct backend_place *out)
{
	return g->gpu_cores_limit > 0 ? backend_note_number(out, a, VCUDA_LIMIT, g->gpu_cores_limit)
				      : 0;
}

static int place(const struct backend *b, const struct backend_ask *ask, struct gpuq_arena *a,
		 struct backend_place *out, struct gpuq_err *err)
{
	const struct gpuq_group *g = ask->group;
	const int64_t device = ask->device_mib / b->unit_mib;
	const bool part = backend_shares(g);
	const int64_t milli = g->gpu_cores > 0 ? g->gpu_cores * 10 : ask->milli;
	const int64_t cores = milli / 10 > 0 ? milli / 10 : 1;
	const int64_t blocks =
		backend_units_of(g->gpu_memory_bytes, ask->milli, ask->device_mib, b->unit_mib);
	const char *key;

	out->units = UNSERVED_NODE;
	if (!part) {
		out->limits[out->n_limits++] =
			(struct gpuq_amount){ VCUDA_CORE, VCUDA_CORES * (int64_t)ask->n_devices };
		out->want.milli = 1000 * (int64_t)ask->n_devices;
		return 0;
	}
	if (ask->n_devices != 1)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests parts of several devices, the node gives one");
	if (device <= 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the node does not report the memory of its devices");
	if (blocks > device)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests %" PRId64 " blocks of memory, a device has %" PRId64,
				 blocks, device);
	out->limits[out->n_limits++] = (struct gpuq_amount){ VCUDA_CORE, cores };
	out->limits[out->n_limits++] = (struct gpuq_amount){ VCUDA_MEMORY, blocks };
	out->want = (struct backend_room){ cores * 10, blocks * b->unit_mib };
	if (soft_limit(g, a, out) != 0)
		return gpuq_no_memory(err);
	/* All of the cores of one are a whole device to the plugin, which then chooses freely. */
	if (ask->attempt > 0 || cores >= VCUDA_CORES)
		return 0;
	key = gpuq_arena_printf(a, VCUDA_INDEX "%zu", ask->at);
	if (!key || backend_note_number(out, a, key, ask->devices[0]) != 0 ||
	    backend_note_number(out, a, VCUDA_TIME, backend_rising_ns(ask->now_us)) != 0)
		return gpuq_no_memory(err);
	backend_note_word(out, VCUDA_NODE, ask->node);
	backend_note_word(out, VCUDA_ASSIGNED, "false");
	return 0;
}

static int64_t asked(const struct gpuq_amount *asks, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(asks[i].name, name) == 0)
			return asks[i].count;
	return 0;
}

static int choose(struct backend_room want, const struct backend_room *devices, size_t n)
{
	const int64_t milli = want.milli, mib = want.mib;
	int64_t wanted = milli / 1000;
	int best = -1;

	/* Whole devices: those without parts, the last ones first. */
	for (size_t d = n; wanted > 0 && d-- > 0;)
		if (devices[d].milli == 1000 && --wanted == 0)
			return (int)d;
	for (size_t d = 0; milli < 1000 && d < n; d++)
		if (devices[d].milli >= milli && devices[d].mib >= mib &&
		    (best < 0 || devices[d].milli < devices[best].milli ||
		     (devices[d].milli == devices[best].milli &&
		      devices[d].mib < devices[best].mib)))
			best = (int)d;
	return best;
}

static int observe(const struct gpuq_strmap *notes, const struct gpuq_amount *asks, size_t n_asks,
		   struct gpuq_arena *a, struct backend_seen *out)
{
	const int64_t cores = asked(asks, n_asks, VCUDA_CORE);
	const char *assigned = gpuq_strmap_text(notes, VCUDA_ASSIGNED);
	bool told = false;
	size_t n = 0;
	int *list;

	if (cores > 0) {
		out->chosen = true;
		/* Absent, it is neither a prediction nor a choice that was made. */
		out->unserved = !*assigned || strcmp(assigned, "false") == 0 ? UNSERVED_NODE : 0;
		out->gpus_milli = cores < INT64_MAX / 10 ? cores * 10 : INT64_MAX;
		if (cores < VCUDA_CORES)
			out->memory_bytes =
				asked(asks, n_asks, VCUDA_MEMORY) < (1 << 30)
					? asked(asks, n_asks, VCUDA_MEMORY) * VCUDA_BLOCK_MIB * MIB
					: 0;
	}
	for (size_t i = 0; i < notes->n; i++)
		told |= strncmp(notes->keys[i], VCUDA_INDEX, sizeof(VCUDA_INDEX) - 1) == 0;
	if (!told)
		return 0;
	list = gpuq_arena_calloc(a, GPUQ_GPUS_PER_POD_MAX, sizeof(*list));
	if (!list)
		return GPUQ_ENOMEM;
	for (size_t i = 0; i < notes->n; i++)
		if (strncmp(notes->keys[i], VCUDA_INDEX, sizeof(VCUDA_INDEX) - 1) == 0 &&
		    !backend_indexes_read(notes->vals[i], list, &n, GPUQ_GPUS_PER_POD_MAX))
			return 0;
	if (n > 0) {
		out->n_devices = backend_indexes_sort(list, n);
		out->devices = list;
	}
	return 0;
}

const struct backend backend_gpu_manager = { .word = "gpu-manager",
					     .pool = "gpu-manager",
					     .title = "gpu-manager",
					     .parts = true,
					     .isolates = GPUQ_ISOLATION_MEMORY_LIMITED,
					     .turn = TURN_NODE,
					     .unit_mib = VCUDA_BLOCK_MIB,
					     .slots = VCUDA_CORES,
					     .takes = takes,
					     .validate = validate,
					     .place = place,
					     .choose = choose,
					     .index = VCUDA_INDEX,
					     .demand = VCUDA_TIME,
					     .observe = observe };
