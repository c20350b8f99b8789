/* The positions of a record are fixed for ever: append, never insert
 * (varint.h). */
#include "gpuqd/state/asks/ask_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/asks/ask_int.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"

#define FIELDS 27
#define FIELDS_FIRST 25 /* of the first records; the others may be absent */
#define POOL_FIELDS 5
#define POOL_FIELDS_FIRST 3

static size_t key_of(unsigned char *out, uint32_t number)
{
	out[0] = 'a';
	return 1 + change_key_u32(out + 1, number);
}

void ask_put(struct model *m, const struct ask *a)
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
	varint_int(&b, a->given_us);
	varint_int(&b, a->n_seen);
	change_batch_put(&m->direct, TABLE_ASK, key, key_of(key, a->number), b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
}

void ask_forget(struct model *m, struct ask *a)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	change_batch_put(&m->direct, TABLE_ASK, key, key_of(key, a->number), NULL, 0);
	m->n_node_changes++;
	ask_delete(m, a);
}

static size_t pool_key(unsigned char *out, const char *name)
{
	out[0] = 'p';
	return 1 + change_key_strs(out + 1, name, NULL);
}

void ask_put_pool(struct model *m, const struct ask_pool *p)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, POOL_FIELDS);
	varint_int(&b, p->closed_until_us);
	varint_int(&b, p->failed_us);
	varint_str(&b, p->message);
	varint_array(&b, p->n_waits);
	for (uint32_t i = 0; i < p->n_waits; i++)
		varint_int(&b, p->waits_s[i]);
	varint_array(&b, p->n_refused);
	for (uint32_t i = 0; i < p->n_refused; i++)
		varint_int(&b, p->refused_us[i]);
	change_batch_put(&m->direct, TABLE_ASK, key, pool_key(key, p->name), b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
	m->n_node_changes++;
}

/* The number is never given twice: that of the last one is kept, also when it is forgotten. */
void ask_put_last(struct model *m)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, 1);
	varint_int(&b, m->last_ask);
	change_batch_put(&m->direct, TABLE_ASK, "n", 1, b.data, b.len);
	m->direct.failed |= b.failed;
	gpuq_buf_done(&b);
}

static const char *read_name(struct model *m, struct rec *r)
{
	size_t n = 0;
	const char *s = rec_get_str(r, &n), *name;
	char *copy = ask_must(malloc(n + 1));

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
	uint32_t n_waits, more;

	if (n < 2 || n >= sizeof(name))
		return gpuq_fail(err, GPUQ_ECORRUPT, "the key of a pool is not of its form");
	memcpy(name, key + 1, n - 1);
	name[n - 1] = '\0';
	p = ask_pool_get(m, name);
	more = rec_get_row(r, POOL_FIELDS_FIRST);
	p->closed_until_us = rec_get_int(r);
	p->failed_us = rec_get_int(r);
	ask_set_message(&p->message, read_name(m, r));
	n_waits = more ? rec_get_array(r) : 0;
	for (uint32_t i = 0; i < n_waits && i < ASK_WAITS_MAX && !r->bad; i++)
		p->waits_s[p->n_waits++] = (uint32_t)rec_get_int(r);
	n_waits = more > 1 ? rec_get_array(r) : 0;
	for (uint32_t i = 0; i < n_waits && i < GPUQ_REFUSALS_MAX && !r->bad; i++)
		p->refused_us[p->n_refused++] = rec_get_int(r);
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "what is known of pool %s is not whole", name)
		      : 0;
}

static void load_lists(struct model *m, struct ask *a, struct rec *r)
{
	uint32_t n = rec_get_array(r);

	for (uint32_t i = 0; i < n && !r->bad; i++) {
		const uint32_t more = rec_get_row(r, 2);

		a->labels.keys = ask_must(realloc(a->labels.keys, (i + 1) * sizeof(char *)));
		a->labels.vals = ask_must(realloc(a->labels.vals, (i + 1) * sizeof(char *)));
		a->labels.keys[i] = read_name(m, r);
		a->labels.vals[i] = read_name(m, r);
		a->labels.n = i + 1;
		varint_skip_more(r, more);
	}
	n = rec_get_array(r);
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		const uint32_t more = rec_get_row(r, 2);

		a->nodes = ask_must(realloc(a->nodes, (i + 1) * sizeof(*a->nodes)));
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
	uint32_t number, more;
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
	a = ask_add(m, number);
	m->last_ask = number > m->last_ask ? number : m->last_ask;
	more = rec_get_row(r, FIELDS_FIRST);
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
	ask_set_message(&a->message, read_name(m, r));
	load_lists(m, a, r);
	a->given_us = more > 0 ? rec_get_int(r) : 0;
	a->n_seen = more > 1 ? (uint32_t)rec_get_int(r) : a->n_came;
	if (r->bad || state < 0 || state >= N_ASK_STATES || a->n_nodes == 0)
		return gpuq_fail(err, GPUQ_ECORRUPT, "request %" PRIu32 " for nodes is not whole",
				 number);
	a->state = (enum ask_state)state;
	return 0;
}
