/* site_find.h - what a site has, found by its name
 *
 * Owns     nothing; what is returned lives as long as the site.
 * Touches  memory only.
 * Used by  all that include site.h, which includes this.
 */
#ifndef GPUQD_SITE_SITE_FIND_H
#define GPUQD_SITE_SITE_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct site;
struct site_amount;
struct site_group;
struct site_pool;
struct site_queue;
struct site_user;

/* Each returns NULL if the site lists none of that name. */
const struct site_queue *site_queue_find(const struct site *s, const char *name);
/* Return the parent of a queue; NULL for one at the top. */
const struct site_queue *site_queue_above(const struct site *s, const struct site_queue *q);
const struct site_user *site_user_find(const struct site *s, const char *name);
const struct site_group *site_group_find(const struct site *s, const char *name);

/* True if the pool gets nodes by requests. */
bool site_pool_grows(const struct site_pool *p);
/* True if it grows by ProvisioningRequests. */
bool site_pool_requests(const struct site_pool *p);
/* True if others may preempt jobs on its nodes, as it or its provisioning says. */
bool site_pool_evictable(const struct site_pool *p);
const struct site_pool *site_pool_find(const struct site *s, const char *name); /* NULL = none */
/* Return the pool of that name if it grows; else NULL. */
const struct site_pool *site_pool_growing(const struct site *s, const char *name);
/* True if pods on nodes of the pool, NULL = of none, tolerate the taint since they are there. */
bool site_pool_tolerates(const struct site_pool *p, const char *key, const char *value,
			 const char *effect);

/* Return the amount for one flavor; dflt when nothing is said of it. */
int64_t site_amount_of(const struct site_amount *a, const char *flavor, int64_t dflt);

/* True if all of the text matches a pattern with * and ?. */
bool site_glob(const char *pattern, const char *text);

/* True if scripts of sbatch in the queue run in the first of their pods alone. */
bool site_launches(const struct site *s, const struct site_queue *q);

/* How long code that no job carries any more is kept. */
int64_t site_code_keep_us(const struct site *s);

#endif
