#include "gpuqd/sched/place/ends.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/util/bits.h"
#include "gpuqd/util/sort.h"

struct ends {
	uint32_t *nodes, n; /* that have an end, the soonest first */
	uint64_t *set; /* the answer of the last call */
	uint32_t n_set; /* of nodes, looked at for it */
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
	uint32_t n = 0, *nodes;

	for (uint32_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i].run_us != 0;
	if (n == 0)
		return;
	e = cycle_alloc(c, 1, sizeof(*e));
	nodes = cycle_alloc(c, 2 * (size_t)n, sizeof(*nodes));
	if (e)
		e->set = cycle_alloc(c, cycle_words(c), sizeof(*e->set));
	if (c->failed)
		return;
	e->nodes = nodes;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].run_us)
			nodes[e->n++] = i;
	sort_ix(nodes, nodes + n, n, by_run, s->nodes);
	c->ends = e;
}

/* Return for how long the job needs a node. Its grace period may go beyond the end by as much as a node may boot:
 * a node is requested for that much longer, where the pool lets it. */
static int64_t needs_us(const struct snap_job *j)
{
	return amount_later(j->walltime_us,
			    j->grace_us < SNAP_BOOT_US ? j->grace_us : SNAP_BOOT_US);
}

static bool bars(const struct snap_job *j, const struct snap_node *n)
{
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

const uint64_t *ends_of(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const bool unlimited = j->walltime_us == GPUQ_UNLIMITED;
	struct ends *e = c->ends;
	uint32_t n;

	if (!e)
		return NULL;
	n = unlimited ? e->n : sooner(c, needs_us(j));
	if (n == 0)
		return NULL;
	if (e->known && e->n_set == n && e->preemptible == j->preemptible &&
	    e->unlimited == unlimited)
		return e->set;
	for (uint32_t w = 0; w < cycle_words(c); w++)
		e->set[w] = 0;
	for (uint32_t i = 0; i < n; i++)
		if (bars(j, &c->s->nodes[e->nodes[i]]))
			bits_add(e->set, e->nodes[i]);
	e->known = true;
	e->n_set = n;
	e->preemptible = j->preemptible;
	e->unlimited = unlimited;
	return e->set;
}
