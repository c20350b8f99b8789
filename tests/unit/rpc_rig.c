#include "tests/unit/rpc_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

struct loop *loop;
struct rpc_server *server;
struct gpuq_arena arena = GPUQ_ARENA_INIT(0);

struct seen seen;

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

void on_item(void *arg, const struct gpuq_val *item)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const size_t n = strlen(seen.items);

	(void)arg;
	gpuq_json_write(&b, item, 0);
	snprintf(seen.items + n, sizeof(seen.items) - n, "%s ", gpuq_buf_str(&b));
	gpuq_buf_done(&b);
}

void on_closed(void *arg, int why)
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
	{ .name = "echo", .fn = on_echo, .max_bytes = GPUQ_MSG_BYTES_MAX },
	{ .name = "plain", .fn = on_echo },
	{ .name = "lasting", .fn = on_later, .lasts = true },
	{ .name = "heavy", .fn = on_later, .max_bytes = GPUQ_MSG_BYTES_MAX },
	{ .name = "who", .least = RPC_ROLE_USER, .fn = on_who },
	{ .name = "add", .params = &add_schema, .fn = on_add, .max_bytes = GPUQ_MSG_BYTES_MAX },
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

void rig_setup(void)
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

void rig_teardown(void)
{
	rpc_server_free(server);
	loop_free(loop);
	gpuq_arena_done(&arena);
}

void turn(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
}

struct peer peer_as(uid_t uid, const char *user)
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

void peer_done(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	gpuq_buf_done(&p->in);
	turn();
}

void say_bytes(struct peer *p, const void *bytes, size_t n)
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

void say(struct peer *p, uint32_t id, const char *method, const char *params)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val **docs = NULL;
	size_t n = 0;

	cr_assert_eq(gpuq_yaml_parse(&arena, "f", params, strlen(params), &docs, &n, NULL), 0);
	gpuq_wire_request(&b, id, method, docs[0]);
	say_bytes(p, b.data, b.len);
	gpuq_buf_done(&b);
}

void say_note(struct peer *p, void (*write)(struct gpuq_buf *b, uint32_t id), uint32_t id)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	write(&b, id);
	say_bytes(p, b.data, b.len);
	gpuq_buf_done(&b);
}

void grant_10(struct gpuq_buf *b, uint32_t id)
{
	gpuq_wire_credit(b, id, 10);
}

/* The next message as JSON; "" when there is none, "end" when the server hung up. */
const char *hear(struct peer *p)
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

bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

struct peer greeted(uid_t uid, const char *user)
{
	struct peer p = peer_as(uid, user);

	say(&p, 0, "hello", "{proto: [1, 0], client: test}");
	HEAR_START(&p, "[1,0,null,{\"version\":\"1\"");
	return p;
}