/* kube-probe - the Kubernetes side of gpuqd against a server, by hand or by a test
 *
 *   kube-probe [-k KUBECONFIG] [-n NAMESPACE] [-c CLUSTERID] [-r CREATES_PER_S]
 *
 * Prints what is heard, one line a fact, and reads commands from standard input:
 *
 *   create JOB ATTEMPT NODE [pods=N] [gpus=N] [image=I] [script] [token=T] [finalizer]
 *          [element=N] [queue-class=P] [note=KEY=VALUE]... -- COMMAND [ARG]...
 *   delete NAME [UID|-] [TOKEN|-] [GRACE_S]
 *   forget NAME [UID|-] [TOKEN|-]
 *   job-forget JOB [ELEMENT]
 *   log NAME [follow] [times]
 *   many JOB N NODE ATTEMPT    N pods at once, and how long they took
 *   sleep SECONDS, wait-lists  before the next command is read
 *   quit
 *
 * Not installed; a developer's tool.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "libgpuq/buf.h"
#include "libgpuq/units.h"

static struct loop *loop;
static struct cluster *cluster;
static const char *cluster_id = "c0ffee00";
static struct gpuq_buf input = GPUQ_BUF_INIT;
static struct event *input_ev;
static bool listed, wait_lists, asleep, input_over;
static uint64_t facts, many_left, many_total;
static int64_t many_since_us;
static bool quiet;

static void next_command(void);

static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed" };
static const char *const faults[] = { "none", "oom", "rejected", "infra", "image", "deadline" };
static const char *const outcomes[] = { "ok", "retry", "quota", "refused", "conflict", "unknown" };

static void node_seen(void *arg, const struct node_fact *n)
{
	size_t healthy = 0;

	for (size_t i = 0; i < n->n_devices; i++)
		healthy += n->devices[i].healthy;
	facts++;
	if (quiet)
		return;
	printf("node %s ready=%d cordoned=%d cpu=%" PRId64 "m memory=%" PRId64 " pods=%" PRId64
	       " gpus=%zu/%zu product=%s mib=%" PRId64 " labels=%zu",
	       n->name, n->ready, n->unschedulable, n->cpu_milli, n->memory_bytes, n->max_pods,
	       healthy, n->n_devices, n->n_devices ? n->devices[0].product : "-",
	       n->n_devices ? n->devices[0].memory_mib : 0, n->labels.n);
	for (size_t i = 0; i < n->n_taints; i++)
		printf(" taint=%s=%s:%s", n->taints[i].key, n->taints[i].value,
		       n->taints[i].effect);
	printf(" note=%s\n", log_str(n->note));
}

static void node_gone(void *arg, const char *name)
{
	printf("node-gone %s\n", name);
}

static void print_pod(const char *word, const struct pod_fact *p)
{
	facts++;
	if (quiet)
		return;
	printf("%s %s/%s uid=%.8s token=%s node=%s %s%s fault=%s exit=%d waiting_bad=%d "
	       "gpus=%" PRId64 " cpu=%" PRId64 " memory=%" PRId64 " start=%d end=%d devices=",
	       word, p->namespace_, p->name, p->uid, p->token, p->node, phases[p->phase],
	       p->leaving ? "(leaving)" : "", faults[p->fault], p->exit_code, p->waiting_bad,
	       p->gpus_milli, p->cpu_milli, p->memory_bytes, p->start_us != 0, p->end_us != 0);
	for (size_t i = 0; i < p->n_devices; i++)
		printf("%s%d", i ? "," : "", p->devices[i]);
	printf(" reason=%s message=%s\n", log_str(p->reason), log_str(p->message));
}

static void pod_seen(void *arg, const struct pod_fact *p)
{
	print_pod("pod", p);
}

static void pod_gone(void *arg, const struct pod_fact *p)
{
	print_pod("pod-gone", p);
}

static void list_done(void *arg)
{
	printf("list-done facts=%" PRIu64 "\n", facts);
	listed = true;
	next_command();
}

static void stale(void *arg, int64_t since_us, const char *why)
{
	char when[32] = "-";

	if (since_us)
		gpuq_instant_print(since_us, when, sizeof(when));
	printf("stale %s %s\n", when, log_str(why));
}

static void created(void *arg, const char *pod, enum ask_outcome o, const char *uid,
		    const char *message)
{
	if (!quiet || o != ASK_OK)
		printf("created %s %s uid=%s %s\n", pod, outcomes[o], uid, log_str(message));
	if (many_left && o != ASK_RETRY && o != ASK_UNKNOWN && --many_left == 0) {
		struct timespec ts;
		double s;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		s = (double)(ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000 - many_since_us) /
		    1e6;
		printf("many-done %" PRIu64 " in %.2f s: %.0f/s\n", many_total, s,
		       (double)many_total / s);
		quiet = false;
		next_command();
	}
}

static void deleted(void *arg, const char *pod, enum ask_outcome o, const char *message)
{
	printf("deleted %s %s %s\n", pod, outcomes[o], log_str(message));
}

static void job_forgotten(void *arg, uint32_t job, int64_t array_index)
{
	printf("job-forgotten %" PRIu32 " %" PRId64 "\n", job, array_index);
}

static const struct cluster_sink sink = { .node_seen = node_seen,
					  .node_gone = node_gone,
					  .pod_seen = pod_seen,
					  .pod_gone = pod_gone,
					  .list_done = list_done,
					  .stale = stale,
					  .created = created,
					  .deleted = deleted,
					  .job_forgotten = job_forgotten };

static struct cluster_log *logs[256];
static size_t n_logs;

static bool log_bytes(void *arg, const char *bytes, size_t n, const struct gpuq_err *err)
{
	if (n)
		printf("log %.*s%s", (int)n, bytes, bytes[n - 1] == '\n' ? "" : "\n");
	else
		printf("log-end %s\n", err ? log_str(err->text) : "-");
	if (n == 0) {
		cluster->ops->log_close(*(struct cluster_log **)arg);
		*(struct cluster_log **)arg = NULL;
	}
	return true;
}

static void on_wake(void *arg)
{
	asleep = false;
	next_command();
}

static void do_create(char **w, int n)
{
	struct gpuq_group g = { .name = "main", .pods_min = 1, .pods_max = 1 };
	struct gpuq_spec spec = { .name = "probe", .groups = &g, .n_groups = 1 };
	static int indexes[64];
	const char *command[32], *note_keys[8], *note_vals[8];
	char names[64][64], token[64] = "";
	const char *name_list[64];
	struct pod_order o = {
		.cluster_id = cluster_id,
		.namespace_ = "",
		.service_account = "",
		.priority_class = "",
		.image = "busybox",
		.array_index = -1,
		.n_pods = 1,
		.queue = "default",
		.user = "probe",
		.spec = &spec,
		.grace_us = 5000000,
		.time_limit_us = GPUQ_UNLIMITED,
		.pod_names = name_list,
	};
	const char *env_keys[] = { "GPUQ_JOB_ID", "MASTER_ADDR" };
	const char *env_vals[] = { w[1], names[0] };
	int i;

	o.job = (uint32_t)atoi(w[1]);
	o.attempt = (uint32_t)atoi(w[2]);
	o.node = w[3];
	spec.annotations.keys = note_keys;
	spec.annotations.vals = note_vals;
	for (i = 4; i < n && strcmp(w[i], "--") != 0; i++) {
		if (strncmp(w[i], "pods=", 5) == 0)
			o.n_pods = (uint32_t)atoi(w[i] + 5);
		else if (strncmp(w[i], "gpus=", 5) == 0)
			g.gpus_milli = atoi(w[i] + 5) * 1000;
		else if (strncmp(w[i], "image=", 6) == 0)
			o.image = w[i] + 6;
		else if (strncmp(w[i], "token=", 6) == 0)
			snprintf(token, sizeof(token), "%s", w[i] + 6);
		else if (strncmp(w[i], "element=", 8) == 0)
			o.array_index = atoi(w[i] + 8);
		else if (strncmp(w[i], "queue-class=", 12) == 0)
			o.priority_class = w[i] + 12;
		else if (strncmp(w[i], "note=", 5) == 0 && spec.annotations.n < 8) {
			char *eq = strchr(w[i] + 5, '=');

			if (!eq)
				continue;
			*eq = '\0';
			note_keys[spec.annotations.n] = w[i] + 5;
			note_vals[spec.annotations.n++] = eq + 1;
		} else if (strcmp(w[i], "finalizer") == 0)
			o.accounting_finalizer = true;
		else if (strcmp(w[i], "script") == 0)
			spec.script = "#!/bin/sh\necho from the script: \"$@\"\nexit 3\n";
	}
	if (spec.script)
		spec.script_bytes = strlen(spec.script);
	for (int k = i + 1; k < n; k++)
		command[k - i - 1] = w[k];
	g.command.items = command;
	g.command.n = i + 1 < n ? (size_t)(n - i - 1) : 0;
	for (int k = 0; k < 64; k++)
		indexes[k] = k;
	o.devices = indexes;
	o.n_devices = (size_t)(g.gpus_milli / 1000);
	o.env = (struct gpuq_strmap){ env_keys, env_vals, o.n_pods > 1 ? 2 : 1 };
	for (uint32_t k = 0; k < o.n_pods; k++) {
		snprintf(names[k], sizeof(names[k]), "gpuq-%s-%u-%u-%u", cluster_id, o.job,
			 o.attempt, k);
		name_list[k] = names[k];
	}
	for (uint32_t k = 0; k < o.n_pods; k++) {
		char tok[40];

		snprintf(tok, sizeof(tok), "%08x%08x%08x%08x", o.job, o.attempt, k, 7u);
		o.index = o.group_index = k;
		o.name = names[k];
		o.token = *token ? token : tok;
		cluster->ops->pod_create(cluster, &o);
	}
}

static void do_many(char **w)
{
	char line[64], *words[] = { w[0], line, w[4], w[3], (char[]){ "--" }, (char[]){ "true" } };
	int n = atoi(w[2]);
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	many_since_us = ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
	many_total = many_left = (uint64_t)n;
	quiet = true;
	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "%d", atoi(w[1]) + i);
		do_create(words, 6);
	}
}

static const char *word(char **w, int n, int i)
{
	return i < n && strcmp(w[i], "-") != 0 ? w[i] : "";
}

static void run(char *line)
{
	char *w[64], *save = NULL;
	struct gpuq_err err;
	int n = 0;

	for (char *t = strtok_r(line, " ", &save); t && n < 64; t = strtok_r(NULL, " ", &save))
		w[n++] = t;
	if (n == 0 || w[0][0] == '#')
		return;
	struct pod_ref ref = { .name = word(w, n, 1),
			       .namespace_ = "",
			       .uid = word(w, n, 2),
			       .token = word(w, n, 3),
			       .node = "" };
	if (strcmp(w[0], "create") == 0 && n > 3) {
		do_create(w, n);
	} else if (strcmp(w[0], "many") == 0 && n > 4) {
		do_many(w);
	} else if (strcmp(w[0], "delete") == 0 && n > 1) {
		cluster->ops->pod_delete(cluster, &ref, (n > 4 ? atoi(w[4]) : 5) * GPUQ_US_PER_S);
	} else if (strcmp(w[0], "forget") == 0 && n > 1) {
		cluster->ops->pod_forget(cluster, &ref);
	} else if (strcmp(w[0], "job-forget") == 0 && n > 1) {
		cluster->ops->job_forget(cluster, (uint32_t)atoi(w[1]), n > 2 ? atoi(w[2]) : -1,
					 "");
	} else if (strcmp(w[0], "log") == 0 && n > 1 && n_logs < 256) {
		struct log_opts opts = { .tail_lines = -1 };

		for (int i = 2; i < n; i++) {
			opts.follow |= strcmp(w[i], "follow") == 0;
			opts.timestamps |= strcmp(w[i], "times") == 0;
		}
		ref.uid = ref.token = "";
		logs[n_logs] = cluster->ops->log_open(cluster, &ref, &opts, log_bytes,
						      &logs[n_logs], &err);
		if (!logs[n_logs++])
			printf("log-error %s\n", err.text);
	} else if (strcmp(w[0], "sleep") == 0 && n > 1) {
		asleep = true;
		loop_after(loop, (int64_t)(atof(w[1]) * 1e6), on_wake, NULL);
	} else if (strcmp(w[0], "wait-lists") == 0) {
		wait_lists = true;
	} else if (strcmp(w[0], "quit") == 0) {
		loop_stop(loop, 0);
	} else {
		printf("what? %s\n", w[0]);
	}
}

static void next_command(void)
{
	while (!asleep && !many_left && (!wait_lists || listed)) {
		char *nl = input.len ? memchr(input.data, '\n', input.len) : NULL;
		char *line;

		if (!nl)
			return;
		line = strndup(input.data, (size_t)(nl - input.data));
		gpuq_buf_drop(&input, (size_t)(nl - input.data) + 1);
		run(line);
		free(line);
	}
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	char chunk[4096];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	if (n <= 0) {
		input_over = true;
		event_del(input_ev);
		return;
	}
	gpuq_buf_add(&input, chunk, (size_t)n);
	next_command();
}

int main(int argc, char **argv)
{
	struct cluster_kube_opts o = { .cluster_id = cluster_id };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int c, rc;

	while ((c = getopt(argc, argv, "k:n:c:r:")) != -1) {
		switch (c) {
		case 'k':
			o.kubeconfig = optarg;
			break;
		case 'n':
			o.namespace_ = optarg;
			break;
		case 'c':
			o.cluster_id = cluster_id = optarg;
			break;
		case 'r':
			o.creates_per_s = atoll(optarg);
			break;
		default:
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	log_init(LOG_L_DEBUG);
	if (loop_new(&loop, &err) != 0 || cluster_kube_new(loop, &o, &cluster, &err) != 0 ||
	    cluster->ops->start(cluster, &sink, &err) != 0) {
		fprintf(stderr, "kube-probe: %s\n", err.text);
		return 1;
	}
	input_ev = event_new(loop_base(loop), 0, EV_READ | EV_PERSIST, on_input, NULL);
	event_add(input_ev, NULL);
	rc = loop_run(loop);
	event_free(input_ev);
	for (size_t i = 0; i < n_logs; i++)
		if (logs[i])
			cluster->ops->log_close(logs[i]);
	cluster->ops->free(cluster);
	loop_free(loop);
	gpuq_buf_done(&input);
	return rc;
}
