/* file.h - reading a whole file
 *
 * Owns     nothing.
 * Touches  the file it is given.
 * Used by  gpuq-sim (scenarios, records, lists of pods and nodes).
 */
#ifndef GPUQD_SIM_PACK_FILE_H
#define GPUQD_SIM_PACK_FILE_H

#include <stdio.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* Append the rest of f to out; name is for messages. Returns 0; GPUQ_EIO; the error of
 * gpuq_buf_reserve() when it is larger than out may become. f stays open. */
int file_read(FILE *f, const char *name, struct gpuq_buf *out, struct gpuq_err *err);

#endif
