/* gpuq.h - everything a program needs that talks to gpuqd
 *
 * Example: how many jobs wait?
 *	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
 *	struct gpuq_err err = GPUQ_ERR_INIT;
 *	struct gpuq_val *reply;
 *	struct gpuq *g;
 *
 *	if (gpuq_connect("unix:/run/gpuq/gpuqd.sock", "mine/1.0", 0, &g, &err) < 0 ||
 *	    gpuq_call(g, "status.get", NULL, NULL, 0, &a, &reply, &err) < 0)
 *		errx(1, "%s", err.text);
 */
#ifndef LIBGPUQ_GPUQ_H
#define LIBGPUQ_GPUQ_H

#ifdef __cplusplus
extern "C" {
#endif

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/client.h"
#include "libgpuq/err.h"
#include "libgpuq/limits.h"
#include "libgpuq/names.h"
#include "libgpuq/schema.h"
#include "libgpuq/spec.h"
#include "libgpuq/units.h"
#include "libgpuq/val.h"
#include "libgpuq/yaml.h"

#ifdef __cplusplus
}
#endif

#endif
