#include "pods.h"
#include "audit.h"

#include <stdlib.h>
#include <string.h>

/* Change the JSON of an object and enter it. */
static void commit(struct obj *o, json_t *j)
{
	store_update(o, version_new(o->v->kind, j, store_next_rv()));
}

static json_t *condition(const char *type, const char *reason, const char *message)
{
	char now[TIME_TEXT_SIZE];

	return json_pack("{s:s,s:s,s:n,s:s,s:s*,s:s*}", "type", type, "status", "True",
			 "lastProbeTime", "lastTransitionTime", time_text(now, now_us()), "reason",
			 reason, "message", message);
}

static void set_condition(json_t *pod, const char *type, const char *reason, const char *message)
{
	json_t *status = json_object_get(pod, "status"), *list, *c;
	size_t i;

	if (!status) {
		status = json_object();
		json_object_set_new(pod, "status", status);
	}
	list = json_object_get(status, "conditions");
	if (!json_is_array(list)) {
		list = json_array();
		json_object_set_new(status, "conditions", list);
	}
	json_array_foreach(list, i, c)
	{
		const char *have = json_string_value(json_object_get(c, "type"));

		if (have && strcmp(have, type) == 0) {
			json_array_remove(list, i);
			break;
		}
	}
	json_array_append_new(list, condition(type, reason, message));
}

void pods_add_condition(struct obj *o, const char *type, const char *reason, const char *message)
{
	json_t *j = version_json(o->v);

	if (!j)
		return;
	set_condition(j, type, reason, message);
	if (strcmp(reason, "DeletionByPodGC") == 0)
		json_object_set_new(json_object_get(j, "status"), "phase", json_string("Failed"));
	commit(o, j);
	json_decref(j);
}

static struct obj *find(const struct call *call, struct reply *r)
{
	struct obj *o = store_find(call->kind, call->ns, call->name);

	if (!o)
		reply_not_found(r, call->kind, call->name);
	return o;
}

static void conflict(struct reply *r, const struct obj *o, const char *what, const char *why)
{
	reply_error(r, 409, "Conflict", &kinds[KIND_PODS], o->v->facts->name,
		    "Operation cannot be fulfilled on pods%s \"%s\": %s", what, o->v->facts->name,
		    why);
}

void pods_bind(const struct call *call, struct reply *r)
{
	json_t *body = write_body(call, r), *j, *annotations;
	const char *node = NULL, *uid = NULL;
	const struct pod_facts *f;
	struct obj *o;
	char why[400];

	if (!body)
		return;
	node = json_string_value(json_object_get(json_object_get(body, "target"), "name"));
	uid = json_string_value(json_object_get(json_object_get(body, "metadata"), "uid"));
	o = find(call, r);
	if (!o)
		goto out;
	f = &o->v->facts->pod;
	if (!node || !*node) {
		reply_error(r, 422, "Invalid", &kinds[KIND_PODS], call->name,
			    "Binding \"%s\" is invalid: target.name: Required value", call->name);
		goto out;
	}
	if (uid && *uid && strcmp(uid, o->v->facts->uid) != 0) {
		snprintf(why, sizeof(why),
			 "Precondition failed: UID in precondition: %s, UID in object meta: %s",
			 uid, o->v->facts->uid);
		conflict(r, o, "/binding", why);
		goto out;
	}
	if (o->v->deletion_us) {
		snprintf(why, sizeof(why), "pod %s is being deleted, cannot be assigned to a host",
			 call->name);
		conflict(r, o, "/binding", why);
		goto out;
	}
	if (*f->node) {
		snprintf(why, sizeof(why), "pod %s is already assigned to node \"%s\"", call->name,
			 f->node);
		conflict(r, o, "/binding", why);
		goto out;
	}
	if (f->n_gates) {
		snprintf(why, sizeof(why), "pod %s has non-empty .spec.schedulingGates",
			 call->name);
		conflict(r, o, "/binding", why);
		goto out;
	}
	j = version_json(o->v);
	if (!j) {
		conflict(r, o, "/binding", "this pod was poisoned on purpose");
		goto out;
	}
	json_object_set_new(json_object_get(j, "spec"), "nodeName", json_string(node));
	annotations = json_object_get(json_object_get(body, "metadata"), "annotations");
	if (json_is_object(annotations)) {
		json_t *meta = json_object_get(j, "metadata");

		if (!json_is_object(json_object_get(meta, "annotations")))
			json_object_set_new(meta, "annotations", json_object());
		json_object_update(json_object_get(meta, "annotations"), annotations);
	}
	set_condition(j, "PodScheduled", NULL, NULL);
	commit(o, j);
	json_decref(j);
	audit_write("bind", o->v);
	reply_success(r, 201);
out:
	json_decref(body);
}

static bool vanishes_at_once(const struct version *v, int64_t grace_s)
{
	return !*v->facts->pod.node || phase_terminal(v->phase) || grace_s == 0;
}

/* Mark as being deleted; on a second call only shorten the grace. */
static void mark_deleted(struct obj *o, int64_t grace_s)
{
	const struct version *v = o->v;
	struct version_edit e = { .deletion_us = now_us() + grace_s * SECOND_US,
				  .deletion_grace_s = grace_s };
	char when[TIME_TEXT_SIZE];
	json_t *j, *meta;

	if (!v->deletion_us) {
		store_update(o, version_edit(v, store_next_rv(), &e));
		return;
	}
	if (grace_s >= v->deletion_grace_s || v->raw)
		return;
	j = version_json(v);
	meta = json_object_get(j, "metadata");
	json_object_set_new(meta, "deletionTimestamp", json_string(time_text(when, e.deletion_us)));
	json_object_set_new(meta, "deletionGracePeriodSeconds", json_integer(grace_s));
	commit(o, j);
	json_decref(j);
}

bool pods_delete(struct obj *o, const struct delete_options *opt)
{
	const int64_t grace_s = opt->grace_s >= 0 ? opt->grace_s : o->v->facts->pod.grace_s;

	if (!vanishes_at_once(o->v, grace_s)) {
		mark_deleted(o, grace_s);
		return false;
	}
	/* Watchers see the mark before the end, as from a real server. */
	mark_deleted(o, 0);
	if (o->v->facts->n_finalizers)
		return false;
	store_remove(o);
	return true;
}

void pods_finish(struct obj *o)
{
	const struct delete_options now = { .grace_s = 0 };

	pods_delete(o, &now);
}

void pods_evict(const struct call *call, struct reply *r)
{
	json_t *body = write_body(call, r), *options;
	struct delete_options opt = { .grace_s = -1 };
	struct version *before;
	struct obj *o;

	if (!body)
		return;
	o = find(call, r);
	if (!o)
		goto out;
	options = json_object_get(body, "deleteOptions");
	opt.uid = json_string_value(
		json_object_get(json_object_get(options, "preconditions"), "uid"));
	if (json_is_integer(json_object_get(options, "gracePeriodSeconds")))
		opt.grace_s = json_integer_value(json_object_get(options, "gracePeriodSeconds"));
	if (opt.uid && strcmp(opt.uid, o->v->facts->uid) != 0) {
		conflict(r, o, "", "Precondition failed: UID in precondition does not match");
		goto out;
	}
	if (!vanishes_at_once(o->v, opt.grace_s))
		pods_add_condition(o, "DisruptionTarget", "EvictionByEvictionAPI",
				   "Eviction API: evicting");
	before = version_ref(o->v);
	pods_delete(o, &opt);
	audit_write("evict", before);
	version_unref(before);
	reply_success(r, 201);
out:
	json_decref(body);
}
