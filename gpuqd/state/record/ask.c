/* Asks, in memory and as stored bytes. The positions of a record are fixed for ever: append, never
 * insert (varint.h). */
#include "gpuqd/state/record/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"
#include "libgpuq/units.h"

#define FIELDS 25
#define POOL_FIELDS 3

const char *const ask_state_words[N_ASK_STATES] = {
#define X(sym, word, doc) [ASK_STATE_##sym] = (word),
	ASK_STATES(X)
#undef X
};

/* As the model does it: a daemon without memory for such a thing starts anew. */
static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

struct ask *ask_find(const struct model *m, uint32_t number)
{
	struct ask *a;

	HASH_FIND(hh, m->asks, &number, sizeof(number), a);
	return a;
}

struct ask_pool *ask_pool_find(const struct model *m, const char *name)
{
	struct ask_pool *p;

	HASH_FIND(hh, m->ask_pools, name, strlen(name), p);
	return p;
}

const struct ask *ask_of_node(const struct model *m, const char *node, bool *stale)
{
	for (const struct ask *a = m->asks; a; a = a->hh.next)
		for (uint32_t i = 0; i < a->n_came; i++)
			if (strcmp(a->nodes[i].name, node) == 0) {
				*stale = a->nodes[i].stale;
				return a;
			}
	return NULL;
}

const struct ask *ask_of_job(const struct model *m, struct job_key job)
{
	for (const struct ask *a = m->asks; a; a = a->hh.next)
		if (a->owner.id == job.id && a->owner.index == job.index &&
		    a->state < ASK_STATE_ENDED)
			return a;
	return NULL;
}

uint32_t ask_lacks(const struct ask *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n_came; i++)
		n += !a->nodes[i].stale;
	return a->state == ASK_STATE_ENDED || n >= a->n_nodes ? 0 : a->n_nodes - n;
}

bool ask_node_boots(const struct node *n)
{
	static const char *const own[] = { "node.kubernetes.io/",
					   "node.cloudprovider.kubernetes.io/" };

	for (size_t i = 0; i < n->fact.n_taints; i++)
		for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			if (strncmp(n->fact.taints[i].key, own[k], strlen(own[k])) == 0)
				return true;
	return n->gone || !n->fact.ready || n->n_devices == 0;
}

uint32_t ask_boots(const struct model *m, const struct ask *a)
{
	uint32_t n_boots = 0;

	for (uint32_t i = 0; i < a->n_came && a->state < ASK_STATE_SERVED; i++) {
		const struct node *n = model_find_node(m, a->nodes[i].name);

		n_boots += !a->nodes[i].stale && (!n || ask_node_boots(n));
	}
	return n_boots;
}

bool ask_is_open(const struct model *m, const struct ask *a, int64_t booking_us, int64_t now_us)
{
	if (a->state == ASK_STATE_ENDED)
		return true; /* a node that came after all is an ordinary one */
	if (a->state != ASK_STATE_SERVED)
		return false;
	return a->used || (m->asks_known == ASKS_KNOWN && now_us < a->provisioned_us + booking_us);
}

bool ask_has_pods(const struct model *m, const struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++) {
		const struct node *n =
			a->nodes[i].stale ? NULL : model_find_node(m, a->nodes[i].name);
		const struct pod *p;

		if (n)
			DL_FOREACH2(n->pods, p, node_next)
				if (model_pod_takes(p))
					return true;
	}
	return false;
}

void ask_name(const struct model *m, const struct ask *a, char out[ASK_NAME_ROOM])
{
	int n = snprintf(out, ASK_NAME_ROOM, "gpuq-%s-%" PRIu32, m->cluster_id, a->first.id);

	if (a->first.index >= 0)
		n += snprintf(out + n, ASK_NAME_ROOM - (size_t)n, "-%" PRId32, a->first.index);
	snprintf(out + n, ASK_NAME_ROOM - (size_t)n, "-ask%" PRIu32 "-%" PRIu32, a->number,
		 a->attempt);
}

/* ---- bytes ---- */

static size_t key_of(unsigned char *out, uint32_t number)
{
	out[0] = 'a';
	return 1 + change_key_u32(out + 1, number);
}

static void put(struct model *m, const struct ask *a)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, FIELDS);
	varint_str(&b, a->pool);
	varint_str(&b, a->flavor);
	varint_str(&b, a->class_);
	varint_str(&b, a->namespace_);
	varint_int(&b, a->first.id);
	varint_int(&b, a->first.index);
	varint_int(&b, a->owner.id);
	varint_int(&b, a->owner.index);
	varint_int(&b, a->n_nodes);
	varint_int(&b, a->attempt);
	varint_int(&b, a->state);
	varint_bool(&b, a->used);
	varint_bool(&b, a->cleared);
	varint_int(&b, a->n_failures);
	varint_int(&b, a->made_us);
	varint_int(&b, a->since_us);
	varint_int(&b, a->provisioned_us);
	varint_int(&b, a->retry_us);
	varint_int(&b, a->run_us);
	varint_str(&b, a->token);
	varint_str(&b, a->condition);
	varint_str(&b, a->reason);
	varint_str(&b, a->message);
	varint_array(&b, (uint32_t)a->labels.n);
	for (size_t i = 0; i < a->labels.n; i++) {
		varint_array(&b, 2);
		varint_str(&b, a->labels.keys[i]);
		varint_str(&b, a->labels.vals[i]);
	}
	varint_array(&b, a->n_came);
	for (uint32_t i = 0; i < a->n_came; i++) {
		varint_array(&b, 2);
		varint_str(&b, a->nodes[i].name);
		varint_bool(&b, a->nodes[i].stale);
	}
	change_batch_put(&m->direct, TABLE_ASK, key, key_of(key, a->number), b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
}

/* Its log has one more entry. */
static void touch_job(struct model *m, struct job_key key)
{
	struct job *j = model_find_job(m, key);

	if (!j && key.index >= 0)
		j = model_find_job(m, (struct job_key){ key.id, -1 });
	if (j)
		model_job_dirty(m, j);
}

/* The same of a change by which other nodes can be used. */
static void put_changed(struct model *m, const struct ask *a)
{
	put(m, a);
	m->n_node_changes++;
	touch_job(m, a->owner);
}

static size_t pool_key(unsigned char *out, const char *name)
{
	out[0] = 'p';
	return 1 + change_key_strs(out + 1, name, NULL);
}

static void put_pool(struct model *m, const struct ask_pool *p)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, POOL_FIELDS);
	varint_int(&b, p->closed_until_us);
	varint_int(&b, p->failed_us);
	varint_str(&b, p->message);
	change_batch_put(&m->direct, TABLE_ASK, key, pool_key(key, p->name), b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
	m->n_node_changes++;
}

/* The number is never given twice: that of the last one is kept, also when it is forgotten. */
static void put_last(struct model *m)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, 1);
	varint_int(&b, m->last_ask);
	change_batch_put(&m->direct, TABLE_ASK, "n", 1, b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
}

static struct ask *add(struct model *m, uint32_t number)
{
	struct ask *a = must(calloc(1, sizeof(*a)));

	a->number = number;
	a->condition = a->reason = "";
	a->message = must(strdup(""));
	HASH_ADD(hh, m->asks, number, sizeof(a->number), a);
	return a;
}

static struct ask_pool *pool_get(struct model *m, const char *name)
{
	struct ask_pool *p = ask_pool_find(m, name);

	if (p)
		return p;
	p = must(calloc(1, sizeof(*p)));
	p->name = model_intern(m, name);
	p->message = must(strdup(""));
	HASH_ADD_KEYPTR(hh, m->ask_pools, p->name, strlen(p->name), p);
	return p;
}

static void labels_done(struct ask *a)
{
	free(a->labels.keys);
	free(a->labels.vals);
	a->labels = (struct gpuq_strmap){ 0 };
}

static void drop(struct model *m, struct ask *a)
{
	HASH_DEL(m->asks, a);
	labels_done(a);
	free(a->nodes);
	free(a->message);
	free(a);
}

void ask_free_all(struct model *m)
{
	struct ask *a, *next;
	struct ask_pool *p, *pnext;

	HASH_ITER(hh, m->asks, a, next)
		drop(m, a);
	HASH_ITER(hh, m->ask_pools, p, pnext) {
		HASH_DEL(m->ask_pools, p);
		free(p->message);
		free(p);
	}
}

/* ---- events ---- */

static void set_message(char **at, const char *text)
{
	char *copy = must(strdup(text ? text : ""));

	free(*at);
	*at = copy;
}

static struct ask *of_event(const struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = ask_find(m, ev->ask.number);

	if (!a)
		gpuq_fail(err, GPUQ_ENOENT, "no such request for nodes: %" PRIu32, ev->ask.number);
	return a;
}

/* True if the event is of its present attempt, which is still under way. */
static struct ask *of_attempt(const struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return NULL;
	if (a->attempt == ev->ask.attempt && a->state < ASK_STATE_PAUSED)
		return a;
	gpuq_fail(err, GPUQ_ECONFLICT, "attempt %" PRIu32 " of request %" PRIu32 " is over",
		  ev->ask.attempt, a->number);
	return NULL;
}

int ask_apply_made(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a;

	if (ev->ask.number != m->last_ask + 1 || ev->ask.n_nodes == 0)
		return gpuq_fail(err, GPUQ_ECONFLICT, "request %" PRIu32 " is not the next one",
				 ev->ask.number);
	m->last_ask = ev->ask.number;
	a = add(m, ev->ask.number);
	a->pool = model_intern(m, ev->ask.pool);
	a->flavor = model_intern(m, ev->ask.flavor);
	a->class_ = model_intern(m, ev->ask.class_);
	a->namespace_ = model_intern(m, ev->ask.namespace_);
	a->first = a->owner = ev->job;
	a->n_nodes = ev->ask.n_nodes;
	a->attempt = 1;
	a->made_us = a->since_us = ev->at_us;
	a->run_us = ev->ask.run_us;
	snprintf(a->token, sizeof(a->token), "%s", ev->ask.token);
	put_changed(m, a);
	put_last(m);
	return 0;
}

int ask_apply_owned(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	a->owner = ev->job;
	put_changed(m, a);
	return 0;
}

/* Take over the labels that nodes of the request have. */
static void set_labels(struct model *m, struct ask *a, const struct gpuq_strmap *in)
{
	labels_done(a);
	a->labels.keys = must(calloc(in->n + 1, sizeof(char *)));
	a->labels.vals = must(calloc(in->n + 1, sizeof(char *)));
	for (size_t i = 0; i < in->n; i++) {
		a->labels.keys[i] = model_intern(m, in->keys[i]);
		a->labels.vals[i] = model_intern(m, in->vals[i]);
	}
	a->labels.n = in->n;
}

/* Its state goes forward only: what is heard again, or late, changes nothing. */
static void advance(struct ask *a, enum ask_state state)
{
	if (a->state < ASK_STATE_PAUSED && state > a->state)
		a->state = state;
}

/* Note that it is served, once all its nodes are there and ready. */
static void serve(struct model *m, struct ask *a)
{
	if (a->state != ASK_STATE_PROVISIONED || ask_lacks(a) || ask_boots(m, a))
		return;
	a->state = ASK_STATE_SERVED;
	put_changed(m, a);
}

int ask_apply_heard(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_attempt(m, ev, err);

	if (!a)
		return GPUQ_ECONFLICT;
	a->condition = model_intern(m, ev->ask.condition);
	a->reason = model_intern(m, ev->ask.reason);
	set_message(&a->message, ev->ask.message);
	if (ev->ask.labels && ev->ask.labels->n)
		set_labels(m, a, ev->ask.labels);
	if (ev->ask.state == ASK_STATE_PROVISIONED && !a->provisioned_us)
		a->provisioned_us = ev->ask.until_us;
	advance(a, (enum ask_state)ev->ask.state);
	put_changed(m, a);
	/* Some may have come before anything was heard of the request. */
	node_each(m, n)
		if (strcmp(n->pool, a->pool) == 0)
			ask_node_seen(m, n);
	serve(m, a);
	return 0;
}

static void mark_stale(struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++)
		a->nodes[i].stale = true;
}

int ask_apply_failed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_attempt(m, ev, err);
	struct ask_pool *p;

	if (!a)
		return GPUQ_ECONFLICT;
	p = pool_get(m, a->pool);
	p->failed_us = ev->at_us;
	set_message(&p->message, ev->ask.message);
	put_pool(m, p);
	mark_stale(a);
	a->state = ASK_STATE_PAUSED;
	a->cleared = false;
	a->used = false;
	a->n_failures += ev->ask.counts;
	a->since_us = ev->at_us;
	a->retry_us = ev->ask.until_us;
	a->provisioned_us = 0;
	a->condition = model_intern(m, ev->ask.condition);
	a->reason = model_intern(m, ev->ask.reason);
	set_message(&a->message, ev->ask.message);
	labels_done(a);
	put_changed(m, a);
	return 0;
}

int ask_apply_tried(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	if (a->state != ASK_STATE_PAUSED || !a->cleared)
		return gpuq_fail(err, GPUQ_ECONFLICT, "request %" PRIu32 " is under way",
				 a->number);
	a->attempt++;
	a->state = ASK_STATE_NEW;
	a->cleared = false;
	a->retry_us = 0;
	a->since_us = ev->at_us;
	snprintf(a->token, sizeof(a->token), "%s", ev->ask.token);
	put_changed(m, a);
	return 0;
}

static void forget(struct model *m, struct ask *a)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	change_batch_put(&m->direct, TABLE_ASK, key, key_of(key, a->number), NULL, 0);
	m->n_node_changes++;
	drop(m, a);
}

int ask_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	if (a->state == ASK_STATE_PAUSED && a->cleared) {
		forget(m, a);
		return 0;
	}
	a->state = ASK_STATE_ENDED;
	a->since_us = ev->at_us;
	set_message(&a->message, ev->ask.message);
	put_changed(m, a);
	return 0;
}

int ask_apply_cleared(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask *a = of_event(m, ev, err);

	if (!a)
		return GPUQ_ENOENT;
	if (a->state < ASK_STATE_PAUSED)
		return gpuq_fail(err, GPUQ_ECONFLICT, "request %" PRIu32 " is under way",
				 a->number);
	if (a->state == ASK_STATE_ENDED) {
		forget(m, a);
		return 0;
	}
	a->cleared = true;
	put_changed(m, a);
	return 0;
}

int ask_apply_known(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	m->asks_known = ev->asks.known;
	m->asks_why = model_intern(m, ev->asks.why ? ev->asks.why : "");
	m->n_node_changes++;
	return 0;
}

int ask_apply_closed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct ask_pool *p = pool_get(m, ev->ask.pool);

	(void)err;
	p->closed_until_us = ev->ask.until_us;
	p->failed_us = ev->at_us;
	set_message(&p->message, ev->ask.message);
	put_pool(m, p);
	return 0;
}

/* ---- nodes ---- */

/* True if the node has the labels by which nodes of the request are known. */
static bool has_labels(const struct node *n, const struct ask *a)
{
	for (size_t i = 0; i < a->labels.n; i++) {
		const char *v = gpuq_strmap_get(&n->fact.labels, a->labels.keys[i]);

		if (!v || strcmp(v, a->labels.vals[i]) != 0)
			return false;
	}
	return true;
}

void ask_node_seen(struct model *m, const struct node *n)
{
	struct ask *a, *next;
	bool stale;

	if (!m->asks || n->gone)
		return;
	if (ask_of_node(m, n->name, &stale)) {
		HASH_ITER(hh, m->asks, a, next)
			serve(m, a);
		return;
	}
	if (n->pods)
		return;
	HASH_ITER(hh, m->asks, a, next) {
		if (a->state >= ASK_STATE_SERVED || strcmp(a->pool, n->pool) != 0 ||
		    n->first_us < a->since_us || ask_lacks(a) == 0 || !has_labels(n, a))
			continue;
		a->nodes = must(realloc(a->nodes, (a->n_came + 1) * sizeof(*a->nodes)));
		a->nodes[a->n_came++] = (struct ask_node){ n->name, false };
		put_changed(m, a);
		serve(m, a);
		return;
	}
}

void ask_node_gone(struct model *m, const char *name)
{
	struct ask *a, *next;

	HASH_ITER(hh, m->asks, a, next)
		for (uint32_t i = 0; i < a->n_came; i++)
			if (strcmp(a->nodes[i].name, name) == 0) {
				memmove(&a->nodes[i], &a->nodes[i + 1],
					(--a->n_came - i) * sizeof(*a->nodes));
				put_changed(m, a);
				return;
			}
}

void ask_node_used(struct model *m, const char *name)
{
	bool stale;
	struct ask *a = m->asks ? (struct ask *)(uintptr_t)ask_of_node(m, name, &stale) : NULL;

	if (!a || stale || a->used)
		return;
	a->used = true;
	put(m, a);
}

/* ---- loading ---- */

static const char *read_name(struct model *m, struct rec *r)
{
	size_t n = 0;
	const char *s = rec_get_str(r, &n), *name;
	char *copy = must(malloc(n + 1));

	if (s)
		memcpy(copy, s, n);
	copy[s ? n : 0] = '\0';
	name = model_intern(m, copy);
	free(copy);
	return name;
}

static int load_pool(struct model *m, const unsigned char *key, size_t n, struct rec *r,
		     struct gpuq_err *err)
{
	char name[CHANGE_KEY_BYTES_MAX];
	struct ask_pool *p;

	if (n < 2 || n >= sizeof(name))
		return gpuq_fail(err, GPUQ_ECORRUPT, "the key of a pool is not of its form");
	memcpy(name, key + 1, n - 1);
	name[n - 1] = '\0';
	p = pool_get(m, name);
	rec_get_row(r, POOL_FIELDS);
	p->closed_until_us = rec_get_int(r);
	p->failed_us = rec_get_int(r);
	set_message(&p->message, read_name(m, r));
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "what is known of pool %s is not whole", name)
		      : 0;
}

static void load_lists(struct model *m, struct ask *a, struct rec *r)
{
	uint32_t n = rec_get_array(r);

	for (uint32_t i = 0; i < n && !r->bad; i++) {
		const uint32_t more = rec_get_row(r, 2);

		a->labels.keys = must(realloc(a->labels.keys, (i + 1) * sizeof(char *)));
		a->labels.vals = must(realloc(a->labels.vals, (i + 1) * sizeof(char *)));
		a->labels.keys[i] = read_name(m, r);
		a->labels.vals[i] = read_name(m, r);
		a->labels.n = i + 1;
		varint_skip_more(r, more);
	}
	n = rec_get_array(r);
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		const uint32_t more = rec_get_row(r, 2);

		a->nodes = must(realloc(a->nodes, (i + 1) * sizeof(*a->nodes)));
		a->nodes[i].name = read_name(m, r);
		a->nodes[i].stale = varint_get_bool(r);
		a->n_came = i + 1;
		varint_skip_more(r, more);
	}
}

int ask_load(struct model *m, const unsigned char *key, size_t n, struct rec *r,
	     struct gpuq_err *err)
{
	struct ask *a;
	uint32_t number;
	int64_t state;

	if (n == 1 && key[0] == 'n') {
		rec_get_row(r, 1);
		number = (uint32_t)rec_get_int(r);
		m->last_ask = number > m->last_ask ? number : m->last_ask;
		return 0;
	}
	if (n > 0 && key[0] == 'p')
		return load_pool(m, key, n, r, err);
	if (n != 5 || key[0] != 'a')
		return gpuq_fail(err, GPUQ_ECORRUPT, "the key of a request is not of its form");
	number = change_key_read_u32(key + 1);
	a = add(m, number);
	m->last_ask = number > m->last_ask ? number : m->last_ask;
	rec_get_row(r, FIELDS);
	a->pool = read_name(m, r);
	a->flavor = read_name(m, r);
	a->class_ = read_name(m, r);
	a->namespace_ = read_name(m, r);
	a->first.id = (uint32_t)rec_get_int(r);
	a->first.index = (int32_t)rec_get_int(r);
	a->owner.id = (uint32_t)rec_get_int(r);
	a->owner.index = (int32_t)rec_get_int(r);
	a->n_nodes = (uint32_t)rec_get_int(r);
	a->attempt = (uint32_t)rec_get_int(r);
	state = rec_get_int(r);
	a->used = varint_get_bool(r);
	a->cleared = varint_get_bool(r);
	a->n_failures = (uint32_t)rec_get_int(r);
	a->made_us = rec_get_int(r);
	a->since_us = rec_get_int(r);
	a->provisioned_us = rec_get_int(r);
	a->retry_us = rec_get_int(r);
	a->run_us = rec_get_int(r);
	snprintf(a->token, sizeof(a->token), "%s", read_name(m, r));
	a->condition = read_name(m, r);
	a->reason = read_name(m, r);
	set_message(&a->message, read_name(m, r));
	load_lists(m, a, r);
	if (r->bad || state < 0 || state >= N_ASK_STATES || a->n_nodes == 0)
		return gpuq_fail(err, GPUQ_ECORRUPT, "request %" PRIu32 " for nodes is not whole",
				 number);
	a->state = (enum ask_state)state;
	return 0;
}
