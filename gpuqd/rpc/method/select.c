/* Which jobs of those in memory a filter selects, without looking at all of them where some
 * list of the model is shorter. */
#include "gpuqd/rpc/method/m_int.h"

struct collect {
	const struct job_filter *f;
	bool (*keep)(const struct job_filter *f, const struct job *j);
	struct job_keys *out;
	struct job_order *order; /* only the first of it; NULL = all */
	bool narrow; /* the filter selects at all */
	bool mixed; /* from several lists: not in order, and perhaps twice */
};

static void take(struct collect *c, const struct job *j)
{
	if (!j || (c->keep && !c->keep(c->f, j)) || (c->narrow && !filter_job(c->f, j)))
		return;
	if (c->order)
		job_order_take(c->order, j);
	else
		job_keys_add(c->out, j->key);
}

static void by_ids(struct collect *c, const struct model *m)
{
	c->mixed = true;
	for (size_t i = 0; i < c->f->ids.n; i++) {
		struct job_key key;
		const struct job *j;

		if (!job_id_parse(c->f->ids.items[i], &key))
			continue;
		j = model_find_job(m, key);
		take(c, j || key.index >= 0 ? j : model_find_element(m, key.id));
		if (key.index < 0)
			DL_FOREACH2(index_elements(m, key.id), j, life->kin_next)
				take(c, j);
	}
}

static void by_nodes(struct collect *c, const struct model *m)
{
	c->mixed = true;
	for (size_t i = 0; i < c->f->nodes.n; i++) {
		const struct node *n = model_find_node(m, c->f->nodes.items[i]);
		const struct pod *p;

		if (n)
			DL_FOREACH2(n->pods, p, node_next)
				take(c, p->job);
	}
}

static void by_users(struct collect *c, const struct model *m)
{
	const struct job *j;

	c->mixed = c->f->users.n > 1;
	for (size_t i = 0; i < c->f->users.n; i++)
		DL_FOREACH2(index_of_user(m, c->f->users.items[i]), j, user_next)
			take(c, j);
}

static void by_states(struct collect *c, const struct model *m)
{
	const struct job *j;

	c->mixed = true; /* in the order in which they came to be in that state */
	for (size_t i = 0; i < c->f->states.n; i++) {
		const int s = gpuq_job_state_parse(c->f->states.items[i]);

		if (s >= 0)
			DL_FOREACH2(m->jobs_by_state[s], j, state_next)
				take(c, j);
	}
}

static void by_queues(struct collect *c, const struct model *m)
{
	const struct job *j;

	c->mixed = c->f->queues.n > 1;
	for (size_t i = 0; i < c->f->queues.n; i++) {
		const struct queue *q = model_find_queue(m, c->f->queues.items[i]);

		if (q)
			DL_FOREACH2(q->jobs, j, queue_next)
				take(c, j);
	}
}

static bool waits(const struct job_filter *f)
{
	for (size_t i = 0; i < f->states.n; i++)
		switch (gpuq_job_state_parse(f->states.items[i])) {
		case GPUQ_JOB_PENDING:
		case GPUQ_JOB_PROVISIONING: /* view_job_state() */
			return true;
		default:
			break;
		}
	return f->states.n == 0;
}

void jobs_select(const struct model *m, const struct job_filter *f,
		 bool (*keep)(const struct job_filter *f, const struct job *j),
		 struct job_order *order, struct job_keys *out)
{
	struct collect c = {
		.f = f, .keep = keep, .out = out, .order = order, .narrow = filter_any(f)
	};

	/* A job may come twice from these: what is first cannot be told on the way. */
	if (f->ids.n || f->nodes.n)
		c.order = NULL;

	/* The shortest list first; most jobs of a full cluster wait. */
	if (f->ids.n)
		by_ids(&c, m);
	else if (f->nodes.n)
		by_nodes(&c, m);
	else if (!waits(f))
		by_states(&c, m);
	else if (f->users.n)
		by_users(&c, m);
	else if (f->queues.n)
		by_queues(&c, m);
	else
		job_each(m, j)
			take(&c, j);
	for (size_t i = 0; c.order && i < job_order_n(c.order); i++)
		job_keys_add(out, job_order_key(c.order, i));
	if (c.mixed || c.order)
		job_keys_sort(out);
}
