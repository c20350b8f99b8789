#include "gpuqd/flow/admit/place_warn.h"

#include <string.h>

#include "gpuqd/util/require.h"

#define NAMES_MAX 255
#define VALUES_MAX 5 /* of a label that are named */

/* Warn of nodes that are named and do not exist. */
static void warn_nodes(const struct model *m, const struct gpuq_strlist *nodes,
		       struct gpuq_buf *warnings)
{
	const char *names[NAMES_MAX + 1], *near;
	size_t n = 0;

	node_each(m, node)
		if (!node->gone && n < NAMES_MAX)
			names[n++] = node->name;
	names[n] = NULL;
	for (size_t i = 0; i < nodes->n && n > 0; i++) {
		const struct node *node = model_find_node(m, nodes->items[i]);

		if (node && !node->gone)
			continue;
		near = gpuq_nearest(nodes->items[i], names);
		gpuq_buf_printf(warnings, "no node is named %s%s%s%s: see gpuq nodes\n",
				nodes->items[i], near ? " (did you mean " : "", near ? near : "",
				near ? "?)" : "");
	}
}

static const char *label_of(const struct node *n, const char *key)
{
	return strcmp(key, "metadata.name") == 0 ? n->name : gpuq_strmap_get(&n->fact.labels, key);
}

/* True if some node meets it. */
static bool is_met(const struct model *m, const struct gpuq_require *r)
{
	node_each(m, n)
		if (!n->gone && require_holds(r, label_of(n, r->key)))
			return true;
	return false;
}

/* Append the values that nodes have of a label, each once. */
static void add_values(const struct model *m, const char *key, struct gpuq_buf *out)
{
	const char *seen[VALUES_MAX];
	size_t n = 0;

	node_each(m, node) {
		const char *value = node->gone ? NULL : label_of(node, key);
		size_t i = 0;

		while (value && i < n && strcmp(seen[i], value) != 0)
			i++;
		if (value && i == n && n < VALUES_MAX) {
			gpuq_buf_printf(out, "%s%s", n ? ", " : " (there are: ", value);
			seen[n++] = value;
		}
	}
	gpuq_buf_adds(out, n ? ")" : "");
}

/* True if it is a flavor of some node: sinfo has flavors in the column of Slurm's features. */
static bool is_flavor(const struct model *m, const char *name)
{
	node_each(m, n)
		if (!n->gone && n->flavor && strcmp(n->flavor, name) == 0)
			return true;
	return false;
}

/* Warn where each of the terms, of which one has to hold, has a requirement that no node meets. */
static void warn_labels(const struct model *m, const struct gpuq_group *g,
			struct gpuq_buf *warnings)
{
	const struct gpuq_require *unmet = NULL;

	for (size_t t = 0; t < g->n_required; t++) {
		const struct gpuq_term *term = &g->required[t];
		size_t i = 0;

		while (i < term->n && is_met(m, &term->all[i]))
			i++;
		if (i == term->n)
			return;
		if (!unmet)
			unmet = &term->all[i];
	}
	if (!unmet)
		return;
	gpuq_buf_printf(warnings, "no node has a label that the job asks for: %s", unmet->key);
	for (size_t i = 0; i < unmet->values.n && unmet->op == GPUQ_OP_IN; i++)
		gpuq_buf_printf(warnings, "%s%s", i ? " or " : "=", unmet->values.items[i]);
	add_values(m, unmet->key, warnings);
	if (is_flavor(m, unmet->key))
		gpuq_buf_printf(warnings, " (it is a flavor: --flavor %s)", unmet->key);
	gpuq_buf_adds(warnings, ": it is pending until one has\n");
}

void place_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings)
{
	bool any = false;

	node_each(m, n)
		any |= !n->gone;
	for (size_t i = 0; any && i < spec->n_groups; i++) {
		warn_nodes(m, &spec->groups[i].nodes, warnings);
		warn_labels(m, &spec->groups[i], warnings);
	}
}

/* Refuse a relative --chdir that is outside of the files that the job carries. */
static int leaves_code(struct gpuq_arena *a, const struct gpuq_spec *spec, struct gpuq_err *err)
{
	const char *from, *to;
	size_t n;

	if (!spec->code.digest || !spec->chdir || *spec->chdir == '/')
		return 0;
	from = gpuq_path_join(a, GPUQ_CODE_PATH, spec->code.subdir ? spec->code.subdir : "");
	to = from ? gpuq_path_join(a, from, spec->chdir) : NULL;
	n = strlen(GPUQ_CODE_PATH);
	if (!to)
		return gpuq_no_memory(err);
	if (strncmp(to, GPUQ_CODE_PATH, n) == 0 && (!to[n] || to[n] == '/'))
		return 0;
	return gpuq_fail_field(err, GPUQ_EINVAL, "chdir",
			       "chdir: %.300s leaves the directory that the job carries: "
			       "carry one that holds both with --code DIR",
			       spec->chdir);
}

int place_check_dir(struct gpuq_arena *a, const struct gpuq_spec *spec,
		    const struct gpuq_spec *whole, bool known, struct gpuq_buf *warnings,
		    struct gpuq_err *err)
{
	const struct gpuq_group *g = &whole->groups[0];
	const char *from = spec->context.cwd && *spec->context.cwd ? spec->context.cwd : "/";
	const char *asked;
	int rc = leaves_code(a, spec, err);

	if (rc < 0 || !known || !spec->chdir || g->template_ ||
	    (spec->code.digest && *spec->chdir != '/'))
		return rc;
	asked = gpuq_path_join(a, from, spec->chdir);
	if (!asked)
		return gpuq_no_memory(err);
	if (g->workdir && strcmp(g->workdir, asked) == 0)
		return 0;
	gpuq_buf_printf(
		warnings,
		"--chdir %.300s is ignored: it is below no volume of the job, which runs in "
		"%.300s; workdir of a job file names a directory of the image\n",
		asked, g->workdir ? g->workdir : "the directory of its image");
	return 0;
}
