/* signal.h - signals to the first process of a pod's container
 *
 * Owns     the signals on their way, and the deletes that wait for them.
 * Touches  the apiserver through session.h: the API has no word for signals, so `kill` is run
 *          in the container, which needs the right to run programs there, and a `kill` or a
 *          shell in the image.
 * Used by  kube.c.
 *
 * A pod that was sent its checkpoint's signal has been told in its own way: it is deleted,
 * which sends TERM, when the grace is over. Where the signal cannot be sent it is deleted at
 * once, as one without a signal.
 */
#ifndef GPUQD_CLUSTER_KUBE_SIGNAL_H
#define GPUQD_CLUSTER_KUBE_SIGNAL_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

struct signals;

/* Neither is called from inside the calls below. */
struct signals_sink {
	void *arg;
	/* Carry out a delete that was held back; grace_us is what is left of it. */
	void (*remove)(void *arg, const struct pod_ref *ref, int64_t grace_us);
	/* How it fared; err NULL = it was sent. */
	void (*told)(void *arg, const char *pod, int signal, const struct gpuq_err *err);
};

int signals_new(struct loop *l, struct http *h, const struct signals_sink *sink,
		struct signals **out, struct gpuq_err *err);
void signals_free(struct signals *s); /* what is held back is not carried out */

/* Begin; told() follows. Several to one pod go one after the other. GPUQ_ECONFLICT: no signal
 * for a container; GPUQ_EPERM: gpuqd was refused the right in this namespace a moment ago. */
int signals_send(struct signals *s, const char *namespace_, const struct pod_ref *ref, int signal,
		 struct gpuq_err *err);

/* A delete of a pod that is being signalled, or was just now: true = it is kept until then.
 * A second one only shortens it. */
bool signals_hold(struct signals *s, const struct pod_ref *ref, int64_t grace_us);
void signals_gone(struct signals *s, const char *pod); /* nothing is to be deleted any more */

#endif
