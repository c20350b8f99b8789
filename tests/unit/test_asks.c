/* Requests for nodes that do not exist: what their conditions mean, what the model does of it, and what is
 * stored. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/flow/admit/warn/run_limit.h"
#include "gpuqd/flow/provision/verdict.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/record/model_apply.h"
#include "gpuqd/state/view/census.h"
#include "libgpuq/wire/mp.h"
#include "tests/unit/model_rig.h"

#define S GPUQ_US_PER_S

static void apply(struct model *m, struct event *ev, int64_t at_us)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	ev->at_us = at_us;
	cr_assert_eq(model_apply(m, ev, &err), 0, "%s", err.text);
}

/* A model with a pool that grows, and a request of it for a job, at T0; class "": placeholders. */
static struct model *asking_as(uint32_t n_nodes, const char *class_, const char *job,
			       const char *more)
{
	struct model *m = fresh(0, 0);
	struct event ev = { .type = EV_ASK_MADE, .job = J1 };
	struct event known = { .type = EV_ASKS_KNOWN };
	const char *failed;
	char site[400];

	snprintf(site, sizeof(site),
		 "version: 1\nqueues: [{name: default}]\npools: [{name: p, selector: {a: b}, "
		 "flavor: default, provisioning: {kind: %s%s, "
		 "machine: {gpus: 2, labels: {a: b}}, %s}}]",
		 *class_ ? "request, class: " : "autoscaler", class_, more);
	rig_site(m, site);
	failed = submit_text(m, job, NULL);
	cr_assert_null(failed, "%s", failed);
	ev.ask.number = 1;
	ev.ask.pool = "p";
	ev.ask.flavor = "default";
	ev.ask.class_ = class_;
	ev.ask.namespace_ = "";
	ev.ask.token = "0123456789abcdef0123456789abcdef";
	ev.ask.n_nodes = n_nodes;
	ev.ask.run_us = 7200 * S;
	apply(m, &ev, T0);
	known.asks.known = *class_ ? ASKS_KNOWN : ASKS_OFF;
	known.asks.stand = true;
	apply(m, &known, T0);
	return m;
}

static struct model *asking_for(uint32_t n_nodes, const char *class_, const char *job)
{
	return asking_as(n_nodes, class_, job, "max_nodes: 4");
}

static struct model *asking(uint32_t n_nodes)
{
	return asking_for(n_nodes, "c.x", "gpus: 2\ncommand: [x]\n");
}

static void hear(struct model *m, enum ask_state state, const char *condition, int64_t at_us)
{
	struct event ev = { .type = EV_ASK_HEARD };

	ev.ask.number = 1;
	ev.ask.attempt = ask_find(m, 1)->attempt;
	ev.ask.state = state;
	ev.ask.condition = condition;
	ev.ask.reason = "r";
	ev.ask.message = "words";
	ev.ask.until_us = at_us;
	apply(m, &ev, at_us);
}

static void node_as(struct model *m, const char *name, int64_t at_us, bool ready)
{
	const char *keys[] = { "a" }, *vals[] = { "b" };
	const struct device_fact devices[] = { { "GPU-0", "T4", 16384, true },
					       { "GPU-1", "T4", 16384, true } };
	const struct node_fact f = { .name = name,
				     .note = "",
				     .ready = ready,
				     .labels = { keys, vals, 1 },
				     .devices = devices,
				     .n_devices = 2 };
	struct event ev = { .type = EV_NODE_SEEN };

	ev.node = &f;
	apply(m, &ev, at_us);
}

static void node(struct model *m, const char *name, int64_t at_us)
{
	node_as(m, name, at_us, true);
}

Test(asks, nothing_starts_before_all_nodes_have_come_and_were_given)
{
	struct model *m = asking(2);
	const struct ask *a = ask_find(m, 1);

	hear(m, ASK_STATE_ACCEPTED, "Accepted", T0 + S);
	node(m, "n1", T0 + 2 * S);
	cr_expect_eq(ask_lacks(a), 1);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + 3 * S);
	cr_expect_eq(a->state, ASK_STATE_PROVISIONED);
	cr_expect_not(ask_is_open(m, a, 600 * S, T0 + 4 * S));
	node_as(m, "n2", T0 + 5 * S, false);
	cr_expect_eq(ask_lacks(a), 0);
	cr_expect_eq(ask_boots(m, a), 1);
	cr_expect_eq(a->state, ASK_STATE_PROVISIONED);
	node(m, "n2", T0 + 5 * S);
	cr_expect_eq(a->state, ASK_STATE_SERVED);
	cr_expect(ask_is_open(m, a, 600 * S, T0 + 6 * S));
	/* Not after its booking, unless it was used. */
	cr_expect_not(ask_is_open(m, a, 600 * S, T0 + 603 * S));
	/* A condition that comes late sets nothing back. */
	hear(m, ASK_STATE_ACCEPTED, "Accepted", T0 + 7 * S);
	cr_expect_eq(a->state, ASK_STATE_SERVED);
	model_free(m);
}

Test(asks, nodes_of_placeholders_serve_when_all_are_there)
{
	struct model *m = asking_for(2, "", "gpus: 2\ncommand: [x]\n");
	const struct ask *a = ask_find(m, 1);

	cr_expect(ask_stands(a));
	cr_expect(ask_pool_is_open(m, m->site->pools.items));
	hear(m, ASK_STATE_SENT, "", T0 + S);
	node(m, "n1", T0 + 2 * S);
	cr_expect_eq(ask_lacks(a), 1);
	cr_expect_not(ask_is_open(m, a, 600 * S, T0 + 2 * S));
	node_as(m, "n2", T0 + 3 * S, false);
	cr_expect_eq(ask_lacks(a) + ask_boots(m, a), 1, "it boots");
	cr_expect_eq(a->state, ASK_STATE_SENT);
	node(m, "n2", T0 + 4 * S);
	cr_expect_eq(a->state, ASK_STATE_SERVED);
	/* No booking ends, and no request is to be known. */
	cr_expect(ask_is_open(m, a, 600 * S, T0 + 6000 * S));
	model_free(m);
}

Test(asks, a_node_with_the_taint_of_an_autoscaler_boots)
{
	const struct taint_fact taints[] = { { "karpenter.sh/unregistered", "", "NoExecute",
					       false } };
	struct model *m = asking_for(1, "", "gpus: 2\ncommand: [x]\n");
	const struct taint_fact *was;
	struct node *n;

	node_as(m, "n1", T0 + S, false);
	n = (struct node *)(uintptr_t)model_find_node(m, "n1");
	cr_expect(ask_node_boots(n));
	node(m, "n1", T0 + 2 * S);
	cr_expect_not(ask_node_boots(n));
	was = n->fact.taints;
	n->fact.taints = taints;
	n->fact.n_taints = 1;
	cr_expect(ask_node_boots(n));
	n->fact.taints = was;
	n->fact.n_taints = 0;
	model_free(m);
}

Test(asks, nodes_of_placeholders_that_came_too_late_are_ordinary_ones)
{
	struct model *m = asking_for(2, "", "gpus: 2\ncommand: [x]\n");
	struct event failed = { .type = EV_ASK_FAILED };
	const struct ask *a = ask_find(m, 1);
	bool stale;

	node(m, "n1", T0 + 2 * S);
	failed.ask.number = failed.ask.attempt = 1;
	failed.ask.condition = failed.ask.reason = "";
	failed.ask.message = "not in time";
	failed.ask.until_us = T0 + 60 * S;
	apply(m, &failed, T0 + 3 * S);
	cr_expect_null(ask_of_node(m, "n1", &stale));
	node(m, "n2", T0 + 4 * S);
	cr_expect_null(ask_of_node(m, "n2", &stale));
	cr_expect_not(ask_lingers(a));
	model_free(m);
}

Test(asks, a_node_that_was_there_before_is_not_one_of_the_request)
{
	struct model *m = fresh(0, 0);

	model_free(m);
	m = asking(1);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	node(m, "old", T0 - 10 * S);
	cr_expect_eq(ask_lacks(ask_find(m, 1)), 1);
	node(m, "new", T0 + 2 * S);
	cr_expect_eq(ask_find(m, 1)->state, ASK_STATE_SERVED);
	model_free(m);
}

Test(asks, an_attempt_that_failed_is_over_and_its_nodes_are_not_used)
{
	struct model *m = asking(1);
	const struct ask *a = ask_find(m, 1);
	struct event ev = { .type = EV_ASK_FAILED };
	char first[ASK_NAME_ROOM], second[ASK_NAME_ROOM];
	bool stale = false;

	ask_name(m, a, first);
	cr_expect_str_eq(first, "gpuq-" CLUSTER "-1-ask1-1");
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	node(m, "n1", T0 + 2 * S);
	ev.ask.number = 1;
	ev.ask.attempt = 1;
	ev.ask.condition = "BookingExpired";
	ev.ask.reason = ev.ask.message = "";
	ev.ask.until_us = T0 + 63 * S;
	ev.ask.counts = true;
	apply(m, &ev, T0 + 3 * S);
	cr_expect_eq(a->state, ASK_STATE_PAUSED);
	cr_expect_eq(ask_of_node(m, "n1", &stale), a);
	cr_expect(stale);
	cr_expect_eq(ask_lacks(a), 1);
	/* News of it changes nothing any more; the next one waits until its objects are gone. */
	ev.type = EV_ASK_HEARD;
	cr_expect_lt(model_apply(m, &ev, NULL), 0);
	ev.type = EV_ASK_TRIED;
	ev.ask.token = "fedcba9876543210fedcba9876543210";
	cr_expect_lt(model_apply(m, &ev, NULL), 0);
	ev.type = EV_ASK_CLEARED;
	apply(m, &ev, T0 + 4 * S);
	ev.type = EV_ASK_TRIED;
	apply(m, &ev, T0 + 63 * S);
	ask_name(m, a, second);
	cr_expect_str_eq(second, "gpuq-" CLUSTER "-1-ask1-2");
	cr_expect_eq(a->n_failures, 1);
	model_free(m);
}

Test(asks, the_database_has_all_of_it)
{
	struct model *m = asking(2), *n;
	struct disk d = { 0 };
	struct event ev = { .type = EV_ASK_CLOSED };
	const struct ask *a;

	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	node(m, "n1", T0 + 2 * S);
	ev.ask.pool = "p";
	ev.ask.until_us = T0 + 1800 * S;
	ev.ask.message = "none left";
	apply(m, &ev, T0 + 3 * S);
	disk_write(&d, m);
	n = disk_load(&d);
	a = ask_find(n, 1);
	cr_assert_not_null(a);
	cr_expect_str_eq(a->pool, "p");
	cr_expect_str_eq(a->class_, "c.x");
	cr_expect_eq(a->owner.id, 1);
	cr_expect_eq(a->state, ASK_STATE_PROVISIONED);
	cr_expect_str_eq(a->token, ask_find(m, 1)->token);
	cr_expect_str_eq(a->message, "words");
	cr_expect_eq(a->n_came, 1);
	cr_expect_eq(a->run_us, 7200 * S);
	cr_expect_eq(a->n_seen, 1);
	cr_expect_eq(n->last_ask, 1);
	cr_expect_eq(ask_pool_find(n, "p")->closed_until_us, T0 + 1800 * S);
	/* After a restart nothing is known of the cluster's requests. */
	cr_expect_neq(n->asks_known, ASKS_KNOWN);
	model_free(n);
	model_free(m);
	disk_free(&d);
}

Test(asks, a_node_that_comes_for_an_attempt_that_failed_is_not_used)
{
	struct model *m = asking(1);
	const struct ask *a = ask_find(m, 1);
	struct event ev = { .type = EV_ASK_FAILED };
	bool stale = false;

	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	ev.ask.number = 1;
	ev.ask.attempt = 1;
	ev.ask.condition = "BookingExpired";
	ev.ask.reason = ev.ask.message = "";
	apply(m, &ev, T0 + 2 * S);
	node(m, "n1", T0 + 3 * S);
	cr_assert_eq(ask_of_node(m, "n1", &stale), a);
	cr_expect(stale);
	/* Its objects are gone, and no job needs it: it is kept until the node has gone. */
	ev.type = EV_ASK_CLEARED;
	apply(m, &ev, T0 + 4 * S);
	ev.type = EV_ASK_ENDED;
	apply(m, &ev, T0 + 5 * S);
	cr_assert_not_null(ask_find(m, 1));
	ev = (struct event){ .type = EV_NODE_GONE };
	ev.name = "n1";
	apply(m, &ev, T0 + 6 * S);
	cr_expect_null(ask_find(m, 1));
	model_free(m);
}

Test(asks, a_node_that_differs_is_waited_for)
{
	struct model *m = asking(1);
	const struct ask *a = ask_find(m, 1);
	const struct provision_machine other = { .gpus = 4 }, like = { .gpus = 2 };
	char how[128];

	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	node(m, "n1", T0 + 2 * S);
	cr_expect(ask_node_differs(model_find_node(m, "n1"), &other, how, sizeof(how)));
	cr_expect_str_eq(how, "node n1 came with 2 devices, not 4");
	cr_expect_not(ask_node_differs(model_find_node(m, "n1"), &like, how, sizeof(how)));
	cr_expect_eq(a->state, ASK_STATE_SERVED);
	cr_expect_eq(ask_pool_find(m, "p")->n_waits, 1);
	cr_expect_eq(ask_pool_wait_s(ask_pool_find(m, "p"), 90), 2);
	model_free(m);
}

/* AC-DWS-6: the cloud made the node at T0, for 7200 + 600 s. */
static void ends(int64_t time_us, enum gpuq_cause cause)
{
	char why[200];
	struct event ev = { .type = EV_JOB_EVICT_ASKED };
	struct model *m;
	struct job *j;

	m = asking_for(1, PROVISION_CLASS_QUEUED,
		       "gpus: 1\ncommand: [x]\ncheckpoint: {signal: USR1, grace: 2m}\n");
	j = model_find_job(m, J1);
	j->time_limit_us = time_us;
	cr_expect_eq(ask_find(m, 1)->given_us, 7800 * S);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0);
	node(m, "n1", T0 + 300 * S);
	cr_assert_eq(place_at(m, J1, 1, "n1", 0, T0 + 310 * S), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0 + 311 * S, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 360 * S, 0, POD_FAULT_NONE), 0);
	cr_expect(ask_job_is_spared(m, j));
	cr_expect_eq(ask_end_signal_us(m, j), T0 + 7680 * S);
	cr_expect_not(ask_end_due(m, j, T0 + 7680 * S - 1, &ev, why, sizeof(why)));
	cr_assert(ask_end_due(m, j, T0 + 7680 * S, &ev, why, sizeof(why)));
	cr_expect_eq(ev.evict.cause, cause);
	cr_expect_str_eq(why, "its nodes were requested for a time, and are taken away in 2m");
	model_free(m);
}

Test(asks, an_attempt_is_told_before_its_node_is_taken_away)
{
	ends(7800 * S, GPUQ_CAUSE_LIMIT);
	ends(86400 * S, GPUQ_CAUSE_DRAIN);
	ends(GPUQ_UNLIMITED, GPUQ_CAUSE_DRAIN);
}

/* Return the events and messages for which a notification is to be written. */
static const char *told(struct model *m)
{
	static const struct gpuq_mp_limits lim = { 1 << 20, 24, 65536 };
	static char text[400];
	struct disk d = { 0 };
	size_t n = 0;

	text[0] = '\0';
	disk_write(&d, m);
	for (size_t i = 0; i < d.n; i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v = NULL;

		if (d.r[i].table != TABLE_OUTBOX)
			continue;
		cr_assert_eq(gpuq_mp_read(&a, &lim, d.r[i].val, d.r[i].val_len, &v, NULL), 0);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s %s;",
				      gpuq_get_str(v, "event", ""), gpuq_get_str(v, "object", ""),
				      gpuq_get_str(v, "message", ""));
		gpuq_arena_done(&a);
	}
	disk_free(&d);
	return text;
}

Test(asks, its_owner_is_told_what_becomes_of_it)
{
	const char *job =
		"gpus: 2\nnotify: {on: [provisioned, provision_failed], mail: ann}\ncommand: [x]\n";
	struct model *m = asking_for(1, "c.x", job);
	struct event ev = { .type = EV_ASK_FAILED };

	hear(m, ASK_STATE_ACCEPTED, "Accepted", T0);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	node_as(m, "n1", T0 + 2 * S, false);
	cr_expect_str_eq(told(m), "");
	node(m, "n1", T0 + 3 * S);
	cr_expect_str_eq(told(m), "provisioned p words;");
	model_free(m);
	m = asking_for(1, "c.x", job);
	hear(m, ASK_STATE_ACCEPTED, "Accepted", T0);
	ev.ask.number = ev.ask.attempt = 1;
	ev.ask.condition = ev.ask.reason = "";
	ev.ask.message = "no capacity";
	ev.ask.counts = true;
	ev.ask.until_us = T0 + 60 * S;
	apply(m, &ev, T0 + S);
	cr_expect_str_eq(told(m), "", "it is tried again");
	model_free(m);
	m = asking_for(1, "c.x", job);
	ev.ask.until_us = 0;
	apply(m, &ev, T0 + S);
	cr_expect_str_eq(told(m), "provision_failed p no capacity;");
	model_free(m);
}

static int64_t devices_that_are(const struct model *m, enum census_kind kind)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct census all;

	cr_assert(census_take(m, m->now_us, &a, &all));
	gpuq_arena_done(&a);
	return all.milli[kind];
}

Test(asks, nodes_count_as_provisioning_until_a_job_starts_on_them)
{
	struct model *m = asking(2);

	hear(m, ASK_STATE_ACCEPTED, "Accepted", T0);
	node_as(m, "n1", T0 + S, false);
	cr_expect_eq(devices_that_are(m, CENSUS_PROVISIONING), 2000);
	cr_expect_eq(devices_that_are(m, CENSUS_LOST), 0);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	node(m, "n1", T0 + 2 * S);
	node(m, "n2", T0 + 2 * S);
	cr_expect_eq(devices_that_are(m, CENSUS_PROVISIONING), 4000);
	cr_assert_eq(place_at(m, J1, 1, "n1", 0, T0 + 3 * S), 0);
	cr_expect_eq(devices_that_are(m, CENSUS_PROVISIONING), 0);
	cr_expect_eq(devices_that_are(m, CENSUS_ALLOCATED), 1000);
	model_free(m);
}

/* Return what a cycle decides of job 2, after job 1 was placed on the one node of a request for 2 h 10 min. */
static const char *rider(const char *pool_key, int64_t time_us, int64_t at_us)
{
	static char found[300];
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *m = asking_as(1, PROVISION_CLASS_QUEUED, "gpus: 1\ncommand: [x]\n", pool_key);
	struct snapshot *sn = NULL;
	struct plan plan;
	const char *failed = submit_text(m, "{gpus: 1, command: [x]}", NULL);

	cr_assert_null(failed, "%s", failed);
	model_find_job(m, (struct job_key){ 2, -1 })->time_limit_us = time_us;
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0);
	node(m, "n1", T0 + 300 * S);
	cr_assert_eq(place_at(m, J1, 1, "n1", 0, T0 + 310 * S), 0);
	cr_assert_eq(snapshot_take(m, at_us, &sn, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(sn, &mem, &plan, &err), 0, "%s", err.text);
	found[0] = '\0';
	for (uint32_t i = 0; i < plan.n_actions; i++)
		if (plan.actions[i].key.id == 2)
			snprintf(found, sizeof(found), "starts");
	if (!*found) {
		const struct plan_reason *why;

		cr_assert_gt(plan_reasons(sn, &plan, 1, &why), 0);
		snprintf(found, sizeof(found), "%s %s", gpuq_reason_word(why->code), why->object);
		if (why->unit == PLAN_TIME)
			snprintf(found, sizeof(found), "%s %s %lld %lld",
				 gpuq_reason_word(why->code), why->object,
				 (long long)((why->have - T0) / S),
				 why->need == GPUQ_UNLIMITED ? -1LL
							     : (long long)((why->need - T0) / S));
	}
	snapshot_free(sn);
	gpuq_arena_done(&mem);
	model_free(m);
	return found;
}

Test(asks, a_job_that_runs_longer_than_the_node_is_not_placed_there)
{
	cr_expect_str_eq(rider("max_nodes: 1", 1 * 3600 * S, T0 + 400 * S), "starts");
	cr_expect_str_eq(rider("max_nodes: 1", 2 * 3600 * S, T0 + 400 * S), "starts");
	cr_expect_str_eq(rider("max_nodes: 1", 2 * 3600 * S, T0 + 700 * S),
			 "NodeEnds n1 7800 7930");
	cr_expect_str_eq(rider("max_nodes: 1", 86400 * S, T0 + 400 * S), "NodeEnds n1 7800 86830");
	cr_expect_str_eq(rider("max_nodes: 1", GPUQ_UNLIMITED, T0 + 400 * S),
			 "NodeEnds n1 7800 -1");
	/* Another node is requested for it. */
	cr_expect_str_eq(rider("max_nodes: 2", 86400 * S, T0 + 400 * S), "Provisioning p");
	/* Where its pool lets preemptible jobs be cut short. */
	cr_expect_str_eq(rider("max_nodes: 1, evictable: true", 86400 * S, T0 + 400 * S), "starts");
	/* One without a time limit gets what the pool lets any run: no more is lost than it may expect. */
	cr_expect_str_eq(rider("max_nodes: 1, max_run: 7800s", GPUQ_UNLIMITED, T0 + 400 * S),
			 "starts");
}

/* Return what a cycle decides of job 1, whose node was made at T0 and has been ready since ready_us. */
static const char *booted(int64_t time_us, int64_t ready_us, int64_t at_us, const char *pool_key)
{
	static char found[300];
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *m = asking_as(1, PROVISION_CLASS_QUEUED, "gpus: 1\ncommand: [x]\n", pool_key);
	struct snapshot *sn = NULL;
	struct plan plan;

	model_find_job(m, J1)->time_limit_us = time_us;
	ask_find(m, 1)->run_us = time_us;
	ask_find(m, 1)->given_us = time_us + 600 * S;
	hear(m, ASK_STATE_ACCEPTED, "Accepted", T0);
	node_as(m, "n1", T0, false);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0);
	node(m, "n1", ready_us);
	cr_assert_eq(ask_find(m, 1)->state, ASK_STATE_SERVED);
	cr_assert_eq(snapshot_take(m, at_us, &sn, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(sn, &mem, &plan, &err), 0, "%s", err.text);
	snprintf(found, sizeof(found), "%s%s", plan.n_actions ? "starts" : "waits",
		 plan.n_asks ? ", another is requested" : "");
	snapshot_free(sn);
	gpuq_arena_done(&mem);
	model_free(m);
	return found;
}

/* Its node runs for its time limit and 10 minutes: what it boots longer than these is lost to the job. */
Test(asks, a_node_that_boots_longer_than_its_job_runs_is_used)
{
	const char *one = "max_nodes: 1", *more = "max_nodes: 4";

	cr_expect_str_eq(booted(120 * S, T0 + 300 * S, T0 + 301 * S, more), "starts");
	cr_expect_str_eq(booted(10 * S, T0 + 20 * S, T0 + 21 * S, more), "starts");
	/* 10 s and the grace period of 30 s are left of 610 s. */
	cr_expect_str_eq(booted(10 * S, T0 + 570 * S, T0 + 570 * S, more), "starts");
	cr_expect_str_eq(booted(10 * S, T0 + 570 * S, T0 + 570 * S + 1, one), "waits");
	/* A minute of two, and no less, of 720 s. */
	cr_expect_str_eq(booted(120 * S, T0 + 590 * S, T0 + 599 * S, more), "starts");
	/* A tenth of an hour of 4200 s, where the booking still holds. */
	cr_expect_str_eq(
		booted(3600 * S, T0 + 3000 * S, T0 + 3810 * S, "booking: 2h, max_nodes: 4"),
		"starts");
	cr_expect_str_eq(
		booted(3600 * S, T0 + 3000 * S, T0 + 3811 * S, "booking: 2h, max_nodes: 4"),
		"waits, another is requested");
}

/* Riders need all of their time; what their time limit is, no matter how near the end. */
Test(asks, a_short_job_rides_on_the_last_minutes_of_a_node)
{
	cr_expect_str_eq(rider("max_nodes: 1", 120 * S, T0 + 7500 * S), "starts");
	cr_expect_str_eq(rider("max_nodes: 1", 300 * S, T0 + 7500 * S), "NodeEnds n1 7800 7830");
	/* 10 minutes at least where it may be cut short. */
	cr_expect_str_eq(rider("max_nodes: 1, evictable: true", 86400 * S, T0 + 7170 * S),
			 "starts");
	cr_expect_str_eq(rider("max_nodes: 1, evictable: true", 86400 * S, T0 + 7171 * S),
			 "NodeEnds n1 7800 93601");
}

Test(asks, a_job_leaves_nodes_that_last_longer_to_others)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *m =
		asking_as(1, PROVISION_CLASS_QUEUED, "gpus: 2\ncommand: [x]\n", "max_nodes: 4");
	struct event made = { .type = EV_ASK_MADE, .job = J1 }, heard = { .type = EV_ASK_HEARD };
	struct snapshot *sn = NULL;
	struct plan plan;

	model_find_job(m, J1)->time_limit_us = 7200 * S;
	made.ask.number = 2;
	made.ask.pool = "p";
	made.ask.flavor = "default";
	made.ask.class_ = PROVISION_CLASS_QUEUED;
	made.ask.namespace_ = "";
	made.ask.token = "0123456789abcdef0123456789abcdee";
	made.ask.n_nodes = 1;
	made.ask.run_us = 300000 * S;
	apply(m, &made, T0);
	hear(m, ASK_STATE_PROVISIONED, "Provisioned", T0 + S);
	heard.ask.number = 2;
	heard.ask.attempt = 1;
	heard.ask.state = ASK_STATE_PROVISIONED;
	heard.ask.condition = heard.ask.reason = heard.ask.message = "";
	heard.ask.until_us = T0 + S;
	apply(m, &heard, T0 + S);
	node(m, "z1", T0 + 2 * S);
	node(m, "a1", T0 + 3 * S);
	cr_assert_str_eq(ask_find(m, 2)->nodes[0].name, "a1");
	cr_assert_eq(snapshot_take(m, T0 + 4 * S, &sn, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(sn, &mem, &plan, &err), 0, "%s", err.text);
	cr_assert_eq(plan.n_actions, 1);
	cr_expect_str_eq(sn->nodes[plan.pods[plan.actions[0].pod_first].node].name, "z1");
	snapshot_free(sn);
	gpuq_arena_done(&mem);
	model_free(m);
}

Test(asks, part_of_the_last_waits)
{
	struct ask_pool p = { .waits_s = { 50, 10, 20, 30, 40, 30, 90, 60, 70, 80 },
			      .n_waits = 10 };

	cr_expect_eq(ask_pool_wait_s(&p, 50), 40);
	cr_expect_eq(ask_pool_wait_s(&p, 90), 80);
	cr_expect_eq(ask_pool_wait_s(&p, 100), 90);
	p.n_waits = 0;
	cr_expect_eq(ask_pool_wait_s(&p, 50), -1);
	cr_expect_eq(ask_pool_wait_s(NULL, 50), -1);
}

/* ---- conditions ---- */

static struct capacity_fact fact(void)
{
	struct capacity_fact f = { .name = "x", .created_us = T0 };

	for (int i = 0; i < N_CAPACITY_CONDITIONS; i++)
		f.said[i].reason = f.said[i].message = "";
	return f;
}

static void say(struct capacity_fact *f, enum capacity_condition c, bool on, const char *reason,
		const char *message)
{
	f->said[c] = (struct capacity_said){ true, on, T0 + 5 * S, reason, message };
}

Test(asks, of_the_conditions_that_are_true_the_gravest_counts)
{
	struct ask a = { .state = ASK_STATE_SENT,
			 .attempt = 1,
			 .since_us = T0,
			 .condition = "",
			 .reason = "",
			 .message = (char *)(uintptr_t) "" };
	struct capacity_fact f = fact();
	struct verdict_of v;

	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_NONE);
	say(&f, CAPACITY_ACCEPTED, true, "Accepted", "in a while");
	v = verdict_judge(&a, &f, T0 + 9 * S);
	cr_expect_eq(v.state, ASK_STATE_ACCEPTED);
	say(&f, CAPACITY_PROVISIONED, false, "NotProvisioned", "ETA 2h");
	cr_expect_str_eq(verdict_judge(&a, &f, T0 + 9 * S).message, "ETA 2h");
	say(&f, CAPACITY_PROVISIONED, false, "QuotaExceeded", "");
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_QUOTA);
	say(&f, CAPACITY_PROVISIONED, false, "ResourcePoolExhausted", "later");
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_HEARD);
	say(&f, CAPACITY_PROVISIONED, false, "ResourcePoolExhausted", "time is indefinite");
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_NEXT);
	say(&f, CAPACITY_PROVISIONED, true, "CapacityIsProvisioned", "");
	v = verdict_judge(&a, &f, T0 + 9 * S);
	cr_expect_eq(v.state, ASK_STATE_PROVISIONED);
	cr_expect_eq(v.provisioned_us, T0 + 5 * S);
	/* A clock that is an hour off is not believed. */
	f.said[CAPACITY_PROVISIONED].since_us = T0 - 3600 * S;
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).provisioned_us, T0 + 9 * S);
	f.said[CAPACITY_PROVISIONED].since_us = T0 + 3600 * S;
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).provisioned_us, T0 + 9 * S);
	say(&f, CAPACITY_EXPIRED, true, "CapacityReservationTimeExpired", "");
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_RETRY);
	/* Its pods are there: the end of the booking is no failure. */
	a.used = true;
	a.state = ASK_STATE_SERVED;
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_HEARD);
	a.state = ASK_STATE_PAUSED;
	cr_expect_eq(verdict_judge(&a, &f, T0 + 9 * S).what, VERDICT_NONE);
}

/* AC-DWS-7 */
Test(asks, a_time_limit_beyond_what_nodes_may_run_is_refused)
{
	static const char *big[] = { "default" };
	struct model *m = asking(1);
	struct gpuq_group g = { .gpus_milli = 2000, .pods_min = 1 };
	struct gpuq_spec spec = { .groups = &g, .n_groups = 1 };
	const int64_t week = 7 * 86400 * S;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf warnings = GPUQ_BUF_INIT;

	cr_expect_eq(run_limit_check(m, &spec, week, &err), 0, "%s", err.text);
	cr_expect_eq(run_limit_check(m, &spec, GPUQ_UNLIMITED, &err), 0, "%s", err.text);
	cr_expect_eq(run_limit_check(m, &spec, week + S, &err), GPUQ_ELIMIT);
	cr_expect(strstr(err.text, "maximum 604800 s"), "%s", err.text);
	node(m, "n1", T0 + S);
	cr_expect_eq(run_limit_check(m, &spec, week + S, &err), GPUQ_ELIMIT, "its own node");
	rig_site(m, "version: 1\nqueues: [{name: default}]\nflavors: [{name: default}, {name: "
		    "other}]\npools: [{name: p, "
		    "selector: {a: b}, flavor: default, "
		    "provisioning: {kind: request, class: c.x, max_nodes: 4, max_run: 1h, "
		    "machine: {gpus: 2, labels: {a: b}}}}, {name: q, flavor: other}]");
	cr_expect_eq(run_limit_check(m, &spec, week, &err), 0, "another pool");
	spec.flavors = (struct gpuq_strlist){ big, 1 };
	cr_expect_eq(run_limit_check(m, &spec, week, &err), GPUQ_ELIMIT, "not of that flavor");
	rig_site(m, "version: 1\nqueues: [{name: default}]\nflavors: [{name: default}]\npools: "
		    "[{name: p, "
		    "selector: {a: b}, flavor: default, provisioning: {kind: request, class: c.x, "
		    "max_nodes: 4, "
		    "max_run: 1h, machine: {gpus: 2, labels: {a: b}}}}, {name: q, selector: {a: "
		    "c}, flavor: default, "
		    "provisioning: {kind: request, class: c.x, max_nodes: 4, machine: {gpus: 1, "
		    "labels: {a: c}}}}, "
		    "{name: system, selector: {a: d}}]");
	cr_expect_eq(run_limit_check(m, &spec, week, &err), GPUQ_ELIMIT,
		     "its machine is too small");
	cr_expect(strstr(err.text, "maximum 3600 s"), "%s", err.text);
	g.gpus_milli = 1000;
	cr_expect_eq(run_limit_check(m, &spec, week, &err), 0, "%s", err.text);
	g.gpus_milli = 2000;
	run_limit_warn(m, &spec, 3600 * S, &warnings);
	cr_expect_eq(warnings.len, 0, "nodes of other classes are not taken away");
	rig_site(m,
		 "version: 1\nqueues: [{name: default}]\nflavors: [{name: default}]\npools: "
		 "[{name: p, "
		 "selector: {a: b}, flavor: default, provisioning: {kind: request, class: "
		 "queued-provisioning.gke.io, max_nodes: 4, machine: {gpus: 2, labels: {a: b}}}}]");
	run_limit_warn(m, &spec, week - 600 * S, &warnings);
	cr_expect_eq(warnings.len, 0, "the node may boot");
	run_limit_warn(m, &spec, week, &warnings);
	cr_expect_str_eq(
		gpuq_buf_str(&warnings),
		"nodes of pool p run for 604800 s at most, from when they are made: their boot "
		"takes part of the time limit\n");
	g.gpus_milli = 0;
	cr_expect_eq(run_limit_check(m, &spec, week, &err), 0, "no devices");
	gpuq_buf_done(&warnings);
	model_free(m);
}
