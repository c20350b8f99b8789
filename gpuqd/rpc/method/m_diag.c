/* diag.get: the daemon's inner figures. */
#include <sys/resource.h>
#include <unistd.h>

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/code/codes.h"
#include "gpuqd/flow/report/figures.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/notify/outbox.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/site/site_find.h"
#include "libgpuq/units.h"

/* A row of a section: its name, and the figure. Times are microseconds. */
#define PUT(key, n) gpuq_put(a, v, key, gpuq_int(a, (int64_t)(n)))

static struct gpuq_val *instant(struct gpuq_arena *a, int64_t us)
{
	return us > 0 && us != GPUQ_UNLIMITED ? gpuq_int(a, us) : gpuq_null(a);
}

static struct gpuq_val *scheduler(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct schedule_stats s = { 0 };

	if (m->schedule)
		schedule_stats(m->schedule, &s);
	PUT("cycles", s.n_cycles);
	PUT("failed", s.n_failed);
	PUT("cut_short", s.n_cut_short);
	PUT("last_us", s.last_us);
	PUT("mean_us", s.n_cycles ? s.sum_us / (int64_t)s.n_cycles : 0);
	PUT("most_us", s.most_us);
	PUT("last_steps", s.last_steps);
	PUT("jobs_seen", s.n_jobs);
	PUT("planned_starts", s.n_reserved);
	PUT("starts", s.n_places);
	PUT("evictions", s.n_evictions);
	PUT("dropped", s.n_dropped);
	gpuq_put(a, v, "last_time", instant(a, s.last_at_us));
	gpuq_put(a, v, "next_time", instant(a, s.wake_us));
	return v;
}

/* Those that had most of one turn. */
#define PARTS_MAX 64

static struct gpuq_val *parts(const struct loop *l, struct gpuq_arena *a)
{
	struct gpuq_val *all = gpuq_map(a);
	struct loop_part p[PARTS_MAX];
	const size_t n = loop_parts(l, p, PARTS_MAX);

	for (size_t i = 0; i < n; i++) {
		struct gpuq_val *v = gpuq_map(a);

		PUT("most_us", p[i].most_us);
		PUT("turns", p[i].turns);
		PUT("sum_us", p[i].sum_us);
		gpuq_put(a, all, gpuq_arena_strdup(a, p[i].name), v);
	}
	return all;
}

static struct gpuq_val *loop_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct loop_stats s;

	loop_stats(journal_loop(m->j), &s);
	PUT("turns", s.turns);
	PUT("most_us", s.longest_us);
	gpuq_put(a, v, "most_part", *s.longest_part ? gpuq_str(a, s.longest_part) : gpuq_null(a));
	PUT("most_part_us", s.longest_part_us);
	PUT("over_10ms", s.over_10ms);
	PUT("over_50ms", s.over_50ms);
	PUT("beside_it", m->n_asked + m->n_copies);
	gpuq_put(a, v, "parts", parts(journal_loop(m->j), a));
	return v;
}

static struct gpuq_val *journal_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct journal_stats s;

	journal_stats(m->j, &s);
	PUT("batches", s.n_batches);
	PUT("records", s.n_records);
	PUT("last_records", s.last_records);
	PUT("most_records", s.most_records);
	PUT("last_us", s.last_us);
	PUT("mean_us", s.n_batches ? s.sum_us / (int64_t)s.n_batches : 0);
	PUT("most_us", s.most_us);
	PUT("waiting", s.n_waiting);
	gpuq_put(a, v, "read_only", gpuq_bool(a, journal_read_only(m->j)));
	gpuq_put(a, v, "no_new_jobs", gpuq_bool(a, journal_has_space(m->j, NULL) == GPUQ_ESTORAGE));
	return v;
}

static struct gpuq_val *rpc_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct rpc_stats s = { 0 };

	if (m->server)
		rpc_server_stats(m->server, &s);
	PUT("connections", s.connections);
	PUT("open_calls", s.open_calls);
	PUT("flight_bytes", s.flight_bytes);
	PUT("waiting", s.waiting);
	PUT("accepted", s.accepted);
	PUT("refused", s.refused);
	PUT("calls", s.calls);
	PUT("failed_calls", s.failed);
	return v;
}

static struct gpuq_val *queue_figures(const struct model *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	int64_t planned = 0, leaving = 0, pods = 0, unevaluated = 0, promised = 0;

	job_each(m, j) {
		const struct pod *p;

		unevaluated += j->state == GPUQ_JOB_PENDING && j->outlook->n_reasons == 0;
		promised += j->life->promise != NULL;
		DL_FOREACH2(j->pods, p, job_next) {
			pods++;
			planned += p->state == GPUQ_POD_PLANNED;
			leaving += p->leaving && p->state < GPUQ_POD_ENDED;
		}
	}
	PUT("waiting_jobs", m->n_jobs_by_state[GPUQ_JOB_PENDING]);
	PUT("running_jobs", m->n_jobs_by_state[GPUQ_JOB_RUNNING]);
	PUT("not_evaluated", unevaluated);
	PUT("claims_waiting", promised);
	PUT("pods", pods);
	PUT("pods_to_create", planned);
	PUT("pods_to_leave", leaving);
	PUT("jobs_in_memory", m->n_jobs);
	PUT("requests", m->requests.by_id.n);
	PUT("keys", m->keys.slots.n);
	PUT("queues", m->n_queues);
	PUT("nodes", HASH_COUNT(m->nodes));
	PUT("foreign_pods", HASH_COUNT(m->foreigns));
	PUT("events", m->n_events);
	return v;
}

static struct gpuq_val *cluster_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	int64_t seen_us = 0;

	node_each(journal_model(m->j), n)
		seen_us = n->seen_us > seen_us ? n->seen_us : seen_us;
	gpuq_put(a, v, "kind", gpuq_str(a, m->kind));
	gpuq_put(a, v, "connected", gpuq_bool(a, m->cluster != NULL));
	gpuq_put(a, v, "stale_since", instant(a, reconcile_stale_since_us(m->reconcile)));
	gpuq_put(a, v, "stale_why", gpuq_str(a, reconcile_stale_why(m->reconcile)));
	gpuq_put(a, v, "node_seen_time", instant(a, seen_us));
	gpuq_put(a, v, "refused", view_refused(m, a));
	view_fence(journal_model(m->j), a, v);
	view_requests_fault(journal_model(m->j), a, v);
	return v;
}

static struct gpuq_val *notify_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct outbox_stats s = { 0 };

	if (m->outbox)
		outbox_stats(m->outbox, &s);
	PUT("waiting", s.n_waiting);
	PUT("receivers", s.n_receivers);
	PUT("under_way", s.n_under_way);
	PUT("mails", s.n_mails);
	PUT("webhooks", s.n_webhooks);
	PUT("failed", s.n_failed);
	PUT("given_up", s.n_given_up);
	gpuq_put(a, v, "oldest_time", instant(a, s.oldest_us));
	gpuq_put(a, v, "failed_time", instant(a, s.failed_us));
	gpuq_put(a, v, "last_error", *s.why ? gpuq_str(a, s.why) : gpuq_null(a));
	return v;
}

static struct gpuq_val *process_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	gpuq_put(a, v, "version", gpuq_str(a, PACKAGE_VERSION));
	PUT("pid", getpid());
	gpuq_put(a, v, "start_time", instant(a, m->start_us));
	gpuq_put(a, v, "now_time", instant(a, loop_now_us(journal_loop(m->j))));
	PUT("cpu_us", (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * GPUQ_US_PER_S +
			      r.ru_utime.tv_usec + r.ru_stime.tv_usec);
	PUT("peak_memory_bytes", (int64_t)r.ru_maxrss * 1024);
	return v;
}

static struct gpuq_val *clock_figures(const struct methods *m, struct gpuq_arena *a)
{
	const struct clock *c = loop_clock(journal_loop(m->j));
	struct gpuq_val *v = gpuq_map(a);

	PUT("ahead_s", c->ahead_us / GPUQ_US_PER_S);
	PUT("jumps", c->n_jumps);
	PUT("jump_s", c->jump_us / GPUQ_US_PER_S);
	gpuq_put(a, v, "jump_time", instant(a, c->jumped_at_us));
	return v;
}

struct diag_params {
	bool reset;
};

static const struct gpuq_field diag_fields[] = {
	P(diag_params, "reset", GPUQ_K_BOOL, reset,
	  .doc = "reset the statistics of the event loop"),
	P_END,
};
const struct gpuq_schema p_diag_get = P_SCHEMA(diag_params, diag_fields);

/* Archives that jobs carry. */
static struct gpuq_val *code_figures(const struct methods *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);
	struct codes_sums s = { 0 };

	if (m->codes)
		codes_sums(m->codes, &s);
	PUT("files", s.files);
	PUT("arriving", s.arriving);
	PUT("bytes", s.bytes);
	return v;
}

/* List the queues whose scripts are run by srun in pods that have it only if their images do. */
static struct gpuq_val *launch_without_steps(const struct model *m, struct gpuq_arena *a)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; i < m->n_queues && !m->site->steps; i++)
		if (!m->queues[i]->n_children && site_launches(m->site, m->queues[i]->site))
			gpuq_add(a, list, gpuq_str(a, m->queues[i]->name));
	return list;
}

int m_diag_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct diag_params *p = params;
	struct methods *m = arg;
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a), *stored;
	int rc = figures_store(m->j, a, &stored, err);

	if (rc < 0)
		return rc;
	if (p->reset && !peer_is_operator(c))
		return gpuq_fail(err, GPUQ_EPERM, "only operators may reset statistics");
	gpuq_put(a, v, "process", process_figures(m, a));
	gpuq_put(a, v, "clock", clock_figures(m, a));
	gpuq_put(a, v, "scheduler", scheduler(m, a));
	gpuq_put(a, v, "loop", loop_figures(m, a));
	gpuq_put(a, v, "journal", journal_figures(m, a));
	gpuq_put(a, v, "store", stored);
	gpuq_put(a, v, "queues", queue_figures(journal_model(m->j), a));
	gpuq_put(a, v, "rpc", rpc_figures(m, a));
	gpuq_put(a, v, "notify", notify_figures(m, a));
	gpuq_put(a, v, "code", code_figures(m, a));
	gpuq_put(a, v, "backup", view_backup(m, a, peer_is_operator(c)));
	gpuq_put(a, v, "cluster", cluster_figures(m, a));
	gpuq_put(a, v, "measured", view_measured(m, a));
	gpuq_put(a, v, "quotas",
		 view_quotas(a, journal_model(m->j), loop_now_us(journal_loop(m->j))));
	gpuq_put(a, v, "launch_without_steps", launch_without_steps(journal_model(m->j), a));
	if (p->reset)
		loop_reset_stats(journal_loop(m->j));
	rpc_reply(c, v);
	return 0;
}
