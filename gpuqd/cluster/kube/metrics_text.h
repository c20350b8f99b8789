/* metrics_text.h - utilization of devices and use of pods, parsed from a page of metrics
 *
 * Owns     the line that is being read.
 * Touches  memory only.
 * Used by  metrics.c, the fuzz target.
 *
 * Reads the text form of Prometheus and of OpenMetrics, in pieces of any size, a line at a
 * time, and of all lines only those of NVIDIA's DCGM exporter that say how busy a device is and how much
 * of its memory is taken, and those of kubelets (/metrics/resource, /metrics/cadvisor) about containers.
 * Any other line is skipped: pages contain arbitrary lines. A truncated line is
 * discarded.
 */
#ifndef GPUQD_CLUSTER_KUBE_METRICS_TEXT_H
#define GPUQD_CLUSTER_KUBE_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/fact.h"
#include "libgpuq/buf.h"

#define METRICS_LINE_BYTES_MAX 8192 /* longer ones are left out */
/* Older than this a value says nothing of now: Prometheus keeps serving it. */
#define METRICS_OLD_US (INT64_C(120) * 1000000)

/* The fact and its strings hold until it returns. */
typedef void (*metrics_fn)(void *arg, const struct use_fact *f);

typedef void (*metrics_amount_fn)(void *arg, const struct amount_fact *f);

struct metrics_text {
	metrics_fn fn; /* NULL = devices are not wanted */
	metrics_amount_fn amount; /* NULL = amounts are not wanted, as after metrics_text_init() */
	void *arg;
	int64_t now_us; /* to tell old values by */
	struct gpuq_buf line;
	bool skip; /* the rest of this line */
};

void metrics_text_init(struct metrics_text *t, int64_t now_us, metrics_fn fn, void *arg);
void metrics_text_feed(struct metrics_text *t, const char *bytes, size_t n);
void metrics_text_done(struct metrics_text *t);

#endif
