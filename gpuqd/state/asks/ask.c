#include "gpuqd/state/asks/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/asks/ask_int.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/asks/ask_store.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/notify.h"
#include "libgpuq/units.h"

const char *const ask_state_words[N_ASK_STATES] = {
#define X(sym, word, doc) [ASK_STATE_##sym] = (word),
	ASK_STATES(X)
#undef X
};

struct ask *ask_find(const struct model *m, uint32_t number)
{
	struct ask *a;

	HASH_FIND(hh, m->asks, &number, sizeof(number), a);
	return a;
}

struct ask_pool *ask_pool_find(const struct model *m, const char *name)
{
	struct ask_pool *p;

	HASH_FIND(hh, m->ask_pools, name, strlen(name), p);
	return p;
}

static void note_refusal(struct ask_pool *p, int64_t at_us)
{
	if (p->n_refused == GPUQ_REFUSALS_MAX)
		memmove(p->refused_us, p->refused_us + 1, --p->n_refused * sizeof(*p->refused_us));
	p->refused_us[p->n_refused++] = at_us;
}

static bool is_of_flavor(const struct model *m, const char *pool, const char *flavor)
{
	site_each(site_pool, m->site->pools, p)
		if (strcmp(p->name, pool) == 0)
			return p->flavor && strcmp(p->flavor, flavor) == 0;
	return false;
}

/* True if n attempts in pools of the flavor had failed with that one, and n - 1 at most before it. */
static bool is_nth(const struct model *m, const char *flavor, int64_t since_us, int64_t at_us,
		   int64_t n)
{
	int64_t before = 0, same = 0;

	for (const struct ask_pool *p = m->ask_pools; p; p = p->hh.next) {
		if (!is_of_flavor(m, p->name, flavor))
			continue;
		for (uint32_t i = 0; i < p->n_refused; i++) {
			before += p->refused_us[i] >= since_us && p->refused_us[i] < at_us;
			same += p->refused_us[i] == at_us;
		}
	}
	return before < n && n <= before + same;
}

int64_t ask_refused_us(const struct model *m, const char *flavor, int64_t since_us, int64_t n)
{
	for (const struct ask_pool *p = m->ask_pools; p; p = p->hh.next)
		for (uint32_t i = 0; i < p->n_refused; i++)
			if (p->refused_us[i] >= since_us && is_of_flavor(m, p->name, flavor) &&
			    is_nth(m, flavor, since_us, p->refused_us[i], n))
				return p->refused_us[i];
	return GPUQ_UNLIMITED;
}

const struct ask *ask_of_job(const struct model *m, struct job_key job)
{
	for (const struct ask *a = m->asks; a; a = a->hh.next)
		if (a->owner.id == job.id && a->owner.index == job.index &&
		    a->state < ASK_STATE_ENDED)
			return a;
	return NULL;
}

void ask_name(const struct model *m, const struct ask *a, char out[ASK_NAME_ROOM])
{
	int n = snprintf(out, ASK_NAME_ROOM, "gpuq-%s-%" PRIu32, m->cluster_id, a->first.id);

	if (a->first.index >= 0)
		n += snprintf(out + n, ASK_NAME_ROOM - (size_t)n, "-%" PRId32, a->first.index);
	snprintf(out + n, ASK_NAME_ROOM - (size_t)n, "-ask%" PRIu32 "-%" PRIu32, a->number,
		 a->attempt);
}

struct ask *ask_add(struct model *m, uint32_t number)
{
	struct ask *a = ask_must(calloc(1, sizeof(*a)));

	a->number = number;
	a->condition = a->reason = "";
	a->message = ask_must(strdup(""));
	HASH_ADD(hh, m->asks, number, sizeof(a->number), a);
	return a;
}

struct ask_pool *ask_pool_get(struct model *m, const char *name)
{
	struct ask_pool *p = ask_pool_find(m, name);

	if (p)
		return p;
	p = ask_must(calloc(1, sizeof(*p)));
	p->name = model_intern(m, name);
	p->message = ask_must(strdup(""));
	HASH_ADD_KEYPTR(hh, m->ask_pools, p->name, strlen(p->name), p);
	return p;
}

void ask_pool_waited(struct model *m, const struct ask *a)
{
	struct ask_pool *p = ask_pool_get(m, a->pool);

	if (m->now_us < a->made_us)
		return;
	if (p->n_waits == ASK_WAITS_MAX)
		memmove(p->waits_s, p->waits_s + 1, --p->n_waits * sizeof(*p->waits_s));
	p->waits_s[p->n_waits++] = (uint32_t)((m->now_us - a->made_us) / GPUQ_US_PER_S);
	ask_put_pool(m, p);
}

int64_t ask_pool_wait_s(const struct ask_pool *p, unsigned percent)
{
	const uint32_t rank = p ? (p->n_waits * percent + 99) / 100 : 0;

	for (uint32_t i = 0; p && i < p->n_waits; i++) {
		uint32_t less = 0, same = 0;

		for (uint32_t k = 0; k < p->n_waits; k++) {
			less += p->waits_s[k] < p->waits_s[i];
			same += p->waits_s[k] == p->waits_s[i];
		}
		if (less < rank && rank <= less + same)
			return p->waits_s[i];
	}
	return -1;
}

static void labels_done(struct ask *a)
{
	free(a->labels.keys);
	free(a->labels.vals);
	a->labels = (struct gpuq_strmap){ 0 };
}

void ask_delete(struct model *m, struct ask *a)
{
	HASH_DEL(m->asks, a);
	labels_done(a);
	free(a->nodes);
	free(a->message);
	free(a);
}

void ask_free_all(struct model *m)
{
	struct ask *a, *next;
	struct ask_pool *p, *pnext;

	HASH_ITER(hh, m->asks, a, next)
		ask_delete(m, a);
	HASH_ITER(hh, m->ask_pools, p, pnext) {
		HASH_DEL(m->ask_pools, p);
		free(p->message);
		free(p);
	}
}

void ask_set_message(char **at, const char *text)
{
	char *copy = ask_must(strdup(text ? text : ""));

	free(*at);
	*at = copy;
}

/* Its log has one more entry. */
static void touch_job(struct model *m, struct job_key key)
{
	struct job *j = model_find_job(m, key);

	if (!j && key.index >= 0)
		j = model_find_job(m, (struct job_key){ key.id, -1 });
	if (j)
		model_job_dirty(m, j);
}

/* The same of a change by which other nodes can be used. */
void ask_put_changed(struct model *m, const struct ask *a)
{
	ask_put(m, a);
	m->n_node_changes++;
	touch_job(m, a->owner);
}

/* ---- events ---- */

static struct ask *of_event(const struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = ask_find(m, ev->ask.number);

	if (!a)
		gpuq_fail(err, GPUQ_ENOENT, "no such request for nodes: %" PRIu32, ev->ask.number);
	return a;
}

/* True if the event is of its present attempt, which is still under way. */
static struct ask *of_attempt(const struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return NULL;
	if (a->attempt == ev->ask.attempt && a->state < ASK_STATE_PAUSED)
		return a;
	gpuq_fail(err, GPUQ_ECONFLICT, "attempt %" PRIu32 " of request %" PRIu32 " is over",
		  ev->ask.attempt, a->number);
	return NULL;
}

/* Set how long nodes of the attempt run: of classes that take them away, the time that the job needs and a
 * margin, but no more than the pool allows. */
static void set_given(const struct model *m, struct ask *a)
{
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);
	const int64_t most_us = pool ? pool->provisioning->max_run_us : 0;
	int64_t us = a->run_us == GPUQ_UNLIMITED ? most_us : a->run_us + PROVISION_RUN_MARGIN_US;

	us = (us + GPUQ_US_PER_S - 1) / GPUQ_US_PER_S * GPUQ_US_PER_S;
	if (strcmp(a->class_, PROVISION_CLASS_QUEUED) != 0)
		us = 0;
	a->given_us = us < most_us ? us : most_us;
}

int ask_apply_made(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a;

	if (ev->ask.number != m->last_ask + 1 || ev->ask.n_nodes == 0)
		return gpuq_fail(err, GPUQ_ECONFLICT, "request %" PRIu32 " is not the next one",
				 ev->ask.number);
	m->last_ask = ev->ask.number;
	a = ask_add(m, ev->ask.number);
	a->pool = model_intern(m, ev->ask.pool);
	a->flavor = model_intern(m, ev->ask.flavor);
	a->class_ = model_intern(m, ev->ask.class_);
	a->namespace_ = model_intern(m, ev->ask.namespace_);
	a->first = a->owner = ev->job;
	a->n_nodes = ev->ask.n_nodes;
	a->attempt = 1;
	a->made_us = a->since_us = ev->at_us;
	a->run_us = ev->ask.run_us;
	snprintf(a->token, sizeof(a->token), "%s", ev->ask.token);
	set_given(m, a);
	ask_put_changed(m, a);
	ask_put_last(m);
	return 0;
}

int ask_apply_owned(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	a->owner = ev->job;
	ask_put_changed(m, a);
	return 0;
}

/* Take over the labels that nodes of the request have. */
static void set_labels(struct model *m, struct ask *a, const struct gpuq_strmap *in)
{
	labels_done(a);
	a->labels.keys = ask_must(calloc(in->n + 1, sizeof(char *)));
	a->labels.vals = ask_must(calloc(in->n + 1, sizeof(char *)));
	for (size_t i = 0; i < in->n; i++) {
		a->labels.keys[i] = model_intern(m, in->keys[i]);
		a->labels.vals[i] = model_intern(m, in->vals[i]);
	}
	a->labels.n = in->n;
}

/* Its state goes forward only: what is heard again, or late, changes nothing. */
static void advance(struct ask *a, enum ask_state state)
{
	if (a->state < ASK_STATE_PAUSED && state > a->state)
		a->state = state;
}

int ask_apply_heard(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_attempt(m, ev, err);

	if (!a)
		return GPUQ_ECONFLICT;
	a->condition = model_intern(m, ev->ask.condition);
	a->reason = model_intern(m, ev->ask.reason);
	ask_set_message(&a->message, ev->ask.message);
	if (ev->ask.labels && ev->ask.labels->n)
		set_labels(m, a, ev->ask.labels);
	if (ev->ask.state == ASK_STATE_PROVISIONED && !a->provisioned_us)
		a->provisioned_us = ev->ask.until_us;
	advance(a, (enum ask_state)ev->ask.state);
	ask_put_changed(m, a);
	/* Some may have come before anything was heard of the request. */
	node_each(m, n)
		if (strcmp(n->pool, a->pool) == 0)
			ask_node_seen(m, n);
	ask_set_ends(m, a);
	ask_serve(m, a);
	return 0;
}

int ask_apply_failed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_attempt(m, ev, err);
	struct ask_pool *p;

	if (!a)
		return GPUQ_ECONFLICT;
	p = ask_pool_get(m, a->pool);
	p->failed_us = ev->at_us;
	if (ev->ask.counts)
		note_refusal(p, ev->at_us);
	ask_set_message(&p->message, ev->ask.message);
	ask_put_pool(m, p);
	ask_mark_stale(a);
	a->state = ASK_STATE_PAUSED;
	a->cleared = false;
	a->used = false;
	a->n_failures += ev->ask.counts;
	a->since_us = ev->at_us;
	a->retry_us = ev->ask.until_us;
	a->condition = model_intern(m, ev->ask.condition);
	a->reason = model_intern(m, ev->ask.reason);
	ask_set_message(&a->message, ev->ask.message);
	labels_done(a);
	ask_put_changed(m, a);
	if (ev->ask.counts && !ev->ask.until_us)
		notify_provision(m, a->owner, true);
	return 0;
}

int ask_apply_lost(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_attempt(m, ev, err);

	if (!a)
		return GPUQ_ECONFLICT;
	ask_mark_stale(a);
	ask_put_changed(m, a);
	return 0;
}

int ask_apply_tried(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	if (a->state != ASK_STATE_PAUSED || !a->cleared)
		return gpuq_fail(err, GPUQ_ECONFLICT, "request %" PRIu32 " is under way",
				 a->number);
	a->attempt++;
	a->state = ASK_STATE_NEW;
	a->cleared = false;
	a->retry_us = a->provisioned_us = 0;
	a->n_seen = 0;
	a->since_us = ev->at_us;
	snprintf(a->token, sizeof(a->token), "%s", ev->ask.token);
	set_given(m, a);
	ask_put_changed(m, a);
	return 0;
}

int ask_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	if (a->state == ASK_STATE_PAUSED && a->cleared && !ask_lingers(a)) {
		ask_forget(m, a);
		return 0;
	}
	a->cleared &= a->state == ASK_STATE_PAUSED;
	a->state = ASK_STATE_ENDED;
	a->since_us = ev->at_us;
	ask_set_message(&a->message, ev->ask.message);
	ask_put_changed(m, a);
	return 0;
}

int ask_apply_cleared(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	if (a->state < ASK_STATE_PAUSED)
		return gpuq_fail(err, GPUQ_ECONFLICT, "request %" PRIu32 " is under way",
				 a->number);
	/* The second time nothing is left of its nodes either, or it was long enough. */
	if (a->state == ASK_STATE_ENDED && (a->cleared || !ask_lingers(a))) {
		ask_forget(m, a);
		return 0;
	}
	a->cleared = true;
	ask_put_changed(m, a);
	return 0;
}

int ask_apply_known(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	m->asks_known = ev->asks.known;
	m->asks_why = model_intern(m, ev->asks.why ? ev->asks.why : "");
	m->n_node_changes++;
	return 0;
}

int ask_apply_closed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask_pool *p = ask_pool_get(m, ev->ask.pool);

	(void)err;
	p->closed_until_us = ev->ask.until_us;
	p->failed_us = ev->at_us;
	if (ev->ask.counts) /* of a scenario, which has no attempts in the model */
		note_refusal(p, ev->at_us);
	ask_set_message(&p->message, ev->ask.message);
	ask_put_pool(m, p);
	return 0;
}
