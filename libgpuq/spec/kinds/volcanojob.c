/* Job (batch.volcano.sh): a gang with a group for each task. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/manifest_int.h"

#define L "volcano.sh/"

static const char *const keys[] = { "schedulerName",     "minAvailable",
				    "volumes",           "tasks",
				    "policies",          "plugins",
				    "runningEstimate",   "queue",
				    "maxRetry",          "ttlSecondsAfterFinished",
				    "priorityClassName", "minSuccess",
				    "networkTopology",   NULL };
static const char *const task_keys[] = { "name",      "replicas",       "minAvailable",
					 "template",  "policies",       "maxRetry",
					 "dependsOn", "topologyPolicy", "partitionPolicy",
					 NULL };
static const char *const plugins[] = { "env",        "svc", "ssh",      "pytorch", "mpi",
				       "tensorflow", "ray", "hcclrank", NULL };

struct wishes {
	bool env, svc, pytorch; /* plugins */
	bool restarts; /* a policy starts the job again */
	const char *port; /* of the plugin pytorch */
	bool in_place; /* a template's pods are started again by their node */
};

/* ---- policies ---- */

/* gpuqd ends a job when one of its pods fails, and tries it again as far as retry says: these are
 * the policies that say so. The path stands at the map that has them. */
static int read_policies(struct manifest *m, const struct gpuq_val *map, struct wishes *w)
{
	const struct gpuq_val *list;
	int rc = spec_want_type(m->r, map, "policies", GPUQ_LIST, &list);
	const size_t mark = gpuq_reader_enter(m->r, "policies");

	for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
		const struct gpuq_val *p = list->items[i];
		const char *event = gpuq_get_str(p, "event", ""),
			   *action = gpuq_get_str(p, "action", "");
		const size_t item = gpuq_reader_enter_item(m->r, i);

		if (strcmp(action, "CompleteJob") == 0) {
			gpuq_reader_enter(m->r, "action");
			return spec_fail(
				m->r, gpuq_get(p, "action"), GPUQ_EINVAL,
				"a job has ended when all of its pods have: let the others "
				"end with it, and omit this policy");
		}
		if (strcmp(action, "RestartJob") == 0)
			w->restarts |= strcmp(event, "PodEvicted") != 0;
		else if (strcmp(action, "AbortJob") != 0 && strcmp(action, "TerminateJob") != 0)
			spec_warn(m->r, m->warnings, p,
				  "is not used: a job that failed is tried again as a whole, or "
				  "ends");
		gpuq_reader_leave(m->r, item);
	}
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

/* ---- plugins ---- */

/* --master=NAME and the like of the pytorch plugin. */
static const char *plugin_arg(struct gpuq_arena *a, const struct gpuq_val *args, const char *name,
			      const char *otherwise)
{
	for (size_t i = 0; args && args->type == GPUQ_LIST && i < args->n; i++) {
		const char *s = args->items[i]->type == GPUQ_STR ? args->items[i]->s : "";

		if (strncmp(s, name, strlen(name)) == 0 && s[strlen(name)] == '=')
			return gpuq_arena_strdup(a, s + strlen(name) + 1);
	}
	return otherwise;
}

static int read_plugins(struct manifest *m, struct wishes *w, const struct gpuq_val **pytorch)
{
	static const struct {
		const char *name, *text;
	} refused[] = {
		{ "ssh",
		  "gpuqd makes no keys for ssh: let the pods find one another by MASTER_ADDR "
		  "and GPUQ_NODELIST" },
		{ "mpi", "gpuqd makes no list of hosts for mpirun: start it with srun "
			 "--mpi=launch, gpuq-slurm(7)" },
		{ "tensorflow",
		  "TF_CONFIG is this plugin's: make it of GPUQ_GROUP, GPUQ_GROUP_INDEX "
		  "and GPUQ_NODELIST" },
		{ "ray", "gpuqd does not start Ray: let the command run ray start" },
		{ "hcclrank", "gpuqd gives no ranks of HCCL" },
	};
	const struct gpuq_val *map;
	const char *port;
	int64_t number;
	int rc = spec_want_type(m->r, m->spec, "plugins", GPUQ_MAP, &map);
	const size_t mark = gpuq_reader_enter(m->r, "plugins");

	if (rc < 0 || !map) {
		gpuq_reader_leave(m->r, mark);
		return rc;
	}
	rc = manifest_keys(m, map, plugins);
	for (size_t i = 0; rc == 0 && i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (!gpuq_get(map, refused[i].name))
			continue;
		gpuq_reader_enter(m->r, refused[i].name);
		rc = spec_fail(m->r, gpuq_get(map, refused[i].name), GPUQ_EINVAL, "%s",
			       refused[i].text);
	}
	if (rc < 0)
		return rc;
	*pytorch = gpuq_get(map, "pytorch");
	w->env = gpuq_get(map, "env") != NULL;
	w->svc = gpuq_get(map, "svc") != NULL;
	w->pytorch = *pytorch != NULL;
	port = w->port = plugin_arg(m->r->arena, *pytorch, "--port", "23456");
	if (!port)
		return gpuq_no_memory(m->r->err);
	if (!spec_digits(&port, 1, 65535, &number) || *port) {
		gpuq_reader_enter(m->r, "pytorch");
		return spec_fail(m->r, *pytorch, GPUQ_EINVAL,
				 "expected --port=N, from 1 to 65535, not '%.40s'", w->port);
	}
	gpuq_reader_leave(m->r, mark);
	return 0;
}

/* ---- tasks ---- */

struct task {
	const struct gpuq_val *v;
	const char *name;
	int64_t replicas, min;
};

static int read_task(struct manifest *m, const struct gpuq_val *v, size_t i, struct wishes *w,
		     struct task *out)
{
	int rc;

	if (v->type != GPUQ_MAP)
		return spec_fail(m->r, v, GPUQ_EINVAL, "expected a map with replicas and template");
	*out = (struct task){ .v = v, .replicas = 1, .min = -1 };
	out->name = gpuq_arena_printf(m->r->arena, "default%zu", i);
	rc = manifest_keys(m, v, task_keys);
	if (rc == 0)
		rc = spec_want_str(m->r, v, "name", &out->name);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "replicas", 1, GPUQ_PODS_MAX, &out->replicas);
	if (rc == 0)
		rc = spec_want_int(m->r, v, "minAvailable", 1, out->replicas, &out->min);
	if (rc == 0)
		rc = manifest_refuse(
			m, v, "dependsOn",
			"the pods of a job start together: submit two jobs, the second "
			"with --dependency");
	if (rc == 0)
		rc = manifest_refuse(m, v, "partitionPolicy",
				     "use topology in a job file, gpuq-job(5)");
	if (rc == 0)
		rc = read_policies(m, v, w);
	if (rc < 0)
		return rc;
	manifest_unused(m, v, "topologyPolicy", "is not used for placement");
	if (!out->name || !spec_name_ok(out->name)) {
		gpuq_reader_enter(m->r, "name");
		return spec_fail(m->r, gpuq_get(v, "name"), GPUQ_EINVAL, "expected a name");
	}
	return 0;
}

static int add_variables(struct manifest *m, const struct task *tasks, size_t n, bool alone,
			 const struct wishes *w, struct gpuq_group *g)
{
	const char *index = alone ? "0" : "$(GPUQ_GROUP_INDEX)";
	struct gpuq_arena *a = m->r->arena;
	int rc = 0;

	if (w->env)
		rc = manifest_env(m, g, "VC_TASK_INDEX", index);
	if (rc == 0 && w->env)
		rc = manifest_env(m, g, "VK_TASK_INDEX", index);
	for (size_t i = 0; rc == 0 && w->svc && i < n; i++) {
		char *name = gpuq_arena_printf(a, "VC_%s_NUM", tasks[i].name);

		if (!name)
			return gpuq_no_memory(m->r->err);
		for (char *p = name; *p; p++)
			*p = *p == '-' || *p == '.' ? '_' : (char)toupper((unsigned char)*p);
		rc = manifest_env(m, g, name,
				  gpuq_arena_printf(a, "%lld", (long long)tasks[i].replicas));
	}
	if (rc == 0 && w->pytorch)
		rc = manifest_env(m, g, "MASTER_PORT", w->port);
	return rc;
}

static int add_group(struct manifest *m, const struct task *t, const struct task *tasks, size_t n,
		     bool alone, struct wishes *w, struct gpuq_group *g)
{
	static const char *const policies[] = { "Never", "OnFailure", "Always", NULL };
	const struct gpuq_val *tmpl = gpuq_get(t->v, "template"), *file;
	const char *policy = "OnFailure"; /* Volcano's default */
	size_t mark;
	int rc;

	g->name = n == 1 ? NULL : t->name;
	rc = manifest_other_name(m, t->v, g);
	if (rc < 0)
		return rc;
	g->pods_min = t->min > 0 ? t->min : t->replicas;
	g->pods_max = t->replicas;
	mark = gpuq_reader_enter(m->r, "template");
	file = manifest_mentions(gpuq_path(tmpl, "spec", "containers", NULL), "/etc/volcano");
	if (file)
		return spec_fail(
			m->r, file, GPUQ_EINVAL,
			"/etc/volcano is written by Volcano's controller and not by gpuqd: "
			"use GPUQ_NODELIST, MASTER_ADDR and GPUQ_GROUP_INDEX");
	/* Names of the svc plugin's Service. */
	for (size_t i = 0; m->name && i < n; i++) {
		rc = manifest_names(
			m, tmpl, gpuq_arena_printf(m->r->arena, "%s-%s-", m->name, tasks[i].name));
		if (rc < 0)
			return rc;
	}
	gpuq_reader_leave(m->r, mark);
	rc = manifest_template_of(m, t->v, g);
	gpuq_reader_enter(m->r, "template");
	if (rc == 0)
		rc = manifest_restart(m, gpuq_get(tmpl, "spec"), policies, &policy);
	if (rc < 0)
		return rc;
	w->in_place |= strcmp(policy, "Never") != 0;
	gpuq_reader_leave(m->r, mark);
	if (m->name && strlen(m->name) <= GPUQ_NAME_BYTES_MAX)
		rc = manifest_mark(m, g, "labels", L "job-name", m->name);
	if (rc == 0)
		rc = manifest_mark(m, g, "labels", L "task-spec", t->name);
	if (rc == 0)
		rc = manifest_mark(m, g, "annotations", L "task-spec", t->name);
	return rc < 0 ? rc : add_variables(m, tasks, n, alone, w, g);
}

/* spec.minAvailable: all pods, or with one task fewer of them. */
static int check_minimum(struct manifest *m, struct task *tasks, size_t n)
{
	int64_t all = 0, least = 0, min = 0;

	for (size_t i = 0; i < n; i++) {
		all += tasks[i].replicas;
		least += tasks[i].min > 0 ? tasks[i].min : tasks[i].replicas;
	}
	int rc = spec_want_int(m->r, m->spec, "minAvailable", 1, all, &min);

	if (rc < 0 || min == 0 || min == least)
		return rc;
	if (n == 1 && tasks[0].min < 0) {
		tasks[0].min = min;
		return 0;
	}
	gpuq_reader_enter(m->r, "minAvailable");
	return spec_fail(m->r, gpuq_get(m->spec, "minAvailable"), GPUQ_EINVAL,
			 "expected %lld, the pods of all tasks: give fewer as minAvailable of each "
			 "task",
			 (long long)least);
}

static int read_fields(struct manifest *m, int64_t *retries)
{
	const char *queue = NULL;
	int rc = manifest_keys(m, m->spec, keys);

	*retries = 3; /* Volcano's default */
	if (rc == 0)
		rc = spec_want_int(m->r, m->spec, "maxRetry", 0, GPUQ_RETRY_MAX, retries);
	if (rc == 0)
		rc = spec_want_str(m->r, m->spec, "queue", &queue);
	if (rc == 0)
		rc = manifest_refuse(m, m->spec, "volumes",
				     "expected volumes and volumeMounts in the templates");
	if (rc == 0)
		rc = manifest_refuse(m, m->spec, "minSuccess",
				     "a job has ended when all of its pods have: omit it");
	if (rc == 0)
		rc = manifest_refuse(m, m->spec, "networkTopology",
				     "use topology in a job file, gpuq-job(5)");
	if (rc == 0)
		rc = manifest_ttl(m, m->spec);
	if (rc < 0)
		return rc;
	manifest_unused(m, m->spec, "priorityClassName", "is not used: it comes from the queue");
	if (queue && !spec_name_ok(queue)) {
		gpuq_reader_enter(m->r, "queue");
		return spec_fail(m->r, gpuq_get(m->spec, "queue"), GPUQ_EINVAL,
				 "expected the name of a queue, not '%.63s'", queue);
	}
	m->out->queue = queue;
	return 0;
}

/* The path stands at tasks; `outside` is its length before. */
static int read_tasks(struct manifest *m, const struct gpuq_val *list, struct wishes *w,
		      const struct gpuq_val *pytorch, size_t outside)
{
	struct task tasks[GPUQ_GROUPS_MAX];
	const char *master = plugin_arg(m->r->arena, pytorch, "--master", "master");
	int64_t pods = 0;
	int rc = 0;

	for (size_t i = 0; i < list->n; i++) {
		const size_t item = gpuq_reader_enter_item(m->r, i);

		rc = read_task(m, list->items[i], i, w, &tasks[i]);
		if (rc < 0)
			return rc;
		pods += tasks[i].replicas;
		if (w->pytorch && i > 0 && master && strcmp(tasks[i].name, master) == 0) {
			gpuq_reader_enter(m->r, "name");
			return spec_fail(m->r, gpuq_get(list->items[i], "name"), GPUQ_EINVAL,
					 "expected the master's task first: its pod has rank 0");
		}
		gpuq_reader_leave(m->r, item);
	}
	gpuq_reader_leave(m->r, outside); /* of spec */
	rc = check_minimum(m, tasks, list->n);
	if (rc < 0)
		return rc;
	gpuq_reader_enter(m->r, "tasks");
	rc = manifest_groups(m, list->n);
	for (size_t i = 0; rc == 0 && i < list->n; i++) {
		const size_t item = gpuq_reader_enter_item(m->r, i);

		rc = add_group(m, &tasks[i], tasks, list->n, pods == 1, w, &m->out->groups[i]);
		if (rc == 0)
			gpuq_reader_leave(m->r, item);
	}
	return rc;
}

int kind_volcanojob(struct manifest *m)
{
	const struct gpuq_val *list, *pytorch = NULL;
	struct wishes w = { false };
	int64_t retries;
	size_t mark;
	int rc = read_fields(m, &retries);

	if (rc == 0)
		rc = read_policies(m, m->spec, &w);
	if (rc == 0)
		rc = read_plugins(m, &w, &pytorch);
	if (rc == 0)
		rc = spec_want_type(m->r, m->spec, "tasks", GPUQ_LIST, &list);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "tasks");
	if (!list || list->n == 0 || list->n > GPUQ_GROUPS_MAX)
		return spec_fail(m->r, list ? list : m->spec, GPUQ_EINVAL,
				 "expected a list of 1 to %u tasks", GPUQ_GROUPS_MAX);
	rc = read_tasks(m, list, &w, pytorch, mark);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	manifest_retry(m, w.restarts ? retries : w.in_place ? KIND_BACKOFF : 0);
	return 0;
}
