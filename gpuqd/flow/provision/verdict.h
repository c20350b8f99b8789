/* verdict.h - what the conditions of a request mean for its ask
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  asker.c; tests.
 *
 * Conditions come in any order, twice, and from clocks that are wrong; of those that are true the first of
 * enum capacity_condition counts. Once pods were placed on the nodes, the end of a booking or of the
 * request is no failure. */
#ifndef GPUQD_FLOW_PROVISION_VERDICT_H
#define GPUQD_FLOW_PROVISION_VERDICT_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/asks/ask.h"

enum verdict {
	VERDICT_NONE, /* nothing new */
	VERDICT_HEARD, /* it is in `state` at least */
	VERDICT_RETRY, /* this attempt failed: another may do better */
	VERDICT_NEXT, /* so would others: the next pool, or flavor */
	VERDICT_QUOTA, /* a quota of the cloud is used up: of all pools of its class and product */
};

struct verdict_of {
	enum verdict what;
	enum ask_state state;
	const char *condition, *reason, *message; /* of the fact; "" none */
	int64_t provisioned_us; /* with ASK_STATE_PROVISIONED: since when, by our clock */
};

struct verdict_of verdict_judge(const struct ask *a, const struct capacity_fact *f, int64_t now_us);

#endif
