/* From bytes to jobs: which form a file has, and one way through for all of them. */
#include "libgpuq/spec/spec_int.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/hints.h"
#include "libgpuq/spec/kinds/kinds.h"
#include "libgpuq/spec/kinds/others.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"

/* Check the size of one job on the wire and in the store. */
static int check_size(const struct gpuq_spec *spec, struct gpuq_err *err)
{
	struct gpuq_arena scratch = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT_MAX(GPUQ_SPEC_BYTES_MAX);
	const struct gpuq_val *v = gpuq_spec_write(&scratch, spec);
	int rc = 0;

	if (!v)
		rc = gpuq_no_memory(err);
	else
		gpuq_mp_write(&b, v);
	if (rc == 0 && b.failed)
		rc = gpuq_fail(err, GPUQ_ETOOBIG,
			       "expected a job of at most %u KiB, script and environment included",
			       GPUQ_SPEC_BYTES_MAX >> 10);
	gpuq_buf_done(&b);
	gpuq_arena_done(&scratch);
	return rc;
}

static int check_all(struct gpuq_reader *r, const struct gpuq_val *at, struct gpuq_spec *spec)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < spec->n_groups; i++) {
		const size_t mark = strlen(r->path);

		if (spec->n_groups > 1) {
			gpuq_reader_enter(r, "groups");
			gpuq_reader_enter_item(r, i);
		}
		rc = spec_check_group(r, at, &spec->groups[i]);
		gpuq_reader_leave(r, mark);
	}
	if (rc == 0)
		rc = spec_check(r, at, spec);
	if (rc == 0)
		rc = spec_check_whole(r, at, spec);
	return rc;
}

/* Apply options over the file, then check the rules again: the result is judged as the file was.
 * An error here comes from an option, so the path is enough. */
static int finish(struct gpuq_reader *r, struct spec_opts_state *st, struct gpuq_spec *spec)
{
	const struct gpuq_spec_opts *opts = st->opts;
	const char *file = r->file;
	int rc = spec_opts_argv(st, opts->argv, r->err);

	if (rc < 0)
		return rc;
	rc = spec_opts_end(st, r->err);
	if (rc < 0)
		goto out;
	if (!spec->name)
		spec->name =
			spec_name_from(r->arena, opts->default_name ? opts->default_name : "job");
	if (!spec->name)
		return gpuq_no_memory(r->err);
	if (opts->args && opts->args[0]) {
		struct spec_list l = { 0 };

		if (!spec->script)
			return gpuq_fail(r->err, GPUQ_EINVAL,
					 "only a script takes arguments, and %s is not a script",
					 opts->file);
		for (size_t i = 0; opts->args[i]; i++)
			if (spec_list_add(r->arena, &l,
					  gpuq_arena_strdup(r->arena, opts->args[i])) < 0)
				return gpuq_no_memory(r->err);
		spec->script_args = spec_list_end(&l);
	}
	for (size_t i = 0; i < spec->n_groups; i++)
		spec_group_settle(&spec->groups[i]);
	r->path[0] = 0;
	r->file = NULL;
	rc = check_all(r, NULL, spec);
	if (rc == 0)
		rc = check_size(spec, r->err);
	r->file = file;
out:
	if (rc < 0 && st->is_script)
		gpuq_err_prefix(r->err, "%s", file);
	return rc;
}

/* A job that has nothing yet but one group. */
static int empty(struct gpuq_arena *a, struct gpuq_spec *spec, struct gpuq_err *err)
{
	*spec = (struct gpuq_spec){ 0 };
	spec_defaults(spec);
	spec->groups = gpuq_arena_calloc(a, 1, sizeof(*spec->groups));
	if (!spec->groups)
		return gpuq_no_memory(err);
	spec->n_groups = 1;
	spec_group_defaults(&spec->groups[0]);
	return 0;
}

static int read_script(struct gpuq_reader *r, const struct gpuq_spec_opts *opts, const char *text,
		       size_t n, struct gpuq_specs *out, struct gpuq_buf *warnings)
{
	struct gpuq_spec *spec = gpuq_arena_calloc(r->arena, 1, sizeof(*spec));
	struct spec_opts_state st;
	int rc;

	if (!spec)
		return gpuq_no_memory(r->err);
	if (n > GPUQ_SPEC_BYTES_MAX)
		return gpuq_fail(r->err, GPUQ_ETOOBIG, "%s: expected a script of at most %u KiB",
				 opts->file, GPUQ_SPEC_BYTES_MAX >> 10);
	rc = empty(r->arena, spec, r->err);
	if (rc < 0)
		return rc;
	spec_opts_begin(&st, r->arena, spec, opts, warnings);
	st.is_script = true;
	rc = spec_script_read(&st, text, n, r->err);
	if (rc == 0)
		rc = finish(r, &st, spec);
	if (rc == 0)
		*out = (struct gpuq_specs){ spec, 1, GPUQ_FORM_SCRIPT, st.asks, st.places };
	return rc;
}

static int read_one(struct gpuq_reader *r, const struct gpuq_spec_opts *opts,
		    const struct gpuq_val *v, struct gpuq_buf *warnings, struct gpuq_spec *out)
{
	struct spec_opts_state st;
	const bool is_manifest = spec_is_manifest(v);
	int rc = is_manifest ? spec_manifest_read(r, warnings, v, out) : spec_tree_read(r, v, out);

	if (rc == 0 && is_manifest)
		rc = check_all(r, v, out);
	if (rc < 0)
		return rc;
	if (!is_manifest)
		hints_warn(r, warnings, v);
	spec_opts_begin(&st, r->arena, out, opts, warnings);
	st.is_manifest = is_manifest;
	return finish(r, &st, out);
}

/* A file whose objects are no jobs: the first says why. */
static int read_none(struct gpuq_reader *r, const struct gpuq_val *doc, struct gpuq_buf *warnings)
{
	const struct gpuq_val *items = gpuq_get(doc, "items");
	struct gpuq_spec none;

	if (!spec_is_list(doc))
		return spec_manifest_read(r, warnings, doc, &none);
	gpuq_reader_enter(r, "items");
	if (!items || items->type != GPUQ_LIST || items->n == 0)
		return spec_fail(r, items ? items : doc, GPUQ_EINVAL, "expected a list of jobs");
	gpuq_reader_enter_item(r, 0);
	return spec_manifest_read(r, warnings, items->items[0], &none);
}

/* A document: a job, jobs of a List, or nothing of ours. */
static int read_document(struct gpuq_reader *r, const struct gpuq_spec_opts *opts,
			 const struct gpuq_val *doc, struct gpuq_buf *warnings,
			 struct gpuq_specs *got)
{
	const bool list = spec_is_list(doc);
	const struct gpuq_val *items = gpuq_get(doc, "items");
	const size_t n = !list ? 1 : items && items->type == GPUQ_LIST ? items->n : 0;
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < n; k++) {
		const struct gpuq_val *v = list ? items->items[k] : doc;
		const struct kind *kind = spec_kind_of(v);

		if (spec_is_manifest(v) && !(kind && kind->read))
			continue;
		if (got->n == 0)
			got->form = spec_is_manifest(v) ? GPUQ_FORM_MANIFEST : GPUQ_FORM_JOB;
		r->path[0] = 0;
		if (list) {
			gpuq_reader_enter(r, "items");
			gpuq_reader_enter_item(r, k);
		}
		rc = read_one(r, opts, v, warnings, &got->items[got->n]);
		got->n += rc == 0;
	}
	return rc;
}

int gpuq_specs_read(struct gpuq_arena *a, const struct gpuq_spec_opts *opts, const char *text,
		    size_t n, struct gpuq_specs *out, struct gpuq_buf *warnings,
		    struct gpuq_err *err)
{
	struct gpuq_err local = GPUQ_ERR_INIT;
	struct gpuq_reader r = {
		.arena = a, .file = opts->file, .now_us = opts->now_us, .err = err ? err : &local
	};
	struct gpuq_specs got = { 0 };
	struct gpuq_val **docs;
	size_t n_docs, total = 0;
	int rc;

	if (n >= 2 && text[0] == '#' && text[1] == '!')
		return read_script(&r, opts, text, n, out, warnings);
	rc = gpuq_yaml_parse_jobs(a, opts->file, text, n, &docs, &n_docs, r.err);
	if (rc < 0)
		return rc;
	total = spec_jobs_count(docs, n_docs);
	if (total == 0 && n_docs > 0)
		return read_none(&r, docs[0], warnings);
	if (total == 0)
		return gpuq_fail(
			r.err, GPUQ_EINVAL,
			"%s:1:1: expected a job: the file is empty (a script begins with #!)",
			opts->file);
	if (total > GPUQ_DOCS_MAX)
		return gpuq_fail(r.err, GPUQ_ERANGE, "%s: expected at most %u jobs, these are %zu",
				 opts->file, GPUQ_DOCS_MAX, total);
	got.items = gpuq_arena_calloc(a, total, sizeof(*got.items));
	if (!got.items)
		return gpuq_no_memory(r.err);
	rc = spec_others(&r, warnings, docs, n_docs, text, n, opts->ignore_other_kinds);
	for (size_t i = 0; rc == 0 && i < n_docs; i++)
		rc = read_document(&r, opts, docs[i], warnings, &got);
	if (rc < 0)
		return rc;
	*out = got;
	return 0;
}

int gpuq_spec_from_command(struct gpuq_arena *a, const struct gpuq_spec_opts *opts,
			   const char *const *command, struct gpuq_spec *out, struct gpuq_err *err)
{
	struct gpuq_err local = GPUQ_ERR_INIT;
	struct gpuq_reader r = { .arena = a, .now_us = opts->now_us, .err = err ? err : &local };
	struct spec_opts_state st;
	struct spec_list l = { 0 };
	struct gpuq_spec spec;
	int rc = empty(a, &spec, r.err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; command && command[i]; i++)
		if (spec_list_add(a, &l, gpuq_arena_strdup(a, command[i])) < 0)
			return gpuq_no_memory(r.err);
	spec.groups[0].command = spec_list_end(&l);
	spec_opts_begin(&st, a, &spec, opts, opts->warnings);
	rc = finish(&r, &st, &spec);
	if (rc < 0)
		return rc;
	*out = spec;
	return 0;
}
