/* How long what the cluster refuses is left alone, from one refusal to the next; and which nodes are
 * left alone that refuse pods. */
#include <criterion/criterion.h>

#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/refusal/refusals.h"
#include "gpuqd/flow/refusal/rejections.h"
#include "tests/unit/journal_rig.h"
#include "tests/unit/site_text.h"

#define FIRST_S 60 /* what a kubelet misses is tried again after it */

static struct journal_rig rig;
static struct reconcile *reconcile;
static struct refusals *refusals;

static void setup(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	journal_rig_open(&rig, fresh(1, 8));
	cr_assert_eq(reconcile_new(rig.journal, NULL, NULL, &reconcile, &err), 0, "%s", err.text);
	cr_assert_eq(refusals_new(rig.journal, reconcile, &refusals, &err), 0, "%s", err.text);
	cr_assert_null(submit_text(rig.model, "{gpus: 1, command: [a]}", NULL));
	cr_assert_null(submit_text(rig.model, "{gpus: 1, command: [a]}", NULL));
}

static void teardown(void)
{
	refusals_free(refusals);
	reconcile_free(reconcile);
	journal_rig_close(&rig);
}

TestSuite(refusals, .init = setup, .fini = teardown);

static void pass(int64_t seconds)
{
	const struct clock now = *loop_clock(rig.loop);

	loop_clock_resume(rig.loop, &now, loop_now_us(rig.loop) + seconds * GPUQ_US_PER_S);
}

static void look(void *arg, const struct refusal_view *v)
{
	int64_t *pause_s = arg;

	cr_expect_str_eq(v->object, "secret/s");
	*pause_s = (v->next_us - loop_now_us(rig.loop) + GPUQ_US_PER_S / 2) / GPUQ_US_PER_S;
}

/* The pause that a refusal leads to, in seconds; 0 = nothing is refused. */
static int64_t refused(uint32_t job)
{
	int64_t pause_s = 0;

	refusals_missed(refusals, (struct job_key){ job, -1 }, "secret/s", "s not found");
	refusals_each(refusals, look, &pause_s);
	return pause_s;
}

static void stop(void *arg)
{
	(void)arg;
	loop_stop(rig.loop, 0);
}

/* A site is applied: all that is refused is tried. */
static void let_go(void)
{
	struct event ev = { .type = EV_SITE_APPLIED };
	struct gpuq_buf site = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t pause_s = 0;

	site_text_pack("version: 1\nqueues:\n- {name: default}\n", &site);
	ev.site.bytes = site.data;
	ev.site.len = site.len;
	cr_assert_eq(journal_apply(rig.journal, &ev, &err), 0, "%s", err.text);
	gpuq_buf_done(&site);
	loop_after(rig.loop, 0, stop, NULL); /* behind the gate's own */
	cr_assert_eq(loop_run(rig.loop), 0);
	refusals_each(refusals, look, &pause_s);
	cr_assert_eq(pause_s, 0, "it is open");
}

static void runs(uint32_t job, uint16_t device)
{
	struct event ev = { .type = EV_POD_STARTED, .pod = { { job, -1 }, 0, 0 } };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(place(rig.model, ev.pod.job, 1, "n0", device), 0);
	cr_assert_eq(journal_apply(rig.journal, &ev, &err), 0, "%s", err.text);
}

Test(refusals, the_pause_doubles_while_nothing_runs)
{
	cr_expect_eq(refused(1), FIRST_S);
	let_go();
	pass(2 * FIRST_S);
	cr_expect_eq(refused(1), 2 * FIRST_S);
	let_go();
	pass(2 * FIRST_S);
	cr_expect_eq(refused(1), 4 * FIRST_S);
}

Test(refusals, a_slip_after_pods_ran_for_a_while_begins_anew)
{
	cr_expect_eq(refused(1), FIRST_S);
	let_go();
	cr_expect_eq(refused(1), 2 * FIRST_S);
	let_go();
	runs(1, 0);
	pass(3 * FIRST_S);
	cr_expect_eq(refused(2), FIRST_S);
}

Test(refusals, one_that_follows_at_once_does_not)
{
	cr_expect_eq(refused(1), FIRST_S);
	let_go();
	runs(1, 0);
	pass(FIRST_S / 2);
	cr_expect_eq(refused(2), 2 * FIRST_S);
}

Test(refusals, pods_of_others_prove_nothing)
{
	cr_expect_eq(refused(1), FIRST_S);
	let_go();
	runs(2, 0);
	pass(3 * FIRST_S);
	cr_expect_eq(refused(1), 2 * FIRST_S);
}

/* ---- nodes ---- */

/* n0 refuses a pod of ann, of that request. */
static void rejected(struct rejections *r, uint32_t request, const char *short_of)
{
	rejections_note(
		r, &(struct pod_rejection){
			   .node = "n0", .user = "ann", .request = request, .short_of = short_of });
}

/* Make the devices of n0 have a name, as those of a cluster do. */
static const struct node *named(void)
{
	struct node *n = model_find_node(rig.model, "n0");

	n->fact.device = "nvidia.com/gpu";
	return n;
}

Test(refusals, a_node_is_suspect_when_different_jobs_are_refused)
{
	struct rejections *r = rejections_new(rig.journal);
	const struct node *n = named();

	for (int i = 0; i < 8; i++)
		rejected(r, 1, NULL);
	cr_expect_not(n->suspect);
	cr_expect_eq(n->backoff_until_us, 0);
	rejected(r, 2, NULL);
	rejected(r, 3, NULL);
	cr_expect(n->suspect);
	cr_expect_gt(n->backoff_until_us, loop_now_us(rig.loop));
	rejections_free(r);
}

Test(refusals, jobs_without_devices_go_on_where_devices_are_lacking)
{
	struct rejections *r = rejections_new(rig.journal);
	const struct node *n = named();

	for (uint32_t i = 0; i < 6; i++)
		rejected(r, i, "nvidia.com/gpu");
	cr_expect(n->suspect);
	cr_expect_eq(n->backoff_until_us, 0);
	rejections_free(r);
}

Test(refusals, those_for_lack_of_devices_and_others_are_counted_apart)
{
	struct rejections *r = rejections_new(rig.journal);
	const struct node *n = named();

	rejected(r, 1, "nvidia.com/gpu");
	rejected(r, 2, "nvidia.com/gpu");
	rejected(r, 3, NULL);
	cr_expect_eq(n->backoff_until_us, 0);
	cr_expect_str_eq(n->shorts[0].resource, "nvidia.com/gpu");
	rejections_free(r);
}

/* ---- what is believed of a resource ---- */

/* n0 refuses a pod that asked for one of it, and has none. */
static void lacks_nic(struct rejections *r)
{
	rejections_note(r, &(struct pod_rejection){ .node = "n0",
						    .user = "ann",
						    .request = 1,
						    .short_of = "rdma/hca",
						    .short_have = 0,
						    .short_asked = 1 });
}

/* How long it is believed now, in minutes; 0 = not any more. */
static int64_t believed_min(void)
{
	const int64_t until =
		node_lacks_until(model_find_node(rig.model, "n0"), loop_now_us(rig.loop));

	return until == GPUQ_UNLIMITED ? 0
				       : (until - loop_now_us(rig.loop) + 30 * GPUQ_US_PER_S) /
						 (60 * GPUQ_US_PER_S);
}

static struct node *nics(struct gpuq_amount *offer)
{
	struct node *n = model_find_node(rig.model, "n0");

	n->fact.resources = offer;
	n->fact.n_resources = 1;
	n->foreign_amounts = gpuq_arena_calloc(&n->arena, 1, sizeof(int64_t));
	return n;
}

Test(refusals, a_resource_is_believed_to_lack_for_longer_each_time)
{
	struct gpuq_amount offer = { "rdma/hca", 2 };
	struct rejections *r = rejections_new(rig.journal);
	const struct node *n = nics(&offer);

	lacks_nic(r);
	lacks_nic(r); /* on its way already */
	cr_expect_eq(believed_min(), 1);
	cr_expect_eq(node_lacks(n, "rdma/hca", loop_now_us(rig.loop)), 2);
	pass(61);
	cr_expect_eq(believed_min(), 0);
	lacks_nic(r);
	cr_expect_eq(believed_min(), 2);
	for (int i = 0; i < 8; i++) {
		pass(3601);
		lacks_nic(r);
	}
	cr_expect_eq(believed_min(), 60);
	rejections_free(r);
}

/* A plugin may lack its devices for a moment. */
Test(refusals, devices_are_tried_again_after_a_second)
{
	struct rejections *r = rejections_new(rig.journal);
	const struct node *n = model_find_node(rig.model, "n0");
	const struct pod_rejection is = { .node = "n0",
					  .user = "ann",
					  .request = 1,
					  .short_of = n->fact.device,
					  .short_have = 0,
					  .short_asked = 1 };

	cr_assert_not_null(n->fact.device);
	rejections_note(r, &is);
	cr_assert_not_null(node_short_find(n, is.short_of));
	cr_expect_eq(node_short_find(n, is.short_of)->until_us,
		     loop_now_us(rig.loop) + GPUQ_US_PER_S);
	rejections_free(r);
}

/* A job of one adapter, which runs on n1. */
static const struct job *runs_with_nic(void)
{
	const struct job_key key = { 3, -1 };
	struct event ev = { .type = EV_POD_STARTED, .pod = { key, 0, 0 } };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_null(
		submit_text(rig.model, "{gpus: 1, command: [a], resources: {rdma/hca: 1}}", NULL));
	cr_assert_eq(place(rig.model, key, 1, "n0", 0), 0);
	cr_assert_eq(journal_apply(rig.journal, &ev, &err), 0, "%s", err.text);
	return model_find_job(rig.model, key);
}

Test(refusals, the_doubt_stays_until_the_node_serves_it)
{
	struct gpuq_amount offer = { "rdma/hca", 2 };
	struct rejections *r = rejections_new(rig.journal);
	const struct node *n = nics(&offer);

	lacks_nic(r);
	pass(3600);
	cr_expect_eq(believed_min(), 0);
	cr_expect_not_null(node_short_find(n, "rdma/hca"));
	runs(1, 1);
	cr_expect_not_null(node_short_find(n, "rdma/hca"), "it asked for none of it");
	cr_expect_not(
		node_is_doubtful_for(n, model_find_job(rig.model, (struct job_key){ 1, -1 })));
	cr_expect_not(node_is_doubtful_for(n, runs_with_nic()));
	cr_expect_null(node_short_find(n, "rdma/hca"), "it served it");
	lacks_nic(r);
	cr_expect_eq(believed_min(), 1, "it counts anew");
	cr_expect(node_is_doubtful_for(n, model_find_job(rig.model, (struct job_key){ 3, -1 })));
	rejections_free(r);
}
