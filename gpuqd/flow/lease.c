#include "gpuqd/flow/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/journal.h"
#include "libgpuq/units.h"

#define PIECE 500u /* jobs ended at once */
#define MORE_US (20 * 1000) /* between two pieces, so that other work gets its turn */

struct leased {
	UT_hash_handle hh;
	uint32_t id;
	int64_t until_us;
};

struct lease {
	struct journal *j;
	struct loop *l;
	struct leased *jobs;
	bool (*attended)(void *arg, const struct job *j);
	void *arg;
	struct loop_timer *tick;
};

static void add(struct lease *l, uint32_t id, int64_t lease_us)
{
	struct leased *x = NULL;

	HASH_FIND(hh, l->jobs, &id, sizeof(id), x);
	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x)
			abort();
		x->id = id;
		HASH_ADD(hh, l->jobs, id, sizeof(x->id), x);
	}
	x->until_us = loop_now_us(l->l) + lease_us;
}

void lease_renew(struct lease *l, uint32_t id)
{
	const struct job *j;
	struct leased *x = NULL;

	HASH_FIND(hh, l->jobs, &id, sizeof(id), x);
	if (!x)
		return;
	j = model_find_job(journal_model(l->j), (struct job_key){ id, -1 });
	if (j)
		x->until_us = loop_now_us(l->l) + j->wish->lease_us;
}

static void on_event(void *arg, const struct event *ev)
{
	struct lease *l = arg;

	if (ev->type == EV_JOB_SUBMITTED && ev->submitted.lease_us)
		add(l, ev->job.id, ev->submitted.lease_us);
}

static void cancel_one(struct lease *l, const struct job *j, const char *why)
{
	struct event ev = { .type = EV_JOB_CANCEL_ASKED, .job = j->key };

	if (j->ended || j->cancel_asked || (j->array && j->array->n_waiting == 0))
		return;
	ev.cancel.who = "";
	ev.cancel.admin = true;
	ev.cancel.why = why;
	(void)journal_apply(l->j, &ev, NULL);
}

/* Cancel the rest of the job: the pending part of an array, then its elements; with the last of
 * them the array ends. */
static void cancel(struct lease *l, const struct job *j)
{
	const uint32_t id = j->key.id;
	const struct job *it, *next;
	char text[32], why[96];

	gpuq_duration_print(j->wish->lease_us, text, sizeof(text));
	snprintf(why, sizeof(why), "its client has been gone for %s, as long as its lease", text);
	log_notice("job.lease", "job=%" PRIu32 ": %s", id, why);
	cancel_one(l, j, why);
	for (it = index_elements(journal_model(l->j), id); it; it = next) {
		next = it->life->kin_next; /* it may be gone then */
		cancel_one(l, it, why);
	}
}

static void on_tick(void *arg)
{
	struct lease *l = arg;
	const int64_t now = loop_now_us(l->l);
	struct leased *x, *next;
	unsigned n = 0;

	HASH_ITER(hh, l->jobs, x, next) {
		const struct job *j =
			model_find_job(journal_model(l->j), (struct job_key){ x->id, -1 });

		if (j && !j->ended && l->attended && l->attended(l->arg, j)) {
			x->until_us = now + j->wish->lease_us;
			continue;
		}
		if (j && !j->ended && now < x->until_us)
			continue;
		if (n == PIECE)
			break;
		if (j && !j->ended) {
			cancel(l, j);
			n++;
		}
		HASH_DEL(l->jobs, x);
		free(x);
	}
	l->tick = loop_after(l->l, n == PIECE ? MORE_US : GPUQ_US_PER_S, on_tick, l);
}

int lease_new(struct journal *j, struct lease **out, struct gpuq_err *err)
{
	struct lease *l = calloc(1, sizeof(*l));

	if (!l)
		return gpuq_no_memory(err);
	l->j = j;
	l->l = journal_loop(j);
	job_each(journal_model(j), it) {
		if (it->wish->lease_us && it->key.index < 0 && !it->ended)
			add(l, it->key.id, it->wish->lease_us);
	}
	journal_subscribe(j, on_event, l);
	l->tick = loop_after(l->l, GPUQ_US_PER_S, on_tick, l);
	*out = l;
	return 0;
}

void lease_on_ask(struct lease *l, bool (*attended)(void *arg, const struct job *j), void *arg)
{
	l->attended = attended;
	l->arg = arg;
}

void lease_free(struct lease *l)
{
	struct leased *x, *next;

	if (!l)
		return;
	HASH_ITER(hh, l->jobs, x, next) {
		HASH_DEL(l->jobs, x);
		free(x);
	}
	loop_cancel(l->tick);
	free(l);
}
