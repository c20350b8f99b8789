/* The stream of a WebSocket server, and of a shepherd during a session: the same messages
 * however the bytes are cut, or a refusal. Byte 0 selects them, and the cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/ws_frame.h"
#include "gpuqd/cluster/local/shepherd/talk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void web(const char *p, size_t n, size_t chunk, struct gpuq_buf *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct ws_reader r = { .begun = false };
	struct ws_message m;
	int rc = 0;

	while (n > 0 && rc == 0) {
		size_t k = chunk < n ? chunk : n;

		ws_feed(&r, p, k);
		p += k;
		n -= k;
		while ((rc = ws_next(&r, &m, &err)) == 1) {
			gpuq_buf_printf(out, "%d %zu ", m.op, m.n);
			if (m.n)
				gpuq_buf_add(out, m.bytes, m.n);
		}
	}
	gpuq_buf_printf(out, "%d", rc);
	ws_reader_done(&r);
}

static void talk(const char *p, size_t n)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct talk_request request;
	struct talk_frame f;
	int cols, rows;
	long k;

	while ((k = talk_next(p, n, &f)) > 0) {
		if ((size_t)k > n)
			abort();
		(void)talk_request_read(&f, &a, &request);
		(void)talk_size_read(&f, &cols, &rows);
		p += k;
		n -= (size_t)k;
	}
	gpuq_arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_buf whole = GPUQ_BUF_INIT, cut = GPUQ_BUF_INIT;
	char *copy;

	if (n < 1)
		return 0;
	copy = malloc(n); /* of its very size, so that a look beyond is seen */
	memcpy(copy, data + 1, n - 1);
	if (data[0] & 1) {
		talk(copy, n - 1);
	} else {
		web(copy, n - 1, n, &whole);
		web(copy, n - 1, 1 + data[0] / 2, &cut);
		if (whole.len != cut.len || memcmp(whole.data, cut.data, cut.len) != 0)
			abort();
	}
	free(copy);
	gpuq_buf_done(&whole);
	gpuq_buf_done(&cut);
	return 0;
}
