/* config_code.h - `code_store` of gpuqd.yaml: where larger code of jobs is put for pods to fetch
 *
 * Owns     its keys. Touches nothing.
 * Used by  config.c.
 */
#ifndef GPUQD_CONFIG_CODE_H
#define GPUQD_CONFIG_CODE_H

#include "gpuqd/flow/code/code_store.h"
#include "libgpuq/schema.h"

extern const struct gpuq_schema config_code_schema; /* of struct code_store_plan */

#endif
