/* rejections.h - nodes whose kubelets refuse pods
 *
 * Owns     the refusals of each node of the last minutes.
 * Touches  the model through the journal: nodes that others avoid, resources that a node lacks.
 * Used by  refusals.c.
 *
 * The job avoids the node by itself, and is held after some of them (state/job.c). A node becomes
 * suspect only when different jobs are refused there.
 */
#ifndef GPUQD_FLOW_REFUSAL_REJECTIONS_H
#define GPUQD_FLOW_REFUSAL_REJECTIONS_H

struct journal;
struct pod_rejection;
struct rejections;

struct rejections *rejections_new(struct journal *j); /* NULL: no memory */
void rejections_free(struct rejections *r); /* NULL is fine */

void rejections_note(struct rejections *r, const struct pod_rejection *is);

#endif
