/* site.h - queues, pools, flavors, qos and the like, as a site file has them
 *
 * Owns     struct site, its schema (gpuq-site(5)) and its checks.
 * Touches  memory only.
 * Used by  state/model (the tree of queues), flow/admit/submit (policy), gpuqd --site,
 *          rpc (site.apply, queue.list).
 *
 * A site is read from the tree of one document and lives in one arena.
 */
#ifndef GPUQD_SITE_SITE_H
#define GPUQD_SITE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/site/adoption.h"
#include "gpuqd/site/inventory.h"
#include "gpuqd/site/layouts.h"
#include "gpuqd/site/pod_keys.h"
#include "gpuqd/site/policy_queue.h"
#include "gpuqd/site/price.h"
#include "gpuqd/site/provision.h"
#include "gpuqd/util/recur.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/val.h"

/* Devices in thousandths, for all flavors alike or flavor by flavor. */
struct site_amount {
	bool given; /* the key was there */
	bool per_flavor; /* else `all` counts for each flavor alike */
	int64_t all; /* GPUQ_UNLIMITED possible */
	const char **flavors;
	int64_t *amounts; /* by flavor, in thousandths */
	size_t n;
};

struct site_match {
	const char *product; /* glob over the device's product; NULL = none by itself */
	int64_t memory_min_bytes; /* of a device, 0 = any */
};

struct site_flavor {
	const char *name; /* as jobs and quotas name it */
	struct site_match match;
	const char *resource; /* NULL, or what nodes offer its devices as: "amd.com/gpu" */
	const char *device_class; /* NULL, or the DeviceClass that selects them */
	int64_t rate_milli; /* billing weight, default 1000 */
	struct price price;
	struct site_pod_keys pod;
};

enum site_placement { SITE_PLACEMENT_PACK, SITE_PLACEMENT_SPREAD };

enum site_sharing {
	SHARING_AUTO, /* as the nodes tell */
	SHARING_WHOLE, /* a pod gets whole devices */
	SHARING_MIG, /* instances of a partitioned device */
	SHARING_TIME_SLICING, /* replicas that take turns */
	SHARING_MPS, /* replicas that run at the same time */
	SHARING_GPUSHARE, /* memory in units of the device plugin */
	SHARING_GPU_MANAGER, /* hundredths of a device, and memory */
	SHARING_HAMI, /* the same, of several devices to a pod */
	SHARING_DRA /* devices of ResourceClaims */
};

/* The word of a site file for it. */
const char *site_sharing_word(int sharing);

struct site_pool {
	const char *name; /* as reservations and audit records name it */
	struct gpuq_strmap selector; /* node labels; all must match */
	const char *flavor;
	int sharing; /* enum site_sharing */
	int placement; /* enum site_placement */
	bool spot;
	bool replicas_as_gpus; /* each replica counts as a whole device */
	bool evictable; /* stands in provisioning as well */
	int billing; /* enum price_kind */
	struct price price; /* before that of its flavor */
	struct provision *provisioning; /* NULL = its nodes come and go as they please */
	struct site_layouts *mig; /* layouts that its nodes may be given; NULL = none */
	struct gpuq_objects tolerations; /* struct gpuq_toleration: that pods on its nodes get */
};

struct site_cap { /* of jobs or devices: a user's, one job's, all; GPUQ_UNLIMITED = none */
	int64_t user, job, queue;
};

struct site_qos {
	const char *name; /* as jobs name it */
	bool preemptible; /* whether other jobs may preempt its jobs */
	int64_t priority, max_time_us, min_runtime_us, grace_us, usage_factor_milli;
	bool interactive; /* made for interactive jobs: they get it unless they name another */
	struct site_cap max_running, max_gpus, max_submitted; /* queue: of all its jobs */
	int64_t idle_us; /* 0 = no rule */
};

struct site_budget {
	int64_t gpu_minutes; /* of all together; GPUQ_UNLIMITED = none */
	int64_t user_gpu_minutes; /* of each user; GPUQ_UNLIMITED = none */
	int period; /* 0 none, 1 day, 2 week, 3 month, 4 quarter, 5 year */
	int64_t half_life_us;
	int mode; /* 0 soft, 1 hard */
};

struct site_node_loss {
	int mode; /* 0 strict, 1 available */
	int64_t after_us;
};

struct site_queue {
	const char *name, *parent; /* parent NULL = at the top */
	struct site_amount quota, limit, lend;
	struct site_amount shared_quota; /* without quota: more than the children's sum */
	POLICY_QUEUE_GROUP(policy);
	struct site_budget *budget; /* NULL = none */
	const char *namespace_, *service_account, *priority_class,
		*pod_policy; /* what its pods get; NULL = inherited */
	struct site_pod_keys pod;
	struct gpuq_strlist service_accounts; /* globs: a manifest may name these; none = none */
	struct gpuq_strlist secrets, config_maps, volume_claims; /* walls.h */
	bool service_account_token;
	bool one_user; /* derived: all queues of its namespace let in the same one user */
	struct gpuq_strlist image_pull_secrets, users, groups, managers, qos, flavors;
	const struct gpuq_flavor_rule *flavor_rules; /* of each flavor; NULL = none */
	int64_t max_spot_preemptions; /* of a job, before it avoids spot nodes */
	int64_t default_time_us, max_time_us; /* 0 = not given */
	int64_t idle_us; /* 0 = no rule of its own */
	struct site_cap max_running, max_gpus, max_submitted;
	int64_t start_timeout_us; /* a job whose pods do not run by then is evicted; 0 = not given */
	struct site_node_loss node_loss; /* what happens to jobs of a lost node */
	bool accounting_finalizer, closed;
	struct site_logs_keep *logs_keep; /* NULL = that of the queue above */
	bool code; /* scripts carry the directory that they were submitted from */
	struct gpuq_choice launch; /* scripts of sbatch run in their first pod alone */
	int isolation; /* of its jobs' devices, at least; enum gpuq_isolation */
	const char *start; /* "direct" or "bind"; NULL = as the parent */
};

/* A user's right to reserve. */
struct site_reserve {
	bool may;
	int64_t gpu_hours; /* of all their reservations that are not over; GPUQ_UNLIMITED = any */
	int64_t ahead_us; /* until the start; GPUQ_UNLIMITED = any */
};

extern const struct gpuq_custom site_reserve_custom; /* true, or a map of the limits */

struct site_user {
	const char *name, *default_queue; /* its own, and where its jobs go that name none */
	struct site_reserve reserve;
	struct gpuq_strlist groups; /* for groups of queues and limits of groups */
	int64_t max_running, max_gpus, max_submitted; /* GPUQ_UNLIMITED = none */
};

/* Limits of all users of the group together. Groups that are not listed have no limits. */
struct site_group {
	const char *name;
	int64_t max_running, max_gpus, max_submitted; /* of all its users together */
};

struct site_license {
	const char *name;
	int64_t count; /* jobs may hold this many at once */
};

/* Days, each as the instant in us at which it begins in UTC. */
struct site_days {
	int64_t *begins_us; /* midnights, UTC */
	size_t n;
};
extern const struct gpuq_custom site_days_custom; /* a list of dates such as 2026-12-24 */

/* A time zone: its name, and the rule by which gpuqd knows it (zones.h). */
struct site_zone {
	const char *name, *rule; /* NULL: UTC */
	struct zone zone;
};

/* The fate of jobs that still run in a reservation when it ends: they are signalled before, or continue. */
enum site_at_end { SITE_AT_END_EVICT, SITE_AT_END_KEEP };
extern const char *const site_at_ends[]; /* their words */

struct site_reservation {
	const char *name, *queue, *flavor, *pool;
	int64_t start_us, duration_us, gpus_milli; /* gpus_milli 0 = what it names, whole */
	int64_t every_us, release_after_us; /* 0 = as the flags say */
	int at_end; /* enum site_at_end */
	int64_t until_us; /* of one that recurs; 0 = no end */
	struct site_days except; /* days on which it does not begin */
	struct site_zone timezone; /* whose wall clock periods of whole days keep */
	bool external; /* nodes that a cloud lends: they come into its pool and go at its end */
	int64_t count; /* external: number of these nodes */
	int64_t grace_us; /* external: what runs there is signalled so long before the end */
	struct gpuq_strlist nodes, users, flags;
};

#define SITE_MAX_SUBMITTED 100000
#define SITE_MAX_STORED_BYTES (INT64_C(1) << 30)

/* Output of pods that are gone. */
struct site_logs_keep {
	int64_t time_us; /* how long it is kept */
	int64_t bytes; /* of one pod */
};

/* The site's part in code that jobs carry. */
struct site_code {
	const char *image; /* of the container that unpacks it; NULL = that of the job */
	int64_t keep_us; /* how long an archive stays once no job names it */
};

/* Where pods of several get srun from. */
struct site_steps {
	const char *image; /* that has gpuq */
};

/* A condition or a taint of nodes that keeps new work away. */
struct site_health {
	const char *condition; /* glob of types; "!" before it: harmful when it is False */
	const char *taint; /* glob of keys */
	const char *reason; /* NULL = the name of what was found */
};

struct site {
	struct gpuq_arena arena; /* everything below lives in it */
	int64_t version; /* of the file format */
	struct gpuq_strlist topology; /* node labels from wide to narrow: the levels of placement */
	const char *currency; /* of prices; NULL = unnamed */
	const char *pod_policy; /* of queues that have none; NULL = baseline */
	struct site_budget *default_budget; /* of leaves that have none of their own */
	int64_t max_submitted, max_stored_bytes; /* of one user, struct stored; GPUQ_UNLIMITED */
	struct gpuq_objects flavors, pools, qos, queues, users, groups, licenses, reservations;
	struct site_pod_keys pod; /* of the pods of all queues */
	struct site_logs_keep *logs_keep; /* of queues that have none; NULL = none is kept */
	struct site_code *code; /* NULL = the defaults */
	struct gpuq_choice launch; /* of queues that do not say */
	struct site_steps *steps; /* NULL = their images have it, or not */
	struct gpuq_objects inventory; /* devices of nodes that do not report them */
	struct gpuq_strmap gres; /* names of --gres to resources of nodes */
	struct gpuq_objects health; /* rules by which a node is ill */
	struct site_adopt *adopt; /* pods that were not submitted; NULL = none */
	struct gpuq_val *tree; /* normalised: what `export` prints and the store keeps */
};

extern const struct gpuq_schema site_schema, site_health_schema, site_reservation_schema;
extern const struct gpuq_custom site_devices; /* int64_t: devices in thousandths, or unlimited */

/* Read one document. file NULL = not a file. *out is on the heap: site_free().
 * Checks names, parents (known, no circle), flavors and qos that are named.
 * Returns 0, GPUQ_EINVAL with "file:line:col: queues[2].parent: ...", GPUQ_ENOMEM. */
int site_read(const struct gpuq_val *v, const char *file, int64_t now_us, struct site **out,
	      struct gpuq_err *err);

/* The same of one that passed site_read when it was applied: keys that are not known are
 * skipped, since a newer gpuqd may have stored it. */
int site_read_stored(const struct gpuq_val *v, int64_t now_us, struct site **out,
		     struct gpuq_err *err);

/* Return the site of an empty database: queue `default`, without a quota: see quotas.h. */
struct site *site_default(void);
void site_free(struct site *s);

#define site_each(type, list, it)                                                                  \
	for (struct type *it = (list).items, *it##_end = it ? it + (list).n : NULL;                \
	     it != it##_end; it++)

const struct site_qos *site_qos_find(const struct site *s, const char *name);

/* Flags of a reservation; ends with NULL. maintenance: no job may use it; daily and weekly (or
 * recurring): it repeats each UTC day or each seven; release-unused: it is released when unused. */
extern const char *const site_reservation_flags[];
bool site_reservation_has(const struct site_reservation *r, const char *flag);
/* When it begins and recurs; what is returned lives as long as r. */
struct recur site_reservation_when(const struct site_reservation *r);
/* When it begins; of one that recurs, the one that is now or else the next, or else the last. */
int64_t site_reservation_start(const struct site_reservation *r, int64_t now_us);
/* Return the period of a reservation, and the time after which it is released if unused: its own
 * numbers, else those of its flags; 0 = never. */
int64_t site_reservation_every_us(const struct site_reservation *r);
int64_t site_reservation_release_us(const struct site_reservation *r);

/* Return when what runs on the nodes of an external one is signalled. */
int64_t site_reservation_clears(const struct site_reservation *r);

#include "gpuqd/site/site_find.h"

#endif
