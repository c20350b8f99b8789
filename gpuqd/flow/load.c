#include "gpuqd/flow/load.h"

#include <pthread.h>

#include "gpuqd/state/record/record.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"

struct load {
	struct store *st;
	struct model *m;
	const enum table *tables;
	size_t n;
	struct gpuq_err *err;
	int rc;
};

static int load_one(void *arg, enum table t, const unsigned char *key, size_t key_len,
		    const unsigned char *val, size_t val_len)
{
	struct load *l = arg;

	return record_load(l->m, t, key, key_len, val, val_len, l->err);
}

static void *load_tables(void *arg)
{
	struct load *l = arg;

	l->rc = store_all(l->st, l->tables, l->n, load_one, l, l->err);
	return NULL;
}

/* Idempotency keys are independent, and each job may have one: they are read in parallel with all
 * the rest. */
int load_records(struct store *st, struct model *m, struct gpuq_err *err)
{
	static const enum table only_keys[] = { TABLE_KEY };
	struct gpuq_err keys_err = GPUQ_ERR_INIT;
	enum table others[N_TABLES];
	struct load all = { .st = st, .m = m, .tables = others, .err = err };
	struct load keys = { .st = st, .m = m, .tables = only_keys, .n = 1, .err = &keys_err };
	pthread_t beside;
	bool has_thread;

	for (size_t i = 0; i < model_load_order_n; i++)
		if (model_load_order[i] != TABLE_KEY)
			others[all.n++] = model_load_order[i];
	job_expect(m, store_count(st, TABLE_JOB), store_count(st, TABLE_KEY));
	request_expect(&m->requests, store_count(st, TABLE_REQUEST));
	has_thread = pthread_create(&beside, NULL, load_tables, &keys) == 0;
	load_tables(&all);
	if (has_thread)
		pthread_join(beside, NULL);
	else
		load_tables(&keys);
	if (all.rc == 0 && keys.rc != 0) {
		*err = keys_err;
		return keys.rc;
	}
	return all.rc;
}
