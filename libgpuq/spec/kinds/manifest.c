/* Kubernetes manifests as jobs.
 *
 * The pod template is kept as its owner wrote it, for the cluster adapter; what the
 * scheduler needs is read from it. Fields of a pod that gpuq does not know pass
 * through, the apiserver judges them; fields of a Job are all judged here, because no
 * apiserver will ever see the Job. */
#include "libgpuq/spec/kinds/manifest_int.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/hints.h"
#include "libgpuq/units.h"

static bool empty(const struct gpuq_val *v)
{
	return !v || v->type == GPUQ_NULL ||
	       ((v->type == GPUQ_STR || v->type == GPUQ_LIST || v->type == GPUQ_MAP) && v->n == 0);
}

struct gpuq_val *manifest_list(const struct gpuq_val *map, const char *key)
{
	struct gpuq_val *v = gpuq_get(map, key);

	return v && v->type == GPUQ_LIST ? v : NULL;
}

int manifest_keys(struct manifest *m, const struct gpuq_val *map, const char *const *known)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct gpuq_val at = { .at = map->pairs[i].at };
		const char *near;
		int k = 0;

		while (known[k] && strcmp(known[k], map->pairs[i].key) != 0)
			k++;
		if (known[k])
			continue;
		near = gpuq_nearest(map->pairs[i].key, known);
		gpuq_reader_enter(m->r, map->pairs[i].key);
		return spec_fail(m->r, &at, GPUQ_EINVAL, "unknown key%s%s%s",
				 near ? "; did you mean '" : "", near ? near : "",
				 near ? "'?" : "");
	}
	return 0;
}

int manifest_refuse(struct manifest *m, const struct gpuq_val *map, const char *key,
		    const char *text)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	if (empty(v))
		return 0;
	gpuq_reader_enter(m->r, key);
	return spec_fail(m->r, v, GPUQ_EINVAL, "%s", text);
}

void manifest_unused(struct manifest *m, const struct gpuq_val *map, const char *key,
		     const char *text)
{
	const struct gpuq_val *v = gpuq_get(map, key);
	size_t mark;

	if (empty(v))
		return;
	mark = gpuq_reader_enter(m->r, key);
	spec_warn(m->r, m->warnings, v, "%s", text);
	gpuq_reader_leave(m->r, mark);
}

int manifest_word(struct manifest *m, const struct gpuq_val *map, const char *key,
		  const char *const *words, const char **out)
{
	struct gpuq_buf list = GPUQ_BUF_INIT;
	const char *got = NULL;
	int rc = spec_want_str(m->r, map, key, &got), i = 0;

	if (rc < 0 || !got || !*got) /* as Kubernetes reads an empty one */
		return rc;
	while (words[i] && strcmp(words[i], got) != 0)
		i++;
	*out = got;
	if (words[i])
		return 0;
	for (i = 0; words[i]; i++)
		gpuq_buf_printf(&list, "%s%s",
				i == 0         ? ""
				: words[i + 1] ? ", "
					       : " or ",
				words[i]);
	gpuq_reader_enter(m->r, key);
	rc = spec_fail(m->r, gpuq_get(map, key), GPUQ_EINVAL, "expected %s, not '%.40s'",
		       gpuq_buf_str(&list), got);
	gpuq_buf_done(&list);
	return rc;
}

int manifest_groups(struct manifest *m, size_t n)
{
	m->out->groups = gpuq_arena_calloc(m->r->arena, n, sizeof(*m->out->groups));
	m->out->n_groups = n;
	if (!m->out->groups)
		return gpuq_no_memory(m->r->err);
	for (size_t i = 0; i < n; i++)
		spec_group_defaults(&m->out->groups[i]);
	return 0;
}

int manifest_other_name(struct manifest *m, const struct gpuq_val *at, const struct gpuq_group *g)
{
	const struct gpuq_val *name = gpuq_get(at, "name");

	for (const struct gpuq_group *o = m->out->groups; o < g; o++) {
		if (!o->name || !g->name || strcmp(o->name, g->name) != 0)
			continue;
		gpuq_reader_enter(m->r, "name");
		return spec_fail(m->r, name ? name : at, GPUQ_EINVAL,
				 "expected another name: '%.63s' is already a group of the job",
				 g->name);
	}
	return 0;
}

void manifest_limit(struct manifest *m, int64_t seconds)
{
	const int64_t us = seconds * GPUQ_US_PER_S;

	if (seconds && (m->out->time_us == 0 || us < m->out->time_us))
		m->out->time_us = us;
}

void manifest_retry(struct manifest *m, int64_t limit)
{
	m->out->retry = (struct gpuq_retry){ 0 };
	if (limit > 0)
		m->out->retry = (struct gpuq_retry){
			.limit = limit > GPUQ_RETRY_MAX ? GPUQ_RETRY_MAX : limit,
			.on = GPUQ_RETRY_INFRA | GPUQ_RETRY_FAILURE | GPUQ_RETRY_OOM
		};
}

int manifest_ttl(struct manifest *m, const struct gpuq_val *map)
{
	int64_t ttl = 0;
	int rc = spec_want_int(m->r, map, "ttlSecondsAfterFinished", 0, INT32_MAX, &ttl);

	if (rc == 0)
		manifest_unused(m, map, "ttlSecondsAfterFinished",
				"is not used: the pods go when the job has ended, its record stays "
				"(gpuq history)");
	return rc;
}

/* The device list of an image or a habit of copying (the gpushare sample has "all")
 * would show a pod every device of its node: it is taken out, and that is said. */
static int strip_device_env(struct gpuq_reader *r, struct gpuq_buf *warnings, struct gpuq_val *spec)
{
	static const char *const keys[] = { "containers", "initContainers", NULL };

	for (int k = 0; keys[k]; k++) {
		struct gpuq_val *list = manifest_list(spec, keys[k]);

		for (size_t i = 0; list && i < list->n; i++) {
			struct gpuq_val *env = manifest_list(list->items[i], "env");
			size_t kept = 0;

			if (!env)
				continue;
			for (size_t e = 0; e < env->n; e++) {
				struct gpuq_val *one = env->items[e];
				const char *value = gpuq_get_str(one, "value", "");

				if (strcmp(gpuq_get_str(one, "name", ""),
					   "NVIDIA_VISIBLE_DEVICES") == 0 &&
				    strcmp(value, "void") != 0 && strcmp(value, "none") != 0)
					spec_warn(r, warnings, one,
						  "NVIDIA_VISIBLE_DEVICES is omitted: gpuqd sets "
						  "the devices");
				else
					env->items[kept++] = one;
			}
			env->n = (uint32_t)kept;
		}
	}
	return 0;
}

/* Return the metadata that a pod keeps: gpuqd sets names and identities. */
static struct gpuq_val *pod_metadata(struct gpuq_arena *a, const struct gpuq_val *meta)
{
	static const char *const kept[] = { "labels", "annotations", NULL };
	struct gpuq_val *out = gpuq_map(a);

	for (int k = 0; kept[k] && out; k++) {
		struct gpuq_val *v = gpuq_get(meta, kept[k]);

		if (v && v->type != GPUQ_NULL && !gpuq_put(a, out, kept[k], v))
			return NULL;
	}
	if (out && meta)
		out->at = meta->at;
	return out;
}

/* Copy a pod template, without what only gpuqd decides. */
static int copy_template(struct manifest *m, const struct gpuq_val *meta,
			 const struct gpuq_val *spec, const struct gpuq_val *at,
			 struct gpuq_val **out)
{
	struct gpuq_arena *a = m->r->arena;
	struct gpuq_val *tmpl = gpuq_map(a), *copy, *kept;

	if (!spec || spec->type != GPUQ_MAP) {
		gpuq_reader_enter(m->r, "spec");
		return spec_fail(m->r, spec ? spec : at, GPUQ_EINVAL,
				 "expected a map with containers");
	}
	copy = gpuq_val_copy(a, spec);
	kept = pod_metadata(a, meta);
	if (!tmpl || !copy || !kept || !gpuq_put(a, tmpl, "metadata", kept) ||
	    !gpuq_put(a, tmpl, "spec", copy))
		return gpuq_no_memory(m->r->err);
	tmpl->at = at->at;
	*out = tmpl;
	return strip_device_env(m->r, m->warnings, copy);
}

static int read_template(struct manifest *m, const struct gpuq_val *meta,
			 const struct gpuq_val *spec, const struct gpuq_val *at,
			 struct gpuq_group *g)
{
	struct gpuq_reader *r = m->r;
	int64_t seconds = 0, grace = 0;
	int rc = copy_template(m, meta, spec, at, &g->template_);

	if (rc == 0)
		rc = spec_template_read(r, m->warnings, g->template_, g);
	if (rc < 0)
		return rc;
	const size_t mark = gpuq_reader_enter(r, "spec");

	rc = spec_want_int(r, spec, "activeDeadlineSeconds", 1, INT32_MAX, &seconds);
	if (rc == 0)
		rc = spec_want_int(r, spec, "terminationGracePeriodSeconds", 0, INT32_MAX, &grace);
	if (rc < 0)
		return rc;
	manifest_limit(m, seconds);
	if (grace * GPUQ_US_PER_S > m->out->grace_us)
		m->out->grace_us = grace * GPUQ_US_PER_S;
	gpuq_reader_leave(r, mark);
	return 0;
}

int manifest_template(struct manifest *m, const struct gpuq_val *tmpl, struct gpuq_group *g)
{
	const struct gpuq_val *meta;
	int rc = spec_want_type(m->r, tmpl, "metadata", GPUQ_MAP, &meta);

	if (rc == 0)
		rc = read_template(m, meta, gpuq_get(tmpl, "spec"), tmpl, g);
	return rc;
}

int manifest_template_of(struct manifest *m, const struct gpuq_val *map, struct gpuq_group *g)
{
	const struct gpuq_val *tmpl;
	int rc = spec_want_type(m->r, map, "template", GPUQ_MAP, &tmpl);
	size_t mark;

	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "template");
	if (!tmpl)
		return spec_fail(m->r, map, GPUQ_EINVAL, "expected a map with metadata and spec");
	rc = manifest_template(m, tmpl, g);
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

int manifest_restart(struct manifest *m, const struct gpuq_val *pod, const char *const *policies,
		     const char **out)
{
	const size_t mark = gpuq_reader_enter(m->r, "spec");
	int rc = manifest_word(m, pod, "restartPolicy", policies, out);

	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

int manifest_mark(struct manifest *m, struct gpuq_group *g, const char *map, const char *key,
		  const char *value)
{
	struct gpuq_arena *a = m->r->arena;
	struct gpuq_val *meta = gpuq_get(g->template_, "metadata"), *to = gpuq_get(meta, map);

	/* The template may share the map with the file's tree. */
	to = to ? gpuq_val_copy(a, to) : gpuq_map(a);
	if (!to || !gpuq_set(a, to, key, gpuq_str(a, value)) || !gpuq_set(a, meta, map, to))
		return gpuq_no_memory(m->r->err);
	return 0;
}

static bool sets(const struct gpuq_val *env, const char *name)
{
	for (size_t i = 0; env && env->type == GPUQ_LIST && i < env->n; i++)
		if (strcmp(gpuq_get_str(env->items[i], "name", ""), name) == 0)
			return true;
	return false;
}

int manifest_env(struct manifest *m, struct gpuq_group *g, const char *name, const char *value)
{
	struct gpuq_arena *a = m->r->arena;
	struct gpuq_val *list = gpuq_path(g->template_, "spec", "containers", NULL);

	for (size_t i = 0; i < list->n; i++) {
		struct gpuq_val *env = gpuq_get(list->items[i], "env"), *one = gpuq_map(a);

		if (sets(env, name))
			continue;
		if (!env || env->type != GPUQ_LIST)
			env = gpuq_set(a, list->items[i], "env", gpuq_list(a));
		gpuq_put(a, one, "name", gpuq_str(a, name));
		gpuq_put(a, one, "value", gpuq_str(a, value));
		if (!gpuq_add(a, env, one) || !gpuq_val_ok(env))
			return gpuq_no_memory(m->r->err);
		if (i == 0 && spec_map_set(a, &g->env, name, gpuq_arena_strdup(a, value)) < 0)
			return gpuq_no_memory(m->r->err);
	}
	return 0;
}

int manifest_job_marks(struct manifest *m, struct gpuq_group *g, const char *name, bool indexed)
{
	int rc = 0;

	if (name && strlen(name) <= GPUQ_NAME_BYTES_MAX) {
		rc = manifest_mark(m, g, "labels", "batch.kubernetes.io/job-name", name);
		if (rc == 0)
			rc = manifest_mark(m, g, "labels", "job-name", name);
	}
	if (rc == 0 && indexed)
		rc = manifest_mark(m, g, "annotations", GPUQ_COMPLETION_INDEX, "");
	return rc;
}

/* ---- names that only an operator's Services have ---- */

const struct gpuq_val *manifest_mentions(const struct gpuq_val *v, const char *text)
{
	const bool many = v && (v->type == GPUQ_LIST || v->type == GPUQ_MAP);
	const struct gpuq_val *found = NULL;

	if (v && v->type == GPUQ_STR && strstr(v->s, text))
		return v;
	for (uint32_t i = 0; many && i < v->n && !found; i++)
		found = manifest_mentions(v->type == GPUQ_LIST ? v->items[i] : v->pairs[i].val,
					  text);
	return found;
}

/* Whether text has prefix at the beginning of a word, with a digit behind. */
static bool names_pod(const char *text, const char *prefix)
{
	const size_t n = strlen(prefix);

	for (const char *at = text; (at = strstr(at, prefix)) != NULL; at++) {
		const char before = at == text ? ' ' : at[-1];

		if (at[n] >= '0' && at[n] <= '9' && !(before >= 'a' && before <= 'z') &&
		    !(before >= '0' && before <= '9') && before != '-')
			return true;
	}
	return false;
}

static int look_for_name(struct manifest *m, const struct gpuq_val *v, const char *prefix)
{
	if (!v || v->type != GPUQ_STR || !names_pod(v->s, prefix))
		return 0;
	return spec_fail(m->r, v, GPUQ_EINVAL,
			 "names a pod (%.60sN) by a Service that only its operator makes: use "
			 "MASTER_ADDR, which gpuqd sets",
			 prefix);
}

int manifest_names(struct manifest *m, const struct gpuq_val *tmpl, const char *prefix)
{
	static const char *const lists[] = { "command", "args", NULL };
	const struct gpuq_val *containers = manifest_list(gpuq_get(tmpl, "spec"), "containers");
	const size_t mark = gpuq_reader_enter(m->r, "spec");
	int rc = prefix ? 0 : gpuq_no_memory(m->r->err);

	gpuq_reader_enter(m->r, "containers");
	for (size_t i = 0; rc == 0 && containers && i < containers->n; i++) {
		const struct gpuq_val *c = containers->items[i], *env = manifest_list(c, "env");
		const size_t item = gpuq_reader_enter_item(m->r, i);

		for (int l = 0; rc == 0 && lists[l]; l++) {
			const struct gpuq_val *words = manifest_list(c, lists[l]);
			const size_t inner = gpuq_reader_enter(m->r, lists[l]);

			for (size_t k = 0; rc == 0 && words && k < words->n; k++) {
				const size_t word = gpuq_reader_enter_item(m->r, k);

				rc = look_for_name(m, words->items[k], prefix);
				if (rc == 0)
					gpuq_reader_leave(m->r, word);
			}
			if (rc == 0)
				gpuq_reader_leave(m->r, inner);
		}
		for (size_t k = 0; rc == 0 && env && k < env->n; k++) {
			const char *name = gpuq_get_str(env->items[k], "name", "");
			const size_t inner = gpuq_reader_enter(m->r, "env");

			gpuq_reader_enter_item(m->r, k);
			if (strcmp(name, "MASTER_ADDR") != 0)
				rc = look_for_name(m, gpuq_get(env->items[k], "value"), prefix);
			if (rc == 0)
				gpuq_reader_leave(m->r, inner);
		}
		if (rc == 0)
			gpuq_reader_leave(m->r, item);
	}
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

/* ---- one object ---- */

/* metadata.name, or what generateName begins with, as a name of ours. */
static int read_name(struct manifest *m)
{
	const char *name = NULL, *base = NULL, *ns = NULL;
	const struct gpuq_val *meta = m->meta;
	struct gpuq_reader *r = m->r;
	const size_t mark = gpuq_reader_enter(r, "metadata");
	int rc = spec_want_str(r, meta, "name", &name);

	if (rc == 0)
		rc = spec_want_str(r, meta, "generateName", &base);
	if (rc == 0)
		rc = spec_want_str(r, meta, "namespace", &ns);
	if (rc < 0)
		return rc;
	if (name && (strlen(name) > 253 || strspn(name, "abcdefghijklmnopqrstuvwxyz"
							"0123456789.-") != strlen(name))) {
		gpuq_reader_enter(r, "name");
		return spec_fail(r, gpuq_get(meta, "name"), GPUQ_EINVAL,
				 "expected lower case letters, digits, '-' and '.', not '%.80s'",
				 name);
	}
	if (name || base) {
		const char *text = gpuq_arena_strdup(r->arena, name ? name : base);
		size_t n = text ? strlen(text) : 0;

		/* The mark before what Kubernetes would append belongs to no name. */
		if (!name)
			while (n > 1 && (text[n - 1] == '-' || text[n - 1] == '.'))
				n--;
		text = text ? gpuq_arena_strndup(r->arena, text, n) : NULL;
		m->out->name = text ? spec_name_from(r->arena, text) : NULL;
		if (!m->out->name)
			return gpuq_no_memory(r->err);
	}
	if (ns && !spec_name_ok(ns)) {
		gpuq_reader_enter(r, "namespace");
		return spec_fail(r, gpuq_get(meta, "namespace"), GPUQ_EINVAL,
				 "expected the name of a namespace, not '%.80s'", ns);
	}
	m->name = name;
	m->out->namespace_ = ns;
	gpuq_reader_leave(r, mark);
	return 0;
}

/* The kind is none that is read: what to do instead, else the nearest. */
static int refuse_kind(struct gpuq_reader *r, const struct gpuq_val *doc)
{
	const char *names[32], *name = gpuq_get_str(doc, "kind", ""), *near;
	const struct kind *k = spec_kind_of(doc);
	const struct gpuq_val *at = gpuq_get(doc, "kind");
	size_t n = 0;

	gpuq_reader_enter(r, "kind");
	at = at ? at : doc;
	if (k)
		return spec_fail(r, at, GPUQ_EINVAL, "%s", k->instead);
	for (k = spec_kinds; k->name; k++) {
		if (k->read && n < 31)
			names[n++] = k->name;
		/* Right but for its version. */
		if (k->read && strcmp(k->name, name) == 0)
			return spec_fail(
				r, at, GPUQ_EINVAL, "expected %s of %s%s%s, not of '%.60s'", name,
				k->group, *k->group && k->version ? "/" : "",
				k->version ? k->version : "", gpuq_get_str(doc, "apiVersion", ""));
	}
	names[n] = NULL;
	near = gpuq_nearest(name, names);
	return spec_fail(r, at, GPUQ_EINVAL,
			 "expected a Pod, Job, JobSet, PyTorchJob or another kind of job "
			 "(gpuq-job(5)), not '%.40s %.40s'%s%s%s",
			 gpuq_get_str(doc, "apiVersion", ""), name, near ? "; did you mean " : "",
			 near ? near : "", near ? "?" : "");
}

int spec_manifest_read(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *doc,
		       struct gpuq_spec *out)
{
	static const char *const keys[] = {
		"apiVersion", "kind", "metadata", "spec", "status", NULL
	};
	const struct kind *kind = spec_kind_of(doc);
	struct gpuq_spec got = { 0 };
	struct manifest m = {
		.r = r, .warnings = warnings, .doc = doc, .out = &got, .top = strlen(r->path)
	};
	size_t mark;
	int rc;

	if (!kind || !kind->read)
		return refuse_kind(r, doc);
	rc = manifest_keys(&m, doc, keys);
	if (rc == 0)
		rc = spec_want_type(r, doc, "metadata", GPUQ_MAP, &m.meta);
	if (rc == 0)
		rc = spec_want_type(r, doc, "spec", GPUQ_MAP, &m.spec);
	if (rc < 0)
		return rc;
	if (!m.spec) {
		gpuq_reader_enter(r, "spec");
		return spec_fail(r, doc, GPUQ_EINVAL, "expected a map");
	}
	spec_defaults(&got);
	rc = manifest_groups(&m, 1);
	if (rc == 0)
		rc = read_name(&m);
	/* Metadata of a Pod is its template's and is checked with it. */
	mark = gpuq_reader_enter(r, "metadata");
	if (rc == 0 && kind->read != kind_pod)
		rc = spec_read_metadata(r, m.meta);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);
	mark = gpuq_reader_enter(r, "spec");
	rc = kind->read(&m);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);
	mark = gpuq_reader_enter(r, "metadata");
	rc = hints_read(r, warnings, m.meta, &got);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);
	*out = got;
	return 0;
}
