#include "gpuqd/store/replay.h"
#include "gpuqd/store/store_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/store/copy.h"
#include "gpuqd/store/segment.h"

/* So much is put into one transaction. */
#define GROUP_RECORDS 20000u
#define GROUP_BYTES (8 << 20)

struct replay {
	struct store *st;
	struct batch group;
	size_t group_bytes;
	uint64_t n_grouped, sum; /* batches of the group; what the last one says of its outcome */
	int64_t at_us; /* of the last batch */
};

int store_replay_begin(const char *path, int64_t map_bytes, struct replay **out,
		       struct gpuq_err *err)
{
	const struct store_opts opts = { .map_bytes = map_bytes, .no_sync = true };
	struct replay *r = calloc(1, sizeof(*r));
	int rc;

	if (r)
		r->st = store_alloc(NULL, &opts);
	if (!r || !r->st) {
		free(r);
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	}
	rc = check_open(path, &r->st->check, err);
	if (rc == 0) {
		r->st->state = *check_state(r->st->check);
		/* It was checked before it was copied. */
		check_close(r->st->check);
		r->st->check = NULL;
		rc = store_open_env(r->st, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, true, err);
	}
	if (rc < 0) {
		store_close(r->st);
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

struct store *store_replay_store(const struct replay *r)
{
	return r->st;
}

struct store_identity store_replay_position(const struct replay *r)
{
	return r->st->state.id;
}

int64_t store_replay_time(const struct replay *r)
{
	return r->at_us;
}

/* ---- batches ---- */

static int commit(struct replay *r, const struct batch *b, enum table clear, uint64_t n,
		  struct gpuq_err *err)
{
	struct store_meta next = r->st->state;

	next.id.seq += n - 1; /* the commit adds one */
	return store_commit(r->st, b, clear, &next, err);
}

static int flush(struct replay *r, struct gpuq_err *err)
{
	int rc = r->n_grouped ? commit(r, &r->group, N_TABLES, r->n_grouped, err) : 0;

	if (rc == 0 && r->n_grouped && segment_sum(&r->st->state) != r->sum)
		rc = gpuq_fail(err, GPUQ_ECORRUPT,
			       "batch %" PRIu32 "/%" PRIu64 " leads to another state than it did",
			       r->st->state.id.epoch, r->st->state.id.seq);
	change_batch_done(&r->group);
	r->group_bytes = 0;
	r->n_grouped = 0;
	return rc;
}

static int apply_clear(struct replay *r, const struct segment_batch *b, struct gpuq_err *err)
{
	struct batch changes;
	int rc = flush(r, err);

	change_batch_init(&changes);
	if (rc == 0)
		rc = segment_changes(b, &changes, err);
	if (rc == 0)
		rc = commit(r, &changes, b->clear, 1, err);
	change_batch_done(&changes);
	return rc;
}

static int apply(struct replay *r, const struct segment_batch *b, struct gpuq_err *err)
{
	int rc;

	if (b->clear != N_TABLES) {
		rc = apply_clear(r, b, err);
	} else {
		rc = segment_changes(b, &r->group, err);
		r->n_grouped++;
		r->sum = b->sum;
		r->group_bytes += (size_t)(b->changes.end - b->changes.p);
		if (rc == 0 && (r->group.n > GROUP_RECORDS || r->group_bytes > GROUP_BYTES))
			rc = flush(r, err);
	}
	if (rc == 0)
		r->at_us = b->at_us;
	return rc;
}

static int is_fit(const struct replay *r, const struct segment *s, struct gpuq_err *err)
{
	const struct store_identity *is = &r->st->state.id, *of = &s->head.id;

	if (s->head.schema != STORE_SCHEMA)
		return gpuq_fail(
			err, GPUQ_EVERSION,
			"batches of schema %u, this gpuqd applies %d: restore with the gpuqd "
			"that wrote them",
			s->head.schema, STORE_SCHEMA);
	if (strcmp(is->store_id, of->store_id) != 0 || is->epoch != of->epoch)
		return gpuq_fail(err, GPUQ_ECONFLICT,
				 "batches of another database, %s epoch %" PRIu32, of->store_id,
				 of->epoch);
	if (of->seq > is->seq + 1)
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "batches %" PRIu32 "/%" PRIu64 " to %" PRIu32 "/%" PRIu64
				 " are missing",
				 is->epoch, is->seq + 1, is->epoch, of->seq - 1);
	return segment_check(s, err);
}

int store_replay(struct replay *r, int fd, const struct replay_until *until, bool *done,
		 struct gpuq_err *err)
{
	struct segment_batch b;
	struct segment s;
	uint64_t at;
	int rc = segment_open(&s, fd, err), more = 1;

	if (rc == 0)
		rc = is_fit(r, &s, err);
	*done = false;
	at = r->st->state.id.seq;
	while (rc == 0 && !*done && (more = segment_next(&s, &b, err)) == 1) {
		if (b.seq <= at)
			continue;
		*done = b.seq > until->seq || b.at_us > until->at_us;
		if (*done)
			break;
		if (b.seq != at + 1)
			rc = gpuq_fail(err, GPUQ_ECORRUPT, "batch %" PRIu64 " is missing", at + 1);
		if (rc == 0)
			rc = apply(r, &b, err);
		at = b.seq;
	}
	if (rc == 0 && more < 0)
		rc = more;
	segment_close(&s);
	return rc == 0 ? flush(r, err) : rc;
}

int store_replay_end(struct replay *r, struct gpuq_err *err)
{
	int rc = 0;

	if (!r)
		return 0;
	if (mdb_env_sync(r->st->env, 1) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "the restored database cannot be synced");
	change_batch_done(&r->group);
	store_close(r->st);
	free(r);
	return rc;
}
