#include "gpuqd/flow/load.h"

#include "gpuqd/store/store.h"

struct load {
	struct model *m;
	struct gpuq_err *err;
};

static int load_one(void *arg, enum table t, const unsigned char *key, size_t key_len,
		    const unsigned char *val, size_t val_len)
{
	struct load *l = arg;

	return model_load(l->m, t, key, key_len, val, val_len, l->err);
}

int load_records(struct store *st, struct model *m, struct gpuq_err *err)
{
	struct load l = { m, err };

	return store_all(st, model_load_order, model_load_order_n, load_one, &l, err);
}
