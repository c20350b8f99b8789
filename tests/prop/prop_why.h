/* prop_why.h - what must hold of the reasons that any plan gives: property 26 */
#ifndef TESTS_PROP_PROP_WHY_H
#define TESTS_PROP_PROP_WHY_H

#include <stddef.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"

/* told[id - 1] becomes how many reasons the jobs of that id have. True: each of them is about
 * something, and what it needs is more than there is; else text says of which it is not. */
bool prop_why(const struct snapshot *s, const struct plan *p, int *told, char *text, size_t room);

#endif
