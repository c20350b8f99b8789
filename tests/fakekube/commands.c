#include "commands.h"
#include "api.h"
#include "audit.h"
#include "facts.h"
#include "faults.h"
#include "kubelet.h"
#include "list.h"
#include "nodes.h"
#include "pods.h"
#include "poison.h"
#include "watch.h"
#include "write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct event *up_timer;

static uint64_t number(const char *s, uint64_t otherwise)
{
	uint64_t n = otherwise;

	if (s && uint_parse(s, &n) != 0)
		n = otherwise;
	return n;
}

static json_t *done(void)
{
	return json_pack("{s:I}", "resourceVersion", (json_int_t)store_rv());
}

static json_t *node_result(int rc, const char *name, struct buf *why)
{
	if (rc == 0)
		return done();
	buf_addf(why, "no such node: %s", name);
	return NULL;
}

static json_t *run_node_down(const struct args *a, struct buf *why)
{
	audit_note("node-down", a->arg[0]);
	return node_result(nodes_set_ready(a->arg[0], false), a->arg[0], why);
}

static json_t *run_node_up(const struct args *a, struct buf *why)
{
	audit_note("node-up", a->arg[0]);
	return node_result(nodes_set_ready(a->arg[0], true), a->arg[0], why);
}

static json_t *run_node_gone(const struct args *a, struct buf *why)
{
	audit_note("node-gone", a->arg[0]);
	return node_result(nodes_remove(a->arg[0]), a->arg[0], why);
}

static json_t *run_node_reboot(const struct args *a, struct buf *why)
{
	audit_note("node-reboot", a->arg[0]);
	return node_result(kubelet_node_reboot(a->arg[0]), a->arg[0], why);
}

static json_t *run_node_add(const struct args *a, struct buf *why)
{
	(void)why;
	nodes_add(a->arg[0], (unsigned)number(a->option[0], node_shape.gpus));
	return done();
}

static json_t *run_cordon(const struct args *a, struct buf *why)
{
	return node_result(nodes_cordon(a->arg[0], true), a->arg[0], why);
}

static json_t *run_uncordon(const struct args *a, struct buf *why)
{
	return node_result(nodes_cordon(a->arg[0], false), a->arg[0], why);
}

static const char *check_devices(const struct args *a)
{
	const char *eq = strchr(a->arg[0], '=');
	uint64_t n;

	return eq && eq != a->arg[0] && uint_parse(eq + 1, &n) == 0 && n < 10000
		       ? NULL
		       : "devices: expected NODE=NUMBER";
}

static json_t *run_devices(const struct args *a, struct buf *why)
{
	const char *eq = strchr(a->arg[0], '=');
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)(eq - a->arg[0]), a->arg[0]);
	return node_result(nodes_set_devices(name, (unsigned)number(eq + 1, 0)), name, why);
}

/* "ns/name" or "name" (namespace default). */
static struct obj *pod_named(const char *text, struct buf *why)
{
	const char *slash = strchr(text, '/');
	char ns[256] = "default";
	struct obj *o;

	if (slash)
		snprintf(ns, sizeof(ns), "%.*s", (int)(slash - text), text);
	o = store_find(&kinds[KIND_PODS], ns, slash ? slash + 1 : text);
	if (!o)
		buf_addf(why, "no such pod: %s (say NAMESPACE/NAME)", text);
	return o;
}

static json_t *run_delete_pod(const struct args *a, struct buf *why)
{
	struct delete_options opt = { .grace_s = -1 };
	struct obj *o = pod_named(a->arg[0], why);
	struct version *before;

	if (!o)
		return NULL;
	if (a->option[0])
		opt.grace_s = (int64_t)number(a->option[0], 0);
	before = version_ref(o->v);
	pods_delete(o, &opt);
	audit_write("script-delete", before);
	version_unref(before);
	return done();
}

static const char *check_label(const struct args *a)
{
	return strchr(a->arg[1], '=') ? NULL : "label-pod: expected POD KEY=VALUE (KEY= removes)";
}

static json_t *run_label_pod(const struct args *a, struct buf *why)
{
	struct obj *o = pod_named(a->arg[0], why);
	const char *eq = strchr(a->arg[1], '=');
	json_t *j, *labels;
	char key[320];

	if (!o)
		return NULL;
	j = version_json(o->v);
	if (!j) {
		buf_addf(why, "%s is a poison pod", a->arg[0]);
		return NULL;
	}
	snprintf(key, sizeof(key), "%.*s", (int)(eq - a->arg[1]), a->arg[1]);
	labels = json_object_get(json_object_get(j, "metadata"), "labels");
	if (!labels) {
		labels = json_object();
		json_object_set_new(json_object_get(j, "metadata"), "labels", labels);
	}
	if (eq[1])
		json_object_set_new(labels, key, json_string(eq + 1));
	else
		json_object_del(labels, key);
	store_update(o, version_new(o->v->kind, j, store_next_rv()));
	json_decref(j);
	return done();
}

static json_t *run_foreign(const struct args *a, struct buf *why)
{
	const char *name = a->option[1] ? a->option[1] : NULL;
	char made[64];

	if (!store_find(&kinds[KIND_NODES], "", a->arg[0])) {
		buf_addf(why, "no such node: %s", a->arg[0]);
		return NULL;
	}
	if (!name) {
		snprintf(made, sizeof(made), "foreign-rv%llu", (unsigned long long)store_next_rv());
		name = made;
	}
	if (store_find(&kinds[KIND_PODS], "foreign", name)) {
		buf_addf(why, "there is a pod foreign/%s already", name);
		return NULL;
	}
	nodes_add_foreign_on(a->arg[0], name, (unsigned)number(a->option[0], 1));
	return done();
}

static json_t *run_rewind(const struct args *a, struct buf *why)
{
	const uint64_t back = number(a->option[1], 0);
	const uint64_t to = a->option[0]        ? number(a->option[0], 0)
			    : back < store_rv() ? store_rv() - back
						: 0;
	char text[64];

	if (!a->option[0] == !a->option[1]) {
		buf_adds(why, "rewind: expected to=RV or back=N");
		return NULL;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)to);
	audit_note("rewind", text);
	list_forget();
	if (store_rewind(to) != 0) {
		buf_addf(why, "cannot go to %llu: the history reaches from %llu to %llu",
			 (unsigned long long)to, (unsigned long long)store_oldest_rv(),
			 (unsigned long long)store_rv());
		return NULL;
	}
	return done();
}

static json_t *run_compact(const struct args *a, struct buf *why)
{
	(void)why;
	store_compact(number(a->option[0], store_rv()));
	list_forget();
	return done();
}

static const char *check_poison(const struct args *a)
{
	if (strcmp(a->arg[0], "pod") != 0)
		return "poison: expected pod";
	return poison_known(a->option[0] ? a->option[0] : "nul")
		       ? NULL
		       : "poison: kind is one of nul, hugeint, big, deep, badutf8, types";
}

static json_t *run_poison(const struct args *a, struct buf *why)
{
	const char *kind = a->option[0] ? a->option[0] : "nul";
	char made[64];

	snprintf(made, sizeof(made), "poison-%s-rv%llu", kind, (unsigned long long)store_next_rv());
	if (poison_add(kind, a->option[2] ? a->option[2] : "default",
		       a->option[1] ? a->option[1] : made, a->option[3] ? a->option[3] : "") != 0) {
		buf_addf(why, "there is such a pod already");
		return NULL;
	}
	return done();
}

static void on_up(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	http_listen_again();
}

static const char *check_time(const struct args *a)
{
	int64_t us;

	return duration_parse(a->arg[0], &us) == 0 ? NULL : "expected a time such as 3s";
}

static json_t *go_away(const struct args *a, bool quiet)
{
	struct timeval tv;
	int64_t us = 0;

	duration_parse(a->arg[0], &us);
	tv = (struct timeval){ us / SECOND_US, us % SECOND_US };
	http_listen_stop(quiet);
	http_drop_all(a->keep);
	evtimer_add(up_timer, &tv);
	return done();
}

static json_t *run_down(const struct args *a, struct buf *why)
{
	(void)why;
	audit_note("down", a->arg[0]);
	return go_away(a, false);
}

static json_t *run_blackhole(const struct args *a, struct buf *why)
{
	(void)why;
	audit_note("blackhole", a->arg[0]);
	return go_away(a, true);
}

static json_t *run_close_watches(const struct args *a, struct buf *why)
{
	(void)a;
	(void)why;
	watch_close_all();
	return done();
}

static json_t *run_clear(const struct args *a, struct buf *why)
{
	(void)a;
	(void)why;
	rules_clear();
	return done();
}

static json_t *run_token(const struct args *a, struct buf *why)
{
	(void)why;
	api_set_token(a->arg[0]);
	return done();
}

/* Keep in step with the help in script.c. */
const struct command commands[] = {
	/* clang-format off */
	{ "blackhole",     1, 1, { NULL }, check_time, run_blackhole },
	{ "clear",         0, 0, { NULL }, NULL, run_clear },
	{ "close-watches", 0, 0, { NULL }, NULL, run_close_watches },
	{ "compact",       0, 0, { "to:u" }, NULL, run_compact },
	{ "cordon",        1, 1, { NULL }, NULL, run_cordon },
	{ "delete-pod",    1, 1, { "grace:u" }, NULL, run_delete_pod },
	{ "devices",       1, 1, { NULL }, check_devices, run_devices },
	{ "down",          1, 1, { NULL }, check_time, run_down },
	{ "foreign",       1, 1, { "gpus:u", "name:t" }, NULL, run_foreign },
	{ "label-pod",     2, 2, { NULL }, check_label, run_label_pod },
	{ "node-add",      1, 1, { "gpus:u" }, NULL, run_node_add },
	{ "node-down",     1, 1, { NULL }, NULL, run_node_down },
	{ "node-gone",     1, 1, { NULL }, NULL, run_node_gone },
	{ "node-reboot",   1, 1, { NULL }, NULL, run_node_reboot },
	{ "node-up",       1, 1, { NULL }, NULL, run_node_up },
	{ "poison",        1, 1, { "kind:t", "name:t", "ns:t", "node:t" }, check_poison, run_poison },
	{ "rewind",        0, 0, { "to:u", "back:u" }, NULL, run_rewind },
	{ "token",         1, 1, { NULL }, NULL, run_token },
	{ "uncordon",      1, 1, { NULL }, NULL, run_uncordon },
	/* clang-format on */
};
const size_t n_commands = ARRAY_LEN(commands);

void commands_init(struct event_base *base)
{
	up_timer = evtimer_new(base, on_up, NULL);
}

void commands_done(void)
{
	event_free(up_timer);
}
