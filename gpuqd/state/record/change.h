/* change.h - the changes of one turn of the loop, as records for the store
 *
 * Owns     the list of tables and the batch of changes.
 * Touches  memory only.
 * Used by  state/record/record.c (fills), flow/journal (hands over), store/ (writes).
 *
 * Keys are big-endian so that bytes sort as numbers do. A batch is all or nothing.
 *
 * Objects of a cluster have the cluster's name in their keys: before the name of a node, so
 * that the nodes of a cluster are neighbors, and behind the number of a job or the names of a
 * usage record, so that all records of a job, a day or a user are. The name of a cluster is
 * the whole rest of such a key. A new table needs no new schema; rows are appended, since the
 * number of a table is in each of its records.
 */
#ifndef GPUQD_STATE_RECORD_CHANGE_H
#define GPUQD_STATE_RECORD_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"

/* X(symbol, name in the database, key, what a record is) */
#define TABLES(X)                                                                                  \
	X(META, "meta", "name", "schema version, cluster identity, counters")                      \
	X(JOB, "job", "id, array index", "a job that has not ended, or whose pods are not gone")   \
	X(SPEC, "spec", "id", "the job as its owner wrote it, script and environment included")    \
	X(REQUEST, "request", "request id", "what a class of jobs asks of the cluster")            \
	X(POD, "pod", "id, array index, attempt, index, cluster", "a pod that may exist")          \
	X(NODE, "node", "cluster, name", "a node: devices, labels, drain, last seen")              \
	X(KEY, "key", "user, key", "idempotency keys of the last days")                            \
	X(SITE, "site", "name", "queues, pools and the like, as applied")                          \
	X(USAGE, "usage", "queue, user, flavor, day, cluster", "GPU-seconds charged")              \
	X(CHARGE, "charge", "day, id, array index, attempt, index, cluster",                       \
	  "a day of what a pod that ended was charged")                                            \
	X(ACCOUNT, "account", "queue, user, flavor, qos",                                          \
	  "what was used, forgotten by half-lives")                                                \
	X(HISTORY, "history", "id, array index, cluster", "a job that has ended")                  \
	X(PAST, "past", "letter, word, end, id, array index", "where to find what has ended")      \
	X(LOG, "log", "id, array index, number", "what happened to a job")                         \
	X(BESIDE, "beside", "id, array index, cluster",                                            \
	  "what a job that left may have left in the cluster")                                     \
	X(AUDIT, "audit", "time, number", "changes by users")                                      \
	X(OUTBOX, "outbox", "number", "notifications of jobs that are not delivered yet")          \
	X(TEXT, "text", "hash, 0 or 1", "0: a part that specs have alike, 1: how many have it")    \
	X(ELEMENT, "element", "number", "the ended element of an array that had this number")      \
	X(TOKEN, "token", "id", "an issued token: the hash of its secret, and its rights")         \
	X(ASK, "ask", "a and number, p and pool, or n",                                            \
	  "a request for nodes that do not exist yet; how the last one of a pool failed")

enum table {
#define X(sym, name, key, doc) TABLE_##sym,
	TABLES(X)
#undef X
		N_TABLES
};

extern const char *const table_names[N_TABLES];

#define CHANGE_KEY_BYTES_MAX 256
#define AUDIT_KEY_BYTES 12
#define OUTBOX_KEY_BYTES 8
#define POD_KEY_BYTES 16 /* without the cluster, as the next */
#define CHARGE_KEY_BYTES 20
#define CLUSTER_DEFAULT "default" /* the only cluster */
#define CLUSTER_BYTES_MAX 32

struct change {
	enum table table; /* in the database */
	uint16_t key_len;
	const unsigned char *key; /* in the batch's memory */
	const unsigned char *val; /* NULL = remove the record */
	size_t val_len;
};

struct batch {
	struct gpuq_arena mem; /* keys and values */
	struct change *items;
	size_t n, room;
	bool failed; /* out of memory while filling: must not be written */
};

void change_batch_init(struct batch *b);
void change_batch_done(struct batch *b);
/* Append a copy of key and val (val NULL = remove). */
void change_batch_put(struct batch *b, enum table t, const void *key, size_t key_len,
		      const void *val, size_t val_len);

/* Make a key: each function writes at out (CHANGE_KEY_BYTES_MAX bytes) and returns the length. */
size_t change_key_u32(unsigned char *out, uint32_t x);
uint32_t change_key_read_u32(const unsigned char *key);
size_t change_key_job(unsigned char *out, uint32_t id, int64_t index); /* index -1 sorts first */
size_t change_key_pod(unsigned char *out, uint32_t id, int64_t index, uint32_t attempt,
		      uint32_t pod);
/* Append the name of a cluster behind the n bytes of the key; "" adds nothing. */
size_t change_key_cluster(unsigned char *out, size_t n, const char *cluster);
/* Read the name behind the first `from` bytes; out: CLUSTER_BYTES_MAX + 1 bytes. */
void change_key_cluster_read(const unsigned char *key, size_t n, size_t from, char *out);
size_t change_key_node(unsigned char *out, const char *cluster, const char *name);
size_t change_key_audit(unsigned char *out, int64_t at_us, uint32_t number); /* AUDIT_KEY_BYTES */
size_t change_key_outbox(unsigned char *out, uint64_t number); /* OUTBOX_KEY_BYTES */
uint64_t change_key_outbox_number(const unsigned char *key);
int64_t change_key_audit_time(const unsigned char *key);
/* Join strings by NUL; NULL ends the list; cut at the maximum. */
size_t change_key_strs(unsigned char *out, ...) __attribute__((sentinel));
bool change_key_job_read(const unsigned char *key, size_t n, uint32_t *id, int64_t *index);

#endif
