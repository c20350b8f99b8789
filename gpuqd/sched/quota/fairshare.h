/* fairshare.h - how siblings divide the capacity of their parent
 *
 * Owns     nothing; works on the caller's array.
 * Touches  memory only.
 * Used by  holdings.c (every level of the queue tree), gpuq-sim shares, tests.
 *
 * First every sibling gets min(quota, demand), even when the sum exceeds the capacity. The rest
 * goes to the highest rank first, and within a rank in units by the method of Webster and
 * Sainte-Lague: the next unit to the largest P / (2n + 1), n the units received so far, with a cap
 * at the demand. P is the weight, corrected by past usage where the site wants that. The method of
 * the largest remainder would not be monotone: one more device in the cluster could cost a queue
 * one.
 * Source: M. Balinski, H. P. Young, "Fair Representation", 1982. */
#ifndef GPUQD_SCHED_QUOTA_FAIRSHARE_H
#define GPUQD_SCHED_QUOTA_FAIRSHARE_H

#include <stdint.h>

/* One sibling. Amounts >= 0, GPUQ_UNLIMITED allowed. */
struct share_child {
	int64_t quota; /* given before anything is divided */
	int64_t demand; /* of running and pending jobs, already capped by limits */
	int64_t weight_milli; /* >= 0; 0 = nothing of the rest */
	int64_t rank; /* larger first */
	int64_t usage_micro; /* past usage in millionths of the capacity, >= 0 */
	int64_t fair; /* out: min(quota, demand) <= fair <= demand */
	/* for the division's own use */
	int64_t portion;
	int64_t units; /* steps given so far */
};

/* Divide total among n siblings in order of age, the oldest first.
 *
 * unit is the amount allocated in one step (SNAP_MILLI: whole devices), > 0.
 * k_milli is the weight of past usage in thousandths; 0 = it does not count.
 * total may be GPUQ_UNLIMITED: then all get their demand.
 * O(n log total) and, for what remains of each rank, O(n^2) units at most. */
void fairshare_divide(struct share_child *c, uint32_t n, int64_t total, int64_t unit,
		      int64_t k_milli);

/* The same by the definition, one unit after the other, for tests. */
void fairshare_divide_plainly(struct share_child *c, uint32_t n, int64_t total, int64_t unit,
			      int64_t k_milli);

#endif
