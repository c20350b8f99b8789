/* loglines.h - lines of a log with their times, each of them once
 *
 * Owns     the time of the line being read and the place already handed on.
 * Touches  memory only.
 * Used by  logs.c; tests.
 *
 * The kubelet puts a time and a space in front of every line when it is asked to. A
 * log is taken up again at a whole second, so lines of that second come twice: those
 * older than the last one handed on, and as many of its very moment as were handed
 * on, are left out until a newer one comes. Else older ones are none that came already:
 * standard output and error are written by two, and either may be the later one.
 */
#ifndef GPUQD_CLUSTER_KUBE_LOGLINES_H
#define GPUQD_CLUSTER_KUBE_LOGLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"

#define LOGLINES_TIME_MAX 40

struct loglines {
	bool keep_times; /* hand the times on, too */
	char last[LOGLINES_TIME_MAX + 1]; /* of the newest line handed on, "" none */
	uint64_t n_last; /* lines of that moment handed on */
	/* private */
	char time[LOGLINES_TIME_MAX + 1];
	size_t n_time;
	uint64_t repeats; /* lines of `last` met since the last resuming */
	bool catching_up; /* what comes may have come before that */
	enum { LOGLINES_TIME, LOGLINES_TEXT, LOGLINES_SKIP } state;
};

void loglines_init(struct loglines *l, bool keep_times);

/* Append to out what of n bytes is to be handed on. */
void loglines_feed(struct loglines *l, const char *bytes, size_t n, struct gpuq_buf *out);

/* The connection broke: what follows begins at a line at or before l->last. A line that
 * was cut short is handed on again, from its beginning, behind what came of it. */
void loglines_resume(struct loglines *l);

#endif
