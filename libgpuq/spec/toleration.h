/* toleration.h - the form of a toleration: of a job, and of a pool's nodes
 *
 * Owns     nothing; the schema is in spec_place.c.
 * Touches  memory only.
 * Used by  spec/, and gpuqd/site/site.c.
 */
#ifndef LIBGPUQ_SPEC_TOLERATION_H
#define LIBGPUQ_SPEC_TOLERATION_H

#include "libgpuq/schema.h"

extern const struct gpuq_schema gpuq_toleration_schema; /* of a struct gpuq_toleration */

#endif
