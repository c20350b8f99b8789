/* lease.h - one daemon of an identity acts; others wait
 *
 * Owns     the Lease gpuqd-CLUSTER: reading it, taking it, renewing it, giving it up.
 * Touches  the apiserver through http.h; the clock that runs while the machine sleeps.
 * Used by  kube.c, before anything of jobs is read or changed.
 *
 * The holder is named by the id of its database and a number drawn at its start: a copied state
 * directory has the same id. A Lease of the same directory on the same boot is taken at once,
 * since the lock on the directory proves that its former holder is dead. Any other Lease is
 * taken after it stood unchanged for LEASE_STOOD_US of our own clock. Holders renew every
 * LEASE_RENEW_US and act until LEASE_ACT_US after the last renewal was sent, so a holder that
 * was cut off or suspended has stopped before another begins.
 */
#ifndef GPUQD_CLUSTER_KUBE_LEASE_H
#define GPUQD_CLUSTER_KUBE_LEASE_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

#define LEASE_STOOD_US INT64_C(10000000)
#define LEASE_RENEW_US INT64_C(2000000)
#define LEASE_ACT_US INT64_C(7000000)

struct kube_lease;

struct lease_opts {
	const char *namespace_, *cluster_id; /* the Lease is gpuqd-CLUSTER_ID */
	const char *store_id;
	const char *place; /* one directory of one boot; "" not known */
	const char *words; /* who this daemon is, for people */
};

/* State of the fence, each time that it changes; never from inside a call. */
typedef void (*lease_fn)(void *arg, const struct cluster_fence *f);

/* Begin; NULL: no memory. */
struct kube_lease *kube_lease_new(struct loop *l, struct http *h, const struct lease_opts *o,
				  lease_fn fn, void *arg);
/* Give it up, so that another daemon need not wait. done is called once, at once or later. No
 * fence is reported after this. */
void kube_lease_release(struct kube_lease *s, void (*done)(void *arg), void *arg);
void kube_lease_free(struct kube_lease *s); /* NULL is fine; not from inside a callback */

#endif
