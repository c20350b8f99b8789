#include "gpuqd/devices/dra/dra_weights.h"

#include <stdlib.h>
#include <string.h>

void dra_weights_clear(struct dra_weights *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		free(w->items[i].key);
	w->n = 0;
}

bool dra_weights_find(const struct dra_weights *w, const char *key, int64_t *milli)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (strcmp(w->items[i].key, key) == 0) {
			*milli = w->items[i].milli;
			return true;
		}
	return false;
}

void dra_weights_keep(struct dra_weights *w, const char *key, int64_t milli)
{
	char *own = w->n < DRA_WEIGHTS_MAX ? strdup(key) : NULL;

	if (own)
		w->items[w->n++] = (struct dra_weight){ own, milli };
}
