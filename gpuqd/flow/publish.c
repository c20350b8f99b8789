#include "gpuqd/flow/publish.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/apart.h"
#include "gpuqd/flow/journal.h"
#include "libgpuq/units.h"

static struct reason_fact fact_of(const struct plan_reason *r)
{
	static const enum gpuq_unit units[] = { [PLAN_COUNT] = GPUQ_UNIT_COUNT,
						[PLAN_GPUS] = GPUQ_UNIT_GPUS,
						[PLAN_CPU] = GPUQ_UNIT_CORES,
						[PLAN_BYTES] = GPUQ_UNIT_BYTES,
						[PLAN_TIME] = GPUQ_UNIT_TIME };

	return (struct reason_fact){ r->code, r->object, units[r->unit], r->have, r->need, r->ask };
}

static void take_facts(struct told *t, const struct plan_reason *why, uint32_t n)
{
	if (t->from == why)
		return;
	t->from = why;
	for (t->n = 0; t->n < n && t->n < TELL_FACTS_MAX; t->n++)
		t->facts[t->n] = fact_of(&why[t->n]);
}

/* Name the victim it waits for: the core knows that there are some, the model knows which. */
static void name_victim(const struct model *m, const struct job *j, struct told *t, char *text,
			size_t room)
{
	struct reason_fact *fact = &t->facts[0];
	struct job_key first;

	if (fact->code != GPUQ_R_VICTIMS || !j->life->promise || *fact->object ||
	    !job_victim_left(m, j, &first))
		return;
	plan_key_print((struct snap_key){ first.id, first.index }, text, room);
	fact->object = text;
	fact->unit = GPUQ_UNIT_COUNT;
	fact->need = j->life->promise->n_victims;
	fact->have = fact->need - job_victims_left(m, j);
	t->from = NULL; /* its own alone */
}

/* True if pods of the job use the claim of that namespace. */
static bool uses(const struct objects *o, const struct job *j, const char *namespace_,
		 const char *claim, uint32_t group)
{
	const struct gpuq_group *g = j->request && group < j->request->spec.n_groups
					     ? j->request->spec.groups[group].where
					     : NULL;

	for (size_t i = 0; g && i < g->n_volumes; i++)
		if (g->volumes[i].claim && strcmp(g->volumes[i].claim, claim) == 0)
			return strcmp(objects_namespace(o, model_queue_namespace(j->queue)),
				      namespace_) == 0;
	return false;
}

/* Name the pod that is using the claim it waits for; of pods that gpuq did not make nothing is known. */
static void name_user(const struct model *m, const struct job *j, struct told *t, char *text,
		      size_t room)
{
	struct reason_fact *fact = &t->facts[0];
	const char *namespace_ = objects_namespace(m->objects, model_queue_namespace(j->queue));
	char name[64];

	if (fact->code != GPUQ_R_VOLUME_IN_USE || fact->have > 0)
		return;
	node_each(m, n) {
		const struct origin_pod *own;
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			if (!model_pod_takes(p) ||
			    !uses(m->objects, p->job, namespace_, fact->object, p->group))
				continue;
			own = model_pod_origin(m, p);
			model_pod_name(m, p, name);
			snprintf(text, room, "%s, by pod %s", fact->object,
				 own && !origin_is_suspended(own->of) ? own->name : name);
			fact->object = text;
			t->from = NULL; /* another cycle finds another */
			return;
		}
	}
}

static bool was_told(const struct job *j, enum gpuq_reason code)
{
	for (uint32_t i = 0; i < j->outlook->n_reasons; i++)
		if (j->outlook->reasons[i].code == code)
			return true;
	return false;
}

/* Warn of queues whose mutual reclaims the scheduler suspended: an operator should check their
 * configuration. Once for each job that is pending because of it. */
static void warn_of_rest(const struct job *j, const struct told *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->facts[i].code == GPUQ_R_CLAIMS_REST && !was_told(j, GPUQ_R_CLAIMS_REST))
			log_warn("schedule.claims_rest",
				 "job=%" PRIu32 " queue=%s other=%s seconds=%" PRId64
				 ": they reclaimed the same devices from each other",
				 j->key.id, LOGS(j->queue->name), LOGS(t->facts[i].object),
				 (t->facts[i].need - t->facts[i].have) / GPUQ_US_PER_S);
}

/* Tell the model only what changes. */
static void tell(struct journal *journal, const struct job *j, const struct told *t,
		 const struct priority_terms *terms, int64_t planned_us)
{
	struct event ev;

	if (j->outlook->ranked && j->outlook->planned_us == planned_us &&
	    memcmp(&j->outlook->terms, terms, sizeof(*terms)) == 0 &&
	    job_has_reasons(j, t->facts, t->n))
		return;
	warn_of_rest(j, t);
	ev = (struct event){ .type = EV_JOB_REASONS, .job = j->key };
	ev.reasons.items = t->facts;
	ev.reasons.n = t->n;
	ev.reasons.terms = *terms;
	ev.reasons.planned_us = planned_us;
	journal_apply(journal, &ev, NULL);
}

/* Return the entry that it shares with others like it; SNAP_NONE = none. */
static uint32_t shared_entry(const struct snapshot *sn, const struct model *m, const struct job *j,
			     struct finger *f)
{
	const struct alike_shown *a = j->alike ? &j->alike->shown[ALIKE_CYCLE] : NULL;

	if (!a || a->turn != m->readers->alike_turn[ALIKE_CYCLE] || a->n_rest == 0 ||
	    j->key.id < a->rest_id)
		return SNAP_NONE;
	if (f->alike != j->alike) {
		f->alike = j->alike;
		f->rest = snapshot_find_job(sn, (struct snap_key){ a->rest_id, -1 });
		if (f->rest != SNAP_NONE && !sn->jobs[f->rest].alike)
			f->rest = SNAP_NONE;
	}
	return f->rest;
}

/* Return its entry in the snapshot. The model has its jobs mostly by id, as the snapshot does. */
static uint32_t entry_of(const struct snapshot *sn, const struct model *m, const struct job *j,
			 struct finger *f)
{
	const struct snap_key k = { j->key.id, j->key.index };
	uint32_t at = f->next, rest;

	if (at < sn->n_jobs && sn->jobs[at].key.id == k.id && sn->jobs[at].key.index == k.index) {
		f->next++;
		return at;
	}
	rest = shared_entry(sn, m, j, f);
	if (rest != SNAP_NONE && !j->alike->shown[ALIKE_CYCLE].odd)
		return rest;
	at = snapshot_find_job(sn, k);
	if (at == SNAP_NONE)
		return rest;
	f->next = at + 1;
	return at;
}

/* Note the job charged for fragmented devices: it has an entry of its own, as it has been pending
 * longest. */
static void note_apart(struct journal *journal, const struct snapshot *sn, const struct plan *p,
		       struct gpuq_arena *mem)
{
	struct apart_choice *c = apart_begin(mem, sn);
	const struct model *m = journal_model(journal);
	uint32_t n_charged = 0;

	for (uint32_t i = 0; i < sn->n_jobs; i++) {
		const struct snap_key key = sn->jobs[i].key;
		const struct plan_reason *why;
		const bool fragmented = sn->jobs[i].state == SNAP_PENDING &&
					plan_reasons(sn, p, i, &why) > 0 &&
					why->code == GPUQ_R_FRAGMENTED;
		const struct job *j =
			fragmented || m->n_apart
				? model_find_job(m, (struct job_key){ key.id, key.index })
				: NULL;

		if (!j || j->state != GPUQ_JOB_PENDING)
			continue;
		apart_note(c, j, i, fragmented);
		n_charged += j->life->apart != NULL;
	}
	/* Jobs without an entry of their own. */
	if (n_charged < m->n_apart)
		job_each(m, j)
			if (j->life->apart)
				apart_note(c, j, 0, false);
	apart_tell(c, journal);
}

void tell_begin(struct tell *t, struct journal *journal, const struct snapshot *sn,
		const struct plan *p, bool part, struct gpuq_arena *mem)
{
	*t = (struct tell){ .journal = journal,
			    .sn = sn,
			    .p = p,
			    .part = part,
			    .n_left = journal_model(journal)->n_jobs };
	t->planned_us = gpuq_arena_calloc(mem, sn->n_jobs + 1, sizeof(*t->planned_us));
	for (uint32_t i = 0; t->planned_us && i < p->n_actions; i++)
		if (p->actions[i].kind == PLAN_RESERVE)
			t->planned_us[p->actions[i].job] = p->actions[i].start_us;
	/* Charged is the one that has been pending longest: no new job is. */
	if (!part)
		note_apart(journal, sn, p, mem);
}

static void look_at(struct tell *t, const struct model *m, const struct job *j)
{
	struct priority_terms terms;
	const struct plan_reason *why;
	char victim[32], user[640];
	uint32_t at, n;

	if (j->state != GPUQ_JOB_PENDING || (t->part && j->settled))
		return;
	at = entry_of(t->sn, m, j, &t->finger);
	n = at == SNAP_NONE ? 0 : plan_reasons(t->sn, t->p, at, &why);
	equivalent_settle(j, n > 0 && !j->life->promise && t->planned_us && !t->planned_us[at]);
	if (n == 0)
		return;
	take_facts(&t->told, why, n);
	name_victim(m, j, &t->told, victim, sizeof(victim));
	name_user(m, j, &t->told, user, sizeof(user));
	if (t->sn->jobs[at].alike)
		priority_terms_since(t->p->priority, at, j->eligible_us, &terms);
	else
		priority_terms(t->p->priority, at, &terms);
	tell(t->journal, j, &t->told, &terms, t->planned_us ? t->planned_us[at] : 0);
}

bool tell_some(struct tell *t, uint32_t most)
{
	const struct model *m = journal_model(t->journal);

	for (; most > 0 && t->n_left > 0; most--, t->n_left--) {
		const struct job *j = m->readers->walk ? m->readers->walk : m->jobs;

		if (!j)
			return true;
		m->readers->walk = j->next;
		look_at(t, m, j);
	}
	return t->n_left == 0;
}

void tell_jobs(struct journal *journal, const struct snapshot *sn, const struct plan *p,
	       struct gpuq_arena *mem)
{
	struct tell t;

	tell_begin(&t, journal, sn, p, false, mem);
	tell_some(&t, UINT32_MAX);
}
