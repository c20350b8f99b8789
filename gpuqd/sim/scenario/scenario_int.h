/* scenario_int.h - what the tables of the scenario format share
 *
 * Used by  scenario*.c only.
 */
#ifndef GPUQD_SIM_SCENARIO_SCENARIO_INT_H
#define GPUQD_SIM_SCENARIO_SCENARIO_INT_H

#include "gpuqd/sim/scenario/scenario.h"

/* Read a number in thousandths, exact to three decimals. */
int scenario_number(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out);

extern const struct gpuq_custom scenario_num; /* int64_t: a number in thousandths */
extern const struct gpuq_custom scenario_amounts; /* struct sc_amounts */
extern const struct gpuq_custom scenario_bytes; /* struct sc_bytes; lists in a list, too */
extern const struct gpuq_custom scenario_indexes; /* gpu_index and n_gpu_index */

extern const struct gpuq_schema scenario_config, scenario_node, scenario_queue, scenario_user,
	scenario_job, scenario_taint;

/* Convert the keys of the site once the whole config of the case has been read: times in
 * microseconds, defaults for absent keys. */
void scenario_take_config(struct sc_config *c);
void scenario_take_queue(int unit, struct sc_queue *q);

/* clang-format off */
#define NUM(type, k, field, d)                                                                     \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_CUSTOM, .custom = &scenario_num,                              \
		.offset = offsetof(struct type, field), .doc = d                                   \
	}
#define STR(type, k, field, d)                                                                     \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_STR, .offset = offsetof(struct type, field), .doc = d     \
	}
#define BOOL(type, k, field, d)                                                                    \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_BOOL, .offset = offsetof(struct type, field), .doc = d    \
	}
#define LIST(type, k, field, d)                                                                    \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_STRLIST, .offset = offsetof(struct type, field), .doc = d \
	}
#define MAP(type, k, field, d)                                                                     \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_STRMAP, .offset = offsetof(struct type, field), .doc = d  \
	}
#define WORD(type, k, field, words, d)                                                             \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_ENUM, .names = words,                                     \
		.offset = offsetof(struct type, field), .doc = d                                   \
	}
#define MANY(type, k, field, schema, d)                                                            \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_OBJECTS, .sub = schema,                                   \
		.offset = offsetof(struct type, field), .doc = d                                   \
	}
#define AMOUNT(k, field, d)                                                                        \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_CUSTOM, .custom = &scenario_amounts,                               \
		.offset = offsetof(struct sc_queue, field), .doc = d                               \
	}

/* clang-format on */

#endif
