#include "gpuqd/flow/admit/zones.h"

#include "gpuqd/base/zonefile.h"
#include "gpuqd/util/zone.h"
#include "libgpuq/buf.h"

static bool find_rule(const char *name, int64_t now_us, char rule[ZONE_RULE_MAX])
{
	struct gpuq_buf bytes = GPUQ_BUF_INIT_MAX(ZONE_BYTES_MAX);
	const bool found =
		zonefile_read(name, &bytes, NULL) == 0 &&
		zone_rule(bytes.data ? bytes.data : "", bytes.len, now_us, rule, NULL) == 0;

	gpuq_buf_done(&bytes);
	return found;
}

/* Return the reservation with the rule beside the zone's name; itself where there is none to add. A
 * tree may share its members with the site in use: they stay as they are. */
static struct gpuq_val *settled(struct gpuq_arena *a, struct gpuq_val *reservation, int64_t now_us)
{
	struct gpuq_val *given = gpuq_get(reservation, "timezone"), *zone, *v;
	char rule[ZONE_RULE_MAX];

	if (!given || given->type != GPUQ_STR || !find_rule(given->s, now_us, rule))
		return reservation;
	zone = gpuq_map(a);
	v = gpuq_map(a);
	gpuq_put(a, zone, "name", gpuq_str(a, given->s));
	gpuq_put(a, zone, "rule", gpuq_str(a, rule));
	if (!zone || !v)
		return reservation;
	zone->at = given->at;
	v->at = reservation->at;
	for (uint32_t i = 0; i < reservation->n; i++) {
		const struct gpuq_pair *p = &reservation->pairs[i];

		if (gpuq_put(a, v, p->key, p->val == given ? zone : p->val))
			v->pairs[v->n - 1].at = p->at;
	}
	return v;
}

void zones_settle(struct gpuq_arena *a, struct gpuq_val *tree, int64_t now_us)
{
	struct gpuq_val *list = gpuq_get(tree, "reservations");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		list->items[i] = settled(a, list->items[i], now_us);
}
