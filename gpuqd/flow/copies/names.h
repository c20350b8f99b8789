/* names.h - names of copies in a target, and which copies stay
 *
 * Owns     nothing. Touches memory only.
 * Used by  the files of copies/.
 *
 * gpuq-CLUSTER_ID-YYYYMMDDTHHMMSSZ.mdb says when a copy was begun, so that a restart neither
 * forgets one that is due nor makes one too early, and several clusters may share a target. Its
 * manifest has the same name and .sha256 behind it. A segment, batches between copies, is
 * gpuq-CLUSTER_ID-YYYYMMDDTHHMMSSZ-STORE-EPOCH-FIRST-LAST.seg: the time of its first batch, the first 8 digits
 * of the store id, and numbers of batches.
 */
#ifndef GPUQD_FLOW_COPIES_NAMES_H
#define GPUQD_FLOW_COPIES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/flow/copies/plan.h"
#include "gpuqd/store/batchlog.h"

#define NAMES_PREFIX_BYTES 96
#define NAMES_BYTES 224 /* of any name of a target */
#define NAMES_COPY ".mdb"
#define NAMES_MANIFEST ".sha256"

struct stamp {
	char text[sizeof("YYYYMMDDTHHMMSSZ")];
};

void stamp_write(int64_t us, struct stamp *out);
int64_t stamp_us(const struct stamp *s);

/* "gpuq-CLUSTER_ID-" */
void names_prefix(const char *cluster_id, char out[NAMES_PREFIX_BYTES]);
void names_copy(const char *prefix, const struct stamp *s, char out[NAMES_BYTES]);
/* Read the stamp of a copy's name. A name that only resembles one belongs to a file of another
 * origin: false. */
bool names_read_copy(const char *prefix, const char *name, struct stamp *out);

#define NAMES_STORE_LEN 8

struct segment_name {
	struct stamp stamp;
	char store[NAMES_STORE_LEN + 1];
	struct batchlog_span span;
};
void names_segment(const char *prefix, const struct segment_name *s, char out[NAMES_BYTES]);
bool names_read_segment(const char *prefix, const char *name, struct segment_name *out);

struct names_copy {
	struct stamp stamp;
	const char *store; /* id of the database; "" = not known */
};

/* Which of n copies stay, the newest first: the last of each of the newest hours and days that
 * have one. If a database was restored in an hour or a day, the last of each database: a restore of
 * too old a state can be repeated. Those of a time that is yet to come, after a step of the clock, stay and do not count.
 * ours: the index of a copy that was made just now, which stays whatever its name; n = none. */
void names_keep(const struct names_copy *all, size_t n, int64_t now_us, size_t ours,
		const struct backup_keeps *keep, bool *stays);

#endif
