#include "gpuqd/flow/provision/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/model.h"

#define MESSAGE_MAX 320

void outcome_apply(struct journal *j, struct event *ev, const struct ask *a)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	ev->ask.number = a->number;
	if (!ev->ask.attempt)
		ev->ask.attempt = a->attempt;
	ev->job = a->owner;
	if (journal_apply(j, ev, &err) < 0)
		log_info("ask.apply", "ask=%" PRIu32 " event=%s error=%s", a->number,
			 event_words[ev->type], LOGS(err.text));
}

void outcome_end(struct journal *j, const struct ask *a, const char *message)
{
	struct event ev = { .type = EV_ASK_ENDED };

	log_notice("ask.ended", "ask=%" PRIu32 " pool=%s: %s", a->number, a->pool, message);
	ev.ask.message = message;
	outcome_apply(j, &ev, a);
}

static void close_pool(struct journal *j, const char *pool, int64_t until_us, const char *message)
{
	struct event ev = { .type = EV_ASK_CLOSED };

	log_warn("pool.closed", "pool=%s why=%s", LOGS(pool), LOGS(message));
	ev.ask.pool = pool;
	ev.ask.until_us = until_us;
	ev.ask.message = message;
	journal_apply(j, &ev, NULL);
}

/* True if both get their nodes from one quota of the cloud. */
static bool shares_quota(const struct site_pool *a, const struct site_pool *b)
{
	const char *x = a->provisioning->machine->product, *y = b->provisioning->machine->product;

	return strcmp(provision_class(a->provisioning), provision_class(b->provisioning)) == 0 &&
	       (x && y ? strcmp(x, y) == 0 : strcmp(a->flavor, b->flavor) == 0);
}

/* True if another pool could still give the job its nodes. */
static bool has_other(const struct model *m, const struct job *of, int64_t now_us)
{
	const struct gpuq_strlist *flavors = &of->request->spec.flavors;

	site_each(site_pool, m->site->pools, p) {
		const struct ask_pool *known = ask_pool_find(m, p->name);
		const bool may =
			flavors->n == 0 || (p->flavor && gpuq_strlist_has(flavors, p->flavor));

		if (may && site_pool_grows(p) && (!known || known->closed_until_us <= now_us))
			return true;
	}
	return false;
}

static void end_job(struct journal *j, struct job_key key, const char *message, int64_t now_us)
{
	const struct job *of = model_find_job(journal_model(j), key);
	struct event ev = { .type = EV_JOB_ENDED, .job = key };

	if (!of || of->ended || of->state != GPUQ_JOB_PENDING || of->array ||
	    has_other(journal_model(j), of, now_us))
		return;
	ev.ended.state = GPUQ_JOB_NODE_FAIL;
	ev.ended.exit_code = -1;
	ev.ended.message = message;
	journal_apply(j, &ev, NULL);
}

/* The attempt is over. It is made again after a pause, or its pool is left alone for the longest one. */
void outcome_fail(struct journal *j, const struct ask *a, const struct verdict_of *v)
{
	const struct model *m = journal_model(j);
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);
	const struct provision *how = pool ? pool->provisioning : NULL;
	const int64_t now = loop_now_us(journal_loop(j));
	const struct job_key owner = a->owner;
	struct event ev = { .type = EV_ASK_FAILED };
	char message[MESSAGE_MAX];
	int64_t pause = how ? how->retry_base_us : 0;
	const bool again = how && v->what == VERDICT_RETRY && a->n_failures < how->retries;

	snprintf(message, sizeof(message), "%s%s%s%s%s", v->condition, *v->condition ? " " : "",
		 v->reason, *v->reason ? ": " : "", v->message);
	for (uint32_t i = 0; how && i < a->n_failures && pause < how->retry_max_us; i++)
		pause *= 2;
	if (how && pause > how->retry_max_us)
		pause = how->retry_max_us;
	log_warn("ask.failed", "ask=%" PRIu32 " pool=%s attempt=%" PRIu32 " why=%s", a->number,
		 a->pool, a->attempt, LOGS(message));
	ev.ask.condition = v->condition;
	ev.ask.reason = v->reason;
	ev.ask.message = message;
	ev.ask.counts = true;
	ev.ask.until_us = again ? now + pause : 0;
	(void)FAILPOINT("ask.fail");
	outcome_apply(j, &ev, a);
	if (again)
		return;
	if (how && v->what == VERDICT_QUOTA) {
		site_each(site_pool, m->site->pools, p)
			if (site_pool_grows(p) && shares_quota(p, pool))
				close_pool(j, p->name, now + how->retry_max_us, message);
	} else if (how) {
		close_pool(j, pool->name, now + how->retry_max_us, message);
	}
	outcome_end(j, a, message);
	if (how && how->on_failure == PROVISION_FAIL)
		end_job(j, owner, message, now);
}

void outcome_fail_as(struct journal *j, const struct ask *a, enum verdict what, const char *message)
{
	const struct verdict_of v = { what, a->state, "", "", message, 0 };

	outcome_fail(j, a, &v);
}

static bool has_fresh(const struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++)
		if (!a->nodes[i].stale)
			return true;
	return false;
}

static const struct job *to_withdraw(const struct model *m, const struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++) {
		const struct node *n = model_find_node(m, a->nodes[i].name);
		const struct pod *p;

		if (!n || a->nodes[i].stale)
			continue;
		DL_FOREACH2(n->pods, p, node_next)
			if (p->state == GPUQ_POD_PLANNED && p->attempt == p->job->attempt &&
			    !p->job->life->leave_us && model_job_is_live(p->job))
				return p->job;
	}
	return NULL;
}

uint32_t outcome_withdraw(struct journal *j, const struct ask *a, const char *why)
{
	const struct job *of;
	uint32_t n = 0;

	while ((of = to_withdraw(journal_model(j), a)) != NULL) {
		struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = of->key };

		log_notice("job.withdrawn", "job=%" PRIu32 " ask=%" PRIu32 " why=%s", of->key.id,
			   a->number, LOGS(why));
		ev.evict.by = "";
		ev.evict.grace_us = -1;
		ev.evict.cause = GPUQ_CAUSE_DRAIN;
		ev.evict.rule = RULE_NODE_ENDS;
		ev.evict.why = why;
		if (journal_apply(j, &ev, NULL) < 0)
			break;
		n++;
	}
	return n;
}

/* The request is gone, and not by us: another attempt follows at once, and it does not count. Where pods run
 * they go on, and no more are started there: their nodes are no longer kept. A job that was placed there and whose
 * pods are still to be created gets others. */
void outcome_lost(struct journal *j, const struct ask *a)
{
	struct event ev = { .type = EV_ASK_FAILED };

	if (a->state == ASK_STATE_NEW || a->state >= ASK_STATE_PAUSED)
		return;
	if (a->used && (ask_was_taken(journal_model(j), a) ||
			outcome_withdraw(j, a, "the request for its nodes is gone") == 0)) {
		ev.type = EV_ASK_LOST;
		if (has_fresh(a)) {
			log_notice("ask.lost",
				   "ask=%" PRIu32 ": its request is gone; its pods go on",
				   a->number);
			outcome_apply(j, &ev, a);
		}
		return;
	}
	log_warn("ask.lost", "ask=%" PRIu32 " attempt=%" PRIu32 ": its request was deleted",
		 a->number, a->attempt);
	ev.ask.condition = ev.ask.reason = "";
	ev.ask.message = "its request was deleted by others";
	ev.ask.until_us = loop_now_us(journal_loop(j));
	outcome_apply(j, &ev, a);
}
