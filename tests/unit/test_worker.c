/* The thread beside the loop: what its tasks took, it gives back. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/worker.h"

#define PIECES 100000
#define PIECE_BYTES 1000
#define MARGIN_BYTES (PIECES * PIECE_BYTES / 4)

static char *pieces[PIECES];
static struct loop *loop;

static long resident_bytes(void)
{
	long all = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%ld %ld", &all, &resident), 2);
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

/* The last one stays, so that what was freed before it is not at an end of the heap. */
static void take_much(void *arg)
{
	long *most = arg;

	for (int i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE_BYTES);
		memset(pieces[i], 1, PIECE_BYTES);
	}
	*most = resident_bytes();
	for (int i = 0; i < PIECES - 1; i++)
		free(pieces[i]);
}

static void stop(void *arg)
{
	(void)arg;
	loop_stop(loop, 0);
}

Test(worker, gives_back_what_its_work_took)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
	cr_skip_test("another allocator");
#endif
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct worker *w;
	long before, most = 0;

	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(worker_new(loop, &w, &err), 0);
	worker_give_back(w);
	before = resident_bytes();
	cr_assert_eq(worker_run(w, take_much, stop, &most, &err), 0);
	cr_assert_eq(loop_run(loop), 0);
	cr_expect_gt(most, before + PIECES / 2 * PIECE_BYTES);
	for (int i = 0; i < 600 && resident_bytes() > before + MARGIN_BYTES; i++)
		usleep(100000);
	cr_expect_leq(resident_bytes(), before + MARGIN_BYTES);
	worker_free(w, NULL);
	loop_free(loop);
	free(pieces[PIECES - 1]);
}
