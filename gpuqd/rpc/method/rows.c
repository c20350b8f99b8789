/* Send jobs for a list: one object a message or, with named keys, rows, many in one message. */
#include "gpuqd/state/view/view.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/rpc/rpc.h"
#include "libgpuq/wire/mp.h"

#define ROWS_MAX 256 /* of one message */
#define BYTES_MAX 32768 /* of one with several rows; well below what it may have of values */
#define HEAD_BYTES 3 /* a list of up to 65535 */
#define KEYS_MAX 128

int rows_init(struct rows *r, struct rpc_call *c, const struct gpuq_strlist *keys,
	      struct gpuq_err *err)
{
	*r = (struct rows){ .c = c };
	if (keys->n == 0)
		return 0;
	if (keys->n > KEYS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "keys", "more than %d keys", KEYS_MAX);
	r->row = view_row_new(rpc_call_arena(c), keys, rpc_call_ahead_us(c));
	return r->row ? 0 : gpuq_no_memory(err);
}

/* Send what is in b as one message. */
static bool leave(struct rows *r, struct gpuq_buf *b)
{
	if (!b->failed) {
		b->data[0] = (char)0xdc;
		b->data[1] = (char)(r->n >> 8);
		b->data[2] = (char)r->n;
	}
	if (!rpc_item_bytes(r->c, b))
		return false;
	r->n = 0;
	gpuq_buf_done(b);
	return true;
}

static void forget(struct rows *r)
{
	gpuq_buf_done(&r->b);
	gpuq_arena_done(&r->mem);
}

bool rows_flush(struct rows *r)
{
	if (r->n && !leave(r, &r->b))
		return false;
	forget(r);
	return true;
}

/* Where the next row begins. */
static size_t begin(struct rows *r)
{
	static const char head[HEAD_BYTES];

	if (r->b.len == 0) {
		gpuq_buf_reserve(&r->b, BYTES_MAX);
		gpuq_buf_add(&r->b, head, sizeof(head));
	}
	return r->b.len;
}

/* A row follows mark. Where the rows before it make a message they leave first; may
 * they not, it is forgotten. */
static bool added(struct rows *r, size_t mark)
{
	struct gpuq_buf full = r->b;

	if (r->n == ROWS_MAX || (r->n && r->b.len > BYTES_MAX)) {
		const size_t n = r->b.len - mark;

		r->b = (struct gpuq_buf)GPUQ_BUF_INIT;
		begin(r);
		gpuq_buf_add(&r->b, full.data + mark, n);
		full.len = mark;
		if (!leave(r, &full)) {
			gpuq_buf_done(&r->b);
			r->b = full;
			return false;
		}
	}
	r->n++;
	return true;
}

bool rows_job(struct rows *r, const struct model *m, const struct job *j, int64_t now_us)
{
	bool sent;

	if (!r->row && !rpc_item_ready(r->c))
		return false;
	gpuq_arena_reset(&r->mem);
	if (r->row) {
		const size_t mark = begin(r);

		view_row_job(r->row, &r->b, &r->mem, m, j, now_us);
		sent = added(r, mark);
	} else {
		sent = rpc_item(r->c, view_job(&r->mem, m, j, now_us));
	}
	return sent;
}

bool rows_object(struct rows *r, const struct gpuq_val *job)
{
	size_t mark;

	if (!r->row)
		return rpc_item(r->c, job);
	mark = begin(r);
	gpuq_arena_reset(&r->mem);
	view_row_object(r->row, &r->b, &r->mem, job);
	return added(r, mark);
}

void rows_end(struct rows *r)
{
	struct rpc_call *c = r->c;

	forget(r);
	rpc_end(c, NULL);
}

void rows_fail(struct rows *r, const struct gpuq_err *err)
{
	struct rpc_call *c = r->c;

	forget(r);
	rpc_fail(c, err);
}
