#include "gpuqd/flow/carry_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/carry/carry.h"
#include "gpuqd/carry/carry_asks.h"
#include "gpuqd/carry/carry_cuts.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/state/cuts/shared_claim.h"

/* A plan that is being carried out. */
struct out {
	struct journal *j;
	const struct snapshot *s;
	const struct plan *p;
	const struct since *since;
};

void carry_out_token(char out[33])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		abort();
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

/* Log the numbers behind a preemption: a line for the preemptor's queue, and one for each queue
 * that loses. */
static void log_claim(const struct out *o, const struct plan_action *a)
{
	for (uint32_t i = 0; i < o->p->n_claims; i++) {
		const struct plan_claim *claim = &o->p->claims[i];

		if (claim->key.id != a->key.id || claim->key.index != a->key.index)
			continue;
		for (uint32_t k = 0; k < claim->n_sides; k++) {
			const struct plan_side *side = &o->p->claim_sides[claim->side_first + k];

			log_info("job.claim",
				 "job=%" PRIu32 " index=%" PRId32 " queue=%s before_milli=%" PRId64
				 " after_milli=%" PRId64 " fair_share_milli=%" PRId64
				 " quota_milli=%" PRId64,
				 a->key.id, a->key.index, LOGS(o->s->queues[side->queue].name),
				 side->before, side->after, side->fair_share, side->quota);
		}
	}
}

static void log_news(void *arg, enum carry_news news, const struct plan_action *a,
		     const struct event *ev, const struct gpuq_err *err)
{
	const struct out *o = arg;
	const uint32_t id = a->key.id;
	const int32_t index = a->key.index;

	switch (news) {
	case CARRY_PLACED:
		log_info("job.placed", "job=%" PRIu32 " index=%" PRId32 " pods=%" PRIu32 " node=%s",
			 id, index, ev->placed.n_pods, LOGS(ev->placed.pods[0].node));
		break;
	case CARRY_GROWN:
		log_info("job.grown", "job=%" PRIu32 " index=%" PRId32 " pods=%" PRIu32, id, index,
			 a->n_pods);
		break;
	case CARRY_RENOUNCED:
		log_info("job.renounced", "job=%" PRIu32 " index=%" PRId32, id, index);
		break;
	case CARRY_NOMINATED:
		log_info("job.nominated",
			 "job=%" PRIu32 " index=%" PRId32 " node=%s victims=%" PRIu32, id, index,
			 LOGS(ev->nominated.pods[0].node), ev->nominated.n_victims);
		break;
	case CARRY_EVICTED:
		log_notice(a->kind == PLAN_SHRINK ? "job.shrunk" : "job.evicted",
			   "job=%" PRIu32 " index=%" PRId32 " cause=%s by=%s rule=%s", id, index,
			   gpuq_cause_word(a->cause), ev->evict.by, LOGS(ev->evict.rule));
		break;
	case CARRY_CLAIMED:
		log_claim(o, a);
		(void)FAILPOINT("schedule.claim");
		break;
	case CARRY_STALE:
		log_warn("schedule.claim_stale", "job=%" PRIu32 " index=%" PRId32, id, index);
		break;
	case CARRY_DROPPED:
		log_info("schedule.dropped", "job=%" PRIu32 " index=%" PRId32, id, index);
		break;
	case CARRY_REFUSED:
		log_err("schedule.apply", "event=%s job=%" PRIu32 " index=%" PRId32 " error=%s",
			event_words[ev->type], ev->job.id, ev->job.index, LOGS(err->text));
		break;
	}
}

static int into_journal(void *arg, struct event *ev, struct gpuq_err *err)
{
	const struct out *o = arg;

	return journal_apply(o->j, ev, err);
}

static bool stands(void *arg, const struct plan_action *a)
{
	const struct out *o = arg;

	return since_stands(o->since, o->p, a);
}

bool carry_out(struct journal *j, const struct since *since, const struct plan *p,
	       struct carry_at *at, uint32_t most, struct gpuq_arena *mem)
{
	struct out o = { j, since->sn, p, since };
	const struct carry_to to = { .apply = into_journal,
				     .token = carry_out_token,
				     .stands = stands,
				     .news = log_news,
				     .arg = &o };

	return carry_some(&to, journal_model(j), since->sn, p, mem, at, most);
}

void carry_out_asks(struct journal *j, const struct since *since, const struct plan *p)
{
	struct out o = { j, since->sn, p, since };
	const struct carry_to to = { .apply = into_journal, .token = carry_out_token, .arg = &o };

	if (p->n_asks)
		carry_asks(&to, journal_model(j), p);
	if (p->n_cuts && !p->cut_short)
		carry_cuts(&to, journal_model(j), since->sn, p);
}

static bool is_lost(const struct model *m, const struct promise *p)
{
	for (uint32_t i = 0; i < p->n_pods; i++)
		if (!model_find_node(m, p->pods[i].node))
			return true;
	return false;
}

/* True if it was nominated devices beside claims which other pods had, and now it needs more. */
static bool lacks_devices(const struct model *m, const struct job *j)
{
	const struct promise *p = j->life->promise;
	struct placed_pod *pods = calloc(p->n_pods + 1, sizeof(*pods));
	bool lacks = false;

	for (uint32_t i = 0; pods && i < p->n_pods; i++) {
		const struct gpuq_group *g =
			shared_claim_group(&j->request->spec, p->pods[i].group);
		const char *node;

		pods[i].group = p->pods[i].group;
		pods[i].node = p->pods[i].node;
		if (!g)
			continue;
		pods[i].rides = shared_claim_rides(m, j, pods[i].group, pods, i, &node);
		lacks |= p->pods[i].n_devices <
				 g->gpus_milli / 1000 - shared_claim_devices(g, pods[i].rides) ||
			 (node && strcmp(node, p->pods[i].node) != 0);
	}
	free(pods);
	return lacks;
}

void carry_out_renounce_lost(struct journal *j)
{
	const struct model *m = journal_model(j);

	if (m->n_promises == 0)
		return;
	job_each(m, k) {
		struct event ev = { .type = EV_JOB_RENOUNCED, .job = k->key };

		bool lost;

		if (!k->life->promise)
			continue;
		lost = is_lost(m, k->life->promise);
		if (!lost && !lacks_devices(m, k))
			continue;
		log_notice("job.renounced", "job=%" PRIu32 ": %s", k->key.id,
			   lost ? "a node that it was nominated is gone"
				: "its claims are no longer those of other pods");
		journal_apply(j, &ev, NULL);
	}
}
