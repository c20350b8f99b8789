/* The rank of jobs in a queue: the fair tree of users, and terms that add up. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/quota/fairtree.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/util/sort.h"

#define HOUR (3600 * GPUQ_US_PER_S)
#define NOW (INT64_C(1000) * HOUR)

static struct snapshot *begin(const struct snap_weights *weights)
{
	struct snap_config config;
	struct snapshot *s;

	snapshot_config_default(&config);
	config.now_us = NOW;
	if (weights)
		config.weights = *weights;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	return s;
}

static uint32_t queue(struct snapshot *s, const char *name, const char *parent, int64_t weight)
{
	struct snap_queue q;

	snapshot_queue_default(&q);
	q.name = name;
	q.parent_name = parent;
	q.weight_milli = weight;
	return snapshot_add_queue(s, &q);
}

static void node(struct snapshot *s, uint32_t devices)
{
	struct snap_node n;

	snapshot_node_default(&n);
	n.name = "n1";
	n.flavor = 0;
	n.n_devices = devices;
	snapshot_add_node(s, &n);
}

static void seal(struct snapshot *s)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
}

static void used(struct snapshot *s, uint32_t q, const char *user, uint64_t amount)
{
	cr_assert(snapshot_add_usage(s, q, snapshot_user(s, user), amount));
}

static uint32_t rank(const struct snapshot *s, const uint32_t *ranks, const char *user)
{
	for (uint32_t u = 0; u < s->n_usages; u++)
		if (strcmp(s->users[s->usages[u].user], user) == 0)
			return ranks[u];
	cr_assert(false, "no user %s", user);
	return 0;
}

static void expect_ranks(struct snapshot *s, const char *const *users, const uint32_t *want)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const uint32_t *ranks;

	seal(s);
	ranks = fairtree_ranks(s, &mem);
	cr_assert_not_null(ranks);
	for (; *users; users++, want++)
		cr_expect_eq(rank(s, ranks, *users), *want, "%s has rank %u, not %u", *users,
			     rank(s, ranks, *users), *want);
	gpuq_arena_done(&mem);
	snapshot_free(s);
}

/* Shares A40{B30{u1}, C10{u2, u3}}, D60{E25{u4}, F35{u5}}; usage u1 .20, u2 .25, u4 .25. */
Test(fairtree, worked_example)
{
	static const char *const users[] = { "u5", "u4", "u1", "u3", "u2", NULL };
	static const uint32_t want[] = { 5, 4, 3, 2, 1 };
	struct snapshot *s = begin(NULL);
	uint32_t b, c, e, f;

	queue(s, "A", NULL, 40000);
	queue(s, "D", NULL, 60000);
	b = queue(s, "B", "A", 30000);
	c = queue(s, "C", "A", 10000);
	e = queue(s, "E", "D", 25000);
	f = queue(s, "F", "D", 35000);
	used(s, c, "u2", 25);
	used(s, e, "u4", 25);
	used(s, f, "u5", 0);
	used(s, c, "u3", 0);
	used(s, b, "u1", 20);
	expect_ranks(s, users, want);
}

Test(fairtree, equal_users_share_a_rank)
{
	static const char *const users[] = { "a", "b", "c", "d", NULL };
	static const uint32_t want[] = { 4, 3, 3, 1 };
	struct snapshot *s = begin(NULL);
	const uint32_t q = queue(s, "q", NULL, 1000);

	used(s, q, "b", 7);
	used(s, q, "c", 7);
	used(s, q, "d", 9);
	used(s, q, "a", 1);
	expect_ranks(s, users, want);
}

Test(fairtree, equal_queues_are_walked_as_one)
{
	/* x has a third of the weight and of the use. Without the merge both users of one
	 * queue would stand before both of the other. */
	static const char *const users[] = { "y1", "x1", "x2", "y2", NULL };
	static const uint32_t want[] = { 4, 3, 2, 1 };
	struct snapshot *s = begin(NULL);
	const uint32_t x = queue(s, "x", NULL, 1000), y = queue(s, "y", NULL, 2000);

	used(s, x, "x1", 40);
	used(s, x, "x2", 60);
	used(s, y, "y1", 70);
	used(s, y, "y2", 130);
	expect_ranks(s, users, want);
}

Test(fairtree, who_has_no_share_comes_last)
{
	static const char *const users[] = { "c", "b", "a", NULL };
	static const uint32_t want[] = { 3, 2, 1 };
	struct snapshot *s = begin(NULL);
	const uint32_t none = queue(s, "none", NULL, 0), some = queue(s, "some", NULL, 1);
	const uint32_t idle = queue(s, "idle", NULL, 1);

	used(s, none, "a", 0);
	used(s, some, "b", UINT64_C(1) << 50);
	used(s, idle, "c", 0);
	expect_ranks(s, users, want);
}

/* Every user of a queue with the larger level share stands before every user of its
 * sibling, whatever they used themselves. */
Test(fairtree, queues_come_before_users)
{
	uint64_t seed = 5;

	for (int round = 0; round < 1000; round++) {
		struct snapshot *s = begin(NULL);
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		uint64_t sum[2] = { 0 }, weights[2];
		uint32_t q[2], worst[2] = { UINT32_MAX, UINT32_MAX }, best[2] = { 0 };
		const uint32_t *ranks;
		char name[16];
		int better;

		for (int i = 0; i < 2; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			weights[i] = 1 + (seed >> 33) % 5;
			snprintf(name, sizeof(name), "q%d", i);
			q[i] = queue(s, name, NULL, (int64_t)weights[i]);
		}
		for (int i = 0; i < 8; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			snprintf(name, sizeof(name), "u%d", i);
			used(s, q[i % 2], name, (seed >> 33) % 20);
			sum[i % 2] += (seed >> 33) % 20;
		}
		seal(s);
		ranks = fairtree_ranks(s, &mem);
		for (uint32_t u = 0; u < s->n_usages; u++) {
			const uint32_t at = s->usages[u].queue;

			best[at] = ranks[u] > best[at] ? ranks[u] : best[at];
			worst[at] = ranks[u] < worst[at] ? ranks[u] : worst[at];
		}
		better = weights[0] * sum[1] > weights[1] * sum[0] ? 0 : 1;
		if (weights[0] * sum[1] != weights[1] * sum[0])
			cr_expect_gt(worst[better], best[!better]);
		gpuq_arena_done(&mem);
		snapshot_free(s);
	}
}

/* ---- terms ---- */

static const struct snap_weights bare = { .qos_full = 1, .max_age_us = 100000 };

static struct priority_terms terms_of(const struct snap_weights *w, const struct snap_job *job,
				      uint32_t others)
{
	const struct snap_group g = {
		.name = "main", .pods_min = 3, .pods_max = 3, .gpus_milli = 1000
	};
	const struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = begin(w);
	struct snap_job j = *job;
	struct priority_terms out;
	struct priority *p;

	j.queue = queue(s, "q", NULL, 1000);
	j.user = snapshot_user(s, "ann");
	j.request = snapshot_add_request(s, &r);
	j.key.id = 1;
	node(s, 12);
	used(s, j.queue, "ann", 50);
	if (others)
		used(s, j.queue, "bob", 10);
	snapshot_add_job(s, &j);
	seal(s);
	p = priority_new(s, &mem);
	cr_assert_not_null(p);
	priority_terms(p, 0, &out);
	cr_expect_eq(out.total,
		     out.age + out.fair_share + out.size + out.qos + out.boost - out.nice);
	cr_expect_eq(priority_key(p, 0), (uint64_t)out.total + (UINT64_C(1) << 63));
	gpuq_arena_done(&mem);
	snapshot_free(s);
	return out;
}

static struct snap_job waiting(int64_t since_us)
{
	struct snap_job j;

	snapshot_job_default(&j);
	j.submit_us = 1;
	j.eligible_us = since_us;
	return j;
}

Test(priority, age)
{
	struct snap_weights w = bare;
	struct snap_job j = waiting(NOW - 59534);

	w.age = 10;
	cr_expect_eq(terms_of(&w, &j, 0).age, 5);
	j.eligible_us = NOW - 50002;
	cr_expect_eq(terms_of(&w, &j, 0).age, 5);
	w.age = 1000;
	cr_expect_eq(terms_of(&w, &j, 0).age, 500);
	j.eligible_us = NOW - 100000;
	cr_expect_eq(terms_of(&w, &j, 0).age, 1000);
	j.eligible_us = 1;
	cr_expect_eq(terms_of(&w, &j, 0).age, 1000, "it saturates");
	j.eligible_us = NOW + 5;
	cr_expect_eq(terms_of(&w, &j, 0).age, 0);
	w.age = INT64_C(1) << 60; /* no overflow in between */
	j.eligible_us = NOW - 50000;
	cr_expect_eq(terms_of(&w, &j, 0).age, INT64_C(1) << 59);
}

Test(priority, stretch)
{
	const int64_t hour = 3600 * GPUQ_US_PER_S;
	struct snap_weights w = { .qos_full = 1, .max_age_us = hour, .stretch = 7 };

	cr_expect_eq(priority_of_wait(&w, 2 * hour - 1, 2 * hour, 0), 0);
	cr_expect_eq(priority_of_wait(&w, 2 * hour, 2 * hour, 0), 7);
	cr_expect_eq(priority_of_wait(&w, 5 * hour, 2 * hour, 0), 14, "whole times count");
	cr_expect_eq(priority_of_wait(&w, hour - 1, 1, 0), 0, "an hour at least");
	cr_expect_eq(priority_of_wait(&w, hour, 1, 0), 7);
	cr_expect_eq(priority_of_wait(&w, 1000 * hour, 1, 0), 700, "a hundred times at most");
	cr_expect_eq(priority_of_wait(&w, 1000 * hour, GPUQ_UNLIMITED, 0), 0);
	cr_expect_eq(priority_of_wait(&w, -hour, hour, 0), 0);
	w.age = 1000;
	cr_expect_eq(priority_of_wait(&w, hour, hour, 0), 1007, "it adds to the age");
}

Test(priority, evictions_make_older)
{
	struct snap_weights w = bare;
	struct snap_job j = waiting(NOW - 10000);

	w.age = 1000;
	w.evict_step_milli = 125;
	j.n_evicted_day = 1;
	cr_expect_eq(terms_of(&w, &j, 0).age, 225);
	j.n_evicted_day = 2;
	cr_expect_eq(terms_of(&w, &j, 0).age, 350);
	j.n_evicted_day = 100;
	cr_expect_eq(terms_of(&w, &j, 0).age, 1000);
}

Test(priority, classes)
{
	struct snap_weights w = bare;
	struct snap_job j = waiting(NOW);

	w.qos = 5000;
	w.qos_full = 20;
	j.priority = 20;
	cr_expect_eq(terms_of(&w, &j, 0).qos, 5000);
	j.priority = 10;
	cr_expect_eq(terms_of(&w, &j, 0).qos, 2500);
	j.priority = -10;
	cr_expect_eq(terms_of(&w, &j, 0).qos, -2500);
	w.qos = INT64_C(1000000000000);
	w.qos_full = 1;
	j.priority = 1000000000;
	cr_expect_eq(terms_of(&w, &j, 0).qos, INT64_C(1) << 61, "it stops");
	j.priority = INT64_MIN;
	cr_expect_eq(terms_of(&w, &j, 0).qos, -(INT64_C(1) << 61));
}

Test(priority, fair_share_size_and_nice)
{
	struct snap_weights w = bare;
	struct snap_job j = waiting(NOW);
	struct priority_terms t;

	w.fair_share = 1000;
	w.size = 400;
	j.nice = 30;
	j.boost = 7;
	t = terms_of(&w, &j, 0);
	cr_expect_eq(t.fair_share, 1000, "alone she is the first");
	cr_expect_eq(t.size, 100, "3 of 12 devices");
	cr_expect_eq(t.total, 1000 + 100 + 7 - 30);
	t = terms_of(&w, &j, 1);
	cr_expect_eq(t.fair_share, 500);
}

Test(priority, class_then_fair_share_then_age)
{
	struct snap_weights w;
	struct snap_job low = waiting(1), high = waiting(NOW);
	struct priority_terms first, last;

	snapshot_weights_default(&w);
	high.priority = 1;
	first = terms_of(&w, &high, 1);
	last = terms_of(&w, &low, 0);
	cr_expect_gt(first.total, last.total, "a class above everything else");
	high.priority = 0;
	first = terms_of(&w, &high, 0);
	last = terms_of(&w, &low, 1);
	cr_expect_gt(first.total, last.total, "the user before the age");
	cr_expect_gt(terms_of(&w, &low, 0).total, first.total, "the age at last");
}

Test(priority, exempt_after_many_evictions)
{
	const struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1 };
	const struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snapshot *s = begin(NULL);
	struct snap_job j = waiting(1);

	j.queue = queue(s, "q", NULL, 1000);
	j.user = snapshot_user(s, "ann");
	j.request = snapshot_add_request(s, &r);
	j.state = SNAP_RUNNING;
	for (uint32_t i = 0; i < 4; i++) {
		j.key.id = i + 1;
		j.n_evicted_day = i < 1 ? 2 : 3;
		j.start_us = NOW - (i == 3 ? 41 : 39) * 1000;
		snapshot_add_job(s, &j);
	}
	seal(s);
	cr_expect(!priority_exempt(s, 0, 10000), "twice is not often");
	cr_expect(priority_exempt(s, 1, 10000), "39 ms of 40");
	cr_expect(!priority_exempt(s, 3, 10000), "it ran four times what protects it");
	cr_expect(priority_exempt(s, 3, 0), "nothing else protects it");
	s->config.exempt_evictions = 0;
	cr_expect(!priority_exempt(s, 1, 10000));
	snapshot_free(s);
}

/* ---- sorting by numbers ---- */

Test(priority, sorting_keeps_equals_in_place)
{
	enum { N = 3000 };
	static struct sort_pair p[N], scratch[N];
	uint64_t seed = 7;

	for (int round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < N; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			p[i] = (struct sort_pair){ round % 2 ? seed >> 20 & 0xff00ff
							     : seed >> (round * 3),
						   i };
		}
		sort_pairs(p, scratch, N);
		for (uint32_t i = 1; i < N; i++)
			cr_assert(p[i - 1].key < p[i].key ||
				  (p[i - 1].key == p[i].key && p[i - 1].ix < p[i].ix));
	}
}
