/* gpuq doctor: is this set up well, and what to do where it is not. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/doctor_backends.h"
#include "gpuq/command.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

#define CLOCK_US (2 * GPUQ_US_PER_S)
#define CLOCK_AHEAD_S 60
#define STALE_US (60 * GPUQ_US_PER_S)
#define DISK_LOW (INT64_C(1) << 30)
#define TURN_LONG_US GPUQ_US_PER_S
#define NAMED 3 /* nodes that a finding names */

enum verdict { GOOD, WARN, BAD };

/* Replies of the server, and the data to judge them by. */
struct exam {
	struct cli *c;
	const struct gpuq_val *diag;
	const struct gpuq_val *rights; /* NULL = not known */
	struct gpuq_val *nodes, *findings;
	int64_t asked_us, answered_us;
	bool bad;
};

static void find(struct exam *x, enum verdict verdict, const char *check, const char *advice,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void find(struct exam *x, enum verdict verdict, const char *check, const char *advice,
		 const char *fmt, ...)
{
	static const char *const words[] = { "ok", "warning", "bad" };
	struct gpuq_arena *a = &x->c->arena;
	struct gpuq_val *v = gpuq_map(a);
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gpuq_put(a, v, "check", gpuq_str(a, check));
	gpuq_put(a, v, "result", gpuq_str(a, words[verdict]));
	gpuq_put(a, v, "text", gpuq_str(a, text));
	gpuq_put(a, v, "advice", verdict == GOOD ? gpuq_null(a) : gpuq_str(a, advice));
	gpuq_add(a, x->findings, v);
	x->bad |= verdict == BAD;
}

static int64_t figure(const struct exam *x, const char *section, const char *key, int64_t dflt)
{
	return gpuq_get_int(gpuq_get(x->diag, section), key, dflt);
}

/* ---- the checks ---- */

static void check_version(struct exam *x)
{
	const char *server = gpuq_get_str(gpuq_server_info(x->c->conn), "version", "?");

	if (strcmp(server, PACKAGE_VERSION) == 0)
		find(x, GOOD, "version", "", "client and server are %s", server);
	else
		find(x, WARN, "version", "install the same release on both sides",
		     "the client is %s, the server %s", PACKAGE_VERSION, server);
}

static void check_rights(struct exam *x)
{
	const char *user = cli_user(x->c);

	if (user)
		find(x, GOOD, "identity", "", "connected as %s, %s", user,
		     gpuq_get_str(gpuq_server_info(x->c->conn), "role", "user"));
	else
		find(x, BAD, "identity", "connect over its unix socket",
		     "the server does not know the user");
}

static void check_clock(struct exam *x)
{
	const int64_t now_us = figure(x, "process", "now_time", 0);
	const int64_t early = now_us - x->asked_us, late = now_us - x->answered_us;
	/* Between question and answer any time is right. */
	const int64_t off_us = early < 0 ? -early : late > 0 ? late : 0;

	if (off_us < CLOCK_US)
		find(x, GOOD, "clock", "", "the clocks agree");
	else
		find(x, WARN, "clock", "run NTP on both machines",
		     "the clocks differ by %.1f s: printed times are the server's",
		     (double)off_us / (double)GPUQ_US_PER_S);
}

/* A wall clock that was set; no finding where it never was. */
static void check_jumps(struct exam *x)
{
	const int64_t jumps = figure(x, "clock", "jumps", 0);
	const int64_t ahead_s = figure(x, "clock", "ahead_s", 0);

	if (jumps)
		find(x, WARN, "jumps", "run NTP on the server's machine",
		     "the server's wall clock jumped %" PRId64 " times, last by %+" PRId64
		     " s: printed times moved with it, limits and charges did not",
		     jumps, figure(x, "clock", "jump_s", 0));
	else if (ahead_s > CLOCK_AHEAD_S || ahead_s < -CLOCK_AHEAD_S)
		find(x, GOOD, "jumps", "",
		     "the server's wall clock was set by %+" PRId64
		     " s since the first job: printed times moved with it",
		     ahead_s);
}

static void check_disk(struct exam *x)
{
	const int64_t free_bytes = figure(x, "store", "disk_free_bytes", 0);
	const int64_t used = figure(x, "store", "bytes", 0);
	const int64_t map = figure(x, "store", "map_bytes", INT64_MAX);
	struct gpuq_buf has = GPUQ_BUF_INIT;

	gpuq_buf_adds(&has, "the database has ");
	line_bytes(&has, used);
	gpuq_buf_adds(&has, ", ");
	line_bytes(&has, free_bytes);
	gpuq_buf_adds(&has, " are free");
	if (gpuq_get_bool(gpuq_get(x->diag, "journal"), "read_only", false))
		find(x, BAD, "disk", "free space on the disk of the state directory",
		     "there is no space and nothing can be changed: %s", gpuq_buf_str(&has));
	else if (gpuq_get_bool(gpuq_get(x->diag, "journal"), "no_new_jobs", false))
		find(x, BAD, "disk", "free space on the disk of the state directory",
		     "the disk is full and no jobs are accepted: %s", gpuq_buf_str(&has));
	else if (free_bytes < DISK_LOW || free_bytes < used)
		find(x, WARN, "disk", "free space: a backup takes as much again", "%s",
		     gpuq_buf_str(&has));
	else if (used > map / 10 * 9)
		find(x, WARN, "disk", "raise map_size in gpuqd.yaml and restart gpuqd",
		     "the database is close to map_size: %s", gpuq_buf_str(&has));
	else
		find(x, GOOD, "disk", "", "%s", gpuq_buf_str(&has));
	gpuq_buf_done(&has);
}

static void check_cluster(struct exam *x)
{
	const struct gpuq_val *cluster = gpuq_get(x->diag, "cluster");
	const char *kind = gpuq_get_str(cluster, "kind", "?");
	const char *why = gpuq_get_str(cluster, "stale_why", "");
	const int64_t since_us = gpuq_get_int(cluster, "stale_since", 0);
	const int64_t now_us = figure(x, "process", "now_time", 0);

	if (!gpuq_get_bool(cluster, "connected", false))
		find(x, BAD, "cluster", "see the log of gpuqd for the reason",
		     "no cluster (%s): no job starts", kind);
	else if (since_us)
		find(x, now_us - since_us > STALE_US ? BAD : WARN, "cluster",
		     "check whether the apiserver answers, and whether the account of gpuqd may "
		     "list "
		     "and watch pods and nodes (gpuqd(8) names the rights)",
		     "the cluster (%s) has not answered for %" PRId64 " s%s%s", kind,
		     (now_us - since_us) / GPUQ_US_PER_S, *why ? ": " : "", why);
	else
		find(x, GOOD, "cluster", "", "the cluster (%s) is reachable", kind);
}

/* A finding for each object that jobs wait for. */
static void check_refused(struct exam *x)
{
	const struct gpuq_val *list = gpuq_get(gpuq_get(x->diag, "cluster"), "refused");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *r = list->items[i];
		const int64_t n = gpuq_get_int(r, "jobs", 0);

		find(x, BAD, "refused",
		     "repair it in the cluster, or name another in the queue; the jobs then "
		     "start by themselves",
		     "%" PRId64 " job%s pending because of %s in %s: %s", n, line_s(n),
		     gpuq_get_str(r, "object", "?"), gpuq_get_str(r, "namespace", "?"),
		     gpuq_get_str(r, "message", ""));
	}
}

/* Without measurements no job is stopped for being idle. */
static void check_measured(struct exam *x)
{
	const struct gpuq_val *m = gpuq_get(x->diag, "measured");
	const char *source = gpuq_get_str(m, "source", NULL);
	const char *trouble = gpuq_get_str(m, "trouble", NULL);
	const int64_t devices = gpuq_get_int(m, "devices", 0), jobs = gpuq_get_int(m, "jobs", 0);
	const bool rule = gpuq_get_bool(m, "idle_rule", false);

	if (rule && (trouble || !source))
		find(x, WARN, "measured",
		     "see metrics in gpuqd.yaml(5); on the local cluster the driver's library is "
		     "used",
		     "idle rules are not applied%s: %s", source ? " everywhere" : "",
		     trouble ? trouble : "no measurements yet");
	else if (source)
		find(x, GOOD, "measured", "",
		     "utilization is measured (%s): %" PRId64 " device%s of "
		     "%" PRId64 " job%s",
		     source, devices, line_s(devices), jobs, line_s(jobs));
	else
		find(x, GOOD, "measured", "",
		     "GPU utilization is not measured (no idle rule uses it)");
}

/* Return why a node is down; "" = not known. The cause is of the node before NOTE, which may be of its devices. */
static const char *why_down(const struct gpuq_val *node)
{
	const char *cause = gpuq_get_str(node, "cause", "");

	return *cause ? cause : gpuq_get_str(node, "note", "");
}

/* Such a node is ready, as its kubelet says, but what it offers cannot be true. It may have devices: those that it
 * had before, while pods hold them. One that was drained says only why that was done. */
static bool is_left_alone(const struct gpuq_val *node)
{
	static const char *const others[] = { "Ready=",
					      "MemoryPressure=",
					      "DiskPressure=",
					      "PIDPressure=",
					      "NetworkUnavailable=",
					      "the node ",
					      "the NVIDIA driver ",
					      "not ",
					      "gone; " };
	const char *why = why_down(node);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(why, others[i], strlen(others[i])) == 0)
			return false;
	return *why && !strstr(why, " devices do not answer") &&
	       gpuq_get_int(node, "drained_time", 0) == 0 &&
	       strcmp(gpuq_get_str(node, "state", ""), "down") == 0;
}

static bool has_no_gpus(const struct gpuq_val *node)
{
	return gpuq_get_int(node, "gpus", 0) == 0 && !*gpuq_get_str(node, "note", "");
}

static bool has_unused_gpus(const struct gpuq_val *node)
{
	return gpuq_get_int(node, "gpus", 0) == 0 && !has_no_gpus(node) && !is_left_alone(node) &&
	       *gpuq_get_str(node, "inventory", "");
}

/* Names of the nodes that a test is true of, those that report something odd with it; how many there are. */
static int64_t name_nodes(const struct exam *x, bool (*is)(const struct gpuq_val *node),
			  struct gpuq_buf *names)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < x->nodes->n; i++) {
		if (!is(x->nodes->items[i]) || ++n > NAMED)
			continue;
		gpuq_buf_printf(names, "%s%s", n > 1 ? ", " : "",
				gpuq_get_str(x->nodes->items[i], "name", "?"));
		if (is == is_left_alone)
			gpuq_buf_printf(names, " (%s)", why_down(x->nodes->items[i]));
		else if (is == has_unused_gpus)
			gpuq_buf_printf(names, " (%s)",
					gpuq_get_str(x->nodes->items[i], "inventory", ""));
	}
	if (n > NAMED)
		gpuq_buf_adds(names, ", ...");
	return n;
}

static bool is_down(const struct gpuq_val *node)
{
	return strcmp(gpuq_get_str(node, "state", ""), "down") == 0 && !is_left_alone(node);
}

static bool is_suspect(const struct gpuq_val *node)
{
	return strcmp(gpuq_get_str(node, "state", ""), "suspect") == 0;
}

static bool has_ill_gpus(const struct gpuq_val *node)
{
	const struct gpuq_val *devices = gpuq_get(node, "devices");

	for (uint32_t i = 0; devices && devices->type == GPUQ_LIST && i < devices->n; i++)
		if (strcmp(gpuq_get_str(devices->items[i], "state", ""), "unhealthy") == 0)
			return true;
	return false;
}

/* True if a pool gets its nodes when jobs want them: none is no fault then. */
static bool grows(struct exam *x)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_val *pools;
	struct gpuq_val *status;

	if (cli_call(x->c, "status.get", NULL, "", &status, &err) < 0)
		return false;
	pools = gpuq_get(status, "pools");
	for (uint32_t i = 0; pools && pools->type == GPUQ_LIST && i < pools->n; i++)
		if (gpuq_get_int(pools->items[i], "max_nodes", 0) > 0)
			return true;
	return false;
}

static void check_nodes(struct exam *x)
{
	static const struct {
		bool (*is)(const struct gpuq_val *node);
		const char *what, *advice;
		bool harmless; /* even if all are so */
	} kinds[] = {
		{ .is = is_left_alone,
		  .what = "left alone, since what is reported there cannot be",
		  .advice =
			  "correct the labels, the annotations or the device plugin; NOTE of gpuq "
			  "nodes -s says what is wrong" },
		{ .is = has_unused_gpus,
		  .what = "without devices that can be used",
		  .advice = "NOTE of gpuq nodes -s says why" },
		{ .is = is_down,
		  .what = "down",
		  .advice = "see why they are not ready: kubectl describe node, or the machine" },
		{ .is = is_suspect,
		  .what = "suspect: pods failed there recently",
		  .advice = "see the events of those pods" },
		{ .is = has_ill_gpus,
		  .what = "with devices that are not healthy",
		  .advice = "look at the driver's log; gpuq drain keeps jobs off meanwhile" },
		{ .is = has_no_gpus,
		  .what = "without devices",
		  .advice = "if they have any, check that the device plugin runs there (local: "
			    "gpuqd --gpus N)",
		  .harmless = true },
	};
	const uint32_t n = x->nodes->n;
	bool well = true;

	if (n == 0 && grows(x)) {
		find(x, GOOD, "nodes", "", "there are no nodes now; pools that can grow get them");
		return;
	}
	if (n == 0) {
		find(x, BAD, "nodes", "check that gpuqd may list nodes, and that pools select them",
		     "there are no nodes");
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct gpuq_buf names = GPUQ_BUF_INIT;
		const int64_t k = name_nodes(x, kinds[i].is, &names);

		if (k)
			find(x, k == n && !kinds[i].harmless ? BAD : WARN, "nodes", kinds[i].advice,
			     "%" PRId64 " of %u node%s %s %s: %s", k, n, line_s(n),
			     k == 1 ? "is" : "are", kinds[i].what, gpuq_buf_str(&names));
		well &= k == 0;
		gpuq_buf_done(&names);
	}
	if (well)
		find(x, GOOD, "nodes", "", "%u node%s, %sready and with devices", n, line_s(n),
		     n == 1 ? "" : "all ");
}

/* True for rights that differ in the API group alone, and have the same answer. */
static bool is_namesake(const struct gpuq_val *a, const struct gpuq_val *b)
{
	static const char *const keys[] = { "feature", "verb", "resource", "namespace" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(gpuq_get_str(a, keys[i], ""), gpuq_get_str(b, keys[i], "")) != 0)
			return false;
	return gpuq_get_bool(a, "asked", false) == gpuq_get_bool(b, "asked", false) &&
	       gpuq_get_bool(a, "allowed", false) == gpuq_get_bool(b, "allowed", false) &&
	       strcmp(gpuq_get_str(a, "group", ""), gpuq_get_str(b, "group", "")) != 0;
}

static bool is_lacking(const struct gpuq_val *r)
{
	return gpuq_get_bool(r, "asked", false) && !gpuq_get_bool(r, "allowed", false);
}

/* Print the name of right i as etc/kubernetes has it. Rights that several API groups have under one name are printed
 * once, with these groups. */
static void name_right(struct gpuq_buf *out, const struct gpuq_val *rows, uint32_t i)
{
	const struct gpuq_val *r = rows->items[i];
	const char *ns = gpuq_get_str(r, "namespace", "");
	struct gpuq_buf groups = GPUQ_BUF_INIT;

	for (uint32_t k = 0; k < rows->n; k++) {
		const struct gpuq_val *o = rows->items[k];

		if (!is_namesake(r, o))
			continue;
		if (k < i) {
			gpuq_buf_done(&groups);
			return; /* it was named there */
		}
		gpuq_buf_printf(&groups, ", %s", gpuq_get_str(o, "group", "?"));
	}
	gpuq_buf_printf(out, "%s%s %s", out->len ? ", " : "", gpuq_get_str(r, "verb", "?"),
			gpuq_get_str(r, "resource", "?"));
	if (groups.len)
		gpuq_buf_printf(out, " (%s%s)", gpuq_get_str(r, "group", "?"),
				gpuq_buf_str(&groups));
	gpuq_buf_done(&groups);
	if (*ns)
		gpuq_buf_printf(out, " in %s", ns);
}

/* A finding for each feature that lacks something. */
static bool check_feature(struct exam *x, const struct gpuq_val *rows, uint32_t first)
{
	const char *feature = gpuq_get_str(rows->items[first], "feature", "?");
	const char *file = gpuq_get_str(rows->items[first], "file", "optional");
	const bool needed = gpuq_get_bool(rows->items[first], "needed", true);
	struct gpuq_buf missing = GPUQ_BUF_INIT, unknown = GPUQ_BUF_INIT;
	bool well;

	for (uint32_t i = first; i < rows->n; i++) {
		const struct gpuq_val *r = rows->items[i];

		if (strcmp(gpuq_get_str(r, "feature", "?"), feature) != 0)
			continue;
		if (!gpuq_get_bool(r, "asked", false))
			name_right(&unknown, rows, i);
		else if (is_lacking(r))
			name_right(&missing, rows, i);
	}
	well = missing.len == 0 && unknown.len == 0;
	if (missing.len)
		find(x, needed ? BAD : WARN, "rights",
		     needed ? "kubectl apply -f etc/kubernetes/base, with a RoleBinding for each "
			      "namespace of jobs"
			    : gpuq_arena_printf(&x->c->arena,
						"grant them if the feature is wanted: "
						"etc/kubernetes/%s",
						file),
		     "%s: the account of gpuqd may not %s", feature, gpuq_buf_str(&missing));
	else if (unknown.len)
		find(x, WARN, "rights", "check whether the apiserver answers",
		     "%s: not known whether the account of gpuqd may %s", feature,
		     gpuq_buf_str(&unknown));
	gpuq_buf_done(&missing);
	gpuq_buf_done(&unknown);
	return well;
}

static void check_account(struct exam *x)
{
	const struct gpuq_val *rows;
	struct gpuq_val *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool well = true;

	if (strcmp(gpuq_get_str(gpuq_get(x->diag, "cluster"), "kind", ""), "kube") != 0 ||
	    strcmp(gpuq_get_str(gpuq_server_info(x->c->conn), "role", ""), "operator") != 0)
		return; /* others may not ask */
	if (cli_call(x->c, "cluster.rights", NULL, "", &reply, &err) < 0) {
		find(x, WARN, "rights", "is it of the same release? see gpuq version", "%s",
		     err.text);
		return;
	}
	x->rights = reply;
	rows = gpuq_get(reply, "rights");
	for (uint32_t i = 0; rows && rows->type == GPUQ_LIST && i < rows->n; i++) {
		bool seen = false;

		for (uint32_t k = 0; k < i && !seen; k++)
			seen = strcmp(gpuq_get_str(rows->items[k], "feature", "?"),
				      gpuq_get_str(rows->items[i], "feature", "?")) == 0;
		if (!seen)
			well &= check_feature(x, rows, i);
	}
	if (well)
		find(x, GOOD, "rights", "", "the account of gpuqd has all rights of all features");
}

static void on_backend(void *arg, const struct doctor_backend *b)
{
	struct exam *x = arg;
	struct gpuq_arena *a = &x->c->arena;
	struct gpuq_val *last;

	find(x, strcmp(b->state, "broken") == 0 ? WARN : GOOD, "backend", b->advice, "%s", b->text);
	last = x->findings->items[x->findings->n - 1];
	gpuq_put(a, last, "backend", gpuq_str(a, b->backend));
	gpuq_put(a, last, "state", gpuq_str(a, b->state));
}

/* Systems that share devices; on the local cluster there are none. */
static void check_backends(struct exam *x)
{
	const struct gpuq_val *cluster = gpuq_get(x->diag, "cluster");

	if (strcmp(gpuq_get_str(cluster, "kind", ""), "kube") == 0 && x->nodes->n)
		doctor_backends(&x->c->arena, x->nodes, x->rights,
				gpuq_get_str(cluster, "requests_fault", ""), on_backend, x);
}

#define POLICY "ValidatingAdmissionPolicy gpuq-devices"
#define POLICIES_FILE "etc/kubernetes/optional/policies.yaml"

/* Names of namespaces of jobs that are managed (1), are not (0), or cannot be seen (-1), with that between them. */
static const char *managed(struct exam *x, int is, const char *between)
{
	static const char what[] = "managed namespace ";
	const struct gpuq_val *list = gpuq_get(x->rights, "things");
	struct gpuq_buf names = GPUQ_BUF_INIT;
	const char *text;

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const char *name = gpuq_get_str(list->items[i], "name", "");

		if (strncmp(name, what, sizeof(what) - 1) == 0 && doctor_has(x->rights, name) == is)
			gpuq_buf_printf(&names, "%s%s", names.len ? between : "",
					name + sizeof(what) - 1);
	}
	text = gpuq_arena_strdup(&x->c->arena, gpuq_buf_str(&names));
	gpuq_buf_done(&names);
	return text ? text : "";
}

/* They are there: whether they also hold. */
static void check_applied(struct exam *x)
{
	const int bound = doctor_has(x->rights, "ValidatingAdmissionPolicyBinding gpuq-devices");
	const char *without = managed(x, 0, ", "), *unseen = managed(x, -1, ", ");

	if (bound == 0)
		find(x, WARN, "policies", "kubectl apply -f " POLICIES_FILE,
		     "nothing is refused in namespaces with label gpuq.io/managed=true: " POLICY
		     " has no binding gpuq-devices that denies there");
	else if (bound < 0 || *unseen)
		find(x, WARN, "policies", "kubectl apply -f " POLICIES_FILE ", which has the right",
		     "whether " POLICY " refuses anything is not known: gpuqd may not get %s%s",
		     bound < 0 ? "its binding" : "namespaces: ", bound < 0 ? "" : unseen);
	if (*without && bound != 0)
		find(x, WARN, "policies",
		     gpuq_arena_printf(&x->c->arena,
				       "kubectl label namespace %s gpuq.io/managed=true",
				       managed(x, 0, " ")),
		     "pods with devices that gpuqd did not create are not refused in namespaces of "
		     "jobs without the label gpuq.io/managed=true: %s",
		     without);
	if (bound > 0 && *managed(x, 1, ", "))
		find(x, GOOD, "policies", "",
		     "pods with devices that gpuqd did not create are refused in namespaces with "
		     "label gpuq.io/managed=true: %s",
		     managed(x, 1, ", "));
}

/* No warning where they are not applied: they are for sites whose users may make pods. */
static void check_policies(struct exam *x)
{
	if (!x->rights || !gpuq_get(x->rights, "things"))
		return; /* others may not ask */
	if (doctor_has(x->rights, POLICY) > 0)
		check_applied(x);
	else
		find(x, GOOD, "policies", "",
		     "not applied: users who may create pods can take devices without "
		     "gpuqd; " POLICIES_FILE " refuses such pods");
}

/* Suspended Jobs of adopted namespaces that Kueue has a Workload of. */
static void check_kueue(struct exam *x)
{
	const struct gpuq_val *list = gpuq_get(x->rights, "held");
	struct gpuq_buf jobs = GPUQ_BUF_INIT;

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		gpuq_buf_printf(&jobs, "%s%s/%s", jobs.len ? ", " : "",
				gpuq_get_str(list->items[i], "namespace", ""),
				gpuq_get_str(list->items[i], "owner", ""));
	if (jobs.len)
		find(x, WARN, "adopt",
		     "have one of the two start them: keep Kueue from the namespace, or take it "
		     "out of "
		     "adopt of the site",
		     "suspended Jobs that a Workload of Kueue holds are left alone: %s",
		     gpuq_buf_str(&jobs));
	gpuq_buf_done(&jobs);
}

static void check_fence(struct exam *x)
{
	const struct gpuq_val *cluster = gpuq_get(x->diag, "cluster");
	const char *by = gpuq_get_str(cluster, "fenced_by", "");
	const char *waits = gpuq_get_str(cluster, "keeps_out", "");

	if (*by)
		find(x, BAD, "fence",
		     "end the one whose state directory is a copy; the other acts 10 s later",
		     "another gpuqd acts under this identity, and this one starts nothing: %s", by);
	else if (*waits)
		find(x, WARN, "fence", "end the one whose state directory is a copy",
		     "another gpuqd with this identity waits to act: %s", waits);
}

static void check_requests(struct exam *x)
{
	const char *why = gpuq_get_str(gpuq_get(x->diag, "cluster"), "requests_fault", "");

	if (*why)
		find(x, WARN, "requests",
		     "on Kubernetes, install ProvisioningRequest and apply "
		     "etc/kubernetes/optional/provisioning.yaml; else remove provisioning from the "
		     "pools",
		     "pools that grow get no nodes by requests: %s", why);
}

/* Without it the apiserver refuses placeholders. */
static void check_placeholders(struct exam *x)
{
	const struct gpuq_val *rows = gpuq_get(x->rights, "rights");
	bool wanted = false;

	for (uint32_t i = 0; rows && rows->type == GPUQ_LIST && i < rows->n; i++)
		wanted |= strcmp(gpuq_get_str(rows->items[i], "feature", ""),
				 "pools of an autoscaler") == 0;
	if (wanted && doctor_has(x->rights, "PriorityClass gpuq-placeholder") <= 0)
		find(x, WARN, "placeholders",
		     "kubectl apply -f etc/kubernetes/optional/autoscaler.yaml",
		     "pools of an autoscaler get no nodes: the cluster has no PriorityClass "
		     "gpuq-placeholder, or gpuqd may not see it");
}

/* Pods that a restored database does not know hold devices, and are not ended automatically. */
static void check_recovery(struct exam *x)
{
	const struct gpuq_val *r, *pods;
	struct gpuq_buf names = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;
	int64_t n, held;

	if (strcmp(gpuq_get_str(gpuq_server_info(x->c->conn), "role", ""), "operator") != 0 ||
	    cli_call(x->c, "recover.get", NULL, "", &reply, &err) < 0)
		return; /* others may not ask, and older servers do not know */
	r = gpuq_get(reply, "recovering");
	pods = gpuq_get(reply, "pods");
	n = gpuq_get_int(reply, "n_pods", 0);
	held = gpuq_get_int(r, "held", 0);
	for (uint32_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n && i < NAMED; i++)
		gpuq_buf_printf(&names, "%s%s (%s)", i ? ", " : "",
				gpuq_get_str(pods->items[i], "name", "?"),
				gpuq_get_str(pods->items[i], "why", "?"));
	if (n > NAMED)
		gpuq_buf_adds(&names, ", ...");
	if (n)
		find(x, WARN, "recovery",
		     "see gpuq recover; delete those that are not needed: kubectl delete pod, or "
		     "kill",
		     "%" PRId64 " pod%s no job of the ledger, and %s kept: %s", n,
		     n == 1 ? " belongs to" : "s belong to", n == 1 ? "is" : "are",
		     gpuq_buf_str(&names));
	if (held)
		find(x, WARN, "recovery", "see gpuq recover, then gpuq release or gpuq cancel",
		     "%" PRId64 " job%s may have ended before the restore, and %s held", held,
		     line_s(held), held == 1 ? "is" : "are");
	if (r && r->type == GPUQ_MAP && !gpuq_get_bool(r, "listed", false))
		find(x, WARN, "recovery", "check whether the apiserver answers",
		     "after a restore nothing starts until the cluster was listed");
	gpuq_buf_done(&names);
}

static void check_scheduler(struct exam *x)
{
	const int64_t failed = figure(x, "scheduler", "failed", 0);
	const int64_t cycles = figure(x, "scheduler", "cycles", 0);
	const int64_t cut = figure(x, "scheduler", "cut_short", 0);

	if (failed)
		find(x, BAD, "scheduler", "see the log of gpuqd for schedule.cycle",
		     "%" PRId64 " cycles failed, %" PRId64 " succeeded", failed, cycles);
	else if (cut)
		find(x, WARN, "scheduler",
		     "some jobs are evaluated later than others: see gpuq diag",
		     "%" PRId64 " of %" PRId64 " cycles reached the bound on their work", cut,
		     cycles);
	else
		find(x, GOOD, "scheduler", "", "%" PRId64 " cycles, the longest took %.1f ms",
		     cycles, (double)figure(x, "scheduler", "most_us", 0) / 1000);
}

/* Report nodes that differ from the site's inventory, or else those that contradict themselves and have some devices:
 * the finding nodes is of those that have none. */
static void find_odd(struct exam *x, bool of_site, const char *advice, const char *what)
{
	static const char site[] = "inventory of the site: ";
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->nodes->n; i++) {
		const struct gpuq_val *node = x->nodes->items[i];
		const char *odd = gpuq_get_str(node, "inventory", "");

		if (!*odd || (strncmp(odd, site, sizeof(site) - 1) == 0) != of_site ||
		    (!of_site && (has_unused_gpus(node) || is_left_alone(node))))
			continue;
		if (++n <= NAMED)
			find(x, WARN, "inventory", advice, "%s: %s",
			     gpuq_get_str(node, "name", "?"), odd);
	}
	if (n > NAMED)
		find(x, WARN, "inventory", "see inventory of gpuq nodes --json", "%u nodes %s", n,
		     what);
}

static void check_inventory(struct exam *x)
{
	find_odd(x, true,
		 "correct inventory of the site, or the labels and the device plugin of the node",
		 "differ from the site's inventory");
	find_odd(x, false,
		 "correct the labels, the device plugin or the ResourceSlices of the node",
		 "offer devices that are not used");
}

static void check_loop(struct exam *x)
{
	const int64_t most_us = figure(x, "loop", "most_us", 0);
	const char *part = gpuq_get_str(gpuq_get(x->diag, "loop"), "most_part", "");

	if (most_us > TURN_LONG_US)
		find(x, WARN, "load", "see gpuq diag; is the machine short of cores or memory?",
		     "the daemon did not answer for %.1f s once%s%s",
		     (double)most_us / (double)GPUQ_US_PER_S, *part ? ": " : "", part);
	else
		find(x, GOOD, "load", "", "the daemon answers within %.0f ms",
		     (double)most_us / 1000);
}

static void check_notify(struct exam *x)
{
	const int64_t waiting = figure(x, "notify", "waiting", 0);
	const int64_t given_up = figure(x, "notify", "given_up", 0);
	const int64_t oldest_us = figure(x, "notify", "oldest_time", 0);
	const int64_t now_us = figure(x, "process", "now_time", 0);
	const char *why = gpuq_get_str(gpuq_get(x->diag, "notify"), "last_error", "");

	if (waiting && oldest_us && now_us - oldest_us > STALE_US && *why)
		find(x, WARN, "notify",
		     "see notify in gpuqd.yaml, and whether the receiver answers",
		     "%" PRId64 " messages are pending, the oldest for %" PRId64
		     " s; last error: %s",
		     waiting, (now_us - oldest_us) / GPUQ_US_PER_S, why);
	else if (given_up)
		find(x, WARN, "notify", "see gpuq events --audit for notify.given_up",
		     "%" PRId64 " messages were dropped%s%s", given_up,
		     *why ? "; last error: " : "", why);
	else
		find(x, GOOD, "notify", "",
		     "%" PRId64 " mails and %" PRId64 " webhooks were delivered",
		     figure(x, "notify", "mails", 0), figure(x, "notify", "webhooks", 0));
}

/* Describe the trouble with the copies, and return the advice; NULL: there is none. */
static const char *backup_trouble(struct exam *x, const struct gpuq_val *b, struct gpuq_buf *text)
{
	const char *target = gpuq_get_str(b, "target", "its target");

	if (gpuq_get_bool(b, "late", false)) {
		gpuq_buf_printf(text, "%s of a backup has not ended since ",
				strcmp(gpuq_get_str(b, "doing", ""), "audit") == 0 ? "the audit"
										   : "the copy");
		view_time(text, gpuq_get(b, "since"));
		return gpuq_arena_printf(&x->c->arena, "check whether %s answers", target);
	}
	if (gpuq_get_int(b, "failed", 0)) {
		gpuq_buf_adds(text, "backups have failed since ");
		view_time(text, gpuq_get(b, "failed_time"));
		if (line_says(gpuq_get(b, "last_error")))
			gpuq_buf_printf(text, ": %s", gpuq_get_str(b, "last_error", ""));
		return "see backup in gpuqd.yaml; gpuqd tries again each minute";
	}
	if (gpuq_get_bool(b, "log_late", false) || gpuq_get_int(b, "log_failed", 0)) {
		gpuq_buf_printf(text, "changes since the last copy do not reach the target%s%s",
				line_says(gpuq_get(b, "log_error")) ? ": " : "",
				gpuq_get_str(b, "log_error", ""));
		return gpuq_arena_printf(&x->c->arena, "check whether %s answers", target);
	}
	if (gpuq_get_bool(b, "damaged", false)) {
		gpuq_buf_printf(text, "a copy is damaged: %s: %s",
				gpuq_get_str(b, "audited", "see gpuq backup list"),
				gpuq_get_str(b, "audit", ""));
		return "restore from another one; check whether the disk of the copies fails";
	}
	if (line_says(gpuq_get(b, "audit_error"))) {
		gpuq_buf_printf(text, "the last copy could not be audited: %s",
				gpuq_get_str(b, "audit_error", ""));
		return "see gpuq backup verify";
	}
	return NULL;
}

/* Quotas that surprise the owners of devices. */
static void check_quotas(struct exam *x)
{
	const struct gpuq_val *q = gpuq_get(x->diag, "quotas");
	const struct gpuq_val *list = gpuq_get(q, "unlimited");
	struct gpuq_buf at = GPUQ_BUF_INIT;

	if (line_says(gpuq_get(q, "default_time"))) {
		view_time(&at, gpuq_get(q, "default_time"));
		find(x, WARN, "quotas",
		     "to let it keep all devices, apply quota: unlimited to it; see "
		     "gpuq-site(5)",
		     "other queues have quotas and default says nothing: it has quota 0 %s %s, and "
		     "its jobs can be preempted",
		     gpuq_get_bool(q, "default_spared", false) ? "from" : "since",
		     gpuq_buf_str(&at));
	}
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (list->items[i]->type == GPUQ_STR)
			find(x, WARN, "quotas", "give it a quota that ends, or none",
			     "queue %s has an unlimited quota beside limited ones: no queue can "
			     "reclaim devices from it",
			     list->items[i]->s);
	gpuq_buf_done(&at);
}

/* Scripts that srun is to run, in pods that may not have it. */
static void check_launch(struct exam *x)
{
	const struct gpuq_val *list = gpuq_get(x->diag, "launch_without_steps");

	if (strcmp(gpuq_get_str(gpuq_get(x->diag, "cluster"), "kind", ""), "kube") != 0)
		return;
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (list->items[i]->type == GPUQ_STR)
			find(x, WARN, "launch", "see steps in gpuq-site(5)",
			     "queue %s has srun run the scripts of several pods (launch: true), "
			     "and "
			     "the site has no steps: their images need gpuq",
			     list->items[i]->s);
}

/* No finding where gpuqd makes no backups by itself. */
static void check_backup(struct exam *x)
{
	const struct gpuq_val *b = gpuq_get(x->diag, "backup");
	const bool overdue = gpuq_get_bool(b, "overdue", false);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const char *advice;

	if (!b || b->type != GPUQ_MAP)
		return;
	advice = backup_trouble(x, b, &text);
	if (!advice && !gpuq_get_bool(b, "listed", false)) {
		gpuq_buf_adds(&text, "the copies have not been listed yet");
		advice = "ask again in a moment";
	}
	if (!advice) {
		gpuq_buf_printf(&text, "%" PRId64 " copies, the last of ",
				gpuq_get_int(b, "copies", 0));
		view_time(&text, gpuq_get(b, "last_time"));
	}
	if (overdue && advice)
		gpuq_buf_adds(&text, "; the last copy is older than twice the interval");
	find(x,
	     !advice                                         ? GOOD
	     : overdue || gpuq_get_bool(b, "damaged", false) ? BAD
							     : WARN,
	     "backup", advice ? advice : "", "%s", gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

/* ---- the examination ---- */

static int on_node(void *arg, const struct gpuq_val *item)
{
	struct exam *x = arg;

	if (item)
		gpuq_add(&x->c->arena, x->nodes, gpuq_val_copy(&x->c->arena, item));
	return 0;
}

static int ask(struct exam *x, struct gpuq_err *err)
{
	struct gpuq_val *diag, *reply;
	int rc;

	x->asked_us = cli_now_us();
	rc = cli_call(x->c, "diag.get", NULL, "", &diag, err);
	x->answered_us = cli_now_us();
	if (rc < 0)
		return rc;
	x->diag = diag;
	return gpuq_stream(x->c->conn, "node.list", NULL, 0, on_node, x, &x->c->arena, &reply, err);
}

static void examine(struct exam *x)
{
	static void (*const checks[])(struct exam *) = {
		check_version,  check_rights,   check_clock,  check_jumps,     check_disk,
		check_cluster,  check_refused,  check_nodes,  check_inventory, check_scheduler,
		check_loop,     check_measured, check_notify, check_account,   check_backends,
		check_policies, check_kueue,    check_fence,  check_requests,  check_placeholders,
		check_recovery, check_backup,   check_quotas, check_launch,
	};
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (cli_connect(x->c, &err) < 0) {
		find(x, BAD, "server",
		     "start gpuqd, or name the right address: --server, $GPUQ_SERVER", "%s",
		     err.text);
		return;
	}
	find(x, GOOD, "server", "", "%s answers",
	     gpuq_get_str(gpuq_server_info(x->c->conn), "server", "gpuqd"));
	if (ask(x, &err) < 0) {
		find(x, BAD, "server", "is it of the same release? see gpuq version", "%s",
		     err.text);
		return;
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](x);
}

static void print_finding(const struct gpuq_val *v)
{
	const char *result = gpuq_get_str(v, "result", "");
	const bool colours = term_colours(stdout) && strcmp(result, "ok") != 0;
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "%-10s ", gpuq_get_str(v, "check", ""));
	term_clean_str(&text, gpuq_get_str(v, "text", ""));
	printf("%s%-8s%s %s\n", colours ? result[0] == 'b' ? "\033[31m" : "\033[33m" : "", result,
	       colours ? "\033[m" : "", gpuq_buf_str(&text));
	if (gpuq_get_str(v, "advice", NULL))
		printf("%-8s %-10s -> %s\n", "", "", gpuq_get_str(v, "advice", ""));
	gpuq_buf_done(&text);
}

int cmd_doctor(struct cli *c)
{
	struct exam x = { .c = c, .nodes = gpuq_list(&c->arena), .findings = gpuq_list(&c->arena) };

	examine(&x);
	for (uint32_t i = 0; i < x.findings->n; i++)
		if (opt_given(&c->args, OPT_JSON))
			out_json(x.findings->items[i]);
		else
			print_finding(x.findings->items[i]);
	return x.bad ? EXIT_REFUSED : EXIT_DONE;
}
