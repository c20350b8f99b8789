/* quotas.h - what the quotas of a site say of each other
 *
 * Owns     nothing. Touches memory only.
 * Used by  state (the quota of `default`), flow/admit/apply and rpc (warnings).
 *
 * A queue `default` that says nothing of a quota has all devices as long as no other queue has a quota,
 * and none from then on: with an unlimited quota none of its jobs could ever be preempted for a queue
 * that is owed devices.
 */
#ifndef GPUQD_SITE_QUOTAS_H
#define GPUQD_SITE_QUOTAS_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct site;
struct site_queue;

#define QUOTAS_DEFAULT "default"
/* After the first start on a database of a release without the rule, `default` keeps what it had. */
#define QUOTAS_SPARE_US (10 * 60 * INT64_C(1000000))

/* True if it is the queue `default` at the top, without a quota or shared_quota of its own. */
bool quotas_is_bare_default(const struct site_queue *q);

/* True if a bare `default` has all devices: no other queue has a quota. */
bool quotas_default_is_free(const struct site *s);

/* True if its quota is unlimited, in all flavors or in one. */
bool quotas_unlimited(const struct site_queue *q);

/* True if a queue has a quota that ends: unlimited ones beside it are worth a warning. */
bool quotas_some_end(const struct site *s);

/* Rewrite a site that was stored before the rule, when `default` had the quota `unlimited` unless a
 * file said otherwise: take that quota out; write quota 0 where it said nothing and would have all
 * now. Return the tree that is to be stored; NULL = it means the same. */
struct gpuq_val *quotas_upgrade(struct gpuq_arena *a, const struct site *s);

#endif
