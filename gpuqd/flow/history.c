#include "gpuqd/flow/history.h"

#include "gpuqd/store/store.h"
#include "libgpuq/limits.h"
#include "libgpuq/mp.h"
#include "libgpuq/names.h"

static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
					   GPUQ_MSG_ITEMS_MAX };

struct gpuq_val *history_job(struct store *st, struct job_key key, struct gpuq_arena *a)
{
	unsigned char k[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf val = GPUQ_BUF_INIT;
	struct gpuq_val *v = NULL;

	if (store_get(st, TABLE_HISTORY, k, key_job(k, key.id, key.index), &val, NULL) == 0 &&
	    gpuq_mp_read(a, &lim, val.data, val.len, &v, NULL) != 0)
		v = NULL;
	gpuq_buf_done(&val);
	return v;
}

struct collect {
	struct gpuq_arena *a;
	struct gpuq_val *list;
	int n;
};

static int one(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
	       size_t val_len)
{
	struct collect *c = arg;
	struct gpuq_val *v;

	(void)key, (void)key_len;
	if (gpuq_mp_read(c->a, &lim, val, val_len, &v, NULL) != 0)
		return 0;
	c->n++;
	gpuq_add(c->a, c->list, v);
	return 0;
}

int history_jobs(struct store *st, uint32_t id, struct gpuq_arena *a, struct gpuq_val *list)
{
	unsigned char k[CHANGE_KEY_BYTES_MAX];
	struct collect c = { .a = a, .list = list };

	store_each(st, TABLE_HISTORY, k, key_u32(k, id), NULL, 0, false, 0, one, &c, NULL);
	return c.n;
}

int history_state(struct store *st, struct job_key key, enum gpuq_job_state *state)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = history_job(st, key, &a);
	int s = v ? gpuq_job_state_parse(gpuq_get_str(v, "state", "")) : -1;

	gpuq_arena_done(&a);
	if (s < 0)
		return GPUQ_ENOENT;
	*state = (enum gpuq_job_state)s;
	return 0;
}

struct walk {
	struct gpuq_arena a; /* of one record */
	int (*fn)(void *arg, struct job_key key, struct gpuq_val *job);
	void *arg;
};

static int step(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		size_t val_len)
{
	struct walk *w = arg;
	struct gpuq_val *v;
	struct job_key k;

	(void)key, (void)key_len;
	gpuq_arena_reset(&w->a);
	if (gpuq_mp_read(&w->a, &lim, val, val_len, &v, NULL) != 0)
		return 0;
	k.id = (uint32_t)gpuq_get_int(v, "id", 0);
	k.index = (int32_t)gpuq_get_int(v, "array_index", -1);
	return w->fn(w->arg, k, v);
}

int history_each(struct store *st, struct job_key from, size_t max,
		 int (*fn)(void *arg, struct job_key key, struct gpuq_val *job), void *arg,
		 struct gpuq_err *err)
{
	struct walk w = { .a = GPUQ_ARENA_INIT(0), .fn = fn, .arg = arg };
	unsigned char k[CHANGE_KEY_BYTES_MAX];
	size_t n = from.id ? key_job(k, from.id, from.index) : 0;
	int rc = store_each(st, TABLE_HISTORY, NULL, 0, n ? k : NULL, n, true, max, step, &w, err);

	gpuq_arena_done(&w.a);
	return rc;
}
