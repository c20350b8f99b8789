/* config_live.h - settings that may change while the daemon runs, and the options of its parts that they make
 *
 * Owns     which settings are replaced when the file is read again.
 * Touches  the log.
 * Used by  daemon.c.
 */
#ifndef GPUQD_CONFIG_LIVE_H
#define GPUQD_CONFIG_LIVE_H

#include <stdbool.h>

#include "gpuqd/config.h"
#include "gpuqd/flow/notify/outbox.h"
#include "gpuqd/flow/report/history_keep.h"
#include "libgpuq/arena.h"

/* Return the operators' names, NULL after the last; in a, or NULL when it is exhausted. */
const char *const *config_live_operators(const struct config *c, struct gpuq_arena *a);
void config_live_outbox(const struct config *c, struct gpuq_arena *a, struct outbox_opts *out);
struct history_limits config_live_history(const struct config *c);

/* True if both print alike. */
bool config_live_is_same(const struct config *a, const struct config *b);
/* Log the keys that stay as they are, though the file c says otherwise now. */
void config_live_tell_others(const struct config *is, const struct config *c);
/* Put the settings of c that config.c calls live; what they point at belongs to c. */
void config_live_put(struct config *is, const struct config *c);

#endif
