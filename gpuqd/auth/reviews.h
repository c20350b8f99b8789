/* reviews.h - tokens of the cluster's service accounts, judged by the cluster: auth.kubernetes
 *
 * Owns     the tokens that were reviewed and are in use, with what came of it.
 * Touches  the cluster, by token_review of cluster.h.
 * Used by  auth.c.
 *
 * The answer to a review holds for a minute. A token that a connection still uses is reviewed again then; one that
 * does not hold any longer ends its connections. While the cluster does not answer, a token that was good stays so
 * for a day, or until it expires.
 */
#ifndef GPUQD_AUTH_REVIEWS_H
#define GPUQD_AUTH_REVIEWS_H

#include "gpuqd/auth/auth.h"

struct cluster;
struct reviews;

struct reviews *reviews_new(struct loop *l, const struct auth_opts *o); /* NULL without memory */
void reviews_free(struct reviews *r); /* answers what is open; NULL is allowed */
/* End the connections by all of them. */
void reviews_drop(struct reviews *r, const struct gpuq_err *why);
void reviews_set_cluster(struct reviews *r, struct cluster *c); /* NULL = there is none now */

/* As auth_check(). expires_wall_us: as the token itself says. */
void reviews_check(struct reviews *r, const char *token, int64_t expires_wall_us, auth_fn fn,
		   void *arg);

#endif
