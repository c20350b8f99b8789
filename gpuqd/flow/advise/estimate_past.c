#include "gpuqd/flow/advise/estimate_past.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

#define OFF_US (60 * GPUQ_US_PER_S) /* an estimate with a smaller error was right */
#define N_SCALES 32 /* powers of two of seconds */
#define USUAL_PERCENT 90
#define KEY_BYTES 512

/* Fractions of their limits that jobs of one queue, user and name used. */
struct kind {
	UT_hash_handle hh;
	uint16_t runs[PAST_RUNS]; /* thousandths */
	uint32_t n; /* so far; run i is at i % PAST_RUNS */
	uint32_t len;
	char key[];
};

struct watched {
	UT_hash_handle hh;
	uint32_t id;
	int64_t start_us;
};

/* Errors of the estimates of one queue. */
struct score {
	UT_hash_handle hh;
	struct start_record r;
	uint32_t by_scale[N_SCALES];
	char queue[];
};

struct past {
	struct kind *kinds;
	struct watched *watched;
	struct score *scores;
};

struct past *past_new(void)
{
	return calloc(1, sizeof(struct past));
}

void past_free(struct past *p)
{
	struct kind *k, *kt;
	struct watched *w, *wt;
	struct score *s, *st;

	if (!p)
		return;
	HASH_ITER(hh, p->kinds, k, kt) {
		HASH_DEL(p->kinds, k);
		free(k);
	}
	HASH_ITER(hh, p->watched, w, wt) {
		HASH_DEL(p->watched, w);
		free(w);
	}
	HASH_ITER(hh, p->scores, s, st) {
		HASH_DEL(p->scores, s);
		free(s);
	}
	free(p);
}

/* ---- usual run times ---- */

/* Write the strings one after the other with their NULs; what is too long is cut. */
static uint32_t kind_key(char out[KEY_BYTES], const char *queue, const char *user, const char *name)
{
	const char *parts[] = { queue, user, name ? name : "" };
	uint32_t len = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = strlen(parts[i]);

		if (n > KEY_BYTES - len - 1)
			n = KEY_BYTES - len - 1;
		memcpy(out + len, parts[i], n);
		len += (uint32_t)n;
		if (len < KEY_BYTES - 1)
			out[len++] = '\0';
	}
	return len;
}

static struct kind *kind_of(struct past *p, const char *key, uint32_t len)
{
	struct kind *k;

	HASH_FIND(hh, p->kinds, key, len, k);
	if (k)
		return k;
	if (HASH_COUNT(p->kinds) >= PAST_KINDS_MAX) {
		k = p->kinds;
		HASH_DEL(p->kinds, k);
		free(k);
	}
	k = calloc(1, sizeof(*k) + len);
	if (!k)
		return NULL;
	k->len = len;
	memcpy(k->key, key, len);
	HASH_ADD(hh, p->kinds, key, len, k);
	return k;
}

/* Record a job that ended by itself; its first pod stands for all. */
static void learn(struct past *p, const struct model *m, const struct event *ev)
{
	const struct job *j = model_find_job(m, ev->pod.job);
	const struct pod *pod = model_find_pod(m, ev->pod);
	char key[KEY_BYTES];
	struct kind *k;
	int64_t ran;

	if (!j || !pod || ev->pod.index != 0 || ev->pod.attempt != j->attempt ||
	    ev->pod_ended.exit_code < 0 || j->life->leave_us || !j->life->start_us ||
	    j->time_limit_us == GPUQ_UNLIMITED || j->time_limit_us <= 0)
		return;
	ran = pod->end_us - j->life->start_us;
	if (ran < 0 || ran > j->time_limit_us)
		ran = ran < 0 ? 0 : j->time_limit_us;
	k = kind_of(p, key, kind_key(key, j->queue->name, j->user, j->name));
	/* Limits are far below 2^63 / 1000 us. */
	if (k)
		k->runs[k->n++ % PAST_RUNS] = (uint16_t)(ran * 1000 / j->time_limit_us);
}

uint32_t past_usual(const struct past *p, const char *queue, const char *user, const char *name)
{
	char key[KEY_BYTES];
	const uint32_t len = kind_key(key, queue, user, name);
	uint16_t sorted[PAST_RUNS];
	const struct kind *k;
	uint32_t n, at;

	HASH_FIND(hh, p->kinds, key, len, k);
	if (!k || k->n < PAST_RUNS_LEAST)
		return 0;
	n = k->n < PAST_RUNS ? k->n : PAST_RUNS;
	for (uint32_t i = 0; i < n; i++) {
		for (at = i; at > 0 && sorted[at - 1] > k->runs[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = k->runs[i];
	}
	at = (n * USUAL_PERCENT + 99) / 100 - 1;
	return sorted[at] > 0 ? sorted[at] : 1;
}

bool past_knows_any(const struct past *p)
{
	return p->kinds != NULL;
}

/* ---- how good estimates were ---- */

void past_watch(struct past *p, uint32_t id, int64_t start_us)
{
	struct watched *w;

	HASH_FIND(hh, p->watched, &id, sizeof(id), w);
	if (w)
		return;
	if (HASH_COUNT(p->watched) >= PAST_WATCHED_MAX) {
		w = p->watched;
		HASH_DEL(p->watched, w);
		free(w);
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	w->id = id;
	w->start_us = start_us;
	HASH_ADD(hh, p->watched, id, sizeof(w->id), w);
}

bool past_watches(const struct past *p, uint32_t id)
{
	const struct watched *w;

	HASH_FIND(hh, p->watched, &id, sizeof(id), w);
	return w != NULL;
}

static struct score *score_of(struct past *p, const char *queue)
{
	struct score *s;

	HASH_FIND_STR(p->scores, queue, s);
	if (s)
		return s;
	s = calloc(1, sizeof(*s) + strlen(queue) + 1);
	if (!s)
		return NULL;
	memcpy(s->queue, queue, strlen(queue) + 1);
	HASH_ADD_STR(p->scores, queue, s);
	return s;
}

static void count(struct score *s, int64_t wanted_us, int64_t real_us)
{
	const int64_t off = real_us > wanted_us ? real_us - wanted_us : wanted_us - real_us;
	uint32_t scale = 0;

	s->r.n++;
	if (wanted_us == GPUQ_UNLIMITED) {
		s->r.n_unknown++;
		return;
	}
	while (scale < N_SCALES - 1 && (GPUQ_US_PER_S << scale) < off)
		scale++;
	s->by_scale[scale]++;
	s->r.n_late += real_us > wanted_us && off > OFF_US;
	s->r.n_early += real_us < wanted_us && off > OFF_US;
}

static void unwatch(struct past *p, uint32_t id)
{
	struct watched *w;

	HASH_FIND(hh, p->watched, &id, sizeof(id), w);
	if (!w)
		return;
	HASH_DEL(p->watched, w);
	free(w);
}

static void judge(struct past *p, const struct model *m, const struct event *ev)
{
	const struct job *j = model_find_job(m, ev->job);
	const struct watched *w;
	struct score *s;

	HASH_FIND(hh, p->watched, &ev->job.id, sizeof(ev->job.id), w);
	if (!w || !j)
		return;
	s = score_of(p, j->queue->name);
	if (s)
		count(s, w->start_us, j->life->placed_us);
	unwatch(p, ev->job.id);
}

void past_on_event(struct past *p, const struct model *m, const struct event *ev)
{
	switch (ev->type) {
	case EV_POD_ENDED:
		learn(p, m, ev);
		break;
	case EV_JOB_PLACED:
		judge(p, m, ev);
		break;
	case EV_JOB_HELD:
	case EV_JOB_ENDED: /* not foreseeable */
		unwatch(p, ev->job.id);
		break;
	default:
		break;
	}
}

/* Return the error that this percentage of estimates stays below. */
static int64_t quantile(const struct score *s, uint32_t percent)
{
	uint64_t n = 0, seen = 0;

	for (uint32_t i = 0; i < N_SCALES; i++)
		n += s->by_scale[i];
	for (uint32_t i = 0; i < N_SCALES; i++) {
		seen += s->by_scale[i];
		if (n > 0 && seen * 100 >= n * percent)
			return GPUQ_US_PER_S << i;
	}
	return 0;
}

bool past_record(const struct past *p, const char *queue, struct start_record *out)
{
	const struct score *s;

	HASH_FIND_STR(p->scores, queue, s);
	if (!s)
		return false;
	*out = s->r;
	out->half_us = quantile(s, 50);
	out->most_us = quantile(s, USUAL_PERCENT);
	return true;
}
