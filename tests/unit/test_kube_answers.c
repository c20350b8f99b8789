#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/watch/known.h"
#include "gpuqd/cluster/kube/loglines.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define STATUS(reason, message)                                                                    \
	"{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

static const struct {
	int code;
	const char *body;
	enum status_kind kind;
	const char *words;
} answers[] = {
	{ 201, "{}", STATUS_DONE, "" },
	{ 404, STATUS("NotFound", "pods \\\"x\\\" not found"), STATUS_GONE,
	  "404: pods \"x\" not found" },
	{ 404, STATUS("NotFound", "namespaces \\\"ml\\\" not found"), STATUS_CLUSTER,
	  "namespaces" },
	{ 409, STATUS("AlreadyExists", "pods \\\"p\\\" already exists"), STATUS_EXISTS, "already" },
	{ 409, STATUS("Conflict", "the UID in the precondition"), STATUS_CONFLICT, "UID" },
	{ 410, STATUS("Expired", "too old resource version"), STATUS_EXPIRED, "too old" },
	{ 403, STATUS("Forbidden", "pods \\\"p\\\" is forbidden: exceeded quota: rq"), STATUS_QUOTA,
	  "rq" },
	{ 403, STATUS("Forbidden", "status unknown for quota: rq"), STATUS_QUOTA, "" },
	{ 403, STATUS("Forbidden", "failed quota: rq: must specify limits.cpu"), STATUS_CLUSTER,
	  "limits.cpu" },
	{ 403, STATUS("Forbidden", "violates PodSecurity \\\"restricted:latest\\\""),
	  STATUS_CLUSTER, "" },
	{ 403, STATUS("Forbidden", "maximum cpu usage per Container is 2"), STATUS_CLUSTER, "" },
	{ 403, STATUS("Forbidden", "rpc error: code = Unavailable"), STATUS_FORBIDDEN, "" },
	{ 403, STATUS("Forbidden", "User \\\"a\\\" cannot get"), STATUS_FORBIDDEN, "" },
	{ 422,
	  "{\"reason\":\"Invalid\",\"message\":\"Pod is "
	  "invalid\",\"details\":{\"causes\":[{\"field\":\"spec.x\","
	  "\"message\":\"must be\"}]}}",
	  STATUS_REFUSED, "422: Pod is invalid; spec.x: must be" },
	{ 400, "bad", STATUS_REFUSED, "400: bad" },
	{ 413, STATUS("RequestEntityTooLarge", "limit is 3145728"), STATUS_REFUSED, "" },
	{ 401, STATUS("Unauthorized", "Unauthorized"), STATUS_LATER, "expired" },
	{ 429, "Too many requests, please try again later.", STATUS_LATER, "429: Too many" },
	{ 503, STATUS("", "apiserver is shutting down"), STATUS_LATER, "" },
	{ 500, STATUS("", "etcdserver: request is too large"), STATUS_REFUSED, "" },
	{ 500, STATUS("InternalError", "oops"), STATUS_UNKNOWN, "" },
	{ 504, STATUS("Timeout", "request did not complete"), STATUS_UNKNOWN, "" },
	{ 504,
	  "{\"message\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
	  "\"ResourceVersionTooLarge\"}]}}",
	  STATUS_EXPIRED, "" },
	{ 502, "<html>\n<b>Bad \x1b[31mGateway", STATUS_UNKNOWN,
	  "502: <html> <b>Bad  [31mGateway" },
};

Test(kube_status, tells_what_an_answer_means)
{
	for (size_t i = 0; i < N(answers); i++) {
		struct http_answer a = { .status = answers[i].code,
					 .complete = true,
					 .body = answers[i].body,
					 .n = strlen(answers[i].body),
					 .error = "" };
		struct status st;

		status_read(&a, &st);
		cr_expect_eq(st.kind, answers[i].kind, "%d %s: %d", answers[i].code,
			     answers[i].body, st.kind);
		cr_expect(strstr(st.text, answers[i].words) != NULL, "%s: %s", answers[i].words,
			  st.text);
	}
}

/* Refusals in the words of real apiservers (1.34 to 1.37), and the object that each names. */
static const struct {
	int code;
	const char *message, *object;
	enum refusal_scope scope;
	const char *level;
} refusals[] = {
	{ 404, "namespaces \\\"ml\\\" not found", "namespace/", REFUSED_NAMESPACE, "" },
	{ 403,
	  "pods \\\"p\\\" is forbidden: unable to create new content in namespace ml because it is "
	  "being terminated",
	  "namespace/", REFUSED_NAMESPACE, "" },
	{ 403,
	  "pods is forbidden: User \\\"system:serviceaccount:gpuq-system:gpuqd\\\" cannot create "
	  "resource \\\"pods\\\" in API group \\\"\\\" in the namespace \\\"ml\\\"",
	  "right/create pods", REFUSED_NAMESPACE, "" },
	{ 403,
	  "pods \\\"p\\\" is forbidden: error looking up service account ml/runner: "
	  "serviceaccount \\\"runner\\\" not found",
	  "serviceaccount/runner", REFUSED_QUEUE, "" },
	{ 403, "pods \\\"p\\\" is forbidden: no PriorityClass with name low was found",
	  "priorityclass/low", REFUSED_QUEUE, "" },
	{ 403, "pods \\\"p\\\" is forbidden: pod rejected: RuntimeClass \\\"nv\\\" not found",
	  "runtimeclass/nv", REFUSED_JOB, "" },
	{ 403,
	  "pods \\\"p\\\" is forbidden: violates PodSecurity \\\"restricted:v1.36\\\": "
	  "runAsNonRoot != true",
	  "namespace/", REFUSED_JOB, "restricted" },
	{ 403, "pods \\\"p\\\" is forbidden: failed quota: rq: must specify limits.cpu for: main",
	  "resourcequota/rq", REFUSED_JOB, "" },
	{ 403, "pods \\\"p\\\" is forbidden: maximum cpu usage per Container is 1, but limit is 2",
	  "limitrange/", REFUSED_JOB, "" },
	{ 500,
	  "Internal error occurred: failed calling webhook \\\"v.example.org\\\": failed to call "
	  "webhook: Post \\\"https://1/\\\": connection refused",
	  "webhook/v.example.org", REFUSED_NAMESPACE, "" },
	{ 400, "admission webhook \\\"v.example.org\\\" denied the request: no label",
	  "webhook/v.example.org", REFUSED_JOB, "" },
	{ 422,
	  "pods \\\"p\\\" is forbidden: ValidatingAdmissionPolicy 'few.example.org' with binding "
	  "'b' denied request: too many",
	  "validatingadmissionpolicy/few.example.org", REFUSED_JOB, "" },
};

Test(kube_status, names_what_refuses_for_reasons_of_its_own)
{
	for (size_t i = 0; i < N(refusals); i++) {
		struct status st;
		char body[600];
		struct http_answer a = {
			.status = refusals[i].code, .complete = true, .body = body, .error = ""
		};

		snprintf(body, sizeof(body), "{\"message\":\"%s\"}", refusals[i].message);
		a.n = strlen(body);
		status_read(&a, &st);
		cr_expect_eq(st.kind, STATUS_CLUSTER, "%s: %d", body, st.kind);
		cr_expect_str_eq(st.object, refusals[i].object);
		cr_expect_eq(st.scope, refusals[i].scope, "%s: scope %d", body, st.scope);
		cr_expect_str_eq(st.level, refusals[i].level);
	}
}

Test(kube_status, no_answer_may_have_happened)
{
	struct http_answer a = { .sent = true, .error = "reset" };
	struct status st;

	status_read(&a, &st);
	cr_expect_eq(st.kind, STATUS_UNKNOWN);
	a.sent = false;
	status_read(&a, &st);
	cr_expect_eq(st.kind, STATUS_LATER);
	a.status = 201; /* and cut off in the middle */
	status_read(&a, &st);
	cr_expect_eq(st.kind, STATUS_UNKNOWN);
}

Test(kube_url, escapes)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	url_object(&b, "n/s", "pods", "a b");
	url_query(&b, "t", "10:00+01~-._\xc3\xa9");
	cr_expect_str_eq(gpuq_buf_str(&b),
			 "/api/v1/namespaces/n%2Fs/pods/a%20b&t=10%3A00%2B01~-._%C3%A9");
	gpuq_buf_done(&b);
}

Test(kube_backoff, doubles_up_to_a_limit)
{
	for (int round = 0; round < 50; round++) {
		struct backoff b = { 0 };
		int64_t want = 800;

		for (int i = 0; i < 100; i++) {
			int64_t got = backoff_next_us(&b, 800, 30000);

			cr_assert(got >= want / 2 && got <= want, "%d: %ld not in [%ld, %ld]", i,
				  (long)got, (long)want / 2, (long)want);
			want = want * 2 < 30000 ? want * 2 : 30000;
		}
	}
}

/* ---- logs ---- */

#define T1 "2026-11-20T08:00:00.5Z "
#define T1LONG "2026-11-20T08:00:00.500000000Z "
#define T2 "2026-11-20T08:00:00.500000001Z "
#define T3 "2026-11-20T08:00:01Z "

static const struct {
	const char *what;
	const char *parts[4]; /* between two of them the connection breaks */
	const char *want;
} logs[] = {
	{ "times are taken off", { T1 "a\n" T2 "b c\n" }, "a\nb c\n" },
	{ "what came already is left out",
	  { T1 "a\n" T2 "b\n", T1 "a\n" T2 "b\n" T3 "c\n", T3 "c\n" },
	  "a\nb\nc\n" },
	{ "several lines of one moment",
	  { T2 "a\n" T2 "b\n", T2 "a\n" T2 "b\n" T2 "c\n" },
	  "a\nb\nc\n" },
	{ "standard output behind standard error that came later",
	  { T2 "err\n" T1 "out\n" T2 "more\n", T1 "out\n" T2 "err\n" T2 "more\n" T3 "c\n" },
	  "err\nout\nmore\nc\n" },
	{ "zeros at the end do not count",
	  { T1 "a\n" T1LONG "b\n", T1 "a\n" T1LONG "b\n" T2 "c\n" },
	  "a\nb\nc\n" },
	{ "a line that was cut comes again", { T1 "a\n" T2 "hal", T2 "half\n" }, "a\nhalhalf\n" },
	{ "cut inside the time", { T1 "a\n2026-11-", T2 "b\n" }, "a\nb\n" },
	{ "a message without a time",
	  { "failed to watch file\n" T1 "a\n" },
	  "failed to watch file\na\n" },
	{ "an empty line", { T1 "\n" T2 "b\n" }, "\nb\n" },
	{ "a line of text like a time",
	  { T1 "2026-11-20T08:00:00Z x\n" },
	  "2026-11-20T08:00:00Z x\n" },
};

Test(kube_logs, hands_each_line_on_once)
{
	for (size_t i = 0; i < N(logs); i++)
		for (size_t chunk = 1; chunk < 100; chunk += 24) {
			struct gpuq_buf out = GPUQ_BUF_INIT;
			struct loglines l;

			loglines_init(&l, false);
			for (size_t k = 0; k < N(logs[i].parts) && logs[i].parts[k]; k++) {
				const char *p = logs[i].parts[k];
				size_t n = strlen(p);

				for (; n > 0;
				     p += chunk < n ? chunk : n, n -= chunk < n ? chunk : n)
					loglines_feed(&l, p, chunk < n ? chunk : n, &out);
				loglines_resume(&l);
			}
			cr_expect_str_eq(gpuq_buf_str(&out), logs[i].want, "%s, chunks of %zu: %s",
					 logs[i].what, chunk, gpuq_buf_str(&out));
			gpuq_buf_done(&out);
		}
}

Test(kube_logs, keeps_times_when_asked)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;
	struct loglines l;

	loglines_init(&l, true);
	loglines_feed(&l, T1 "a\n", strlen(T1 "a\n"), &out);
	cr_expect_str_eq(gpuq_buf_str(&out), T1 "a\n");
	gpuq_buf_done(&out);
}

/* ---- what is known ---- */

static struct gpuq_buf swept;

static void on_swept(void *arg, const struct known_thing *t)
{
	gpuq_buf_printf(&swept, "%s/%s=%s ", t->namespace_, t->name, t->uid);
}

Test(kube_known, sweeps_what_the_last_list_did_not_name)
{
	struct known *k = known_new();
	struct known_thing a = { "n", "a", "u1", "tok", "node", POD_RUNNING, 1 };
	struct known_thing b = { "n", "b", "u2", "", "", POD_PENDING, 1 };

	cr_assert_eq(known_set(k, &a), 0);
	cr_assert_eq(known_set(k, &b), 0);
	a.phase = POD_FAILED;
	a.uid = "u3";
	a.list = 2;
	cr_assert_eq(known_set(k, &a), 0);
	cr_expect_eq(known_count(k), 2);
	cr_expect_str_eq(known_find(k, "n", "a")->uid, "u3");
	cr_expect_eq(known_find(k, "n", "a")->phase, POD_FAILED);
	cr_expect_null(known_find(k, "na", ""));
	known_sweep(k, 2, on_swept, NULL);
	cr_expect_str_eq(gpuq_buf_str(&swept), "n/b=u2 ");
	cr_expect_eq(known_count(k), 1);
	known_drop(k, "n", "a");
	known_drop(k, "n", "a");
	cr_expect_eq(known_count(k), 0);
	known_free(k);
}
