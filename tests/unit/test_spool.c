/* A folder of records that forgets its oldest. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/spool.h"

static char dir[64];

static void begin(void)
{
	snprintf(dir, sizeof(dir), "%s", "/tmp/gpuq-spool.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(spool, .init = begin, .fini = end);

/* Files and their sum of sizes; *first and *last: their numbers. */
static int look(int64_t *bytes, unsigned *first, unsigned *last)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	cr_assert_not_null(d);
	*bytes = 0;
	*first = ~0u;
	*last = 0;
	while ((e = readdir(d)) != NULL) {
		struct stat st;
		unsigned number;

		if (sscanf(e->d_name, "x-%u.mp", &number) != 1)
			continue;
		cr_assert_eq(fstatat(dirfd(d), e->d_name, &st, 0), 0);
		*bytes += st.st_size;
		*first = number < *first ? number : *first;
		*last = number > *last ? number : *last;
		n++;
	}
	closedir(d);
	return n;
}

Test(spool, the_oldest_are_forgotten_also_those_of_an_earlier_process)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char record[100];
	int64_t bytes;
	unsigned first, last, before = 0;

	memset(record, 'r', sizeof(record));
	for (int round = 0; round < 3; round++) {
		struct spool *s;

		cr_assert_eq(spool_open(dir, "x", 8000, &s, &err), 0, "%s", err.text);
		for (int i = 0; i < 100; i++) {
			cr_assert_eq(spool_add(s, record, sizeof(record), &err), 0, "%s", err.text);
			look(&bytes, &first, &last);
			cr_assert_leq(bytes, 8000);
		}
		cr_expect_geq(bytes, 7000, "not more than a file is forgotten at once");
		cr_expect_gt(first, before, "the first ones are gone");
		before = first;
		spool_close(s);
	}
}

Test(spool, what_is_too_large_is_refused_and_the_rest_goes_on)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char record[2000] = { 0 };
	struct spool *s;
	int64_t bytes;
	unsigned first, last;

	cr_assert_eq(spool_open(dir, "x", 1000, &s, &err), 0);
	cr_expect_eq(spool_add(s, record, sizeof(record), &err), GPUQ_ETOOBIG);
	cr_expect_eq(spool_add(s, record, 900, &err), 0, "larger than a part is no reason");
	cr_expect_eq(spool_add(s, record, 900, &err), 0);
	cr_expect_eq(look(&bytes, &first, &last), 1);
	cr_expect_eq(bytes, 900);
	spool_close(s);
}

Test(spool, other_files_stay)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char path[128], record[600] = { 0 };
	struct spool *s;

	snprintf(path, sizeof(path), "%s/x-notes.txt", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	cr_assert_eq(spool_open(dir, "x", 1000, &s, &err), 0);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(spool_add(s, record, sizeof(record), &err), 0);
	cr_expect_eq(access(path, F_OK), 0);
	spool_close(s);
}

Test(spool, a_folder_that_cannot_be_is_named)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct spool *s = NULL;

	cr_expect_lt(spool_open("/dev/null/x", "x", 1000, &s, &err), 0);
	cr_expect(strstr(err.text, "/dev/null/x"), "%s", err.text);
	cr_expect_null(s);
}
