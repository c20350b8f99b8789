#include "gpuqd/core/model_int.h"

#include "gpuqd/core/civil.h"
#include "gpuqd/core/rec.h"

/* Records of what was used. Positions are fixed for ever: append, never insert (rec.h). */

void record_usage(struct model *m, const struct usage *u, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	rec_array(&b, 4 + N_CHARGES - 1);
	rec_int(&b, u->us[CHARGE_USED]);
	rec_int(&b, u->billed_us);
	rec_int(&b, u->cost_micro);
	rec_int(&b, u->n_pods);
	for (int i = CHARGE_USED + 1; i < N_CHARGES; i++)
		rec_int(&b, u->us[i]);
	record_put(out, TABLE_USAGE, u->bytes, u->len, &b);
}

int load_usage(struct usage *u, struct rec *r, struct gpuq_err *err)
{
	const uint32_t n = rec_get_array(r);

	u->us[CHARGE_USED] = rec_get_int(r);
	u->billed_us = u->us[CHARGE_USED]; /* as it was before there were factors */
	if (n > 3) {
		u->billed_us = rec_get_int(r);
		u->cost_micro = rec_get_int(r);
		u->n_pods = rec_get_int(r);
	}
	for (int i = CHARGE_USED + 1; i < N_CHARGES && (uint32_t)i + 3 < n; i++)
		u->us[i] = rec_get_int(r);
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "a usage counter is not whole") : 0;
}

void record_charge(struct model *m, const unsigned char *key, size_t key_len, const char *queue,
		   const char *user, const char *flavor, int64_t price_micro, int64_t day,
		   const struct charged *c, uint32_t n)
{
	const int64_t begins = day * CIVIL_DAY_US, ends = begins + CIVIL_DAY_US;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	uint32_t n_today = 0;

	for (uint32_t i = 0; i < n; i++)
		n_today += c[i].from_us < ends && c[i].to_us > begins;
	if (n_today == 0)
		return;
	rec_array(&b, 4 + 4 * n_today);
	rec_str(&b, queue);
	rec_str(&b, user);
	rec_str(&b, flavor);
	rec_int(&b, price_micro);
	for (uint32_t i = 0; i < n; i++) {
		if (c[i].from_us >= ends || c[i].to_us <= begins)
			continue;
		rec_int(&b, c[i].kind);
		rec_int(&b, c[i].milli);
		rec_int(&b, c[i].from_us > begins ? c[i].from_us : begins);
		rec_int(&b, c[i].to_us < ends ? c[i].to_us : ends);
	}
	record_put(&m->direct, TABLE_CHARGE, key, key_len, &b);
}

void record_account(const struct account *a, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	rec_array(&b, 4);
	rec_int(&b, (int64_t)(a->a.sum >> 32));
	rec_int(&b, (int64_t)(a->a.sum & UINT32_MAX));
	rec_int(&b, a->a.at_us);
	rec_int(&b, a->a.rate_milli);
	record_put(out, TABLE_ACCOUNT, a->bytes, a->len, &b);
}

int load_account(struct model *m, const unsigned char *key, size_t n, struct rec *r,
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
	return 0;
}
