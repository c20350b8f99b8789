/* census.h - the present use of every device: exactly one of eight
 *
 * Owns     the counting, and the check that it adds up.
 * Touches  memory only.
 * Used by  state/view/view.c (status.get), flow/census_watch.c (freezes a node that
 *          does not), tests.
 *
 * A device of a node that came for a request which no job has started on yet is provisioning, whether the
 * node is ready or not. A device of any other node that is gone or not ready, or that is unhealthy, is lost. Among the
 * others, devices in use by gpuq's pods and foreign pods are allocated; the rest is, in this
 * order: held for a nominated placement, draining, stranded (its node is suspended or lacks
 * cores, memory or slots, or its kubelet refuses it), reserved, else free. Cards that are cut into MIG instances count as
 * devices likewise; what their instances leave of them is stranded.
 */
#ifndef GPUQD_STATE_VIEW_CENSUS_H
#define GPUQD_STATE_VIEW_CENSUS_H

#include "gpuqd/state/model.h"
#include "libgpuq/arena.h"

enum census_kind {
	CENSUS_ALLOCATED, /* to running pods */
	CENSUS_HELD, /* for nominated placements */
	CENSUS_RESERVED, /* by a reservation that is active */
	CENSUS_FREE, /* for any job */
	CENSUS_STRANDED, /* free, but without cpu, memory or pod slots beside it */
	CENSUS_DRAINING, /* on nodes that take nothing new */
	CENSUS_LOST, /* unhealthy, or on a node that is gone */
	CENSUS_PROVISIONING, /* on nodes that were requested, and are not in service yet */
	N_CENSUS_KINDS
};

extern const char *const census_words[N_CENSUS_KINDS];

/* Why devices are stranded. */
#define N_CENSUS_CAUSES 7
extern const char *const census_causes[N_CENSUS_CAUSES];

/* In thousandths of devices; the kinds add up to total, the causes to what is stranded. */
struct census {
	int64_t milli[N_CENSUS_KINDS], total_milli; /* by kind: the kinds add up to the total */
	int64_t stranded_milli[N_CENSUS_CAUSES]; /* by what is missing */
	int64_t *idle_milli; /* of CENSUS_RESERVED, by reservation of the site; in the arena */
};

/* Use of a device; thousandths. */
struct census_slot {
	int64_t taken_milli;
	int64_t own_milli; /* of it, by jobs of gpuq */
	int64_t refused_milli; /* of the rest: the node's kubelet does not give it out */
	int64_t promised_milli;
	int64_t rounding_milli; /* of the rest, which is too little for a part: what rounding left */
};

/* Fill in the slots by device; foreign use that is not assigned to devices is assumed on the last
 * free ones, as the scheduler takes the first, and so is what the kubelet refuses. slots: n_devices,
 * zeroed. */
void census_slots(const struct node *n, int64_t now_us, struct census_slot *slots);

/* Count all nodes at now_us (for the reservations). False: no memory. */
bool census_take(const struct model *m, int64_t now_us, struct gpuq_arena *a, struct census *out);

/* Return the reservation in effect that holds this node; NULL = none, or only an amount. */
const struct site_reservation *census_reservation(const struct model *m, const struct node *n,
						  int64_t now_us);

/* Return why free devices of a node cannot be used: "cpu", "memory" or "pods", of which none is
 * left for a pod that requests some; "suspect", "frozen". NULL = they can. */
const char *census_stranded(const struct node *n, int64_t now_us);

/* Check that each of its devices exists and is allocated at most once, its cores and its memory. Return 0, or
 * GPUQ_ECORRUPT with the fault in err. */
int census_check(const struct node *n, struct gpuq_err *err);

#endif
