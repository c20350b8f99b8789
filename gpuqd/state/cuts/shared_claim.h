/* shared_claim.h - pods that share the devices of one ResourceClaim
 *
 * Owns     the rule of which pod is charged for them: one of gpuq's, the first that was placed, whose devices they are in
 *          the ledger. Others ride: they have none of these devices, until that one ends and the charge passes on to
 *          the oldest of them. While pods of others alone have the claim, its devices are foreign, and all ride.
 * Touches  memory only.
 * Used by  state/pod (applies it), carry/ (places by it), snapshot/, flow/bind, state/view.
 */
#ifndef GPUQD_STATE_CUTS_SHARED_CLAIM_H
#define GPUQD_STATE_CUTS_SHARED_CLAIM_H

#include "gpuqd/devices/dra/dra.h"
#include "gpuqd/state/model.h"

/* Return the claims of a group; NULL = none of them is shared among pods. */
const struct gpuq_group *shared_claim_group(const struct request_spec *s, uint32_t group);

/* Return how many pods of a group are on one node for its claims, all of them together; 1 where each can be placed by
 * itself. */
uint32_t shared_claim_pods(const struct gpuq_group *g);

/* Return which claim of the group that is; GPUQ_CLAIMS_MAX = none that is shared. g may be NULL. */
size_t shared_claim_at(const struct gpuq_group *g, const char *claim);

/* The pods of gpuq's with a claim: the one that is charged for it, the one that was placed first of the others, NULL =
 * there is none; and how many there are. */
struct shared_claim_users {
	struct pod *charged, *oldest;
	uint32_t n;
};
/* namespace_: as of a queue. */
struct shared_claim_users shared_claim_users(const struct model *m, const char *namespace_,
					     const char *claim);
/* Return the pod that is charged for the claim; NULL = none of gpuq's is. */
struct pod *shared_claim_holder(const struct model *m, const char *namespace_, const char *claim);

/* True if pods of others have the claim. */
bool shared_claim_has_others(const struct model *m, const char *namespace_, const char *claim);
/* True if pods of others hold the claim's devices: it is theirs, and no pod of gpuq's is charged for it. */
bool shared_claim_is_foreign(const struct model *m, const struct dra_claim *c);

/* Return for which claims of its group a pod of the job would not be charged now, a bit each; earlier: those that are
 * placed before it, with it. *node: the node of the pods that are charged for the others; NULL = any. */
uint16_t shared_claim_rides(const struct model *m, const struct job *j, uint32_t group,
			    const struct placed_pod *earlier, uint32_t n_earlier,
			    const char **node);
/* Check that pods of the job, in this order, are charged for what no other pod is, and are where those are. */
int shared_claim_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		       uint32_t n, struct gpuq_err *err);
/* Return the same of a pod of which it is only known how many devices it is charged for: all of them or none. */
uint16_t shared_claim_guess(const struct job *j, uint32_t group, uint32_t n_devices);
/* Return how many devices those claims are. */
uint32_t shared_claim_devices(const struct gpuq_group *g, uint16_t rides);
/* Return how many devices a pod of the job may come to hold, n of which it has. */
uint32_t shared_claim_room(const struct job *j, uint32_t n);

/* True if its devices may stay with another pod when it ends: one of another job, or of its own where that can shrink. */
bool shared_claim_carries(const struct pod *p);
/* Call fn for each other pod of gpuq's with that claim of the pod. */
void shared_claim_each(const struct pod *p, size_t claim,
		       void (*fn)(void *arg, const struct pod *other), void *arg);
/* List the devices of that claim of the pod, by their indexes on its node. out: room for DRA_RESULTS_MAX. Return how
 * many; 0 = they are not known. */
uint32_t shared_claim_list(const struct model *m, const struct pod *p, size_t claim, uint16_t *out);

/* List the cards on the node that the claim is allocated to, ascending; room as before. */
uint32_t shared_claim_cards(const struct model *m, const struct node *n, const char *namespace_,
			    const char *claim, uint16_t *out);
/* List the n devices by which a pod is or was charged for a claim: those that this is allocated to, where they are its own,
 * else the first that it has. Return how many. */
uint32_t shared_claim_left_by(const struct model *m, const struct pod *p, const char *claim,
			      uint32_t n, uint16_t *out);

#endif
