#include "gpuqd/flow/audit.h"

#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

#define TRIM_AT_ONCE 2000 /* records, so that the loop is not held */

static void put_str(struct gpuq_arena *a, struct gpuq_val *v, const char *key, const char *s)
{
	if (s && *s)
		gpuq_put(a, v, key, gpuq_str(a, s));
}

static void put_copy(struct gpuq_arena *a, struct gpuq_val *v, const char *key,
		     const struct gpuq_val *what)
{
	if (what)
		gpuq_put(a, v, key, gpuq_val_copy(a, what));
}

int audit_add(struct journal *j, const struct audit_note *n, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf bytes = GPUQ_BUF_INIT;
	struct gpuq_val *v = gpuq_map(&mem);
	struct event ev = { .type = EV_AUDITED, .at_us = loop_now_us(journal_loop(j)) };
	int rc;

	gpuq_put(&mem, v, "time", gpuq_int(&mem, ev.at_us));
	put_str(&mem, v, "who", n->who);
	put_str(&mem, v, "action", n->action);
	gpuq_put(&mem, v, "object",
		 gpuq_str(&mem, gpuq_arena_printf(&mem, "%s/%s", n->kind, n->name)));
	put_str(&mem, v, "owner", n->owner);
	put_str(&mem, v, "queue", n->queue);
	put_str(&mem, v, "note", n->note);
	put_copy(&mem, v, "old", n->before);
	put_copy(&mem, v, "new", n->after);
	gpuq_mp_write(&bytes, v);
	if (!gpuq_val_ok(v) || bytes.failed) {
		rc = gpuq_no_memory(err);
	} else {
		ev.audited.bytes = bytes.data;
		ev.audited.len = bytes.len;
		rc = journal_apply(j, &ev, err);
	}
	gpuq_buf_done(&bytes);
	gpuq_arena_done(&mem);
	return rc;
}

/* ---- reading ---- */

struct walk {
	struct gpuq_arena mem; /* of one record */
	int64_t since_us, until_us;
	bool backwards;
	audit_fn fn;
	void *arg;
};

enum { PAST_THE_END = 1000 };

static int step(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		size_t val_len)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	struct walk *w = arg;
	struct gpuq_val *v;
	int64_t at_us;

	if (key_len != AUDIT_KEY_BYTES)
		return 0;
	at_us = change_key_audit_time(key);
	if (w->since_us && at_us < w->since_us)
		return w->backwards ? PAST_THE_END : 0;
	if (w->until_us && at_us >= w->until_us)
		return w->backwards ? 0 : PAST_THE_END;
	gpuq_arena_reset(&w->mem);
	if (gpuq_mp_read(&w->mem, &lim, val, val_len, &v, NULL) != 0)
		return 0;
	return w->fn(w->arg, key, v);
}

int audit_each(struct store *st, int64_t since_us, int64_t until_us, const unsigned char *from,
	       bool backwards, size_t max, audit_fn fn, void *arg, struct gpuq_err *err)
{
	struct walk w = { GPUQ_ARENA_INIT(0), since_us, until_us, backwards, fn, arg };
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	int rc;

	if (!from && !backwards && since_us) {
		change_key_audit(key, since_us, 0);
		from = key;
	} else if (!from && backwards && until_us) {
		change_key_audit(key, until_us, 0);
		from = key;
	}
	rc = store_each(st, TABLE_AUDIT, NULL, 0, from, from ? AUDIT_KEY_BYTES : 0, backwards, max,
			step, &w, err);
	gpuq_arena_done(&w.mem);
	return rc == PAST_THE_END ? 0 : rc;
}

/* ---- keeping it bounded ---- */

struct trim {
	struct gpuq_buf keys;
	size_t n, beyond; /* dropped so far; records over the number that is kept */
	int64_t before_us;
};

static int trim_one(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	struct trim *t = arg;

	(void)val, (void)val_len;
	if (key_len != AUDIT_KEY_BYTES)
		return 0;
	if (t->n >= t->beyond && change_key_audit_time(key) >= t->before_us)
		return PAST_THE_END;
	gpuq_buf_add(&t->keys, key, key_len);
	t->n++;
	return 0;
}

size_t audit_trim(struct journal *j, int64_t now_us)
{
	struct store *st = journal_store(j);
	struct trim t = { .before_us = now_us - GPUQ_AUDIT_KEEP_S * GPUQ_US_PER_S };
	struct event ev = { .type = EV_AUDIT_DROPPED };
	size_t there = store_count(st, TABLE_AUDIT);

	t.beyond = there > GPUQ_AUDIT_MAX ? there - GPUQ_AUDIT_MAX : 0;
	store_each(st, TABLE_AUDIT, NULL, 0, NULL, 0, false, TRIM_AT_ONCE, trim_one, &t, NULL);
	ev.audit_dropped.keys = (const unsigned char *)t.keys.data;
	ev.audit_dropped.n = t.keys.len / AUDIT_KEY_BYTES;
	if (t.keys.failed || ev.audit_dropped.n == 0 || journal_apply(j, &ev, NULL) < 0)
		ev.audit_dropped.n = 0;
	gpuq_buf_done(&t.keys);
	return ev.audit_dropped.n;
}
