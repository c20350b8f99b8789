/* admit.h - what the apiserver checks and fills in before it stores
 *
 * Owns     validation (422 with causes, 400 for wrong types) and defaults.
 */
#ifndef FAKEKUBE_ADMIT_H
#define FAKEKUBE_ADMIT_H

#include "api.h"

/* Check a new object and fill its defaults in. Returns 0, or -1 when r refuses. */
int admit_create(struct kind *kind, json_t *obj, struct reply *r);
/* Check what a change may not touch. */
int admit_update(const struct version *old, const json_t *now, struct reply *r);

#endif
