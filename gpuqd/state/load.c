/* Utilization of the devices of running jobs, and how long they may stay idle. */
#include "gpuqd/state/model_int.h"

#include <stdio.h>
#include <string.h>

static struct idle_clock clock_of(const struct model *m, const struct job *j)
{
	return (struct idle_clock){ j->life->start_us, m->policy.idle_window_us };
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
	return 0;
}

static int64_t known_sum(int64_t a, int64_t b)
{
	return a < 0 ? b : b < 0 ? a : a + b;
}

/* Add what a pod of the present attempt used. */
void load_pod_ended(struct job *j, const struct used *s)
{
	const struct job_load *load = j->life->load;
	struct used *to = j->life->used;

	if (!s && !load)
		return;
	if (!to) {
		to = job_life(j)->used = must(malloc(sizeof(*to)));
		*to = (struct used){ -1, -1, -1, -1, -1, -1 };
	}
	if (load && load->n)
		to->gpu_milli = load->milli_sum / load->n;
	if (!s)
		return;
	to->user_us = known_sum(to->user_us, s->user_us);
	to->system_us = known_sum(to->system_us, s->system_us);
	to->read_bytes = known_sum(to->read_bytes, s->read_bytes);
	to->written_bytes = known_sum(to->written_bytes, s->written_bytes);
	if (s->memory_bytes > to->memory_bytes)
		to->memory_bytes = s->memory_bytes;
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
