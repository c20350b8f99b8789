#include "gpuqd/sched/place/fgd.h"

#include "gpuqd/util/bits.h"
#include "libgpuq/units.h"

int64_t fgd_free(const struct fgd_left *l)
{
	int64_t sum = (int64_t)l->whole * SNAP_MILLI;

	for (uint32_t d = 0; d < l->n_parts; d++)
		sum += l->parts[d];
	return sum;
}

/* Return the thousandths of devices that one pod takes. */
static int64_t size_of(const struct fgd_kind *k)
{
	return k->whole ? (int64_t)k->whole * SNAP_MILLI : (int64_t)k->parts * k->part;
}

static bool lacks(int64_t have, int64_t need)
{
	return have != GPUQ_UNLIMITED && have < need;
}

/* True if cpu or memory does not suffice for a single pod. */
static bool starves(const struct fgd_kind *k, const struct fgd_left *l)
{
	return lacks(l->cpu, k->cpu) || lacks(l->memory, k->memory);
}

/* True if pods of the kind may not run on the node. */
static bool barred(const struct fgd_kind *k, uint32_t node)
{
	return k->nodes && !bits_has(k->nodes, node);
}

int64_t fgd_fragments(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l,
		      uint32_t node)
{
	const int64_t all = fgd_free(l);
	int64_t sum = 0;

	for (uint32_t i = 0; all > 0 && i < n; i++) {
		const struct fgd_kind *k = &kinds[i];
		const int32_t least = k->whole ? SNAP_MILLI : k->part;
		uint32_t fitting = l->whole;
		int64_t lost = 0;

		for (uint32_t d = 0; d < l->n_parts; d++) {
			if (l->parts[d] >= least)
				fitting++;
			else
				lost += l->parts[d];
		}
		if (size_of(k) == 0 || barred(k, node) || starves(k, l) ||
		    fitting < (k->whole ? k->whole : k->parts))
			lost = all;
		sum += k->weight * lost;
	}
	return sum;
}

/* The least d at which the score is 51, 52, ... 99: 10^7 ln(k / (100 - k)), rounded up. */
/* clang-format off */
static const int32_t score_from[] = {
	  400054,   800428,  1201444,  1603427,  2006707,  2411621,  2818512,  3227734,
	 3639654,  4054652,  4473123,  4895483,  5322169,  5753642,  6190393,  6632943,
	 7081851,  7537719,  8001194,  8472979,  8953841,  9444617,  9946226, 10459686,
	10986123, 11526796, 12083113, 12656664, 13249255, 13862944, 14500102, 15163475,
	15856273, 16582281, 17346011, 18152900, 19009588, 19924302, 20907411, 21972246,
	23136350, 24423471, 25866894, 27515354, 29444390, 31780539, 34760987, 38918203,
	45951199,
};
/* clang-format on */

uint32_t fgd_score(int64_t d)
{
	const int64_t far = d < 0 ? -d : d;
	uint32_t above = 0;

	while (above < sizeof(score_from) / sizeof(score_from[0]) && far >= score_from[above])
		above++;
	/* The curve is symmetric about (0, 50), and nowhere else an integer. */
	return d < 0 ? 49 - above : 50 + above;
}

/* Return how many times need goes into have, up to max. Divides only where it must: this runs for
 * every kind on every node that is compared. */
static int64_t times(int64_t have, int64_t need, int64_t max)
{
	int64_t all;

	if (have == GPUQ_UNLIMITED || (!__builtin_mul_overflow(need, max, &all) && all <= have))
		return max;
	return have / need;
}

/* Return the number of pods of the kind that the devices alone have room for. */
static int64_t by_devices(const struct fgd_kind *k, const struct fgd_left *l)
{
	const uint32_t part = (uint32_t)k->part;
	uint32_t sum;

	if (k->whole)
		return k->whole == 1 ? l->whole : l->whole / k->whole;
	sum = l->whole ? l->whole * (SNAP_MILLI / part) : 0;
	for (uint32_t d = 0; d < l->n_parts; d++) {
		const uint32_t left = (uint32_t)l->parts[d];

		if (left >= part)
			sum += left < 2 * part ? 1 : left / part;
	}
	return k->parts == 1 ? sum : sum / k->parts;
}

void fgd_bar(const struct fgd_kind *kinds, uint32_t n, uint32_t n_nodes, int64_t *sums)
{
	for (uint32_t i = 0; i < n; i++) {
		const int64_t weight = kinds[i].weight * kinds[i].scarcity / 100;

		/* Most kinds may be on most nodes: only the others are visited. */
		for (uint32_t w = 0;
		     size_of(&kinds[i]) && kinds[i].nodes && w < bits_words(n_nodes); w++) {
			uint64_t word = ~kinds[i].nodes[w];

			if (n_nodes - w * 64 < 64)
				word &= (UINT64_C(1) << (n_nodes - w * 64)) - 1;
			while (word)
				sums[bits_pop(&word, w * 64)] += weight;
		}
	}
}

int64_t fgd_stranded(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l,
		     uint32_t node, int64_t barred_weight)
{
	const int64_t all = fgd_free(l);
	int64_t sum = barred_weight * all;

	for (uint32_t i = 0; all > 0 && i < n; i++) {
		const struct fgd_kind *k = &kinds[i];
		const int64_t size = size_of(k);
		int64_t could, can;

		if (size == 0 || barred(k, node))
			continue;
		if (starves(k, l)) {
			sum += k->weight * 10 * all;
			continue;
		}
		could = by_devices(k, l);
		can = times(l->cpu, k->cpu, could);
		sum += k->weight * (10 * (could - can) * size + (all - could * size));
	}
	return sum;
}

/* True if have per free device (all) is less than need per device of a pod (size). */
static bool short_of(int64_t have, int64_t need, int64_t all, int64_t size)
{
	int64_t x, y;

	if (have == GPUQ_UNLIMITED || need == 0)
		return false;
	return size == 0 || __builtin_mul_overflow(have, size, &x) ||
	       __builtin_mul_overflow(need, all, &y) || x < y;
}

bool fgd_may_strand(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l)
{
	const int64_t all = fgd_free(l);

	for (uint32_t i = 0; all > 0 && i < n; i++)
		if (short_of(l->cpu, kinds[i].cpu, all, size_of(&kinds[i])) ||
		    short_of(l->memory, kinds[i].memory, all, size_of(&kinds[i])))
			return true;
	return false;
}
