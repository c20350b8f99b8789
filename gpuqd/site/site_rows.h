/* site_rows.h - rows of the tables of keys (struct gpuq_field) of site files
 *
 * Used by  site.c, site_caps.c, preference.c and provision.c.
 */
#ifndef GPUQD_SITE_SITE_ROWS_H
#define GPUQD_SITE_SITE_ROWS_H

#include <stddef.h>

#include "libgpuq/schema.h"

#define F(type_, key_, kind_, member_, ...)                                                        \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct type_, member_),         \
		__VA_ARGS__                                                                        \
	}
/* `flavors` of a queue: names, or maps with rules; at site_queue.flavors. */
extern const struct gpuq_custom site_preference_custom;

#define END                                                                                        \
	{                                                                                          \
		.key = NULL                                                                        \
	}

#endif
