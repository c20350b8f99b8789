/* select.h - label and field selectors
 *
 * Owns     their grammar and what they match.
 */
#ifndef FAKEKUBE_SELECT_H
#define FAKEKUBE_SELECT_H

#include <stdbool.h>

#include "version.h"

struct selector; /* NULL matches everything */

/* Parse the two query parameters (NULL: absent). Returns 0; or -1 and a message
 * the caller frees in *why, and then *sel is untouched. */
int selector_parse(struct kind *kind, const char *labels, const char *fields, struct selector **sel,
		   char **why);
bool selector_match(const struct selector *sel, const struct version *v);
void selector_free(struct selector *sel);

#endif
