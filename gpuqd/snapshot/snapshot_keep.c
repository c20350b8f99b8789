#include "gpuqd/snapshot/snapshot_keep.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/seal/snapshot_jobs.h"
#include "gpuqd/snapshot/seal/snapshot_lines.h"
#include "gpuqd/snapshot/seal/snapshot_past.h"
#include "gpuqd/snapshot/snapshot_taking.h"
#include "gpuqd/snapshot/snapshot_take_objects.h"
#include "gpuqd/snapshot/snapshot_take_past.h"
#include "gpuqd/snapshot/snapshot_take_usage.h"
#include "gpuqd/util/intern.h"
#include "libgpuq/grow.h"
#include "libgpuq/units.h"

/* A job as it is in the snapshot. */
struct kept {
	uint64_t turn; /* of the snapshot that it is for: taking.early */
	struct snap_job job;
	uint32_t n_allocs, n_promises;
	bool holds; /* allocations or nominated placements */
	bool timely; /* its entry changes with time alone */
	struct snap_alloc pods[]; /* allocations, then nominated placements, then their devices */
};

struct snapshot_keep {
	struct taking t;
	struct gpuq_arena base; /* of the snapshot; t.mem is of one cycle */
	struct intern requests; /* of the snapshot: a request that comes again is one of them */
	struct gpuq_arena keys;
	uint32_t *request_of, room_requests; /* their places in the snapshot */
	struct kept **jobs; /* by id; NULL = not known, or changed */
	uint32_t room_jobs;
	uint32_t *changed, n_changed, room_changed; /* ids */
	uint32_t *holders, n_holders, room_holders; /* ids of jobs that hold devices, ascending */
	uint32_t *usage_of, n_usages, room_usages; /* usages by the order of account_each() */
	uint32_t at_account, n_accounts;
	uint32_t generation; /* of the site that was taken */
	uint64_t n_node_changes;
};

struct snapshot_keep *snapshot_keep_new(const struct model *m)
{
	struct snapshot_keep *k = calloc(1, sizeof(*k));

	if (k)
		k->t.m = m;
	return k;
}

/* Forget the snapshot, and with it all entries: they are of another turn. */
static void drop(struct snapshot_keep *k)
{
	const struct model *m = k->t.m;

	snapshot_objects_done(k->t.objects);
	snapshot_free(k->t.s);
	intern_done(&k->requests);
	gpuq_arena_done(&k->keys);
	k->requests = (struct intern)INTERN_INIT(&k->keys);
	gpuq_arena_done(&k->t.mem);
	gpuq_arena_done(&k->t.scratch);
	gpuq_arena_done(&k->base);
	k->t = (struct taking){ .m = m };
	k->n_usages = 0;
}

void snapshot_keep_free(struct snapshot_keep *k)
{
	if (!k)
		return;
	drop(k);
	for (uint32_t i = 0; i < k->room_jobs; i++)
		free(k->jobs[i]);
	free(k->jobs);
	free(k->changed);
	free(k->holders);
	free(k->usage_of);
	free(k->request_of);
	free(k);
}

bool snapshot_keep_changed(struct snapshot_keep *k, uint32_t id)
{
	/* Several events in a row often concern one job. */
	if (k->n_changed && k->changed[k->n_changed - 1] == id)
		return true;
	if (!grow_to(&k->changed, &k->room_changed, k->n_changed + 1))
		return false;
	k->changed[k->n_changed++] = id;
	return true;
}

/* ---- entries of jobs ---- */

/* Return the job with that id; NULL = it is gone. */
static const struct job *job_of(const struct snapshot_keep *k, uint32_t id)
{
	return model_find_job(k->t.m, (struct job_key){ id, -1 });
}

/* Return its place among the holders, or where it would be inserted. */
static uint32_t place_of(const struct snapshot_keep *k, uint32_t id)
{
	uint32_t lo = 0, hi = k->n_holders;

	/* Most are the newest. */
	if (hi && k->holders[hi - 1] < id)
		return hi;
	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (k->holders[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* True if some pod of the job holds resources. */
static bool holds_devices(const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (model_pod_takes(p))
			return true;
	return false;
}

/* Put the job among the holders, or take it from them, as it now is. */
static bool note_holder(struct snapshot_keep *k, uint32_t id)
{
	const struct job *j = job_of(k, id);
	const uint32_t at = place_of(k, id);
	const bool was = at < k->n_holders && k->holders[at] == id, is = j && holds_devices(j);

	if (is && !was) {
		if (!grow_to(&k->holders, &k->room_holders, k->n_holders + 1))
			return false;
		memmove(&k->holders[at + 1], &k->holders[at], (k->n_holders++ - at) * sizeof(id));
		k->holders[at] = id;
	} else if (was && !is) {
		memmove(&k->holders[at], &k->holders[at + 1], (--k->n_holders - at) * sizeof(id));
	}
	return true;
}

/* Discard the entries of changed jobs: they are made again when they are needed. */
static bool note_changes(struct snapshot_keep *k)
{
	for (uint32_t i = 0; i < k->n_changed; i++) {
		const uint32_t id = k->changed[i];
		const uint32_t had = k->room_jobs;

		if (!grow_to(&k->jobs, &k->room_jobs, (size_t)id + 1))
			return false;
		memset(&k->jobs[had], 0, (k->room_jobs - had) * sizeof(k->jobs[0]));
		free(k->jobs[id]);
		k->jobs[id] = NULL;
		if (!note_holder(k, id))
			return false;
	}
	k->n_changed = 0;
	return true;
}

/* True if the entry depends on the present even when no event concerns the job, so that it cannot
 * be kept. */
static bool changes_with_time(const struct job *j)
{
	const struct life *l = j->life;

	return l->n_evictions || l->avoids || l->blocked || j->deps || l->not_before_us ||
	       j->wish->checkpoint_every_us || j->state == GPUQ_JOB_COMPLETING;
}

/* Return the place of the usage of a user in a queue; SNAP_NONE = it has none. */
static uint32_t find_usage(const struct snapshot *s, uint32_t queue, uint32_t user)
{
	uint32_t lo = 0, hi = s->n_usages;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;
		const struct snap_usage *u = &s->usages[mid];

		if (u->queue < queue || (u->queue == queue && u->user < user))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->n_usages && s->usages[lo].queue == queue && s->usages[lo].user == user
		       ? lo
		       : SNAP_NONE;
}

/* Copy a pod, its devices to *devices. */
static void add_pod(struct kept *to, uint32_t at, const struct snap_alloc *from, uint32_t **devices)
{
	to->pods[at] = *from;
	to->pods[at].devices = *devices;
	memcpy(*devices, from->devices, from->n_devices * sizeof(**devices));
	*devices += from->n_devices;
}

/* Make the entry of a job. NULL: no memory. */
static struct kept *make_entry(struct snapshot_keep *k, const struct job *j)
{
	const uint32_t n_promises = j->life->promise ? j->life->promise->n_pods : 0;
	struct kept *to = NULL;
	struct snap_alloc *all;
	const struct pod *p;
	struct snap_job job;
	uint32_t n = 0, n_pods = 0, n_devices = 0, *devices;
	bool holds;

	if (!snapshot_take_entry(&k->t, j, &job, &holds))
		return NULL;
	DL_FOREACH2(j->pods, p, job_next)
		n += model_pod_takes(p);
	all = gpuq_arena_calloc(&k->t.mem, n + n_promises + 1, sizeof(*all));
	if (!all)
		return NULL;
	DL_FOREACH2(j->pods, p, job_next)
		if (model_pod_takes(p) && !snapshot_take_pod(&k->t, p, &all[n_pods++]))
			return NULL;
	for (uint32_t i = 0; i < n_promises; i++)
		if (!snapshot_take_promised(&k->t, j, i, &all[n_pods++]))
			return NULL;
	for (uint32_t i = 0; i < n_pods; i++)
		n_devices += all[i].n_devices;
	/* One allocation holds the entry, its pods and their devices. */
	to = malloc(sizeof(*to) + n_pods * sizeof(*all) + n_devices * sizeof(*devices));
	if (!to)
		return NULL;
	*to = (struct kept){ .turn = k->t.early,
			     .job = job,
			     .n_allocs = n,
			     .n_promises = n_promises,
			     .holds = holds,
			     .timely = changes_with_time(j) || job.n_exclude };
	devices = (uint32_t *)&to->pods[n_pods];
	for (uint32_t i = 0; i < n_pods; i++)
		add_pod(to, i, &all[i], &devices);
	if (to->job.eligible_us == 0)
		to->job.eligible_us = to->job.submit_us;
	if (!to->job.gate_object)
		to->job.gate_object = "";
	to->job.usage = find_usage(k->t.s, to->job.queue, to->job.user);
	to->job.n_waiting = to->job.state == SNAP_PENDING;
	return to;
}

/* Note where the requests of the model are in a new snapshot. */
static bool note_requests(struct snapshot_keep *k)
{
	for (const struct request *r = k->t.m->requests.list; r; r = r->next) {
		const uint32_t i = intern(&k->requests, r->bytes, r->len, NULL);

		if (i == INTERN_FAILED || !grow_to(&k->request_of, &k->room_requests, i + 1))
			return false;
		k->request_of[i] = r->early_ix;
	}
	return true;
}

/* True if the snapshot has the request: it was there when that was taken, or one like it. */
static bool has_request(struct snapshot_keep *k, struct request *r)
{
	bool fresh = false;
	uint32_t i;

	if (r->early_turn == k->t.early)
		return true;
	i = intern(&k->requests, r->bytes, r->len, &fresh);
	if (i == INTERN_FAILED || fresh) /* the table is made again with the snapshot */
		return false;
	r->early_ix = k->request_of[i];
	r->early_turn = k->t.early;
	return true;
}

/* See that the job's entry is there and up to date. *anew: the snapshot lacks its request or its
 * user's usage. */
static bool see_to(struct snapshot_keep *k, uint32_t id, bool *anew)
{
	struct kept **at = &k->jobs[id];
	const struct job *j;

	if (*at && (*at)->turn == k->t.early && !(*at)->timely)
		return true;
	free(*at);
	*at = NULL;
	j = job_of(k, id);
	*anew |= j && !has_request(k, j->request);
	if (!j || *anew)
		return j != NULL;
	*at = make_entry(k, j);
	*anew |= *at && (*at)->job.usage == SNAP_NONE;
	return *at != NULL;
}

/* See to the entries of all jobs that the snapshot is to have, as long as it need not be taken
 * anew. False without memory. */
static bool see_to_all(struct snapshot_keep *k, const struct keep_pending *pending, uint32_t n,
		       bool *anew)
{
	bool ok = true;

	for (uint32_t i = 0; ok && !*anew && i < k->n_holders; i++)
		ok = see_to(k, k->holders[i], anew);
	for (uint32_t i = 0; ok && !*anew && i < n; i++)
		ok = see_to(k, pending[i].id, anew);
	return ok;
}

/* ---- the snapshot ---- */

/* Replace the snapshot by a new one without jobs; entries of the old one are not valid in it. */
static int take_anew(struct snapshot_keep *k, int64_t now_us, struct gpuq_err *err)
{
	const struct model *m = k->t.m;
	int rc;

	drop(k);
	k->t.now_us = now_us;
	rc = snapshot_take_empty(&k->t, err);
	/* All that was made with the snapshot lasts as long as that. */
	k->base = k->t.mem;
	k->t.mem = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	k->generation = m->site_generation;
	k->n_node_changes = m->n_node_changes;
	if (rc == 0 && !note_requests(k))
		rc = gpuq_no_memory(err);
	return rc;
}

/* Add an account to the usage of its user in its queue, which is looked up once. */
static bool add_use(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	struct snapshot_keep *k = arg;
	struct snapshot *s = k->t.s;

	if (k->at_account == k->n_usages) {
		if (!grow_to(&k->usage_of, &k->room_usages, k->n_usages + 1)) {
			s->builder->failed = true;
			return false;
		}
		k->usage_of[k->n_usages++] =
			*user ? find_usage(s, k->t.queue_of[q->ix], snapshot_user(s, user))
			      : SNAP_NONE;
	}
	if (k->usage_of[k->at_account] != SNAP_NONE)
		s->usages[k->usage_of[k->at_account]].used += (uint64_t)(used >> SNAP_USED_SHIFT);
	k->at_account++;
	return true;
}

/* Renew what changes with time in the configuration, the queues and the usages. */
static int renew_usage(struct snapshot_keep *k, struct gpuq_err *err)
{
	const struct taking *t = &k->t;
	struct snapshot *s = t->s;
	const uint32_t *n_claims = snapshot_claims(t->m, t->now_us, &k->t.mem);
	const struct queue_usage *usage = snapshot_queue_usage(t->m, t->now_us, &k->t.mem);

	if (!n_claims || !usage)
		return gpuq_no_memory(err);
	s->config.now_us = t->now_us;
	s->config.wake_us = 0;
	for (uint32_t i = 0; i < t->m->n_queues; i++) {
		struct snap_queue *q = &s->queues[t->queue_of[i]];

		q->n_claims_hour = n_claims[i];
		snapshot_fill_usage(t->m, t->m->queues[i], &usage[i], &s->config, q);
	}
	for (uint32_t i = 0; i < s->n_usages; i++)
		s->usages[i].used = 0;
	/* Accounts were added or removed: their order no longer tells their usages. */
	if (k->n_accounts != HASH_COUNT(t->m->accounts))
		k->n_usages = 0;
	k->n_accounts = HASH_COUNT(t->m->accounts);
	k->at_account = 0;
	account_each(t->m, t->now_us, add_use, k);
	return 0;
}

/* Renew the list of recent losses of queues to one another. */
static int renew_losses(struct snapshot_keep *k, struct gpuq_err *err)
{
	const struct taking *t = &k->t;
	struct seal w = { .s = t->s, .err = err };
	int rc = 0;

	t->s->n_losses = 0;
	snapshot_losses(
		&(struct snap_past){
			.m = t->m, .now_us = t->now_us, .queue_of = t->queue_of, .mem = &k->t.mem },
		t->s);
	if (t->s->n_losses)
		rc = snapshot_past_sort(&w);
	t->s->builder->room_losses = t->s->n_losses; /* it may be another table now */
	gpuq_arena_done(&w.mem);
	return rc;
}

/* Append the pods of an entry to a table, as those of the job at that index. */
static void add_pods(struct snap_alloc *table, uint32_t *n, const struct snap_alloc *from,
		     uint32_t n_pods, uint32_t job)
{
	for (uint32_t i = 0; i < n_pods; i++) {
		table[*n] = from[i];
		table[(*n)++].job = job;
	}
}

/* Append a job and its pods; room was made. n_rest > 0: the entry stands for this many equivalent
 * jobs. */
static bool add_job(struct snapshot_keep *k, const struct kept *from, uint32_t n_rest)
{
	struct snapshot *s = k->t.s;
	struct snap_job *to = &s->jobs[s->n_jobs];

	*to = from->job;
	if (n_rest > 0) {
		struct snap_range *range = gpuq_arena_calloc(&k->t.mem, 1, sizeof(*range));

		if (!range)
			return false;
		*range = (struct snap_range){ 0, (int32_t)n_rest - 1, 1 };
		to->ranges = range;
		to->n_ranges = 1;
		to->n_waiting = n_rest;
	}
	to->alloc_first = s->n_allocs;
	to->n_allocs = from->n_allocs;
	add_pods(s->allocs, &s->n_allocs, from->pods, from->n_allocs, s->n_jobs);
	to->promise_first = s->n_promises;
	to->n_promises = from->n_promises;
	add_pods(s->promises, &s->n_promises, &from->pods[from->n_allocs], from->n_promises,
		 s->n_jobs++);
	return true;
}

/* Make room in the tables for all jobs, so that appending cannot fail. */
static bool make_room(struct snapshot_keep *k, const struct keep_pending *pending, uint32_t n)
{
	struct snapshot *s = k->t.s;
	struct snap_builder *b = s->builder;
	uint32_t n_allocs = 0, n_promises = 0;

	for (uint32_t i = 0; i < k->n_holders; i++) {
		n_allocs += k->jobs[k->holders[i]]->n_allocs;
		n_promises += k->jobs[k->holders[i]]->n_promises;
	}
	for (uint32_t i = 0; i < n; i++)
		n_promises += k->jobs[pending[i].id]->n_promises;
	return grow_to(&s->jobs, &b->room_jobs, k->n_holders + n) &&
	       grow_to(&s->allocs, &b->room_allocs, n_allocs) &&
	       grow_to(&s->promises, &b->room_promises, n_promises);
}

/* Write the tables of jobs and pods, in the order of ids. */
static bool renew_jobs(struct snapshot_keep *k, const struct keep_pending *pending, uint32_t n)
{
	struct snapshot *s = k->t.s;
	uint32_t h = 0;

	if (!make_room(k, pending, n))
		return false;
	s->n_jobs = s->n_allocs = s->n_promises = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (; h < k->n_holders && k->holders[h] < pending[i].id; h++)
			if (!add_job(k, k->jobs[k->holders[h]], 0))
				return false;
		/* One that still holds devices is among the holders. */
		if (h < k->n_holders && k->holders[h] == pending[i].id)
			continue;
		if (!add_job(k, k->jobs[pending[i].id], pending[i].n_rest))
			return false;
	}
	for (; h < k->n_holders; h++)
		if (!add_job(k, k->jobs[k->holders[h]], 0))
			return false;
	return true;
}

/* Count the licenses in use anew. */
static void count_licenses(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_licenses; i++)
		s->licenses[i].used = 0;
	for (uint32_t i = 0; s->n_licenses && i < s->n_jobs; i++) {
		const struct snap_request *r = &s->requests[s->jobs[i].request];

		for (uint32_t l = 0; s->jobs[i].state != SNAP_PENDING && l < r->n_licenses; l++)
			s->licenses[r->licenses[l].license].used += r->licenses[l].count;
	}
}

/* True if parts of the snapshot that are not renewed have changed. */
static bool is_stale(const struct snapshot_keep *k)
{
	const struct model *m = k->t.m;

	return !k->t.s || k->generation != m->site_generation ||
	       k->n_node_changes != m->n_node_changes;
}

int snapshot_keep_take(struct snapshot_keep *k, int64_t now_us, const struct keep_pending *pending,
		       uint32_t n_pending, struct snapshot **out, struct gpuq_err *err)
{
	bool anew = is_stale(k);
	int rc = 0;

	gpuq_arena_reset(&k->t.mem);
	k->t.now_us = now_us;
	if (!note_changes(k))
		return gpuq_no_memory(err);
	/* A snapshot that lacks something is taken anew, once: a new one lacks nothing. */
	for (int i = 0; i < 2; i++) {
		if (anew)
			rc = take_anew(k, now_us, err);
		anew = false;
		if (rc == 0 && !see_to_all(k, pending, n_pending, &anew))
			rc = gpuq_no_memory(err);
		if (rc < 0 || !anew)
			break;
	}
	if (rc == 0)
		rc = renew_usage(k, err);
	if (rc == 0)
		rc = renew_losses(k, err);
	if (rc == 0 && (!renew_jobs(k, pending, n_pending) ||
			!snapshot_line_up(k->t.s, &k->t.s->arena) || k->t.s->builder->failed))
		rc = gpuq_no_memory(err);
	if (rc < 0)
		return rc;
	count_licenses(k->t.s);
	snapshot_derive_free(k->t.s);
	*out = k->t.s;
	return 0;
}
