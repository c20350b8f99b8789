/* The Kubernetes side against the fake apiserver: faults that lose answers, history and
 * time, and what is heard and made all the same. A test is a list of steps; each acts,
 * then waits until what it waits for is so. */
#include <criterion/criterion.h>

#include <curl/curl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "libgpuq/buf.h"
#include "libgpuq/units.h"

#define FAKEKUBE "tests/fakekube/fakekube"
#define WAIT_US (30 * GPUQ_US_PER_S)
#define ID "0123abcd"
#define PODS 8

static char dir[] = "/tmp/gpuq-kube-cluster-XXXXXX";
static pid_t fake = -1;
static int port;
static struct loop *loop;
static struct cluster *cluster;
static struct loop_timer *limit, *tick;

/* ---- what was heard ---- */

static struct heard {
	unsigned seen, gone, forgotten, created[ASK_UNKNOWN + 1], deleted[ASK_UNKNOWN + 1];
	enum pod_phase phase;
	int exit_code;
	char uid[64];
} pods[PODS];
static unsigned nodes_seen, nodes_gone, lists;
static struct { /* of pods of others */
	unsigned heard, single; /* single: of f-0 */
	unsigned turns; /* of the loop, in which f-0 was heard of */
	unsigned rests; /* how often the reader was told that it may rest */
	bool calm, turn;
} foreign;
static struct gpuq_buf log_text;
static bool log_ended, log_broke;

/* gpuq-ID-JOB-0-INDEX: the job's number is the place. */
static struct heard *of(const char *name)
{
	static struct heard other;
	unsigned job = 0;

	if (sscanf(name, "gpuq-" ID "-%u-", &job) != 1 || job >= PODS)
		return &other;
	return &pods[job];
}

static void node_seen(void *arg, const struct node_fact *n)
{
	nodes_seen++;
}

static void node_gone(void *arg, const char *name)
{
	nodes_gone++;
}

static void pod_seen(void *arg, const struct pod_fact *p)
{
	struct heard *h = of(p->name);

	if (strcmp(p->namespace_, "foreign") == 0) {
		foreign.heard++;
		if (strcmp(p->name, "f-0") == 0) {
			foreign.single++;
			foreign.turns += !foreign.turn;
			foreign.turn = true;
		}
	}
	h->seen++;
	h->phase = p->phase;
	h->exit_code = p->exit_code;
	snprintf(h->uid, sizeof(h->uid), "%s", p->uid);
}

static void pod_gone(void *arg, const struct pod_fact *p)
{
	of(p->name)->gone++;
}

static void list_done(void *arg)
{
	lists++;
}

static void stale(void *arg, int64_t since_us, const char *why)
{
}

static void created(void *arg, const char *pod, enum ask_outcome o, const char *uid,
		    const char *message)
{
	of(pod)->created[o]++;
}

static void deleted(void *arg, const char *pod, enum ask_outcome o, const char *message)
{
	of(pod)->deleted[o]++;
}

static void job_forgotten(void *arg, uint32_t job, int64_t array_index)
{
	if (job < PODS && array_index == -1)
		pods[job].forgotten++;
}

static bool calm(void *arg)
{
	foreign.rests += foreign.calm;
	return foreign.calm;
}

static const struct cluster_sink sink = { .node_seen = node_seen,
					  .node_gone = node_gone,
					  .pod_seen = pod_seen,
					  .pod_gone = pod_gone,
					  .list_done = list_done,
					  .stale = stale,
					  .created = created,
					  .deleted = deleted,
					  .calm = calm,
					  .job_forgotten = job_forgotten };

/* ---- the server ---- */

static size_t keep(char *p, size_t size, size_t n, void *arg)
{
	gpuq_buf_add(arg, p, size * n);
	return size * n;
}

/* A request of the test's own; returns the status. */
static long http(const char *path, const char *body, struct gpuq_buf *out)
{
	struct gpuq_buf nothing = GPUQ_BUF_INIT;
	struct curl_slist *h = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *c = curl_easy_init();
	char url[300];
	long status = 0;

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, out ? out : &nothing);
	if (body) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, h);
	}
	curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	curl_slist_free_all(h);
	gpuq_buf_done(&nothing);
	return status;
}

static void fault(const char *lines)
{
	cr_assert_eq(http("/fake/fault", lines, NULL), 200, "%s", lines);
}

static json_int_t audit(const char *count)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	json_t *v;
	json_int_t n;

	cr_assert_eq(http("/fake/audit", NULL, &b), 200);
	v = json_loadb(b.data, b.len, 0, NULL);
	cr_assert_not_null(json_object_get(v, count), "no count %s", count);
	n = json_integer_value(json_object_get(v, count));
	json_decref(v);
	gpuq_buf_done(&b);
	return n;
}

static const char *path(const char *name)
{
	static char p[3][128];
	static unsigned i;
	char *out = p[i++ % 3];

	snprintf(out, sizeof(p[0]), "%s/%s", dir, name);
	return out;
}

static void start(const char *script)
{
	struct cluster_kube_opts o = { .cluster_id = ID };
	struct gpuq_err err = GPUQ_ERR_INIT;
	FILE *f;

	if (access(FAKEKUBE, X_OK) != 0)
		cr_skip_test("%s is not built\n", FAKEKUBE);
	cr_assert_not_null(mkdtemp(dir));
	f = fopen(path("script"), "w");
	fputs(script, f);
	fclose(f);
	fake = fork();
	if (fake == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(FAKEKUBE, FAKEKUBE, "--nodes", "2", "--port-file", path("port"),
		      "--kubeconfig", path("kubeconfig"), "--script", path("script"), (char *)NULL);
		_exit(127);
	}
	for (int i = 0;
	     i < 1000 && (access(path("kubeconfig"), R_OK) != 0 || access(path("port"), R_OK) != 0);
	     i++)
		usleep(10000);
	f = fopen(path("port"), "r");
	cr_assert(f && fscanf(f, "%d", &port) == 1, "fakekube has not come up");
	fclose(f);
	signal(SIGPIPE, SIG_IGN);
	log_init(LOG_L_ERR);
	o.kubeconfig = path("kubeconfig");
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(cluster_kube_new(loop, &o, &cluster, &err), 0, "%s", err.text);
	cr_assert_eq(cluster->ops->start(cluster, &sink, &err), 0, "%s", err.text);
}

static void fini(void)
{
	static const char *const files[] = { "script", "port", "kubeconfig" };

	if (cluster)
		cluster->ops->free(cluster);
	loop_cancel(limit);
	loop_cancel(tick);
	if (loop)
		loop_free(loop);
	if (fake > 0) {
		kill(fake, SIGKILL);
		waitpid(fake, NULL, 0);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(path(files[i]));
	rmdir(dir);
	gpuq_buf_done(&log_text);
}

/* ---- steps ---- */

struct step {
	const char *until;
	void (*act)(void);
	bool (*done)(void);
};

static const struct step *now;
static bool acted;

static void on_limit(void *arg)
{
	limit = NULL;
	loop_stop(loop, 1);
}

static void on_tick(void *arg)
{
	tick = loop_after(loop, 20000, on_tick, NULL);
}

static void on_turn(void *arg)
{
	foreign.turn = false;
	while (now->until) {
		if (!acted && now->act)
			now->act();
		acted = true;
		if (!now->done())
			return;
		now++;
		acted = false;
	}
	loop_stop(loop, 0);
}

static void run(const struct step *steps)
{
	now = steps;
	loop_add_hook(loop, on_turn, NULL);
	limit = loop_after(loop, WAIT_US, on_limit, NULL);
	on_tick(NULL);
	cr_assert_eq(loop_run(loop), 0, "waited in vain until %s", now->until);
}

static bool listed(void)
{
	return lists > 0;
}

/* ---- what is asked ---- */

static const char *token = "00112233445566778899aabbccddeeff";
static unsigned attempt;

static void create(unsigned job, unsigned n_pods, int gpus, const char *note, const char *script)
{
	struct gpuq_group g = { .name = "main", .gpus_milli = gpus * 1000 };
	struct gpuq_spec spec = { .name = "t", .groups = &g, .n_groups = 1, .script = script };
	const char *keys[] = { note }, *vals[] = { "true" };
	char names[2][64];
	const char *list[2] = { names[0], names[1] };
	struct pod_order o = { .token = token,
			       .cluster_id = ID,
			       .namespace_ = "",
			       .service_account = "",
			       .priority_class = "",
			       .image = "i",
			       .node = "node-0000",
			       .job = job,
			       .attempt = attempt,
			       .array_index = -1,
			       .n_pods = n_pods,
			       .pod_names = list,
			       .spec = &spec,
			       .time_limit_us = GPUQ_UNLIMITED,
			       .grace_us = GPUQ_US_PER_S };

	spec.script_bytes = script ? strlen(script) : 0;
	if (note)
		spec.annotations = (struct gpuq_strmap){ keys, vals, 1 };
	for (unsigned i = 0; i < n_pods; i++)
		snprintf(names[i], sizeof(names[i]), "gpuq-" ID "-%u-0-%u", job, i);
	for (unsigned i = 0; i < n_pods; i++) {
		o.name = names[i];
		o.index = o.group_index = i;
		cluster->ops->pod_create(cluster, &o);
	}
}

static void delete (unsigned job, const char *uid)
{
	char name[64];
	struct pod_ref ref = {
		.name = name, .namespace_ = "", .uid = uid, .node = "", .token = token
	};

	snprintf(name, sizeof(name), "gpuq-" ID "-%u-0-0", job);
	cluster->ops->pod_delete(cluster, &ref, GPUQ_US_PER_S);
}

static void hang_three(void)
{
	for (unsigned job = 1; job <= 3; job++)
		create(job, 1, 1, "gpuq.test/hang", NULL);
}

static bool three_ok(void)
{
	return pods[1].created[ASK_OK] && pods[2].created[ASK_OK] && pods[3].created[ASK_OK];
}

static bool three_run(void)
{
	return three_ok() && pods[1].phase == POD_RUNNING && pods[2].phase == POD_RUNNING &&
	       pods[3].phase == POD_RUNNING;
}

/* ---- tests ---- */

Test(kube_cluster, a_lost_answer_makes_no_second_pod, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "three pods run", hang_three, three_run },
					     { 0 } };

	start("on POST pods nth=1 drop-after-commit\n"
	      "on POST pods nth=2 drop-before-commit\n"
	      "on POST pods nth=3 status=500\n"
	      "on GET pods nth=1 status=503\n");
	run(steps);
	cr_expect_eq(audit("creates"), 3);
	cr_expect_eq(audit("duplicates"), 0);
	cr_expect_geq(pods[1].created[ASK_UNKNOWN] + pods[2].created[ASK_UNKNOWN] +
			      pods[3].created[ASK_UNKNOWN],
		      2, "a lost answer is told");
	for (unsigned job = 1; job <= 3; job++)
		cr_expect_eq(pods[job].created[ASK_OK], 1, "told once");
}

static void take_the_name(void)
{
	create(1, 1, 1, "gpuq.test/hang", NULL);
}

static bool one_ok(void)
{
	return pods[1].created[ASK_OK] > 0;
}

static void the_same_again(void)
{
	create(1, 1, 1, "gpuq.test/hang", NULL);
}

static bool twice_ok(void)
{
	return pods[1].created[ASK_OK] == 2;
}

static void another_token(void)
{
	token = "ffffffffffffffffffffffffffffffff";
	create(1, 1, 1, "gpuq.test/hang", NULL);
}

static bool conflict(void)
{
	return pods[1].created[ASK_CONFLICT] > 0;
}

Test(kube_cluster, a_name_is_ours_by_its_token, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "it is there", take_the_name, one_ok },
					     { "asked again it is ours", the_same_again, twice_ok },
					     { "it is not another's", another_token, conflict },
					     { 0 } };

	start("");
	run(steps);
	cr_expect_eq(audit("creates"), 1);
}

static void fill_the_quota(void)
{
	cr_assert_eq(http("/api/v1/namespaces/default/resourcequotas",
			  "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"metadata\":{"
			  "\"name\":\"q\"},"
			  "\"spec\":{\"hard\":{\"requests.nvidia.com/gpu\":\"1\"}}}",
			  NULL),
		     201);
	create(1, 1, 1, "gpuq.test/hang", NULL);
}

static void one_too_many(void)
{
	create(2, 1, 1, NULL, NULL);
	create(1, 1, 1, "gpuq.test/hang", NULL); /* as after a restart */
}

static bool quota(void)
{
	return pods[2].created[ASK_QUOTA] && pods[1].created[ASK_OK] == 2;
}

Test(kube_cluster, a_full_quota_is_told_from_our_own_pod_in_it, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "the quota is full", fill_the_quota, one_ok },
					     { "one is refused, one is there", one_too_many,
					       quota },
					     { 0 } };

	start("");
	run(steps);
	cr_expect_eq(pods[1].created[ASK_QUOTA], 0);
	cr_expect_eq(audit("creates"), 1);
}

static void delete_with_a_wrong_uid(void)
{
	delete (1, "00000000-0000-0000-0000-000000000000");
}

static bool told_deleted(void)
{
	return pods[1].deleted[ASK_OK] > 0;
}

static void delete_all(void)
{
	delete (1, pods[1].uid);
	delete (2, "");
	token = "ffffffffffffffffffffffffffffffff";
	delete (3, "");
}

static bool two_gone(void)
{
	return pods[1].gone && pods[2].gone && pods[1].deleted[ASK_OK] == 2 &&
	       pods[2].deleted[ASK_OK] && pods[3].deleted[ASK_OK];
}

Test(kube_cluster, a_delete_never_meets_another, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "three pods run", hang_three, three_run },
					     { "a wrong uid is told as gone",
					       delete_with_a_wrong_uid, told_deleted },
					     { "two are gone", delete_all, two_gone },
					     { 0 } };

	start("on DELETE pods nth=2 drop-after-commit\non DELETE pods nth=3 status=429 "
	      "retry-after=1\n");
	run(steps);
	cr_expect_eq(audit("live"), 1, "the pod with another token lives on");
	cr_expect_eq(pods[3].gone, 0);
}

static void forget_history(void)
{
	nodes_seen = lists = 0;
	fault("close-watches\ndelete-pod default/gpuq-" ID "-2-0-0 grace=0\ncompact\n");
}

static bool found_out(void)
{
	return lists > 0 && pods[2].gone;
}

Test(kube_cluster, what_went_while_nobody_looked_is_reported, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "three pods run", hang_three, three_run },
					     { "a new list tells", forget_history, found_out },
					     { 0 } };

	start("");
	run(steps);
	cr_expect_eq(pods[2].gone, 1);
	cr_expect_eq(pods[1].gone + pods[3].gone, 0);
}

static bool nodes_twice(void)
{
	return nodes_seen >= 4 && lists > 0;
}

static void nothing(void)
{
}

/* An object that was not named since the last list_done is gone. */
Test(kube_cluster, a_new_list_of_nodes_is_no_list_of_pods, .fini = fini)
{
	static const struct step steps[] = { { "nodes were listed twice", nothing, nodes_twice },
					     { 0 } };

	start("on WATCH nodes gone count=1\n");
	run(steps);
	cr_expect_eq(lists, 1);
}

static void rewind_all(void)
{
	lists = 0;
	fault("rewind to=8\n");
}

static bool nothing_left(void)
{
	return lists > 0 && pods[1].gone && pods[2].gone && pods[3].gone;
}

Test(kube_cluster, a_restored_cluster_is_listed_anew, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "three pods run", hang_three, three_run },
					     { "what was taken back is gone", rewind_all,
					       nothing_left },
					     { 0 } };

	start("");
	run(steps);
}

static void gang_with_script(void)
{
	create(1, 2, 0, NULL, "#!/bin/sh\ntrue\n");
}

static bool gang_ok(void)
{
	return pods[1].created[ASK_OK] == 2;
}

#define CM "/api/v1/namespaces/default/configmaps/gpuq-" ID "-1-script"
#define SVC "/api/v1/namespaces/default/services/gpuq-" ID "-1"

static void forget_job(void)
{
	cr_expect_eq(http(CM, NULL, NULL), 200);
	cr_expect_eq(http(SVC, NULL, NULL), 200);
	cluster->ops->job_forget(cluster, 1, -1, "");
	cluster->ops->job_forget(cluster, 1, -1, "");
}

static bool nothing_beside(void)
{
	return pods[1].forgotten == 1 && http(CM, NULL, NULL) == 404 &&
	       http(SVC, NULL, NULL) == 404;
}

Test(kube_cluster, what_a_gang_needs_comes_and_goes_with_its_job, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "both pods are there", gang_with_script, gang_ok },
					     { "nothing is left", forget_job, nothing_beside },
					     { 0 } };

	start("on POST configmaps nth=1 drop-after-commit\non POST services nth=1 status=500\n"
	      "on DELETE services nth=1 drop-after-commit\n");
	run(steps);
	cr_expect_eq(audit("creates"), 2);
}

/* An elastic job of two pods was another process's; its next attempt has one. */
static void smaller_attempt(void)
{
	attempt = 1;
	cr_expect_eq(http("/api/v1/namespaces/default/services",
			  "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": "
			  "{\"name\": \"gpuq-" ID "-1\"}, \"spec\": {\"clusterIP\": \"None\"}}",
			  NULL),
		     201);
	create(1, 1, 0, NULL, NULL);
}

static bool smaller_ok(void)
{
	return pods[1].created[ASK_OK] == 1;
}

static void forget_smaller(void)
{
	cr_expect_eq(http(SVC, NULL, NULL), 200);
	cluster->ops->job_forget(cluster, 1, -1, "");
}

static bool no_service(void)
{
	return pods[1].forgotten == 1 && http(SVC, NULL, NULL) == 404;
}

Test(kube_cluster, what_another_process_made_for_a_larger_attempt_goes, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "its pod is there", smaller_attempt, smaller_ok },
					     { "the service is gone", forget_smaller, no_service },
					     { 0 } };

	start("");
	run(steps);
}

/* Evicted before it was created: it must not appear later. */
static void create_and_delete(void)
{
	create(1, 1, 1, "gpuq.test/hang", NULL);
	delete (1, "");
	create(2, 1, 1, "gpuq.test/hang", "#!/bin/sh\n");
	delete (2, "");
}

static bool both_left(void)
{
	return pods[1].deleted[ASK_OK] && pods[2].deleted[ASK_OK] && audit("live") == 0;
}

Test(kube_cluster, a_pod_told_to_leave_while_it_is_made_leaves, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "none lives", create_and_delete, both_left },
					     { 0 } };

	start("on POST pods nth=1 delay-after=300ms\n");
	run(steps);
	cr_expect_eq(pods[2].created[ASK_OK], 0);
}

#define MANY 2000
#define SINGLE 60
#define REST_US INT64_C(100000) /* of watch.c */

static int64_t single_us;
static unsigned n_single;
static struct loop_timer *single_timer;

/* One request: they are all there at once. */
static void many_foreign(void)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	foreign.calm = true;
	for (unsigned i = 0; i < MANY; i++)
		gpuq_buf_printf(&b, "foreign node-0000 gpus=0 name=f-%u\n", i);
	fault(gpuq_buf_str(&b));
	gpuq_buf_done(&b);
}

static bool many_heard(void)
{
	return foreign.heard >= MANY;
}

static void on_single(void *arg)
{
	single_timer = NULL;
	fault("label-pod foreign/f-0 a=b\n");
	if (++n_single < SINGLE)
		single_timer = loop_after(loop, 10000, on_single, NULL);
}

static void one_by_one(void)
{
	cr_expect_lt(foreign.rests, 20, "megabytes that lie there are read before there is a rest");
	foreign.single = foreign.turns = 0;
	single_us = loop_mono_us(loop);
	on_single(NULL);
}

static bool singles_heard(void)
{
	return foreign.single >= SINGLE;
}

Test(kube_cluster, changes_of_others_are_read_together_while_nothing_waits, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "all are heard of", many_foreign, many_heard },
					     { "these too", one_by_one, singles_heard },
					     { 0 } };

	start("");
	run(steps);
	loop_cancel(single_timer);
	single_us = loop_mono_us(loop) - single_us;
	cr_expect_leq(foreign.turns, 2 * (single_us / REST_US) + 5, "%u in %d ms", foreign.turns,
		      (int)(single_us / 1000));
}

static bool log_bytes(void *arg, const char *bytes, size_t n, const struct gpuq_err *err)
{
	gpuq_buf_add(&log_text, bytes, n);
	log_ended = n == 0;
	log_broke = err != NULL;
	if (log_ended)
		cluster->ops->log_close(*(struct cluster_log **)arg);
	return true;
}

static void read_log(void)
{
	static const char pod[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"gpuq-" ID
		"-1-0-0\",\"annotations\":"
		"{\"gpuq.test/run\":\"1s\",\"gpuq.test/log\":\"a\\nb\\nc\\nd\\ne\\nf\",\"gpuq.test/"
		"log-every\":\"100ms\"}},"
		"\"spec\":{\"nodeName\":\"node-0000\",\"containers\":[{\"name\":\"c\",\"image\":"
		"\"i\"}]}}";
	static struct cluster_log *log;
	struct pod_ref ref = {
		.name = "gpuq-" ID "-1-0-0", .namespace_ = "", .uid = "", .node = "", .token = ""
	};
	struct log_opts opts = { .follow = true, .tail_lines = -1 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	log = cluster->ops->log_open(cluster, &ref, &opts, log_bytes, &log, &err);
	cr_assert_not_null(log, "%s", err.text);
	cr_assert_eq(http("/api/v1/namespaces/default/pods", pod, NULL), 201);
}

static bool log_over(void)
{
	return log_ended;
}

Test(kube_cluster, a_log_is_read_once_over_broken_connections, .fini = fini)
{
	static const struct step steps[] = { { "the lists are in", NULL, listed },
					     { "the log is over", read_log, log_over },
					     { 0 } };

	start("on GET pods/log every=3 close after=70\non GET pods/log nth=5 drop-before-commit\n");
	run(steps);
	cr_expect_not(log_broke);
	cr_expect_str_eq(gpuq_buf_str(&log_text), "a\nb\nc\nd\ne\nf\n");
}
