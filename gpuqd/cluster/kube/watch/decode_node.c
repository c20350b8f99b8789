#include "gpuqd/cluster/kube/watch/decode_node.h"
#include "gpuqd/cluster/kube/watch/decode_amounts.h"
#include "gpuqd/cluster/kube/watch/decode_hami.h"
#include "gpuqd/cluster/kube/watch/decode_mig.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/devices/gpu_manager.h"
#include "gpuqd/devices/gpushare.h"
#include "gpuqd/devices/hami.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

static int read_labels(struct kube_object *o, struct gpuq_strmap *out)
{
	json_t *labels = kube_path(o->object, "metadata", "labels"), *v;
	size_t n = json_object_size(labels), at = 0;
	const char *key;

	/* Room for two more: see tell(). */
	out->keys = gpuq_arena_calloc(&o->arena, n + 2, sizeof(*out->keys));
	out->vals = gpuq_arena_calloc(&o->arena, n + 2, sizeof(*out->vals));
	if (!out->keys || !out->vals)
		return GPUQ_ENOMEM;
	json_object_foreach(labels, key, v)
	{
		if (!json_is_string(v))
			continue;
		out->keys[at] = key;
		out->vals[at++] = json_string_value(v);
	}
	out->n = at;
	return 0;
}

static int read_taints(struct kube_object *o, struct node_fact *out)
{
	json_t *taints = kube_path(o->object, "spec", "taints"), *t;
	size_t n = json_array_size(taints), i;
	struct taint_fact *facts;

	if (n == 0)
		return 0;
	facts = gpuq_arena_calloc(&o->arena, n, sizeof(*facts));
	if (!facts)
		return GPUQ_ENOMEM;
	json_array_foreach(taints, i, t)
	{
		facts[i].key = kube_str(t, "key");
		facts[i].value = kube_str(t, "value");
		facts[i].effect = kube_str(t, "effect");
	}
	out->taints = facts;
	out->n_taints = n;
	return 0;
}

#define DEVICE_MIB_MAX (INT64_C(1) << 24) /* of a device: 16 TiB */

static int64_t small_number(const char *text)
{
	int64_t v = 0;

	for (; *text >= '0' && *text <= '9' && v < INT64_C(1000000000); text++)
		v = v * 10 + (*text - '0');
	return *text ? 0 : v;
}

static int64_t count_of(const json_t *list, const char *key)
{
	return kube_quantity(list, key, gpuq_milli_parse) / 1000;
}

/* Another plugin in the place of the usual one: the node has units of memory, or cores and blocks. */
static const struct backend *shared_devices(struct kube_object *o, int64_t *there, int64_t *works,
					    int64_t *memory_mib)
{
	const json_t *capacity = kube_path(o->object, "status", "capacity");
	const json_t *alloc = kube_path(o->object, "status", "allocatable");
	const int64_t count = count_of(capacity, GPUSHARE_COUNT);
	const struct backend *b =
		gpushare_offer(count_of(capacity, GPUSHARE_RESOURCE), count, memory_mib);
	const char *unit = GPUSHARE_RESOURCE;

	if (b) {
		*there = count > 0 ? count : 1;
	} else {
		*there = gpu_manager_offer(count_of(capacity, VCUDA_CORE),
					   count_of(capacity, VCUDA_MEMORY), memory_mib);
		if (*there == 0)
			return NULL;
		b = backend_of("gpu-manager");
		unit = VCUDA_CORE;
	}
	*works = count_of(alloc, unit) > 0 ? *there : 0;
	return b;
}

/* True if the amount cannot be read: it is so large that its thousandths are no number. */
static bool is_no_amount(const json_t *list, const char *name)
{
	const json_t *v = json_object_get(list, name);
	int64_t milli;

	return json_is_string(v) && gpuq_milli_parse(json_string_value(v), &milli, NULL) != 0;
}

/* Return why units of memory stand for no devices; NULL = they do. */
static const char *gpushare_lie(struct kube_object *o, const json_t *capacity)
{
	const int64_t units = count_of(capacity, GPUSHARE_RESOURCE),
		      count = count_of(capacity, GPUSHARE_COUNT);
	const char *why;

	if (json_object_get(capacity, GPUSHARE_COUNT) && count == 0)
		return GPUSHARE_COUNT ": " GPUSHARE_RESOURCE " is offered, and of 0 devices";
	if (count <= units && units / (count > 0 ? count : 1) <= DEVICE_MIB_MAX)
		return NULL;
	why = gpuq_arena_printf(&o->arena,
				GPUSHARE_RESOURCE ": %" PRId64 " units on %" PRId64
						  " devices are not credible",
				units, count > 0 ? count : 1);
	return why ? why : GPUSHARE_RESOURCE;
}

/* Return why the node's cores and blocks of memory stand for no devices; NULL = they do. */
static const char *gpu_manager_lie(struct kube_object *o, const json_t *capacity)
{
	const int64_t cores = count_of(capacity, VCUDA_CORE),
		      blocks = count_of(capacity, VCUDA_MEMORY), n = cores / VCUDA_CORES;
	const char *why;

	if (cores % VCUDA_CORES == 0 && blocks >= n &&
	    blocks / n <= DEVICE_MIB_MAX / VCUDA_BLOCK_MIB)
		return NULL;
	why = cores % VCUDA_CORES != 0
		      ? gpuq_arena_printf(&o->arena,
					  VCUDA_CORE ": %" PRId64 ": expected %d of each device",
					  cores, VCUDA_CORES)
		      : gpuq_arena_printf(&o->arena,
					  VCUDA_MEMORY ": %" PRId64 " blocks on %" PRId64
						       " devices are not credible",
					  blocks, n);
	return why ? why : VCUDA_CORE;
}

/* Return why what the plugins that share devices offer stands for none, and set *word to the one whose it is;
 * NULL = it stands for devices, or the node has none of it. */
static const char *shared_lie(struct kube_object *o, const json_t *capacity, const char **word)
{
	static const char *const names[][2] = { { GPUSHARE_RESOURCE, "gpushare" },
						{ GPUSHARE_COUNT, "gpushare" },
						{ VCUDA_CORE, "gpu-manager" },
						{ VCUDA_MEMORY, "gpu-manager" } };
	const bool cores = count_of(capacity, VCUDA_CORE) > 0,
		   blocks = count_of(capacity, VCUDA_MEMORY) > 0;
	const char *why;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_no_amount(capacity, names[i][0])) {
			*word = names[i][1];
			why = gpuq_arena_printf(&o->arena, "%s: %.40s is not credible", names[i][0],
						kube_str(capacity, names[i][0]));
			return why ? why : names[i][0];
		}
	if (count_of(capacity, GPUSHARE_RESOURCE) > 0) {
		*word = "gpushare";
		return gpushare_lie(o, capacity);
	}
	if (cores != blocks)
		return cores ? VCUDA_CORE ": it is offered without " VCUDA_MEMORY
			     : VCUDA_MEMORY ": it is offered without " VCUDA_CORE;
	*word = "gpu-manager";
	return cores ? gpu_manager_lie(o, capacity) : NULL;
}

/* Tell placement by a label of gpuq's own; one that the node has already stays. */
static void tell(struct node_fact *n, const char *key, const char *word)
{
	if (!*word || *gpuq_strmap_text(&n->labels, key))
		return;
	n->labels.keys[n->labels.n] = key;
	n->labels.vals[n->labels.n++] = word;
}

/* ---- what GPU feature discovery says of the devices ---- */

/* Return the profile in a product's name, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb": all devices of the node
 * are cut into such instances, which have the name of whole ones. NULL: they are not. */
static const char *single_profile(struct kube_object *o, const struct node_fact *n)
{
	static const char mark[] = "-MIG-", shared[] = "-SHARED";
	const char *product = gpuq_strmap_text(&n->labels, "nvidia.com/gpu.product"),
		   *at = strstr(product, mark);
	size_t len;

	if (!at || strcmp(gpuq_strmap_text(&n->labels, "nvidia.com/mig.strategy"), "single") != 0)
		return NULL;
	at += sizeof(mark) - 1;
	len = strlen(at);
	if (len > sizeof(shared) - 1 && strcmp(at + len - (sizeof(shared) - 1), shared) == 0)
		len -= sizeof(shared) - 1;
	return gpuq_arena_strndup(&o->arena, at, len);
}

/* Return the product without what says how it is shared: its flavor is that of whole devices. */
static const char *product_of(struct kube_object *o, const struct node_fact *n)
{
	static const char shared[] = "-SHARED";
	const char *product = gpuq_strmap_text(&n->labels, "nvidia.com/gpu.product");
	const size_t len = strlen(product), cut = sizeof(shared) - 1;

	if (len <= cut || strcmp(product + len - cut, shared) != 0)
		return product;
	product = gpuq_arena_strndup(&o->arena, product, len - cut);
	return product ? product : "";
}

/* Return in how many replicas each device is offered; 1: whole. */
static int64_t replicas_of(const struct node_fact *n)
{
	const int64_t r = small_number(gpuq_strmap_text(&n->labels, "nvidia.com/gpu.replicas"));

	return r < 1 ? 1 : r < GPUQ_REPLICAS_MAX ? r : GPUQ_REPLICAS_MAX;
}

/* The first resource that stands for devices, of which the node has some; "" = it has none. */
static const char *device_resource(const json_t *capacity)
{
	if (count_of(capacity, GPUQ_RESOURCE_GPU) > 0)
		return GPUQ_RESOURCE_GPU;
	if (count_of(capacity, GPUQ_RESOURCE_SHARED) > 0)
		return GPUQ_RESOURCE_SHARED;
	for (size_t i = 0; gpuq_resource_others[i]; i++)
		if (count_of(capacity, gpuq_resource_others[i]) > 0)
			return gpuq_resource_others[i];
	return "";
}

/* Add the instances of the single strategy to those of the mixed one; after kube_read_node_mig(). */
static int read_single(struct kube_object *o, struct node_fact *out, const char *profile,
		       const char **wrong)
{
	const json_t *alloc = kube_path(o->object, "status", "allocatable");
	const uint32_t r = kube_replicas(out, GPUQ_RESOURCE_GPU,
					 strcmp(out->device, GPUQ_RESOURCE_SHARED) == 0);
	const int64_t most = r > 1 ? MIG_REPLICAS_MAX : MIG_MAX,
		      n = r ? count_of(alloc, out->device) : 0;
	char text[GPUQ_PROFILE_ROOM];
	struct mig_fact *mig = gpuq_arena_calloc(&o->arena, out->n_mig + 1, sizeof(*mig));

	if (!mig)
		return GPUQ_ENOMEM;
	/* "-MIG-INVALID": the plugin offers cards that are not all cut alike. */
	if (!kube_profile_ok(profile)) {
		*wrong = gpuq_arena_printf(
			&o->arena,
			"nvidia.com/gpu.product: expected a MIG profile behind -MIG-, "
			"not '%.40s'",
			profile);
		return *wrong ? 0 : GPUQ_ENOMEM;
	}
	for (size_t i = 0; i < out->n_mig; i++)
		mig[i] = out->mig[i];
	if (r != 1)
		profile = gpuq_arena_strdup(&o->arena, gpuq_profile_share(profile, false, r, text));
	if (!profile)
		return GPUQ_ENOMEM;
	mig[out->n_mig++] = (struct mig_fact){ profile, (uint32_t)(n < most ? n : most) };
	out->mig = mig;
	tell(out, SHARE_LABEL, "mig");
	return 0;
}

/* True if feature discovery calls the devices shared, in however many replicas. */
static bool is_shared(const struct node_fact *n)
{
	static const char mark[] = "-SHARED";
	const char *strategy = gpuq_strmap_text(&n->labels, "nvidia.com/gpu.sharing-strategy"),
		   *product = gpuq_strmap_text(&n->labels, "nvidia.com/gpu.product");
	const size_t len = strlen(product), tail = sizeof(mark) - 1;

	return strcmp(strategy, "time-slicing") == 0 || strcmp(strategy, "mps") == 0 ||
	       (len > tail && strcmp(product + len - tail, mark) == 0);
}

/* Count cards where replicas of them are offered: what the plugin offers, divided; no more than
 * feature discovery has seen. */
static const char *count_cards(struct node_fact *out, int64_t *there, int64_t *works)
{
	const int64_t r = replicas_of(out),
		      seen = small_number(gpuq_strmap_text(&out->labels, "nvidia.com/gpu.count"));
	const bool mps = strcmp(gpuq_strmap_text(&out->labels, "nvidia.com/gpu.sharing-strategy"),
				"mps") == 0;
	const bool renamed = strcmp(out->device, GPUQ_RESOURCE_SHARED) == 0;

	/* A replica without its label is a part of a device, and not known which: see node_offer.c. */
	if (r == 1 && (renamed || is_shared(out))) {
		*there = *works = 0;
		return "";
	}
	if (r == 1)
		return "whole";
	*there /= r;
	*works /= r;
	if (seen > 0 && *there > seen)
		*there = seen;
	if (*works > *there)
		*works = *there;
	out->replicas = (uint32_t)r;
	return mps ? "mps" : "time-slicing";
}

/* True if feature discovery has seen as many cards as explain what the plugin offers. */
static bool is_explained(const struct node_fact *n, int64_t there)
{
	return small_number(gpuq_strmap_text(&n->labels, "nvidia.com/gpu.count")) *
		       replicas_of(n) ==
	       there;
}

/* Take the cards that HAMi registers, each of which its plugin offers as often as it may be shared. Where the
 * plugin offers fewer than there are cards, or none, it is broken or dead. */
static void hami_devices(struct node_fact *out, struct hami_cards *cards, int64_t there,
			 int64_t works, const char *product)
{
	const bool dead = works == 0 || there < (int64_t)cards->n;
	int64_t n = 0;

	for (size_t i = 0; i < cards->n; i++) {
		/* Each takes one of what the kubelet has to give. */
		cards->devices[i].healthy &= !dead && n < works;
		n += cards->devices[i].healthy;
		if (*product)
			cards->devices[i].product = product;
	}
	if (n > 0 && works / n < cards->slots)
		cards->slots = (uint32_t)(works / n);
	out->devices = cards->devices;
	out->n_devices = cards->n;
	out->numa = cards->numa;
	out->slots = cards->slots;
	tell(out, SHARE_LABEL, "hami");
}

static int hami_unused(struct kube_object *o, struct hami_cards *cards, struct node_fact *out)
{
	struct gpuq_buf notes = GPUQ_BUF_INIT;
	int rc = kube_hami_unused(o, cards, &notes);

	if (rc == 0 && notes.len)
		out->unused = gpuq_arena_strdup(&o->arena, gpuq_buf_str(&notes));
	if (notes.failed || (notes.len && !out->unused))
		rc = GPUQ_ENOMEM;
	gpuq_buf_done(&notes);
	return rc;
}

/* Devices are counted, not named, by the API: capacity says how many there are,
 * allocatable how many work. Which ones do not is not reported, so the last ones are
 * taken to be the sick ones. A dead device plugin leaves allocatable at 0. */
static int read_devices(struct kube_object *o, struct node_fact *out, const char **wrong)
{
	const json_t *capacity = kube_path(o->object, "status", "capacity");
	const json_t *alloc = kube_path(o->object, "status", "allocatable");
	int64_t memory_mib = small_number(gpuq_strmap_text(&out->labels, "nvidia.com/gpu.memory"));
	const char *name = device_resource(capacity), *profile, *product;
	struct hami_cards cards = { 0 };
	int64_t works, there;
	const char *word = "";
	const struct backend *b;
	struct device_fact *d;
	bool nvidia;

	out->device = *name ? name : device_resource(alloc);
	works = count_of(alloc, out->device);
	there = count_of(capacity, out->device);
	nvidia = strcmp(out->device, GPUQ_RESOURCE_GPU) == 0 ||
		 strcmp(out->device, GPUQ_RESOURCE_SHARED) == 0;
	profile = nvidia ? single_profile(o, out) : NULL;
	if (profile)
		return read_single(o, out, profile, wrong);
	if (there < works)
		there = works;
	if (nvidia && there > 0 && kube_read_hami(o, &cards) != 0)
		return GPUQ_ENOMEM;
	if (cards.wrong) {
		*wrong = gpuq_arena_printf(&o->arena, HAMI_REGISTER ": %s", cards.wrong);
		return *wrong ? 0 : GPUQ_ENOMEM;
	}
	if (cards.n > 0) {
		if (hami_unused(o, &cards, out) != 0)
			return GPUQ_ENOMEM;
		hami_devices(out, &cards, there, works, product_of(o, out));
		return 0;
	}
	if (nvidia && there > 0)
		*wrong = kube_hami_lie(o, &out->labels, is_explained(out, there));
	if (there == 0)
		*wrong = shared_lie(o, capacity, &word);
	if (*wrong) {
		tell(out, SHARE_LABEL, word);
		return 0;
	}
	word = "";
	if (nvidia && there > 0) {
		word = count_cards(out, &there, &works);
	} else if (there > 0) {
		word = "whole";
	} else if ((b = shared_devices(o, &there, &works, &memory_mib)) != NULL) {
		word = b->word;
		out->slots = b->slots;
		/* A pod has one unit at least: where a device has fewer than parts of a thousandth there are, that
		 * is its smallest part. */
		if (b->by_memory && b->unit_mib > 0 && memory_mib / b->unit_mib < 1000)
			out->slots = (uint32_t)(memory_mib / b->unit_mib);
	}
	tell(out, SHARE_LABEL, word);
	if (!nvidia)
		tell(out, SHARE_DEVICES, out->device);
	if (there < works)
		there = works;
	if (there > GPUQ_GPUS_PER_POD_MAX) {
		*wrong = gpuq_arena_printf(&o->arena,
					   "it offers %" PRId64 " devices: at most %u are credible",
					   there, GPUQ_GPUS_PER_POD_MAX);
		return *wrong ? 0 : GPUQ_ENOMEM;
	}
	if (there == 0)
		return 0;
	product = product_of(o, out);
	d = gpuq_arena_calloc(&o->arena, (size_t)there, sizeof(*d));
	if (!d)
		return GPUQ_ENOMEM;
	for (int64_t i = 0; i < there; i++) {
		d[i].uuid = "";
		d[i].product = nvidia || !*out->device ? product : out->device;
		d[i].memory_mib = memory_mib;
		d[i].healthy = i < works;
	}
	out->devices = d;
	out->n_devices = (size_t)there;
	return 0;
}

static void not_ready(struct kube_object *o, struct node_fact *out, const json_t *cond)
{
	const char *type = kube_str(cond, "type"), *state = kube_str(cond, "status");
	const char *words = kube_str(cond, "message");

	out->ready = false;
	out->note = gpuq_arena_printf(&o->arena, "%s=%s: %.200s", type, state,
				      *words ? words : kube_str(cond, "reason"));
	if (!out->note)
		out->note = type;
}

static void read_conditions(struct kube_object *o, struct node_fact *out)
{
	static const char *const pressures[] = { "MemoryPressure", "DiskPressure", "PIDPressure",
						 "NetworkUnavailable" };
	json_t *list = kube_path(o->object, "status", "conditions"), *c;
	bool said = false;
	size_t i;

	out->note = "";
	json_array_foreach(list, i, c)
	{
		if (strcmp(kube_str(c, "type"), "Ready") != 0)
			continue;
		said = true;
		out->ready = strcmp(kube_str(c, "status"), "True") == 0;
		if (!out->ready)
			not_ready(o, out, c);
	}
	if (!said)
		out->note = "the node has not reported that it is ready";
	json_array_foreach(list, i, c)
	{
		if (!out->ready || strcmp(kube_str(c, "status"), "True") != 0)
			continue;
		for (size_t k = 0; k < sizeof(pressures) / sizeof(pressures[0]); k++)
			if (strcmp(kube_str(c, "type"), pressures[k]) == 0)
				not_ready(o, out, c);
	}
	if (kube_path(o->object, "metadata", "deletionTimestamp")) {
		out->ready = false;
		out->note = "the node is being deleted";
	}
}

/* Azure says in words which event of the machine is scheduled: "Preempt", "Reboot", ... */
static const char *vm_event(const json_t *c)
{
	static const struct {
		const char *word, *type;
	} rows[] = {
		{ "Preempt", "VMEventScheduled/Preempt" },
		{ "Terminate", "VMEventScheduled/Terminate" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strstr(kube_str(c, "reason"), rows[i].word) ||
		    strstr(kube_str(c, "message"), rows[i].word))
			return rows[i].type;
	return "VMEventScheduled";
}

/* Conditions that agents report beside the kubelet's own. Those that are Unknown tell nothing. */
static int read_reports(struct kube_object *o, struct node_fact *out)
{
	static const char *const own[] = { "Ready", "MemoryPressure", "DiskPressure", "PIDPressure",
					   "NetworkUnavailable" };
	json_t *list = kube_path(o->object, "status", "conditions"), *c;
	struct condition_fact *facts =
		gpuq_arena_calloc(&o->arena, json_array_size(list) + 1, sizeof(*facts));
	size_t i, n = 0;

	if (!facts)
		return GPUQ_ENOMEM;
	json_array_foreach(list, i, c)
	{
		const char *type = kube_str(c, "type"), *state = kube_str(c, "status");
		bool is_own = false;

		for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			is_own |= strcmp(type, own[k]) == 0;
		if (strcmp(type, "VMEventScheduled") == 0)
			type = vm_event(c);
		if (!is_own && (strcmp(state, "True") == 0 || strcmp(state, "False") == 0))
			facts[n++] = (struct condition_fact){ type, state[0] == 'T' };
	}
	out->conditions = facts;
	out->n_conditions = n;
	return 0;
}

int kube_read_node(struct kube_object *o, struct node_fact *out, struct gpuq_err *err)
{
	const json_t *alloc = kube_path(o->object, "status", "allocatable");
	struct node_fact n = { .name = kube_str(json_object_get(o->object, "metadata"), "name") };
	const char *wrong = NULL, *lock;
	int rc;

	if (!*n.name)
		return gpuq_fail(err, GPUQ_EINVAL, "a node without a name");
	if (read_labels(o, &n.labels) != 0 || read_taints(o, &n) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "node %s: no memory", n.name);
	n.cpu_milli = kube_quantity(alloc, "cpu", gpuq_milli_parse);
	n.memory_bytes = kube_quantity(alloc, "memory", gpuq_bytes_parse);
	n.max_pods = kube_quantity(alloc, "pods", gpuq_bytes_parse);
	if (kube_read_node_mig(o, &n) != 0 || read_devices(o, &n, &wrong) != 0 ||
	    read_reports(o, &n) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "node %s: no memory", n.name);
	rc = kube_read_node_amounts(o, &n);
	if (rc == GPUQ_ENOMEM)
		return gpuq_fail(err, GPUQ_ENOMEM, "node %s: no memory", n.name);
	lock = kube_str(kube_path(o->object, "metadata", "annotations"), HAMI_LOCK);
	n.lock = *lock ? lock : NULL;
	n.unschedulable = json_is_true(kube_path(o->object, "spec", "unschedulable"));
	read_conditions(o, &n);
	if (rc == GPUQ_ETOOBIG) {
		n.ready = false;
		n.note = "it lists more resources than can be counted";
	}
	if (!wrong)
		wrong = kube_mig_lie(o, &n);
	if (wrong) {
		n.n_mig = 0;
		n.ready = false;
		n.note = wrong;
	}
	*out = n;
	return 0;
}
