/* manifest.h - what is written beside a copy: its SHA-256, and which database it is
 *
 * Owns     nothing. Touches memory only.
 * Used by  the files of copies/.
 *
 * A text that `sha256sum -c` accepts: what it does not know is in comments. The line of the
 * SHA-256 is the last, so that a manifest that is cut short is none.
 *
 *   # gpuq backup 1
 *   # cluster 1f2e3d4c
 *   # store 0123456789abcdef0123456789abcdef
 *   # position 1/1234
 *   # schema 2
 *   # time 2026-11-24T14:22:07.123Z
 *   # bytes 1048576
 *   # audited 2026-11-24T14:22:09.000Z whole: 1234 records
 *   SHA256  gpuq-1f2e3d4c-20261124T142207Z.mdb
 */
#ifndef GPUQD_FLOW_COPIES_MANIFEST_H
#define GPUQD_FLOW_COPIES_MANIFEST_H

#include <stdint.h>

#include "gpuqd/flow/copies/names.h"
#include "gpuqd/store/digest.h"
#include "gpuqd/store/store.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

#define MANIFEST_BYTES_MAX 4096
#define MANIFEST_VERSION 1
#define MANIFEST_CLUSTER_BYTES 64

struct manifest {
	char file[NAMES_BYTES]; /* of the copy */
	char sha256[DIGEST_HEX_BYTES];
	char cluster[MANIFEST_CLUSTER_BYTES];
	struct store_identity id;
	unsigned schema;
	int64_t time_us; /* at which it was begun; wall clock */
	int64_t bytes;
	int64_t audited_us; /* 0 = never */
	char audit[200]; /* "whole", or "damaged" and what was found, behind a colon */
};

void manifest_write(const struct manifest *m, struct gpuq_buf *out);
/* Read that of file. Returns 0; GPUQ_ECORRUPT (cut short, or of another file), GPUQ_EVERSION (of a
 * later gpuqd). */
int manifest_read(const char *file, const char *text, size_t n, struct manifest *out,
		  struct gpuq_err *err);
bool manifest_is_damaged(const struct manifest *m); /* as its last audit says */

#endif
