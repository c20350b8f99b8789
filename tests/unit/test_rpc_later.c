/* Long calls: replies in later turns, streams, limits of open calls, replies that are held back. */
#include "tests/unit/rpc_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"

TestSuite(rpc_later, .init = rig_setup, .fini = rig_teardown);

Test(rpc_later, an_answer_may_come_later)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "later", "{}");
	say(&p, 2, "echo", "{}");
	HEAR(&p, "[1,2,null,{}]");
	HEAR(&p, "");
	rpc_reply(seen.call, gpuq_str(rpc_call_arena(seen.call), "at last"));
	HEAR(&p, "[1,1,null,\"at last\"]");
	peer_done(&p);
}

Test(rpc_later, an_answer_to_nobody_is_dropped)
{
	struct peer p = greeted(1000, "ann");
	struct rpc_stats stats;

	say(&p, 1, "later", "{}");
	peer_done(&p);
	rpc_server_stats(server, &stats);
	cr_expect(stats.connections == 0 && stats.open_calls == 1);
	cr_expect_eq(seen.closed, 0, "it did not ask to be told");
	cr_expect(rpc_item(seen.call, NULL), "an item to nobody is taken");
	rpc_reply(seen.call, gpuq_str(rpc_call_arena(seen.call), "too late"));
	rpc_server_stats(server, &stats);
	cr_expect_eq(stats.open_calls, 0);
}

Test(rpc_later, a_method_is_told_when_nobody_listens)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "later", "{watch: true}");
	peer_done(&p);
	cr_expect_eq(seen.closed, GPUQ_EGONE);
	cr_expect_null(seen.call);

	/* Also when it asks only afterwards. */
	p = greeted(1000, "ann");
	say(&p, 1, "later", "{}");
	peer_done(&p);
	seen.closed = 0;
	rpc_call_watch(seen.call, NULL, on_closed, seen.call);
	turn();
	cr_expect_eq(seen.closed, GPUQ_EGONE);
}

Test(rpc_later, cancel_answers_at_once)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "later", "{watch: true}");
	say_note(&p, gpuq_wire_cancel, 1);
	HEAR(&p, "[1,1,{\"code\":11,\"name\":\"cancelled\",\"msg\":\"cancelled\"},null]");
	HEAR(&p, "");
	cr_expect_eq(seen.closed, GPUQ_ECANCELED);
	/* A call that cannot be cancelled replies as ever; a cancel of an unknown call is
	 * ignored. */
	say(&p, 2, "later", "{}");
	say_note(&p, gpuq_wire_cancel, 2);
	say_note(&p, gpuq_wire_cancel, 77);
	HEAR(&p, "");
	rpc_reply(seen.call, NULL);
	HEAR(&p, "[1,2,null,null]");
	peer_done(&p);
}

static unsigned hear_items(struct peer *p, uint32_t id, unsigned first)
{
	char want[64];
	unsigned n = 0;

	for (;; n++) {
		const char *got = hear(p);

		snprintf(want, sizeof(want), "[2,\"$/item\",[%u,%u,%u]]", id, first + n + 1,
			 first + n);
		if (strcmp(got, want) != 0) {
			cr_expect_str_eq(got, "", "instead of item %u", first + n);
			return n;
		}
	}
}

Test(rpc_later, a_stream_keeps_to_its_credit)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "count", "{n: 100}");
	cr_expect_eq(hear_items(&p, 1, 0), GPUQ_STREAM_CREDIT);
	cr_expect_eq(seen.resumed, 1);
	say_note(&p, grant_10, 1);
	cr_expect_eq(hear_items(&p, 1, 64), 10);
	cr_expect_eq(seen.resumed, 2);
	say_note(&p, grant_10, 99);
	HEAR(&p, "");
	for (int i = 0; i < 3; i++)
		say_note(&p, grant_10, 1);
	for (unsigned i = 74; i < 100; i++)
		HEAR_START(&p, "[2,\"$/item\",[1,");
	HEAR(&p, "[1,1,null,null]");
	HEAR(&p, "");
	peer_done(&p);
}

Test(rpc_later, a_stream_can_be_cancelled)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "count", "{n: 1000}");
	cr_expect_eq(hear_items(&p, 1, 0), 64);
	say_note(&p, gpuq_wire_cancel, 1);
	HEAR_START(&p, "[1,1,{\"code\":11,");
	cr_expect_eq(seen.closed, GPUQ_ECANCELED);
	say_note(&p, grant_10, 1);
	HEAR(&p, "");
	peer_done(&p);
}

Test(rpc_later, two_streams_do_not_share_their_credit)
{
	struct peer p = greeted(1000, "ann");
	unsigned from[2] = { 0, 0 };
	const char *got;

	say(&p, 1, "count", "{n: 70}");
	say(&p, 2, "flood", "{bytes: 3}");
	while (*(got = hear(&p))) {
		from[0] += starts(got, "[2,\"$/item\",[1,");
		from[1] += starts(got, "[2,\"$/item\",[2,");
	}
	cr_expect_eq(from[0], 64);
	cr_expect_eq(from[1], 64);
	say_note(&p, grant_10, 1);
	for (int i = 0; i < 6; i++)
		HEAR_START(&p, "[2,\"$/item\",[1,");
	HEAR(&p, "[1,1,null,null]");
	HEAR(&p, "");
	peer_done(&p);
	cr_expect_eq(seen.closed, GPUQ_EGONE);
}

Test(rpc_later, a_stream_waits_for_a_slow_reader)
{
	struct peer p = greeted(1000, "ann");

	/* 64 items of a megabyte are credited, but only as many made as may wait. */
	say(&p, 1, "flood", "{bytes: 1000000}");
	cr_expect_eq(seen.sent, 2);
	cr_expect(p.conn->calls->paused);
	while (*hear(&p))
		;
	cr_expect_not(p.conn->calls->paused, "resume is called when the output has drained");
	peer_done(&p);
}

Test(rpc_later, an_item_that_is_too_large_fails_its_call)
{
	struct peer p = greeted(1000, "ann");
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	char *text = calloc(1, GPUQ_MSG_BYTES_MAX);

	say(&p, 1, "later", "{watch: true}");
	memset(text, 'x', GPUQ_MSG_BYTES_MAX);
	cr_expect(rpc_item(seen.call, gpuq_strn(&a, text, GPUQ_MSG_BYTES_MAX)));
	cr_expect_eq(seen.closed, 0, "not while the method is at it");
	HEAR_START(&p, "[1,1,{\"code\":8,\"name\":\"too_big\"");
	cr_expect_eq(seen.closed, GPUQ_EGONE);
	gpuq_arena_done(&a);
	free(text);
	peer_done(&p);
}

Test(rpc_later, who_does_not_read_is_let_go)
{
	struct peer p = greeted(1000, "ann");
	struct rpc_stats stats;

	/* Twelve answers of a megabyte each, none read. */
	for (uint32_t id = 1; id <= 12; id++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		char *text = calloc(1, 1 << 20);

		say(&p, id, "later", "{}");
		memset(text, 'x', 1 << 20);
		rpc_reply(seen.call, gpuq_strn(&a, text, 1 << 20));
		gpuq_arena_done(&a);
		free(text);
		turn();
		if (p.conn->close_timer)
			break;
	}
	cr_expect_not_null(p.conn->close_timer, "it is being closed");
	cr_expect_lt(p.conn->out.len - p.conn->sent + p.conn->held_bytes,
		     GPUQ_OUTPUT_BYTES_MAX + (2 << 20));
	peer_done(&p);
	rpc_server_stats(server, &stats);
	cr_expect_eq(stats.connections, 0);
}

Test(rpc_later, calls_without_an_answer_are_limited)
{
	struct peer p = greeted(1000, "ann");

	for (uint32_t id = 1; id <= GPUQ_OUTSTANDING_MAX; id++)
		say(&p, id, "later", "{watch: true}");
	HEAR(&p, "");
	say(&p, 1000, "echo", "{}");
	HEAR_START(&p, "[1,1000,{\"code\":14,\"name\":\"busy\"");
	rpc_reply(seen.call, NULL);
	HEAR_START(&p, "[1,128,null,null]");
	say(&p, 1000, "echo", "{}");
	HEAR(&p, "[1,1000,null,{}]");
	say(&p, 5, "echo", "{}");
	HEAR_START(&p, "[2,\"$/error\",[{\"code\":9,\"name\":\"protocol\",\"msg\":\"id 5 belongs");
	peer_done(&p);
}

static void let_go(size_t i, int rc)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (rc)
		gpuq_fail(&err, rc, "no space");
	seen.held[i].fn(seen.held[i].arg, rc, rc ? &err : NULL);
}

Test(rpc_later, nothing_leaves_before_it_may)
{
	struct peer p = greeted(1000, "ann");

	seen.hold = true;
	say(&p, 1, "echo", "{a: 1}");
	say(&p, 2, "echo", "{a: 2}");
	say(&p, 3, "nothing", "{}");
	say(&p, 4, "echo", "{a: 4}");
	HEAR(&p, "");
	cr_assert_eq(seen.n_held, 4);
	let_go(1, 0);
	HEAR(&p, "");
	let_go(0, 0);
	HEAR(&p, "[1,1,null,{\"a\":1}]");
	HEAR(&p, "[1,2,null,{\"a\":2}]");
	HEAR(&p, "");
	let_go(3, 0);
	let_go(2, 0);
	HEAR_START(&p, "[1,3,{\"code\":10,");
	HEAR(&p, "[1,4,null,{\"a\":4}]");
	peer_done(&p);
}

Test(rpc_later, what_could_not_be_stored_is_answered_so)
{
	struct peer p = greeted(1000, "ann");

	seen.hold = true;
	say(&p, 1, "echo", "{a: 1}");
	let_go(0, GPUQ_ESTORAGE);
	HEAR(&p, "[1,1,{\"code\":15,\"name\":\"storage_full\",\"msg\":\"no space\"},null]");
	say(&p, 2, "count", "{n: 100}");
	cr_assert_eq(seen.n_held, 65);
	let_go(1, 0);
	let_go(2, GPUQ_ESTORAGE); /* the second item */
	cr_expect_eq(seen.closed, 0);
	turn();
	cr_expect_eq(seen.closed, GPUQ_EGONE, "the stream cannot go on");
	for (size_t i = 3; i < seen.n_held; i++)
		let_go(i, 0);
	HEAR(&p, "[2,\"$/item\",[2,1,0]]");
	for (int i = 3; i <= 64; i++)
		HEAR_START(&p, "[2,\"$/item\",[2,");
	HEAR(&p, "[1,2,{\"code\":15,\"name\":\"storage_full\",\"msg\":\"no space\"},null]");
	HEAR(&p, "");
	peer_done(&p);
}

Test(rpc_later, held_answers_survive_their_connection)
{
	struct peer p = greeted(1000, "ann");

	seen.hold = true;
	say(&p, 1, "echo", "{a: 1}");
	say(&p, 2, "echo", "{a: 2}");
	let_go(1, 0);
	peer_done(&p);
	let_go(0, 0); /* under the address sanitizer this would tell */
	turn();
}

Test(rpc_later, stopping_lets_answers_leave_first)
{
	struct peer p = greeted(1000, "ann"), q = greeted(1001, "bob");
	struct rpc_stats stats;

	seen.hold = true;
	say(&p, 1, "echo", "{}");
	rpc_server_stop(server);
	HEAR_START(&q, "[2,\"$/error\",[{\"code\":13,\"name\":\"unreachable\"");
	HEAR(&q, "end");
	HEAR_START(&p, "[2,\"$/error\"");
	HEAR(&p, "");
	let_go(0, 0);
	HEAR(&p, "[1,1,null,{}]");
	HEAR(&p, "end");
	rpc_server_stats(server, &stats);
	cr_expect_eq(stats.connections, 0);
	peer_done(&p);
	peer_done(&q);
}

Test(rpc_later, idle_connections_end_and_open_calls_are_pinged)
{
	struct peer p = greeted(1000, "ann"), q = greeted(1000, "ann");
	const int64_t now = loop_mono_us(loop);

	say(&q, 1, "later", "{}");
	conn_sweep(p.conn, now + 29 * INT64_C(1000000));
	conn_sweep(q.conn, now + 29 * INT64_C(1000000));
	HEAR(&p, "");
	HEAR(&q, "");
	conn_sweep(q.conn, now + 61 * INT64_C(1000000));
	HEAR(&q, "[2,\"$/ping\",[]]");
	conn_sweep(p.conn, now + 700 * INT64_C(1000000));
	conn_sweep(q.conn, now + 700 * INT64_C(1000000));
	HEAR_START(&p, "[2,\"$/error\",[{\"code\":12,\"name\":\"timeout\"");
	HEAR(&p, "end");
	HEAR(&q, "[2,\"$/ping\",[]]");
	HEAR(&q, "");
	rpc_reply(seen.call, NULL);
	peer_done(&p);
	peer_done(&q);
}

static void item_1(struct gpuq_buf *b, uint32_t id)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	gpuq_wire_item(b, id, 1, gpuq_str(&a, "one"));
	gpuq_arena_done(&a);
}

static void item_2(struct gpuq_buf *b, uint32_t id)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	gpuq_wire_item(b, id, 2, gpuq_str(&a, "two"));
	gpuq_arena_done(&a);
}

Test(rpc_later, a_client_sends_items_as_far_as_it_was_asked_to)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "later", "{watch: true}");
	rpc_call_take(seen.call, on_item);
	rpc_call_grant(seen.call, 2);
	HEAR(&p, "[2,\"$/credit\",[1,2]]");
	say_note(&p, item_1, 1);
	say_note(&p, item_2, 1);
	cr_expect_str_eq(seen.items, "\"one\" \"two\" ");
	rpc_reply(seen.call, NULL);
	HEAR(&p, "[1,1,null,null]");
	/* It crossed with the end of its call, which is not an error. */
	say_note(&p, item_1, 1);
	HEAR(&p, "");
	peer_done(&p);
}

Test(rpc_later, items_beyond_the_credit_or_out_of_order_end_the_connection)
{
	static void (*const wrong[])(struct gpuq_buf * b, uint32_t id) = { item_1, item_2 };

	for (size_t i = 0; i < 2; i++) {
		struct peer p = greeted(1000, "ann");

		say(&p, 1, "later", "{watch: true}");
		rpc_call_take(seen.call, on_item);
		rpc_call_grant(seen.call, (unsigned)i); /* none; one, which must be the first */
		if (i > 0)
			HEAR(&p, "[2,\"$/credit\",[1,1]]");
		say_note(&p, wrong[i], 1);
		HEAR_START(&p, "[2,\"$/error\",");
		cr_expect_str_eq(seen.items, "");
		peer_done(&p);
		turn();
	}
}
