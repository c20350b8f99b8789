/* cel_values.h - versions and quantities, as selectors compare them
 *
 * Touches  memory only.
 * Used by  cel_read.c, cel_holds.c; gpuqd/cluster/kube/watch/decode_dra.c.
 */
#ifndef LIBGPUQ_CEL_CEL_VALUES_H
#define LIBGPUQ_CEL_CEL_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compare "1.2.3-rc.1" with another. False: one of them is no version. */
bool gpuq_cel_versions(const char *a, size_t n_a, const char *b, size_t n_b, int *out);

/* Read a quantity of Kubernetes in thousandths; more than fit are the largest number. */
bool gpuq_cel_quantity(const char *text, size_t n, int64_t *milli);

#endif
