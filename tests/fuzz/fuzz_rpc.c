/* The stream of a peer to the daemon, through framing, hello and dispatch into the real methods on
 * a real model, without a socket; the model must then equal the records on disk.
 *
 * Byte 0 says which user calls (bits 0-1: ann, bob, root; 3: ann, without hello) and whether the
 * rest are bytes of the wire (bit 2), cut into pieces (bits 3-7), or choices from which calls are
 * made: a method's row, then for each parameter of its schema whether it is given, and which
 * value it gets. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/yaml.h"
#include "tests/fuzz/inside.h"

#define CALLS_MAX 12
#define DEPTH_MAX 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

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

/* ---- choices into calls ---- */

struct dice {
	const uint8_t *p, *end;
	struct gpuq_arena *a;
};

static unsigned roll(struct dice *d, unsigned below)
{
	return d->p < d->end ? *d->p++ % below : 0;
}

/* Texts that mean something somewhere: jobs, queues, nodes, users, states, keys. */
static const char *const words[] = {
	"1",
	"2",
	"3",
	"5",
	"5_0",
	"5_9",
	"8",
	"99",
	"0",
	"-1",
	"default",
	"lab",
	"research",
	"n0",
	"n1",
	"n[0-1]",
	"ann",
	"bob",
	"root",
	"runs",
	"many",
	"PENDING",
	"running",
	"CANCELLED",
	"team=a",
	"state",
	"pods.node",
	"-id",
	"user",
	"queue",
	"1h",
	"now+1h",
	"USR1",
	"",
	"\x1b[2J",
	"a\nb",
	"matlab",
	"build",
	"demo",
	"%j/../x",
	"2030-01-01T00:00Z",
};

static const int64_t numbers[] = { 0, 1, 2, 5, 8, -1, 100, 1000000, INT64_MAX, INT64_MIN };

/* Values of a form that some method looks into: specs, changes, sites, contexts. */
static const char *const trees[] = {
	"[{name: a, command: [x], gpus: 1}]",
	"[{command: [x], gpus: 0.5, queue: lab, time: 5}, {script: '#!/bin/sh', pods: {min: 1, "
	"max: 3}}]",
	"[{command: [x], array: 0-99999%1, depends: ['afterok:1', 'after:5'], licenses: {matlab: "
	"2}}]",
	"[{groups: [{name: w, pods: 2, command: [a], gpus: 1}, {name: l, command: [b]}], begin: "
	"now}]",
	"{time: 2h}",
	"{priority: 9, queue: lab, gpus: 2}",
	"{command: [y], env: {A: b}, name: z}",
	"{array: 0-5, throttle: 3, pods: 3, depends: []}",
	"{queues: [{name: new, parent: research, quota: 1}]}",
	"{queues: [{name: lab, limit: 1, users: [ann]}], reservations: [{name: r, start: "
	"2030-01-01T00:00Z, duration: 1h, gpus: 2}]}",
	"{flavors: [{name: a100, match: {product: 'NVIDIA*'}}], pools: [{name: default, flavor: "
	"a100}]}",
	"{uid: 77777, cwd: /tmp, env: {HOME: /}}",
};

static struct gpuq_val *tree(struct dice *d)
{
	const char *text = trees[roll(d, sizeof(trees) / sizeof(trees[0]))];
	struct gpuq_val **docs;
	size_t n;

	if (gpuq_yaml_parse(d->a, "t", text, strlen(text), &docs, &n, NULL) != 0 || n != 1)
		abort(); /* the table above is wrong */
	return docs[0];
}

static struct gpuq_val *word(struct dice *d)
{
	return gpuq_str(d->a, words[roll(d, sizeof(words) / sizeof(words[0]))]);
}

static struct gpuq_val *any_value(struct dice *d, int depth);

static struct gpuq_val *list(struct dice *d, int depth)
{
	struct gpuq_val *v = gpuq_list(d->a);

	for (unsigned n = roll(d, 4); n > 0; n--)
		gpuq_add(d->a, v, depth < DEPTH_MAX ? any_value(d, depth + 1) : word(d));
	return v;
}

static struct gpuq_val *any_value(struct dice *d, int depth)
{
	switch (roll(d, 7)) {
	case 0:
		return gpuq_int(d->a, numbers[roll(d, sizeof(numbers) / sizeof(numbers[0]))]);
	case 1:
		return gpuq_bool(d->a, roll(d, 2));
	case 2:
		return list(d, depth);
	case 3:
		return NULL;
	case 4:
		return tree(d);
	default:
		return word(d);
	}
}

/* A value of the kind that the row wants; now and then another. */
static struct gpuq_val *value_of(struct dice *d, const struct gpuq_field *f)
{
	struct gpuq_val *v;

	if (roll(d, 16) == 15)
		return any_value(d, 0);
	switch (f->kind) {
	case GPUQ_K_BOOL:
		return gpuq_bool(d->a, roll(d, 2));
	case GPUQ_K_INT:
	case GPUQ_K_LIMIT:
		return gpuq_int(d->a, numbers[roll(d, sizeof(numbers) / sizeof(numbers[0]))]);
	case GPUQ_K_STRLIST:
		v = gpuq_list(d->a);
		for (unsigned n = 1 + roll(d, 3); n > 0; n--)
			gpuq_add(d->a, v, word(d));
		return v;
	case GPUQ_K_ENUM: {
		unsigned n = 0;

		while (f->names[n])
			n++;
		return gpuq_str(d->a, f->names[roll(d, n)]);
	}
	case GPUQ_K_VAL:
		return tree(d);
	default:
		return word(d);
	}
}

static struct gpuq_val *params_of(struct dice *d, const struct rpc_method *m)
{
	struct gpuq_val *v = gpuq_map(d->a), *meta;

	for (const struct gpuq_field *f = m->params ? m->params->fields : NULL; f && f->key; f++)
		if ((f->flags & GPUQ_F_REQUIRED) ? roll(d, 16) != 15 : roll(d, 3) == 2)
			gpuq_put(d->a, v, f->key, value_of(d, f));
	if (m->mutates && roll(d, 4) == 3) {
		meta = gpuq_put(d->a, v, GPUQ_WIRE_META, gpuq_map(d->a));
		gpuq_put(d->a, meta, GPUQ_WIRE_KEY, word(d));
	}
	return v;
}

static void feed_call(struct dice *d, struct rpc_conn *c, const struct rpc_method *table,
		      uint32_t id)
{
	struct gpuq_val *m = gpuq_list(d->a), *args = gpuq_list(d->a);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	unsigned n = 0;

	while (table[n].name)
		n++;
	table += roll(d, n);
	gpuq_add(d->a, m, gpuq_int(d->a, GPUQ_WIRE_REQUEST));
	gpuq_add(d->a, m, gpuq_int(d->a, id));
	gpuq_add(d->a, m, gpuq_str(d->a, table->name));
	gpuq_add(d->a, args, params_of(d, table));
	gpuq_add(d->a, m, args);
	gpuq_mp_write(&b, m);
	conn_feed(c, b.data, b.len);
	gpuq_buf_done(&b);
}

static void feed_calls(struct inside *in, struct rpc_conn *c, const uint8_t *p, size_t n)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dice d = { p, p + n, &a };

	for (uint32_t id = 1; id <= CALLS_MAX && d.p < d.end; id++) {
		feed_call(&d, c, inside_methods(in), id);
		if (roll(&d, 2))
			inside_settle(in);
	}
	gpuq_arena_done(&a);
}

/* ---- bytes ---- */

static void feed_bytes(struct rpc_conn *c, const uint8_t *p, size_t n, size_t step)
{
	for (size_t at = 0; at < n; at += step)
		conn_feed(c, p + at, n - at < step ? n - at : step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct inside *in;
	struct rpc_conn *c;

	if (n == 0)
		return 0;
	in = inside_new();
	c = inside_connect(in, (data[0] & 3) % 3, (data[0] & 3) != 3);
	if (data[0] & 4)
		feed_bytes(c, data + 1, n - 1, data[0] >> 3 ? data[0] >> 3 : n);
	else
		feed_calls(in, c, data + 1, n - 1);
	inside_settle(in);
	check_output(c);
	inside_check(in);
	conn_kill(c);
	inside_done(in);
	return 0;
}
