/* view_node.h - nodes as people and programs see them: cards, parts, instances, other resources
 *
 * Owns     the JSON names of a node in gpuq-json(5).
 * Touches  memory only; reads the model, never changes it.
 * Used by  rpc/method/m_list.c, view.c.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_NODE_H
#define GPUQD_STATE_VIEW_VIEW_NODE_H

#include "gpuqd/state/view/view.h"

/* Return a tree in a; NULL when it is exhausted. */
struct gpuq_val *view_node(struct gpuq_arena *a, const struct model *m, const struct node *n,
			   int64_t now_us);
/* The share that a pod has of each of its devices: MiB of memory, and hundredths of the cores that it is limited to; -1 =
 * not limited, or not known. */
struct view_share {
	int64_t memory_mib, cores;
};
struct view_share view_node_share(const struct pod *p, const struct device *d);
/* Put which reservation it is, and its end; its times are wall time. */
void view_node_put_reservation(struct gpuq_arena *a, const struct model *m, struct gpuq_val *v,
			       const struct site_reservation *r, int64_t now_us);
/* Return the countable resources of all nodes together: {name: {total, free}}. */
struct gpuq_val *view_node_resources(struct gpuq_arena *a, const struct model *m, int64_t now_us);
/* List what a kubelet refuses now although its node offers it, {node, resource, count, until_time}; that
 * a job requests, or with NULL all. The same of all nodes, as far as they are shown. */
#define VIEW_REFUSING_MAX 64
struct gpuq_val *view_refuses(struct gpuq_arena *a, const struct node *n, const struct job *j,
			      int64_t now_us);
struct gpuq_val *view_refusing(struct gpuq_arena *a, const struct model *m, const struct job *j,
			       int64_t now_us);
/* List the DeviceClasses that are extended resources as well: {name, resource}. */
struct gpuq_val *view_node_classes(struct gpuq_arena *a, const struct dra *d);
/* List the nodes whose ResourceSlices are not used, since a device plugin offers devices there: {name, resource}: that of
 * the plugin, or its system. */
struct gpuq_val *view_node_doubled(struct gpuq_arena *a, const struct model *m);
/* List the nodes with ResourceSlices of pools that cannot be used, and why: {name, why}. */
struct gpuq_val *view_node_unusable(struct gpuq_arena *a, const struct model *m,
				    const struct dra *d);

#endif
