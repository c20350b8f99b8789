#include "libgpuq/wire/wire.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"

const struct gpuq_mp_limits gpuq_wire_limits_hello = { GPUQ_MSG_BYTES_MAX_HELLO, GPUQ_MSG_DEPTH_MAX,
						       GPUQ_MSG_ITEMS_MAX };
const struct gpuq_mp_limits gpuq_wire_limits = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						 GPUQ_MSG_ITEMS_MAX };

static bool is_id(const struct gpuq_val *v, uint32_t *id)
{
	if (v->type != GPUQ_INT || v->i < 0 || v->i > UINT32_MAX)
		return false;
	*id = (uint32_t)v->i;
	return true;
}

static bool is_method(const struct gpuq_val *v, const char **method)
{
	if (v->type != GPUQ_STR || memchr(v->s, '\0', v->n))
		return false;
	*method = v->s;
	return true;
}

static bool split_request(struct gpuq_val **items, struct gpuq_wire_msg *m)
{
	const struct gpuq_val *list = items[3];

	if (!is_id(items[1], &m->id) || !is_method(items[2], &m->method) ||
	    list->type != GPUQ_LIST || list->n > 1)
		return false;
	if (list->n == 1 && list->items[0]->type == GPUQ_MAP)
		m->params = list->items[0];
	return list->n == 0 || m->params || list->items[0]->type == GPUQ_NULL;
}

static bool split_response(struct gpuq_val **items, struct gpuq_wire_msg *m)
{
	if (!is_id(items[1], &m->id))
		return false;
	m->error = items[2]->type == GPUQ_NULL ? NULL : items[2];
	m->result = items[3];
	return true;
}

int gpuq_wire_split(const struct gpuq_val *v, struct gpuq_wire_msg *m, struct gpuq_err *err)
{
	bool fits = false;

	memset(m, 0, sizeof(*m));
	if (v->type == GPUQ_LIST && v->n >= 3 && v->items[0]->type == GPUQ_INT) {
		const int64_t type = v->items[0]->i;

		m->type = (enum gpuq_wire_type)type;
		if (type == GPUQ_WIRE_REQUEST && v->n == 4) {
			fits = split_request(v->items, m);
		} else if (type == GPUQ_WIRE_RESPONSE && v->n == 4) {
			fits = split_response(v->items, m);
		} else if (type == GPUQ_WIRE_NOTE && v->n == 3) {
			m->params = v->items[2];
			fits = is_method(v->items[1], &m->method) && m->params->type == GPUQ_LIST;
		}
	}
	return fits ? 0
		    : gpuq_fail(err, GPUQ_EPROTO,
				"a message is no MessagePack-RPC, or its params are not one map");
}

bool gpuq_wire_note_id(const struct gpuq_wire_msg *m, uint32_t *id)
{
	return m->params->n >= 1 && is_id(m->params->items[0], id);
}

struct gpuq_val *gpuq_wire_error(struct gpuq_arena *a, const struct gpuq_err *err)
{
	struct gpuq_val *m = gpuq_map(a);

	gpuq_put(a, m, "code", gpuq_int(a, gpuq_err_number(err->code)));
	gpuq_put(a, m, "name", gpuq_str(a, gpuq_err_name(err->code)));
	gpuq_put(a, m, "msg", gpuq_str(a, err->text[0] ? err->text : gpuq_err_text(err->code)));
	if (err->field[0])
		gpuq_put(a, m, "field", gpuq_str(a, err->field));
	if (err->retry_ms > 0)
		gpuq_put(a, m, "retry_ms", gpuq_int(a, err->retry_ms));
	return m;
}

void gpuq_wire_error_read(const struct gpuq_val *v, struct gpuq_err *err)
{
	const int64_t number = gpuq_get_int(v, "code", 0);
	const int64_t retry = gpuq_get_int(v, "retry_ms", 0);
	const char *name = gpuq_get_str(v, "name", ""), *msg = gpuq_get_str(v, "msg", NULL);
	int code = number > 0 && number < 1000000 ? gpuq_err_from_number((int)number) : 0;

	/* A plain MessagePack-RPC server answers with a string. */
	if (!msg && v->type == GPUQ_STR)
		msg = v->s;
	if (!code)
		code = GPUQ_EINTERNAL;
	gpuq_fail_field(err, code, gpuq_get_str(v, "field", ""), "%s%s%s",
			msg ? msg : "the server gave no reason",
			code == GPUQ_EINTERNAL && name[0] ? ": " : "",
			code == GPUQ_EINTERNAL ? name : "");
	if (err && retry > 0 && retry <= 86400000)
		err->retry_ms = (int)retry;
}

static void put_uint(struct gpuq_buf *b, uint64_t u)
{
	const struct gpuq_val v = { .type = GPUQ_INT, .i = (int64_t)u };

	gpuq_mp_write(b, &v);
}

static void put_str(struct gpuq_buf *b, const char *s)
{
	const struct gpuq_val v = { .type = GPUQ_STR, .n = (uint32_t)strlen(s), .s = s };

	gpuq_mp_write(b, &v);
}

/* The head of a list of n < 16 members. */
static void put_list(struct gpuq_buf *b, unsigned n)
{
	gpuq_buf_addc(b, (char)(0x90 | n));
}

void gpuq_wire_request(struct gpuq_buf *b, uint32_t id, const char *method,
		       const struct gpuq_val *params)
{
	put_list(b, 4);
	put_uint(b, GPUQ_WIRE_REQUEST);
	put_uint(b, id);
	put_str(b, method);
	put_list(b, 1);
	gpuq_mp_write(b, params);
}

void gpuq_wire_response(struct gpuq_buf *b, uint32_t id, const struct gpuq_val *error,
			const struct gpuq_val *result)
{
	put_list(b, 4);
	put_uint(b, GPUQ_WIRE_RESPONSE);
	put_uint(b, id);
	gpuq_mp_write(b, error);
	gpuq_mp_write(b, result);
}

static void put_note(struct gpuq_buf *b, const char *method, unsigned n)
{
	put_list(b, 3);
	put_uint(b, GPUQ_WIRE_NOTE);
	put_str(b, method);
	put_list(b, n);
}

void gpuq_wire_item(struct gpuq_buf *b, uint32_t id, uint64_t seq, const struct gpuq_val *value)
{
	put_note(b, GPUQ_WIRE_ITEM, 3);
	put_uint(b, id);
	put_uint(b, seq);
	gpuq_mp_write(b, value);
}

void gpuq_wire_item_bytes(struct gpuq_buf *b, uint32_t id, uint64_t seq, const void *value,
			  size_t n)
{
	put_note(b, GPUQ_WIRE_ITEM, 3);
	put_uint(b, id);
	put_uint(b, seq);
	gpuq_buf_add(b, value, n);
}

bool gpuq_wire_peek(const char *bytes, size_t n, char *method, size_t room)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const char *p = bytes, *end = bytes + n;
	struct gpuq_val type = { 0 }, id = { 0 }, name = { 0 };
	uint32_t members;
	bool is = gpuq_mp_take_list(&p, end, &members, NULL) == 0 &&
		  gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &type, NULL) == 0 &&
		  type.type == GPUQ_INT;

	if (is && type.i == GPUQ_WIRE_REQUEST)
		is = gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &id, NULL) == 0;
	is = is && gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &name, NULL) == 0 &&
	     name.type == GPUQ_STR && name.n < room;
	if (is)
		memcpy(method, name.s, name.n + 1);
	gpuq_arena_done(&a);
	return is;
}

const char *gpuq_wire_item_value(const char *bytes, size_t n, uint32_t id)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const char *p = bytes, *end = bytes + n;
	struct gpuq_val type = { 0 }, name = { 0 }, of = { 0 }, seq = { 0 };
	uint32_t outer, inner;
	bool is = gpuq_mp_take_list(&p, end, &outer, NULL) == 0 && outer == 3 &&
		  gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &type, NULL) == 0 &&
		  type.type == GPUQ_INT && type.i == GPUQ_WIRE_NOTE &&
		  gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &name, NULL) == 0 &&
		  name.type == GPUQ_STR && strcmp(name.s, GPUQ_WIRE_ITEM) == 0 &&
		  gpuq_mp_take_list(&p, end, &inner, NULL) == 0 && inner == 3 &&
		  gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &of, NULL) == 0 &&
		  of.type == GPUQ_INT && of.i == id &&
		  gpuq_mp_take(&a, &gpuq_wire_limits, &p, end, &seq, NULL) == 0;

	gpuq_arena_done(&a);
	return is ? p : NULL;
}

void gpuq_wire_credit(struct gpuq_buf *b, uint32_t id, uint32_t n)
{
	put_note(b, GPUQ_WIRE_CREDIT, 2);
	put_uint(b, id);
	put_uint(b, n);
}

void gpuq_wire_cancel(struct gpuq_buf *b, uint32_t id)
{
	put_note(b, GPUQ_WIRE_CANCEL, 1);
	put_uint(b, id);
}

void gpuq_wire_ping(struct gpuq_buf *b)
{
	put_note(b, GPUQ_WIRE_PING, 0);
}

void gpuq_wire_closing(struct gpuq_buf *b, const struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	put_note(b, GPUQ_WIRE_ERROR, 1);
	gpuq_mp_write(b, gpuq_wire_error(&a, err));
	gpuq_arena_done(&a);
}
