#include "gpuqd/devices/sharing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/spec/resource.h"

#define MIB (INT64_C(1) << 20)
#define GIB_IN_MIB 1024
#define UNITS_MAX_GIB 1024

static const char *const words[] = {
	[SHARE_ANY] = "",
	[SHARE_WHOLE] = "whole",
	[SHARE_GPUSHARE] = "gpushare",
	[SHARE_GPUSHARE_MIB] = "gpushare-mib",
	[SHARE_TIME_SLICING] = "time-slicing",
	[SHARE_MPS] = "mps",
	[SHARE_MIG] = "mig",
	[SHARE_HAMI] = "hami",
};

enum share_kind sharing_kind_of(const char *word)
{
	for (size_t i = SHARE_WHOLE; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], word) == 0)
			return (enum share_kind)i;
	return SHARE_ANY;
}

const char *sharing_word(enum share_kind k)
{
	return words[k];
}

bool sharing_by_replica(enum share_kind k)
{
	return k == SHARE_TIME_SLICING || k == SHARE_MPS;
}

bool sharing_by_memory(enum share_kind k)
{
	return k == SHARE_GPUSHARE || k == SHARE_GPUSHARE_MIB;
}

/* gpushare gives a pod memory of one device and says nothing of its cores. */
const char *const *sharing_barred(const struct gpuq_group *g)
{
	static const char *const none[] = { "hami", NULL };
	static const char *const part[] = { "whole", "hami", NULL };
	static const char *const many[] = { "gpushare", "gpushare-mib", "hami", NULL };
	static const char *const both[] = { "whole", "gpushare", "gpushare-mib", "hami", NULL };
	const bool shares = g->gpu_memory_bytes > 0 || g->gpus_milli % 1000 ||
			    (g->gpu_cores > 0 && g->gpu_cores < 100);
	const bool not_gpushare = g->gpus_milli > 1000 || g->gpu_cores > 0;

	if (g->mig || g->gpus_milli == 0)
		return NULL;
	if (shares && not_gpushare)
		return both;
	return shares ? part : not_gpushare ? many : none;
}

/* Without a name or a flavor devices are NVIDIA's, as the other systems' jobs mean them. */
const char *const *sharing_others(const struct gpuq_group *g, bool flavors)
{
	if (g->gpus_milli == 0 || (flavors && !g->mig) || gpuq_group_device(g))
		return NULL;
	return gpuq_resource_others;
}

/* ---- gpushare ---- */

enum share_kind sharing_gpushare(int64_t total, int64_t count, int64_t *device_mib)
{
	const int64_t one = total / (count > 0 ? count : 1);

	if (one <= 0)
		return SHARE_ANY;
	*device_mib = one > UNITS_MAX_GIB ? one : one * GIB_IN_MIB;
	return one > UNITS_MAX_GIB ? SHARE_GPUSHARE_MIB : SHARE_GPUSHARE;
}

/* Add an annotation with a number. */
static void note(struct sharing_place *p, const char *key, int64_t value)
{
	struct sharing_word *w = &p->notes[p->n_notes++];

	w->key = key;
	snprintf(w->value, sizeof(w->value), "%" PRId64, value);
}

/* The plugin serves pods in the order of their times: no two may be alike. */
static int64_t rising_ns(int64_t now_us)
{
	static int64_t last;
	const int64_t now = now_us * 1000;

	last = now > last ? now : last + 1;
	return last;
}

int sharing_place(const struct share_ask *ask, struct sharing_place *out, struct gpuq_err *err)
{
	const int64_t unit_mib = ask->kind == SHARE_GPUSHARE ? GIB_IN_MIB : 1;
	const int64_t device = ask->device_mib / unit_mib;
	struct sharing_place p = { .resource = GPUSHARE_RESOURCE };

	if (sharing_by_replica(ask->kind)) {
		*out = (struct sharing_place){ .resource = ask->resource, .units = 1 };
		return 0;
	}
	if (ask->kind != SHARE_GPUSHARE && ask->kind != SHARE_GPUSHARE_MIB)
		return gpuq_fail(err, GPUQ_EINVAL, "the node does not share its devices");
	if (device <= 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the node does not report the memory of its devices");
	if (ask->memory_bytes > 0)
		p.units = (ask->memory_bytes + unit_mib * MIB - 1) / (unit_mib * MIB);
	else
		p.units = device * ask->milli / 1000;
	if (p.units < 1)
		p.units = 1;
	if (p.units > device)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests %" PRId64 " units of memory, a device has %" PRId64,
				 p.units, device);
	note(&p, GPUSHARE_INDEX, ask->device);
	note(&p, GPUSHARE_DEVICE, device);
	note(&p, GPUSHARE_POD, p.units);
	note(&p, GPUSHARE_TIME, rising_ns(ask->now_us));
	p.notes[p.n_notes].key = GPUSHARE_ASSIGNED;
	snprintf(p.notes[p.n_notes++].value, SHARE_WORD_ROOM, "false");
	*out = p;
	return 0;
}
