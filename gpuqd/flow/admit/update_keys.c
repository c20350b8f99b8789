#include "gpuqd/flow/admit/update_keys.h"

#include <string.h>

#include "gpuqd/flow/admit/access.h"

/* A manager decides when, where and how long a job runs and what it occupies, not what runs as its
 * owner, what that can reach, or where its reports go. */
#define OWNER ACCESS_OWN
#define MANAGER (ACCESS_OWN | ACCESS_MANAGE)
#define OPERATOR ACCESS_OPERATE

/* clang-format off */
static const struct update_key rows[] = {
	{ "account",             UPDATE_ELEMENTS, MANAGER,  NULL, false },
	{ "affinity",            UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "array",               UPDATE_ALWAYS,   MANAGER,  NULL, true }, /* its throttle */
	{ "begin",               UPDATE_ELEMENTS, MANAGER,  NULL, false },
	{ "checkpoint",          UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "comment",             UPDATE_ALWAYS,   MANAGER,  NULL, false },
	{ "constraint",          UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "context",             UPDATE_NEVER,    OWNER,    "it records the submission", false },
	{ "cpus",                UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "deadline",            UPDATE_ALWAYS,   MANAGER,  NULL, false },
	{ "depends",             UPDATE_ELEMENTS, MANAGER,  NULL, false },
	{ "exclude",             UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "exclusive",           UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "flavor",              UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "gpu_cores",           UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "gpu_memory",          UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "gpus",                UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "grace",               UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "hold",                UPDATE_NEVER,    MANAGER,  "use gpuq hold and gpuq release", false },
	{ "isolation",           UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "kill_on_invalid_dep", UPDATE_ELEMENTS, MANAGER,  NULL, false },
	{ "labels",              UPDATE_WAITING,  OWNER,    NULL, false },
	{ "licenses",            UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "mail_type",           UPDATE_ALWAYS,   OWNER,    NULL, false },
	{ "mail_user",           UPDATE_ALWAYS,   OWNER,    NULL, false },
	{ "memory",              UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "memory_per",          UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "mig",                 UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "mig_ok",              UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "name",                UPDATE_ALWAYS,   OWNER,    NULL, false }, /* names output files */
	{ "nice",                UPDATE_ALWAYS,   MANAGER,  NULL, false },
	{ "node_selector",       UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "nodes",               UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "notify",              UPDATE_ALWAYS,   OWNER,    NULL, false },
	{ "pods",                UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "priority",            UPDATE_ALWAYS,   OPERATOR, NULL, false },
	{ "qos",                 UPDATE_ELEMENTS, MANAGER,  NULL, false },
	{ "queue",               UPDATE_ELEMENTS, MANAGER,  NULL, false },
	{ "requeue",             UPDATE_ALWAYS,   MANAGER,  NULL, true },
	{ "reservation",         UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "retry",               UPDATE_ALWAYS,   MANAGER,  NULL, true },
	{ "script",              UPDATE_NEVER,    OWNER,    "submit another job for another script", false },
	{ "signal",              UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "template",            UPDATE_NEVER,    OWNER,    "submit another job for another manifest", false },
	{ "time",                UPDATE_ALWAYS,   MANAGER,  NULL, false },
	{ "time_min",            UPDATE_WAITING,  MANAGER,  NULL, false },
	{ "tolerations",         UPDATE_WAITING,  MANAGER,  NULL, true },
	{ "topology",            UPDATE_WAITING,  MANAGER,  NULL, false },
};
/* clang-format on */

const struct update_key *update_key(const char *key)
{
	static const struct update_key other = { NULL, UPDATE_WAITING, OWNER, NULL, true };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return &other;
}
