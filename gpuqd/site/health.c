#include "gpuqd/site/health.h"

#include <stddef.h>
#include <string.h>

#include "gpuqd/site/site.h"

/* Globs of site_glob(). */
static const struct {
	const char *condition; /* type of a node condition */
	bool bad; /* the status that tells of harm */
	const char *reason;
} conditions[] = {
	/* node-problem-detector */
	{ "KernelDeadlock", true, "the kernel is deadlocked" },
	{ "ReadonlyFilesystem", true, "a file system became read-only" },
	{ "CorruptDockerOverlay2", true, "the container storage is corrupt" },
	{ "Frequent*", true, "a service of the node restarts again and again" },
	/* agents that watch GPUs: DCGM, NVSentinel, those of clouds */
	{ "*Xid*", true, "a GPU reported an Xid error" },
	{ "*XID*", true, "a GPU reported an Xid error" },
	{ "*DCGM*", true, "DCGM reports a GPU" },
	{ "*Dcgm*", true, "DCGM reports a GPU" },
	{ "*dcgm*", true, "DCGM reports a GPU" },
	{ "GPUMissing", true, "a GPU is missing" },
	{ "Gpu*Watch", true, "a GPU is unhealthy" },
	{ "GPUUnhealthy", true, "a GPU is unhealthy" },
	{ "GpuUnhealthy", true, "a GPU is unhealthy" },
	{ "UnhealthyNvidia*", true, "a service of the GPUs does not work" },
	{ "NVLinkStatusInactive", true, "an NVLink is down" },
	{ "IBLinkFlapping", true, "an InfiniBand link flaps" },
	{ "AcceleratedHardwareReady", false, "a GPU is unhealthy" },
	{ "KernelReady", false, "the kernel has a problem" },
	{ "StorageReady", false, "the storage has a problem" },
	{ "NetworkingReady", false, "the network has a problem" },
	{ "ContainerRuntimeReady", false, "the container runtime has a problem" },
};

/* A cloud or an autoscaler takes the node away: GKE, cluster-autoscaler, AWS, Karpenter, Azure. */
static const char *const taken_taints[] = {
	"cloud.google.com/impending-node-termination",
	"ToBeDeletedByClusterAutoscaler",
	"aws-node-termination-handler/*",
	"karpenter.sh/disrupted",
	"karpenter.sh/disruption",
};
static const char *const taken_conditions[] = {
	"PreemptScheduled",
	"TerminateScheduled",
	"VMEventScheduled/Preempt",
	"VMEventScheduled/Terminate",
};

static const struct {
	const char *taint, *reason; /* as the node shows it, and the word of the reason */
} taints[] = {
	/* of Kubernetes itself, beside conditions that say the same */
	{ "node.kubernetes.io/not-ready", "the node is not ready" },
	{ "node.kubernetes.io/unreachable", "the node does not answer" },
	{ "node.kubernetes.io/out-of-service", "the node is out of service" },
	{ "node.kubernetes.io/unschedulable", "the node is cordoned" },
	{ "node.kubernetes.io/memory-pressure", "the node is short of memory" },
	{ "node.kubernetes.io/disk-pressure", "the node is short of disk" },
	{ "node.kubernetes.io/pid-pressure", "the node is short of processes" },
	{ "node.kubernetes.io/network-unavailable", "the node has no network yet" },
	{ "node.cloudprovider.kubernetes.io/uninitialized", "the cloud has not set up the node" },
	{ "node.cloudprovider.kubernetes.io/shutdown", "the node is shut down" },
	{ "*node-problem-detector*", "node-problem-detector reports the node" },
	{ "*xid*", "a GPU reported an Xid error" },
	{ "*Xid*", "a GPU reported an Xid error" },
	{ "*dcgm*", "DCGM reports a GPU" },
	{ "*gpu*unhealthy*", "a GPU is unhealthy" },
	{ "*unhealthy*gpu*", "a GPU is unhealthy" },
};

/* A reason that the site omits is the name itself. */
static const char *reason_of(const struct site_health *h, const char *name)
{
	return h->reason ? h->reason : name;
}

const char *health_of_condition(const struct site *s, const char *type, bool on)
{
	site_each(site_health, s->health, h) {
		const bool negated = h->condition && h->condition[0] == '!';

		if (h->condition && site_glob(h->condition + negated, type))
			return on != negated ? reason_of(h, type) : NULL;
	}
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (site_glob(conditions[i].condition, type))
			return on == conditions[i].bad ? conditions[i].reason : NULL;
	return health_takes_condition(type, on) ? "its cloud takes it away" : NULL;
}

bool health_takes_condition(const char *type, bool on)
{
	for (size_t i = 0; i < sizeof(taken_conditions) / sizeof(taken_conditions[0]); i++)
		if (strcmp(taken_conditions[i], type) == 0)
			return on;
	return false;
}

bool health_takes_taint(const char *key)
{
	for (size_t i = 0; i < sizeof(taken_taints) / sizeof(taken_taints[0]); i++)
		if (site_glob(taken_taints[i], key))
			return true;
	return false;
}

const char *health_of_taint(const struct site *s, const char *key)
{
	site_each(site_health, s->health, h)
		if (h->taint && site_glob(h->taint, key))
			return reason_of(h, key);
	for (size_t i = 0; i < sizeof(taints) / sizeof(taints[0]); i++)
		if (site_glob(taints[i].taint, key))
			return taints[i].reason;
	return health_takes_taint(key) ? "its cloud takes it away" : NULL;
}

/* ---- what a site says of it ---- */

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct site_health, member_),   \
		__VA_ARGS__                                                                        \
	}

static const struct gpuq_field health_fields[] = {
	F("condition", GPUQ_K_STR, condition, .min = 1, .max = 316,
	  .doc = "type of a node's condition; shell wildcards; harmful when True, after ! when "
		 "False"),
	F("taint", GPUQ_K_STR, taint, .min = 1, .max = 316,
	  .doc = "key of a node's taint; shell wildcards"),
	F("reason", GPUQ_K_STR, reason, .min = 1, .max = 200,
	  .doc = "note of such a node; default: the condition or taint found"),
	{ .key = NULL },
};

/* Refuse a rule that examines both a condition and a taint, or neither. */
static int health_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_health *h = obj;

	if (!h->condition == !h->taint)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected one of condition and taint");
	return 0;
}

const struct gpuq_schema site_health_schema = { .name = "health",
						.size = sizeof(struct site_health),
						.fields = health_fields,
						.check = health_check };
