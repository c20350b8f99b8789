#include "quota.h"
#include "write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct usage {
	UT_hash_handle hh;
	struct res used;
	bool dirty;
	char ns[];
};

static struct usage *usages;
static struct event *sync_timer;

/* Terminated pods are not charged. */
static const struct res *charge_of(const struct version *v)
{
	return v && !phase_terminal(v->phase) ? &v->facts->pod.requests : NULL;
}

static struct usage *usage_get(const char *ns)
{
	struct usage *u;

	HASH_FIND_STR(usages, ns, u);
	if (!u) {
		u = xcalloc(1, sizeof(*u) + strlen(ns) + 1);
		strcpy(u->ns, ns);
		HASH_ADD_STR(usages, ns, u);
	}
	return u;
}

static void mark_dirty(struct usage *u)
{
	const struct timeval tv = { 0, 20 * 1000 };

	u->dirty = true;
	if (store_count(&kinds[KIND_QUOTAS]) && !evtimer_pending(sync_timer, NULL))
		evtimer_add(sync_timer, &tv);
}

static void charge(struct usage *u, const struct res *r, int sign)
{
	struct res one = *r;

	res_set(&one, RES_PODS, 1);
	res_add(&u->used, &one, sign);
	mark_dirty(u);
}

static void on_event(const struct event *e)
{
	const struct res *now, *before;
	struct usage *u;

	if (e->cur->kind == &kinds[KIND_QUOTAS])
		mark_dirty(usage_get(e->cur->facts->ns));
	if (e->cur->kind != &kinds[KIND_PODS])
		return;
	now = e->type == EVENT_DELETED ? NULL : charge_of(e->cur);
	before = charge_of(e->prev);
	if (!now == !before)
		return;
	u = usage_get(e->cur->facts->ns);
	charge(u, now ? now : before, now ? 1 : -1);
}

static void on_reset(void)
{
	struct usage *u, *tmp;
	struct obj *o, *otmp;

	HASH_ITER(hh, usages, u, tmp)
		u->used.n = 0;
	HASH_ITER(hh, kinds[KIND_PODS].objs, o, otmp) {
		if (charge_of(o->v))
			charge(usage_get(o->v->facts->ns), charge_of(o->v), 1);
	}
}

/* The resource that a quota's key limits, or -1 for keys that pods do not count for. */
static int quota_resource(const char *key)
{
	if (strcmp(key, "pods") == 0 || strcmp(key, "count/pods") == 0)
		return RES_PODS;
	if (strncmp(key, "requests.", 9) == 0)
		return res_id(key + 9);
	if (strcmp(key, "cpu") == 0 || strcmp(key, "memory") == 0)
		return res_id(key);
	return -1;
}

static void add_amount(struct buf *b, const char *key, int id, int64_t value)
{
	if (b->len)
		buf_adds(b, ",");
	if (id == RES_CPU && value % 1000)
		buf_addf(b, "%s=%lldm", key, (long long)value);
	else
		buf_addf(b, "%s=%lld", key, (long long)(id == RES_CPU ? value / 1000 : value));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One quota against one pod. Returns -1 when r refuses. */
static int check_one(const struct obj *quota, const char *pod, const struct res *want,
		     struct reply *r)
{
	struct buf requested = BUF_INIT, used = BUF_INIT, limited = BUF_INIT;
	const struct usage *u = usage_get(quota->v->facts->ns);
	json_t *j = version_json(quota->v);
	json_t *hard = json_object_get(json_object_get(j, "spec"), "hard");
	struct res limit;
	const char *keys[RES_MAX], *key;
	size_t n = 0;
	json_t *q;
	int rc = 0;

	res_read(&limit, hard);
	json_object_foreach(hard, key, q)
	{
		if (n < RES_MAX)
			keys[n++] = key;
	}
	qsort(keys, n, sizeof(*keys), by_name);
	for (size_t i = 0; i < n; i++) {
		const int id = quota_resource(keys[i]);
		const int64_t most = res_get(&limit, res_id(keys[i]));
		const int64_t ask = id < 0 ? 0 : res_get(want, id);
		/* res_read rounds what is not called cpu to whole ones */
		const int64_t scale = id == RES_CPU && strcmp(keys[i], "cpu") != 0 ? 1000 : 1;

		if (ask <= 0 || res_get(&u->used, id) + ask <= most * scale)
			continue;
		add_amount(&requested, keys[i], id, ask);
		add_amount(&used, keys[i], id, res_get(&u->used, id));
		add_amount(&limited, keys[i], id, most * scale);
	}
	if (requested.len) {
		reply_error(
			r, 403, "Forbidden", &kinds[KIND_PODS], pod,
			"pods \"%s\" is forbidden: exceeded quota: %s, requested: %s, used: %s, "
			"limited: %s",
			pod, quota->v->facts->name, requested.s, used.s, limited.s);
		rc = -1;
	}
	json_decref(j);
	buf_done(&requested);
	buf_done(&used);
	buf_done(&limited);
	return rc;
}

int quota_check(const char *ns, const char *pod, const struct res *want, struct reply *r)
{
	struct res all = *want;
	struct obj *o, *tmp;

	res_set(&all, RES_PODS, 1);
	HASH_ITER(hh, kinds[KIND_QUOTAS].objs, o, tmp) {
		if (strcmp(o->v->facts->ns, ns) == 0 && check_one(o, pod, &all, r) != 0)
			return -1;
	}
	return 0;
}

/* status.used, as the quota controller writes it a moment later. */
static void sync_one(struct obj *o)
{
	const struct usage *u = usage_get(o->v->facts->ns);
	json_t *j = version_json(o->v), *used = json_object(), *q;
	json_t *hard = json_object_get(json_object_get(j, "spec"), "hard");
	struct version *v;
	const char *key;

	json_object_foreach(hard, key, q)
	{
		const int id = quota_resource(key);
		const int64_t value = id < 0 ? 0 : res_get(&u->used, id);
		char text[32];

		if (id == RES_CPU && value % 1000)
			snprintf(text, sizeof(text), "%lldm", (long long)value);
		else
			snprintf(text, sizeof(text), "%lld",
				 (long long)(id == RES_CPU ? value / 1000 : value));
		json_object_set_new(used, key, json_string(text));
	}
	q = json_object_get(json_object_get(j, "status"), "used");
	if (!json_equal(q, used)) {
		json_object_set_new(j, "status",
				    json_pack("{s:O?,s:O}", "hard", hard, "used", used));
		v = version_new(o->v->kind, j, store_next_rv());
		store_update(o, v);
	}
	json_decref(used);
	json_decref(j);
}

static void on_sync(evutil_socket_t fd, short what, void *arg)
{
	struct usage *u, *utmp;
	struct obj *o, *tmp;

	(void)fd;
	(void)what;
	(void)arg;
	HASH_ITER(hh, kinds[KIND_QUOTAS].objs, o, tmp) {
		if (usage_get(o->v->facts->ns)->dirty)
			sync_one(o);
	}
	HASH_ITER(hh, usages, u, utmp)
		u->dirty = false;
	evtimer_del(sync_timer); /* sync_one's own event marked it */
}

void quota_init(struct event_base *base)
{
	sync_timer = evtimer_new(base, on_sync, NULL);
	store_listen(on_event, on_reset);
}

void quota_done(void)
{
	struct usage *u, *tmp;

	HASH_ITER(hh, usages, u, tmp) {
		HASH_DEL(usages, u);
		free(u);
	}
	event_free(sync_timer);
}
