/* config_backup.h - `backup` of gpuqd.yaml: where copies go by themselves, how often, how many stay
 *
 * Owns     its keys. Touches nothing.
 * Used by  config.c.
 */
#ifndef GPUQD_CONFIG_BACKUP_H
#define GPUQD_CONFIG_BACKUP_H

#include "gpuqd/flow/copies/plan.h"
#include "libgpuq/schema.h"

extern const struct gpuq_schema config_backup_schema; /* of struct backup_plan */
extern const struct gpuq_schema config_s3_schema; /* of struct backup_s3 */

#endif
