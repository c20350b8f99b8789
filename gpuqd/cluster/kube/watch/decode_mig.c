#include "gpuqd/cluster/kube/watch/decode_mig.h"

#include <string.h>

#include "libgpuq/units.h"

/* The device plugin's names: "nvidia.com/mig-1g.10gb". If all devices are partitioned alike it
 * may call the instances nvidia.com/gpu: those count as devices. */
#define MIG "nvidia.com/mig-"

#define COUNT_MAX 65536

static int64_t count_of(const json_t *list, const char *key)
{
	int64_t milli = kube_quantity(list, key, gpuq_milli_parse);

	return milli / 1000 < COUNT_MAX ? milli / 1000 : COUNT_MAX;
}

static size_t add(struct mig_fact *facts, size_t n, const json_t *list)
{
	const char *key;
	json_t *v;

	/* jansson's objects are walked, never changed */
	json_object_foreach((json_t *)list, key, v)
	{
		const char *profile = key + sizeof(MIG) - 1;
		int64_t count;
		size_t i = 0;

		if (strncmp(key, MIG, sizeof(MIG) - 1) != 0)
			continue;
		count = count_of(list, key);
		if (count == 0)
			continue;
		while (i < n && strcmp(facts[i].profile, profile) != 0)
			i++;
		if (i == n)
			facts[n++] = (struct mig_fact){ .profile = profile };
		facts[i].count += (uint32_t)count;
	}
	return n;
}

int kube_read_node_mig(struct kube_object *o, struct node_fact *out)
{
	const json_t *alloc = kube_path(o->object, "status", "allocatable");
	struct mig_fact *facts =
		gpuq_arena_calloc(&o->arena, json_object_size(alloc) + 1, sizeof(*facts));

	if (!facts)
		return GPUQ_ENOMEM;
	out->mig = facts;
	out->n_mig = add(facts, 0, alloc);
	return 0;
}

bool kube_profile_ok(const char *profile)
{
	const char *p = profile;
	int slices = 0;

	while (*p >= '0' && *p <= '9' && slices < 100)
		slices = slices * 10 + (*p++ - '0');
	return slices >= 1 && slices <= MIG_SLICES && (*p == 'g' || *p == 'c') && strstr(p, "gb");
}

const char *kube_mig_lie(struct kube_object *o, const struct node_fact *n)
{
	for (size_t i = 0; i < n->n_mig; i++) {
		const struct mig_fact *f = &n->mig[i];
		const char *why = NULL;

		if (!kube_profile_ok(f->profile))
			why = gpuq_arena_printf(&o->arena, MIG "%.40s: no MIG profile", f->profile);
		else if (f->count >= MIG_MAX)
			why = gpuq_arena_printf(&o->arena,
						MIG "%.40s: more instances than %u cards can have",
						f->profile, GPUQ_GPUS_PER_POD_MAX);
		else
			continue;
		return why ? why : MIG;
	}
	return NULL;
}

static const json_t *limits_of(const json_t *container)
{
	return kube_path(json_object_get(container, "resources"), "limits", NULL);
}

int kube_read_pod_mig(struct kube_object *o, struct pod_fact *out)
{
	const json_t *list = kube_path(o->object, "spec", "containers"), *c;
	struct mig_fact *facts;
	size_t i, room = 1;

	json_array_foreach(list, i, c) room += json_object_size(limits_of(c));
	facts = gpuq_arena_calloc(&o->arena, room, sizeof(*facts));
	if (!facts)
		return GPUQ_ENOMEM;
	out->mig = facts;
	json_array_foreach(list, i, c) out->n_mig = add(facts, out->n_mig, limits_of(c));
	return 0;
}
