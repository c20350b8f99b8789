#include "gpuqd/flow/tell.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/core/model.h"
#include "gpuqd/flow/journal.h"
#include "libgpuq/units.h"

#define FACTS_MAX 16

/* Reasons as the model takes them; jobs that are alike have the same. */
struct told {
	const struct plan_reason *from;
	struct reason_fact facts[FACTS_MAX];
	size_t n;
};

static struct reason_fact fact_of(const struct plan_reason *r)
{
	static const enum gpuq_unit units[] = { [PLAN_COUNT] = GPUQ_UNIT_COUNT,
						[PLAN_GPUS] = GPUQ_UNIT_GPUS,
						[PLAN_CPU] = GPUQ_UNIT_CORES,
						[PLAN_BYTES] = GPUQ_UNIT_BYTES,
						[PLAN_TIME] = GPUQ_UNIT_TIME };

	return (struct reason_fact){ r->code, r->object, units[r->unit], r->have, r->need };
}

static void take_facts(struct told *t, const struct plan_reason *why, uint32_t n)
{
	if (t->from == why)
		return;
	t->from = why;
	for (t->n = 0; t->n < n && t->n < FACTS_MAX; t->n++)
		t->facts[t->n] = fact_of(&why[t->n]);
}

/* The core knows that it waits for others; the model knows for whom. */
static void name_victim(const struct model *m, const struct job *j, struct told *t, char *text,
			size_t room)
{
	struct reason_fact *fact = &t->facts[0];
	struct job_key first;

	if (fact->code != GPUQ_R_VICTIMS || !j->promise || *fact->object ||
	    !job_victim_left(m, j, &first))
		return;
	snap_key_print((struct snap_key){ first.id, first.index }, text, room);
	fact->object = text;
	fact->unit = GPUQ_UNIT_COUNT;
	fact->need = j->promise->n_victims;
	fact->have = fact->need - job_victims_left(m, j);
	t->from = NULL; /* its own alone */
}

static bool was_told(const struct job *j, enum gpuq_reason code)
{
	for (uint32_t i = 0; i < j->n_reasons; i++)
		if (j->reasons[i].code == code)
			return true;
	return false;
}

/* Queues that went back and forth until the scheduler stopped them: somebody should look at
 * how they are set up. Once for each job that has to wait for it. */
static void warn_of_rest(const struct job *j, const struct told *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->facts[i].code == GPUQ_R_CLAIMS_REST && !was_told(j, GPUQ_R_CLAIMS_REST))
			log_warn("schedule.claims_rest",
				 "job=%" PRIu32 " queue=%s other=%s seconds=%" PRId64
				 ": they took the same places back and forth",
				 j->key.id, LOGS(j->queue->name), LOGS(t->facts[i].object),
				 (t->facts[i].need - t->facts[i].have) / GPUQ_US_PER_S);
}

/* The model is told only of what it does not know yet. */
static void tell(struct journal *journal, const struct job *j, const struct told *t,
		 const struct priority_terms *terms, int64_t planned_us)
{
	struct event ev;

	if (j->ranked && j->planned_us == planned_us &&
	    memcmp(&j->terms, terms, sizeof(*terms)) == 0 && job_has_reasons(j, t->facts, t->n))
		return;
	warn_of_rest(j, t);
	ev = (struct event){ .type = EV_JOB_REASONS, .job = j->key };
	ev.reasons.items = t->facts;
	ev.reasons.n = t->n;
	ev.reasons.terms = *terms;
	ev.reasons.planned_us = planned_us;
	journal_apply(journal, &ev, NULL);
}

/* Its entry in the snapshot. The model has its jobs mostly by id, as the snapshot does:
 * *next is where the last one was found, and one on. */
static uint32_t entry_of(const struct snapshot *sn, struct job_key key, uint32_t *next)
{
	const struct snap_key k = { key.id, key.index };
	uint32_t at = *next;

	if (at >= sn->n_jobs || sn->jobs[at].key.id != k.id || sn->jobs[at].key.index != k.index)
		at = snapshot_find_job(sn, k);
	if (at != SNAP_NONE)
		*next = at + 1;
	return at;
}

void tell_jobs(struct journal *journal, const struct snapshot *sn, const struct plan *p,
	       struct gpuq_arena *mem)
{
	int64_t *planned_us = gpuq_arena_calloc(mem, sn->n_jobs + 1, sizeof(*planned_us));
	struct model *m = journal_model(journal);
	struct told told = { .from = NULL };
	uint32_t next = 0;

	for (uint32_t i = 0; planned_us && i < p->n_actions; i++)
		if (p->actions[i].kind == PLAN_RESERVE)
			planned_us[p->actions[i].job] = p->actions[i].start_us;
	job_each(m, j)
	{
		struct priority_terms terms;
		const struct plan_reason *why;
		char victim[32];
		uint32_t at, n;

		if (j->state != GPUQ_JOB_PENDING)
			continue;
		at = entry_of(sn, j->key, &next);
		n = at == SNAP_NONE ? 0 : plan_reasons(sn, p, at, &why);
		if (n == 0)
			continue;
		take_facts(&told, why, n);
		name_victim(m, j, &told, victim, sizeof(victim));
		priority_terms(p->priority, at, &terms);
		tell(journal, j, &told, &terms, planned_us ? planned_us[at] : 0);
	}
}
