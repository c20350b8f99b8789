/* yaml_plain.h - what an unquoted YAML scalar means
 *
 * Owns     the YAML 1.2 core rules, and which words we refuse because YAML 1.1
 *          readers (Kubernetes' among them) take them for something else.
 * Used by  yaml.c (reads), yaml_write.c (decides what must be quoted).
 */
#ifndef LIBGPUQ_YAML_PLAIN_H
#define LIBGPUQ_YAML_PLAIN_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/val.h"

struct yaml_plain {
	enum gpuq_type type; /* NULL, BOOL, INT, REAL or STR */
	int64_t i; /* INT; BOOL: 0 or 1 */
	double d; /* REAL */
};

/* Decide what s (n bytes, NUL behind) means. Returns NULL and *out, or the sentence
 * that says why it is refused ("write 0o644 or 420 ..."). */
const char *yaml_plain_resolve(const char *s, size_t n, struct yaml_plain *out);

/* True if s is a number such as 0755, which YAML 1.1 reads as octal; out has it then. */
bool yaml_plain_octal(const char *s, struct yaml_plain *out);

#endif
