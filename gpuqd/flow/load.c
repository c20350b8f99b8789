#include "gpuqd/flow/load.h"

#include "gpuqd/store/store.h"

struct load {
	struct model *m;
	enum table table;
	struct gpuq_err *err;
};

static int load_one(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	struct load *l = arg;

	return model_load(l->m, l->table, key, key_len, val, val_len, l->err);
}

int load_records(struct store *st, struct model *m, struct gpuq_err *err)
{
	struct load l = { .m = m, .err = err };
	int rc = 0;

	for (size_t i = 0; i < model_load_order_n && rc == 0; i++) {
		l.table = model_load_order[i];
		rc = store_each(st, l.table, NULL, 0, NULL, 0, false, 0, load_one, &l, err);
	}
	return rc;
}
