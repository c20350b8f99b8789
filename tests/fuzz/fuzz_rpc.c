/* What a peer sends to the daemon: framing, hello, dispatch, credit and cancel, without
 * a socket. The first byte says how the rest is cut into pieces; a zero bit in it gives
 * the connection its hello for free, so that the fuzzer gets to the calls. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/rpc/conn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct rpc_call *kept[64];
static size_t n_kept;

struct params {
	int64_t n, time_us;
	const char *name;
	struct gpuq_strlist list;
	struct gpuq_strmap map;
	struct gpuq_val *any;
};

static const struct gpuq_field fields[] = {
	{ .key = "n", .kind = GPUQ_K_INT, .offset = offsetof(struct params, n) },
	{ .key = "time", .kind = GPUQ_K_DURATION, .offset = offsetof(struct params, time_us) },
	{ .key = "name", .kind = GPUQ_K_NAME, .offset = offsetof(struct params, name) },
	{ .key = "list", .kind = GPUQ_K_STRLIST, .offset = offsetof(struct params, list) },
	{ .key = "map", .kind = GPUQ_K_STRMAP, .offset = offsetof(struct params, map) },
	{ .key = "any", .kind = GPUQ_K_VAL, .offset = offsetof(struct params, any) },
	{ .key = NULL },
};
static const struct gpuq_schema schema = { .name = "call",
					   .size = sizeof(struct params),
					   .fields = fields };

static int on_echo(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	const struct params *p = params;

	(void)arg, (void)err;
	rpc_reply(call, gpuq_schema_write(rpc_call_arena(call), &schema, p));
	return 0;
}

static void forget(struct rpc_call *call)
{
	for (size_t i = 0; i < n_kept; i++)
		if (kept[i] == call)
			kept[i] = kept[--n_kept];
}

static void on_closed(void *arg, int why)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail(&err, why, "gone");
	forget(arg);
	rpc_fail(arg, &err);
}

static void on_resume(void *arg)
{
	while (rpc_item(arg, NULL))
		;
}

static int on_stream(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	if (n_kept == sizeof(kept) / sizeof(kept[0]))
		return gpuq_fail(err, GPUQ_EBUSY, "enough");
	kept[n_kept++] = call;
	rpc_call_watch(call, on_resume, on_closed, call);
	on_resume(call);
	return 0;
}

/* Ends the stream that was begun last. */
static int on_end(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	if (n_kept > 0)
		rpc_end(kept[--n_kept], NULL);
	rpc_reply(call, rpc_call_params(call));
	return 0;
}

static const struct rpc_method methods[] = {
	{ .name = "e", .params = &schema, .fn = on_echo },
	{ .name = "s", .stream = true, .fn = on_stream },
	{ .name = "x", .fn = on_end },
	{ .name = "o", .least = RPC_ROLE_OPERATOR, .fn = on_end },
	{ .name = NULL },
};

/* Everything that is answered must be sound messages, one behind the other. */
static void check_output(const struct rpc_conn *c)
{
	for (size_t at = c->sent; at < c->out.len;) {
		struct gpuq_mp_scan scan = { 0 };
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_wire_msg m;
		struct gpuq_val *v;
		size_t len;

		if (gpuq_mp_next(&scan, &gpuq_wire_limits, c->out.data + at, c->out.len - at, &len,
				 NULL) != 1 ||
		    gpuq_mp_read(&a, &gpuq_wire_limits, c->out.data + at, len, &v, NULL) != 0 ||
		    gpuq_wire_split(v, &m, NULL) != 0 || m.type == GPUQ_WIRE_REQUEST)
			abort();
		gpuq_arena_done(&a);
		at += len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t hello[] = "\x94\x00\x00\xa5hello\x91\x81\xa5proto\x92\x01\x00";
	static const struct rpc_peer who = { .uid = 77777, .gid = 77777, .pid = 1, .user = "u" };
	const struct rpc_opts o = { .methods = methods, .server = "f", .version = "1" };
	static struct loop *loop;
	struct rpc_server *server;
	struct rpc_conn *c;
	size_t step;

	if (n == 0)
		return 0;
	log_init(LOG_L_ERR);
	if (!loop && loop_new(&loop, NULL) < 0)
		abort();
	n_kept = 0;
	if (rpc_server_new(loop, &o, &server, NULL) < 0)
		return 0;
	c = conn_new(server, -1, &who);
	if (!(data[0] & 1))
		conn_feed(c, hello, sizeof(hello) - 1);
	step = data[0] & 2 ? 1u + (data[0] >> 2) : n;
	data++;
	n--;
	for (size_t at = 0; at < n; at += step)
		conn_feed(c, data + at, n - at < step ? n - at : step);
	check_output(c);
	rpc_server_free(server);
	if (n_kept != 0)
		abort(); /* a stream that was not told of its end */
	return 0;
}
