#include "gpuqd/cluster/kube/watch/watch_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/watch_objects.h"

/* Those of one namespace. */
struct job_watch {
	struct reflector r; /* first: struct reflector * is struct job_watch * */
	struct job_watch *next;
	struct kind kind;
	struct gpuq_buf path;
	char namespace_[64];
	bool off; /* that it may not be read was logged */
};

struct job_watches {
	struct job_watch *all;
	watch_job_fn seen;
	watch_jobs_fn listed;
	void *arg;
};

static void job_seen(struct reflector *r, struct kube_object *o)
{
	const struct job_watches *all = r->watch->jobs;
	const json_t *meta = json_object_get(o->object, "metadata");
	const struct known_thing t = { .namespace_ = kube_str(meta, "namespace"),
				       .name = kube_str(meta, "name"),
				       .uid = kube_str(meta, "uid"),
				       .token = "",
				       .node = "",
				       .list = r->list };
	const struct known_thing *old;

	if (!*t.name || !*t.namespace_ || !*t.uid) {
		watch_skip(r, "a Job without a name");
		return;
	}
	old = known_find(r->known, t.namespace_, t.name);
	/* Deleted and made again between two looks: two Jobs, one name. */
	if (old && strcmp(old->uid, t.uid) != 0)
		all->seen(all->arg, NULL, old->uid);
	if (known_set(r->known, &t) != 0) {
		watch_skip(r, "no memory");
		return;
	}
	all->seen(all->arg, o->object, t.uid);
}

static void job_deleted(struct reflector *r, struct kube_object *o)
{
	const struct job_watches *all = r->watch->jobs;
	const json_t *meta = json_object_get(o->object, "metadata");

	known_drop(r->known, kube_str(meta, "namespace"), kube_str(meta, "name"));
	all->seen(all->arg, NULL, kube_str(meta, "uid"));
}

static void job_gone(void *arg, const struct known_thing *t)
{
	const struct job_watches *all = ((struct reflector *)arg)->watch->jobs;

	all->seen(all->arg, NULL, t->uid);
}

static void known(struct reflector *r, bool on)
{
	const struct job_watches *all = r->watch->jobs;
	struct job_watch *w = (struct job_watch *)r;

	if (on)
		all->listed(all->arg, w->namespace_);
	else if (!w->off)
		log_notice("kube.jobs_off",
			   "namespace=%s error=%s: suspended Jobs stay suspended (see gpuq doctor)",
			   LOGS(w->namespace_), LOGS(r->why));
	w->off = !on;
}

static void job_watch_free(struct job_watch *j)
{
	watch_fini(&j->r);
	gpuq_buf_done(&j->path);
	free(j);
}

static void begin(struct watch *w, const char *namespace_)
{
	struct job_watch *j = calloc(1, sizeof(*j));

	if (!j)
		abort(); /* as loop_after() */
	strncpy(j->namespace_, namespace_, sizeof(j->namespace_) - 1);
	gpuq_buf_adds(&j->path, "/apis/batch/v1/namespaces/");
	url_escape(&j->path, namespace_);
	gpuq_buf_adds(&j->path, "/jobs");
	j->kind = (struct kind){ .word = "jobs",
				 .path = gpuq_buf_str(&j->path),
				 .seen = job_seen,
				 .deleted = job_deleted,
				 .gone = job_gone,
				 .optional = true,
				 .known = known,
				 .selector = KUBE_L_KUEUE };
	watch_init(w, &j->r, &j->kind);
	if (!j->r.known)
		abort();
	j->r.answered = true; /* pods do not wait for these */
	j->next = w->jobs->all;
	w->jobs->all = j;
	watch_begin(&j->r);
}

static bool is_among(const char *namespace_, const char *const *namespaces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(namespaces[i], namespace_) == 0)
			return true;
	return false;
}

static bool is_watched(const struct job_watches *all, const char *namespace_)
{
	for (const struct job_watch *j = all->all; j; j = j->next)
		if (strcmp(j->namespace_, namespace_) == 0)
			return true;
	return false;
}

void watch_jobs(struct watch *w, const char *const *namespaces, size_t n, watch_job_fn seen,
		watch_jobs_fn listed, void *arg)
{
	struct job_watch **at, *j;

	if (!w->jobs && n == 0)
		return;
	if (!w->jobs)
		w->jobs = calloc(1, sizeof(*w->jobs));
	if (!w->jobs)
		abort();
	w->jobs->seen = seen;
	w->jobs->listed = listed;
	w->jobs->arg = arg;
	for (at = &w->jobs->all; (j = *at) != NULL;) {
		if (is_among(j->namespace_, namespaces, n)) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		job_watch_free(j);
	}
	for (size_t i = 0; i < n; i++)
		if (!is_watched(w->jobs, namespaces[i]))
			begin(w, namespaces[i]);
	if (n == 0) {
		free(w->jobs);
		w->jobs = NULL;
	}
}
