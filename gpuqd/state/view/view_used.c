#include "gpuqd/state/view/view_used.h"

#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define MIB (INT64_C(1) << 20)

static void put_known(struct gpuq_arena *a, struct gpuq_val *v, const char *key, int64_t n)
{
	gpuq_put(a, v, key, n < 0 ? gpuq_null(a) : gpuq_int(a, n));
}

/* In seconds, and in milliseconds. */
static void put_time(struct gpuq_arena *a, struct gpuq_val *v, const char *s, const char *ms,
		     int64_t us)
{
	gpuq_put(a, v, s, us < 0 ? gpuq_null(a) : gpuq_real(a, (double)us / GPUQ_US_PER_S));
	put_known(a, v, ms, us < 0 ? -1 : us / 1000);
}

/* In MiB, rounded up, and in bytes. */
static void put_memory(struct gpuq_arena *a, struct gpuq_val *v, const char *mib, const char *bytes,
		       int64_t n)
{
	put_known(a, v, mib, n < 0 ? -1 : n / MIB + (n % MIB > 0));
	put_known(a, v, bytes, n);
}

struct gpuq_val *view_used(struct gpuq_arena *a, const struct used *s, bool hint)
{
	const int64_t gpu = s->gpu_milli;
	struct gpuq_val *v = gpuq_map(a);

	put_time(a, v, "user_s", "user_ms", s->user_us);
	put_time(a, v, "system_s", "system_ms", s->system_us);
	put_time(a, v, "cpu_s", "cpu_ms", s->cpu_us);
	put_memory(a, v, "memory_max_mib", "memory_bytes", s->memory_bytes);
	put_known(a, v, "read_bytes", s->read_bytes);
	put_known(a, v, "write_bytes", s->written_bytes);
	put_known(a, v, "written_bytes", s->written_bytes);
	gpuq_put(a, v, "gpu_busy", gpu < 0 ? gpuq_null(a) : gpuq_real(a, (double)gpu / 1000));
	gpuq_put(a, v, "gpu_percent", gpu < 0 ? gpuq_null(a) : gpuq_real(a, (double)gpu / 10));
	put_memory(a, v, "gpu_memory_max_mib", "gpu_memory_bytes", s->gpu_bytes);
	gpuq_put(a, v, "hint", gpuq_bool(a, hint));
	return v;
}
