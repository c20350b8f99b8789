/* update_keys.h - the keys of a submitted job that may change: when, and by whose right
 *
 * Owns     the table; gpuq-update(1) has it in words, which tests/lint/update-doc compares.
 * Touches  nothing.
 * Used by  flow/admit/update.
 */
#ifndef GPUQD_FLOW_ADMIT_UPDATE_KEYS_H
#define GPUQD_FLOW_ADMIT_UPDATE_KEYS_H

#include <stdbool.h>

/* When a key may change. */
enum update_when {
	UPDATE_WAITING, /* while the whole job is pending */
	UPDATE_ELEMENTS, /* while it is pending, for a single array element too */
	UPDATE_ALWAYS, /* while the job runs, too */
	UPDATE_NEVER,
};

struct update_key {
	const char *key; /* of a job file */
	enum update_when when;
	unsigned rights; /* enum access_right: any of them is enough */
	const char *instead; /* of UPDATE_NEVER: what to do instead */
	bool pods; /* it describes pods, or those that are made again: nothing of pods of others */
};

/* Return the row of a key. A key without a row describes what runs: it may change while the whole
 * job is pending, and only its owner may change it. */
const struct update_key *update_key(const char *key);

#endif
