/* schema_kind.h - what reading and writing by schema share
 *
 * Used by  schema.c, schema_write.c only.
 */
#ifndef LIBGPUQ_WIRE_SCHEMA_KIND_H
#define LIBGPUQ_WIRE_SCHEMA_KIND_H

#include "libgpuq/schema.h"

/* Zero obj and set its defaults: those of objects inside it first, then its own. */
void gpuq_schema_init(const struct gpuq_schema *s, void *obj);

#endif
