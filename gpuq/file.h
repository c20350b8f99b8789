/* file.h - read a whole file, bounded
 *
 * Touches  files and standard input.
 * Used by  server.c, submission.c.
 */
#ifndef GPUQ_FILE_H
#define GPUQ_FILE_H

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* Append the content of path ("-" = standard input) to out, whose max_bytes bounds
 * it. Returns 0, GPUQ_EIO (with the system's reason), GPUQ_ETOOBIG, GPUQ_ENOMEM. */
int file_read(const char *path, struct gpuq_buf *out, struct gpuq_err *err);

#endif
