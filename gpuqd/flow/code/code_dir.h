/* code_dir.h - archives of --code in a directory that pods see as a volume
 *
 * Owns     DIR/NAME/archive.tgz for each archive: pods mount NAME and see no other.
 * Touches  these files.
 * Used by  code_store.c.
 *
 * The functions block as long as the file server does: they are for threads beside the loop.
 */
#ifndef GPUQD_FLOW_CODE_CODE_DIR_H
#define GPUQD_FLOW_CODE_CODE_DIR_H

#include "libgpuq/err.h"

/* Copy all of a file there, durable and readable by all; what has the name is replaced at once. GPUQ_ESTORAGE,
 * GPUQ_EIO. */
int code_dir_put(const char *dir, const char *name, int fd, struct gpuq_err *err);
/* Remove it; one that is not there is fine. GPUQ_EIO. */
int code_dir_remove(const char *dir, const char *name, struct gpuq_err *err);

#endif
