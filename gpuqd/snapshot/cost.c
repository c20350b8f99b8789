#include "gpuqd/snapshot/cost.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "libgpuq/spec/profile.h"
#include "libgpuq/spec/resource.h"

/* Return the thousandths of a whole instance. */
static int64_t whole_milli(const char *profile)
{
	const struct gpuq_slices s = gpuq_profile_slices(profile);

	return (s.has * SNAP_MILLI + s.of - 1) / s.of;
}

int64_t cost_of_profile(const char *profile)
{
	const struct gpuq_slices s = gpuq_profile_slices(profile);
	const int64_t replicas = gpuq_profile_replicas(profile);
	const int64_t part = s.has * SNAP_MILLI / (s.of * replicas);

	/* The node tells which part of an instance they are. */
	if (gpuq_profile_is_any(profile))
		return GPUQ_PART_MIN_MILLI;
	if (replicas <= 1)
		return whole_milli(profile);
	return part > 0 ? part : 1;
}

int64_t cost_exact(const char *profile, int64_t count)
{
	const struct gpuq_slices s = gpuq_profile_slices(profile);
	const int64_t parts = s.of * gpuq_profile_replicas(profile);

	return count / parts * s.has * COST_EXACT + count % parts * s.has * COST_EXACT / parts;
}

int64_t cost_allowed(int64_t limit_milli)
{
	const int64_t most = cost_of_profile("1g.5gb") - 1, excess = limit_milli / SNAP_MILLI;

	return amount_sum(limit_milli, excess < most ? excess : most);
}

int64_t cost_profile_mib(const char *profile)
{
	const char *p = strstr(profile, "g.");
	char *end;
	long gib;

	if (!p)
		return -1;
	gib = strtol(p + 2, &end, 10);
	return end > p + 2 && strncmp(end, "gb", 2) == 0 && gib > 0 && gib < 4096
		       ? gib * 1024 / gpuq_profile_replicas(profile)
		       : -1;
}

const char *cost_least_profile(const char *mig, const struct gpuq_strlist *more)
{
	for (size_t i = 0; mig && i < more->n; i++)
		if (cost_of_profile(more->items[i]) < cost_of_profile(mig))
			mig = more->items[i];
	return mig;
}

/* True if the only instances of one slice with that memory are those of twice the memory, of which a
 * card has four: of A100-80, H100-80, H200 and B200; on cards of 40 GB 1g.10gb is one as well. */
static bool is_double(const char *profile, const char *product)
{
	static const char *const doubles[] = { "1g.20gb", "1g.24gb", "1g.35gb", "1g.36gb",
					       "1g.45gb" };

	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
		if (strncmp(profile, doubles[i], strlen(doubles[i])) == 0)
			return true;
	if (strncmp(profile, "1g.10gb", 7) != 0)
		return false;
	for (; *product; product++)
		if (strncmp(product, "40GB", 4) == 0)
			return true;
	return false;
}

int64_t cost_instances(const char *profile, const char *product)
{
	const int64_t milli = whole_milli(profile);
	/* Three slices of compute have half of the memory, two a quarter, and four of seven are
	 * more than half. */
	const int64_t slots = milli > 500    ? 1
			      : milli > 400  ? 2
			      : milli > 250  ? 3
			      : milli == 250 ? 4
					     : 7;

	return (is_double(profile, product) ? 4 : slots) * gpuq_profile_replicas(profile);
}

/* Return the larger of a part and of the thousandths that its memory is of a device's. Beside a part the
 * latter are rounded down: three thirds of the memory are one device. */
static int64_t of_memory(int64_t bytes, int64_t of_bytes, int64_t part)
{
	int64_t share;

	if (bytes >= of_bytes)
		return SNAP_MILLI;
	if (part == 0)
		return snap_memory_milli(bytes, of_bytes);
	/* Amounts beyond 2^52 need not be exact to the byte. */
	for (; bytes > INT64_C(1) << 52; bytes >>= 1)
		of_bytes >>= 1;
	share = bytes * SNAP_MILLI / of_bytes;
	return share > part ? share : part;
}

int64_t cost_of_ask(const char *mig, int64_t gpus_milli, int64_t cores, int64_t bytes,
		    int64_t of_bytes)
{
	const int64_t n = gpus_milli / SNAP_MILLI;
	int64_t part = gpus_milli % SNAP_MILLI;

	if (mig)
		return amount_times(cost_of_profile(mig), n);
	if ((n > 0 && part > 0) || (cores == 0 && bytes == 0))
		return gpus_milli;
	if (amount_percent(cores) > part)
		part = amount_percent(cores);
	if (bytes > 0 && of_bytes > 0 && bytes <= of_bytes)
		part = of_memory(bytes, of_bytes, part);
	return part > 0 ? amount_times(part, n ? n : 1) : gpus_milli;
}

int64_t cost_of_share(const struct snap_group *g, const struct snap_node *n, int64_t part)
{
	if (g->mig || g->gpu_memory_bytes <= 0 || n->replicas > 1 || n->device_memory_bytes <= 0)
		return part;
	return of_memory(snap_memory_up(g->gpu_memory_bytes, n->unit_bytes), n->device_memory_bytes,
			 part);
}

int64_t cost_of_spec(const struct gpuq_spec *spec, int64_t of_bytes)
{
	int64_t milli = 0;

	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];

		const int64_t one =
			cost_of_ask(cost_least_profile(g->mig, &g->mig_more), g->gpus_milli,
				    g->gpu_cores, g->gpu_memory_bytes, of_bytes);
		/* The least of instances that may do counts less than most parts. */
		const int64_t least = amount_times(cost_of_profile("1g.5gb"),
						   g->gpus_milli > 1000 ? g->gpus_milli / 1000 : 1);

		milli = amount_sum(
			milli, amount_times(g->mig_ok && least < one ? least : one, g->pods_min));
		milli -= (g->pods_min - 1) * gpuq_group_shared_milli(g);
	}
	return milli;
}

/* Return the smallest memory of a device on the flavor, or on any; 0 = not known. */
static int64_t device_memory(const struct snapshot *s, uint32_t flavor)
{
	int64_t least = 0;

	for (uint32_t f = 0; f < s->n_flavors; f++) {
		const int64_t m = s->flavors[f].device_memory_bytes;

		if ((flavor == SNAP_NONE || f == flavor) && m > 0 && (least == 0 || m < least))
			least = m;
	}
	return least;
}

/* Return the part rounded up to a replica, where devices of the flavor (SNAP_NONE: of any) are offered
 * in such and it fits into one. */
static int64_t replica_of(const struct snapshot *s, uint32_t flavor, int64_t part)
{
	int64_t most = part;

	for (uint32_t f = 0; f < s->n_flavors; f++)
		if ((flavor == SNAP_NONE || f == flavor) && s->flavors[f].replicas > 1 &&
		    part * s->flavors[f].replicas <= SNAP_MILLI &&
		    snap_replica_milli(s->flavors[f].replicas) > most)
			most = snap_replica_milli(s->flavors[f].replicas);
	return most;
}

static bool is_by_memory(const struct snapshot *s, uint32_t flavor)
{
	bool any = false;

	for (uint32_t f = 0; f < s->n_flavors; f++)
		any |= (flavor == SNAP_NONE || f == flavor) && s->flavors[f].by_memory;
	return any;
}

/* Return the memory that a device of the flavor, or of any, gives for the request at most. */
static int64_t memory_up(const struct snapshot *s, uint32_t flavor, int64_t bytes)
{
	int64_t unit = 0;

	for (uint32_t f = 0; f < s->n_flavors; f++)
		if ((flavor == SNAP_NONE || f == flavor) && s->flavors[f].unit_bytes > unit)
			unit = s->flavors[f].unit_bytes;
	return snap_memory_up(bytes, unit);
}

int64_t cost_of_pod(const struct snapshot *s, const struct snap_group *g, uint32_t flavor)
{
	int64_t asked, memory, part;

	if (g->mig)
		return amount_times(cost_of_profile(g->mig), g->gpus_milli / SNAP_MILLI);
	if (g->gpu_memory_bytes == 0 && g->gpu_part_milli == 0)
		return snap_group_parts(g) ? replica_of(s, flavor, g->gpus_milli) : g->gpus_milli;
	memory = g->gpu_memory_bytes ? device_memory(s, flavor) : 0;
	asked = memory_up(s, flavor, g->gpu_memory_bytes);
	part = snap_group_part(g);
	if (part == 0 && memory <= 0) /* it fits on none */
		part = SNAP_MILLI;
	else if (part == 0 && asked < memory && is_by_memory(s, flavor))
		part = snap_memory_milli_down(asked, memory);
	else if (memory > 0) /* one that is too small does not serve it, but a larger one may */
		part = of_memory(asked < memory ? asked : memory, memory, part);
	if (snap_group_parts(g) == 1)
		return replica_of(s, flavor, part);
	return amount_times(part, snap_group_parts(g));
}

int64_t cost_of_request(const struct snapshot *s, const struct snap_request *r, uint32_t flavor)
{
	int64_t sum = 0;

	for (uint32_t g = 0; g < r->n_groups; g++)
		sum = amount_sum(sum, amount_times(cost_of_pod(s, &r->groups[g], flavor),
						   r->groups[g].pods_min));
	return sum;
}

int64_t cost_of_alloc(const struct snapshot *s, const struct snap_alloc *a)
{
	const struct snap_group *g = snap_group_of(s, a);

	if (a->shares)
		return a->charge_milli;
	if (!g->mig && snap_group_parts(g) && a->n_devices && a->milli)
		return (int64_t)a->n_devices * cost_of_share(g, &s->nodes[a->node], a->milli);
	return cost_of_pod(s, g, s->nodes[a->node].flavor);
}

uint32_t cost_flavor(const struct snapshot *s, const struct snap_alloc *pods, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct snap_request *r = &s->requests[s->jobs[pods[i].job].request];

		if (snap_group_at(r, pods[i].group)->gpus_milli > 0 ||
		    (pods[i].shares && pods[i].charge_milli > 0))
			return s->nodes[pods[i].node].flavor;
	}
	return SNAP_NONE;
}

int64_t cost_of_loss(const struct snapshot *s, const struct snap_job *j, int64_t gpus_milli)
{
	const int64_t from = j->checkpoint_us > j->start_us ? j->checkpoint_us : j->start_us;
	const int64_t now = s->config.now_us;
	const int64_t us = amount_sum(now > from ? now - from : 0, j->restart_cost_us);

	return amount_times(us / 1000, (gpus_milli + 99) / 100) / 10;
}
