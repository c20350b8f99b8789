/* product.h - kinds of devices by their short names: "NVIDIA-A100-SXM4-80GB" is a100-80g
 *
 * Owns     the table of kinds.
 * Touches  memory only.
 * Used by  state/node_offer (the kind of a node), site/product_terms (jobs that name a kind where
 *          the site has no flavors), flow/admit (warnings).
 */
#ifndef GPUQD_SITE_PRODUCT_H
#define GPUQD_SITE_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/schema.h"

#define PRODUCT_BYTES 64

/* Write the kind of a product, or of what a job asks for, without case: the short name, with the size
 * of the memory where the kind is sold with several and the product or memory_mib (0 = not known) has
 * it. A product that the table does not have is itself, in lower case; "" stays "". */
void product_kind(const char *product, int64_t memory_mib, char out[PRODUCT_BYTES]);

/* Return the product by the labels of a node, of its vendor or its cloud; "" = none has it.
 * memory_mib: set to the memory of a device, 0 = not known. */
const char *product_of_labels(const struct gpuq_strmap *labels, int64_t *memory_mib);

/* The same for devices that are not NVIDIA's. */
const char *product_of_others(const struct gpuq_strmap *labels, int64_t *memory_mib);

/* True if devices of a kind are what a job asks for by a name: the kind, a product of it, or the kind
 * without the size. */
bool product_is(const char *kind, const char *wanted);

#endif
