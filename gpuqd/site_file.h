/* site_file.h - the file of --site as the bytes of a site
 *
 * Owns     nothing.
 * Touches  the file.
 * Used by  daemon.c.
 */
#ifndef GPUQD_SITE_FILE_H
#define GPUQD_SITE_FILE_H

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* Add the site, checked and as MessagePack, to bytes. Returns GPUQ_EIO, GPUQ_ETOOBIG or what the
 * reader of sites returns, with file:line:col. */
int site_file_read(const char *path, struct gpuq_buf *bytes, struct gpuq_err *err);

#endif
