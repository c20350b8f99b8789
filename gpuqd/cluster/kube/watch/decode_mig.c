#include "gpuqd/cluster/kube/watch/decode_mig.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/spec/profile.h"
#include "libgpuq/units.h"

/* The device plugin's names: "nvidia.com/mig-1g.10gb". If all devices are partitioned alike it
 * may call the instances nvidia.com/gpu: those count as devices. */
#define MIG "nvidia.com/mig-"

static int64_t count_of(const json_t *list, const char *key)
{
	int64_t milli = kube_quantity(list, key, gpuq_milli_parse);

	return milli / 1000 < MIG_REPLICAS_MAX ? milli / 1000 : MIG_REPLICAS_MAX;
}

/* Return the label of a resource, nvidia.com/mig-1g.10gb.replicas; "" = the node has none. */
static const char *label_of(const struct node_fact *n, const char *resource, const char *word)
{
	char key[160];

	snprintf(key, sizeof(key), "%.100s.%s", resource, word);
	return gpuq_strmap_text(&n->labels, key);
}

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), tail = strlen(end);

	return len > tail && strcmp(text + len - tail, end) == 0;
}

uint32_t kube_replicas(const struct node_fact *n, const char *resource, bool renamed)
{
	const char *text = label_of(n, resource, "replicas"), *how;
	uint32_t r = 0;

	for (; *text >= '0' && *text <= '9' && r < GPUQ_REPLICAS_MAX; text++)
		r = r * 10 + (uint32_t)(*text - '0');
	if (r > 1)
		return r < GPUQ_REPLICAS_MAX ? r : GPUQ_REPLICAS_MAX;
	how = label_of(n, resource, "sharing-strategy");
	return renamed || strcmp(how, "time-slicing") == 0 || strcmp(how, "mps") == 0 ||
			       ends_with(label_of(n, resource, "product"), "-SHARED")
		       ? 0
		       : 1;
}

/* Name the profile of a node's resource as the ledger has it. NULL: no memory. */
static const char *profile_of(struct kube_object *o, const struct node_fact *n,
			      const char *resource)
{
	const char *name = resource + sizeof(MIG) - 1;
	const bool renamed = ends_with(name, GPUQ_PROFILE_SHARED);
	const char *whole =
		gpuq_arena_strndup(&o->arena, resource,
				   strlen(resource) - (renamed ? strlen(GPUQ_PROFILE_SHARED) : 0));
	char text[GPUQ_PROFILE_ROOM];
	uint32_t r;

	if (!whole)
		return NULL;
	r = kube_replicas(n, whole, renamed);
	if (r == 1)
		return name;
	gpuq_profile_share(whole + sizeof(MIG) - 1, renamed, r, text);
	return gpuq_arena_strdup(&o->arena, text);
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
	for (size_t i = 0; i < out->n_mig; i++) {
		/* It is the end of the resource's name. */
		facts[i].profile = profile_of(o, out, facts[i].profile - (sizeof(MIG) - 1));
		if (!facts[i].profile)
			return GPUQ_ENOMEM;
		if (gpuq_profile_is_any(facts[i].profile))
			facts[i].count = 0;
	}
	return 0;
}

bool kube_profile_ok(const char *profile)
{
	const char *p = profile;
	int slices = 0;

	while (*p >= '0' && *p <= '9' && slices < 100)
		slices = slices * 10 + (*p++ - '0');
	return slices >= 1 && slices <= GPUQ_MIG_SLICES && (*p == 'g' || *p == 'c') &&
	       strstr(p, "gb");
}

const char *kube_mig_lie(struct kube_object *o, const struct node_fact *n)
{
	for (size_t i = 0; i < n->n_mig; i++) {
		const struct mig_fact *f = &n->mig[i];
		const char *why = NULL;

		if (!kube_profile_ok(f->profile))
			why = gpuq_arena_printf(&o->arena, MIG "%.40s: no MIG profile", f->profile);
		else if (f->count / gpuq_profile_replicas(f->profile) >= MIG_MAX)
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
