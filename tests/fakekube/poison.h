/* poison.h - pods that no client should choke on
 *
 * Owns     texts that a real apiserver would hardly send, but a proxy, a bug or
 *          an attacker may: they are kept as they are and never parsed here.
 */
#ifndef FAKEKUBE_POISON_H
#define FAKEKUBE_POISON_H

#include <stdbool.h>

bool poison_known(const char *kind);
/* Returns 0, or -1 when there is a pod of that name. node "" leaves it unbound. */
int poison_add(const char *kind, const char *ns, const char *name, const char *node);

#endif
