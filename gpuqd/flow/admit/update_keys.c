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
	{ "account",             UPDATE_ELEMENTS, MANAGER,  NULL },
	{ "affinity",            UPDATE_WAITING,  MANAGER,  NULL },
	{ "array",               UPDATE_ALWAYS,   MANAGER,  NULL }, /* its throttle */
	{ "begin",               UPDATE_ELEMENTS, MANAGER,  NULL },
	{ "checkpoint",          UPDATE_WAITING,  MANAGER,  NULL },
	{ "comment",             UPDATE_ALWAYS,   MANAGER,  NULL },
	{ "constraint",          UPDATE_WAITING,  MANAGER,  NULL },
	{ "context",             UPDATE_NEVER,    OWNER,    "it records the submission" },
	{ "cpus",                UPDATE_WAITING,  MANAGER,  NULL },
	{ "deadline",            UPDATE_ALWAYS,   MANAGER,  NULL },
	{ "depends",             UPDATE_ELEMENTS, MANAGER,  NULL },
	{ "exclude",             UPDATE_WAITING,  MANAGER,  NULL },
	{ "exclusive",           UPDATE_WAITING,  MANAGER,  NULL },
	{ "flavor",              UPDATE_WAITING,  MANAGER,  NULL },
	{ "gpu_cores",           UPDATE_WAITING,  MANAGER,  NULL },
	{ "gpu_memory",          UPDATE_WAITING,  MANAGER,  NULL },
	{ "gpus",                UPDATE_WAITING,  MANAGER,  NULL },
	{ "grace",               UPDATE_WAITING,  MANAGER,  NULL },
	{ "hold",                UPDATE_NEVER,    MANAGER,  "use gpuq hold and gpuq release" },
	{ "isolation",           UPDATE_WAITING,  MANAGER,  NULL },
	{ "kill_on_invalid_dep", UPDATE_ELEMENTS, MANAGER,  NULL },
	{ "licenses",            UPDATE_WAITING,  MANAGER,  NULL },
	{ "mail_type",           UPDATE_ALWAYS,   OWNER,    NULL },
	{ "mail_user",           UPDATE_ALWAYS,   OWNER,    NULL },
	{ "memory",              UPDATE_WAITING,  MANAGER,  NULL },
	{ "memory_per",          UPDATE_WAITING,  MANAGER,  NULL },
	{ "mig",                 UPDATE_WAITING,  MANAGER,  NULL },
	{ "mig_ok",              UPDATE_WAITING,  MANAGER,  NULL },
	{ "name",                UPDATE_ALWAYS,   OWNER,    NULL }, /* names output files */
	{ "nice",                UPDATE_ALWAYS,   MANAGER,  NULL },
	{ "node_selector",       UPDATE_WAITING,  MANAGER,  NULL },
	{ "nodes",               UPDATE_WAITING,  MANAGER,  NULL },
	{ "notify",              UPDATE_ALWAYS,   OWNER,    NULL },
	{ "pods",                UPDATE_WAITING,  MANAGER,  NULL },
	{ "priority",            UPDATE_ALWAYS,   OPERATOR, NULL },
	{ "qos",                 UPDATE_ELEMENTS, MANAGER,  NULL },
	{ "queue",               UPDATE_ELEMENTS, MANAGER,  NULL },
	{ "requeue",             UPDATE_ALWAYS,   MANAGER,  NULL },
	{ "reservation",         UPDATE_WAITING,  MANAGER,  NULL },
	{ "retry",               UPDATE_ALWAYS,   MANAGER,  NULL },
	{ "script",              UPDATE_NEVER,    OWNER,    "submit another job for another script" },
	{ "signal",              UPDATE_WAITING,  MANAGER,  NULL },
	{ "template",            UPDATE_NEVER,    OWNER,    "submit another job for another manifest" },
	{ "time",                UPDATE_ALWAYS,   MANAGER,  NULL },
	{ "time_min",            UPDATE_WAITING,  MANAGER,  NULL },
	{ "tolerations",         UPDATE_WAITING,  MANAGER,  NULL },
	{ "topology",            UPDATE_WAITING,  MANAGER,  NULL },
};
/* clang-format on */

const struct update_key *update_key(const char *key)
{
	static const struct update_key other = { NULL, UPDATE_WAITING, OWNER, NULL };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return &other;
}
