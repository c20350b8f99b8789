/* identities.h - `auth` of gpuqd.yaml as the daemon runs it: which users others vouch for
 *
 * Owns     the issuers, their keys and logins (auth/auth.h).
 * Touches  the network and the cluster through that; the server's connections.
 * Used by  daemon.c.
 */
#ifndef GPUQD_IDENTITIES_H
#define GPUQD_IDENTITIES_H

#include "libgpuq/err.h"

struct cluster;
struct config_auth;
struct identities;
struct loop;
struct methods;
struct rpc_server;

/* Check the files that it names: 0, or GPUQ_EINVAL. */
int identities_check(const struct config_auth *c, struct gpuq_err *err);

/* c lives on. m gets what it asks whose a token is. */
int identities_new(struct loop *l, const struct config_auth *c, struct methods *m,
		   struct identities **out, struct gpuq_err *err);
void identities_free(struct identities *i); /* NULL is allowed */
void identities_set_server(struct identities *i, struct rpc_server *s);
void identities_set_cluster(struct identities *i, struct cluster *c); /* NULL = none now */
/* Another configuration, which lives on; what it does not allow any longer ends. */
int identities_reload(struct identities *i, const struct config_auth *c, struct gpuq_err *err);

#endif
