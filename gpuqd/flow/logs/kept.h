/* kept.h - output of pods that are gone, as files of the state directory
 *
 * Owns     STATE/logs of a daemon whose jobs run on Kubernetes: POD.times, a file each, whose lines have their times
 *          in front; POD.log of older daemons, without them. Its time of modification is when it is to be removed.
 * Touches  these files.
 * Used by  log_keep.c (writes), rpc/method/m_logs.c (reads).
 */
#ifndef GPUQD_FLOW_LOGS_KEPT_H
#define GPUQD_FLOW_LOGS_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/cluster/cluster.h"

struct kept;
struct loop;

/* Open the directory, and remove what was being written when the last daemon ended. */
int kept_new(struct loop *l, const char *state, struct kept **out, struct gpuq_err *err);
void kept_free(struct kept *k); /* NULL is allowed */

bool kept_has(const struct kept *k, const char *pod);

/* Write the output of a pod, each line behind its time and a space; of more than max_bytes the last ones are kept, behind a line that says so. */
struct kept_write;
struct kept_write *kept_write_new(struct kept *k, const char *pod,
				  int64_t max_bytes); /* NULL: it cannot be */
bool kept_write_add(struct kept_write *w, const char *bytes,
		    size_t n); /* false: the disk takes no more */
/* It is complete, and goes at that wall time; without bytes nothing is kept. w is used up. */
void kept_write_end(struct kept_write *w, int64_t until_s);
void kept_write_drop(struct kept_write *w);

/* Read it as cluster_ops.log_open does. NULL: GPUQ_ENOENT, or GPUQ_EINVAL where it has no times. */
struct kept_read;
struct kept_read *kept_read_new(struct kept *k, const char *pod, const struct log_opts *o,
				log_fn fn, void *arg, struct gpuq_err *err);
void kept_read_resume(struct kept_read *r);
void kept_read_close(struct kept_read *r); /* no callback after this */

/* Remove what is due, what known() does not know, and the next to be due as long as there are more than max_bytes. */
void kept_sweep(struct kept *k, int64_t now_s, int64_t max_bytes,
		bool (*known)(void *arg, const char *pod), void *arg);

#endif
