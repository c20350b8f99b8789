/* The record of a pod, which any client that may edit the pod can write: a record that was read
 * is within its bounds, and reads back the same once it was written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/record/podrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void same(const char *a, const char *b)
{
	if (strcmp(a, b) != 0)
		abort();
}

static void is_clean(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_arena arena = GPUQ_ARENA_INIT(1 << 20);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct podrecord r, again;

	if (podrecord_read(&arena, (const char *)data, n, &r, NULL) == 0) {
		is_clean(r.user);
		is_clean(r.name);
		is_clean(r.account);
		is_clean(r.flavor);
		if (!*r.user || !*r.queue || !*r.qos || r.pods < 1 || r.gpus_milli < 0 ||
		    r.group < 0 || r.limit_us < 1)
			abort();
		if (podrecord_write(&r, &b, NULL) == 0) {
			if (b.len > PODRECORD_BYTES_MAX ||
			    podrecord_read(&arena, b.data, b.len, &again, NULL) != 0)
				abort();
			same(r.user, again.user);
			same(r.queue, again.queue);
			same(r.qos, again.qos);
			if (r.submit_us != again.submit_us || r.limit_us != again.limit_us ||
			    r.gpus_milli != again.gpus_milli || r.pods != again.pods)
				abort();
		}
	}
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
	return 0;
}
