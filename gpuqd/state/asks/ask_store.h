/* ask_store.h - asks as stored bytes
 *
 * Owns     the form of their records.
 * Touches  memory only.
 * Used by  ask.c, ask_nodes.c; state/record/record.c, which loads them. */
#ifndef GPUQD_STATE_ASKS_ASK_STORE_H
#define GPUQD_STATE_ASKS_ASK_STORE_H

#include "gpuqd/state/asks/ask.h"

struct rec;

void ask_put(struct model *m, const struct ask *a);
void ask_put_pool(struct model *m, const struct ask_pool *p);
/* The number is never given twice: that of the last one is kept, also when it is forgotten. */
void ask_put_last(struct model *m);
/* Forget it, in memory and on the disk. */
void ask_forget(struct model *m, struct ask *a);
int ask_load(struct model *m, const unsigned char *key, size_t n, struct rec *r,
	     struct gpuq_err *err);

#endif
