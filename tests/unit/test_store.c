/* Records on disk: what was committed is there, what is damaged is said to be. */
#define _GNU_SOURCE /* memmem */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/store/crc32c.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/read.h"

static char dir[64];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/gpuq-store.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "%s/data.mdb", dir);
	unlink(cmd);
	snprintf(cmd, sizeof(cmd), "%s/lock.mdb", dir);
	unlink(cmd);
	snprintf(cmd, sizeof(cmd), "%s/mark", dir);
	unlink(cmd);
	snprintf(cmd, sizeof(cmd), "%s/ballast", dir);
	unlink(cmd);
	snprintf(cmd, sizeof(cmd), "%s/gpuqd.lock", dir);
	unlink(cmd);
	rmdir(dir);
}

TestSuite(store, .init = make_dir, .fini = remove_dir);

static struct store *open_it(bool *fresh_out)
{
	struct store_opts o = { .map_bytes = 16 << 20, .unsafe_fs = true };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = NULL;
	bool is_new;

	cr_assert_eq(store_open(dir, &o, &st, &is_new, &err), 0, "%s", err.text);
	if (fresh_out)
		*fresh_out = is_new;
	return st;
}

static void put(struct store *st, uint32_t id, const char *val)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch b;

	change_batch_init(&b);
	change_batch_put(&b, TABLE_SPEC, key, change_key_u32(key, id), val, val ? strlen(val) : 0);
	cr_assert_eq(store_write_now(st, &b, &err), 0, "%s", err.text);
	change_batch_done(&b);
}

static int get(struct store *st, uint32_t id, struct gpuq_buf *out, struct gpuq_err *err)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	return store_get(st, TABLE_SPEC, key, change_key_u32(key, id), out, err);
}

Test(store, keeps_what_was_committed)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	bool is_new;
	struct store *st = open_it(&is_new);

	cr_expect(is_new);
	put(st, 1, "one");
	put(st, 2, "two");
	put(st, 1, NULL);
	store_close(st);
	st = open_it(&is_new);
	cr_expect(!is_new);
	cr_expect_eq(get(st, 1, &b, NULL), GPUQ_ENOENT);
	cr_assert_eq(get(st, 2, &b, NULL), 0);
	cr_expect_str_eq(gpuq_buf_str(&b), "two");
	gpuq_buf_done(&b);
	store_close(st);
}

Test(store, refuses_a_second_process)
{
	struct store *st = open_it(NULL);
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct store_opts o = { .unsafe_fs = true };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct store *two = NULL;
		bool is_new;
		int rc = store_open(dir, &o, &two, &is_new, &err);

		_exit(rc == GPUQ_EBUSY && strstr(err.text, "pid") ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	store_close(st);
}

Test(store, names_a_damaged_record)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct store *st = open_it(NULL);
	char path[128], page[4096];
	off_t at = -1;
	int fd;

	put(st, 7, "needle-in-the-haystack");
	store_close(st);
	snprintf(path, sizeof(path), "%s/data.mdb", dir);
	fd = open(path, O_RDWR);
	cr_assert_geq(fd, 0);
	for (off_t p = 0; pread(fd, page, sizeof(page), p) > 0; p += (off_t)sizeof(page)) {
		char *hit = memmem(page, sizeof(page), "needle", 6);

		if (hit)
			at = p + (hit - page);
	}
	cr_assert_geq(at, 0);
	cr_assert_eq(pwrite(fd, "N", 1, at), 1);
	close(fd);
	st = open_it(NULL);
	cr_expect_eq(get(st, 7, &b, &err), GPUQ_ECORRUPT);
	cr_expect_not_null(strstr(err.text, "00000007"), "%s", err.text);
	gpuq_buf_done(&b);
	store_close(st);
}

Test(store, a_full_map_fails_the_batch_and_nothing_else)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct store *st = open_it(NULL);
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	char *big = calloc(1, 1 << 20);
	struct batch batch;

	put(st, 1, "before");
	change_batch_init(&batch);
	for (uint32_t i = 10; i < 40; i++)
		change_batch_put(&batch, TABLE_LOG, key, change_key_u32(key, i), big, 1 << 20);
	cr_expect_eq(store_write_now(st, &batch, &err), GPUQ_ESTORAGE, "%s", err.text);
	cr_expect_not_null(strstr(err.text, "map_size"), "%s", err.text);
	change_batch_done(&batch);
	cr_expect_eq(get(st, 10, &b, NULL), GPUQ_ENOENT, "all of a batch or nothing");
	cr_expect_eq(get(st, 1, &b, NULL), 0);
	put(st, 2, "after");
	gpuq_buf_done(&b);
	free(big);
	store_close(st);
}

static int collect(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		   size_t val_len)
{
	(void)key_len, (void)val, (void)val_len;
	gpuq_buf_printf(arg, "%u ", key[3]);
	return 0;
}

Test(store, walks_a_table_forwards_and_backwards)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct store *st = open_it(NULL);
	unsigned char from[CHANGE_KEY_BYTES_MAX];

	for (uint32_t i = 1; i <= 5; i++)
		put(st, i, "x");
	cr_assert_eq(store_each(st, TABLE_SPEC, NULL, 0, NULL, 0, false, 0, collect, &b, NULL), 0);
	cr_expect_str_eq(gpuq_buf_str(&b), "1 2 3 4 5 ");
	gpuq_buf_clear(&b);
	cr_assert_eq(store_each(st, TABLE_SPEC, NULL, 0, NULL, 0, true, 3, collect, &b, NULL), 0);
	cr_expect_str_eq(gpuq_buf_str(&b), "5 4 3 ");
	gpuq_buf_clear(&b);
	cr_assert_eq(store_each(st, TABLE_SPEC, NULL, 0, from, change_key_u32(from, 3), false, 0,
				collect, &b, NULL),
		     0);
	cr_expect_str_eq(gpuq_buf_str(&b), "3 4 5 ");
	gpuq_buf_done(&b);
	store_close(st);
}

Test(crc32c, known_values)
{
	static const unsigned char zeros[32];

	/* RFC 3720 B.4. */
	cr_expect_eq(crc32c(zeros, 32), 0x8a9136aau);
	cr_expect_eq(crc32c("123456789", 9), 0xe3069283u);
	cr_expect_eq(crc32c("", 0), 0u);
}

Test(crc32c, the_machine_counts_as_the_tables_do)
{
	unsigned char bytes[70];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(bytes); n++)
		cr_expect_eq(crc32c(bytes, n), crc32c_by_tables(0, bytes, n), "%zu bytes", n);
}
