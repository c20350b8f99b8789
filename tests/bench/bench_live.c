/* Delay of other requests by one decision: the longest turns of the loop that the cycles of
 * the daemon's own scheduler take, on its model, journal and store, without a cluster behind
 * them. Each pair of rows is one cluster with as many jobs, all alike and no two alike: different
 * in cpus, memory, time, command, environment and name. Jobs are held, and all released at once.
 * bench_live DIR [ROW] measures one pair, from 1. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/state/record/request.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "libgpuq/units.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"
#include "gpuqd/state/asks/ask.h"
#include "tests/bench/bench_core.h"

#define NODE_CPU_MILLI 128000
#define RELEASE_AT_ONCE 200 /* in a turn, as a call of the daemon would */
#define REST_US (2 * GPUQ_US_PER_S) /* nothing was decided for so long: it is over */
#define AGAIN 5 /* cycles for one job more, the cheapest of which is told */
#define PARTS_MAX 64

struct pair {
	const char *name;
	uint32_t nodes, jobs;
	bool full; /* another job holds every node */
	bool grows; /* each job requests a node of a pool that grows */
};

/* The parts of a cycle. */
static const char *const stages[] = { "schedule.prepare", "schedule.take",  "schedule.snapshot",
				      "schedule.decide",  "schedule.carry", "schedule.tell" };

#define N_STAGES (sizeof(stages) / sizeof(stages[0]))

struct live {
	struct loop *loop;
	struct store *store;
	struct model *model;
	struct journal *journal;
	struct schedule *schedule;
	uint32_t n_jobs, next; /* to be released */
	uint32_t n_placed;
	uint64_t n_before; /* cycles before those that are measured */
	uint64_t n_cycles; /* as they were when it was looked at last */
	double begun, over; /* processor time at the first release, at the last cycle's end */
};

static void need(int rc, const struct gpuq_err *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(1);
}

static void apply(struct live *l, struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	need(journal_apply(l->journal, ev, &err), &err);
}

static void add_nodes(struct live *l, uint32_t n)
{
	struct device_fact devices[8];
	char name[32];

	for (int i = 0; i < 8; i++)
		devices[i] = (struct device_fact){ "GPU-x", "BENCH", 81920, true };
	for (uint32_t i = 0; i < n; i++) {
		struct node_fact f = { .name = name,
				       .cpu_milli = NODE_CPU_MILLI,
				       .memory_bytes = INT64_C(1) << 40,
				       .max_pods = 110,
				       .devices = devices,
				       .n_devices = 8,
				       .ready = true,
				       .note = "" };
		struct event ev = { .type = EV_NODE_SEEN, .node = &f };

		snprintf(name, sizeof(name), "node-%05" PRIu32, i);
		apply(l, &ev);
	}
}

static void submit(struct live *l, const char *text, int64_t time_limit_us)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_spec_opts opts = { .file = "bench", .default_name = "bench", .now_us = 1 };
	struct gpuq_buf bytes = GPUQ_BUF_INIT, req = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_JOB_SUBMITTED };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;

	need(gpuq_specs_read(&a, &opts, text, strlen(text), &specs, NULL, &err), &err);
	need(request_encode(&specs.items[0], &req, &err), &err);
	gpuq_mp_write(&bytes, gpuq_spec_write(&a, &specs.items[0]));
	ev.job = (struct job_key){ l->model->next_job_id, -1 };
	ev.submitted.spec = &specs.items[0];
	ev.submitted.spec_bytes = bytes.data;
	ev.submitted.spec_len = bytes.len;
	ev.submitted.request_bytes = req.data;
	ev.submitted.request_len = req.len;
	ev.submitted.user = "ann";
	ev.submitted.queue = "default";
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = time_limit_us;
	apply(l, &ev);
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&req);
	gpuq_arena_done(&a);
}

/* Have a pool that can grow by as many nodes as there are jobs. */
static void add_pool(struct live *l, uint32_t n)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf site = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n_docs;
	struct event ev = { .type = EV_SITE_APPLIED }, known = { .type = EV_ASKS_KNOWN };
	char text[512];

	snprintf(text, sizeof(text),
		 "version: 1\nflavors: [{name: big}]\nqueues: [{name: default}]\npools: [{name: "
		 "big, flavor: big, "
		 "selector: {a: b}, provisioning: {kind: request, class: "
		 "queued-provisioning.gke.io, max_requests: %" PRIu32 ", max_nodes: %" PRIu32
		 ", machine: {gpus: 8, labels: {a: b}}}}]\n",
		 n, n);
	need(gpuq_yaml_parse(&mem, "site", text, strlen(text), &docs, &n_docs, &err), &err);
	gpuq_mp_write(&site, docs[0]);
	ev.site.bytes = site.data;
	ev.site.len = site.len;
	apply(l, &ev);
	gpuq_buf_done(&site);
	gpuq_arena_done(&mem);
	known.asks.known = ASKS_KNOWN;
	apply(l, &known);
}

static void fill_node(struct live *l, uint32_t i)
{
	static const uint16_t devices[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	char name[32];
	struct placed_pod pod = {
		.node = name, .devices = devices, .n_devices = 8, .gpus_milli = 8000
	};
	struct event ev = { .type = EV_JOB_PLACED, .job = { l->model->next_job_id, -1 } };

	snprintf(name, sizeof(name), "node-%05" PRIu32, i);
	submit(l, "{name: tenant, command: [sleep], gpus: 8, cpus: 8}", GPUQ_UNLIMITED);
	ev.placed.token = "0123456789abcdef0123456789abcdef";
	ev.placed.flavor = "default";
	ev.placed.pods = &pod;
	ev.placed.n_pods = 1;
	apply(l, &ev);
}

static void add_jobs(struct live *l, uint32_t n, bool unlike, int gpus)
{
	char text[256];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text),
			 unlike ? "{name: job-%" PRIu32 ", command: [run, '%" PRIu32
				  "'], gpus: %d, "
				  "cpus: %d, memory: %" PRIu32 "Mi, hold: true, env: {N: '%" PRIu32
				  "'}}"
				: "{name: job, command: [run], gpus: 1, cpus: 4, memory: 16Gi, "
				  "hold: true}",
			 i, i, gpus ? gpus : 1 + (int)(i % 4), 1 + (int)(i % 20), 16384 + i, i);
		submit(l, text, (unlike ? 60 + i : 60) * 60 * GPUQ_US_PER_S);
	}
}

static void on_event(void *arg, const struct event *ev)
{
	struct live *l = arg;

	l->n_placed += ev->type == EV_JOB_PLACED;
}

static void release_some(void *arg)
{
	struct live *l = arg;

	for (int i = 0; i < RELEASE_AT_ONCE && l->n_jobs > 0; i++, l->n_jobs--) {
		struct event ev = { .type = EV_JOB_RELEASED, .job = { l->next++, -1 } };

		apply(l, &ev);
	}
	if (l->n_jobs > 0)
		loop_after(l->loop, 0, release_some, l);
}

static void look(void *arg)
{
	struct live *l = arg;
	struct schedule_stats s;

	schedule_stats(l->schedule, &s);
	if (s.n_cycles == l->n_cycles && s.n_cycles > l->n_before) {
		loop_stop(l->loop, 0);
		return;
	}
	l->n_cycles = s.n_cycles;
	l->over = bench_seconds();
	loop_after(l->loop, REST_US, look, l);
}

/* Return the processor time of the parts of the scheduler, each in ms. */
static double cycle_ms(const struct live *l, double parts[N_STAGES])
{
	struct loop_part p[PARTS_MAX];
	const size_t n = loop_parts(l->loop, p, PARTS_MAX);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < N_STAGES; k++) {
			if (strcmp(p[i].name, stages[k]) != 0)
				continue;
			parts[k] = (double)p[i].sum_us / 1e3;
			sum += parts[k];
		}
	return sum;
}

/* A cycle for one job more, beside all that wait: what every submission costs then. */
static void measure_again(struct live *l)
{
	double best = 0, best_parts[N_STAGES] = { 0 };

	for (int i = 0; i < AGAIN; i++) {
		double parts[N_STAGES] = { 0 }, ms;

		loop_reset_stats(l->loop);
		l->n_before = l->n_cycles;
		submit(l, "{name: late, command: [run], gpus: 1, cpus: 4}", GPUQ_UNLIMITED);
		loop_after(l->loop, REST_US, look, l);
		loop_run(l->loop);
		ms = cycle_ms(l, parts);
		if (i > 0 && ms >= best)
			continue;
		best = ms;
		memcpy(best_parts, parts, sizeof(parts));
	}
	printf("%-38s one job more: %.1f ms of processor time", "", best);
	for (size_t k = 0; k < N_STAGES; k++)
		printf("%s%s %.1f", k ? ", " : " (", stages[k] + strlen("schedule."),
		       best_parts[k]);
	printf(")\n");
}

/* Return the memory of this process that is its own, in MiB. */
static double own_mib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	double kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtod(line + 8, NULL);
	if (f)
		fclose(f);
	return kib / 1024;
}

static void measure(const char *dir, const struct pair *p, bool unlike)
{
	const struct store_opts o = { .map_bytes = UINT64_C(4) << 30, .unsafe_fs = true };
	const struct journal_opts jo = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct schedule_stats s;
	struct loop_stats turns;
	struct live l = { 0 };
	char path[256];
	bool is_new;

	snprintf(path, sizeof(path), "%s/%" PRIu32 "-%d%d", dir, p->jobs + p->nodes, unlike,
		 p->grows);
	l.model = model_new("0123abcd");
	need(loop_new(&l.loop, &err), &err);
	need(store_open(path, &o, &l.store, &is_new, &err), &err);
	need(journal_new(l.loop, l.store, l.model, &jo, &l.journal, &err), &err);
	add_nodes(&l, p->nodes);
	for (uint32_t i = 0; p->full && i < p->nodes; i++)
		fill_node(&l, i);
	l.next = l.model->next_job_id;
	l.n_jobs = p->jobs;
	if (p->grows)
		add_pool(&l, p->jobs);
	add_jobs(&l, p->jobs, unlike || p->grows, p->grows ? 8 : 0);
	need(journal_flush(l.journal, &err), &err);
	need(schedule_new(l.journal, &l.schedule, &err), &err);
	journal_subscribe(l.journal, on_event, &l);
	schedule_ready(l.schedule, true);
	loop_after(l.loop, 0, release_some, &l);
	loop_after(l.loop, REST_US, look, &l);
	loop_run(l.loop);
	loop_stats(l.loop, &turns);
	schedule_stats(l.schedule, &s);
	printf("%-38s %-9s longest turn %6.1f ms (%s)  above 50 ms: %" PRIu64
	       "  longest cycle %7.1f ms of %" PRIu64 "  %" PRIu32 " starts\n",
	       p->name, unlike ? "different" : "alike", (double)turns.longest_us / 1e3,
	       turns.longest_part, turns.over_50ms, (double)s.most_us / 1e3, s.n_cycles,
	       l.n_placed);
	if (p->grows)
		printf("%-38s %u requests for nodes, %.1f MB beyond the map (aim < 50 more than "
		       "without)\n",
		       "", HASH_COUNT(l.model->asks), own_mib());
	else
		measure_again(&l);
	schedule_free(l.schedule);
	store_close_writer(l.store);
	journal_free(l.journal);
	store_close(l.store);
	model_free(l.model);
	loop_free(l.loop);
}

int main(int argc, char **argv)
{
	static const struct pair pairs[] = {
		{ "15,000 jobs, 2,000 empty nodes", 2000, 15000, false, false },
		{ "20,000 jobs, 1,000 full nodes", 1000, 20000, true, false },
		{ "100,000 jobs, 1,000 full nodes", 1000, 100000, true, false },
		{ "1,000 jobs that request a node each", 0, 1000, false, true },
		{ "1,000 jobs that cannot", 0, 1000, false, false },
	};

	log_set_level(LOG_L_WARN);
	for (size_t i = 0; argc > 1 && i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (argc > 2 && (size_t)strtoul(argv[2], NULL, 10) != i + 1)
			continue;
		measure(argv[1], &pairs[i], false);
		measure(argv[1], &pairs[i], true);
	}
	return 0;
}
