#include "gpuqd/rpc/method/m_start.h"

#include "gpuqd/state/view/view.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/units.h"

static struct gpuq_val *instant(struct gpuq_arena *a, int64_t us)
{
	return us == GPUQ_UNLIMITED ? gpuq_null(a) : gpuq_int(a, us);
}

static struct gpuq_val *pods_val(struct gpuq_arena *a, const struct start_answer *s)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; i < s->n_pods; i++) {
		const struct start_pod *p = &s->pods[i];
		struct gpuq_val *v = gpuq_map(a), *of = gpuq_list(a);

		gpuq_put(a, v, "node", gpuq_str(a, p->node));
		gpuq_put(a, v, "group", gpuq_int(a, p->group));
		gpuq_put(a, v, "index", gpuq_int(a, p->index));
		for (uint32_t k = 0; k < p->n_devices; k++)
			gpuq_add(a, of, gpuq_int(a, p->devices[k]));
		gpuq_put(a, v, "devices", of);
		gpuq_put(a, v, "gpus", view_devices(a, p->gpus_milli));
		gpuq_add(a, list, v);
	}
	return list;
}

static struct gpuq_val *victims_val(struct gpuq_arena *a, const struct start_answer *s)
{
	struct gpuq_val *list = gpuq_list(a);
	char id[32];

	for (uint32_t i = 0; i < s->n_victims; i++) {
		const struct start_victim *x = &s->victims[i];
		struct gpuq_val *v = gpuq_map(a);

		job_id_print(x->job, id);
		gpuq_put(a, v, "job", gpuq_str(a, id));
		gpuq_put(a, v, "user", gpuq_str(a, x->user));
		gpuq_put(a, v, "queue", gpuq_str(a, x->queue));
		gpuq_put(a, v, "rule", view_word(a, x->rule));
		gpuq_put(a, v, "moves", gpuq_bool(a, x->moves));
		gpuq_put(a, v, "pods", gpuq_int(a, x->n_pods));
		gpuq_put(a, v, "gpus", view_devices(a, x->gpus_milli));
		gpuq_put(a, v, "grace_s", gpuq_int(a, x->grace_us / GPUQ_US_PER_S));
		gpuq_put(a, v, "lost_gpu_seconds", gpuq_real(a, (double)x->lost_gpu_ms / 1000));
		gpuq_add(a, list, v);
	}
	return list;
}

static struct gpuq_val *amount(struct gpuq_arena *a, const struct reason_fact *r, int64_t n,
			       int64_t ahead_us)
{
	char text[32];

	if (r->have == 0 && r->need == 0)
		return gpuq_null(a);
	if (n == GPUQ_UNLIMITED)
		return gpuq_str(a, "unlimited");
	if (r->unit == GPUQ_UNIT_GPUS || r->unit == GPUQ_UNIT_CORES)
		return view_devices(a, n);
	if (r->unit != GPUQ_UNIT_TIME)
		return gpuq_int(a, n);
	gpuq_instant_print(walltime_of(n, ahead_us), text, sizeof(text));
	return gpuq_str(a, text);
}

static struct gpuq_val *waits_val(struct gpuq_arena *a, const struct start_answer *s,
				  int64_t ahead_us)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; i < s->n_waits; i++) {
		const struct reason_fact *r = &s->waits[i].why;
		struct gpuq_val *v = gpuq_map(a);

		gpuq_put(a, v, "from_time", gpuq_int(a, s->waits[i].at_us));
		gpuq_put(a, v, "code", gpuq_str(a, gpuq_reason_word(r->code)));
		gpuq_put(a, v, "object", view_word(a, r->object));
		gpuq_put(a, v, "unit", gpuq_str(a, gpuq_unit_word(r->unit)));
		gpuq_put(a, v, "have", amount(a, r, r->have, ahead_us));
		gpuq_put(a, v, "need", amount(a, r, r->need, ahead_us));
		gpuq_add(a, list, v);
	}
	return list;
}

struct gpuq_val *start_val(struct gpuq_arena *a, const struct start_answer *s,
			   const struct start_assumed *assumed)
{
	struct gpuq_val *v = gpuq_map(a), *how = gpuq_map(a);

	gpuq_put(a, v, "by", gpuq_str(a, start_by_words[s->by]));
	gpuq_put(a, v, "start_time", instant(a, s->start_us));
	gpuq_put(a, v, "likely_time", instant(a, s->likely_us));
	gpuq_put(a, v, "flavor", view_word(a, s->flavor));
	gpuq_put(a, v, "pods", pods_val(a, s));
	gpuq_put(a, v, "victims", victims_val(a, s));
	gpuq_put(a, v, "waits", waits_val(a, s, assumed->ahead_us));
	gpuq_put(a, how, "at_time", gpuq_int(a, assumed->at_us));
	gpuq_put(a, how, "until_time", instant(a, assumed->until_us));
	gpuq_put(a, how, "events", gpuq_int(a, assumed->n_events));
	gpuq_put(a, how, "cut_short", gpuq_bool(a, assumed->cut_short));
	gpuq_put(a, how, "running", gpuq_int(a, assumed->n_running));
	gpuq_put(a, how, "endless", gpuq_int(a, assumed->n_endless));
	gpuq_put(a, how, "learned", gpuq_int(a, assumed->n_learned));
	gpuq_put(a, v, "assumed", how);
	return v;
}

struct gpuq_val *start_record_val(struct gpuq_arena *a, const struct estimator *e,
				  const char *queue)
{
	struct start_record r;
	struct gpuq_val *v;

	if (!e || !estimator_record(e, queue, &r))
		return gpuq_null(a);
	v = gpuq_map(a);
	gpuq_put(a, v, "queue", gpuq_str(a, queue));
	gpuq_put(a, v, "jobs", gpuq_int(a, r.n));
	gpuq_put(a, v, "unknown", gpuq_int(a, r.n_unknown));
	gpuq_put(a, v, "late", gpuq_int(a, r.n_late));
	gpuq_put(a, v, "early", gpuq_int(a, r.n_early));
	gpuq_put(a, v, "half_s", gpuq_int(a, r.half_us / GPUQ_US_PER_S));
	gpuq_put(a, v, "most_s", gpuq_int(a, r.most_us / GPUQ_US_PER_S));
	return v;
}
