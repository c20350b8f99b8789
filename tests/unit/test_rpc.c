/* The protocol, byte by byte: hello, calls, refusals, bytes that are none. */
#include "tests/unit/rpc_rig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libgpuq/limits.h"

TestSuite(rpc, .init = rig_setup, .fini = rig_teardown);

Test(rpc, hello_tells_who_is_who)
{
	struct peer p = peer_as(1000, "ann");

	say(&p, 5, "hello", "{proto: [1, 7], client: test, future: {x: 1}}");
	HEAR(&p,
	     "[1,5,null,{\"version\":\"1\",\"proto\":[1,0],\"server\":\"test/1\",\"user\":\"ann\","
	     "\"role\":\"user\",\"auth\":\"unix\",\"limits\":{\"message_bytes\":4194304,"
	     "\"outstanding\":128,"
	     "\"stream_credit\":64},\"cluster\":{\"kind\":\"test\"}}]");
	cr_expect_null(p.conn->hello_timer, "hello is no longer awaited");
	peer_done(&p);
}

Test(rpc, refuses_what_is_no_hello)
{
	static const struct {
		const char *method, *params, *want;
	} cases[] = {
		{ "echo", "{}",
		  "[2,\"$/error\",[{\"code\":9,\"name\":\"protocol\",\"msg\":\"the first call" },
		{ "hello", "{}",
		  "[2,\"$/error\",[{\"code\":9,\"name\":\"protocol\",\"msg\":\"hello needs" },
		{ "hello", "{proto: [x]}", "[2,\"$/error\",[{\"code\":9," },
		{ "hello", "{proto: [2, 0], client: x}",
		  "[2,\"$/error\",[{\"code\":20,\"name\":\"version\"" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct peer p = peer_as(1000, "ann");

		say(&p, 1, cases[i].method, cases[i].params);
		HEAR_START(&p, cases[i].want);
		HEAR(&p, "end");
		peer_done(&p);
	}
}

Test(rpc, answers_and_refuses)
{
	static const struct {
		const char *method, *params, *want;
	} cases[] = {
		{ "echo", "{x: [1, {y: z}]}", "[1,1,null,{\"x\":[1,{\"y\":\"z\"}]}]" },
		{ "echo", "{}", "[1,1,null,{}]" },
		{ "echo", "null", "[1,1,null,{}]" },
		{ "who", "{$: {k: once, dl: 5000, future: 1}}",
		  "[1,1,null,{\"user\":\"ann\",\"role\":\"user\",\"key\":\"once\",\"dl\":true}]" },
		{ "who", "{$: {}}",
		  "[1,1,null,{\"user\":\"ann\",\"role\":\"user\",\"key\":null,\"dl\":false}]" },
		{ "who", "{$: {k: ''}}",
		  "[1,1,{\"code\":1,\"name\":\"invalid\",\"msg\":\"a key is text of 1 to 128 "
		  "bytes\",\"field\":\"$.k\"},null]" },
		{ "who", "{$: {k: 5}}", "[1,1,{\"code\":1,\"name\":\"invalid\"" },
		{ "who", "{$: {dl: -1}}",
		  "[1,1,{\"code\":1,\"name\":\"invalid\",\"msg\":\"a deadline" },
		{ "who", "{$: {dl: 99999999999999}}", "[1,1,{\"code\":1,\"name\":\"invalid\"" },
		{ "add", "{a: 1, b: 1us, later_version: 1}", "[1,1,null,2]" },
		{ "add", "{a: 7}",
		  "[1,1,{\"code\":2,\"name\":\"not_found\",\"msg\":\"there is no "
		  "7\",\"field\":\"a\"},null]" },
		{ "add", "{a: 11}",
		  "[1,1,{\"code\":6,\"name\":\"range\",\"msg\":\"a: expected 0 to 10, found 11\","
		  "\"field\":\"a\"},null]" },
		{ "add", "{}", "[1,1,{\"code\":1,\"name\":\"invalid\",\"msg\":\"a: missing" },
		{ "nothing", "{}",
		  "[1,1,{\"code\":10,\"name\":\"no_such_method\",\"msg\":\"this server has no "
		  "method 'nothing'\"},null]" },
		{ "hello", "{proto: [1, 0]}", "[1,1,{\"code\":10," },
		{ "for.manager", "{}",
		  "[1,1,{\"code\":4,\"name\":\"denied\",\"msg\":\"for.manager is for managers; "
		  "ann is a user\"},null]" },
		{ "for.operator", "{}", "[1,1,{\"code\":4,\"name\":\"denied\"" },
		{ "big", "{}", "[1,1,{\"code\":8,\"name\":\"too_big\"" },
	};
	struct peer p = greeted(1000, "ann");

	for (size_t i = 0; i < N(cases); i++) {
		say(&p, 1, cases[i].method, cases[i].params);
		HEAR_START(&p, cases[i].want);
		HEAR(&p, "");
	}
	peer_done(&p);
}

Test(rpc, roles_follow_from_who_connects)
{
	const struct {
		uid_t uid;
		const char *user;
		bool manager, operator_;
	} cases[] = {
		{ 1000, "ann", false, false },     { 1001, "eve", true, false },
		{ 1002, "root2", true, true },     { 4321, "someone", true, true },
		{ geteuid(), "self", true, true },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct peer p = greeted(cases[i].uid, cases[i].user);

		say(&p, 1, "for.manager", "{}");
		HEAR_START(&p, cases[i].manager ? "[1,1,null" : "[1,1,{\"code\":4,");
		say(&p, 2, "for.operator", "{}");
		HEAR_START(&p, cases[i].operator_ ? "[1,2,null" : "[1,2,{\"code\":4,");
		peer_done(&p);
	}
}

Test(rpc, operators_can_change_while_connected)
{
	static const char *const names[] = { "ann", NULL };
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "for.operator", "{}");
	HEAR_START(&p, "[1,1,{\"code\":4,");
	cr_assert_eq(rpc_server_set_operators(server, names, NULL), 0);
	say(&p, 2, "for.operator", "{}");
	HEAR_START(&p, "[1,2,null");
	peer_done(&p);
}

Test(rpc, bad_bytes_end_the_connection)
{
	static const struct {
		const char *what, *bytes;
		size_t n;
		const char *want;
	} cases[] = {
		{ "no message", "\xc1", 1, "[2,\"$/error\",[{\"code\":9," },
		{ "no list", "\x05", 1, "[2,\"$/error\",[{\"code\":9," },
		{ "a list of another kind", "\x93\x07\x01\xc0", 4, "[2,\"$/error\",[{\"code\":9," },
		{ "params that are no map",
		  "\x94\x00\x01\xa4"
		  "echo\x91\x05",
		  10, "[2,\"$/error\",[{\"code\":9," },
		{ "two params",
		  "\x94\x00\x01\xa4"
		  "echo\x92\x80\x80",
		  11, "[2,\"$/error\",[{\"code\":9," },
		{ "an id that is none",
		  "\x94\x00\xff\xa4"
		  "echo\x90",
		  9, "[2,\"$/error\",[{\"code\":9," },
		{ "a response", "\x94\x01\x01\xc0\xc0", 5, "[2,\"$/error\",[{\"code\":9," },
		{ "a key twice",
		  "\x94\x00\x01\xa4"
		  "echo\x91\x82\xa1x\x01\xa1x\x02",
		  16, "[2,\"$/error\",[{\"code\":9," },
		{ "bad UTF-8", "\x94\x00\x01\xa1\xff\x90", 6, "[2,\"$/error\",[{\"code\":9," },
		{ "an array bomb", "\xdd\x20\0\0\0", 5, "[2,\"$/error\",[{\"code\":8," },
		{ "a map bomb", "\x94\x00\x01\xa1x\x91\xdf\xff\xff\xff\xff", 11,
		  "[2,\"$/error\",[{\"code\":8," },
		{ "a string bomb", "\xdb\xff\xff\xff\xff", 5, "[2,\"$/error\",[{\"code\":8," },
		{ "a tower",
		  "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
		  "\x91\x91\x91\x91\x91",
		  25, "[2,\"$/error\",[{\"code\":9," },
	};

	for (size_t i = 0; i < N(cases); i++) {
		/* The protocol is as strict before hello as after. */
		for (int hello = 0; hello < 2; hello++) {
			struct peer p = hello ? greeted(1000, "ann") : peer_as(1000, "ann");
			const char *got;

			say_bytes(&p, cases[i].bytes, cases[i].n);
			got = hear(&p);
			cr_expect(starts(got, cases[i].want) ||
					  (!hello && starts(got, "[2,\"$/error\"")),
				  "%s: %s", cases[i].what, got);
			HEAR(&p, "end");
			peer_done(&p);
		}
	}
}

Test(rpc, before_hello_messages_are_small)
{
	struct peer p = peer_as(1000, "ann");
	char bytes[8] = "\xc6\x00\x00\x40\x00";

	say_bytes(&p, bytes, 5); /* 16 KiB of bytes are announced: too much with the head */
	HEAR_START(&p, "[2,\"$/error\",[{\"code\":8,");
	HEAR(&p, "end");
	peer_done(&p);
}

Test(rpc, takes_messages_in_any_pieces)
{
	struct peer p = greeted(1000, "ann");
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct loop_timer *timer;

	for (uint32_t id = 1; id <= 3; id++)
		gpuq_wire_request(&b, id, "echo", NULL);
	say_bytes(&p, b.data, 1);
	timer = p.conn->frame_timer;
	cr_expect_not_null(timer, "the time to finish a message runs from its first byte");
	for (size_t i = 1; i + 1 < b.len / 3; i++) {
		say_bytes(&p, b.data + i, 1);
		cr_expect_eq(p.conn->frame_timer, timer, "and further bytes do not prolong it");
	}
	say_bytes(&p, b.data + b.len / 3 - 1, 1);
	cr_expect_null(p.conn->frame_timer);
	HEAR(&p, "[1,1,null,{}]");
	say_bytes(&p, b.data + b.len / 3, b.len - b.len / 3);
	HEAR(&p, "[1,2,null,{}]");
	HEAR(&p, "[1,3,null,{}]");
	cr_expect_null(p.conn->frame_timer);
	gpuq_buf_done(&b);
	peer_done(&p);
}

Test(rpc, a_cut_message_leaves_nothing_behind)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct rpc_stats stats;

	gpuq_wire_request(&b, 1, "echo", NULL);
	for (size_t n = 0; n < b.len; n++) {
		struct peer p = greeted(1000, "ann");

		say_bytes(&p, b.data, n);
		peer_done(&p);
		rpc_server_stats(server, &stats);
		cr_assert_eq(stats.connections, 0);
		cr_assert_eq(stats.open_calls, 0);
	}
	gpuq_buf_done(&b);
}

Test(rpc, takes_a_message_as_large_as_allowed)
{
	struct peer p = greeted(1000, "ann");
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *m = gpuq_map(&a);
	char *text = calloc(1, GPUQ_MSG_BYTES_MAX);

	memset(text, 'x', GPUQ_MSG_BYTES_MAX);
	gpuq_put(&a, m, "t", gpuq_strn(&a, text, GPUQ_MSG_BYTES_MAX - 100));
	gpuq_wire_request(&b, 1, "add", m);
	say_bytes(&p, b.data, b.len);
	HEAR_START(&p, "[1,1,{\"code\":1,\"name\":\"invalid\",\"msg\":\"a: missing");
	gpuq_buf_clear(&b);
	gpuq_put(&a, m, "u", gpuq_strn(&a, text, 100));
	gpuq_wire_request(&b, 2, "add", m);
	say_bytes(&p, b.data, b.len);
	HEAR_START(&p, "[2,\"$/error\",[{\"code\":8,");
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
	free(text);
	peer_done(&p);
}

Test(rpc, unknown_notes_are_skipped)
{
	struct peer p = greeted(1000, "ann");
	static const char ping[] = "\x93\x02\xa6$/ping\x90", odd[] = "\x93\x02\xa5"
								     "other\x93\x01\xc0\x80";
	static const char credit[] = "\x93\x02\xa8$/credit\x92\x01\xa1x";

	say_bytes(&p, ping, sizeof(ping) - 1);
	say_bytes(&p, odd, sizeof(odd) - 1);
	say_bytes(&p, credit, sizeof(credit) - 1);
	say(&p, 1, "echo", "{}");
	HEAR(&p, "[1,1,null,{}]");
	peer_done(&p);
}
