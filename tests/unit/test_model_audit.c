/* A figure that does not follow from the jobs is found, whichever it is. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/state/audit/model_audit.h"
#include "tests/unit/model_rig.h"

static struct model *world(void)
{
	struct model *m = fresh(3, 2);

	cr_assert_null(submit_text(m, "{gpus: 2, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{array: 0-9, command: [b]}", NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
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
