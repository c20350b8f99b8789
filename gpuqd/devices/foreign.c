/* Systems that gpuqd leaves alone, and whose pods request nothing of their nodes: what they hold is in labels and
 * annotations.
 *
 * KAI: a reservation pod requests each device of which parts are given, and reports which it is; the pods that
 * have the parts hold nothing besides. They have the label of its group, by which they are on one device also while
 * that pod is gone. KubeShare: pods have parts of a device, or whole ones, by their labels. */
#include "gpuqd/devices/foreign.h"

#include <string.h>

#include "gpuqd/devices/backend_int.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define KAI_FRACTION "gpu-fraction" /* of each of its devices */
#define KAI_MEMORY "gpu-memory" /* MiB, instead */
#define KAI_DEVICE "run.ai/reserve_for_gpu_index" /* an index, of later versions a UUID */
#define KUBESHARE_MEMORY KUBESHARE "gpu_mem" /* bytes */
#define KUBESHARE_REQUEST KUBESHARE "gpu_request" /* of a device: 0.5, 2.0 */
#define KUBESHARE_UUID KUBESHARE "gpu_uuid"

static int uuids(const char *text, struct gpuq_arena *a, struct gpuq_strlist *out)
{
	return backend_words(text, GPUQ_GPUS_PER_POD_MAX, a, out);
}

static int observe_kai(const char *device, struct gpuq_arena *a, struct backend_seen *out)
{
	if (strspn(device, "0123456789") == strlen(device))
		return backend_indexes(device, a, &out->devices, &out->n_devices);
	return uuids(device, a, &out->uuids);
}

/* The groups of which the pod is, each of them one device. */
static int groups(const struct gpuq_strmap *notes, struct gpuq_arena *a, struct gpuq_strlist *out)
{
	out->items = gpuq_arena_calloc(a, notes->n + 1, sizeof(*out->items));
	if (!out->items)
		return GPUQ_ENOMEM;
	for (size_t i = 0; i < notes->n; i++)
		if (strncmp(notes->keys[i], KAI_GROUP, sizeof(KAI_GROUP) - 1) == 0 &&
		    *notes->vals[i])
			out->items[out->n++] = notes->vals[i];
	return 0;
}

/* Parts that a pod has of devices which the reservation pods of these groups hold for it. */
static void observe_parts(const struct gpuq_strmap *notes, const struct gpuq_strlist *of,
			  struct backend_seen *out)
{
	const char *fraction = gpuq_strmap_text(notes, KAI_FRACTION),
		   *memory = gpuq_strmap_text(notes, KAI_MEMORY);
	int64_t milli = 0, mib = 0;

	if (of->n > GPUQ_GPUS_PER_POD_MAX || (!*fraction && !*memory))
		return;
	if (gpuq_milli_parse(fraction, &milli, NULL) != 0 || milli < 1 || milli > 1000)
		milli = 1;
	if (gpuq_bytes_parse(memory, &mib, NULL) == 0 && mib > 0 && mib < INT64_MAX / MIB)
		out->memory_bytes = mib * MIB;
	out->gpus_milli = milli * (int64_t)of->n;
	out->uuids = *of;
}

int foreign_observe(const struct gpuq_strmap *notes, int64_t held_milli, struct gpuq_arena *a,
		    struct backend_seen *out)
{
	const char *request = gpuq_strmap_text(notes, KUBESHARE_REQUEST);
	const char *kai = gpuq_strmap_text(notes, KAI_DEVICE);
	struct gpuq_strlist of;
	int64_t milli = 0, bytes = 0;

	if (groups(notes, a, &of) != 0)
		return GPUQ_ENOMEM;
	if (of.n && held_milli == 0)
		observe_parts(notes, &of, out);
	else
		out->holds = of;
	if (*kai)
		return observe_kai(kai, a, out);
	if (!*request || gpuq_milli_parse(request, &milli, NULL) != 0 || milli < 0 ||
	    milli > (int64_t)GPUQ_GPUS_PER_POD_MAX * 1000)
		return 0;
	/* The kubelet gives it what it requests by resources, whatever its labels say. */
	if (held_milli > milli)
		return 0;
	if (gpuq_bytes_parse(gpuq_strmap_text(notes, KUBESHARE_MEMORY), &bytes, NULL) == 0 &&
	    bytes > 0)
		out->memory_bytes = bytes;
	/* One that is guaranteed nothing uses what is left, all the same. */
	out->gpus_milli = milli > 0 ? milli : 1;
	return uuids(gpuq_strmap_text(notes, KUBESHARE_UUID), a, &out->uuids);
}
