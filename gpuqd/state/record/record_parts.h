/* record_parts.h - the devices of a node beyond those that its record lists: what it offers them as, in replicas
 * and in instances, its other resources, and what the cluster reported before the site's word
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  record.c.
 */
#ifndef GPUQD_STATE_RECORD_RECORD_PARTS_H
#define GPUQD_STATE_RECORD_RECORD_PARTS_H

#include "gpuqd/state/record/record_int.h"

/* The lists that the record itself has as well. Those that are read are on the heap, their words interned. */
void record_put_labels(struct gpuq_buf *b, const struct gpuq_strmap *labels);
void record_get_labels(struct model *m, struct rec *r, struct gpuq_strmap *out);
struct device_fact *record_get_devices(struct model *m, struct rec *r, size_t *n);

/* True if there is something of it. */
bool record_has_parts(const struct node *n);
void record_put_parts(struct gpuq_buf *b, const struct node *n);
/* Read them into a node whose fact is set. Nothing changes when r->bad. */
void record_get_parts(struct model *m, struct rec *r, struct node *n);

#endif
