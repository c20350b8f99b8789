#include "gpuqd/flow/load.h"

#include <pthread.h>

#include "gpuqd/store/store.h"

struct load {
	struct store *st;
	struct model *m;
	enum table table;
	struct gpuq_err *err;
	int rc;
};

static int load_one(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	struct load *l = arg;

	return model_load(l->m, l->table, key, key_len, val, val_len, l->err);
}

static void *load_table(void *arg)
{
	struct load *l = arg;

	l->rc = store_each(l->st, l->table, NULL, 0, NULL, 0, false, 0, load_one, l, l->err);
	return NULL;
}

static int load_others(struct store *st, struct model *m, struct gpuq_err *err)
{
	struct load l = { .st = st, .m = m, .err = err };

	for (size_t i = 0; i < model_load_order_n && l.rc == 0; i++) {
		l.table = model_load_order[i];
		if (l.table != TABLE_KEY)
			load_table(&l);
	}
	return l.rc;
}

/* Idempotency keys stand by themselves, and each job may have brought one: they are read
 * beside all the rest. */
int load_records(struct store *st, struct model *m, struct gpuq_err *err)
{
	struct gpuq_err keys_err = GPUQ_ERR_INIT;
	struct load keys = { .st = st, .m = m, .table = TABLE_KEY, .err = &keys_err };
	pthread_t beside;
	bool has_thread;
	int rc;

	model_expect(m, store_count(st, TABLE_JOB), store_count(st, TABLE_KEY));
	has_thread = pthread_create(&beside, NULL, load_table, &keys) == 0;
	rc = load_others(st, m, err);
	if (has_thread)
		pthread_join(beside, NULL);
	else
		load_table(&keys);
	if (rc == 0 && keys.rc != 0) {
		*err = keys_err;
		rc = keys.rc;
	}
	return rc;
}
