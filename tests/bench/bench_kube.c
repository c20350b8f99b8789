/* The whole path on a real apiserver, beside the apiserver's own limit.
 *
 *   bench_kube raw URL CA TOKENFILE NAMESPACE N [BODY]
 *        N pods in a tight loop over one HTTP/2 connection, 100 under way; BODY is a file
 *        with the JSON of a pod in which @I@ and @NODE@ are replaced
 *   bench_kube swap URL CA TOKENFILE NAMESPACE N GRACE_S
 *        N pods that run and need all of their grace to leave are deleted; when none runs
 *        any more, N others are created on their nodes
 *   bench_kube jobs URL CA TOKENFILE NAMESPACE N SERVER
 *        N one-device jobs that were held are released in a running gpuqd
 *   bench_kube gang URL CA TOKENFILE NAMESPACE N SERVER GANG GRACE_S
 *        N one-device jobs of queue `batch`, each of which needs all of its grace to
 *        leave, fill the cluster; then a gang of GANG pods arrives in queue `prod`
 *
 * raw and jobs print the seconds from the first creation to the last one, and to the moment
 * when the server has no pod that does not run. swap and gang print the seconds from the
 * deletion, or the gang's submission, to the start of the last pod less the grace; gang also
 * how many were evicted, and on stderr when what happened. The pods name their nodes
 * (node1..) in all cases, so that the simulated nodes do the same work beside them. Nothing
 * is waited for longer than LIMIT_S.
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

/* The server's word, not gpuqd's: no pod is left whose phase is (or is not) that. */
static void wait_none(const struct access *a, const char *phase)
{
	struct gpuq_buf body = GPUQ_BUF_INIT;
	double limit = now_s() + LIMIT_S;
	CURL *easy = handle(a);
	char url[512];

	snprintf(url, sizeof(url),
		 "%s/api/v1/namespaces/%s/pods?limit=1&fieldSelector=status.phase%s", a->url,
		 a->namespace_, phase);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_start);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
	for (;;) {
		struct timespec nap = { .tv_nsec = 100000000 };
		CURLcode rc;

		gpuq_buf_clear(&body);
		rc = curl_easy_perform(easy);
		if (rc != CURLE_OK)
			die("list", curl_easy_strerror(rc));
		if (strstr(gpuq_buf_str(&body), "\"items\":[]"))
			break;
		if (now_s() > limit)
			die("list", phase);
		nanosleep(&nap, NULL);
	}
	curl_easy_cleanup(easy);
	gpuq_buf_done(&body);
}

static void wait_running(const struct access *a)
{
	wait_none(a, "!=Running");
}

/* ---- a tight loop ---- */

struct slot {
	CURL *easy;
	struct gpuq_buf body, url;
};

/* The object that is sent for number i. */
struct loop {
	const char *method, *body; /* of a pod; @I@ and @NODE@ are replaced */
	const char *name; /* printf format of the object's name in the path; NULL = none */
	long want; /* status */
	int first, n;
};

static void fill_in(struct gpuq_buf *out, const char *body, int i)
{
	const char *at;

	gpuq_buf_clear(out);
	for (; (at = strchr(body, '@')) != NULL; body = at) {
		gpuq_buf_add(out, body, (size_t)(at - body));
		if (strncmp(at, "@I@", 3) == 0) {
			gpuq_buf_printf(out, "%d", i);
			at += 3;
		} else if (strncmp(at, "@NODE@", 6) == 0) {
			gpuq_buf_printf(out, "node%d", 1 + i / 8);
			at += 6;
		} else {
			gpuq_buf_add(out, at++, 1);
		}
	}
	gpuq_buf_adds(out, body);
}

static void send_next(CURLM *multi, struct slot *s, const struct access *a, const struct loop *l,
		      int i)
{
	gpuq_buf_clear(&s->url);
	gpuq_buf_printf(&s->url, "%s/api/v1/namespaces/%s/pods", a->url, a->namespace_);
	if (l->name)
		gpuq_buf_printf(&s->url, "/%s%d", l->name, i);
	fill_in(&s->body, l->body, i);
	curl_easy_setopt(s->easy, CURLOPT_URL, gpuq_buf_str(&s->url));
	curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, gpuq_buf_str(&s->body));
	curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE, (long)s->body.len);
	curl_multi_add_handle(multi, s->easy);
}

static void tight(const struct access *a, const struct loop *l)
{
	static struct slot slots[UNDER_WAY];
	CURLM *multi = curl_multi_init();
	int sent = 0, done = 0, running, left;
	CURLMsg *msg;

	curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
	for (int i = 0; i < UNDER_WAY && sent < l->n; i++) {
		struct slot *s = &slots[i];

		s->easy = handle(a);
		curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, drop);
		curl_easy_setopt(s->easy, CURLOPT_CUSTOMREQUEST, l->method);
		curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
		send_next(multi, s, a, l, l->first + sent++);
	}
	while (done < l->n) {
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
			if (rc != CURLE_OK || code != l->want) {
				char why[64];

				snprintf(why, sizeof(why), "status %ld, %s", code,
					 curl_easy_strerror(rc));
				die(l->method, why);
			}
			done++;
			if (sent < l->n)
				send_next(multi, s, a, l, l->first + sent++);
			else
				curl_easy_cleanup(easy);
		}
		if (done < l->n)
			curl_multi_poll(multi, NULL, 0, 100, NULL);
	}
	curl_multi_cleanup(multi);
}

#define SMALL(notes_)                                                                              \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"raw-@I@\","              \
	"\"labels\":{\"gpuq.io/job\":\"@I@\",\"gpuq.io/attempt\":\"0\"},\"annotations\":{" notes_  \
	"\"gpuq.io/token\":\"0123456789abcdef0123456789abcdef\"}},\"spec\":{\"nodeName\":"         \
	"\"@NODE@\",\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\","               \
	"\"image\":\"busybox\",\"command\":[\"sleep\",\"600\"],\"resources\":{\"limits\":{"        \
	"\"nvidia.com/gpu\":\"1\"}}}]}}"

static char *read_file(const char *path)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	FILE *f = fopen(path, "re");
	char chunk[4096];
	size_t n;

	if (!f)
		die(path, "cannot be read");
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		gpuq_buf_add(&b, chunk, n);
	fclose(f);
	return b.data;
}

static int raw(const struct access *a, int n, const char *file)
{
	struct loop l = { "POST", SMALL("\"gpuq.test/run\":\"600s\","), NULL, 201, 0, n };
	char *body = file ? read_file(file) : NULL;
	double start = now_s(), made;

	if (body)
		l.body = body;
	tight(a, &l);
	made = now_s() - start;
	wait_running(a);
	printf("%.3f %.3f\n", made, now_s() - start);
	free(body);
	return 0;
}

static int swap(const struct access *a, int n, int grace_s)
{
	struct gpuq_buf body = GPUQ_BUF_INIT, options = GPUQ_BUF_INIT;
	struct loop make = { "POST", NULL, NULL, 201, 0, n }, drop_them = make;
	double start, told, gone, made;

	gpuq_buf_printf(&body,
			SMALL("\"gpuq.test/hang\":\"true\",\"gpuq.test/slow-exit\":\"%ds\","),
			grace_s);
	gpuq_buf_printf(&options,
			"{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
			"\"gracePeriodSeconds\":%d}",
			grace_s);
	make.body = gpuq_buf_str(&body);
	drop_them = (struct loop){ "DELETE", gpuq_buf_str(&options), "raw-", 200, 0, n };
	tight(a, &make);
	wait_running(a);
	start = now_s();
	tight(a, &drop_them);
	told = now_s() - start;
	wait_none(a, "=Running");
	gone = now_s() - start;
	make.first = n; /* other names, and other nodes, as free as those */
	tight(a, &make);
	made = now_s() - start;
	wait_none(a, "=Pending");
	printf("%.3f\n", now_s() - start - grace_s);
	fprintf(stderr, "  tight loop: deletes %.2f s, none runs %.2f, created %.2f, run %.2f\n",
		told, gone, made, now_s() - start);
	gpuq_buf_done(&body);
	gpuq_buf_done(&options);
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

/* When something happened first and last, to the gang or to others. */
struct mark {
	const char *event, *words;
	bool gang;
	int n;
	double first, last;
};

static void mark(struct mark *m, const char *event, bool gang)
{
	for (; m && m->event; m++)
		if (m->gang == gang && strcmp(m->event, event) == 0) {
			m->last = now_s();
			if (m->n++ == 0)
				m->first = m->last;
		}
}

static void marks_print(const struct mark *m, double from)
{
	for (; m->event; m++)
		if (m->n)
			fprintf(stderr, "  %-28s %5d times, %6.2f to %6.2f s\n", m->words, m->n,
				m->first - from, m->last - from);
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
	struct mark *marks; /* NULL = none */
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
	bool own;

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
	own = !s->of || strcmp(gpuq_get_str(item, "job", ""), s->of) == 0;
	mark(s->marks, what, own);
	if (strcmp(what, s->counted) == 0 && own && s->n < s->want) {
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

/* n one-device jobs of another queue run, which need all of their grace to leave. */
static void fill_up(int n, const char *server, int grace_s)
{
	struct seen fill = { .begin = release, .want = n, .counted = "pod.started" };
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
}

/* No pod needs all of the grace period, so time beyond it is overhead. */
static int gang(const struct access *a, int n, const char *server, int size, int grace_s)
{
	struct mark marks[] = {
		{ .event = "job.nominated", .words = "gang: claim decided", .gang = true },
		{ .event = "job.evict_asked", .words = "others: told to leave" },
		{ .event = "pod.ended", .words = "others: ended" },
		{ .event = "job.requeued", .words = "others: requeued" },
		{ .event = "job.placed", .words = "gang: placed", .gang = true },
		{ .event = "pod.created", .words = "gang: created", .gang = true },
		{ .event = "pod.started", .words = "gang: started", .gang = true },
		{ .event = "pod.gone", .words = "others: gone" },
		{ .event = NULL },
	};
	struct seen take = { .begin = submit_gang,
			     .want = size,
			     .counted = "pod.started",
			     .quiet = 2,
			     .marks = marks };
	char text[512];

	if (n > 0)
		fill_up(n, server, grace_s);
	wait_running(a);
	seen_init(&take, server);
	snprintf(text, sizeof(text),
		 "{name: gang, %spods: %d, gpus: 1, image: busybox, command: [sleep, '600'],"
		 " annotations: {gpuq.test/hang: 'true'}}",
		 n > 0 ? "queue: prod, " : "", size);
	take.text = text;
	watch(&take, server);
	marks_print(marks, take.first);
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
	if ((argc == 7 || argc == 8) && strcmp(argv[1], "raw") == 0)
		return raw(&a, number(argv[6]), argc == 8 ? argv[7] : NULL);
	if (argc == 8 && strcmp(argv[1], "swap") == 0)
		return swap(&a, number(argv[6]), number(argv[7]));
	if (argc == 8 && strcmp(argv[1], "jobs") == 0)
		return jobs(&a, number(argv[6]), argv[7]);
	if (argc == 10 && strcmp(argv[1], "gang") == 0)
		return gang(&a, number(argv[6]), argv[7], number(argv[8]), number(argv[9]));
	fprintf(stderr,
		"usage: bench_kube raw URL CA TOKENFILE NAMESPACE N [BODY]\n"
		"       bench_kube swap URL CA TOKENFILE NAMESPACE N GRACE_S\n"
		"       bench_kube jobs URL CA TOKENFILE NAMESPACE N SERVER\n"
		"       bench_kube gang URL CA TOKENFILE NAMESPACE N SERVER GANG GRACE_S\n");
	return 2;
}
