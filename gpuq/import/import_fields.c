#include "gpuq/import/import_fields.h"

#include <stdio.h>
#include <string.h>

/* A field that is taken over has no why. dflt: the value that changes nothing. Fields that
 * stand in no row are reported as unknown. [] is any member of a list. */
/* clang-format off */
static const struct field {
	const char *kind, *path, *dflt, *why;
} fields[] = {
	{ "ClusterQueue", "spec.cohort", NULL, NULL },
	{ "ClusterQueue", "spec.cohortName", NULL, NULL },
	{ "ClusterQueue", "spec.resourceGroups[].coveredResources", NULL, NULL },
	{ "ClusterQueue", "spec.resourceGroups[].flavors[].name", NULL, NULL },
	{ "ClusterQueue", "spec.resourceGroups[].flavors[].resources", NULL, NULL },
	{ "ClusterQueue", "spec.fairSharing.weight", NULL, NULL },
	{ "ClusterQueue", "spec.stopPolicy", NULL, NULL },
	{ "ClusterQueue", "spec.preemption.withinClusterQueue", NULL, NULL },
	{ "ClusterQueue", "spec.preemption.reclaimWithinCohort", NULL, NULL },
	{ "ClusterQueue", "spec.preemption.borrowWithinCohort.policy", NULL, NULL },
	{ "ClusterQueue", "spec.preemption.borrowWithinCohort.maxPriorityThreshold", NULL, NULL },
	{ "ClusterQueue", "spec.queueingStrategy", "BestEffortFIFO",
	  "a blocked job gets a planned start; smaller jobs pass it only where that does not delay it" },
	{ "ClusterQueue", "spec.namespaceSelector", NULL,
	  "users and groups of a queue are the ones who may submit; its namespace is its LocalQueue's" },
	{ "ClusterQueue", "spec.flavorFungibility.whenCanBorrow", "Borrow|MayStopSearch",
	  "flavors are tried in order of preference, and the first on which the job can start is taken" },
	{ "ClusterQueue", "spec.flavorFungibility.whenCanPreempt", "TryNextFlavor",
	  "flavors are tried in order of preference, and the first on which the job can start is taken" },
	{ "ClusterQueue", "spec.flavorFungibility.preference", NULL,
	  "flavors are tried in order of preference, and the first on which the job can start is taken" },
	{ "ClusterQueue", "spec.admissionChecks", NULL, NULL },
	{ "ClusterQueue", "spec.admissionChecksStrategy.admissionChecks", NULL, NULL },
	{ "ClusterQueue", "spec.admissionScope", NULL, "fair share counts what was used, by its own half-life (gpuqd.yaml)" },
	{ "ClusterQueue", "spec.concurrentAdmissionPolicy", NULL, "a job is pending for all its flavors at once, and stays where it started" },
	{ "Cohort", "spec.parent", NULL, NULL },
	{ "Cohort", "spec.parentName", NULL, NULL },
	{ "Cohort", "spec.resourceGroups[].coveredResources", NULL, NULL },
	{ "Cohort", "spec.resourceGroups[].flavors[].name", NULL, NULL },
	{ "Cohort", "spec.resourceGroups[].flavors[].resources", NULL, NULL },
	{ "Cohort", "spec.fairSharing.weight", NULL, NULL },
	{ "LocalQueue", "spec.clusterQueue", NULL, NULL },
	{ "LocalQueue", "spec.stopPolicy", NULL, NULL },
	{ "LocalQueue", "spec.fairSharing.weight", NULL, NULL },
	{ "LocalQueue", "spec.wallTimePolicy", NULL, "a budget of a queue counts GPU-minutes, not wall time" },
	{ "ResourceFlavor", "spec.nodeLabels", NULL, NULL },
	{ "ResourceFlavor", "spec.nodeTaints", NULL, NULL },
	{ "ResourceFlavor", "spec.tolerations", NULL, NULL },
	{ "ResourceFlavor", "spec.topologyName", NULL, NULL },
	{ "AdmissionCheck", "spec.controllerName", NULL, NULL },
	{ "AdmissionCheck", "spec.parameters.apiGroup", NULL, NULL },
	{ "AdmissionCheck", "spec.parameters.kind", NULL, NULL },
	{ "AdmissionCheck", "spec.parameters.name", NULL, NULL },
	{ "AdmissionCheck", "spec.retryDelayMinutes", NULL, "the pause before a retry is retry_base of its pools" },
	{ "ProvisioningRequestConfig", "spec.provisioningClassName", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.parameters", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.managedResources", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.retryStrategy.backoffLimitCount", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.retryStrategy.backoffBaseSeconds", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.retryStrategy.backoffMaxSeconds", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.podSetUpdates.nodeSelector[].key", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.podSetUpdates.nodeSelector[].valueFromProvisioningClassDetail", NULL, NULL },
	{ "ProvisioningRequestConfig", "spec.podSetMergePolicy", NULL, "a request is for nodes of one shape; pods are not merged" },
	{ "Topology", "spec.levels[].nodeLabel", NULL, NULL },
};
/* clang-format on */

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), PATH_MAX_BYTES = 160 };

struct walk {
	const char *kind;
	import_field_fn fn;
	void *arg;
};

static const struct field *exact(const char *kind, const char *path)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (strcmp(fields[i].kind, kind) == 0 && strcmp(fields[i].path, path) == 0)
			return &fields[i];
	return NULL;
}

/* Does any row speak of what lies below path? */
static bool has_below(const char *kind, const char *path)
{
	const size_t n = strlen(path);

	for (size_t i = 0; i < N_FIELDS; i++)
		if (strcmp(fields[i].kind, kind) == 0 && strncmp(fields[i].path, path, n) == 0 &&
		    (fields[i].path[n] == '.' || fields[i].path[n] == '['))
			return true;
	return false;
}

/* Is v one of the words of dflt, which are separated by |? */
static bool is_default(const char *dflt, const struct gpuq_val *v)
{
	const size_t len = v->type == GPUQ_STR ? v->n : 0;

	while (dflt && len && *dflt) {
		const size_t n = strcspn(dflt, "|");

		if (n == len && strncmp(dflt, v->s, n) == 0)
			return true;
		dflt += n + (dflt[n] == '|');
	}
	return false;
}

/* {} and [] say nothing. */
static bool is_empty(const struct gpuq_val *v)
{
	return v->type == GPUQ_NULL || ((v->type == GPUQ_LIST || v->type == GPUQ_MAP) && v->n == 0);
}

static void step(const struct walk *w, const char *path, const struct gpuq_val *v);

static void step_below(const struct walk *w, const char *path, const struct gpuq_val *v)
{
	char below[PATH_MAX_BYTES];

	for (uint32_t i = 0; i < v->n; i++) {
		if (v->type == GPUQ_MAP) {
			snprintf(below, sizeof(below), "%s.%s", path, v->pairs[i].key);
			step(w, below, v->pairs[i].val);
		} else {
			snprintf(below, sizeof(below), "%s[]", path);
			step(w, below, v->items[i]);
		}
	}
}

static void step(const struct walk *w, const char *path, const struct gpuq_val *v)
{
	const struct field *f = exact(w->kind, path);

	if (is_empty(v))
		return;
	if (f) {
		if (f->why && !is_default(f->dflt, v))
			w->fn(w->arg, path, v, f->why);
		return;
	}
	if ((v->type == GPUQ_MAP || v->type == GPUQ_LIST) && has_below(w->kind, path))
		step_below(w, path, v);
	else
		w->fn(w->arg, path, v, "not known: it is left out");
}

void import_fields(const char *kind, const struct gpuq_val *object, import_field_fn fn, void *arg)
{
	const struct gpuq_val *spec = gpuq_get(object, "spec");
	const struct walk w = { kind, fn, arg };

	if (spec && spec->type == GPUQ_MAP)
		step_below(&w, "spec", spec);
}
