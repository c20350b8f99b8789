/* file.h - read a whole file, bounded; find those that belong to gpuq
 *
 * Touches  files and standard input; /proc/self/exe.
 * Used by  server.c, submission.c; servers.c, top_exec.c, code.c and mpi_server.c, which find files of gpuq.
 */
#ifndef GPUQ_FILE_H
#define GPUQ_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* Append the content of path ("-" = standard input) to out, whose max_bytes bounds
 * it. Returns 0, GPUQ_EIO (with the system's reason), GPUQ_ETOOBIG, GPUQ_ENOMEM. */
int file_read(const char *path, struct gpuq_buf *out, struct gpuq_err *err);

/* The loader that runs it where it was carried to (slurm/carry.h), from its directory there. */
#define FILE_CARRIED_LOADER "lib/ld.so"

/* Files of gpuq lie beside this program in a tree that is not installed. */
#define FILE_PATH_BYTES 4096

/* The same of a tree that was installed in another place than it was configured for. */
#define FILE_MOVED_LIBEXEC "../libexec/gpuq/"
#define FILE_MOVED_LIB "../lib/gpuq/"

/* The path by which this program is started again; returns its length, or -1. */
ssize_t file_self(char *out, size_t room);

/* The path of a file by its place relative to the directory of this program. False: there is none to read. */
bool file_beside(const char *file, char out[FILE_PATH_BYTES]);

/* Become a program of gpuq's own, beside this one or where it is installed. Returns only if neither can be run: its
 * installed path, and errno. */
const char *file_exec_beside(const char *program, char *const argv[]);

#endif
