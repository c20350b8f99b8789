#include "gpuqd/config.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/auth/rule.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/metrics.h"
#include "gpuqd/config_backup.h"
#include "gpuqd/config_code.h"
#include "gpuqd/config_sched.h"
#include "gpuqd/site/policy.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

#define RECORD_BYTES_MIN (INT64_C(1) << 20)
#define SYSTEM_FILE "/etc/gpuq/gpuqd.yaml"
#define IN_CLUSTER_TOKEN "/var/run/secrets/kubernetes.io/serviceaccount/token"

static const char *const cluster_words[] = { "auto", "local", "kube", NULL };

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct config, member_),        \
		__VA_ARGS__                                                                        \
	}

#define WEIGHT(key_, member_, doc_)                                                                \
	{                                                                                          \
		.key = (key_), .kind = GPUQ_K_INT,                                                 \
		.offset = offsetof(struct policy_weights, member_), .min = 0,                      \
		.max = INT64_C(1000000000000), .doc = (doc_)                                       \
	}

/* Weights of the terms of a job's priority. */
static const struct gpuq_field weight_fields[] = {
	WEIGHT("age", age, "points of a job that has been pending for max_age"),
	WEIGHT("fairshare", fair_share,
	       "points of the user with the least use relative to entitlement"),
	WEIGHT("size", size, "points of a job that requests all devices"),
	WEIGHT("stretch", stretch,
	       "points for each multiple of its time limit that a job has been pending: at least "
	       "an hour each, at most a hundred"),
	WEIGHT("qos", qos,
	       "points of the highest qos priority of the site; absent: a job with a higher qos "
	       "priority always ranks first"),
	{ .key = "max_age",
	  .kind = GPUQ_K_DURATION,
	  .offset = offsetof(struct policy_weights, max_age_us),
	  .doc = "pending time after which the points of age grow no more" },
	{ .key = NULL },
};

static void weights_defaults(void *obj)
{
	*(struct policy_weights *)obj = policy_weights_default();
}

static int weights_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	if (((const struct policy_weights *)obj)->max_age_us <= 0)
		return gpuq_reader_fail(r, gpuq_get(v, "max_age"), GPUQ_EINVAL,
					"expected a time above 0");
	return 0;
}

static const struct gpuq_schema weights_schema = { .name = "priority_weights",
						   .size = sizeof(struct policy_weights),
						   .fields = weight_fields,
						   .defaults = weights_defaults,
						   .check = weights_check };

/* clang-format off */
static const struct gpuq_field fields[] = {
	F("listen", GPUQ_K_STRLIST, listen, .form = "list of addresses", .doc = "sockets to listen on: unix:/path, tls://address:port"),
	F("tls", GPUQ_K_OBJECT, tls, .sub = &config_tls_schema, .doc = "certificates of tls:// sockets; the files are read again when they change"),
	F("auth", GPUQ_K_OBJECT, auth, .flags = GPUQ_F_LIVE, .sub = &config_auth_schema, .doc = "authentication of users who do not connect over a unix socket"),
	F("state", GPUQ_K_STR, state, .form = "directory", .doc = "directory of the database"),
	F("cluster", GPUQ_K_ENUM, cluster, .names = cluster_words,
	  .doc = "cluster that runs the jobs"),
	F("kubeconfig", GPUQ_K_STR, kubeconfig, .form = "file", .doc = "credentials of the Kubernetes cluster; absent: $KUBECONFIG, in-cluster, ~/.kube/config"),
	F("context", GPUQ_K_STR, context, .form = "name", .doc = "context of the kubeconfig"),
	F("namespace", GPUQ_K_NAME, namespace_, .doc = "default namespace of queues"),
	F("gpus", GPUQ_K_INT, gpus, .min = -1, .max = 1024, .doc = "number of devices of the local cluster; -1, the default, queries the driver"),
	F("no_new_privs", GPUQ_K_BOOL, no_new_privs, .doc = "on the local cluster: deny programs of a job privileges from set-user-ID bits and file capabilities"),
	F("device_cgroup", GPUQ_K_BOOL, device_cgroup, .doc = "on the local cluster: let a job open no NVIDIA devices but its own"),
	F("site", GPUQ_K_STR, site, .form = "file", .doc = "site file applied at the first start of an empty database"),
	F("operators", GPUQ_K_STRLIST, operators, .flags = GPUQ_F_LIVE, .form = "list of users", .doc = "users with the rights of an operator, in addition to the user that the daemon runs as"),
	F("operators_act_as_user", GPUQ_K_BOOL, operators_act_as_user, .flags = GPUQ_F_LIVE, .doc = "whether operators have the rights that are otherwise reserved to the owner of a job: run programs in it, attach to it, forward its ports and change what it runs"),
	F("log_level", GPUQ_K_STR, log_level, .flags = GPUQ_F_LIVE, .form = "err | warn | notice | info | debug", .doc = "level of detail of the log"),
	F("finished_pod_keep", GPUQ_K_DURATION, finished_pod_keep_us, .flags = GPUQ_F_LIVE, .doc = "time for which ended pods are kept, so that their logs can be read"),
	F("start_timeout", GPUQ_K_DURATION, start_timeout_us, .flags = GPUQ_F_LIVE, .doc = "maximum time from placement until the job runs; after it the job is requeued"),
	F("plugin_timeout", GPUQ_K_DURATION, plugin_timeout_us, .min = GPUQ_US_PER_S, .max = 3600 * GPUQ_US_PER_S, .doc = "time after which a pod is replaced that the device plugin of its node gives no device"),
	F("node_lock_timeout", GPUQ_K_DURATION, node_lock_timeout_us, .min = GPUQ_US_PER_S, .max = 86400 * GPUQ_US_PER_S, .doc = "age at which a lock of a node with HAMi that others hold is stale"),
	F("turn_timeout", GPUQ_K_DURATION, turn_timeout_us, .min = GPUQ_US_PER_S, .max = 86400 * GPUQ_US_PER_S, .doc = "time after which a pod that the device plugin of its node has not served keeps other pods of that node waiting no longer: one of gpushare, or of others"),
	F("connections_per_user", GPUQ_K_INT, connections_per_user, .flags = GPUQ_F_LIVE, .min = 1, .max = GPUQ_CONNECTIONS_MAX, .doc = "maximum number of connections of one user, 1 to 16384"),
	F("creates_per_second", GPUQ_K_INT, creates_per_s, .min = 0, .max = 1000000, .doc = "maximum number of pods created per second"),
	F("metrics", GPUQ_K_STRLIST, metrics, .form = "list of URLs", .doc = "pages with the utilization of the devices of a Kubernetes cluster, in the text format of Prometheus"),
	F("kubelet_metrics", GPUQ_K_BOOL, kubelet_metrics, .doc = "ask the kubelets for CPU time and memory of running jobs; needs etc/kubernetes/optional/metrics.yaml"),
	F("metrics_interval", GPUQ_K_DURATION, metrics_interval_us, .doc = "interval of measurements; 0 disables them"),
	F("use_hints", GPUQ_K_BOOL, policy.use_hints, .flags = GPUQ_F_LIVE, .doc = "tell owners at the end of a job that its request was far off what it used"),
	F("idle_window", GPUQ_K_DURATION, policy.idle_window_us, .doc = "length of the windows that idle rules count, see gpuq-site(5); at least one second"),
	F("scheduler", GPUQ_K_OBJECT, policy.sched, .flags = GPUQ_F_LIVE, .sub = &config_sched_schema, .doc = "settings of the scheduler for all queues"),
	F("record_dir", GPUQ_K_STR, record_dir, .form = "path", .doc = "directory in which input and decisions of every scheduling cycle are recorded, for gpuq-sim(1) replay"),
	F("record_size", GPUQ_K_BYTES, record_bytes, .doc = "maximum size of the records, at least 1Mi; the oldest are deleted"),
	F("backup_dir", GPUQ_K_STR, backup_dir, .flags = GPUQ_F_LIVE, .form = "path", .doc = "directory in which operators other than gpuqd's own user may have backups written"),
	F("backup", GPUQ_K_OBJECT, backup, .sub = &config_backup_schema, .doc = "copies of the database that gpuqd makes by itself"),
	F("code_store", GPUQ_K_OBJECT, code_store, .sub = &config_code_schema, .doc = "object store or volume for directories that jobs carry (--code) and that no ConfigMap takes"),
	F("history_keep", GPUQ_K_DURATION, history_keep_us, .flags = GPUQ_F_LIVE, .doc = "time for which ended jobs are kept; 0 keeps them for ever"),
	F("history_max", GPUQ_K_INT, history_max, .flags = GPUQ_F_LIVE, .min = 0, .max = INT64_C(100000000), .doc = "maximum number of ended jobs that are kept, the newest; 0 keeps all"),
	F("history_size", GPUQ_K_BYTES, history_bytes, .flags = GPUQ_F_LIVE, .doc = "maximum size of stored jobs; beyond it the oldest ended jobs are deleted; 0 keeps all"),
	F("map_size", GPUQ_K_BYTES, map_bytes, .doc = "maximum size of the database"),
	F("adopt_cluster", GPUQ_K_BOOL, adopt_cluster, .doc = "accept this cluster although the jobs of the database ran in another one; see --adopt-cluster in gpuqd(8)"),
	F("unsafe_fs", GPUQ_K_BOOL, unsafe_fs, .doc = "allow a network or overlay filesystem for state"),
	F("notify", GPUQ_K_OBJECT, notify, .flags = GPUQ_F_LIVE, .sub = &config_notify_schema, .doc = "notification of job events by mail and webhook; see notify in gpuq-job(5)"),
	F("priority_weights", GPUQ_K_OBJECT, policy.weights, .flags = GPUQ_F_LIVE, .sub = &weights_schema, .doc = "weights of the terms of a job's priority, in points that add up"),
	F("usage_half_life", GPUQ_K_DURATION, policy.usage_half_life_us, .doc = "half-life with which the use of queues and users decays"),
	F("usage_k", GPUQ_K_MILLI, policy.usage_k_milli, .flags = GPUQ_F_LIVE, .doc = "weight of past use when idle capacity beyond the quotas is divided among queues, from 0 to 1000"),
	{ .key = NULL },
};
/* clang-format on */

static void defaults(void *obj)
{
	struct config *c = obj;

	c->gpus = -1;
	c->policy = policy_default();
	c->connections_per_user = GPUQ_CONNECTIONS_PER_UID;
	config_notify_schema.defaults(&c->notify);
	config_backup_schema.defaults(&c->backup);
	config_code_schema.defaults(&c->code_store);
	config_auth_schema.defaults(&c->auth);
	c->finished_pod_keep_us = -1;
	c->start_timeout_us = 600 * GPUQ_US_PER_S;
	c->plugin_timeout_us = 30 * GPUQ_US_PER_S;
	c->node_lock_timeout_us = 300 * GPUQ_US_PER_S;
	c->turn_timeout_us = 60 * GPUQ_US_PER_S;
	c->metrics_interval_us = 10 * GPUQ_US_PER_S;
	c->log_level = "info";
	c->record_bytes = INT64_C(256) << 20;
	c->history_keep_us = INT64_C(366) * 86400 * GPUQ_US_PER_S;
	c->history_max = 1000000;
	c->history_bytes = INT64_C(16) << 30;
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct config *c = obj;

	if (log_level_parse(c->log_level) < 0)
		return gpuq_reader_fail(r, gpuq_get(v, "log_level"), GPUQ_EINVAL,
					"expected err, warn, notice, info or debug");
	if (c->record_bytes < RECORD_BYTES_MIN)
		return gpuq_reader_fail(r, gpuq_get(v, "record_size"), GPUQ_EINVAL,
					"expected 1Mi or more");
	if (c->policy.usage_k_milli < 0 || c->policy.usage_k_milli > 1000000)
		return gpuq_reader_fail(r, gpuq_get(v, "usage_k"), GPUQ_EINVAL,
					"expected a number from 0 to 1000");
	if (c->policy.idle_window_us < GPUQ_US_PER_S)
		return gpuq_reader_fail(r, gpuq_get(v, "idle_window"), GPUQ_EINVAL,
					"expected 1s or more");
	if (c->metrics.n > GPUQ_METRICS_URLS_MAX)
		return gpuq_reader_fail(r, gpuq_get(v, "metrics"), GPUQ_ETOOBIG,
					"expected %u at most", GPUQ_METRICS_URLS_MAX);
	for (size_t i = 0; i < c->metrics.n; i++) {
		struct gpuq_err why = GPUQ_ERR_INIT;

		if (metrics_url_check(c->metrics.items[i], &why) < 0)
			return gpuq_reader_fail(r, gpuq_get(v, "metrics"), GPUQ_EINVAL, "%s",
						why.text);
	}
	if (c->backup_dir &&
	    (c->backup_dir[0] != '/' || c->backup_dir[strlen(c->backup_dir) - 1] == '/'))
		return gpuq_reader_fail(
			r, gpuq_get(v, "backup_dir"), GPUQ_EINVAL,
			"expected the absolute path of a directory, without a trailing /");
	for (size_t i = 0; i < c->listen.n; i++)
		if (strncmp(c->listen.items[i], "unix:/", 6) != 0 &&
		    strncmp(c->listen.items[i], "tls://", 6) != 0)
			return gpuq_reader_fail(r, gpuq_get(v, "listen"), GPUQ_EINVAL,
						"expected unix:/path, an absolute path, or "
						"tls://address:port");
	return 0;
}

const struct gpuq_schema config_schema = { .name = "gpuqd.yaml",
					   .size = sizeof(struct config),
					   .fields = fields,
					   .defaults = defaults,
					   .check = check };

/* ---- options: one row each, from which getopt's table and --help follow ---- */

static const struct {
	const char *name, *metavar, *key, *doc;
} options[] = {
	{ "config", "FILE", NULL, "read FILE instead of " SYSTEM_FILE },
	{ "state", "DIR", "state", "keep the database in DIR" },
	{ "listen", "ADDRESS", "listen",
	  "listen on unix:PATH or tls://ADDRESS:PORT; may be given several times" },
	{ "cluster", "local|kube", "cluster", "cluster that runs the jobs" },
	{ "kubeconfig", "FILE", "kubeconfig", "credentials of the Kubernetes cluster" },
	{ "context", "NAME", "context", "context of the kubeconfig" },
	{ "namespace", "NS", "namespace", "default namespace of queues" },
	{ "gpus", "N", "gpus", "devices of the local cluster (default: query the driver)" },
	{ "site", "FILE", "site", "apply a site file at the first start of an empty database" },
	{ "log-level", "LEVEL", "log_level", "err, warn, notice, info or debug" },
	{ "record", "DIR", "record_dir",
	  "record every scheduling cycle in DIR, for gpuq-sim replay" },
	{ "restore", "FROM", NULL,
	  "restore a backup, a file, DIR, https URL or target, into an empty --state" },
	{ "at", "TIME", NULL, "with --restore: as it was at TIME, or after a batch EPOCH/NUMBER" },
	{ "adopt-cluster", NULL, "adopt_cluster",
	  "accept a cluster other than that of the database's jobs" },
	{ "unsafe-fs", NULL, "unsafe_fs", "allow a network or overlay filesystem for --state" },
	{ "new-state", NULL, NULL, "start with an empty database beside jobs and logs" },
	{ "make-cert", "NAME...", NULL,
	  "make a key and a certificate for tls:// in --state, print its pin, and exit" },
	{ "audit", NULL, NULL, "check the database of --state (DIR or a backup), and exit" },
	{ "check", NULL, NULL, "check the configuration and the site file, and exit" },
	{ "print-config", NULL, NULL, "print all settings, and exit" },
	{ "print-keys", NULL, NULL, "print all keys of gpuqd.yaml and of site files, and exit" },
	{ "help", NULL, NULL, "print this, and exit" },
	{ "version", NULL, NULL, "print the version, and exit" },
};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

void config_usage(struct gpuq_buf *out)
{
	gpuq_buf_adds(out,
		      "usage: gpuqd [OPTION]...\n"
		      "The daemon of gpuq, a batch queue for GPU jobs. Runs in the foreground and "
		      "logs to stderr.\n\n");
	for (int i = 0; i < N_OPTIONS; i++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", options[i].name,
			 options[i].metavar ? " " : "",
			 options[i].metavar ? options[i].metavar : "");
		gpuq_buf_printf(out, "  %-24s %s\n", left, options[i].doc);
	}
	gpuq_buf_adds(
		out,
		"\nExit status: 0 shut down as requested; 2 wrong usage; 78 wrong configuration; "
		"75 the state\ndirectory is in use; 74 the disk failed or the database is "
		"damaged; 69 the cluster "
		"cannot be used; 1 anything else.\nSee gpuqd(8) and gpuqd.yaml(5).\n");
}

/* An option is a line of the file that wins: it is put into the tree before the schema
 * reads it, so that both are checked by the same rows. */
static int put_option(struct gpuq_arena *a, struct gpuq_val *tree, int i, const char *arg,
		      bool *listen_fresh)
{
	const char *key = options[i].key;
	struct gpuq_val *v;

	if (strcmp(key, "listen") == 0) {
		if (!*listen_fresh)
			gpuq_set(a, tree, key, gpuq_list(a));
		*listen_fresh = true;
		return gpuq_add(a, gpuq_get(tree, key), gpuq_str(a, arg)) ? 0 : GPUQ_ENOMEM;
	}
	if (!arg) {
		v = gpuq_bool(a, true);
	} else if (strcmp(key, "gpus") == 0) {
		char *end;
		long n = strtol(arg, &end, 10);

		v = *end || !*arg ? gpuq_str(a, arg) : gpuq_int(a, n);
	} else {
		v = gpuq_str(a, arg);
	}
	return gpuq_set(a, tree, key, v) ? 0 : GPUQ_ENOMEM;
}

static int read_file(const char *path, struct gpuq_buf *out, struct gpuq_err *err)
{
	FILE *f = fopen(path, "re");
	char chunk[4096];
	size_t n;

	if (!f)
		return gpuq_fail(err, errno == ENOENT ? GPUQ_ENOENT : GPUQ_EIO, "%s: %s", path,
				 strerror(errno));
	out->max_bytes = GPUQ_YAML_BYTES_MAX;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		gpuq_buf_add(out, chunk, n);
	n = (size_t)ferror(f);
	fclose(f);
	if (n)
		return gpuq_fail(err, GPUQ_EIO, "%s: cannot be read", path);
	if (out->failed)
		return gpuq_fail(err, GPUQ_ETOOBIG, "%s: larger than the limit for a configuration",
				 path);
	return 0;
}

static const char *home_state(struct gpuq_arena *a)
{
	const char *home = getenv("HOME");
	const struct passwd *pw = home && *home ? NULL : getpwuid(geteuid());

	if (geteuid() == 0)
		return "/var/lib/gpuq";
	if (!home || !*home) /* not below /tmp, where other users can be first */
		home = pw ? pw->pw_dir : "";
	return gpuq_arena_printf(a, "%s/.local/state/gpuq", home);
}

static void fill_places(struct config *c)
{
	struct gpuq_arena *a = &c->arena;

	if (!c->state)
		c->state = home_state(a);
	if (c->listen.n == 0) {
		const char **one = gpuq_arena_alloc(a, sizeof(*one));

		one[0] = geteuid() == 0 ? "unix:/run/gpuq/gpuqd.sock"
					: gpuq_arena_printf(a, "unix:%s/gpuqd.sock", home_state(a));
		c->listen = (struct gpuq_strlist){ one, 1 };
	}
	if (!c->tls.cert)
		c->tls.cert = gpuq_arena_printf(a, "%s/tls/cert.pem", c->state);
	if (!c->tls.key)
		c->tls.key = gpuq_arena_printf(a, "%s/tls/key.pem", c->state);
	if (c->cluster == CLUSTER_AUTO)
		c->cluster = c->kubeconfig || (getenv("KUBERNETES_SERVICE_HOST") &&
					       access(IN_CLUSTER_TOKEN, R_OK) == 0)
				     ? CLUSTER_KUBE
				     : CLUSTER_LOCAL;
	if (c->finished_pod_keep_us < 0)
		c->finished_pod_keep_us = c->cluster == CLUSTER_KUBE ? 3600 * GPUQ_US_PER_S : 0;
}

/* getopt takes abbreviations: one that is unique today would mean another option tomorrow. word is the
 * last word it has read, before the one in front where word is the value. */
static bool is_whole(const char *name, const char *word, const char *before)
{
	if (before)
		word = before;
	return strncmp(word, "--", 2) != 0 || (strlen(name) == strcspn(word + 2, "=") &&
					       strncmp(word + 2, name, strlen(name)) == 0);
}

/* --make-cert NAME and all that are no options behind it. */
static int put_names(struct config *c, const char *first, int argc, char **argv,
		     struct gpuq_err *err)
{
	const size_t n = 1 + (size_t)(argc - optind);
	const char **names = gpuq_arena_alloc(&c->arena, n * sizeof(*names));

	if (!names)
		return gpuq_no_memory(err);
	names[0] = first;
	for (size_t i = 1; i < n; i++)
		names[i] = argv[optind + (int)i - 1];
	c->make_cert = (struct gpuq_strlist){ names, n };
	return 0;
}

static int read_all(struct config *c, int argc, char **argv, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_reader r = { .arena = &mem, .err = err };
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct option longs[N_OPTIONS + 1] = { { 0 } };
	struct gpuq_val **docs, *tree = NULL;
	bool listen_fresh = false;
	bool flags[N_OPTIONS] = { 0 };
	struct {
		int option;
		const char *arg;
	} given[64];
	int n_given = 0, o, ix;
	size_t n_docs = 0;
	const char *file = NULL, *first_name = NULL;
	int rc;

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < N_OPTIONS; i++)
		longs[i] = (struct option){ options[i].name,
					    options[i].metavar ? required_argument : no_argument,
					    NULL, 256 + i };
	opterr = 0;
	optind = 1;
	while ((o = getopt_long(argc, argv, ":h", longs, &ix)) != -1) {
		for (int i = 0; o == 'h' && i < N_OPTIONS; i++)
			if (strcmp(options[i].name, "help") == 0)
				o = 256 + i;
		if (o < 256)
			return gpuq_fail(err, GPUQ_EINVAL, "%s %s: see gpuqd --help",
					 o == ':' ? "an argument is missing to" : "unknown option",
					 argv[optind - 1]);
		if (!is_whole(options[o - 256].name, argv[optind - 1],
			      optind > 1 && optarg == argv[optind - 1] ? argv[optind - 2] : NULL))
			return gpuq_fail(err, GPUQ_EINVAL,
					 "an option is written in full, as --%s: see gpuqd --help",
					 options[o - 256].name);
		flags[o - 256] = true;
		if (strcmp(options[o - 256].name, "config") == 0)
			file = optarg;
		else if (strcmp(options[o - 256].name, "restore") == 0)
			c->restore = optarg;
		else if (strcmp(options[o - 256].name, "at") == 0)
			c->restore_at = optarg;
		else if (strcmp(options[o - 256].name, "make-cert") == 0)
			first_name = optarg;
		else if (options[o - 256].key && n_given < 64) {
			given[n_given].option = o - 256;
			given[n_given++].arg = optarg;
		}
	}
	rc = first_name ? put_names(c, first_name, argc, argv, err) : 0;
	if (rc < 0)
		return rc;
	if (optind < argc && !first_name)
		return gpuq_fail(err, GPUQ_EINVAL, "unexpected argument %s: see gpuqd --help",
				 argv[optind]);
	for (int i = 0; i < N_OPTIONS; i++) {
		c->check |= flags[i] && strcmp(options[i].name, "check") == 0;
		c->new_state |= flags[i] && strcmp(options[i].name, "new-state") == 0;
		c->audit |= flags[i] && strcmp(options[i].name, "audit") == 0;
		c->print |= flags[i] && strcmp(options[i].name, "print-config") == 0;
		c->print_keys |= flags[i] && strcmp(options[i].name, "print-keys") == 0;
		c->help |= flags[i] && strcmp(options[i].name, "help") == 0;
		c->version |= flags[i] && strcmp(options[i].name, "version") == 0;
	}
	if (c->help || c->version || c->print_keys)
		return 0;
	if (c->restore_at && !c->restore)
		return gpuq_fail(err, GPUQ_EINVAL, "--at needs --restore: see gpuqd --help");

	if (!file && access(SYSTEM_FILE, F_OK) == 0)
		file = SYSTEM_FILE;
	rc = file ? read_file(file, &text, err) : 0;
	if (rc == 0 && file)
		rc = gpuq_yaml_parse(&mem, file, text.data ? text.data : "", text.len, &docs,
				     &n_docs, err);
	if (rc == 0 && n_docs > 1)
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s: expected one document", file);
	if (rc == 0) {
		tree = n_docs ? docs[0] : gpuq_map(&mem);
		for (int i = 0; i < n_given && rc == 0; i++)
			rc = put_option(&mem, tree, given[i].option, given[i].arg, &listen_fresh);
		if (rc != 0)
			gpuq_fail(err, rc, "out of memory");
	}
	if (rc == 0) {
		const struct config was = *c; /* reading fills all of it */

		r.file = file;
		rc = gpuq_schema_read(&r, &config_schema, tree, c);
		if (rc == 0) {
			c->check = was.check;
			c->print = was.print;
			c->new_state = was.new_state;
			c->restore = was.restore;
			c->restore_at = was.restore_at;
			c->audit = was.audit;
			c->make_cert = was.make_cert;
			c->file = file ? gpuq_arena_strdup(&mem, file) : NULL;
		}
	}
	gpuq_buf_done(&text);
	if (rc != 0) {
		gpuq_arena_done(&mem);
		return rc;
	}
	c->names = c->arena;
	c->arena = mem;
	fill_places(c);
	if (c->tls.client_ca && c->cluster == CLUSTER_LOCAL && !c->auth.trusted_names)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"tls.client_ca: jobs of the local cluster run as the account that a "
			"certificate names: say auth.trusted_names: true where its CA may "
			"decide that");
	if (c->auth.kubernetes && c->cluster == CLUSTER_LOCAL)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "auth.kubernetes: the local cluster has no service accounts; it "
				 "needs cluster: kube");
	for (size_t i = 0; c->cluster == CLUSTER_LOCAL && i < c->auth.oidc.n; i++) {
		const struct auth_rule *a = (const struct auth_rule *)c->auth.oidc.items + i;

		if (!a->trusted_names)
			return gpuq_fail(
				err, GPUQ_EINVAL,
				"auth.oidc %s: jobs of the local cluster run as the account that a "
				"token names: say trusted_names: true there where its issuer may "
				"decide that",
				a->name);
	}
	config_notify_policy(&c->notify, &c->policy.notify);
	return 0;
}

int config_read(struct config *c, int argc, char **argv, struct gpuq_err *err)
{
	int rc = read_all(c, argc, argv, err);

	if (rc < 0)
		config_done(c);
	return rc;
}

void config_not_live(const struct config *was, const struct config *is, struct gpuq_buf *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct gpuq_val *x = gpuq_schema_write(&mem, &config_schema, was);
	const struct gpuq_val *y = gpuq_schema_write(&mem, &config_schema, is);

	for (const struct gpuq_field *f = fields; f->key; f++) {
		const struct gpuq_val *old = gpuq_get(x, f->key), *new_ = gpuq_get(y, f->key);

		if (f->flags & GPUQ_F_LIVE || (!old && !new_) ||
		    (old && new_ && gpuq_val_equal(old, new_)))
			continue;
		gpuq_buf_printf(out, "%s%s", out->len ? "," : "", f->key);
	}
	gpuq_arena_done(&mem);
}

void config_done(struct config *c)
{
	gpuq_arena_done(&c->arena);
	gpuq_arena_done(&c->names);
}

void config_print(const struct config *c, struct gpuq_buf *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct config base = { .file = NULL };
	struct gpuq_val *v = gpuq_schema_write(&mem, &config_schema, c);

	defaults(&base);
	gpuq_buf_printf(out, "# file: %s\n", c->file ? c->file : "none");
	for (const struct gpuq_field *f = fields; f->key; f++) {
		struct gpuq_val *one = gpuq_get(v, f->key), *map = gpuq_map(&mem);

		gpuq_buf_printf(out, "# %s\n", f->doc);
		if (one) {
			gpuq_put(&mem, map, f->key, one);
			gpuq_yaml_write(out, map);
		} else {
			gpuq_buf_printf(out, "# %s: (default)\n", f->key);
		}
	}
	gpuq_arena_done(&mem);
}
