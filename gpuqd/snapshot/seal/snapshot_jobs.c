#include "gpuqd/snapshot/seal/snapshot_jobs.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/seal/snapshot_sort.h"
#include "gpuqd/snapshot/seal/snapshot_devices.h"

/* Sealing: requests, jobs and what they hold; then what is free. */

/* Look up the flavors that it names. */
static bool name_flavors(struct snapshot *s, struct snap_request *r)
{
	uint32_t *ix = gpuq_arena_calloc(&s->arena, r->n_flavors, sizeof(*ix));
	int64_t *waits =
		r->waits_us ? gpuq_arena_calloc(&s->arena, r->n_flavors, sizeof(*waits)) : NULL;

	if (!ix || (r->waits_us && !waits))
		return false;
	for (uint32_t k = 0; k < r->n_flavors; k++) {
		const uint32_t f = snapshot_find_flavor(s, r->flavors[k]);

		if (f == SNAP_NONE)
			continue;
		if (waits)
			waits[r->n_flavor_ix] = r->waits_us[k];
		ix[r->n_flavor_ix++] = f;
	}
	r->wait_ix_us = waits;
	r->flavor_ix = ix;
	return true;
}

/* Order a request and its others by what a start of each is charged, flavor by flavor; or as they were given. */
static bool order_tries(struct snapshot *s, struct snap_request *r, uint32_t self)
{
	const uint32_t n = r->n_others + 1;
	uint32_t *tries = gpuq_arena_calloc(&s->arena, (size_t)r->n_flavor_ix * n, sizeof(*tries));
	int64_t *costs = gpuq_arena_calloc(&s->arena, n, sizeof(*costs)); /* of those in the list */

	for (uint32_t f = 0; tries && costs && f < r->n_flavor_ix; f++) {
		uint32_t *list = tries + (size_t)f * n;

		for (uint32_t i = 0; i < n; i++) {
			const uint32_t one = i ? r->others[i - 1] : self;
			const int64_t cost = cost_of_request(s, &s->requests[one], r->flavor_ix[f]);
			uint32_t at = i;

			/* Those that cost the same stay in the order in which they were given. */
			for (; !r->in_order && at > 0 && costs[at - 1] > cost; at--) {
				list[at] = list[at - 1];
				costs[at] = costs[at - 1];
			}
			list[at] = one;
			costs[at] = cost;
		}
	}
	r->tries = tries;
	return tries && costs;
}

int snapshot_seal_requests(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *all = gpuq_arena_calloc(&s->arena, s->n_flavors, sizeof(*all));

	if (!all)
		return gpuq_no_memory(w->err);
	/* Requests that accept any flavor share one list. */
	for (uint32_t f = 0; f < s->n_flavors; f++)
		all[f] = f;
	for (uint32_t i = 0; i < s->n_requests; i++) {
		struct snap_request *r = &s->requests[i];

		if (r->n_flavors == 0) {
			r->flavor_ix = all;
			r->n_flavor_ix = s->n_flavors;
		} else if (!name_flavors(s, r)) {
			return gpuq_no_memory(w->err);
		}
		for (uint32_t k = 0; k < r->n_groups; k++) {
			const struct snap_group *g = &r->groups[k];

			/* A request is counted with the pods it must have; more of them are decided
			 * on one by one. */
			r->n_pods += g->pods_min;
			r->by_memory |= g->gpu_memory_bytes > 0 && !g->mig;
			for (uint32_t f = 0; snap_group_parts(g) && f < s->n_flavors; f++)
				r->by_memory |= s->flavors[f].replicas > 1;
			r->cpu_milli =
				amount_sum(r->cpu_milli, amount_times(g->cpu_milli, g->pods_min));
			r->memory_bytes = amount_sum(r->memory_bytes,
						     amount_times(g->memory_bytes, g->pods_min));
		}
		r->gpus_milli = cost_of_request(s, r, SNAP_NONE);
		if (r->n_others && !order_tries(s, r, i))
			return gpuq_no_memory(w->err);
	}
	return 0;
}

/* Order jobs by id, then by array element, whatever order they were added in. */
static int cmp_job(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_job *a = (const struct snap_job *)ctx + x;
	const struct snap_job *b = (const struct snap_job *)ctx + y;
	const int c = sort_i64(a->key.id, b->key.id);

	return c ? c : sort_i64(snapshot_element(a), snapshot_element(b));
}

/* Refuse a job that names what does not exist, or that has the number of the job before it. */
static int check_job(struct seal *w, uint32_t i)
{
	const struct snapshot *s = w->s;
	const struct snap_job *j = &s->jobs[i];
	char name[32];

	if (j->queue >= s->n_queues || j->request >= s->n_requests || j->user >= s->n_users ||
	    (j->evicted_for != SNAP_NONE && j->evicted_for >= s->n_queues))
		return gpuq_fail(w->err, GPUQ_EINVAL, "job %u has no queue, request or user",
				 j->key.id);
	if (i > 0 && cmp_job(s->jobs, i - 1, i) == 0) {
		snprintf(name, sizeof(name), j->key.index < 0 ? "%u" : "%u_%d", j->key.id,
			 j->key.index);
		return gpuq_fail(w->err, GPUQ_EINVAL, "two jobs are numbered %s", name);
	}
	return 0;
}

int snapshot_seal_jobs(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc = snapshot_seal_sorted(w, s->n_jobs, cmp_job, s->jobs, &order, &w->map_job);

	if (rc == 0)
		rc = snapshot_seal_permute(w, &s->jobs, s->n_jobs, sizeof(*s->jobs), order);
	for (uint32_t i = 0; rc == 0 && i < s->n_jobs; i++) {
		struct snap_job *j = &s->jobs[i];
		uint32_t *exclude = (uint32_t *)j->exclude;

		rc = check_job(w, i);
		if (rc < 0)
			return rc;
		j->queue = w->map_queue[j->queue];
		j->usage = w->map_usage[j->usage];
		if (j->evicted_for != SNAP_NONE)
			j->evicted_for = w->map_queue[j->evicted_for];
		/* Handles become indexes, in ascending order. */
		for (uint32_t k = 0; k < j->n_exclude; k++) {
			uint32_t node = w->map_node[exclude[k]], at = k;

			for (; at > 0 && exclude[at - 1] > node; at--)
				exclude[at] = exclude[at - 1];
			exclude[at] = node;
		}
		/* A job without ranges stands for itself; an array's pending part for each of its
		 * elements. */
		j->n_waiting = j->state == SNAP_PENDING && j->n_ranges == 0;
		for (uint32_t k = 0; j->state == SNAP_PENDING && k < j->n_ranges; k++)
			j->n_waiting += (uint32_t)((j->ranges[k].last - j->ranges[k].first) /
						   j->ranges[k].step) +
					1;
		for (uint32_t k = 0; k < s->requests[j->request].n_licenses; k++) {
			const struct snap_license_need *need = &s->requests[j->request].licenses[k];

			/* Jobs that are ending still have their licenses. */
			if (j->state != SNAP_PENDING)
				s->licenses[need->license].used += need->count;
		}
	}
	return rc;
}

/* Order pods by job, then by index, so that those of a job are adjacent. */
static int cmp_alloc(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_alloc *a = ctx;
	int c = sort_i64(a[x].job, a[y].job);

	return c ? c : sort_i64(a[x].index, a[y].index);
}

/* Take whole devices of which it is not known which ones they are: the highest. */
static void take_some(struct snapshot *s, const struct snap_node *n, int64_t count)
{
	for (uint32_t d = n->n_devices; d-- > 0 && count > 0;) {
		struct snap_device *dev = &s->devices[n->device_first + d];

		if (dev->free_milli == SNAP_MILLI) {
			dev->free_milli = 0;
			count--;
		}
	}
}

/* Return the device memory that the pod was given, or its share of it. */
static int64_t bytes_of(const struct snap_device *dev, const struct snap_alloc *a)
{
	if (a->device_memory_bytes > 0)
		return a->device_memory_bytes;
	return snap_memory_down(dev->memory_bytes, a->milli, dev->unit_bytes);
}

/* Take the devices that the cluster reports for a pod. */
static void take_named(struct snapshot *s, const struct snap_node *n, const struct snap_alloc *a)
{
	for (uint32_t k = 0; k < a->n_devices; k++) {
		struct snap_device *dev;

		/* A device that disappeared while in use holds nothing any more. */
		if (a->devices[k] >= n->n_devices)
			continue;
		dev = &s->devices[n->device_first + a->devices[k]];
		/* An unhealthy device has nothing free to begin with. */
		if (dev->healthy)
			dev->free_milli = (int16_t)(dev->free_milli - a->milli);
		dev->shares++;
		dev->free_memory_bytes = amount_less(dev->free_memory_bytes, bytes_of(dev, a));
	}
}

/* Compute what is free on every node: capacity, minus foreign pods, minus pods of gpuq. Named
 * devices are taken before unnamed ones, so that those take none that a pod has. */
void snapshot_derive_free(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct snap_node *n = &s->nodes[i];

		n->cpu_free = n->cpu_milli;
		n->memory_free = n->memory_bytes;
		n->pods_free = n->pods;
		if (n->cpu_milli != GPUQ_UNLIMITED)
			n->cpu_free -= n->foreign_cpu_milli;
		if (n->memory_bytes != GPUQ_UNLIMITED)
			n->memory_free -= n->foreign_memory_bytes;
		if (n->pods != GPUQ_UNLIMITED)
			n->pods_free -= n->foreign_pods;
		for (uint32_t d = 0; d < n->n_devices; d++) {
			struct snap_device *dev = &s->devices[n->device_first + d];

			dev->free_milli =
				dev->healthy ? (int16_t)(SNAP_MILLI - dev->foreign_milli) : 0;
			dev->free_memory_bytes =
				amount_less(dev->memory_bytes, dev->foreign_memory_bytes);
			dev->shares = 0;
		}
	}
	snapshot_seal_extras(s);
	for (uint32_t i = 0; i < s->n_promises; i++)
		snapshot_seal_share(s, &s->promises[i]);
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		struct snap_alloc *a = &s->allocs[i];
		const struct snap_group *g = snap_group_of(s, a);
		struct snap_node *n = &s->nodes[a->node];

		if (n->cpu_milli != GPUQ_UNLIMITED)
			n->cpu_free = amount_less(n->cpu_free, g->cpu_milli);
		if (n->memory_bytes != GPUQ_UNLIMITED)
			n->memory_free = amount_less(n->memory_free, g->memory_bytes);
		if (n->pods != GPUQ_UNLIMITED)
			n->pods_free--;
		snapshot_seal_share(s, a);
		take_named(s, n, a);
		for (uint32_t k = 0; k < g->n_takes; k++)
			s->extra_free[(size_t)a->node * s->n_extras + g->takes[k].extra] -=
				g->takes[k].n;
	}
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];

		if (a->n_devices == 0 && !a->shares && !snap_group_of(s, a)->mig)
			take_some(s, &s->nodes[a->node],
				  snap_group_of(s, a)->gpus_milli / SNAP_MILLI);
	}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		take_some(s, &s->nodes[i], s->nodes[i].foreign_gpus);
}

/* Turn handles into indexes, and sort by job and pod. */
static int seal_pods(struct seal *w, struct snap_alloc **table, uint32_t n)
{
	const struct snapshot *s = w->s;
	struct snap_alloc *pods = *table;
	uint32_t *order, *map;
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		if (pods[i].job >= s->n_jobs || pods[i].node >= s->n_nodes)
			return gpuq_fail(w->err, GPUQ_EINVAL, "a pod of no job or on no node");
		pods[i].job = w->map_job[pods[i].job];
		pods[i].node = w->map_node[pods[i].node];
	}
	rc = snapshot_seal_sorted(w, n, cmp_alloc, pods, &order, &map);
	return rc < 0 ? rc : snapshot_seal_permute(w, table, n, sizeof(**table), order);
}

int snapshot_seal_allocs(struct seal *w)
{
	struct snapshot *s = w->s;
	int rc = seal_pods(w, &s->allocs, s->n_allocs);

	if (rc == 0)
		rc = seal_pods(w, &s->promises, s->n_promises);
	if (rc < 0)
		return rc;
	/* Backwards, so that `first` ends as the lowest. */
	for (uint32_t i = s->n_allocs; i-- > 0;) {
		s->jobs[s->allocs[i].job].alloc_first = i;
		s->jobs[s->allocs[i].job].n_allocs++;
	}
	for (uint32_t i = s->n_promises; i-- > 0;) {
		s->jobs[s->promises[i].job].promise_first = i;
		s->jobs[s->promises[i].job].n_promises++;
	}
	snapshot_derive_free(s);
	return 0;
}

/* Return what foreign pods hold of a device: of its cores, or of its memory if that is more. */
static int64_t foreign_of(const struct snap_device *dev)
{
	const int64_t milli =
		dev->memory_bytes > 0 && dev->foreign_memory_bytes > 0
			? snap_memory_milli(dev->foreign_memory_bytes, dev->memory_bytes)
			: 0;

	return milli > dev->foreign_milli ? milli : dev->foreign_milli;
}

int snapshot_seal_capacity(struct seal *w)
{
	struct snapshot *s = w->s;

	s->capacity = gpuq_arena_calloc(&s->arena, s->n_res, sizeof(*s->capacity));
	if (!s->capacity)
		return gpuq_no_memory(w->err);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct snap_node *n = &s->nodes[i];
		int64_t rounded, milli = snapshot_seal_mig_capacity(s, i, &rounded) -
					 n->foreign_gpus * SNAP_MILLI;

		/* Capacity counts only what jobs could start on. */
		if (n->state != SNAP_READY)
			continue;
		for (uint32_t d = 0; d < n->n_devices; d++) {
			const struct snap_device *dev = &s->devices[n->device_first + d];

			if (dev->healthy)
				milli += SNAP_MILLI - foreign_of(dev);
		}
		if (n->flavor != SNAP_NONE && milli > 0) {
			s->capacity[n->flavor] += milli;
			s->flavors[n->flavor].devices_milli -= rounded;
		}
		s->capacity[snap_cpu(s)] = amount_sum(s->capacity[snap_cpu(s)], n->cpu_milli);
		s->capacity[snap_memory(s)] =
			amount_sum(s->capacity[snap_memory(s)], n->memory_bytes);
	}
	for (uint32_t f = 0; f < s->n_flavors; f++) {
		s->flavors[f].capacity_milli = s->capacity[f];
		s->flavors[f].devices_milli += s->capacity[f];
	}
	return 0;
}
