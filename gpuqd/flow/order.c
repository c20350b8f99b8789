#include "gpuqd/flow/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/flow/env/pod_env.h"
#include "gpuqd/flow/env/slurm_env.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/record/podrecord.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/store/digest.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

int order_spec(struct store *st, uint32_t job, struct gpuq_arena *a, struct gpuq_spec *out,
	       struct gpuq_err *err)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_reader r = { .arena = a, .lenient = true, .stored = true, .err = err };
	struct gpuq_buf bytes = GPUQ_BUF_INIT;
	struct gpuq_val *v;
	int rc = store_get(st, TABLE_SPEC, key, change_key_u32(key, job), &bytes, err);

	if (rc == 0) {
		/* Strings of a tree read from the wire point into the bytes: keep a copy of the
		 * bytes. */
		char *copy = gpuq_arena_strndup(a, bytes.data, bytes.len);

		rc = copy ? gpuq_mp_read(a, &lim, copy, bytes.len, &v, err) : gpuq_no_memory(err);
	}
	gpuq_buf_done(&bytes);
	return rc == 0 ? gpuq_spec_read(&r, v, out) : rc;
}

bool order_is_evicted(const struct job *j)
{
	return j->life->leave_us && job_cause_is_eviction(j->life->leave_cause);
}

int64_t order_grace_us(const struct job *j, bool evicted, const struct gpuq_spec *spec)
{
	int64_t own = spec && spec->grace_us ? spec->grace_us : JOB_GRACE_DEFAULT_US;

	if (evicted && spec && spec->checkpoint.grace_us)
		own = spec->checkpoint.grace_us;
	return j->life->leave_us && j->life->leave_grace_us >= 0 && j->life->leave_grace_us < own
		       ? j->life->leave_grace_us
		       : own;
}

const char *order_namespace(const struct queue *q)
{
	return model_queue_namespace(q);
}

void order_terminal(const struct gpuq_spec *spec, uint32_t group, const char *container,
		    bool *input, bool *tty)
{
	const struct gpuq_val *t = group < spec->n_groups ? spec->groups[group].template_ : NULL;
	const struct gpuq_val *list = gpuq_path(t, "spec", "containers", NULL);

	*tty = spec->tty;
	*input = spec->input_open || spec->tty;
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *c = list->items[i];

		if (container && strcmp(container, gpuq_get_str(c, "name", "")) != 0)
			continue;
		/* A terminal that the job requests itself goes to the first. */
		*tty = gpuq_get_bool(c, "tty", false) || (i == 0 && *tty);
		*input = gpuq_get_bool(c, "stdin", false) || (i == 0 && *input);
		return;
	}
}

bool order_has_finalizer(const struct queue *q)
{
	for (; q; q = q->parent)
		if (q->site->accounting_finalizer)
			return true;
	return false;
}

struct pod_ref order_fact_ref(const struct pod_fact *p)
{
	return (struct pod_ref){ .name = p->name,
				 .namespace_ = p->namespace_,
				 .uid = p->uid,
				 .node = p->node,
				 .token = p->token };
}

void order_ref(const struct model *m, const struct job *j, const struct pod *p, char name[64],
	       struct pod_ref *ref)
{
	const struct origin_pod *o = model_pod_origin(m, p);

	model_pod_name(m, p, name);
	*ref = (struct pod_ref){ .name = name,
				 .namespace_ = order_namespace(j->queue),
				 .uid = p->uid,
				 .node = p->node->name,
				 .token = j->life->token };
	if (o)
		*ref = (struct pod_ref){ .name = o->name,
					 .namespace_ = o->of->namespace_,
					 .uid = o->uid,
					 .node = p->node->name,
					 .token = "",
					 .as = name,
					 .gated = o->of->gated };
}

/* The value of the nearest queue, from the job's own upwards, that sets it. */
#define INHERIT(q_, member_)                                                                       \
	({                                                                                         \
		const char *found = NULL;                                                          \
		for (const struct queue *it = (q_); it && !found; it = it->parent)                 \
			found = it->site->member_;                                                 \
		found ? found : "";                                                                \
	})

const char *order_namespace_of(const struct model *m, struct job_key key)
{
	const struct job *j = model_find_job(m, key);

	return j ? order_namespace(j->queue) : "";
}

bool order_binds(const struct queue *q)
{
	return strcmp(INHERIT(q, start), "bind") == 0;
}

/* True if the job uses tasks, or variables about them. */
static bool has_tasks(const struct gpuq_spec *spec)
{
	return spec->script || spec->slurm_env || spec->ntasks || spec->ntasks_per_node ||
	       spec->cpus_per_task || spec->launch.yes;
}

static void set_tasks(struct pod_env *e, const struct job *j, const struct gpuq_spec *spec,
		      const struct gpuq_group *g, bool local, int64_t n_pods)
{
	const int64_t a_pod = spec->ntasks_per_node;
	const int64_t n = spec->ntasks ? spec->ntasks : (a_pod ? a_pod : 1) * n_pods;

	pod_env_set(e, "GPUQ_QOS", j->qos);
	/* Scripts change to it: where the pod has no such directory it is the one that it runs in. */
	pod_env_set(e, "GPUQ_SUBMIT_DIR",
		    !local && g->workdir &&
				    (spec->code.digest || !gpuq_group_below(g, spec->context.cwd))
			    ? g->workdir
			    : spec->context.cwd);
	pod_env_set_int(e, "GPUQ_RESTART_COUNT", j->attempt);
	pod_env_set_int(e, "GPUQ_NTASKS", n);
	pod_env_set_int(e, "GPUQ_NTASKS_PER_NODE", a_pod ? a_pod : (n + n_pods - 1) / n_pods);
	if (spec->cpus_per_task)
		pod_env_set_int(e, "GPUQ_CPUS_PER_TASK", spec->cpus_per_task);
}

static void set_nodelist(struct pod_env *e, const struct job *j, const struct pod *p)
{
	struct gpuq_buf hosts = GPUQ_BUF_INIT;
	const struct pod *other;

	DL_FOREACH2(j->pods, other, job_next)
		if (other->attempt == p->attempt && !other->dropped)
			gpuq_buf_printf(&hosts, "%s%s", hosts.len ? "," : "", other->node->name);
	pod_env_set(e, "GPUQ_NODELIST", gpuq_arena_strdup(e->a, gpuq_buf_str(&hosts)));
	gpuq_buf_done(&hosts);
}

static void set_array(struct pod_env *e, const struct model *m, const struct job *j,
		      const struct gpuq_array *ar)
{
	const struct job *master = model_find_job(m, (struct job_key){ j->key.id, -1 });

	pod_env_set_int(e, "GPUQ_ARRAY_JOB_ID", j->key.id);
	pod_env_set_int(e, "GPUQ_ARRAY_TASK_ID", j->key.index);
	if (!master || !master->array || !ar->n_ranges)
		return;
	pod_env_set_int(e, "GPUQ_ARRAY_TASK_COUNT", master->array->size);
	pod_env_set_int(e, "GPUQ_ARRAY_TASK_MIN", ar->ranges[0].first);
	pod_env_set_int(e, "GPUQ_ARRAY_TASK_MAX", ar->ranges[ar->n_ranges - 1].last);
	pod_env_set_int(e, "GPUQ_ARRAY_TASK_STEP", ar->ranges[0].step);
}

/* Return how many devices the pod can use: those of claims as well that another pod is charged for. */
static uint32_t usable(const struct pod *p)
{
	const struct gpuq_group *g = shared_claim_group(&p->job->request->spec, p->group);

	return p->n_devices + shared_claim_devices(g, p->rides);
}

/* Set the pod's rank in the job; the variables of PyTorch, for one process per pod; and those of
 * torchrun, which starts one process per device, in place of its options. */
static void set_gang(struct pod_env *e, const struct pod *p, const struct gpuq_group *g, bool local,
		     const struct pod_order *o)
{
	pod_env_set(e, "GPUQ_POD_NAME", o->name);
	pod_env_set(e, "GPUQ_GROUP", g->name);
	pod_env_set_int(e, "GPUQ_GROUP_INDEX", p->group_index);
	if (o->n_pods > 1) {
		const char *first = o->pod_names[0];
		size_t cut = (size_t)(strrchr(first, '-') - first);

		pod_env_set(e, "MASTER_ADDR",
			    local ? "127.0.0.1"
				  : gpuq_arena_printf(e->a, "%s.%.*s", first, (int)cut, first));
		/* Jobs on a shared machine need different ports: the port follows from the id.
		 * In a cluster the owner may choose it. */
		if (!local && gpuq_strmap_get(&g->env, "MASTER_PORT"))
			pod_env_set(e, "MASTER_PORT", gpuq_strmap_get(&g->env, "MASTER_PORT"));
		else
			pod_env_set_int(e, "MASTER_PORT", local ? 20000 + o->job % 20000 : 29500);
		pod_env_set_int(e, "WORLD_SIZE", o->n_pods);
		pod_env_set_int(e, "RANK", p->index);
		pod_env_set(e, "PET_MASTER_ADDR", pod_env_get(e, "MASTER_ADDR"));
		pod_env_set(e, "PET_MASTER_PORT", pod_env_get(e, "MASTER_PORT"));
		pod_env_set_int(e, "PET_NNODES", o->n_pods);
		pod_env_set_int(e, "PET_NODE_RANK", p->index);
		if (usable(p) && !gpuq_strmap_get(&g->env, "PET_NPROC_PER_NODE"))
			pod_env_set_int(e, "PET_NPROC_PER_NODE", usable(p));
	}
}

/* True if sruns of several pods may start tasks together. */
static bool has_steps(const struct gpuq_spec *spec, bool local, const struct pod_order *o)
{
	return has_tasks(spec) && !local && o->n_pods > 1;
}

/* By it sruns in pods of a gang know one another. It follows from the token of the attempt, and tells nothing of it. */
static void set_gang_key(struct pod_env *e, const char *token)
{
	static const char salt[] = "gang";
	unsigned char raw[DIGEST_BYTES] = { 0 };
	char hex[DIGEST_HEX_BYTES];
	struct digest *d;

	if (digest_new(&d, NULL) < 0)
		return;
	digest_add(d, salt, sizeof(salt));
	digest_add(d, token, strlen(token));
	digest_end(d, raw);
	digest_hex(raw, hex);
	pod_env_set(e, "GPUQ_GANG_KEY", gpuq_arena_strndup(e->a, hex, 32));
}

/* Each variable costs the API server several times: at the creation and at every report of the
 * kubelet it visits all fields of the pod and records their managers. Variables that mean nothing
 * for this job are therefore left out. */
static void fill_env(struct pod_env *e, const struct model *m, const struct job *j,
		     const struct pod *p, const struct gpuq_spec *spec, bool local,
		     const struct pod_order *o)
{
	const struct gpuq_group *g = &spec->groups[p->group];
	const bool alone = spec->n_groups == 1 && g->pods_max <= 1, tasks = has_tasks(spec);
	struct gpuq_buf devices = GPUQ_BUF_INIT;
	const struct backend *backend;

	pod_env_set_int(e, "GPUQ_JOB_ID", j->key.id);
	pod_env_set(e, "GPUQ_JOB_NAME", j->name);
	pod_env_set(e, "GPUQ_QUEUE", j->queue->name);
	pod_env_set(e, "GPUQ_USER", j->user);
	pod_env_set(e, "GPUQ_ACCOUNT", *j->wish->account ? j->wish->account : NULL);
	pod_env_set_int(e, "GPUQ_ATTEMPT", j->attempt);
	pod_env_set_int(e, "GPUQ_POD_INDEX", p->index);
	pod_env_set_int(e, "GPUQ_POD_COUNT", o->n_pods);
	pod_env_set_int(e, "GPUQ_NNODES", o->n_pods);
	pod_env_set(e, "GPUQ_NODE_NAME", p->node->name);
	pod_env_set_int(e, "GPUQ_GPUS", usable(p));
	for (uint32_t i = 0; i < p->n_devices; i++)
		gpuq_buf_printf(&devices, "%s%u", i ? "," : "", p->devices[i]);
	/* Where the node chooses, the plan may turn out to be false. */
	backend = backend_of(o->sharing);
	if (local || (backend && backend->decided))
		pod_env_set(e, "GPUQ_DEVICES", gpuq_arena_strdup(e->a, gpuq_buf_str(&devices)));
	gpuq_buf_done(&devices);
	if (j->time_limit_us != GPUQ_UNLIMITED)
		pod_env_set_int(e, "GPUQ_TIME_LIMIT_S", j->time_limit_us / GPUQ_US_PER_S);
	if (j->key.index >= 0)
		set_array(e, m, j, &spec->array);
	/* Variables that an Indexed batch/v1 Job passes to its pods. */
	if (g->template_)
		pod_env_set_int(e, "JOB_COMPLETION_INDEX", o->completion_index);
	if (tasks)
		set_tasks(e, j, spec, g, local, o->n_pods);
	if (tasks || !alone)
		set_nodelist(e, j, p);
	if (!alone)
		set_gang(e, p, g, local, o);
	if (has_steps(spec, local, o))
		set_gang_key(e, o->token);
	if (spec->slurm_env)
		slurm_env_fill(e, &(struct slurm_env_job){ .spec = spec,
							   .group = g,
							   .number = j->life->element_id
									     ? j->life->element_id
									     : j->key.id,
							   .uid = j->wish->uid,
							   .gid = j->wish->gid,
							   .n_pods = o->n_pods,
							   .n_devices = usable(p),
							   .start_us = o->now_us,
							   .limit_us = j->time_limit_us });
}

/* Return the record. A pod without one runs as well: only a restore knows less about it. */
static const char *record_of(const struct job *j, const struct pod *p, uint32_t n_pods,
			     struct gpuq_arena *a)
{
	const struct podrecord r = {
		.user = j->user,
		.queue = j->queue->name,
		.qos = j->qos,
		.name = j->name,
		.account = j->wish->account,
		.flavor = j->life->flavor,
		.uid = j->wish->uid,
		.gid = j->wish->gid,
		.submit_us = j->submit_us,
		.limit_us = j->time_limit_us,
		.gpus_milli = p->gpus_milli,
		.cpu_milli = p->cpu_milli,
		.memory_bytes = p->memory_bytes,
		.pods = n_pods,
		.group = p->group,
		.group_index = p->group_index,
		.element_id = j->life->element_id,
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *out = NULL;

	if (podrecord_write(&r, &b, &err) == 0)
		out = gpuq_arena_strndup(a, b.data, b.len);
	else
		log_warn("dispatch.record", "job=%" PRIu32 " error=%s", j->key.id, LOGS(err.text));
	gpuq_buf_done(&b);
	return out ? out : "";
}

/* A pod's index in its Job: the element of an array, else its place in its group. */
static int64_t completion_index(const struct job *j, const struct pod *p)
{
	return j->key.index >= 0 ? j->key.index : (int64_t)p->group_index;
}

/* Pods of an Indexed Job have the host names that Kubernetes gives them, where these are names; a
 * template's subdomain is its owner's Service. */
static int host_of(const struct job *j, const struct pod *p, const struct gpuq_spec *spec,
		   const char *name, struct gpuq_arena *a, struct pod_host *out)
{
	const struct gpuq_val *t = spec->groups[p->group].template_;
	const struct gpuq_val *meta = gpuq_get(t, "metadata");
	const char *job =
		gpuq_get_str(gpuq_get(meta, "labels"), "batch.kubernetes.io/job-name", "");
	const char *domain = gpuq_get_str(gpuq_get(t, "spec"), "subdomain", "");

	*out = (struct pod_host){ name, *domain ? domain : NULL };
	if (!gpuq_path(meta, "annotations", GPUQ_COMPLETION_INDEX, NULL) || !*job ||
	    strchr(job, '.'))
		return 0;
	job = gpuq_arena_printf(a, "%s-%" PRId64, job, completion_index(j, p));
	if (job && strlen(job) <= GPUQ_NAME_BYTES_MAX)
		out->name = job;
	return job ? 0 : GPUQ_ENOMEM;
}

const char *order_account_asked(const struct gpuq_group *g)
{
	const struct gpuq_val *spec = gpuq_get(g->template_, "spec");
	const char *name = gpuq_get_str(spec, "serviceAccountName", "");

	return *name ? name : gpuq_get_str(spec, "serviceAccount", "");
}

const char *order_account(const struct queue *q, const struct gpuq_group *g)
{
	const char *asked = order_account_asked(g), *own = INHERIT(q, service_account);

	while (q && !q->site->service_accounts.n)
		q = q->parent;
	for (size_t i = 0; *asked && q && i < q->site->service_accounts.n; i++) {
		const char *glob = q->site->service_accounts.items[i];

		if (strcmp(glob, "any") == 0 || site_glob(glob, asked))
			return asked;
	}
	return own;
}

/* Fill in the queue's part of an order. */
static void set_queue(struct pod_order *o, const struct site *site, const struct queue *queue)
{
	o->namespace_ = order_namespace(queue);
	o->service_account = order_account(queue, &o->spec->groups[o->group]);
	o->priority_class = INHERIT(queue, priority_class);
	for (const struct queue *q = queue; q && !o->image_pull_secrets.n; q = q->parent)
		o->image_pull_secrets = q->site->image_pull_secrets;
	o->accounting_finalizer = order_has_finalizer(queue);
	o->unbound = order_binds(queue);
	walls_of_queue(site, queue->name, &o->walls);
	o->image = o->spec->groups[o->group].image;
	if (!o->image)
		o->image = INHERIT(queue, pod.image);
	o->queue = queue->name;
}

/* Return the spec with what the site, the queue and the flavor add to it. */
static const struct gpuq_spec *with_site(const struct model *m, const char *queue, const char *user,
					 const char *flavor, bool local,
					 const struct gpuq_spec *spec, struct gpuq_arena *a,
					 struct gpuq_err *err)
{
	const struct pod_keys_for f = { queue, user, flavor ? flavor : "", local };
	struct gpuq_spec *whole = gpuq_arena_calloc(a, 1, sizeof(*whole));

	if (!whole) {
		gpuq_no_memory(err);
		return NULL;
	}
	return pod_keys_merge(m->site, &f, spec, a, whole, err) < 0 ? NULL : whole;
}

int order_try(const struct model *m, const struct queue *q, const char *user,
	      const struct gpuq_spec *spec, uint32_t group, struct gpuq_arena *a,
	      struct pod_order *out)
{
	const char *name = gpuq_arena_printf(a, "gpuq-%s-0-0-0", m->cluster_id);
	const char **names = gpuq_arena_calloc(a, 1, sizeof(*names));

	if (!name || !names)
		return GPUQ_ENOMEM;
	names[0] = name;
	spec = with_site(m, q->name, user, "", false, spec, a, NULL);
	if (!spec)
		return GPUQ_ENOMEM;
	*out = (struct pod_order){ .spec = spec,
				   .name = name,
				   .token = "",
				   .cluster_id = m->cluster_id,
				   .cluster_uid = m->cluster_uid,
				   .node = "",
				   .sharing = "",
				   .device = "",
				   .array_index = -1,
				   .group = group,
				   .n_pods = 1,
				   .pod_names = names,
				   .user = user,
				   .record = "",
				   .time_limit_us = GPUQ_UNLIMITED,
				   .grace_us =
					   spec->grace_us ? spec->grace_us : JOB_GRACE_DEFAULT_US };
	set_queue(out, m->site, q);
	return objects_defaults(m->objects, out->namespace_, a, &out->none) ? 0 : GPUQ_ENOMEM;
}

/* One of an ephemeral volume does not exist before its pod, which it is named after. */
int order_claims(const struct job *j, const struct pod *p, const struct gpuq_spec *spec,
		 const char *name, struct gpuq_arena *a, struct gpuq_strlist *out,
		 struct gpuq_err *err)
{
	const struct gpuq_group *where = j->request->spec.groups[p->group].where;
	const struct gpuq_val *list =
		gpuq_path(spec->groups[p->group].template_, "spec", "volumes", NULL);
	const size_t n_list = list && list->type == GPUQ_LIST ? list->n : 0;
	const size_t n = where ? where->n_volumes : 0;

	*out = (struct gpuq_strlist){ gpuq_arena_calloc(a, n + n_list + 1, sizeof(*out->items)),
				      0 };
	if (!out->items)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < n; i++)
		out->items[out->n++] = where->volumes[i].claim;
	for (size_t i = 0; i < n_list; i++) {
		const char *claim;

		if (!gpuq_get(list->items[i], "ephemeral"))
			continue;
		claim = gpuq_arena_printf(a, "%s-%s", name,
					  gpuq_get_str(list->items[i], "name", ""));
		if (!claim)
			return gpuq_no_memory(err);
		out->items[out->n++] = claim;
	}
	return 0;
}

/* Collect what the pod mounts, and decide whether it is created without its node: some claim of it
 * is provisioned once a node is selected. */
static int fill_claims(const struct model *m, const struct job *j, const struct pod *p,
		       const struct gpuq_spec *spec, struct gpuq_arena *a, struct pod_order *o,
		       struct gpuq_err *err)
{
	const struct gpuq_group *where = j->request->spec.groups[p->group].where;
	const size_t n = where ? where->n_volumes : 0;
	const struct object_fact *volume;
	int rc = order_claims(j, p, spec, o->name, a, &o->claims, err);

	o->unbound |= where && where->n_claims > 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const enum objects_claim is = objects_claim(m->objects, order_namespace(j->queue),
							    o->claims.items[i], &volume);

		o->unbound |= is == OBJECTS_CLAIM_WAITS || is == OBJECTS_CLAIM_CHOOSES;
	}
	if (rc == 0 && o->claims.n > n)
		o->unbound |= objects_may_bind(m->objects);
	return rc;
}

/* A node that came by a request keeps as long as its pods name it. They can do so in its namespace
 * only. */
static int fill_capacity(const struct model *m, const struct job *j, const struct pod *p,
			 struct gpuq_arena *a, struct pod_order *o, struct gpuq_err *err)
{
	bool stale;
	const struct ask *ask = m->asks ? ask_of_node(m, p->node->name, &stale) : NULL;
	char *name;

	if (!ask || stale || ask->state == ASK_STATE_ENDED || ask_stands(ask) ||
	    strcmp(ask->namespace_, order_namespace(j->queue)) != 0)
		return 0;
	name = gpuq_arena_alloc(a, ASK_NAME_ROOM);
	if (!name)
		return gpuq_no_memory(err);
	ask_name(m, ask, name);
	o->capacity = name;
	o->capacity_class = ask->class_;
	return 0;
}

/* Return the spec as the pod has it: with the profile, or the alternatives, that its group was given. NULL: no memory. */
static const struct gpuq_spec *with_choice(const struct pod *p, const struct gpuq_spec *spec,
					   struct gpuq_arena *a)
{
	struct gpuq_spec *out;
	struct gpuq_group *groups, *g;

	const bool chose = p->choice.first && p->gpus_milli > 0;

	if (!p->mig && !chose)
		return spec;
	out = gpuq_arena_calloc(a, 1, sizeof(*out));
	groups = gpuq_arena_calloc(a, spec->n_groups, sizeof(*groups));
	if (!out || !groups)
		return NULL;
	memcpy(groups, spec->groups, spec->n_groups * sizeof(*groups));
	g = &groups[p->group];
	if (chose)
		g->gpus_milli = p->gpus_milli;
	if (p->mig) {
		g->mig = p->mig;
		g->gpu_memory_bytes = g->gpu_cores = g->gpu_cores_limit = 0;
		g->gpus_milli = g->gpus_milli < 1000 ? 1000 : g->gpus_milli;
	}
	*out = *spec;
	out->groups = groups;
	return out;
}

int order_fill(const struct model *m, const struct job *j, const struct pod *p,
	       const struct gpuq_spec *spec, bool local, struct gpuq_arena *a,
	       struct pod_order *out, struct gpuq_err *err)
{
	const struct site_qos *qos = site_qos_find(m->site, j->qos);
	const struct site_pool *pool = site_pool_find(m->site, p->node->pool);
	struct pod_order o = { .n_pods = 0 };
	const struct pod *other;
	struct pod_host *hosts;
	const char **names;
	uint32_t n = 0;
	const char **uuids = gpuq_arena_calloc(a, p->n_devices + 1, sizeof(*uuids));
	int *devices;
	char *name = gpuq_arena_alloc(a, 64);

	DL_FOREACH2(j->pods, other, job_next)
		n += other->attempt == p->attempt && !other->dropped;
	names = gpuq_arena_calloc(a, n + 1, sizeof(*names));
	hosts = gpuq_arena_calloc(a, n + 1, sizeof(*hosts));
	devices = gpuq_arena_calloc(a, p->n_devices + 1, sizeof(*devices));
	o.code_image = m->site->code ? m->site->code->image : NULL;
	o.env.keys = gpuq_arena_calloc(a, POD_ENV_MAX, sizeof(char *));
	o.env.vals = gpuq_arena_calloc(a, POD_ENV_MAX, sizeof(char *));
	if (!name || !names || !hosts || !devices || !uuids || !o.env.keys || !o.env.vals)
		return gpuq_no_memory(err);
	spec = with_site(m, j->queue->name, j->user, j->life->flavor, local, spec, a, err);
	spec = spec ? with_choice(p, spec, a) : NULL;
	if (!spec)
		return GPUQ_ENOMEM;
	o.spec = spec;
	model_pod_name(m, p, name);
	n = 0;
	DL_FOREACH2(j->pods, other, job_next) {
		char *other_name = gpuq_arena_alloc(a, 64);

		if (!other_name)
			return gpuq_no_memory(err);
		if (other->attempt != p->attempt || other->dropped)
			continue;
		model_pod_name(m, other, other_name);
		if (host_of(j, other, spec, other_name, a, &hosts[n]) < 0)
			return gpuq_no_memory(err);
		names[n++] = other_name;
	}
	for (uint32_t i = 0; i < p->n_devices; i++) {
		devices[i] = p->devices[i];
		uuids[i] = p->devices[i] < p->node->n_devices ? p->node->devices[p->devices[i]].uuid
							      : "";
	}
	o.name = name;
	o.token = j->life->token;
	o.cluster_id = m->cluster_id;
	o.cluster_uid = m->cluster_uid;
	o.preemptible = qos && qos->preemptible;
	o.keeps_node = pool && site_pool_grows(pool);
	o.tolerations = pool ? &pool->tolerations : NULL;
	o.group = p->group;
	set_queue(&o, m->site, j->queue);
	if (!objects_defaults(m->objects, o.namespace_, a, &o.none))
		return gpuq_no_memory(err);
	o.node = p->node->name;
	if (fill_claims(m, j, p, spec, a, &o, err) < 0)
		return GPUQ_ENOMEM;
	if (fill_capacity(m, j, p, a, &o, err) < 0)
		return GPUQ_ENOMEM;
	o.devices = devices;
	o.uuids = uuids;
	o.n_devices = p->n_devices;
	o.sharing = p->node->backend ? p->node->backend->word : "";
	o.device = p->node->fact.device;
	o.n_node_devices = p->node->n_devices;
	if (p->n_devices) {
		o.milli = model_pod_cores(p);
		if (p->devices[0] < p->node->n_devices)
			o.device_mib = p->node->devices[p->devices[0]].memory_mib;
	}
	o.now_us = walltime_of(p->placed_us, m->ahead_us);
	o.job = j->key.id;
	o.attempt = p->attempt;
	o.index = p->index;
	o.array_index = j->key.index;
	o.number = j->life->element_id;
	o.group_index = p->group_index;
	o.n_pods = n;
	o.pod_names = names;
	o.hosts = hosts;
	o.completion_index = completion_index(j, p);
	o.user = j->user;
	o.account = j->wish->account;
	o.uid = j->wish->uid;
	o.gid = j->wish->gid;
	o.record = record_of(j, p, n, a);
	o.time_limit_us = j->time_limit_us;
	o.grace_us = spec->grace_us ? spec->grace_us : JOB_GRACE_DEFAULT_US;
	fill_env(&(struct pod_env){ a, &o.env }, m, j, p, spec, local, &o);
	if (m->site->steps && !spec->groups[p->group].template_ && has_steps(spec, local, &o))
		o.steps_image = m->site->steps->image;
	*out = o;
	return 0;
}
