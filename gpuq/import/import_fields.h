/* import_fields.h - which fields of Kueue's objects mean nothing here, and why
 *
 * Owns     the table of fields.
 * Touches  memory only.
 * Used by  import_kueue.c.
 */
#ifndef GPUQ_IMPORT_IMPORT_FIELDS_H
#define GPUQ_IMPORT_IMPORT_FIELDS_H

#include "libgpuq/val.h"

/* Called for each field under spec that is not taken over: its path ("spec.preemption.x"),
 * its value, why. */
typedef void (*import_field_fn)(void *arg, const char *path, const struct gpuq_val *v,
				const char *why);

/* Walk what the object of that kind says. */
void import_fields(const char *kind, const struct gpuq_val *object, import_field_fn fn, void *arg);

#endif
