/* lease.h - jobs that end when their client is gone
 *
 * Owns     for each job with a lease, until when it may do without its client.
 * Touches  the journal: cancels jobs without a client.
 * Used by  daemon.c; rpc, which knows the clients.
 *
 * A job with a lease is attended while its owner has a stream of it open (wait, logs), and for its
 * lease after that; its requests for the job count as well. A restart of the daemon begins every
 * lease again, so that clients have time to reconnect.
 */
#ifndef GPUQD_FLOW_LEASE_H
#define GPUQD_FLOW_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/err.h"

#define LEASE_LEAST_US (5 * INT64_C(1000000))

struct job;
struct journal;
struct lease;

int lease_new(struct journal *j, struct lease **out, struct gpuq_err *err);
void lease_free(struct lease *l);
/* Set the callback that tells if a job is attended now; called once a second. */
void lease_on_ask(struct lease *l, bool (*attended)(void *arg, const struct job *j), void *arg);
/* Renew the lease: the owner has requested job `id`. */
void lease_renew(struct lease *l, uint32_t id);

#endif
