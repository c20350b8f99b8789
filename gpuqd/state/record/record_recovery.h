/* record_recovery.h - the record of a recovery that has not ended, after a restore
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  record.c, model_apply.c.
 */
#ifndef GPUQD_STATE_RECORD_RECORD_RECOVERY_H
#define GPUQD_STATE_RECORD_RECORD_RECOVERY_H

#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"

#define RECOVERY_KEY "recovery" /* in TABLE_META */

/* Write how far the recovery is. */
void record_recovery(const struct model *m, struct batch *out);
/* Read it into the model. */
int record_load_recovery(struct model *m, struct rec *r, struct gpuq_err *err);

#endif
