/* loop_int.h - what the files of the loop share */
#ifndef GPUQD_BASE_LOOP_INT_H
#define GPUQD_BASE_LOOP_INT_H

#include "gpuqd/base/loop.h"

struct works;
struct works *loop_works(struct loop *l);

#endif
