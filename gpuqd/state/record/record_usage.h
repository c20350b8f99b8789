/* record_usage.h - usage as stored bytes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  account.c, accounting.c, model.c, record.c.
 */
#ifndef GPUQD_STATE_RECORD_RECORD_USAGE_H
#define GPUQD_STATE_RECORD_RECORD_USAGE_H

#include "gpuqd/state/model_int.h"

int record_load_usage(struct usage *u, struct rec *r, struct gpuq_err *err);
int record_load_account(struct model *m, const unsigned char *key, size_t n, struct rec *r,
			struct gpuq_err *err);
void record_account(const struct account *a, struct batch *out);
void record_usage(struct model *m, const struct usage *u, struct batch *out);
/* The part of a day of what a pod was charged. */
void record_charge(struct model *m, const unsigned char *key, size_t key_len, const char *queue,
		   const char *user, const char *flavor, int64_t price_micro, int64_t day,
		   const struct charged *c, uint32_t n);

#endif
