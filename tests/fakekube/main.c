/* fakekube - a Kubernetes apiserver for tests: fast, and wrong when it is told to be */
#include "api.h"
#include "audit.h"
#include "commands.h"
#include "control.h"
#include "facts.h"
#include "gc.h"
#include "kubelet.h"
#include "list.h"
#include "nodes.h"
#include "persist.h"
#include "pods.h"
#include "quota.h"
#include "script.h"
#include "watch.h"
#include "write.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <event2/event.h>

#define EXIT_USAGE 2

static struct {
	uint64_t port, nodes, foreign, foreign_gpus, gpus, cpus, memory, pods, per_zone, history,
		seed;
	const char *port_file, *kubeconfig, *script, *audit, *state, *token, *product, *deny;
	int64_t run, start, exit, bookmarks, gc, podgc;
} opt = {
	.foreign_gpus = 1,
	.gpus = 8,
	.cpus = 64,
	.memory = 512,
	.pods = 110,
	.per_zone = 16,
	.history = 65536,
	.run = 200 * 1000,
	.start = 20 * 1000,
	.exit = 10 * 1000,
	.bookmarks = 60 * SECOND_US,
	.gc = 50 * 1000,
	.podgc = 40 * SECOND_US,
};

/* A row per option: parsing and --help are read from here. */
static const struct flag {
	const char *name, *arg, *help;
	char type; /* u number, d time, t text */
	void *to;
} flags[] = {
	/* clang-format off */
	{ "port",          "N",    "listen on 127.0.0.1:N; 0 is any free port", 'u', &opt.port },
	{ "port-file",     "FILE", "write the port there once it listens", 't', &opt.port_file },
	{ "kubeconfig",    "FILE", "write a kubeconfig for it", 't', &opt.kubeconfig },
	{ "token",         "TEXT", "ask for this bearer token", 't', &opt.token },
	{ "nodes",         "N",    "make node-0000 .. of this shape:", 'u', &opt.nodes },
	{ "gpus",          "N",    "  GPUs of a node (8)", 'u', &opt.gpus },
	{ "cpus",          "N",    "  cores of a node (64)", 'u', &opt.cpus },
	{ "memory-gib",    "N",    "  memory of a node (512)", 'u', &opt.memory },
	{ "node-pods",     "N",    "  pods a node takes (110)", 'u', &opt.pods },
	{ "product",       "TEXT", "  label nvidia.com/gpu.product", 't', &opt.product },
	{ "per-zone",      "N",    "  nodes in a topology.kubernetes.io/zone (16)", 'u', &opt.per_zone },
	{ "pods-foreign",  "K",    "running pods of others, on the nodes in turn", 'u', &opt.foreign },
	{ "foreign-gpus",  "N",    "  GPUs of each while its node has free ones (1)", 'u', &opt.foreign_gpus },
	{ "script",        "FILE", "do its lines at the start; - reads standard input", 't', &opt.script },
	{ "audit",         "FILE", "append a JSON line per accepted write", 't', &opt.audit },
	{ "state",         "FILE", "load it if there, write it at SIGTERM or SIGINT", 't', &opt.state },
	{ "history",       "N",    "changes that a watch can go back (65536)", 'u', &opt.history },
	{ "bookmarks",     "TIME", "between bookmarks of a watch (60s)", 'd', &opt.bookmarks },
	{ "run",           "TIME", "how long pods run that do not say (200ms)", 'd', &opt.run },
	{ "start",         "TIME", "how long they take to start (20ms)", 'd', &opt.start },
	{ "exit",          "TIME", "how long they take to leave (10ms)", 'd', &opt.exit },
	{ "gc-delay",      "TIME", "from an owner's end to its dependents' (50ms)", 'd', &opt.gc },
	{ "deny",          "LIST", "rights that a review denies: create/pods/exec,...", 's', &opt.deny },
	{ "podgc-delay",   "TIME", "from a node's end to its pods' (40s)", 'd', &opt.podgc },
	{ "seed",          "N",    "seed of uids and probabilities; 0 is any", 'u', &opt.seed },
	/* clang-format on */
};

static void usage(FILE *f)
{
	fputs("usage: fakekube [--OPTION ARG ...]\n\n"
	      "A fake Kubernetes apiserver with simulated nodes, for tests of faults and "
	      "speed.\n\n",
	      f);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		fprintf(f, "  --%-13s %-5s %s\n", flags[i].name, flags[i].arg, flags[i].help);
	fputs("  --check       FILE  read a script, say what is wrong with it, and leave\n"
	      "  --help\n\n"
	      "Pages: GET /fake/audit[?jobs=1], GET /fake/state, GET /fake/help, POST /fake/fault\n"
	      "(the body is lines of a script).\n\n"
	      "Pods say how they run by annotations: gpuq.test/run TIME, /start TIME, /exit-code "
	      "N,\n"
	      "/hang, /oom, /oom-child, /reject (true, or the reason), /slow-exit TIME,\n"
	      "/term-exit-code N, /waiting REASON (never starts), /log TEXT, /log-every TIME.\n\n",
	      f);
	fputs(script_help(), f);
}

static char *read_file(const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	struct buf b = BUF_INIT;
	char part[4096];
	size_t n;

	if (!f)
		return NULL;
	buf_adds(&b, "");
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		buf_add(&b, part, n);
	if (f != stdin)
		fclose(f);
	return b.s;
}

static int set_flag(const struct flag *f, const char *value)
{
	switch (f->type) {
	case 'u':
		return uint_parse(value, f->to);
	case 'd':
		return duration_parse(value, f->to);
	default:
		*(const char **)f->to = value;
		return 0;
	}
}

static int check_script(const char *path)
{
	char *text = read_file(path), *why = NULL;
	int rc;

	if (!text) {
		fprintf(stderr, "fakekube: %s: %s\n", path, strerror(errno));
		return EXIT_FAILURE;
	}
	rc = script_check(path, text, &why);
	if (rc != 0)
		fprintf(stderr, "%s\n", why);
	free(why);
	free(text);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Returns -1 to go on, or the exit code. */
static int read_flags(int argc, char **argv)
{
	struct option longs[ARRAY_LEN(flags) + 3] = { { 0 } };
	int c;

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		longs[i] = (struct option){ flags[i].name, required_argument, NULL, 256 + (int)i };
	longs[ARRAY_LEN(flags)] = (struct option){ "help", no_argument, NULL, 'h' };
	longs[ARRAY_LEN(flags) + 1] = (struct option){ "check", required_argument, NULL, 'c' };
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return EXIT_SUCCESS;
		}
		if (c == 'c')
			return check_script(optarg);
		if (c < 256)
			return EXIT_USAGE;
		if (set_flag(&flags[c - 256], optarg) != 0) {
			fprintf(stderr, "fakekube: --%s: cannot read '%s' as %s\n",
				flags[c - 256].name, optarg,
				flags[c - 256].type == 'd' ? "a time" : "a number");
			return EXIT_USAGE;
		}
	}
	if (optind < argc || opt.port > 65535 || opt.history < 16 || opt.nodes > 1000000) {
		fputs("fakekube: a word too many, or a number out of range (--help)\n", stderr);
		return EXIT_USAGE;
	}
	return -1;
}

/* Whole or not at all: whoever waits for the file reads it when it appears. */
static int write_file(const char *path, const char *text)
{
	struct buf tmp = BUF_INIT;
	FILE *f;
	int rc = -1;

	buf_addf(&tmp, "%s.new", path);
	f = fopen(tmp.s, "we");
	if (f) {
		fputs(text, f);
		if (fclose(f) == 0 && rename(tmp.s, path) == 0)
			rc = 0;
	}
	if (rc != 0)
		fprintf(stderr, "fakekube: %s: %s\n", path, strerror(errno));
	buf_done(&tmp);
	return rc;
}

static int announce(int port)
{
	struct buf b = BUF_INIT;
	int rc = 0;

	if (opt.kubeconfig) {
		buf_addf(&b,
			 "apiVersion: v1\nkind: Config\ncurrent-context: fake\nclusters:\n- name: "
			 "fake\n"
			 "  cluster:\n    server: http://127.0.0.1:%d\ncontexts:\n- name: fake\n  "
			 "context:\n"
			 "    cluster: fake\n    user: fake\n    namespace: default\nusers:\n- "
			 "name: fake\n"
			 "  user: ",
			 port);
		if (opt.token) {
			buf_adds(&b, "\n    token: ");
			buf_add_json(&b, opt.token, strlen(opt.token));
			buf_adds(&b, "\n");
		} else {
			buf_adds(&b, "{}\n");
		}
		rc = write_file(opt.kubeconfig, b.s);
	}
	if (rc == 0 && opt.port_file) {
		b.len = 0;
		buf_addf(&b, "%d\n", port);
		rc = write_file(opt.port_file, b.s);
	}
	buf_done(&b);
	return rc;
}

static void make_cluster(void)
{
	static const char *const namespaces[] = { "default", "kube-system", "kube-public",
						  "kube-node-lease", "foreign" };

	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
		json_t *ns = json_pack("{s:{s:{s:s}},s:{s:[s]},s:{s:s}}", "metadata", "labels",
				       "kubernetes.io/metadata.name", namespaces[i], "spec",
				       "finalizers", "kubernetes", "status", "phase", "Active");

		write_new(&kinds[KIND_NAMESPACES], "", namespaces[i], ns);
		json_decref(ns);
	}
	nodes_add_many((unsigned)opt.nodes);
	nodes_add_foreign((unsigned)opt.foreign, (unsigned)opt.foreign_gpus);
}

static int run_script(void)
{
	char *text = read_file(opt.script), *why = NULL;
	json_t *results;

	if (!text) {
		fprintf(stderr, "fakekube: %s: %s\n", opt.script, strerror(errno));
		return -1;
	}
	results = script_run(opt.script, text, NULL, &why);
	if (!results)
		fprintf(stderr, "%s\n", why);
	free(why);
	free(text);
	if (!results)
		return -1;
	json_decref(results);
	return 0;
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void start_parts(struct event_base *base)
{
	node_shape = (struct node_shape){
		(unsigned)opt.gpus,     (unsigned)opt.cpus,
		(unsigned)opt.memory,   (unsigned)opt.pods,
		(unsigned)opt.per_zone, opt.product ? opt.product : node_shape.product
	};
	play_default_run_us = opt.run;
	play_default_start_us = opt.start;
	play_default_exit_us = opt.exit;
	rand_seed(opt.seed);
	kinds_init();
	store_init(opt.history);
	/* Order of the listeners of a change: the quota first, the watchers last. */
	quota_init(base);
	gc_init(base, opt.gc, opt.podgc);
	if (opt.deny)
		review_deny(opt.deny);
	kubelet_init(base);
	nodes_init(base);
	pods_init(base);
	watch_init(base, opt.bookmarks);
	commands_init(base);
	script_init(base);
	api_init(base, opt.token);
}

static void stop_parts(void)
{
	http_stop();
	api_done();
	script_done();
	commands_done();
	rules_done();
	nodes_done();
	list_forget();
	audit_done();
	kubelet_done();
	gc_done();
	quota_done();
	store_done();
}

int main(int argc, char **argv)
{
	struct event_base *base;
	struct event *term, *intr;
	int port, loaded = 0, rc = EXIT_FAILURE;

	port = read_flags(argc, argv);
	if (port >= 0)
		return port;
	signal(SIGPIPE, SIG_IGN);
	base = new_base();
	term = evsignal_new(base, SIGTERM, on_signal, base);
	intr = evsignal_new(base, SIGINT, on_signal, base);
	evsignal_add(term, NULL);
	evsignal_add(intr, NULL);
	if (audit_init(base, opt.audit) != 0) {
		fprintf(stderr, "fakekube: %s: %s\n", opt.audit, strerror(errno));
		return EXIT_FAILURE;
	}
	start_parts(base);
	if (opt.state)
		loaded = persist_load(opt.state);
	if (loaded < 0)
		goto out;
	if (loaded > 0) {
		store_reset();
		kubelet_resume();
	} else {
		make_cluster();
	}
	if (opt.script && run_script() != 0)
		goto out;
	port = http_start(base, (int)opt.port, api_on_request);
	if (port < 0) {
		fprintf(stderr, "fakekube: cannot listen on 127.0.0.1:%d: %s\n", (int)opt.port,
			strerror(errno));
		goto out;
	}
	if (announce(port) != 0)
		goto out;
	event_base_dispatch(base);
	rc = EXIT_SUCCESS;
	if (opt.state && persist_save(opt.state) != 0) {
		fprintf(stderr, "fakekube: %s: %s\n", opt.state, strerror(errno));
		rc = EXIT_FAILURE;
	}
out:
	stop_parts();
	event_free(term);
	event_free(intr);
	event_base_free(base);
	return rc;
}
