#include "gpuqd/flow/report/history_keep.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/record/history_index.h"
#include "gpuqd/flow/report/charge_keep.h"
#include "gpuqd/flow/report/history_scan.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/read.h"
#include "libgpuq/units.h"

#define LOOK_US (10 * GPUQ_US_PER_S)
#define MORE_US (20 * 1000) /* between two pieces, so that other work gets its turn */
#define PIECE 200 /* jobs forgotten at once */
#define PAGE 5000 /* records whose entries are written at once */

/* ---- the entries of an older database ---- */

struct page {
	struct batch b;
	unsigned char from[CHANGE_KEY_BYTES_MAX];
	size_t from_len, n;
};

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct page *p = arg;
	struct gpuq_val *job = history_read(&mem, val, val_len);

	if (job)
		history_index_entry(&p->b, job);
	gpuq_arena_done(&mem);
	p->from_len = key_len < sizeof(p->from) ? key_len : sizeof(p->from);
	for (size_t i = 0; i < p->from_len; i++)
		p->from[i] = key[i];
	p->n++;
	return 0;
}

int history_index(struct store *st, struct gpuq_err *err)
{
	const size_t n = store_count(st, TABLE_HISTORY);
	struct page p = { .from_len = 0 };
	int rc;

	/* The right number of entries is enough: they are all written in one transaction with their
	 * record. */
	if (store_count(st, TABLE_PAST) == n * PAST_ENTRIES)
		return 0;
	log_notice("history.index", "jobs=%zu", n);
	rc = store_clear(st, TABLE_PAST, err);
	do {
		p.n = 0;
		change_batch_init(&p.b);
		if (rc == 0)
			rc = store_each(st, TABLE_HISTORY, NULL, 0, p.from_len ? p.from : NULL,
					p.from_len, false, PAGE, on_record, &p, err);
		/* The last of a page is the first of the next one; writing it again is harmless. */
		if (rc == 0 && p.b.n)
			rc = store_write_now(st, &p.b, err);
		change_batch_done(&p.b);
	} while (rc == 0 && p.n == PAGE);
	return rc;
}

/* ---- forgetting ---- */

struct history_keep {
	struct journal *j;
	struct loop_timer *timer;
	struct history_limits limits;
};

struct oldest {
	struct gpuq_arena mem;
	const struct gpuq_val *jobs[PIECE];
	struct job_key keys[PIECE];
	size_t n, n_max;
	int64_t before_us;
};

static int on_entry(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	struct oldest *o = arg;
	int64_t end_us;

	(void)val, (void)val_len;
	if (!history_key_read(key, key_len, &end_us, &o->keys[o->n]))
		return 0;
	if (o->n >= o->n_max && end_us >= o->before_us)
		return 1;
	return ++o->n == PIECE;
}

/* Return how many of the oldest are too many, at most PIECE. */
static size_t too_many(const struct history_keep *k, struct store *st, int64_t n_kept)
{
	static const enum table tables[] = { TABLE_HISTORY, TABLE_PAST, TABLE_SPEC, TABLE_TEXT };
	const int64_t n = k->limits.max ? n_kept - k->limits.max : 0;
	int64_t bytes = 0;

	for (size_t i = 0; k->limits.max_bytes && i < sizeof(tables) / sizeof(tables[0]); i++)
		bytes += store_bytes(st, tables[i]);
	if (n >= PIECE || bytes > k->limits.max_bytes)
		return PIECE;
	return n > 0 ? (size_t)n : 0;
}

/* Forget one piece. Returns whether there may be more. */
static bool forget_some(struct history_keep *k)
{
	struct store *st = journal_store(k->j);
	const int64_t n_kept = (int64_t)store_count(st, TABLE_HISTORY);
	struct event ev = { .type = EV_HISTORY_EXPIRED };
	struct gpuq_err err = GPUQ_ERR_INIT;
	unsigned char prefix[CHANGE_KEY_BYTES_MAX];
	struct oldest *o;
	size_t n = 0;
	bool more;

	if (journal_read_only(k->j))
		return false;
	o = calloc(1, sizeof(*o));
	if (!o)
		return false;
	o->n_max = too_many(k, st, n_kept);
	o->before_us = k->limits.keep_us ? loop_now_us(journal_loop(k->j)) - k->limits.keep_us : 0;
	if (store_each(st, TABLE_PAST, prefix, history_prefix(prefix, PAST_BY_END, ""), NULL, 0,
		       false, 0, on_entry, o, &err) < 0)
		log_err("history.keep", "error=%s", LOGS(err.text));
	for (size_t i = 0; i < o->n; i++) {
		const struct gpuq_val *job = history_job(st, o->keys[i], &o->mem);

		if (job)
			o->jobs[n++] = job;
	}
	more = n == PIECE;
	ev.expired.jobs = o->jobs;
	ev.expired.n = n;
	if (n && journal_apply(k->j, &ev, &err) < 0) {
		log_err("history.keep", "error=%s", LOGS(err.text));
		more = false;
	} else if (n) {
		log_info("history.keep", "forgotten=%zu kept=%" PRId64, n, n_kept - (int64_t)n);
	}
	gpuq_arena_done(&o->mem);
	free(o);
	return more;
}

/* The deletions must be durable before the next search, or it finds the same jobs again. */
static void look(void *arg);

static void look_later(void *arg, int rc, const struct gpuq_err *err)
{
	struct history_keep *k = arg;

	(void)err;
	if (rc != GPUQ_EGONE)
		k->timer = loop_after(journal_loop(k->j), rc == 0 ? MORE_US : LOOK_US, look, k);
}

static void look(void *arg)
{
	struct history_keep *k = arg;
	struct store *st = journal_store(k->j);
	/* The event loop does not wait for the check of what has ended. */
	const bool may = history_scan_may_read(st) && store_is_checked(st, TABLE_CHARGE);
	bool more = may && forget_some(k);

	k->timer = NULL;
	more |= may && charge_keep_some(k->j, k->limits.keep_us);
	if (more)
		journal_after(k->j, look_later, k);
	else
		k->timer = loop_after(journal_loop(k->j), LOOK_US, look, k);
}

int history_keep_new(struct journal *j, const struct history_limits *limits,
		     struct history_keep **out, struct gpuq_err *err)
{
	struct history_keep *k = calloc(1, sizeof(*k));

	if (!k)
		return gpuq_no_memory(err);
	*k = (struct history_keep){ .j = j, .limits = *limits };
	k->timer = loop_after(journal_loop(j), MORE_US, look, k);
	*out = k;
	return 0;
}

void history_keep_set(struct history_keep *k, const struct history_limits *limits)
{
	k->limits = *limits;
}

void history_keep_free(struct history_keep *k)
{
	if (!k)
		return;
	loop_cancel(k->timer);
	free(k);
}
