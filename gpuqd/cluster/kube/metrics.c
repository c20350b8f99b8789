#include "gpuqd/cluster/kube/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/metrics_nodes.h"
#include "gpuqd/cluster/kube/metrics_text.h"
#include "libgpuq/arena.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"

#define ANSWER_MAX_US INT64_C(10000000)

/* One endpoint. */
struct target {
	struct metrics *m;
	struct kube_config config; /* no credentials: those are the apiserver's */
	const char *url, *path; /* in the config's arena */
	struct http *http;
	struct http_req *req; /* NULL = it was not asked, or has answered */
	struct metrics_text text;
	size_t n_bytes;
};

struct metrics {
	struct loop *loop;
	const struct cluster_sink *sink;
	struct target *targets;
	struct metrics_nodes *nodes; /* NULL = kubelets are not asked */
	size_t n_targets, n_asked;
	int64_t every_us, begun_us; /* begun: monotonic, of the round */
	struct loop_timer *next;
	/* of the round */
	struct gpuq_arena mem;
	struct use_fact *facts;
	size_t n_facts, room;
	struct amount_fact *amounts;
	size_t n_amounts, amounts_room;
	char why[256];
};

static void begin(void *arg);

/* Where the path begins; NULL: it is no URL of ours. */
static const char *path_of(const char *url)
{
	const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
			   : strncmp(url, "https://", 8) == 0 ? url + 8
							      : NULL;
	size_t n = host ? strcspn(host, "/?#") : 0;

	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || *p == '#')
			return NULL;
	return n > 0 && !memchr(host, '@', n) && host[n] != '?' ? host + n : NULL;
}

int metrics_url_check(const char *url, struct gpuq_err *err)
{
	if (path_of(url))
		return 0;
	return gpuq_fail(err, GPUQ_EINVAL,
			 "expected a URL like http://exporter:9400/metrics, without a password");
}

/* ---- a round ---- */

static void on_fact(void *arg, const struct use_fact *f)
{
	struct metrics *m = arg;
	struct use_fact copy = *f;

	if (m->n_facts == GPUQ_METRICS_DEVICES_MAX) {
		snprintf(m->why, sizeof(m->why), "more than %u devices: the others are skipped",
			 GPUQ_METRICS_DEVICES_MAX);
		return;
	}
	if (!grow_to(&m->facts, &m->room, m->n_facts + 1))
		return;
	copy.pod = gpuq_arena_strdup(&m->mem, f->pod);
	copy.uuid = gpuq_arena_strdup(&m->mem, f->uuid);
	if (copy.pod && copy.uuid)
		m->facts[m->n_facts++] = copy;
}

static void on_amount(void *arg, const struct amount_fact *f)
{
	struct metrics *m = arg;
	struct amount_fact copy = *f;

	/* Pages of a Prometheus have the containers of the whole cluster. */
	if (m->n_amounts == GPUQ_METRICS_AMOUNTS_MAX || strncmp(f->pod, "gpuq-", 5) != 0 ||
	    !grow_to(&m->amounts, &m->amounts_room, m->n_amounts + 1))
		return;
	copy.pod = gpuq_arena_strdup(&m->mem, f->pod);
	copy.namespace_ = gpuq_arena_strdup(&m->mem, f->namespace_);
	if (copy.pod && copy.namespace_)
		m->amounts[m->n_amounts++] = copy;
}

static const char without_source[] = "gpuqd.yaml names no source (metrics)";

static void end_round(struct metrics *m)
{
	const struct use_round r = { .items = m->facts,
				     .n = m->n_facts,
				     .source = m->n_targets ? "metrics" : "",
				     .why = m->why,
				     .amounts = m->amounts,
				     .n_amounts = m->n_amounts };
	const int64_t took_us = loop_mono_us(m->loop) - m->begun_us;

	if (!*m->why && m->n_facts == 0 && m->n_targets)
		snprintf(m->why, sizeof(m->why), "no device in the metrics");
	else if (!*m->why && !m->n_targets)
		snprintf(m->why, sizeof(m->why), "%s", without_source);
	m->next = loop_after(m->loop, took_us < m->every_us ? m->every_us - took_us : 0, begin, m);
	m->sink->measured(m->sink->arg, &r);
	m->n_facts = m->n_amounts = 0;
	gpuq_arena_reset(&m->mem);
}

static enum http_want on_data(void *arg, const char *bytes, size_t n)
{
	struct target *t = arg;

	t->n_bytes += n;
	if (t->n_bytes > GPUQ_METRICS_BYTES_MAX)
		return HTTP_STOP;
	metrics_text_feed(&t->text, bytes, n);
	return HTTP_MORE;
}

static void on_end(void *arg, const struct http_answer *a)
{
	struct target *t = arg;
	struct metrics *m = t->m;

	t->req = NULL;
	metrics_text_done(&t->text);
	if (t->n_bytes > GPUQ_METRICS_BYTES_MAX)
		snprintf(m->why, sizeof(m->why), "%.120s: the page is larger than %u MiB", t->url,
			 GPUQ_METRICS_BYTES_MAX >> 20);
	else if (a->status < 200 || a->status >= 300 || !a->complete)
		snprintf(m->why, sizeof(m->why), "%.120s: status %d%s%.90s", t->url, a->status,
			 *a->error ? ", " : "", a->error);
	if (--m->n_asked == 0)
		end_round(m);
}

static void on_nodes(void *arg, const char *why)
{
	struct metrics *m = arg;

	if (*why)
		snprintf(m->why, sizeof(m->why), "%s", why);
	if (--m->n_asked == 0)
		end_round(m);
}

static void begin(void *arg)
{
	struct metrics *m = arg;

	m->next = NULL;
	m->begun_us = loop_mono_us(m->loop);
	m->why[0] = '\0';
	m->n_asked = m->n_targets + (m->nodes ? 1 : 0);
	for (size_t i = 0; i < m->n_targets; i++) {
		struct target *t = &m->targets[i];
		const struct http_call call = { .method = "GET",
						.path = t->path,
						.limit_us = ANSWER_MAX_US,
						.on_data = on_data,
						.on_end = on_end,
						.arg = t };

		t->n_bytes = 0;
		metrics_text_init(&t->text, loop_wall_us(m->loop), on_fact, m);
		t->text.amount = on_amount;
		t->req = http_start(t->http, &call);
	}
	if (m->nodes)
		metrics_nodes_ask(m->nodes);
}

/* ---- begin and end ---- */

static int target_init(struct metrics *m, struct target *t, const char *url, struct gpuq_err *err)
{
	struct gpuq_arena *a = &t->config.arena;
	const char *path = path_of(url);

	t->m = m;
	t->config = (struct kube_config){ .origin = "metrics", KUBE_CONFIG_NONE };
	if (!path)
		return metrics_url_check(url, err);
	t->url = gpuq_arena_strdup(a, url);
	t->path = gpuq_arena_strdup(a, *path ? path : "/");
	t->config.server = gpuq_arena_strndup(a, url, (size_t)(path - url));
	if (!t->url || !t->path || !t->config.server)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	return http_new(m->loop, &t->config, &t->http, err);
}

static void on_nobody(void *arg)
{
	struct metrics *m = arg;
	const struct use_round r = { .source = "", .why = without_source };

	m->next = NULL;
	m->sink->measured(m->sink->arg, &r);
}

int metrics_new(struct loop *l, const struct gpuq_strlist *urls, int64_t every_us,
		struct http *kubelets, const struct watch *watch, const struct cluster_sink *sink,
		struct metrics **out, struct gpuq_err *err)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int rc = 0;

	if (m)
		m->targets = calloc(urls->n + 1, sizeof(*m->targets));
	if (!m || !m->targets) {
		free(m);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	m->loop = l;
	m->sink = sink;
	m->every_us = every_us;
	for (size_t i = 0; rc == 0 && every_us && i < urls->n; i++) {
		m->n_targets++;
		rc = target_init(m, &m->targets[i], urls->items[i], err);
	}
	if (rc == 0 && every_us && kubelets)
		rc = metrics_nodes_new(l, kubelets, watch, on_amount, on_nodes, m, &m->nodes, err);
	if (rc < 0) {
		metrics_free(m);
		return rc;
	}
	m->next = loop_after(l, 0, m->n_targets || m->nodes ? begin : on_nobody, m);
	*out = m;
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	loop_cancel(m->next);
	for (size_t i = 0; i < m->n_targets; i++) {
		struct target *t = &m->targets[i];

		http_free(t->http);
		if (t->req)
			metrics_text_done(&t->text);
		gpuq_arena_done(&t->config.arena);
	}
	metrics_nodes_free(m->nodes);
	gpuq_arena_done(&m->mem);
	free(m->facts);
	free(m->amounts);
	free(m->targets);
	free(m);
}
