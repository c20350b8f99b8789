/* A database with many jobs that have ended, for what lists of them cost.
 *
 *   bench_history DIR JOBS [different]    one user in a hundred jobs, one name in a thousand,
 *                                         one failure in fifty, one end a second
 *
 * Different jobs have a name, time limit and use of their own each.
 *
 * The records are those of one job that gpuqd wrote, with other numbers.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuqd/state/record/history_index.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

static void die(const char *what, const struct gpuq_err *err)
{
	fprintf(stderr, "bench_history: %s: %s\n", what, err->text);
	exit(1);
}

static void text(struct gpuq_arena *a, struct gpuq_val *v, const char *key, const char *s)
{
	gpuq_put(a, v, key, s ? gpuq_str(a, s) : gpuq_null(a));
}

static struct gpuq_val *job(struct gpuq_arena *a, uint32_t id, int64_t end_us, bool different)
{
	static const char *const numbers[] = { "attempt", "priority", "pod_count",
					       "gpus",    "uid",      "n_log" };
	static const char *const nulls[] = { "array_index",  "array",   "account",       "reason",
					     "planned_time", "promise", "priority_terms" };
	static const char *const lists[] = { "reasons", "evictions" };
	struct gpuq_val *v = gpuq_map(a), *pods = gpuq_list(a), *pod = gpuq_map(a),
			*devices = gpuq_list(a), *device = gpuq_map(a);
	const bool failed = id % 50 == 0;

	gpuq_put(a, v, "id", gpuq_int(a, id));
	text(a, v, "user", gpuq_arena_printf(a, "user%02u", id % 100));
	text(a, v, "queue", id % 3 ? "research" : "vision");
	text(a, v, "name", gpuq_arena_printf(a, "train-%03u", different ? id : id % 1000));
	text(a, v, "qos", "normal");
	text(a, v, "flavor", "a100");
	text(a, v, "state", failed ? "FAILED" : "COMPLETED");
	text(a, v, "message", failed ? "exit code 1" : "Completed");
	gpuq_put(a, v, "exit_code", gpuq_int(a, failed));
	gpuq_put(a, v, "submit_time", gpuq_int(a, end_us - 3600 * GPUQ_US_PER_S));
	gpuq_put(a, v, "eligible_time", gpuq_int(a, end_us - 3600 * GPUQ_US_PER_S));
	gpuq_put(a, v, "start_time", gpuq_int(a, end_us - 1800 * GPUQ_US_PER_S));
	gpuq_put(a, v, "end_time", gpuq_int(a, end_us));
	gpuq_put(a, v, "time_limit_s", gpuq_int(a, different ? 60 + id : 7200));
	gpuq_put(a, v, "gpu_seconds", gpuq_real(a, different ? id / 4.0 : 1800.25));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		gpuq_put(a, v, numbers[i], gpuq_int(a, (int64_t)i));
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		gpuq_put(a, v, nulls[i], gpuq_null(a));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		gpuq_put(a, v, lists[i], gpuq_list(a));
	text(a, pod, "name", gpuq_arena_printf(a, "gpuq-0123abcd-%u-0-0", id));
	text(a, pod, "node", gpuq_arena_printf(a, "node%03u", id % 625));
	text(a, pod, "group", "main");
	text(a, pod, "state", "gone");
	gpuq_put(a, pod, "index", gpuq_int(a, 0));
	gpuq_put(a, device, "index", gpuq_int(a, id % 8));
	text(a, device, "uuid",
	     gpuq_arena_printf(a, "GPU-00000000-0000-0000-0000-%012u", id % 5000));
	gpuq_put(a, device, "milli", gpuq_int(a, 1000));
	gpuq_put(a, device, "memory_mib", gpuq_int(a, 81920));
	gpuq_add(a, devices, device);
	gpuq_put(a, pod, "devices", devices);
	gpuq_add(a, pods, pod);
	gpuq_put(a, v, "pods", pods);
	return v;
}

int main(int argc, char **argv)
{
	struct store_opts o = { .unsafe_fs = true, .no_sync = true };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const bool different = argc == 4 && strcmp(argv[3], "different") == 0;
	const uint32_t n = argc == 3 || different ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	const int64_t begin_us = ((int64_t)time(NULL) - n) * GPUQ_US_PER_S;
	struct store *st;
	bool fresh;

	if (n == 0) {
		fprintf(stderr, "usage: bench_history DIR JOBS [different]\n");
		return 2;
	}
	if (store_open(argv[1], &o, &st, &fresh, &err) < 0)
		die("store", &err);
	for (uint32_t id = 1; id <= n;) {
		struct batch b;

		change_batch_init(&b);
		for (uint32_t k = 0; k < 10000 && id <= n; k++, id++) {
			struct gpuq_arena a = GPUQ_ARENA_INIT(0);
			struct gpuq_buf bytes = GPUQ_BUF_INIT;
			unsigned char key[CHANGE_KEY_BYTES_MAX];
			struct gpuq_val *v = job(&a, id, begin_us + id * GPUQ_US_PER_S, different);

			gpuq_mp_write(&bytes, v);
			change_batch_put(&b, TABLE_HISTORY, key,
					 history_record_key(key, (struct job_key){ id, -1 }),
					 bytes.data, bytes.len);
			history_index_entry(&b, v);
			gpuq_buf_done(&bytes);
			gpuq_arena_done(&a);
		}
		if (store_write_now(st, &b, &err) < 0)
			die("write", &err);
		change_batch_done(&b);
	}
	store_close(st);
	return 0;
}
