/* estimate_past.h - how long jobs of a kind really run, and how good estimates were
 *
 * Owns     the last runs of each kind of job (queue, user and name), and the first estimate of
 *          pending jobs until they start. In memory only.
 * Touches  memory; receives events.
 * Used by  flow/advise/estimate.
 */
#ifndef GPUQD_FLOW_ADVISE_ESTIMATE_PAST_H
#define GPUQD_FLOW_ADVISE_ESTIMATE_PAST_H

#include "gpuqd/state/event.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/advise/estimate.h"

#define PAST_KINDS_MAX 4096 /* the oldest is forgotten for a new one */
#define PAST_RUNS 20 /* of a kind that count */
#define PAST_RUNS_LEAST 3 /* fewer tell nothing */
#define PAST_WATCHED_MAX 4096 /* pending jobs whose start will be compared */

struct past;

struct past *past_new(void); /* NULL: no memory */
void past_free(struct past *p);

/* Update it; called after the event was applied to m. */
void past_on_event(struct past *p, const struct model *m, const struct event *ev);

/* Return the fraction of their limits that nine of ten runs of that kind stayed within, in
 * thousandths, 1..1000; 0 = not known. */
uint32_t past_usual(const struct past *p, const char *queue, const char *user, const char *name);
bool past_knows_any(const struct past *p);

/* Keep the first estimate of a pending job; later ones are ignored. start_us GPUQ_UNLIMITED = there
 * was none. An array (id alone) is judged by its first element. */
void past_watch(struct past *p, uint32_t id, int64_t start_us);
bool past_watches(const struct past *p, uint32_t id);

bool past_record(const struct past *p, const char *queue, struct start_record *out);

#endif
