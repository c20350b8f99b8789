#include "gpuqd/state/record/record_usage.h"

#include "gpuqd/state/model_int.h"

#include "gpuqd/state/record/record.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/util/varint.h"

/* Records of what was used. Positions are fixed for ever: append, never insert (varint.h). */

void record_usage(struct model *m, const struct usage *u, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	varint_array(&b, 4);
	varint_array(&b, N_CHARGES);
	for (int i = 0; i < N_CHARGES; i++)
		varint_int(&b, u->us[i]);
	varint_int(&b, u->billed_us);
	varint_int(&b, u->cost_micro);
	varint_int(&b, u->n_pods);
	record_put(out, TABLE_USAGE, u->bytes, u->len, &b);
}

int record_load_usage(struct usage *u, struct rec *r, struct gpuq_err *err)
{
	uint32_t n;

	rec_get_row(r, 4);
	n = rec_get_array(r);
	for (uint32_t i = 0; i < n && i < N_CHARGES; i++)
		u->us[i] = rec_get_int(r);
	varint_skip_more(r, n > N_CHARGES ? n - N_CHARGES : 0);
	u->billed_us = rec_get_int(r);
	u->cost_micro = rec_get_int(r);
	u->n_pods = rec_get_int(r);
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "a usage counter is not whole") : 0;
}

void record_charge(struct model *m, const unsigned char *key, size_t key_len, const char *queue,
		   const char *user, const char *flavor, int64_t price_micro, int64_t day,
		   const struct charged *c, uint32_t n)
{
	const int64_t begins = clock_day_begins(m, day), ends = begins + CIVIL_DAY_US;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	uint32_t n_today = 0;

	for (uint32_t i = 0; i < n; i++)
		n_today += c[i].from_us < ends && c[i].to_us > begins;
	if (n_today == 0)
		return;
	varint_array(&b, 5);
	varint_str(&b, queue);
	varint_str(&b, user);
	varint_str(&b, flavor);
	varint_int(&b, price_micro);
	varint_array(&b, n_today);
	for (uint32_t i = 0; i < n; i++) {
		if (c[i].from_us >= ends || c[i].to_us <= begins)
			continue;
		varint_array(&b, 4);
		varint_int(&b, c[i].kind);
		varint_int(&b, c[i].milli);
		varint_int(&b, c[i].from_us > begins ? c[i].from_us : begins);
		varint_int(&b, c[i].to_us < ends ? c[i].to_us : ends);
	}
	record_put(&m->direct, TABLE_CHARGE, key, key_len, &b);
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
		return gpuq_fail(err, GPUQ_ECORRUPT, "an account of usage is not whole");
	a.sum = (usage_q32)(uint64_t)seconds << 32 | (uint64_t)part;
	account_get(m, key, n)->a = a;
	clock_seen(m, a.at_us);
	return 0;
}
