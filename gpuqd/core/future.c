#include "gpuqd/core/pack.h"

#include <string.h>

#include "gpuqd/core/amount.h"
#include "gpuqd/core/sort.h"

/* Backfill: jobs that are blocked get a planned start, the first ones in order of
 * service, and nobody who starts now may make it later. Planned starts name nodes and
 * counts of devices, never devices: as long as the count holds at every moment, whoever
 * starts finds some that are free. Between now and a job's end what a node has to spare
 * is least where planned starts begin; so these are the moments that are looked at.
 * Source: D. Lifka, "The ANL/IBM SP Scheduling System", 1995; Mu'alem and Feitelson,
 * IEEE TPDS 12(6), 2001. */

#define TIMES_TRIED 64
#define OVERRUN_US (60 * GPUQ_US_PER_S) /* what is past its time is taken to end then */

/* What a pod that holds something now gives back when it ends. */
struct release {
	int64_t end_us;
	uint32_t node, whole;
	int64_t cpu, memory;
};

/* A planned start's hold on one node, and what the node has to spare when it begins. */
struct booked {
	uint32_t node, job;
	int64_t start_us, end_us;
	struct need need; /* of all its pods there */
	int64_t whole, cpu, memory, pods; /* to spare */
};

/* Node amounts at some moment; stands in for the cycle's own while planning. */
struct amounts {
	int64_t *cpu, *memory, *pods;
	uint16_t *whole;
	struct bucket *buckets;
};

struct future {
	struct release *releases; /* by end */
	uint32_t n_releases, room_releases;
	bool sorted;
	int64_t *until; /* by device: when it is free; 0 = now, GPUQ_UNLIMITED = nobody knows */
	struct booked *booked;
	uint32_t n_booked, room_booked;
	int64_t first_us; /* when the first of them begins */
	uint32_t *n_of_flavor; /* planned starts by flavor; [n_flavors] = without devices */
	uint32_t n_tests;
	struct amounts at, least; /* scratch: at one moment, and the least of several */
};

static int64_t add_time(int64_t t, int64_t d)
{
	int64_t sum;

	return d == GPUQ_UNLIMITED || __builtin_add_overflow(t, d, &sum) ? GPUQ_UNLIMITED : sum;
}

static void give(int64_t *amount, int64_t more)
{
	if (*amount != GPUQ_UNLIMITED)
		*amount = amount_sum(*amount, more);
}

static int64_t end_of(const struct cycle *c, const struct snap_job *j, bool releasing)
{
	const int64_t now = c->s->config.now_us;
	const int64_t end = add_time(j->start_us, j->walltime_us);

	if (releasing || end <= now)
		return now + OVERRUN_US;
	return end;
}

static void add_release(struct cycle *c, int64_t end_us, uint32_t node, const struct need *n)
{
	struct release *r = cycle_push(c, &c->future->releases, &c->future->n_releases,
				       &c->future->room_releases, sizeof(*r), 1);

	if (r)
		*r = (struct release){ end_us, node, n->whole, n->cpu, n->memory };
	c->future->sorted = false;
}

static void hold_device(struct cycle *c, uint32_t device, int64_t end_us)
{
	int64_t *until = &c->future->until[device];

	*until = end_us > *until ? end_us : *until;
}

static struct amounts new_amounts(struct cycle *c)
{
	const uint32_t n = c->s->n_nodes;

	return (struct amounts){
		.cpu = cycle_alloc(c, n, sizeof(int64_t)),
		.memory = cycle_alloc(c, n, sizeof(int64_t)),
		.pods = cycle_alloc(c, n, sizeof(int64_t)),
		.whole = cycle_alloc(c, n, sizeof(uint16_t)),
		.buckets = cycle_alloc(c, c->max_whole + 1, sizeof(struct bucket)),
	};
}

/* When what holds the cluster now will have ended; made when first asked. */
static bool look_ahead(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct future *f;

	if (c->future)
		return true;
	f = c->future = cycle_alloc(c, 1, sizeof(*f));
	if (!f)
		return false;
	f->until = cycle_alloc(c, s->n_devices, sizeof(*f->until));
	f->n_of_flavor = cycle_alloc(c, (size_t)s->n_flavors + 1, sizeof(*f->n_of_flavor));
	f->at = new_amounts(c);
	f->least = new_amounts(c);
	if (c->failed)
		return false;
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];
		const struct snap_job *j = &s->jobs[a->job];
		const struct snap_request *r = &s->requests[j->request];
		const struct need one =
			nodes_need(&r->groups[a->group < r->n_groups ? a->group : 0]);
		const int64_t end = end_of(c, j, a->releasing || j->state == SNAP_LEAVING);

		add_release(c, end, a->node, &one);
		for (uint32_t d = 0; d < a->n_devices; d++)
			if (a->devices[d] < s->nodes[a->node].n_devices)
				hold_device(c, s->nodes[a->node].device_first + a->devices[d], end);
	}
	/* What was started in this cycle before anybody looked ahead. */
	for (uint32_t i = 0; i < c->n_actions; i++)
		future_started(c, &c->actions[i]);
	/* Devices that are not free although no pod of ours is known to hold them. */
	for (uint32_t d = 0; d < s->n_devices; d++)
		if (c->device_free[d] != SNAP_MILLI &&
		    (f->until[d] == 0 || !s->devices[d].healthy || s->devices[d].foreign_milli > 0))
			f->until[d] = GPUQ_UNLIMITED;
	return !c->failed;
}

void future_started(struct cycle *c, const struct plan_action *a)
{
	const struct snap_job *j = &c->s->jobs[a->job];
	const int64_t end = add_time(c->s->config.now_us, j->walltime_us);

	if (!c->future || a->kind != PLAN_PLACE)
		return;
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *p = &c->plan_pods[a->pod_first + i];
		const struct need one = nodes_need(&c->s->requests[j->request].groups[p->group]);

		add_release(c, end, p->node, &one);
		for (uint32_t d = 0; d < p->n_devices; d++)
			hold_device(c,
				    c->s->nodes[p->node].device_first +
					    c->plan_devices[p->device_first + d],
				    end);
		for (uint32_t b = 0; b < c->future->n_booked; b++) {
			struct booked *booked = &c->future->booked[b];

			if (booked->node != p->node || booked->start_us >= end)
				continue;
			booked->whole -= one.whole + one.parts;
			give(&booked->cpu, -one.cpu);
			give(&booked->memory, -one.memory);
			give(&booked->pods, -1);
		}
	}
}

static int cmp_release(const void *ctx, uint32_t x, uint32_t y)
{
	const struct release *r = ctx;
	int d = sort_i64(r[x].end_us, r[y].end_us);

	return d ? d : sort_i64(x, y);
}

static void sort_releases(struct cycle *c)
{
	struct future *f = c->future;
	struct release *sorted;
	uint32_t *ix, *scratch;

	if (f->sorted)
		return;
	ix = cycle_scratch(c, f->n_releases, sizeof(*ix));
	scratch = cycle_scratch(c, f->n_releases, sizeof(*scratch));
	sorted = cycle_alloc(c, f->n_releases, sizeof(*sorted));
	if (c->failed)
		return;
	for (uint32_t i = 0; i < f->n_releases; i++)
		ix[i] = i;
	sort_ix(ix, scratch, f->n_releases, cmp_release, f->releases);
	for (uint32_t i = 0; i < f->n_releases; i++)
		sorted[i] = f->releases[ix[i]];
	f->releases = sorted;
	f->room_releases = f->n_releases;
	f->sorted = true;
}

/* What nodes have free at t when everything ends in time and planned starts begin. */
static void free_at(struct cycle *c, int64_t t, struct amounts *out)
{
	const struct snapshot *s = c->s;
	const struct future *f = c->future;

	memcpy(out->cpu, c->cpu, s->n_nodes * sizeof(*out->cpu));
	memcpy(out->memory, c->memory, s->n_nodes * sizeof(*out->memory));
	memcpy(out->pods, c->pods, s->n_nodes * sizeof(*out->pods));
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		const int64_t *until = &f->until[s->nodes[n].device_first];

		out->whole[n] = 0;
		for (uint32_t d = 0; d < s->nodes[n].n_devices; d++)
			out->whole[n] += until[d] <= t;
	}
	for (uint32_t i = 0; i < f->n_releases && f->releases[i].end_us <= t; i++) {
		give(&out->cpu[f->releases[i].node], f->releases[i].cpu);
		give(&out->memory[f->releases[i].node], f->releases[i].memory);
		give(&out->pods[f->releases[i].node], 1);
	}
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked *b = &f->booked[i];

		if (b->start_us > t || b->end_us <= t)
			continue;
		give(&out->cpu[b->node], -b->need.cpu);
		give(&out->memory[b->node], -b->need.memory);
		give(&out->pods[b->node], -b->need.pods);
		out->whole[b->node] -= out->whole[b->node] < b->need.whole
					       ? out->whole[b->node]
					       : (uint16_t)b->need.whole;
	}
	c->steps += s->n_nodes;
}

static void lower(int64_t *to, int64_t bound)
{
	*to = *to < bound ? *to : bound;
}

/* The least that nodes have free from t to end: at t, and as others begin. */
static void free_throughout(struct cycle *c, int64_t t, int64_t end)
{
	struct future *f = c->future;
	struct amounts *least = &f->least;

	free_at(c, t, least);
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked *b = &f->booked[i];

		if (b->start_us <= t || b->start_us >= end)
			continue;
		lower(&least->cpu[b->node], b->cpu);
		lower(&least->memory[b->node], b->memory);
		lower(&least->pods[b->node], b->pods);
		if (least->whole[b->node] > b->whole)
			least->whole[b->node] = (uint16_t)(b->whole > 0 ? b->whole : 0);
	}
}

/* ---- planning a start ---- */

static void swap_amounts(struct cycle *c, struct amounts *with)
{
	const struct amounts mine = { c->cpu, c->memory, c->pods, c->whole, c->buckets };

	c->cpu = with->cpu;
	c->memory = with->memory;
	c->pods = with->pods;
	c->whole = with->whole;
	c->buckets = with->buckets;
	*with = mine;
	c->planning = !c->planning;
}

/* Note what the job's places take, node by node, and what is then left there. */
static void book(struct cycle *c, uint32_t job, int64_t t, int64_t end)
{
	struct future *f = c->future;
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	const uint32_t first = f->n_booked;

	if (first == 0 || t < f->first_us)
		f->first_us = t;
	free_at(c, t, &f->at);
	for (uint32_t i = 0; i < c->n_places; i++) {
		const struct place *p = &c->places[i];
		const struct need one = pack_need(c, &r->groups[p->group]);
		uint32_t b = first;

		while (b < f->n_booked && f->booked[b].node != p->node)
			b++;
		if (b == f->n_booked) {
			struct booked *fresh = cycle_push(c, &f->booked, &f->n_booked,
							  &f->room_booked, sizeof(*fresh), 1);

			if (!fresh)
				return;
			*fresh = (struct booked){ .node = p->node,
						  .job = job,
						  .start_us = t,
						  .end_us = end,
						  .whole = f->at.whole[p->node],
						  .cpu = f->at.cpu[p->node],
						  .memory = f->at.memory[p->node],
						  .pods = f->at.pods[p->node] };
		}
		f->booked[b].need.whole += one.whole;
		f->booked[b].need.cpu = amount_sum(f->booked[b].need.cpu, one.cpu);
		f->booked[b].need.memory = amount_sum(f->booked[b].need.memory, one.memory);
		f->booked[b].need.pods++;
		/* Of its own and of every other planned start that begins meanwhile. */
		for (uint32_t o = 0; o < f->n_booked; o++) {
			struct booked *other = &f->booked[o];

			if (other->node != p->node || other->start_us < t || other->start_us >= end)
				continue;
			other->whole -= one.whole;
			give(&other->cpu, -one.cpu);
			give(&other->memory, -one.memory);
			give(&other->pods, -1);
		}
	}
}

static void emit_reserve(struct cycle *c, uint32_t job, uint32_t flavor, int64_t t)
{
	struct plan_action *a = CYCLE_PUSH(c, actions, 1);
	struct plan_pod *pods = CYCLE_PUSH(c, plan_pods, c->n_places);

	if (!a || !pods)
		return;
	for (uint32_t i = 0; i < c->n_places; i++)
		pods[c->places[i].index] = (struct plan_pod){ .group = c->places[i].group,
							      .index = c->places[i].index,
							      .node = c->places[i].node };
	*a = (struct plan_action){
		.kind = PLAN_RESERVE,
		.job = job,
		.key = { c->s->jobs[job].key.id, sched_next_element(c, job) },
		.flavor = flavor,
		.pod_first = c->n_plan_pods - c->n_places,
		.n_pods = c->n_places,
		.start_us = t,
		.claimant = SNAP_NONE,
	};
}

static bool plan_at(struct cycle *c, uint32_t job, uint32_t flavor, int64_t t)
{
	struct future *f = c->future;
	const int64_t end = add_time(t, c->s->jobs[job].walltime_us);
	bool placed;

	free_throughout(c, t, end);
	swap_amounts(c, &f->least);
	nodes_fill_buckets(c);
	placed = pack_job(c, job, flavor);
	if (placed)
		pack_undo(c, job); /* the places stay known, see pack_undo */
	swap_amounts(c, &f->least);
	if (!placed)
		return false;
	c->planning = true;
	book(c, job, t, end);
	c->planning = false;
	emit_reserve(c, job, flavor, t);
	return true;
}

static bool asks_for_parts(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (nodes_need(&r->groups[g]).parts)
			return true;
	return false;
}

/* Devices that are free of a flavor now. */
static int64_t devices_now(const struct cycle *c, uint32_t flavor)
{
	int64_t n = 0;

	for (uint32_t i = 0; flavor != SNAP_NONE && i < c->s->n_nodes; i++)
		if (bits_has(c->flavors[flavor], i) && bits_has(c->usable, i))
			n += c->whole[i];
	return n;
}

/* The next moment after t at which something ends, of what runs or of what is planned;
 * *release = the first release behind it. */
static int64_t next_end(const struct cycle *c, int64_t t, uint32_t *release)
{
	const struct future *f = c->future;
	int64_t next = GPUQ_UNLIMITED;

	while (*release < f->n_releases && f->releases[*release].end_us <= t)
		(*release)++;
	if (*release < f->n_releases)
		next = f->releases[*release].end_us;
	for (uint32_t b = 0; b < f->n_booked; b++)
		if (f->booked[b].end_us > t && f->booked[b].end_us < next)
			next = f->booked[b].end_us;
	return next;
}

/* Instances are not counted ahead of time. */
static bool asks_for_instances(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].mig)
			return true;
	return false;
}

bool future_reserve(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_config *config = &c->s->config;
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	const uint32_t kind = flavor == SNAP_NONE ? c->s->n_flavors : flavor;
	int64_t t = config->now_us, free_devices;
	uint32_t release = 0, counted = 0;
	struct future *f;

	if (config->backfill_depth == 0 || r->exclusive || asks_for_instances(r) || !look_ahead(c))
		return false;
	f = c->future;
	if (f->n_of_flavor[kind] >= config->backfill_depth || f->n_tests++ >= config->max_job_test)
		return false;
	sort_releases(c);
	free_devices = devices_now(c, flavor);
	for (uint32_t tried = 0; !c->failed && tried < TIMES_TRIED;) {
		t = next_end(c, t, &release);
		if (t == GPUQ_UNLIMITED)
			break;
		for (; counted < f->n_releases && f->releases[counted].end_us <= t; counted++)
			if (flavor == SNAP_NONE ||
			    bits_has(c->flavors[flavor], f->releases[counted].node))
				free_devices += f->releases[counted].whole;
		/* Necessary, and cheap: enough in sum, planned starts left aside. */
		if (free_devices * SNAP_MILLI < r->gpus_milli && !asks_for_parts(r))
			continue;
		tried++;
		if (plan_at(c, job, flavor, t)) {
			f->n_of_flavor[kind]++;
			return true;
		}
	}
	return false;
}

/* ---- starting beside planned starts ---- */

bool future_binds(const struct cycle *c, uint32_t job)
{
	const int64_t end = add_time(c->s->config.now_us, c->s->jobs[job].walltime_us);

	return c->future && c->future->n_booked > 0 && c->future->first_us < end;
}

/* Leave a node what one planned start there counts on. */
static void withhold(struct cycle *c, const struct booked *b, bool exclusive, bool parts)
{
	const uint32_t n = b->node;
	const int64_t spare = b->whole > 0 ? b->whole : 0;

	nodes_change(c, n);
	lower(&c->cpu[n], b->cpu);
	lower(&c->memory[n], b->memory);
	lower(&c->pods[n], b->pods);
	if (c->whole[n] > spare)
		c->withheld[n] = (uint16_t)(c->withheld[n] + c->whole[n] - spare);
	/* A part of a device may take a whole one from the count, later on. */
	if (exclusive || parts)
		lower(&c->pods[n], exclusive ? 0 : spare);
	nodes_changed(c, n);
}

bool future_pack(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t *behind)
{
	struct future *f = c->future;
	const int64_t end = add_time(c->s->config.now_us, c->s->jobs[job].walltime_us);
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	const bool parts = asks_for_parts(r);
	struct kept {
		int64_t cpu, memory, pods;
		uint16_t withheld;
	} *kept = cycle_scratch(c, f->n_booked, sizeof(*kept));
	bool placed;

	*behind = SNAP_NONE;
	if (!kept)
		return false;
	for (uint32_t b = 0; b < f->n_booked; b++) {
		const uint32_t n = f->booked[b].node;

		kept[b] = (struct kept){ c->cpu[n], c->memory[n], c->pods[n], c->withheld[n] };
		if (f->booked[b].start_us >= end)
			continue;
		if (*behind == SNAP_NONE)
			*behind = f->booked[b].job;
		withhold(c, &f->booked[b], r->exclusive, parts);
		kept[b].cpu -= c->cpu[n];
		kept[b].memory -= c->memory[n];
		kept[b].pods -= c->pods[n];
	}
	c->withholding = true;
	placed = pack_job(c, job, flavor);
	c->withholding = false;
	for (uint32_t b = f->n_booked; b-- > 0;) {
		const uint32_t n = f->booked[b].node;

		if (f->booked[b].start_us >= end)
			continue;
		nodes_change(c, n);
		c->cpu[n] += kept[b].cpu;
		c->memory[n] += kept[b].memory;
		c->pods[n] += kept[b].pods;
		c->withheld[n] = kept[b].withheld;
		nodes_changed(c, n);
	}
	return placed;
}
