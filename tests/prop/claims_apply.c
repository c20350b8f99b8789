#include <string.h>

#include "tests/prop/claims.h"
#include "tests/prop/prop.h"

/* Get the pods of an action as the world's pods. */
static int take_pods(struct pc_world *w, const struct snapshot *s, const struct plan *p,
		     const struct plan_action *a, struct pc_pod *out)
{
	const struct pc_job *j = &w->pc->jobs[a->key.id - 1];

	if (a->n_pods > PC_PODS) {
		pc_wrong(w, "7: job %u gets %u pods", a->key.id, a->n_pods);
		return 0;
	}
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];

		memset(&out[i], 0, sizeof(out[i]));
		out[i].index = (int)pod->index;
		out[i].node = s->nodes[pod->node].name[1] - '0';
		out[i].milli = pod->milli;
		out[i].n_devices = (int)pod->n_devices;
		for (uint32_t d = 0; d < pod->n_devices; d++)
			out[i].devices[d] = (int)p->devices[pod->device_first + d];
		if (a->kind != PLAN_SHRINK && out[i].n_devices * out[i].milli != j->milli)
			pc_wrong(w, "7: job %u gets %d x %d for %d", a->key.id, out[i].n_devices,
				 out[i].milli, j->milli);
		if (j->flavor >= 0 && w->pc->nodes[out[i].node].flavor != j->flavor)
			pc_wrong(w, "3: job %u stands on n%d, of another flavor", a->key.id,
				 out[i].node);
	}
	return (int)a->n_pods;
}

static bool same_places(const struct pc_pod *x, int n, const struct pc_pod *y, int m)
{
	if (n != m)
		return false;
	for (int i = 0; i < n; i++)
		if (x[i].node != y[i].node || x[i].n_devices != y[i].n_devices ||
		    memcmp(x[i].devices, y[i].devices, sizeof(x[i].devices)) != 0)
			return false;
	return true;
}

static void place(struct pc_world *w, const struct snapshot *s, const struct plan *p,
		  const struct plan_action *a)
{
	const int job = (int)a->key.id - 1;
	const struct pc_job *j = &w->pc->jobs[job];
	struct pc_live *l = &w->live[job];
	struct pc_pod pods[PC_PODS];
	const int n = take_pods(w, s, p, a, pods);

	if (l->state != PC_PENDING || n != j->min) {
		pc_wrong(w, "7: job %d is started with %d pods of %d, in state %d", job + 1, n,
			 j->min, l->state);
		return;
	}
	if (l->owns && !same_places(pods, n, l->promise, l->n_promise))
		pc_wrong(w, "17: job %d starts elsewhere than it was nominated", job + 1);
	if (!l->owns && !pc_admissible(w, job, w->pc->nodes[pods[0].node].flavor, NULL, 0))
		pc_wrong(w, "4: job %d starts beyond what is allowed", job + 1);
	l->n_promise = 0;
	l->owns = false;
	memcpy(l->pods, pods, sizeof(pods));
	l->n_pods = n;
	l->state = PC_RUNNING;
	l->start = w->now;
	l->fresh = true;
}

static void grow(struct pc_world *w, const struct snapshot *s, const struct plan *p,
		 const struct plan_action *a)
{
	const int job = (int)a->key.id - 1, queue = w->pc->jobs[job].queue;
	struct pc_live *l = &w->live[job];
	struct pc_pod pods[PC_PODS];
	const int n = take_pods(w, s, p, a, pods), f = w->pc->nodes[pods[0].node].flavor;

	if (l->state != PC_RUNNING || n == 0 || pc_staying(l) + n > w->pc->jobs[job].max ||
	    l->n_pods + n > PC_ROOM) {
		pc_wrong(w, "7: job %d of %d pods grows by %d", job + 1, pc_staying(l), n);
		return;
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < l->n_pods; k++)
			if (l->pods[k].index == pods[i].index)
				pc_wrong(w, "7: job %d grows by a pod that it has", job + 1);
	/* Insert by index. */
	for (int i = 0; i < n; i++) {
		int at = l->n_pods++;

		for (; at > 0 && l->pods[at - 1].index > pods[i].index; at--)
			l->pods[at] = l->pods[at - 1];
		l->pods[at] = pods[i];
		l->pods[at].fresh = true;
	}
	for (int q = queue; q >= 0; q = w->pc->queues[q].parent)
		if (pc_held(w, q, f, false) > w->limit[q][f])
			pc_wrong(w, "4: job %d grows beyond the limit of q%d", job + 1, q);
}

static int delay(const struct pc_world *w, int job, int pod)
{
	return (job * 7 + pod * 3 + w->cycle) % (w->pc->linger + 1);
}

/* A second time is allowed: it restarted on idle devices, and a job of lower rank in that queue was
 * entitled to them. Within its own queue a job further on in the queue order may be in the way
 * once, where it restarted on idle devices. */
static void count_eviction(struct pc_world *w, int job, int claimant)
{
	struct pc_live *l = &w->live[job];
	const int by = w->pc->jobs[claimant].queue;

	if (by == w->pc->jobs[job].queue && ++l->taken_for[claimant] > 2)
		pc_wrong(w, "13: job %d has to leave for job %d again", job + 1, claimant + 1);
	else if (by != w->pc->jobs[job].queue && ++l->taken_by[by] > 2)
		pc_wrong(w, "13: job %d has to leave for q%d again", job + 1, by);
}

static void leave(struct pc_world *w, const struct snapshot *s, const struct plan *p,
		  const struct plan_action *a)
{
	const int job = (int)a->key.id - 1;
	const int by = w->pc->jobs[s->jobs[a->claimant].key.id - 1].queue;
	struct pc_live *l = &w->live[job];
	struct pc_pod pods[PC_PODS];
	const int n = a->kind == PLAN_SHRINK ? take_pods(w, s, p, a, pods) : 0;
	const int had = pc_staying(l);

	if (l->state != PC_RUNNING || l->fresh || (a->kind == PLAN_SHRINK && n == 0)) {
		pc_wrong(w, "7: job %d has to leave and does not run", job + 1);
		return;
	}
	if (!w->pc->jobs[job].preemptible && a->kind != PLAN_SHRINK)
		pc_wrong(w, "6: job %d has to leave and is not preemptible", job + 1);
	for (int k = 0; k < l->n_pods; k++) {
		bool meant = a->kind != PLAN_SHRINK;

		for (int i = 0; i < n; i++)
			meant |= pods[i].index == l->pods[k].index;
		if (meant && l->pods[k].gone == 0)
			l->pods[k].gone = w->cycle + delay(w, job, k);
		else if (meant && a->kind == PLAN_SHRINK)
			pc_wrong(w, "7: pod %d of job %d leaves twice", l->pods[k].index, job + 1);
	}
	if (a->kind != PLAN_SHRINK)
		l->state = PC_LEAVING;
	else if (pc_staying(l) < w->pc->jobs[job].min)
		pc_wrong(w, "7: job %d shrinks to %d pods of %d", job + 1, pc_staying(l),
			 w->pc->jobs[job].min);
	if (a->kind == PLAN_SHRINK)
		l->shrunk = w->now;
	if (a->kind == PLAN_EVICT) {
		l->n_evicted++;
		count_eviction(w, job, (int)s->jobs[a->claimant].key.id - 1);
	}
	if (a->kind == PLAN_MOVE) {
		l->n_moved++;
		l->n_promise = take_pods(w, s, p, a, l->promise);
		l->owns = l->fresh = true;
		/* Pods beyond its minimum grow again. */
		if (l->n_promise != (had < w->pc->jobs[job].min ? had : w->pc->jobs[job].min))
			pc_wrong(w, "24: job %d had %d pods and is promised %d", job + 1, had,
				 l->n_promise);
		return;
	}
	if (by != w->pc->jobs[job].queue) {
		if (a->cause == GPUQ_CAUSE_RECLAIM)
			w->losses[w->n_losses++ % PC_LOSSES] =
				(struct pc_loss){ job, (int)s->jobs[a->claimant].key.id - 1,
						  w->now };
		l->evicted = w->now;
		l->evicted_for = by;
	}
}

/* Get the units that an action takes. */
static int units_of(const struct pc_world *w, const struct plan *p, const struct plan_action *a,
		    struct pc_unit *out)
{
	const int job = (int)a->key.id - 1;
	const struct pc_live *l = &w->live[job];
	int n = 0, staying = 0;

	if (a->kind == PLAN_SHRINK) {
		for (uint32_t i = 0; i < a->n_pods; i++)
			out[n++] = (struct pc_unit){ job, (int)p->pods[a->pod_first + i].index,
						     a->cause };
		return n;
	}
	for (int k = 0; k < l->n_pods; k++)
		if (l->pods[k].gone == 0 && ++staying > w->pc->jobs[job].min)
			out[n++] = (struct pc_unit){ job, l->pods[k].index, a->cause };
	out[n++] = (struct pc_unit){ job, -1, a->cause };
	return n;
}

/* Put the jobs moved for a preemption at their new places, all but one. */
static void stand_moved(struct pc_world *w, const struct snapshot *s, const struct plan *p,
			uint32_t at, uint32_t end, uint32_t but)
{
	for (uint32_t i = at + 1; i < end; i++) {
		struct pc_live *l = &w->live[p->actions[i].key.id - 1];
		struct pc_pod to[PC_PODS];
		const int n_to = p->actions[i].kind == PLAN_MOVE && i != but
					 ? take_pods(w, s, p, &p->actions[i], to)
					 : 0;

		int kept = 0;

		/* Pods beyond its minimum have no new places. */
		for (int k = 0, moved = 0; n_to > 0 && k < l->n_pods; k++) {
			if (l->pods[k].gone) {
				l->pods[kept++] = l->pods[k];
			} else if (moved < n_to) {
				to[moved].index = l->pods[k].index;
				l->pods[kept++] = to[moved++];
			}
		}
		if (n_to > 0)
			l->n_pods = kept;
	}
}

static bool somebody_leaves(const struct pc_world *w)
{
	for (int j = 0; j < PC_JOBS; j++)
		for (int k = 0; k < w->live[j].n_pods; k++)
			if (w->live[j].pods[k].gone)
				return true;
	return false;
}

/* No job may be preempted or moved that would not be in the way once the others are at their final
 * places. While a job is leaving, another's start reservation may be in the way. */
static void check_moved(struct pc_world *w, const struct snapshot *s, const struct plan *p,
			uint32_t at, uint32_t end, int flavor, const struct pc_unit *victims, int n)
{
	static struct pc_live before[PC_JOBS];
	const int job = (int)p->actions[at].key.id - 1;

	memcpy(before, w->live, sizeof(before));
	if (n) {
		stand_moved(w, s, p, at, end, at);
		pc_check_victims(w, job, flavor, victims, n);
		memcpy(w->live, before, sizeof(before));
	}
	for (uint32_t i = at + 1; i < end && !somebody_leaves(w); i++) {
		if (p->actions[i].kind != PLAN_MOVE)
			continue;
		stand_moved(w, s, p, at, end, i);
		if (pc_room(w, job, flavor, victims, n, false) >= pc_asks(w, job))
			pc_wrong(w, "24: job %u is moved in vain for job %d", p->actions[i].key.id,
				 job + 1);
		memcpy(w->live, before, sizeof(before));
	}
}

/* A nominated placement: the actions after it make room. Returns the number of actions. */
static uint32_t nominate(struct pc_world *w, const struct snapshot *s, const struct plan *p,
			 uint32_t at)
{
	const struct plan_action *a = &p->actions[at];
	const int job = (int)a->key.id - 1;
	struct pc_live *l = &w->live[job];
	struct pc_unit victims[PC_UNITS];
	struct pc_pod pods[PC_PODS];
	int n = 0, moved = 0;
	bool owed = true;
	uint32_t end = at + 1;
	const int n_pods = take_pods(w, s, p, a, pods);
	const int flavor = w->pc->nodes[pods[0].node].flavor;

	for (; end < p->n_actions && p->actions[end].claimant == a->job; end++) {
		if (p->actions[end].kind == PLAN_MOVE) {
			moved++;
			continue;
		}
		n += units_of(w, p, &p->actions[end], &victims[n]);
		owed &= strcmp(p->actions[end].rule, gpuq_rule_word(GPUQ_RULE_RECLAIM_QUOTA)) ==
				0 ||
			strcmp(p->actions[end].rule, "own") == 0;
	}
	if (l->state != PC_PENDING || l->n_promise || n_pods != w->pc->jobs[job].min) {
		pc_wrong(w, "7: job %d is promised %d pods of %d, in state %d", job + 1, n_pods,
			 w->pc->jobs[job].min, l->state);
		return end - at;
	}
	if (moved > 4)
		pc_wrong(w, "24: %d are moved for job %d", moved, job + 1);
	if (n == 0 && !pc_admissible(w, job, flavor, NULL, 0))
		pc_wrong(w, "4: job %d is promised more than is allowed", job + 1);
	pc_check_spare(w, job, victims, n, owed);
	check_moved(w, s, p, at, end, flavor, victims, n);
	memcpy(l->promise, pods, sizeof(pods));
	l->n_promise = n_pods;
	l->owns = n || moved;
	l->fresh = true;
	for (uint32_t i = at + 1; i < end; i++)
		leave(w, s, p, &p->actions[i]);
	return end - at;
}

/* A running job gets pods that others have beyond their gangs. Returns the number of actions. */
static uint32_t make_room_to_grow(struct pc_world *w, const struct snapshot *s,
				  const struct plan *p, uint32_t at)
{
	const uint32_t claimant = p->actions[at].claimant;
	const int job = (int)s->jobs[claimant].key.id - 1;
	struct pc_unit victims[PC_UNITS];
	uint32_t end = at;
	int n = 0;

	if (w->live[job].state != PC_RUNNING) {
		pc_wrong(w, "11: job %u has to leave for job %d, which has no nominated placement",
			 p->actions[at].key.id, job + 1);
		return 1;
	}
	for (; end < p->n_actions && p->actions[end].claimant == claimant; end++)
		n += units_of(w, p, &p->actions[end], &victims[n]);
	pc_check_victims(w, job, pc_flavor(w, job), victims, n);
	w->growth_claims++;
	for (uint32_t i = at; i < end; i++)
		leave(w, s, p, &p->actions[i]);
	return end - at;
}

int pc_apply(struct pc_world *w, const struct snapshot *s, const struct plan *p)
{
	const bool torn = w->pc->torn && prop_random(&w->random) % 4 == 0;
	int changes = 0;
	uint32_t n;

	w->growth_claims = 0;
	for (int j = 0; j < PC_JOBS; j++) {
		w->live[j].fresh = false;
		for (int k = 0; k < w->live[j].n_pods; k++)
			w->live[j].pods[k].fresh = false;
	}
	for (uint32_t i = 0; i < p->n_actions && !w->wrong[0]; i += n) {
		const struct plan_action *a = &p->actions[i];

		n = 1;
		if (torn && prop_random(&w->random) % 3 == 0) {
			changes++;
			break;
		}
		changes += a->kind != PLAN_RESERVE && a->kind != PLAN_NOMINATE;
		switch (a->kind) {
		case PLAN_PLACE:
			place(w, s, p, a);
			break;
		case PLAN_NOMINATE:
			n = nominate(w, s, p, i);
			changes += n > 1;
			break;
		case PLAN_GROW:
			grow(w, s, p, a);
			break;
		case PLAN_RELEASE:
			pc_wrong(w, "17: what job %u was promised is taken back", a->key.id);
			break;
		case PLAN_RESERVE:
			break;
		default:
			if (a->claimant == SNAP_NONE)
				pc_wrong(w, "11: job %u has to leave for nobody", a->key.id);
			else
				n = make_room_to_grow(w, s, p, i);
		}
	}
	return changes;
}
