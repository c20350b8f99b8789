/* backend_int.h - the rows of the table, and what their files share
 *
 * Used by  the files of this room.
 */
#ifndef GPUQD_DEVICES_BACKEND_INT_H
#define GPUQD_DEVICES_BACKEND_INT_H

#include "gpuqd/devices/backend.h"

#define MIB (INT64_C(1) << 20)

extern const struct backend backend_whole, backend_mig, backend_time_slicing, backend_mps,
	backend_gib, backend_mib, backend_gpu_manager, backend_hami, backend_dra;

/* GPUQ_ERANGE when the memory of a device is requested that the largest device does not have. */
int backend_check_memory(const struct gpuq_group *g, const struct backend_shape *s,
			 struct gpuq_err *err);

/* Add an annotation: a static word, or a number. Returns 0; GPUQ_ENOMEM. */
void backend_note_word(struct backend_place *p, const char *key, const char *value);
int backend_note_number(struct backend_place *p, struct gpuq_arena *a, const char *key,
			int64_t value);

/* Read "0,2,3" behind those that were read so far, up to max. False: it is no such list. */
bool backend_indexes_read(const char *text, int *out, size_t *n, size_t max);
/* Sort them, and drop those that are there twice. Returns how many are left. */
size_t backend_indexes_sort(int *list, size_t n);

/* Return a time in ns for plugins that serve pods in their order: no two are alike. */
int64_t backend_rising_ns(int64_t now_us);

/* Return the units of unit_mib that an amount of memory (rounded up), else this many thousandths of the
 * device (rounded down), are; at least 1. */
int64_t backend_units_of(int64_t memory_bytes, int64_t milli, int64_t device_mib, int64_t unit_mib);

#endif
