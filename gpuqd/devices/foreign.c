/* Systems that gpuqd leaves alone, and whose pods request nothing of their nodes: what they hold is in labels and
 * annotations.
 *
 * KAI: a reservation pod requests each device of which parts are given, and reports which it is; the pods that
 * have the parts hold nothing besides. KubeShare: pods have parts of a device, or whole ones, by their labels. */
#include "gpuqd/devices/foreign.h"

#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

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

int foreign_observe(const struct gpuq_strmap *notes, struct gpuq_arena *a, struct backend_seen *out)
{
	const char *request = gpuq_strmap_text(notes, KUBESHARE_REQUEST);
	const char *kai = gpuq_strmap_text(notes, KAI_DEVICE);
	int64_t milli = 0, bytes = 0;

	if (*kai)
		return observe_kai(kai, a, out);
	if (!*request || gpuq_milli_parse(request, &milli, NULL) != 0 || milli < 0 ||
	    milli > (int64_t)GPUQ_GPUS_PER_POD_MAX * 1000)
		return 0;
	if (gpuq_bytes_parse(gpuq_strmap_text(notes, KUBESHARE_MEMORY), &bytes, NULL) == 0 &&
	    bytes > 0)
		out->memory_bytes = bytes;
	/* One that is guaranteed nothing uses what is left, all the same. */
	out->gpus_milli = milli > 0 ? milli : 1;
	return uuids(gpuq_strmap_text(notes, KUBESHARE_UUID), a, &out->uuids);
}
