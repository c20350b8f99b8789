/* methods.h - the table of methods and what they need
 *
 * Owns     the streams under way (wait, logs, watch); not the connections (rpc.h).
 * Touches  flow's entry points; reads the model; never changes it by itself.
 * Used by  daemon.c.
 *
 * One file per noun, m_*.c; the rows of methods.c name the functions.
 */
#ifndef GPUQD_RPC_METHOD_METHODS_H
#define GPUQD_RPC_METHOD_METHODS_H

#include "gpuqd/rpc/rpc.h"
#include "libgpuq/err.h"

struct auth;
struct cluster;
struct codes;
struct estimator;
struct journal;
struct kept;
struct methods;
struct outbox;
struct reconcile;
struct refusals;
struct rota;
struct schedule;

int methods_new(struct journal *j, struct reconcile *r, const char *cluster_kind,
		struct methods **out, struct gpuq_err *err);
void methods_free(struct methods *m);
void methods_set_cluster(struct methods *m, struct cluster *c);
void methods_set_estimator(struct methods *m, struct estimator *e); /* before the first call */

/* The objects whose decisions and statistics are shown; both outlive m's calls. */
void methods_set_schedule(struct methods *m, struct schedule *s);
void methods_set_refusals(struct methods *m, const struct refusals *r);
/* Without a '/' at its end; NULL = none. */
void methods_set_backup_dir(struct methods *m, const char *dir);
void methods_set_codes(struct methods *m,
		       struct codes *c); /* archives that jobs carry; NULL = none */
void methods_set_kept(struct methods *m,
		      struct kept *k); /* output of pods that are gone; NULL = none */
void methods_set_rota(struct methods *m, struct rota *k); /* NULL = none */
/* Let operators do what only a job's owner may: run programs in the job, attach to it, change
 * what it runs. The user that gpuqd runs as always may. */
void methods_set_operators_act(struct methods *m, bool act);
void methods_set_token_age(struct methods *m, int64_t max_us);
void methods_set_auth(struct methods *m, struct auth *a); /* NULL = web tokens are refused */
void methods_set_outbox(struct methods *m, const struct outbox *o);
void methods_set_server(struct methods *m, struct rpc_server *s);

/* Fill what a server needs: table, hooks and arg. */
void methods_opts(struct methods *m, struct rpc_opts *out);

#endif
