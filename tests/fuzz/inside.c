#include "tests/fuzz/inside.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/advise/estimate.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/load.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/rpc/method/methods.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

#define TURN_US 3000 /* longer than the scheduler waits for more to happen */
#define TURNS_MAX 20
#define PODS_MAX 256
#define GPUS_PER_NODE 4

static const char site[] =
	"version: 1\n"
	"queues:\n"
	"- {name: default, quota: 4}\n"
	"- {name: research, quota: 4, weight: 2, budget: {gpu_minutes: 1000, period: month}}\n"
	"- {name: lab, parent: research, quota: 2, limit: 6, managers: [bob], max_running: {user: "
	"9}}\n"
	"qos:\n"
	"- {name: build, preemptible: false, priority: 100, max_time: 8h}\n"
	"licenses:\n"
	"- {name: matlab, count: 3}\n";

/* A job can depend only on one that is there: two calls. */
static const char *const jobs[] = {
	"- {name: runs, queue: lab, command: [sleep, '9'], gpus: 1, time: 1h}\n"
	"- {name: gang, command: [a], gpus: 2, pods: 2, time: 2h}\n"
	"- {name: large, command: [a], gpus: 4, pods: 2}\n"
	"- {name: held, command: [a], gpus: 1, hold: true}\n"
	"- {name: many, queue: lab, command: [a], gpus: 1, array: 0-9%2}\n",
	"- {name: after, command: [a], depends: ['afterok:1']}\n"
	"- {name: late, command: [a], begin: now+2h, qos: build}\n"
	"- {name: gone, command: [a], licenses: {matlab: 1}}\n",
};

struct played_pod {
	char name[96], token[40], node[32];
	uint64_t uid;
	bool is_new, leaves, gone;
};

struct inside {
	struct cluster cluster; /* first: what the daemon sees */
	struct cluster_sink sink;
	struct played_pod pods[PODS_MAX];
	size_t n_pods;
	uint64_t next_uid;
	char dir[64];
	struct loop *loop;
	struct store *store;
	struct model *model;
	struct journal *journal;
	struct schedule *schedule;
	struct estimator *estimator;
	struct dispatch *dispatch;
	struct reconcile *reconcile;
	struct methods *methods;
	struct rpc_opts opts;
	struct rpc_server *server;
};

static void need(bool ok, const char *what, const struct gpuq_err *err)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, err ? err->text : "");
	abort();
}

/* ---- the cluster that is played ---- */

static int played_start(struct cluster *c, const struct cluster_sink *sink, struct gpuq_err *err)
{
	(void)err;
	((struct inside *)c)->sink = *sink;
	return 0;
}

static void played_create(struct cluster *c, const struct pod_order *o)
{
	struct inside *in = (struct inside *)c;
	struct played_pod *p = &in->pods[in->n_pods];

	for (size_t i = 0; i < in->n_pods; i++)
		if (strcmp(in->pods[i].name, o->name) == 0 && !in->pods[i].gone)
			return;
	if (in->n_pods == PODS_MAX)
		return;
	snprintf(p->name, sizeof(p->name), "%s", o->name);
	snprintf(p->token, sizeof(p->token), "%s", o->token);
	snprintf(p->node, sizeof(p->node), "%s", o->node);
	p->uid = ++in->next_uid;
	p->is_new = true;
	in->n_pods++;
}

static void played_delete(struct cluster *c, const struct pod_ref *ref, int64_t grace_us)
{
	struct inside *in = (struct inside *)c;

	(void)grace_us;
	for (size_t i = 0; i < in->n_pods; i++)
		if (strcmp(in->pods[i].name, ref->name) == 0)
			in->pods[i].leaves = true;
}

static int played_signal(struct cluster *c, const struct pod_ref *ref, int signal,
			 struct gpuq_err *err)
{
	(void)c, (void)ref, (void)signal;
	return gpuq_fail(err, GPUQ_EUNREACH, "the node does not answer");
}

static void played_forget(struct cluster *c, const struct pod_ref *ref)
{
	played_delete(c, ref, 0);
}

static struct cluster_log *played_log(struct cluster *c, const struct pod_ref *ref,
				      const struct log_opts *opts, log_fn fn, void *arg,
				      struct gpuq_err *err)
{
	(void)c, (void)ref, (void)opts, (void)fn, (void)arg;
	gpuq_fail(err, GPUQ_ENOENT, "the log is gone");
	return NULL;
}

static struct cluster_session *played_session(struct cluster *c, const struct pod_ref *ref,
					      const struct session_opts *opts,
					      const struct session_sink *sink, struct gpuq_err *err)
{
	(void)c, (void)ref, (void)opts, (void)sink;
	gpuq_fail(err, GPUQ_EUNREACH, "the node does not answer");
	return NULL;
}

static void played_free(struct cluster *c)
{
	(void)c;
}

static const struct cluster_ops played = {
	.kind = "kube",
	.start = played_start,
	.pod_create = played_create,
	.pod_delete = played_delete,
	.pod_signal = played_signal,
	.pod_forget = played_forget,
	.log_open = played_log,
	.session_open = played_session,
	.free = played_free,
};

static struct pod_fact fact_of(const struct inside *in, const struct played_pod *p, char uid[24])
{
	snprintf(uid, 24, "%llu", (unsigned long long)p->uid);
	return (struct pod_fact){ .name = p->name,
				  .namespace_ = "",
				  .uid = uid,
				  .token = p->token,
				  .node = p->node,
				  .phase = p->leaves ? POD_FAILED : POD_RUNNING,
				  .exit_code = p->leaves ? 143 : 0,
				  .leaving = p->leaves,
				  .reason = "",
				  .message = "",
				  .start_us = loop_now_us(in->loop),
				  .end_us = p->leaves ? loop_now_us(in->loop) : 0 };
}

/* Report what has become of the pods that were asked for. True: there was something. */
static bool report(struct inside *in)
{
	bool any = false;
	char uid[24];

	for (size_t i = 0; i < in->n_pods; i++) {
		struct played_pod *p = &in->pods[i];
		struct pod_fact f;

		if (p->gone || (!p->is_new && !p->leaves))
			continue;
		any = true;
		f = fact_of(in, p, uid);
		if (p->is_new) {
			p->is_new = false;
			in->sink.created(in->sink.arg, p->name, ASK_OK, uid, "");
			in->sink.pod_seen(in->sink.arg, &f);
		} else {
			p->gone = true;
			in->sink.deleted(in->sink.arg, p->name, ASK_OK, "");
			in->sink.pod_seen(in->sink.arg, &f);
			in->sink.pod_gone(in->sink.arg, &f);
		}
	}
	return any;
}

static void show_nodes(struct inside *in)
{
	static const char *const names[] = { "n0", "n1" };
	struct device_fact devices[GPUS_PER_NODE];

	for (size_t d = 0; d < GPUS_PER_NODE; d++)
		devices[d] = (struct device_fact){ "", "NVIDIA-A100-SXM4-80GB", 81920, true };
	for (size_t i = 0; i < 2; i++) {
		const struct node_fact f = { .name = names[i],
					     .cpu_milli = 64000,
					     .memory_bytes = INT64_C(512) << 30,
					     .max_pods = 110,
					     .devices = devices,
					     .n_devices = GPUS_PER_NODE,
					     .ready = true,
					     .note = "" };

		in->sink.node_seen(in->sink.arg, &f);
	}
	in->sink.list_done(in->sink.arg);
	in->sink.stale(in->sink.arg, 0, "");
}

/* ---- start to stop ---- */

static void no_space(void *arg)
{
	(void)arg;
	need(false, "store: no space", NULL);
}

static void broken(void *arg, const struct gpuq_err *err)
{
	(void)arg;
	need(false, "store", err);
}

static void apply_site(struct inside *in, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_SITE_APPLIED };
	struct gpuq_val **docs;
	size_t n;

	need(gpuq_yaml_parse(&a, "site", site, sizeof(site) - 1, &docs, &n, err) == 0, "site", err);
	gpuq_mp_write(&b, docs[0]);
	ev.at_us = loop_now_us(in->loop);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	ev.site.who = "test";
	need(journal_apply(in->journal, &ev, err) == 0, "site", err);
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
}

static void call(struct rpc_conn *c, const char *method, struct gpuq_arena *a,
		 struct gpuq_val *params)
{
	struct gpuq_val *m = gpuq_list(a), *list = gpuq_list(a);
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_add(a, m, gpuq_int(a, GPUQ_WIRE_REQUEST));
	gpuq_add(a, m, gpuq_int(a, 1));
	gpuq_add(a, m, gpuq_str(a, method));
	gpuq_add(a, list, params);
	gpuq_add(a, m, list);
	gpuq_mp_write(&b, m);
	conn_feed(c, b.data, b.len);
	gpuq_buf_done(&b);
}

static void submit(struct rpc_conn *c, const char *text)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *params = gpuq_map(&a), **docs;
	size_t n;

	need(gpuq_yaml_parse(&a, "jobs", text, strlen(text), &docs, &n, &err) == 0, "jobs", &err);
	gpuq_put(&a, params, "specs", docs[0]);
	call(c, "job.submit", &a, params);
	gpuq_arena_done(&a);
}

static void submit_jobs_of_ann(struct inside *in)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *params = gpuq_map(&a);
	struct rpc_conn *c = inside_connect(in, 0, true);

	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		submit(c, jobs[i]);
	if (in->model->next_job_id != INSIDE_JOBS + 1)
		fwrite(c->out.data, 1, c->out.len, stderr); /* says why not */
	need(in->model->next_job_id == INSIDE_JOBS + 1, "jobs were not taken", NULL);
	inside_settle(in); /* elements of the array that start get the next numbers */
	gpuq_put(&a, params, "ids", gpuq_str(&a, "8"));
	call(c, "job.cancel", &a, params);
	inside_settle(in);
	conn_kill(c);
	gpuq_arena_done(&a);
}

static void make_dir(struct inside *in)
{
	snprintf(in->dir, sizeof(in->dir), "/dev/shm/gpuq-fuzz.XXXXXX");
	if (!mkdtemp(in->dir)) {
		snprintf(in->dir, sizeof(in->dir), "/tmp/gpuq-fuzz.XXXXXX");
		need(mkdtemp(in->dir) != NULL, "mkdtemp", NULL);
	}
}

struct inside *inside_new(void)
{
	const struct store_opts so = { .map_bytes = 64 << 20, .unsafe_fs = true, .no_sync = true };
	static const char *const operators[] = { "root", NULL };
	const struct dispatch_opts dopts = { .start_timeout_us = GPUQ_UNLIMITED };
	const struct journal_opts jo = { no_space, broken, NULL };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct inside *in = calloc(1, sizeof(*in));
	bool fresh;

	need(in != NULL, "memory", NULL);
	log_init(LOG_L_ERR);
	make_dir(in);
	in->cluster.ops = &played;
	in->cluster.namespace_ = "jobs";
	need(loop_new(&in->loop, &err) == 0, "loop", &err);
	need(store_open(in->dir, &so, &in->store, &fresh, &err) == 0, "store", &err);
	in->model = model_new("0123abcd");
	need(journal_new(in->loop, in->store, in->model, &jo, &in->journal, &err) == 0, "journal",
	     &err);
	need(schedule_new(in->journal, &in->schedule, &err) == 0, "schedule", &err);
	need(estimator_new(in->journal, &in->estimator, &err) == 0, "estimator", &err);
	need(dispatch_new(in->journal, &dopts, &in->dispatch, &err) == 0, "dispatch", &err);
	need(reconcile_new(in->journal, in->dispatch, in->schedule, &in->reconcile, &err) == 0,
	     "reconcile", &err);
	need(methods_new(in->journal, in->reconcile, "kube", &in->methods, &err) == 0, "methods",
	     &err);
	methods_set_schedule(in->methods, in->schedule);
	methods_set_estimator(in->methods, in->estimator);
	in->opts = (struct rpc_opts){ .server = "gpuqd/test",
				      .version = "test",
				      .operators = operators };
	methods_opts(in->methods, &in->opts);
	need(rpc_server_new(in->loop, &in->opts, &in->server, &err) == 0, "server", &err);
	methods_set_server(in->methods, in->server);
	apply_site(in, &err);
	in->cluster.ops->start(&in->cluster, reconcile_sink(in->reconcile, &in->cluster), &err);
	dispatch_set_cluster(in->dispatch, &in->cluster);
	methods_set_cluster(in->methods, &in->cluster);
	show_nodes(in);
	submit_jobs_of_ann(in);
	return in;
}

static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	char path[400];

	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

void inside_done(struct inside *in)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	schedule_ready(in->schedule, false);
	dispatch_set_cluster(in->dispatch, NULL);
	methods_set_cluster(in->methods, NULL);
	store_close_writer(in->store);
	need(journal_flush(in->journal, &err) == 0, "flush", &err);
	estimator_free(in->estimator);
	rpc_server_free(in->server);
	methods_free(in->methods);
	reconcile_free(in->reconcile);
	dispatch_free(in->dispatch);
	schedule_free(in->schedule);
	journal_free(in->journal);
	store_close(in->store);
	model_free(in->model);
	loop_free(in->loop);
	remove_dir(in->dir);
	free(in);
}

/* ---- use ---- */

struct rpc_conn *inside_connect(struct inside *in, unsigned who, bool says_hello)
{
	static const uint8_t hello[] = "\x94\x00\x00\xa5hello\x91\x81\xa5proto\x92\x01\x00";
	static const struct rpc_peer peers[] = {
		{ .uid = 77777, .gid = 77777, .pid = 1, .user = "ann" },
		{ .uid = 77778, .gid = 77778, .pid = 1, .user = "bob" },
		{ .uid = 0, .gid = 0, .pid = 1, .user = "root" },
	};
	struct rpc_conn *c = conn_new(in->server, -1, &peers[who % 3]);

	need(c != NULL, "connection", NULL);
	if (says_hello)
		conn_feed(c, hello, sizeof(hello) - 1);
	return c;
}

const struct rpc_method *inside_methods(const struct inside *in)
{
	return in->opts.methods;
}

static void stop(void *arg)
{
	loop_stop(arg, 0);
}

void inside_settle(struct inside *in)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		loop_after(in->loop, TURN_US, stop, in->loop);
		loop_run(in->loop);
		if (!report(in) && !model_is_dirty(in->model) &&
		    journal_durable(in->journal) + 1 >= journal_seq(in->journal))
			return;
	}
}

static void same(bool ok, const char *what, uint32_t id)
{
	if (ok)
		return;
	fprintf(stderr, "%s of %u differs from what is on the disk\n", what, id);
	abort();
}

void inside_check(struct inside *in)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *again = model_new("0123abcd");

	need(load_records(in->store, again, &err) == 0, "load", &err);
	same(again->n_jobs == in->model->n_jobs, "number of jobs", again->n_jobs);
	same(again->n_queues == in->model->n_queues, "number of queues", again->n_queues);
	same(again->next_job_id == in->model->next_job_id, "counter", again->next_job_id);
	for (uint32_t i = 0; i < again->n_queues; i++) {
		const struct queue *a = again->queues[i], *b = in->model->queues[i];

		same(strcmp(a->name, b->name) == 0, "name of queue", i);
		same(a->n_pending == b->n_pending && a->n_running == b->n_running, "jobs of queue",
		     i);
		same(a->allocated_milli == b->allocated_milli, "allocation of queue", i);
	}
	job_each(again, j) {
		const struct job *b = model_find_job(in->model, j->key);

		same(b && b->state == j->state && b->attempt == j->attempt, "state of job",
		     j->key.id);
		same(strcmp(j->queue->name, b->queue->name) == 0, "queue of job", j->key.id);
	}
	model_free(again);
}
