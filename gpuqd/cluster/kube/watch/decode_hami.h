/* decode_hami.h - the cards that HAMi's plugin registers at a node
 *
 * Touches  memory only.
 * Used by  decode_node.c; decode.c, for what it cuts out.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_HAMI_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_HAMI_H

#include "gpuqd/cluster/kube/watch/decode.h"
#include "libgpuq/buf.h"

struct hami_cards {
	struct device_fact *devices; /* in the object's arena */
	size_t n; /* 0 = the plugin is not there */
	uint8_t *numa; /* of each */
	uint32_t slots; /* pods that a card can have; the fewest of any */
	bool *mig; /* of each: it is cut into instances on demand, by another protocol than that of parts */
	const char *wrong; /* why the list cannot be used; NULL = it can */
};

/* Read the text of the annotation, which is cut: what is kept of it is in the arena. Returns 0; GPUQ_ENOMEM. */
int kube_hami_parse(char *text, struct gpuq_arena *a, struct hami_cards *out);

/* Read the annotation. Returns 0; GPUQ_ENOMEM. */
int kube_read_hami(struct kube_object *o, struct hami_cards *out);

/* Take the cards that get no pods of gpuqd as unhealthy: those that are cut, and those that are listed at the node; the
 * reasons for which are added to notes. Returns 0; GPUQ_ENOMEM. */
int kube_hami_unused(struct kube_object *o, struct hami_cards *cards, struct gpuq_buf *notes);

/* Where it names none, and something else says that the node is HAMi's: return what, and that its cards are not
 * known; NULL = nothing does. explained: what the plugin offers are whole cards, or replicas, by other labels. */
const char *kube_hami_lie(struct kube_object *o, const struct gpuq_strmap *labels, bool explained);

#endif
