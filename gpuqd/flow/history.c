#include "gpuqd/flow/history.h"

#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/names.h"

static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
					   GPUQ_MSG_ITEMS_MAX };

struct gpuq_val *history_read(struct gpuq_arena *a, const void *bytes, size_t n)
{
	struct gpuq_val *v = NULL;

	return gpuq_mp_read(a, &lim, bytes, n, &v, NULL) == 0 ? v : NULL;
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
	struct gpuq_val *v = history_read(c->a, val, val_len);

	(void)key, (void)key_len;
	if (!v)
		return 0;
	c->n++;
	gpuq_add(c->a, c->list, v);
	return 0;
}

struct gpuq_val *history_job(struct store *st, struct job_key key, struct gpuq_arena *a)
{
	unsigned char k[CHANGE_KEY_BYTES_MAX];
	struct gpuq_val *list = gpuq_list(a);
	struct collect c = { .a = a, .list = list };

	/* Whatever cluster it ran in: a job has one record. */
	store_each(st, TABLE_HISTORY, k, change_key_job(k, key.id, key.index), NULL, 0, false, 1,
		   one, &c, NULL);
	return c.n && list && list->n ? list->items[0] : NULL;
}

int history_jobs(struct store *st, uint32_t id, size_t max, struct gpuq_arena *a,
		 struct gpuq_val *list)
{
	unsigned char k[CHANGE_KEY_BYTES_MAX];
	struct collect c = { .a = a, .list = list };

	store_each(st, TABLE_HISTORY, k, change_key_u32(k, id), NULL, 0, false, max, one, &c, NULL);
	return c.n;
}

bool history_element(struct store *st, uint32_t number, struct job_key *key)
{
	unsigned char k[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf val = GPUQ_BUF_INIT;
	struct job_key found = { 0, -1 };
	int64_t index = -1;
	bool is_there =
		store_get(st, TABLE_ELEMENT, k, change_key_u32(k, number), &val, NULL) == 0 &&
		change_key_job_read((const unsigned char *)val.data, val.len, &found.id, &index);

	found.index = (int32_t)index;
	gpuq_buf_done(&val);
	if (is_there)
		*key = found;
	return is_there;
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
