/* audit_parts.h - specs against their parts
 *
 * Touches  the database, which it does not change.
 * Used by  audit.c.
 */
#ifndef GPUQD_STORE_AUDIT_PARTS_H
#define GPUQD_STORE_AUDIT_PARTS_H

#include "gpuqd/store/store.h"

/* Check that each spec can be put together, and that each part has as many specs as its count
 * says. After store_audit. Returns 0, GPUQ_ECORRUPT, GPUQ_EIO, GPUQ_ENOMEM. */
int store_audit_parts(struct store *st, struct gpuq_err *err);

#endif
