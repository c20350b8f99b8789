#include "gpuqd/rpc/flight.h"

#include "gpuqd/rpc/conn.h"
#include "gpuqd/rpc/server.h"
#include "libgpuq/limits.h"

#define US INT64_C(1000000)

/* The time until one more fits a pace with a burst. */
static int64_t wait_of(int64_t *at_us, int64_t step_us, int64_t burst, int64_t now_us)
{
	if (*at_us < now_us - burst * step_us)
		*at_us = now_us - burst * step_us;
	return *at_us + step_us - now_us;
}

int64_t flight_pace(struct flight_user *u, bool submits, int64_t now_us)
{
	const int64_t call_us = US / GPUQ_CALLS_PER_S, submit_us = US / GPUQ_SUBMITS_PER_S;
	int64_t wait_us = wait_of(&u->call_us, call_us, GPUQ_CALLS_BURST, now_us);
	const int64_t other_us =
		submits ? wait_of(&u->submit_us, submit_us, GPUQ_SUBMITS_BURST, now_us) : 0;

	if (other_us > wait_us)
		wait_us = other_us;
	if (wait_us > 0)
		return wait_us;
	u->call_us += call_us;
	u->submit_us += submits ? submit_us : 0;
	return 0;
}

bool flight_fits(const struct rpc_conn *c, size_t n)
{
	const struct flight *f = server_flight(c->server);

	if (c->share->bytes + n > GPUQ_FLIGHT_BYTES_PER_USER)
		return false;
	return f->bytes + n <= GPUQ_FLIGHT_BYTES_MAX ||
	       server_role(c->server, &c->peer) == RPC_ROLE_OPERATOR;
}

void flight_add(struct rpc_server *s, struct flight_user *u, size_t n)
{
	server_flight(s)->bytes += n;
	u->bytes += n;
}

static struct rpc_conn *next_of(struct rpc_server *s)
{
	struct rpc_conn *best = NULL;

	for (struct rpc_conn *c = server_conns(s); c; c = c->next) {
		if (!c->waits || !flight_fits(c, c->waits))
			continue;
		if (!best || c->share->bytes < best->share->bytes ||
		    (c->share->bytes == best->share->bytes && c->turn < best->turn))
			best = c;
	}
	return best;
}

static void stop_waiting(struct rpc_conn *c)
{
	if (c->waits)
		server_flight(c->server)->n_waiting--;
	c->waits = 0;
}

static void take(struct rpc_conn *c, size_t n)
{
	stop_waiting(c);
	c->granted = n;
	flight_add(c->server, c->share, n);
}

void flight_drop(struct rpc_server *s, struct flight_user *u, size_t n)
{
	struct rpc_conn *c;

	server_flight(s)->bytes -= n;
	u->bytes -= n;
	while (n && server_flight(s)->n_waiting && (c = next_of(s)) != NULL) {
		take(c, c->waits);
		conn_admitted(c);
	}
}

bool flight_admit(struct rpc_conn *c, size_t n)
{
	struct flight *f = server_flight(c->server);

	if (c->waits)
		return false;
	if (flight_fits(c, n)) {
		take(c, n);
		return true;
	}
	c->waits = n;
	c->turn = f->turn++;
	f->n_waiting++;
	return false;
}

void flight_leave(struct rpc_conn *c)
{
	const size_t n = c->granted;

	stop_waiting(c);
	c->granted = 0;
	flight_drop(c->server, c->share, n);
}

static size_t output_bytes(const struct rpc_conn *c)
{
	return c->out.len - c->sent + c->held_bytes;
}

void flight_output(struct rpc_conn *c)
{
	const size_t now = output_bytes(c), before = c->counted;

	c->counted = now;
	if (now >= before)
		flight_add(c->server, c->share, now - before);
	else
		flight_drop(c->server, c->share, before - now);
}

bool flight_output_full(const struct rpc_conn *c)
{
	const size_t own = output_bytes(c);

	return own > GPUQ_OUTPUT_BYTES_PAUSE ||
	       (own > GPUQ_OUTPUT_BYTES_SMALL && !flight_fits(c, 0));
}

bool flight_output_over(const struct rpc_conn *c)
{
	const bool full = server_flight(c->server)->bytes > GPUQ_FLIGHT_BYTES_MAX;
	const size_t most = full ? GPUQ_FLIGHT_BYTES_PER_USER / 4 : GPUQ_FLIGHT_BYTES_PER_USER;

	return output_bytes(c) > GPUQ_OUTPUT_BYTES_SMALL && c->share->bytes > most;
}
