/* The protocol of daemon and shepherd: frames that come whole, in pieces, or broken. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpuqd/cluster/local/shepherd/talk.h"

Test(talk, frames_come_back_as_they_were)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct talk_frame f;
	size_t at = 0, n = 0;
	char noise[40000];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 7);
	talk_put_data(&b, TALK_OUT, noise, sizeof(noise));
	talk_put(&b, TALK_IN_END, NULL, 0);
	while (at < b.len) {
		long k = talk_next(b.data + at, b.len - at, &f);

		cr_assert_gt(k, 0);
		at += (size_t)k;
		if (f.type == TALK_IN_END)
			break;
		cr_assert_eq(f.type, TALK_OUT);
		cr_assert_leq(f.n, TALK_PIECE_BYTES);
		cr_assert_arr_eq(f.bytes, noise + n, f.n);
		n += f.n;
	}
	cr_expect_eq(n, sizeof(noise));
	cr_expect_eq(at, b.len);
	gpuq_buf_done(&b);
}

Test(talk, a_part_of_a_frame_waits_for_the_rest)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct talk_frame f;

	talk_puts(&b, TALK_EXIT, "137");
	for (size_t n = 0; n < b.len; n++)
		cr_expect_eq(talk_next(b.data, n, &f), 0, "%zu bytes", n);
	cr_expect_eq(talk_next(b.data, b.len, &f), (long)b.len);
	gpuq_buf_done(&b);
}

Test(talk, what_is_no_frame_is_told_at_once)
{
	struct talk_frame f;

	cr_expect_eq(talk_next("?\0\0\0", 4, &f), -1);
	cr_expect_eq(talk_next("\0", 1, &f), -1);
	cr_expect_eq(talk_next("o\377\377\377", 4, &f), -1, "longer than any");
}

Test(talk, a_request_comes_back)
{
	const char *const words[] = { "sh", "-c", "", NULL };
	const struct talk_request r = { .input = true,
					.tty = true,
					.cols = 80,
					.rows = 24,
					.command = { (const char **)words, 3 } };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct talk_request got;
	struct talk_frame f;

	talk_request_write(&b, &r);
	cr_assert_gt(talk_next(b.data, b.len, &f), 0);
	cr_assert(talk_request_read(&f, &a, &got));
	cr_expect(got.input && got.tty && !got.output && !got.replay && got.port == 0);
	cr_expect(got.cols == 80 && got.rows == 24);
	cr_assert_eq(got.command.n, 3);
	cr_expect_str_eq(got.command.items[2], "");
	cr_expect_null(got.command.items[3]);
	f.n -= 2; /* cut in the middle of a word */
	cr_expect_not(talk_request_read(&f, &a, &got));
	gpuq_arena_done(&a);
	gpuq_buf_done(&b);
}
