/* Defaults that depend on other fields, and what must hold across fields. */
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/selector.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "libgpuq/utf8.h"

int spec_fail(struct gpuq_reader *r, const struct gpuq_val *v, int code, const char *fmt, ...)
{
	static const struct gpuq_val nowhere = { .type = GPUQ_NULL };
	char text[sizeof(r->err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return gpuq_reader_fail(r, v ? v : &nowhere, code, "%s", text);
}

/* The value of a group's or job's field, for its place; the map's own place when the
 * field is not written there. The reader steps into it and is not led back: this is
 * for refusals only. */
static const struct gpuq_val *field_at(struct gpuq_reader *r, const struct gpuq_val *v,
				       const char *key)
{
	const struct gpuq_val *f = v ? gpuq_get(v, key) : NULL;

	gpuq_reader_enter(r, key);
	return f ? f : v;
}

void spec_group_defaults(void *group)
{
	struct gpuq_group *g = group;

	g->pods_min = g->pods_max = 1;
	g->gpus_milli = -1; /* -1: depends on what else is asked, options included */
	g->cpu_milli = -1;
}

/* True if some of its resources may be devices by what the site says, or its claims may be of such. */
static bool may_have_devices(const struct gpuq_group *g)
{
	if (g->n_claims)
		return true;
	for (size_t i = 0; i < g->n_resources; i++) {
		const enum gpuq_resource_kind kind = gpuq_resource_kind(g->resources[i].name);

		if (kind == GPUQ_RESOURCE_MAPPED || (kind == GPUQ_RESOURCE_COUNTED &&
						     !gpuq_resource_is_bytes(g->resources[i].name)))
			return true;
	}
	return false;
}

void spec_group_settle(struct gpuq_group *g)
{
	if (g->gpus_milli < 0)
		g->gpus_milli = g->mig || g->gpu_memory_bytes || g->gpu_cores ? 1000 : 0;
	if (g->cpu_milli >= 0)
		return;
	g->cpu_milli = g->gpus_milli ? 0 : 1000;
	g->cpus_open = g->cpu_milli && may_have_devices(g);
}

void spec_defaults(void *spec)
{
	struct gpuq_spec *s = spec;

	s->requeue = true;
	s->context.umask = -1;
}

/* ---- paths and programs ---- */

/* The offset of the first control character of text, C0, DEL or C1; -1 without one. */
static int64_t control_at(const char *text)
{
	const size_t n = strlen(text);

	for (size_t i = 0; i < n;) {
		uint32_t code = (unsigned char)text[i];
		const size_t step = gpuq_utf8_next(text + i, n - i, &code);

		if (code < 0x20 || code == 0x7f || (step > 1 && code < 0xa0))
			return (int64_t)i;
		i += step ? step : 1;
	}
	return -1;
}

int spec_line_ok(const char *text, struct gpuq_err *err)
{
	const int64_t at = text ? control_at(text) : -1;

	if (at < 0)
		return 0;
	return gpuq_fail(err, GPUQ_EINVAL,
			 "expected no control characters: byte %" PRId64 " is 0x%02x", at + 1,
			 (unsigned char)text[at]);
}

static int check_line(struct gpuq_reader *r, const struct gpuq_val *v, const char *key,
		      const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = r->stored ? 0 : spec_line_ok(text, &err);

	return rc == 0 ? 0 : spec_fail(r, field_at(r, v, key), rc, "%s", err.text);
}

/* ---- maps whose keys other systems read ---- */

/* Keys that gpuqd and the device systems write themselves: a job that set one would claim a
 * device that was not allocated to it. */
static const char *const reserved[] = {
	"gpuq.io/",
	"tencent.com/predicate-",
	"tencent.com/gpu-assigned",
	"tencent.com/vcuda-device",
	"ALIYUN_COM_GPU_MEM_",
	"scheduler.framework.gpushare.allocation",
	"hami.io/vgpu-",
	"hami.io/bind-",
	NULL,
};

/* ...except what a job may say to gpuqd. */
static const char *const ours[] = {
	"gpuq.io/queue",  "gpuq.io/account", "gpuq.io/qos", "gpuq.io/time",
	"gpuq.io/flavor", "gpuq.io/spot",    NULL
};

static bool is_reserved(const char *key)
{
	for (int i = 0; ours[i]; i++)
		if (strcmp(ours[i], key) == 0)
			return false;
	for (int i = 0; reserved[i]; i++)
		if (strncmp(key, reserved[i], strlen(reserved[i])) == 0)
			return true;
	return false;
}

const char *spec_label_fault(const char *key, const char *val, bool values, unsigned words)
{
	if (!gpuq_label_key_ok(key))
		return "expected a key such as team or example.com/team";
	if (is_reserved(key))
		return "is set by gpuqd: omit it";
	if (values && !gpuq_label_value_ok(val))
		return "expected a label value: at most 63 of A-Z a-z 0-9 . _ -, letters or digits "
		       "at both ends";
	return spec_word_fault(key, words);
}

int spec_check_labels(struct gpuq_reader *r, const struct gpuq_val *at, const char *field,
		      const struct gpuq_strmap *m, bool values, unsigned words)
{
	size_t bytes = 0;

	for (size_t i = 0; i < m->n; i++) {
		const char *problem =
			spec_label_fault(m->keys[i], m->vals[i], values, r->stored ? 0 : words);

		bytes += strlen(m->keys[i]) + strlen(m->vals[i]);
		if (problem) {
			const struct gpuq_val *map = field_at(r, at, field);
			const struct gpuq_val *pair = gpuq_get(map, m->keys[i]);

			gpuq_reader_enter(r, m->keys[i]);
			return spec_fail(r, pair ? pair : map, GPUQ_EINVAL, "%s", problem);
		}
	}
	if (bytes > 256u << 10)
		return spec_fail(r, field_at(r, at, field), GPUQ_ERANGE,
				 "expected at most 256 KiB of keys and values");
	return 0;
}

/* Which devices a pod sees is what gpuqd decides; "void" and "none" request less. */
static const char *const device_env[] = { "NVIDIA_VISIBLE_DEVICES", NULL };

bool gpuq_env_of_job(const char *key)
{
	/* A star is any end. Settings that people make, such as SLURM_MPI_TYPE or GPUQ_SERVER, are not among them. */
	static const char *const names[] = {
		"GPUQ_ACCOUNT",
		"GPUQ_ALLOCATION",
		"GPUQ_ARRAY_*",
		"GPUQ_ATTEMPT",
		"GPUQ_CODE_DIR",
		"GPUQ_CPUS_PER_TASK",
		"GPUQ_DEVICES",
		"GPUQ_GANG_KEY",
		"GPUQ_GPUS",
		"GPUQ_GROUP",
		"GPUQ_GROUP_INDEX",
		"GPUQ_JOB_ID",
		"GPUQ_JOB_NAME",
		"GPUQ_LAUNCH",
		"GPUQ_LOCALID",
		"GPUQ_NNODES",
		"GPUQ_NODELIST",
		"GPUQ_NODE_NAME",
		"GPUQ_NTASKS*",
		"GPUQ_POD_*",
		"GPUQ_PROCID",
		"GPUQ_QOS",
		"GPUQ_QUEUE",
		"GPUQ_RESTART_COUNT",
		"GPUQ_STEP_*",
		"GPUQ_SUBMIT_DIR",
		"GPUQ_TIME_LIMIT_S",
		"GPUQ_USER",
		"JOB_COMPLETION_INDEX",
		"MASTER_ADDR",
		"MASTER_PORT",
		"PET_*",
		"PMI_*",
		"PMIX_NAMESPACE",
		"PMIX_RANK",
		"PMIX_SERVER_*",
		"RANK",
		"SLURMD_NODENAME",
		"SLURM_ARRAY_*",
		"SLURM_CLUSTER_NAME",
		"SLURM_CPUS_*",
		"SLURM_DISTRIBUTION",
		"SLURM_GPUS*",
		"SLURM_GTIDS",
		"SLURM_JOB*",
		"SLURM_LOCALID",
		"SLURM_MEM_PER_*",
		"SLURM_NNODES",
		"SLURM_NODEID",
		"SLURM_NODELIST",
		"SLURM_NPROCS",
		"SLURM_NTASKS*",
		"SLURM_PROCID",
		"SLURM_RESTART_COUNT",
		"SLURM_STEP*",
		"SLURM_SUBMIT_*",
		"SLURM_TASKS_PER_NODE",
		"SLURM_TASK_PID",
		"SLURM_TOPOLOGY_*",
		"WORLD_SIZE",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const size_t n = strlen(names[i]);

		if (names[i][n - 1] == '*' ? strncmp(key, names[i], n - 1) == 0
					   : strcmp(key, names[i]) == 0)
			return true;
	}
	return false;
}

const char *gpuq_env_fault(const char *key, const char *val)
{
	if (!*key || isdigit((unsigned char)*key) ||
	    strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			"abcdefghijklmnopqrstuvwxyz"
			"0123456789._-") != strlen(key))
		return "expected a variable's name: letters, digits, '_', '.', '-', no digit first";
	for (int k = 0; device_env[k]; k++)
		if (strcmp(key, device_env[k]) == 0 && strcmp(val, "void") != 0 &&
		    strcmp(val, "none") != 0)
			return "is set by gpuqd: omit it";
	return NULL;
}

int spec_check_env(struct gpuq_reader *r, const struct gpuq_val *at, const struct gpuq_strmap *env)
{
	for (size_t i = 0; i < env->n; i++) {
		const char *key = env->keys[i], *problem = gpuq_env_fault(key, env->vals[i]);

		if (problem) {
			const struct gpuq_val *map = field_at(r, at, "env");
			const struct gpuq_val *pair = gpuq_get(map, key);

			gpuq_reader_enter(r, key);
			return spec_fail(r, pair ? pair : map, GPUQ_EINVAL, "%s", problem);
		}
	}
	return 0;
}

/* ---- one group ---- */

#define DEVICE_MEMORY_MIN (INT64_C(1) << 20) /* no system gives less of a device */

/* A number without a unit is one of bytes, where MiB or GiB are meant. */
static int check_memory(struct gpuq_reader *r, const struct gpuq_val *v, const struct gpuq_group *g)
{
	const int64_t bytes = g->gpu_memory_bytes;
	char near[64] = "is 1Mi";

	if (r->stored || bytes == 0 || bytes >= DEVICE_MEMORY_MIN)
		return 0;
	if (bytes < 1024)
		snprintf(near, sizeof(near), "are %" PRId64 "Mi and %" PRId64 "Gi", bytes, bytes);
	return spec_fail(r, field_at(r, v, "gpu_memory"), GPUQ_EINVAL,
			 "expected at least 1Mi, not %" PRId64
			 " bytes, which a number without a unit is: the nearest %s",
			 bytes, near);
}

static int check_devices(struct gpuq_reader *r, const struct gpuq_val *v,
			 const struct gpuq_group *g)
{
	const int64_t milli = g->gpus_milli;
	const bool share = g->gpu_memory_bytes || g->gpu_cores;
	struct gpuq_err err = GPUQ_ERR_INIT;
	char near[SPEC_NEAREST_ROOM];
	const char *key = "mig";
	int rc;

	if (milli < 0 || milli > 1000 * (int64_t)GPUQ_GPUS_PER_POD_MAX ||
	    (milli < 1000 ? milli % 10 && g->n_claims == 0 : milli % 1000))
		return spec_fail(r, field_at(r, v, "gpus"), GPUQ_EINVAL,
				 "expected whole devices (0 to %u) or a part of one in hundredths "
				 "(0.01 to 0.99)%s",
				 GPUQ_GPUS_PER_POD_MAX,
				 spec_nearest_devices((double)milli / 1000,
						      (double)GPUQ_GPUS_PER_POD_MAX, near));
	rc = spec_mig_check(g, &key, &err);
	if (rc < 0)
		return spec_fail(r, field_at(r, v, key), rc, "%s", err.text);
	if (g->mig && (milli == 0 || milli % 1000))
		return spec_fail(r, field_at(r, v, "gpus"), GPUQ_EINVAL,
				 "expected a whole number of MIG instances, at least 1");
	if (g->mig && share)
		return spec_fail(
			r, field_at(r, v, "mig"), GPUQ_EINVAL,
			"expected either mig or gpu_memory and gpu_cores: a profile has its "
			"own");
	if (share && milli == 0)
		return spec_fail(r, field_at(r, v, "gpus"), GPUQ_EINVAL,
				 "expected at least a part of a device with %s",
				 g->gpu_memory_bytes ? "gpu_memory" : "gpu_cores");
	return check_memory(r, v, g);
}

/* Devices that are named count as gpus do, and with nothing else that requests devices. */
static int count_named(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g)
{
	const struct gpuq_amount *named = gpuq_group_device(g);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t milli = 0;
	int rc;

	if (!named)
		return 0;
	rc = spec_devices_of(named, &milli, &err);
	if (rc == 0 && (g->mig || g->gpu_memory_bytes || g->gpu_cores))
		rc = gpuq_fail(&err, GPUQ_EINVAL,
			       "expected no mig, gpu_memory or gpu_cores beside it: it names whole "
			       "devices");
	if (rc == 0 && g->gpus_milli >= 0 && g->gpus_milli != milli)
		rc = gpuq_fail(&err, GPUQ_EINVAL,
			       "expected the same number as in gpus, or no gpus");
	for (size_t i = 0; rc == 0 && i < g->n_resources; i++) {
		const struct gpuq_group rest = { .resources = &g->resources[i], .n_resources = 1 };

		if (&g->resources[i] != named && gpuq_group_device(&rest))
			rc = gpuq_fail(&err, GPUQ_EINVAL,
				       "expected one kind of device: %.80s is requested as well",
				       g->resources[i].name);
	}
	if (rc < 0) {
		const struct gpuq_val *map = field_at(r, v, "resources");
		const struct gpuq_val *at = map ? gpuq_get(map, named->name) : NULL;

		gpuq_reader_enter(r, named->name);
		return spec_fail(r, at ? at : map, rc, "%s", err.text);
	}
	g->gpus_milli = milli;
	return 0;
}

/* True if the group's devices are a resource of the template, which a flavor of the site names as such:
 * reading the template alone does not tell. */
static bool has_site_devices(const struct gpuq_group *said, const struct gpuq_group *g)
{
	for (size_t i = 0; said->gpus_milli == 0 && i < said->n_resources; i++)
		if (gpuq_resource_kind(said->resources[i].name) == GPUQ_RESOURCE_COUNTED &&
		    !gpuq_resource_is_bytes(said->resources[i].name) &&
		    said->resources[i].count == g->gpus_milli / 1000)
			return g->gpus_milli % 1000 == 0;
	return false;
}

/* A template comes from a manifest, or over the wire from any client: its requests must equal
 * those of the group, or the cluster would allocate devices that are not counted. */
static int check_template(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g)
{
	struct gpuq_group said = { 0 };
	const size_t mark = gpuq_reader_enter(r, "template");
	int rc = spec_template_read(r, NULL, g->template_, &said);

	if (rc < 0)
		return rc;
	/* One that was written before these were read has them only in the template. */
	if (g->n_resources == 0) {
		g->resources = said.resources;
		g->n_resources = said.n_resources;
		if (gpuq_group_device(&said) && g->gpus_milli == 0)
			g->gpus_milli = said.gpus_milli;
	}
	if (!gpuq_amounts_same(said.resources, said.n_resources, g->resources, g->n_resources) ||
	    (said.gpus_milli != g->gpus_milli && !has_site_devices(&said, g) &&
	     !(said.n_claims && said.gpus_milli == 0)) ||
	    !spec_claims_same(&said, g) || said.gpu_memory_bytes != g->gpu_memory_bytes ||
	    said.gpu_cores != g->gpu_cores || said.cpu_milli != g->cpu_milli ||
	    said.memory_bytes != g->memory_bytes || !said.mig != !g->mig || g->mig_more.n ||
	    g->mig_ok || (g->mig && strcmp(said.mig, g->mig) != 0))
		return spec_fail(r, g->template_, GPUQ_EINVAL,
				 "expected the template to request the same gpus, mig, gpu_memory, "
				 "gpu_cores, cpus, memory, resources and claims");
	gpuq_reader_leave(r, mark);
	return 0;
}

/* Check that no two volumes of the list are mounted at one path. */
static int check_volumes(struct gpuq_reader *r, const struct gpuq_val *v,
			 const struct gpuq_group *g)
{
	const struct gpuq_val *list = v ? gpuq_get(v, "volumes") : NULL, *at;

	for (size_t i = 1; i < g->n_volumes && !r->stored && !g->template_; i++)
		for (size_t k = 0; k < i; k++) {
			if (strcmp(g->volumes[i].path, g->volumes[k].path) != 0)
				continue;
			gpuq_reader_enter(r, "volumes");
			gpuq_reader_enter_item(r, i);
			at = field_at(r, list && i < list->n ? list->items[i] : v, "path");
			return spec_fail(r, at, GPUQ_EINVAL,
					 "another volume is mounted at %.80s already",
					 g->volumes[i].path);
		}
	return 0;
}

int spec_check_group(struct gpuq_reader *r, const struct gpuq_val *v, void *group)
{
	struct gpuq_group settled, *own = group;
	const struct gpuq_group *g = &settled;
	int rc = count_named(r, v, own);

	if (rc < 0)
		return rc;
	settled = *own;
	spec_group_settle(&settled);
	rc = check_devices(r, v, g);
	if (rc < 0)
		return rc;
	if (g->image && (!*g->image || strpbrk(g->image, " \t\n\r")))
		return spec_fail(r, field_at(r, v, "image"), GPUQ_EINVAL,
				 "expected an image such as registry.example/name:tag");
	if (g->workdir && g->workdir[0] != '/')
		return spec_fail(r, field_at(r, v, "workdir"), GPUQ_EINVAL,
				 "expected a directory that begins with '/', not '%.80s'",
				 g->workdir);
	for (size_t i = 0; i < g->nodes.n; i++)
		for (size_t k = 0; k < g->exclude.n; k++)
			if (strcmp(g->nodes.items[i], g->exclude.items[k]) == 0)
				return spec_fail(r, field_at(r, v, "exclude"), GPUQ_EINVAL,
						 "node '%.80s' is both required and excluded",
						 g->nodes.items[i]);
	if (g->n_slices && (g->pods_min % g->slices[0].size || g->pods_max % g->slices[0].size))
		return spec_fail(r, field_at(r, v, "topology"), GPUQ_EINVAL,
				 "expected pods in multiples of %lld, the size of a slice",
				 (long long)g->slices[0].size);
	rc = check_volumes(r, v, g);
	if (rc == 0)
		rc = check_line(r, v, "workdir", g->workdir);
	if (rc == 0 && g->command.n)
		rc = check_line(r, v, "command", g->command.items[0]);
	if (rc == 0)
		rc = spec_check_env(r, v, &g->env);
	if (rc == 0 && g->template_)
		rc = check_template(r, v, &settled);
	if (rc == 0 && g->template_ && own->n_resources == 0 && settled.n_resources) {
		own->resources = settled.resources;
		own->n_resources = settled.n_resources;
		own->gpus_milli = settled.gpus_milli;
	}
	return rc;
}

/* ---- the job ---- */

static int check_cwd(struct gpuq_reader *r, const struct gpuq_val *v, const char *cwd)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = r->stored ? 0 : spec_line_ok(cwd, &err);

	if (rc == 0)
		return 0;
	return spec_fail(r, field_at(r, v, "context"), rc,
			 "cwd: %s (submit from another directory)", err.text);
}

int spec_check(struct gpuq_reader *r, const struct gpuq_val *v, void *spec)
{
	struct gpuq_spec *s = spec;
	const struct {
		const char *key, *text;
	} lines[] = {
		{ "chdir", s->chdir },
		{ "output", s->output },
		{ "error", s->error },
		{ "input", s->input },
	};
	int rc = 0;

	if (s->name && !spec_job_name_ok(s->name))
		return spec_fail(r, field_at(r, v, "name"), GPUQ_EINVAL,
				 "expected a name of 1 to %u bytes of UTF-8, found '%.80s'",
				 GPUQ_JOB_NAME_BYTES_MAX, s->name);
	if (s->memory_per && strcmp(s->memory_per, "cpu") != 0 && strcmp(s->memory_per, "gpu") != 0)
		return spec_fail(r, field_at(r, v, "memory_per"), GPUQ_EINVAL,
				 "expected cpu or gpu, found '%.80s'", s->memory_per);
	if (s->comment && strlen(s->comment) > GPUQ_TEXT_BYTES_MAX)
		return spec_fail(r, field_at(r, v, "comment"), GPUQ_ERANGE,
				 "expected at most %u bytes", GPUQ_TEXT_BYTES_MAX);
	if (s->deadline_us && s->begin_us && s->deadline_us <= s->begin_us)
		return spec_fail(r, field_at(r, v, "deadline"), GPUQ_EINVAL,
				 "expected a time after begin");
	for (size_t i = 0; i < s->flavors.n; i++)
		if (!spec_name_ok(s->flavors.items[i]))
			return spec_fail(r, field_at(r, v, "flavor"), GPUQ_EINVAL,
					 "expected names of flavors such as a100, not '%.80s'",
					 s->flavors.items[i]);
	for (size_t i = 0; i < s->n_depends; i++)
		if (s->depends[i].type == GPUQ_DEP_AFTERCORR && s->array.n_ranges == 0)
			return spec_fail(r, field_at(r, v, "depends"), GPUQ_EINVAL,
					 "expected an array with aftercorr, which depends element "
					 "by element");
	if (s->context.cwd && s->context.cwd[0] != '/')
		return spec_fail(r, field_at(r, v, "context"), GPUQ_EINVAL,
				 "expected cwd to begin with '/'");
	for (size_t i = 0; rc == 0 && i < sizeof(lines) / sizeof(lines[0]); i++)
		rc = check_line(r, v, lines[i].key, lines[i].text);
	if (rc == 0)
		rc = check_cwd(r, v, s->context.cwd);
	if (rc == 0)
		rc = spec_check_labels(r, v, "labels", &s->labels, true, SPEC_WORDS);
	if (rc == 0)
		rc = spec_check_labels(r, v, "annotations", &s->annotations, false, SPEC_WORDS);
	return rc;
}

int spec_check_whole(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *s)
{
	const struct gpuq_val *groups = v ? gpuq_get(v, "groups") : NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t pods = 0;

	if (s->n_groups < 1 || s->n_groups > GPUQ_GROUPS_MAX)
		return spec_fail(r, field_at(r, v, "groups"), GPUQ_ERANGE,
				 "expected 1 to %u groups", GPUQ_GROUPS_MAX);
	for (size_t i = 0; i < s->n_groups; i++) {
		struct gpuq_group *g = &s->groups[i];
		const struct gpuq_val *at = v;
		const size_t mark = groups ? gpuq_reader_enter(r, "groups") : 0;

		if (groups) {
			gpuq_reader_enter_item(r, i);
			at = i < groups->n ? groups->items[i] : groups;
		}
		if (!g->name && s->n_groups > 1)
			return spec_fail(r, field_at(r, at, "name"), GPUQ_EINVAL,
					 "expected a name: there are several groups");
		if (!g->name)
			g->name = "main";
		if (s->script && g->command.n)
			return spec_fail(r, field_at(r, at, "command"), GPUQ_EINVAL,
					 "expected either a command or a script, not both");
		if (!s->script && !g->command.n && !g->template_)
			return spec_fail(
				r, field_at(r, at, "command"), GPUQ_EINVAL,
				"expected a command (or a script): there is nothing to run");
		pods += g->pods_max;
		if (groups)
			gpuq_reader_leave(r, mark);
	}
	if (pods > (int64_t)GPUQ_PODS_MAX)
		return spec_fail(r, field_at(r, v, groups ? "groups" : "pods"), GPUQ_ERANGE,
				 "expected at most %u pods, these are %lld", GPUQ_PODS_MAX,
				 (long long)pods);
	for (size_t i = 0; i < s->n_groups; i++)
		if (s->code.dir && s->groups[i].template_)
			return spec_fail(r, field_at(r, v, "code"), GPUQ_EINVAL,
					 "expected none with a pod template, which says itself "
					 "what it mounts");
	for (size_t i = 0; i < s->n_groups; i++)
		if (s->launch.yes && s->groups[i].template_)
			return spec_fail(r, field_at(r, v, "launch"), GPUQ_EINVAL,
					 "expected none with a pod template, which says itself "
					 "what its pods run");
	if (spec_mig_check_job(s, &err) < 0)
		return spec_fail(r, field_at(r, v, groups ? "groups" : "mig"), err.code, "%s",
				 err.text);
	if (s->script_args.n && !s->script)
		return spec_fail(r, field_at(r, v, "script_args"), GPUQ_EINVAL,
				 "expected a script for these arguments");
	return 0;
}

/* ---- totals ---- */

const char *gpuq_spec_memory_variable(const struct gpuq_spec *spec, const struct gpuq_group *g,
				      int64_t gpus, int64_t *mib)
{
	const char *per = spec->memory_per ? spec->memory_per : "";
	const int64_t all = g->memory_bytes >> 20, cpus = (g->cpu_milli + 999) / 1000;

	*mib = all;
	if (all == 0)
		return NULL;
	if (strcmp(per, "cpu") == 0 && cpus) {
		*mib = all / cpus;
		return "SLURM_MEM_PER_CPU";
	}
	if (strcmp(per, "gpu") == 0 && gpus) {
		*mib = all / gpus;
		return "SLURM_MEM_PER_GPU";
	}
	return "SLURM_MEM_PER_NODE";
}

int64_t gpuq_spec_pods(const struct gpuq_spec *spec)
{
	int64_t n = 0;

	for (size_t i = 0; i < spec->n_groups; i++)
		n += spec->groups[i].pods_min;
	return n;
}

int64_t gpuq_spec_gpus_milli(const struct gpuq_spec *spec)
{
	int64_t n = 0;

	for (size_t i = 0; i < spec->n_groups; i++)
		n += spec->groups[i].pods_min * spec->groups[i].gpus_milli -
		     (spec->groups[i].pods_min - 1) * gpuq_group_shared_milli(&spec->groups[i]);
	return n;
}
