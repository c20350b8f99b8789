/* export_int.h - what the parts of a scenario are written with
 *
 * Owns     nothing: an item lives in x->a until the next one is begun.
 * Touches  memory only.
 * Used by  export*.c only: export.c has the order and the numbers, the others what a case
 *          says of the cluster, its queues, its jobs, and of what others hold.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_INT_H
#define GPUQD_FLOW_REPORT_EXPORT_INT_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/flow/report/export.h"

/* Of devices and ill devices of others; a queue that owes nobody anything. */
#define EXPORT_FOREIGN "foreign"

struct export
{
	const struct model *m;
	const struct snapshot *s;
	struct gpuq_arena *a; /* of one item */
	struct gpuq_val *item; /* NULL = none is being made */
	export_fn fn;
	void *arg;
	int64_t t0_us; /* times are counted from there */
	bool has_foreign;
};

/* A new item of that part, to be filled; the one before it is handed over. */
struct gpuq_val *export_add(struct export *x, const char *part);

/* Into a map: any value; thousandths as a number, whole ones as integers; a length of time
 * in seconds; a time, in seconds since t0; strings, when there are any. */
void export_put(struct export *x, struct gpuq_val *map, const char *key, struct gpuq_val *v);
void export_milli(struct export *x, struct gpuq_val *map, const char *key, int64_t milli);
void export_int(struct export *x, struct gpuq_val *map, const char *key, int64_t i);
void export_str(struct export *x, struct gpuq_val *map, const char *key, const char *s);
void export_span(struct export *x, struct gpuq_val *map, const char *key, int64_t us);
void export_time(struct export *x, struct gpuq_val *map, const char *key, int64_t us);
void export_strs(struct export *x, struct gpuq_val *map, const char *key, const char *const *items,
		 size_t n);

/* A number of things; devices in thousandths. Unlimited is -1. */
void export_count(struct export *x, struct gpuq_val *map, const char *key, int64_t n);
void export_devices(struct export *x, struct gpuq_val *map, const char *key, int64_t milli);

/* A key of the site by its kind (policy_rows.h), as a scenario has it. Left out is what no scenario says: a
 * queue without a runtime or priority of its own. What is at its default is not, so that the case means the
 * same to a later gpuq-sim. */
#define EXPORT_FACTOR(x, map, key, v, names) export_milli(x, map, key, v)
#define EXPORT_INT(x, map, key, v, names) ((v) != INT64_MIN ? export_int(x, map, key, v) : (void)0)
#define EXPORT_WORD(x, map, key, v, names) export_str(x, map, key, (names)[v])
#define EXPORT_FLAG(x, map, key, v, names) export_put(x, map, key, gpuq_bool((x)->a, v))
#define EXPORT_SPAN(x, map, key, v, names) ((v) >= 0 ? export_span(x, map, key, v) : (void)0)
#define EXPORT_COUNT(x, map, key, v, names) export_count(x, map, key, v)
#define EXPORT_LIMIT(x, map, key, v, names) export_count(x, map, key, v)
#define EXPORT_DEVICES(x, map, key, v, names) export_devices(x, map, key, v)

#endif
