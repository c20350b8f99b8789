/* patch.h - the PATCH formats
 *
 * Owns     merge patch (RFC 7386), JSON patch (RFC 6902: add, remove, replace,
 *          test) and the part of strategic merge patch that lists with a key need.
 */
#ifndef FAKEKUBE_PATCH_H
#define FAKEKUBE_PATCH_H

#include <stdbool.h>
#include <jansson.h>

void patch_merge(json_t *target, const json_t *patch, bool strategic);
/* Returns 0, or -1 and *why (a constant text). */
int patch_json(json_t **target, const json_t *ops, const char **why);

#endif
