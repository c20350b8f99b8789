/* selector.h - which labels something has to have: "team=a", "stage!=b", "team", "!team"
 *
 * Owns     nothing. Touches memory only.
 * Used by  the CLI (--labels), the daemon (filters of jobs, labels of jobs and nodes).
 *
 * As in Kubernetes: "!=" holds for what has no such label, too.
 */
#ifndef LIBGPUQ_SELECTOR_H
#define LIBGPUQ_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "libgpuq/err.h"

/* True for a label's key or value as Kubernetes takes it; a value may be empty. */
bool gpuq_label_key_ok(const char *key);
bool gpuq_label_value_ok(const char *value);

/* One requirement. GPUQ_EINVAL with what was expected. */
int gpuq_selector_check(const char *text, struct gpuq_err *err);

/* The label that it is about: where it begins in text, and its length. */
const char *gpuq_selector_key(const char *text, size_t *n);

/* Does it hold for what has this value of the label, of n bytes; NULL = has no such label? */
bool gpuq_selector_holds(const char *text, const char *value, size_t n);

#endif
