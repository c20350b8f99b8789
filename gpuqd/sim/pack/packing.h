/* packing.h - the packing experiment: pods arrive, none ends; how much stays unallocated
 *
 * Owns     the format of node and pod lists (CSV), the order in which pods arrive, and the
 *          counts. Placement is the core's (packer.h).
 * Touches  memory; the files named on the command line (packing.c).
 * Used by  gpuq-sim pack.
 *
 * Method: Weng et al., "Beware of Fragmentation", USENIX ATC 2023. The pods of a list,
 * sorted by name and shuffled, arrive one by one, then copies of pods drawn from the list,
 * until the requested devices reach a target. A pod that does not fit is never tried again,
 * but counts as arrived.
 */
#ifndef GPUQD_SIM_PACK_PACKING_H
#define GPUQD_SIM_PACK_PACKING_H

#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"

struct packing_node {
	const char *name, *model;
	int64_t cpu_milli, memory_mib, gpus;
};

struct packing_pod {
	const char *name;
	int64_t cpu_milli, memory_mib, gpus;
	int64_t gpu_milli; /* of each device: 1..1000; below 1000 only for one device */
	const char *models; /* allowed, joined by '|'; "" = any */
	uint32_t kind; /* pods with equal requests have the same kind */
};

struct packing_lists {
	struct packing_node *nodes;
	struct packing_pod *pods; /* by name */
	uint32_t n_nodes, n_pods;
	uint32_t *kinds; /* the first pod of each kind */
	uint32_t *kind_counts;
	uint32_t n_kinds;
	int64_t capacity_milli;
};

/* Read a list from a file's text; columns are found by the names in its first line (nodes: sn,
 * cpu_milli, memory_mib, gpu, model; pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli and
 * optionally gpu_spec). The result lives in the arena. Returns 0; GPUQ_EINVAL with file and line;
 * GPUQ_ENOMEM. */
int packing_read_nodes(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		       struct packing_lists *out, struct gpuq_err *err);
int packing_read_pods(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		      struct packing_lists *out, struct gpuq_err *err);

/* A pod that arrives: its index in the list, and the number of the copy (0 = the original). */
struct packing_arrival {
	uint32_t pod, copy;
};

/* Make the order of arrival for a seed: up to load_percent of the capacity. */
int packing_arrivals(struct gpuq_arena *a, const struct packing_lists *l, uint64_t seed,
		     uint32_t load_percent, struct packing_arrival **out, uint32_t *n_out,
		     struct gpuq_err *err);

/* Run gpuq-sim pack; argv[1] is "pack". Returns the exit status. */
int packing_main(int argc, char **argv);

#define PACKING_USAGE                                                                              \
	"gpuq-sim pack [--seed N] [--load PERCENT] [--policy NAME] [--json]\n"                     \
	"                     [--placements FILE] NODES.csv PODS.csv\n"

#endif
