#include "gpuqd/sched/timeline/reservations_fit.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define OCCURRENCES_MAX 53 /* of a recurring one: a year of weeks */
#define TRIES_MAX 512 /* starts tried to find the earliest that fits */
#define STEPS_MAX 1024 /* begins of others within one occurrence */
#define FILTERS_MAX 64 /* kinds of amounts at one time; further ones count as of any kind */

struct fit {
	const struct calendar_node *nodes;
	uint32_t n_nodes;
	const struct calendar_entry *entries;
	uint32_t which; /* the entry that is checked */
	int64_t now_us;
	bool *taken; /* scratch, by node */
};

/* Reserved amounts of one kind at one time. */
struct demand {
	uint32_t flavor, pool;
	int64_t milli, room; /* room: devices of that kind */
	bool own; /* that of the entry being checked */
};

static bool covers(const struct calendar_entry *e, int64_t t)
{
	return recur_at(&e->when, t) <= t;
}

static bool is_kind(const struct calendar_node *n, uint32_t flavor, uint32_t pool)
{
	return (flavor == CALENDAR_NONE || n->flavor == flavor) &&
	       (pool == CALENDAR_NONE || n->pool == pool);
}

static int64_t whole_of(const struct calendar_node *n)
{
	return n->milli - n->cut_milli;
}

/* Add what an occurrence reserves to the sum of those with the same filter. When there are more
 * filters than that, the last sum takes the rest: it then requests too much rather than too
 * little. */
static void add_demand(struct demand *d, uint32_t *n, const struct calendar_entry *e, bool own)
{
	uint32_t i = 0;

	while (i < *n && (d[i].own != own || d[i].flavor != e->flavor || d[i].pool != e->pool))
		i++;
	if (i == FILTERS_MAX)
		i--;
	else if (i == *n)
		d[(*n)++] = (struct demand){ .flavor = e->flavor, .pool = e->pool, .own = own };
	d[i].milli = amount_sum(d[i].milli, e->milli);
}

/* Return what is left at t for an amount, after the other reservations at that time took theirs.
 * The more special ones are served first, the own last: kinds are nested. */
static int64_t left_of(const struct fit *f, const struct calendar_entry *e, int64_t t)
{
	struct demand d[FILTERS_MAX];
	int64_t *left = calloc(f->n_nodes + 1, sizeof(*left)), own = 0;
	uint32_t n = 0;

	if (!left)
		return INT64_MAX; /* no memory: no reservation is refused */
	for (uint32_t i = 0; i < f->which; i++)
		if (f->entries[i].milli > 0 && covers(&f->entries[i], t))
			add_demand(d, &n, &f->entries[i], false);
	for (uint32_t i = 0; i < f->n_nodes; i++)
		left[i] = f->taken[i] ? 0 : whole_of(&f->nodes[i]);
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < f->n_nodes; i++)
			d[k].room += is_kind(&f->nodes[i], d[k].flavor, d[k].pool) ? left[i] : 0;
	for (uint32_t done = 0; done < n; done++) {
		uint32_t least = 0;

		for (uint32_t k = 1; k < n; k++)
			if (d[k].room < d[least].room)
				least = k;
		/* From nodes that the entry being checked cannot use, first. */
		for (int mine = 0; mine < 2; mine++)
			for (uint32_t i = 0; i < f->n_nodes && d[least].milli > 0; i++) {
				const struct calendar_node *node = &f->nodes[i];
				const int64_t part =
					left[i] < d[least].milli ? left[i] : d[least].milli;

				if (!is_kind(node, d[least].flavor, d[least].pool) ||
				    is_kind(node, e->flavor, e->pool) != mine)
					continue;
				left[i] -= part;
				d[least].milli -= part;
			}
		d[least].room = INT64_MAX;
	}
	for (uint32_t i = 0; i < f->n_nodes; i++)
		own += is_kind(&f->nodes[i], e->flavor, e->pool) ? left[i] : 0;
	free(left);
	return own;
}

/* Mark the nodes that others have at t. */
static void take_nodes(const struct fit *f, int64_t t)
{
	memset(f->taken, 0, f->n_nodes * sizeof(*f->taken));
	for (uint32_t i = 0; i < f->which; i++)
		for (uint32_t k = 0; covers(&f->entries[i], t) && k < f->entries[i].n_nodes; k++)
			f->taken[f->entries[i].nodes[k]] = true;
}

/* Return the devices of the nodes that it names; free_only leaves out those that others have
 * taken. */
static int64_t sum_nodes(const struct fit *f, const struct calendar_entry *e, bool free_only)
{
	int64_t n = 0;

	for (uint32_t k = 0; k < e->n_nodes; k++)
		n += free_only && f->taken[e->nodes[k]] ? 0 : f->nodes[e->nodes[k]].milli;
	return n;
}

/* Return how much of its nodes' capacity it can have without taking from amounts reserved
 * before. */
static int64_t spared(const struct fit *f, const struct calendar_entry *e, int64_t t)
{
	int64_t need = 0, room = 0, whole = 0, lack;

	for (uint32_t i = 0; i < f->which; i++)
		need += f->entries[i].milli > 0 && covers(&f->entries[i], t) ? f->entries[i].milli
									     : 0;
	for (uint32_t i = 0; i < f->n_nodes; i++)
		room += f->taken[i] ? 0 : whole_of(&f->nodes[i]);
	for (uint32_t k = 0; k < e->n_nodes; k++)
		whole += f->taken[e->nodes[k]] ? 0 : whole_of(&f->nodes[e->nodes[k]]);
	lack = whole - (room - need);
	lack = lack < 0 ? 0 : lack < whole ? lack : whole;
	return sum_nodes(f, e, true) - lack;
}

/* Return the capacity at t of the kind that e requests. */
static int64_t have_at(const struct fit *f, const struct calendar_entry *e, int64_t t)
{
	take_nodes(f, t);
	return e->milli > 0 ? left_of(f, e, t) : spared(f, e, t);
}

/* Return the first moment of [from, to) at which too little is left; GPUQ_UNLIMITED = none. The
 * capacity left decreases only where an occurrence begins. */
static int64_t first_lack(const struct fit *f, const struct calendar_entry *e, int64_t from,
			  int64_t to, int64_t need)
{
	int64_t t = from;

	for (int steps = 0; t < to && steps < STEPS_MAX; steps++) {
		int64_t next = GPUQ_UNLIMITED;

		if (have_at(f, e, t) < need)
			return t;
		for (uint32_t i = 0; i < f->which; i++) {
			const struct calendar_entry *o = &f->entries[i];
			int64_t start = recur_at(&o->when, t);

			if (start <= t)
				start = recur_at(&o->when, amount_sum(start, o->when.duration_us));
			next = start < next ? start : next;
		}
		t = next;
	}
	return GPUQ_UNLIMITED;
}

/* The same for all occurrences of an entry that begins at start_us. */
static int64_t lack_from(const struct fit *f, int64_t start_us, int64_t need)
{
	struct calendar_entry e = f->entries[f->which];
	int64_t t;

	e.when.start_us = start_us;
	t = f->now_us;
	for (int i = 0; i < OCCURRENCES_MAX; i++) {
		const int64_t begin = recur_at(&e.when, t),
			      end = amount_sum(begin, e.when.duration_us);
		int64_t lack;

		if (begin == GPUQ_UNLIMITED)
			break;
		lack = first_lack(f, &e, begin > f->now_us ? begin : f->now_us, end, need);
		if (lack != GPUQ_UNLIMITED)
			return lack;
		t = end;
	}
	return GPUQ_UNLIMITED;
}

/* Return the next end after t: where something ends, something may fit. */
static int64_t next_end(const struct fit *f, int64_t t)
{
	int64_t next = GPUQ_UNLIMITED;

	for (uint32_t i = 0; i < f->which; i++) {
		const struct calendar_entry *o = &f->entries[i];
		const int64_t start = recur_at(&o->when, t);
		const int64_t end = start == GPUQ_UNLIMITED
					    ? GPUQ_UNLIMITED
					    : amount_sum(start, o->when.duration_us);

		next = end > t && end < next ? end : next;
	}
	return next;
}

/* Return the reservation that begins latest among those that hold at t: the one that is most
 * likely to be new. */
static uint32_t in_the_way(const struct fit *f, int64_t t)
{
	uint32_t with = CALENDAR_NONE;

	for (uint32_t i = 0; i < f->which; i++)
		if (covers(&f->entries[i], t) &&
		    (with == CALENDAR_NONE ||
		     recur_at(&f->entries[i].when, t) > recur_at(&f->entries[with].when, t)))
			with = i;
	return with;
}

/* Check one reservation against those before it: at its start and wherever another begins within
 * it. False, and *out says what it conflicts with and when it would fit. */
static bool look(const struct fit *f, struct calendar_misfit *out)
{
	const struct calendar_entry *e = &f->entries[f->which];
	int64_t all = sum_nodes(f, e, false), need = e->milli, lack;

	for (uint32_t i = 0; e->milli > 0 && i < f->n_nodes; i++)
		all += is_kind(&f->nodes[i], e->flavor, e->pool) ? whole_of(&f->nodes[i]) : 0;
	if (e->milli == 0)
		need = all;
	if (e->maintenance || all < need || need <= 0)
		return true;
	lack = lack_from(f, e->when.start_us, need);
	if (lack == GPUQ_UNLIMITED)
		return true;
	*out = (struct calendar_misfit){ .with = in_the_way(f, lack),
					 .at_us = lack,
					 .have_milli = have_at(f, e, lack),
					 .need_milli = need,
					 .earliest_us = GPUQ_UNLIMITED };
	if (out->have_milli < 0)
		out->have_milli = 0;
	for (int64_t t = e->when.start_us > f->now_us ? e->when.start_us : f->now_us, i = 0;
	     i < TRIES_MAX && (t = next_end(f, t)) != GPUQ_UNLIMITED; i++)
		if (lack_from(f, t, need) == GPUQ_UNLIMITED) {
			out->earliest_us = t;
			break;
		}
	return false;
}

bool reservations_fits(const struct calendar_node *nodes, uint32_t n_nodes,
		       const struct calendar_entry *entries, uint32_t which, int64_t now_us,
		       struct calendar_misfit *out)
{
	struct fit f = { .nodes = nodes,
			 .n_nodes = n_nodes,
			 .entries = entries,
			 .which = which,
			 .now_us = now_us,
			 .taken = calloc(n_nodes + 1, sizeof(*f.taken)) };
	bool fits = !f.taken || look(&f, out);

	free(f.taken);
	return fits;
}
