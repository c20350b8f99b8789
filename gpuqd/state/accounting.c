#include "gpuqd/state/model_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/civil.h"
#include "gpuqd/util/fixed.h"
#include "libgpuq/units.h"
#include "libgpuq/spec/profile.h"

/* The book of days: charges of pods that have ended, and the devices lost to each cause. Every
 * amount is thousandths of devices x us / 1000, rounded down over the whole of an interval; the
 * days of the interval add up to it exactly. A pod's days are also recorded one by one
 * (TABLE_CHARGE), so that a report may begin at any instant. */

#define PROMISED_RECORDS_MAX 32 /* distinct instants at which its devices became free */
#define STRAND_CORE_MILLI 1000
#define STRAND_MEMORY_BYTES (INT64_C(1) << 30)

int64_t accounting_gpu_us(int64_t gpus_milli, int64_t from_us, int64_t to_us)
{
	const int64_t dt = to_us > from_us ? to_us - from_us : 0;

	return dt / 1000 * gpus_milli + dt % 1000 * gpus_milli / 1000;
}

/* Return the record of a day, made if there is none. Its members repeat what its key says, so that
 * readers need not parse it. */
struct usage *accounting_get(struct model *m, const unsigned char *bytes, size_t n)
{
	char part[CHANGE_KEY_BYTES_MAX];
	struct usage *u = NULL;

	HASH_FIND(hh, m->usages, bytes, n, u);
	if (u)
		return u;
	u = calloc(1, sizeof(*u) + n);
	if (!u)
		abort();
	u->len = (uint16_t)n;
	memcpy(u->bytes, bytes, n);
	account_key_part(bytes, n, 0, part, sizeof(part));
	u->queue = model_find_queue(m, part);
	account_key_part(bytes, n, 1, part, sizeof(part));
	u->user = model_intern(m, part);
	account_key_part(bytes, n, 2, part, sizeof(part));
	u->flavor = model_intern(m, part);
	account_key_part(bytes, n, 3, part, sizeof(part));
	u->day = civil_from_number(strtoll(part, NULL, 10));
	HASH_ADD_KEYPTR(hh, m->usages, u->bytes, n, u);
	return u;
}

void accounting_charge_site_changed(struct model *m)
{
	char name[CHANGE_KEY_BYTES_MAX];

	for (struct usage *u = m->usages; u; u = u->hh.next) {
		account_key_part(u->bytes, u->len, 0, name, sizeof(name));
		u->queue = model_find_queue(m, name);
	}
}

/* ---- one interval ---- */

/* Devices held for some interval, and what they are charged to. */
struct spell {
	const char *queue, *user, *flavor, *cluster;
	int64_t milli, price_micro,
		factor_milli; /* devices, their price at the start, and the factor of the qos */
};

/* Return the record that such devices are charged to on that day; it will be stored. */
static struct usage *day_of(struct model *m, const struct spell *s, int64_t day)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	char text[24];
	struct usage *u;

	snprintf(text, sizeof(text), "%08" PRId64, civil_number(day));
	u = accounting_get(
		m, key, change_key_strs(key, s->queue, s->user, s->flavor, text, s->cluster, NULL));
	u->dirty = m->usages_dirty = true;
	return u;
}

/* Multiply by thousandths, without overflow. */
static int64_t scaled(int64_t us, int64_t milli)
{
	return milli == 1000 ? us : us / 1000 * milli + us % 1000 * milli / 1000;
}

/* Charge the budgets of the queue and its ancestors. Sums already known of a period are kept up to
 * date, so that they need not be added up again. */
static void bill(const struct model *m, struct usage *u, int64_t us)
{
	u->billed_us += us;
	for (struct queue *q = u->queue; q; q = q->parent)
		if (q->spent_known && u->day >= q->spent_from)
			q->spent_us += scaled(us, account_rate_of(m, u->flavor));
}

/* Add GPU-time to what the day of the ledger has for this spell; the bill follows use and refunds,
 * and no other kind. */
static void charge_day(struct model *m, const struct spell *s, enum charge kind, int64_t day,
		       int64_t gpu_us)
{
	struct usage *u = gpu_us > 0 ? day_of(m, s, day) : NULL;

	if (!u)
		return;
	u->us[kind] += gpu_us;
	if (kind == CHARGE_USED) {
		u->cost_micro += price_cost(s->price_micro, gpu_us);
		bill(m, u, scaled(gpu_us, s->factor_milli));
	} else if (kind == CHARGE_REFUNDED) {
		bill(m, u, -scaled(gpu_us, s->factor_milli));
	}
}

/* Charge each day its own part. */
static void charge_spell(struct model *m, const struct spell *s, enum charge kind, int64_t from_us,
			 int64_t to_us)
{
	const int64_t total = accounting_gpu_us(s->milli, from_us, to_us);
	int64_t charged = 0, day = clock_day(m, from_us);

	for (; total && day < clock_day(m, to_us); day++) {
		/* Each is counted from the beginning of the interval: roundings do not add up. */
		const int64_t until =
			accounting_gpu_us(s->milli, from_us, clock_day_begins(m, day + 1));

		charge_day(m, s, kind, day, until - charged);
		charged = until;
	}
	charge_day(m, s, kind, day, total - charged);
}

/* Return what the use of a pod is charged by: the price and the factor that hold now, since a
 * spell never changes them afterwards. */
static struct spell spell_of(const struct model *m, const struct job *j, const struct node *n,
			     int64_t milli)
{
	const struct site_qos *qos = site_qos_find(m->site, j->qos);

	return (struct spell){ j->queue->name,
			       j->user,
			       j->life->flavor,
			       n ? n->cluster : CLUSTER_DEFAULT,
			       milli,
			       n ? price_micro(m->site, n->pool, j->life->flavor) : 0,
			       qos ? qos->usage_factor_milli : 1000 };
}

/* ---- what it holds beside devices ---- */

/* Use of countable resources and of MIG instances by ended pods. It is kept in the book of days beside that of
 * devices, under flavors called "FLAVOR=RESOURCE": budgets and prices know nothing of it. */

#define GIB (INT64_C(1) << 30)
#define KEY_ROOM 32 /* of a key, for the day, the cluster and separators */

const char *accounting_amount_name(const char *flavor)
{
	const char *at = strchr(flavor, '=');

	return at ? at + 1 : NULL;
}

/* Return thousandths: of GiB where the resource is in bytes. */
static int64_t amount_milli(const char *name, int64_t count)
{
	if (gpuq_resource_is_bytes(name))
		return count / GIB * 1000 + count % GIB * 1000 / GIB;
	return count < INT64_MAX / 1000 ? count * 1000 : INT64_MAX;
}

uint32_t accounting_amounts(const struct pod *p, char *names, struct gpuq_amount *out)
{
	const struct request_group *g = &p->job->request->spec.groups[p->group];
	char profile[GPUQ_PROFILE_ROOM];
	uint32_t n = 0;

	for (; n < g->n_resources && n < GPUQ_RESOURCES_MAX; n++)
		out[n] = (struct gpuq_amount){ g->resources[n].name,
					       amount_milli(g->resources[n].name,
							    g->resources[n].count) };
	if (model_pod_mig(p)) {
		snprintf(names, GPUQ_RESOURCE_NAME_MAX + 1, GPUQ_RESOURCE_MIG "%s",
			 gpuq_profile_name(model_pod_mig(p), profile));
		out[n++] = (struct gpuq_amount){ names, model_pod_instances(p) * 1000 };
	}
	return n;
}

static void add_to_day(struct model *m, const struct pod *p, const char *flavor, int64_t day,
		       int64_t us)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	char text[24];
	struct usage *u;

	if (us <= 0)
		return;
	snprintf(text, sizeof(text), "%08" PRId64, civil_number(day));
	u = accounting_get(m, key,
			   change_key_strs(key, p->job->queue->name, p->job->user, flavor, text,
					   p->node->cluster, NULL));
	u->us[CHARGE_USED] += us;
	u->dirty = m->usages_dirty = true;
}

/* Resources that are counted by name are accounted when the pod ends, once. */
static void amounts_ended(struct model *m, const struct pod *p, int64_t end_us)
{
	struct gpuq_amount list[GPUQ_RESOURCES_MAX + 1];
	char mig[GPUQ_RESOURCE_NAME_MAX + 1], flavor[CHANGE_KEY_BYTES_MAX];
	const uint32_t n = p->start_us ? accounting_amounts(p, mig, list) : 0;
	const size_t names = strlen(p->job->queue->name) + strlen(p->job->user);

	for (uint32_t i = 0; i < n; i++) {
		const int len = snprintf(flavor, sizeof(flavor), "%s=%s", p->job->life->flavor,
					 list[i].name);
		int64_t from = p->start_us;

		/* Names so long that a key would cut them are left out. */
		if ((size_t)len + names + KEY_ROOM > CHANGE_KEY_BYTES_MAX)
			continue;
		for (int64_t day = clock_day(m, from); from < end_us; day++) {
			const int64_t next = clock_day_begins(m, day + 1);
			const int64_t to = next < end_us ? next : end_us;

			add_to_day(m, p, flavor, day, accounting_gpu_us(list[i].count, from, to));
			from = to;
		}
	}
}

/* ---- devices that it took over ---- */

/* Return since when the pod is charged for its devices, of a time that begins then. */
static int64_t charged_from(const struct pod *p, int64_t from_us)
{
	return from_us > p->charged_us ? from_us : p->charged_us;
}

int64_t accounting_pod_us(const struct pod *p, int64_t from_us, int64_t to_us)
{
	return accounting_gpu_us(p->gpus_milli, charged_from(p, from_us), to_us) +
	       accounting_gpu_us(p->before_milli, from_us,
				 to_us < p->charged_us ? to_us : p->charged_us);
}

void accounting_charge_more(struct pod *p, int64_t at_us)
{
	const int64_t from = p->start_us ? p->start_us : p->placed_us;

	/* Devices that it took over before count on the average of that time. */
	p->before_milli = p->charged_us && at_us > from
				  ? accounting_pod_us(p, from, at_us) /
					    (at_us - from > 1000 ? (at_us - from) / 1000 : 1)
				  : p->gpus_milli;
	p->charged_us = at_us;
}

/* ---- what it used ---- */

void accounting_add_used(struct used_sum *to, const struct used_sum *from)
{
	to->n_cpu += from->n_cpu;
	to->cpu_us += from->cpu_us;
	if (from->memory_bytes > to->memory_bytes)
		to->memory_bytes = from->memory_bytes;
	to->busy_us += from->busy_us;
	to->measured_us += from->measured_us;
}

bool accounting_knows_used(const struct used_sum *s)
{
	return s->n_cpu || s->memory_bytes || s->measured_us;
}

/* Return what a pod used that ends, as far as it is known. */
static struct used_sum used_of(const struct pod *p, int64_t end_us)
{
	const struct used *u = p->used;
	struct used_sum s = { .n_cpu = 0 };

	if (!u)
		return s;
	s.n_cpu = u->cpu_us >= 0;
	s.cpu_us = s.n_cpu ? u->cpu_us : 0;
	s.memory_bytes = u->memory_bytes > 0 ? u->memory_bytes : 0;
	if (u->gpu_milli >= 0 && p->start_us && p->gpus_milli) {
		s.measured_us = accounting_pod_us(p, p->start_us, end_us);
		s.busy_us = scaled(s.measured_us, u->gpu_milli);
	}
	return s;
}

/* ---- a pod's own record ---- */

/* Return when all pods of its attempt ran, as far as this one shows; 0 = not yet. */
static int64_t ran_us(const struct pod *p)
{
	const int64_t all = p->attempt == p->job->attempt ? p->job->life->start_us : p->start_us;

	if (!p->start_us || !all)
		return 0;
	return all > p->start_us ? all : p->start_us;
}

/* Return the average number of devices stranded beside it. */
static int64_t strand_milli(const struct pod *p, int64_t to_us)
{
	const int64_t us = p->node->strand_us - p->strand_from_us, dt = to_us - p->placed_us;

	return us > 0 && dt > 0 ? (int64_t)fixed_div((fixed_u128)(uint64_t)us * 1000, (uint64_t)dt)
				: 0;
}

uint32_t accounting_of_pod(const struct pod *p, int64_t lost_us, int64_t end_us, bool refunded,
			   struct charged out[N_CHARGES])
{
	const int64_t ran = ran_us(p), starting = ran && ran < end_us ? ran : end_us;
	const int64_t before = p->charged_us < end_us ? p->charged_us : end_us;
	const int64_t start_us = charged_from(p, p->start_us), lost = charged_from(p, lost_us);
	const struct charged all[] = {
		{ CHARGE_USED, p->gpus_milli, start_us, p->start_us ? end_us : 0 },
		{ CHARGE_USED, p->before_milli, p->start_us, p->start_us ? before : 0 },
		{ CHARGE_REFUNDED, p->gpus_milli, lost, refunded && lost_us ? end_us : 0 },
		{ CHARGE_EVICTED, p->gpus_milli, lost, lost_us ? end_us : 0 },
		{ CHARGE_STARTING, p->gpus_milli, charged_from(p, p->placed_us), starting },
		{ CHARGE_STRANDED, strand_milli(p, end_us), p->placed_us, end_us },
	};
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].milli > 0 && all[i].to_us > all[i].from_us)
			out[n++] = all[i];
	return n;
}

/* Store the record of a pod's charges, under the days that it touches. */
static void mark_charges(struct model *m, const struct pod *p, const struct used_sum *used,
			 const struct charged *c, uint32_t n)
{
	const struct spell s = spell_of(m, p->job, p->node, p->gpus_milli);
	struct charges all = { .job = p->job->key,
			       .attempt = p->attempt,
			       .index = p->index,
			       .queue = s.queue,
			       .user = s.user,
			       .flavor = s.flavor,
			       .cluster = s.cluster,
			       .price_micro = s.price_micro,
			       .isolation = p->job->request ? model_pod_isolation(p)
							    : ISOLATION_NO_DEVICES,
			       .first_day = INT64_MAX,
			       .last_day = INT64_MIN,
			       .used = *used,
			       .n = n };
	char mig[GPUQ_RESOURCE_NAME_MAX + 1];

	for (uint32_t i = 0; i < n; i++) {
		const int64_t first = clock_day(m, c[i].from_us);
		const int64_t last = clock_day(m, c[i].to_us - 1);

		all.first_day = first < all.first_day ? first : all.first_day;
		all.last_day = last > all.last_day ? last : all.last_day;
	}
	if (p->job->request)
		all.n_amounts = accounting_amounts(p, mig, all.amounts);
	for (uint32_t i = 0; i < all.n_amounts; i++)
		all.amounts[i].name = model_intern(m, all.amounts[i].name);
	if (n)
		marks_charges(m, &all, c);
}

void accounting_charge_pod_ended(struct model *m, struct pod *p, int64_t end_us)
{
	struct charged c[N_CHARGES];
	struct spell s = spell_of(m, p->job, p->node, 0);
	struct gpuq_amount amounts[GPUQ_RESOURCES_MAX + 1];
	char mig[GPUQ_RESOURCE_NAME_MAX + 1];
	const struct used_sum used = used_of(p, end_us);
	const bool knows = accounting_knows_used(&used);
	uint32_t n;

	accounting_charge_strand(m, p->node);
	amounts_ended(m, p, end_us);
	if (knows)
		accounting_add_used(&day_of(m, &s, clock_day(m, end_us - 1))->used, &used);
	/* Only devices are billed. */
	if (p->gpus_milli == 0) {
		c[0] = (struct charged){ CHARGE_USED, 0, p->start_us, end_us };
		if (p->start_us && p->start_us < end_us &&
		    (knows || accounting_amounts(p, mig, amounts) > 0))
			mark_charges(m, p, &used, c, 1);
		return;
	}
	n = accounting_of_pod(p, 0, end_us, false, c);
	for (uint32_t i = 0; i < n; i++) {
		s.milli = c[i].milli;
		charge_spell(m, &s, c[i].kind, c[i].from_us, c[i].to_us);
	}
	if (n)
		day_of(m, &s, clock_day(m, end_us - 1))->n_pods++;
	mark_charges(m, p, &used, c, n);
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i] < p->node->n_devices)
			p->node->devices[p->devices[i]].freed_us = end_us;
}

/* ---- losses of an attempt ---- */

/* Return since when a pod's work is lost; 0 = none is. */
static int64_t lost_since(const struct job *j, const struct pod *p)
{
	const int64_t every = j->wish->checkpoint_every_us;
	const int64_t until =
		j->life->leave_us && j->life->leave_us < p->end_us ? j->life->leave_us : p->end_us;
	int64_t from = j->life->start_us;

	/* Signalled, it saved itself within the grace period that it had requested. */
	if (p->exit_code == JOB_EXIT_SAVED ||
	    (p->exit_code == 0 && j->life->leave_us && j->wish->grace_us))
		return 0;
	/* With checkpoints only the time since the last one is lost. */
	if (every > 0 && from && until - from >= every)
		from = until - (until - from) % every;
	return from > p->start_us ? from : p->start_us;
}

/* True if the loss is not the job's own doing. */
static bool is_refunded(enum gpuq_cause c)
{
	return job_cause_is_eviction(c) || c == GPUQ_CAUSE_INFRA || c == GPUQ_CAUSE_YIELD ||
	       c == GPUQ_CAUSE_ADMIN;
}

void accounting_charge_attempt_lost(struct model *m, const struct job *j, enum gpuq_cause cause)
{
	struct pod *p;

	if (!is_refunded(cause))
		return;
	DL_FOREACH2(j->pods, p, job_next) {
		struct spell s = spell_of(m, j, p->node, p->gpus_milli);
		struct charged c[N_CHARGES];
		struct used_sum used;
		int64_t since;

		if (p->attempt != j->attempt || p->dropped || !p->start_us || !p->gpus_milli)
			continue;
		since = lost_since(j, p);
		if (!since || since >= p->end_us)
			continue;
		since = charged_from(p, since);
		charge_spell(m, &s, CHARGE_EVICTED, since, p->end_us);
		charge_spell(m, &s, CHARGE_REFUNDED, since, p->end_us);
		account_refund(m, p, since, p->end_us, m->now_us);
		/* The pod's record is replaced by one that includes the loss. */
		used = used_of(p, p->end_us);
		mark_charges(m, p, &used, c, accounting_of_pod(p, since, p->end_us, true, c));
	}
}

/* ---- charges of pending jobs ---- */

/* True if a pod of gpuq still has the device. */
static bool is_taken(const struct node *n, uint16_t device)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] == device)
				return true;
	return false;
}

int64_t accounting_promised_since(const struct promise *p, const struct node *n, uint16_t device)
{
	int64_t freed;

	if (device >= n->n_devices || is_taken(n, device))
		return 0;
	freed = n->devices[device].freed_us;
	return freed > p->at_us ? freed : p->at_us;
}

/* Mark charges since then, under a number that no pod has. */
static void mark_waited(struct model *m, const struct job *j, const struct spell *s,
			int64_t since_us, uint32_t number, const struct charged *c, uint32_t n)
{
	const struct charges all = { .job = j->key,
				     .attempt = (uint32_t)(since_us / GPUQ_US_PER_S),
				     .index = number,
				     .queue = s->queue,
				     .user = s->user,
				     .flavor = s->flavor,
				     .cluster = s->cluster,
				     .isolation = ISOLATION_NO_DEVICES,
				     .first_day = clock_day(m, since_us),
				     .last_day = clock_day(m, m->now_us),
				     .n = n };

	if (n)
		marks_charges(m, &all, c);
}

void accounting_charge_promise(struct model *m, const struct job *j)
{
	struct charged c[PROMISED_RECORDS_MAX];
	struct spell s = spell_of(m, j, NULL, 0);
	uint32_t n_records = 0;

	s.flavor = j->life->promise->flavor;
	for (uint32_t i = 0; m->now_us && i < j->life->promise->n_pods; i++) {
		const struct promised_pod *pp = &j->life->promise->pods[i];
		const struct node *n = model_find_node(m, pp->node);

		for (uint32_t k = 0; n && k < pp->n_devices; k++) {
			const int64_t since =
				accounting_promised_since(j->life->promise, n, pp->devices[k]);
			struct charged *last = n_records ? &c[n_records - 1] : NULL;

			s.milli = pp->gpus_milli / pp->n_devices;
			if (!since || since >= m->now_us)
				continue;
			charge_spell(m, &s, CHARGE_HELD, since, m->now_us);
			/* Devices freed at the same instant share a record; when all are in use,
			 * the last one takes the rest. */
			if (last && (last->from_us == since || n_records == PROMISED_RECORDS_MAX))
				last->milli += s.milli;
			else
				c[n_records++] =
					(struct charged){ CHARGE_HELD, s.milli, since, m->now_us };
		}
	}
	mark_waited(m, j, &s, j->life->promise->at_us, LEDGER_PROMISED, c, n_records);
}

void accounting_charge_apart(struct model *m, const struct job *j)
{
	const struct charged c = { CHARGE_FRAGMENTED, j->life->apart->milli,
				   j->life->apart->since_us, m->now_us };
	struct spell s = spell_of(m, j, NULL, c.milli);

	s.flavor = j->life->apart->flavor;
	charge_spell(m, &s, c.kind, c.from_us, c.to_us);
	mark_waited(m, j, &s, c.from_us, LEDGER_APART, &c, c.to_us > c.from_us);
}

void accounting_set_apart(struct model *m, struct job *j, const char *flavor, int64_t milli)
{
	struct life *l;

	/* Close the present charge at its amount before another begins. */
	if (j->life->apart) {
		accounting_charge_apart(m, j);
		m->n_apart--;
	}
	l = job_life(j);
	free(l->apart);
	l->apart = NULL;
	if (milli > 0) {
		l->apart = must(malloc(sizeof(*l->apart)));
		*l->apart = (struct apart){ model_intern(m, flavor), milli, m->now_us };
		m->n_apart++;
	}
	model_job_dirty(m, j);
}

void accounting_node_left(const struct node *n, int64_t *cpu_milli, int64_t *memory_bytes,
			  int64_t *pods)
{
	const struct pod *p;

	*cpu_milli = n->fact.cpu_milli - n->foreign_cpu_milli;
	*memory_bytes = n->fact.memory_bytes - n->foreign_memory_bytes;
	*pods = n->fact.max_pods ? n->fact.max_pods - n->foreign_pods : INT64_MAX;
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p)) {
			*cpu_milli -= p->cpu_milli;
			*memory_bytes -= p->memory_bytes;
			--*pods;
		}
}

const char *accounting_node_stranded(const struct node *n, int64_t *milli)
{
	int64_t cpu, memory, slots, gpus = -n->foreign_gpus_milli;
	const struct pod *p;

	*milli = 0;
	if (n->gone || !n->fact.ready || n->drain || n->fact.unschedulable || n->ill)
		return NULL;
	for (uint32_t i = 0; i < n->n_devices; i++)
		gpus += n->devices[i].healthy ? 1000 : 0;
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p))
			gpus -= p->n_devices ? p->gpus_milli : 0; /* instances are not devices */
	accounting_node_left(n, &cpu, &memory, &slots);
	/* Devices are stranded where no pod could use them: less than a core or a gigabyte is left,
	 * or no slot. */
	if (gpus <= 0 || (cpu >= STRAND_CORE_MILLI && memory >= STRAND_MEMORY_BYTES && slots > 0))
		return NULL;
	*milli = gpus;
	return slots <= 0 ? "pods" : cpu < STRAND_CORE_MILLI ? "cpu" : "memory";
}

void accounting_charge_strand(struct model *m, struct node *n)
{
	const int64_t dt = m->now_us - n->strand_at_us;
	const struct pod *p;

	/* The loss is divided equally among the pods that were there. */
	if (n->strand_at_us && dt > 0 && n->n_strands && n->stranded_milli)
		n->strand_us += accounting_gpu_us(n->stranded_milli, n->strand_at_us, m->now_us) /
				n->n_strands;
	n->strand_at_us = m->now_us;
	n->n_strands = 0;
	DL_FOREACH2(n->pods, p, node_next)
		n->n_strands += model_pod_takes(p);
	if (n->n_strands == 0 || !accounting_node_stranded(n, &n->stranded_milli))
		n->stranded_milli = 0;
}

/* ---- grants ---- */

void accounting_charge_grant(struct model *m, const char *queue, int64_t gpu_us)
{
	/* Grants belong to the queue, whatever cluster its jobs run on. */
	const struct spell s = { .queue = queue, .user = "", .flavor = "", .cluster = "" };
	struct usage *u = day_of(m, &s, clock_day(m, m->now_us));

	u->billed_us -= gpu_us;
	if (u->queue && u->queue->spent_known && u->day >= u->queue->spent_from)
		u->queue->granted_us += gpu_us;
}

int accounting_apply_expired(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	for (size_t i = 0; i < ev->charges.n; i++)
		change_batch_put(&m->direct, TABLE_CHARGE, ev->charges.keys[i].bytes,
				 ev->charges.keys[i].len, NULL, 0);
	/* Set with the first of them: a day is read either record by record or as a whole. */
	if (ev->charges.first_day > m->charges_from) {
		m->charges_from = ev->charges.first_day;
		m->meta_dirty = true;
	}
	return 0;
}
