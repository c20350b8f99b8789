/* Utilization of the devices of running jobs, and how long they may stay idle. */
#include "gpuqd/state/model_int.h"

#include <stdio.h>
#include <string.h>

static struct idle_clock clock_of(const struct model *m, const struct job *j)
{
	return (struct idle_clock){ j->life->start_us, m->policy.idle_window_us };
}

/* Counters only grow, and of memory the high-water counts. */
static void raise(int64_t *to, int64_t n)
{
	*to = n > *to ? n : *to;
}

static void pod_measured(struct model *m, const struct pod_use *u)
{
	struct pod *p = model_find_pod(m, u->pod);

	if (!p || p->state != GPUQ_POD_RUNNING)
		return;
	if (!p->used) {
		p->used = must(malloc(sizeof(*p->used)));
		*p->used = USED_UNKNOWN;
	}
	raise(&p->used->user_us, u->used.user_us);
	raise(&p->used->system_us, u->used.system_us);
	raise(&p->used->memory_bytes, u->used.memory_bytes);
	raise(&p->used->read_bytes, u->used.read_bytes);
	raise(&p->used->written_bytes, u->used.written_bytes);
	raise(&p->used->cpu_us, u->used.cpu_us);
	raise(&p->used->gpu_bytes, u->used.gpu_bytes);
}

int load_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	for (size_t i = 0; i < ev->measured.n; i++) {
		const struct job_use *u = &ev->measured.items[i];
		struct job *j = model_find_job(m, u->job);
		struct idle_clock c;

		if (!j || j->state != GPUQ_JOB_RUNNING)
			continue;
		if (!j->life->load)
			job_life(j)->load = must(calloc(1, sizeof(*j->life->load)));
		c = clock_of(m, j);
		idle_measured(&j->life->load->idle, &c, ev->at_us, u->use);
		j->life->load->at_us = ev->at_us;
		j->life->load->milli = u->milli;
		j->life->load->milli_sum += u->milli;
		j->life->load->n++;
	}
	for (size_t i = 0; i < ev->measured.n_pods; i++)
		pod_measured(m, &ev->measured.pods[i]);
	return 0;
}

static int64_t known_sum(int64_t a, int64_t b)
{
	return a < 0 ? b : b < 0 ? a : a + b;
}

static int64_t known_of(int64_t told, int64_t measured)
{
	return told >= 0 ? told : measured;
}

/* Return what the cluster reported at the end, and what was measured until then in place of what it did not. Where the
 * kinds of CPU time are known, so is their sum. */
static struct used whole_of(const struct used *told, const struct used *measured)
{
	const struct used none = USED_UNKNOWN, *a = told ? told : &none;
	const struct used *b = measured ? measured : &none;
	struct used u = { .user_us = known_of(a->user_us, b->user_us),
			  .system_us = known_of(a->system_us, b->system_us),
			  .memory_bytes = known_of(a->memory_bytes, b->memory_bytes),
			  .read_bytes = known_of(a->read_bytes, b->read_bytes),
			  .written_bytes = known_of(a->written_bytes, b->written_bytes),
			  .cpu_us = known_of(a->cpu_us, b->cpu_us),
			  .gpu_bytes = known_of(a->gpu_bytes, b->gpu_bytes) };

	if (u.user_us >= 0 && u.system_us >= 0)
		raise(&u.cpu_us, u.user_us + u.system_us);
	return u;
}

void load_pod_ended(struct pod *p, const struct used *s)
{
	const struct job_load *load = p->job->life->load;
	struct used u = whole_of(s, p->used);
	struct used *to = p->job->life->used;

	if (!s && !p->used && !(load && load->n))
		return;
	if (!to) {
		to = job_life(p->job)->used = must(malloc(sizeof(*to)));
		*to = USED_UNKNOWN;
	}
	u.gpu_milli = load && load->n ? load->milli_sum / load->n : -1;
	if (u.gpu_milli >= 0)
		to->gpu_milli = u.gpu_milli;
	if (!p->used)
		p->used = must(malloc(sizeof(*p->used)));
	*p->used = u;
	to->user_us = known_sum(to->user_us, u.user_us);
	to->system_us = known_sum(to->system_us, u.system_us);
	to->read_bytes = known_sum(to->read_bytes, u.read_bytes);
	to->written_bytes = known_sum(to->written_bytes, u.written_bytes);
	to->cpu_us = known_sum(to->cpu_us, u.cpu_us);
	raise(&to->memory_bytes, u.memory_bytes);
	raise(&to->gpu_bytes, u.gpu_bytes);
}

int64_t load_idle_for_us(const struct model *m, const struct job *j, int64_t now_us)
{
	const struct idle_clock c = clock_of(m, j);

	return j->life->load ? idle_for_us(&j->life->load->idle, &c, now_us) : 0;
}

/* Lower the limit to that of a rule, and note which rule it was; 0 is no limit. */
static void tighten(int64_t *limit_us, int64_t by_us, const char *kind, const char *name,
		    char rule[64])
{
	if (by_us == 0 || (*limit_us && *limit_us <= by_us))
		return;
	*limit_us = by_us;
	snprintf(rule, 64, "%s/%.56s", kind, name);
}

int64_t load_idle_limit_us(const struct model *m, const struct job *j, char rule[64])
{
	const struct site_qos *qos = site_qos_find(m->site, j->qos);
	int64_t limit_us = 0;

	rule[0] = '\0';
	if (model_job_gpus_milli(j) == 0)
		return 0;
	if (qos)
		tighten(&limit_us, qos->idle_us, "qos", qos->name, rule);
	for (const struct queue *q = j->queue; q; q = q->parent)
		tighten(&limit_us, q->site->idle_us, "queue", q->name, rule);
	return limit_us;
}
