#include "gpuqd/snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/links.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"

#define BLOB_INTS_MAX 9 /* at once */

/* One step of the class outweighs all other terms; then the order of users, which are mostly fewer
 * than a thousand, outweighs the age. */
void snapshot_weights_default(struct snap_weights *w)
{
	*w = (struct snap_weights){
		.age = 1000,
		.fair_share = 1000000,
		.qos = 10000000,
		.qos_full = 1,
		.max_age_us = 24 * 3600 * GPUQ_US_PER_S,
		.evict_step_milli = 125,
		.stretch = 1000,
	};
}

void snapshot_config_default(struct snap_config *c)
{
	*c = (struct snap_config){
		.sched = policy_sched_default(),
		.reclaim = true,
	};
	snapshot_weights_default(&c->weights);
}

void snapshot_share_default(struct snap_share *s)
{
	*s = (struct snap_share){ .quota = SNAP_AUTO,
				  .limit = GPUQ_UNLIMITED,
				  .lend = GPUQ_UNLIMITED };
}

void snapshot_queue_default(struct snap_queue *q)
{
	*q = (struct snap_queue){
		.policy = policy_queue_default(),
		.user_max_running = GPUQ_UNLIMITED,
		.user_max_gpus_milli = GPUQ_UNLIMITED,
		.max_running = GPUQ_UNLIMITED,
		.job_max_gpus_milli = GPUQ_UNLIMITED,
		.max_gpus_milli = GPUQ_UNLIMITED,
		.budget_gpu_ms = GPUQ_UNLIMITED,
		.parent = SNAP_NONE,
	};
}

void snapshot_node_default(struct snap_node *n)
{
	*n = (struct snap_node){
		.flavor = SNAP_NONE,
		.cpu_milli = GPUQ_UNLIMITED,
		.memory_bytes = GPUQ_UNLIMITED,
		.pods = GPUQ_UNLIMITED,
		.isolation_whole = GPUQ_ISOLATION_EXCLUSIVE,
	};
}

void snapshot_job_default(struct snap_job *j)
{
	*j = (struct snap_job){
		.key = { 0, -1 },
		.queue = SNAP_NONE,
		.request = SNAP_NONE,
		.user = SNAP_NONE,
		.walltime_us = GPUQ_UNLIMITED,
		.preemptible = true,
		.evicted_for = SNAP_NONE,
		.charge_milli = SNAP_MILLI,
		.capset = SNAP_NONE,
	};
}

/* All cores of a device with its whole memory are the device. */
static int32_t cores_part(const struct gpuq_group *g)
{
	const bool part = g->gpu_cores < 100 || g->gpu_memory_bytes || g->gpus_milli % SNAP_MILLI;

	return part ? (int32_t)amount_percent(g->gpu_cores) : 0;
}

void snapshot_group_from_spec(const struct gpuq_group *g, struct snap_group *out)
{
	*out = (struct snap_group){
		.name = g->name,
		.pods_min = (uint32_t)g->pods_min,
		.pods_max = (uint32_t)g->pods_max,
		.gpus_milli = g->gpus_milli,
		.gpu_memory_bytes = g->gpu_memory_bytes,
		.gpu_part_milli = cores_part(g),
		.cpu_milli = g->cpu_milli,
		.memory_bytes = g->memory_bytes,
		.mig = g->mig,
		.resources = g->resources,
		.n_resources = (uint32_t)g->n_resources,
		.required = g->required,
		.preferred = g->preferred,
		.tolerations = g->tolerations,
		.nodes = g->nodes,
		.exclude = g->exclude,
		.n_required = (uint32_t)g->n_required,
		.n_preferred = (uint32_t)g->n_preferred,
		.n_tolerations = (uint32_t)g->n_tolerations,
		.topology_required = g->topology_required,
		.topology_preferred = g->topology_preferred,
		.slices = g->slices,
		.n_slices = (uint32_t)g->n_slices,
	};
}

struct snapshot *snapshot_new(const struct snap_config *config)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->builder = calloc(1, sizeof(*s->builder));
	if (!s->builder) {
		free(s);
		return NULL;
	}
	s->config = *config;
	/* Keys are needed only while building: they have an arena of their own. */
	s->builder->requests.arena = &s->builder->keys;
	s->builder->users.arena = &s->builder->keys;
	s->builder->wheres.arena = &s->builder->keys;
	s->builder->usages.arena = &s->builder->keys;
	s->builder->joints.arena = &s->builder->keys;
	return s;
}

void snapshot_forget_keys(struct snapshot *s)
{
	intern_done(&s->builder->requests);
	intern_done(&s->builder->users);
	intern_done(&s->builder->wheres);
	intern_done(&s->builder->usages);
	intern_done(&s->builder->joints);
	gpuq_arena_done(&s->builder->keys);
	gpuq_buf_done(&s->builder->blob);
	free(s->builder->where_first);
	s->builder->where_first = NULL;
	s->builder->room_where_first = 0;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	if (s->builder) {
		snapshot_forget_keys(s);
		if (s->builder->seal)
			gpuq_arena_done(&s->builder->seal->mem);
		free(s->builder->seal);
		free(s->builder);
	}
	free(s->flavors);
	free(s->nodes);
	free(s->joints);
	free(s->devices);
	free(s->queues);
	free(s->shares);
	free(s->licenses);
	free(s->caps);
	free(s->capsets);
	free(s->requests);
	free(s->jobs);
	free(s->allocs);
	free(s->promises);
	free(s->reservations);
	free(s->users);
	free(s->usages);
	free(s->losses);
	free(s->extras);
	gpuq_arena_done(&s->arena);
	free(s);
}

/* Append capacity for n items to a table; return the address of the first, or NULL and set
 * failed. */
static void *push(struct snapshot *s, void *table, uint32_t *n_items, uint32_t *room, size_t size,
		  uint32_t n)
{
	void **items = table;
	void *at;

	/* Failure is sticky: callers may go on, and sealing reports it. */
	if (s->builder->failed || n > UINT32_MAX / 4 - *n_items) {
		s->builder->failed = true;
		return NULL;
	}
	if (*n_items + n > *room && !grow_heap_u32(items, room, *n_items + n, size)) {
		s->builder->failed = true;
		return NULL;
	}
	at = (char *)*items + *n_items * size;
	memset(at, 0, n * size);
	*n_items += n;
	return at;
}

#define PUSH(s, table, n)                                                                          \
	push(s, &(s)->table, &(s)->n_##table, &(s)->builder->room_##table, sizeof(*(s)->table), n)

/* Copy into the snapshot's arena; NULL for NULL and without memory. */
static const char *copy_str(struct snapshot *s, const char *str)
{
	char *p;

	if (!str)
		return NULL;
	p = gpuq_arena_strdup(&s->arena, str);
	if (!p)
		s->builder->failed = true;
	return p;
}

/* Copy a list into the snapshot's arena; NULL for an empty one and without memory. */
static void *copy_items(struct snapshot *s, const void *items, size_t n, size_t size)
{
	void *p;

	if (n == 0)
		return NULL;
	p = gpuq_arena_calloc(&s->arena, n, size);
	if (!p) {
		s->builder->failed = true;
		return NULL;
	}
	memcpy(p, items, n * size);
	return p;
}

/* Seven bits in a byte, the lowest first: mostly one or two bytes, where memory for 100,000 different
 * requests is at stake. */
static void blob_ints(struct gpuq_buf *b, const int64_t *v, size_t n)
{
	unsigned char bytes[BLOB_INTS_MAX * 10];
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		/* The sign is the lowest bit. */
		uint64_t x = (uint64_t)v[i] << 1 ^ (v[i] < 0 ? UINT64_MAX : 0);

		for (; x >= 0x80; x >>= 7)
			bytes[len++] = (unsigned char)(x | 0x80);
		bytes[len++] = (unsigned char)x;
	}
	gpuq_buf_add(b, bytes, len);
}

static void blob_int(struct gpuq_buf *b, int64_t v)
{
	blob_ints(b, &v, 1);
}

uint32_t snapshot_add_flavor(struct snapshot *s, const char *name, int64_t rank)
{
	struct snap_flavor *f = PUSH(s, flavors, 1);

	if (!f)
		return SNAP_NONE;
	f->name = copy_str(s, name);
	f->rank = rank;
	f->rate_milli = SNAP_MILLI;
	return s->n_flavors - 1;
}

void snapshot_set_grows(struct snapshot *s, uint32_t flavor)
{
	if (flavor < s->n_flavors)
		s->flavors[flavor].grows = true;
}

void snapshot_set_rate(struct snapshot *s, uint32_t flavor, int64_t rate_milli)
{
	if (flavor < s->n_flavors)
		s->flavors[flavor].rate_milli = rate_milli;
}

uint32_t snapshot_add_cap(struct snapshot *s, const struct snap_cap *c)
{
	struct snap_cap *to = PUSH(s, caps, 1);

	if (!to)
		return SNAP_NONE;
	*to = *c;
	to->name = copy_str(s, c->name);
	return s->n_caps - 1;
}

uint32_t snapshot_add_capset(struct snapshot *s, const struct snap_capset *c)
{
	struct snap_capset *to = PUSH(s, capsets, 1);

	if (!to)
		return SNAP_NONE;
	*to = *c;
	return s->n_capsets - 1;
}

uint32_t snapshot_add_license(struct snapshot *s, const char *name, int64_t count)
{
	struct snap_license *l = PUSH(s, licenses, 1);

	if (!l)
		return SNAP_NONE;
	l->name = copy_str(s, name);
	l->count = count;
	return s->n_licenses - 1;
}

uint32_t snapshot_add_queue(struct snapshot *s, const struct snap_queue *in)
{
	const uint32_t n_res = s->n_flavors + 2;
	uint32_t n_shares = s->n_queues * n_res;
	struct snap_share *shares;
	struct snap_queue *q;

	s->n_res = n_res;
	/* Shares are rows of a table by queue; flavors are all known by now, so a row has its final
	 * width. */
	shares = push(s, &s->shares, &n_shares, &s->builder->room_shares, sizeof(*shares), n_res);
	q = PUSH(s, queues, 1);
	if (!shares || !q)
		return SNAP_NONE;
	for (uint32_t r = 0; r < n_res; r++) {
		if (in->shares)
			shares[r] = in->shares[r];
		else
			snapshot_share_default(&shares[r]);
	}
	*q = *in;
	q->shares = NULL;
	q->name = copy_str(s, in->name);
	q->parent_name = copy_str(s, in->parent_name);
	q->parent = SNAP_NONE;
	q->depth = 0;
	q->n_children = 0;
	q->over_budget = false;
	return s->n_queues - 1;
}

/* Return the number of a node's link layout. */
static uint32_t add_joint(struct snapshot *s, const struct snap_node *in)
{
	struct gpuq_buf *blob = &s->builder->blob;
	const size_t n = in->n_devices;
	struct snap_joint *joint;
	bool fresh;
	uint32_t ix;

	if ((!in->links && !in->numa) || n == 0 || n > LINKS_DEVICES_MAX)
		return SNAP_NONE;
	gpuq_buf_clear(blob);
	/* The first number tells which of the two tables follow. */
	blob_int(blob, (int64_t)n * 4 + (in->links ? 2 : 0) + (in->numa ? 1 : 0));
	if (in->links)
		gpuq_buf_add(blob, in->links, n * n);
	if (in->numa)
		gpuq_buf_add(blob, in->numa, n);
	ix = blob->failed ? INTERN_FAILED
			  : intern(&s->builder->joints, blob->data, blob->len, &fresh);
	joint = ix != INTERN_FAILED && fresh ? PUSH(s, joints, 1) : NULL;
	if (ix == INTERN_FAILED || (fresh && !joint)) {
		s->builder->failed = true;
		return SNAP_NONE;
	}
	if (joint)
		*joint = (struct snap_joint){
			(uint32_t)n,
			in->links ? copy_items(s, in->links, n * n, 1) : NULL,
			in->numa ? copy_items(s, in->numa, n, 1) : NULL,
		};
	return ix;
}

/* Return the number of a profile or a countable resource: by first appearance, which has no
 * meaning. */
static uint32_t extra_of(struct snapshot *s, const char *name)
{
	const char **p;

	for (uint32_t i = 0; i < s->n_extras; i++)
		if (gpuq_profile_same(s->extras[i], name))
			return i;
	p = PUSH(s, extras, 1);
	if (!p)
		return SNAP_NONE;
	*p = copy_str(s, name);
	return *p ? s->n_extras - 1 : SNAP_NONE;
}

/* Copy the instances of a node, and number their profiles. */
static const struct snap_mig *copy_mig(struct snapshot *s, const struct snap_mig *in, uint32_t n)
{
	struct snap_mig *out = copy_items(s, in, n, sizeof(*in));

	for (uint32_t i = 0; out && i < n; i++) {
		out[i].extra_ix = extra_of(s, in[i].profile);
		out[i].profile = copy_str(s, in[i].profile);
	}
	return out;
}

/* Copy the layouts of a node. */
static const struct snap_layout *copy_layouts(struct snapshot *s, const struct snap_layout *in,
					      uint32_t n)
{
	struct snap_layout *out = copy_items(s, in, n, sizeof(*in));

	for (uint32_t i = 0; out && i < n; i++) {
		out[i].name = copy_str(s, in[i].name);
		out[i].profile = in[i].profile ? copy_str(s, in[i].profile) : NULL;
	}
	return out;
}

/* Copy the countable resources of a node. Most nodes have those of the node before: they share its
 * names, which sealing makes use of. */
static const struct snap_resource *copy_resources(struct snapshot *s,
						  const struct snap_resource *in, uint32_t n)
{
	const struct snap_node *last = s->n_nodes > 1 ? &s->nodes[s->n_nodes - 2] : NULL;
	struct snap_resource *out = copy_items(s, in, n, sizeof(*in));

	for (uint32_t i = 0; out && i < n; i++)
		out[i].name = last && i < last->n_resources &&
					      strcmp(last->resources[i].name, in[i].name) == 0
				      ? last->resources[i].name
				      : copy_str(s, in[i].name);
	return out;
}

uint32_t snapshot_add_node(struct snapshot *s, const struct snap_node *in)
{
	const uint32_t first = s->n_devices;
	struct snap_device *devices = NULL;
	struct snap_node *n;

	if (in->n_devices > 0) {
		devices = PUSH(s, devices, in->n_devices);
		if (!devices)
			return SNAP_NONE;
	}
	n = PUSH(s, nodes, 1);
	if (!n)
		return SNAP_NONE;
	*n = *in;
	n->name = copy_str(s, in->name);
	n->pool = copy_str(s, in->pool ? in->pool : "");
	n->devices_in = NULL;
	n->mig = copy_mig(s, in->mig, in->n_mig);
	n->layouts = copy_layouts(s, in->layouts, in->n_layouts);
	if (in->n_layouts && !n->layouts)
		n->n_layouts = 0; /* as below */
	n->resources = copy_resources(s, in->resources, in->n_resources);
	if (in->n_resources && !n->resources)
		n->n_resources = 0; /* no memory: sealing fails */
	n->device_first = first;
	n->joint = add_joint(s, in);
	n->links = n->joint != SNAP_NONE ? s->joints[n->joint].links : NULL;
	n->numa = n->joint != SNAP_NONE ? s->joints[n->joint].numa : NULL;
	for (uint32_t i = 0; i < in->n_devices; i++) {
		if (in->devices_in)
			devices[i] = in->devices_in[i];
		else
			devices[i].healthy = true;
	}
	return s->n_nodes - 1;
}

uint32_t snapshot_user(struct snapshot *s, const char *name)
{
	bool fresh;
	uint32_t ix = s->builder->last_user;
	const char **user;

	/* Jobs of one user often come one after another. */
	if (ix < s->n_users && s->users[ix] && strcmp(s->users[ix], name) == 0)
		return ix;
	ix = intern(&s->builder->users, name, strlen(name), &fresh);
	if (ix == INTERN_FAILED) {
		s->builder->failed = true;
		return SNAP_NONE;
	}
	if (fresh) {
		user = PUSH(s, users, 1);
		if (!user)
			return SNAP_NONE;
		*user = copy_str(s, name);
	}
	s->builder->last_user = ix;
	return ix;
}

uint32_t snapshot_usage(struct snapshot *s, uint32_t queue, uint32_t user)
{
	const uint32_t key[2] = { queue, user };
	bool fresh;
	uint32_t ix = s->builder->last_usage;

	/* As for users: mostly the same as the last time. */
	if (ix < s->n_usages && s->usages[ix].queue == queue && s->usages[ix].user == user)
		return ix;
	ix = intern(&s->builder->usages, key, sizeof(key), &fresh);
	if (ix == INTERN_FAILED)
		s->builder->failed = true;
	else if (fresh && PUSH(s, usages, 1))
		s->usages[ix] = (struct snap_usage){ queue, user, 0 };
	s->builder->last_usage = ix;
	return s->builder->failed ? SNAP_NONE : ix;
}

bool snapshot_add_usage(struct snapshot *s, uint32_t queue, uint32_t user, uint64_t used)
{
	const uint32_t ix = snapshot_usage(s, queue, user);

	if (ix != SNAP_NONE)
		s->usages[ix].used += used;
	return ix != SNAP_NONE;
}

bool snapshot_add_loss(struct snapshot *s, const struct snap_loss *l)
{
	struct snap_loss *at = PUSH(s, losses, 1);

	if (at)
		*at = *l;
	return at != NULL;
}

uint32_t snapshot_add_job(struct snapshot *s, const struct snap_job *in)
{
	struct snap_job *j = PUSH(s, jobs, 1);

	if (!j)
		return SNAP_NONE;
	*j = *in;
	if (in->queue < s->n_queues && in->user < s->n_users) /* otherwise sealing refuses it */
		j->usage = snapshot_usage(s, in->queue, in->user);
	if (in->eligible_us == 0)
		j->eligible_us = in->submit_us;
	j->gate_object = in->gate_object ? copy_str(s, in->gate_object) : "";
	j->exclude = copy_items(s, in->exclude, in->n_exclude, sizeof(*in->exclude));
	j->ranges = copy_items(s, in->ranges, in->n_ranges, sizeof(*in->ranges));
	return s->n_jobs - 1;
}

/* The entry's range counts the equivalent jobs that it stands for; its list was copied into the
 * arena, and may be changed. */
void snapshot_add_alike(struct snapshot *s, uint32_t job)
{
	if (job < s->n_jobs && s->jobs[job].n_ranges == 1)
		((struct snap_range *)(uintptr_t)s->jobs[job].ranges)->last++;
}

uint32_t snapshot_add_alloc(struct snapshot *s, const struct snap_alloc *in)
{
	struct snap_alloc *a = PUSH(s, allocs, 1);

	if (!a)
		return SNAP_NONE;
	*a = *in;
	a->devices = copy_items(s, in->devices, in->n_devices, sizeof(*in->devices));
	return s->n_allocs - 1;
}

uint32_t snapshot_add_promise(struct snapshot *s, const struct snap_alloc *in)
{
	struct snap_alloc *a = PUSH(s, promises, 1);

	if (!a)
		return SNAP_NONE;
	*a = *in;
	a->devices = copy_items(s, in->devices, in->n_devices, sizeof(*in->devices));
	return s->n_promises - 1;
}

uint32_t snapshot_add_reservation(struct snapshot *s, const struct snap_reservation *in)
{
	struct snap_reservation *r = PUSH(s, reservations, 1);

	if (!r)
		return SNAP_NONE;
	*r = *in;
	r->name = copy_str(s, in->name);
	r->pool = copy_str(s, in->pool);
	r->nodes = copy_items(s, in->nodes, in->n_nodes, sizeof(*in->nodes));
	r->users = copy_items(s, in->users, in->n_users, sizeof(*in->users));
	return s->n_reservations - 1;
}

/* ---- requests ---- */

/* Append a string with its length first, so that no two sequences of strings look alike. */
static void blob_str(struct gpuq_buf *b, const char *str)
{
	blob_int(b, str ? (int64_t)strlen(str) : -1);
	if (str)
		gpuq_buf_adds(b, str);
}

/* Append a list of strings to the key under which equal requests are one. */
static void blob_list(struct gpuq_buf *b, const struct gpuq_strlist *l)
{
	blob_int(b, (int64_t)l->n);
	for (size_t i = 0; i < l->n; i++)
		blob_str(b, l->items[i]);
}

/* Append the terms of an affinity to that key. */
static void blob_terms(struct gpuq_buf *b, const struct gpuq_term *terms, uint32_t n)
{
	blob_int(b, n);
	for (uint32_t i = 0; i < n; i++) {
		blob_int(b, terms[i].weight);
		blob_int(b, (int64_t)terms[i].n);
		for (size_t k = 0; k < terms[i].n; k++) {
			blob_str(b, terms[i].all[k].key);
			blob_int(b, terms[i].all[k].op);
			blob_list(b, &terms[i].all[k].values);
		}
	}
}

/* Append the constraints on a pod's nodes, free or not. */
static void blob_constraints(struct gpuq_buf *b, const struct snap_group *g)
{
	blob_int(b, g->gpus_milli > 0);
	/* It depends on the kind of the request what a node offers. */
	blob_int(b, g->isolation == 0                          ? 0
		    : g->mig && gpuq_profile_is_shared(g->mig) ? 4
		    : g->mig                                   ? 1
		    : snap_group_parts(g)                      ? 2
							       : 3);
	blob_int(b, g->isolation);
	blob_terms(b, g->required, g->n_required);
	blob_terms(b, g->preferred, g->n_preferred);
	blob_int(b, g->n_tolerations);
	for (uint32_t t = 0; t < g->n_tolerations; t++) {
		blob_str(b, g->tolerations[t].key);
		blob_int(b, g->tolerations[t].exists);
		blob_str(b, g->tolerations[t].value);
		blob_str(b, g->tolerations[t].effect);
	}
	blob_list(b, &g->nodes);
	blob_list(b, &g->exclude);
}

/* Append every field of a request that can affect a decision: equal bytes, equal requests. where: the
 * numbers of its groups' constraints. */
static void blob_request(struct gpuq_buf *b, const struct snap_request *r, const uint32_t *where)
{
	gpuq_buf_clear(b);
	blob_int(b, r->exclusive);
	blob_int(b, r->n_flavors * INT64_C(2) + (r->waits_us != NULL));
	for (uint32_t i = 0; i < r->n_flavors; i++)
		blob_str(b, r->flavors[i]);
	for (uint32_t i = 0; r->waits_us && i < r->n_flavors; i++)
		blob_int(b, r->waits_us[i]);
	for (uint32_t i = 0; i < r->n_others; i++)
		blob_int(b, -1 - (int64_t)r->others[i]);
	if (r->in_order)
		blob_int(b, INT64_MIN);
	blob_int(b, r->n_licenses);
	for (uint32_t i = 0; i < r->n_licenses; i++) {
		blob_int(b, r->licenses[i].license);
		blob_int(b, r->licenses[i].count);
	}
	for (uint32_t i = 0; i < r->n_groups; i++) {
		const struct snap_group *g = &r->groups[i];

		const int64_t amounts[] = {
			g->pods_min,        g->pods_max,         g->unit_pods,
			g->gpus_milli,      g->gpu_memory_bytes, g->gpu_part_milli,
			g->cpu_milli,       g->memory_bytes,     where[i],
			g->gpu_memory_least
		};

		blob_str(b, g->name);
		blob_ints(b, amounts, sizeof(amounts) / sizeof(amounts[0]));
		blob_str(b, g->mig);
		blob_int(b, g->n_resources);
		for (uint32_t k = 0; k < g->n_resources; k++) {
			blob_str(b, g->resources[k].name);
			blob_int(b, g->resources[k].count);
		}
		blob_str(b, g->topology_required);
		blob_str(b, g->topology_preferred);
		blob_str(b, g->volume);
		blob_str(b, g->volume_label);
		blob_int(b, g->n_slices);
		for (uint32_t k = 0; k < g->n_slices; k++) {
			blob_str(b, g->slices[k].level);
			blob_int(b, g->slices[k].size);
		}
	}
}

/* Make room in the table of the first groups with some constraints. */
static bool where_room(struct snap_builder *b, uint32_t n)
{
	const uint32_t had = b->room_where_first;

	if (!grow_to(&b->where_first, &b->room_where_first, n))
		return false;
	for (uint32_t i = had; i < b->room_where_first; i++)
		b->where_first[i] = NULL;
	return true;
}

/* Return the number of a group's constraints among all distinct ones. */
static uint32_t intern_where(struct snapshot *s, const struct snap_group *g)
{
	struct gpuq_buf *blob = &s->builder->blob;
	uint32_t ix;

	gpuq_buf_clear(blob);
	blob_constraints(blob, g);
	ix = blob->failed ? INTERN_FAILED
			  : intern(&s->builder->wheres, blob->data, blob->len, NULL);
	if (ix == INTERN_FAILED || !where_room(s->builder, ix + 1))
		s->builder->failed = true;
	s->n_wheres = s->builder->wheres.n;
	return ix;
}

/* Copy a list with its strings; empty without memory. */
static struct gpuq_strlist copy_list(struct snapshot *s, const struct gpuq_strlist *in)
{
	struct gpuq_strlist out = { copy_items(s, in->items, in->n, sizeof(*in->items)), in->n };

	if (in->n && !out.items)
		return (struct gpuq_strlist){ NULL, 0 };
	for (size_t i = 0; i < out.n; i++)
		out.items[i] = copy_str(s, in->items[i]);
	return out;
}

/* Copy the terms of an affinity into the snapshot, which outlives what it was taken from. */
static struct gpuq_term *copy_terms(struct snapshot *s, const struct gpuq_term *in, uint32_t n)
{
	struct gpuq_term *out = copy_items(s, in, n, sizeof(*in));

	for (uint32_t i = 0; out && i < n; i++) {
		out[i].all = copy_items(s, in[i].all, in[i].n, sizeof(*in[i].all));
		for (size_t k = 0; out[i].all && k < in[i].n; k++) {
			out[i].all[k].key = copy_str(s, in[i].all[k].key);
			out[i].all[k].values = copy_list(s, &in[i].all[k].values);
		}
	}
	return out;
}

/* Copy the levels of a topology request in the same way. */
static const struct gpuq_slice *copy_slices(struct snapshot *s, const struct gpuq_slice *in,
					    uint32_t n)
{
	struct gpuq_slice *out = copy_items(s, in, n, sizeof(*in));

	for (uint32_t i = 0; out && i < n; i++)
		out[i].level = copy_str(s, in[i].level);
	return out;
}

/* Copy what a group asks of countable resources, and number them: its instances first. */
static void copy_takes(struct snapshot *s, const struct snap_group *in, struct snap_group *out)
{
	struct gpuq_amount *amounts =
		copy_items(s, in->resources, in->n_resources, sizeof(*amounts));
	struct snap_take *takes = NULL;
	uint32_t n = 0;

	if (in->mig || in->n_resources)
		takes = gpuq_arena_calloc(&s->arena, in->n_resources + 1, sizeof(*takes));
	if (takes && in->mig)
		takes[n++] = (struct snap_take){ out->profile, in->gpus_milli / SNAP_MILLI };
	for (uint32_t i = 0; takes && amounts && i < in->n_resources; i++) {
		amounts[i].name = copy_str(s, in->resources[i].name);
		takes[n++] = (struct snap_take){ extra_of(s, in->resources[i].name),
						 in->resources[i].count };
	}
	if ((in->mig || in->n_resources) && !takes)
		s->builder->failed = true;
	out->resources = amounts;
	out->takes = takes;
	out->n_takes = n;
}

/* Nearly all groups have this name: it is stored once. */
static const char usual_name[] = "main";

/* True if a group has the usual name, or none. */
static bool is_usual(const char *name)
{
	return !name || strcmp(name, usual_name) == 0;
}

/* Copy the constraints on a group's nodes. */
static void copy_constraints(struct snapshot *s, const struct snap_group *in,
			     struct snap_group *out)
{
	out->required = copy_terms(s, in->required, in->n_required);
	out->preferred = copy_terms(s, in->preferred, in->n_preferred);
	out->tolerations =
		copy_items(s, in->tolerations, in->n_tolerations, sizeof(*in->tolerations));
	for (uint32_t t = 0; out->tolerations && t < in->n_tolerations; t++) {
		out->tolerations[t].key = copy_str(s, in->tolerations[t].key);
		out->tolerations[t].value = copy_str(s, in->tolerations[t].value);
		out->tolerations[t].effect = copy_str(s, in->tolerations[t].effect);
	}
	out->nodes = copy_list(s, &in->nodes);
	out->exclude = copy_list(s, &in->exclude);
}

/* Take the constraints of the first group that had the same: groups that differ in amounts alone
 * share them. */
static void share_constraints(const struct snap_group *from, struct snap_group *out)
{
	out->required = from->required;
	out->preferred = from->preferred;
	out->tolerations = from->tolerations;
	out->nodes = from->nodes;
	out->exclude = from->exclude;
}

/* Copy a group with all its strings and lists: what the caller passes is only borrowed. */
static void copy_group(struct snapshot *s, const struct snap_group *in, uint32_t where,
		       struct snap_group *out)
{
	const struct snap_group **first = &s->builder->where_first[where];
	char name[GPUQ_PROFILE_ROOM];

	*out = *in;
	out->name = is_usual(in->name) ? usual_name : copy_str(s, in->name);
	out->mig = copy_str(s, in->mig);
	out->mig_name = in->mig ? copy_str(s, gpuq_profile_name(in->mig, name)) : NULL;
	out->profile = in->mig ? extra_of(s, in->mig) : SNAP_NONE;
	copy_takes(s, in, out);
	if (*first) {
		share_constraints(*first, out);
	} else {
		copy_constraints(s, in, out);
		*first = out;
	}
	out->topology_required = copy_str(s, in->topology_required);
	out->topology_preferred = copy_str(s, in->topology_preferred);
	out->volume = copy_str(s, in->volume);
	out->volume_label = copy_str(s, in->volume_label);
	out->slices = copy_slices(s, in->slices, in->n_slices);
}

/* Copy the numbers of the groups' constraints. Mostly there is one group, whose constraints are
 * among the first ones. */
static const uint32_t *copy_wheres(struct snapshot *s, const uint32_t *where, uint32_t n)
{
	static const uint32_t few[] = { 0, 1, 2, 3 };

	if (n == 1 && where[0] < sizeof(few) / sizeof(few[0]))
		return &few[where[0]];
	return copy_items(s, where, n, sizeof(*where));
}

uint32_t snapshot_add_request(struct snapshot *s, const struct snap_request *in)
{
	struct gpuq_buf *blob = &s->builder->blob;
	struct snap_group *groups;
	struct snap_request *r;
	const char **flavors;
	const uint32_t *where;
	uint32_t of[GPUQ_GROUPS_MAX], ix;
	bool fresh;

	for (uint32_t i = 0; i < in->n_groups; i++)
		of[i] = intern_where(s, &in->groups[i]);
	if (s->builder->failed)
		return SNAP_NONE;
	blob_request(blob, in, of);
	ix = blob->failed ? INTERN_FAILED
			  : intern(&s->builder->requests, blob->data, blob->len, &fresh);
	if (ix == INTERN_FAILED) {
		s->builder->failed = true;
		return SNAP_NONE;
	}
	/* Mostly a request is known: then nothing is copied. */
	if (!fresh)
		return ix;
	r = PUSH(s, requests, 1);
	groups = copy_items(s, in->groups, in->n_groups, sizeof(*groups));
	flavors = copy_items(s, in->flavors, in->n_flavors, sizeof(*flavors));
	where = copy_wheres(s, of, in->n_groups);
	if (!r || !groups || !where || (in->n_flavors && !flavors)) {
		s->builder->failed = true;
		return SNAP_NONE;
	}
	for (uint32_t i = 0; i < in->n_groups; i++)
		copy_group(s, &in->groups[i], of[i], &groups[i]);
	for (uint32_t i = 0; i < in->n_flavors; i++)
		flavors[i] = copy_str(s, in->flavors[i]);
	*r = *in;
	r->groups = groups;
	r->flavors = flavors;
	if (in->waits_us)
		r->waits_us = copy_items(s, in->waits_us, in->n_flavors, sizeof(*in->waits_us));
	r->licenses = copy_items(s, in->licenses, in->n_licenses, sizeof(*in->licenses));
	r->others = copy_items(s, in->others, in->n_others, sizeof(*in->others));
	r->where = where;
	r->group_first = s->n_groups;
	s->n_groups += in->n_groups;
	return ix;
}

/* ---- lookup ---- */

/* Sealed nodes are sorted by name. */
uint32_t snapshot_find_node(const struct snapshot *s, const char *name)
{
	uint32_t lo = 0, hi = s->n_nodes;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int c = strcmp(s->nodes[mid].name, name);

		if (c == 0)
			return mid;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return SNAP_NONE;
}

uint32_t snapshot_find_queue(const struct snapshot *s, const char *name)
{
	for (uint32_t q = 0; q < s->n_queues; q++)
		if (strcmp(s->queues[q].name, name) == 0)
			return q;
	return SNAP_NONE;
}

uint32_t snapshot_find_flavor(const struct snapshot *s, const char *name)
{
	for (uint32_t f = 0; f < s->n_flavors; f++)
		if (strcmp(s->flavors[f].name, name) == 0)
			return f;
	return SNAP_NONE;
}

/* Sealed jobs are sorted by id and element. */
uint32_t snapshot_find_job(const struct snapshot *s, struct snap_key key)
{
	uint32_t lo = 0, hi = s->n_jobs;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct snap_job *j = &s->jobs[mid];

		if (j->key.id < key.id || (j->key.id == key.id && snapshot_element(j) < key.index))
			lo = mid + 1;
		else
			hi = mid;
	}
	/* The pending entry of an array follows the entries of its earlier elements. */
	for (; lo < s->n_jobs && s->jobs[lo].key.id == key.id; lo++)
		if (s->jobs[lo].key.index == key.index)
			return lo;
		else if (key.index >= 0)
			break;
	return SNAP_NONE;
}
