#include "gpuqd/flow/apart.h"

#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/flow/journal.h"

struct of_flavor {
	const struct job *was, *is; /* charged until now; pending for the longest time */
	int64_t milli;
};

struct apart_choice {
	const struct snapshot *sn;
	struct of_flavor of[];
};

struct apart_choice *apart_begin(struct gpuq_arena *mem, const struct snapshot *sn)
{
	struct apart_choice *c =
		gpuq_arena_calloc(mem, 1, sizeof(*c) + sn->n_flavors * sizeof(c->of[0]));

	if (c)
		c->sn = sn;
	return c;
}

static bool waits_longer(const struct job *x, const struct job *y)
{
	if (x->eligible_us != y->eligible_us)
		return x->eligible_us < y->eligible_us;
	return x->key.id != y->key.id ? x->key.id < y->key.id : x->key.index < y->key.index;
}

void apart_note(struct apart_choice *c, const struct job *j, uint32_t at, bool fragmented)
{
	const struct snap_request *r = c ? &c->sn->requests[c->sn->jobs[at].request] : NULL;
	struct of_flavor *f;

	if (j->life->apart && c)
		for (uint32_t i = 0; i < c->sn->n_flavors; i++)
			if (strcmp(c->sn->flavors[i].name, j->life->apart->flavor) == 0)
				c->of[i].was = j;
	if (!c || !fragmented || r->n_flavor_ix == 0 || r->gpus_milli == 0)
		return;
	f = &c->of[r->flavor_ix[0]];
	if (f->is && !waits_longer(j, f->is))
		return;
	f->is = j;
	f->milli = r->gpus_milli;
}

static void charge(struct journal *journal, const struct job *j, const char *flavor, int64_t milli)
{
	struct event ev = { .type = EV_JOB_FRAGMENTED, .job = j->key };

	ev.fragmented.flavor = flavor;
	ev.fragmented.milli = milli;
	journal_apply(journal, &ev, NULL);
}

void apart_tell(const struct apart_choice *c, struct journal *journal)
{
	for (uint32_t i = 0; c && i < c->sn->n_flavors; i++) {
		const struct of_flavor *f = &c->of[i];
		const char *name = c->sn->flavors[i].name;

		if (f->was && (f->was != f->is || f->was->life->apart->milli != f->milli))
			charge(journal, f->was, name, 0);
		if (f->is && !f->is->life->apart)
			charge(journal, f->is, name, f->milli);
	}
}
