#include <string.h>

#include "tests/prop/claims.h"
#include "tests/prop/prop_why.h"

static void add(const struct pc_pod *p, int cpu_each, int node, int *device, int *cpu)
{
	if (p->node != node)
		return;
	*cpu += cpu_each;
	for (int d = 0; d < p->n_devices; d++)
		device[p->devices[d]] += p->milli;
}

/* Twice: for the present, and for the time when all leaving pods have left and all nominated
 * placements are used. */
void pc_check_places(struct pc_world *w)
{
	for (int n = 0; n < PC_NODES; n++) {
		const struct pc_node *node = &w->pc->nodes[n];
		int now[PC_DEVICES] = { 0 }, later[PC_DEVICES] = { 0 }, cpu_now = 0, cpu_later = 0;

		for (int j = 0; j < PC_JOBS; j++) {
			const struct pc_live *l = &w->live[j];
			const int cpu = w->pc->jobs[j].cpu;

			for (int p = 0; p < l->n_pods; p++) {
				add(&l->pods[p], cpu, n, now, &cpu_now);
				if (l->pods[p].gone == 0)
					add(&l->pods[p], cpu, n, later, &cpu_later);
			}
			for (int p = 0; p < l->n_promise; p++)
				add(&l->promise[p], cpu, n, later, &cpu_later);
		}
		for (int d = 0; d < PC_DEVICES; d++) {
			const int most = d < node->gpus ? SNAP_MILLI : 0;

			if (now[d] > most)
				pc_wrong(w, "3: device %d of n%d is held %d times 1/1000", d, n,
					 now[d]);
			if (later[d] > most)
				pc_wrong(w, "17: device %d of n%d is promised %d times 1/1000", d,
					 n, later[d]);
		}
		if (node->cpu && (cpu_now > node->cpu || cpu_later > node->cpu))
			pc_wrong(w, "3: n%d has %d cores, %d are held and %d promised", n,
				 node->cpu, cpu_now, cpu_later);
	}
}

void pc_check_reasons(struct pc_world *w, const struct snapshot *s, const struct plan *p)
{
	int told[PC_JOBS] = { 0 };
	char text[120];

	if (!prop_why(s, p, told, text, sizeof(text)))
		pc_wrong(w, "26: %s", text);
	for (int j = 0; j < PC_JOBS; j++) {
		const struct pc_live *l = &w->live[j];
		const bool waits = l->state == PC_PENDING;

		if (waits != (told[j] > 0))
			pc_wrong(w, "26: job %d waits: %d, reasons: %d", j + 1, waits, told[j]);
	}
}

void pc_check_shares(struct pc_world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t q = 0; q < s->n_queues; q++) {
		for (uint32_t f = 0; f < s->n_flavors; f++) {
			const size_t at = (size_t)q * s->n_res + f;
			const int queue = s->queues[q].name[1] - '0';
			int64_t owed = s->shares[at].quota;

			if (owed != w->quota[queue][f])
				pc_wrong(w, "18: quota of q%d", queue);
			owed = owed < p->demand[at] ? owed : p->demand[at];
			if (p->fair_share[at] < owed || p->fair_share[at] > p->demand[at] ||
			    p->demand[at] > s->shares[at].limit)
				pc_wrong(w, "18: q%d: share %lld of demand %lld", queue,
					 (long long)p->fair_share[at], (long long)p->demand[at]);
			w->fair[queue][f] = p->fair_share[at];
		}
	}
}

/* True if x would have been served before y in their queue, and is as easy to serve. */
static bool stands_before(const struct pc_world *w, int x, int y)
{
	const struct pc_job *a = &w->pc->jobs[x], *b = &w->pc->jobs[y];

	if (a->queue != b->queue || a->preemptible != b->preemptible || a->min != b->min ||
	    a->max != b->max || a->milli != b->milli || a->cpu != b->cpu || a->flavor != b->flavor)
		return false;
	/* An evicted job has a higher rank than its age shows. */
	if (w->live[x].n_evicted != w->live[y].n_evicted)
		return false;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->round * 7 - a->submit != b->round * 7 - b->submit)
		return a->round * 7 - a->submit < b->round * 7 - b->submit;
	return x < y;
}

void pc_check_order(struct pc_world *w, const struct plan *p)
{
	bool served[PC_JOBS] = { false };

	for (uint32_t i = 0; i < p->n_actions; i++)
		if (p->actions[i].kind == PLAN_PLACE || p->actions[i].kind == PLAN_NOMINATE)
			served[p->actions[i].key.id - 1] = true;
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		const int job = (int)a->key.id - 1;

		if (a->kind != PLAN_PLACE || a->backfilled || w->live[job].owns)
			continue;
		for (int j = 0; j < PC_JOBS; j++)
			if (w->live[j].state == PC_PENDING && !w->live[j].owns && !served[j] &&
			    stands_before(w, j, job))
				pc_wrong(w, "28: job %d starts and job %d, before it, waits",
					 job + 1, j + 1);
	}
}

/* True if preemptions were reversed twice within the hour: reclaim between those queues may be
 * suspended then, whatever they are entitled to. */
static bool went_round(const struct pc_world *w)
{
	const int first = w->n_losses > PC_LOSSES ? w->n_losses - PC_LOSSES : 0;
	int n = 0;

	for (int i = first; i < w->n_losses; i++) {
		const struct pc_loss *l = &w->losses[i % PC_LOSSES];
		bool back = false;

		for (int k = first; k < i; k++)
			back |= w->losses[k % PC_LOSSES].job == l->by;
		n += back && w->now - l->at < 60 * PC_MINUTE;
	}
	return w->pc->belts && n >= 2;
}

void pc_check_rest(struct pc_world *w)
{
	const bool owes = w->pc->reclaim && !went_round(w);

	struct pc_unit owed[PC_UNITS];
	bool lends = false;

	for (int q = 0; q < PC_QUEUES; q++)
		lends |= w->pc->queues[q].there && w->pc->queues[q].lend != PC_UNLIMITED;
	for (int j = 0; j < PC_JOBS && !lends; j++) {
		const struct pc_job *job = &w->pc->jobs[j];

		if (w->live[j].state != PC_PENDING)
			continue;
		for (int f = 0; f < PC_FLAVORS; f++) {
			int n;

			if ((job->flavor >= 0 && job->flavor != f) ||
			    !pc_admissible(w, j, f, NULL, 0))
				continue;
			if (pc_room(w, j, f, NULL, 0, true) >= job->min)
				pc_wrong(w, "14: job %d could start and does not", j + 1);
			n = owes ? pc_owed(w, j, f, owed) : 0;
			if (n && pc_room(w, j, f, owed, n, false) >= job->min)
				pc_wrong(w, "8: job %d is owed its places and waits", j + 1);
		}
	}
}

/* ---- victims ---- */

static void name(const struct pc_unit *u, int n, char *out, size_t room)
{
	size_t at = 0;

	out[0] = '\0';
	for (int i = 0; i < n && at < room; i++)
		at += (size_t)snprintf(out + at, room - at, u[i].pod < 0 ? " %d" : " %d.%d",
				       u[i].job + 1, u[i].pod);
}

/* False for surplus whose gang is a victim as well: it leaves with the gang. */
static bool may_stay(const struct pc_unit *victims, int n, int v)
{
	for (int i = 0; victims[v].pod >= 0 && i < n; i++)
		if (victims[i].job == victims[v].job && victims[i].pod < 0)
			return false;
	return true;
}

static int without(const struct pc_unit *victims, int n, int v, struct pc_unit *out)
{
	memcpy(out, victims, (size_t)n * sizeof(*out));
	memmove(out + v, out + v + 1, (size_t)(n - v - 1) * sizeof(*out));
	return n - 1;
}

static int64_t milli_of(const struct pc_world *w, const struct pc_unit *victims, int n)
{
	int64_t sum = 0;

	for (int v = 0; v < n; v++) {
		const struct pc_job *j = &w->pc->jobs[victims[v].job];

		sum += (int64_t)j->milli * (victims[v].pod < 0 ? j->min : 1);
	}
	return sum;
}

static int64_t asked_milli(const struct pc_world *w, int job)
{
	return (int64_t)pc_asks(w, job) * w->pc->jobs[job].milli;
}

/* True if devices beside a victim's queue are idle and that queue ends below its quota. Such a plan
 * may be refused although a larger one, which leaves enough for another job, is not. */
static bool may_waste(const struct pc_world *w, int job, int flavor, const struct pc_unit *victims,
		      int n)
{
	int64_t idle = milli_of(w, victims, n) - asked_milli(w, job);

	for (int i = 0; i < PC_NODES; i++)
		if (w->pc->nodes[i].flavor == flavor)
			idle += (int64_t)w->pc->nodes[i].gpus * SNAP_MILLI;
	for (int q = 0; q < PC_QUEUES; q++)
		if (w->pc->queues[q].there && w->pc->queues[q].parent < 0)
			idle -= pc_held(w, q, flavor, false);
	for (int q = 0; q < PC_QUEUES && idle >= SNAP_MILLI; q++) {
		int64_t lost = 0;

		for (int v = 0; w->pc->queues[q].there && v < n; v++)
			if (pc_below(w->pc, w->pc->jobs[victims[v].job].queue, q))
				lost += milli_of(w, &victims[v], 1);
		if (lost > 0 && pc_held(w, q, flavor, false) - lost < w->quota[q][flavor])
			return true;
	}
	return false;
}

static bool works(const struct pc_world *w, int job, int flavor, const struct pc_unit *v, int n)
{
	return pc_room(w, job, flavor, v, n, false) >= pc_asks(w, job) &&
	       !may_waste(w, job, flavor, v, n) &&
	       (n ? pc_lawful(w, job, flavor, v, n, true) : pc_admissible(w, job, flavor, v, n));
}

/* Return the first search that may leave this much over: nothing, as much as is requested, any
 * amount. */
static int search_of(const struct pc_world *w, int job, const struct pc_unit *victims, int n)
{
	const int64_t milli = milli_of(w, victims, n), asked = asked_milli(w, job);

	return milli <= asked ? 0 : milli <= 2 * asked ? 1 : 2;
}

void pc_check_spare(struct pc_world *w, int job, const struct pc_unit *victims, int n, bool owed)
{
	if (!owed && milli_of(w, victims, n) > 2 * asked_milli(w, job))
		pc_wrong(w, "4.3a.1: for job %d, of %lld/1000 devices, jobs with %lld leave",
			 job + 1, (long long)asked_milli(w, job),
			 (long long)milli_of(w, victims, n));
}

/* Check for surplus of no higher priority, in the same queue, that would have sufficed instead of a
 * gang. The choice of the queue is checked elsewhere. */
static void check_surplus(struct pc_world *w, int job, int flavor, int gang, int search)
{
	const int priority = w->pc->jobs[gang].priority, leaf = w->pc->jobs[gang].queue;
	struct pc_unit u[PC_UNITS], less[PC_UNITS];
	int n = 0;

	for (int j = 0; j < PC_JOBS; j++) {
		const struct pc_live *l = &w->live[j];
		int seen = 0;

		if (w->pc->jobs[j].queue != leaf)
			continue;
		for (int p = 0; p < l->n_pods && l->state == PC_RUNNING && !l->fresh; p++)
			if (l->pods[p].gone == 0 && ++seen > w->pc->jobs[j].min &&
			    w->pc->jobs[j].priority <= priority && pc_flavor(w, j) == flavor)
				u[n++] =
					(struct pc_unit){ j, l->pods[p].index, GPUQ_CAUSE_RECLAIM };
	}
	for (int v = n - 1; v >= 0; v--) {
		const int m = without(u, n, v, less);

		if (pc_room(w, job, flavor, less, m, false) >= pc_asks(w, job)) {
			memcpy(u, less, (size_t)m * sizeof(*u));
			n = m;
		}
	}
	if (n && search_of(w, job, u, n) <= search && works(w, job, flavor, u, n))
		pc_wrong(w, "29: for job %d gang %d has to leave, though surplus would do", job + 1,
			 gang + 1);
}

void pc_check_victims(struct pc_world *w, int job, int flavor, const struct pc_unit *victims, int n)
{
	struct pc_unit less[PC_UNITS];
	bool lends = false;
	char list[200];

	/* Devices preempted for growth earlier in this cycle are not allocated yet. */
	if (w->growth_claims > 0)
		return;
	name(victims, n, list, sizeof(list));
	for (int v = 0; v < n; v++)
		if (w->live[job].state == PC_RUNNING && victims[v].pod < 0)
			pc_wrong(w, "9: job %d grows and gang %d has to leave for it", job + 1,
				 victims[v].job + 1);
	if (pc_room(w, job, flavor, victims, n, false) < pc_asks(w, job))
		pc_wrong(w, "11: job %d does not fit though they leave for it:%s", job + 1, list);
	/* Cores are then preempted by fair share, and this law covers devices only. */
	if (pc_lacks_cores(w, job, flavor))
		return;
	if (!pc_lawful(w, job, flavor, victims, n, false))
		pc_wrong(w, "9: job %d may not take all of:%s", job + 1, list);
	for (int q = 0; q < PC_QUEUES; q++)
		lends |= w->pc->queues[q].there && w->pc->queues[q].lend != PC_UNLIMITED;
	for (int v = 0; v < n && !lends; v++)
		if (may_stay(victims, n, v) &&
		    works(w, job, flavor, less, without(victims, n, v, less)))
			pc_wrong(w, "11: job %d needs not take job %d of:%s", job + 1,
				 victims[v].job + 1, list);
	for (int v = 0; v < n && !lends; v++)
		if (victims[v].pod < 0)
			check_surplus(w, job, flavor, victims[v].job,
				      search_of(w, job, victims, n));
}
