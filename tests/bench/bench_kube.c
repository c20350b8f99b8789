/* The whole path on a real apiserver, beside the apiserver's own limit.
 *
 *   bench_kube raw URL CA TOKENFILE NAMESPACE N
 *        N pods in a tight loop over one HTTP/2 connection, 100 under way
 *   bench_kube jobs URL CA TOKENFILE NAMESPACE N SERVER
 *        N one-device jobs that were held are released in a running gpuqd
 *   bench_kube gang URL CA TOKENFILE NAMESPACE N SERVER GANG GRACE_S
 *        N one-device jobs of queue `batch`, each of which needs all of its grace to
 *        leave, fill the cluster; then a gang of GANG pods arrives in queue `prod`
 *
 * raw and jobs print the seconds from the first creation to the last one, and to the moment
 * when the server has no pod that does not run. gang prints the seconds from the gang's
 * submission to the start of its last pod less the grace, and how many were evicted. The
 * pods name their nodes (node1..) in all cases, so that the simulated nodes do the same work
 * beside them. Nothing is waited for longer than LIMIT_S.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "libgpuq/buf.h"
#include "libgpuq/client.h"
#include "libgpuq/spec.h"

#define UNDER_WAY 100
#define LIMIT_S 300
#define SPECS_A_CALL 500

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_kube: %s: %s\n", what, why);
	exit(1);
}

static size_t drop(char *p, size_t size, size_t n, void *arg)
{
	(void)p, (void)arg;
	return size * n;
}

struct access {
	const char *url, *ca, *namespace_;
	struct curl_slist *headers;
};

static void access_init(struct access *a, char **argv)
{
	static char token[4096], auth[4200];
	FILE *f = fopen(argv[2], "re");

	if (!f || !fgets(token, sizeof(token), f))
		die(argv[2], "cannot be read");
	fclose(f);
	token[strcspn(token, "\n")] = '\0';
	snprintf(auth, sizeof(auth), "Authorization: Bearer %s", token);
	a->url = argv[0];
	a->ca = argv[1];
	a->namespace_ = argv[3];
	a->headers = curl_slist_append(NULL, auth);
	a->headers = curl_slist_append(a->headers, "Content-Type: application/json");
	a->headers = curl_slist_append(a->headers, "User-Agent: gpuq-bench");
}

static CURL *handle(const struct access *a)
{
	CURL *easy = curl_easy_init();

	curl_easy_setopt(easy, CURLOPT_CAINFO, a->ca);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, a->headers);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, 30L);
	return easy;
}

static size_t keep_start(char *p, size_t size, size_t n, void *arg)
{
	struct gpuq_buf *b = arg;

	if (b->len < 4096)
		gpuq_buf_add(b, p, size * n);
	return size * n;
}

/* The server's word, not gpuqd's: no pod is left that does not run. */
static void wait_running(const struct access *a)
{
	struct gpuq_buf body = GPUQ_BUF_INIT;
	double limit = now_s() + LIMIT_S;
	CURL *easy = handle(a);
	char url[512];

	snprintf(url, sizeof(url),
		 "%s/api/v1/namespaces/%s/pods?limit=1&fieldSelector=status.phase!=Running", a->url,
		 a->namespace_);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_start);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
	for (;;) {
		struct timespec nap = { .tv_nsec = 50000000 };
		CURLcode rc;

		gpuq_buf_clear(&body);
		rc = curl_easy_perform(easy);
		if (rc != CURLE_OK)
			die("list", curl_easy_strerror(rc));
		if (strstr(gpuq_buf_str(&body), "\"items\":[]"))
			break;
		if (now_s() > limit)
			die("list", "some pods do not run");
		nanosleep(&nap, NULL);
	}
	curl_easy_cleanup(easy);
	gpuq_buf_done(&body);
}

struct slot {
	CURL *easy;
	char body[1024];
};

static void post(CURLM *multi, struct slot *s, const char *url, int i)
{
	snprintf(s->body, sizeof(s->body),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"raw-%d\","
		 "\"labels\":{\"gpuq.io/job\":\"%d\",\"gpuq.io/attempt\":\"0\"},\"annotations\":{"
		 "\"gpuq.test/run\":\"600s\",\"gpuq.io/"
		 "token\":\"0123456789abcdef0123456789abcdef\"}},"
		 "\"spec\":{\"nodeName\":\"node%d\",\"restartPolicy\":\"Never\",\"containers\":[{"
		 "\"name\":"
		 "\"main\",\"image\":\"busybox\",\"command\":[\"sleep\",\"600\"],\"resources\":{"
		 "\"limits\":{"
		 "\"nvidia.com/gpu\":\"1\"}}}]}}",
		 i, i, 1 + i / 8);
	curl_easy_setopt(s->easy, CURLOPT_URL, url);
	curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, s->body);
	curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(s->body));
	curl_multi_add_handle(multi, s->easy);
}

static int raw(const struct access *a, int n)
{
	static struct slot slots[UNDER_WAY];
	CURLM *multi = curl_multi_init();
	int sent = 0, done = 0, running, left;
	char url[512];
	double start, made;
	CURLMsg *msg;

	snprintf(url, sizeof(url), "%s/api/v1/namespaces/%s/pods", a->url, a->namespace_);
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
	start = now_s();
	for (int i = 0; i < UNDER_WAY && sent < n; i++) {
		struct slot *s = &slots[i];

		s->easy = handle(a);
		curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, drop);
		curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
		post(multi, s, url, sent++);
	}
	while (done < n) {
		curl_multi_perform(multi, &running);
		while ((msg = curl_multi_info_read(multi, &left)) != NULL) {
			CURL *easy = msg->easy_handle;
			CURLcode rc = msg->data.result;
			struct slot *s;
			long code = 0;

			if (msg->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
			curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&s);
			curl_multi_remove_handle(multi, easy);
			if (rc != CURLE_OK || code != 201) {
				char why[64];

				snprintf(why, sizeof(why), "status %ld, %s", code,
					 curl_easy_strerror(rc));
				die("create", why);
			}
			done++;
			if (sent < n)
				post(multi, s, url, sent++);
		}
		if (done < n)
			curl_multi_poll(multi, NULL, 0, 100, NULL);
	}
	made = now_s() - start;
	wait_running(a);
	printf("%.3f %.3f\n", made, now_s() - start);
	return 0;
}

/* ---- through gpuqd ---- */

static struct gpuq *connect_to(const char *server)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq *g = NULL;

	if (gpuq_connect(server, "bench_kube", 0, &g, &err) < 0)
		die(server, err.text);
	return g;
}

/* n alike jobs of this text; their ids are added to the list `ids` of `keep`. */
static void submit(struct gpuq *g, const char *text, int n, struct gpuq_arena *keep,
		   struct gpuq_val *ids)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec_opts opts = { .file = "bench" };

	for (int left = n; left > 0; left -= SPECS_A_CALL) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v = gpuq_map(&a), *list = gpuq_list(&a), *reply;
		const struct gpuq_val *jobs;
		struct gpuq_specs specs;
		char id[24];

		if (gpuq_specs_read(&a, &opts, text, strlen(text), &specs, NULL, &err) < 0)
			die("job", err.text);
		for (int i = 0; i < left && i < SPECS_A_CALL; i++)
			gpuq_add(&a, list, gpuq_spec_write(&a, &specs.items[0]));
		gpuq_put(&a, v, "specs", list);
		if (gpuq_call(g, "job.submit", v, NULL, 0, &a, &reply, &err) < 0)
			die("submit", err.text);
		jobs = gpuq_get(reply, "jobs");
		for (uint32_t i = 0; jobs && i < jobs->n; i++) {
			snprintf(id, sizeof(id), "%" PRId64, gpuq_get_int(jobs->items[i], "id", 0));
			gpuq_add(keep, ids, gpuq_str(keep, id));
		}
		gpuq_arena_done(&a);
	}
}

struct seen {
	struct gpuq *g; /* to act with, once the watch stands */
	void (*begin)(struct seen *s);
	struct gpuq_arena mem;
	struct gpuq_val *ids; /* of the jobs to be released, or of the gang */
	const char *text; /* of the gang */
	bool begun;
	int want; /* events of kind `counted` */
	const char *counted, *of; /* of: this job only; NULL = any */
	int n, evicted;
	double limit, first, last, quiet; /* quiet: the watch ends that long after the last */
};

static void release(struct seen *s)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = gpuq_map(&a), *reply;

	gpuq_put(&a, v, "ids", s->ids);
	if (gpuq_call(s->g, "job.release", v, NULL, 0, &a, &reply, &err) < 0)
		die("release", err.text);
	gpuq_arena_done(&a);
}

static void submit_gang(struct seen *s)
{
	s->first = now_s();
	submit(s->g, s->text, 1, &s->mem, s->ids);
	s->of = s->ids->items[0]->s;
}

static int on_event(void *arg, const struct gpuq_val *item)
{
	struct seen *s = arg;
	const char *what = gpuq_get_str(item, "event", "");

	if (!item) {
		if (!s->begun) {
			s->begun = true;
			s->begin(s);
		}
		if (now_s() > s->limit)
			return GPUQ_ETIMEOUT;
		return s->n == s->want && now_s() > s->last + s->quiet ? 1 : 0;
	}
	if (!s->begun)
		return 0;
	if (strcmp(what, "job.placed") == 0 && !s->first)
		s->first = now_s();
	s->evicted += strcmp(what, "job.evict_asked") == 0;
	if (strcmp(what, s->counted) == 0 &&
	    (!s->of || strcmp(gpuq_get_str(item, "job", ""), s->of) == 0) && s->n < s->want) {
		s->n++;
		s->last = now_s();
	}
	return s->n == s->want && !s->quiet ? 1 : 0;
}

static void watch(struct seen *s, const char *server)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq *g = connect_to(server);
	struct gpuq_val *reply;
	char why[96];
	int rc;

	s->limit = now_s() + LIMIT_S;
	rc = gpuq_stream(g, "event.watch", NULL, 200000, on_event, s, &a, &reply, &err);
	if (rc == GPUQ_ETIMEOUT) {
		snprintf(why, sizeof(why), "%d of %d times %s", s->n, s->want, s->counted);
		die("watch", why);
	}
	if (rc != 1)
		die("watch", rc < 0 ? err.text : "ended");
	gpuq_close(g);
	gpuq_arena_done(&a);
}

static void seen_init(struct seen *s, const char *server)
{
	s->g = connect_to(server);
	s->ids = gpuq_list(&s->mem);
}

static void seen_done(struct seen *s)
{
	gpuq_close(s->g);
	gpuq_arena_done(&s->mem);
}

static int jobs(const struct access *a, int n, const char *server)
{
	struct seen s = { .begin = release, .want = n, .counted = "pod.created" };

	seen_init(&s, server);
	submit(s.g,
	       "{name: bench, gpus: 1, image: busybox, command: [sleep, '600'], hold: true,"
	       " annotations: {gpuq.test/run: 600s}}",
	       n, &s.mem, s.ids);
	watch(&s, server);
	wait_running(a);
	printf("%.3f %.3f\n", s.last - s.first, now_s() - s.first);
	seen_done(&s);
	return 0;
}

/* Nobody needs less than all of the grace, so what is beyond it is ours. */
static int gang(const struct access *a, int n, const char *server, int size, int grace_s)
{
	struct seen fill = { .begin = release, .want = n, .counted = "pod.started" };
	struct seen take = {
		.begin = submit_gang, .want = size, .counted = "pod.started", .quiet = 2
	};
	char text[512];

	seen_init(&fill, server);
	snprintf(text, sizeof(text),
		 "{name: fill, queue: batch, gpus: 1, image: busybox, command: [sleep, '600'], "
		 "hold: true,"
		 " grace: %ds, annotations: {gpuq.test/hang: 'true', gpuq.test/slow-exit: %ds}}",
		 grace_s, grace_s);
	submit(fill.g, text, n, &fill.mem, fill.ids);
	watch(&fill, server);
	seen_done(&fill);
	wait_running(a);
	seen_init(&take, server);
	snprintf(text, sizeof(text),
		 "{name: gang, queue: prod, pods: %d, gpus: 1, image: busybox, command: [sleep, "
		 "'600'],"
		 " annotations: {gpuq.test/hang: 'true'}}",
		 size);
	take.text = text;
	watch(&take, server);
	printf("%.3f %d\n", take.last - take.first - grace_s, take.evicted);
	seen_done(&take);
	return 0;
}

static int number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
	struct access a;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (argc >= 7)
		access_init(&a, argv + 2);
	if (argc == 7 && strcmp(argv[1], "raw") == 0)
		return raw(&a, number(argv[6]));
	if (argc == 8 && strcmp(argv[1], "jobs") == 0)
		return jobs(&a, number(argv[6]), argv[7]);
	if (argc == 10 && strcmp(argv[1], "gang") == 0)
		return gang(&a, number(argv[6]), argv[7], number(argv[8]), number(argv[9]));
	fprintf(stderr,
		"usage: bench_kube raw URL CA TOKENFILE NAMESPACE N\n"
		"       bench_kube jobs URL CA TOKENFILE NAMESPACE N SERVER\n"
		"       bench_kube gang URL CA TOKENFILE NAMESPACE N SERVER GANG GRACE_S\n");
	return 2;
}
