/* record_usage.h - usage as stored bytes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  model_apply.c, record.c.
 */
#ifndef GPUQD_STATE_RECORD_RECORD_USAGE_H
#define GPUQD_STATE_RECORD_RECORD_USAGE_H

#include "gpuqd/state/model.h"

struct charges;

struct rec;

int record_load_usage(struct usage *u, struct rec *r, struct gpuq_err *err);
int record_load_account(struct model *m, const unsigned char *key, size_t n, struct rec *r,
			struct gpuq_err *err);
void record_account(const struct account *a, struct batch *out);
void record_usage(struct model *m, const struct usage *u, struct batch *out);
/* Read the sums at the end of such records; nothing known where they are incomplete. */
void record_get_used(struct rec *in, struct used_sum *out);
/* Append a record for each day of the interval. */
void record_charges(const struct model *m, const struct charges *c, struct batch *out);

#endif
