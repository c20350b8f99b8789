/* Archives that jobs carry, as the state directory keeps them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/flow/code/codes.h"
#include "gpuqd/store/digest.h"
#include "libgpuq/limits.h"

#define S INT64_C(1000000)

static char dir[] = "/tmp/gpuq-codes.XXXXXX";
static struct codes *c;
static char hello[DIGEST_HEX_BYTES]; /* of "hello world" */

static void open_it(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(codes_open(dir, 0, &c, &err), 0, "%s", err.text);
}

static void setup(void)
{
	unsigned char raw[DIGEST_BYTES];
	struct digest *d;

	cr_assert(mkdtemp(dir));
	cr_assert_eq(digest_new(&d, NULL), 0);
	digest_add(d, "hello world", 11);
	digest_end(d, raw);
	digest_hex(raw, hello);
	open_it();
}

static void teardown(void)
{
	char command[100];

	codes_close(c);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

/* Put a piece; what is whole is settled at once. */
static int put(const char *user, const char *digest, int64_t total, int64_t offset,
	       const char *bytes, int64_t *have, struct gpuq_err *err)
{
	const struct codes_piece p = { user, digest, total, offset, bytes, strlen(bytes) };
	struct codes_settle *s = NULL;
	int rc = codes_put(c, &p, 0, have, &s, err);

	if (s) {
		codes_settle(s);
		rc = codes_settled(c, s, 0, err);
	}
	return rc;
}

static unsigned files(void)
{
	char command[100], text[20] = "";
	FILE *f;

	snprintf(command, sizeof(command), "ls %s/code | wc -l", dir);
	f = popen(command, "r");
	cr_assert(f && fgets(text, sizeof(text), f));
	pclose(f);
	return (unsigned)atoi(text);
}

TestSuite(codes, .init = setup, .fini = teardown);

Test(codes, pieces_become_a_file_of_the_user)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	int64_t have = 0;

	cr_assert_eq(put("ann", hello, 11, 0, "hello ", &have, &err), 0, "%s", err.text);
	cr_expect_eq(have, 6);
	cr_expect_eq(codes_find(c, "ann", hello, 0), -1, "it is not whole");
	cr_assert_eq(put("ann", hello, 11, 3, "xxx", &have, &err), 0);
	cr_expect_eq(have, 6, "a piece out of order is not taken");
	cr_assert_eq(put("ann", hello, 11, 6, "world", &have, &err), 0, "%s", err.text);
	cr_expect_eq(codes_find(c, "ann", hello, 0), 11);
	cr_expect_eq(codes_find(c, "ben", hello, 0), -1, "another user does not have it");
	cr_expect_eq(access(codes_path(c, "ann", hello, &mem), R_OK), 0);
	codes_close(c);
	open_it();
	cr_expect_eq(codes_find(c, "ann", hello, 0), 11, "after a restart");
	gpuq_arena_done(&mem);
}

Test(codes, wrong_bytes_and_parts_leave_nothing)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct codes_sums sums;
	int64_t have;

	cr_expect_eq(put("ann", hello, 11, 0, "hello earth", &have, &err), GPUQ_EINVAL);
	cr_expect_eq(files(), 0);
	cr_assert_eq(put("ann", hello, 11, 0, "hello ", &have, &err), 0);
	cr_expect_eq(files(), 1);
	codes_close(c);
	open_it();
	cr_expect_eq(files(), 0, "what was left of a crash is removed");
	cr_assert_eq(put("ann", hello, 11, 0, "hello ", &have, &err), 0);
	cr_assert_eq(put("ann", hello, 11, 0, "hello world", &have, &err), 0, "it may begin anew");
	codes_sums(c, &sums);
	cr_expect_eq(sums.files, 1);
	cr_expect_eq(sums.arriving, 0);
	cr_expect_eq(sums.bytes, 11);
}

Test(codes, they_go_when_nothing_names_them)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t have;

	cr_assert_eq(put("ann", hello, 11, 0, "hello world", &have, &err), 0);
	cr_assert_eq(put("ben", hello, 11, 0, "hello ", &have, &err), 0);
	codes_mark(c, "ann", hello);
	codes_sweep(c, 100 * S, 10 * S);
	cr_expect_eq(files(), 2, "a job names it");
	codes_sweep(c, 109 * S, 10 * S);
	cr_expect_eq(files(), 2);
	codes_sweep(c, 110 * S, 10 * S);
	cr_expect_eq(files(), 1);
	codes_sweep(c, GPUQ_CODE_IDLE_S * S, 10 * S);
	cr_expect_eq(files(), 0, "nothing more arrived");
}

Test(codes, a_user_has_bounds)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char digest[DIGEST_HEX_BYTES];
	int64_t have;

	for (unsigned i = 0; i < GPUQ_CODE_UPLOADS_PER_USER; i++) {
		snprintf(digest, sizeof(digest), "%064u", i);
		cr_assert_eq(put("ann", digest, 1 << 20, 0, "x", &have, &err), 0, "%s", err.text);
	}
	cr_expect_eq(put("ann", hello, 11, 0, "x", &have, &err), GPUQ_EBUSY);
	cr_expect_eq(put("ben", hello, 11, 0, "x", &have, &err), 0);
}

/* ---- another place ---- */

static struct {
	int rc;
	unsigned puts;
	char name[CODES_NAME_BYTES];
} place;

static int place_put(void *arg, const char *name, const char *sha256, int fd, struct gpuq_err *err)
{
	char text[12] = "";

	cr_expect_null(arg);
	cr_expect_str_eq(sha256, hello);
	cr_expect_eq(pread(fd, text, 11, 0), 11);
	cr_expect_str_eq(text, "hello world");
	cr_expect_eq(files(), 1, "no name before it is there");
	place.puts++;
	snprintf(place.name, sizeof(place.name), "%s", name);
	return place.rc < 0 ? gpuq_fail(err, place.rc, "it is full") : 0;
}

static bool place_has(void *arg, const char *name)
{
	(void)arg;
	return strcmp(name, place.name) == 0;
}

Test(codes, larger_ones_go_to_another_place_before_they_are_there)
{
	const struct codes_outside o = { .above_bytes = 10, .put = place_put, .has = place_has };
	struct gpuq_err err = GPUQ_ERR_INIT;
	char name[CODES_NAME_BYTES];
	int64_t have;

	codes_set_outside(c, &o);
	cr_expect(codes_goes_outside(c, 11));
	cr_expect_not(codes_goes_outside(c, 10));
	place.rc = GPUQ_EIO;
	cr_expect_eq(put("ann", hello, 11, 0, "hello world", &have, &err), GPUQ_EIO);
	cr_expect_str_eq(err.text, "cannot store the code of the job: it is full");
	cr_expect_eq(codes_find(c, "ann", hello, 0), -1);
	cr_expect_eq(files(), 0, "nothing stays");
	place.rc = 0;
	cr_expect_eq(put("ann", hello, 11, 0, "hello world", &have, &err), 0);
	codes_name("ann", hello, name);
	cr_expect_str_eq(place.name, name);
	cr_expect_eq(codes_find(c, "ann", hello, 0), 11);
	cr_expect_eq(place.puts, 2);
}
