#include "audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One task of a job: what must not be there twice. */
struct slot {
	UT_hash_handle hh;
	unsigned live, max_live;
	uint64_t creates, starts, successes;
	char key[];
};

struct attempt {
	struct attempt *next;
	unsigned running;
	char number[];
};

/* One job, or one element of an array job. */
struct job {
	UT_hash_handle hh;
	uint64_t creates, ends, succeeded;
	unsigned running, max_running;
	unsigned attempts_running, max_attempts_running;
	struct attempt *attempts;
	char key[];
};

/* One pod, from its creation until neither object nor container is left. */
struct life {
	UT_hash_handle hh;
	struct slot *slot; /* NULL: not a pod of gpuq */
	struct job *job;
	struct attempt *attempt;
	bool object, terminal, running, live;
	char uid[];
};

/* "create pods" and how often. */
struct tally {
	UT_hash_handle hh;
	uint64_t n;
	char key[];
};

enum counter {
	N_CREATES,
	N_DELETES,
	N_BINDS,
	N_STARTS,
	N_ENDS,
	N_SUCCEEDED,
	N_FAILED,
	N_OVERCOMMITS,
	N_DUPLICATES,
	N_ATTEMPT_OVERLAPS,
	N_DOUBLE_SUCCESSES,
	N_RUNNING,
	N_MAX_RUNNING,
	N_LIVE,
	N_REQUESTS,
	N_WRITES,
	N_COUNT
};

static const char *const counter_names[N_COUNT] = {
	[N_CREATES] = "creates",
	[N_DELETES] = "deletes",
	[N_BINDS] = "binds",
	[N_STARTS] = "starts",
	[N_ENDS] = "ends",
	[N_SUCCEEDED] = "succeeded",
	[N_FAILED] = "failed",
	[N_OVERCOMMITS] = "overcommits",
	[N_DUPLICATES] = "duplicates",
	[N_ATTEMPT_OVERLAPS] = "attempt_overlaps",
	[N_DOUBLE_SUCCESSES] = "double_successes",
	[N_RUNNING] = "running",
	[N_MAX_RUNNING] = "max_running",
	[N_LIVE] = "live",
	[N_REQUESTS] = "requests",
	[N_WRITES] = "writes",
};

static struct {
	FILE *file;
	struct event *flush;
	int64_t n[N_COUNT];
	struct slot *slots;
	struct job *jobs;
	struct life *lives;
	struct tally *tallies;
} au;

/* The common part of a line; the caller adds fields and ends it. */
static struct buf *line_begin(const char *verb)
{
	static struct buf line;
	struct buf *b = &line;

	b->len = 0;
	buf_addf(b, "{\"t\":%lld,\"verb\":\"%s\"", (long long)now_us(), verb);
	return b;
}

static void line_end(struct buf *b)
{
	buf_adds(b, "}\n");
	if (!au.file)
		return;
	fwrite(b->s, 1, b->len, au.file);
	/* Written out within this turn of the loop, before any answer leaves. */
	event_active(au.flush, EV_TIMEOUT, 0);
}

static void add_text(struct buf *b, const char *key, const char *value)
{
	buf_addf(b, ",\"%s\":", key);
	buf_add_json(b, value, strlen(value));
}

static void add_object(struct buf *b, const char *resource, const struct facts *f)
{
	add_text(b, "resource", resource);
	if (*f->ns)
		add_text(b, "ns", f->ns);
	add_text(b, "name", f->name);
	add_text(b, "uid", f->uid);
	if (f->pod.node) {
		add_text(b, "node", f->pod.node);
		buf_addf(b, ",\"gpus\":%lld", (long long)res_get(&f->pod.requests, RES_GPU));
	}
	buf_addf(b, ",\"annotations\":%s,\"labels\":{", f->gpuq_annotations);
	for (size_t i = 0; i < f->n_labels; i++) {
		if (i)
			buf_adds(b, ",");
		buf_add_json(b, f->labels[i].key, strlen(f->labels[i].key));
		buf_adds(b, ":");
		buf_add_json(b, f->labels[i].value, strlen(f->labels[i].value));
	}
	buf_adds(b, "}");
}

static const char *label_of(const struct facts *f, const char *key)
{
	for (size_t i = 0; i < f->n_labels; i++) {
		if (strcmp(f->labels[i].key, key) == 0)
			return f->labels[i].value;
	}
	return "";
}

static struct slot *slot_get(const char *key)
{
	struct slot *s;

	HASH_FIND_STR(au.slots, key, s);
	if (!s) {
		s = xcalloc(1, sizeof(*s) + strlen(key) + 1);
		strcpy(s->key, key);
		HASH_ADD_STR(au.slots, key, s);
	}
	return s;
}

static struct job *job_get(const char *key)
{
	struct job *j;

	HASH_FIND_STR(au.jobs, key, j);
	if (!j) {
		j = xcalloc(1, sizeof(*j) + strlen(key) + 1);
		strcpy(j->key, key);
		HASH_ADD_STR(au.jobs, key, j);
	}
	return j;
}

static struct attempt *attempt_get(struct job *j, const char *number)
{
	struct attempt *a;

	for (a = j->attempts; a; a = a->next) {
		if (strcmp(a->number, number) == 0)
			return a;
	}
	a = xcalloc(1, sizeof(*a) + strlen(number) + 1);
	strcpy(a->number, number);
	a->next = j->attempts;
	j->attempts = a;
	return a;
}

static void attach(struct life *l, const struct facts *f)
{
	const char *job = label_of(f, "gpuq.io/job");
	char key[400];
	int n;

	if (!*job)
		return;
	n = snprintf(key, sizeof(key), "%s/%s/%s", label_of(f, "gpuq.io/cluster"), job,
		     label_of(f, "gpuq.io/array-index"));
	l->job = job_get(key);
	l->attempt = attempt_get(l->job, label_of(f, "gpuq.io/attempt"));
	snprintf(key + n, sizeof(key) - (size_t)n, "/%s", label_of(f, "gpuq.io/index"));
	l->slot = slot_get(key);
}

static struct life *life_find(const char *uid)
{
	struct life *l;

	HASH_FIND_STR(au.lives, uid, l);
	return l;
}

static struct life *life_get(const struct facts *f)
{
	struct life *l = life_find(f->uid);

	if (!l) {
		l = xcalloc(1, sizeof(*l) + strlen(f->uid) + 1);
		strcpy(l->uid, f->uid);
		HASH_ADD_STR(au.lives, uid, l);
		attach(l, f);
	}
	return l;
}

static void duplicate(const struct life *l, const struct facts *f)
{
	struct buf *b;

	au.n[N_DUPLICATES]++;
	b = line_begin("duplicate");
	add_text(b, "slot", l->slot->key);
	buf_addf(b, ",\"live\":%u", l->slot->live);
	add_object(b, "pods", f);
	line_end(b);
}

/* Bring the counts in line with what the pod is now; forget it when it is over. */
static void life_settle(struct life *l, const struct facts *f)
{
	const bool live = (l->object && !l->terminal) || l->running;

	if (live != l->live) {
		l->live = live;
		au.n[N_LIVE] += live ? 1 : -1;
		if (l->slot && live) {
			if (++l->slot->live > l->slot->max_live)
				l->slot->max_live = l->slot->live;
			if (l->slot->live > 1)
				duplicate(l, f);
		} else if (l->slot) {
			l->slot->live--;
		}
	}
	if (!l->object && !l->running) {
		HASH_DEL(au.lives, l);
		free(l);
	}
}

static void pod_ended(const struct life *l, const struct version *v)
{
	struct buf *b;

	au.n[N_ENDS]++;
	au.n[v->phase == PHASE_SUCCEEDED ? N_SUCCEEDED : N_FAILED]++;
	if (l->job) {
		l->job->ends++;
		l->job->succeeded += v->phase == PHASE_SUCCEEDED;
	}
	if (l->slot && v->phase == PHASE_SUCCEEDED && ++l->slot->successes > 1)
		au.n[N_DOUBLE_SUCCESSES]++;
	b = line_begin("end");
	add_text(b, "phase", phase_text(v->phase));
	add_object(b, "pods", v->facts);
	line_end(b);
}

static void on_event(const struct event *e)
{
	const struct version *v = e->cur;
	struct life *l;

	if (v->kind != &kinds[KIND_PODS])
		return;
	if (e->type == EVENT_DELETED) {
		l = life_find(v->facts->uid);
		if (!l)
			return;
		l->object = false;
		life_settle(l, v->facts);
		return;
	}
	l = life_get(v->facts);
	l->object = true;
	if (phase_terminal(v->phase) && !l->terminal)
		pod_ended(l, v);
	l->terminal = phase_terminal(v->phase);
	life_settle(l, v->facts);
}

/* After a rewind: which objects are there is to be asked anew. */
static void on_reset(void)
{
	struct life *l, *tmp;
	struct obj *o, *otmp;

	HASH_ITER(hh, au.lives, l, tmp) {
		l->object = false;
		if (!store_by_uid(l->uid))
			life_settle(l, &(struct facts){ .ns = "",
							.name = "",
							.uid = l->uid,
							.gpuq_annotations = "{}" });
	}
	HASH_ITER(hh, kinds[KIND_PODS].objs, o, otmp) {
		l = life_get(o->v->facts);
		l->object = true;
		l->terminal = phase_terminal(o->v->phase);
		life_settle(l, o->v->facts);
	}
}

void audit_run(const struct facts *f)
{
	struct life *l = life_get(f);

	if (l->running)
		return;
	l->running = true;
	au.n[N_STARTS]++;
	if (++au.n[N_RUNNING] > au.n[N_MAX_RUNNING])
		au.n[N_MAX_RUNNING] = au.n[N_RUNNING];
	if (l->job) {
		struct job *j = l->job;

		l->slot->starts++;
		if (++j->running > j->max_running)
			j->max_running = j->running;
		if (l->attempt->running++ == 0 && ++j->attempts_running > 1)
			au.n[N_ATTEMPT_OVERLAPS]++;
		if (j->attempts_running > j->max_attempts_running)
			j->max_attempts_running = j->attempts_running;
	}
	life_settle(l, f);
}

void audit_run_end(const struct facts *f, enum phase phase, int exit_code)
{
	struct life *l = life_find(f->uid);
	struct buf *b;

	if (!l || !l->running)
		return;
	l->running = false;
	au.n[N_RUNNING]--;
	if (l->job) {
		l->job->running--;
		if (--l->attempt->running == 0)
			l->job->attempts_running--;
	}
	b = line_begin("stop");
	add_text(b, "phase", phase_text(phase));
	buf_addf(b, ",\"exit_code\":%d", exit_code);
	add_object(b, "pods", f);
	line_end(b);
	life_settle(l, f);
}

void audit_overcommit(const struct facts *f, int64_t available)
{
	struct buf *b;

	au.n[N_OVERCOMMITS]++;
	b = line_begin("overcommit");
	buf_addf(b, ",\"available\":%lld", (long long)available);
	add_object(b, "pods", f);
	line_end(b);
}

void audit_write(const char *verb, const struct version *v)
{
	struct buf *b;
	struct tally *t;
	char key[96];

	au.n[N_WRITES]++;
	snprintf(key, sizeof(key), "%s %s", verb, v->kind->plural);
	HASH_FIND_STR(au.tallies, key, t);
	if (!t) {
		t = xcalloc(1, sizeof(*t) + strlen(key) + 1);
		strcpy(t->key, key);
		HASH_ADD_STR(au.tallies, key, t);
	}
	t->n++;
	if (v->kind == &kinds[KIND_PODS]) {
		au.n[N_CREATES] += strcmp(verb, "create") == 0;
		au.n[N_DELETES] += strcmp(verb, "delete") == 0;
		au.n[N_BINDS] += strcmp(verb, "bind") == 0;
		if (strcmp(verb, "create") == 0) {
			struct life *l = life_find(v->facts->uid);

			if (l && l->slot) {
				l->slot->creates++;
				l->job->creates++;
			}
		}
	}
	if (!au.file)
		return;
	b = line_begin(verb);
	add_object(b, v->kind->plural, v->facts);
	line_end(b);
}

void audit_note(const char *what, const char *name)
{
	struct buf *b;

	b = line_begin(what);
	add_text(b, "name", name);
	line_end(b);
}

void audit_request(void)
{
	au.n[N_REQUESTS]++;
}

int64_t audit_counter(const char *name)
{
	for (size_t i = 0; i < N_COUNT; i++) {
		if (strcmp(counter_names[i], name) == 0)
			return au.n[i];
	}
	return -1;
}

static json_t *jobs_json(void)
{
	json_t *list = json_array();
	struct job *j, *tmp;

	HASH_ITER(hh, au.jobs, j, tmp)
		json_array_append_new(
			list,
			json_pack("{s:s,s:I,s:I,s:I,s:i,s:i,s:i,s:i}", "job", j->key, "creates",
				  (json_int_t)j->creates, "ends", (json_int_t)j->ends, "succeeded",
				  (json_int_t)j->succeeded, "running", (int)j->running,
				  "max_running", (int)j->max_running, "attempts_running",
				  (int)j->attempts_running, "max_attempts_running",
				  (int)j->max_attempts_running));
	return list;
}

static json_t *slots_json(void)
{
	json_t *list = json_array();
	struct slot *s, *tmp;

	HASH_ITER(hh, au.slots, s, tmp)
		json_array_append_new(
			list, json_pack("{s:s,s:i,s:i,s:I,s:I,s:I}", "slot", s->key, "live",
					(int)s->live, "max_live", (int)s->max_live, "creates",
					(json_int_t)s->creates, "starts", (json_int_t)s->starts,
					"successes", (json_int_t)s->successes));
	return list;
}

json_t *audit_json(bool jobs)
{
	json_t *j = json_object(), *tallies = json_object();
	struct tally *t, *tmp;

	for (size_t i = 0; i < N_COUNT; i++)
		json_object_set_new(j, counter_names[i], json_integer(au.n[i]));
	HASH_ITER(hh, au.tallies, t, tmp)
		json_object_set_new(tallies, t->key, json_integer((json_int_t)t->n));
	json_object_set_new(j, "by_verb", tallies);
	if (jobs) {
		json_object_set_new(j, "jobs", jobs_json());
		json_object_set_new(j, "slots", slots_json());
	}
	return j;
}

json_t *audit_save(void)
{
	return audit_json(true);
}

/* live and running are not loaded: the loaded pods bring them in again. */
void audit_load(const json_t *saved)
{
	const char *key;
	json_t *item;
	size_t i;

	for (i = 0; i < N_COUNT; i++) {
		if (i != N_LIVE && i != N_RUNNING)
			au.n[i] = json_integer_value(json_object_get(saved, counter_names[i]));
	}
	json_object_foreach(json_object_get(saved, "by_verb"), key, item)
	{
		struct tally *t = xcalloc(1, sizeof(*t) + strlen(key) + 1);

		strcpy(t->key, key);
		t->n = (uint64_t)json_integer_value(item);
		HASH_ADD_STR(au.tallies, key, t);
	}
	json_array_foreach(json_object_get(saved, "jobs"), i, item)
	{
		const char *name = json_string_value(json_object_get(item, "job"));
		struct job *j = job_get(name ? name : "");

		j->creates = (uint64_t)json_integer_value(json_object_get(item, "creates"));
		j->ends = (uint64_t)json_integer_value(json_object_get(item, "ends"));
		j->succeeded = (uint64_t)json_integer_value(json_object_get(item, "succeeded"));
		j->max_running = (unsigned)json_integer_value(json_object_get(item, "max_running"));
		j->max_attempts_running =
			(unsigned)json_integer_value(json_object_get(item, "max_attempts_running"));
	}
	json_array_foreach(json_object_get(saved, "slots"), i, item)
	{
		const char *name = json_string_value(json_object_get(item, "slot"));
		struct slot *s = slot_get(name ? name : "");

		s->creates = (uint64_t)json_integer_value(json_object_get(item, "creates"));
		s->starts = (uint64_t)json_integer_value(json_object_get(item, "starts"));
		s->successes = (uint64_t)json_integer_value(json_object_get(item, "successes"));
		s->max_live = (unsigned)json_integer_value(json_object_get(item, "max_live"));
	}
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	fflush(au.file);
}

int audit_init(struct event_base *base, const char *path)
{
	if (path) {
		au.file = fopen(path, "ae");
		if (!au.file)
			return -1;
		setvbuf(au.file, NULL, _IOFBF, 1 << 20);
		au.flush = evtimer_new(base, on_flush, NULL);
	}
	store_listen(on_event, on_reset);
	return 0;
}

void audit_done(void)
{
	struct slot *s, *stmp;
	struct job *j, *jtmp;
	struct life *l, *ltmp;
	struct tally *t, *ttmp;

	if (au.file) {
		event_free(au.flush);
		fclose(au.file);
	}
	HASH_ITER(hh, au.lives, l, ltmp) {
		HASH_DEL(au.lives, l);
		free(l);
	}
	HASH_ITER(hh, au.slots, s, stmp) {
		HASH_DEL(au.slots, s);
		free(s);
	}
	HASH_ITER(hh, au.jobs, j, jtmp) {
		struct attempt *next;

		for (struct attempt *a = j->attempts; a; a = next) {
			next = a->next;
			free(a);
		}
		HASH_DEL(au.jobs, j);
		free(j);
	}
	HASH_ITER(hh, au.tallies, t, ttmp) {
		HASH_DEL(au.tallies, t);
		free(t);
	}
}
