/* spec_util.h - words, names and maps of the readers of jobs
 *
 * Owns nothing. Touches memory only. Used by the files of libgpuq/spec and below.
 */
#ifndef LIBGPUQ_SPEC_SPEC_UTIL_H
#define LIBGPUQ_SPEC_SPEC_UTIL_H

#include "libgpuq/spec.h"

/* Set key in m (a copy with one more pair when it is new). Returns 0, GPUQ_ENOMEM, or
 * GPUQ_ETOOBIG past GPUQ_MAP_MAX pairs; spec_map_failed says it in words. */
int spec_map_set(struct gpuq_arena *a, struct gpuq_strmap *m, const char *key, const char *val);
int spec_map_failed(struct gpuq_err *err, int code);

/* A whole decimal number in [min, max] at *at, which moves behind it. */
bool spec_digits(const char **at, int64_t min, int64_t max, int64_t *out);

/* The text of a scalar as its author wrote it, NULL when v is none (or null). */
const char *spec_scalar(struct gpuq_arena *a, const struct gpuq_val *v);

/* Cut text at sep into trimmed, non-empty words. */
int spec_split(struct gpuq_arena *a, const char *text, char sep, struct gpuq_strlist *out);

/* A job's name made of anything: bytes that are no UTF-8 become '-', what is too long is cut between
 * two characters; "job" when nothing is left. NULL without memory. */
const char *spec_name_from(struct gpuq_arena *a, const char *text);
/* Names of what the site has: they become labels and host names. */
bool spec_name_ok(const char *name);
/* Names that Kubernetes accepts for objects; label: as a label of DNS, of 63 bytes and without dots. */
bool spec_object_name_ok(const char *name, bool label);
/* A job's: any UTF-8. It is cleaned where it is shown, and is no part of any object's name. */
bool spec_job_name_ok(const char *name);

#define SPEC_WRAP_HEAD "#!/bin/sh\n# made by --wrap\n" /* how the script of --wrap begins */

/* The flavors of a job as options and annotations have them: NAME[:TIME],... */
int spec_flavors_parse(struct gpuq_arena *a, const char *text, struct gpuq_spec *out,
		       struct gpuq_err *err);

#endif
