/* gpuq's own form of a job (gpuq-job(5)): the tables. Values that are more than
 * a scalar are read in spec_kinds.c, checks across fields are in spec_check.c. */
#include "libgpuq/spec/spec_kinds.h"

#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/names.h"
#include "libgpuq/spec/toleration.h"

/* True if a path is not one below the volume. */
static bool is_outside(const char *path)
{
	return !*path || *path == '/' || gpuq_path_goes_up(path);
}

/* True for a place that pods have for the script or the code of their job. */
static bool is_ours(const char *path)
{
	static const char *const ours[] = { GPUQ_SCRIPT_PATH, GPUQ_CODE_PATH, GPUQ_STEPS_PATH };

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		const size_t n = strlen(ours[i]);

		if (strncmp(path, ours[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	return false;
}

/* True for a place that the runtime fills itself: nothing starts with another one there. */
static bool is_taken(const char *path)
{
	static const char *const taken[] = { "/", "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strcmp(path, taken[i]) == 0)
			return true;
	return false;
}

/* Check the names that the cluster would refuse; a job or site that was accepted before keeps its own. */
static int volume_names(struct gpuq_reader *r, const struct gpuq_val *v,
			const struct gpuq_volume *o)
{
	const char *const names[] = { o->claim, o->config_map, o->secret };
	static const char *const keys[] = { "claim", "config_map", "secret" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !r->stored; i++)
		if (names[i] && !spec_object_name_ok(names[i], false))
			return spec_fail(r, v, GPUQ_EINVAL,
					 "expected %s to be the name of one: a-z, 0-9, '-' and "
					 "'.', not '%.80s'",
					 keys[i], names[i]);
	if (!r->stored && gpuq_path_goes_up(o->path))
		return spec_fail(r, v, GPUQ_EINVAL, "expected path without '..', not '%.80s'",
				 o->path);
	if (!r->stored && is_ours(o->path))
		return spec_fail(
			r, v, GPUQ_EINVAL,
			"expected another path than '%.80s': scripts and code of jobs are there",
			o->path);
	if (!r->stored && is_taken(o->path))
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected a path below '/' other than /proc, /sys and /dev, not "
				 "'%.80s'",
				 o->path);
	if (!r->stored && o->nfs && !*o->nfs->server)
		return spec_fail(r, v, GPUQ_EINVAL, "expected nfs.server to be a host, not ''");
	if (!r->stored && strchr(o->path, ':'))
		return spec_fail(r, v, GPUQ_EINVAL, "expected path without ':', not '%.80s'",
				 o->path);
	return 0;
}

static int volume_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct gpuq_volume *o = obj;
	const int n = !!o->claim + !!o->config_map + !!o->secret + !!o->host_path + !!o->nfs +
		      (o->memory_bytes > 0);

	if (n != 1)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected exactly one of claim, config_map, secret, host_path, "
				 "nfs, memory");
	if (o->path[0] != '/')
		return spec_fail(r, v, GPUQ_EINVAL, "expected path to begin with '/', not '%.80s'",
				 o->path);
	/* The same place is one string from here on. */
	o->path = gpuq_path_plain(r->arena, o->path);
	if (!o->path)
		return gpuq_no_memory(r->err);
	if (o->nfs && o->nfs->path[0] != '/')
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected nfs.path to begin with '/', not '%.80s'", o->nfs->path);
	if (o->sub_path && is_outside(o->sub_path))
		return spec_fail(
			r, v, GPUQ_EINVAL,
			"expected sub_path to be a path below the volume, without '..', not "
			"'%.80s'",
			o->sub_path);
	return volume_names(r, v, o);
}

/* clang-format off */
#define G(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_group, member), __VA_ARGS__ }
#define C(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_CUSTOM, .custom = &spec_##kind_##_kind, \
	  .offset = offsetof(struct gpuq_group, member), __VA_ARGS__ }
#define V(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_volume, member), __VA_ARGS__ }
#define J(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_spec, member), __VA_ARGS__ }
#define K(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_CUSTOM, .custom = &spec_##kind_##_kind, \
	  .offset = offsetof(struct gpuq_spec, member), __VA_ARGS__ }

#define N(name, member, ...) \
	{ .key = name, .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_nfs, member), \
	  .flags = GPUQ_F_REQUIRED, __VA_ARGS__ }

static const struct gpuq_field nfs_fields[] = {
	N("server", server, .doc = "Host of the file server."),
	N("path", path, .doc = "Directory that it exports."),
	{ .key = NULL },
};

static const struct gpuq_schema nfs_schema = {
	.name = "nfs", .size = sizeof(struct gpuq_nfs), .fields = nfs_fields,
};

static const struct gpuq_field volume_fields[] = {
	V("claim", STR, claim, .doc = "A PersistentVolumeClaim of the queue's namespace."),
	V("config_map", STR, config_map, .doc = "A ConfigMap of the queue's namespace."),
	V("secret", STR, secret, .doc = "A Secret of the queue's namespace."),
	V("host_path", STR, host_path, .doc = "A directory of the node, where the queue allows it."),
	V("nfs", OBJECT_PTR, nfs, .sub = &nfs_schema, .doc = "A directory of a file server: {server, path}."),
	V("memory", BYTES, memory_bytes, .min = 1, .max = INT64_MAX,
	  .doc = "Size of a memory file system, such as for /dev/shm."),
	V("path", STR, path, .flags = GPUQ_F_REQUIRED, .doc = "Mount path in the pod."),
	V("sub_path", STR, sub_path, .doc = "Directory of the volume that is mounted; default: its root."),
	V("read_only", BOOL, read_only, .doc = "The pod may not write to it."),
	{ .key = NULL },
};

const struct gpuq_schema gpuq_volume_schema = {
	.name = "volume", .size = sizeof(struct gpuq_volume), .fields = volume_fields,
	.check = volume_check,
};

static const struct gpuq_field group_fields[] = {
	G("name", NAME, name, .flags = GPUQ_F_KEY, .doc = "Name of the group; main when there is only one."),
	C("pods", pods, pods_min, .doc = "Number of pods, which start together; {min, max} makes the job elastic."),
	C("gpus", gpus, gpus_milli, .doc = "Number of devices of each pod; 0.5 is half a device."),
	G("gpu_memory", BYTES, gpu_memory_bytes, .min = 1, .max = INT64_MAX,
	  .doc = "Memory of each device; without gpus, the job requests a share of one device."),
	C("gpu_cores", cores, gpu_cores, .doc = "Percent of the cores of each device; {request, limit} lets the job use idle ones."),
	C("mig", mig, mig, .form = "profile or list",
	  .doc = "MIG profile, such as 1g.10gb, or a list of which one is taken; gpus then counts instances."),
	G("mig_ok", BOOL, mig_ok, .doc = "Accept a MIG instance that has gpu_memory instead of a share of a device."),
	G("cpus", MILLI, cpu_milli, .min = 0, .max = INT64_MAX,
	  .doc = "CPUs of each pod; default 1, or uncounted for pods with devices."),
	G("memory", BYTES, memory_bytes, .min = 0, .max = INT64_MAX, .doc = "Memory of each pod; uncounted if absent."),
	C("resources", resources, resources, .doc = "Further resources of each pod: {NAME: COUNT}, such as {rdma/hca: 1}."),
	G("image", STR, image, .doc = "Container image; the queue may have a default."),
	C("command", command, command, .doc = "Program and arguments; a string is run by /bin/sh -c."),
	G("args", STRLIST, args, .doc = "Further arguments, after the command."),
	G("env", STRMAP, env, .doc = "Environment variables."),
	G("volumes", OBJECTS, volumes, .sub = &gpuq_volume_schema, .doc = "Volumes mounted into each pod."),
	G("claims", OBJECTS, claims, .sub = &gpuq_claim_schema, .max = GPUQ_CLAIMS_MAX, .doc = "Claims of devices (Kubernetes DRA)."),
	G("workdir", STR, workdir, .doc = "Working directory in the container."),
	G("runtime_class", STR, runtime_class, .doc = "RuntimeClass of the pods."),
	C("topology", topology, topology_required, .doc = "Proximity of the pods: {required: LEVEL, preferred: LEVEL, slices: [...]}."),
	C("node_selector", selector, required, .doc = "Labels a node must have."),
	C("affinity", affinity, required, .doc = "{required, preferred}: terms over node labels."),
	C("constraint", constraint, required, .doc = "As sbatch --constraint: a&b, a|b, key=value."),
	G("tolerations", OBJECTS, tolerations, .sub = &gpuq_toleration_schema, .doc = "Tolerated taints."),
	C("nodes", hosts, nodes, .doc = "Allowed nodes; n[1-4] is four nodes."),
	C("exclude", hosts, exclude, .doc = "Excluded nodes."),
	G("claims_beside", BOOL, claims_beside, .flags = GPUQ_F_HIDDEN,
	  .doc = "Devices are a plugin's, not those of the claims; gpuqd fills it in."),
	G("template", VAL, template_, .flags = GPUQ_F_HIDDEN,
	  .doc = "Pod template of a manifest; the fields above are read from it."),
	{ .key = NULL },
};

const struct gpuq_schema gpuq_group_schema = {
	.name = "group", .size = sizeof(struct gpuq_group), .fields = group_fields,
	.defaults = spec_group_defaults, .check = spec_check_group,
};

static const struct gpuq_field checkpoint_fields[] = {
	{ .key = "signal", .kind = GPUQ_K_SIGNAL, .offset = offsetof(struct gpuq_checkpoint, signal),
	  .doc = "Signal sent when the job is preempted." },
	{ .key = "grace", .kind = GPUQ_K_DURATION, .offset = offsetof(struct gpuq_checkpoint, grace_us),
	  .doc = "Grace period between that signal and the end." },
	{ .key = "interval", .kind = GPUQ_K_DURATION,
	  .offset = offsetof(struct gpuq_checkpoint, interval_us), .doc = "Interval of the job's regular checkpoints." },
	{ .key = NULL },
};
static const struct gpuq_schema checkpoint_schema = {
	.name = "checkpoint", .size = sizeof(struct gpuq_checkpoint), .fields = checkpoint_fields,
};

static void context_defaults(void *obj)
{
	((struct gpuq_context *)obj)->umask = -1;
}

static const struct gpuq_field origin_fields[] = {
	{ .key = "kind", .kind = GPUQ_K_STR, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_origin, kind), .doc = "Kind of the owner." },
	{ .key = "name", .kind = GPUQ_K_STR, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_origin, name), .doc = "Name of the owner." },
	{ .key = "uid", .kind = GPUQ_K_STR, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_origin, uid), .doc = "Its identity." },
	{ .key = "namespace", .kind = GPUQ_K_STR, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_origin, namespace_), .doc = "Namespace of its pods." },
	{ .key = "pods", .kind = GPUQ_K_STRLIST, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_origin, pods), .doc = "Name and identity of each pod." },
	{ .key = "gated", .kind = GPUQ_K_BOOL,
	  .offset = offsetof(struct gpuq_origin, gated), .doc = "The owner was suspended." },
	{ .key = NULL },
};
static const struct gpuq_schema origin_schema = {
	.name = "origin", .size = sizeof(struct gpuq_origin), .fields = origin_fields,
};

static const struct gpuq_field context_fields[] = {
	{ .key = "cwd", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_context, cwd),
	  .doc = "Directory of submission." },
	{ .key = "host", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_context, host),
	  .doc = "Machine of submission." },
	{ .key = "command", .kind = GPUQ_K_STR, .max = GPUQ_TEXT_BYTES_MAX,
	  .offset = offsetof(struct gpuq_context, command), .doc = "The script or command, and its arguments." },
	{ .key = "interactive", .kind = GPUQ_K_BOOL, .offset = offsetof(struct gpuq_context, interactive),
	  .doc = "The submitter attends it." },
	{ .key = "environ", .kind = GPUQ_K_STRMAP, .offset = offsetof(struct gpuq_context, environ),
	  .doc = "The submitter's environment." },
	{ .key = "umask", .kind = GPUQ_K_INT, .min = -1, .max = 0777,
	  .offset = offsetof(struct gpuq_context, umask), .doc = "The submitter's umask." },
	{ .key = "resubmit_of", .kind = GPUQ_K_INT, .min = 0, .max = UINT32_MAX,
	  .offset = offsetof(struct gpuq_context, resubmit_of), .doc = "Number of the job that is submitted again." },
	{ .key = "origin", .kind = GPUQ_K_OBJECT_PTR, .sub = &origin_schema,
	  .offset = offsetof(struct gpuq_context, origin), .doc = "Pods that it consists of; written by gpuqd." },
	{ .key = NULL },
};
static const struct gpuq_schema context_schema = {
	.name = "context", .size = sizeof(struct gpuq_context), .fields = context_fields,
	.defaults = context_defaults,
};

static const struct gpuq_field spec_fields[] = {
	J("name", STR, name, .min = 1, .max = GPUQ_JOB_NAME_BYTES_MAX, .doc = "Name of the job; default: the file's or the command's."),
	K("queue", queues, queue, .doc = "Queue, or several with commas: the one that starts the job first; default: the user's, else `default`."),
	K("account", account, account, .doc = "Recorded with the job, for reports."),
	J("namespace", NAME, namespace_, .doc = "Must be that of the queue, if given."),
	J("qos", NAME, qos, .doc = "Quality of service; default: normal."),
	J("time", DURATION, time_us, .min = 1000000, .max = INT64_MAX, .doc = "Time limit; default: the queue's."),
	J("time_min", DURATION, time_min_us, .min = 1000000, .max = INT64_MAX,
	  .doc = "Minimum time limit for backfill."),
	J("begin", INSTANT, begin_us, .doc = "Earliest start."),
	J("deadline", INSTANT, deadline_us, .doc = "Latest end."),
	J("nice", INT, nice, .min = -1000000, .max = 1000000, .doc = "Nice value; a larger one lowers the priority."),
	J("priority", INT, priority, .min = 1, .max = GPUQ_PRIORITY_MAX,
	  .doc = "Fixed priority that replaces the computed one; operators only."),
	J("hold", BOOL, hold, .doc = "Hold the job until it is released."),
	J("requeue", BOOL, requeue, .doc = "Requeue the job after an eviction; default true."),
	J("reservation", NAME, reservation, .doc = "Run inside this reservation."),
	K("flavor", flavors, flavors, .form = "name, or list of names and maps",
	  .doc = "Kinds of device, in order of preference: NAME or {name, for, refusals, max_price}."),
	J("spot", ENUM, spot, .names = gpuq_spots,
	  .doc = "Whether it may run on nodes that their cloud may take away."),
	K("licenses", licenses, licenses, .doc = "Licenses the job requires: {NAME: COUNT}."),
	J("exclusive", BOOL, exclusive, .doc = "Allocate whole nodes exclusively."),
	J("isolation", ENUM, isolation, .names = gpuq_isolations,
	  .doc = "Minimum isolation of its devices from other pods; default: that of the queue."),
	K("array", array, array, .doc = "One job for each index: 0-99%10 (at most 10 at once)."),
	K("depends", depends, depends, .doc = "Dependencies on other jobs: [afterok:123]."),
	J("kill_on_invalid_dep", BOOL, kill_on_invalid_dep,
	  .doc = "Cancel the job when its dependency can no longer be met."),
	K("retry", retry, retry, .doc = "Retries after a failure: {limit: N, on: [...]}."),
	J("checkpoint", OBJECT, checkpoint, .sub = &checkpoint_schema, .doc = "Checkpointing: {signal, grace, interval}."),
	J("grace", DURATION, grace_us, .doc = "Grace period between TERM and KILL; default 30s."),
	K("signal", signal, signal, .doc = "Signal sent before the time limit: [B:]SIGNAL[@SECONDS]."),
	K("script", script, script, .doc = "Text of a script to run; /bin/sh without a #! line."),
	J("script_args", STRLIST, script_args, .doc = "The script's arguments."),
	K("code", code, code, .form = "directory, true or false",
	  .doc = "Directory whose files travel with the job, which runs in a copy of them; true: that of submission."),
	J("ntasks", INT, ntasks, .min = 0, .max = INT32_MAX, .doc = "Value of GPUQ_NTASKS."),
	J("ntasks_per_node", INT, ntasks_per_node, .min = 0, .max = INT32_MAX,
	  .doc = "Value of GPUQ_NTASKS_PER_NODE."),
	J("cpus_per_task", INT, cpus_per_task, .min = 0, .max = INT32_MAX,
	  .doc = "Value of GPUQ_CPUS_PER_TASK."),
	J("memory_per", STR, memory_per, .form = "cpu or gpu",
	  .doc = "How memory was requested, for SLURM_MEM_PER_*; memory remains that of a pod."),
	J("chdir", STR, chdir, .doc = "Working directory on the local cluster."),
	J("output", STR, output, .doc = "Output file on the local cluster, with sbatch's patterns (%j, %x...)."),
	J("error", STR, error, .doc = "Error file on the local cluster."),
	J("input", STR, input, .doc = "Input file on the local cluster."),
	J("append", BOOL, append, .doc = "Append to these files."),
	J("stdin", BOOL, input_open, .doc = "Keep standard input open, for gpuq attach."),
	J("tty", BOOL, tty, .doc = "Allocate a terminal for standard input and output."),
	J("slurm_env", BOOL, slurm_env, .doc = "Set SLURM_* variables in addition to GPUQ_* ones; default for scripts with #SBATCH lines."),
	{ .key = "launch", .kind = GPUQ_K_CUSTOM, .custom = &gpuq_choice_kind, .form = "true or false",
	  .offset = offsetof(struct gpuq_spec, launch),
	  .doc = "Run it in the first of several pods alone, as srun --mpi=launch does: mpirun in it finds the others." },
	J("comment", STR, comment, .doc = "Any text."),
	J("mail_type", STRLIST, mail_type, .doc = "Events that are mailed to mail_user: BEGIN, END, FAIL..."),
	J("mail_user", STR, mail_user, .doc = "Recipient of mails; default: the submitter."),
	K("notify", notify, notify, .doc = "[end, fail, preempt, time_80...], or {on: [...], mail: ADDRESS, webhook: URL}."),
	J("labels", STRMAP, labels, .doc = "Labels of the job and its pods."),
	J("annotations", STRMAP, annotations, .doc = "Annotations of the pods."),
	J("context", OBJECT, context, .sub = &context_schema, .flags = GPUQ_F_HIDDEN,
	  .doc = "Context of the submission; written by gpuq."),
	J("groups", OBJECTS, groups, .sub = &gpuq_group_schema,
	  .doc = "Groups of different pods; fields of a group at top level apply to all groups."),
	{ .key = NULL },
};
/* clang-format on */

const struct gpuq_schema gpuq_spec_schema = {
	.name = "job",
	.size = sizeof(struct gpuq_spec),
	.fields = spec_fields,
	.defaults = spec_defaults,
	.check = spec_check,
};

/* ---- both tables as one map ---- */

static bool has_field(const struct gpuq_schema *schema, const char *key)
{
	for (const struct gpuq_field *f = schema->fields; f->key; f++)
		if (strcmp(f->key, key) == 0)
			return true;
	return false;
}

/* "name" at top level is the job's. */
static bool is_group_key(const char *key)
{
	return strcmp(key, "name") != 0 && has_field(&gpuq_group_schema, key);
}

bool gpuq_spec_has_key(const char *key)
{
	return has_field(&gpuq_spec_schema, key) || is_group_key(key);
}

static int unknown_key(struct gpuq_reader *r, const struct gpuq_pair *p)
{
	const char *names[sizeof(spec_fields) / sizeof(spec_fields[0]) +
			  sizeof(group_fields) / sizeof(group_fields[0])];
	const struct gpuq_val at = { .at = p->at };
	const char *near;
	size_t n = 0;

	for (const struct gpuq_field *f = spec_fields; f->key; f++)
		names[n++] = f->key;
	for (const struct gpuq_field *f = group_fields; f->key; f++)
		names[n++] = f->key;
	names[n] = NULL;
	near = gpuq_nearest(p->key, names);
	gpuq_reader_enter(r, p->key);
	if (near)
		return spec_fail(r, &at, GPUQ_EINVAL, "unknown key; did you mean '%s'?", near);
	return spec_fail(r, &at, GPUQ_EINVAL, "unknown key of a job (gpuq-job(5) lists them)");
}

/* A key without a value in a file is a line that was not finished: taken as "not
 * given" it would start a job without what its owner was about to request. */
static int check_values(struct gpuq_reader *r, const struct gpuq_val *map)
{
	for (size_t i = 0; r->file && map->type == GPUQ_MAP && i < map->n; i++) {
		const struct gpuq_val at = { .at = map->pairs[i].at };

		if (map->pairs[i].val->type != GPUQ_NULL)
			continue;
		gpuq_reader_enter(r, map->pairs[i].key);
		return spec_fail(r, &at, GPUQ_EINVAL,
				 "expected a value (leave the key out for its default)");
	}
	return 0;
}

static int put_pair(struct gpuq_arena *a, struct gpuq_val *map, const struct gpuq_pair *p)
{
	if (!gpuq_put(a, map, p->key, p->val))
		return GPUQ_ENOMEM;
	map->pairs[map->n - 1].at = p->at;
	return 0;
}

/* A group with what the top level says for all groups behind it. NULL: no memory. */
static struct gpuq_val *group_with(struct gpuq_arena *a, const struct gpuq_val *item,
				   const struct gpuq_val *common)
{
	struct gpuq_val *out = gpuq_map(a);
	int rc = 0;

	if (!out)
		return NULL;
	out->at = item->at;
	for (size_t k = 0; rc == 0 && k < item->n; k++)
		rc = put_pair(a, out, &item->pairs[k]);
	for (size_t k = 0; rc == 0 && k < common->n; k++)
		if (!gpuq_get(item, common->pairs[k].key))
			rc = put_pair(a, out, &common->pairs[k]);
	return rc == 0 ? out : NULL;
}

static struct gpuq_val *groups_with(struct gpuq_arena *a, const struct gpuq_val *list,
				    const struct gpuq_val *common)
{
	struct gpuq_val *out = gpuq_list(a);

	for (size_t i = 0; out && i < list->n; i++) {
		struct gpuq_val *item = list->items[i];

		if (item->type == GPUQ_MAP)
			item = group_with(a, item, common);
		if (!item || !gpuq_add(a, out, item))
			return NULL;
	}
	if (out)
		out->at = list->at;
	return out;
}

int spec_tree_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *out)
{
	struct gpuq_val *job = gpuq_map(r->arena), *group = gpuq_map(r->arena);
	const struct gpuq_val *groups = gpuq_get(v, "groups");
	struct gpuq_spec spec;
	int rc;

	if (!v || v->type != GPUQ_MAP)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected a job: a map of keys such as command");
	if (!job || !group)
		return gpuq_no_memory(r->err);
	job->at = group->at = v->at;
	rc = check_values(r, v);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < v->n; i++) {
		const struct gpuq_pair *p = &v->pairs[i];

		if (p->val == groups)
			continue;
		if (is_group_key(p->key))
			rc = put_pair(r->arena, group, p);
		else if (has_field(&gpuq_spec_schema, p->key))
			rc = put_pair(r->arena, job, p);
		else if (r->lenient)
			rc = 0;
		else
			return unknown_key(r, p);
		if (rc < 0)
			return gpuq_no_memory(r->err);
	}
	if (groups && groups->type == GPUQ_LIST && groups->n > GPUQ_GROUPS_MAX) {
		gpuq_reader_enter(r, "groups");
		return spec_fail(r, groups, GPUQ_ERANGE, "expected 1 to %u groups",
				 GPUQ_GROUPS_MAX);
	}
	for (size_t i = 0; groups && groups->type == GPUQ_LIST && i < groups->n; i++) {
		const struct gpuq_val *item = groups->items[i];
		const size_t mark = gpuq_reader_enter(r, "groups");

		gpuq_reader_enter_item(r, i);
		rc = check_values(r, item);
		if (rc < 0)
			return rc;
		if (groups->n > 1 && item->type == GPUQ_MAP && !gpuq_get(item, "name"))
			return spec_fail(r, item, GPUQ_EINVAL,
					 "expected a name: there are several groups");
		gpuq_reader_leave(r, mark);
	}
	if (groups && groups->type == GPUQ_LIST && groups->n) {
		struct gpuq_val *list = groups_with(r->arena, groups, group);

		if (!list || list->n != groups->n || !gpuq_put(r->arena, job, "groups", list))
			return gpuq_no_memory(r->err);
	} else if (groups) {
		gpuq_reader_enter(r, "groups");
		return spec_fail(r, groups, GPUQ_EINVAL, "expected a list of groups, at least one");
	}
	rc = gpuq_schema_read(r, &gpuq_spec_schema, job, &spec);
	if (rc < 0)
		return rc;
	if (spec.n_groups == 0) {
		spec.groups = gpuq_arena_calloc(r->arena, 1, sizeof(*spec.groups));
		if (!spec.groups)
			return gpuq_no_memory(r->err);
		rc = gpuq_schema_read(r, &gpuq_group_schema, group, &spec.groups[0]);
		if (rc < 0)
			return rc;
		spec.n_groups = 1;
	}
	rc = spec_check_whole(r, v, &spec);
	if (rc < 0)
		return rc;
	*out = spec;
	return 0;
}

int gpuq_spec_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *out)
{
	int rc = spec_tree_read(r, v, out);

	if (rc < 0)
		return rc;
	if (!out->name)
		out->name = "job";
	for (size_t i = 0; i < out->n_groups; i++)
		spec_group_settle(&out->groups[i]);
	return 0;
}

/* Let a default that the site decides be one: it is not written. False: no memory. */
static bool open_cpus(struct gpuq_arena *a, struct gpuq_spec *spec)
{
	struct gpuq_group *groups;
	bool any = false;

	for (size_t i = 0; i < spec->n_groups; i++)
		any |= spec->groups[i].cpus_open;
	if (!any)
		return true;
	groups = gpuq_arena_calloc(a, spec->n_groups, sizeof(*groups));
	if (!groups)
		return false;
	memcpy(groups, spec->groups, spec->n_groups * sizeof(*groups));
	for (size_t i = 0; i < spec->n_groups; i++)
		if (groups[i].cpus_open)
			groups[i].cpu_milli = -1;
	spec->groups = groups;
	return true;
}

struct gpuq_val *gpuq_spec_write(struct gpuq_arena *a, const struct gpuq_spec *whole)
{
	struct gpuq_spec settled = *whole, top;
	const struct gpuq_spec *spec = &settled;
	struct gpuq_val *v, *group;

	if (!open_cpus(a, &settled))
		return NULL;
	top = settled;

	if (spec->n_groups != 1 || strcmp(spec->groups[0].name, "main") != 0)
		return gpuq_schema_write(a, &gpuq_spec_schema, spec);
	top.groups = NULL;
	top.n_groups = 0;
	v = gpuq_schema_write(a, &gpuq_spec_schema, &top);
	group = gpuq_schema_write(a, &gpuq_group_schema, &spec->groups[0]);
	if (!v || !group)
		return NULL;
	gpuq_unset(group, "name");
	for (size_t i = 0; i < group->n; i++)
		if (put_pair(a, v, &group->pairs[i]) < 0)
			return NULL;
	return v;
}
