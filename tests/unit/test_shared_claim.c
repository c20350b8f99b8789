/* Pods that share one ResourceClaim: its devices are held, counted and charged once. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/carry/carry.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/audit/model_audit.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/state/record/model_apply.h"
#include "tests/unit/model_rig.h"

#define CLASS "gpu.nvidia.com"
#define SHARES "claims: [{name: a, claim: c, shares: 1}], gpus: 1, command: [a]"
#define OF_CLASS_WORDS "claims: [{name: a, class: " CLASS "}], gpus: 1, command: [a]"
#define OF_CLASS "{" OF_CLASS_WORDS "}"
#define S GPUQ_US_PER_S

static const struct job_key J2 = { 2, -1 }, J3 = { 3, -1 };

static struct object_fact fact(enum object_kind kind, const char *namespace_, const char *name)
{
	return (struct object_fact){ .kind = kind,
				     .namespace_ = namespace_,
				     .name = name,
				     .volume = "",
				     .class_ = "",
				     .selected = "" };
}

static void tell(struct model *m, const struct object_fact *f, int64_t at_us)
{
	struct event ev = { .type = EV_OBJECT_SEEN, .at_us = at_us, .object = f };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
}

/* The claim: of one device; of gpu-0 where it is allocated, for pods of these names. */
static void claim(struct model *m, const char *version, bool allocated, const char *const *pods,
		  uint32_t n, int64_t at_us)
{
	const char *uids[4] = { "u0", "u1", "u2", "u3" }, *names[4];
	const struct dra_result r = { "r", CLASS, "n0", "gpu-0" };
	const struct dra_option o = { .name = "", .class_ = CLASS, .count = 1 };
	const struct dra_request request = { "r", &o, 1 };
	const struct dra_claim c = {
		.namespace_ = "home",
		.name = "c",
		.uid = "u",
		.version = version,
		.owner = "",
		.owner_name = "",
		.pod_claim = "",
		.taken = true,
		.finalizer = true,
		.allocated = allocated,
		.node = allocated ? "n0" : "",
		.spec = { .requests = &request, .n_requests = 1, .config = "", .odd = "" },
		.results = &r,
		.n_results = allocated,
		.reserved = { uids, n },
		.consumers = { names, n }
	};
	struct object_fact f = fact(OBJECT_DEVICE_CLAIM, "home", "c");

	for (uint32_t i = 0; i < n; i++)
		names[i] = pods[i];
	f.dra.claim = &c;
	tell(m, &f, at_us);
}

static void slice(struct model *m, const char *node)
{
	const struct dra_device devices[] = { { .name = "gpu-0" }, { .name = "gpu-1" } };
	const struct dra_slice s = { .name = node,
				     .driver = CLASS,
				     .pool = node,
				     .generation = 1,
				     .n_slices = 1,
				     .node = node,
				     .devices = devices,
				     .n_devices = 2 };
	struct object_fact f = fact(OBJECT_SLICE, "", node);

	f.dra.slice = &s;
	tell(m, &f, T0);
}

/* Objects are not stored. */
static void objects(struct model *m)
{
	const struct dra_class c = { .name = CLASS, .extended = "", .config = "", .odd = "" };
	struct object_fact f = fact(OBJECT_DEVICE_CLASS, "", CLASS);

	for (int k = 0; k < N_OBJECT_KINDS; k++) {
		struct event ev = { .type = EV_OBJECTS_KNOWN, .at_us = T0 };

		ev.objects.kind = (enum object_kind)k;
		ev.objects.known = true;
		ev.objects.home = "home";
		cr_assert_eq(model_apply(m, &ev, NULL), 0);
	}
	f.dra.class_ = &c;
	tell(m, &f, T0);
	slice(m, "n0");
	slice(m, "n1");
}

static struct model *world(void)
{
	struct model *m = fresh(2, 0);

	objects(m);
	claim(m, "1", false, NULL, 0, T0);
	return m;
}

/* ---- a cycle ---- */

struct turn {
	struct model *m;
	int64_t at_us;
};

static int apply(void *arg, struct event *ev, struct gpuq_err *err)
{
	struct turn *t = arg;

	ev->at_us = t->at_us;
	return model_apply(t->m, ev, err);
}

static void token(char out[33])
{
	memcpy(out, "0123456789abcdef0123456789abcdef", 33);
}

/* The model refuses nothing that is carried out. */
static void news(void *arg, enum carry_news what, const struct plan_action *a,
		 const struct event *ev, const struct gpuq_err *err)
{
	(void)arg;
	(void)a;
	(void)ev;
	cr_expect_neq(what, CARRY_REFUSED, "%s", err ? err->text : "");
}

static void audit(const struct model *m)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_eq(model_audit(m, &err), 0, "%s", err.text);
}

static void cycle(struct model *m, int64_t at_us)
{
	struct turn t = { m, at_us };
	const struct carry_to to = { .apply = apply, .token = token, .news = news, .arg = &t };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL;
	struct plan plan;

	cr_assert_eq(snapshot_take(m, at_us, &s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &plan, &err), 0, "%s", err.text);
	carry_plan(&to, m, s, &plan, &mem);
	gpuq_arena_done(&mem);
	snapshot_free(s);
	audit(m);
}

/* The live pods of a job: "n0:0 n0:" */
static const char *pods(struct model *m, struct job_key key)
{
	static char text[256];
	const struct job *j = model_find_job(m, key);
	const struct pod *p;
	size_t n = 0;

	text[0] = '\0';
	if (!j)
		return "gone";
	DL_FOREACH2(j->pods, p, job_next) {
		if (!model_pod_takes(p))
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:", n ? " " : "",
				      p->node->name);
		for (uint32_t i = 0; i < p->n_devices; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", i ? "," : "",
					      p->devices[i]);
		cr_expect_eq(p->gpus_milli, 1000 * (int64_t)p->n_devices);
	}
	return text;
}

static void run(struct model *m, struct job_key key, uint32_t index, int64_t at_us)
{
	cr_assert_eq(pod_event(m, EV_POD_CREATED, key, 0, index, at_us, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, key, 0, index, at_us, 0, 0), 0);
}

static void end(struct model *m, struct job_key key, uint32_t index, int64_t at_us)
{
	cr_assert_eq(pod_event(m, EV_POD_ENDED, key, 0, index, at_us, 0, 0), 0);
	audit(m);
}

static int64_t allocated(struct model *m)
{
	return model_find_queue(m, "default")->allocated_milli;
}

Test(shared_claim, one_card_is_one_card)
{
	struct model *m = world();

	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + S);
	cycle(m, T0 + 2 * S);
	cr_expect_str_eq(pods(m, J1), "n0:0");
	cr_expect_str_eq(pods(m, J2), "n0:");
	cr_expect_eq(allocated(m), 1000);
	/* The other devices are free, and its node is the only one that the claim's pods can be on. */
	for (int i = 0; i < 3; i++)
		cr_assert_null(submit_text(m, OF_CLASS, NULL));
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + 3 * S);
	cr_expect_eq(allocated(m), 4000);
	cr_expect_str_eq(pods(m, (struct job_key){ 6, -1 }), "n0:");
	model_free(m);
}

/* The fair share of the queue as the next cycle has it. */
static int64_t fair(struct model *m)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL;
	struct plan plan;
	int64_t milli;

	cr_assert_eq(snapshot_take(m, T0 + 100 * S, &s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &plan, &err), 0, "%s", err.text);
	milli = plan.fair_share[(size_t)snapshot_find_queue(s, "default") * s->n_res +
				snapshot_find_flavor(s, "default")];
	gpuq_arena_done(&mem);
	snapshot_free(s);
	return milli;
}

Test(shared_claim, its_card_is_in_the_fair_share_once)
{
	struct model *m = world();

	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + S);
	cr_expect_eq(fair(m), 1000);
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + 2 * S);
	cr_expect_eq(fair(m), 1000, "the other rides");
	cr_assert_null(submit_text(m, OF_CLASS, NULL));
	cycle(m, T0 + 3 * S);
	cr_expect_eq(fair(m), 2000);
	cr_expect_eq(allocated(m), 2000);
	model_free(m);
}

Test(shared_claim, isolation_is_none_while_it_is_shared)
{
	struct model *m = world();

	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + S);
	cr_expect_eq(model_job_isolation(model_find_job(m, J1)), GPUQ_ISOLATION_EXCLUSIVE);
	cr_assert_null(submit_text(m, "{isolation: exclusive, " SHARES "}", NULL));
	cycle(m, T0 + 2 * S);
	cr_expect_str_eq(pods(m, J2), "", "it demands that no other has its devices");
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + 3 * S);
	cr_expect_str_eq(pods(m, J3), "n0:");
	cr_expect_eq(model_job_isolation(model_find_job(m, J1)), GPUQ_ISOLATION_NONE);
	cr_expect_eq(model_job_isolation(model_find_job(m, J3)), GPUQ_ISOLATION_NONE);
	run(m, J3, 0, T0 + 4 * S);
	end(m, J3, 0, T0 + 5 * S);
	cr_expect_eq(model_job_isolation(model_find_job(m, J1)), GPUQ_ISOLATION_EXCLUSIVE);
	model_free(m);
}

/* The charge passes on to the oldest that is left, and from then on alone. */
Test(shared_claim, the_charge_passes_on)
{
	struct model *m = world();
	const struct pod *p;

	for (int i = 0; i < 3; i++)
		cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	for (int i = 1; i < 4; i++)
		cycle(m, T0 + i * S);
	for (uint32_t i = 1; i < 4; i++)
		run(m, (struct job_key){ i, -1 }, 0, T0 + 10 * S);
	end(m, J1, 0, T0 + 20 * S);
	cr_expect_eq(model_find_job(m, J1)->life->gpu_us, 10 * S);
	cr_expect_str_eq(pods(m, J2), "n0:0");
	cr_expect_str_eq(pods(m, J3), "n0:");
	cr_expect_eq(allocated(m), 1000);
	cr_expect_str_eq(model_find_job(m, J2)->life->flavor, "default");
	p = model_find_job(m, J2)->pods;
	cr_expect_eq(accounting_pod_us(p, p->start_us, T0 + 25 * S), 5 * S);
	end(m, J2, 0, T0 + 30 * S);
	cr_expect_eq(model_find_job(m, J2)->life->gpu_us, 10 * S, "not what it rode");
	cr_expect_str_eq(pods(m, J3), "n0:0");
	end(m, J3, 0, T0 + 31 * S);
	cr_expect_eq(model_find_job(m, J3)->life->gpu_us, 1 * S);
	cr_expect_eq(allocated(m), 0);
	model_free(m);
}

/* The sums of the book add up to the time in which the device was held. */
Test(shared_claim, the_book_has_the_device_once)
{
	struct model *m = world();
	int64_t us = 0;

	for (int i = 0; i < 2; i++)
		cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	for (int i = 1; i < 3; i++)
		cycle(m, T0 + i * S);
	for (uint32_t i = 1; i < 3; i++)
		run(m, (struct job_key){ i, -1 }, 0, T0 + 10 * S);
	end(m, J1, 0, T0 + 20 * S);
	end(m, J2, 0, T0 + 50 * S);
	for (const struct usage *u = m->usages; u; u = u->hh.next)
		us += u->us[CHARGE_USED];
	cr_expect_eq(us, 40 * S);
	for (const struct account *a = m->accounts; a; a = a->hh.next)
		cr_expect_eq(a->a.rate_milli, 0, "nothing is charged any more");
	model_free(m);
}

Test(shared_claim, who_rides_is_stored)
{
	struct model *m = world();
	struct disk disk = { 0 };

	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + S);
	cycle(m, T0 + 2 * S);
	run(m, J1, 0, T0 + 3 * S);
	run(m, J2, 0, T0 + 3 * S);
	disk_write(&disk, m);
	model_free(m);
	m = disk_load(&disk);
	cr_expect_str_eq(pods(m, J2), "n0:");
	cr_expect_eq(allocated(m), 1000);
	/* Its objects are not known yet. */
	end(m, J1, 0, T0 + 10 * S);
	cr_expect_str_eq(pods(m, J2), "n0:0");
	disk_write(&disk, m);
	model_free(m);
	m = disk_load(&disk);
	cr_expect_str_eq(pods(m, J2), "n0:0");
	cr_expect_eq(allocated(m), 1000);
	end(m, J2, 0, T0 + 30 * S);
	cr_expect_eq(model_find_job(m, J2)->life->gpu_us, 20 * S, "since it was charged");
	model_free(m);
	disk_free(&disk);
}

Test(shared_claim, pods_of_one_job)
{
	struct model *m = world();

	cr_assert_null(submit_text(m, "{pods: 3, " SHARES "}", NULL));
	cycle(m, T0 + S);
	cr_expect_str_eq(pods(m, J1), "n0:0 n0: n0:");
	cr_expect_eq(allocated(m), 1000);
	cr_expect_eq(model_job_gpus_milli(model_find_job(m, J1)), 1000);
	cr_assert_null(submit_text(m, OF_CLASS, NULL));
	cycle(m, T0 + 2 * S);
	cr_expect_eq(allocated(m), 2000);
	model_free(m);
}

/* Pods of others have the claim: its device is theirs, and once. */
Test(shared_claim, the_claim_of_others)
{
	static const char *const other[] = { "p" };
	static const char *const both[] = { "p", "gpuq-" CLUSTER "-1-0-0" };
	struct model *m = world();
	const struct node *n = model_find_node(m, "n0");

	claim(m, "2", true, other, 1, T0);
	cr_expect_eq(n->foreign_on[0].milli, 1000);
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + S);
	cr_expect_str_eq(pods(m, J1), "n0:");
	cr_expect_eq(allocated(m), 0);
	cr_expect_eq(model_job_isolation(model_find_job(m, J1)), GPUQ_ISOLATION_NONE);
	claim(m, "3", true, both, 2, T0 + 2 * S);
	cr_expect_eq(n->foreign_on[0].milli, 1000);
	claim(m, "4", true, both + 1, 1, T0 + 3 * S);
	cr_expect_eq(n->foreign_on[0].milli, 0);
	cr_expect_str_eq(pods(m, J1), "n0:0");
	cr_expect_eq(allocated(m), 1000);
	/* One of others comes to it: it stays that of gpuq's. */
	cr_expect_eq(model_job_isolation(model_find_job(m, J1)), GPUQ_ISOLATION_EXCLUSIVE);
	claim(m, "5", true, both, 2, T0 + 4 * S);
	cr_expect_eq(n->foreign_on[0].milli, 0);
	cr_expect_eq(model_job_isolation(model_find_job(m, J1)), GPUQ_ISOLATION_NONE);
	cr_expect_eq(allocated(m), 1000);
	run(m, J1, 0, T0 + 5 * S);
	end(m, J1, 0, T0 + 6 * S);
	cr_expect_eq(n->foreign_on[0].milli, 1000);
	cr_expect_eq(allocated(m), 0);
	model_free(m);
}

/* A job that is preempted frees no device that another one keeps. */
Test(shared_claim, devices_that_stay)
{
	struct model *m = world();
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL;

	cr_assert_null(submit_text(m, "{pods: 2, " SHARES "}", NULL));
	cycle(m, T0 + S);
	cr_assert_eq(snapshot_take(m, T0 + S, &s, &err), 0, "%s", err.text);
	cr_expect_not(s->allocs[0].stays, "its pods go together");
	snapshot_free(s);
	cr_assert_null(submit_text(m, "{" SHARES "}", NULL));
	cycle(m, T0 + 2 * S);
	cr_assert_eq(snapshot_take(m, T0 + 2 * S, &s, &err), 0, "%s", err.text);
	cr_assert_eq(s->n_allocs, 3);
	cr_expect(s->allocs[0].stays && s->allocs[0].shares);
	cr_expect_eq(s->allocs[0].charge_milli, 1000);
	cr_expect_eq(s->allocs[2].charge_milli, 0);
	snapshot_free(s);
	model_free(m);
}

/* The job that has a device of its own is preempted, not one whose device another job keeps. */
Test(shared_claim, a_card_that_stays_is_not_taken_back)
{
	struct model *m = fresh(1, 0);

	rig_site(m, "{version: 1, queues: [{name: prod, quota: 2}, {name: batch, quota: 0}]}");
	objects(m);
	claim(m, "1", false, NULL, 0, T0);
	cr_assert_null(submit_text(m, "{queue: batch, " OF_CLASS_WORDS "}", NULL));
	cycle(m, T0 + S);
	for (int i = 0; i < 2; i++) {
		cr_assert_null(submit_text(m, "{queue: batch, " SHARES "}", NULL));
		cycle(m, T0 + (2 + i) * S);
	}
	for (uint32_t i = 1; i < 4; i++)
		run(m, (struct job_key){ i, -1 }, 0, T0 + 10 * S);
	cr_assert_null(submit_text(m, "{queue: prod, " OF_CLASS_WORDS "}", NULL));
	cycle(m, T0 + 2000 * S);
	cr_expect_neq(model_find_job(m, J1)->life->leave_us, 0);
	cr_expect_eq(model_find_job(m, J2)->life->leave_us, 0, "job 3 would keep its device");
	cr_expect_eq(model_find_job(m, J3)->life->leave_us, 0);
	model_free(m);
}

/* A claim of one device of n0, for the pod of that name. */
static void held_by(struct model *m, const char *name, const char *device, const char *pod,
		    bool taken)
{
	const char *uids[] = { pod }, *names[] = { pod };
	const struct dra_result r = { "r", CLASS, "n0", device };
	const struct dra_option o = { .name = "", .class_ = CLASS, .count = 1 };
	const struct dra_request request = { "r", &o, 1 };
	const struct dra_claim c = {
		.namespace_ = "home",
		.name = name,
		.uid = name,
		.version = taken ? "1" : "2",
		.owner = "",
		.owner_name = "",
		.pod_claim = "",
		.taken = taken,
		.allocated = true,
		.node = "n0",
		.spec = { .requests = &request, .n_requests = 1, .config = "", .odd = "" },
		.results = &r,
		.n_results = 1,
		.reserved = { uids, 1 },
		.consumers = { names, 1 }
	};
	struct object_fact f = fact(OBJECT_DEVICE_CLAIM, "home", name);

	f.dra.claim = &c;
	tell(m, &f, T0 + 2 * S);
}

/* Return how many pods of the pending job n0 is enough for when all that gpuq's pods hold is free. */
static int64_t enough_for(struct model *m, struct job_key key)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct snap_group *g;
	struct snapshot *s = NULL;
	int64_t n = -1;
	uint32_t job;

	cr_assert_eq(snapshot_take(m, T0 + 100 * S, &s, &err), 0, "%s", err.text);
	job = snapshot_find_job(s, (struct snap_key){ key.id, key.index });
	cr_assert_neq(job, SNAP_NONE);
	g = &s->requests[s->jobs[job].request].groups[0];
	if (g->n_takes == 1)
		n = s->extra_free[(size_t)snapshot_find_node(s, "n0") * s->n_extras +
				  g->takes[0].extra];
	snapshot_free(s);
	return n;
}

/* Devices of gpuq's pods are free once these end, beside a claim of others as well. */
Test(shared_claim, what_ends_leaves_its_devices_to_other_requests)
{
	struct model *m = world();

	cr_assert_null(submit_text(m, "{nodes: [n0], " OF_CLASS_WORDS "}", NULL));
	cycle(m, T0 + S);
	cr_expect_str_eq(pods(m, J1), "n0:0");
	run(m, J1, 0, T0 + 2 * S);
	held_by(m, "ours", "gpu-0", "gpuq-" CLUSTER "-1-0-0", true);
	held_by(m, "theirs", "gpu-1", "p", false);
	cr_assert_null(submit_text(m, "{nodes: [n0], cpus: 1, " OF_CLASS_WORDS "}", NULL));
	cycle(m, T0 + 3 * S);
	cr_expect_str_eq(pods(m, J2), "", "no device is free");
	cr_expect_eq(enough_for(m, J2), 1);
	/* Those of others are not. */
	held_by(m, "ours", "gpu-0", "q", false);
	cr_expect_eq(enough_for(m, J2), 0);
	model_free(m);
}
