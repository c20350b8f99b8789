/* Successive jobs are often the same but for their numbers and times, and a start may load a
 * hundred thousand of them: a job whose record differs from the last one's in nothing else is a
 * copy of that job, and its fields are not decoded. */
#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/record/record_int.h"

/* Fields before the three that differ: the times of submission and of becoming eligible, and the
 * size of the spec. */
#define N_HEAD 10

struct pattern {
	const struct job *job; /* the last one loaded; NULL = not usable as a pattern */
	size_t n_head, n_rest; /* bytes before those three, and behind them */
	unsigned char bytes[1024];
};

/* True if it has only shared parts. */
static bool is_plain(const struct job *j)
{
	return j->life == &life_none && !j->array && !j->deps && !j->ended;
}

/* Return a copy for a row that only names the job before it. Shared parts are counted once more,
 * and nothing is decoded again. */
static struct job *copy_of(const struct job *from, struct job_key key)
{
	struct job *j = must(malloc(sizeof(*j)));

	*j = *from;
	j->key = key;
	j->alike = NULL;
	blob_more(j->wish);
	blob_more(j->name);
	blob_more(j->labels);
	blob_more(j->notes);
	j->request->n_jobs++;
	return j;
}

bool record_like_load(struct model *m, struct job_key key, const struct rec *r)
{
	struct pattern *p = m->pattern;
	struct rec rest = *r;
	int64_t submit_us, eligible_us, spec_bytes;
	struct job *j;

	if (!p || !p->job || key.index >= 0 || (size_t)(r->end - r->p) < p->n_head ||
	    memcmp(r->p, p->bytes, p->n_head) != 0)
		return false;
	rest.p += p->n_head;
	submit_us = rec_get_int(&rest);
	eligible_us = rec_get_int(&rest);
	spec_bytes = rec_get_int(&rest);
	if (rest.bad || (size_t)(rest.end - rest.p) != p->n_rest ||
	    memcmp(rest.p, p->bytes + p->n_head, p->n_rest) != 0)
		return false;
	j = copy_of(p->job, key);
	j->submit_us = submit_us;
	clock_seen(m, submit_us);
	j->eligible_us = eligible_us;
	j->spec_bytes = (uint32_t)spec_bytes;
	job_insert(m, j);
	job_count(j, 1);
	return true;
}

void record_like_note(struct model *m, const struct job *j, const struct rec *r)
{
	struct rec at = *r;
	const unsigned char *times;
	struct pattern *p = m->pattern;

	if (!p)
		p = m->pattern = must(malloc(sizeof(*p)));
	p->job = NULL;
	if (!is_plain(j))
		return;
	rec_get_array(&at);
	for (int i = 0; i < N_HEAD; i++)
		varint_skip(&at);
	times = at.p;
	varint_skip_more(&at, 3);
	p->n_head = (size_t)(times - r->p);
	p->n_rest = (size_t)(at.end - at.p);
	if (at.bad || p->n_head + p->n_rest > sizeof(p->bytes))
		return;
	memcpy(p->bytes, r->p, p->n_head);
	memcpy(p->bytes + p->n_head, at.p, p->n_rest);
	p->job = j;
}
