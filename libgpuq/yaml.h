/* yaml.h - YAML (and JSON) text to value trees
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  job files, site files, the daemon's configuration, kubeconfigs.
 *
 * YAML 1.2 core rules for plain scalars; quoted scalars are strings. Refused with
 * line and column: duplicate keys, merge keys, aliases, tags, yes/no/on/off as
 * plain scalars (they mean different things to different readers), depth over 32.
 */
#ifndef LIBGPUQ_YAML_H
#define LIBGPUQ_YAML_H

#include <stddef.h>

#include "libgpuq/err.h"
#include "libgpuq/val.h"

/* Parse every document of text[0..n) (at most 1 MiB).
 *
 * file is the name for messages ("-" for standard input). On success *docs is an
 * array of *n_docs trees in a; empty documents are left out.
 * Returns 0; GPUQ_EINVAL with err->text "file:line:col: ..."; GPUQ_ETOOBIG;
 * GPUQ_ENOMEM. */
int gpuq_yaml_parse(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		    struct gpuq_val ***docs, size_t *n_docs, struct gpuq_err *err);

/* The same for files of jobs, which Kubernetes' tools may read as well: an alias is a copy of its
 * anchor's value, `<<` merges maps, and in a document with apiVersion 0755 is octal. At most
 * GPUQ_YAML_ALIASES_MAX aliases. */
int gpuq_yaml_parse_jobs(struct gpuq_arena *a, const char *file, const char *text, size_t n,
			 struct gpuq_val ***docs, size_t *n_docs, struct gpuq_err *err);

/* The same, of text up to bytes_max with up to values_max values: for files that one's own
 * programs may have written. */
int gpuq_yaml_parse_large(struct gpuq_arena *a, const char *file, const char *text, size_t n,
			  size_t bytes_max, size_t values_max, struct gpuq_val ***docs,
			  size_t *n_docs, struct gpuq_err *err);

#endif
