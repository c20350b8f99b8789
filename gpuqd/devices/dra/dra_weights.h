/* dra_weights.h - what one device of a request is charged, as far as it was found out
 *
 * Owns     a table of a ledger, forgotten when its slices or classes change. Touches memory only.
 * Used by  dra.c (keeps it), dra_charge.c.
 *
 * To find it out all slices are looked at; and it is asked for each job with claims in each snapshot.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_WEIGHTS_H
#define GPUQD_DEVICES_DRA_DRA_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#define DRA_WEIGHTS_MAX 256u /* requests that differ; beyond them it is found out anew each time */

struct dra_weights {
	struct dra_weight {
		char *key;
		int64_t milli;
	} items[DRA_WEIGHTS_MAX];
	uint32_t n;
};

void dra_weights_clear(struct dra_weights *w);
bool dra_weights_find(const struct dra_weights *w, const char *key, int64_t *milli);
void dra_weights_keep(struct dra_weights *w, const char *key, int64_t milli);

struct dra;
/* Return those of a ledger; NULL = none of its devices is a part of a card. */
struct dra_weights *dra_weights(const struct dra *d);

#endif
