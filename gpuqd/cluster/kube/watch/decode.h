/* decode.h - one JSON object of the apiserver to what gpuq keeps of it
 *
 * Owns     the parsed object behind a fact, until kube_object_done().
 * Touches  memory only.
 * Used by  watch.c, api.c; tests and fuzz targets.
 *
 * Facts point into the parsed object, so nothing is copied that is not kept. An
 * unknown field is nothing; null is absent; a field of the wrong type is absent,
 * except the name, without which an object is refused.
 * Resource arithmetic: kube-scheduler's, as documented under "Pod resources" and
 * "Sidecar containers" of the Kubernetes documentation.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_H

#include <jansson.h>

#include "gpuqd/cluster/cluster.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

#define KUBE_GPU "nvidia.com/gpu"

/* Labels and annotations of our own. */
#define KUBE_L_JOB "gpuq.io/job"
#define KUBE_L_ARRAY_INDEX "gpuq.io/array-index"
#define KUBE_L_ATTEMPT "gpuq.io/attempt"
#define KUBE_L_INDEX "gpuq.io/index"
#define KUBE_L_CLUSTER "gpuq.io/cluster"
#define KUBE_L_PLACEHOLDER "gpuq.io/placeholder" /* a pod that stands for a node: never bound */
#define KUBE_L_USER "gpuq.io/user"
#define KUBE_L_QUEUE "gpuq.io/queue"
#define KUBE_L_ACCOUNT "gpuq.io/account"
#define KUBE_A_TOKEN "gpuq.io/token"
#define KUBE_A_DEVICES "gpuq.io/devices"
#define KUBE_A_RECORD "gpuq.io/record"
#define KUBE_A_EVICT "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define KUBE_A_DISRUPT "karpenter.sh/do-not-disrupt"
#define KUBE_A_CONSUMES "autoscaling.x-k8s.io/consume-provisioning-request"
#define KUBE_A_CAPACITY_CLASS "autoscaling.x-k8s.io/provisioning-class-name"
#define KUBE_A_CLAIMS "gpuq.io/claims"
#define KUBE_FINALIZER "gpuq.io/accounting"
/* No scheduler has this name, so that none binds a pod of gpuq's. A pod is known as gpuq's by its
 * token, never by this. */
#define KUBE_SCHEDULER "gpuq"
/* Pods of a Job that was suspended wait behind it for their node. */
#define KUBE_GATE "gpuq.io/node"
#define KUBE_A_CANCELLED "gpuq.io/cancelled" /* of such a Job: the job that was cancelled */
#define KUBE_L_KUEUE "kueue.x-k8s.io/queue-name" /* of a Job that a queueing system is to start */
#define KUBE_CODE_CONTAINER "gpuq-code" /* the init container that unpacks what a job carries */
#define KUBE_STEPS_CONTAINER "gpuq-steps" /* the one that copies gpuq into the pod */

enum kube_event { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK, KUBE_ERROR };

struct hami_cards;

struct kube_object {
	json_t *root; /* what was parsed; NULL = nothing */
	json_t *object; /* the node, pod or Status; borrowed from root */
	enum kube_event event;
	struct hami_cards
		*cut; /* of HAMI_REGISTER, which is "" in the object then; NULL = nothing was cut */
	const char *version; /* metadata.resourceVersion, "" when it has none */
	struct gpuq_arena arena;
};

#define KUBE_OBJECT_INIT                                                                           \
	{                                                                                          \
		.root = NULL                                                                       \
	}

/* Parse one object as it is in a LIST. Returns 0; GPUQ_EINVAL with what is wrong. */
int kube_parse_item(const char *json, size_t n, struct kube_object *out, struct gpuq_err *err);

/* Parse one line of a watch: {"type": ..., "object": ...}. */
int kube_parse_event(const char *json, size_t n, struct kube_object *out, struct gpuq_err *err);

void kube_object_done(struct kube_object *o);

/* Parts of the two, for their own files and for tests. */
const char *kube_str(const json_t *obj, const char *key); /* "" when absent */
/* True if that is a name which this gpuqd gives its pods: others can edit a label away, but no name. */
bool kube_is_own_name(const char *name, const char *cluster_id);
json_t *kube_path(const json_t *obj, const char *a, const char *b); /* NULL when absent */
bool kube_waits_for_us(const json_t *pod); /* behind gpuqd's gate, and no other */
int64_t kube_time_us(const char *rfc3339); /* 0 when absent or wrong */

/* The quantity list[key], written as a string or a number; 0 when absent, negative or
 * unreadable. fn is gpuq_milli_parse or gpuq_bytes_parse. */
typedef int (*kube_quantity_fn)(const char *text, int64_t *out, struct gpuq_err *err);
int64_t kube_quantity(const json_t *list, const char *key, kube_quantity_fn fn);

struct kube_amount {
	int64_t cpu_milli, memory_bytes, gpus; /* gpus: whole devices */
};
struct kube_amount kube_pod_request(const json_t *pod);

#endif
