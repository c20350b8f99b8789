/* zonefile.h - the files of this machine's time zones
 *
 * Owns     nothing.
 * Touches  /usr/share/zoneinfo, read only.
 * Used by  flow/admit/zones.
 */
#ifndef GPUQD_BASE_ZONEFILE_H
#define GPUQD_BASE_ZONEFILE_H

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

#define ZONEFILE_DIR "/usr/share/zoneinfo"

/* Append the bytes of the file of a zone such as Europe/Berlin, up to the buffer's maximum. Returns
 * 0; GPUQ_ENOENT: no zone has this name; GPUQ_EIO; GPUQ_ETOOBIG. */
int zonefile_read(const char *name, struct gpuq_buf *out, struct gpuq_err *err);

#endif
