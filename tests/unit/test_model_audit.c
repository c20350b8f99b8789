/* A figure that does not follow from the jobs is found, whichever it is. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/state/audit/model_audit.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/record/model_apply.h"
#include "tests/unit/model_rig.h"

/* A request whose node has come. */
static void request(struct model *m, uint32_t number, const char *node)
{
	struct event ev = { .type = EV_ASK_MADE, .at_us = T0, .job = { 2, -1 } };
	struct node_fact f = { .name = node, .note = "", .ready = true };
	struct event seen = { .type = EV_NODE_SEEN, .at_us = T0 + 1, .node = &f };

	ev.ask.number = number;
	ev.ask.pool = "default";
	ev.ask.flavor = "default";
	ev.ask.class_ = "c.x";
	ev.ask.namespace_ = "";
	ev.ask.token = "0123456789abcdef0123456789abcdef";
	ev.ask.n_nodes = 1;
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	cr_assert_eq(model_apply(m, &seen, NULL), 0);
	cr_assert_eq(ask_find(m, number)->n_came, 1);
}

static struct model *world(void)
{
	struct model *m = fresh(3, 2);

	cr_assert_null(submit_text(m, "{gpus: 2, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{array: 0-9, command: [b]}", NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	request(m, 1, "m1");
	request(m, 2, "m2");
	return m;
}

static struct queue *queue_of(struct model *m)
{
	return m->jobs->queue;
}

static void more_pending(struct model *m)
{
	queue_of(m)->n_pending++;
}
static void fewer_running(struct model *m)
{
	queue_of(m)->n_running--;
}
static void more_allocated(struct model *m)
{
	queue_of(m)->allocated_milli++;
}
static void more_held(struct model *m)
{
	queue_of(m)->held_milli++;
}
static void more_jobs(struct model *m)
{
	m->n_jobs++;
}
static void more_of_a_state(struct model *m)
{
	m->n_jobs_by_state[GPUQ_JOB_PENDING]++;
}
static void more_promises(struct model *m)
{
	m->n_promises++;
}
static void number_again(struct model *m)
{
	m->next_job_id = 1;
}
static void user_of_more(struct model *m)
{
	m->jobs->request->n_jobs++;
}
static void longer_spec(struct model *m)
{
	m->jobs->spec_bytes++;
}
static void elements_lost(struct model *m)
{
	m->jobs->next->array->n_waiting--;
}
static void element_never_ends(struct model *m)
{
	m->jobs->next->array->n_live++;
}
static void pod_of_an_attempt_to_come(struct model *m)
{
	m->jobs->pods->attempt++;
}

static void number_of_a_request(struct model *m)
{
	m->last_ask = 1;
}
static void node_of_two_requests(struct model *m)
{
	ask_find(m, 2)->nodes[0].name = ask_find(m, 1)->nodes[0].name;
}
static void more_nodes_than_requested(struct model *m)
{
	ask_find(m, 1)->n_nodes = 0;
}
static void nodes_of_an_attempt_that_failed(struct model *m)
{
	ask_find(m, 1)->state = ASK_STATE_PAUSED;
}
static void given_at_no_time(struct model *m)
{
	ask_find(m, 2)->state = ASK_STATE_PROVISIONED;
}

static const struct {
	void (*harm)(struct model *m);
	const char *says;
} harms[] = {
	{ more_pending, "pending jobs is" },
	{ fewer_running, "running jobs is" },
	{ more_allocated, "allocated thousandths of devices is" },
	{ more_held, "held thousandths of devices is" },
	{ more_jobs, "all jobs: jobs is" },
	{ more_of_a_state, "state PENDING: jobs is" },
	{ more_promises, "nominated placements is" },
	{ number_again, "its number has not been given yet" },
	{ user_of_more, "requests: users is" },
	{ longer_spec, "bytes of specs is" },
	{ elements_lost, "pending elements is" },
	{ element_never_ends, "live elements is" },
	{ number_of_a_request, "request 2 for nodes: its number has not been given yet" },
	{ node_of_two_requests, "came for another as well" },
	{ more_nodes_than_requested, "it has no state, no node" },
	{ nodes_of_an_attempt_that_failed, "an attempt that is over may be used" },
	{ given_at_no_time, "when its nodes were given" },
	{ pod_of_an_attempt_to_come, "a pod that is not of its attempts" },
};

Test(model_audit, what_does_not_add_up_is_found)
{
	for (size_t i = 0; i < sizeof(harms) / sizeof(harms[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct model *m = world();

		cr_assert_eq(model_audit(m, &err), 0, "%s", err.text);
		harms[i].harm(m);
		cr_expect_eq(model_audit(m, &err), GPUQ_ECORRUPT, "%s", harms[i].says);
		cr_expect(strstr(err.text, harms[i].says), "'%s' not in '%s'", harms[i].says,
			  err.text);
		model_free(m);
	}
}
