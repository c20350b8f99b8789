#include "kinds.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define K(plural_, name_, group_, version_, namespaced_)                                             \
	{ .plural = plural_, .name = name_, .group = group_, .version = version_,                 \
	  .namespaced = namespaced_ }
struct kind kinds[KIND_COUNT] = {
	[KIND_PODS]            = K("pods", "Pod", "", "v1", true),
	[KIND_NODES]           = K("nodes", "Node", "", "v1", false),
	[KIND_CONFIGMAPS]      = K("configmaps", "ConfigMap", "", "v1", true),
	[KIND_SERVICES]        = K("services", "Service", "", "v1", true),
	[KIND_EVENTS]          = K("events", "Event", "", "v1", true),
	[KIND_NAMESPACES]      = K("namespaces", "Namespace", "", "v1", false),
	[KIND_QUOTAS]          = K("resourcequotas", "ResourceQuota", "", "v1", true),
	[KIND_LIMITRANGES]     = K("limitranges", "LimitRange", "", "v1", true),
	[KIND_SERVICEACCOUNTS] = K("serviceaccounts", "ServiceAccount", "", "v1", true),
	[KIND_EVENTS_V1]       = K("events", "Event", "events.k8s.io", "v1", true),
	[KIND_LEASES]          = K("leases", "Lease", "coordination.k8s.io", "v1", true),
	[KIND_PRIORITYCLASSES] = K("priorityclasses", "PriorityClass", "scheduling.k8s.io", "v1", false),
	[KIND_PDBS]            = K("poddisruptionbudgets", "PodDisruptionBudget", "policy", "v1", true),
	[KIND_JOBS]            = K("jobs", "Job", "batch", "v1", true),
};
/* clang-format on */

void kinds_init(void)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		struct kind *k = &kinds[i];

		snprintf(k->api_version, sizeof(k->api_version), "%s%s%s", k->group,
			 *k->group ? "/" : "", k->version);
		k->prefix_len = (size_t)snprintf(k->prefix, sizeof(k->prefix),
						 "{\"kind\":\"%s\",\"apiVersion\":\"%s\",", k->name,
						 k->api_version);
	}
}

struct kind *kind_find(const char *group, const char *version, const char *plural)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		struct kind *k = &kinds[i];

		if (strcmp(k->plural, plural) == 0 && strcmp(k->group, group) == 0 &&
		    strcmp(k->version, version) == 0)
			return k;
	}
	return NULL;
}

bool kind_of_group(const char *group, const char *version)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (strcmp(kinds[i].group, group) == 0 && strcmp(kinds[i].version, version) == 0)
			return true;
	}
	return false;
}

struct kind *kind_by_plural(const char *plural)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (strcmp(kinds[i].plural, plural) == 0)
			return &kinds[i];
	}
	return NULL;
}
