/* backup_rota.h - copies that are made by themselves, and how many of them stay
 *
 * Owns     the timer of the next copy, the thread that makes it.
 * Touches  the store (reads), the files of a folder whose names begin with gpuq-CLUSTER_ID-.
 * Used by  daemon.c, config_backup.c.
 *
 * The names are the schedule: gpuq-CLUSTER_ID-YYYYMMDDTHHMMSSZ.mdb says when a copy was begun, so
 * that a restart neither forgets one that is due nor makes one too early, and several clusters
 * may share a folder.
 */
#ifndef GPUQD_FLOW_REPORT_BACKUP_ROTA_H
#define GPUQD_FLOW_REPORT_BACKUP_ROTA_H

#include <stdint.h>

#include "libgpuq/err.h"

struct backup_rota;
struct journal;

struct backup_keeps {
	int64_t hourly, daily;
};

struct backup_plan {
	const char *to; /* a folder; NULL = no copies */
	int64_t every_us;
	struct backup_keeps keep;
};

/* plan is copied, its text is not. Without a folder *out stays as it is. */
int backup_rota_new(struct journal *j, const struct backup_plan *plan, const char *cluster_id,
		    struct backup_rota **out, struct gpuq_err *err);
void backup_rota_free(struct backup_rota *k); /* waits for a copy under way; NULL is fine */

#endif
