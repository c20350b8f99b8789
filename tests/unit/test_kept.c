/* Output of pods that are gone, as files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/logs/kept.h"

static char dir[] = "/tmp/gpuq-kept.XXXXXX";
static struct loop *loop;
static struct kept *kept;
static char got[20000];
static size_t n_got, at_once;
static int64_t since_us;
static bool stamps;

static void setup(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert(mkdtemp(dir));
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(kept_new(loop, dir, &kept, &err), 0, "%s", err.text);
	at_once = sizeof(got);
}

static void teardown(void)
{
	char command[100];

	kept_free(kept);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

static void keep(const char *pod, const char *text, size_t times, int64_t max, int64_t until_s)
{
	struct kept_write *w = kept_write_new(kept, pod, max);

	cr_assert(w);
	for (size_t i = 0; i < times; i++)
		cr_assert(kept_write_add(w, text, strlen(text)));
	kept_write_end(w, until_s);
}

static bool take(void *arg, const char *bytes, size_t n, const struct gpuq_err *err)
{
	(void)arg, (void)err;
	if (n == 0) {
		loop_stop(loop, 0);
		return false;
	}
	cr_assert(n_got + n < sizeof(got));
	memcpy(got + n_got, bytes, n);
	n_got += n;
	got[n_got] = '\0';
	return true;
}

static const char *text_of(const char *pod, int64_t tail)
{
	const struct log_opts o = { .tail_lines = tail,
				    .since_us = since_us,
				    .timestamps = stamps };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct kept_read *r = kept_read_new(kept, pod, &o, take, NULL, &err);

	n_got = 0;
	got[0] = '\0';
	cr_assert(r, "%s", pod);
	loop_run(loop);
	kept_read_close(r);
	return got;
}

TestSuite(kept, .init = setup, .fini = teardown);

Test(kept, output_is_read_as_it_was)
{
	cr_expect_not(kept_has(kept, "a"));
	keep("a", "one\ntwo\n", 2, 100, 1000);
	cr_expect(kept_has(kept, "a"));
	cr_expect_str_eq(text_of("a", -1), "one\ntwo\none\ntwo\n");
	cr_expect_str_eq(text_of("a", 1), "two\n");
	cr_expect_str_eq(text_of("a", 3), "two\none\ntwo\n");
	cr_expect_str_eq(text_of("a", 9), "one\ntwo\none\ntwo\n");
	keep("b", "", 1, 100, 1000);
	cr_expect_not(kept_has(kept, "b"), "without output there is no file");
	keep("c", "no end", 1, 100, 1000);
	cr_expect_str_eq(text_of("c", 1), "no end");
}

Test(kept, lines_are_read_with_their_times_or_since_one)
{
	keep("t",
	     "2026-12-01T09:00:00.5Z one\n2026-12-01T11:00:01.123456789+02:00 \nmore\n"
	     "2026-12-01T09:00:02Z 12:00 two\n2026-12-01 no time",
	     1, 1000, 1000);
	cr_expect_str_eq(text_of("t", -1), "one\n\nmore\n12:00 two\n2026-12-01 no time");
	since_us = INT64_C(1796115601000000); /* 09:00:01 */
	cr_expect_str_eq(text_of("t", -1), "\nmore\n12:00 two\n2026-12-01 no time");
	stamps = true;
	cr_expect_str_eq(text_of("t", 3), "2026-12-01T09:00:02Z 12:00 two\n2026-12-01 no time");
	since_us += 1500000;
	cr_expect_str_eq(text_of("t", -1), "");
}

Test(kept, output_of_an_older_daemon_has_no_times)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct log_opts asks = { .tail_lines = -1, .timestamps = true };
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "%s/logs/old.log", dir);
	f = fopen(path, "w");
	cr_assert(f);
	fputs("2026-12-01T09:00:00Z is text\n", f);
	fclose(f);
	cr_expect(kept_has(kept, "old"));
	cr_expect_str_eq(text_of("old", -1), "2026-12-01T09:00:00Z is text\n");
	cr_expect_null(kept_read_new(kept, "old", &asks, take, NULL, &err));
	cr_expect_eq(err.code, GPUQ_EINVAL);
	cr_expect_null(kept_read_new(kept, "none", &asks, take, NULL, &err));
	cr_expect_eq(err.code, GPUQ_ENOENT);
}

/* The time in front of a line that was cut would be read as text. */
Test(kept, of_much_output_whole_lines_are_kept)
{
	for (int size = 60; size < 130; size++) {
		keep("l", "2026-12-01T09:00:00Z abc\n", 7, size, 1000);
		text_of("l", -1);
		cr_expect(strstr(got, "bytes are not kept\nabc\n"), "%d: %s", size, got);
		cr_expect_null(strstr(got, "Z"), "%d: %s", size, got);
	}
}

Test(kept, the_last_bytes_are_kept)
{
	keep("a", "0123456789", 10, 100, 1000);
	cr_expect_eq(strlen(text_of("a", -1)), 100);
	keep("b", "0123456789", 11, 25, 1000);
	cr_expect_str_eq(text_of("b", -1),
			 "gpuq: the first 85 bytes are not kept\n5678901234567890123456789");
}

static bool known(void *arg, const char *pod)
{
	(void)arg;
	return *pod != 'x';
}

Test(kept, they_go_by_time_and_bound_and_with_their_jobs)
{
	static struct kept_write *volatile cut; /* by a crash: it is never ended */
	struct gpuq_err err = GPUQ_ERR_INIT;

	keep("a1", "0123456789", 1, 100, 1000);
	keep("a2", "0123456789", 1, 100, 3000);
	keep("a3", "0123456789", 1, 100, 2000);
	keep("x", "0123456789", 1, 100, 3000);
	cut = kept_write_new(kept, "cut", 100);
	cr_assert_not_null(cut);
	kept_sweep(kept, 999, 1000, known, NULL);
	cr_expect(kept_has(kept, "a1") && kept_has(kept, "a2") && kept_has(kept, "a3"));
	cr_expect_not(kept_has(kept, "x"), "its job is not known any more");
	kept_sweep(kept, 1000, 1000, known, NULL);
	cr_expect_not(kept_has(kept, "a1"));
	kept_sweep(kept, 1000, 15, known, NULL);
	cr_expect_not(kept_has(kept, "a3"), "it would have been the next to go");
	cr_expect(kept_has(kept, "a2"));
	kept_free(kept);
	cr_assert_eq(kept_new(loop, dir, &kept, &err), 0);
	cr_expect(kept_has(kept, "a2"));
}
