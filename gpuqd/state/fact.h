/* fact.h - nodes and pods as a cluster reports them
 *
 * Owns     the structs only. Touches nothing.
 * Used by  cluster/ (fills them), flow/reconcile (compares), state/event (nodes).
 *
 * A fact is complete: it holds all that is known of one node or one pod now, and
 * replaces the previous one. Strings are never NULL except where noted.
 */
#ifndef GPUQD_STATE_FACT_H
#define GPUQD_STATE_FACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/schema.h"

struct device_fact {
	const char *uuid; /* "" = not reported */
	const char *product; /* "NVIDIA-A100-SXM4-80GB", "" unknown */
	int64_t memory_mib; /* 0 unknown */
	bool healthy;
};

/* Instances of a MIG profile, cut beforehand: of a node, or requested by a pod. */
struct mig_fact {
	const char *profile; /* "1g.10gb", as a job names it */
	uint32_t count;
};

struct taint_fact {
	const char *key, *value, *effect; /* NoSchedule, PreferNoSchedule, NoExecute */
	bool ill; /* it tells of the node's health (site/health.h); set by the model */
};

/* A condition beside those of the kubelet itself: what agents report of the node. */
struct condition_fact {
	const char *type; /* as Kubernetes names it */
	bool on; /* True; else False. Unknown ones are left out */
};

struct node_fact {
	const char *name;
	struct gpuq_strmap labels;
	const struct taint_fact *taints;
	size_t n_taints;
	const struct condition_fact *conditions;
	size_t n_conditions;
	int64_t cpu_milli, memory_bytes, max_pods; /* allocatable */
	const struct device_fact *devices; /* index = position */
	size_t n_devices;
	const char *device; /* the resource that its devices are offered as; NULL or "" = none */
	uint32_t replicas; /* of each device: pods get one of this many; 0, 1 = whole devices */
	uint32_t slots; /* pods that a device can have at a time; 0 = as many as fit */
	/* Link class of each pair of devices (links.h: larger = faster), and the NUMA node of each;
	 * NULL = not reported. */
	const uint8_t *links; /* n_devices x n_devices */
	const uint8_t *numa; /* n_devices */
	const struct mig_fact *mig; /* devices cut into instances are not among the devices */
	size_t n_mig;
	/* Every countable resource by name, allocatable: those of the devices too. */
	const struct gpuq_amount *resources;
	size_t n_resources;
	bool ready; /* may start pods (Ready, no pressure) */
	bool unschedulable; /* cordoned outside gpuqd */
	const char *
		lock; /* for which pod it is locked (devices/hami.h); NULL = none. Not kept by the model */
	const char *note; /* why not ready, or "" */
	const char *
		unused; /* why devices that are unhealthy here are not used; NULL = it is not told */
};

/* Recent utilization of a device, or of an instance cut from one. */
struct use_fact {
	const char *pod; /* name of the pod that holds it in the cluster; "" = not reported */
	const char *node, *uuid; /* "" = not reported */
	int32_t index; /* on the node; -1 = not reported */
	uint32_t part; /* distinguishes instances of one device */
	int32_t milli; /* 0 = idle .. 1000; -1 = could not be measured */
	int64_t memory_bytes; /* taken by programs; 0 = not reported */
};

enum use_what {
	USE_CPU, /* microseconds since it started; likewise of the next two */
	USE_CPU_USER,
	USE_CPU_SYSTEM,
	USE_MEMORY, /* bytes now */
	USE_READ, /* bytes since it started */
	USE_WRITTEN,
	USE_DEVICE_MEMORY, /* bytes now */
};

/* An amount that a part of a pod uses, such as one of its containers: parts add up. */
struct amount_fact {
	const char *pod; /* its name in the cluster */
	const char *namespace_; /* "" = not reported */
	enum use_what what;
	uint64_t part; /* distinguishes the parts; of two reports of one part the larger counts */
	int64_t value;
};

/* All measurements of one round. */
struct use_round {
	const struct use_fact *items;
	size_t n;
	const char *source; /* "nvml", "metrics"; "" = no measurement */
	const char *why; /* why the round is incomplete or empty; "" = complete */
	const struct amount_fact *amounts;
	size_t n_amounts;
};

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };

/* Why a failed pod failed, other than by its own exit code. */
enum pod_fault {
	POD_FAULT_NONE, /* its own exit code */
	POD_FAULT_OOM, /* killed for memory */
	POD_FAULT_REJECTED, /* the node refused it before it ran */
	POD_FAULT_INFRA, /* node lost, evicted by the system, disrupted */
	POD_FAULT_IMAGE, /* cannot start: image, config, command */
	POD_FAULT_DEADLINE, /* the cluster's own deadline killed it */
};

/* The role that can end what keeps a pod from running. */
enum trouble_whose {
	TROUBLE_USERS, /* the job's own description: its image, its command */
	TROUBLE_OPERATORS, /* an object that is missing in the namespace, or the node */
	TROUBLE_PLUGIN, /* the plugin of the node gave it no device: another attempt may get one */
	TROUBLE_TURN, /* it is not created yet: another pod of its node is before it */
	TROUBLE_ROOM, /* nor will it be while others are there: the node's plugin gave them its devices */
};

/* The pod that is before another on a node whose plugin serves one after another. Times are of the wall clock. */
struct turn_wait {
	const char *node;
	const char *namespace_, *pod; /* the pod that is served, namespace "" = as this one's */
	int64_t since_us,
		until_us; /* by then others wait for it no longer; 0 = until it is served or gone */
	bool lock; /* the node is locked for it: devices/hami.h */
};

/* Use of a pod, or of the pods of an attempt together; -1 = not known. */
struct used {
	int64_t user_us, system_us; /* of CPUs */
	int64_t memory_bytes; /* high-water; of several pods: the largest */
	int64_t read_bytes, written_bytes;
	int64_t gpu_milli; /* average use of its devices while they were measured; 0 .. 1000 */
	int64_t cpu_us; /* of CPUs, where only the sum of both is known */
	int64_t gpu_bytes; /* high-water of its devices' memory; of several pods: the largest */
};
#define USED_UNKNOWN ((struct used){ -1, -1, -1, -1, -1, -1, -1, -1 })

struct pod_fact {
	const char *name; /* gpuq-CLUSTER-JOB[-ARRAYINDEX]-ATTEMPT-INDEX for gpuq's pods */
	const char *namespace_;
	const char *uid; /* the cluster's identity of this object */
	const char *token; /* gpuq's identity (order->token), "" when foreign */
	const char *record; /* order->record, podrecord.h; NULL or "" none */
	const char *node; /* "" when not bound */
	enum pod_phase phase;
	enum pod_fault fault; /* what ended it, beside its exit code */
	bool leaving; /* signalled to end (deletionTimestamp) */
	/* While it runs: the cluster is about to end it, for a reason that is not its own, in its words. */
	const char *disrupted; /* NULL = not known */
	bool waiting_bad; /* cannot start by itself: image, config (see message) */
	/* With waiting_bad: the obstacle, "ImagePullBackOff" or "secret/tokens". */
	const char *trouble; /* NULL = none */
	enum trouble_whose whose;
	/* Units of a shared device that its node's plugin has not allocated to it yet; below 0: whatever
	 * the units, no other can be served before. 0 = it has its devices, or they are not shared. */
	int64_t unserved;
	const char *reason, *message; /* the cluster's words, "" */
	/* With POD_FAULT_REJECTED: the resource that the node lacked, as Kubernetes names it, and how
	 * much of it the node has free (cpu in thousandths). NULL = it named none. */
	const char *short_of;
	int64_t short_have;
	int exit_code; /* of the first container that failed, else 0; 128+n for a signal */
	int64_t start_us; /* status.startTime; 0 = not yet */
	int64_t end_us; /* last container's end; 0 = not known */
	const struct used *used; /* of an ended pod; NULL = not known */
	/* its requests, for foreign pods and for checks of gpuq's own */
	int64_t gpus_milli, cpu_milli, memory_bytes;
	int64_t device_bytes; /* memory of each of its devices, where it holds that; 0 = in proportion */
	int64_t device_units; /* the same of all, in the units of its node, where that has some; 0 = none */
	const struct mig_fact *mig; /* instances that it holds */
	size_t n_mig;
	const struct gpuq_amount *resources; /* countable ones, by name */
	size_t n_resources;
	const int *devices; /* indexes read back from the cluster, if reported */
	size_t n_devices; /* 0 = not reported */
	bool devices_told; /* by the system that allocates them; else they are gpuqd's own plan */
	struct gpuq_strlist
		uuids; /* of its devices, where those are reported in place of indexes */
	struct gpuq_strlist
		holds; /* what others give as such UUIDs, of devices that it holds for them */
	bool chosen; /* they are chosen by what is free when it arrives: cluster/kube/watch/room.h */
	bool adoptable; /* gpuqd did not make it, and it leaves its node, which it has not got, to gpuqd */
	struct gpuq_strlist claims; /* order->claims, of gpuq's own pods without a node */
};

#endif
