/* WebSocket frames: a client's out, a server's in, whole, in pieces, and broken. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/ws_frame.h"

static const unsigned char mask[4] = { 0x37, 0xfa, 0x21, 0x3d };

Test(ws_frame, a_frame_is_masked_as_the_rfc_shows)
{
	/* RFC 6455, 5.7: a single-frame masked text message, "Hello". */
	static const char want[] = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
	struct gpuq_buf b = GPUQ_BUF_INIT;

	ws_put(&b, WS_TEXT, "He", 2, "llo", 3, mask);
	cr_assert_eq(b.len, 11);
	cr_expect_arr_eq(b.data, want, 11);
	gpuq_buf_done(&b);
}

Test(ws_frame, lengths_take_two_or_eight_bytes_more)
{
	static const size_t lengths[] = { 125, 126, 65535, 65536 }, heads[] = { 6, 8, 8, 14 };
	char *text = calloc(1, 65536);

	for (size_t i = 0; i < 4; i++) {
		struct gpuq_buf b = GPUQ_BUF_INIT;

		ws_put(&b, WS_BINARY, NULL, 0, text, lengths[i], mask);
		cr_expect_eq(b.len, heads[i] + lengths[i]);
		gpuq_buf_done(&b);
	}
	free(text);
}

/* A server's frame: as above without the mask. */
static void server(struct gpuq_buf *b, unsigned first, const char *bytes, size_t n)
{
	gpuq_buf_addc(b, (char)first);
	if (n < 126) {
		gpuq_buf_addc(b, (char)n);
	} else {
		gpuq_buf_addc(b, 126);
		gpuq_buf_addc(b, (char)(n >> 8));
		gpuq_buf_addc(b, (char)n);
	}
	gpuq_buf_add(b, bytes, n);
}

/* Read all messages of a stream, fed in pieces of so many bytes. */
static void all(const struct gpuq_buf *in, size_t piece, struct gpuq_buf *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct ws_reader r = { .begun = false };
	struct ws_message m;
	int rc = 0;

	for (size_t at = 0; at < in->len && rc == 0; at += piece) {
		ws_feed(&r, in->data + at, in->len - at < piece ? in->len - at : piece);
		while ((rc = ws_next(&r, &m, &err)) == 1) {
			gpuq_buf_printf(out, "%d:%zu:", m.op, m.n);
			gpuq_buf_add(out, m.bytes, m.n < 20 ? m.n : 20);
			gpuq_buf_addc(out, ' ');
		}
	}
	if (rc < 0)
		gpuq_buf_printf(out, "%s", gpuq_err_name(rc));
	ws_reader_done(&r);
}

Test(ws_frame, parts_and_what_stands_between_them)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 1000 };
	struct gpuq_buf in = GPUQ_BUF_INIT, want = GPUQ_BUF_INIT;
	char big[300];

	memset(big, 'x', sizeof(big));
	server(&in, 0x82, "", 0);
	server(&in, 0x02, "one", 3);
	server(&in, 0x89, "ping", 4);
	server(&in, 0x00, "two", 3);
	server(&in, 0x80, "end", 3);
	server(&in, 0x82, big, sizeof(big));
	server(&in, 0x88, "\3\350", 2);
	gpuq_buf_adds(&want, "2:0: 9:4:ping 2:9:onetwoend 2:300:xxxxxxxxxxxxxxxxxxxx 8:2:\3\350 ");
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct gpuq_buf got = GPUQ_BUF_INIT;

		all(&in, pieces[i], &got);
		cr_expect_str_eq(gpuq_buf_str(&got), gpuq_buf_str(&want), "pieces of %zu",
				 pieces[i]);
		gpuq_buf_done(&got);
	}
	gpuq_buf_done(&in);
	gpuq_buf_done(&want);
}

Test(ws_frame, what_no_server_sends_is_refused)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *want;
	} rows[] = {
		{ "\x82\x81\1\2\3\4x", 7, "protocol" }, /* masked */
		{ "\xc2\1x", 3, "protocol" }, /* a bit that is reserved */
		{ "\x83\1x", 3, "protocol" }, /* no such opcode */
		{ "\x8b\0", 2, "protocol" },
		{ "\x80\1x", 3, "protocol" }, /* the end of what was not begun */
		{ "\x02\1x\x82\1y", 6, "protocol" }, /* a message inside another */
		{ "\x09\1x", 3, "protocol" }, /* a ping in parts */
		{ "\x89\x7e\0\x7e", 4, "protocol" }, /* a ping that is too long */
		{ "\x82\x7f\0\0\0\0\0\x20\0\0", 10, "too_big" },
		{ "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, "too_big" },
		{ "\x82\x7e\1", 3, "" }, /* not whole yet */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_buf in = GPUQ_BUF_INIT, got = GPUQ_BUF_INIT;

		gpuq_buf_add(&in, rows[i].bytes, rows[i].n);
		all(&in, 1, &got);
		cr_expect_str_eq(gpuq_buf_str(&got), rows[i].want, "row %zu", i);
		gpuq_buf_done(&in);
		gpuq_buf_done(&got);
	}
}

Test(ws_frame, many_parts_are_no_way_around_the_limit)
{
	struct gpuq_buf in = GPUQ_BUF_INIT, got = GPUQ_BUF_INIT;
	char part[60000] = { 0 };

	for (size_t i = 0; i < 20; i++)
		server(&in, i ? 0x00 : 0x02, part, sizeof(part));
	all(&in, 100000, &got);
	cr_expect_str_eq(gpuq_buf_str(&got), "too_big");
	gpuq_buf_done(&in);
	gpuq_buf_done(&got);
}
