/* res.h - amounts of node resources, and what a pod asks for
 *
 * Owns     the numbering of resource names.
 *
 * cpu counts in thousandths of a core, memory-like things in bytes, all
 * others in whole pieces.
 * Source of the pod's sum: component-helpers, resource/helpers.go (sidecars,
 * ordinary init containers, overhead).
 */
#ifndef FAKEKUBE_RES_H
#define FAKEKUBE_RES_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "util.h"

#define RES_MAX 16 /* resource names one node or pod may have; more are ignored */

enum res_id { RES_CPU, RES_MEMORY, RES_PODS, RES_GPU, RES_FIRST_OTHER };

struct res_item {
	int id;
	int64_t value;
};

struct res {
	unsigned n;
	struct res_item item[RES_MAX];
};

int res_id(const char *name);
const char *res_name(int id);
/* An extended resource: vendor/name outside kubernetes.io, counted in pieces. */
bool res_is_extended(const char *name);

int64_t res_get(const struct res *r, int id);
bool res_has(const struct res *r, int id);
void res_set(struct res *r, int id, int64_t value);
void res_add(struct res *to, const struct res *r, int sign);
/* A JSON object of quantities; what is no quantity is left out. */
void res_read(struct res *r, const json_t *quantities);
void res_of_pod(struct res *r, const json_t *spec);

#endif
