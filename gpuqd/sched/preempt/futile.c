#include "gpuqd/sched/preempt/futile.h"

#include "gpuqd/sched/quota/holdings.h"

#include <string.h>

#define FLAVORS_MAX 8 /* jobs that accept more are not compared */
#define PER_QUEUE_MAX 64 /* remembered at most, to compare with */

/* Properties that must be the same. */
struct asked {
	const struct snap_take *takes; /* of one request alone, unless it takes none */
	uint32_t user, capset, where, profile, pods_min, unit_pods, n_flavors;
	uint32_t flavors[FLAVORS_MAX];
	int64_t priority, charge_milli, gpus_milli, gpu_memory_bytes, gpu_memory_least;
	int32_t gpu_part_milli;
	bool preemptible, spread;
};

/* Properties that must be no less. */
struct least {
	int64_t cpu_milli, memory_bytes, walltime_us, least_us, grace_us, submit_us;
};

struct failure {
	uint32_t next; /* of its queue; SNAP_NONE */
	struct asked asked;
	struct least least;
	struct claim_told told; /* why, to be said of the next one too */
};

struct futile {
	uint32_t n_actions; /* of the plan when these failed: after another decision the result may
			     * differ */
	uint32_t *first, *n_of; /* by queue */
	struct failure *failures;
	uint32_t n, room;
};

/* Describe the job; false: jobs with constraints of their own are not compared. */
static bool describe(const struct cycle *c, uint32_t job, struct asked *out, struct least *least)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	const struct snap_group *g = r->groups;

	if (r->n_groups != 1 || r->n_others || r->n_licenses || r->exclusive ||
	    r->n_flavor_ix > FLAVORS_MAX || g->topology_required || g->topology_preferred ||
	    g->n_slices || j->n_exclude || j->evicted_us || j->deadline_us)
		return false;
	memset(out, 0, sizeof(*out)); /* compared byte by byte */
	out->user =
		holdings_per_user(c, j->queue) || c->s->n_reservations > 0 ? j->user : SNAP_NONE;
	out->capset = j->capset;
	out->where = r->where[0];
	out->takes = g->n_takes ? g->takes : NULL;
	out->profile = g->profile;
	out->pods_min = g->pods_min;
	out->unit_pods = g->unit_pods;
	out->n_flavors = cycle_flavors(c, job);
	for (uint32_t i = 0; r->gpus_milli > 0 && i < out->n_flavors; i++)
		out->flavors[i] = r->flavor_ix[i];
	out->priority = j->priority;
	out->charge_milli = j->charge_milli;
	out->gpus_milli = g->gpus_milli;
	out->gpu_memory_bytes = g->gpu_memory_bytes;
	out->gpu_memory_least = g->gpu_memory_least;
	out->gpu_part_milli = g->gpu_part_milli;
	out->preemptible = j->preemptible;
	out->spread = j->spread;
	*least = (struct least){ .cpu_milli = g->cpu_milli,
				 .memory_bytes = g->memory_bytes,
				 .walltime_us = j->walltime_us,
				 .least_us = j->walltime_min_us,
				 .grace_us = j->grace_us,
				 .submit_us = j->submit_us };
	return true;
}

/* True if x requests no less than the other and came no earlier: where a search for that one failed,
 * one for x fails. */
static bool is_no_less(const struct least *x, const struct least *than)
{
	return x->cpu_milli >= than->cpu_milli && x->memory_bytes >= than->memory_bytes &&
	       x->walltime_us >= than->walltime_us && x->least_us == than->least_us &&
	       x->grace_us >= than->grace_us && x->submit_us >= than->submit_us;
}

bool futile_known(const struct cycle *c, uint32_t job, struct claim *k)
{
	const struct futile *f = c->futile;
	struct asked asked;
	struct least least;

	if (!f || f->n_actions != c->plan.n_actions || !describe(c, job, &asked, &least))
		return false;
	for (uint32_t i = f->first[c->s->jobs[job].queue]; i != SNAP_NONE;
	     i = f->failures[i].next) {
		const struct failure *x = &f->failures[i];

		if (memcmp(&x->asked, &asked, sizeof(asked)) != 0 || !is_no_less(&least, &x->least))
			continue;
		k->told = x->told;
		return true;
	}
	return false;
}

/* Forget all: nothing is known after another decision. */
static struct futile *anew(struct cycle *c)
{
	struct futile *f = c->futile;

	if (!f) {
		f = cycle_alloc(c, 1, sizeof(*f));
		if (!f)
			return NULL;
		f->first = cycle_alloc(c, c->s->n_queues, sizeof(*f->first));
		f->n_of = cycle_alloc(c, c->s->n_queues, sizeof(*f->n_of));
		if (c->failed)
			return NULL;
		c->futile = f;
	}
	f->n_actions = c->plan.n_actions;
	f->n = 0;
	for (uint32_t q = 0; q < c->s->n_queues; q++) {
		f->first[q] = SNAP_NONE;
		f->n_of[q] = 0;
	}
	return f;
}

void futile_note(struct cycle *c, uint32_t job, const struct claim *k)
{
	const uint32_t q = c->s->jobs[job].queue;
	struct futile *f = c->futile;
	struct failure *x, now = { 0 };

	if (c->failed || !describe(c, job, &now.asked, &now.least))
		return;
	if (!f || f->n_actions != c->plan.n_actions)
		f = anew(c);
	if (!f || f->n_of[q] == PER_QUEUE_MAX)
		return;
	x = cycle_push(c, &f->failures, &f->n, &f->room, sizeof(*x), 1);
	if (!x)
		return;
	now.told = k->told;
	now.next = f->first[q];
	*x = now;
	f->first[q] = f->n - 1;
	f->n_of[q]++;
}
