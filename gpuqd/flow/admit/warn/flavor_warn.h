/* flavor_warn.h - warning about devices of a kind that no node has
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit, beside its check of sizes.
 */
#ifndef GPUQD_FLOW_ADMIT_WARN_FLAVOR_WARN_H
#define GPUQD_FLOW_ADMIT_WARN_FLAVOR_WARN_H

#include "gpuqd/state/model.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

/* Append a line to warnings when no node has devices of any flavor that spec names: the job is
 * accepted and stays pending, since nodes come and go, but most such names are mistakes (--gpus=two
 * requests a device of the type `two`). Append one as well for a name that means several kinds of
 * devices, where the site has no flavors: site/product.h. */
void flavor_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings);

#endif
