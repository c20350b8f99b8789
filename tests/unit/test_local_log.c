/* The output of a job, read while it runs, after its end and after it was deleted. */
#include "config.h"

#include <assert.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/cluster/local/shepherd/log_reader.h"
#include "gpuqd/cluster/local/shepherd/shepherd_log.h"
#include "gpuqd/store/ballast.h"
#include "tests/unit/local_world.h"

static struct world w;
static struct wish wish;

static struct reader {
	char text[1 << 20];
	size_t n;
	bool ended, broke, refuse, close_at_end;
	int calls;
	struct cluster_log *log;
} r;

static void setup(void)
{
	world_open(&w, NULL, 0);
	memset(&r, 0, sizeof(r));
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(local_log, .init = setup, .fini = teardown, .timeout = 300);

static bool on_log(void *arg, const char *bytes, size_t n, const struct gpuq_err *err)
{
	struct reader *to = arg;

	to->calls++;
	if (n == 0) {
		cr_expect_not(to->ended, "the end is told once");
		to->ended = true;
		to->broke = err != NULL;
		if (to->close_at_end)
			w.c->ops->log_close(to->log);
		return true;
	}
	cr_assert_leq(to->n + n, sizeof(to->text) - 1);
	memcpy(to->text + to->n, bytes, n);
	to->n += n;
	to->text[to->n] = '\0';
	return !to->refuse;
}

static void open_log(bool follow, int64_t tail)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };
	const struct log_opts opts = { .follow = follow,
				       .tail_lines = tail,
				       .uid = (uint32_t)getuid(),
				       .gid = (uint32_t)getgid() };
	struct gpuq_err err = GPUQ_ERR_INIT;

	r.log = w.c->ops->log_open(w.c, &ref, &opts, on_log, &r, &err);
	cr_assert(r.log, "%s", err.text);
	cr_expect_eq(r.calls, 0, "no callback from inside");
}

static bool log_ended(struct world *world, void *arg)
{
	(void)world, (void)arg;
	return r.ended;
}

static bool log_has(struct world *world, void *arg)
{
	(void)world;
	return strstr(r.text, arg) != NULL;
}

static void read_all(bool follow, int64_t tail)
{
	memset(&r, 0, sizeof(r));
	open_log(follow, tail);
	cr_assert(world_wait(&w, log_ended, NULL));
	w.c->ops->log_close(r.log);
}

static void run(const char *command)
{
	wish_init(&wish, &w, 1, command);
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
}

Test(local_log, all_and_the_last_lines)
{
	static const struct {
		int64_t tail;
		const char *want;
	} rows[] = {
		{ -1, "1\n2\n3\n4\nno newline" },
		{ 0, "" },
		{ 1, "no newline" },
		{ 2, "4\nno newline" },
		{ 5, "1\n2\n3\n4\nno newline" },
		{ 100, "1\n2\n3\n4\nno newline" },
	};

	run("seq 4; printf 'no newline'");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		read_all(false, rows[i].tail);
		cr_expect_str_eq(r.text, rows[i].want, "tail %d: %s", (int)rows[i].tail, r.text);
		cr_expect_not(r.broke);
	}
}

Test(local_log, tails_cross_the_blocks_they_are_read_in)
{
	run("seq 100000 | sed 's/^/this is line /'");
	read_all(false, 20000);
	cr_expect(strncmp(r.text, "this is line 80001\n", 19) == 0, "%.40s", r.text);
	cr_expect_str_eq(r.text + r.n - 20, "this is line 100000\n");
}

Test(local_log, followed_it_comes_as_it_is_written_and_ends_with_the_job)
{
	wish_init(&wish, &w, 1, "echo one; while ! test -e go; do sleep 0.02; done; echo two");
	world_create(&w, &wish);
	open_log(true, -1); /* before it has begun */
	cr_assert(world_wait(&w, log_has, (void *)"one\n"));
	cr_expect_null(strstr(r.text, "two"));
	cr_expect_not(r.ended);
	fclose(fopen(world_path(&w, "go"), "w"));
	r.close_at_end = true;
	cr_assert(world_wait(&w, log_ended, NULL));
	cr_expect_str_eq(r.text, "one\ntwo\n");
}

static bool has_calls(struct world *world, void *arg)
{
	(void)world;
	return r.calls >= *(int *)arg;
}

Test(local_log, a_slow_reader_is_not_flooded)
{
	int calls = 1;

	run("head -c 500000 /dev/zero | tr '\\000' x");
	r.refuse = true;
	open_log(true, -1);
	while (!r.ended) {
		cr_assert(world_wait(&w, has_calls, &calls));
		cr_assert_eq(r.calls, calls, "called while it was paused");
		calls++;
		w.c->ops->log_resume(r.log);
	}
	cr_expect_eq(r.n, 500000);
	cr_expect_gt(r.calls, 5);
	w.c->ops->log_close(r.log);
}

Test(local_log, a_running_job_is_not_waited_for_without_follow)
{
	wish_init(&wish, &w, 1, "echo one; echo > ready; sleep 1000");
	world_create(&w, &wish);
	cr_assert(world_wait_file(&w, world_path(&w, "ready")));
	/* The output comes through the shepherd, which may be slightly late. */
	for (int tries = 0; tries < 500 && r.n == 0; tries++) {
		poll(NULL, 0, tries ? 20 : 0);
		read_all(false, -1);
	}
	cr_expect_str_eq(r.text, "one\n");
}

Test(local_log, it_can_be_read_after_it_was_forgotten_and_after_a_restart)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };

	run("echo kept");
	w.c->ops->pod_forget(w.c, &ref);
	cr_assert(world_wait_gone(&w, wish.name));
	read_all(true, -1);
	cr_expect_str_eq(r.text, "kept\n");
	world_restart(&w);
	read_all(false, -1);
	cr_expect_str_eq(r.text, "kept\n");
}

Test(local_log, a_file_of_the_jobs_own_is_read_from_where_the_job_began)
{
	FILE *f = fopen(world_path(&w, "out.txt"), "w");

	fputs("of an earlier job\n", f);
	fclose(f);
	wish_init(&wish, &w, 1,
		  "echo one; echo > ready; while ! test -e go; do sleep 0.02; done; "
		  "echo two");
	wish.spec.output = "out.txt";
	wish.spec.append = true;
	world_create(&w, &wish);
	open_log(true, -1);
	cr_assert(world_wait(&w, log_has, (void *)"one\n"));
	fclose(fopen(world_path(&w, "go"), "w"));
	cr_assert(world_wait(&w, log_ended, NULL));
	w.c->ops->log_close(r.log);
	cr_expect_str_eq(r.text, "one\ntwo\n", "%s", r.text);
	read_all(false, 1);
	cr_expect_str_eq(r.text, "two\n", "%s", r.text);
}

Test(local_log, a_path_that_leads_elsewhere_by_now_is_not_followed)
{
	FILE *f = fopen(world_path(&w, "secret"), "w");

	fputs("secret\n", f);
	fclose(f);
	wish_init(&wish, &w, 1, "echo one; rm out.txt; ln -s secret out.txt");
	wish.spec.output = "out.txt";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	read_all(false, -1);
	cr_expect_str_eq(r.text, "", "%s", r.text);
	unlink(world_path(&w, "out.txt"));
	rename(world_path(&w, "secret"), world_path(&w, "out.txt"));
	read_all(false, -1);
	cr_expect_str_eq(r.text, "", "%s", r.text);
}

/* A job stored by an earlier version may have anything in these; what it wants to be read as a
 * line of the shepherd's names a file of the same user, so that the file's mode does not help. */
Test(local_log, no_word_of_an_order_names_another_file_as_the_output)
{
	enum { CWD, CHDIR, OUTPUT, ERROR, INPUT, COMMAND, N };
	FILE *f = fopen(world_path(&w, "secret"), "w");
	char text[512], at[640], own[128];
	struct stat st;

	fputs("topsecret\n", f);
	fclose(f);
	cr_assert_eq(stat(world_path(&w, "secret"), &st), 0);
	snprintf(text, sizeof(text), "x\nT%ju %ju %ju 0 %s\nx", (uintmax_t)st.st_dev,
		 (uintmax_t)st.st_ino, (uintmax_t)st.st_uid, world_path(&w, "secret"));
	snprintf(at, sizeof(at), "/%s", text);
	for (int i = 0; i < N; i++) {
		wish_init(&wish, &w, 10 + (uint32_t)i, "echo own");
		snprintf(own, sizeof(own), "own.%d", i);
		wish.spec.output = i == COMMAND ? NULL : own;
		if (i == CWD)
			wish.spec.context.cwd = at;
		if (i == CHDIR)
			wish.spec.chdir = at;
		if (i == OUTPUT)
			wish.spec.output = text;
		if (i == ERROR)
			wish.spec.error = text;
		if (i == INPUT)
			wish.spec.input = text;
		if (i == COMMAND)
			wish.argv[0] = text;
		world_create(&w, &wish);
		cr_assert(world_wait_ended(&w, wish.name));
		read_all(false, -1);
		cr_expect_null(strstr(r.text, "topsecret"), "%d: %s", i, r.text);
		f = fopen(world_path(&w, "logs/%s.to", wish.name), "r");
		if (f) {
			uintmax_t dev, ino;

			cr_expect_eq(fscanf(f, "%ju %ju", &dev, &ino), 2);
			cr_expect_neq(ino, (uintmax_t)st.st_ino, "%d", i);
			fclose(f);
		}
		cr_expect_str_neq(world_pod(&w, wish.name)->message, "", "%d: it ran", i);
	}
}

Test(local_log, a_path_with_a_newline_is_read_all_the_same)
{
	run("true");
	wish_init(&wish, &w, 2, "echo one; echo two");
	wish.spec.output = "a\nb";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	read_all(true, -1);
	cr_expect_str_eq(r.text, "one\ntwo\n", "%s", r.text);
}

/* Without the owner's identity no file of the job's own is opened. */
Test(local_log, without_a_known_owner_no_file_is_opened)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };
	const struct log_opts opts = { .tail_lines = -1, .uid = UINT32_MAX, .gid = UINT32_MAX };
	struct gpuq_err err = GPUQ_ERR_INIT;

	wish_init(&wish, &w, 1, "echo one");
	wish.spec.output = "out.txt";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	memset(&r, 0, sizeof(r));
	r.log = w.c->ops->log_open(w.c, &ref, &opts, on_log, &r, &err);
	cr_assert(r.log);
	cr_assert(world_wait(&w, log_ended, NULL));
	w.c->ops->log_close(r.log);
	cr_expect_str_eq(r.text, "");
}

Test(local_log, a_large_file_of_the_jobs_own_comes_whole_to_a_slow_reader)
{
	int calls = 1;

	wish_init(&wish, &w, 1, "head -c 500000 /dev/zero | tr '\\000' x");
	wish.spec.output = "out.txt";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	memset(&r, 0, sizeof(r));
	r.refuse = true;
	open_log(true, -1);
	while (!r.ended) {
		cr_assert(world_wait(&w, has_calls, &calls));
		cr_assert_eq(r.calls, calls, "called while it was paused");
		calls++;
		w.c->ops->log_resume(r.log);
	}
	cr_expect_eq(r.n, 500000);
	w.c->ops->log_close(r.log);
}

Test(local_log, what_is_asked_of_a_reader_is_read_back_and_nothing_else_is)
{
	const struct log_request q = {
		.uid = 1000,
		.gid = LOG_READER_NO_ID,
		.target = { .dev = 5, .ino = UINT64_MAX, .offset = 7, .path = "/a b\n" },
		.tail_lines = -1
	};
	static const struct {
		const char *text;
		size_t n;
	} bad[] = {
#define T(s) { s, sizeof(s) - 1 }
		T(""),
		T("1 0 0 0 0 0 -1"),
		T("1 0 0 0 0 0 -1\0"),
		T("1 0 0 0 0 0 -1\0/x"),
		T("2 0 0 0 0 0 -1\0/x\0"),
		T("1 0 0 0 0 0\0/x\0"),
		T("1 0 0 0 0 0 -1\0x\0"),
		T("1 0 0 0 0 -1 -1\0/x\0"),
		T("1 4294967295 0 0 0 0 -1\0/x\0"),
		T("1 0 0 0 0 0 -1 \0/x\0"),
#undef T
	};
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct log_request got = { 0 };

	log_request_write(&b, &q);
	for (size_t n = 0; n < b.len; n++)
		cr_expect_not(log_request_read(b.data, n, &got), "%zu of %zu bytes", n, b.len);
	cr_assert(log_request_read(b.data, b.len, &got));
	cr_expect(got.uid == 1000 && got.gid == LOG_READER_NO_ID && got.target.dev == 5 &&
		  got.target.ino == UINT64_MAX && got.target.offset == 7 && got.tail_lines == -1);
	cr_expect_str_eq(got.target.path, "/a b\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(log_request_read(bad[i].text, bad[i].n, &got), "row %zu", i);
	gpuq_buf_done(&b);
}

/* A pod of the same name may have been another job's, before the database was restored. */
Test(local_log, whose_pod_it_was_is_checked)
{
	static const struct {
		const char *uid, *token;
		uint32_t owner;
	} bad[] = {
		{ "", "", UINT32_MAX }, /* a job that has ended, of which no uid is known */
		{ "", "ffffffffffffffffffffffffffffffff", UINT32_MAX },
		{ "ffffffffffffffffffffffffffffffff", wish.token, UINT32_MAX },
		{ "", wish.token, 4294967294 },
	};
	struct gpuq_err err = GPUQ_ERR_INIT;

	run("echo secret");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct pod_ref ref = { .name = wish.name,
					     .uid = bad[i].uid,
					     .token = bad[i].token };
		const struct log_opts opts = { .tail_lines = -1, .uid = bad[i].owner };

		cr_expect_null(w.c->ops->log_open(w.c, &ref, &opts, on_log, &r, &err), "row %zu",
			       i);
		cr_expect_eq(err.code, GPUQ_ENOENT, "row %zu", i);
	}
	read_all(false, -1);
	cr_expect_str_eq(r.text, "secret\n");
}

Test(local_log, no_such_pod_and_no_times_are_errors)
{
	const struct pod_ref none = { .name = "gpuq-00c0ffee-9-0-0" };
	const struct pod_ref bad = { .name = "../../etc/passwd" };
	const struct log_opts plain = { .tail_lines = -1 };
	const struct log_opts times = { .tail_lines = -1, .timestamps = true };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_null(w.c->ops->log_open(w.c, &none, &plain, on_log, &r, &err));
	cr_expect_eq(err.code, GPUQ_ENOENT);
	cr_expect_null(w.c->ops->log_open(w.c, &bad, &plain, on_log, &r, &err));
	cr_expect_eq(err.code, GPUQ_EINVAL);
	run("true");
	{
		const struct pod_ref ref = { .name = wish.name, .token = wish.token };

		cr_expect_null(w.c->ops->log_open(w.c, &ref, &times, on_log, &r, &err));
		cr_expect_eq(err.code, GPUQ_EINVAL);
	}
}

/* The oldest of too much output goes, offsets stay, and the reader hears how much. */
Test(local_log, too_much_output_loses_its_beginning)
{
	struct shepherd_log log;
	int logs = open(world_path(&w, "logs"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char block[4096];
	struct stat st;

	wish_init(&wish, &w, 77, "");
	shepherd_log_open(&log, logs, wish.name);
	log.max_bytes = 64 << 10;
	for (int i = 0; i < 256; i++) {
		memset(block, 'a' + i % 26, sizeof(block) - 1);
		block[sizeof(block) - 1] = '\n';
		shepherd_log_write(&log, block, sizeof(block));
	}
	shepherd_log_write(&log, "the end\n", 8);
	shepherd_log_close(&log);
	close(logs);
	cr_assert_eq(stat(world_path(&w, "logs/%s.log", wish.name), &st), 0);
	cr_expect_leq(st.st_blocks * 512, (3 * 64) << 10);
	read_all(false, -1);
	cr_expect_leq(r.n, (3 * 64) << 10);
	cr_expect_str_eq(r.text + r.n - 8, "the end\n");
	if (st.st_size > (200 << 10)) /* a filesystem with holes */
		cr_expect(strncmp(r.text, "[gpuq: ", 7) == 0 &&
				  strstr(r.text, " bytes of older output are no longer kept]\n"),
			  "%.80s", r.text);
}

/* Output yields to the database on the same disk, and says what is missing once there is room. */
Test(local_log, a_disk_that_is_nearly_full_takes_no_output)
{
	struct shepherd_log log;
	int logs = open(world_path(&w, "logs"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	static_assert(LOG_FREE_BYTES_MIN > BALLAST_BYTES + (1 << 20),
		      "output leaves the ballast and more");
	wish_init(&wish, &w, 77, "");
	shepherd_log_open(&log, logs, wish.name);
	cr_expect_eq(log.free_bytes, LOG_FREE_BYTES_MIN);
	shepherd_log_write(&log, "one\n", 4);
	log.free_bytes = INT64_MAX;
	for (int i = 0; i < 3; i++)
		shepherd_log_write(&log, "lost\n", 5);
	cr_assert_eq(stat(world_path(&w, "logs/%s.log", wish.name), &st), 0);
	cr_expect_eq(st.st_size, 4);
	log.free_bytes = 0;
	shepherd_log_write(&log, "two\n", 4);
	shepherd_log_close(&log);
	close(logs);
	read_all(false, -1);
	cr_expect_str_eq(r.text, "one\n\n[gpuq: 15 bytes of output could not be kept]\ntwo\n");
}
