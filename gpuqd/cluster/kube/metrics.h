/* metrics.h - utilization of devices and use of pods, from metrics endpoints and kubelets
 *
 * Owns     connections to those endpoints, and the schedule of requests.
 * Touches  the network through http.h.
 * Used by  kube.c.
 *
 * An endpoint is a page of text (metrics_text.h): that of a DCGM exporter, or Prometheus'
 * /federate?match[]=..., which has those of all nodes. All are fetched in parallel, at
 * an interval; the results are passed on together. One that does not answer delays nothing and
 * gives no samples: jobs there are neither busy nor idle.
 */
#ifndef GPUQD_CLUSTER_KUBE_METRICS_H
#define GPUQD_CLUSTER_KUBE_METRICS_H

#include "gpuqd/cluster/cluster.h"

struct http;
struct loop;
struct metrics;
struct watch;

/* Is it one: http[s]://host[:port][/path][?query]? Returns 0, or GPUQ_EINVAL. */
int metrics_url_check(const char *url, struct gpuq_err *err);

/* sink->measured is called after each round; without URLs and kubelets once, to report that there is no
 * measurement. kubelets: http of the apiserver, by which those of the nodes with pods of ours are asked too (metrics_nodes.h);
 * NULL = they are not. */
int metrics_new(struct loop *l, const struct gpuq_strlist *urls, int64_t every_us,
		struct http *kubelets, const struct watch *watch, const struct cluster_sink *sink,
		struct metrics **out, struct gpuq_err *err);
void metrics_free(struct metrics *m); /* NULL is allowed */

#endif
