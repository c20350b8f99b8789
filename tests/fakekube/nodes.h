/* nodes.h - the cluster's machines, as the start and the scripts make them
 *
 * Owns     the shape of Node objects and what happens to them.
 * All functions return 0, or -1 when there is no such node.
 */
#ifndef FAKEKUBE_NODES_H
#define FAKEKUBE_NODES_H

#include <event2/event.h>
#include "store.h"

struct node_shape {
	unsigned gpus, cpus, memory_gib, pods;
	unsigned per_zone; /* nodes with the same topology.kubernetes.io/zone */
	const char *product; /* nvidia.com/gpu.product */
};

extern struct node_shape node_shape;

void nodes_init(struct event_base *base);
void nodes_done(void);
void nodes_add(const char *name, unsigned gpus); /* no effect if it is there */
void nodes_add_many(unsigned n);
/* n running pods of others, in namespace foreign, on the nodes in turn; each has
 * gpus GPUs as long as its node has free ones. */
void nodes_add_foreign(unsigned n, unsigned gpus);
void nodes_add_foreign_on(const char *node, const char *name, unsigned gpus);

int nodes_set_ready(const char *name, bool ready); /* false: Unknown and tainted */
int nodes_set_devices(const char *name, unsigned gpus);
int nodes_cordon(const char *name, bool on);
int nodes_remove(const char *name);

#endif
