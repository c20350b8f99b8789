#include "gpuqd/snapshot/snapshot_pack.h"

#include <stddef.h>
#include <string.h>

#include "libgpuq/limits.h"

/* ---- plain fields ---- */

enum kind { K_I64, K_U64, K_U32, K_INT, K_I16, K_U8, K_BOOL, K_STR, K_COUNT, K_NOT, K_INT_BOOL };

/* Keys of the site, by their kind. */
#define RECORDED_FACTOR K_I64
#define RECORDED_INT K_I64
#define RECORDED_WORD K_INT
#define RECORDED_FLAG K_BOOL
#define RECORDED_SPAN K_I64
#define RECORDED_COUNT K_COUNT
#define RECORDED_LIMIT K_COUNT
#define RECORDED_DEVICES K_I64

struct col {
	size_t offset; /* in the struct */
	enum kind kind; /* how it is written */
};

#define COL(type, member)                                                                            \
	{                                                                                            \
		offsetof(type, member), _Generic(((type *)0)->member,                              \
			int64_t: K_I64,                                                            \
			uint64_t: K_U64,                                                           \
			uint32_t: K_U32,                                                           \
			int: K_INT,                                                                \
			int16_t: K_I16,                                                            \
			uint8_t: K_U8,                                                             \
			bool: K_BOOL,                                                              \
			const char *: K_STR) \
	}

/* Positions are fixed for ever: append, never insert. Those of the site's keys are given in their
 * rows. */
/* clang-format off */
#define AT(at, m) [at] = COL(struct snap_config, m)
#define X(kind, member, key, dflt, absent, recorded, ...) \
	[recorded] = { offsetof(struct snap_config, member), RECORDED_##kind },
static const struct col config_cols[] = {
	AT(0, now_us), AT(1, max_steps), AT(5, reclaim), AT(17, usage_k_milli),
	AT(20, weights.age), AT(21, weights.fair_share), AT(22, weights.size), AT(23, weights.qos),
	AT(24, weights.qos_full), AT(25, weights.max_age_us), AT(26, weights.evict_step_milli),
	AT(27, usage_step_us), AT(28, weights.stretch), AT(29, wake_us),
	POLICY_SCHED_KEYS(X)
};
#undef X
#undef AT
#define X(...) +1
_Static_assert(sizeof(config_cols) / sizeof(config_cols[0]) == 14 POLICY_SCHED_KEYS(X), "a number is left out");
#undef X
#define C(m) COL(struct snap_flavor, m)
static const struct col flavor_cols[] = { C(name), C(rank), C(rate_milli), C(grows) };
#undef C
#define C(m) COL(struct snap_license, m)
static const struct col license_cols[] = { C(name), C(count) };
#undef C
#define C(m) COL(struct snap_cap, m)
static const struct col cap_cols[] = {
	C(name), C(code), C(max_running), C(max_gpus_milli), C(left_gpu_ms), C(job_max_gpus_milli),
};
#undef C
#define C(m) COL(struct snap_share, m)
static const struct col share_cols[] = { C(quota), C(shared), C(limit), C(lend) };
#undef C
#define AT(at, m) [at] = COL(struct snap_queue, m)
#define PLAIN(kind) RECORDED_##kind
#define INVERTED(kind) K_NOT
#define AS_BOOL(kind) K_INT_BOOL
#define X(kind, member, key, scenario, dflt, recorded, how, ...) \
	[recorded] = { offsetof(struct snap_queue, member), how(kind) },
static const struct col queue_cols[] = {
	AT(0, name), AT(1, parent_name), AT(4, age), AT(13, usage_micro), AT(15, n_claims_hour),
	AT(16, user_max_running), AT(17, user_max_gpus_milli), AT(18, max_running),
	AT(19, job_max_gpus_milli), AT(20, budget_gpu_ms), AT(21, budget_used_gpu_ms),
	AT(22, budget_reset_us), AT(23, budget_hard), AT(24, spread), AT(26, max_gpus_milli),
	POLICY_QUEUE_KEYS(X)
};
#undef X
#undef AT
#define X(...) +1
_Static_assert(sizeof(queue_cols) / sizeof(queue_cols[0]) == 15 POLICY_QUEUE_KEYS(X), "a number is left out");
#undef X
#define C(m) COL(struct snap_taint, m)
static const struct col taint_cols[] = { C(key), C(value), C(effect) };
#undef C
#define C(m) COL(struct snap_mig, m)
static const struct col mig_cols[] = { C(profile), C(count), C(foreign) };
#undef C
#define C(m) COL(struct snap_layout, m)
static const struct col layout_cols[] = { C(name), C(profile), C(count), C(again_us) };
#undef C
#define C(m) COL(struct snap_resource, m)
static const struct col resource_cols[] = { C(name), C(count), C(foreign) };
#undef C
#define C(m) COL(struct gpuq_amount, m)
static const struct col amount_cols[] = { C(name), C(count) };
#undef C
#define C(m) COL(struct snap_device, m)
static const struct col device_cols[] = { C(healthy), C(foreign_milli), C(memory_bytes),
					 C(foreign_memory_bytes), C(serves) };
#undef C
#define C(m) COL(struct snap_node, m)
static const struct col node_cols[] = {
	C(name), C(pool), C(flavor), C(state), C(cpu_milli), C(memory_bytes), C(pods),
	C(foreign_cpu_milli), C(foreign_memory_bytes), C(foreign_pods), C(foreign_gpus), C(replicas),
	C(ask), C(price), C(slots), C(isolation_whole), C(isolation_part), C(n_asks), C(max_asks), C(closed),
	C(made_up), C(run_us), C(lasts), C(cuts),
	C(cutting), C(coming), C(by_memory), C(left_us), C(unit_bytes),
};
#undef C
#define C(m) COL(struct gpuq_slice, m)
static const struct col slice_cols[] = { C(level), C(size) };
#undef C
#define C(m) COL(struct snap_group, m)
static const struct col group_cols[] = {
	C(name), C(pods_min), C(pods_max), C(gpus_milli), C(gpu_memory_bytes), C(cpu_milli),
	C(memory_bytes), C(mig), C(unit_pods), C(topology_required), C(topology_preferred),
	C(gpu_part_milli), C(isolation), C(gpu_memory_least), C(volume), C(volume_label),
};
#undef C
#define C(m) COL(struct snap_license_need, m)
static const struct col need_cols[] = { C(license), C(count) };
#undef C
#define C(m) COL(struct snap_request, m)
static const struct col request_cols[] = { C(exclusive) };
#undef C
#define C(m) COL(struct snap_range, m)
static const struct col range_cols[] = { C(first), C(last), C(step) };
#undef C
#define C(m) COL(struct snap_job, m)
static const struct col job_cols[] = {
	C(key.id), C(key.index), C(queue), C(request), C(user), C(state), C(attempt), C(priority),
	C(submit_us), C(begin_us), C(deadline_us), C(walltime_us), C(start_us), C(preemptible),
	C(held), C(gate), C(gate_object), C(checkpoint_us), C(restart_cost_us), C(returns),
	C(evict_last), C(evicted_us), C(evicted_for), C(n_evicted_day), C(n_moved_day),
	C(shrunk_us), C(short_us), C(throttle),
	C(nice), C(boost), C(eligible_us), C(grace_us), C(yield_us), C(spread),
	C(starting), C(min_runtime_us), C(charge_milli), C(capset),
	C(walltime_min_us), C(fixed_priority), C(walltime_asked_us), C(spared),
	C(wait_at), C(wait_from_us), C(placed_us),
};
#undef C
#define C(m) COL(struct snap_usage, m)
static const struct col usage_cols[] = { C(queue), C(user), C(used) };
#undef C
#define C(m) COL(struct snap_loss, m)
static const struct col loss_cols[] = {
	C(queue), C(by_queue), C(job.id), C(job.index), C(by.id), C(by.index), C(at_us),
};
#undef C
#define C(m) COL(struct snap_reservation, m)
static const struct col reservation_cols[] = {
	C(name), C(start_us), C(end_us), C(gpus_milli), C(flavor), C(queue), C(maintenance),
	C(pool), C(release_us), C(ends_jobs),
};
#undef C
#define C(m) COL(struct snap_alloc, m)
static const struct col alloc_cols[] = {
	C(job), C(node), C(group), C(index), C(releasing), C(milli), C(device_memory_bytes), C(shares),
	C(stays), C(charge_milli),
};
#undef C
/* clang-format on */

#define COLS(table) table, sizeof(table) / sizeof((table)[0])

/* Return a field of any numeric kind. */
static int64_t get_number(const void *at, enum kind kind)
{
	switch (kind) {
	case K_I64:
		return *(const int64_t *)at;
	case K_U64:
		return (int64_t) * (const uint64_t *)at;
	case K_U32:
		return *(const uint32_t *)at;
	case K_INT:
		return *(const int *)at;
	case K_I16:
		return *(const int16_t *)at;
	case K_U8:
		return *(const uint8_t *)at;
	case K_COUNT: /* of 32 bits since the first records; UINT32_MAX is unlimited */
		return *(const int64_t *)at < UINT32_MAX ? *(const int64_t *)at : UINT32_MAX;
	default:
		return 0;
	}
}

/* Append the fields of an object, as an array. */
static void pack_row(struct gpuq_buf *b, const struct col *cols, size_t n, const void *obj)
{
	varint_array(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		const void *at = (const char *)obj + cols[i].offset;

		if (cols[i].kind == K_STR)
			varint_str(b, *(const char *const *)at);
		else if (cols[i].kind == K_BOOL)
			varint_bool(b, *(const bool *)at);
		else if (cols[i].kind == K_NOT)
			varint_bool(b, !*(const bool *)at);
		else if (cols[i].kind == K_INT_BOOL)
			varint_bool(b, *(const int *)at != 0);
		else
			varint_int(b, get_number(at, cols[i].kind));
	}
}

/* Append a table of rows. */
static void pack_rows(struct gpuq_buf *b, const struct col *cols, size_t n_cols, const void *items,
		      size_t n, size_t size)
{
	varint_array(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		pack_row(b, cols, n_cols, (const char *)items + i * size);
}

#define PACK_ROWS(b, cols, items, n) pack_rows(b, COLS(cols), items, n, sizeof(*(items)))

/* Write a list of strings. */
static void pack_strs(struct gpuq_buf *b, const char *const *items, size_t n)
{
	varint_array(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		varint_str(b, items[i]);
}

/* Write a list of indexes. */
static void pack_ints(struct gpuq_buf *b, const uint32_t *items, size_t n)
{
	varint_array(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		varint_int(b, items[i]);
}

/* ---- writing ---- */

/* Write a node: its row, then what has no fixed number of members. */
static void pack_node(const struct snapshot *s, const struct snap_node *n, struct gpuq_buf *b)
{
	const size_t nd = n->n_devices;

	varint_array(b, n->n_layouts ? 10 : 9);
	pack_row(b, COLS(node_cols), n);
	pack_strs(b, (const char *const *)n->labels.keys, n->labels.n);
	pack_strs(b, (const char *const *)n->labels.vals, n->labels.n);
	PACK_ROWS(b, taint_cols, n->taints, n->n_taints);
	PACK_ROWS(b, device_cols, s->devices + n->device_first, nd);
	varint_bin(b, n->links ? n->links : (const uint8_t *)"", n->links ? nd * nd : 0);
	varint_bin(b, n->numa ? n->numa : (const uint8_t *)"", n->numa ? nd : 0);
	PACK_ROWS(b, mig_cols, n->mig, n->n_mig);
	PACK_ROWS(b, resource_cols, n->resources, n->n_resources);
	if (n->n_layouts)
		PACK_ROWS(b, layout_cols, n->layouts, n->n_layouts);
}

/* Write the terms of an affinity. */
static void pack_terms(struct gpuq_buf *b, const struct gpuq_term *terms, uint32_t n)
{
	varint_array(b, n);
	for (uint32_t i = 0; i < n; i++) {
		varint_array(b, 2);
		varint_int(b, terms[i].weight);
		varint_array(b, (uint32_t)terms[i].n);
		for (size_t k = 0; k < terms[i].n; k++) {
			varint_array(b, 3);
			varint_str(b, terms[i].all[k].key);
			varint_int(b, terms[i].all[k].op);
			pack_strs(b, terms[i].all[k].values.items, terms[i].all[k].values.n);
		}
	}
}

/* Write a group of pods. */
static void pack_group(struct gpuq_buf *b, const struct snap_group *g)
{
	varint_array(b, 8);
	pack_row(b, COLS(group_cols), g);
	pack_terms(b, g->required, g->n_required);
	pack_terms(b, g->preferred, g->n_preferred);
	varint_array(b, g->n_tolerations);
	for (uint32_t i = 0; i < g->n_tolerations; i++) {
		varint_array(b, 4);
		varint_str(b, g->tolerations[i].key);
		varint_bool(b, g->tolerations[i].exists);
		varint_str(b, g->tolerations[i].value);
		varint_str(b, g->tolerations[i].effect);
	}
	pack_strs(b, g->nodes.items, g->nodes.n);
	pack_strs(b, g->exclude.items, g->exclude.n);
	PACK_ROWS(b, slice_cols, g->slices, g->n_slices);
	PACK_ROWS(b, amount_cols, g->resources, g->n_resources);
}

/* Write a request with its groups. */
static void pack_request(struct gpuq_buf *b, const struct snap_request *r)
{
	varint_array(b, r->in_order ? 7 : r->n_others ? 6 : r->waits_us ? 5 : 4);
	pack_row(b, COLS(request_cols), r);
	pack_strs(b, r->flavors, r->n_flavors);
	PACK_ROWS(b, need_cols, r->licenses, r->n_licenses);
	varint_array(b, r->n_groups);
	for (uint32_t i = 0; i < r->n_groups; i++)
		pack_group(b, &r->groups[i]);
	if (!r->waits_us && !r->n_others)
		return;
	varint_array(b, r->waits_us ? r->n_flavors : 0);
	for (uint32_t i = 0; r->waits_us && i < r->n_flavors; i++)
		varint_int(b, r->waits_us[i]);
	if (r->n_others)
		pack_ints(b, r->others, r->n_others);
	if (r->in_order)
		varint_bool(b, true);
}

/* Write allocations with their devices. */
static void pack_allocs(struct gpuq_buf *b, const struct snap_alloc *allocs, uint32_t n)
{
	varint_array(b, n);
	for (uint32_t i = 0; i < n; i++) {
		varint_array(b, 2);
		pack_row(b, COLS(alloc_cols), &allocs[i]);
		pack_ints(b, allocs[i].devices, allocs[i].n_devices);
	}
}

/* Append the parts. Objects come before those that refer to them, so that a reader can check every
 * number; caps and losses were added later, and so stand at the end. */
void snapshot_pack(const struct snapshot *s, struct gpuq_buf *b)
{
	varint_array(b, 16);
	pack_row(b, COLS(config_cols), &s->config);
	pack_strs(b, s->config.levels, s->config.n_levels);
	PACK_ROWS(b, flavor_cols, s->flavors, s->n_flavors);
	PACK_ROWS(b, license_cols, s->licenses, s->n_licenses);
	pack_strs(b, s->users, s->n_users);
	varint_array(b, s->n_queues);
	for (uint32_t i = 0; i < s->n_queues; i++) {
		varint_array(b, 2);
		pack_row(b, COLS(queue_cols), &s->queues[i]);
		PACK_ROWS(b, share_cols, s->shares + (size_t)i * s->n_res, s->n_res);
	}
	varint_array(b, s->n_nodes);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		pack_node(s, &s->nodes[i], b);
	PACK_ROWS(b, usage_cols, s->usages, s->n_usages);
	varint_array(b, s->n_reservations);
	for (uint32_t i = 0; i < s->n_reservations; i++) {
		varint_array(b, 3);
		pack_row(b, COLS(reservation_cols), &s->reservations[i]);
		pack_ints(b, s->reservations[i].nodes, s->reservations[i].n_nodes);
		pack_ints(b, s->reservations[i].users, s->reservations[i].n_users);
	}
	varint_array(b, s->n_requests);
	for (uint32_t i = 0; i < s->n_requests; i++)
		pack_request(b, &s->requests[i]);
	varint_array(b, s->n_jobs);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		varint_array(b, 3);
		pack_row(b, COLS(job_cols), &s->jobs[i]);
		pack_ints(b, s->jobs[i].exclude, s->jobs[i].n_exclude);
		PACK_ROWS(b, range_cols, s->jobs[i].ranges, s->jobs[i].n_ranges);
	}
	pack_allocs(b, s->allocs, s->n_allocs);
	pack_allocs(b, s->promises, s->n_promises);
	PACK_ROWS(b, cap_cols, s->caps, s->n_caps);
	varint_array(b, s->n_capsets);
	for (uint32_t i = 0; i < s->n_capsets; i++) {
		uint32_t n = 0;

		while (n < SNAP_CAPS_MAX && s->capsets[i].caps[n] != SNAP_NONE)
			n++;
		pack_ints(b, s->capsets[i].caps, n);
	}
	PACK_ROWS(b, loss_cols, s->losses, s->n_losses);
}

/* ---- reading ---- */

struct unpack {
	struct rec *r;
	struct snapshot *s; /* NULL until the config has been read */
	struct gpuq_arena *mem; /* lives as long as the snapshot: sealing reads borrowed data */
	struct gpuq_arena first; /* until there is a snapshot */
	bool no_memory;
};

/* Return zeroed memory for n items and one more, so that an empty list is not NULL; NULL fails the
 * record. */
static void *make(struct unpack *u, size_t n, size_t size)
{
	void *p = gpuq_arena_calloc(u->mem, n + 1, size);

	if (!p)
		u->no_memory = u->r->bad = true;
	return p;
}

/* Read a string, or NULL where the record has none. Lengths are bounded and no NUL may be inside:
 * records may come from anywhere. */
static const char *unpack_str(struct unpack *u)
{
	size_t n;
	const char *s = rec_get_str(u->r, &n);
	char *p;

	if (!s)
		return NULL;
	if (n > GPUQ_SPEC_BYTES_MAX || memchr(s, '\0', n))
		u->r->bad = true;
	p = u->r->bad ? NULL : gpuq_arena_strndup(u->mem, s, n);
	if (!p)
		u->r->bad = true;
	return p;
}

/* Read a string that must be there. */
static const char *unpack_name(struct unpack *u)
{
	const char *s = unpack_str(u);

	if (!s)
		u->r->bad = true;
	return s ? s : "";
}

/* Set a field; a number outside its range fails the record. */
static void set_number(struct unpack *u, void *at, enum kind kind, int64_t v)
{
	switch (kind) {
	case K_I64:
		*(int64_t *)at = v;
		return;
	case K_U64:
		*(uint64_t *)at = (uint64_t)v;
		return;
	case K_U32:
		u->r->bad |= v < 0 || v > UINT32_MAX;
		*(uint32_t *)at = (uint32_t)v;
		return;
	case K_INT:
		u->r->bad |= v < INT32_MIN || v > INT32_MAX;
		*(int *)at = (int)v;
		return;
	case K_I16:
		u->r->bad |= v < INT16_MIN || v > INT16_MAX;
		*(int16_t *)at = (int16_t)v;
		return;
	case K_COUNT:
		u->r->bad |= v < 0 || v > UINT32_MAX;
		*(int64_t *)at = v < UINT32_MAX ? v : GPUQ_UNLIMITED;
		return;
	default:
		u->r->bad |= v < 0 || v > UINT8_MAX;
		*(uint8_t *)at = (uint8_t)v;
	}
}

/* Read one row; fields that the row lacks keep their value in obj. */
static void unpack_row(struct unpack *u, const struct col *cols, size_t n_cols, void *obj)
{
	uint32_t n = rec_get_array(u->r);

	for (uint32_t i = 0; i < n && !u->r->bad; i++) {
		void *at = i < n_cols ? (char *)obj + cols[i].offset : NULL;

		/* A field that a later release has appended. */
		if (!at)
			varint_skip(u->r);
		else if (cols[i].kind == K_STR)
			*(const char **)at = unpack_str(u);
		else if (cols[i].kind == K_BOOL)
			*(bool *)at = varint_get_bool(u->r);
		else if (cols[i].kind == K_NOT)
			*(bool *)at = !varint_get_bool(u->r);
		else if (cols[i].kind == K_INT_BOOL)
			*(int *)at = varint_get_bool(u->r);
		else
			set_number(u, at, cols[i].kind, rec_get_int(u->r));
	}
}

/* Read n rows, each zero where the record has no value. */
static void *unpack_rows(struct unpack *u, const struct col *cols, size_t n_cols, size_t size,
			 uint32_t *n)
{
	char *items;

	*n = rec_get_array(u->r);
	items = make(u, *n, size);
	for (uint32_t i = 0; items && i < *n && !u->r->bad; i++)
		unpack_row(u, cols, n_cols, items + i * size);
	return items;
}

#define UNPACK_ROWS(u, cols, type, n) ((type *)unpack_rows(u, COLS(cols), sizeof(type), n))

/* Read a list of strings into the arena; the count is bounded by the bytes that are left. */
static const char **unpack_strs(struct unpack *u, uint32_t *n)
{
	const char **items;

	*n = rec_get_array(u->r);
	items = make(u, *n, sizeof(*items));
	for (uint32_t i = 0; items && i < *n && !u->r->bad; i++)
		items[i] = unpack_name(u);
	return items;
}

/* The same as a list with its length. */
static struct gpuq_strlist unpack_list(struct unpack *u)
{
	uint32_t n;
	const char **items = unpack_strs(u, &n);

	return (struct gpuq_strlist){ items, n };
}

/* Read numbers below `below`, ascending where requested. */
static uint32_t *unpack_ints(struct unpack *u, uint32_t below, bool ascending, uint32_t *n)
{
	uint32_t *items;

	*n = rec_get_array(u->r);
	items = make(u, *n, sizeof(*items));
	for (uint32_t i = 0; items && i < *n && !u->r->bad; i++) {
		set_number(u, &items[i], K_U32, rec_get_int(u->r));
		u->r->bad |= items[i] >= below || (ascending && i > 0 && items[i] <= items[i - 1]);
	}
	return items;
}

/* Skip the rest of an object's array, which this release does not know. */
static void skip_rest(struct unpack *u, uint32_t n, uint32_t known)
{
	for (uint32_t i = known; i < n && !u->r->bad; i++)
		varint_skip(u->r);
	u->r->bad |= n < known;
}

/* Refuse the bytes unless this holds; what follows is then not read. */
static void bad_unless(struct unpack *u, bool holds)
{
	u->r->bad |= !holds;
}

/* Read the configuration, with which the snapshot begins to exist: what comes before it lives in
 * an arena of its own, which becomes the snapshot's. */
static void unpack_config(struct unpack *u)
{
	struct snap_config c;

	u->mem = &u->first;
	snapshot_config_default(&c);
	unpack_row(u, COLS(config_cols), &c);
	c.levels = unpack_strs(u, &c.n_levels);
	if (u->r->bad)
		return;
	u->s = snapshot_new(&c);
	if (!u->s) {
		u->no_memory = u->r->bad = true;
		return;
	}
	u->s->arena = u->first; /* it is empty, and the levels are in this one */
	u->mem = &u->s->arena;
}

/* Read a queue, whose shares are in the order of the flavors. */
static void unpack_queue(struct unpack *u)
{
	const uint32_t n = rec_get_array(u->r);
	struct snap_queue q;
	uint32_t n_shares;
	struct snap_share *shares;

	snapshot_queue_default(&q);
	unpack_row(u, COLS(queue_cols), &q);
	shares = UNPACK_ROWS(u, share_cols, struct snap_share, &n_shares);
	skip_rest(u, n, 2);
	bad_unless(u, q.name && n_shares == u->s->n_flavors + 2);
	q.shares = shares;
	if (!u->r->bad)
		snapshot_add_queue(u->s, &q);
}

/* Read a table of bytes, which is empty or of that size. */
static const uint8_t *unpack_table(struct unpack *u, size_t want)
{
	size_t n;
	const char *bytes = rec_get_str(u->r, &n);
	uint8_t *p;

	if (n == 0)
		return NULL;
	bad_unless(u, n == want);
	p = u->r->bad ? NULL : make(u, n, 1);
	if (p)
		memcpy(p, bytes, n);
	return p;
}

/* Read a node and check what indexes are made of, since the bytes may come from a file of a user.
 */
static void unpack_node(struct unpack *u)
{
	const uint32_t n = rec_get_array(u->r);
	struct snap_node node;
	uint32_t n_keys, n_vals;

	snapshot_node_default(&node);
	unpack_row(u, COLS(node_cols), &node);
	node.labels.keys = unpack_strs(u, &n_keys);
	node.labels.vals = unpack_strs(u, &n_vals);
	node.labels.n = n_keys;
	node.taints = UNPACK_ROWS(u, taint_cols, struct snap_taint, &node.n_taints);
	for (uint32_t i = 0; !u->r->bad && i < node.n_taints; i++)
		bad_unless(u, node.taints[i].key && node.taints[i].value && node.taints[i].effect);
	node.devices_in = UNPACK_ROWS(u, device_cols, struct snap_device, &node.n_devices);
	for (uint32_t i = 0; !u->r->bad && i < node.n_devices; i++)
		bad_unless(u, node.devices_in[i].serves <= SNAP_SERVES_PARTS);
	node.links = unpack_table(u, (size_t)node.n_devices * node.n_devices);
	node.numa = unpack_table(u, node.n_devices);
	node.mig = UNPACK_ROWS(u, mig_cols, struct snap_mig, &node.n_mig);
	for (uint32_t i = 0; !u->r->bad && i < node.n_mig; i++)
		bad_unless(u, node.mig[i].profile);
	if (n > 8)
		node.resources =
			UNPACK_ROWS(u, resource_cols, struct snap_resource, &node.n_resources);
	for (uint32_t i = 0; !u->r->bad && i < node.n_resources; i++)
		bad_unless(u, node.resources[i].name && node.resources[i].count >= 0 &&
				      node.resources[i].count <= SNAP_PLENTY &&
				      node.resources[i].foreign >= 0 &&
				      node.resources[i].foreign <= SNAP_PLENTY);
	if (n > 9)
		node.layouts = UNPACK_ROWS(u, layout_cols, struct snap_layout, &node.n_layouts);
	for (uint32_t i = 0; !u->r->bad && i < node.n_layouts; i++)
		bad_unless(u, node.layouts[i].name);
	skip_rest(u, n, n > 9 ? 10 : n > 8 ? 9 : 8);
	/* Earlier records do not say that a node is made up where it is not to be requested. */
	node.made_up |= node.closed || node.max_asks;
	bad_unless(u, node.run_us >= 0 && node.left_us >= 0);
	bad_unless(u, node.replicas <= SNAP_MILLI);
	bad_unless(u, node.slots <= SNAP_MILLI);
	bad_unless(u, node.name && n_keys == n_vals && node.n_devices <= SNAP_DEVICES_MAX &&
			      (node.flavor < u->s->n_flavors || node.n_devices == 0) &&
			      node.state >= SNAP_READY && node.state <= SNAP_PLANNED);
	if (!u->r->bad)
		snapshot_add_node(u->s, &node);
}

/* Read the terms of an affinity. */
static struct gpuq_term *unpack_terms(struct unpack *u, uint32_t *n)
{
	struct gpuq_term *terms;

	*n = rec_get_array(u->r);
	terms = make(u, *n, sizeof(*terms));
	for (uint32_t i = 0; terms && i < *n && !u->r->bad; i++) {
		uint32_t n_all;

		bad_unless(u, rec_get_array(u->r) == 2);
		terms[i].weight = rec_get_int(u->r);
		n_all = rec_get_array(u->r);
		terms[i].n = n_all;
		terms[i].all = make(u, n_all, sizeof(*terms[i].all));
		for (uint32_t k = 0; terms[i].all && k < n_all && !u->r->bad; k++) {
			bad_unless(u, rec_get_array(u->r) == 3);
			terms[i].all[k].key = unpack_name(u);
			terms[i].all[k].op = (int)rec_get_int(u->r);
			terms[i].all[k].values = unpack_list(u);
		}
	}
	return terms;
}

/* Read a group and check its amounts: the scheduler relies on whole devices where a pod has one or
 * more. */
static void unpack_group(struct unpack *u, struct snap_group *g)
{
	const uint32_t n = rec_get_array(u->r);

	g->pods_min = g->pods_max = 1;
	unpack_row(u, COLS(group_cols), g);
	g->required = unpack_terms(u, &g->n_required);
	g->preferred = unpack_terms(u, &g->n_preferred);
	g->n_tolerations = rec_get_array(u->r);
	g->tolerations = make(u, g->n_tolerations, sizeof(*g->tolerations));
	for (uint32_t i = 0; g->tolerations && i < g->n_tolerations && !u->r->bad; i++) {
		bad_unless(u, rec_get_array(u->r) == 4);
		g->tolerations[i].key = unpack_str(u);
		g->tolerations[i].exists = varint_get_bool(u->r);
		g->tolerations[i].value = unpack_str(u);
		g->tolerations[i].effect = unpack_str(u);
	}
	g->nodes = unpack_list(u);
	g->exclude = unpack_list(u);
	g->slices = UNPACK_ROWS(u, slice_cols, struct gpuq_slice, &g->n_slices);
	for (uint32_t i = 0; !u->r->bad && i < g->n_slices; i++)
		bad_unless(u, g->slices[i].level && g->slices[i].size > 0 &&
				      g->pods_min % g->slices[i].size == 0);
	if (n > 7)
		g->resources = UNPACK_ROWS(u, amount_cols, struct gpuq_amount, &g->n_resources);
	bad_unless(u, g->n_resources <= GPUQ_RESOURCES_MAX);
	for (uint32_t i = 0; !u->r->bad && i < g->n_resources; i++)
		bad_unless(u, g->resources[i].name && g->resources[i].count > 0 &&
				      g->resources[i].count <= SNAP_PLENTY);
	skip_rest(u, n, n > 7 ? 8 : 7);
	bad_unless(u, g->pods_min > 0 && g->pods_min <= g->pods_max &&
			      g->pods_max <= GPUQ_PODS_MAX && g->unit_pods <= g->pods_max &&
			      g->gpus_milli >= 0 &&
			      g->gpus_milli <= (int64_t)SNAP_DEVICES_MAX * SNAP_MILLI &&
			      (g->gpus_milli < SNAP_MILLI || g->gpus_milli % SNAP_MILLI == 0) &&
			      g->gpu_memory_bytes >= 0 && g->gpu_part_milli >= 0 &&
			      g->gpu_part_milli <= SNAP_MILLI && g->cpu_milli >= 0 &&
			      g->gpu_memory_least >= 0 &&
			      g->gpu_memory_least <= g->gpu_memory_bytes && g->memory_bytes >= 0);
}

/* Read how long a job waits for each of n flavors; none = NULL. */
static const int64_t *unpack_waits(struct unpack *u, uint32_t n)
{
	int64_t *waits = make(u, n, sizeof(*waits));
	const uint32_t has = rec_get_array(u->r);

	if (has == 0)
		return NULL;
	bad_unless(u, has == n);
	for (uint32_t i = 0; waits && i < n && !u->r->bad; i++) {
		waits[i] = rec_get_int(u->r);
		bad_unless(u, waits[i] >= 0);
	}
	return waits;
}

/* Read a request with its groups. */
static void unpack_request(struct unpack *u)
{
	const uint32_t n = rec_get_array(u->r);
	struct snap_request r = { .n_groups = 0 };
	struct snap_license_need *needs;
	struct snap_group *groups;

	unpack_row(u, COLS(request_cols), &r);
	r.flavors = unpack_strs(u, &r.n_flavors);
	needs = UNPACK_ROWS(u, need_cols, struct snap_license_need, &r.n_licenses);
	for (uint32_t i = 0; !u->r->bad && i < r.n_licenses; i++)
		bad_unless(u, needs[i].license < u->s->n_licenses && needs[i].count >= 0);
	r.licenses = needs;
	r.n_groups = rec_get_array(u->r);
	bad_unless(u, r.n_groups > 0 && r.n_groups <= GPUQ_GROUPS_MAX);
	groups = u->r->bad ? NULL : make(u, r.n_groups, sizeof(*groups));
	for (uint32_t i = 0; groups && i < r.n_groups && !u->r->bad; i++)
		unpack_group(u, &groups[i]);
	r.groups = groups;
	if (n > 4)
		r.waits_us = unpack_waits(u, r.n_flavors);
	if (n > 5)
		r.others = unpack_ints(u, u->s->n_requests, false, &r.n_others);
	bad_unless(u, r.n_others < GPUQ_MIG_TRIES_MAX);
	for (uint32_t i = 0; !u->r->bad && i < r.n_others; i++)
		bad_unless(u, u->s->requests[r.others[i]].n_groups == r.n_groups &&
				      u->s->requests[r.others[i]].n_flavors == r.n_flavors &&
				      u->s->requests[r.others[i]].n_others == 0);
	if (n > 6)
		r.in_order = varint_get_bool(u->r) && r.n_others > 0;
	skip_rest(u, n, n > 6 ? 7 : n > 5 ? 6 : n > 4 ? 5 : 4);
	if (!u->r->bad)
		snapshot_add_request(u->s, &r);
}

/* Read a job and check its state and the elements of its array, which ascend. */
static void unpack_job(struct unpack *u)
{
	const uint32_t n = rec_get_array(u->r);
	struct snap_job j;
	struct snap_range *ranges;

	snapshot_job_default(&j);
	unpack_row(u, COLS(job_cols), &j);
	j.exclude = unpack_ints(u, u->s->n_nodes, false, &j.n_exclude);
	ranges = UNPACK_ROWS(u, range_cols, struct snap_range, &j.n_ranges);
	for (uint32_t i = 0; !u->r->bad && i < j.n_ranges; i++)
		bad_unless(u, ranges[i].first >= 0 && ranges[i].first <= ranges[i].last &&
				      ranges[i].last <= (int32_t)GPUQ_ARRAY_INDEX_MAX &&
				      ranges[i].step > 0 &&
				      (i == 0 || ranges[i].first > ranges[i - 1].last));
	j.ranges = ranges;
	skip_rest(u, n, 3);
	bad_unless(u, j.state >= SNAP_PENDING && j.state <= SNAP_LEAVING && j.key.index >= -1 &&
			      j.gate < N_GPUQ_REASONS);
	if (!u->r->bad)
		snapshot_add_job(u->s, &j);
}

/* Read a pod that holds resources, or one of a nominated placement. Its job, node and group were
 * read before. */
static void unpack_alloc(struct unpack *u,
			 uint32_t (*add)(struct snapshot *s, const struct snap_alloc *a))
{
	const uint32_t n = rec_get_array(u->r);
	struct snap_alloc a = { .job = SNAP_NONE };
	const struct snapshot *s = u->s;

	unpack_row(u, COLS(alloc_cols), &a);
	a.devices = unpack_ints(u, SNAP_DEVICES_MAX, true, &a.n_devices);
	skip_rest(u, n, 2);
	bad_unless(u, a.job < s->n_jobs && a.node < s->n_nodes && a.milli >= 0 &&
			      a.milli <= SNAP_MILLI && a.device_memory_bytes >= 0 &&
			      a.charge_milli >= 0 &&
			      a.charge_milli <= (int64_t)SNAP_DEVICES_MAX * SNAP_MILLI);
	if (!u->r->bad)
		bad_unless(u, s->jobs[a.job].request < s->n_requests &&
				      a.group < s->requests[s->jobs[a.job].request].n_groups);
	if (!u->r->bad)
		add(u->s, &a);
}

/* Read each object of the next array. */
static void each(struct unpack *u, void (*one)(struct unpack *u))
{
	for (uint32_t n = rec_get_array(u->r); n > 0 && !u->r->bad; n--)
		one(u);
}

/* Read a flavor; one without a rate charges a device as one. */
static void unpack_flavor(struct unpack *u)
{
	struct snap_flavor f = { .rate_milli = SNAP_MILLI };
	uint32_t flavor;

	unpack_row(u, COLS(flavor_cols), &f);
	bad_unless(u, f.name);
	if (u->r->bad)
		return;
	flavor = snapshot_add_flavor(u->s, f.name, f.rank);
	snapshot_set_rate(u->s, flavor, f.rate_milli);
	if (f.grows)
		snapshot_set_grows(u->s, flavor);
}

/* Read a license. */
static void unpack_license(struct unpack *u)
{
	struct snap_license l = { .count = 0 };

	unpack_row(u, COLS(license_cols), &l);
	bad_unless(u, l.name);
	if (!u->r->bad)
		snapshot_add_license(u->s, l.name, l.count);
}

/* Read a cap of jobs and devices. */
static void unpack_cap(struct unpack *u)
{
	struct snap_cap c = { .code = GPUQ_R_LIMIT_QUEUE, .job_max_gpus_milli = GPUQ_UNLIMITED };

	unpack_row(u, COLS(cap_cols), &c);
	bad_unless(u, c.name && c.code > 0 && c.code < N_GPUQ_REASONS);
	if (!u->r->bad)
		snapshot_add_cap(u->s, &c);
}

/* Read which caps hold for some jobs together. */
static void unpack_capset(struct unpack *u)
{
	struct snap_capset set;
	uint32_t n;
	const uint32_t *caps = unpack_ints(u, u->s->n_caps, false, &n);

	bad_unless(u, n <= SNAP_CAPS_MAX);
	if (u->r->bad)
		return;
	for (uint32_t i = 0; i < SNAP_CAPS_MAX; i++)
		set.caps[i] = i < n ? caps[i] : SNAP_NONE;
	snapshot_add_capset(u->s, &set);
}

/* Read a user. */
static void unpack_user(struct unpack *u)
{
	const char *name = unpack_name(u);

	if (!u->r->bad)
		snapshot_user(u->s, name);
}

/* Read what a user has used in a queue. */
static void unpack_usage(struct unpack *u)
{
	struct snap_usage one = { .queue = SNAP_NONE };

	unpack_row(u, COLS(usage_cols), &one);
	bad_unless(u, one.queue < u->s->n_queues && one.user < u->s->n_users);
	if (!u->r->bad)
		snapshot_add_usage(u->s, one.queue, one.user, one.used);
}

/* Read a reservation with its nodes and users. */
static void unpack_reservation(struct unpack *u)
{
	const uint32_t n = rec_get_array(u->r);
	struct snap_reservation res = { .flavor = SNAP_NONE, .queue = SNAP_NONE };

	unpack_row(u, COLS(reservation_cols), &res);
	res.nodes = unpack_ints(u, u->s->n_nodes, false, &res.n_nodes);
	res.users = unpack_ints(u, u->s->n_users, false, &res.n_users);
	skip_rest(u, n, 3);
	bad_unless(u, res.name && res.gpus_milli >= 0 &&
			      (res.flavor == SNAP_NONE || res.flavor < u->s->n_flavors) &&
			      (res.queue == SNAP_NONE || res.queue < u->s->n_queues));
	if (!u->r->bad)
		snapshot_add_reservation(u->s, &res);
}

/* Read that one queue lost devices to another, within the last hour. */
static void unpack_loss(struct unpack *u)
{
	struct snap_loss one = { .queue = SNAP_NONE, .by_queue = SNAP_NONE };

	unpack_row(u, COLS(loss_cols), &one);
	bad_unless(u, one.queue < u->s->n_queues && one.by_queue < u->s->n_queues);
	if (!u->r->bad)
		snapshot_add_loss(u->s, &one);
}

static void unpack_held(struct unpack *u)
{
	unpack_alloc(u, snapshot_add_alloc);
}

static void unpack_promised(struct unpack *u)
{
	unpack_alloc(u, snapshot_add_promise);
}

int snapshot_unpack(struct rec *r, struct snapshot **out, struct gpuq_err *err)
{
	/* In the order in which snapshot_pack() writes them, after the configuration. */
	static void (*const parts[])(struct unpack * u) = {
		unpack_flavor,   unpack_license,     unpack_user,    unpack_queue, unpack_node,
		unpack_usage,    unpack_reservation, unpack_request, unpack_job,   unpack_held,
		unpack_promised, unpack_cap,         unpack_capset,  unpack_loss,
	};
	const size_t n_parts = sizeof(parts) / sizeof(parts[0]);
	struct unpack u = { .r = r, .first = GPUQ_ARENA_INIT(0) };
	const uint32_t n = rec_get_array(r);

	if (!r->bad)
		unpack_config(&u);
	/* The first records had no caps. */
	r->bad |= n < 13;
	for (size_t i = 0; i < n_parts && i + 2 < n && !r->bad; i++)
		each(&u, parts[i]);
	if (!r->bad && n > n_parts + 2)
		skip_rest(&u, n, (uint32_t)n_parts + 2);
	if (!r->bad) {
		*out = u.s;
		return 0;
	}
	if (u.s)
		snapshot_free(u.s);
	else
		gpuq_arena_done(&u.first);
	return u.no_memory ? gpuq_no_memory(err)
			   : gpuq_fail(err, GPUQ_ECORRUPT, "the snapshot is incomplete");
}
