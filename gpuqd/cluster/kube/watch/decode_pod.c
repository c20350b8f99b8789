#include "gpuqd/cluster/kube/watch/decode_pod.h"
#include "gpuqd/cluster/kube/watch/decode_amounts.h"
#include "gpuqd/cluster/kube/watch/decode_mig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/devices/foreign.h"
#include "libgpuq/limits.h"

/* Words of status.reason of a failed pod: the kubelet's admission, its eviction
 * manager and the node's shutdown. Anything that begins with OutOf is a refusal. */
static const struct {
	const char *reason;
	enum pod_fault fault;
} reasons[] = {
	{ "UnexpectedAdmissionError", POD_FAULT_REJECTED },
	{ "NodeAffinity", POD_FAULT_REJECTED },
	{ "NodePorts", POD_FAULT_REJECTED },
	{ "HostPortConflict", POD_FAULT_REJECTED },
	{ "TaintToleration", POD_FAULT_REJECTED },
	{ "TopologyAffinityError", POD_FAULT_REJECTED },
	{ "NodeShutdown", POD_FAULT_REJECTED },
	{ "PodOSNotSupported", POD_FAULT_REJECTED },
	{ "PodOSSelectorNodeLabelDoesNotMatch", POD_FAULT_REJECTED },
	{ "InvalidNodeInfo", POD_FAULT_REJECTED },
	{ "SysctlForbidden", POD_FAULT_REJECTED },
	{ "AppArmor", POD_FAULT_REJECTED },
	{ "UnknownReason", POD_FAULT_REJECTED },
	{ "PodLevelResourcesNotSupported", POD_FAULT_REJECTED },
	{ "PodFeatureUnsupported", POD_FAULT_REJECTED },
	{ "VolumeAttachmentLimitExceeded", POD_FAULT_REJECTED },
	{ "PreStartContainerCheckErr", POD_FAULT_REJECTED }, /* gpu-manager's plugin */
	{ "DeadlineExceeded", POD_FAULT_DEADLINE },
	{ "Terminated", POD_FAULT_INFRA }, /* the node was shut down */
	{ "Shutdown", POD_FAULT_INFRA },
	{ "NodeLost", POD_FAULT_INFRA },
	{ "Preempting", POD_FAULT_INFRA },
	{ "Preempted", POD_FAULT_INFRA },
};

/* Words of a waiting container that does not get better by itself, and what is told: the kubelet
 * alternates between some of them. */
static const struct {
	const char *reason, *trouble;
	enum trouble_whose whose;
} waiting[] = {
	{ "ErrImagePull", "ImagePullBackOff", TROUBLE_USERS },
	{ "ImagePullBackOff", "ImagePullBackOff", TROUBLE_USERS },
	{ "InvalidImageName", "InvalidImageName", TROUBLE_USERS },
	{ "ErrImageNeverPull", "ErrImageNeverPull", TROUBLE_USERS },
	{ "ImageInspectError", "ImageInspectError", TROUBLE_USERS },
	{ "RegistryUnavailable", "RegistryUnavailable", TROUBLE_OPERATORS },
	{ "SignatureValidationFailed", "SignatureValidationFailed", TROUBLE_USERS },
	{ "CreateContainerConfigError", "CreateContainerConfigError", TROUBLE_USERS },
	{ "CreateContainerError", "CreateContainerError", TROUBLE_USERS },
	{ "RunContainerError", "RunContainerError", TROUBLE_USERS },
	{ "CrashLoopBackOff", "CrashLoopBackOff", TROUBLE_USERS },
};

static const json_t *condition(const json_t *status, const char *type)
{
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(status, "conditions"), i,
			   c) if (strcmp(kube_str(c, "type"), type) == 0 &&
				  strcmp(kube_str(c, "status"), "True") == 0) return c;
	return NULL;
}

struct ends {
	const json_t *first; /* state.terminated of the container that failed first */
	const char *name; /* of that container */
	int64_t first_us, last_us;
	size_t n_states; /* containers of which anything is known */
};

static void look_at_ends(const json_t *statuses, struct ends *e)
{
	size_t i;
	json_t *c;

	json_array_foreach(statuses, i, c)
	{
		const json_t *t = kube_path(c, "state", "terminated");
		int64_t at_us;

		e->n_states++;
		if (!t)
			continue;
		at_us = kube_time_us(kube_str(t, "finishedAt"));
		if (at_us > e->last_us)
			e->last_us = at_us;
		if (json_integer_value(json_object_get(t, "exitCode")) == 0)
			continue;
		if (!e->first || at_us < e->first_us) {
			e->first = t;
			e->name = kube_str(c, "name");
			e->first_us = at_us;
		}
	}
}

/* The eviction manager names what ran short. A pod that outgrew its own limits for
 * local storage has itself to blame; older servers set no condition to tell. */
static enum pod_fault evicted(const char *message)
{
	static const char *const own[] = { "exceeds the limit", "exceeds the total limit",
					   "exceeded its local ephemeral storage limit" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strstr(message, own[i]))
			return POD_FAULT_NONE;
	return POD_FAULT_INFRA;
}

static enum pod_fault fault_of_reason(const char *reason, const char *message, bool *known)
{
	*known = true;
	if (strcmp(reason, "Evicted") == 0)
		return evicted(message);
	if (strncmp(reason, "OutOf", 5) == 0)
		return POD_FAULT_REJECTED;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].fault;
	*known = false;
	return POD_FAULT_NONE;
}

static enum pod_fault fault_of_container(const json_t *t)
{
	const char *reason = kube_str(t, "reason");

	if (strcmp(reason, "OOMKilled") == 0)
		return POD_FAULT_OOM;
	if (strcmp(reason, "StartError") == 0 || strcmp(reason, "ContainerCannotRun") == 0)
		return POD_FAULT_IMAGE;
	if (strcmp(reason, "ContainerStatusUnknown") == 0)
		return POD_FAULT_INFRA;
	if (strcmp(reason, "DeadlineExceeded") == 0)
		return POD_FAULT_DEADLINE;
	return POD_FAULT_NONE;
}

static int exit_code_of(const json_t *t)
{
	json_int_t code = json_integer_value(json_object_get(t, "exitCode"));
	json_int_t sig = json_integer_value(json_object_get(t, "signal"));

	if (sig > 0 && sig <= 64)
		return 128 + (int)sig;
	return code < 0 || code > 255 ? 255 : (int)code;
}

static void failed(const json_t *status, const struct ends *e, struct pod_fact *out)
{
	const json_t *disrupted = condition(status, "DisruptionTarget");
	bool known = false;

	out->fault = fault_of_reason(out->reason, out->message, &known);
	if (known && out->fault == POD_FAULT_REJECTED && e->last_us) {
		/* It had run: the node came back and does not know it any more. */
		out->fault = POD_FAULT_INFRA;
	}
	if (e->first) {
		out->exit_code = exit_code_of(e->first);
		if (!known)
			out->fault = fault_of_container(e->first);
		if (!*out->reason)
			out->reason = kube_str(e->first, "reason");
		if (!*out->message)
			out->message = kube_str(e->first, "message");
	} else {
		/* No container says how it failed, and 0 would read as success. */
		out->exit_code = 1;
		if (!known && *out->reason)
			out->fault = e->n_states ? POD_FAULT_INFRA : POD_FAULT_REJECTED;
	}
	if (disrupted) {
		out->fault = POD_FAULT_INFRA;
		if (!*out->reason)
			out->reason = kube_str(disrupted, "reason");
		if (!*out->message)
			out->message = kube_str(disrupted, "message");
	}
}

/* A process of a container was killed for memory, and the others went on to exit with 0: the runtime
 * says so in its reason, and the pod has the phase Succeeded. Slurm counts such a job as out of memory. */
static void succeeded(const json_t *statuses, struct pod_fact *out)
{
	size_t i;
	json_t *c;

	json_array_foreach(statuses, i, c)
	{
		const json_t *t = kube_path(c, "state", "terminated");

		if (!t || fault_of_container(t) != POD_FAULT_OOM)
			continue;
		out->phase = POD_FAILED;
		out->fault = POD_FAULT_OOM;
		out->exit_code = 128 + SIGKILL; /* 0 would read as success */
		out->reason = kube_str(t, "reason");
		out->message = kube_str(t, "message");
		return;
	}
}

/* Return the cluster's words for why it is about to end a pod that runs; NULL = it is not. */
static const char *disrupted(const json_t *status)
{
	const json_t *c = condition(status, "DisruptionTarget");

	if (!c)
		return NULL;
	return *kube_str(c, "message") ? kube_str(c, "message") : kube_str(c, "reason");
}

/* The job has not begun: its owner did not write the container that failed. */
static void say_ours(struct gpuq_arena *a, const struct ends *e, struct pod_fact *out)
{
	static const struct {
		const char *name, *text;
	} ours[] = {
		{ KUBE_CODE_CONTAINER, "the code of the job was not unpacked, which takes sh, tar "
				       "and gzip of its image, or of code: {image} of the site" },
		{ KUBE_STEPS_CONTAINER, "gpuq was not copied into the pod, which takes a gpuq that "
					"knows srun --carry-to in steps: {image} of the site" },
	};
	const char *text = NULL;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]) && e->first; i++)
		if (strcmp(e->name, ours[i].name) == 0)
			text = gpuq_arena_printf(a, "%s%s%.200s", ours[i].text,
						 *out->message ? ": " : "", out->message);
	if (text)
		out->message = text;
}

/* An object that the kubelet misses: `secret "tokens" not found`, `references non-existent secret
 * key`, `couldn't find key k in ConfigMap ns/settings`. Whoever keeps the namespace has to
 * supply it. */
bool kube_missing_object(struct gpuq_arena *a, const char *words, struct pod_fact *out)
{
	static const struct {
		const char *words, *kind;
	} rows[] = {
		{ "secret \"", "secret" },
		{ "configmap \"", "configmap" },
		{ " in Secret ", "secret" },
		{ " in ConfigMap ", "configmap" },
		{ "serviceaccount \"", "serviceaccount" },
		{ "persistentvolumeclaim \"", "persistentvolumeclaim" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = strstr(words, rows[i].words), *slash;
		size_t n;

		if (!name)
			continue;
		name += strlen(rows[i].words);
		n = strcspn(name, "\" ,:");
		slash = memchr(name, '/', n);
		if (slash) {
			n -= (size_t)(slash + 1 - name);
			name = slash + 1;
		}
		out->trouble = gpuq_arena_printf(a, "%s/%.*s", rows[i].kind, (int)n, name);
		out->whose = TROUBLE_OPERATORS;
		return out->trouble != NULL;
	}
	return false;
}

static bool cannot_start(struct gpuq_arena *a, const json_t *statuses, struct pod_fact *out)
{
	size_t i;
	json_t *c;

	json_array_foreach(statuses, i, c)
	{
		const json_t *w = kube_path(c, "state", "waiting");
		const char *reason = kube_str(w, "reason");

		for (size_t k = 0; k < sizeof(waiting) / sizeof(waiting[0]); k++) {
			if (strcmp(reason, waiting[k].reason) != 0)
				continue;
			out->waiting_bad = true;
			out->reason = reason;
			out->message = kube_str(w, "message");
			if (strcmp(reason, "CreateContainerConfigError") == 0 &&
			    kube_missing_object(a, out->message, out))
				return true;
			out->trouble = waiting[k].trouble;
			out->whose = waiting[k].whose;
			return true;
		}
	}
	return false;
}

void kube_read_outcome(struct gpuq_arena *a, const json_t *status, struct pod_fact *out)
{
	const json_t *init = json_object_get(status, "initContainerStatuses");
	const json_t *main_ = json_object_get(status, "containerStatuses");
	struct ends e = { 0 };

	out->reason = kube_str(status, "reason");
	out->message = kube_str(status, "message");
	if (out->phase == POD_PENDING || out->phase == POD_RUNNING) {
		out->disrupted = disrupted(status);
		if (!cannot_start(a, init, out))
			cannot_start(a, main_, out);
		return;
	}
	look_at_ends(init, &e);
	look_at_ends(main_, &e);
	out->end_us = e.last_us;
	if (out->phase == POD_FAILED) {
		failed(status, &e, out);
		say_ours(a, &e, out);
		kube_read_shortage(a, out);
	} else if (out->phase == POD_SUCCEEDED) {
		succeeded(main_, out);
	}
}

static enum pod_phase phase_of(const char *word)
{
	if (strcmp(word, "Succeeded") == 0)
		return POD_SUCCEEDED;
	if (strcmp(word, "Failed") == 0)
		return POD_FAILED;
	/* Unknown: its node does not answer, so it may well still run. */
	if (strcmp(word, "Running") == 0 || strcmp(word, "Unknown") == 0)
		return POD_RUNNING;
	return POD_PENDING;
}

/* Ours: it carries a token and belongs to this gpuqd. */
static const char *our_token(const json_t *meta, const char *name, const char *cluster_id)
{
	const char *token = kube_str(json_object_get(meta, "annotations"), KUBE_A_TOKEN);
	const char *label = kube_str(json_object_get(meta, "labels"), KUBE_L_CLUSTER);

	if (!*token || !*cluster_id)
		return "";
	return strcmp(label, cluster_id) == 0 || kube_is_own_name(name, cluster_id) ? token : "";
}

/* The annotations of an object as a map, and the labels by which pods of KAI and KubeShare tell their devices. */
static int read_notes(struct kube_object *o, struct gpuq_strmap *out)
{
	json_t *notes = kube_path(o->object, "metadata", "annotations"), *v;
	json_t *labels = kube_path(o->object, "metadata", "labels");
	const size_t n = json_object_size(notes) + json_object_size(labels);
	const char *key;

	out->keys = gpuq_arena_calloc(&o->arena, n + 1, sizeof(*out->keys));
	out->vals = gpuq_arena_calloc(&o->arena, n + 1, sizeof(*out->vals));
	if (!out->keys || !out->vals)
		return GPUQ_ENOMEM;
	json_object_foreach(notes, key, v)
	{
		if (!json_is_string(v))
			continue;
		out->keys[out->n] = key;
		out->vals[out->n++] = json_string_value(v);
	}
	json_object_foreach(labels, key, v)
	{
		if (!json_is_string(v) || (strncmp(key, KUBESHARE, sizeof(KUBESHARE) - 1) != 0 &&
					   strncmp(key, KAI_GROUP, sizeof(KAI_GROUP) - 1) != 0))
			continue;
		out->keys[out->n] = key;
		out->vals[out->n++] = json_string_value(v);
	}
	return 0;
}

/* Read the devices of the pod: the record of the backend overrides the plan. */
static int read_devices(struct kube_object *o, struct pod_fact *out)
{
	struct gpuq_amount asks[KUBE_WORDS_MAX];
	struct gpuq_strmap notes = { 0 };
	struct backend_seen seen;
	const size_t n = kube_pod_words(o->object, asks);
	int rc = read_notes(o, &notes);

	if (rc == 0)
		rc = backend_observe(&notes, asks, n, &o->arena, &seen);
	/* Pods of gpuqd's are none of theirs, whatever their owners write on them. */
	if (rc == 0 && !*out->token)
		rc = foreign_observe(&notes, out->gpus_milli, &o->arena, &seen);
	if (rc != 0)
		return rc;
	/* Without word of the backend's, the plan of gpuqd itself. */
	if (seen.n_devices == 0)
		rc = backend_indexes(gpuq_strmap_text(&notes, KUBE_A_DEVICES), &o->arena,
				     &seen.devices, &seen.n_devices);
	else
		out->devices_told = true;
	out->devices = seen.devices;
	out->n_devices = seen.n_devices;
	out->uuids = seen.uuids;
	out->holds = seen.holds;
	out->device_bytes = seen.memory_bytes;
	out->device_units = seen.memory_units;
	out->unserved = seen.unserved;
	out->chosen = seen.chosen;
	if (seen.failed && !out->waiting_bad && out->phase == POD_PENDING) {
		out->waiting_bad = true;
		out->trouble = BACKEND_TROUBLE;
		out->whose = TROUBLE_PLUGIN;
		out->message = "the device plugin of its node failed to allocate its devices";
	}
	if (seen.gpus_milli)
		out->gpus_milli = seen.gpus_milli;
	return rc;
}

/* The claims that a pod without a node waits for, "a,b". Its volumes are not read (split.h). */
static int read_claims(struct kube_object *o, struct pod_fact *out)
{
	return backend_words(
		kube_str(kube_path(o->object, "metadata", "annotations"), KUBE_A_CLAIMS), SIZE_MAX,
		&o->arena, &out->claims);
}

/* True if a container fails in this way where a plugin told the kubelet of a device that there is not. */
static bool is_plugins(const char *trouble)
{
	return strcmp(trouble, "CreateContainerError") == 0 ||
	       strcmp(trouble, "RunContainerError") == 0;
}

/* True if it is to be placed by gpuqd, although gpuqd did not make it. */
static bool is_adoptable(const struct kube_object *o, const struct pod_fact *p)
{
	const json_t *labels = kube_path(o->object, "metadata", "labels");
	const json_t *spec = json_object_get(o->object, "spec");
	/* Gates of others are opened first. */
	const bool gated = json_array_size(json_object_get(spec, "schedulingGates")) > 0;

	return !*p->token && !*p->node && !p->leaving && p->phase == POD_PENDING && *p->uid &&
	       (kube_waits_for_us(o->object) ||
		(!gated && strcmp(kube_str(spec, "schedulerName"), KUBE_SCHEDULER) == 0)) &&
	       !json_object_get(labels, KUBE_L_JOB) && !json_object_get(labels, KUBE_L_PLACEHOLDER);
}

int kube_read_pod(struct kube_object *o, const char *cluster_id, struct pod_fact *out,
		  struct gpuq_err *err)
{
	const json_t *meta = json_object_get(o->object, "metadata");
	const json_t *status = json_object_get(o->object, "status");
	struct kube_amount asks;
	struct pod_fact p = {
		.name = kube_str(meta, "name"),
		.namespace_ = kube_str(meta, "namespace"),
		.uid = kube_str(meta, "uid"),
		.node = kube_str(json_object_get(o->object, "spec"), "nodeName"),
		.phase = phase_of(kube_str(status, "phase")),
		.leaving = kube_path(meta, "deletionTimestamp", NULL) != NULL,
		.start_us = kube_time_us(kube_str(status, "startTime")),
	};

	if (!*p.name || !*p.namespace_)
		return gpuq_fail(err, GPUQ_EINVAL, "a pod without a name");
	p.token = our_token(meta, p.name, cluster_id);
	if (*p.token)
		p.record = kube_str(json_object_get(meta, "annotations"), KUBE_A_RECORD);
	kube_read_outcome(&o->arena, status, &p);
	asks = kube_pod_request(o->object);
	p.gpus_milli = asks.gpus > INT64_MAX / 1000 ? INT64_MAX : asks.gpus * 1000;
	p.cpu_milli = asks.cpu_milli;
	p.memory_bytes = asks.memory_bytes;
	if (read_devices(o, &p) != 0 || kube_read_pod_mig(o, &p) != 0 ||
	    kube_read_pod_amounts(o, &p) != 0 || (*p.token && !*p.node && read_claims(o, &p) != 0))
		return gpuq_fail(err, GPUQ_ENOMEM, "pod %s: no memory", p.name);
	if (p.unserved && p.trouble && is_plugins(p.trouble)) {
		p.trouble = BACKEND_TROUBLE;
		p.whose = TROUBLE_PLUGIN;
	}
	/* Devices of other names than NVIDIA's count as devices, too. */
	for (size_t i = 0; p.gpus_milli == 0 && i < p.n_resources; i++)
		if (gpuq_resource_kind(p.resources[i].name) == GPUQ_RESOURCE_DEVICE &&
		    p.resources[i].count <= (int64_t)GPUQ_GPUS_PER_POD_MAX)
			p.gpus_milli = p.resources[i].count * 1000;
	p.adoptable = is_adoptable(o, &p);
	*out = p;
	return 0;
}
