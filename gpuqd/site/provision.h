/* provision.h - how a pool gets nodes that do not exist yet
 *
 * Owns     the form of `provisioning` of a pool in a site file, and its checks.
 * Touches  memory only.
 * Used by  site/site.c.
 *
 * Every key must have an effect: one that the kind of the pool does not use is refused, as is a
 * kind without all that it needs.
 */
#ifndef GPUQD_SITE_PROVISION_H
#define GPUQD_SITE_PROVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/schema.h"

enum provision_kind {
	PROVISION_NONE, /* nodes come and go as they please */
	PROVISION_REQUEST, /* ProvisioningRequests of the class */
	PROVISION_AUTOSCALER, /* an autoscaler that sees pods which fit nowhere */
	N_PROVISION_KINDS
};

enum provision_failure { PROVISION_WAIT, PROVISION_FAIL };

#define PROVISION_NODES_MAX 5000 /* of one pool */
#define PROVISION_CLASS_QUEUED "queued-provisioning.gke.io" /* its nodes run for a time */
#define PROVISION_RUN_MAX_S INT64_C(604800) /* of a request, by its classes */
#define PROVISION_RUN_MARGIN_US INT64_C(600000000) /* a node boots, and a job ends, in that time */

struct provision_taint { /* as Kubernetes has it */
	const char *key, *value;
	int effect; /* index into provision_effects */
};
extern const char *const provision_effects[];

/* The nodes that come: one like the other. */
struct provision_machine {
	int64_t gpus; /* 1 at least */
	int64_t cpu_milli, memory_bytes; /* 0 = not counted */
	const char *product; /* of its devices */
	struct gpuq_strmap labels;
	struct gpuq_objects taints; /* struct provision_taint */
	struct gpuq_strmap resources; /* countable ones, by name */
};

struct provision {
	int kind; /* enum provision_kind */
	const char *class_; /* of requests */
	struct gpuq_strmap parameters; /* of requests, as the class knows them */
	struct provision_machine *machine;
	int64_t min_nodes, max_nodes;
	int64_t max_requests; /* at once */
	int64_t booking_us; /* from Provisioned until its pods must be there */
	int64_t timeout_us; /* of one request */
	int64_t retries, retry_base_us, retry_max_us;
	struct gpuq_strmap node_selector_from; /* label: detail of the request */
	int64_t max_run_us; /* of a job on such nodes */
	int64_t min_idle_us; /* before a node may go */
	int on_failure; /* enum provision_failure */
	bool evictable; /* other jobs may preempt those on its nodes; see site_pool_evictable() */
	bool placeholders; /* kind autoscaler: pods stand for the nodes that are missing */
	bool dropped; /* it was stored by a version that took anything, and is none now */
};

/* Return the class of its requests; "" = it makes none, pods stand for its nodes. */
static inline const char *provision_class(const struct provision *p)
{
	return p->class_ ? p->class_ : "";
}

/* struct provision *, NULL = not given. A lenient reader, that of stored sites, reads none from what
 * gpuqd does not carry out: earlier versions stored anything. */
extern const struct gpuq_custom provision_custom;

/* Check that nodes of the machine would be in the pool whose selector that is. v: the pool. */
int provision_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct provision *p,
		    const struct gpuq_strmap *selector, const char *flavor);

struct site;
/* Check that no pool before a pool that grows selects its machine: the nodes would be counted there. In a
 * stored site its provisioning is left out. v: the site. */
int provision_check_order(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s);

/* Return how much of a countable resource a machine has. */
int64_t provision_has(const struct provision_machine *m, const char *resource);

#endif
