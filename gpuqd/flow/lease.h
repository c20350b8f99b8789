/* lease.h - jobs that end when their client is gone
 *
 * Owns     until when each job with a lease may do without its client.
 * Touches  the journal: cancels what nobody attends any more.
 * Used by  daemon.c; rpc, which knows who attends.
 *
 * A job with a lease is attended while its owner holds a stream of it (wait, logs), and
 * for its lease after that; asking for it counts as well. A restart of the daemon begins
 * every lease anew, so that clients find the time to come back.
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
/* Whether somebody attends this job now; asked about once a second. */
void lease_on_ask(struct lease *l, bool (*attended)(void *arg, const struct job *j), void *arg);
/* Its owner has asked for job `id`. */
void lease_renew(struct lease *l, uint32_t id);

#endif
