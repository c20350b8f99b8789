/* ask_int.h - asks as the files of this folder change them
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  ask_nodes.c, ask_store.c. */
#ifndef GPUQD_STATE_ASKS_ASK_INT_H
#define GPUQD_STATE_ASKS_ASK_INT_H

#include <stdlib.h>

#include "gpuqd/state/asks/ask.h"

/* As the model does it: a daemon without memory for such a thing starts anew. */
static inline void *ask_must(void *p)
{
	if (!p)
		abort();
	return p;
}

struct ask *ask_add(struct model *m, uint32_t number);
void ask_delete(struct model *m, struct ask *a);
struct ask_pool *ask_pool_get(struct model *m, const char *name); /* a new one, if there is none */
void ask_set_message(char **at, const char *text);
/* Note how long the ask took that is served now. */
void ask_pool_waited(struct model *m, const struct ask *a);
/* Store it after a change by which other nodes can be used. */
void ask_put_changed(struct model *m, const struct ask *a);

#endif
