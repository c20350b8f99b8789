/* Tokens, in memory and as stored bytes. The positions of a record are fixed for ever: append, never
 * insert (varint.h). */
#include "gpuqd/state/record/token.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define FIELDS 11
#define FIELDS_FIRST 10 /* of records before there were groups */

/* As the model does it: a daemon without memory for such a thing starts anew. */
static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

struct token *token_find(const struct model *m, const char *id)
{
	struct token *t;

	HASH_FIND(hh, m->tokens, id, TOKEN_ID_BYTES, t);
	return t;
}

uint32_t token_count(const struct model *m, const char *user)
{
	uint32_t n = 0;

	for (const struct token *t = m->tokens; t; t = t->hh.next)
		n += strcmp(t->user, user) == 0;
	return n;
}

bool token_has_queue(const char *queues, const struct queue *q)
{
	if (!queues || !*queues)
		return true;
	for (; q; q = q->parent) {
		const size_t n = strlen(q->name);

		for (const char *s = queues; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
			if (strncmp(s, q->name, n) == 0 && (s[n] == ',' || s[n] == '\0'))
				return true;
	}
	return false;
}

static void put(struct model *m, const struct token *t)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, FIELDS);
	varint_bin(&b, t->hash, sizeof(t->hash));
	varint_str(&b, t->user);
	varint_int(&b, t->scopes);
	varint_str(&b, t->queues);
	varint_str(&b, t->comment);
	varint_int(&b, t->created_us);
	varint_str(&b, t->by);
	varint_int(&b, t->expires_us);
	varint_int(&b, t->revoked_us);
	varint_int(&b, t->used_us);
	varint_str(&b, t->groups);
	change_batch_put(&m->direct, TABLE_TOKEN, t->id, TOKEN_ID_BYTES, b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
}

static struct token *add(struct model *m, const char *id)
{
	struct token *t = must(calloc(1, sizeof(*t)));

	memcpy(t->id, id, TOKEN_ID_BYTES);
	HASH_ADD(hh, m->tokens, id, TOKEN_ID_BYTES, t);
	return t;
}

static void drop(struct model *m, struct token *t)
{
	HASH_DEL(m->tokens, t);
	free(t->comment);
	free(t);
}

void token_free_all(struct model *m)
{
	struct token *t, *next;

	HASH_ITER(hh, m->tokens, t, next)
		drop(m, t);
}

int token_apply_issued(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct token *t;

	if (strlen(ev->token.id) != TOKEN_ID_BYTES || token_find(m, ev->token.id))
		return gpuq_fail(err, GPUQ_ECONFLICT, "the token's id is not a new one");
	t = add(m, ev->token.id);
	memcpy(t->hash, ev->token.hash, sizeof(t->hash));
	t->user = model_intern(m, ev->token.user);
	t->by = model_intern(m, ev->token.by);
	t->queues = model_intern(m, ev->token.queues);
	t->groups = model_intern(m, ev->token.groups ? ev->token.groups : "");
	t->comment = must(strdup(ev->token.comment));
	t->scopes = ev->token.scopes;
	t->created_us = ev->at_us;
	t->expires_us = ev->token.expires_us;
	put(m, t);
	return 0;
}

static struct token *of_event(const struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct token *t =
		strlen(ev->token.id) == TOKEN_ID_BYTES ? token_find(m, ev->token.id) : NULL;

	if (!t)
		gpuq_fail(err, GPUQ_ENOENT, "no such token: %s", ev->token.id);
	return t;
}

int token_apply_revoked(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct token *t = of_event(m, ev, err);

	if (!t)
		return GPUQ_ENOENT;
	if (!t->revoked_us) {
		t->revoked_us = ev->at_us;
		put(m, t);
	}
	return 0;
}

int token_apply_used(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct token *t = of_event(m, ev, err);

	if (!t)
		return GPUQ_ENOENT;
	t->used_us = ev->at_us;
	put(m, t);
	return 0;
}

void token_drop_old(struct model *m, int64_t now_us)
{
	const int64_t keep_us = GPUQ_TOKEN_KEEP_S * GPUQ_US_PER_S;
	struct token *t, *next;

	HASH_ITER(hh, m->tokens, t, next) {
		const int64_t end_us = t->revoked_us && t->revoked_us < t->expires_us
					       ? t->revoked_us
					       : t->expires_us;

		if (end_us + keep_us > now_us)
			continue;
		change_batch_put(&m->direct, TABLE_TOKEN, t->id, TOKEN_ID_BYTES, NULL, 0);
		drop(m, t);
	}
}

/* Read a text into the heap. */
static char *read_text(struct rec *r)
{
	size_t n;
	const char *s = rec_get_str(r, &n);
	char *copy = must(malloc(s ? n + 1 : 1));

	if (s)
		memcpy(copy, s, n);
	copy[s ? n : 0] = '\0';
	return copy;
}

/* Read a name into the model's. */
static const char *read_name(struct model *m, struct rec *r)
{
	char *copy = read_text(r);
	const char *name = model_intern(m, copy);

	free(copy);
	return name;
}

int token_load(struct model *m, const unsigned char *key, size_t n, struct rec *r,
	       struct gpuq_err *err)
{
	const char *hash;
	size_t n_hash;
	struct token *t;
	uint32_t more;

	if (n != TOKEN_ID_BYTES || memchr(key, '\0', n))
		return gpuq_fail(err, GPUQ_ECORRUPT, "the key of a token is not of its form");
	t = add(m, (const char *)key);
	more = rec_get_row(r, FIELDS_FIRST);
	hash = rec_get_str(r, &n_hash);
	if (hash && n_hash == sizeof(t->hash))
		memcpy(t->hash, hash, n_hash);
	else
		r->bad = true;
	t->user = read_name(m, r);
	t->scopes = (uint32_t)rec_get_int(r);
	t->queues = read_name(m, r);
	t->comment = read_text(r);
	t->created_us = rec_get_int(r);
	t->by = read_name(m, r);
	t->expires_us = rec_get_int(r);
	t->revoked_us = rec_get_int(r);
	t->used_us = rec_get_int(r);
	t->groups = more ? read_name(m, r) : model_intern(m, "");
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "token %s is incomplete", t->id) : 0;
}
