/* Labels and annotations by which other systems give pods devices: gpuqd counts no devices by
 * them, so that a job with one would have devices that were not allocated to it. */
#include "libgpuq/spec/spec_int.h"

#include <string.h>

#define KUBESHARE                                                                                  \
	"KubeShare is not used: request a part of a device by gpus: 0.5, in a manifest by "        \
	"annotation gpu-fraction"
#define KAI_OWN                                                                                    \
	"is set by KAI: request a part of a device by gpus: 0.5, in a manifest by annotation "     \
	"gpu-fraction"
#define DEVICE "gpuqd chooses the device: omit it"

/* A star is any end. */
static const struct {
	const char *key;
	enum spec_word kind;
	const char *instead;
} words[] = {
	{ "sharedgpu/*", SPEC_WORD_NEVER, KUBESHARE },
	{ "runai-gpu-group", SPEC_WORD_NEVER, KAI_OWN },
	{ "runai/shared-gpu-configmap", SPEC_WORD_NEVER, KAI_OWN },
	{ "run.ai/reserve_for_gpu_index", SPEC_WORD_NEVER, KAI_OWN },
	{ "nvidia.com/use-gpuuuid", SPEC_WORD_NEVER, DEVICE },
	{ "nvidia.com/nouse-gpuuuid", SPEC_WORD_NEVER, DEVICE },
	{ "nvidia.com/use-gpuindexes", SPEC_WORD_NEVER, DEVICE },
	{ "nvidia.com/nouse-gpuindexes", SPEC_WORD_NEVER, DEVICE },
	{ "nvidia.com/use-gputype", SPEC_WORD_FLAVOR,
	  "gpuqd chooses devices by flavor: name the site's in flavor, in a manifest in "
	  "gpuq.io/flavor" },
	{ "nvidia.com/nouse-gputype", SPEC_WORD_FLAVOR,
	  "gpuqd chooses devices by flavor: name the acceptable ones in flavor, in a manifest in "
	  "gpuq.io/flavor" },
	{ "gpu-fraction", SPEC_WORD_MANIFEST, "is read in manifests alone: request gpus: 0.5" },
	{ "gpu-memory", SPEC_WORD_MANIFEST,
	  "is read in manifests alone: request gpu_memory: 10Gi" },
	{ "gpu-fraction-*", SPEC_WORD_MANIFEST, "is read in manifests alone: request gpus: 0.5" },
	{ "tencent.com/vcuda-core-limit", SPEC_WORD_MANIFEST,
	  "is read in manifests alone: request gpu_cores: {request: 30, limit: 80}" },
};

const char *spec_word_fault(const char *key, unsigned kinds)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t n = strlen(words[i].key);

		if (kinds & words[i].kind &&
		    (words[i].key[n - 1] == '*' ? strncmp(key, words[i].key, n - 1) == 0
						: strcmp(key, words[i].key) == 0))
			return words[i].instead;
	}
	return NULL;
}
