#include "gpuqd/carry/claim_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define MORE "..."

/* Append whole parts only; after the first that does not fit MORE ends the text. */
__attribute__((format(printf, 2, 3))) static void add(char out[CLAIM_TEXT_MAX], const char *fmt,
						      ...)
{
	const size_t at = strlen(out), room = CLAIM_TEXT_MAX - at;
	va_list ap;
	int n;

	if (at >= strlen(MORE) && strcmp(out + at - strlen(MORE), MORE) == 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(out + at, room, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n + strlen(MORE) < room)
		return;
	snprintf(out + at, room, "%s", MORE);
}

/* Append what a queue holds before and after, beside what it is entitled to. */
static void add_side(char out[CLAIM_TEXT_MAX], const struct snapshot *s,
		     const struct plan_side *side, bool first)
{
	char before[24], after[24], share[24], quota[24];

	gpuq_milli_print(side->before, before, sizeof(before));
	gpuq_milli_print(side->after, after, sizeof(after));
	gpuq_milli_print(side->fair_share, share, sizeof(share));
	if (side->quota == GPUQ_UNLIMITED)
		snprintf(quota, sizeof(quota), "unlimited");
	else
		gpuq_milli_print(side->quota, quota, sizeof(quota));
	add(out, "%s %s %s -> %s (share %s, quota %s)", first ? "" : ";",
	    s->queues[side->queue].name, before, after, share, quota);
}

/* Append how much running work was spared, and why. */
static void add_passed(char out[CLAIM_TEXT_MAX], const uint32_t *passed)
{
	static const char *const words[N_PLAN_PASSED] = {
		[PLAN_PASSED_FIRM] = "cannot be evicted",
		[PLAN_PASSED_BUSY] = "ending or just started",
		[PLAN_PASSED_SHIELDED] = "protected",
		[PLAN_PASSED_NOT_NEEDED] = "within their queue's entitlement, or not needed",
	};
	bool first = true;

	for (int i = 0; i < N_PLAN_PASSED; i++) {
		if (passed[i] == 0)
			continue;
		add(out, "%s %u %s", first ? "; spared:" : ",", passed[i], words[i]);
		first = false;
	}
}

const char *claim_text(const struct snapshot *s, const struct plan *p, struct snap_key claimant,
		       char out[CLAIM_TEXT_MAX])
{
	char need[24];

	out[0] = '\0';
	for (uint32_t i = 0; i < p->n_claims; i++) {
		const struct plan_claim *claim = &p->claims[i];

		if (claim->key.id != claimant.id || claim->key.index != claimant.index)
			continue;
		gpuq_milli_print(claim->need, need, sizeof(need));
		add(out, "needs %s:", need);
		for (uint32_t k = 0; k < claim->n_sides; k++)
			add_side(out, s, &p->claim_sides[claim->side_first + k], k == 0);
		add_passed(out, claim->passed);
		break;
	}
	return out;
}

const char *claim_rules(const struct plan_action *actions, uint32_t n, char out[CLAIM_RULES_MAX])
{
	out[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		const char *rule = actions[i].rule ? actions[i].rule : "";
		bool told = *rule == '\0';

		for (uint32_t k = 0; k < i && !told; k++)
			told = actions[k].rule && strcmp(actions[k].rule, rule) == 0;
		if (!told && strlen(out) + strlen(rule) + 2 < CLAIM_RULES_MAX)
			snprintf(out + strlen(out), CLAIM_RULES_MAX - strlen(out), "%s%s",
				 *out ? "+" : "", rule);
	}
	return out;
}
