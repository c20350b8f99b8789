/* Jobs that have ended: found by their entries as by looking at every one of them. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/state/record/history_index.h"
#include "gpuqd/flow/report/history_keep.h"
#include "gpuqd/flow/report/history_scan.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/read.h"
#include "libgpuq/wire/mp.h"

#define N_JOBS 600

static char dir[64];
static struct store *st;

static void open_it(void)
{
	struct store_opts o = { .map_bytes = 64 << 20, .unsafe_fs = true, .no_sync = true };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool fresh;

	snprintf(dir, sizeof(dir), "/tmp/gpuq-history.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(store_open(dir, &o, &st, &fresh, &err), 0, "%s", err.text);
}

static void remove_it(void)
{
	static const char *const names[] = { "data.mdb", "lock.mdb", "gpuqd.lock", "mark",
					     "ballast" };
	char path[128];

	store_close(st);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

TestSuite(history, .init = open_it, .fini = remove_it);

/* The properties of each job: drawn once, so that the tests can filter by themselves. */
static struct job_is {
	struct job_key key;
	int64_t end_us;
	const char *user, *queue, *name, *state;
} jobs[N_JOBS];

static uint64_t seed = 88172645463325252u;

static uint32_t any(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed % n);
}

static struct gpuq_val *object(struct gpuq_arena *a, const struct job_is *j)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "id", gpuq_int(a, j->key.id));
	gpuq_put(a, v, "array_index", j->key.index < 0 ? gpuq_null(a) : gpuq_int(a, j->key.index));
	gpuq_put(a, v, "user", gpuq_str(a, j->user));
	gpuq_put(a, v, "queue", gpuq_str(a, j->queue));
	gpuq_put(a, v, "name", gpuq_str(a, j->name));
	gpuq_put(a, v, "state", gpuq_str(a, j->state));
	gpuq_put(a, v, "end_time", gpuq_int(a, j->end_us));
	return v;
}

/* A word that is longer than a key, and two that differ beyond what a key holds. */
static char long_a[400], long_b[400];

static void make_jobs(bool indexed)
{
	static const char *const users[] = { "ann", "bob", "an", "anna" };
	static const char *const queues[] = { "a", "b", "a.b" };
	static const char *const states[] = { "COMPLETED", "FAILED", "CANCELLED" };
	const char *const names[] = { "train", "x", long_a, long_b };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch b;

	memset(long_a, 'l', sizeof(long_a) - 1);
	memset(long_b, 'l', sizeof(long_b) - 2);
	change_batch_init(&b);
	for (uint32_t i = 0; i < N_JOBS; i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_buf bytes = GPUQ_BUF_INIT;
		unsigned char key[CHANGE_KEY_BYTES_MAX];
		struct gpuq_val *v;

		/* Every fifth is an element of an array; many end at the same time. */
		jobs[i] = (struct job_is){ { i / 5 * 5 + 1, i % 5 ? (int32_t)(i % 5) : -1 },
					   1 + any(N_JOBS / 3),
					   users[any(4)],
					   queues[any(3)],
					   names[any(4)],
					   states[any(3)] };
		v = object(&a, &jobs[i]);
		gpuq_mp_write(&bytes, v);
		change_batch_put(&b, TABLE_HISTORY, key, history_record_key(key, jobs[i].key),
				 bytes.data, bytes.len);
		if (indexed)
			history_index_entry(&b, v);
		gpuq_buf_done(&bytes);
		gpuq_arena_done(&a);
	}
	cr_assert_eq(store_write_now(st, &b, &err), 0, "%s", err.text);
	change_batch_done(&b);
}

struct told {
	struct job_key keys[2 * N_JOBS];
	int64_t last_us;
	size_t n, n_live;
	const struct history_query *q;
	unsigned refuse; /* every so often, "later" */
	bool ordered;
};

static bool has(const struct gpuq_strlist *l, const char *word)
{
	for (size_t i = 0; l && i < l->n; i++)
		if (strcmp(l->items[i], word) == 0)
			return true;
	return !l || l->n == 0;
}

static bool wanted(const struct history_query *q, const struct job_is *j)
{
	bool id = q->n_ids == 0;

	for (size_t i = 0; i < q->n_ids; i++)
		id |= q->ids[i].id == j->key.id &&
		      (q->ids[i].index < 0 || q->ids[i].index == j->key.index);
	return id && has(q->names, j->name) && has(q->users, j->user) && has(q->queues, j->queue) &&
	       has(q->states, j->state) &&
	       (q->n_ids ||
		(j->end_us >= q->since_us && (!q->until_us || j->end_us <= q->until_us)));
}

static int on_job(void *arg, struct job_key key, const struct gpuq_val *job)
{
	struct told *t = arg;
	struct job_is is = { .key = key };

	if (t->refuse && any(t->refuse) == 0)
		return HISTORY_LATER;
	if (!job) {
		t->n_live++;
		return HISTORY_NEXT;
	}
	is.end_us = gpuq_get_int(job, "end_time", 0);
	is.user = gpuq_get_str(job, "user", "");
	is.queue = gpuq_get_str(job, "queue", "");
	is.name = gpuq_get_str(job, "name", "");
	is.state = gpuq_get_str(job, "state", "");
	if (!wanted(t->q, &is))
		return HISTORY_NEXT;
	if (t->n && is.end_us > t->last_us)
		t->ordered = false;
	t->last_us = is.end_us;
	cr_assert_lt(t->n, 2 * N_JOBS);
	t->keys[t->n++] = key;
	return HISTORY_NEXT;
}

static void scan(const struct history_query *q, struct history_live *live, size_t n_live,
		 unsigned refuse, struct told *t)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct history_scan *s = history_scan_new(&a, q, live, n_live);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	memset(t, 0, sizeof(*t));
	t->q = q;
	t->refuse = refuse;
	t->ordered = true;
	do {
		/* Sometimes one job a piece, sometimes all. */
		rc = history_scan_run(st, s, any(2) ? 0 : 1000000, on_job, t, &err);
		cr_assert_geq(rc, 0, "%s", err.text);
	} while (rc == 1);
	gpuq_arena_done(&a);
}

static bool told_once(const struct told *t, struct job_key key)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->keys[i].id == key.id && t->keys[i].index == key.index;
	cr_expect_leq(n, 1u, "%u_%d was told twice", key.id, key.index);
	return n > 0;
}

/* Any filters, in pieces of any size: what brute force finds, each once, newest first. */
Test(history, any_filter_finds_what_it_selects)
{
	static const char *const users[] = { "ann", "an", "nobody", "ann" };
	static const char *const queues[] = { "a", "a.b" };
	static const char *const states[] = { "FAILED", "CANCELLED" };
	struct told t;

	make_jobs(true);
	for (int round = 0; round < 60; round++) {
		const char *const names[] = { long_a, "x" };
		const struct gpuq_strlist u = { (const char **)users, any(5) },
					  k = { (const char **)queues, any(3) },
					  s = { (const char **)states, any(3) },
					  n = { (const char **)names, any(3) };
		const struct job_key ids[] = { { 6, -1 }, { 11, 2 }, { 999999, -1 }, { 16, -1 } };
		struct history_query q = { .names = any(2) ? &n : NULL,
					   .users = any(2) ? &u : NULL,
					   .queues = any(2) ? &k : NULL,
					   .states = any(2) ? &s : NULL,
					   .ids = ids,
					   .n_ids = any(4) == 0 ? 4 : 0,
					   .since_us = any(2) ? any(N_JOBS / 3) : 0,
					   .until_us = any(2) ? 1 + any(N_JOBS / 3) : 0 };

		scan(&q, NULL, 0, any(2) ? 3 : 0, &t);
		cr_expect(t.ordered || q.n_ids, "round %d: newest first", round);
		for (size_t i = 0; i < N_JOBS; i++)
			cr_expect_eq(told_once(&t, jobs[i].key), wanted(&q, &jobs[i]),
				     "round %d: %u_%d", round, jobs[i].key.id, jobs[i].key.index);
	}
}

Test(history, what_is_in_memory_comes_in_its_place_and_once)
{
	struct history_live live[] = { { 5, { 1000, -1 } },
				       { 1000000, { 1001, -1 } },
				       { jobs[0].end_us, { 1, -1 } } };
	struct history_query q = { .names = NULL };
	struct told t;

	make_jobs(true);
	live[2].end_us = jobs[0].end_us;
	scan(&q, live, 3, 0, &t);
	cr_expect_eq(t.n_live, 3u);
	cr_expect_eq(t.n, (size_t)N_JOBS - 1, "job 1 is told from memory alone");
	cr_expect_not(told_once(&t, (struct job_key){ 1, -1 }));
	cr_expect(t.ordered);
}

Test(history, an_older_database_gets_its_entries_at_the_start)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct history_query q = { .names = NULL };
	struct told t;

	make_jobs(false);
	scan(&q, NULL, 0, 0, &t);
	cr_assert_eq(t.n, 0u);
	cr_assert_eq(history_index(st, &err), 0, "%s", err.text);
	scan(&q, NULL, 0, 0, &t);
	cr_expect_eq(t.n, (size_t)N_JOBS);
	cr_expect_eq(store_count(st, TABLE_PAST), (size_t)N_JOBS * PAST_ENTRIES);
	cr_expect_eq(history_index(st, &err), 0);
	cr_expect_eq(store_count(st, TABLE_PAST), (size_t)N_JOBS * PAST_ENTRIES);
}

Test(history, what_is_forgotten_leaves_nothing)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch b;

	make_jobs(true);
	change_batch_init(&b);
	for (size_t i = 0; i < N_JOBS; i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);

		history_forget(&b, object(&a, &jobs[i]));
		gpuq_arena_done(&a);
	}
	cr_assert_eq(store_write_now(st, &b, &err), 0, "%s", err.text);
	change_batch_done(&b);
	cr_expect_eq(store_count(st, TABLE_HISTORY), 0u);
	cr_expect_eq(store_count(st, TABLE_PAST), 0u);
}
