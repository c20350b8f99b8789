#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/cluster/local/local_order.h"
#include "gpuqd/cluster/local/local_files.h"
#include "gpuqd/cluster/local/shepherd/shepherd_run.h"
#include "gpuqd/cluster/local/shepherd/unpack.h"
#include "libgpuq/pattern.h"

struct variable {
	const char *key, *val;
	size_t rank; /* of two with one name the later wins */
};

static int by_key(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;
	const int d = strcmp(x->key, y->key);

	return d ? d : (x->rank > y->rank) - (x->rank < y->rank);
}

static void gather(struct variable *vars, size_t *n, const struct gpuq_strmap *map)
{
	for (size_t i = 0; i < map->n; i++) {
		if (!map->keys[i][0] || strchr(map->keys[i], '='))
			continue; /* no environment can hold it */
		vars[*n].key = map->keys[i];
		vars[*n].val = map->vals[i] ? map->vals[i] : "";
		vars[*n].rank = *n;
		++*n;
	}
}

/* Drop what the submitter's environment says of the job that it was submitted in: its array index, its tasks. */
static void drop_outer(struct variable *vars, size_t *n, const struct pod_order *in)
{
	static const char memory[] = "SLURM_MEM_PER_";
	const struct gpuq_strmap *outer = &in->spec->context.environ;
	const bool inside =
		gpuq_strmap_get(outer, "GPUQ_JOB_ID") || gpuq_strmap_get(outer, "SLURM_JOB_ID");
	/* One of SLURM_MEM_PER_* is set; another, which requested it, would contradict it. */
	const bool slurm = gpuq_strmap_get(&in->env, "SLURM_JOB_ID") != NULL;
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++)
		if (!(inside && gpuq_env_of_job(vars[i].key)) &&
		    !(slurm && strncmp(vars[i].key, memory, sizeof(memory) - 1) == 0))
			vars[kept++] = vars[i];
	*n = kept;
}

/* The submitter's environment, the spec's, gpuq's own, and the devices: later wins. */
static int build_env(struct gpuq_arena *a, const struct pod_order *in, const struct gpuq_group *g,
		     const struct gpuq_strmap *own, struct gpuq_strlist *out)
{
	const struct gpuq_strmap *maps[] = { &in->spec->context.environ, &g->env, &in->env, own };
	size_t n = 0, room = 0, kept = 0;
	struct variable *vars;

	for (size_t i = 0; i < 4; i++)
		room += maps[i]->n;
	vars = gpuq_arena_calloc(a, room, sizeof(*vars));
	out->items = gpuq_arena_calloc(a, room + 1, sizeof(*out->items));
	if (!vars || !out->items)
		return GPUQ_ENOMEM;
	gather(vars, &n, maps[0]);
	drop_outer(vars, &n, in);
	for (size_t i = 1; i < 4; i++)
		gather(vars, &n, maps[i]);
	qsort(vars, n, sizeof(*vars), by_key);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && strcmp(vars[i].key, vars[i + 1].key) == 0)
			continue;
		out->items[kept] = gpuq_arena_printf(a, "%s=%s", vars[i].key, vars[i].val);
		if (!out->items[kept++])
			return GPUQ_ENOMEM;
	}
	out->n = kept;
	return 0;
}

struct own_env {
	const char *uid, *devices, *code, *steps; /* code, steps: NULL = none */
};

static int add_env(struct gpuq_arena *a, const struct pod_order *in, const struct gpuq_group *g,
		   const struct own_env *o, struct gpuq_strlist *out)
{
	/* Bus order is the order of the indexes; without it CUDA numbers devices by
	 * speed. A job without devices sees none at all. */
	const char *rows[][2] = {
		{ "CUDA_DEVICE_ORDER", "PCI_BUS_ID" },
		{ "CUDA_VISIBLE_DEVICES", o->devices },
		{ "NVIDIA_VISIBLE_DEVICES", *o->devices ? o->devices : "void" },
		{ SHEPHERD_MARK, o->uid },
		{ "GPUQ_CODE_DIR", o->code },
		{ STEPS_VARIABLE, o->steps },
	};
	const char *names[6], *values[6];
	struct gpuq_strmap own = { names, values, 0 };

	for (size_t i = 0; i < 6; i++)
		if (rows[i][1]) {
			names[own.n] = rows[i][0];
			values[own.n++] = rows[i][1];
		}
	return build_env(a, in, g, &own, out);
}

/* Command and arguments, or the script's arguments alone. */
static int build_argv(struct gpuq_arena *a, const struct gpuq_spec *spec,
		      const struct gpuq_group *g, struct order *o, struct gpuq_err *err)
{
	static const struct gpuq_strlist none = { NULL, 0 };
	const struct gpuq_strlist *first = spec->script ? &spec->script_args : &g->command;
	const struct gpuq_strlist *second = spec->script ? &none : &g->args;
	size_t n = 0;

	o->script = spec->script != NULL;
	if (!o->script && g->command.n == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the local cluster runs no images: give a command or a script");
	o->argv.items = gpuq_arena_calloc(a, first->n + second->n + 1, sizeof(*o->argv.items));
	if (!o->argv.items)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for the command");
	for (size_t i = 0; i < first->n; i++)
		o->argv.items[n++] = first->items[i];
	for (size_t i = 0; i < second->n; i++)
		o->argv.items[n++] = second->items[i];
	o->argv.n = n;
	return 0;
}

/* --chdir, else the job file's workdir (a manifest's is a place in its image), else
 * where it was submitted, or the copy of it that the job carries; relative ones count from there. */
static const char *build_cwd(struct gpuq_arena *a, const struct gpuq_spec *spec,
			     const struct gpuq_group *g, const char *code)
{
	const char *from = spec->context.cwd ? spec->context.cwd : "";
	const char *to = spec->chdir;

	if (code)
		from = gpuq_arena_printf(a, "%s%s%s", code, spec->code.subdir ? "/" : "",
					 spec->code.subdir ? spec->code.subdir : "");
	if (!from)
		return NULL;
	if (!to && !g->template_)
		to = g->workdir;
	if (!to || !*to)
		return from;
	return *to == '/' ? to : gpuq_arena_printf(a, "%s/%s", from, to);
}

static const char *expand(struct gpuq_arena *a, const char *pattern, const struct pattern_vars *v)
{
	struct gpuq_buf b = GPUQ_BUF_INIT_MAX(4095);
	const char *out = "";

	if (pattern && *pattern) {
		pattern_expand(pattern, v, &b);
		out = b.failed ? NULL : gpuq_arena_strndup(a, b.data, b.len);
	}
	gpuq_buf_done(&b);
	return out;
}

/* A job that runs in a copy of its files, which goes with it, writes its output where it was submitted. */
static const char *out_file(struct gpuq_arena *a, const struct gpuq_spec *spec, const char *pattern,
			    bool code, const struct pattern_vars *v)
{
	const char *path = expand(a, pattern, v);

	if (!code || !path || !*path || *path == '/' || !spec->context.cwd)
		return path;
	return gpuq_arena_printf(a, "%s/%s", spec->context.cwd, path);
}

static const char *device_list(struct gpuq_arena *a, const struct pod_order *in)
{
	char *out = gpuq_arena_alloc(a, in->n_devices * 12 + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < in->n_devices; i++)
		n += (size_t)snprintf(out + n, 12, "%s%d", i ? "," : "", in->devices[i]);
	return out;
}

/* The minor numbers of these devices: bus order, which indexes follow, is not theirs. */
static int minor_list(const struct local *l, struct gpuq_arena *a, const struct pod_order *in,
		      const char **list, struct gpuq_err *err)
{
	char *out = gpuq_arena_alloc(a, in->n_devices * 12 + 1);
	size_t n = 0;

	if (!out)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for the devices");
	out[0] = '\0';
	for (size_t i = 0; i < in->n_devices; i++) {
		const int index = in->devices[i];
		const bool known = index >= 0 && (size_t)index < l->node.n_devices;

		if (!known || l->node.devices[index].minor < 0)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "device_cgroup: the NVIDIA driver does not say which of "
					 "/dev/nvidia* device %d is",
					 index);
		n += (size_t)snprintf(out + n, 12, "%s%d", i ? "," : "",
				      l->node.devices[index].minor);
	}
	*list = out;
	return 0;
}

int local_order_build(const struct local *l, const struct pod_order *in, const char *uid,
		      struct gpuq_arena *a, struct order *out, struct gpuq_err *err)
{
	const struct gpuq_spec *spec = in->spec;
	const struct gpuq_group *g;
	const char *code = NULL, *steps = NULL;
	const struct pattern_vars vars = {
		.job = in->job,
		.array_index = in->array_index,
		.number = in->number,
		.index = in->index,
		.name = spec->name ? spec->name : "",
		.user = in->user ? in->user : "",
		.node = l->node.name,
	};
	struct order o = {
		.pod = in->name,
		.token = in->token,
		.uid = uid,
		.node = l->node.name,
		.user = in->user,
		.record = in->record,
		.job_uid = in->uid,
		.job_gid = in->gid,
		.file_mask = spec->context.umask,
		.batch_only = spec->signal_batch_only,
		/* Pods that share a file, or a file that an earlier attempt wrote, must not
		 * lose each other's words. */
		.append = spec->append || in->n_pods > 1 || in->array_index >= 0 || in->attempt > 0,
		.launch = spec->launch.yes && in->n_pods > 1,
		.input_open = spec->input_open,
		.tty = spec->tty,
		.no_new_privs = l->no_new_privs,
		.device_cgroup = l->device_cgroup,
		.minors = "",
		.time_limit_us = in->time_limit_us,
		.grace_us = in->grace_us,
		.warn_signal = spec->signal,
		.warn_lead_us = spec->signal_lead_us,
	};
	int rc;

	if (in->group >= spec->n_groups)
		return gpuq_fail(err, GPUQ_EINVAL, "the job has no group %u", in->group);
	g = &spec->groups[in->group];
	if (in->node && *in->node && strcmp(in->node, l->node.name) != 0)
		return gpuq_fail(err, GPUQ_EINVAL, "this cluster is the machine '%s', not '%s'",
				 l->node.name, in->node);
	if (geteuid() != 0 && in->uid != geteuid())
		return gpuq_fail(err, GPUQ_EPERM,
				 "gpuqd runs as user %u and cannot run jobs of user %u: "
				 "start it as root, or submit as the same user",
				 (unsigned)geteuid(), in->uid);
	rc = build_argv(a, spec, g, &o, err);
	if (rc == 0 && l->device_cgroup)
		rc = minor_list(l, a, in, &o.minors, err);
	if (rc != 0)
		return rc;
	o.gpus_milli = g->gpus_milli;
	o.cpu_milli = g->cpu_milli;
	o.memory_bytes = g->memory_bytes;
	o.devices = device_list(a, in);
	if (in->code) {
		if (access(in->code, R_OK) != 0)
			return gpuq_fail(
				err, GPUQ_ENOENT,
				"the code of the job is not stored any more (%s): submit it again",
				strerror(errno));
		code = gpuq_arena_printf(a, "%s/local/%s/" CODE_DIR, l->dir, in->name);
		if (!code)
			return gpuq_no_memory(err);
	}
	if (gpuq_strmap_get(&in->env, "GPUQ_NTASKS")) {
		steps = gpuq_arena_printf(a, "%s/local/%s/" STEPS_FILE, l->dir, in->name);
		if (!steps)
			return gpuq_no_memory(err);
	}
	o.code = in->code != NULL;
	o.cwd = build_cwd(a, spec, g, code);
	o.output = out_file(a, spec, spec->output, o.code, &vars);
	o.error = out_file(a, spec, spec->error, o.code, &vars);
	o.input = expand(a, spec->input, &vars);
	if (!o.devices || !o.cwd || !o.output || !o.error || !o.input ||
	    add_env(a, in, g, &(struct own_env){ uid, o.devices, code, steps }, &o.env) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for the order of pod %s", in->name);
	*out = o;
	return 0;
}
