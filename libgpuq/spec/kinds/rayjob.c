/* RayJob (ray.io): its operator writes the commands of its pods, unless their templates have an annotation
 * that tells it not to. Then the templates say it all: a gang of the head and of a group for each of the
 * workers' groups, which ends when all of their commands have ended. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/manifest_int.h"

#define L "ray.io/"
#define OWN_COMMANDS L "overwrite-container-cmd"
#define HEAD_GROUP "headgroup" /* the operator's name of it */

static const char *const keys[] = { "entrypoint",
				    "metadata",
				    "runtimeEnvYAML",
				    "jobId",
				    "shutdownAfterJobFinishes",
				    "ttlSecondsAfterFinished",
				    "activeDeadlineSeconds",
				    "rayClusterSpec",
				    "clusterSelector",
				    "submitterPodTemplate",
				    "submitterConfig",
				    "suspend",
				    "submissionMode",
				    "entrypointNumCpus",
				    "entrypointNumGpus",
				    "entrypointResources",
				    "backoffLimit",
				    "managedBy",
				    "deletionPolicy",
				    "deletionStrategy",
				    "preRunningDeadlineSeconds",
				    NULL };
static const char *const cluster_keys[] = {
	"headGroupSpec",     "workerGroupSpecs",       "rayVersion",  "enableInTreeAutoscaling",
	"autoscalerOptions", "headServiceAnnotations", "suspend",     "gcsFaultToleranceOptions",
	"managedBy",         "upgradeStrategy",        "authOptions", NULL
};
static const char *const head_keys[] = { "template",    "rayStartParams",
					 "serviceType", "enableIngress",
					 "headService", "resources",
					 "labels",      NULL };
static const char *const worker_keys[] = {
	"groupName",  "replicas",           "minReplicas", "maxReplicas",
	"numOfHosts", "rayStartParams",     "template",    "scaleStrategy",
	"suspend",    "idleTimeoutSeconds", "resources",   "labels",
	NULL
};

/* Refuse pods whose commands are the operator's, at the field from which it writes them. */
static int refuse_commands(struct manifest *m, const struct gpuq_val *group,
			   const struct gpuq_val *otherwise)
{
	const struct gpuq_val *params = gpuq_get(group, "rayStartParams");

	if (params)
		gpuq_reader_enter(m->r, "rayStartParams");
	return spec_fail(
		m->r, params ? params : otherwise, GPUQ_EINVAL,
		"its operator writes the commands of the pods from it: submit a job file "
		"with pods: N whose command runs ray start --head in pod 0 (GPUQ_POD_INDEX) "
		"and ray start --address=$MASTER_ADDR:6379 in the others, or write the "
		"commands into the templates, with the annotation " OWN_COMMANDS);
}

static bool has_own_commands(const struct gpuq_val *group)
{
	const struct gpuq_val *notes =
		gpuq_path(group, "template", "metadata", "annotations", NULL);

	return strcmp(gpuq_get_str(notes, OWN_COMMANDS, ""), "true") == 0;
}

/* Return the port of the head's server. */
static const char *port_of(struct gpuq_arena *a, const struct gpuq_val *head)
{
	const struct gpuq_val *list = gpuq_path(head, "template", "spec", "containers", NULL);
	const struct gpuq_val *port = gpuq_path(head, "rayStartParams", "port", NULL);
	const struct gpuq_val *ports = list && list->type == GPUQ_LIST && list->n
					       ? manifest_list(list->items[0], "ports")
					       : NULL;
	const char *text = port ? spec_scalar(a, port) : NULL;

	for (size_t i = 0; ports && !text && i < ports->n; i++) {
		const struct gpuq_val *v = gpuq_get(ports->items[i], "containerPort");

		if (v && strncmp(gpuq_get_str(ports->items[i], "name", ""), "gcs", 3) == 0)
			text = spec_scalar(a, v);
	}
	return text ? text : "6379";
}

/* Refuse what the operator does beside the pods. */
static int read_fields(struct manifest *m, int64_t *backoff, int64_t *seconds)
{
	static const struct {
		const char *key, *text;
	} refused[] = {
		{ "entrypoint",
		  "its operator runs it by ray job submit: let the command of the head's template "
		  "run it, and omit it" },
		{ "runtimeEnvYAML", "it belongs to ray job submit: give it to the command of the "
				    "head's template, and omit it" },
		{ "submitterPodTemplate", "gpuqd starts no submitter: let the command of the "
					  "head's template run the work, and omit it" },
	};
	int rc = manifest_keys(m, m->spec, keys);

	for (size_t i = 0; rc == 0 && i < sizeof(refused) / sizeof(refused[0]); i++)
		rc = manifest_refuse(m, m->spec, refused[i].key, refused[i].text);
	if (rc == 0)
		rc = spec_want_int(m->r, m->spec, "backoffLimit", 0, GPUQ_RETRY_MAX, backoff);
	if (rc == 0)
		rc = spec_want_int(m->r, m->spec, "activeDeadlineSeconds", 1, INT32_MAX, seconds);
	if (rc == 0)
		rc = manifest_ttl(m, m->spec);
	return rc;
}

/* Give labels and variables of the operator, as far as they are known before the pods run. */
static int mark_pods(struct manifest *m, struct gpuq_group *g, const char *group, bool head,
		     const char *port)
{
	struct gpuq_arena *a = m->r->arena;
	const struct {
		const char *key, *value;
	} labels[] = { { L "node-type", head ? "head" : "worker" },
		       { L "group", group },
		       { L "is-ray-node", "yes" },
		       { L "cluster", m->name } },
	  variables[] = {
		  { "FQ_RAY_IP", head ? NULL : "$(MASTER_ADDR)" },
		  { "RAY_IP", head ? NULL : "$(MASTER_ADDR)" },
		  { "RAY_PORT", port },
		  { "RAY_ADDRESS",
		    gpuq_arena_printf(a, "%s:%s", head ? "127.0.0.1" : "$(MASTER_ADDR)", port) },
		  { "RAY_CLUSTER_NAME", m->name },
		  { "RAY_NODE_TYPE_NAME", group },
		  { "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1" },
	  };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels[i].value && strlen(labels[i].value) <= GPUQ_NAME_BYTES_MAX)
			rc = manifest_mark(m, g, "labels", labels[i].key, labels[i].value);
	for (size_t i = 0; rc == 0 && i < sizeof(variables) / sizeof(variables[0]); i++)
		if (variables[i].value)
			rc = manifest_env(m, g, variables[i].key, variables[i].value);
	return rc;
}

/* Read one group of pods. The path stands at it. */
static int add_group(struct manifest *m, const struct gpuq_val *v, const char *group, bool head,
		     const char *port, struct gpuq_group *g)
{
	const struct gpuq_val *made, *first, *list;
	int rc;

	if (!has_own_commands(v))
		return refuse_commands(m, v, v);
	manifest_unused(m, v, "rayStartParams",
			"is not used: the command of the template starts Ray");
	rc = manifest_template_of(m, v, g);
	if (rc < 0)
		return rc;
	list = gpuq_path(g->template_, "spec", "containers", NULL);
	first = list->items[0];
	gpuq_reader_enter(m->r, "template");
	if (!manifest_list(first, "command") && !manifest_list(first, "args"))
		return spec_fail(m->r, first, GPUQ_EINVAL,
				 "expected command or args: with " OWN_COMMANDS
				 " the first container starts Ray itself");
	made = manifest_mentions(list, "KUBERAY_GEN_RAY_START_CMD");
	if (made)
		return spec_fail(m->r, made, GPUQ_EINVAL,
				 "KUBERAY_GEN_RAY_START_CMD is made by the operator from "
				 "rayStartParams: write ray start with its options");
	return mark_pods(m, g, group, head, port);
}

/* Demand a name that no group before has. The path stands at the group. */
static int check_name(struct manifest *m, const struct gpuq_val *v, const char *name)
{
	const struct gpuq_val *at = gpuq_get(v, "groupName");
	const size_t mark = gpuq_reader_enter(m->r, "groupName");

	if (!name || !spec_name_ok(name))
		return spec_fail(m->r, at ? at : v, GPUQ_EINVAL, "expected a name");
	for (size_t i = 0; i < m->out->n_groups; i++)
		if (m->out->groups[i].name && strcmp(m->out->groups[i].name, name) == 0)
			return spec_fail(
				m->r, at, GPUQ_EINVAL,
				"expected another name: '%.63s' is already a group of the job",
				name);
	gpuq_reader_leave(m->r, mark);
	return 0;
}

/* Read the pods of a workers' group; none where it has no replicas. The path stands at it. */
static int read_worker(struct manifest *m, const struct gpuq_val *v, const char **name,
		       int64_t *pods)
{
	int64_t replicas = 1, hosts = 1;
	int rc;

	*name = NULL;
	if (v->type != GPUQ_MAP)
		return spec_fail(m->r, v, GPUQ_EINVAL,
				 "expected a map with groupName and template");
	rc = manifest_keys(m, v, worker_keys);
	if (rc == 0)
		rc = spec_want_str(m->r, v, "groupName", name);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "replicas", 0, GPUQ_PODS_MAX, &replicas);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "numOfHosts", 1, GPUQ_PODS_MAX, &hosts);
	if (rc < 0)
		return rc;
	*pods = replicas * hosts;
	return check_name(m, v, *name);
}

/* Read the head and the workers. The path stands at rayClusterSpec. */
static int read_groups(struct manifest *m, const struct gpuq_val *cluster)
{
	const struct gpuq_val *head = gpuq_get(cluster, "headGroupSpec"), *list;
	const char *port = port_of(m->r->arena, head), *name;
	size_t mark, n = 1;
	int64_t pods = 0;
	int rc = spec_want_type(m->r, cluster, "workerGroupSpecs", GPUQ_LIST, &list);

	if (rc == 0 && list && list->n >= GPUQ_GROUPS_MAX)
		rc = spec_fail(m->r, list, GPUQ_ERANGE, "expected at most %u groups of workers",
			       GPUQ_GROUPS_MAX - 1);
	if (rc == 0)
		rc = manifest_groups(m, 1 + (list ? list->n : 0));
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "headGroupSpec");
	m->out->groups[0].name = "head";
	rc = manifest_keys(m, head, head_keys);
	if (rc == 0)
		rc = add_group(m, head, HEAD_GROUP, true, port, &m->out->groups[0]);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	mark = gpuq_reader_enter(m->r, "workerGroupSpecs");
	for (size_t i = 0; list && i < list->n; i++) {
		const size_t item = gpuq_reader_enter_item(m->r, i);
		struct gpuq_group *g = &m->out->groups[n];

		rc = read_worker(m, list->items[i], &name, &pods);
		if (rc < 0)
			return rc;
		if (pods > 0) {
			g->name = name;
			g->pods_min = g->pods_max = pods;
			rc = add_group(m, list->items[i], name, false, port, g);
			if (rc < 0)
				return rc;
			n++;
		}
		gpuq_reader_leave(m->r, item);
	}
	gpuq_reader_leave(m->r, mark);
	m->out->n_groups = n;
	return 0;
}

int kind_rayjob(struct manifest *m)
{
	const struct gpuq_val *cluster = gpuq_get(m->spec, "rayClusterSpec");
	const struct gpuq_val *other = gpuq_get(m->spec, "clusterSelector");
	const struct gpuq_val *head = gpuq_get(cluster, "headGroupSpec");
	int64_t backoff = 0, seconds = 0; /* the operator's defaults */
	size_t mark;
	int rc;

	if (other) {
		gpuq_reader_enter(m->r, "clusterSelector");
		return spec_fail(m->r, other, GPUQ_EINVAL,
				 "gpuq starts no work in a Ray cluster that it did not start: use "
				 "ray job submit");
	}
	if (!has_own_commands(head)) {
		gpuq_reader_enter(m->r, "rayClusterSpec");
		if (gpuq_get(head, "rayStartParams"))
			gpuq_reader_enter(m->r, "headGroupSpec");
		return refuse_commands(m, head, cluster ? cluster : m->spec);
	}
	rc = read_fields(m, &backoff, &seconds);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "rayClusterSpec");
	rc = manifest_keys(m, cluster, cluster_keys);
	if (rc == 0 && gpuq_get_bool(cluster, "enableInTreeAutoscaling", false))
		rc = manifest_refuse(
			m, cluster, "enableInTreeAutoscaling",
			"gpuqd starts all pods together: omit it, or submit a job file "
			"with pods: {min: M, max: N}");
	if (rc == 0)
		rc = read_groups(m, cluster);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	manifest_retry(m, backoff);
	manifest_limit(m, seconds);
	return 0;
}
