#include "gpuqd/flow/report/charges.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/record/record_usage.h"
#include "gpuqd/store/read.h"
#include "gpuqd/store/store.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/util/varint.h"
#include "libgpuq/grow.h"

#define RECORDS_PER_STEP 2000 /* some milliseconds */

struct left_out {
	UT_hash_handle hh;
	unsigned char key[16];
};

struct charges {
	struct store *store;
	struct left_out *left_out;
	unsigned char last[CHANGE_KEY_BYTES_MAX]; /* key of the record read last */
	size_t last_len, n_step;
	bool reads, found, no_memory;
	struct charged *items;
	size_t room;
	struct gpuq_amount amounts[GPUQ_RESOURCES_MAX + 1];
	char names[GPUQ_RESOURCES_MAX + 1][CHARGES_NAME_BYTES];
	charges_fn fn;
	void *arg;
};

struct charges *charges_new(struct store *st)
{
	struct charges *c = calloc(1, sizeof(*c));

	if (c)
		c->store = st;
	return c;
}

void charges_free(struct charges *c)
{
	struct left_out *l, *next;

	if (!c)
		return;
	HASH_ITER(hh, c->left_out, l, next) {
		HASH_DEL(c->left_out, l);
		free(l);
	}
	free(c->items);
	free(c);
}

bool charges_leave_out(struct charges *c, const struct job *j, uint32_t attempt, uint32_t pod)
{
	struct left_out *l = calloc(1, sizeof(*l));
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	if (!l)
		return false;
	change_key_pod(key, j->key.id, j->key.index, attempt, pod);
	memcpy(l->key, key, sizeof(l->key));
	HASH_ADD(hh, c->left_out, key, sizeof(l->key), l);
	return true;
}

static const char *get_name(struct rec *in, char to[CHARGES_NAME_BYTES])
{
	size_t n = 0;
	const char *s = rec_get_str(in, &n);

	n = n < CHARGES_NAME_BYTES - 1 ? n : CHARGES_NAME_BYTES - 1;
	n = s ? n : 0;
	if (n)
		memcpy(to, s, n);
	to[n] = '\0';
	return to;
}

/* Returns how many could be read. */
static uint32_t get_items(struct charges *c, struct rec *in)
{
	const uint32_t n = rec_get_array(in);
	uint32_t have = 0;

	while (have < n && !in->bad) {
		const uint32_t more = rec_get_row(in, 4);
		struct charged item = { .kind = (enum charge)rec_get_int(in) };

		item.milli = rec_get_int(in);
		item.from_us = rec_get_int(in);
		item.to_us = rec_get_int(in);
		varint_skip_more(in, more);
		if (in->bad)
			break;
		if (!grow_to(&c->items, &c->room, (size_t)have + 1)) {
			c->no_memory = true;
			break;
		}
		c->items[have++] = item;
	}
	return have;
}

/* Read what the pod held beside devices; records of before that know nothing of it. Return how many. */
static uint32_t get_amounts(struct charges *c, struct rec *in)
{
	const uint32_t n = rec_get_array(in);
	uint32_t have = 0;

	for (uint32_t i = 0; i < n && !in->bad && have < GPUQ_RESOURCES_MAX + 1; i++) {
		const uint32_t more = rec_get_row(in, 2);

		c->amounts[have].name = get_name(in, c->names[have]);
		c->amounts[have].count = rec_get_int(in);
		varint_skip_more(in, more);
		have += !in->bad;
	}
	return have;
}

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct charges *c = arg;
	struct rec in = { val, val + val_len, false };
	char user[CHARGES_NAME_BYTES], queue[CHARGES_NAME_BYTES], flavor[CHARGES_NAME_BYTES];
	struct charges_row row;
	uint32_t more;
	struct left_out *l = NULL;

	/* The scan resumes at the record that was read last. */
	if (key_len == c->last_len && memcmp(key, c->last, key_len) == 0)
		return 0;
	memcpy(c->last, key, key_len);
	c->last_len = key_len;
	c->found = true;
	c->n_step++;
	if (key_len >= 4 + sizeof(l->key))
		HASH_FIND(hh, c->left_out, key + 4, sizeof(l->key), l);
	if (l)
		return 0;
	more = rec_get_row(&in, 5);
	row.queue = get_name(&in, queue);
	row.user = get_name(&in, user);
	row.flavor = get_name(&in, flavor);
	row.price_micro = rec_get_int(&in);
	row.n = get_items(c, &in);
	row.items = c->items;
	row.n_amounts = more ? get_amounts(c, &in) : 0;
	row.amounts = c->amounts;
	row.isolation = more > 1 ? (int)rec_get_int(&in) : ISOLATION_NO_DEVICES;
	row.used = (struct used_sum){ .n_cpu = 0 };
	if (more > 2)
		record_get_used(&in, &row.used);
	if (in.bad || row.isolation < 0 || row.isolation >= N_GPUQ_ISOLATIONS)
		row.isolation = ISOLATION_NO_DEVICES;
	c->fn(c->arg, &row);
	return 0;
}

int charges_step(struct charges *c, int64_t day, charges_fn fn, void *arg, struct gpuq_err *err)
{
	unsigned char prefix[8];
	const size_t n = change_key_u32(prefix, (uint32_t)civil_number(day));
	int rc;

	if (!c->reads)
		c->found = false;
	c->fn = fn;
	c->arg = arg;
	c->n_step = 0;
	rc = store_each(c->store, TABLE_CHARGE, prefix, n, c->reads ? c->last : NULL, c->last_len,
			false, RECORDS_PER_STEP, on_record, c, err);
	if (rc >= 0 && c->no_memory)
		rc = gpuq_no_memory(err);
	c->reads = rc >= 0 && c->n_step > 0;
	if (!c->reads)
		c->last_len = 0;
	return rc < 0 ? rc : c->reads;
}

bool charges_found(const struct charges *c)
{
	return c->found;
}
