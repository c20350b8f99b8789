/* files.h - what jobs have in files of the state directory: code that they carry, output of pods that are gone
 *
 * Owns     both stores and the keepers of their files.
 * Touches  flow/code, flow/copies, flow/logs; dispatch and the methods, which it is wired to.
 * Used by  daemon.c.
 */
#ifndef GPUQD_FILES_H
#define GPUQD_FILES_H

#include <stdbool.h>

#include "libgpuq/err.h"

struct cluster;
struct code_keep;
struct code_store;
struct code_store_plan;
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
	struct code_store *store; /* of larger code; NULL = there is none */
	char *store_why; /* why it gave no address, lately */
	struct kept *kept; /* NULL where jobs are local */
	struct log_keep *log_keep;
};

/* store: of code, where pods are not local. GPUQ_EINVAL: its address or credentials. */
int files_open(struct files *f, struct journal *j, const char *state, bool local,
	       const struct code_store_plan *store, struct gpuq_err *err);
void files_stop(struct files *f); /* transfers under way end soon */
void files_close(struct files *f);
void files_put_opts(struct files *f, struct dispatch_opts *o);
void files_wire(struct files *f, struct dispatch *d, struct methods *m);
void files_set_cluster(struct files *f, struct cluster *c); /* NULL = none for now */

#endif
