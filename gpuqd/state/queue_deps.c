/* A site must keep everything that jobs depend on. */
#include <string.h>

#include "gpuqd/state/model_int.h"

/* True if the site has the flavor; "default" is always there. */
static bool has_flavor(const struct site *s, const char *name)
{
	site_each(site_flavor, s->flavors, f)
		if (strcmp(f->name, name) == 0)
			return true;
	return strcmp(name, "default") == 0;
}

/* True if the site has the license. */
static bool has_license(const struct site *s, const char *name)
{
	site_each(site_license, s->licenses, l)
		if (strcmp(l->name, name) == 0)
			return true;
	return false;
}

/* Refuse to remove what a job depends on; the text says how it becomes free. */
static int refuse(const struct job *j, const char *what, const char *name, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECONFLICT,
			 "%s %s cannot be removed: job %u depends on it (its end, or its "
			 "cancellation, frees it)",
			 what, name, j->key.id);
}

/* Return a missing flavor that a job is charged to now, or that it requests with no alternative
 * left. */
static const char *lost_flavor(const struct site *old, const struct site *s, const struct job *j)
{
	const struct gpuq_strlist *wanted = &j->request->spec.flavors;
	const char *lost = NULL;

	if (model_job_is_live(j) && j->life->flavor && *j->life->flavor)
		return has_flavor(old, j->life->flavor) && !has_flavor(s, j->life->flavor)
			       ? j->life->flavor
			       : NULL;
	for (size_t i = 0; i < wanted->n; i++) {
		if (has_flavor(s, wanted->items[i]))
			return NULL;
		if (has_flavor(old, wanted->items[i]))
			lost = wanted->items[i];
	}
	return lost;
}

/* Check that the new site keeps what this job names and the old one had. */
static int check_job(const struct site *old, const struct site *s, const struct job *j,
		     struct gpuq_err *err)
{
	const struct gpuq_strmap *licenses = &j->request->spec.licenses;
	const char *flavor = lost_flavor(old, s, j);

	if (flavor)
		return refuse(j, "flavor", flavor, err);
	if (site_qos_find(old, j->qos) && !site_qos_find(s, j->qos))
		return refuse(j, "qos", j->qos, err);
	for (size_t i = 0; i < licenses->n; i++)
		if (has_license(old, licenses->keys[i]) && !has_license(s, licenses->keys[i]))
			return refuse(j, "license", licenses->keys[i], err);
	return 0;
}

/* True if the queue has queues below it. */
static bool has_children(const struct site *s, const char *queue)
{
	site_each(site_queue, s->queues, q)
		if (q->parent && strcmp(q->parent, queue) == 0)
			return true;
	return false;
}

/* A queue with jobs must stay, and stay a leaf. */
static int check_queue(const struct site *s, const struct queue *q, struct gpuq_err *err)
{
	const bool stays = site_queue_find(s, q->name);

	if (stays && !has_children(s, q->name))
		return 0;
	if (!q->jobs)
		return 0;
	return gpuq_fail(err, GPUQ_ECONFLICT,
			 stays ? "queue %s has jobs and cannot get queues below it (job %u is one)"
			       : "queue %s has jobs and cannot be removed (job %u is one)",
			 q->name, q->jobs->key.id);
}

int queue_site_allowed(const struct model *m, const struct site *s, struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->n_queues; i++)
		rc = check_queue(s, m->queues[i], err);
	job_each(m, j) {
		if (rc == 0 && !j->ended)
			rc = check_job(m->site, s, j, err);
	}
	return rc;
}
