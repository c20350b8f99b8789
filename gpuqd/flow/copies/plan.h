/* plan.h - what `backup` of gpuqd.yaml requests
 *
 * Owns     nothing.
 * Used by  the files of copies/, config_backup.c, daemon.c.
 */
#ifndef GPUQD_FLOW_COPIES_PLAN_H
#define GPUQD_FLOW_COPIES_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libgpuq/schema.h"

struct backup_keeps {
	int64_t hourly, daily;
	int64_t log_us; /* age up to which segments are kept */
};

/* Use of an object store. NULL: as the environment or the system has it. */
struct backup_s3 {
	int style; /* enum s3_style */
	const char *region, *credentials, *ca;
};

struct backup_plan {
	const char *to; /* a directory or an https URL; NULL = no copies, or those of command */
	struct backup_s3 s3;
	const char *section; /* of gpuqd.yaml, for messages; NULL = backup */
	struct gpuq_strlist command; /* that takes and gives copies; none = there is none */
	int64_t every_us;
	int64_t log_every_us; /* from one segment to the next; 0 = there are none */
	int64_t audit_every_us; /* 0 = copies are not audited by themselves */
	int64_t timeout_us; /* of one transfer or audit by another program */
	struct backup_keeps keep;
};

/* True if copies are to be made. */
static inline bool backup_plan_is_set(const struct backup_plan *p)
{
	return p->to != NULL || p->command.n;
}

static inline bool backup_plan_is_s3(const struct backup_plan *p)
{
	return p->to && strncmp(p->to, "https://", 8) == 0;
}

#endif
