#include "gpuqd/state/record/record_usage.h"

#include "gpuqd/state/model_int.h"

#include "gpuqd/state/record/record.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/util/varint.h"

/* Records of usage. Positions are fixed for ever: append, never insert (varint.h). */

/* Last of a record, and not written where nothing is known. */
static void put_used(struct gpuq_buf *b, const struct used_sum *s)
{
	const int64_t all[] = { s->n_cpu, s->cpu_us, s->memory_bytes, s->busy_us, s->measured_us };
	const uint32_t n = sizeof(all) / sizeof(all[0]);

	if (!accounting_knows_used(s))
		return;
	varint_array(b, n);
	for (uint32_t i = 0; i < n; i++)
		varint_int(b, all[i]);
}

void record_get_used(struct rec *in, struct used_sum *out)
{
	int64_t *const all[] = { &out->n_cpu, &out->cpu_us, &out->memory_bytes, &out->busy_us,
				 &out->measured_us };
	const uint32_t n = rec_get_array(in), known = sizeof(all) / sizeof(all[0]);

	*out = (struct used_sum){ .n_cpu = 0 };
	for (uint32_t i = 0; i < n && i < known; i++)
		*all[i] = rec_get_int(in);
	varint_skip_more(in, n > known ? n - known : 0);
	if (in->bad)
		*out = (struct used_sum){ .n_cpu = 0 };
}

void record_usage(struct model *m, const struct usage *u, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	varint_array(&b, 4 + accounting_knows_used(&u->used));
	varint_array(&b, N_CHARGES);
	for (int i = 0; i < N_CHARGES; i++)
		varint_int(&b, u->us[i]);
	varint_int(&b, u->billed_us);
	varint_int(&b, u->cost_micro);
	varint_int(&b, u->n_pods);
	put_used(&b, &u->used);
	record_put(out, TABLE_USAGE, u->bytes, u->len, &b);
}

int record_load_usage(struct usage *u, struct rec *r, struct gpuq_err *err)
{
	const uint32_t more = rec_get_row(r, 4);
	const uint32_t n = rec_get_array(r);

	for (uint32_t i = 0; i < n && i < N_CHARGES; i++)
		u->us[i] = rec_get_int(r);
	varint_skip_more(r, n > N_CHARGES ? n - N_CHARGES : 0);
	u->billed_us = rec_get_int(r);
	u->cost_micro = rec_get_int(r);
	u->n_pods = rec_get_int(r);
	if (more) /* records of before that know nothing of it */
		record_get_used(r, &u->used);
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "a usage counter is incomplete") : 0;
}

/* Write the key of a pod's charges of one day: days sort first, so that a report reads one span. */
static size_t charge_key(unsigned char *out, const struct charges *c, int64_t day)
{
	const size_t n = change_key_u32(out, (uint32_t)civil_number(day));

	return change_key_cluster(
		out, n + change_key_pod(out + n, c->job.id, c->job.index, c->attempt, c->index),
		c->cluster);
}

/* Write the part of a pod's charges that falls into the day; nothing if none does. */
static void record_charge(const struct model *m, const struct charges *c, int64_t day,
			  struct batch *out)
{
	const int64_t begins = clock_day_begins(m, day), ends = begins + CIVIL_DAY_US;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const struct used_sum none = { .n_cpu = 0 }, *used = day == c->last_day ? &c->used : &none;
	uint32_t n_today = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n_today += c->items[i].from_us < ends && c->items[i].to_us > begins;
	if (n_today == 0)
		return;
	varint_array(&b, 7 + accounting_knows_used(used));
	varint_str(&b, c->queue);
	varint_str(&b, c->user);
	varint_str(&b, c->flavor);
	varint_int(&b, c->price_micro);
	varint_array(&b, n_today);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct charged *it = &c->items[i];

		if (it->from_us >= ends || it->to_us <= begins)
			continue;
		varint_array(&b, 4);
		varint_int(&b, it->kind);
		varint_int(&b, it->milli);
		varint_int(&b, it->from_us > begins ? it->from_us : begins);
		varint_int(&b, it->to_us < ends ? it->to_us : ends);
	}
	varint_array(&b, c->n_amounts);
	for (uint32_t i = 0; i < c->n_amounts; i++) {
		varint_array(&b, 2);
		varint_str(&b, c->amounts[i].name);
		varint_int(&b, c->amounts[i].count);
	}
	varint_int(&b, c->isolation);
	put_used(&b, used);
	record_put(out, TABLE_CHARGE, key, charge_key(key, c, day), &b);
}

void record_charges(const struct model *m, const struct charges *c, struct batch *out)
{
	for (int64_t day = c->first_day; day <= c->last_day; day++)
		record_charge(m, c, day, out);
}

void record_account(const struct account *a, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, 4);
	varint_int(&b, (int64_t)(a->a.sum >> 32));
	varint_int(&b, (int64_t)(a->a.sum & UINT32_MAX));
	varint_int(&b, a->a.at_us);
	varint_int(&b, a->a.rate_milli);
	record_put(out, TABLE_ACCOUNT, a->bytes, a->len, &b);
}

int record_load_account(struct model *m, const unsigned char *key, size_t n, struct rec *r,
			struct gpuq_err *err)
{
	struct usage_account a;
	int64_t seconds, part;

	rec_get_array(r);
	seconds = rec_get_int(r);
	part = rec_get_int(r);
	a.at_us = rec_get_int(r);
	a.rate_milli = rec_get_int(r);
	if (r->bad || seconds < 0 || part < 0 || part > UINT32_MAX || a.rate_milli < 0)
		return gpuq_fail(err, GPUQ_ECORRUPT, "an account of usage is incomplete");
	a.sum = (usage_q32)(uint64_t)seconds << 32 | (uint64_t)part;
	account_get(m, key, n)->a = a;
	clock_seen(m, a.at_us);
	return 0;
}
