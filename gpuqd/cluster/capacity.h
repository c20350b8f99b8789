/* capacity.h - nodes that a cluster is asked to make, and what it says to it
 *
 * Owns     the interface only, as cluster.h, which includes it.
 * Touches  nothing.
 * Used by  flow/provision (asks, listens), kube/capacity.
 *
 * Two ways: a request, and a placeholder, a pod that fills one node and is never bound, for autoscalers that
 * see pods alone.
 *
 * As with pods: asking does not tell the outcome, repeating an ask is harmless (its name and token
 * make it the same one), and what is heard are facts, again and again. A request is immutable: another
 * attempt has another name.
 */
#ifndef GPUQD_CLUSTER_CAPACITY_H
#define GPUQD_CLUSTER_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/schema.h"
#include "gpuqd/site/provision.h"

/* Conditions of a ProvisioningRequest, in the order in which they count: of those that are true, the
 * first is its state. */
#define CAPACITY_CONDITIONS(X)                                                                     \
	X(FAILED, "Failed") /* it will never be served */                                          \
	X(REVOKED, "CapacityRevoked") /* its nodes are taken back */                               \
	X(EXPIRED, "BookingExpired") /* its nodes are no longer kept for it */                     \
	X(PROVISIONED, "Provisioned") /* they are, or are on their way */                          \
	X(ACCEPTED, "Accepted") /* it was understood */

enum capacity_condition {
#define X(sym, word) CAPACITY_##sym,
	CAPACITY_CONDITIONS(X)
#undef X
		N_CAPACITY_CONDITIONS
};

static inline const char *capacity_word(enum capacity_condition c)
{
	static const char *const words[N_CAPACITY_CONDITIONS] = {
#define X(sym, word) [CAPACITY_##sym] = (word),
		CAPACITY_CONDITIONS(X)
#undef X
	};

	return words[c];
}

struct capacity_said {
	bool given, on; /* the condition is there; its status is True */
	int64_t since_us; /* by the clock of who set it; 0 = not told */
	const char *reason, *message; /* "" none */
};

/* A request as the cluster has it. */
struct capacity_fact {
	const char *name, *namespace_, *uid;
	const char *token; /* "" = it is not one of ours */
	int64_t created_us; /* by the cluster's clock */
	bool leaving; /* it is being deleted */
	struct capacity_said said[N_CAPACITY_CONDITIONS];
	struct gpuq_strmap details; /* of its class */
};

/* A request to be made. */
struct capacity_order {
	const char *name, *token, *namespace_; /* namespace_ "" = the cluster's default */
	const char *cluster_id;
	const char *job; /* as a label has it: "12", "12-3" */
	uint32_t attempt;
	const char *class_;
	const struct gpuq_strmap *parameters;
	int64_t run_s; /* parameter maxRunDurationSeconds; 0 = none */
	uint32_t n_nodes;
	const struct provision_machine *machine; /* what a pod of its template fills */
	const struct gpuq_strmap *selector; /* labels of the pool's nodes */
	const char *resource; /* name of its devices */
};

/* The outcome of asking for one. */
enum capacity_outcome {
	CAPACITY_MADE, /* it is there */
	CAPACITY_DELAYED, /* not yet, message says why: the cluster goes on trying */
	CAPACITY_REFUSED, /* never as it is; nothing of it is left */
};

struct capacity_sink {
	void *arg;
	/* asked and dropped are told of placeholders, too. */
	void (*asked)(void *arg, const char *name, enum capacity_outcome o, const char *message);
	void (*seen)(void *arg, const struct capacity_fact *f);
	/* The request is gone, whoever removed it. */
	void (*gone)(void *arg, const char *name, const char *token);
	/* Nothing is left of it: the answer to capacity_drop(). */
	void (*dropped)(void *arg, const char *name);
	/* A placeholder is there, or is gone, whoever removed it. */
	void (*stands)(void *arg, const char *name, const char *namespace_, const char *token,
		       bool gone);
	/* All there are have been named, and those that were not are gone; or none can be read or made
	 * here, and why. */
	void (*known)(void *arg, bool known, const char *why);
};

#endif
