/* JobSet (jobset.x-k8s.io): a gang with a group for each of its Jobs. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/manifest_int.h"

#define L "jobset.sigs.k8s.io/"

static const char *const keys[] = {
	"replicatedJobs",          "network", "successPolicy", "failurePolicy",
	"startupPolicy",           "suspend", "coordinator",   "managedBy",
	"ttlSecondsAfterFinished", NULL
};
static const char *const rjob_keys[] = { "name",     "replicas",  "groupName",
					 "template", "dependsOn", NULL };

/* Read the policies: those by which a JobSet's controller would wait or stop are refused. */
static int read_policies(struct manifest *m, int64_t *restarts)
{
	static const char *const any_order[] = { "AnyOrder", NULL };
	static const char *const all[] = { "All", NULL };
	const struct gpuq_val *v;
	const char *word;
	size_t mark;
	int rc = manifest_refuse(m, m->spec, "coordinator",
				 "gpuqd coordinates by the first pod: use MASTER_ADDR");

	if (rc == 0)
		rc = manifest_ttl(m, m->spec);
	if (rc == 0)
		rc = spec_want_type(m->r, m->spec, "startupPolicy", GPUQ_MAP, &v);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "startupPolicy");
	rc = manifest_word(m, v, "startupPolicyOrder", any_order, &word);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	rc = spec_want_type(m->r, m->spec, "successPolicy", GPUQ_MAP, &v);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "successPolicy");
	rc = manifest_word(m, v, "operator", all, &word);
	if (rc == 0)
		rc = manifest_refuse(m, v, "targetReplicatedJobs",
				     "a job has ended when all of its pods have: omit it");
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	rc = spec_want_type(m->r, m->spec, "failurePolicy", GPUQ_MAP, &v);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "failurePolicy");
	rc = spec_want_int(m->r, v, "maxRestarts", 0, GPUQ_RETRY_MAX, restarts);
	if (rc < 0)
		return rc;
	manifest_unused(m, v, "rules",
			"is not used: every failure is tried again, up to the limit");
	gpuq_reader_leave(m->r, mark);
	return 0;
}

/* The labels of a JobSet's pods that are known before they run. */
static int mark_pods(struct manifest *m, struct gpuq_group *g, const char *rjob, int64_t replicas,
		     int64_t index, int64_t global)
{
	struct gpuq_arena *a = m->r->arena;
	const struct {
		const char *key, *value;
	} marks[] = {
		{ L "jobset-name", m->name },
		{ L "replicatedjob-name", rjob },
		{ L "replicatedjob-replicas", gpuq_arena_printf(a, "%lld", (long long)replicas) },
		{ L "job-index", gpuq_arena_printf(a, "%lld", (long long)index) },
		{ L "job-global-index", gpuq_arena_printf(a, "%lld", (long long)global) },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (!marks[i].value || strlen(marks[i].value) > GPUQ_NAME_BYTES_MAX)
			continue;
		rc = manifest_mark(m, g, "labels", marks[i].key, marks[i].value);
		if (rc == 0)
			rc = manifest_mark(m, g, "annotations", marks[i].key, marks[i].value);
	}
	return rc;
}

struct rjob {
	const struct gpuq_val *v;
	const char *name;
	int64_t replicas;
	struct job_fields f;
};

/* One of spec.replicatedJobs, without its pods. The path stands at it. */
static int read_rjob(struct manifest *m, const struct gpuq_val *v, struct rjob *out)
{
	const struct gpuq_val *tmpl, *spec;
	size_t mark;
	int rc;

	if (v->type != GPUQ_MAP)
		return spec_fail(m->r, v, GPUQ_EINVAL, "expected a map with name and template");
	*out = (struct rjob){ .v = v, .replicas = 1, .f.indexed = true };
	rc = manifest_keys(m, v, rjob_keys);
	if (rc == 0)
		rc = spec_want_str(m->r, v, "name", &out->name);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "replicas", 0, GPUQ_GROUPS_MAX, &out->replicas);
	if (rc == 0)
		rc = manifest_refuse(
			m, v, "dependsOn",
			"the pods of a job start together: submit two jobs, the second "
			"with --dependency");
	if (rc == 0)
		rc = spec_want_type(m->r, v, "template", GPUQ_MAP, &tmpl);
	if (rc < 0)
		return rc;
	if (!out->name || !spec_name_ok(out->name)) {
		gpuq_reader_enter(m->r, "name");
		return spec_fail(m->r, gpuq_get(v, "name") ? gpuq_get(v, "name") : v, GPUQ_EINVAL,
				 "expected a name");
	}
	mark = gpuq_reader_enter(m->r, "template");
	rc = tmpl ? spec_want_type(m->r, tmpl, "spec", GPUQ_MAP, &spec) : 0;
	if (rc < 0)
		return rc;
	gpuq_reader_enter(m->r, "spec");
	if (!tmpl || !spec)
		return spec_fail(m->r, v, GPUQ_EINVAL, "expected the spec of a batch/v1 Job");
	rc = job_fields_read(m, spec, &out->f);
	if (rc < 0)
		return rc;
	if (out->f.completions >= 0 && out->f.completions != out->f.parallelism) {
		gpuq_reader_enter(m->r, "completions");
		return spec_fail(m->r, gpuq_get(spec, "completions"), GPUQ_EINVAL,
				 "expected as many as parallelism, which is %lld: the pods of a "
				 "job start together",
				 (long long)out->f.parallelism);
	}
	gpuq_reader_leave(m->r, mark);
	return 0;
}

/* Names of the pods of any of the jobs in the template of j. */
static int check_names(struct manifest *m, const struct rjob *j, const struct rjob *jobs, size_t n)
{
	int rc = 0;

	for (size_t i = 0; m->name && rc == 0 && i < n; i++)
		rc = manifest_names(
			m, j->f.tmpl,
			gpuq_arena_printf(m->r->arena, "%s-%s-", m->name, jobs[i].name));
	return rc;
}

/* The groups of one replicated job: one for each of its Jobs. The path stands at it. */
static int add_groups(struct manifest *m, const struct rjob *j, const struct rjob *jobs, size_t n,
		      struct gpuq_group *g, int64_t global)
{
	static const char *const policies[] = { "Never", "OnFailure", NULL };
	struct gpuq_arena *a = m->r->arena;
	const char *stem = m->name ? gpuq_arena_printf(a, "%s-%s", m->name, j->name) : NULL;
	const char *policy;
	struct gpuq_buf *warnings = m->warnings;
	size_t mark;
	int rc = 0;

	for (int64_t i = 0; rc == 0 && i < j->replicas; i++) {
		/* With the number behind it, it is still a name. */
		g[i].name = j->replicas == 1
				    ? j->name
				    : gpuq_arena_printf(a, "%.50s-%lld", j->name, (long long)i);
		rc = manifest_other_name(m, j->v, &g[i]);
	}
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "template");
	gpuq_reader_enter(m->r, "spec");
	gpuq_reader_enter(m->r, "template");
	rc = check_names(m, j, jobs, n);
	for (int64_t i = 0; rc == 0 && i < j->replicas; i++, g++) {
		g->pods_min = g->pods_max = j->f.parallelism;
		rc = manifest_template(m, j->f.tmpl, g);
		if (rc == 0)
			rc = manifest_restart(m, gpuq_get(j->f.tmpl, "spec"), policies, &policy);
		if (rc == 0)
			rc = mark_pods(m, g, j->name, j->replicas, i, global + i);
		if (rc == 0)
			rc = manifest_job_marks(
				m, g,
				stem ? gpuq_arena_printf(a, "%s-%lld", stem, (long long)i) : NULL,
				j->f.indexed);
		m->warnings = NULL; /* the next has the same template */
	}
	m->warnings = warnings;
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

int kind_jobset(struct manifest *m)
{
	const struct gpuq_val *list;
	struct rjob jobs[GPUQ_GROUPS_MAX];
	int64_t restarts = 0, backoff = 0, groups = 0, at = 0;
	int rc = manifest_keys(m, m->spec, keys);
	size_t mark;

	if (rc == 0)
		rc = read_policies(m, &restarts);
	if (rc == 0)
		rc = spec_want_type(m->r, m->spec, "replicatedJobs", GPUQ_LIST, &list);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "replicatedJobs");
	if (!list || list->n == 0)
		return spec_fail(m->r, list ? list : m->spec, GPUQ_EINVAL,
				 "expected a list of at least one replicated job");
	for (size_t i = 0; i < list->n && i < GPUQ_GROUPS_MAX; i++) {
		const size_t item = gpuq_reader_enter_item(m->r, i);

		rc = read_rjob(m, list->items[i], &jobs[i]);
		if (rc < 0)
			return rc;
		groups += jobs[i].replicas;
		if (jobs[i].f.backoff > backoff)
			backoff = jobs[i].f.backoff;
		manifest_limit(m, jobs[i].f.seconds);
		gpuq_reader_leave(m->r, item);
	}
	if (list->n > GPUQ_GROUPS_MAX || groups < 1 || groups > (int64_t)GPUQ_GROUPS_MAX)
		return spec_fail(m->r, list, GPUQ_ERANGE,
				 "expected 1 to %u Jobs (the sum of replicas): each is a group",
				 GPUQ_GROUPS_MAX);
	rc = manifest_groups(m, (size_t)groups);
	for (size_t i = 0; rc == 0 && i < list->n; i++) {
		const size_t item = gpuq_reader_enter_item(m->r, i);

		rc = add_groups(m, &jobs[i], jobs, list->n, &m->out->groups[at], at);
		at += jobs[i].replicas;
		if (rc == 0)
			gpuq_reader_leave(m->r, item);
	}
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	/* A Job tries its pods again, and the JobSet its Jobs. */
	manifest_retry(m, backoff + restarts);
	return 0;
}
