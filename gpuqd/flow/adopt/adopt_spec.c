#include "gpuqd/flow/adopt/adopt_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

/* ---- what is read of one pod ---- */

/* The text without its place in a manifest that is no file. */
static const char *without_place(const char *text, const char *file)
{
	const size_t n = strlen(file);
	const char *at = text;

	if (strncmp(at, file, n) != 0 || at[n] != ':')
		return text;
	at += n + 1;
	at += strspn(at, "0123456789:");
	return at + strspn(at, " ");
}

static const char *word_among(const struct gpuq_val *amounts)
{
	for (uint32_t i = 0; amounts && amounts->type == GPUQ_MAP && i < amounts->n; i++)
		if (gpuq_resource_kind(amounts->pairs[i].key) == GPUQ_RESOURCE_WORD)
			return amounts->pairs[i].key;
	return NULL;
}

static const char *word_of_containers(const struct gpuq_val *list)
{
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *r = gpuq_get(list->items[i], "resources");
		const char *word = word_among(gpuq_get(r, "requests"));

		word = word ? word : word_among(gpuq_get(r, "limits"));
		if (word)
			return word;
	}
	return NULL;
}

/* Return the word, if there is one, of a system whose plugin reads more of a pod than its requests. */
static const char *word_of_backend(const struct gpuq_val *template_)
{
	const char *word = word_of_containers(gpuq_path(template_, "spec", "containers", NULL));

	return word ? word
		    : word_of_containers(gpuq_path(template_, "spec", "initContainers", NULL));
}

static int refuse(struct gpuq_err *err, const char *text)
{
	return gpuq_fail(err, GPUQ_EINVAL, "%s", text);
}

static int read_pod(struct gpuq_arena *a, const struct adopt_fact *f, int64_t now_us,
		    struct gpuq_spec *out, struct gpuq_buf *warnings, struct gpuq_err *err)
{
	const char *file = gpuq_arena_printf(a, "pod/%s", f->name), *word, *restart, *line;
	const struct gpuq_spec_opts o = { .file = file, .default_name = f->name, .now_us = now_us };
	struct gpuq_buf said = GPUQ_BUF_INIT;
	struct gpuq_err why = GPUQ_ERR_INIT;
	struct gpuq_specs specs;
	struct gpuq_group *g;
	int rc = file ? gpuq_specs_read(a, &o, f->manifest, f->n_manifest, &specs, &said, &why)
		      : gpuq_no_memory(err);

	if (rc != 0 && file)
		rc = gpuq_fail(err, rc, "%s", without_place(why.text, file));
	for (line = gpuq_buf_str(&said); rc == 0 && *line;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		const char *from = without_place(line, file);
		const char *text = gpuq_arena_strndup(a, from, strcspn(from, "\n"));

		/* Its policy is kept: gpuqd makes no pod of its own. */
		if (text && strncmp(text, "spec.restartPolicy:", 19) == 0)
			continue;
		/* Kinds of pods of one owner often say the same. */
		if (text && !strstr(gpuq_buf_str(warnings), text))
			gpuq_buf_printf(warnings, "%s\n", text);
	}
	gpuq_buf_done(&said);
	if (rc != 0)
		return rc;
	*out = specs.items[0];
	g = &out->groups[0];
	if (f->sees_devices)
		return refuse(err,
			      "it sets NVIDIA_VISIBLE_DEVICES, which shows it devices of others: "
			      "omit it, or set it to void");
	word = word_of_backend(g->template_);
	if (word)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s: it is the word of a system that shares devices, by which "
				 "they are given to jobs of gpuq submit alone: request "
				 "nvidia.com/gpu, or use gpuq submit",
				 word);
	if (g->gpus_milli % 1000 || g->gpu_memory_bytes || g->gpu_cores)
		return refuse(err, "parts of devices are given to jobs of gpuq submit alone");
	restart = gpuq_get_str(gpuq_get(g->template_, "spec"), "restartPolicy", "Always");
	if (strcmp(restart, "Always") == 0 && out->time_us == 0)
		out->time_us = GPUQ_UNLIMITED; /* it has no end of its own */
	return 0;
}

/* ---- pods that request the same ---- */

/* Members of a pod that its index decides do not make it another kind. */
static const char *request_of(const struct adopt_fact *f)
{
	const char *spec = strstr(f->manifest, "\"spec\":");

	return spec ? spec : f->manifest;
}

static int by_request(const void *x, const void *y)
{
	const struct adopt_fact *const *a = x, *const *b = y;
	const int c = strcmp(request_of(*a), request_of(*b));

	return c ? c : strcmp((*a)->name, (*b)->name);
}

static int name_pods(struct gpuq_arena *a, const struct adopt_fact **pods, size_t n,
		     struct gpuq_spec *spec)
{
	struct gpuq_origin *o = gpuq_arena_calloc(a, 1, sizeof(*o));
	const struct adopt_fact *f = pods[0];

	if (!o)
		return GPUQ_ENOMEM;
	*o = (struct gpuq_origin){ .kind = gpuq_arena_strdup(a, f->owner_kind),
				   .name = gpuq_arena_strdup(a, f->owner_name),
				   .uid = gpuq_arena_strdup(a, f->owner_uid),
				   .namespace_ = gpuq_arena_strdup(a, f->namespace_),
				   .gated = f->gated,
				   .pods = { gpuq_arena_calloc(a, n, sizeof(char *)), 0 } };
	if (!o->kind || !o->name || !o->uid || !o->namespace_ || !o->pods.items)
		return GPUQ_ENOMEM;
	for (; o->pods.n < n; o->pods.n++) {
		f = pods[o->pods.n];
		o->pods.items[o->pods.n] = gpuq_arena_printf(a, "%s %s", f->name, f->uid);
		if (!o->pods.items[o->pods.n])
			return GPUQ_ENOMEM;
	}
	spec->context.origin = o;
	spec->context.umask = -1;
	return 0;
}

int adopt_spec(struct gpuq_arena *a, const struct adopt_fact **pods, size_t n, int64_t now_us,
	       struct gpuq_spec *out, struct gpuq_buf *warnings, struct gpuq_err *err)
{
	struct gpuq_group *groups = gpuq_arena_calloc(a, n, sizeof(*groups));
	struct gpuq_spec spec = { 0 }, one;
	size_t n_groups = 0;
	int rc = groups ? 0 : gpuq_no_memory(err);

	qsort(pods, n, sizeof(*pods), by_request);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (i > 0 && strcmp(request_of(pods[i - 1]), request_of(pods[i])) == 0) {
			groups[n_groups - 1].pods_min++;
			groups[n_groups - 1].pods_max++;
			continue;
		}
		rc = read_pod(a, pods[i], now_us, &one, warnings, err);
		if (rc != 0)
			break;
		if (n_groups == GPUQ_GROUPS_MAX)
			return gpuq_fail(err, GPUQ_ERANGE,
					 "its owner has pods of more than %u different kinds",
					 GPUQ_GROUPS_MAX);
		groups[n_groups++] = one.groups[0];
		if (i == 0)
			spec = one;
		if (one.time_us > spec.time_us)
			spec.time_us = one.time_us;
		if (one.grace_us > spec.grace_us)
			spec.grace_us = one.grace_us;
	}
	if (rc != 0)
		return rc;
	for (size_t i = 0; n_groups > 1 && i < n_groups; i++)
		groups[i].name = gpuq_arena_printf(a, "role%zu", i);
	spec.groups = groups;
	spec.n_groups = n_groups;
	spec.name = gpuq_arena_printf(a, "%.63s", pods[0]->owner_name);
	spec.requeue = false; /* what is made again is its owner's to make */
	spec.retry = (struct gpuq_retry){ 0 };
	if (!spec.name || name_pods(a, pods, n, &spec) != 0)
		return gpuq_no_memory(err);
	*out = spec;
	return 0;
}
