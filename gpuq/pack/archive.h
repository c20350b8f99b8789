/* archive.h - files as one compressed archive, the same bytes for the same files
 *
 * Owns     nothing.
 * Touches  the files of a tree, to read; the archive's descriptor; libcrypto, zlib.
 * Used by  main.c; tests.
 *
 * tar (GNU's form: long names are understood by the tar of busybox as well) in gzip. Owners, times and all of the
 * mode but "may be executed" are left out, so that the same content gives the same digest wherever it was
 * checked out.
 */
#ifndef GPUQ_PACK_ARCHIVE_H
#define GPUQ_PACK_ARCHIVE_H

#include "gpuq/pack/tree.h"

#define ARCHIVE_HEX_BYTES 65 /* SHA-256 in hex digits, and NUL */

/* Write the archive to fd. Returns 0; GPUQ_EBUSY: a file changed meanwhile; GPUQ_ETOOBIG: more than limits.h
 * allows of the compressed archive; GPUQ_EIO, GPUQ_ENOMEM. */
int archive_write(const struct tree *t, int fd, char digest[ARCHIVE_HEX_BYTES], int64_t *bytes,
		  struct gpuq_err *err);

/* Digest what is known of the files without reading them: as long as it stays, so does the archive, for all
 * that the file system can tell. */
int archive_trace(const struct tree *t, char digest[ARCHIVE_HEX_BYTES], struct gpuq_err *err);

#endif
