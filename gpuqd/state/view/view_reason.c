#include "gpuqd/state/view/view_reason.h"

#include <string.h>

#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/takes.h"
#include "gpuqd/state/view/view_val.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/units.h"

/* Return an amount for people: devices and cores with decimals, an instant as text. */
static struct gpuq_val *view_amount_of(struct gpuq_arena *a, const struct model *m,
				       const struct reason *r, int64_t n)
{
	char text[32];

	if (r->have == 0 && r->need == 0)
		return gpuq_null(a);
	if (n == GPUQ_UNLIMITED)
		return gpuq_str(a, "unlimited");
	switch ((enum gpuq_unit)r->unit) {
	case GPUQ_UNIT_GPUS:
	case GPUQ_UNIT_CORES:
		return view_devices(a, n);
	case GPUQ_UNIT_TIME:
		gpuq_instant_print(walltime_of(n, m->ahead_us), text, sizeof(text));
		return gpuq_str(a, text);
	default:
		return gpuq_int(a, n);
	}
}

size_t view_reason_list(const struct job *j, const struct reason **out, struct reason *now)
{
	const bool starts = j->state == GPUQ_JOB_STARTING;

	*out = j->outlook->reasons;
	if (j->state != GPUQ_JOB_PENDING && !starts)
		return 0;
	if (j->outlook->n_reasons)
		return j->outlook->n_reasons;
	*now = (struct reason){ .code = starts ? GPUQ_R_STARTING : GPUQ_R_NOT_EVALUATED,
				.object =
					starts && j->life->trouble ? j->life->trouble->object : "",
				.since_us = starts ? j->life->placed_us : j->eligible_us };
	*out = now;
	return 1;
}

const char *view_reason_trouble_who(enum trouble_whose whose)
{
	return whose == TROUBLE_USERS                           ? "user"
	       : whose == TROUBLE_TURN || whose == TROUBLE_ROOM ? "nobody"
								: "operator";
}

/* Return why no nodes can be requested for a pool; NULL = they can, or the name is of no such pool. */
static const char *words_of_pool(const struct model *m, const char *name)
{
	const struct site_pool *p =
		m->asks_known == ASKS_OFF ? site_pool_find(m->site, name) : NULL;

	if (!p || !site_pool_requests(p))
		return NULL;
	return m->asks_why && *m->asks_why ? m->asks_why
					   : "this cluster takes no requests for nodes";
}

/* Return what the cloud said when requests of the pool failed, and until when there are no more; NULL = nothing is known. */
static const char *words_of_failure(struct gpuq_arena *a, const struct model *m, const char *name)
{
	const struct ask_pool *p = ask_pool_find(m, name);
	char until[40];

	if (!p || !p->failed_us || !*p->message)
		return NULL;
	if (p->closed_until_us <= m->now_us)
		return p->message;
	gpuq_instant_print(walltime_of(p->closed_until_us, m->ahead_us), until, sizeof(until));
	return gpuq_arena_printf(a, "%s; no other request before %s", p->message, until);
}

/* Return why pods of a runtime are not made; NULL = the reason names none, or it has changed since the
 * last cycle, which is the one that the reason is of. */
static const char *words_of_runtime(struct gpuq_arena *a, const struct model *m, const char *object)
{
	const size_t n = strlen(OBJECT_RUNTIME_PREFIX);
	const char *device = object && strncmp(object, OBJECT_RUNTIME_PREFIX, n) == 0
				     ? takes_overhead_device(m, object + n)
				     : NULL;

	return device ? gpuq_arena_printf(a,
					  "its overhead takes %s, a device that no pod of it gets: "
					  "remove it from overhead.podFixed",
					  device)
		      : NULL;
}

/* Return the words of the cluster behind a reason; NULL = there are none. */
static const char *words_of(struct gpuq_arena *a, const struct model *m, const struct job *j,
			    const struct reason *r)
{
	const struct life *l = j->life;
	const char *words;

	switch ((enum gpuq_reason)r->code) {
	case GPUQ_R_CLUSTER_REFUSED:
	case GPUQ_R_NAMESPACE_QUOTA:
		words = words_of_runtime(a, m, r->object);
		if (words)
			return words;
		return l->blocked && l->blocked->code == (enum gpuq_reason)r->code
			       ? l->blocked->words
		       : j->queue->refused ? j->queue->refused->words
					   : node_words_of_claims(m, r->object);
	case GPUQ_R_STARTING:
		return l->trouble ? l->trouble->words : NULL;
	case GPUQ_R_HELD_RETRIES:
		return l->message;
	case GPUQ_R_NODES_UNAVAILABLE:
		return words_of_pool(m, r->object);
	case GPUQ_R_PROVISIONING_FAILED:
		return words_of_failure(a, m, r->object);
	default:
		return NULL;
	}
}

/* Return the role that can do something about a reason: of trouble at the start it depends on the
 * trouble; what the cloud said of a failure is for operators. */
static const char *who_of(const struct job *j, const struct reason *r)
{
	if (r->code == GPUQ_R_PROVISIONING_FAILED)
		return "operator";
	return r->code == GPUQ_R_STARTING && j->life->trouble
		       ? view_reason_trouble_who(j->life->trouble->whose)
		       : gpuq_reason_who((enum gpuq_reason)r->code);
}

struct gpuq_val *view_reasons(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	struct gpuq_val *list = gpuq_list(a);
	const struct reason *r;
	struct reason now;
	const size_t n = view_reason_list(j, &r, &now);

	for (size_t i = 0; i < n; i++, r++) {
		struct gpuq_val *v = gpuq_map(a);

		gpuq_put(a, v, "code", gpuq_str(a, gpuq_reason_word((enum gpuq_reason)r->code)));
		gpuq_put(a, v, "object", view_word(a, r->object));
		gpuq_put(a, v, "unit", gpuq_str(a, gpuq_unit_word((enum gpuq_unit)r->unit)));
		gpuq_put(a, v, "have", view_amount_of(a, m, r, r->have));
		gpuq_put(a, v, "need", view_amount_of(a, m, r, r->need));
		gpuq_put(a, v, "since", view_instant(a, r->since_us));
		gpuq_put(a, v, "who", gpuq_str(a, who_of(j, r)));
		gpuq_put(a, v, "message", view_word(a, words_of(a, m, j, r)));
		gpuq_add(a, list, v);
	}
	return list;
}
