/* loop_work.h - long work, a bit in every turn
 *
 * Owns     the works that are not over.
 * Used by  loop.c; others through loop.h.
 */
#ifndef GPUQD_BASE_LOOP_WORK_H
#define GPUQD_BASE_LOOP_WORK_H

#include "gpuqd/base/loop.h"

struct works;

struct works *works_new(struct loop *l);
void works_free(struct works *w);

#endif
