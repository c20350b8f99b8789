/* prop_why.h - property 26 of the reasons that a plan gives */
#ifndef TESTS_PROP_PROP_WHY_H
#define TESTS_PROP_PROP_WHY_H

#include <stddef.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"

/* Check the reasons: told[id - 1] becomes how many reasons the jobs of that id have. True: each of
 * them names an object, and requires more than there is; else text says which does not. */
bool prop_why(const struct snapshot *s, const struct plan *p, int *told, char *text, size_t room);

#endif
