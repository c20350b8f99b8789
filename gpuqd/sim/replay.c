#include "gpuqd/sim/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/cycle_record.h"
#include "gpuqd/sched/sched.h"

struct line {
	const char *text;
	size_t len;
	size_t number;
};

static int by_text(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	const size_t n = x->len < y->len ? x->len : y->len;
	const int c = n ? memcmp(x->text, y->text, n) : 0;

	if (c == 0 && x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return c ? c : (x->number > y->number) - (x->number < y->number);
}

static int by_place(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static bool same_text(const struct line *a, const struct line *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->text, b->text, a->len) == 0);
}

/* Return the sorted lines of a text, in a; NULL: out of memory. */
static struct line *lines_of(struct gpuq_arena *a, const char *text, size_t len, size_t *n)
{
	struct line *lines;
	size_t room = 1;

	for (size_t i = 0; i < len; i++)
		room += text[i] == '\n';
	lines = gpuq_arena_calloc(a, room, sizeof(*lines));
	*n = 0;
	for (size_t at = 0; lines && at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		const size_t one = end ? (size_t)(end - text) - at : len - at;

		lines[*n] = (struct line){ text + at, one, *n };
		++*n;
		at += one + 1;
	}
	if (lines && *n)
		qsort(lines, *n, sizeof(*lines), by_text);
	return lines;
}

/* Print lines of one text that the other lacks, in their order. Both are sorted. */
static void print_only(const char *mark, struct line *lines, size_t n, const struct line *others,
		       size_t n_others, unsigned long *n_printed)
{
	size_t n_only = 0;

	for (size_t i = 0, k = 0; i < n; i++) {
		struct line probe = lines[i];

		probe.number = 0;
		while (k < n_others && by_text(&others[k], &probe) < 0 &&
		       !same_text(&others[k], &lines[i]))
			k++;
		if (k < n_others && same_text(&others[k], &lines[i]))
			k++;
		else
			lines[n_only++] = lines[i];
	}
	if (n_only)
		qsort(lines, n_only, sizeof(*lines), by_place);
	for (size_t i = 0; i < n_only; i++)
		printf("%s %.*s\n", mark, (int)lines[i].len, lines[i].text);
	*n_printed += n_only;
}

static int print_difference(struct gpuq_buf *recorded, const char *now, size_t now_len,
			    struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	size_t n_then, n_now;
	struct line *then = lines_of(&a, gpuq_buf_str(recorded), recorded->len, &n_then);
	struct line *lines = lines_of(&a, now, now_len, &n_now);
	struct line *kept = gpuq_arena_calloc(&a, n_then + 1, sizeof(*kept));
	unsigned long n = 0;
	int rc = 0;

	if (!then || !lines || !kept) {
		rc = gpuq_no_memory(err);
	} else {
		memcpy(kept, then, n_then * sizeof(*kept));
		print_only("-", then, n_then, lines, n_now, &n);
		print_only("+", lines, n_now, kept, n_then, &n);
		if (n == 0)
			printf("  the same in another order\n");
	}
	gpuq_arena_done(&a);
	return rc;
}

/* Run a recorded cycle again. Takes over the record's snapshot. */
static int run_again(struct replay *r, const char *name, struct cycle_record *rec,
		     struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT, recorded = GPUQ_BUF_INIT;
	struct plan plan;
	int rc = snapshot_seal(rec->snapshot, err);

	if (rc == 0)
		rc = sched_cycle(rec->snapshot, &mem, &plan, err);
	if (rc == 0) {
		cycle_text(rec->snapshot, &plan, &text);
		cycle_text_now(rec->plan, rec->plan_len, &recorded);
		if (text.failed || recorded.failed)
			rc = gpuq_no_memory(err);
	}
	if (rc == 0 && text.len == recorded.len &&
	    (text.len == 0 || memcmp(text.data, recorded.data, text.len) == 0)) {
		r->n_same++;
	} else if (rc == 0) {
		r->n_different++;
		printf("%s: cycle %" PRIu64 " (release %s) is decided differently\n", name,
		       rec->number, rec->release);
		rc = print_difference(&recorded, gpuq_buf_str(&text), text.len, err);
	}
	gpuq_buf_done(&text);
	gpuq_buf_done(&recorded);
	gpuq_arena_done(&mem);
	snapshot_free(rec->snapshot);
	return rc;
}

int replay_bytes(struct replay *r, const char *name, const void *bytes, size_t n,
		 struct gpuq_err *err)
{
	struct rec in = { bytes, (const unsigned char *)bytes + n, false };
	unsigned long number = 0;
	int rc = 0;

	while (rc == 0 && in.p < in.end) {
		struct cycle_record rec;

		number++;
		rc = cycle_record_read(&in, &rec, err);
		if (rc == 0)
			rc = run_again(r, name, &rec, err);
	}
	if (rc < 0)
		gpuq_err_prefix(err, "%s: record %lu", name, number);
	return rc;
}
