/* token.h - tokens that gpuqd has issued: what is known of each, never its secret
 *
 * Owns     struct token; in the model, changed by TOKEN_ISSUED, TOKEN_REVOKED, TOKEN_USED and KEYS_EXPIRED.
 * Touches  memory only.
 * Used by  state/ and record.c (the model), flow/admit, rpc/method/m_token.c.
 *
 * The database has the SHA-256 of a secret of 256 random bits: who reads it, or a backup, has no token.
 */
#ifndef GPUQD_STATE_TOKEN_H
#define GPUQD_STATE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "libgpuq/err.h"

#define TOKEN_ID_BYTES 12
#define TOKEN_HASH_BYTES 32

struct model;
struct rec;

struct token {
	UT_hash_handle hh; /* by id, in order of issue */
	char id[TOKEN_ID_BYTES + 1];
	unsigned char hash[TOKEN_HASH_BYTES];
	const char *user, *by; /* interned; by: the user that issued it, or the rule of auth.oidc */
	const char *queues; /* interned; names joined by commas, "" = all */
	const char *groups; /* interned; of its user, joined by commas; "" = none */
	char *comment;
	uint32_t scopes; /* enum scope */
	int64_t created_us, expires_us;
	int64_t revoked_us; /* 0 = it is not */
	int64_t used_us; /* within an hour; 0 = never */
};

/* NULL = there is none. id need not end with NUL. */
struct token *token_find(const struct model *m, const char *id);
uint32_t token_count(const struct model *m, const char *user);
/* True if the queue or one above it is among the names; "" and NULL name all. */
struct queue;
bool token_has_queue(const char *queues, const struct queue *q);

struct event;
int token_apply_issued(struct model *m, const struct event *ev, struct gpuq_err *err);
int token_apply_revoked(struct model *m, const struct event *ev, struct gpuq_err *err);
int token_apply_used(struct model *m, const struct event *ev, struct gpuq_err *err);

void token_free_all(struct model *m);
/* Forget those that ended long before. */
void token_drop_old(struct model *m, int64_t now_us);
/* A stored record. */
int token_load(struct model *m, const unsigned char *key, size_t n, struct rec *r,
	       struct gpuq_err *err);

#endif
