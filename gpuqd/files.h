/* files.h - what jobs have in files of the state directory: code that they carry, output of pods that are gone
 *
 * Owns     both stores and the keepers of their files.
 * Touches  flow/code, flow/logs; dispatch and the methods, which it is wired to.
 * Used by  daemon.c.
 */
#ifndef GPUQD_FILES_H
#define GPUQD_FILES_H

#include <stdbool.h>

#include "libgpuq/err.h"

struct cluster;
struct code_keep;
struct codes;
struct dispatch;
struct dispatch_opts;
struct journal;
struct kept;
struct log_keep;
struct methods;

struct files {
	struct codes *codes;
	struct code_keep *code_keep;
	struct kept *kept; /* NULL where jobs are local */
	struct log_keep *log_keep;
};

int files_open(struct files *f, struct journal *j, const char *state, bool local,
	       struct gpuq_err *err);
void files_close(struct files *f);
void files_put_opts(struct files *f, struct dispatch_opts *o);
void files_wire(struct files *f, struct dispatch *d, struct methods *m);
void files_set_cluster(struct files *f, struct cluster *c); /* NULL = none for now */

#endif
