/* The protocol, byte by byte: one end of a socket pair is a connection of the server,
 * the other is in the test's hands; the loop turns between them. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/rpc/conn.h"
#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct loop *loop;
static struct rpc_server *server;
static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);

/* What the test's methods leave for it to look at. */
static struct {
	struct rpc_call *call; /* of "later" */
	int closed; /* why, as told */
	int64_t count, sent; /* of "count" */
	unsigned resumed;
	bool hold; /* keep messages back */
	struct {
		rpc_release_fn fn;
		void *arg;
	} held[512];
	size_t n_held;
} seen;

static int on_echo(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	rpc_reply(call, rpc_call_params(call));
	return 0;
}

static int on_who(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(call);
	struct gpuq_val *m = gpuq_map(a);

	(void)arg, (void)params, (void)err;
	gpuq_put(a, m, "user", gpuq_str(a, rpc_call_peer(call)->user));
	gpuq_put(a, m, "role", gpuq_str(a, rpc_role_word(rpc_call_peer(call)->role)));
	gpuq_put(a, m, "key", gpuq_str(a, rpc_call_key(call)));
	gpuq_put(a, m, "dl", gpuq_bool(a, rpc_call_deadline_us(call) > loop_mono_us(loop)));
	rpc_reply(call, m);
	return 0;
}

struct add {
	int64_t a, b;
};

static const struct gpuq_field add_fields[] = {
	{ .key = "a",
	  .kind = GPUQ_K_INT,
	  .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct add, a),
	  .min = 0,
	  .max = 10 },
	{ .key = "b", .kind = GPUQ_K_DURATION, .offset = offsetof(struct add, b) },
	{ .key = NULL },
};
static const struct gpuq_schema add_schema = { .name = "sum",
					       .size = sizeof(struct add),
					       .fields = add_fields };

static int on_add(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	const struct add *p = params;

	(void)arg;
	if (p->a == 7)
		return gpuq_fail_field(err, GPUQ_ENOENT, "a", "there is no 7");
	rpc_reply(call, gpuq_int(rpc_call_arena(call), p->a + p->b));
	return 0;
}

static void on_closed(void *arg, int why)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	seen.closed = why;
	gpuq_fail(&err, why, "told so");
	rpc_fail(arg, &err);
	seen.call = NULL;
}

static int on_later(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	seen.call = call;
	if (gpuq_get_bool(rpc_call_params(call), "watch", false))
		rpc_call_watch(call, NULL, on_closed, call);
	return 0;
}

static void count_on(void *arg)
{
	struct rpc_call *call = arg;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	seen.resumed++;
	while (seen.sent < seen.count && rpc_item(call, gpuq_int(&a, seen.sent)))
		seen.sent++;
	gpuq_arena_done(&a);
	if (seen.sent == seen.count) {
		seen.count = -1;
		rpc_end(call, NULL);
	}
}

static int on_count(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	seen.count = gpuq_get_int(rpc_call_params(call), "n", 0);
	seen.sent = seen.resumed = 0;
	rpc_call_watch(call, count_on, on_closed, call);
	count_on(call);
	return 0;
}

/* Items of `bytes` each until told to stop: fills the output. */
static int on_flood(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	const int64_t n = gpuq_get_int(rpc_call_params(call), "bytes", 0);
	char *text = calloc(1, (size_t)n + 1);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	(void)arg, (void)params, (void)err;
	memset(text, 'x', (size_t)n);
	for (seen.sent = 0; rpc_item(call, gpuq_strn(&a, text, (size_t)n)); seen.sent++)
		gpuq_arena_reset(&a);
	gpuq_arena_done(&a);
	free(text);
	rpc_call_watch(call, NULL, on_closed, call);
	return 0;
}

static int on_big(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(call);
	char *text = calloc(1, GPUQ_MSG_BYTES_MAX);

	(void)arg, (void)params, (void)err;
	memset(text, 'x', GPUQ_MSG_BYTES_MAX);
	rpc_reply(call, gpuq_strn(a, text, GPUQ_MSG_BYTES_MAX));
	free(text);
	return 0;
}

static const struct rpc_method methods[] = {
	{ .name = "echo", .fn = on_echo },
	{ .name = "who", .least = RPC_ROLE_USER, .fn = on_who },
	{ .name = "add", .params = &add_schema, .fn = on_add },
	{ .name = "later", .fn = on_later },
	{ .name = "count", .stream = true, .fn = on_count },
	{ .name = "flood", .stream = true, .fn = on_flood },
	{ .name = "big", .fn = on_big },
	{ .name = "for.manager", .least = RPC_ROLE_MANAGER, .fn = on_echo },
	{ .name = "for.operator", .least = RPC_ROLE_OPERATOR, .fn = on_echo },
	{ .name = NULL },
};

static void before_send(void *arg, struct rpc_call *call, rpc_release_fn release, void *release_arg)
{
	(void)arg, (void)call;
	if (!seen.hold) {
		release(release_arg, 0, NULL);
		return;
	}
	cr_assert_lt(seen.n_held, N(seen.held));
	seen.held[seen.n_held].fn = release;
	seen.held[seen.n_held++].arg = release_arg;
}

static bool is_manager(void *arg, const char *user)
{
	(void)arg;
	return strcmp(user, "eve") == 0;
}

static void describe(void *arg, struct gpuq_arena *a, struct gpuq_val *info)
{
	struct gpuq_val *cluster = gpuq_put(a, info, "cluster", gpuq_map(a));

	(void)arg;
	gpuq_put(a, cluster, "kind", gpuq_str(a, "test"));
}

static void setup(void)
{
	static const char *const operators[] = { "root2", "4321", NULL };
	const struct rpc_opts o = { .methods = methods,
				    .server = "test/1",
				    .version = "1",
				    .operators = operators,
				    .before_send = before_send,
				    .describe = describe,
				    .is_manager = is_manager };
	struct gpuq_err err;

	log_init(LOG_L_ERR);
	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(rpc_server_new(loop, &o, &server, &err), 0);
}

static void teardown(void)
{
	rpc_server_free(server);
	loop_free(loop);
	gpuq_arena_done(&arena);
}

TestSuite(rpc, .init = setup, .fini = teardown);

static void turn(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
}

/* The client's end. */
struct peer {
	int fd;
	struct rpc_conn *conn;
	struct gpuq_buf in;
	size_t taken;
	bool ended;
};

static struct peer peer_as(uid_t uid, const char *user)
{
	const struct rpc_peer who = { .uid = uid, .gid = uid, .pid = 1, .user = user };
	struct peer p = { .fd = -1 };
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	p.fd = fds[0];
	p.conn = conn_new(server, fds[1], &who);
	cr_assert_not_null(p.conn);
	return p;
}

static void peer_done(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	gpuq_buf_done(&p->in);
	turn();
}

static void say_bytes(struct peer *p, const void *bytes, size_t n)
{
	const char *b = bytes;

	while (n > 0) {
		ssize_t k = send(p->fd, b, n, MSG_NOSIGNAL);

		if (k < 0 && errno != EAGAIN)
			break; /* it hung up: the test will see that */
		if (k > 0) {
			b += k;
			n -= (size_t)k;
		}
		turn();
	}
	turn();
}

static void say(struct peer *p, uint32_t id, const char *method, const char *params)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val **docs = NULL;
	size_t n = 0;

	cr_assert_eq(gpuq_yaml_parse(&arena, "f", params, strlen(params), &docs, &n, NULL), 0);
	gpuq_wire_request(&b, id, method, docs[0]);
	say_bytes(p, b.data, b.len);
	gpuq_buf_done(&b);
}

static void say_note(struct peer *p, void (*write)(struct gpuq_buf *b, uint32_t id), uint32_t id)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	write(&b, id);
	say_bytes(p, b.data, b.len);
	gpuq_buf_done(&b);
}

static void grant_10(struct gpuq_buf *b, uint32_t id)
{
	gpuq_wire_credit(b, id, 10);
}

/* The next message as JSON; "" when there is none, "end" when the server hung up. */
static const char *hear(struct peer *p)
{
	static struct gpuq_buf json;
	struct gpuq_mp_scan scan = { 0 };
	struct gpuq_val *v;
	char block[65536];
	size_t len;
	ssize_t n;

	turn();
	while (!p->ended && (n = recv(p->fd, block, sizeof(block), 0)) >= 0) {
		p->ended = n == 0;
		gpuq_buf_add(&p->in, block, (size_t)n);
		turn();
	}
	if (errno == ECONNRESET)
		p->ended = true;
	if (p->taken == p->in.len)
		return p->ended ? "end" : "";
	if (gpuq_mp_next(&scan, &gpuq_wire_limits, p->in.data + p->taken, p->in.len - p->taken,
			 &len, NULL) != 1)
		return "half a message";
	cr_assert_eq(gpuq_mp_read(&arena, &gpuq_wire_limits, p->in.data + p->taken, len, &v, NULL),
		     0);
	p->taken += len;
	gpuq_buf_clear(&json);
	gpuq_json_write(&json, v, 0);
	return gpuq_buf_str(&json);
}

#define HEAR(p, want) cr_expect_str_eq(hear(p), want)

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

#define HEAR_START(p, want)                                                                        \
	do {                                                                                       \
		const char *got_ = hear(p);                                                        \
		cr_expect(starts(got_, want), "got %s", got_);                                     \
	} while (0)

static struct peer greeted(uid_t uid, const char *user)
{
	struct peer p = peer_as(uid, user);

	say(&p, 0, "hello", "{proto: [1, 0], client: test}");
	HEAR_START(&p, "[1,0,null,{\"version\":\"1\"");
	return p;
}

Test(rpc, hello_tells_who_is_who)
{
	struct peer p = peer_as(1000, "ann");

	say(&p, 5, "hello", "{proto: [1, 7], client: test, future: {x: 1}}");
	HEAR(&p,
	     "[1,5,null,{\"version\":\"1\",\"proto\":[1,0],\"server\":\"test/1\",\"user\":\"ann\","
	     "\"role\":\"user\",\"limits\":{\"message_bytes\":4194304,\"outstanding\":128,"
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
		  "[1,1,{\"code\":4,\"name\":\"denied\",\"msg\":\"for.manager is for a manager; "
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

Test(rpc, an_answer_may_come_later)
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

Test(rpc, an_answer_to_nobody_is_dropped)
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

Test(rpc, a_method_is_told_when_nobody_listens)
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

Test(rpc, cancel_answers_at_once)
{
	struct peer p = greeted(1000, "ann");

	say(&p, 1, "later", "{watch: true}");
	say_note(&p, gpuq_wire_cancel, 1);
	HEAR(&p, "[1,1,{\"code\":11,\"name\":\"cancelled\",\"msg\":\"cancelled\"},null]");
	HEAR(&p, "");
	cr_expect_eq(seen.closed, GPUQ_ECANCELED);
	/* What cannot be stopped answers as ever; what is not there is no matter. */
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

Test(rpc, a_stream_keeps_to_its_credit)
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

Test(rpc, a_stream_can_be_cancelled)
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

Test(rpc, two_streams_do_not_share_their_credit)
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

Test(rpc, a_stream_waits_for_a_slow_reader)
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

Test(rpc, an_item_that_is_too_large_fails_its_call)
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

Test(rpc, who_does_not_read_is_let_go)
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

Test(rpc, calls_without_an_answer_are_limited)
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
	HEAR_START(&p, "[2,\"$/error\",[{\"code\":9,\"name\":\"protocol\",\"msg\":\"the id 5");
	peer_done(&p);
}

static void let_go(size_t i, int rc)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (rc)
		gpuq_fail(&err, rc, "no space");
	seen.held[i].fn(seen.held[i].arg, rc, rc ? &err : NULL);
}

Test(rpc, nothing_leaves_before_it_may)
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

Test(rpc, what_could_not_be_stored_is_answered_so)
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

Test(rpc, held_answers_survive_their_connection)
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

Test(rpc, stopping_lets_answers_leave_first)
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

Test(rpc, idle_connections_end_and_open_calls_are_pinged)
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
