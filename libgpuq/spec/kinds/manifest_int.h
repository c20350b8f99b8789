/* manifest_int.h - what the readers of the kinds share
 *
 * Owns     nothing: what is read goes to the arena of the reader.
 * Touches  memory only.
 * Used by  the files of libgpuq/spec/kinds.
 *
 * A reader (struct kind) finds m->spec checked to be a map and the path at it, and fills m->out.
 * Queue and hints of labels and annotations are read after it.
 */
#ifndef LIBGPUQ_SPEC_KINDS_MANIFEST_INT_H
#define LIBGPUQ_SPEC_KINDS_MANIFEST_INT_H

#include "libgpuq/spec/kinds/kinds.h"
#include "libgpuq/spec/spec_check.h"
#include "libgpuq/spec/spec_template.h"
#include "libgpuq/spec/spec_util.h"

struct manifest {
	struct gpuq_reader *r;
	struct gpuq_buf *warnings; /* may be NULL */
	const struct gpuq_val *doc, *meta, *spec;
	const char *name; /* metadata.name, or NULL */
	size_t top; /* length of the path at the object, for gpuq_reader_leave() */
	struct gpuq_spec *out; /* with one group */
};

/* Readers, a file each. */
int kind_pod(struct manifest *m);
int kind_job(struct manifest *m);
int kind_jobset(struct manifest *m);
int kind_pytorchjob(struct manifest *m);
int kind_mpijob(struct manifest *m);
int kind_trainjob(struct manifest *m);
int kind_rayjob(struct manifest *m);
int kind_volcanojob(struct manifest *m);

/* The list under key, or NULL where there is none: not read yet, it may be of any type. */
struct gpuq_val *manifest_list(const struct gpuq_val *map, const char *key);

/* Refuse members of map that are not in known, with the nearest one. */
int manifest_keys(struct manifest *m, const struct gpuq_val *map, const char *const *known);

/* One member: refused or warned of when it is there (not null, not an empty list, map or string). */
int manifest_refuse(struct manifest *m, const struct gpuq_val *map, const char *key,
		    const char *text);
void manifest_unused(struct manifest *m, const struct gpuq_val *map, const char *key,
		     const char *text);

/* A word out of words (NULL at its end); *out stays when the member is absent or empty. */
int manifest_word(struct manifest *m, const struct gpuq_val *map, const char *key,
		  const char *const *words, const char **out);

/* n groups, with their defaults, in place of the one there is. Names must be set where n > 1. */
int manifest_groups(struct manifest *m, size_t n);

/* Refuse a group that has the name of one before it: `at` is the map with the name. */
int manifest_other_name(struct manifest *m, const struct gpuq_val *at, const struct gpuq_group *g);

/* Read the pod template (metadata + spec) at which the path stands into group g: a copy of it,
 * requests, placement; the limits of the pod into the job. */
int manifest_template(struct manifest *m, const struct gpuq_val *tmpl, struct gpuq_group *g);

/* The member `template` of map. */
int manifest_template_of(struct manifest *m, const struct gpuq_val *map, struct gpuq_group *g);

/* Put a label or annotation ("labels", "annotations") on the template's pods. */
int manifest_mark(struct manifest *m, struct gpuq_group *g, const char *map, const char *key,
		  const char *value);

/* Put a variable into each container of the template that does not set it. */
int manifest_env(struct manifest *m, struct gpuq_group *g, const char *name, const char *value);

/* As the Job controller marks its pods: job-name labels, and for an Indexed one the completion
 * index, which gpuqd fills in for each pod. name NULL = the job has none. */
int manifest_job_marks(struct manifest *m, struct gpuq_group *g, const char *name, bool indexed);

/* A template that names a pod by prefix (as its operator would name it) cannot run here: refused
 * with the place. MASTER_ADDR is set by gpuqd and may say it. path stands at the template. */
int manifest_names(struct manifest *m, const struct gpuq_val *tmpl, const char *prefix);

/* The first string in v, at any depth, that has text in it; NULL = there is none. */
const struct gpuq_val *manifest_mentions(const struct gpuq_val *v, const char *text);

/* The shorter of the job's limit and seconds; 0 is none. */
void manifest_limit(struct manifest *m, int64_t seconds);

/* Try again up to limit times; 0 = never. */
void manifest_retry(struct manifest *m, int64_t limit);

/* restartPolicy of a pod spec, which must be one of policies (NULL at the end). The path stands
 * at the template. */
int manifest_restart(struct manifest *m, const struct gpuq_val *pod, const char *const *policies,
		     const char **out);

/* ttlSecondsAfterFinished of map. */
int manifest_ttl(struct manifest *m, const struct gpuq_val *map);

/* Kubernetes' default of backoffLimit. */
#define KIND_BACKOFF 6

/* The spec of a batch/v1 Job, as a Job and a JobSet have it. */
struct job_fields {
	const struct gpuq_val *tmpl;
	int64_t parallelism, completions; /* completions -1 = not given */
	int64_t backoff; /* tries again */
	int64_t seconds; /* activeDeadlineSeconds, 0 = none */
	bool indexed;
};
int job_fields_read(struct manifest *m, const struct gpuq_val *spec, struct job_fields *out);

#endif
