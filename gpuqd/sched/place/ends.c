#include "gpuqd/sched/place/ends.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/util/bits.h"
#include "gpuqd/util/sort.h"

struct ends {
	uint32_t *nodes, n; /* that have an end, the soonest first */
	/* Those that end before the time they were requested for: no job has started on them, and they booted. */
	uint32_t *late, n_late;
	uint64_t *set; /* the answer of the last call */
	uint32_t n_set, n_short; /* of nodes: too short for the job, and for any use of it */
	bool known, preemptible, unlimited; /* of its job */
};

static int by_run(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_node *nodes = ctx;

	return sort_i64(nodes[x].run_us, nodes[y].run_us);
}

void ends_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct ends *e;
	uint32_t n = 0, *nodes, *late;

	for (uint32_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i].run_us != 0;
	if (n == 0)
		return;
	e = cycle_alloc(c, 1, sizeof(*e));
	nodes = cycle_alloc(c, 2 * (size_t)n, sizeof(*nodes));
	late = cycle_alloc(c, n, sizeof(*late));
	if (e)
		e->set = cycle_alloc(c, cycle_words(c), sizeof(*e->set));
	if (c->failed)
		return;
	e->nodes = nodes;
	e->late = late;
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		if (s->nodes[i].run_us)
			nodes[e->n++] = i;
		if (s->nodes[i].left_us && s->nodes[i].left_us < s->nodes[i].run_us)
			late[e->n_late++] = i;
	}
	sort_ix(nodes, nodes + n, n, by_run, s->nodes);
	c->ends = e;
}

/* A job is to get this part of its time limit, within these bounds, or all of it. */
#define USE_PART 10
#define USE_LEAST_US INT64_C(60000000)
#define USE_MOST_US INT64_C(600000000)

/* Return for how long the job needs a node. Its grace period may go beyond the end by as much as a node may boot:
 * a node is requested for that much longer, where the pool lets it. */
static int64_t needs_us(const struct snap_job *j)
{
	return amount_later(j->walltime_us,
			    j->grace_us < SNAP_BOOT_US ? j->grace_us : SNAP_BOOT_US);
}

/* Return how much must be left of a node at least: its attempt is told to end before, and is to be of use. */
static int64_t uses_us(const struct snap_job *j)
{
	int64_t us = j->walltime_us / USE_PART;

	us = us < USE_LEAST_US ? USE_LEAST_US : us > USE_MOST_US ? USE_MOST_US : us;
	us = j->walltime_us < us ? j->walltime_us : us;
	return amount_later(us, j->grace_us > SNAP_END_US ? j->grace_us : SNAP_END_US);
}

static bool bars(const struct snap_job *j, const struct snap_node *n)
{
	if (n->left_us && uses_us(j) > n->left_us)
		return true;
	if (j->preemptible && n->cuts)
		return false;
	return j->walltime_us == GPUQ_UNLIMITED ? !n->lasts : needs_us(j) > n->run_us;
}

bool ends_bars(const struct cycle *c, uint32_t job, uint32_t node)
{
	return c->s->nodes[node].run_us && bars(&c->s->jobs[job], &c->s->nodes[node]);
}

/* Return how many of the nodes have an end before that. */
static uint32_t sooner(const struct cycle *c, int64_t us)
{
	const struct ends *e = c->ends;
	uint32_t from = 0, to = e->n;

	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;

		if (c->s->nodes[e->nodes[mid]].run_us < us)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Note which of the nodes that booted for long the job is kept off: it may be another one than of the last job, for
 * which all the others are the same. True if any. */
static bool note_late(struct cycle *c, const struct snap_job *j)
{
	struct ends *e = c->ends;
	bool any = false;

	for (uint32_t i = 0; i < e->n_late; i++) {
		const uint32_t node = e->late[i];

		if (bars(j, &c->s->nodes[node])) {
			bits_add(e->set, node);
			any = true;
		} else {
			bits_del(e->set, node);
		}
	}
	return any;
}

const uint64_t *ends_of(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const bool unlimited = j->walltime_us == GPUQ_UNLIMITED;
	struct ends *e = c->ends;
	uint32_t n, n_short;

	if (!e)
		return NULL;
	n_short = sooner(c, uses_us(j));
	n = unlimited ? e->n : sooner(c, needs_us(j));
	n = n > n_short ? n : n_short;
	if (!e->known || e->n_set != n || e->n_short != n_short ||
	    e->preemptible != j->preemptible || e->unlimited != unlimited) {
		for (uint32_t w = 0; w < cycle_words(c); w++)
			e->set[w] = 0;
		for (uint32_t i = 0; i < n; i++)
			if (bars(j, &c->s->nodes[e->nodes[i]]))
				bits_add(e->set, e->nodes[i]);
		e->known = true;
		e->n_set = n;
		e->n_short = n_short;
		e->preemptible = j->preemptible;
		e->unlimited = unlimited;
	}
	return note_late(c, j) || n ? e->set : NULL;
}

bool ends_longer(const struct cycle *c, uint32_t job, uint64_t *set)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct ends *e = c->ends;
	uint32_t first;

	if (!e || j->walltime_us == GPUQ_UNLIMITED)
		return false;
	first = sooner(c, amount_sum(needs_us(j), 2 * SNAP_BOOT_US) + 1);
	for (uint32_t i = first; set && i < e->n; i++)
		bits_add(set, e->nodes[i]);
	return first < e->n;
}
