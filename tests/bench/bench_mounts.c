/* How much longer a cycle takes where each job mounts a volume claim: each pair of rows is one
 * cluster with the same jobs, without claims and with one claim for each. Both the snapshot and the
 * decision count. Measures, judges nothing. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/record/model_apply.h"
#include "tests/bench/bench_core.h"

#define NODES 1250
#define JOBS 10000

enum mounts {
	NOTHING,
	UNBOUND, /* bound at their first pod */
	ZONED, /* on half of the nodes */
	LOCAL, /* each on one node */
};

static void must(int rc, const struct gpuq_err *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(1);
}

static void apply(struct model *m, struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	ev->at_us = 1;
	must(model_apply(m, ev, &err), &err);
}

static void add_node(struct model *m, uint32_t i)
{
	static const struct device_fact devices[8] = {
		{ "", "", 81920, true }, { "", "", 81920, true }, { "", "", 81920, true },
		{ "", "", 81920, true }, { "", "", 81920, true }, { "", "", 81920, true },
		{ "", "", 81920, true }, { "", "", 81920, true }
	};
	char name[32];
	const char *keys[] = { "kubernetes.io/hostname", "zone" };
	const char *vals[] = { name, i % 2 ? "a" : "b" };
	const struct node_fact f = { .name = name,
				     .labels = { keys, vals, 2 },
				     .cpu_milli = 128000,
				     .memory_bytes = INT64_C(1) << 40,
				     .max_pods = 110,
				     .devices = devices,
				     .n_devices = 8,
				     .ready = true,
				     .note = "" };

	snprintf(name, sizeof(name), "node-%05" PRIu32, i);
	apply(m, &(struct event){ .type = EV_NODE_SEEN, .node = &f });
}

static void add_object(struct model *m, struct object_fact f)
{
	f.volume = f.volume ? f.volume : "";
	f.class_ = f.class_ ? f.class_ : "";
	f.selected = "";
	apply(m, &(struct event){ .type = EV_OBJECT_SEEN, .object = &f });
}

static void add_claim(struct model *m, const char *name, uint32_t i, enum mounts is)
{
	char node[32];
	const char *value = is == LOCAL ? node : "a";
	struct gpuq_require all = { is == LOCAL ? "kubernetes.io/hostname" : "zone",
				    GPUQ_OP_IN,
				    { &value, 1 } };
	const struct gpuq_term term = { .all = &all, .n = 1 };

	snprintf(node, sizeof(node), "node-%05" PRIu32, i % NODES);
	add_object(m, (struct object_fact){ .kind = OBJECT_CLAIM,
					    .namespace_ = "jobs",
					    .name = name,
					    .state = is == UNBOUND ? CLAIM_PENDING : CLAIM_BOUND,
					    .class_ = "late",
					    .volume = is == UNBOUND ? "" : name });
	if (is != UNBOUND)
		add_object(m, (struct object_fact){ .kind = OBJECT_VOLUME,
						    .namespace_ = "",
						    .name = name,
						    .required = &term,
						    .n_required = 1 });
}

static void add_job(struct model *m, uint32_t i, enum mounts is)
{
	const char *words[] = { "a" };
	struct gpuq_volume volume = { .path = "/data" };
	struct gpuq_group g = { .name = "main",
				.pods_min = 1,
				.pods_max = 1,
				.gpus_milli = SNAP_MILLI,
				.cpu_milli = 4000,
				.command = { words, 1 } };
	const struct gpuq_spec spec = {
		.groups = &g, .n_groups = 1, .requeue = true, .context = { .umask = -1 }
	};
	struct gpuq_buf req = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct event ev = { .type = EV_JOB_SUBMITTED, .job = { i + 1, -1 } };
	char claim[32];

	snprintf(claim, sizeof(claim), "claim-%05" PRIu32, i);
	if (is != NOTHING) {
		volume.claim = claim;
		g.volumes = &volume;
		g.n_volumes = 1;
		add_claim(m, claim, i, is);
	}
	must(request_encode(&spec, &req, &err), &err);
	ev.submitted.spec = &spec;
	ev.submitted.spec_bytes = req.data;
	ev.submitted.spec_len = req.len;
	ev.submitted.request_bytes = req.data;
	ev.submitted.request_len = req.len;
	ev.submitted.user = "ann";
	ev.submitted.queue = "default";
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = GPUQ_UNLIMITED;
	apply(m, &ev);
	gpuq_buf_done(&req);
}

/* Return the milliseconds of a cycle. */
static double measure(enum mounts is, uint32_t *n_starts)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *m = model_new("0123abcd");
	struct snapshot *s;
	struct plan plan = { 0 };
	double t0, ms;

	for (uint32_t i = 0; i < NODES; i++)
		add_node(m, i);
	for (int k = 0; k < N_OBJECT_KINDS; k++) {
		struct event ev = { .type = EV_OBJECTS_KNOWN };

		ev.objects.kind = (enum object_kind)k;
		ev.objects.known = true;
		ev.objects.home = "jobs";
		apply(m, &ev);
	}
	add_object(m,
		   (struct object_fact){
			   .kind = OBJECT_CLASS, .namespace_ = "", .name = "late", .waits = true });
	for (uint32_t i = 0; i < JOBS; i++)
		add_job(m, i, is);
	t0 = bench_seconds();
	must(snapshot_take(m, 2, &s, &err), &err);
	must(sched_cycle(s, &mem, &plan, &err), &err);
	ms = (bench_seconds() - t0) * 1e3;
	*n_starts = plan.n_actions;
	snapshot_free(s);
	gpuq_arena_done(&mem);
	model_free(m);
	return ms;
}

int main(void)
{
	static const char *const names[] = { "", "bound at their first pod", "of one zone",
					     "each on one node" };
	uint32_t n_without, n_with;
	const double without = measure(NOTHING, &n_without);

	printf("%d jobs, %d nodes, without claims: %.1f ms, %" PRIu32 " starts\n", JOBS, NODES,
	       without, n_without);
	for (int is = UNBOUND; is <= LOCAL; is++) {
		const double with = measure((enum mounts)is, &n_with);

		printf("  with %d claims %-26s %.1f ms (%.2f times), %" PRIu32 " starts\n", JOBS,
		       names[is], with, with / without, n_with);
	}
	return 0;
}
