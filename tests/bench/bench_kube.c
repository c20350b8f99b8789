/* How fast pods are created, beside the apiserver's own limit.
 *
 *   bench_kube raw URL CA TOKENFILE NAMESPACE N    a tight loop: N pods over one HTTP/2
 *                                                  connection, 100 under way
 *   bench_kube gpuqd SERVER N                      one array of N elements through a
 *                                                  running gpuqd, first creation to last
 *
 * Prints creations per second. The pods name their nodes (node1..) in both cases, so
 * that the simulated nodes do the same work beside them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "libgpuq/client.h"
#include "libgpuq/spec.h"

#define UNDER_WAY 100

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

static int raw(const char *server, const char *ca, const char *token_file, const char *ns, int n)
{
	static struct slot slots[UNDER_WAY];
	CURLM *multi = curl_multi_init();
	struct curl_slist *headers = NULL;
	char url[512], token[4096] = "", auth[4200];
	FILE *f = fopen(token_file, "re");
	int sent = 0, done = 0, running, left;
	double start;
	CURLMsg *msg;

	if (!f || !fgets(token, sizeof(token), f))
		die(token_file, "cannot be read");
	fclose(f);
	token[strcspn(token, "\n")] = '\0';
	snprintf(auth, sizeof(auth), "Authorization: Bearer %s", token);
	headers = curl_slist_append(headers, auth);
	headers = curl_slist_append(headers, "Content-Type: application/json");
	headers = curl_slist_append(headers, "User-Agent: gpuq-bench");
	snprintf(url, sizeof(url), "%s/api/v1/namespaces/%s/pods", server, ns);
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
	start = now_s();
	for (int i = 0; i < UNDER_WAY && sent < n; i++) {
		struct slot *s = &slots[i];

		s->easy = curl_easy_init();
		curl_easy_setopt(s->easy, CURLOPT_CAINFO, ca);
		curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(s->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
		curl_easy_setopt(s->easy, CURLOPT_PIPEWAIT, 1L);
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
	printf("%.0f\n", n / (now_s() - start));
	return 0;
}

struct seen {
	int n, want;
	double first, last;
	struct gpuq *g;
	int64_t job;
	bool released;
};

static int release(struct seen *s)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = gpuq_map(&a), *ids = gpuq_list(&a), *reply;
	char id[24];

	snprintf(id, sizeof(id), "%" PRId64, s->job);
	gpuq_add(&a, ids, gpuq_str(&a, id));
	gpuq_put(&a, v, "ids", ids);
	if (gpuq_call(s->g, "job.release", v, NULL, 0, &a, &reply, &err) < 0)
		die("release", err.text);
	gpuq_arena_done(&a);
	return 0;
}

static int on_event(void *arg, const struct gpuq_val *item)
{
	struct seen *s = arg;

	if (!item) {
		/* The watch stands: now let the held array go. */
		if (!s->released)
			s->released = release(s) == 0;
		return now_s() > s->first + 300 ? GPUQ_ETIMEOUT : 0;
	}
	if (strcmp(gpuq_get_str(item, "event", ""), "job.placed") == 0 && s->n == 0 && !s->last)
		s->first = s->last = now_s();
	if (strcmp(gpuq_get_str(item, "event", ""), "pod.created") != 0)
		return 0;
	s->last = now_s();
	return ++s->n == s->want ? 1 : 0;
}

static int through(const char *server, int n)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec_opts opts = { .file = "bench" };
	struct gpuq_specs specs;
	struct gpuq_val *v = gpuq_map(&a), *list = gpuq_list(&a), *reply;
	struct gpuq *g = NULL, *watch = NULL;
	struct seen seen = { .want = n, .first = now_s() };
	char text[256];
	int rc;

	snprintf(text, sizeof(text),
		 "{name: bench, gpus: 1, image: busybox, command: [sleep, '600'], array: 0-%d,"
		 " hold: true, annotations: {gpuq.test/run: 600s}}",
		 n - 1);
	if (gpuq_specs_read(&a, &opts, text, strlen(text), &specs, NULL, &err) < 0 ||
	    gpuq_connect(server, "bench_kube", 0, &g, &err) < 0 ||
	    gpuq_connect(server, "bench_kube", 0, &watch, &err) < 0)
		die("start", err.text);
	gpuq_add(&a, list, gpuq_spec_write(&a, &specs.items[0]));
	gpuq_put(&a, v, "specs", list);
	if (gpuq_call(g, "job.submit", v, NULL, 0, &a, &reply, &err) < 0)
		die("submit", err.text);
	seen.g = g;
	seen.job = gpuq_get_int(gpuq_get(reply, "jobs")->items[0], "id", 0);
	rc = gpuq_stream(watch, "event.watch", NULL, 1000000, on_event, &seen, &a, &reply, &err);
	if (rc != 1)
		die("watch", rc < 0 ? err.text : "ended");
	printf("%.0f\n", seen.n / (seen.last - seen.first));
	return 0;
}

int main(int argc, char **argv)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (argc == 7 && strcmp(argv[1], "raw") == 0)
		return raw(argv[2], argv[3], argv[4], argv[5], (int)strtol(argv[6], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "gpuqd") == 0)
		return through(argv[2], (int)strtol(argv[3], NULL, 10));
	fprintf(stderr, "usage: bench_kube raw URL CA TOKENFILE NAMESPACE N | gpuqd SERVER N\n");
	return 2;
}
