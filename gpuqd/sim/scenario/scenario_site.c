#include "gpuqd/sim/scenario/scenario_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/spec/profile.h"

/* The cluster and its queues. */

static const char *const units[] = { "second", "minute", "hour", "day", NULL };
static const char *const budget_modes[] = { "soft", "hard", NULL };
static const char *const queue_budget_modes[] = { "config", "soft", "hard", NULL };
static const char *const reservation_kinds[] = { "user", "maintenance", NULL };
static const char *const node_states[] = { "ready", "drained", "suspect", "down", NULL };

static const struct gpuq_field reservation_fields[] = {
	STR(sc_reservation, "name", name, "name"),
	NUM(sc_reservation, "start", start, "start"),
	NUM(sc_reservation, "duration", duration, "duration"),
	LIST(sc_reservation, "nodes", nodes, "which nodes"),
	STR(sc_reservation, "node", node, "which node"),
	NUM(sc_reservation, "gpus", gpus, "devices on any nodes"),
	NUM(sc_reservation, "every", every, "period of repetition"),
	NUM(sc_reservation, "release_after", release_after,
	    "time after which unused devices are released"),
	STR(sc_reservation, "queue", queue, "queue that may use it"),
	WORD(sc_reservation, "kind", kind, reservation_kinds, "user or maintenance"),
	WORD(sc_reservation, "at_end", at_end, site_at_ends,
	     "what becomes of jobs that still run in it at its end"),
	{ 0 },
};
static const struct gpuq_schema reservation_schema = {
	.name = "reservation",
	.size = sizeof(struct sc_reservation),
	.fields = reservation_fields,
};

/* ---- the keys of the site: as written, then as a snapshot has them ---- */

#define KIND_FACTOR GPUQ_K_CUSTOM
#define KIND_INT GPUQ_K_CUSTOM
#define KIND_WORD GPUQ_K_ENUM
#define KIND_FLAG GPUQ_K_BOOL
#define KIND_SPAN GPUQ_K_CUSTOM
#define KIND_COUNT GPUQ_K_CUSTOM
#define KIND_LIMIT GPUQ_K_CUSTOM
#define KIND_DEVICES GPUQ_K_CUSTOM
#define ROW(type, kind_, key_, member_, names_, doc_)                                              \
	{ .key = (key_),                                                                           \
	  .kind = KIND_##kind_,                                                                    \
	  .offset = offsetof(struct type, member_),                                                \
	  .names = (names_),                                                                       \
	  .custom = &scenario_num,                                                                 \
	  .doc = (doc_) },
#define SCHED_FIELD(kind, member, key, dflt, absent, recorded, names, least, most, doc)            \
	ROW(sc_config, kind, key, member, names, doc)
#define QUEUE_FIELD(kind, member, key, scenario, dflt, recorded, how, names, least, most, may,     \
		    doc)                                                                           \
	ROW(sc_queue, kind, scenario, member, names, doc)

/* Value of a member until a file has been read. */
#define UNREAD_FACTOR(absent) (absent)
#define UNREAD_INT(absent) (absent)
#define UNREAD_WORD(absent) (absent)
#define UNREAD_FLAG(absent) (absent)
#define UNREAD_SPAN(absent) SC_ABSENT
#define UNREAD_COUNT(absent) SC_ABSENT
#define UNREAD_LIMIT(absent) SC_ABSENT
#define UNREAD_DEVICES(absent) SC_ABSENT

static int64_t span(int unit, int64_t t, int64_t absent)
{
	return t == SC_ABSENT || t < 0 ? absent : scenario_us(unit, t);
}

static int64_t count(int64_t milli, int64_t absent)
{
	if (milli == SC_ABSENT)
		return absent;
	return milli < 0 ? GPUQ_UNLIMITED : milli / 1000;
}

static int64_t devices(int64_t milli, int64_t absent)
{
	if (milli == SC_ABSENT)
		return absent;
	return milli < 0 ? GPUQ_UNLIMITED : milli;
}

#define TAKEN_FACTOR(v, absent) (v)
#define TAKEN_INT(v, absent) (v)
#define TAKEN_WORD(v, absent) (v)
#define TAKEN_FLAG(v, absent) (v)
#define TAKEN_SPAN(v, absent) span(unit, v, absent)
#define TAKEN_COUNT(v, absent) count(v, absent)
#define TAKEN_LIMIT(v, absent) count(v, absent)
#define TAKEN_DEVICES(v, absent) devices(v, absent)

void scenario_take_config(struct sc_config *c)
{
	const int unit = c->unit;

#define X(kind, member, key, dflt, absent, ...) c->member = TAKEN_##kind(c->member, absent);
	POLICY_SCHED_KEYS(X)
#undef X
}

void scenario_take_queue(int unit, struct sc_queue *q)
{
#define X(kind, member, key, scenario, dflt, ...) q->member = TAKEN_##kind(q->member, dflt);
	POLICY_QUEUE_KEYS(X)
#undef X
}

static const struct gpuq_field config_fields[] = {
	NUM(sc_config, "now", now, "current time"),
	WORD(sc_config, "unit", unit, units, "unit of all times"),
	NUM(sc_config, "cycles", cycles, "number of cycles; absent = until stable"),
	POLICY_SCHED_KEYS(SCHED_FIELD) MAP(sc_config, "licences", licences, "licenses by name"),
	MAP(sc_config, "licenses", licences, "the same"),
	MANY(sc_config, "reservations", reservations, &reservation_schema, "calendar slices"),
	WORD(sc_config, "budget_mode", budget_mode, budget_modes, "soft or hard"),
	NUM(sc_config, "idle_window", idle_window, "window of idle rules"),
	MAP(sc_config, "priority_weights", priority_weights, "points of age, fairshare, size, qos"),
	NUM(sc_config, "usage_k", usage_k, "weight of past usage"),
	NUM(sc_config, "usage_half_life", usage_half_life,
	    "half-life of past usage; -1 = no decay"),
	LIST(sc_config, "topology_levels", topology_levels, "labels from wide to narrow"),
	LIST(sc_config, "flavors", flavors, "kinds of devices in order of preference"),
	{ 0 },
};

static void config_defaults(void *obj)
{
	struct sc_config *c = obj;

	c->unit = SC_UNIT_MINUTE;
	c->cycles = SC_ABSENT;
#define X(kind, member, key, dflt, absent, ...) c->member = UNREAD_##kind(absent);
	POLICY_SCHED_KEYS(X)
#undef X
	c->usage_half_life = c->idle_window = SC_ABSENT;
}

const struct gpuq_schema scenario_config = {
	.name = "config",
	.size = sizeof(struct sc_config),
	.fields = config_fields,
	.defaults = config_defaults,
};

static const struct gpuq_field taint_fields[] = {
	STR(snap_taint, "key", key, "its key"),
	STR(snap_taint, "value", value, "its value"),
	STR(snap_taint, "effect", effect, "NoSchedule, PreferNoSchedule or NoExecute"),
	{ 0 },
};

static void taint_defaults(void *obj)
{
	*(struct snap_taint *)obj = (struct snap_taint){ "", "", "NoSchedule" };
}

const struct gpuq_schema scenario_taint = {
	.name = "taint",
	.size = sizeof(struct snap_taint),
	.fields = taint_fields,
	.defaults = taint_defaults,
};

static const struct gpuq_field node_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_node, name),
	  .doc = "its name" },
	NUM(sc_node, "gpus", gpus, "devices"),
	NUM(sc_node, "cpu", cpu, "thousandths of a core"),
	NUM(sc_node, "mem_mb", mem_mb, "memory"),
	NUM(sc_node, "gpu_mem_mb", gpu_mem_mb, "memory of a device"),
	{ .key = "links",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &scenario_bytes,
	  .offset = offsetof(struct sc_node, links),
	  .doc = "link speed of each device to each, a row a device" },
	{ .key = "numa",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &scenario_bytes,
	  .offset = offsetof(struct sc_node, numa),
	  .doc = "the NUMA node of each device" },
	MAP(sc_node, "labels", labels, "its labels"),
	MANY(sc_node, "taints", taints, &scenario_taint, "its taints"),
	MAP(sc_node, "mig", mig, "instances by profile"),
	MAP(sc_node, "resources", resources, "countable resources by name"),
	NUM(sc_node, "replicas", replicas, "of each device; a task gets one"),
	NUM(sc_node, "max_pods", max_pods, "maximum number of tasks"),
	NUM(sc_node, "count", count, "number of identical nodes: name-0, name-1, ..."),
	STR(sc_node, "pool", pool, "its pool"),
	STR(sc_node, "flavor", flavor, "the kind of its devices"),
	WORD(sc_node, "state", state, node_states, "state; default: ready"),
	{ 0 },
};

static void node_defaults(void *obj)
{
	struct sc_node *n = obj;

	n->cpu = n->mem_mb = n->max_pods = n->count = SC_ABSENT;
	n->gpu_mem_mb = 100 * 1000;
}

/* True if each profile has a whole number of instances, at most that of a node of seven-slice
 * devices, or of their replicas, of which the profile tells the number. */
static bool mig_holds(const struct gpuq_strmap *mig)
{
	for (size_t i = 0; i < mig->n; i++) {
		const char *s = mig->vals[i];
		char *end;
		const unsigned long n = strtoul(s, &end, 10);

		if (*s < '0' || *s > '9' || *end || gpuq_profile_is_any(mig->keys[i]) ||
		    n / gpuq_profile_replicas(mig->keys[i]) > 7 * SNAP_DEVICES_MAX)
			return false;
	}
	return mig->n <= SC_MIG_MAX;
}

static bool amount_holds(const char *name, const char *text, int64_t *out)
{
	char *end;

	if (gpuq_resource_is_bytes(name))
		return gpuq_bytes_parse(text, out, NULL) == 0 && *out >= 0 && *out < SNAP_PLENTY;
	if (*text < '0' || *text > '9')
		return false;
	*out = strtoll(text, &end, 10);
	return !*end && *out <= 100000000;
}

bool scenario_resources_hold(const struct gpuq_strmap *map)
{
	int64_t n;

	for (size_t i = 0; i < map->n; i++)
		if (gpuq_resource_kind(map->keys[i]) == GPUQ_RESOURCE_UNKNOWN ||
		    !amount_holds(map->keys[i], map->vals[i], &n))
			return false;
	return map->n <= GPUQ_RESOURCES_MAX;
}

struct gpuq_amount *scenario_resources(struct gpuq_arena *a, const struct gpuq_strmap *map,
				       size_t *n)
{
	struct gpuq_amount *out = gpuq_arena_calloc(a, map->n + 1, sizeof(*out));

	for (size_t i = 0; out && i < map->n; i++) {
		out[i].name = map->keys[i];
		amount_holds(map->keys[i], map->vals[i], &out[i].count);
	}
	*n = out ? gpuq_amounts_sort(out, map->n) : 0;
	return out;
}

static int node_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_node *n = obj;
	const size_t gpus = n->gpus > 0 ? (size_t)n->gpus / 1000 : 0;

	if (n->gpus < 0 || n->gpus > SNAP_DEVICES_MAX * 1000 || n->gpus % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "gpus: expected 0 to %u devices",
					SNAP_DEVICES_MAX);
	if (n->count != SC_ABSENT && (n->count < 1000 || n->count > INT64_C(100000000)))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "count: expected 1 to 100000");
	if ((n->cpu != SC_ABSENT && n->cpu < 0) || (n->mem_mb != SC_ABSENT && n->mem_mb < 0) ||
	    (n->max_pods != SC_ABSENT && n->max_pods < 0) || n->gpu_mem_mb < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "an amount below 0");
	if (!mig_holds(&n->mig))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"mig: expected at most %d profiles, each with a number of "
					"instances",
					SC_MIG_MAX);
	if (n->replicas < 0 || n->replicas > SNAP_MILLI * 1000 || n->replicas % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "replicas: expected 0 to %d",
					SNAP_MILLI);
	if (!scenario_resources_hold(&n->resources))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"resources: expected at most %d names with a number each",
					GPUQ_RESOURCES_MAX);
	if (n->links.n && n->links.n != gpus * gpus)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"links: expected %zu rows of as many classes", gpus);
	if (n->numa.n && n->numa.n != gpus)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "numa: expected %zu numbers", gpus);
	return 0;
}

const struct gpuq_schema scenario_node = {
	.name = "node",
	.size = sizeof(struct sc_node),
	.fields = node_fields,
	.defaults = node_defaults,
	.check = node_check,
};

static int read_flavors(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct sc_queue *q = (void *)((char *)out - offsetof(struct sc_queue, flavors));

	return gpuq_flavors_read(r, v, &q->flavors, &q->flavor_rules);
}

static const struct gpuq_custom queue_flavors = { read_flavors, NULL };

static const struct gpuq_field queue_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_queue, name),
	  .doc = "its name" },
	STR(sc_queue, "parent", parent, "parent queue, or root"),
	AMOUNT("quota", quota, "guaranteed devices; -1 unlimited, auto = sum of the children"),
	AMOUNT("shared_quota", shared_quota, "added to the children's sum"),
	AMOUNT("limit", limit, "hard limit; -1 none"),
	AMOUNT("borrow_limit", borrow_limit, "limit as an amount beyond the quota"),
	AMOUNT("lend_limit", lend_limit, "how much of idle quota others may use"),
	POLICY_QUEUE_KEYS(QUEUE_FIELD)
		NUM(sc_queue, "quota_cpu", quota_cpu, "thousandths of a core"),
	NUM(sc_queue, "limit_cpu", limit_cpu, "thousandths of a core"),
	NUM(sc_queue, "quota_mem_mb", quota_mem_mb, "memory"),
	NUM(sc_queue, "limit_mem_mb", limit_mem_mb, "memory"),
	BOOL(sc_queue, "spread", spread, "its jobs prefer the emptiest nodes"),
	NUM(sc_queue, "usage", usage, "past usage, normalised"),
	NUM(sc_queue, "budget_gpu_min", budget_gpu_min, "GPU-minutes"),
	NUM(sc_queue, "budget_used_gpu_min", budget_used_gpu_min, "GPU-minutes"),
	WORD(sc_queue, "budget_mode", budget_mode, queue_budget_modes, "absent: the config's"),
	NUM(sc_queue, "user_max_running", user_max_running,
	    "maximum number of running jobs of one user"),
	NUM(sc_queue, "user_max_gpus", user_max_gpus, "maximum number of devices of one user"),
	NUM(sc_queue, "job_max_gpus", job_max_gpus, "maximum number of devices of one job"),
	NUM(sc_queue, "max_running", max_running, "maximum number of running jobs"),
	NUM(sc_queue, "max_gpus", max_gpus, "maximum number of devices, of all flavors together"),
	NUM(sc_queue, "idle_limit", idle_limit, "idle time after which its jobs are stopped"),
	{ .key = "flavors",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &queue_flavors,
	  .form = "list of names and maps",
	  .offset = offsetof(struct sc_queue, flavors),
	  .doc = "default flavors of its jobs, in order of preference" },
	NUM(sc_queue, "max_spot_preemptions", max_spot_preemptions,
	    "times that a job loses spot nodes before it uses other ones"),
	{ 0 },
};

static void queue_defaults(void *obj)
{
	struct sc_queue *q = obj;

	q->quota.all = q->shared_quota.all = q->limit.all = SC_ABSENT;
	q->borrow_limit.all = q->lend_limit.all = SC_ABSENT;
#define X(kind, member, key, scenario, dflt, ...) q->member = UNREAD_##kind(dflt);
	POLICY_QUEUE_KEYS(X)
#undef X
	q->rank = 100 * 1000;
	q->max_spot_preemptions = 2000;
	q->quota_cpu = q->limit_cpu = q->quota_mem_mb = q->limit_mem_mb = SC_ABSENT;
	q->budget_gpu_min = SC_ABSENT;
	q->user_max_running = q->user_max_gpus = q->job_max_gpus = SC_ABSENT;
	q->max_running = q->max_gpus = SC_ABSENT;
	q->idle_limit = SC_ABSENT;
}

void scenario_only_queue(struct sc_queue *q)
{
	memset(q, 0, sizeof(*q));
	queue_defaults(q);
	q->name = "default";
	q->quota.all = q->limit.all = SC_NONE;
	scenario_take_queue(SC_UNIT_SECOND, q);
}

static int queue_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_queue *q = obj;

	if (q->weight_milli < 0 || q->usage < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "weight and usage are at least 0");
	if (strcmp(q->name, "root") == 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "root is the unlimited top");
	return 0;
}

const struct gpuq_schema scenario_queue = {
	.name = "queue",
	.size = sizeof(struct sc_queue),
	.fields = queue_fields,
	.defaults = queue_defaults,
	.check = queue_check,
};

static const struct gpuq_field user_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct sc_user, name),
	  .doc = "name of the user" },
	STR(sc_user, "queue", queue, "queue; absent = the first"),
	NUM(sc_user, "usage", usage, "past usage, normalised"),
	NUM(sc_user, "used", used, "the same in GPU-seconds, as it counts now"),
	{ 0 },
};

static int user_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_user *u = obj;

	if (u->usage < 0 || u->used < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "usage and used are at least 0");
	return 0;
}

const struct gpuq_schema scenario_user = {
	.name = "user",
	.size = sizeof(struct sc_user),
	.fields = user_fields,
	.check = user_check,
};
