/* Bytes in flight are bounded; hello and short calls are taken while the bounds are full. */
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "tests/unit/rpc_rig.h"

#define HEAVY_AT_ONCE (GPUQ_FLIGHT_BYTES_PER_USER / GPUQ_MSG_BYTES_MAX)

TestSuite(flight, .init = rig_setup, .fini = rig_teardown);

static struct rpc_stats stats(void)
{
	struct rpc_stats s;

	turn();
	rpc_server_stats(server, &s);
	return s;
}

/* A call of so many bytes, of which the first n_bytes are said. */
static struct gpuq_buf begin(struct peer *p, uint32_t id, const char *method, size_t size,
			     size_t n_bytes)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *m = gpuq_map(&a);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	char *text = malloc(size);

	memset(text, 'x', size);
	gpuq_put(&a, m, "t", gpuq_strn(&a, text, size));
	gpuq_wire_request(&b, id, method, m);
	say_bytes(p, b.data, n_bytes < b.len ? n_bytes : b.len);
	gpuq_arena_done(&a);
	free(text);
	return b;
}

static void begin_only(struct peer *p, const char *method, size_t size, size_t n_bytes)
{
	struct gpuq_buf b = begin(p, 1, method, size, n_bytes);

	gpuq_buf_done(&b);
}

/* Connections of a user whose unfinished messages fill its bound. */
static void fill(struct peer *all, uid_t uid, const char *user)
{
	for (unsigned i = 0; i < HEAVY_AT_ONCE; i++) {
		all[i] = greeted(uid, user);
		begin_only(&all[i], "heavy", 1u << 20, GPUQ_MSG_BYTES_SMALL + 100);
	}
}

static void leave(struct peer *all)
{
	for (unsigned i = 0; i < HEAVY_AT_ONCE; i++)
		peer_done(&all[i]);
}

Test(flight, a_message_is_as_long_as_its_method_allows)
{
	struct peer p = greeted(1000, "ann"), q = greeted(1000, "ann");
	struct gpuq_buf b = begin(&p, 1, "plain", GPUQ_MSG_BYTES_PLAIN - 100, SIZE_MAX);

	HEAR_START(&p, "[1,1,null");
	begin_only(&q, "plain", 1u << 20, GPUQ_MSG_BYTES_PLAIN + 20000);
	HEAR_START(&q, "[2,\"$/error\",[{\"code\":8,\"name\":\"too_big\"");
	gpuq_buf_done(&b);
	peer_done(&p);
	peer_done(&q);
	cr_expect_eq(stats().flight_bytes, 0);
}

Test(flight, a_long_message_of_no_method_is_refused)
{
	struct peer p = greeted(1000, "ann");

	begin_only(&p, "nosuch", 1u << 20, GPUQ_MSG_BYTES_PLAIN + 20000);
	HEAR_START(&p, "[2,\"$/error\",[{\"code\":8,\"name\":\"too_big\"");
	peer_done(&p);
	cr_expect_eq(stats().flight_bytes, 0);
}

Test(flight, a_user_has_a_bound_and_short_calls_beyond_it)
{
	struct peer all[HEAVY_AT_ONCE], late = greeted(1000, "ann"), p, q = greeted(1001, "bob");
	struct gpuq_buf b;

	fill(all, 1000, "ann");
	cr_expect_eq(stats().flight_bytes, GPUQ_FLIGHT_BYTES_PER_USER);
	cr_expect_eq(stats().waiting, 0);
	b = begin(&late, 7, "heavy", 1u << 20, GPUQ_MSG_BYTES_SMALL + 100);
	cr_expect_eq(stats().waiting, 1);
	cr_expect_eq(stats().flight_bytes, GPUQ_FLIGHT_BYTES_PER_USER, "it is not read");
	p = greeted(1000, "ann"); /* hello is answered */
	say(&p, 1, "plain", "{a: 1}");
	HEAR(&p, "[1,1,null,{\"a\":1}]");
	begin_only(&q, "heavy", 1u << 20, GPUQ_MSG_BYTES_SMALL + 100);
	cr_expect_eq(stats().waiting, 1, "another user has its own");
	/* One of them goes: the one that waited comes to its end. */
	peer_done(&all[3]);
	cr_expect_eq(stats().waiting, 0);
	say_bytes(&late, b.data + GPUQ_MSG_BYTES_SMALL + 100, b.len - GPUQ_MSG_BYTES_SMALL - 100);
	cr_assert_not_null(seen.call);
	cr_expect_eq(stats().flight_bytes, GPUQ_FLIGHT_BYTES_PER_USER + b.len,
		     "a call counts as long as it is");
	rpc_reply(seen.call, NULL);
	HEAR(&late, "[1,7,null,null]");
	gpuq_buf_done(&b);
	leave(all);
	peer_done(&late);
	peer_done(&p);
	peer_done(&q);
	cr_expect_eq(stats().flight_bytes, 0);
}

Test(flight, all_users_have_a_bound_and_the_one_with_least_goes_first)
{
	static const char *const users[] = { "ann", "bob", "cat", "dan" };
	struct peer all[4][HEAVY_AT_ONCE], ann = greeted(1000, "ann"), fay = greeted(2000, "fay"),
					   op = greeted(4321, "root2"), p;

	for (unsigned i = 0; i < 4; i++)
		fill(all[i], 1000 + i, users[i]);
	cr_expect_eq(stats().flight_bytes, GPUQ_FLIGHT_BYTES_MAX);
	begin_only(&ann, "heavy", 1u << 20, GPUQ_MSG_BYTES_SMALL + 100);
	begin_only(&fay, "heavy", 1u << 20, GPUQ_MSG_BYTES_SMALL + 100);
	cr_expect_eq(stats().waiting, 2);
	p = greeted(2001, "gus"); /* hello is answered */
	say(&p, 1, "plain", "{}");
	HEAR(&p, "[1,1,null,{}]");
	begin_only(&op, "heavy", 1u << 20, GPUQ_MSG_BYTES_SMALL + 100);
	cr_expect_eq(stats().waiting, 2, "an operator does not wait for others");
	peer_done(&op);
	peer_done(&all[0][0]); /* one of ann's */
	cr_expect_eq(stats().waiting, 1);
	cr_expect_eq(fay.conn->waits, 0, "fay has less");
	cr_expect_gt(ann.conn->waits, 0);
	for (unsigned i = 0; i < 4; i++)
		leave(all[i]);
	cr_expect_eq(stats().waiting, 0);
	peer_done(&ann);
	peer_done(&fay);
	peer_done(&p);
	cr_expect_eq(stats().flight_bytes, 0);
}

Test(flight, a_whole_message_that_waited_is_taken)
{
	struct peer all[HEAVY_AT_ONCE], p = greeted(1000, "ann");
	struct gpuq_buf b;

	fill(all, 1000, "ann");
	b = begin(&p, 7, "echo", GPUQ_MSG_BYTES_SMALL + 1, SIZE_MAX);
	cr_expect_eq(stats().waiting, 1);
	HEAR(&p, "");
	leave(all);
	HEAR_START(&p, "[1,7,null,{\"t\":\"xxx");
	gpuq_buf_done(&b);
	peer_done(&p);
	cr_expect_eq(stats().flight_bytes, 0);
}

Test(flight, calls_under_way_count)
{
	enum { N_PEERS = 3, EACH = 3 << 20 };
	struct peer all[N_PEERS];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	size_t n = 0;

	for (unsigned i = 0; i < N_PEERS; i++) {
		all[i] = greeted(1000, "ann");
	}
	/* Calls without a reply: in the end no more is read from the client. */
	for (uint32_t id = 1; stats().waiting == 0; id++) {
		cr_assert_lt(id, 100);
		b = begin(&all[id % N_PEERS], id, "heavy", EACH, GPUQ_MSG_BYTES_SMALL + 100);
		if (stats().waiting == 0) {
			say_bytes(&all[id % N_PEERS], b.data + GPUQ_MSG_BYTES_SMALL + 100,
				  b.len - GPUQ_MSG_BYTES_SMALL - 100);
			n++;
		}
		gpuq_buf_done(&b);
	}
	cr_expect_geq(n, 18);
	cr_expect_leq(stats().flight_bytes, GPUQ_FLIGHT_BYTES_PER_USER);
	for (unsigned i = 0; i < N_PEERS; i++)
		peer_done(&all[i]);
}

Test(flight, replies_that_are_not_read_count)
{
	enum { N_PEERS = 200 };
	struct peer *all = calloc(N_PEERS, sizeof(*all));
	size_t least = SIZE_MAX;

	for (unsigned i = 0; i < N_PEERS; i++) {
		all[i] = greeted(1000, "ann");
		say(&all[i], 1, "flood", "{bytes: 60000}");
		least = all[i].conn->counted < least ? all[i].conn->counted : least;
	}
	cr_expect_leq(stats().flight_bytes,
		      GPUQ_FLIGHT_BYTES_PER_USER + N_PEERS * (GPUQ_OUTPUT_BYTES_SMALL + 70000),
		      "%zu", (size_t)stats().flight_bytes);
	cr_expect_lt(least, 200000, "where the bound is full a stream waits earlier");
	for (unsigned i = 0; i < N_PEERS; i++)
		peer_done(&all[i]);
	cr_expect_eq(stats().flight_bytes, 0);
	free(all);
}

Test(flight, connections_beyond_the_limit_are_for_short_calls)
{
	struct peer a, b, c;

	rpc_server_set_connections(server, 2);
	a = greeted(1000, "ann");
	b = greeted(1000, "ann");
	c = greeted(1000, "ann");
	say(&b, 1, "lasting", "{}");
	HEAR(&b, "");
	say(&c, 1, "plain", "{}");
	HEAR(&c, "[1,1,null,{}]");
	say(&c, 2, "lasting", "{}");
	HEAR_START(&c, "[1,2,{\"code\":");
	cr_expect_str_eq(gpuq_err_name(GPUQ_EBUSY), "busy");
	peer_done(&a);
	say(&c, 3, "lasting", "{}");
	HEAR(&c, "");
	peer_done(&b);
	peer_done(&c);
}

/* How many of these calls, step_us apart, are let through. */
static unsigned passes(struct flight_user *u, bool submits, unsigned n, int64_t *now_us,
		       int64_t step_us)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < n; i++, *now_us += step_us) {
		const int64_t wait_us = flight_pace(u, submits, *now_us);

		passed += wait_us == 0;
		cr_assert(wait_us <= 1000000 / GPUQ_SUBMITS_PER_S);
	}
	return passed;
}

Test(flight, a_user_has_a_burst_of_calls_and_then_so_many_a_second)
{
	struct flight_user u = { .connections = 0 };
	int64_t now_us = INT64_C(5000000000);

	cr_assert_eq(passes(&u, false, 2000, &now_us, 0), GPUQ_CALLS_BURST);
	cr_assert_eq(passes(&u, false, 1001, &now_us, 1000), GPUQ_CALLS_PER_S);
	now_us += INT64_C(3600000000);
	cr_assert_eq(passes(&u, true, 2000, &now_us, 0), GPUQ_SUBMITS_BURST);
	/* Other calls are not held by those of submit. */
	cr_assert_eq(passes(&u, false, 2000, &now_us, 0), GPUQ_CALLS_BURST - GPUQ_SUBMITS_BURST);
	now_us += INT64_C(60000000);
	cr_assert_eq(passes(&u, true, GPUQ_SUBMITS_BURST, &now_us, 0), GPUQ_SUBMITS_BURST);
	cr_assert_eq(passes(&u, true, 1001, &now_us, 1000), GPUQ_SUBMITS_PER_S);
}
