/* export_int.h - helpers shared by the parts of the export
 *
 * Owns     nothing: an item lives in x->a until the next one is begun.
 * Touches  memory only.
 * Used by  export*.c only: export.c has the order and the numbers, the others write the cluster,
 *          its queues, its jobs, and foreign use.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_INT_H
#define GPUQD_FLOW_REPORT_EXPORT_INT_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/flow/report/export.h"

/* Name of the queue for foreign use and unhealthy devices, whose quota is unlimited; its jobs are
 * named after it. */
#define EXPORT_FOREIGN "foreign"

struct export
{
	const struct model *m;
	const struct snapshot *s;
	struct gpuq_arena *a; /* of one item */
	struct gpuq_val *item; /* NULL = none so far */
	export_fn fn;
	void *arg;
	int64_t t0_us; /* origin of times */
	bool has_foreign;
};

/* Pass on the previous item and begin a new one of that part, to be filled. */
struct gpuq_val *export_add(struct export *x, const char *part);

/* Put into a map: any value; thousandths as a number, whole ones as integers; a length of time in
 * seconds; a time, in seconds since t0; strings, if any. */
void export_put(struct export *x, struct gpuq_val *map, const char *key, struct gpuq_val *v);
void export_milli(struct export *x, struct gpuq_val *map, const char *key, int64_t milli);
void export_int(struct export *x, struct gpuq_val *map, const char *key, int64_t i);
void export_str(struct export *x, struct gpuq_val *map, const char *key, const char *s);
void export_span(struct export *x, struct gpuq_val *map, const char *key, int64_t us);
void export_time(struct export *x, struct gpuq_val *map, const char *key, int64_t us);
void export_strs(struct export *x, struct gpuq_val *map, const char *key, const char *const *items,
		 size_t n);

/* Put a count; devices in thousandths. Unlimited is -1. */
void export_count(struct export *x, struct gpuq_val *map, const char *key, int64_t n);
void export_devices(struct export *x, struct gpuq_val *map, const char *key, int64_t milli);

/* Put a key of the site by its kind (policy_rows.h), as in a scenario. A runtime or priority that a
 * queue does not set itself is left out. A value equal to its default is not, so that the scenario
 * means the same to a later gpuq-sim. */
#define EXPORT_FACTOR(x, map, key, v, names) export_milli(x, map, key, v)
#define EXPORT_INT(x, map, key, v, names) ((v) != INT64_MIN ? export_int(x, map, key, v) : (void)0)
#define EXPORT_WORD(x, map, key, v, names) export_str(x, map, key, (names)[v])
#define EXPORT_FLAG(x, map, key, v, names) export_put(x, map, key, gpuq_bool((x)->a, v))
#define EXPORT_SPAN(x, map, key, v, names) ((v) >= 0 ? export_span(x, map, key, v) : (void)0)
#define EXPORT_COUNT(x, map, key, v, names) export_count(x, map, key, v)
#define EXPORT_LIMIT(x, map, key, v, names) export_count(x, map, key, v)
#define EXPORT_DEVICES(x, map, key, v, names) export_devices(x, map, key, v)

#endif
