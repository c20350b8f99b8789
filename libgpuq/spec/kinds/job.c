/* batch/v1 Job: a gang of as many pods as run at once, or an array of more completions. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/manifest_int.h"

/* Everything a batch/v1 Job may say. */
static const char *const keys[] = { "parallelism",
				    "completions",
				    "completionMode",
				    "backoffLimit",
				    "activeDeadlineSeconds",
				    "template",
				    "suspend",
				    "ttlSecondsAfterFinished",
				    "selector",
				    "manualSelector",
				    "managedBy",
				    "podReplacementPolicy",
				    "backoffLimitPerIndex",
				    "podFailurePolicy",
				    "successPolicy",
				    "maxFailedIndexes",
				    NULL };
/* Understood, but not used. */
static const char *const unused[] = { "podFailurePolicy", "successPolicy", "maxFailedIndexes",
				      NULL };

int job_fields_read(struct manifest *m, const struct gpuq_val *spec, struct job_fields *out)
{
	static const char *const modes[] = { "NonIndexed", "Indexed", NULL };
	const char *mode = out->indexed ? "Indexed" : "NonIndexed";
	int64_t backoff = KIND_BACKOFF, per_index = -1;
	struct gpuq_reader *r = m->r;
	int rc = manifest_keys(m, spec, keys);

	out->parallelism = 1;
	out->completions = -1;
	out->seconds = 0;
	if (rc == 0)
		rc = spec_want_int(r, spec, "parallelism", 1, GPUQ_PODS_MAX, &out->parallelism);
	if (rc == 0)
		rc = spec_want_int(r, spec, "completions", 1, GPUQ_ARRAY_MAX, &out->completions);
	if (rc == 0)
		rc = spec_want_int(r, spec, "backoffLimit", 0, GPUQ_RETRY_MAX, &backoff);
	if (rc == 0)
		rc = spec_want_int(r, spec, "backoffLimitPerIndex", 0, GPUQ_RETRY_MAX, &per_index);
	if (rc == 0)
		rc = spec_want_int(r, spec, "activeDeadlineSeconds", 1, INT32_MAX, &out->seconds);
	if (rc == 0)
		rc = manifest_word(m, spec, "completionMode", modes, &mode);
	if (rc == 0)
		rc = manifest_ttl(m, spec);
	if (rc == 0)
		rc = spec_want_type(r, spec, "template", GPUQ_MAP, &out->tmpl);
	if (rc < 0)
		return rc;
	for (int i = 0; unused[i]; i++)
		manifest_unused(m, spec, unused[i], "is not used");
	if (!out->tmpl) {
		gpuq_reader_enter(r, "template");
		return spec_fail(r, spec, GPUQ_EINVAL, "expected a map with metadata and spec");
	}
	out->indexed = strcmp(mode, "Indexed") == 0;
	out->backoff = per_index >= 0 ? per_index : backoff;
	return 0;
}

/* Each completion is a job of its own, as many at once as there were pods. */
static int make_array(struct manifest *m, const struct job_fields *f)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char set[48];
	int rc;

	snprintf(set, sizeof(set), "0-%lld%%%lld", (long long)(f->completions - 1),
		 (long long)f->parallelism);
	rc = gpuq_array_parse(m->r->arena, set, &m->out->array, &err);
	return rc < 0 ? spec_fail(m->r, m->spec, rc, "completions: %s", err.text) : 0;
}

int kind_job(struct manifest *m)
{
	static const char *const policies[] = { "Never", "OnFailure", NULL };
	struct gpuq_group *g = &m->out->groups[0];
	const char *policy;
	struct job_fields f = { 0 };
	size_t mark;
	int rc = job_fields_read(m, m->spec, &f);

	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "template");
	rc = manifest_template(m, f.tmpl, g);
	if (rc == 0)
		rc = manifest_restart(m, gpuq_get(f.tmpl, "spec"), policies, &policy);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	manifest_retry(m, f.backoff);
	manifest_limit(m, f.seconds);
	if (f.completions > f.parallelism) {
		rc = make_array(m, &f);
	} else {
		g->pods_min = f.parallelism;
		if (f.completions > 0 && f.completions < f.parallelism)
			g->pods_min = f.completions;
		g->pods_max = g->pods_min;
	}
	return rc < 0 ? rc : manifest_job_marks(m, g, m->name, f.indexed);
}
