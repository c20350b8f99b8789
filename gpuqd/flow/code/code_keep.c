#include "gpuqd/flow/code/code_keep.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/state/notes/jobnote.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/code/code_store.h"
#include "gpuqd/flow/code/codes.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define LOOK_US (60 * GPUQ_US_PER_S)
#define LOOK_MIN_US GPUQ_US_PER_S

struct code_keep {
	struct journal *j;
	struct codes *codes;
	struct code_store *store;
	struct loop_timer *timer;
};

/* Mark what jobs in memory name. Jobs of one submission share their notes. */
static void mark(const struct code_keep *k, const struct model *m)
{
	const char *last_notes = NULL, *last_user = NULL;
	char digest[65];

	job_each(m, j) {
		const char *found;
		size_t n = 0;

		if (!j->notes || (j->notes == last_notes && j->user == last_user))
			continue;
		last_notes = j->notes;
		last_user = j->user;
		found = jobnote_find(j->notes, JOBNOTE_CODE, &n);
		if (!found || n >= sizeof(digest))
			continue;
		snprintf(digest, sizeof(digest), "%.*s", (int)n, found);
		codes_mark(k->codes, j->user, digest);
	}
}

static void on_look(void *arg)
{
	struct code_keep *k = arg;
	const struct model *m = journal_model(k->j);
	const int64_t keep_us = site_code_keep_us(m->site);
	struct loop *l = journal_loop(k->j);
	struct codes_sums sums;

	codes_sums(k->codes, &sums);
	if (sums.files || sums.arriving) {
		mark(k, m);
		codes_sweep(k->codes, loop_mono_us(l), keep_us);
	}
	if (k->store)
		code_store_sweep(k->store);
	k->timer = loop_after(
		l, keep_us < LOOK_US ? (keep_us < LOOK_MIN_US ? LOOK_MIN_US : keep_us) : LOOK_US,
		on_look, k);
}

int code_keep_new(struct journal *j, struct codes *codes, struct code_keep **out,
		  struct gpuq_err *err)
{
	struct code_keep *k = calloc(1, sizeof(*k));

	if (!k)
		return gpuq_no_memory(err);
	*k = (struct code_keep){ .j = j, .codes = codes };
	k->timer = loop_after(journal_loop(j), LOOK_MIN_US, on_look, k);
	*out = k;
	return 0;
}

void code_keep_set_store(struct code_keep *k, struct code_store *s)
{
	k->store = s;
}

void code_keep_free(struct code_keep *k)
{
	if (!k)
		return;
	loop_cancel(k->timer);
	free(k);
}
