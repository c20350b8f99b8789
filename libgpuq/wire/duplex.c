#include "libgpuq/wire/duplex.h"

#include "libgpuq/wire/client_int.h"

#define OPEN_US (10 * INT64_C(1000000))

int gpuq_duplex_open(struct gpuq *g, const char *method, const struct gpuq_val *params,
		     struct gpuq_duplex *out, struct gpuq_err *err)
{
	struct gpuq_duplex d = { .g = g };
	int rc = gpuq_client_busy(g, err);

	if (rc == 0)
		rc = gpuq_client_send_request(g, method, params, NULL, 0, gpuq_mono_us() + OPEN_US,
					      &d.id, err);
	if (rc < 0)
		return rc;
	g->streaming = g->duplex = true;
	g->credit_id = d.id;
	*out = d;
	return 0;
}

void gpuq_duplex_close(struct gpuq_duplex *d)
{
	d->g = NULL;
}

int gpuq_duplex_fd(const struct gpuq_duplex *d)
{
	return d->g->t.fd;
}

bool gpuq_duplex_unsent(const struct gpuq_duplex *d)
{
	return d->g->out.len > 0;
}

int gpuq_duplex_put(struct gpuq_duplex *d, const struct gpuq_val *item)
{
	if (d->credit > 0)
		d->credit--;
	gpuq_wire_item(&d->g->out, d->id, ++d->seq, item);
	return d->g->out.failed ? GPUQ_ENOMEM : 0;
}

void gpuq_duplex_grant(struct gpuq_duplex *d, uint32_t n)
{
	if (n > 0)
		gpuq_wire_credit(&d->g->out, d->id, n);
}

/* As much as the socket takes now. */
static int send_some(struct gpuq_duplex *d, struct gpuq_err *err)
{
	size_t sent = 0;
	int rc;

	if (d->g->out.failed)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	if (d->g->out.len == 0)
		return 0;
	rc = gpuq_transport_write(&d->g->t, d->g->out.data, d->g->out.len, 0, &sent, err);
	gpuq_buf_drop(&d->g->out, sent);
	return rc == GPUQ_ETIMEOUT ? 0 : rc;
}

/* One item, or credit for ours. Its verdict counts only where there is one. */
static void on_note(struct gpuq_duplex *d, const struct gpuq_wire_msg *m, gpuq_item_fn fn,
		    void *arg)
{
	uint32_t id;

	if (!gpuq_wire_note_id(m, &id) || id != d->id || m->params->n != 3)
		return;
	(void)fn(arg, m->params->items[2]);
}

int gpuq_duplex_turn(struct gpuq_duplex *d, gpuq_item_fn fn, void *arg, struct gpuq_arena *a,
		     struct gpuq_val **reply, int *code, struct gpuq_err *err)
{
	struct gpuq_val *result = NULL;
	struct gpuq_incoming in;
	int rc, ended = 0;

	do {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);

		rc = gpuq_client_next(d->g, 0, &mem, &in, err);
		if (rc == 1 && in.msg.type == GPUQ_WIRE_RESPONSE && in.msg.id == d->id) {
			*code = gpuq_client_settle(&in.msg, &result, err);
			*reply = *code == 0 && result ? gpuq_val_copy(a, result) : NULL;
			ended = 1;
		} else if (rc == 1 && in.msg.type == GPUQ_WIRE_NOTE) {
			on_note(d, &in.msg, fn, arg);
		}
		gpuq_arena_done(&mem);
	} while (rc == 1 && !ended);
	d->credit += d->g->credit;
	d->g->credit = 0;
	if (rc < 0)
		return gpuq_client_lost(d->g, rc, err);
	if (ended)
		return 1;
	rc = send_some(d, err);
	return rc < 0 ? gpuq_client_lost(d->g, rc, err) : 0;
}
