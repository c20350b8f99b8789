/* upgrade.h - converting records of an older schema to the present one
 *
 * Owns     data carried from one table to the next.
 * Touches  memory only.
 * Used by  daemon.c (gives it to the store).
 *
 * Schema 1 had no clusters in its keys, lists without rows (varint.h), and jobs without the size
 * of their spec. Everything in it belongs to the cluster CLUSTER_DEFAULT.
 */
#ifndef GPUQD_STATE_RECORD_UPGRADE_H
#define GPUQD_STATE_RECORD_UPGRADE_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "libgpuq/err.h"

struct upgrade_spec {
	uint32_t id, bytes; /* bytes: of the stored spec */
};

struct upgrade {
	struct upgrade_spec *specs; /* by id; table SPEC comes before JOB */
	size_t n_specs, room_specs;
};

#define UPGRADE_INIT                                                                               \
	{                                                                                          \
		.specs = NULL                                                                      \
	}

/* Convert one record: a store_upgrade_fn (store.h), arg is a struct upgrade. Return 0,
 * GPUQ_ECORRUPT (incomplete record), GPUQ_EVERSION (unknown schema), GPUQ_ENOMEM. */
int upgrade_record(void *arg, unsigned from, enum table t, const unsigned char *key, size_t key_len,
		   const unsigned char *val, size_t val_len, struct batch *out,
		   struct gpuq_err *err);
void upgrade_done(struct upgrade *u);

#endif
