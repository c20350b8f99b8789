#include "gpuqd/sched/quota/fairtree.h"

#include "gpuqd/util/fixed.h"
#include "gpuqd/util/sort.h"

/* Nodes of the tree: queues as in the snapshot, then its usages. */

struct level { /* S / U as num / den; den 0 = infinite */
	uint64_t num, den;
};

struct tree {
	const struct snapshot *s;
	struct level *levels; /* by node */
	uint32_t *child_first, *child_next; /* by queue, the root's last; by node */
	uint32_t *lists; /* of one visit after the other: every node is in one of them */
	uint32_t *scratch;
	uint32_t n_lists; /* used of `lists' */
	uint32_t *ranks; /* by usage */
	uint32_t left; /* users not numbered yet */
};

/* Compare levels as fractions, without rounding; no use at all is the highest level. */
static int cmp_level(const struct level *x, const struct level *y)
{
	const fixed_u128 a = (fixed_u128)x->num * y->den, b = (fixed_u128)y->num * x->den;

	if (x->den == 0 || y->den == 0)
		return (x->den == 0) - (y->den == 0);
	return (a > b) - (a < b);
}

static bool is_user(const struct tree *t, uint32_t node)
{
	return node >= t->s->n_queues;
}

/* Order by larger level share; of equals, users before queues. */
static int cmp_node(const void *ctx, uint32_t x, uint32_t y)
{
	const struct tree *t = ctx;
	const int c = cmp_level(&t->levels[y], &t->levels[x]);

	return c ? c : is_user(t, y) - is_user(t, x);
}

/* Reduce x / y to lowest terms, both below 2^31: exact unless that takes more digits. */
static void reduce(uint64_t *x, uint64_t *y)
{
	const uint64_t g = fixed_gcd(*x, *y);
	const bool some_x = *x > 0, some_y = *y > 0;

	if (g > 1) {
		*x /= g;
		*y /= g;
	}
	while (*x >> 31 || *y >> 31) {
		*x >>= 1;
		*y >>= 1;
	}
	*x += some_x && *x == 0;
	*y += some_y && *y == 0;
}

static uint64_t weight(const struct snapshot *s, uint32_t node)
{
	return node < s->n_queues ? (uint64_t)s->queues[node].weight_milli : 1;
}

/* Set the level shares of the children of a queue (n_queues: of the root). */
static void set_levels(struct tree *t, uint32_t parent, const uint64_t *used)
{
	uint64_t weights = 0, all = 0;

	for (uint32_t k = t->child_first[parent]; k != SNAP_NONE; k = t->child_next[k]) {
		weights += weight(t->s, k);
		all += used[k];
	}
	for (uint32_t k = t->child_first[parent]; k != SNAP_NONE; k = t->child_next[k]) {
		uint64_t w = weight(t->s, k), of = weights, total = all, u = used[k];

		if (w == 0) {
			t->levels[k] = (struct level){ 0, 1 };
			continue;
		}
		reduce(&w, &of);
		reduce(&total, &u);
		t->levels[k] = (struct level){ u ? w * total : 1, of * u };
	}
}

/* Rank the users below some nodes of the tree, in order of their levels. Nodes of equal level are
 * one: their children are sorted together, and users of equal level share a rank. */
static void visit(struct tree *t, uint32_t *list, uint32_t n)
{
	sort_ix(list, t->scratch, n, cmp_node, t);
	for (uint32_t i = 0, first; i < n;) {
		const uint32_t rank = t->left;
		uint32_t *below = t->lists + t->n_lists, n_below = 0;

		for (first = i; i < n && cmp_node(t, list[first], list[i]) == 0; i++) {
			if (is_user(t, list[i])) {
				t->ranks[list[i] - t->s->n_queues] = rank;
				t->left--;
				continue;
			}
			for (uint32_t k = t->child_first[list[i]]; k != SNAP_NONE;
			     k = t->child_next[k])
				below[n_below++] = k;
		}
		t->n_lists += n_below;
		visit(t, below, n_below);
	}
}

static void add_child(struct tree *t, uint32_t parent, uint32_t node)
{
	t->child_next[node] = t->child_first[parent];
	t->child_first[parent] = node;
}

uint32_t *fairtree_ranks(const struct snapshot *s, struct gpuq_arena *mem)
{
	const uint32_t root = s->n_queues, n = s->n_queues + s->n_usages;
	struct tree t = { .s = s, .left = s->n_usages };
	uint64_t *used = gpuq_arena_calloc(mem, n, sizeof(*used));
	uint32_t n_top = 0;

	t.levels = gpuq_arena_calloc(mem, n, sizeof(*t.levels));
	t.child_first = gpuq_arena_calloc(mem, (size_t)root + 1, sizeof(*t.child_first));
	t.child_next = gpuq_arena_calloc(mem, n, sizeof(*t.child_next));
	t.lists = gpuq_arena_calloc(mem, n, sizeof(*t.lists));
	t.scratch = gpuq_arena_calloc(mem, n, sizeof(*t.scratch));
	t.ranks = gpuq_arena_calloc(mem, s->n_usages, sizeof(*t.ranks));
	if (!used || !t.levels || !t.child_first || !t.child_next || !t.lists || !t.scratch ||
	    !t.ranks)
		return NULL;
	for (uint32_t q = 0; q <= root; q++)
		t.child_first[q] = SNAP_NONE;
	for (uint32_t u = s->n_usages; u-- > 0;) {
		used[root + u] = s->usages[u].used;
		used[s->usages[u].queue] += s->usages[u].used;
		add_child(&t, s->usages[u].queue, root + u);
	}
	/* Children come after their parents. */
	for (uint32_t q = root; q-- > 0;) {
		const uint32_t p = s->queues[q].parent;

		if (p != SNAP_NONE)
			used[p] += used[q];
		add_child(&t, p == SNAP_NONE ? root : p, q);
	}
	for (uint32_t q = 0; q <= root; q++)
		set_levels(&t, q, used);
	for (uint32_t k = t.child_first[root]; k != SNAP_NONE; k = t.child_next[k])
		t.lists[n_top++] = k;
	t.n_lists = n_top;
	visit(&t, t.lists, n_top);
	return t.ranks;
}
