#include "gpuqd/flow/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/util/hash.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"

struct measure {
	struct journal *j;
	struct measure_state state;
	char source[32], why[256];
};

/* A device of a pod, and its use. */
struct sample {
	const struct pod *pod;
	uint64_t device;
	int32_t milli;
};

/* Place of the device with that uuid. */
struct place {
	UT_hash_handle hh;
	const struct node *node;
	uint32_t index;
};

/* A device that the source names beside a pod. */
struct held {
	const struct pod *pod;
	int index;
};

/* Use by a part of a pod. */
struct amount {
	const struct pod *pod;
	enum use_what what;
	uint64_t part;
	int64_t value;
};

struct round {
	const struct model *m;
	struct sample *items;
	size_t n, room;
	struct held *held;
	size_t n_held, room_held;
	struct amount *amounts;
	size_t n_amounts, room_amounts;
	struct place *places, *by_uuid; /* made at the first lookup */
	bool failed;
};

static bool runs(const struct pod *p)
{
	return p->attempt == p->job->attempt && p->state == GPUQ_POD_RUNNING && p->gpus_milli > 0;
}

static void add(struct round *r, const struct pod *p, uint64_t device, int32_t milli)
{
	if (!grow_to(&r->items, &r->room, r->n + 1)) {
		r->failed = true;
		return;
	}
	r->items[r->n++] = (struct sample){ p, device, milli };
}

static void add_amount(struct round *r, const struct pod *p, enum use_what what, uint64_t part,
		       int64_t value)
{
	if (!grow_to(&r->amounts, &r->room_amounts, r->n_amounts + 1)) {
		r->failed = true;
		return;
	}
	r->amounts[r->n_amounts++] = (struct amount){ p, what, part, value };
}

/* Take what is known of a device: how busy it is, how much of its memory is taken. */
static void add_use(struct round *r, const struct pod *p, uint64_t device, const struct use_fact *f)
{
	if (f->milli >= 0)
		add(r, p, device, f->milli);
	if (f->memory_bytes > 0)
		add_amount(r, p, USE_DEVICE_MEMORY, device, f->memory_bytes);
}

/* Return a number that distinguishes the devices of one pod. */
static uint64_t device_of(const struct use_fact *f)
{
	const uint64_t h = *f->uuid ? gpuq_fnv(GPUQ_FNV_START, f->uuid, strlen(f->uuid))
				    : gpuq_fnv(GPUQ_FNV_START, &f->index, sizeof(f->index));

	return gpuq_fnv(h, &f->part, sizeof(f->part));
}

static void index_uuids(struct round *r)
{
	size_t n = 0, i = 0;

	node_each(r->m, node)
		n += node->n_devices;
	r->places = calloc(n + 1, sizeof(*r->places));
	r->failed |= !r->places;
	node_each(r->m, node) {
		for (uint32_t d = 0; r->places && d < node->n_devices; d++) {
			const char *uuid = node->devices[d].uuid;
			struct place *p = &r->places[i++];

			*p = (struct place){ .node = node, .index = d };
			if (*uuid)
				HASH_ADD_KEYPTR(hh, r->by_uuid, uuid, strlen(uuid), p);
		}
	}
}

/* Count a sample without a pod for all pods on its device; its memory for one that has all of it. */
static void take_device(struct round *r, const struct use_fact *f)
{
	const struct node *node = *f->node ? model_find_node(r->m, f->node) : NULL;
	struct use_fact busy = *f;
	uint32_t index = (uint32_t)f->index;
	const struct pod *p;

	busy.memory_bytes = 0;

	if (*f->uuid) {
		struct place *at = NULL;

		if (!r->places)
			index_uuids(r);
		HASH_FIND_STR(r->by_uuid, f->uuid, at);
		if (!at)
			return;
		node = at->node;
		index = at->index;
	}
	if (!node || index >= node->n_devices)
		return;
	DL_FOREACH2(node->pods, p, node_next)
		for (uint32_t k = 0; runs(p) && k < p->n_devices; k++)
			if (p->devices[k] == index)
				add_use(r, p, index,
					p->gpus_milli / p->n_devices >= 1000 ? f : &busy);
}

/* Note a whole device of a pod, where the node chose it. The source numbers devices as the node does. */
static void take_held(struct round *r, const struct pod *p, const struct use_fact *f)
{
	if (f->index < 0 || f->part || p->n_devices == 0 || p->node->told.replicas > 1 ||
	    p->gpus_milli / p->n_devices < 1000 ||
	    (model_pod_devices_known(p) && p->devices_from != DEVICES_TOLD))
		return;
	if (!grow_to(&r->held, &r->room_held, r->n_held + 1)) {
		r->failed = true;
		return;
	}
	r->held[r->n_held++] = (struct held){ p, f->index };
}

static void take(struct round *r, const struct use_fact *f)
{
	struct pod_key key;
	const struct pod *p;

	if (f->milli < 0 && f->memory_bytes <= 0)
		return;
	if (!*f->pod) {
		take_device(r, f);
	} else if (model_pod_name_parse(r->m, f->pod, &key)) {
		p = model_find_pod(r->m, key);
		if (p && runs(p)) {
			if (f->milli >= 0)
				take_held(r, p, f);
			add_use(r, p, device_of(f), f);
		}
	}
}

/* Take what a container uses, unless a pod of another namespace has the name. */
static void take_amount(struct round *r, const struct amount_fact *f)
{
	struct pod_key key;
	const struct pod *p;
	const char *ns;

	if (!model_pod_name_parse(r->m, f->pod, &key))
		return;
	p = model_find_pod(r->m, key);
	if (!p || p->attempt != p->job->attempt || p->state != GPUQ_POD_RUNNING)
		return;
	ns = model_queue_namespace(p->job->queue);
	if (*ns && *f->namespace_ && strcmp(ns, f->namespace_) != 0)
		return;
	add_amount(r, p, f->what, f->part, f->value);
}

static int order_pods(const struct pod *x, const struct pod *y)
{
	const int c = job_key_cmp(x->job->key, y->job->key);

	return c ? c : (x->index > y->index) - (x->index < y->index);
}

static int by_amount(const void *a, const void *b)
{
	const struct amount *x = a, *y = b;
	const int c = order_pods(x->pod, y->pod);

	if (c)
		return c;
	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->value < y->value) - (x->value > y->value); /* the largest first */
}

static int64_t *member_of(struct used *u, enum use_what what)
{
	switch (what) {
	case USE_CPU:
		return &u->cpu_us;
	case USE_CPU_USER:
		return &u->user_us;
	case USE_CPU_SYSTEM:
		return &u->system_us;
	case USE_MEMORY:
		return &u->memory_bytes;
	case USE_READ:
		return &u->read_bytes;
	case USE_WRITTEN:
		return &u->written_bytes;
	case USE_DEVICE_MEMORY:
		return &u->gpu_bytes;
	}
	return NULL;
}

/* Add the parts of each pod up. Returns how many pods there are. */
static size_t sum_up(struct round *r, struct pod_use *out)
{
	size_t n = 0;

	if (r->n_amounts) /* qsort takes no NULL */
		qsort(r->amounts, r->n_amounts, sizeof(*r->amounts), by_amount);
	for (size_t i = 0; i < r->n_amounts; i++) {
		const struct amount *a = &r->amounts[i], *b = i ? a - 1 : NULL;
		int64_t *to;

		if (b && b->pod == a->pod && b->what == a->what && b->part == a->part)
			continue;
		if (!b || b->pod != a->pod)
			out[n++] = (struct pod_use){
				{ a->pod->job->key, a->pod->attempt, a->pod->index }, USED_UNKNOWN
			};
		to = member_of(&out[n - 1].used, a->what);
		if (to && *to <= INT64_MAX / 4 && a->value <= INT64_MAX / 4)
			*to = (*to < 0 ? 0 : *to) + a->value;
	}
	return n;
}

/* By job, pod and device. */
static int compare(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	const int c = order_pods(x->pod, y->pod);

	return c ? c : (x->device > y->device) - (x->device < y->device);
}

static uint32_t devices_needed(const struct job *j)
{
	const struct pod *p;
	uint32_t n = 0;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && model_pod_takes(p) && p->gpus_milli > 0)
			n += p->n_devices ? p->n_devices : (uint32_t)((p->gpus_milli + 999) / 1000);
	return n;
}

/* Return the use of a job from the samples [from, to). */
static struct job_use judge(const struct sample *s, size_t from, size_t to, uint32_t *n_devices)
{
	const struct job *j = s[from].pod->job;
	struct job_use u = { .job = j->key };
	int64_t sum = 0;
	uint32_t n = 0;
	int32_t most = 0, of_one = 0;

	for (size_t i = from; i < to; i++) {
		const bool same =
			i > from && s[i].pod == s[i - 1].pod && s[i].device == s[i - 1].device;

		/* Two metrics of one device: the busier one counts. */
		sum -= same ? of_one : 0;
		of_one = same && of_one > s[i].milli ? of_one : s[i].milli;
		sum += of_one;
		n += !same;
		most = of_one > most ? of_one : most;
	}
	u.milli = (int32_t)(sum / n);
	u.use = most > 0 ? IDLE_BUSY : n >= devices_needed(j) ? IDLE_NOTHING : IDLE_UNKNOWN;
	*n_devices += n;
	return u;
}

static void tell(struct measure *m, struct round *r)
{
	struct job_use *uses = calloc(r->n + 1, sizeof(*uses));
	struct pod_use *pods = calloc(r->n_amounts + 1, sizeof(*pods));
	struct event ev = { .type = EV_USE_MEASURED };
	size_t n = 0, n_pods, to;

	if (!uses || !pods) {
		free(uses);
		free(pods);
		return; /* the next round will show it */
	}
	if (r->n) /* qsort takes no NULL */
		qsort(r->items, r->n, sizeof(*r->items), compare);
	m->state.n_devices = 0;
	for (size_t from = 0; from < r->n; from = to) {
		to = from + 1;
		while (to < r->n && r->items[to].pod->job == r->items[from].pod->job)
			to++;
		uses[n++] = judge(r->items, from, to, &m->state.n_devices);
	}
	m->state.n_jobs = (uint32_t)n;
	n_pods = sum_up(r, pods);
	ev.measured.items = uses;
	ev.measured.n = n;
	ev.measured.pods = pods;
	ev.measured.n_pods = n_pods;
	if (n || n_pods)
		journal_apply(m->j, &ev, NULL);
	free(uses);
	free(pods);
}

static int by_pod(const void *a, const void *b)
{
	const struct held *x = a, *y = b;
	const uint64_t i = (uint64_t)x->index, k = (uint64_t)y->index; /* -1 comes last */
	const int c = order_pods(x->pod, y->pod);

	return c ? c : (i > k) - (i < k);
}

/* Report the devices of a pod where the source names as many as it has, and others than are known. */
static void tell_devices(struct measure *m, const struct pod *p, const int *items, size_t n)
{
	struct event ev = { .type = EV_POD_DEVICES,
			    .pod = { p->job->key, p->attempt, p->index },
			    .devices = { items, n } };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool same = n == p->n_devices;

	for (size_t i = 0; i < n && same; i++)
		same = items[i] == p->devices[i];
	if (n != p->n_devices || (same && p->devices_from == DEVICES_TOLD))
		return;
	if (journal_apply(m->j, &ev, &err) < 0)
		log_debug("measure.devices_doubtful", "job=%u pod=%u error=%s", p->job->key.id,
			  p->index, LOGS(err.text));
	else if (!same)
		log_notice("measure.devices", "job=%u pod=%u first=%d: the node chose others",
			   p->job->key.id, p->index, items[0]);
}

static void tell_held(struct measure *m, struct round *r)
{
	int items[GPUQ_GPUS_PER_POD_MAX];
	size_t n, to;

	if (r->n_held)
		qsort(r->held, r->n_held, sizeof(*r->held), by_pod);
	for (size_t from = 0; from < r->n_held; from = to) {
		n = 0;
		for (to = from; to < r->n_held && r->held[to].pod == r->held[from].pod; to++)
			if ((n == 0 || items[n - 1] != r->held[to].index) &&
			    n < GPUQ_GPUS_PER_POD_MAX)
				items[n++] = r->held[to].index;
		tell_devices(m, r->held[from].pod, items, n);
	}
}

/* Log trouble, unless it is the same as before. */
static void note_trouble(struct measure *m, const char *why)
{
	if (strcmp(m->why, why) == 0)
		return;
	if (*why)
		log_warn("measure.trouble", "source=%s why=%s", LOGS(m->source), LOGS(why));
	else
		log_notice("measure.well", "source=%s", LOGS(m->source));
	snprintf(m->why, sizeof(m->why), "%s", why);
}

void measure_round(struct measure *m, const struct use_round *in)
{
	struct round r = { .m = journal_model(m->j) };

	snprintf(m->source, sizeof(m->source), "%s", in->source);
	note_trouble(m, in->why);
	for (size_t i = 0; i < in->n; i++)
		take(&r, &in->items[i]);
	for (size_t i = 0; i < in->n_amounts; i++)
		take_amount(&r, &in->amounts[i]);
	if (in->n)
		m->state.at_us = loop_now_us(journal_loop(m->j));
	if (!r.failed)
		tell_held(m, &r);
	if (!r.failed)
		tell(m, &r);
	HASH_CLEAR(hh, r.by_uuid);
	free(r.places);
	free(r.held);
	free(r.amounts);
	free(r.items);
}

struct measure_state measure_state(const struct measure *m)
{
	struct measure_state s = m->state;

	s.source = m->source;
	s.why = m->why;
	return s;
}

int measure_new(struct journal *j, struct measure **out, struct gpuq_err *err)
{
	struct measure *m = calloc(1, sizeof(*m));

	if (!m)
		return gpuq_no_memory(err);
	m->j = j;
	*out = m;
	return 0;
}

void measure_free(struct measure *m)
{
	free(m);
}
