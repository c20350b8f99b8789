/* foreign_part.h - what a pod that gpuq did not create holds of the devices of its node
 *
 * Touches  memory only.
 * Used by  node.c, snapshot/snapshot_take.c, view/census.c.
 */
#ifndef GPUQD_STATE_CUTS_FOREIGN_PART_H
#define GPUQD_STATE_CUTS_FOREIGN_PART_H

#include "gpuqd/state/model.h"

/* True if foreign pods' devices are counted by the resource that they request: replicas, and devices
 * of which the cluster's side does not know that they are such. */
bool foreign_by_resource(const struct node *n);
/* Return what a foreign pod holds of such. */
int64_t foreign_milli(const struct node *n, const struct foreign *f);
/* Return what a foreign pod holds of devices that are counted by number. Where a node offers those of several
 * names, only one is used (node_offer.c). */
int64_t foreign_gpus(const struct node *n, const struct foreign *f);
/* Return what a foreign pod holds of each of its devices. */
struct foreign_use foreign_part(const struct node *n, const struct foreign *f);
/* Return the index of the device with that UUID; n_devices = the node has none. */
uint32_t foreign_device(const struct node *n, const char *uuid);
/* Count so much more (below 0: less) of a device that has that UUID, which no device of the node has, and of the
 * node's. */
void foreign_stranger_add(struct node *n, const char *uuid, int64_t milli);
/* Count a pod more (sign 1) or less (-1) that has such a device for those which name it: while there is one, it
 * alone is counted. */
void foreign_stranger_hold(struct node *n, const char *uuid, int sign);
/* Return the thousandths to assume on stranger `at`: what is known of it, and what its last device has room for of
 * the rest that is on devices which are not known at all. *rest: foreign_rest at first, and what is left of it. */
int64_t foreign_stranger_milli(const struct node *n, uint32_t at, int64_t *rest);
int64_t foreign_rest(const struct node *n);
/* Return the devices that those make up which are not known: different UUIDs are different devices. */
int64_t foreign_unknown(const struct node *n);
/* Under the single strategy instances have the name of whole devices: return how many of these a foreign pod
 * holds; 0 on other nodes. They are the last of the node's instances. */
uint32_t foreign_instances(const struct node *n, const struct foreign *f);

#endif
