/* A page of metrics, in pieces: byte 0 is their size. The samples are within bounds, and do not
 * depend on the pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/metrics_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void on_fact(void *arg, const struct use_fact *f)
{
	if (f->milli < -1 || f->milli > 1000 || f->index < -1 || f->memory_bytes < 0 || !f->pod ||
	    !f->uuid || !f->node)
		abort();
	gpuq_buf_printf(arg, "%s|%s|%d|%u|%d\n", f->pod, f->uuid, f->index, f->part, f->milli);
}

static void on_amount(void *arg, const struct amount_fact *f)
{
	if (f->value < 0 || !f->pod || !*f->pod || !f->namespace_)
		abort();
	gpuq_buf_printf(arg, "%s/%s|%d|%llu|%lld\n", f->namespace_, f->pod, (int)f->what,
			(unsigned long long)f->part, (long long)f->value);
}

static void read_page(const uint8_t *p, size_t n, size_t piece, struct gpuq_buf *out)
{
	struct metrics_text t;

	metrics_text_init(&t, INT64_C(1790000000000000), on_fact, out);
	t.amount = on_amount;
	while (n > 0) {
		const size_t k = piece < n ? piece : n;
		char *copy = malloc(k); /* of its very size, so that a look beyond is seen */

		memcpy(copy, p, k);
		metrics_text_feed(&t, copy, k);
		free(copy);
		p += k;
		n -= k;
	}
	if (t.line.len > METRICS_LINE_BYTES_MAX + 1)
		abort();
	metrics_text_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_buf whole = GPUQ_BUF_INIT, parts = GPUQ_BUF_INIT;

	if (n < 1)
		return 0;
	read_page(data + 1, n - 1, n, &whole);
	read_page(data + 1, n - 1, data[0] % 64 + 1u, &parts);
	if (whole.len != parts.len || (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
		abort();
	gpuq_buf_done(&whole);
	gpuq_buf_done(&parts);
	return 0;
}
