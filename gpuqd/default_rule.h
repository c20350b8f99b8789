/* default_rule.h - the quota of `default` in a database from before its rule
 *
 * Owns     a timer: until then `default` keeps the unlimited quota that it had.
 * Touches  the journal, the log.
 * Used by  daemon.c.
 *
 * site/quotas.h has the rule.
 */
#ifndef GPUQD_DEFAULT_RULE_H
#define GPUQD_DEFAULT_RULE_H

#include <stdint.h>

#include "gpuqd/flow/journal.h"
#include "libgpuq/err.h"

struct default_rule;

/* Settle a model that was just loaded, before it is used; one that is settled stays as it is. */
int default_rule_settle(struct model *m, int64_t now_us, struct gpuq_err *err);

/* Wait until the rule takes effect, where it does not yet. */
int default_rule_new(struct journal *j, struct default_rule **out, struct gpuq_err *err);
/* NULL is allowed. */
void default_rule_free(struct default_rule *r);

#endif
