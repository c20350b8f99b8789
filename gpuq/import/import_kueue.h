/* import_kueue.h - Kueue's objects as a site
 *
 * Owns     the table of Kueue's fields that have no counterpart, and why.
 * Touches  memory only.
 * Used by  cmd_import.c.
 *
 * A Cohort and a ClusterQueue become queues (the cohort is the parent), a LocalQueue a queue
 * below its ClusterQueue with the namespace as its own, a ResourceFlavor a flavor and a pool
 * of the nodes with its labels, a WorkloadPriorityClass a qos, a Topology the topology. Both
 * v1beta1 and v1beta2 are read. Only quotas of devices are kept. Kueue's defaults (no
 * reclaim, no preemption) are written out, because gpuq has other defaults. An AdmissionCheck with a
 * ProvisioningRequestConfig is the provisioning of the pools of its flavors.
 */
#ifndef GPUQ_IMPORT_IMPORT_KUEUE_H
#define GPUQ_IMPORT_IMPORT_KUEUE_H

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct import_doc {
	const char *file;
	const struct gpuq_val *v;
};

/* Where and what has no counterpart: "f.yaml:7:3: ClusterQueue/a: spec.x: why". */
typedef void (*import_note_fn)(void *arg, const char *text);

/* The input: manifests, and pools with the shapes of nodes that are provisioned. */
struct import_from {
	const struct import_doc *docs, *shapes;
	size_t n_docs, n_shapes;
};

/* *site: a tree in the form of a site file; comment: what is to be filled in, to be printed behind it. Returns 0;
 * GPUQ_EINVAL with the place. */
int import_kueue(struct gpuq_arena *a, const struct import_from *from, struct gpuq_val **site,
		 struct gpuq_buf *comment, import_note_fn note, void *arg, struct gpuq_err *err);

#endif
