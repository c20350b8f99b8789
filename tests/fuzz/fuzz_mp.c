/* Bytes of a peer: what our scanner takes for a message, msgpack-c must take for the
 * same one; and what was read must survive being written. */
#include <stdint.h>
#include <stdlib.h>

#include <msgpack.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX_HELLO, GPUQ_MSG_DEPTH_MAX,
					   GPUQ_MSG_ITEMS_MAX };

static void same_for_msgpack(const uint8_t *data, size_t n, size_t len)
{
	msgpack_unpacked msg;
	msgpack_unpack_return rc;
	size_t off = 0;

	msgpack_unpacked_init(&msg);
	rc = msgpack_unpack_next(&msg, (const char *)data, n, &off);
	if ((rc != MSGPACK_UNPACK_SUCCESS && rc != MSGPACK_UNPACK_EXTRA_BYTES) || off != len)
		abort();
	msgpack_unpacked_destroy(&msg);
}

/* Bytes that come in pieces must give the same answer. */
static void same_in_pieces(const uint8_t *data, size_t n, int want, size_t want_len)
{
	const size_t step = n ? 1 + data[0] % 7 : 1;
	struct gpuq_mp_scan scan = { 0 };
	size_t len = 0;
	int rc = 0;

	for (size_t have = 0; rc == 0; have += step) {
		rc = gpuq_mp_next(&scan, &lim, data, have < n ? have : n, &len, NULL);
		if (have >= n)
			break;
	}
	/* Where too much is asked, the reason may depend on what is seen first. */
	if ((rc < 0) != (want < 0) || (want >= 0 && rc != want) || len != want_len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_arena arena = GPUQ_ARENA_INIT(16 << 20);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val *v = NULL, *again = NULL;
	struct gpuq_mp_scan scan = { 0 };
	size_t len = 0;
	int rc = gpuq_mp_next(&scan, &lim, data, n, &len, NULL);

	same_in_pieces(data, n, rc, len);
	if (rc == 1) {
		same_for_msgpack(data, n, len);
		if (gpuq_mp_read(&arena, &lim, data, len, &v, NULL) == 0) {
			gpuq_mp_write(&b, v);
			/* Written sizes differ from foreign ones, so the limits do not apply. */
			if (b.len <= lim.max_bytes &&
			    (gpuq_mp_read(&arena, &lim, b.data, b.len, &again, NULL) != 0 ||
			     !gpuq_val_equal(v, again)))
				abort();
		}
	}
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
	return 0;
}
