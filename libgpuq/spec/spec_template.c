/* The pod template of a manifest: what is wrong with it, and what the scheduler needs
 * to know of it. */
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/spec/toleration.h"

#include <stdio.h>
#include <string.h>

int spec_want_str(struct gpuq_reader *r, const struct gpuq_val *map, const char *key,
		  const char **out)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	if (!v || v->type == GPUQ_NULL)
		return 0;
	if (v->type != GPUQ_STR) {
		gpuq_reader_enter(r, key);
		return spec_fail(r, v, GPUQ_EINVAL, "expected a string, not %s%s",
				 gpuq_type_name(v->type),
				 v->type == GPUQ_LIST || v->type == GPUQ_MAP ? "" : " (quote it)");
	}
	*out = v->s;
	return 0;
}

int spec_want_int(struct gpuq_reader *r, const struct gpuq_val *map, const char *key, int64_t min,
		  int64_t max, int64_t *out)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	if (!v || v->type == GPUQ_NULL)
		return 0;
	if (v->type != GPUQ_INT || v->i < min || v->i > max) {
		gpuq_reader_enter(r, key);
		return spec_fail(r, v, v->type == GPUQ_INT ? GPUQ_ERANGE : GPUQ_EINVAL,
				 "expected an integer from %lld to %lld", (long long)min,
				 (long long)max);
	}
	*out = v->i;
	return 0;
}

int spec_want_type(struct gpuq_reader *r, const struct gpuq_val *map, const char *key,
		   enum gpuq_type type, const struct gpuq_val **out)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	*out = NULL;
	if (!v || v->type == GPUQ_NULL)
		return 0;
	if (v->type != type) {
		gpuq_reader_enter(r, key);
		return spec_fail(r, v, GPUQ_EINVAL, "expected %s, not %s", gpuq_type_name(type),
				 gpuq_type_name(v->type));
	}
	*out = v;
	return 0;
}

void spec_warn(struct gpuq_reader *r, struct gpuq_buf *to, const struct gpuq_val *v,
	       const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!to)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->file && v && v->at.line)
		gpuq_buf_printf(to, "%s:%u:%u: ", r->file, v->at.line, v->at.col);
	gpuq_buf_printf(to, "%s%s%s\n", r->path, *r->path ? ": " : "", text);
}

enum rule { REFUSE, UNUSED };

/* Fields of a pod that say where, when or with which rights over others it starts:
 * that is gpuqd's part. */
static const struct {
	const char *key;
	enum rule rule;
	const char *text;
} pod_rules[] = {
	{ "nodeName", REFUSE,
	  "gpuqd chooses the node: request one with nodeSelector or nodeAffinity" },
	{ "ephemeralContainers", REFUSE, "expected none in a new pod" },
	{ "schedulingGates", REFUSE, "expected none: gpuqd holds the pod back itself" },
	{ "schedulerName", UNUSED, "is not used: gpuqd schedules the pod" },
	{ "priorityClassName", UNUSED, "is not used: it comes from the queue" },
	{ "priority", UNUSED, "is not used: it comes from the queue" },
	{ "preemptionPolicy", UNUSED, "is not used: it comes from the queue" },
	{ "topologySpreadConstraints", UNUSED, "is not used for placement" },
};

static int apply_pod_rules(struct gpuq_reader *r, struct gpuq_buf *warnings,
			   const struct gpuq_val *spec)
{
	for (size_t i = 0; i < sizeof(pod_rules) / sizeof(pod_rules[0]); i++) {
		const struct gpuq_val *v = gpuq_get(spec, pod_rules[i].key);
		size_t mark;

		if (!v || v->type == GPUQ_NULL || (v->type == GPUQ_LIST && v->n == 0) ||
		    (v->type == GPUQ_STR && v->n == 0))
			continue;
		mark = gpuq_reader_enter(r, pod_rules[i].key);
		if (pod_rules[i].rule == REFUSE)
			return spec_fail(r, v, GPUQ_EINVAL, "%s", pod_rules[i].text);
		if (strcmp(pod_rules[i].key, "schedulerName") != 0 ||
		    strcmp(gpuq_get_str(spec, "schedulerName", ""), "default-scheduler") != 0)
			spec_warn(r, warnings, v, "%s", pod_rules[i].text);
		gpuq_reader_leave(r, mark);
	}
	return 0;
}

static int read_strings(struct gpuq_reader *r, const struct gpuq_val *map, const char *key,
			struct gpuq_strlist *out)
{
	const struct gpuq_val *list;
	struct spec_list l = { 0 };
	int rc = spec_want_type(r, map, key, GPUQ_LIST, &list);
	size_t mark;

	if (rc < 0 || !list)
		return rc;
	mark = gpuq_reader_enter(r, key);
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i]->type != GPUQ_STR) {
			gpuq_reader_enter_item(r, i);
			return spec_fail(r, list->items[i], GPUQ_EINVAL,
					 "expected a string, not %s (quote it)",
					 gpuq_type_name(list->items[i]->type));
		}
		if (spec_list_add(r->arena, &l, list->items[i]->s) < 0)
			return gpuq_no_memory(r->err);
	}
	gpuq_reader_leave(r, mark);
	if (out)
		*out = spec_list_end(&l);
	return 0;
}

/* Literal variables of a container; what comes from elsewhere is the kubelet's. */
static int read_env(struct gpuq_reader *r, const struct gpuq_val *container,
		    struct gpuq_strmap *out)
{
	const struct gpuq_val *list;
	int rc = spec_want_type(r, container, "env", GPUQ_LIST, &list);
	size_t mark;

	if (rc < 0 || !list)
		return rc;
	mark = gpuq_reader_enter(r, "env");
	for (size_t i = 0; i < list->n; i++) {
		const struct gpuq_val *e = list->items[i];
		const size_t item = gpuq_reader_enter_item(r, i);
		const char *name = NULL, *value = NULL;

		if (e->type != GPUQ_MAP)
			return spec_fail(r, e, GPUQ_EINVAL, "expected {name, value}, not %s",
					 gpuq_type_name(e->type));
		rc = spec_want_str(r, e, "name", &name);
		if (rc == 0)
			rc = spec_want_str(r, e, "value", &value);
		if (rc < 0)
			return rc;
		if (!name || !*name)
			return spec_fail(r, e, GPUQ_EINVAL, "expected a name");
		if (strcmp(name, "NVIDIA_VISIBLE_DEVICES") == 0 &&
		    (!value || (strcmp(value, "void") != 0 && strcmp(value, "none") != 0)))
			return spec_fail(r, e, GPUQ_EINVAL, "is set by gpuqd: omit it");
		if (out && !gpuq_get(e, "valueFrom"))
			rc = spec_map_set(r->arena, out, name, value ? value : "");
		if (rc < 0)
			return spec_map_failed(r->err, rc);
		gpuq_reader_leave(r, item);
	}
	gpuq_reader_leave(r, mark);
	return 0;
}

static int read_container(struct gpuq_reader *r, const struct gpuq_val *c, struct gpuq_group *g)
{
	const char *name = NULL;
	struct gpuq_group scratch = { 0 };
	int rc;

	if (!g)
		g = &scratch;
	if (c->type != GPUQ_MAP)
		return spec_fail(r, c, GPUQ_EINVAL,
				 "expected a container: a map with name and image");
	rc = spec_want_str(r, c, "name", &name);
	if (rc == 0 && (!name || !*name))
		return spec_fail(r, c, GPUQ_EINVAL, "expected a name");
	if (rc == 0)
		rc = spec_want_str(r, c, "image", &g->image);
	if (rc == 0)
		rc = spec_want_str(r, c, "workingDir", &g->workdir);
	if (rc == 0)
		rc = read_strings(r, c, "command", &g->command);
	if (rc == 0)
		rc = read_strings(r, c, "args", &g->args);
	if (rc == 0)
		rc = read_env(r, c, &g->env);
	return rc;
}

static int read_containers(struct gpuq_reader *r, const struct gpuq_val *spec, struct gpuq_group *g)
{
	static const char *const keys[] = { "containers", "initContainers", NULL };

	for (int k = 0; keys[k]; k++) {
		const struct gpuq_val *list;
		int rc = spec_want_type(r, spec, keys[k], GPUQ_LIST, &list);
		const size_t mark = gpuq_reader_enter(r, keys[k]);

		if (rc < 0)
			return rc;
		if (k == 0 && (!list || list->n == 0))
			return spec_fail(r, list ? list : spec, GPUQ_EINVAL,
					 "expected a list of at least one container");
		for (size_t i = 0; list && i < list->n; i++) {
			const size_t item = gpuq_reader_enter_item(r, i);

			rc = read_container(r, list->items[i], k == 0 && i == 0 ? g : NULL);
			if (rc < 0)
				return rc;
			gpuq_reader_leave(r, item);
		}
		gpuq_reader_leave(r, mark);
	}
	return 0;
}

static int read_placement(struct gpuq_reader *r, struct gpuq_buf *warnings,
			  const struct gpuq_val *spec, struct gpuq_group *g)
{
	static const char *const pod_affinity[] = { "podAffinity", "podAntiAffinity", NULL };
	const struct gpuq_val *v;
	size_t mark;
	int rc = spec_want_type(r, spec, "nodeSelector", GPUQ_MAP, &v);

	if (rc < 0)
		return rc;
	if (v) {
		mark = gpuq_reader_enter(r, "nodeSelector");
		rc = spec_read_selector(r, v, g);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	rc = spec_want_type(r, spec, "affinity", GPUQ_MAP, &v);
	if (rc < 0)
		return rc;
	if (v) {
		const struct gpuq_val *node = gpuq_get(v, "nodeAffinity");

		mark = gpuq_reader_enter(r, "affinity");
		if (node && node->type != GPUQ_NULL) {
			const size_t inner = gpuq_reader_enter(r, "nodeAffinity");

			rc = spec_read_node_affinity(r, node, g);
			if (rc < 0)
				return rc;
			gpuq_reader_leave(r, inner);
		}
		for (int i = 0; pod_affinity[i]; i++) {
			const struct gpuq_val *pa = gpuq_get(v, pod_affinity[i]);
			const size_t inner = gpuq_reader_enter(r, pod_affinity[i]);

			if (pa && pa->type != GPUQ_NULL)
				spec_warn(r, warnings, pa,
					  "is not used for placement: only node affinity is");
			gpuq_reader_leave(r, inner);
		}
		gpuq_reader_leave(r, mark);
	}
	rc = spec_want_type(r, spec, "tolerations", GPUQ_LIST, &v);
	if (rc < 0 || !v)
		return rc;
	mark = gpuq_reader_enter(r, "tolerations");
	g->tolerations = gpuq_arena_calloc(r->arena, v->n, sizeof(*g->tolerations));
	if (!g->tolerations)
		return gpuq_no_memory(r->err);
	for (; g->n_tolerations < v->n; g->n_tolerations++) {
		const size_t item = gpuq_reader_enter_item(r, g->n_tolerations);

		rc = gpuq_schema_read(r, &gpuq_toleration_schema, v->items[g->n_tolerations],
				      &g->tolerations[g->n_tolerations]);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, item);
	}
	gpuq_reader_leave(r, mark);
	return 0;
}

/* Labels and annotations of metadata: strings, with keys that are not gpuqd's. */
int spec_read_metadata(struct gpuq_reader *r, const struct gpuq_val *meta)
{
	static const char *const keys[] = { "labels", "annotations", NULL };

	for (int k = 0; keys[k]; k++) {
		const struct gpuq_val *map;
		struct gpuq_strmap m = { 0 };
		int rc = spec_want_type(r, meta, keys[k], GPUQ_MAP, &map);

		if (rc < 0)
			return rc;
		if (!map)
			continue;
		m.keys = gpuq_arena_calloc(r->arena, map->n, sizeof(*m.keys));
		m.vals = gpuq_arena_calloc(r->arena, map->n, sizeof(*m.vals));
		if (!m.keys || !m.vals)
			return gpuq_no_memory(r->err);
		for (size_t i = 0; i < map->n; i++) {
			const struct gpuq_val *v = map->pairs[i].val;

			if (v->type != GPUQ_STR) {
				gpuq_reader_enter(r, keys[k]);
				gpuq_reader_enter(r, map->pairs[i].key);
				return spec_fail(r, v, GPUQ_EINVAL,
						 "expected a string, not %s (quote it)",
						 gpuq_type_name(v->type));
			}
			m.keys[m.n] = map->pairs[i].key;
			m.vals[m.n++] = v->s;
		}
		rc = spec_check_labels(r, meta, keys[k], &m, k == 0, SPEC_WORD_NEVER);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int spec_template_read(struct gpuq_reader *r, struct gpuq_buf *warnings,
		       const struct gpuq_val *tmpl, struct gpuq_group *g)
{
	const struct gpuq_val *meta, *spec;
	size_t mark;
	int rc;

	if (tmpl->type != GPUQ_MAP)
		return spec_fail(r, tmpl, GPUQ_EINVAL, "expected a map with metadata and spec");
	rc = spec_want_type(r, tmpl, "metadata", GPUQ_MAP, &meta);
	if (rc == 0)
		rc = spec_want_type(r, tmpl, "spec", GPUQ_MAP, &spec);
	if (rc < 0)
		return rc;
	if (!spec)
		return spec_fail(r, tmpl, GPUQ_EINVAL, "expected a spec with containers");
	mark = gpuq_reader_enter(r, "metadata");
	rc = spec_read_metadata(r, meta);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);

	gpuq_reader_enter(r, "spec");
	rc = apply_pod_rules(r, warnings, spec);
	if (rc == 0)
		rc = spec_want_str(r, spec, "runtimeClassName", &g->runtime_class);
	if (rc == 0)
		rc = read_containers(r, spec, g);
	if (rc == 0)
		rc = spec_read_claims(r, spec, g);
	if (rc == 0)
		rc = read_placement(r, warnings, spec, g);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(r, mark);
	return spec_devices_read(r, meta, spec, g);
}
