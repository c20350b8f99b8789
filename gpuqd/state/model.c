#include "gpuqd/site/policy.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/record/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const event_words[N_EVENTS] = {
#define X(sym, word, stored, apply) word,
	EVENTS(X)
#undef X
};

bool model_event_is_stored(enum event_type t)
{
	static const bool stored[N_EVENTS] = {
#define X(sym, word, is, apply) [EV_##sym] = is,
		EVENTS(X)
#undef X
	};

	return stored[t];
}

struct model *model_new(const char *cluster_id)
{
	struct model *m = calloc(1, sizeof(*m));
	struct site *s = site_default();

	if (m) {
		m->readers = calloc(1, sizeof(*m->readers));
		m->objects = objects_new();
	}
	if (!m || !s || !m->readers || !m->objects) {
		site_free(s);
		objects_free(m ? m->objects : NULL);
		free(m ? m->readers : NULL);
		free(m);
		return NULL;
	}
	queue_set_site(m, s);
	snprintf(m->cluster_id, sizeof(m->cluster_id), "%s", cluster_id);
	m->next_job_id = 1;
	m->next_request_id = 1;
	m->policy = policy_default();
	m->meta_dirty = true;
	m->site_dirty = false;
	change_batch_init(&m->direct);
	return m;
}

void model_free(struct model *m)
{
	struct node *n, *nt;
	struct foreign *f, *ft;
	struct usage *u, *ut;

	if (!m)
		return;
	m->now_us = 0; /* objects that are freed now had not ended */
	job_each_rw(m, j)
		job_free(m, j);
	table_done(&m->jobs_by_key);
	table_done(&m->elements);
	table_done(&m->awaited);
	free(m->dirty_jobs);
	blob_done(&m->shared);
	free(m->pattern);
	HASH_ITER(hh, m->nodes, n, nt)
		node_free(m, n);
	request_done(&m->requests);
	HASH_ITER(hh, m->foreigns, f, ft) {
		HASH_DEL(m->foreigns, f);
		free(f->uuids);
		free(f->holds);
		free(f->resources);
		free(f);
	}
	objects_free(m->objects);
	keys_done(&m->keys);
	HASH_ITER(hh, m->usages, u, ut) {
		HASH_DEL(m->usages, u);
		free(u);
	}
	account_free_all(m);
	token_free_all(m);
	ask_free_all(m);
	for (uint32_t i = 0; i < m->n_queues; i++) {
		free(m->queues[i]->refused);
		free(m->queues[i]);
	}
	free(m->queues);
	site_free(m->site);
	for (uint32_t i = 0; i < m->strs.room; i++)
		free(m->strs.at[i]);
	table_done(&m->strs);
	change_batch_done(&m->direct);
	free(m->departed.items);
	marks_clear(m);
	free(m->marks.items);
	free(m->readers);
	free(m);
}

int model_apply_fenced(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	snprintf(m->fenced_by, sizeof(m->fenced_by), "%s", ev->fence.by);
	snprintf(m->keeps_out, sizeof(m->keeps_out), "%s", ev->fence.waits);
	return 0;
}

int model_apply_cluster(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	snprintf(m->cluster_uid, sizeof(m->cluster_uid), "%s", ev->name);
	m->meta_dirty = true;
	return 0;
}

static int (*const appliers[N_EVENTS])(struct model *m, const struct event *ev,
				       struct gpuq_err *err) = {
#define X(sym, word, stored, apply) [EV_##sym] = apply,
	EVENTS(X)
#undef X
};

int model_change(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	int rc;

	m->now_us = ev->at_us;
	if (ev->type < N_EVENTS)
		rc = appliers[ev->type](m, ev, err);
	else
		rc = gpuq_fail(err, GPUQ_EINTERNAL, "unknown event %d", (int)ev->type);
	if (rc == 0)
		m->n_events++;
	return rc;
}
