#include "gpuqd/flow/report/export_int.h"
#include "gpuqd/flow/report/export_queue.h"
#include "gpuqd/flow/report/export_job.h"
#include "gpuqd/flow/report/export_foreign.h"
#include "gpuqd/flow/report/export_cluster.h"

#include <string.h>

#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/site/layouts.h"

void export_put(struct export *x, struct gpuq_val *map, const char *key, struct gpuq_val *v)
{
	gpuq_put(x->a, map, key, v);
}

/* Put thousandths as a number; whole ones stay integers. */
void export_milli(struct export *x, struct gpuq_val *map, const char *key, int64_t milli)
{
	export_put(x, map, key,
		   milli % 1000 ? gpuq_real(x->a, (double)milli / 1000)
				: gpuq_int(x->a, milli / 1000));
}

void export_int(struct export *x, struct gpuq_val *map, const char *key, int64_t i)
{
	export_put(x, map, key, gpuq_int(x->a, i));
}

void export_str(struct export *x, struct gpuq_val *map, const char *key, const char *s)
{
	export_put(x, map, key, gpuq_str(x->a, s));
}

void export_count(struct export *x, struct gpuq_val *map, const char *key, int64_t n)
{
	export_int(x, map, key, n == GPUQ_UNLIMITED ? -1 : n);
}

void export_devices(struct export *x, struct gpuq_val *map, const char *key, int64_t milli)
{
	export_milli(x, map, key, milli == GPUQ_UNLIMITED ? -1000 : milli);
}

/* Put a length of time, in seconds. */
void export_span(struct export *x, struct gpuq_val *map, const char *key, int64_t us)
{
	export_milli(x, map, key, us / 1000);
}

void export_time(struct export *x, struct gpuq_val *map, const char *key, int64_t us)
{
	export_span(x, map, key, us - x->t0_us);
}

void export_strs(struct export *x, struct gpuq_val *map, const char *key, const char *const *items,
		 size_t n)
{
	struct gpuq_val *list = gpuq_list(x->a);

	for (size_t i = 0; i < n; i++)
		gpuq_add(x->a, list, gpuq_str(x->a, items[i]));
	if (n)
		export_put(x, map, key, list);
}

/* Pass on the previous item, which is complete now. */
static void hand_over(struct export *x)
{
	if (x->item)
		x->fn(x->arg, x->item);
	x->item = NULL;
	gpuq_arena_reset(x->a);
}

struct gpuq_val *export_add(struct export *x, const char *part)
{
	struct gpuq_val *value;

	hand_over(x);
	x->item = gpuq_map(x->a);
	value = gpuq_map(x->a);
	export_str(x, x->item, "part", part);
	export_put(x, x->item, "value", value);
	return value;
}

static void find_first_time(struct export *x)
{
	x->t0_us = x->s->config.now_us;
	for (uint32_t i = 0; i < x->s->n_jobs; i++) {
		const struct snap_job *j = &x->s->jobs[i];

		if (j->submit_us < x->t0_us)
			x->t0_us = j->submit_us;
	}
}

int export_scenario(const struct model *m, int64_t now_us, export_fn fn, void *arg,
		    struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct export x = { .m = m, .a = &mem, .fn = fn, .arg = arg };
	struct snapshot *s = NULL;
	int rc = snapshot_take(m, now_us, &s, err);

	if (rc < 0)
		return rc;
	x.s = s;
	find_first_time(&x);
	export_config(&x);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		if (s->nodes[i].made_up)
			continue;
		export_node(&x, &s->nodes[i]);
		x.has_foreign |= export_is_shared(&x, &s->nodes[i]);
	}
	site_each(site_pool, x.m->site->pools, p)
		if (site_pool_grows(p) || layouts_are_on(p->mig))
			export_pool(&x, p);
	for (uint32_t i = 0; i < s->n_queues; i++)
		export_queue(&x, i);
	if (x.has_foreign)
		export_foreign_queue(&x);
	export_users(&x);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (!s->nodes[i].made_up)
			export_foreign(&x, &s->nodes[i]);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].state != SNAP_PENDING && s->jobs[i].n_allocs)
			export_running(&x, &s->jobs[i]);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		for (uint32_t r = 0;
		     s->jobs[i].state == SNAP_PENDING && (r < s->jobs[i].n_ranges || r == 0); r++)
			export_waiting(&x, &s->jobs[i], r);
	hand_over(&x);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return 0;
}
