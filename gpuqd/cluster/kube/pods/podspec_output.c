#include "gpuqd/cluster/kube/pods/podspec_output.h"

#include <string.h>

#include "libgpuq/buf.h"
#include "libgpuq/pattern.h"

/* Append the absolute path; a relative one counts from the working directory. */
static void absolute(const struct gpuq_group *g, const char *path, struct gpuq_buf *out)
{
	if (*path != '/' && g->workdir && *g->workdir)
		gpuq_buf_printf(out, "%s/", g->workdir);
	gpuq_buf_adds(out, path);
}

/* True if a path lies on a volume that outlives the pod. */
static bool is_kept(const struct gpuq_group *g, const char *path, bool written)
{
	const struct gpuq_volume *v = gpuq_group_below(g, path);

	return v && (v->claim || v->nfs || v->host_path) && !(written && v->read_only);
}

bool podspec_output_kept(const struct gpuq_group *g, const char *pattern)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	bool kept;

	absolute(g, pattern, &path);
	kept = is_kept(g, gpuq_buf_str(&path), true);
	gpuq_buf_done(&path);
	return kept;
}

/* Append a redirection, quoted for a shell, where the file is on such a volume. */
static bool redirect(const struct pod_order *o, const struct gpuq_group *g, const char *pattern,
		     const char *how, struct gpuq_buf *out)
{
	const struct pattern_vars vars = { .job = o->job,
					   .array_index = o->array_index,
					   .number = o->number,
					   .index = o->index,
					   .name = o->spec->name ? o->spec->name : "",
					   .user = o->user ? o->user : "",
					   .node = o->node ? o->node : "" };
	struct gpuq_buf name = GPUQ_BUF_INIT, path = GPUQ_BUF_INIT;
	bool kept = false;

	if (pattern && *pattern) {
		pattern_expand(pattern, &vars, &name);
		absolute(g, gpuq_buf_str(&name), &path);
		kept = !name.failed && !path.failed && is_kept(g, gpuq_buf_str(&path), *how != '<');
	}
	if (kept) {
		gpuq_buf_printf(out, " %s", how);
		gpuq_buf_quote(out, gpuq_buf_str(&path));
	}
	gpuq_buf_done(&name);
	gpuq_buf_done(&path);
	return kept;
}

void podspec_output(const struct pod_order *o, const struct gpuq_group *g, json_t *container)
{
	const struct gpuq_spec *spec = o->spec;
	/* Pods that share a file, or an earlier attempt, must not lose each other's words. */
	const bool append = spec->append || o->n_pods > 1 || o->array_index >= 0 || o->attempt > 0;
	json_t *command = json_object_get(container, "command"), *shell, *word;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	bool any;
	size_t i;

	if (json_array_size(command) == 0)
		return;
	gpuq_buf_adds(&text, "exec \"$0\" \"$@\"");
	any = redirect(o, g, spec->input, "<", &text);
	any |= redirect(o, g, spec->output, append ? ">>" : ">", &text);
	if (spec->error)
		any |= redirect(o, g, spec->error, append ? "2>>" : "2>", &text);
	else if (any && spec->output && podspec_output_kept(g, spec->output))
		gpuq_buf_adds(&text, " 2>&1");
	if (any && !text.failed) {
		shell = json_pack("[s, s, s]", "/bin/sh", "-c", gpuq_buf_str(&text));
		json_array_foreach(command, i, word) json_array_append(shell, word);
		json_object_set_new(container, "command", shell);
	}
	gpuq_buf_done(&text);
}
