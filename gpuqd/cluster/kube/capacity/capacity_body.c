#include "gpuqd/cluster/kube/capacity/capacity_body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpuqd/cluster/kube/watch/decode.h"

static void set(json_t *obj, const char *key, const char *value)
{
	json_object_set_new(obj, key, json_string(value));
}

static json_t *metadata(const struct capacity_order *o, const char *namespace_)
{
	char attempt[16];

	snprintf(attempt, sizeof(attempt), "%" PRIu32, o->attempt);
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:s}}", "name", o->name, "namespace",
			 namespace_, "labels", KUBE_L_JOB, o->job, KUBE_L_ATTEMPT, attempt,
			 KUBE_L_CLUSTER, o->cluster_id, "annotations", KUBE_A_TOKEN, o->token);
}

static json_t *strings(const struct gpuq_strmap *m)
{
	json_t *out = json_object();

	for (size_t i = 0; i < m->n; i++)
		set(out, m->keys[i], m->vals[i]);
	return out;
}

static json_t *tolerations(const struct provision_machine *m)
{
	json_t *out = json_array();

	json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "key", KUBE_GPU, "operator",
					     "Exists", "effect", "NoSchedule"));
	for (size_t i = 0; i < m->taints.n; i++) {
		const struct provision_taint *t =
			&((const struct provision_taint *)m->taints.items)[i];

		/* It tolerates every effect. */
		json_array_append_new(out,
				      json_pack("{s:s, s:s}", "key", t->key, "operator", "Exists"));
	}
	return out;
}

static char *text_of(json_t *root)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

/* The pod of the template takes all devices of a node and nothing else: so each needs a node of its
 * own, and none is refused for the cpus and memory that daemons of the node take. */
char *capacity_template(const struct capacity_order *o, const char *namespace_)
{
	char gpus[24];
	json_t *labels = json_object();

	snprintf(gpus, sizeof(gpus), "%" PRId64, o->machine->gpus);
	set(labels, KUBE_L_JOB, o->job);
	if (strcmp(o->class_, PROVISION_CLASS_QUEUED) == 0)
		set(labels, "cloud.google.com/apply-warden-policies", "true");
	return text_of(json_pack("{s:s, s:s, s:o, s:{s:{s:o}, s:{s:s, s:o, s:o, s:[{s:s, s:s, "
				 "s:{s:{s:s}, s:{s:s}}}]}}}",
				 "apiVersion", "v1", "kind", "PodTemplate", "metadata",
				 metadata(o, namespace_), "template", "metadata", "labels", labels,
				 "spec", "restartPolicy", "Never", "nodeSelector",
				 strings(o->selector), "tolerations", tolerations(o->machine),
				 "containers", "name", "node", "image", "none", "resources",
				 "requests", o->resource, gpus, "limits", o->resource, gpus));
}

/* It takes all devices of a node, as the pod of a template does. Its class is that of no other pod: nothing
 * is evicted for it. It meets the strictest Pod Security Standard, whatever its namespace enforces. */
char *capacity_placeholder(const struct capacity_order *o, const char *namespace_)
{
	char gpus[24];
	json_t *meta = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}}", "name", o->name, "namespace",
				 namespace_, "labels", KUBE_L_PLACEHOLDER, "true", KUBE_L_CLUSTER,
				 o->cluster_id, "annotations", KUBE_A_TOKEN, o->token);
	json_t *security = json_pack("{s:b, s:i, s:{s:s}}", "runAsNonRoot", 1, "runAsUser", 65535,
				     "seccompProfile", "type", "RuntimeDefault");
	json_t *own = json_pack("{s:b, s:{s:[s]}}", "allowPrivilegeEscalation", 0, "capabilities",
				"drop", "ALL");

	snprintf(gpus, sizeof(gpus), "%" PRId64, o->machine->gpus);
	return text_of(json_pack(
		"{s:s, s:s, s:o, s:{s:s, s:s, s:s, s:i, s:b, s:b, s:o, s:o, s:o, s:[{s:s, s:s, "
		"s:o, "
		"s:{s:{s:s}, s:{s:s}}}]}}",
		"apiVersion", "v1", "kind", "Pod", "metadata", meta, "spec", "schedulerName",
		KUBE_SCHEDULER, "priorityClassName", CAPACITY_PRIORITY_CLASS, "restartPolicy",
		"Never", "terminationGracePeriodSeconds", 0, "automountServiceAccountToken", 0,
		"enableServiceLinks", 0, "securityContext", security, "nodeSelector",
		strings(o->selector), "tolerations", tolerations(o->machine), "containers", "name",
		"node", "image", "registry.k8s.io/pause:3.10", "securityContext", own, "resources",
		"requests", o->resource, gpus, "limits", o->resource, gpus));
}

char *capacity_unschedulable(int64_t wall_us)
{
	const time_t at = (time_t)(wall_us / 1000000);
	char day[32];
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return text_of(json_pack(
		"{s:{s:[{s:s, s:s, s:s, s:s, s:s}]}}", "status", "conditions", "type",
		"PodScheduled", "status", "False", "reason", "Unschedulable", "message",
		"stands for a node that jobs of gpuq wait for", "lastTransitionTime", day));
}

char *capacity_request(const struct capacity_order *o, const char *namespace_, const char *version)
{
	char api[64], run[24];
	json_t *parameters = strings(o->parameters);

	snprintf(api, sizeof(api), CAPACITY_GROUP "/%s", version);
	snprintf(run, sizeof(run), "%" PRId64, o->run_s);
	if (o->run_s)
		set(parameters, "maxRunDurationSeconds", run);
	return text_of(json_pack("{s:s, s:s, s:o, s:{s:s, s:o, s:[{s:{s:s}, s:I}]}}", "apiVersion",
				 api, "kind", "ProvisioningRequest", "metadata",
				 metadata(o, namespace_), "spec", "provisioningClassName",
				 o->class_, "parameters", parameters, "podSets", "podTemplateRef",
				 "name", o->name, "count", (json_int_t)o->n_nodes));
}
