#include "gpuqd/cluster/kube/watch/decode_request.h"

#include <string.h>

#define CONDITIONS_MAX 64u
#define DETAILS_MAX 64u

/* A condition that is there twice counts once: the last one, as the list is a map by type. */
static void read_condition(const json_t *c, struct capacity_fact *out)
{
	const char *type = kube_str(c, "type");
	int i = 0;

	while (i < N_CAPACITY_CONDITIONS &&
	       strcmp(capacity_word((enum capacity_condition)i), type) != 0)
		i++;
	if (i == N_CAPACITY_CONDITIONS)
		return;
	out->said[i] = (struct capacity_said){
		.given = true,
		.on = strcmp(kube_str(c, "status"), "True") == 0,
		.since_us = kube_time_us(kube_str(c, "lastTransitionTime")),
		.reason = kube_str(c, "reason"),
		.message = kube_str(c, "message"),
	};
}

static int read_details(struct kube_object *o, const json_t *details, struct capacity_fact *out)
{
	size_t n = json_object_size(details);
	const char *key;
	json_t *val;

	if (n == 0 || n > DETAILS_MAX)
		return 0;
	out->details.keys = gpuq_arena_calloc(&o->arena, n, sizeof(char *));
	out->details.vals = gpuq_arena_calloc(&o->arena, n, sizeof(char *));
	if (!out->details.keys || !out->details.vals)
		return GPUQ_ENOMEM;
	json_object_foreach((json_t *)(uintptr_t)details, key, val)
	{
		if (!json_is_string(val))
			continue;
		out->details.keys[out->details.n] = key;
		out->details.vals[out->details.n++] = json_string_value(val);
	}
	return 0;
}

int kube_read_request(struct kube_object *o, const char *cluster_id, struct capacity_fact *out,
		      struct gpuq_err *err)
{
	const json_t *meta = json_object_get(o->object, "metadata"),
		     *status = json_object_get(o->object, "status"),
		     *conditions = json_object_get(status, "conditions");
	const char *ours = kube_str(json_object_get(meta, "labels"), KUBE_L_CLUSTER);

	*out = (struct capacity_fact){ .name = kube_str(meta, "name"),
				       .namespace_ = kube_str(meta, "namespace"),
				       .uid = kube_str(meta, "uid"),
				       .token = "",
				       .created_us =
					       kube_time_us(kube_str(meta, "creationTimestamp")) };
	if (!*out->name)
		return gpuq_fail(err, GPUQ_EINVAL, "a ProvisioningRequest without a name");
	if (strcmp(ours, cluster_id) == 0)
		out->token = kube_str(json_object_get(meta, "annotations"), KUBE_A_TOKEN);
	out->leaving = *kube_str(meta, "deletionTimestamp") != '\0';
	for (int i = 0; i < N_CAPACITY_CONDITIONS; i++)
		out->said[i].reason = out->said[i].message = "";
	for (size_t i = 0; i < json_array_size(conditions) && i < CONDITIONS_MAX; i++)
		read_condition(json_array_get(conditions, i), out);
	if (read_details(o, json_object_get(status, "provisioningClassDetails"), out) < 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	return 0;
}
