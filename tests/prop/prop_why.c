#include "tests/prop/prop_why.h"

#include <inttypes.h>
#include <stdio.h>

#include "libgpuq/names.h"

bool prop_why(const struct snapshot *s, const struct plan *p, int *told, char *text, size_t room)
{
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const uint32_t id = s->jobs[i].key.id;
		const struct plan_reason *why;
		const uint32_t n = plan_reasons(s, p, i, &why);

		for (const struct plan_reason *r = why; r < why + n; r++) {
			if (r->code == GPUQ_R_NONE || !r->object) {
				snprintf(text, room, "a reason of job %" PRIu32 " is empty", id);
				return false;
			}
			if (r->have >= r->need && r->need != 0) {
				snprintf(text, room,
					 "job %" PRIu32 " has %" PRId64 " of %" PRId64
					 " and yet %s",
					 id, r->have, r->need, gpuq_reason_word(r->code));
				return false;
			}
		}
		told[id - 1] += (int)n;
	}
	return true;
}
