#include "libgpuq/spec/kinds/kubeflow.h"

#include <ctype.h>
#include <string.h>

#include "libgpuq/limits.h"

static const char *const run_keys[] = { "cleanPodPolicy",
					"ttlSecondsAfterFinished",
					"activeDeadlineSeconds",
					"backoffLimit",
					"schedulingPolicy",
					"suspend",
					"managedBy",
					NULL };
static const char *const replica_keys[] = { "replicas", "template", "restartPolicy", "scale",
					    NULL };

static int scheduling_policy(struct manifest *m, const struct gpuq_val *run)
{
	const struct gpuq_val *v;
	int rc = spec_want_type(m->r, run, "schedulingPolicy", GPUQ_MAP, &v);
	const size_t mark = gpuq_reader_enter(m->r, "schedulingPolicy");
	const char *queue = NULL;

	if (rc == 0)
		rc = spec_want_str(m->r, v, "queue", &queue);
	if (rc < 0)
		return rc;
	if (queue && *queue) {
		if (!spec_name_ok(queue)) {
			gpuq_reader_enter(m->r, "queue");
			return spec_fail(m->r, gpuq_get(v, "queue"), GPUQ_EINVAL,
					 "expected the name of a queue, not '%.63s'", queue);
		}
		m->out->queue = queue;
	}
	manifest_unused(m, v, "minAvailable", "is not used: all pods start together");
	manifest_unused(m, v, "priorityClass", "is not used: it comes from the queue");
	gpuq_reader_leave(m->r, mark);
	return 0;
}

int kubeflow_run_policy(struct manifest *m, int64_t *backoff)
{
	static const char *const clean[] = { "None", "Running", "All", NULL };
	const struct gpuq_val *v;
	const char *word;
	int64_t seconds = 0;
	int rc = spec_want_type(m->r, m->spec, "runPolicy", GPUQ_MAP, &v);
	const size_t mark = gpuq_reader_enter(m->r, "runPolicy");

	*backoff = KIND_BACKOFF;
	if (rc == 0 && v)
		rc = manifest_keys(m, v, run_keys);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "backoffLimit", 0, GPUQ_RETRY_MAX, backoff);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "activeDeadlineSeconds", 1, INT32_MAX, &seconds);
	if (rc == 0)
		rc = manifest_word(m, v, "cleanPodPolicy", clean, &word);
	if (rc == 0)
		rc = manifest_ttl(m, v);
	if (rc == 0)
		rc = scheduling_policy(m, v);
	if (rc < 0)
		return rc;
	manifest_unused(m, v, "cleanPodPolicy", "is not used: the pods go when the job has ended");
	manifest_limit(m, seconds);
	gpuq_reader_leave(m->r, mark);
	return 0;
}

int kubeflow_replica(struct manifest *m, const struct gpuq_val *map, const char *role,
		     struct replica *out)
{
	static const char *const policies[] = { "Always", "OnFailure", "Never", "ExitCode", NULL };
	const size_t mark = gpuq_reader_enter(m->r, role);
	int rc;

	*out = (struct replica){ .replicas = 1, .policy = "OnFailure" };
	out->v = gpuq_get(map, role);
	if (out->v && out->v->type == GPUQ_NULL)
		out->v = NULL;
	if (out->v && out->v->type != GPUQ_MAP)
		return spec_fail(m->r, out->v, GPUQ_EINVAL,
				 "expected a map with replicas and template");
	rc = out->v ? manifest_keys(m, out->v, replica_keys) : 0;
	if (rc == 0)
		rc = spec_want_int(m->r, out->v, "replicas", 0, GPUQ_PODS_MAX, &out->replicas);
	if (rc == 0)
		rc = manifest_word(m, out->v, "restartPolicy", policies, &out->policy);
	if (rc == 0 && strcmp(out->policy, "Always") == 0)
		manifest_unused(m, out->v, "restartPolicy",
				"a job ends: it is not started again after success");
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

int kubeflow_group(struct manifest *m, const char *role, const struct replica *rep,
		   struct gpuq_group *g)
{
	const size_t mark = gpuq_reader_enter(m->r, role);
	char *name = gpuq_arena_strdup(m->r->arena, role);
	int rc;

	if (!name)
		return gpuq_no_memory(m->r->err);
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	g->name = name;
	g->pods_min = g->pods_max = rep->replicas;
	rc = manifest_template_of(m, rep->v, g);
	if (rc == 0)
		rc = manifest_mark(m, g, "labels", "training.kubeflow.org/replica-type", name);
	if (rc == 0 && m->name && strlen(m->name) <= GPUQ_NAME_BYTES_MAX)
		rc = manifest_mark(m, g, "labels", "training.kubeflow.org/job-name", m->name);
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

int kubeflow_retry(struct manifest *m, const char *policy, int64_t backoff)
{
	struct gpuq_retry *retry = &m->out->retry;

	if (strcmp(policy, "Never") == 0)
		backoff = 0;
	manifest_retry(m, backoff);
	if (strcmp(policy, "ExitCode") != 0 || backoff == 0)
		return 0;
	/* Codes from 128 on are of signals: those are tried again. */
	retry->on = GPUQ_RETRY_INFRA | GPUQ_RETRY_OOM;
	retry->exits = gpuq_arena_calloc(m->r->arena, 128, 1);
	if (!retry->exits)
		return gpuq_no_memory(m->r->err);
	for (retry->n_exits = 0; retry->n_exits < 128; retry->n_exits++)
		retry->exits[retry->n_exits] = (uint8_t)(128 + retry->n_exits);
	return 0;
}
