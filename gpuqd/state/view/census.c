#include "gpuqd/state/view/census.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/snapshot/displaced.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/state/cuts/foreign_part.h"
#include "gpuqd/state/view/cards.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/walltime.h"

const char *const census_words[N_CENSUS_KINDS] = {
	[CENSUS_ALLOCATED] = "allocated", [CENSUS_HELD] = "held",
	[CENSUS_RESERVED] = "reserved",   [CENSUS_FREE] = "free",
	[CENSUS_STRANDED] = "stranded",   [CENSUS_DRAINING] = "draining",
	[CENSUS_LOST] = "lost",           [CENSUS_PROVISIONING] = "provisioning",
};

const char *const census_causes[N_CENSUS_CAUSES] = { "cpu",    "memory", "pods",   "suspect",
						     "frozen", "mig",    "refused" };

/* Assume what the kubelet refuses on the last devices of which something is free. */
static void refuse_slots(const struct node *n, int64_t now_us, struct census_slot *slots)
{
	const int64_t r = n->fact.replicas > 1 ? n->fact.replicas : 1;
	int64_t left = n->fact.device && *n->fact.device
			       ? node_lacks(n, n->fact.device, now_us) * (1000 / r)
			       : 0;

	for (uint32_t i = n->n_devices; i-- > 0 && left > 0;) {
		const int64_t rest = 1000 - slots[i].taken_milli;

		if (rest <= 0 || !n->devices[i].healthy || (r == 1 && rest < 1000))
			continue;
		slots[i].refused_milli = rest < left ? rest : left;
		left -= slots[i].refused_milli;
	}
}

/* Assume so much of unnamed devices of foreign pods on the highest ones not in use, as in the snapshot. */
static void assume(const struct node *n, struct census_slot *slots, int64_t milli)
{
	for (uint32_t i = n->n_devices; i-- > 0 && milli > 0;)
		if (slots[i].taken_milli == 0) {
			slots[i].taken_milli = milli < 1000 ? milli : 1000;
			milli -= slots[i].taken_milli;
		}
}

/* Parts that are counted in units of memory are a little less than what they are of the device. */
static void round_up(const struct node *n, struct census_slot *slots)
{
	for (uint32_t i = 0; n->backend && n->backend->by_memory && i < n->n_devices; i++) {
		const int64_t rest = 1000 - slots[i].taken_milli;

		if (rest > 0 && rest * n->devices[i].memory_mib < 1000 * n->backend->unit_mib)
			slots[i].rounding_milli = rest;
	}
}

void census_slots(const struct node *n, int64_t now_us, struct census_slot *slots)
{
	const struct pod *p;
	int64_t rest = foreign_rest(n);

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] < n->n_devices)
				slots[p->devices[i]].taken_milli += p->gpus_milli / p->n_devices;
	for (uint32_t i = 0; i < n->n_devices; i++) {
		slots[i].own_milli = slots[i].taken_milli;
		slots[i].taken_milli += n->foreign_on[i].milli;
	}
	for (uint32_t i = 0; i < n->n_strangers; i++)
		assume(n, slots, foreign_stranger_milli(n, i, &rest));
	assume(n, slots, rest);
	if (n->pods)
		assume(n, slots,
		       displaced_instances(n) + (n->n_offered ? displaced_devices(n) : 0));
	round_up(n, slots);
	refuse_slots(n, now_us, slots);
}

/* Jobs with nominated placements: few. */
struct promised {
	struct promised *next; /* of the same node */
	const struct promise *promise;
};

/* List the nominated placements. False without memory. */
static bool find_promised(const struct model *m, struct gpuq_arena *a, struct promised **list)
{
	*list = NULL;
	for (struct job *j = m->n_promises ? m->jobs : NULL; j; j = j->next) {
		struct promised *one;

		if (!j->life->promise)
			continue;
		one = gpuq_arena_alloc(a, sizeof(*one));
		if (!one)
			return false;
		*one = (struct promised){ *list, j->life->promise };
		*list = one;
	}
	return true;
}

/* Add what nominated placements take of the devices of a node. */
static void fill_promised(const struct promised *list, const struct node *n,
			  struct census_slot *slots)
{
	for (; list; list = list->next)
		for (uint32_t i = 0; i < list->promise->n_pods; i++) {
			const struct promised_pod *pp = &list->promise->pods[i];

			if (strcmp(pp->node, n->name) != 0)
				continue;
			for (uint32_t k = 0; k < pp->n_devices; k++)
				if (pp->devices[k] < n->n_devices)
					slots[pp->devices[k]].promised_milli +=
						pp->gpus_milli / pp->n_devices;
		}
}

/* ---- reservations ---- */

/* True if the reservation is in effect now; now_us is ledger time. */
static bool is_on(const struct model *m, const struct site_reservation *r, int64_t now_us)
{
	const int64_t wall_us = walltime_of(now_us, m->ahead_us);
	const int64_t start_us = site_reservation_start(r, wall_us);

	return wall_us >= start_us && wall_us - start_us < r->duration_us;
}

/* True if the reservation is for this node: by name, or by its pool where it names no nodes and no
 * amount. */
static bool named(const struct site_reservation *r, const struct node *n)
{
	return gpuq_strlist_has(&r->nodes, n->name) ||
	       (r->nodes.n == 0 && r->gpus_milli <= 0 && r->pool && strcmp(r->pool, n->pool) == 0);
}

const struct site_reservation *census_reservation(const struct model *m, const struct node *n,
						  int64_t now_us)
{
	site_each(site_reservation, m->site->reservations, r)
		if (named(r, n) && is_on(m, r, now_us))
			return r;
	return NULL;
}

/* Count what is idle under its reservation, too; NULL = of a node that is being cut. */
static void add_reserved(const struct model *m, const struct site_reservation *r, int64_t milli,
			 struct census *out)
{
	const struct site_reservation *all = m->site->reservations.items;

	out->milli[CENSUS_RESERVED] += milli;
	if (r)
		out->idle_milli[r - all] += milli;
}

/* True if q is the queue of that name, or below it. */
static bool below(const struct queue *q, const char *top)
{
	while (q && strcmp(q->name, top) != 0)
		q = q->parent;
	return q != NULL;
}

/* Reserve amounts anywhere: what the owning queue does not have yet, out of what is free. */
static void reserve_amounts(const struct model *m, int64_t now_us, struct census *out)
{
	site_each(site_reservation, m->site->reservations, r) {
		int64_t left = r->gpus_milli;

		if (!is_on(m, r, now_us) || r->nodes.n > 0 || left <= 0)
			continue;
		for (uint32_t i = 0; r->queue && i < m->n_queues; i++)
			left -= below(m->queues[i], r->queue) ? m->queues[i]->allocated_milli : 0;
		if (left > out->milli[CENSUS_FREE])
			left = out->milli[CENSUS_FREE];
		if (left <= 0)
			continue;
		out->milli[CENSUS_FREE] -= left;
		add_reserved(m, r, left, out);
	}
}

/* ---- the count ---- */

const char *census_stranded(const struct node *n, int64_t now_us)
{
	int64_t milli;

	if (n->frozen)
		return "frozen";
	if (n->backoff_until_us > now_us)
		return "suspect";
	return accounting_node_stranded(n, &milli);
}

/* Return what devices of the node count as that no job of gpuq has. */
static enum census_kind kind_of(const struct model *m, const struct node *n, int64_t now_us)
{
	return ask_node_is_kept(m, n)                        ? CENSUS_PROVISIONING
	       : n->drain || n->fact.unschedulable || n->ill ? CENSUS_DRAINING
	       : cut_is_under_way(n)                         ? CENSUS_RESERVED
	       : census_stranded(n, now_us)                  ? CENSUS_STRANDED
	       : census_reservation(m, n, now_us)            ? CENSUS_RESERVED
							     : CENSUS_FREE;
}

/* Count stranded devices under their cause. */
static void add_stranded(struct census *out, const char *cause, int64_t milli)
{
	for (int i = 0; i < N_CENSUS_CAUSES; i++)
		if (strcmp(census_causes[i], cause) == 0)
			out->stranded_milli[i] += milli;
}

/* Count cards that are cut into instances. */
static void add_cards(const struct model *m, const struct node *n, enum census_kind rest,
		      int64_t now_us, struct census *out)
{
	const struct cards c = cards_of(n);
	const int64_t refused = rest == CENSUS_DRAINING || rest == CENSUS_STRANDED
					? 0
					: cards_refused(n, &c, now_us);
	const int64_t left = c.cut_milli - c.taken_milli - refused;

	out->total_milli += c.total_milli;
	if (n->gone || (!n->fact.ready && rest != CENSUS_PROVISIONING)) {
		out->milli[CENSUS_LOST] += c.total_milli;
		return;
	}
	out->milli[CENSUS_ALLOCATED] += c.taken_milli;
	out->milli[CENSUS_STRANDED] += c.total_milli - c.cut_milli;
	add_stranded(out, "mig", c.total_milli - c.cut_milli);
	out->milli[CENSUS_STRANDED] += refused;
	add_stranded(out, "refused", refused);
	if (rest == CENSUS_RESERVED)
		add_reserved(m, census_reservation(m, n, now_us), left, out);
	else
		out->milli[rest] += left;
	if (rest == CENSUS_STRANDED)
		add_stranded(out, census_stranded(n, now_us), left);
}

bool census_take(const struct model *m, int64_t now_us, struct gpuq_arena *a, struct census *out)
{
	struct promised *promised;

	memset(out, 0, sizeof(*out));
	out->idle_milli = gpuq_arena_calloc(a, m->site->reservations.n + 1, sizeof(int64_t));
	if (!out->idle_milli || !find_promised(m, a, &promised))
		return false;
	node_each(m, n) {
		struct census_slot *slots = gpuq_arena_calloc(a, n->n_devices + 1, sizeof(*slots));
		const enum census_kind rest = kind_of(m, n, now_us);

		if (!slots)
			return false;
		if (n->fact.n_mig)
			add_cards(m, n, rest, now_us, out);
		census_slots(n, now_us, slots);
		fill_promised(promised, n, slots);
		for (uint32_t i = 0; i < n->n_devices; i++) {
			const int64_t taken =
				slots[i].taken_milli > 1000
					? 1000
					: slots[i].taken_milli + slots[i].rounding_milli;
			int64_t held = slots[i].promised_milli, refused, rest_milli;

			/* A device nominated for one job may still be in use by another: each
			 * thousandth is counted once. */
			held = held > 1000 - taken ? 1000 - taken : held;
			out->total_milli += 1000;
			if (n->gone || (!n->fact.ready && rest != CENSUS_PROVISIONING)) {
				out->milli[CENSUS_LOST] += 1000;
				continue;
			}
			/* One with a taint is allocated to a pod that tolerates it. */
			if (!n->devices[i].healthy) {
				const int64_t own =
					slots[i].own_milli > 1000 ? 1000 : slots[i].own_milli;

				out->milli[CENSUS_ALLOCATED] += own;
				out->milli[CENSUS_LOST] += 1000 - own;
				continue;
			}
			/* No job will start there, so nothing is held for it. */
			if (rest == CENSUS_DRAINING)
				held = 0;
			out->milli[CENSUS_ALLOCATED] += taken;
			out->milli[CENSUS_HELD] += held;
			refused = rest == CENSUS_DRAINING || rest == CENSUS_STRANDED
					  ? 0
					  : slots[i].refused_milli;
			refused = refused > 1000 - taken - held ? 1000 - taken - held : refused;
			rest_milli = 1000 - taken - held - refused;
			out->milli[CENSUS_STRANDED] += refused;
			add_stranded(out, "refused", refused);
			if (rest == CENSUS_RESERVED)
				add_reserved(m, census_reservation(m, n, now_us), rest_milli, out);
			else
				out->milli[rest] += rest_milli;
			if (rest == CENSUS_STRANDED)
				add_stranded(out, census_stranded(n, now_us), rest_milli);
		}
	}
	reserve_amounts(m, now_us, out);
	return true;
}

/* True if it is known which devices it has: until the plugin of its node has chosen them, pods of a node are planned
 * where there may be no room after all. */
static bool is_settled(const struct pod *p)
{
	const struct backend *b = p->node->backend;

	return model_pod_takes(p) && (!b || !b->choose || model_pod_devices_known(p));
}

/* Return the bytes of a device's memory that a pod holds, as the node's backend gives them out. */
static int64_t memory_of(const struct pod *p, const struct device *d)
{
	const struct request *r = p->job->request;
	const struct backend *b = p->node->backend;
	const int64_t milli = p->gpus_milli / p->n_devices;
	const int64_t unit = b && b->unit_mib ? b->unit_mib << 20 : 1;
	const int64_t asked = r ? r->spec.groups[p->group].gpu_memory_bytes : 0;

	if (milli >= 1000 || (b && b->by_replica) || asked <= 0)
		return backend_gives_mib(b, 0, milli, d->memory_mib) << 20;
	return asked / unit * unit + (asked % unit ? unit : 0);
}

/* Return the thousandths of its cores: of memory alone, which is counted as well, those that it cannot be less than. */
static int64_t cores_of(const struct pod *p)
{
	const struct request *r = p->job->request;
	const int64_t own = model_pod_cores(p);
	const int64_t least =
		r && !p->mig ? model_share_cores(p->node, &r->spec.groups[p->group], 1000) : own;

	return least < own ? least : own;
}

/* Sum up what the pods of a node hold of one of its devices. */
struct held {
	int64_t milli, bytes;
};

static struct held held_of(const struct node *n, uint32_t device)
{
	struct held sum = { 0 };
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t k = 0; is_settled(p) && k < p->n_devices; k++)
			if (p->devices[k] == device) {
				sum.milli += cores_of(p);
				sum.bytes =
					amount_sum(sum.bytes, memory_of(p, &n->devices[device]));
			}
	return sum;
}

/* Cores are compared with cores and memory with memory: the charge of a pod is the larger of its two shares. */
static int check_device(const struct node *n, const struct pod *p, uint32_t device,
			struct gpuq_err *err)
{
	const struct held sum = held_of(n, device);
	const int64_t mib = n->devices[device].memory_mib;

	if (sum.milli > 1000)
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "device %u is given away more than once: %" PRId64
				 " thousandths of it, to job %" PRIu32 " and others",
				 device, sum.milli, p->job->key.id);
	if (mib > 0 && sum.bytes > mib << 20)
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "the memory of device %u is given away more than once: %" PRId64
				 " of %" PRId64 " MiB, to job %" PRIu32 " and others",
				 device, (sum.bytes - 1) / (1 << 20) + 1, mib, p->job->key.id);
	return 0;
}

int census_check(const struct node *n, struct gpuq_err *err)
{
	const struct pod *p;
	int rc;

	DL_FOREACH2(n->pods, p, node_next) {
		if (!is_settled(p) || p->n_devices == 0)
			continue;
		if (p->gpus_milli <= 0 || p->gpus_milli / p->n_devices > 1000)
			return gpuq_fail(err, GPUQ_ECORRUPT,
					 "job %" PRIu32 " has %" PRId64 " thousandths of %" PRIu32
					 " devices",
					 p->job->key.id, p->gpus_milli, p->n_devices);
		for (uint32_t i = 0; i < p->n_devices; i++) {
			if (p->devices[i] >= n->n_devices)
				return gpuq_fail(err, GPUQ_ECORRUPT,
						 "job %" PRIu32 " has device %u of %" PRIu32,
						 p->job->key.id, p->devices[i], n->n_devices);
			rc = check_device(n, p, p->devices[i], err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}
