#include "gpuqd/flow/report/joblog_read.h"

#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"

#define PAGE 64

void joblog_read_init(struct joblog_read *r, struct job_key job)
{
	memset(r, 0, sizeof(*r));
	r->job = job;
}

struct page {
	struct joblog_read *r;
	joblog_fn fn;
	void *arg;
	size_t n;
	bool refused, over;
};

/* True if the entry is of another element: *to is where to continue. */
static bool skip(const struct joblog_read *r, const unsigned char *key, size_t n, unsigned char *to,
		 size_t *to_len)
{
	uint32_t id;
	int64_t index;

	if (r->job.index < 0 || !change_key_job_read(key, n, &id, &index) || index < 0 ||
	    index >= r->job.index)
		return false;
	*to_len = change_key_job(to, r->job.id, r->job.index);
	return true;
}

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct page *p = arg;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v;
	uint32_t id;
	int64_t index;

	p->n++;
	if (skip(p->r, key, key_len, p->r->from, &p->r->from_len))
		return 1;
	if (p->r->job.index >= 0 && change_key_job_read(key, key_len, &id, &index) &&
	    index > p->r->job.index) {
		p->over = true;
		return 1;
	}
	v = history_read(&mem, val, val_len);
	p->refused = v && p->fn(p->arg, v) == JOBLOG_LATER;
	gpuq_arena_done(&mem);
	if (p->refused)
		return 1;
	/* Continue after this key: its numbers are never the greatest. */
	memcpy(p->r->from, key, key_len);
	p->r->from_len = key_len;
	for (size_t i = key_len; i > 0 && ++p->r->from[i - 1] == 0; i--)
		; /* carry */
	return 0;
}

int joblog_read_run(struct store *st, struct joblog_read *r, int64_t budget_us, joblog_fn fn,
		    void *arg, struct gpuq_err *err)
{
	const int64_t begun_us = loop_clock_us();
	unsigned char prefix[CHANGE_KEY_BYTES_MAX];
	const size_t prefix_len = change_key_u32(prefix, r->job.id);

	for (;;) {
		struct page p = { .r = r, .fn = fn, .arg = arg };
		const int rc =
			store_each(st, TABLE_LOG, prefix, prefix_len, r->from_len ? r->from : NULL,
				   r->from_len, false, PAGE, on_record, &p, err);

		if (rc < 0)
			return rc;
		if (p.refused)
			return 1;
		if (p.over || (rc == 0 && p.n < PAGE))
			return 0;
		if (loop_clock_us() - begun_us >= budget_us)
			return 1;
	}
}
