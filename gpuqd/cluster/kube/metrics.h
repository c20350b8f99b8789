/* metrics.h - what devices do, as metrics endpoints tell it
 *
 * Owns     connections to those endpoints, and when they are asked.
 * Touches  the network through http.h.
 * Used by  kube.c.
 *
 * An endpoint is a page of text (metrics_text.h): that of a DCGM exporter, or Prometheus'
 * /federate?match[]=..., which has those of all nodes. All are asked at once, again and
 * again; what they told is handed on together. One that does not answer holds up nobody and
 * says nothing: whoever runs there is neither busy nor idle.
 */
#ifndef GPUQD_CLUSTER_KUBE_METRICS_H
#define GPUQD_CLUSTER_KUBE_METRICS_H

#include "gpuqd/cluster/cluster.h"

struct loop;
struct metrics;

/* Is it one: http[s]://host[:port][/path][?query]? Returns 0, or GPUQ_EINVAL. */
int metrics_url_check(const char *url, struct gpuq_err *err);

/* sink->measured is called after each round; without URLs once, to report that there is no
 * measurement. */
int metrics_new(struct loop *l, const struct gpuq_strlist *urls, int64_t every_us,
		const struct cluster_sink *sink, struct metrics **out, struct gpuq_err *err);
void metrics_free(struct metrics *m); /* NULL is allowed */

#endif
