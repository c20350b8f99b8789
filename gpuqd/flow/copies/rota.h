/* rota.h - copies that are made by themselves, how many of them stay, and whether they are whole
 *
 * Owns     the timer of the next copy, the thread that makes and audits copies, what it found.
 * Touches  the store (reads), a target: names that begin with gpuq-CLUSTER_ID-.
 * Used by  daemon.c, rpc/method.
 *
 * The names in the target are the schedule (names.h). One thing is done at a time: a copy, or an
 * audit. Whatever the target does, the loop does not wait for it; a target that hangs is seen by
 * `late`.
 */
#ifndef GPUQD_FLOW_COPIES_ROTA_H
#define GPUQD_FLOW_COPIES_ROTA_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/flow/copies/plan.h"
#include "gpuqd/flow/copies/shelf.h"
#include "gpuqd/flow/copies/ship.h"
#include "libgpuq/err.h"

struct journal;
struct rota;

struct rota_opts {
	struct backup_plan plan; /* its texts are not copied */
	const char *cluster_id;
	const char *scratch; /* a directory with room for a copy */
	const char *self, *config; /* as struct audit_tool has them */
};

/* Without a target *out stays as it is. */
int rota_new(struct journal *j, const struct rota_opts *o, struct rota **out, struct gpuq_err *err);
/* Tell what is under way to end, and wait for it a moment. False: it does not, and rota_free must
 * not be called, nor the store be closed: the process has to end with it. NULL is fine. */
bool rota_stop(struct rota *k);
void rota_free(struct rota *k); /* after rota_stop; NULL is fine */

/* The state of backups, for people. Instants are wall time, 0 = never. */
struct rota_state {
	const char *target;
	int64_t every_us;
	const char *doing; /* "copy", "audit"; NULL = nothing */
	int64_t since_us;
	bool late; /* that takes longer than it may: does the target answer? */
	bool listed; /* what follows is known */
	int64_t n_copies, last_us, last_bytes; /* of the target; the newest one */
	bool overdue; /* the newest is older than twice every_us */
	unsigned n_failed; /* tries since the last that went well */
	int64_t failed_us; /* the first of them */
	const char *why; /* the last of them; "" = none */
	int64_t audited_us; /* the last audit of any copy */
	const char *audit; /* what it found; "" = nothing yet */
	const char *audited; /* the name of that copy */
	bool damaged; /* a copy is, as its last audit says */
	bool has_log; /* log is filled */
	struct ship_state log; /* of batches between copies */
	const char *audit_why; /* why the last audit could not be made; "" = it could */
};
struct rota_state rota_state(const struct rota *k);
const struct shelf *rota_shelf(const struct rota *k);

/* Have a copy audited after what is under way: name, or NULL for the newest. fn is called once, later,
 * unless it is dropped: c is the copy with what was found in its manifest, or err tells why that
 * cannot be said. Returns 0; GPUQ_ENOENT (no copy of that name). */
typedef void (*rota_verify_fn)(void *arg, int rc, const struct shelf_copy *c,
			       const struct gpuq_err *err);
int rota_verify(struct rota *k, const char *name, rota_verify_fn fn, void *arg,
		struct gpuq_err *err);
void rota_verify_drop(struct rota *k, const void *arg);

#endif
