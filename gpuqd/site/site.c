#include "gpuqd/site/site.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site_caps.h"
#include "gpuqd/site/walls.h"
#include "gpuqd/site/site_merge.h"
#include "gpuqd/site/site_rows.h"
#include "libgpuq/limits.h"
#include "libgpuq/names.h"
#include "libgpuq/spec/toleration.h"
#include "libgpuq/units.h"

/* ---- amounts: 8, unlimited, {a100: 32, h100: 8} ---- */

/* Read a number of devices in thousandths. A number of a file is read from its text: as a double
 * 0.1 would not be exactly a tenth. */
static int read_milli(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out)
{
	int64_t milli;

	if (v->type == GPUQ_STR && (strcmp(v->s, "unlimited") == 0)) {
		*out = GPUQ_UNLIMITED;
		return 0;
	}
	if (v->type == GPUQ_INT && v->i >= 0 && v->i <= 100000000) {
		*out = v->i * 1000;
		return 0;
	}
	if (v->type == GPUQ_REAL && v->src && gpuq_milli_parse(v->src, &milli, NULL) == 0 &&
	    milli >= 0 && milli <= 100000000 * INT64_C(1000)) {
		*out = milli;
		return 0;
	}
	if (v->type == GPUQ_REAL && v->d >= 0 && v->d < 1e8) {
		*out = (int64_t)(v->d * 1000 + 0.5);
		return 0;
	}
	return gpuq_reader_fail(r, v, GPUQ_EINVAL,
				"expected a number of devices >= 0, or unlimited");
}

/* Read an amount: one number for each flavor, or a map by flavor, whose names are checked when all
 * flavors are known. */
static int read_amount(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct site_amount *a = out;
	int rc;

	memset(a, 0, sizeof(*a));
	a->given = true;
	if (v->type != GPUQ_MAP)
		return read_milli(r, v, &a->all);
	a->per_flavor = true;
	a->n = v->n;
	a->flavors = gpuq_arena_calloc(r->arena, v->n ? v->n : 1, sizeof(*a->flavors));
	a->amounts = gpuq_arena_calloc(r->arena, v->n ? v->n : 1, sizeof(*a->amounts));
	if (!a->flavors || !a->amounts)
		return gpuq_reader_fail(r, v, GPUQ_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < v->n; i++) {
		size_t mark = gpuq_reader_enter(r, v->pairs[i].key);

		rc = read_milli(r, v->pairs[i].val, &a->amounts[i]);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
		a->flavors[i] = gpuq_arena_strdup(r->arena, v->pairs[i].key);
		if (!a->flavors[i])
			return gpuq_reader_fail(r, v, GPUQ_ENOMEM, "out of memory");
	}
	return 0;
}

/* Print thousandths as the number of devices that was written. */
static struct gpuq_val *write_milli(struct gpuq_arena *mem, int64_t milli)
{
	if (milli == GPUQ_UNLIMITED)
		return gpuq_str(mem, "unlimited");
	if (milli % 1000 == 0)
		return gpuq_int(mem, milli / 1000);
	return gpuq_real(mem, (double)milli / 1000);
}

/* Print an amount in the form in which it was given. */
static struct gpuq_val *write_amount(struct gpuq_arena *mem, const void *in)
{
	const struct site_amount *a = in;
	struct gpuq_val *v;

	if (!a->given)
		return NULL;
	if (!a->per_flavor)
		return write_milli(mem, a->all);
	v = gpuq_map(mem);
	for (size_t i = 0; i < a->n; i++)
		gpuq_put(mem, v, a->flavors[i], write_milli(mem, a->amounts[i]));
	return v;
}

static const struct gpuq_custom amount = { read_amount, write_amount };

static int read_devices(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	return read_milli(r, v, out);
}

/* Print a limit of a user, group or reservation; no limit is the default and is left out. */
static struct gpuq_val *write_devices(struct gpuq_arena *mem, const void *in)
{
	const int64_t milli = *(const int64_t *)in;

	return milli == GPUQ_UNLIMITED ? NULL : write_milli(mem, milli);
}

const struct gpuq_custom site_devices = { read_devices, write_devices };

/* ---- a weight or rate: a number >= 0, in thousandths ---- */

/* Read a weight or a usage factor; it has no `unlimited'. */
static int read_factor(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	int64_t milli;
	int rc = read_milli(r, v, &milli);

	if (rc < 0 || milli == GPUQ_UNLIMITED)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a number >= 0");
	*(int64_t *)out = milli;
	return 0;
}

/* Print a factor that is not 1. */
static struct gpuq_val *write_factor(struct gpuq_arena *mem, const void *in)
{
	int64_t milli = *(const int64_t *)in;

	return milli == 1000 ? NULL : write_milli(mem, milli);
}

static const struct gpuq_custom factor = { read_factor, write_factor };

/* ---- tables ---- */

static const char *const sharings[] = { "auto",     "whole",       "mig",  "time-slicing", "mps",
					"gpushare", "gpu-manager", "hami", "dra",          NULL };

const char *site_sharing_word(int sharing)
{
	return sharings[sharing];
}

static const char *const placements[] = { "pack", "spread", NULL };
static const char *const periods[] = { "none", "day", "week", "month", "quarter", "year", NULL };
static const char *const budget_modes[] = { "soft", "hard", NULL };

static const struct gpuq_field match_fields[] = {
	F(site_match, "product", GPUQ_K_STR, product,
	  .doc = "glob over the product name of the device"),
	F(site_match, "memory", GPUQ_K_BYTES, memory_min_bytes,
	  .doc = "minimum memory of the device"),
	END,
};

static const struct gpuq_schema match_schema = { .name = "match",
						 .size = sizeof(struct site_match),
						 .fields = match_fields };

/* Keys that the site, a flavor and a queue have alike. */
#define POD_KEYS(type, image_doc)                                                                  \
	F(type, "image", GPUQ_K_STR, pod.image, .doc = image_doc),                                 \
		F(type, "volumes", GPUQ_K_OBJECTS, pod.volumes, .sub = &gpuq_volume_schema,        \
		  .doc = "volumes of its pods, as in gpuq-job(5), with %u, %q and %g in path and " \
			 "sub_path"),                                                              \
		F(type, "workdir", GPUQ_K_STR, pod.workdir,                                        \
		  .doc = "working directory of jobs that name none"),                              \
		F(type, "env", GPUQ_K_STRMAP, pod.env, .doc = "environment variables of its pods")

static const struct gpuq_field flavor_fields[] = {
	F(site_flavor, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name used by quotas and jobs"),
	F(site_flavor, "match", GPUQ_K_OBJECT, match, .sub = &match_schema,
	  .doc = "devices that belong to this flavor"),
	F(site_flavor, "resource", GPUQ_K_STR, resource,
	  .doc = "resource of nodes that its devices are: amd.com/gpu, google.com/tpu"),
	F(site_flavor, "device_class", GPUQ_K_STR, device_class,
	  .doc = "DeviceClass that selects its devices: gpu.nvidia.com"),
	F(site_flavor, "rate", GPUQ_K_CUSTOM, rate_milli, .custom = &factor, .form = "number",
	  .doc = "billing weight of one device"),
	F(site_flavor, "price", GPUQ_K_CUSTOM, price, .custom = &price_custom,
	  .form = "number or map",
	  .doc = "price per device and hour: 2.50, or {on_demand: 3.10, committed: 1.20}"),
	POD_KEYS(site_flavor, "image of jobs that name none"),
	END,
};

static void flavor_defaults(void *obj)
{
	((struct site_flavor *)obj)->rate_milli = 1000;
}

/* A number is a slip, although a class may be called so. Earlier versions stored anything. */
static int check_class(struct gpuq_reader *r, const struct gpuq_val *v, const char *name)
{
	const struct gpuq_val *at = gpuq_get(v, "device_class");

	if (!name || r->stored || ((!at || at->type == GPUQ_STR) && site_is_dns(name, true)))
		return 0;
	gpuq_reader_enter(r, "device_class");
	return gpuq_reader_fail(r, at ? at : v, GPUQ_EINVAL,
				"expected the name of a DeviceClass, such as gpu.nvidia.com: "
				"lower-case letters, digits, '.' and '-', not '%.80s'",
				name);
}

static int flavor_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_flavor *f = obj;
	const struct gpuq_val *at = gpuq_get(v, "resource");
	const int rc = check_class(r, v, f->device_class);

	if (rc < 0)
		return rc;
	if (!f->resource || inventory_may_be_device(f->resource))
		return pod_keys_check(r, v, &f->pod);
	gpuq_reader_enter(r, "resource");
	return gpuq_reader_fail(r, at ? at : v, GPUQ_EINVAL,
				"expected a resource of devices such as amd.com/gpu or "
				"google.com/tpu, not '%.80s'",
				f->resource);
}

static const struct gpuq_schema flavor_schema = { .name = "flavor",
						  .size = sizeof(struct site_flavor),
						  .fields = flavor_fields,
						  .defaults = flavor_defaults,
						  .check = flavor_check };

static const struct gpuq_field pool_fields[] = {
	F(site_pool, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the pool"),
	F(site_pool, "selector", GPUQ_K_STRMAP, selector, .doc = "labels that select its nodes"),
	F(site_pool, "flavor", GPUQ_K_NAME, flavor, .doc = "flavor of all its devices"),
	F(site_pool, "sharing", GPUQ_K_ENUM, sharing, .names = sharings,
	  .form = "auto | whole | mig | time-slicing | mps | gpushare | gpu-manager | hami | dra",
	  .doc = "system that allocates its devices"),
	F(site_pool, "placement", GPUQ_K_ENUM, placement, .names = placements,
	  .doc = "pack pods on few nodes, or spread them"),
	F(site_pool, "spot", GPUQ_K_BOOL, spot,
	  .doc = "whether the cloud may take its nodes away at any time"),
	F(site_pool, "replicas_as_gpus", GPUQ_K_BOOL, replicas_as_gpus,
	  .doc = "whether a replica of a device counts as a whole device"),
	F(site_pool, "evictable", GPUQ_K_BOOL, evictable,
	  .doc = "whether other jobs may preempt those on nodes that it requested"),
	F(site_pool, "billing", GPUQ_K_ENUM, billing, .names = price_kinds,
	  .doc = "price that is charged"),
	F(site_pool, "price", GPUQ_K_CUSTOM, price, .custom = &price_custom,
	  .form = "number or map", .doc = "price per device and hour; default: that of the flavor"),
	F(site_pool, "provisioning", GPUQ_K_CUSTOM, provisioning, .custom = &provision_custom,
	  .form = "map", .doc = "way of requesting further nodes; default: none"),
	F(site_pool, "mig", GPUQ_K_OBJECT_PTR, mig, .sub = &site_layouts_schema,
	  .doc = "layouts of MIG instances that gpuqd may have its nodes cut into; default: none"),
	F(site_pool, "tolerations", GPUQ_K_OBJECTS, tolerations, .sub = &gpuq_toleration_schema,
	  .doc = "tolerations that pods on its nodes get; default: none"),
	END,
};

static bool gives(const struct gpuq_val *v, const char *key)
{
	const struct gpuq_val *at = gpuq_get(v, key);

	return at && at->type != GPUQ_NULL;
}

static int pool_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct site_pool *p = obj;

	if (layouts_are_on(p->mig) && p->sharing != SHARING_AUTO && p->sharing != SHARING_MIG)
		return gpuq_reader_fail_key(
			r, v, "mig", "has no effect with this sharing: expected auto or mig");
	if (p->replicas_as_gpus && p->sharing != SHARING_AUTO &&
	    p->sharing != SHARING_TIME_SLICING && p->sharing != SHARING_MPS && !r->lenient)
		return gpuq_reader_fail_key(r, v, "replicas_as_gpus",
					    "has no effect with this sharing: expected auto, "
					    "time-slicing or mps");
	if (r->stored && p->evictable && site_pool_requests(p) && p->provisioning->evictable)
		p->evictable = false; /* earlier versions stored both */
	if (!r->lenient && site_pool_grows(p) && gives(v, "evictable") &&
	    gives(gpuq_get(v, "provisioning"), "evictable"))
		return gpuq_reader_fail_key(
			r, v, "evictable",
			"said twice: its provisioning has it as well, expected one of them");
	if (p->evictable && !site_pool_requests(p) && !r->lenient)
		return gpuq_reader_fail_key(r, v, "evictable",
					    "has an effect on nodes that are requested: expected "
					    "provisioning of kind request");
	return provision_check(r, v, p->provisioning, &p->selector, p->flavor);
}

static const struct gpuq_schema pool_schema = {
	.name = "pool", .size = sizeof(struct site_pool), .fields = pool_fields, .check = pool_check
};

static const struct gpuq_field qos_fields[] = {
	F(site_qos, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the qos"),
	F(site_qos, "preemptible", GPUQ_K_BOOL, preemptible,
	  .doc = "whether its jobs may be preempted"),
	F(site_qos, "priority", GPUQ_K_INT, priority, .min = -1000000000, .max = 1000000000,
	  .doc = "priority; larger is sooner"),
	F(site_qos, "max_time", GPUQ_K_DURATION, max_time_us, .doc = "maximum time limit"),
	F(site_qos, "min_runtime", GPUQ_K_DURATION, min_runtime_us,
	  .doc = "minimum run time before its jobs may be preempted"),
	F(site_qos, "grace", GPUQ_K_DURATION, grace_us,
	  .doc = "grace period between preemption signal and kill"),
	F(site_qos, "usage_factor", GPUQ_K_CUSTOM, usage_factor_milli, .custom = &factor,
	  .form = "number", .doc = "factor applied to charged use"),
	F(site_qos, "interactive", GPUQ_K_BOOL, interactive,
	  .doc = "whether its jobs are interactive"),
	F(site_qos, "idle", GPUQ_K_DURATION, idle_us,
	  .doc = "time after which a job is stopped if all its devices are idle; see IDLE DEVICES"),
	F(site_qos, "max_running", GPUQ_K_CUSTOM, max_running, .custom = &site_caps_count_custom,
	  .form = "caps", .doc = "maximum number of running jobs: in total, or {user: 4}"),
	F(site_qos, "max_gpus", GPUQ_K_CUSTOM, max_gpus, .custom = &site_caps_custom,
	  .form = "caps", .doc = "maximum number of devices: in total, or {user: 8, job: 4}"),
	F(site_qos, "max_submitted", GPUQ_K_CUSTOM, max_submitted,
	  .custom = &site_caps_count_custom, .form = "caps",
	  .doc = "maximum number of pending and running jobs: in total, or {user: 100}"),
	END,
};

/* Set what a qos has that says nothing. */
static void qos_defaults(void *obj)
{
	struct site_qos *q = obj;

	q->preemptible = true;
	q->usage_factor_milli = 1000;
	q->max_running = q->max_gpus = q->max_submitted = site_caps_none;
}

/* A rule that can never apply is a mistake. */
static int idle_check(struct gpuq_reader *r, const struct gpuq_val *v, int64_t idle_us,
		      int64_t max_time_us)
{
	if (idle_us && max_time_us && idle_us >= max_time_us)
		return gpuq_reader_fail_key(r, v, "idle",
					    "not shorter than max_time: no job runs that long");
	return 0;
}

/* Check that the idle rule of a qos can take effect before its time limit. */
static int qos_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_qos *q = obj;

	return idle_check(r, v, q->idle_us, q->max_time_us);
}

static const struct gpuq_schema qos_schema = { .name = "qos",
					       .size = sizeof(struct site_qos),
					       .fields = qos_fields,
					       .defaults = qos_defaults,
					       .check = qos_check };

static const struct gpuq_field budget_fields[] = {
	F(site_budget, "gpu_minutes", GPUQ_K_LIMIT, gpu_minutes, .max = INT64_MAX / 60000000,
	  .doc = "GPU-minutes"),
	F(site_budget, "user_gpu_minutes", GPUQ_K_LIMIT, user_gpu_minutes,
	  .max = INT64_MAX / 60000000, .doc = "GPU-minutes of each user"),
	F(site_budget, "period", GPUQ_K_ENUM, period, .names = periods,
	  .doc = "period after which it is reset"),
	F(site_budget, "half_life", GPUQ_K_DURATION, half_life_us, .doc = "half-life of use"),
	F(site_budget, "mode", GPUQ_K_ENUM, mode, .names = budget_modes,
	  .doc = "soft: lower entitlement when exhausted; hard: no start"),
	END,
};

/* Set both amounts to unlimited; one of them must be given. */
static void budget_defaults(void *obj)
{
	struct site_budget *b = obj;

	b->gpu_minutes = b->user_gpu_minutes = GPUQ_UNLIMITED;
}

/* Check that a budget limits something, and either is reset or decays. */
static int budget_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_budget *b = obj;

	if (b->gpu_minutes == GPUQ_UNLIMITED && b->user_gpu_minutes == GPUQ_UNLIMITED)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected gpu_minutes, user_gpu_minutes or both");
	if (b->half_life_us && b->period)
		return gpuq_reader_fail_key(r, v, "half_life",
					    "expected either a period or a half_life");
	return 0;
}

static const struct gpuq_schema budget_schema = { .name = "budget",
						  .size = sizeof(struct site_budget),
						  .fields = budget_fields,
						  .defaults = budget_defaults,
						  .check = budget_check };

static const struct gpuq_field logs_keep_fields[] = {
	F(site_logs_keep, "time", GPUQ_K_DURATION, time_us, .flags = GPUQ_F_REQUIRED,
	  .doc = "time for which the output of a pod is kept after its end"),
	F(site_logs_keep, "size", GPUQ_K_BYTES, bytes, .min = 4096, .max = 1 << 30,
	  .doc = "bytes of one pod that are kept, the last ones; default: 16Mi"),
	END,
};

static void logs_keep_defaults(void *obj)
{
	((struct site_logs_keep *)obj)->bytes = GPUQ_LOGS_KEPT_POD_BYTES;
}

static const struct gpuq_schema logs_keep_schema = { .name = "logs_keep",
						     .size = sizeof(struct site_logs_keep),
						     .fields = logs_keep_fields,
						     .defaults = logs_keep_defaults };

/* A row of policy_queue.h as a row of the file. */
#define KIND_FACTOR .kind = GPUQ_K_CUSTOM, .custom = &factor, .form = "number"
#define KIND_INT .kind = GPUQ_K_INT
#define KIND_WORD .kind = GPUQ_K_ENUM
#define KIND_FLAG .kind = GPUQ_K_BOOL
#define KIND_SPAN .kind = GPUQ_K_DURATION
#define POLICY_FIELD(kind_, member_, key_, scenario, dflt, recorded, how, names_, least, most,     \
		     may, doc_)                                                                    \
	{ .key = (key_),                                                                           \
	  KIND_##kind_,                                                                            \
	  .offset = offsetof(struct site_queue, member_),                                          \
	  .names = (names_),                                                                       \
	  .min = (least),                                                                          \
	  .max = (most),                                                                           \
	  .doc = (doc_) },

static const struct gpuq_field queue_fields[] = {
	F(site_queue, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the queue"),
	F(site_queue, "parent", GPUQ_K_NAME, parent, .doc = "parent queue"),
	F(site_queue, "quota", GPUQ_K_CUSTOM, quota, .custom = &amount, .form = "devices",
	  .doc = "guaranteed devices"),
	F(site_queue, "limit", GPUQ_K_CUSTOM, limit, .custom = &amount, .form = "devices",
	  .doc = "hard limit on devices"),
	F(site_queue, "lend", GPUQ_K_CUSTOM, lend, .custom = &amount, .form = "devices",
	  .doc = "maximum number of devices of its idle quota that others may use"),
	F(site_queue, "shared_quota", GPUQ_K_CUSTOM, shared_quota, .custom = &amount,
	  .form = "devices",
	  .doc = "for a queue without a quota: capacity that the queues below share in addition to "
		 "their own quotas"),
	POLICY_QUEUE_KEYS(POLICY_FIELD) F(site_queue, "budget", GPUQ_K_OBJECT_PTR, budget,
					  .sub = &budget_schema, .doc = "budget in GPU-minutes"),
	F(site_queue, "namespace", GPUQ_K_NAME, namespace_, .doc = "Kubernetes namespace"),
	F(site_queue, "service_account", GPUQ_K_NAME, service_account,
	  .doc = "service account of its pods"),
	F(site_queue, "priority_class", GPUQ_K_NAME, priority_class,
	  .doc = "Kubernetes PriorityClass of its pods"),
	POD_KEYS(site_queue, "default image of scripts"),
	F(site_queue, "service_accounts", GPUQ_K_STRLIST, service_accounts,
	  .doc = "service accounts that manifests may name, with * and ?, or any; others are "
		 "refused; absent: service accounts of manifests are ignored, with a warning"),
	F(site_queue, "image_pull_secrets", GPUQ_K_STRLIST, image_pull_secrets,
	  .doc = "image pull secrets of its pods"),
	F(site_queue, "pod_policy", GPUQ_K_STR, pod_policy,
	  .doc = "baseline, restricted or privileged; default: that of the parent queue, then of "
		 "the site"),
	F(site_queue, "secrets", GPUQ_K_STRLIST, secrets,
	  .doc = "Secrets that its pods may name: any, owner (label gpuq.io/user), or names with * "
		 "and ?; default: any if only one user may submit in the namespace, else owner"),
	F(site_queue, "config_maps", GPUQ_K_STRLIST, config_maps,
	  .doc = "ConfigMaps that its pods may name, likewise; default: any"),
	F(site_queue, "volume_claims", GPUQ_K_STRLIST, volume_claims,
	  .doc = "PersistentVolumeClaims that its pods may name, likewise; default: any"),
	F(site_queue, "service_account_token", GPUQ_K_BOOL, service_account_token,
	  .doc = "whether its pods may have tokens of the service account"),
	F(site_queue, "users", GPUQ_K_STRLIST, users,
	  .doc = "users who may submit; without users and groups, those of the parent queue; at "
		 "the top, all users"),
	F(site_queue, "groups", GPUQ_K_STRLIST, groups, .doc = "groups that may submit"),
	F(site_queue, "managers", GPUQ_K_STRLIST, managers,
	  .doc = "users who manage it and the queues below; see gpuqd(8) for their rights"),
	F(site_queue, "qos", GPUQ_K_STRLIST, qos,
	  .doc = "allowed qos; the default one is normal, or else the first of them"),
	F(site_queue, "flavors", GPUQ_K_CUSTOM, flavors, .custom = &site_preference_custom,
	  .form = "list of names and maps",
	  .doc = "default flavors, in order of preference, for jobs that request none; NAME or "
		 "{name, for, refusals, max_price}"),
	F(site_queue, "max_spot_preemptions", GPUQ_K_INT, max_spot_preemptions, .min = 1,
	  .max = 1000, .doc = "times that a job loses spot nodes before it uses other ones"),
	F(site_queue, "default_time", GPUQ_K_DURATION, default_time_us,
	  .doc = "default time limit of its jobs"),
	F(site_queue, "max_time", GPUQ_K_DURATION, max_time_us, .doc = "maximum time limit"),
	F(site_queue, "idle", GPUQ_K_DURATION, idle_us,
	  .doc = "time after which a job is stopped if all its devices are idle"),
	F(site_queue, "max_running", GPUQ_K_CUSTOM, max_running, .custom = &site_caps_count_custom,
	  .form = "caps", .doc = "maximum number of running jobs"),
	F(site_queue, "max_gpus", GPUQ_K_CUSTOM, max_gpus, .custom = &site_caps_custom,
	  .form = "caps", .doc = "maximum number of devices"),
	F(site_queue, "max_submitted", GPUQ_K_CUSTOM, max_submitted,
	  .custom = &site_caps_count_custom, .form = "caps",
	  .doc = "maximum number of pending and running jobs"),
	F(site_queue, "start_timeout", GPUQ_K_DURATION, start_timeout_us,
	  .doc = "maximum time from placement until the job runs; default: that of the parent "
		 "queue, then of gpuqd.yaml(5)"),
	F(site_queue, "node_loss", GPUQ_K_CUSTOM, node_loss, .custom = &site_caps_loss_custom,
	  .form = "word or map",
	  .doc = "handling of lost nodes: strict, or {mode: available, after: TIME}"),
	F(site_queue, "accounting_finalizer", GPUQ_K_BOOL, accounting_finalizer,
	  .doc = "whether pods carry a finalizer until their end is in the ledger"),
	F(site_queue, "closed", GPUQ_K_BOOL, closed, .doc = "whether it accepts no jobs"),
	F(site_queue, "logs_keep", GPUQ_K_OBJECT_PTR, logs_keep, .sub = &logs_keep_schema,
	  .doc = "how long gpuq logs has the output of its pods once these are gone; default: that "
		 "of "
		 "the parent queue, then of the site; for Kubernetes"),
	F(site_queue, "code", GPUQ_K_BOOL, code,
	  .doc = "whether scripts carry the directory that they were submitted from, unless it "
		 "lies "
		 "on a volume; also in the queues below; for Kubernetes"),
	F(site_queue, "launch", GPUQ_K_CUSTOM, launch, .custom = &gpuq_choice_kind,
	  .form = "true or false",
	  .doc = "whether scripts of sbatch run in the first of their pods alone, as in Slurm, "
		 "unless they say launch; default: that of the parent queue, then of the site"),
	F(site_queue, "isolation", GPUQ_K_ENUM, isolation, .names = gpuq_isolations,
	  .doc = "minimum isolation of the devices of its jobs from other pods; a queue below may "
		 "demand more, and is refused with less; gpuq-job(5), ISOLATION"),
	F(site_queue, "start", GPUQ_K_STR, start,
	  .doc = "method of starting pods on their nodes: direct or bind; default: that of the "
		 "parent queue, then direct"),
	END,
};

/* Set what a queue has that says nothing; what it inherits stays empty. */
static void queue_defaults(void *obj)
{
	struct site_queue *q = obj;

	q->policy = policy_queue_default();
	q->max_spot_preemptions = 2;
	q->max_running = q->max_gpus = q->max_submitted = site_caps_none;
	site_caps_loss_defaults(&q->node_loss);
}

#define POD_POLICIES "expected baseline, restricted or privileged"
#define HOST_PATHS "host_path is for queues whose pod_policy is privileged: use a claim or nfs"

static bool is_pod_policy(const char *s)
{
	return !s || strcmp(s, "baseline") == 0 || strcmp(s, "restricted") == 0 ||
	       strcmp(s, "privileged") == 0;
}

/* Check a list of objects that pods may mount. An empty list is refused: it reads as `none', but
 * would be taken as `not given'. */
static int mounts_check(struct gpuq_reader *r, const struct gpuq_val *v, const char *key,
			const struct gpuq_strlist *l)
{
	const struct gpuq_val *list = gpuq_get(v, key);
	const char *why = walls_check(l);

	if (!why && list && list->type == GPUQ_LIST && list->n == 0)
		why = "expected a name at least; say null for the default";
	return why ? gpuq_reader_fail_key(r, v, key, why) : 0;
}

/* Check what belongs together within one queue; site_check() has what needs others. */
static int queue_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_queue *q = obj;

	if (q->quota.given && q->shared_quota.given)
		return gpuq_reader_fail(r, gpuq_get(v, "shared_quota"), GPUQ_EINVAL,
					"a queue with a quota of its own has no shared_quota");
	if (!is_pod_policy(q->pod_policy))
		return gpuq_reader_fail_key(r, v, "pod_policy", POD_POLICIES);
	if (mounts_check(r, v, "secrets", &q->secrets) < 0 ||
	    mounts_check(r, v, "config_maps", &q->config_maps) < 0 ||
	    mounts_check(r, v, "volume_claims", &q->volume_claims) < 0)
		return GPUQ_EINVAL;
	if (q->start && strcmp(q->start, "direct") != 0 && strcmp(q->start, "bind") != 0)
		return gpuq_reader_fail_key(r, v, "start", "expected direct or bind");
	if (pod_keys_check(r, v, &q->pod) < 0)
		return GPUQ_EINVAL;
	if (q->max_time_us && q->default_time_us > q->max_time_us)
		return gpuq_reader_fail_key(r, v, "default_time", "longer than max_time");
	return idle_check(r, v, q->idle_us, q->max_time_us);
}

static const struct gpuq_schema queue_schema = { .name = "queue",
						 .size = sizeof(struct site_queue),
						 .fields = queue_fields,
						 .defaults = queue_defaults,
						 .check = queue_check };

#define CAPS(type)                                                                                 \
	F(type, "max_running", GPUQ_K_LIMIT, max_running, .max = INT64_MAX,                        \
	  .doc = "maximum number of running jobs, in all queues"),                                 \
		F(type, "max_gpus", GPUQ_K_LIMIT, max_gpus, .max = 100000000,                      \
		  .doc = "maximum number of devices, in all queues"),                              \
		F(type, "max_submitted", GPUQ_K_LIMIT, max_submitted, .max = INT64_MAX,            \
		  .doc = "maximum number of pending and running jobs, in all queues")

static const struct gpuq_field user_fields[] = {
	F(site_user, "name", GPUQ_K_STR, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "login name"),
	F(site_user, "groups", GPUQ_K_STRLIST, groups, .doc = "groups of the user, in gpuq"),
	F(site_user, "default_queue", GPUQ_K_NAME, default_queue,
	  .doc = "default queue of the user's jobs"),
	F(site_user, "reserve", GPUQ_K_CUSTOM, reserve, .custom = &site_reserve_custom,
	  .form = "flag or map",
	  .doc = "whether the user may reserve devices for their own jobs: true, or {gpu_hours: "
		 "100, "
		 "ahead: 14d}, the maximum total of their reservations and the maximum time until "
		 "the start"),
	CAPS(site_user),
	END,
};

/* Set no limits. */
static void user_defaults(void *obj)
{
	struct site_user *u = obj;

	u->max_running = u->max_gpus = u->max_submitted = GPUQ_UNLIMITED;
}

static const struct gpuq_schema user_schema = { .name = "user",
						.size = sizeof(struct site_user),
						.fields = user_fields,
						.defaults = user_defaults };

static const struct gpuq_field group_fields[] = {
	F(site_group, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the group, as in users"),
	CAPS(site_group),
	END,
};

/* Set no limits. */
static void group_defaults(void *obj)
{
	struct site_group *g = obj;

	g->max_running = g->max_gpus = g->max_submitted = GPUQ_UNLIMITED;
}

static const struct gpuq_schema group_schema = { .name = "group",
						 .size = sizeof(struct site_group),
						 .fields = group_fields,
						 .defaults = group_defaults };

static const struct gpuq_field license_fields[] = {
	F(site_license, "name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the license"),
	F(site_license, "count", GPUQ_K_INT, count, .flags = GPUQ_F_REQUIRED, .min = 0,
	  .max = 1000000000, .doc = "number of licenses"),
	END,
};

static const struct gpuq_schema license_schema = { .name = "license",
						   .size = sizeof(struct site_license),
						   .fields = license_fields };

/* ---- what one user may have stored ---- */

/* Read how many bytes the stored jobs may take. */
static int read_stored(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	int64_t *bytes = out;

	if (v->type == GPUQ_STR && strcmp(v->s, "unlimited") == 0) {
		*bytes = GPUQ_UNLIMITED;
		return 0;
	}
	if (v->type == GPUQ_INT && v->i >= 0)
		*bytes = v->i;
	else if (v->type != GPUQ_STR || gpuq_bytes_parse(v->s, bytes, NULL) < 0 || *bytes < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected a size such as 512Mi or 1Gi, or unlimited");
	return 0;
}

/* Print it unless it is the default. */
static struct gpuq_val *write_stored(struct gpuq_arena *mem, const void *in)
{
	const int64_t bytes = *(const int64_t *)in;
	char text[32];

	if (bytes == SITE_MAX_STORED_BYTES)
		return NULL;
	if (bytes == GPUQ_UNLIMITED)
		return gpuq_str(mem, "unlimited");
	gpuq_bytes_print(bytes, text, sizeof(text));
	return gpuq_str(mem, gpuq_arena_strdup(mem, text));
}

static const struct gpuq_custom stored = { read_stored, write_stored };

/* Set the limits of the whole site. */
static void site_defaults(void *obj)
{
	struct site *s = obj;

	s->max_submitted = SITE_MAX_SUBMITTED;
	s->max_stored_bytes = SITE_MAX_STORED_BYTES;
}

static const struct gpuq_field code_fields[] = {
	F(site_code, "image", GPUQ_K_STR, image,
	  .doc = "image of the container that unpacks it, with sh, tar and gzip; default: that of "
		 "the job"),
	F(site_code, "keep", GPUQ_K_DURATION, keep_us,
	  .doc = "time for which gpuqd keeps it after the last job that carries it; default: 1h"),
	END,
};

static void code_defaults(void *obj)
{
	((struct site_code *)obj)->keep_us = GPUQ_CODE_KEEP_S * GPUQ_US_PER_S;
}

static const struct gpuq_schema code_schema = { .name = "code",
						.size = sizeof(struct site_code),
						.fields = code_fields,
						.defaults = code_defaults };

static const struct gpuq_field steps_fields[] = {
	F(site_steps, "image", GPUQ_K_STR, image, .flags = GPUQ_F_REQUIRED,
	  .doc = "image with gpuq, which a container copies into pods that run srun with others"),
	END,
};

static const struct gpuq_schema steps_schema = { .name = "steps",
						 .size = sizeof(struct site_steps),
						 .fields = steps_fields };

static const struct gpuq_field site_fields[] = {
	F(site, "version", GPUQ_K_INT, version, .flags = GPUQ_F_REQUIRED, .min = 1, .max = 1,
	  .doc = "version of this form: 1"),
	F(site, "topology", GPUQ_K_STRLIST, topology,
	  .doc = "node labels that topology levels are read from, from wide to narrow"),
	F(site, "currency", GPUQ_K_STR, currency, .min = 1, .max = 16, .doc = "of prices"),
	F(site, "pod_policy", GPUQ_K_STR, pod_policy,
	  .doc = "of queues that have none: baseline (default), restricted or privileged"),
	F(site, "default_budget", GPUQ_K_OBJECT_PTR, default_budget, .sub = &budget_schema,
	  .doc = "GPU-minutes of every queue that has no budget and no queue below it"),
	F(site, "max_submitted", GPUQ_K_LIMIT, max_submitted, .max = SITE_CAP_MOST,
	  .doc = "maximum number of jobs of one user that have not ended; an array is one"),
	F(site, "max_stored", GPUQ_K_CUSTOM, max_stored_bytes, .custom = &stored,
	  .form = "size or unlimited",
	  .doc = "maximum size of the jobs of one user that have not ended"),
	F(site, "flavors", GPUQ_K_OBJECTS, flavors, .sub = &flavor_schema,
	  .doc = "kinds of devices"),
	F(site, "pools", GPUQ_K_OBJECTS, pools, .sub = &pool_schema, .doc = "sets of nodes"),
	F(site, "qos", GPUQ_K_OBJECTS, qos, .sub = &qos_schema, .doc = "policy bundles"),
	F(site, "queues", GPUQ_K_OBJECTS, queues, .sub = &queue_schema, .doc = "where jobs go"),
	F(site, "users", GPUQ_K_OBJECTS, users, .sub = &user_schema, .doc = "people"),
	F(site, "groups", GPUQ_K_OBJECTS, groups, .sub = &group_schema,
	  .doc = "limits of groups of users"),
	F(site, "licenses", GPUQ_K_OBJECTS, licenses, .sub = &license_schema, .doc = "counters"),
	F(site, "reservations", GPUQ_K_OBJECTS, reservations, .sub = &site_reservation_schema,
	  .doc = "the calendar"),
	POD_KEYS(site, "image of jobs that name none"),
	F(site, "logs_keep", GPUQ_K_OBJECT_PTR, logs_keep, .sub = &logs_keep_schema,
	  .doc = "of queues that have none: {time, size}; default: output goes with the pod"),
	F(site, "code", GPUQ_K_OBJECT_PTR, code, .sub = &code_schema,
	  .doc = "directories that jobs carry (--code): see gpuq-submit(1)"),
	F(site, "launch", GPUQ_K_CUSTOM, launch, .custom = &gpuq_choice_kind,
	  .form = "true or false", .doc = "of queues that do not say; default: false"),
	F(site, "steps", GPUQ_K_OBJECT_PTR, steps, .sub = &steps_schema,
	  .doc = "srun for jobs of several pods whose images have no gpuq"),
	F(site, "inventory", GPUQ_K_OBJECTS, inventory, .sub = &site_inventory_schema,
	  .doc = "devices of nodes that do not report them"),
	F(site, "gres", GPUQ_K_STRMAP, gres, .doc = "resources of nodes by the names of --gres"),
	F(site, "health", GPUQ_K_OBJECTS, health, .sub = &site_health_schema,
	  .doc = "conditions and taints of nodes that keep new work away, beside the usual ones"),
	F(site, "adopt", GPUQ_K_OBJECT_PTR, adopt, .sub = &site_adopt_schema,
	  .doc = "pods that were not submitted, with schedulerName: gpuq; default: none"),
	END,
};

/* ---- checks across objects ---- */

static const char *member_name(const struct gpuq_val *list, size_t i)
{
	return gpuq_get_str(list->items[i], "name", "");
}

/* Check that a name that an object refers to is among those of the file, and blame the very item
 * otherwise, with the nearest name. */
static int check_known(struct gpuq_reader *r, const struct gpuq_val *v, const char *list, size_t i,
		       const char *key, const char *name, const struct gpuq_val *among,
		       const char *always)
{
	const char *names[512];
	const struct gpuq_val *at;
	size_t n = 0;
	const char *near;
	size_t m1, m2, m3;
	int rc;

	if (!name || (always && strcmp(name, always) == 0))
		return 0;
	for (size_t k = 0; among && k < among->n; k++) {
		if (strcmp(member_name(among, k), name) == 0)
			return 0;
		if (n < 511)
			names[n++] = member_name(among, k);
	}
	names[n] = NULL;
	near = gpuq_nearest(name, names);
	m1 = gpuq_reader_enter(r, list);
	m2 = gpuq_reader_enter_member(r, gpuq_get(v, list), i);
	m3 = gpuq_reader_enter(r, key);
	at = gpuq_get(gpuq_get(v, list)->items[i], key);
	for (size_t k = 0; at && at->type == GPUQ_LIST && k < at->n; k++)
		if (at->items[k]->type == GPUQ_STR && strcmp(at->items[k]->s, name) == 0)
			at = at->items[k];
	rc = gpuq_reader_fail(r, at, GPUQ_EINVAL, "no %s is named %s%s%s%s",
			      strcmp(key, "parent") == 0 ? "queue" : key, name,
			      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
	gpuq_reader_leave(r, m3);
	gpuq_reader_leave(r, m2);
	gpuq_reader_leave(r, m1);
	return rc;
}

/* Check that the queues above queue i end at the top: more steps than there are queues are a
 * circle. */
static int check_circle(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s,
			size_t i)
{
	const struct site_queue *q = (const struct site_queue *)s->queues.items + i;
	size_t hops = 0;
	size_t m1, m2, m3;

	while (q && q->parent && hops++ <= s->queues.n)
		q = site_queue_find(s, q->parent);
	if (hops <= s->queues.n)
		return 0;
	m1 = gpuq_reader_enter(r, "queues");
	m2 = gpuq_reader_enter_member(r, gpuq_get(v, "queues"), i);
	m3 = gpuq_reader_enter(r, "parent");
	gpuq_reader_fail(r, gpuq_get(gpuq_get(v, "queues")->items[i], "parent"), GPUQ_EINVAL,
			 "the queues above it form a cycle");
	gpuq_reader_leave(r, m3);
	gpuq_reader_leave(r, m2);
	gpuq_reader_leave(r, m1);
	return GPUQ_EINVAL;
}

/* Refuse a volume that is a directory of the node where the pod policy does not allow one. */
static int check_host_paths(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s)
{
	const struct site_queue *q = s->queues.items;
	struct site_walls walls;
	bool all = s->pod_policy && strcmp(s->pod_policy, "privileged") == 0;

	if (pod_keys_host(&s->pod) && !all)
		return gpuq_reader_fail_key(r, v, "volumes", HOST_PATHS);
	site_each(site_flavor, s->flavors, f)
		if (pod_keys_host(&f->pod) && !all)
			return gpuq_reader_fail_key(r, v, "flavors", HOST_PATHS);
	for (size_t i = 0; i < s->queues.n; i++) {
		walls_of_queue(s, q[i].name, &walls);
		if (pod_keys_host(&q[i].pod) && strcmp(walls.pod_policy, "privileged") != 0)
			return gpuq_reader_fail_key(r, gpuq_get(v, "queues")->items[i], "volumes",
						    HOST_PATHS);
	}
	return 0;
}

/* Check what objects say of each other. */
static int site_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct site *s = obj;
	const struct gpuq_val *queues = gpuq_get(v, "queues"), *flavors = gpuq_get(v, "flavors");
	const struct site_queue *q = s->queues.items;
	const struct site_pool *p = s->pools.items;
	int rc = is_pod_policy(s->pod_policy)
			 ? 0
			 : gpuq_reader_fail_key(r, v, "pod_policy", POD_POLICIES);

	if (rc == 0)
		rc = pod_keys_check(r, v, &s->pod);
	if (rc == 0)
		rc = check_host_paths(r, v, s);
	for (size_t i = 0; rc == 0 && i < s->queues.n; i++) {
		rc = check_known(r, v, "queues", i, "parent", q[i].parent, queues, NULL);
		if (rc == 0)
			rc = check_circle(r, v, s, i);
		rc = rc == 0 ? walls_check_isolation(r, v, s, i) : rc;
		for (size_t k = 0; rc == 0 && k < q[i].qos.n; k++)
			rc = check_known(r, v, "queues", i, "qos", q[i].qos.items[k],
					 gpuq_get(v, "qos"), "normal");
	}
	for (size_t i = 0; rc == 0 && i < s->pools.n; i++)
		rc = check_known(r, v, "pools", i, "flavor", p[i].flavor, flavors, "default");
	if (rc == 0)
		rc = provision_check_order(r, v, s);
	if (rc == 0)
		rc = inventory_gres_check(r, v, s);
	return rc == 0 ? adoption_check(r, v, s) : rc;
}

const struct gpuq_schema site_schema = { .name = "site",
					 .size = sizeof(struct site),
					 .fields = site_fields,
					 .defaults = site_defaults,
					 .check = site_check };

/* Read a site and keep it as a tree too, in the form in which it is stored, printed and compared.
 */
static int read_site(const struct gpuq_val *v, const char *file, int64_t now_us, bool lenient,
		     struct site **out, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_reader r = { .arena = &mem,
				 .file = file,
				 .now_us = now_us,
				 .by_name = true,
				 .lenient = lenient,
				 .stored = lenient,
				 .err = err };
	struct site *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return gpuq_no_memory(err);
	rc = gpuq_schema_read(&r, &site_schema, v, s);
	if (rc == 0)
		rc = walls_settle(s, err);
	if (rc == 0) {
		s->tree = gpuq_schema_write(&mem, &site_schema, s);
		if (!s->tree)
			rc = gpuq_no_memory(err);
	}
	s->arena = mem;
	if (rc != 0) {
		site_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int site_read(const struct gpuq_val *v, const char *file, int64_t now_us, struct site **out,
	      struct gpuq_err *err)
{
	return read_site(v, file, now_us, false, out, err);
}

int site_read_stored(const struct gpuq_val *v, int64_t now_us, struct site **out,
		     struct gpuq_err *err)
{
	return read_site(v, NULL, now_us, true, out, err);
}

struct site *site_default(void)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&mem), *q = gpuq_map(&mem), *list = gpuq_list(&mem);
	struct site *s = NULL;

	gpuq_put(&mem, v, "version", gpuq_int(&mem, 1));
	gpuq_put(&mem, q, "name", gpuq_str(&mem, "default"));
	gpuq_add(&mem, list, q);
	gpuq_put(&mem, v, "queues", list);
	if (!v || site_read(v, NULL, 0, &s, NULL) != 0)
		s = NULL;
	gpuq_arena_done(&mem);
	return s;
}

void site_free(struct site *s)
{
	if (!s)
		return;
	gpuq_arena_done(&s->arena);
	free(s);
}

const struct site_qos *site_qos_find(const struct site *s, const char *name)
{
	static const struct site_qos normal = { .name = "normal",
						.preemptible = true,
						.usage_factor_milli = 1000,
						.max_running = SITE_NO_CAP,
						.max_gpus = SITE_NO_CAP,
						.max_submitted = SITE_NO_CAP };

	site_each(site_qos, s->qos, q)
		if (strcmp(q->name, name) == 0)
			return q;
	return strcmp(name, "normal") == 0 ? &normal : NULL;
}
