/* cel.h - expressions that select devices, as selectors of Kubernetes have them
 *
 * Owns     the part of CEL that gpuq knows: gpuq-cel(7) lists it, and nothing beyond is accepted.
 * Touches  memory only.
 * Used by  spec (claims of a job are checked), gpuqd/devices/dra (devices are matched).
 *
 * An expression is read once, into an arena, and evaluated for each device. Errors name
 * their column. An attribute that a device lacks is an error of CEL: && and || go on where the other
 * side decides, and a whole expression that ends in an error does not hold.
 */
#ifndef LIBGPUQ_CEL_CEL_H
#define LIBGPUQ_CEL_CEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"

#define GPUQ_CEL_BYTES_MAX 10240u /* as Kubernetes has it */
#define GPUQ_CEL_NODES_MAX 1000u
#define GPUQ_CEL_DEPTH_MAX 64u

enum gpuq_cel_type {
	GPUQ_CEL_ANY, /* an attribute, whose type the device tells */
	GPUQ_CEL_BOOL,
	GPUQ_CEL_INT,
	GPUQ_CEL_STRING,
	GPUQ_CEL_VERSION, /* semver */
	GPUQ_CEL_QUANTITY, /* in thousandths */
	GPUQ_CEL_LIST, /* of literals */
	GPUQ_CEL_NAMES, /* the names of one domain: device.attributes["gpu.nvidia.com"] */
};

struct gpuq_cel_value {
	enum gpuq_cel_type type;
	int64_t i; /* of BOOL, INT, QUANTITY */
	const char *s; /* n bytes, of STRING and VERSION; no NUL behind it is promised */
	size_t n;
};

/* One device. */
struct gpuq_cel_device {
	void *arg;
	const char *driver;
	/* Look up an attribute, or a capacity, by domain (n_domain bytes) and name. False: it lacks. */
	bool (*look)(void *arg, bool capacity, const char *domain, size_t n_domain,
		     const char *name, size_t n_name, struct gpuq_cel_value *out);
};

struct gpuq_cel; /* an expression */

/* Read one. Returns 0; GPUQ_EINVAL with "column N: ..." in err and the column, from 1, in *column;
 * GPUQ_ENOMEM. */
int gpuq_cel_read(struct gpuq_arena *a, const char *text, size_t n, const struct gpuq_cel **out,
		  uint32_t *column, struct gpuq_err *err);

/* True if it holds for the device. Without recursion beyond GPUQ_CEL_DEPTH_MAX, and allocates nothing. */
bool gpuq_cel_holds(const struct gpuq_cel *e, const struct gpuq_cel_device *device);

#endif
