/* Marks of an event: records to be written beside the objects that it changed. Applying only notes
 * them here, with all data that would be lost afterwards; model_apply() of the record room writes
 * them once the event has been applied. */
#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/grow.h"

/* Append a mark. Marks are all that applying leaves behind for the encoders above. */
static struct mark *add(struct model *m, enum mark_kind kind)
{
	struct marks *all = &m->marks;

	if (!grow_to(&all->items, &all->room, all->n + 1))
		abort();
	memset(&all->items[all->n], 0, sizeof(*all->items));
	all->items[all->n].kind = kind;
	return &all->items[all->n++];
}

void marks_started(struct model *m, struct job *j, int64_t at_us)
{
	struct mark *k = add(m, MARK_STARTED);

	k->job = j;
	k->number = j->n_log++;
	k->at_us = at_us;
}

void marks_ended(struct model *m, struct job *j)
{
	struct mark *k = add(m, MARK_ENDED);

	k->job = j;
	k->number = j->n_log++;
}

void marks_notice(struct model *m, const struct job *j, unsigned what, enum gpuq_cause cause)
{
	struct mark *k = add(m, MARK_NOTICE);

	k->job = j;
	k->number = what;
	k->cause = cause;
}

void marks_key(struct model *m, const struct idem_key *key)
{
	add(m, MARK_KEY)->key = key;
}

void marks_charges(struct model *m, const struct charges *c, const struct charged *items)
{
	struct charges *copy = must(malloc(sizeof(*c) + c->n * sizeof(items[0])));

	*copy = *c;
	memcpy(copy->items, items, c->n * sizeof(items[0]));
	add(m, MARK_CHARGES)->charges = copy;
}

void marks_done(struct model *m, const struct job *j)
{
	add(m, MARK_DONE)->done = j->key;
}

void marks_clear(struct model *m)
{
	for (size_t i = 0; i < m->marks.n; i++)
		if (m->marks.items[i].kind == MARK_CHARGES)
			free(m->marks.items[i].charges);
	m->marks.n = 0;
}
