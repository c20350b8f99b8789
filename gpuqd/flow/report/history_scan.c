#include "gpuqd/flow/report/history_scan.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/record/history_index.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"
#include "libgpuq/limits.h"

#define AHEAD 64 /* entries that are read at once */
#define STREAMS_MAX 64 /* words of one filter whose entries are merged */

struct entry {
	int64_t end_us;
	struct job_key key;
};

/* The entries of one word, newest first. */
struct stream {
	unsigned char prefix[CHANGE_KEY_BYTES_MAX], from[CHANGE_KEY_BYTES_MAX];
	size_t prefix_len, from_len;
	struct entry ahead[AHEAD];
	size_t n, at;
	bool over; /* the store has no more */
};

struct history_scan {
	struct history_query q;
	struct history_live *live, *by_key;
	size_t n_live, live_at;
	struct stream *streams;
	size_t n_streams;
	/* ---- by ids ---- */
	size_t id_at;
	unsigned char from[CHANGE_KEY_BYTES_MAX];
	size_t from_len; /* 0 = the first of this id */
};

static int by_key(const void *a, const void *b)
{
	return job_key_cmp(((const struct history_live *)a)->key,
			   ((const struct history_live *)b)->key);
}

static int newest_first(const void *pa, const void *pb)
{
	const struct history_live *a = pa, *b = pb;

	if (a->end_us != b->end_us)
		return a->end_us > b->end_us ? -1 : 1;
	return job_key_cmp(b->key, a->key);
}

static void stream_init(struct history_scan *s, enum past_by by, const char *word)
{
	static const struct job_key above_all = { UINT32_MAX, INT32_MAX };
	struct stream *st = &s->streams[s->n_streams++];

	st->prefix_len = history_prefix(st->prefix, by, word);
	st->from_len = history_key(st->from, by, word, s->q.until_us ? s->q.until_us : INT64_MAX,
				   above_all);
}

struct history_scan *history_scan_new(struct gpuq_arena *a, const struct history_query *q,
				      struct history_live *live, size_t n_live)
{
	const struct {
		enum past_by by;
		const struct gpuq_strlist *words;
	} ways[] = { { PAST_BY_NAME, q->names },
		     { PAST_BY_USER, q->users },
		     { PAST_BY_QUEUE, q->queues },
		     { PAST_BY_STATE, q->states } };
	struct history_scan *s = gpuq_arena_calloc(a, 1, sizeof(*s));

	if (!s)
		return NULL;
	s->q = *q;
	s->live = live;
	s->n_live = n_live;
	s->by_key = gpuq_arena_calloc(a, n_live + 1, sizeof(*s->by_key));
	if (!s->by_key)
		return NULL;
	if (n_live) {
		qsort(live, n_live, sizeof(*live), newest_first);
		memcpy(s->by_key, live, n_live * sizeof(*live));
		qsort(s->by_key, n_live, sizeof(*live), by_key);
	}
	if (q->n_ids)
		return s;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !s->n_streams; i++) {
		const struct gpuq_strlist *w = ways[i].words;

		if (!w || w->n == 0 || w->n > STREAMS_MAX)
			continue;
		s->streams = gpuq_arena_calloc(a, w->n, sizeof(*s->streams));
		if (!s->streams)
			return NULL;
		for (size_t k = 0; k < w->n; k++) {
			if (!gpuq_strlist_has(&(struct gpuq_strlist){ w->items, k }, w->items[k]))
				stream_init(s, ways[i].by, w->items[k]);
		}
	}
	if (s->n_streams)
		return s;
	s->streams = gpuq_arena_calloc(a, 1, sizeof(*s->streams));
	if (!s->streams)
		return NULL;
	stream_init(s, PAST_BY_END, "");
	return s;
}

static int note_entry(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		      size_t val_len)
{
	struct stream *st = arg;
	struct entry *e = &st->ahead[st->n];

	(void)val, (void)val_len;
	if (history_key_read(key, key_len, &e->end_us, &e->key))
		st->n++;
	memcpy(st->from, key, key_len);
	st->from_len = key_len;
	return 0;
}

/* Return the stream with the newest entry that is left; NULL at the end. */
static int newest(struct store *store, struct history_scan *s, struct stream **out,
		  struct gpuq_err *err)
{
	struct stream *best = NULL;

	for (size_t i = 0; i < s->n_streams; i++) {
		struct stream *st = &s->streams[i];
		const struct entry *e, *b;

		if (st->at == st->n && !st->over) {
			int rc;

			st->at = st->n = 0;
			rc = store_each(store, TABLE_PAST, st->prefix, st->prefix_len, st->from,
					st->from_len, true, AHEAD, note_entry, st, err);
			if (rc < 0)
				return rc;
			st->over = st->n == 0;
			history_key_before(st->from, st->from_len);
		}
		if (st->at == st->n)
			continue;
		e = &st->ahead[st->at];
		b = best ? &best->ahead[best->at] : NULL;
		if (!b || e->end_us > b->end_us ||
		    (e->end_us == b->end_us && job_key_cmp(e->key, b->key) > 0))
			best = st;
	}
	*out = best;
	return 0;
}

static bool is_live(const struct history_scan *s, struct job_key key)
{
	const struct history_live k = { 0, key };

	return s->n_live && bsearch(&k, s->by_key, s->n_live, sizeof(k), by_key);
}

/* Process one job at its place in the order. AT_END: the end, or enough. */
enum { AT_END, GO_ON, NOT_TAKEN };

static int answer_of(int said)
{
	return said == HISTORY_NEXT ? GO_ON : said == HISTORY_LATER ? NOT_TAKEN : AT_END;
}

static int step(struct store *store, struct history_scan *s, history_fn fn, void *arg,
		struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct history_live *l = s->live_at < s->n_live ? &s->live[s->live_at] : NULL;
	const struct entry *e;
	struct gpuq_val *job;
	struct stream *st;
	int rc = newest(store, s, &st, err);

	if (rc < 0)
		return rc;
	e = st ? &st->ahead[st->at] : NULL;
	if (l && (!e || l->end_us >= e->end_us)) {
		rc = answer_of(fn(arg, l->key, NULL));
		s->live_at += rc == GO_ON;
		return rc;
	}
	if (!e || e->end_us < s->q.since_us)
		return AT_END;
	if (is_live(s, e->key)) {
		st->at++;
		return GO_ON;
	}
	job = history_job(store, e->key, &mem);
	rc = job ? answer_of(fn(arg, e->key, job)) : GO_ON; /* deleted since */
	st->at += rc == GO_ON;
	gpuq_arena_done(&mem);
	return rc;
}

/* ---- by ids ---- */

struct found {
	struct history_scan *s;
	history_fn fn;
	void *arg;
	int rc;
	size_t n;
};

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct found *f = arg;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *job = history_read(&mem, val, val_len);

	f->n++;
	f->rc = GO_ON;
	if (job && !is_live(f->s, history_key_of_job(job)))
		f->rc = answer_of(f->fn(f->arg, history_key_of_job(job), job));
	gpuq_arena_done(&mem);
	if (f->rc == NOT_TAKEN)
		return 1;
	memcpy(f->s->from, key, key_len);
	f->s->from_len = key_len;
	f->s->from[key_len - 1]++; /* no name of a cluster ends in the greatest byte */
	return f->rc != GO_ON;
}

static int step_ids(struct store *store, struct history_scan *s, history_fn fn, void *arg,
		    struct gpuq_err *err)
{
	struct found f = { s, fn, arg, GO_ON, 0 };
	unsigned char prefix[CHANGE_KEY_BYTES_MAX];
	size_t n;
	int rc;

	if (s->live_at < s->n_live) {
		rc = answer_of(fn(arg, s->live[s->live_at].key, NULL));
		s->live_at += rc == GO_ON;
		return rc;
	}
	if (s->id_at == s->q.n_ids)
		return AT_END;
	n = s->q.ids[s->id_at].index < 0
		    ? change_key_u32(prefix, s->q.ids[s->id_at].id)
		    : change_key_job(prefix, s->q.ids[s->id_at].id, s->q.ids[s->id_at].index);
	rc = store_each(store, TABLE_HISTORY, prefix, n, s->from_len ? s->from : NULL, s->from_len,
			false, AHEAD, on_record, &f, err);
	if (rc < 0)
		return rc;
	if (f.n < AHEAD && f.rc == GO_ON) {
		s->id_at++;
		s->from_len = 0;
	}
	return f.rc;
}

bool history_scan_may_read(struct store *st)
{
	return store_is_checked(st, TABLE_PAST) && store_is_checked(st, TABLE_HISTORY);
}

int history_scan_run(struct store *st, struct history_scan *s, int64_t budget_us, history_fn fn,
		     void *arg, struct gpuq_err *err)
{
	const int64_t begun_us = loop_clock_us();
	int rc;

	do {
		rc = s->q.n_ids ? step_ids(st, s, fn, arg, err) : step(st, s, fn, arg, err);
	} while (rc == GO_ON && loop_clock_us() - begun_us < budget_us);
	return rc < 0 ? rc : rc != AT_END;
}
