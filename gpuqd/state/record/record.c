#include "gpuqd/state/record/record.h"

#include "gpuqd/state/model_int.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_store.h"
#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/state/record/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/record/record_usage.h"
#include "gpuqd/util/varint.h"
#include "gpuqd/state/record/record_int.h"
#include "gpuqd/state/record/record_parts.h"
#include "gpuqd/state/record/record_recovery.h"
#include "libgpuq/wire/mp.h"

/* Positions are fixed for ever: append, never insert (varint.h). A field count below is
 * the number of rec_ calls of its record. */

void record_put(struct batch *out, enum table t, const unsigned char *key, size_t n,
		struct gpuq_buf *b)
{
	change_batch_put(out, t, key, n, b->data ? b->data : "", b->len);
	out->failed |= b->failed;
	gpuq_buf_done(b);
}

const char *record_get_name(struct model *m, struct rec *r, const char *last)
{
	char text[1100];
	size_t n;
	const char *s = rec_get_str(r, &n);

	if (!s)
		return "";
	/* Neighbouring records often repeat a name: no lookup is needed then. */
	if (last && strlen(last) == n && memcmp(last, s, n) == 0)
		return last;
	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	memcpy(text, s, n);
	text[n] = '\0';
	return model_intern(m, text);
}

char *record_get_dup(struct rec *r)
{
	size_t n;
	const char *s = rec_get_str(r, &n);
	char *p = s ? record_alloc(n + 1, 1) : NULL;

	if (p)
		memcpy(p, s, n);
	return p;
}

char *record_get_line(struct rec *r)
{
	size_t n;
	const char *s = rec_get_str(r, &n);
	char *p = n ? record_alloc(n + 1, 1) : NULL;

	if (p)
		memcpy(p, s, n);
	return p;
}

void record_get_text(struct rec *r, char *out, size_t room)
{
	size_t n;
	const char *s = rec_get_str(r, &n);

	if (n >= room)
		n = room - 1;
	if (n)
		memcpy(out, s, n);
	out[n] = '\0';
}

void *record_alloc(size_t n, size_t size)
{
	return must(calloc(n ? n : 1, size));
}

void record_put_choice(struct gpuq_buf *b, struct gpuq_alternatives c)
{
	varint_int(b, c.first | (int64_t)c.last << 16);
}

struct gpuq_alternatives record_get_choice(struct rec *r)
{
	const int64_t both = rec_get_int(r);

	return (struct gpuq_alternatives){ (uint16_t)(both & 0xffff),
					   (uint16_t)(both >> 16 & 0xffff) };
}

void record_pod(struct model *m, const struct pod *p, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	const bool shares = p->rides || p->beside || p->charged_us;

	(void)m;
	varint_array(&b, shares ? 23 : 19);
	varint_str(&b, p->node->name);
	varint_int(&b, p->group);
	varint_int(&b, p->group_index);
	varint_int(&b, p->state);
	varint_int(&b, p->fault);
	varint_int(&b, p->exit_code);
	varint_int(&b, p->placed_us);
	varint_int(&b, p->start_us);
	varint_int(&b, p->end_us);
	varint_int(&b, p->cpu_milli);
	varint_int(&b, p->memory_bytes);
	varint_int(&b, p->gpus_milli);
	varint_str(&b, p->uid);
	varint_str(&b, p->message);
	varint_array(&b, p->n_devices);
	for (uint32_t i = 0; i < p->n_devices; i++)
		varint_int(&b, p->devices[i]);
	varint_bool(&b, p->dropped);
	varint_int(&b, p->devices_from);
	varint_str(&b, p->mig);
	record_put_choice(&b, p->choice);
	if (shares) {
		varint_int(&b, p->rides);
		varint_int(&b, p->charged_us);
		varint_int(&b, p->before_milli);
		varint_int(&b, p->beside);
	}
	record_put(out, TABLE_POD, key, pod_key(p, key), &b);
}

/* Add a pod from its row. Its job was loaded before; the count of its queue is made again, as no
 * row has it. */
static int load_pod(struct model *m, const unsigned char *key, size_t key_len, struct rec *r,
		    struct gpuq_err *err)
{
	static const struct node_fact bare = { .note = "not seen since the daemon started" };
	struct job_key jk;
	int64_t index;
	char cluster[CLUSTER_BYTES_MAX + 1];
	uint32_t id, n, more;
	struct job *j;
	struct pod *p;
	struct pod t = { .node = NULL };
	struct node *node;
	const char *name;
	int64_t from;

	change_key_job_read(key, 8, &id, &index);
	jk = (struct job_key){ id, (int32_t)index };
	j = model_find_job(m, jk);
	if (!j)
		return gpuq_fail(err, GPUQ_ECORRUPT, "a pod of job %u, which is not there", id);
	change_key_cluster_read(key, key_len, POD_KEY_BYTES, cluster);
	more = rec_get_row(r, 16);
	name = record_get_name(m, r, NULL);
	t.group = (uint32_t)rec_get_int(r);
	t.group_index = (uint32_t)rec_get_int(r);
	t.state = (enum gpuq_pod_state)rec_get_int(r);
	t.fault = (enum pod_fault)rec_get_int(r);
	t.exit_code = (int)rec_get_int(r);
	t.placed_us = rec_get_int(r);
	t.start_us = rec_get_int(r);
	t.end_us = rec_get_int(r);
	t.cpu_milli = rec_get_int(r);
	t.memory_bytes = rec_get_int(r);
	t.gpus_milli = rec_get_int(r);
	record_get_text(r, t.uid, sizeof(t.uid));
	t.message = record_get_dup(r);
	n = rec_get_array(r);
	if (r->bad || t.group >= j->request->spec.n_groups || t.state >= N_GPUQ_POD_STATES) {
		free(t.message);
		return gpuq_fail(err, GPUQ_ECORRUPT, "a pod of job %u is incomplete", id);
	}
	node = model_find_node(m, name);
	/* Its node was not stored, or is no longer: the pod must stay findable, so a node that is
	 * gone stands for it. */
	if (!node) {
		struct node_fact f = bare;

		f.name = name;
		node = node_get(m, cluster, name);
		node_set_fact(m, node, &f);
		node->gone = true;
	}
	p = pod_add(m, j, node, n);
	p->attempt =
		(uint32_t)key[8] << 24 | (uint32_t)key[9] << 16 | (uint32_t)key[10] << 8 | key[11];
	p->index = (uint32_t)key[12] << 24 | (uint32_t)key[13] << 16 | (uint32_t)key[14] << 8 |
		   key[15];
	p->group = t.group;
	p->group_index = t.group_index;
	p->state = t.state;
	p->fault = t.fault;
	p->exit_code = t.exit_code;
	p->placed_us = t.placed_us;
	p->start_us = t.start_us;
	p->end_us = t.end_us;
	clock_seen(m, p->placed_us);
	clock_seen(m, p->start_us);
	clock_seen(m, p->end_us);
	p->cpu_milli = t.cpu_milli;
	p->memory_bytes = t.memory_bytes;
	p->gpus_milli = t.gpus_milli;
	memcpy(p->uid, t.uid, sizeof(p->uid));
	p->message = t.message;
	/* It is as stored. */
	p->dirty = false;
	for (uint32_t i = 0; i < n; i++)
		p->devices[i] = (uint16_t)rec_get_int(r);
	p->dropped = varint_get_bool(r);
	from = more ? rec_get_int(r) : DEVICES_PLANNED;
	if (from == DEVICES_TOLD || from == DEVICES_EXCHANGED)
		p->devices_from = (enum devices_from)from;
	p->mig = more > 1 ? record_get_name(m, r, NULL) : NULL;
	if (p->mig && !*p->mig)
		p->mig = NULL;
	if (more > 2)
		p->choice = record_get_choice(r);
	if (more > 6) {
		p->rides = (uint16_t)rec_get_int(r);
		p->charged_us = rec_get_int(r);
		p->before_milli = rec_get_int(r);
		p->beside = (uint16_t)rec_get_int(r);
	}
	if (p->attempt == j->attempt && p->index >= j->life->n_indexes)
		job_life(j)->n_indexes = p->index + 1; /* of a record without the field */
	if (model_pod_takes(p))
		j->queue->allocated_milli += p->gpus_milli;
	return 0;
}

static void put_cut(struct gpuq_buf *b, const struct node_cut *c)
{
	varint_array(b, 9);
	varint_int(b, c->state);
	varint_str(b, c->layout);
	varint_str(b, c->before);
	varint_int(b, c->at_us);
	varint_int(b, c->since_us);
	varint_int(b, c->cards);
	varint_int(b, c->job.id);
	varint_int(b, c->job.index);
	varint_str(b, c->message);
}

/* Read what is known of the last cut of a node; one whose state is not known is none. */
static struct node_cut *get_cut(struct model *m, struct rec *r)
{
	struct node_cut *c = record_alloc(1, sizeof(*c));
	const uint32_t more = rec_get_row(r, 9);
	const int64_t state = rec_get_int(r);

	c->layout = record_get_name(m, r, NULL);
	c->before = record_get_name(m, r, NULL);
	c->at_us = rec_get_int(r);
	c->since_us = rec_get_int(r);
	c->cards = (uint32_t)rec_get_int(r);
	c->job.id = (uint32_t)rec_get_int(r);
	c->job.index = (int32_t)rec_get_int(r);
	c->message = record_get_name(m, r, NULL);
	varint_skip_more(r, more);
	if (!r->bad && state >= 0 && state < N_CUT_STATES) {
		c->state = (enum cut_state)state;
		return c;
	}
	free(c);
	return NULL;
}

void record_node(struct model *m, const struct node *n, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const bool parts = record_has_parts(n);

	(void)m;
	varint_array(&b, parts ? 17 : n->drain ? 16 : n->cut ? 14 : 13);
	varint_int(&b, n->fact.cpu_milli);
	varint_int(&b, n->fact.memory_bytes);
	varint_int(&b, n->fact.max_pods);
	varint_bool(&b, n->fact.ready);
	varint_bool(&b, n->fact.unschedulable);
	varint_str(&b, n->fact.note);
	varint_bool(&b, n->gone);
	varint_bool(&b, n->drain);
	varint_str(&b, n->drain_why);
	varint_int(&b, n->seen_us);
	record_put_labels(&b, &n->fact.labels);
	varint_array(&b, (uint32_t)n->fact.n_taints);
	for (size_t i = 0; i < n->fact.n_taints; i++) {
		varint_array(&b, 3);
		varint_str(&b, n->fact.taints[i].key);
		varint_str(&b, n->fact.taints[i].value);
		varint_str(&b, n->fact.taints[i].effect);
	}
	varint_array(&b, n->n_devices);
	for (uint32_t i = 0; i < n->n_devices; i++) {
		varint_array(&b, 4);
		varint_str(&b, n->devices[i].uuid);
		varint_str(&b, n->devices[i].product);
		varint_int(&b, n->devices[i].memory_mib);
		varint_bool(&b, n->devices[i].healthy);
	}
	if (n->cut)
		put_cut(&b, n->cut);
	else if (n->drain || parts)
		varint_array(&b, 0);
	if (n->drain || parts) {
		varint_str(&b, n->drain_by);
		varint_int(&b, n->drain_us);
	}
	if (parts)
		record_put_parts(&b, n);
	record_put(out, TABLE_NODE, key, change_key_node(key, n->cluster, n->name), &b);
}

/* Add a node from its row. Lists are taken from the heap only until the fact is set, which copies
 * them. */
static int load_node(struct model *m, const char *cluster, const char *name, struct rec *r,
		     struct gpuq_err *err)
{
	struct node_fact f = { .name = name };
	struct taint_fact *taints;
	struct device_fact *devices;
	bool gone, drain;
	const char *why, *by = "";
	int64_t seen, drained = 0;
	struct node *n;
	struct node_cut *cut = NULL;
	uint32_t k, more, fields;

	fields = rec_get_row(r, 13);
	f.cpu_milli = rec_get_int(r);
	f.memory_bytes = rec_get_int(r);
	f.max_pods = rec_get_int(r);
	f.ready = varint_get_bool(r);
	f.unschedulable = varint_get_bool(r);
	f.note = record_get_name(m, r, NULL);
	gone = varint_get_bool(r);
	drain = varint_get_bool(r);
	why = record_get_name(m, r, NULL);
	seen = rec_get_int(r);
	record_get_labels(m, r, &f.labels);
	k = rec_get_array(r);
	taints = record_alloc(k, sizeof(*taints));
	for (uint32_t i = 0; i < k; i++) {
		more = rec_get_row(r, 3);
		taints[i].key = record_get_name(m, r, NULL);
		taints[i].value = record_get_name(m, r, NULL);
		taints[i].effect = record_get_name(m, r, NULL);
		varint_skip_more(r, more);
	}
	f.taints = taints;
	f.n_taints = k;
	devices = record_get_devices(m, r, &f.n_devices);
	f.devices = devices;
	/* It is not written where there is none; an empty one is none, too. */
	if (fields > 0 && r->p < r->end && *r->p != 0x90)
		cut = get_cut(m, r);
	else if (fields > 0)
		rec_get_array(r);
	if (fields > 2) {
		by = record_get_name(m, r, NULL);
		drained = rec_get_int(r);
	}
	if (!r->bad) {
		n = node_get(m, cluster, name);
		node_set_fact(m, n, &f);
		free(n->cut);
		n->cut = cut;
		n->gone = gone;
		n->drain = drain;
		n->drain_why = why;
		n->drain_by = by;
		n->drain_us = drained;
		n->seen_us = seen;
		if (fields > 3)
			record_get_parts(m, r, n);
	}
	free(f.labels.keys);
	free(f.labels.vals);
	free(taints);
	free(devices);
	if (!r->bad)
		return 0;
	free(cut);
	return gpuq_fail(err, GPUQ_ECORRUPT, "node %s is incomplete", name);
}

void record_request(struct model *m, const struct request *r, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	(void)m;
	change_batch_put(out, TABLE_REQUEST, key, change_key_u32(key, r->id), r->bytes, r->len);
}

/* Read a request. Many differ from the previous one only in amounts, which request_decode_after()
 * makes use of. */
static int load_request(struct model *m, uint32_t id, const void *bytes, size_t n,
			struct gpuq_err *err)
{
	struct request *r;
	int rc = request_decode_after(&m->requests, bytes, n, &r, err);

	if (rc != 0) {
		gpuq_err_prefix(err, "request %u", id);
		return GPUQ_ECORRUPT;
	}
	r->id = id;
	request_add(&m->requests, r);
	return 0;
}

void record_key(struct model *m, const struct idem_key *k, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	varint_array(&b, 4);
	varint_int(&b, (int64_t)k->hash);
	varint_int(&b, k->first_id);
	varint_int(&b, k->n_jobs);
	varint_int(&b, k->at_us);
	record_put(out, TABLE_KEY, k->bytes, k->len, &b);
}

/* Read the key of a submission, by which a repeated call is recognised. */
static int load_key(struct model *m, const unsigned char *key, size_t n, struct rec *r,
		    struct gpuq_err *err)
{
	struct idem_key read, *k;

	rec_get_array(r);
	read.hash = (uint64_t)rec_get_int(r);
	read.first_id = (uint32_t)rec_get_int(r);
	read.n_jobs = (uint32_t)rec_get_int(r);
	read.at_us = rec_get_int(r);
	if (r->bad || n > CHANGE_KEY_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ECORRUPT, "a key is incomplete");
	k = keys_add(&m->keys, key, n, read.at_us);
	k->hash = read.hash;
	k->first_id = read.first_id;
	k->n_jobs = read.n_jobs;
	return 0;
}

void record_meta(struct model *m, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, 13);
	varint_str(&b, m->cluster_id);
	varint_int(&b, m->next_job_id);
	varint_int(&b, m->next_request_id);
	varint_int(&b, m->site_generation);
	varint_str(&b, m->cluster_uid);
	varint_int(&b, (int64_t)m->next_notice);
	varint_int(&b, m->charges_from);
	varint_str(&b, m->clock_boot);
	varint_int(&b, m->clock_base_us);
	varint_int(&b, m->ahead_us);
	varint_int(&b, m->now_us > m->newest_us ? m->now_us : m->newest_us);
	varint_int(&b, m->default_from_us);
	varint_int(&b, m->default_spared);
	record_put(out, TABLE_META, (const unsigned char *)"model", 5, &b);
}

void record_site(struct model *m, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_mp_write(&b, m->site->tree);
	record_put(out, TABLE_SITE, (const unsigned char *)"site", 4, &b);
}

void record_beside(const struct job *j, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const struct queue *q = j->queue;

	while (q && !q->site->namespace_)
		q = q->parent;
	varint_array(&b, 1);
	varint_str(&b, q ? q->site->namespace_ : "");
	record_put(out, TABLE_BESIDE, key,
		   change_key_cluster(key, change_key_job(key, j->key.id, j->key.index),
				      CLUSTER_DEFAULT),
		   &b);
}

bool record_beside_read(const unsigned char *val, size_t n, char namespace_[64])
{
	struct rec r = { val, val + n, false };

	rec_get_array(&r);
	record_get_text(&r, namespace_, 64);
	return !r.bad;
}

/* Records name objects of the tables before them. */
const enum table model_load_order[] = { TABLE_META,    TABLE_SITE,  TABLE_NODE, TABLE_REQUEST,
					TABLE_JOB,     TABLE_POD,   TABLE_KEY,  TABLE_USAGE,
					TABLE_ACCOUNT, TABLE_TOKEN, TABLE_ASK };
const size_t model_load_order_n = sizeof(model_load_order) / sizeof(model_load_order[0]);

/* Read the counters. A row of an older schema has fewer members, and those it lacks keep their
 * values. */
static int load_meta(struct model *m, struct rec *r, struct gpuq_err *err)
{
	const uint32_t n = rec_get_array(r);

	record_get_text(r, m->cluster_id, sizeof(m->cluster_id));
	m->next_job_id = (uint32_t)rec_get_int(r);
	m->next_request_id = (uint32_t)rec_get_int(r);
	if (n > 3)
		m->site_generation = (uint32_t)rec_get_int(r);
	if (n > 4)
		record_get_text(r, m->cluster_uid, sizeof(m->cluster_uid));
	if (n > 5)
		m->next_notice = (uint64_t)rec_get_int(r);
	if (n > 6)
		m->charges_from = rec_get_int(r);
	if (n > 10) {
		record_get_text(r, m->clock_boot, sizeof(m->clock_boot));
		m->clock_base_us = rec_get_int(r);
		m->ahead_us = rec_get_int(r);
		clock_seen(m, rec_get_int(r));
	}
	m->default_from_us = n > 12 ? rec_get_int(r) : -1;
	m->default_spared = n > 12 && rec_get_int(r) != 0;
	m->meta_dirty = false;
	return r->bad || m->next_job_id == 0
		       ? gpuq_fail(err, GPUQ_ECORRUPT, "the counters are incomplete")
		       : 0;
}

/* Keys of a fixed form are checked before they are decoded: a database may be damaged. */
int record_load(struct model *m, enum table t, const unsigned char *key, size_t key_len,
		const unsigned char *val, size_t val_len, struct gpuq_err *err)
{
	struct rec r = { val, val + val_len, false };
	struct job_key jk;
	char cluster[CHANGE_KEY_BYTES_MAX], name[CHANGE_KEY_BYTES_MAX];
	int64_t index;
	uint32_t id;
	int rc;

	switch (t) {
	case TABLE_META:
		if (key_len == strlen(RECOVERY_KEY) && memcmp(key, RECOVERY_KEY, key_len) == 0)
			return record_load_recovery(m, &r, err);
		return key_len == 5 && memcmp(key, "model", 5) == 0 ? load_meta(m, &r, err) : 0;
	case TABLE_SITE: {
		struct event ev = { .type = EV_SITE_APPLIED };

		ev.site.bytes = val;
		ev.site.len = val_len;
		id = m->site_generation; /* it was counted when it was applied */
		rc = model_change(m, &ev, err);
		m->site_generation = id;
		m->site_dirty = m->meta_dirty = false;
		return rc;
	}
	case TABLE_NODE:
		account_key_part(key, key_len, 0, cluster, sizeof(cluster));
		account_key_part(key, key_len, 1, name, sizeof(name));
		if (!*cluster || !*name)
			break;
		return load_node(m, cluster, name, &r, err);
	case TABLE_REQUEST:
		if (key_len != 4)
			break;
		id = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 |
		     key[3];
		return load_request(m, id, val, val_len, err);
	case TABLE_JOB:
		if (!change_key_job_read(key, key_len, &id, &index))
			break;
		jk = (struct job_key){ id, (int32_t)index };
		return record_load_job(m, jk, &r, err);
	case TABLE_POD:
		if (key_len <= POD_KEY_BYTES)
			break;
		return load_pod(m, key, key_len, &r, err);
	case TABLE_KEY:
		return load_key(m, key, key_len, &r, err);
	case TABLE_USAGE:
		return record_load_usage(accounting_get(m, key, key_len), &r, err);
	case TABLE_ACCOUNT:
		return record_load_account(m, key, key_len, &r, err);
	case TABLE_TOKEN:
		return token_load(m, key, key_len, &r, err);
	case TABLE_ASK:
		return ask_load(m, key, key_len, &r, err);
	default:
		return 0;
	}
	return gpuq_fail(err, GPUQ_ECORRUPT, "a key of table %s is not of its form",
			 table_names[t]);
}
