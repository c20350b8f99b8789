/* How fast jobs become durable, beside the disk's own limit.
 *
 *   bench_submit raw DIR SECONDS JOBS    jobs per second through the store alone, JOBS of
 *                                        them (their records) in each commit
 *   bench_submit SERVER SECONDS OUT      submits per second through a running gpuqd with
 *                                        OUT calls under way (1: each waits for its answer)
 *   bench_submit fill SERVER JOBS FILE   JOBS of those that FILE describes, as fast as may be
 *
 * Prints one number. Jobs are held, so that nothing but taking them is measured.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "libgpuq/client.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/spec.h"

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what, const struct gpuq_err *err)
{
	fprintf(stderr, "bench_submit: %s: %s\n", what, err->text);
	exit(1);
}

/* The records a submission makes: job, spec, counters, key; sizes as gpuqd writes them. */
static int raw(const char *dir, double seconds, int jobs)
{
	struct store_opts o = { .unsafe_fs = true };
	struct gpuq_err err = GPUQ_ERR_INIT;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	char val[512] = "x";
	struct store *st;
	bool is_new;
	uint32_t id = 0;
	double start, end;

	if (store_open(dir, &o, &st, &is_new, &err) < 0)
		die("store", &err);
	start = now_s();
	while ((end = now_s()) < start + seconds) {
		struct batch b;

		change_batch_init(&b);
		for (int i = 0; i < jobs; i++) {
			id++;
			change_batch_put(&b, TABLE_JOB, key, change_key_job(key, id, -1), val, 170);
			change_batch_put(&b, TABLE_SPEC, key, change_key_u32(key, id), val, 140);
			change_batch_put(&b, TABLE_KEY, key, change_key_u32(key, id), val, 24);
		}
		change_batch_put(&b, TABLE_META, "model", 5, val, 16);
		if (store_write_now(st, &b, &err) < 0)
			die("commit", &err);
		change_batch_done(&b);
	}
	store_close(st);
	printf("%.0f\n", id / (end - start));
	return 0;
}

static const char held[] = "name: bench\ngpus: 1\nhold: true\ncommand: [sleep, '1']\n";

static struct gpuq_val *params(struct gpuq_arena *a, const char *text)
{
	struct gpuq_spec_opts opts = { .file = "bench" };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);

	if (gpuq_specs_read(a, &opts, text, strlen(text), &specs, NULL, &err) < 0)
		die("spec", &err);
	for (size_t i = 0; i < specs.n; i++)
		gpuq_add(a, list, gpuq_spec_write(a, &specs.items[i]));
	gpuq_put(a, v, "specs", list);
	return v;
}

/* Until the time is over, or so many calls were answered. */
static int through(const char *server, const char *text, double seconds, uint64_t most,
		   unsigned out)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0), reply = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq *g;
	struct gpuq_val *p = params(&a, text), *v;
	unsigned under_way = 0;
	uint64_t n = 0, sent = 0;
	double start, end;
	uint32_t id;

	if (gpuq_connect(server, "bench_submit", 0, &g, &err) < 0)
		die("connect", &err);
	start = end = now_s();
	while ((end < start + seconds && n < most) || under_way) {
		while (under_way < out && end < start + seconds && sent < most) {
			char key[32];

			snprintf(key, sizeof(key), "b%" PRIu64 "-%.0f", sent++, start * 1e6);
			if (gpuq_send(g, "job.submit", p, key, &id, &err) < 0)
				die("send", &err);
			under_way++;
		}
		gpuq_arena_reset(&reply);
		int rc = 0;

		if (gpuq_recv(g, 0, &id, &reply, &v, &rc, &err) < 0 || rc < 0)
			die("submit", &err);
		under_way--;
		n++;
		end = now_s();
	}
	gpuq_close(g);
	gpuq_arena_done(&reply);
	gpuq_arena_done(&a);
	printf("%.0f\n", n / (end - start));
	return 0;
}

static int fill(const char *server, uint64_t jobs, const char *file)
{
	char text[4096];
	FILE *f = fopen(file, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		fclose(f);
	return through(server, text, 1e9, jobs, 128);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "fill") == 0)
		return fill(argv[2], strtoull(argv[3], NULL, 10), argv[4]);
	if (argc == 5 && strcmp(argv[1], "raw") == 0)
		return raw(argv[2], strtod(argv[3], NULL), (int)strtol(argv[4], NULL, 10));
	if (argc == 4)
		return through(argv[1], held, strtod(argv[2], NULL), UINT64_MAX,
			       (unsigned)strtoul(argv[3], NULL, 10));
	fprintf(stderr, "usage: bench_submit raw DIR SECONDS JOBS | SERVER SECONDS OUTSTANDING | "
			"fill SERVER JOBS FILE\n");
	return 2;
}
