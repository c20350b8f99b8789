#include "write.h"
#include "admit.h"
#include "audit.h"
#include "gc.h"
#include "patch.h"
#include "pods.h"
#include "quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *write_body(const struct call *call, struct reply *r)
{
	const struct http_req *req = call->req;
	json_error_t error;
	json_t *j;

	if (*req->content_type && !strstr(req->content_type, "json") &&
	    !strstr(req->content_type, "apply-patch+yaml")) {
		reply_error(
			r, 415, "UnsupportedMediaType", NULL, NULL,
			"the body of the request was in an unknown format - accepted media types "
			"include: application/json");
		return NULL;
	}
	j = json_loadb(req->body ? req->body : "", req->body_len, JSON_ALLOW_NUL, &error);
	if (!j)
		reply_error(
			r, 400, "BadRequest", NULL, NULL,
			"the object provided is unrecognized (must be of type %s): couldn't get "
			"version/kind; json parse error: %s at line %d column %d",
			call->kind ? call->kind->name : "Status", error.text, error.line,
			error.column);
	return j;
}

static json_t *body_object(const struct call *call, struct reply *r)
{
	json_t *j = write_body(call, r);

	if (j && !json_is_object(j)) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "the body must be a JSON object");
		json_decref(j);
		return NULL;
	}
	return j;
}

static const char *get_text(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s ? s : "";
}

/* kind, apiVersion, namespace and name of a body must fit the path. */
static int check_identity(const struct call *call, json_t *obj, struct reply *r)
{
	json_t *meta = json_object_get(obj, "metadata");
	const char *kind = get_text(obj, "kind"), *api = get_text(obj, "apiVersion");
	const char *ns;

	if ((*kind && strcmp(kind, call->kind->name) != 0) ||
	    (*api && strcmp(api, call->kind->api_version) != 0)) {
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "%s in version \"%s\" cannot be handled as a %s", kind, api,
			    call->kind->name);
		return -1;
	}
	if (!json_is_object(meta)) {
		json_object_set_new(obj, "metadata", json_object());
		meta = json_object_get(obj, "metadata");
	}
	ns = get_text(meta, "namespace");
	if (call->kind->namespaced && *ns && strcmp(ns, call->ns) != 0) {
		reply_error(
			r, 400, "BadRequest", NULL, NULL,
			"the namespace of the provided object does not match the namespace sent on "
			"the request");
		return -1;
	}
	if (*call->name && *get_text(meta, "name") &&
	    strcmp(get_text(meta, "name"), call->name) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "the name of the object (%s) does not match the name on the URL (%s)",
			    get_text(meta, "name"), call->name);
		return -1;
	}
	return 0;
}

static int check_namespace(const struct call *call, const char *name, struct reply *r)
{
	const struct obj *o;

	if (!call->kind->namespaced)
		return 0;
	o = store_find(&kinds[KIND_NAMESPACES], "", call->ns);
	if (!o) {
		reply_not_found(r, &kinds[KIND_NAMESPACES], call->ns);
		return -1;
	}
	if (o->v->deletion_us) {
		reply_causes(r, 403, "Forbidden", call->kind, name,
			     json_pack("[{s:s,s:s,s:s}]", "reason", "NamespaceTerminating",
				       "message", "namespace is being terminated", "field",
				       "metadata.namespace"),
			     "%s \"%s\" is forbidden: unable to create new content in namespace %s "
			     "because it is being terminated",
			     call->kind->plural, name, call->ns);
		return -1;
	}
	return 0;
}

static void generate_name(json_t *meta)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	const char *prefix = get_text(meta, "generateName");
	char name[64];
	size_t n = strlen(prefix);

	if (*get_text(meta, "name") || !n)
		return;
	n = n > 58 ? 58 : n;
	memcpy(name, prefix, n);
	for (size_t i = 0; i < 5; i++)
		name[n++] = letters[rand_u64() % (sizeof(letters) - 1)];
	name[n] = '\0';
	json_object_set_new(meta, "name", json_string(name));
}

/* Set the fields of a new object that the server alone decides. */
static void stamp(struct kind *kind, const char *ns, json_t *meta)
{
	char uid[UID_SIZE], now[TIME_TEXT_SIZE];

	uid_new(uid);
	json_object_set_new(meta, "uid", json_string(uid));
	json_object_set_new(meta, "creationTimestamp", json_string(time_text(now, now_us())));
	if (kind->namespaced)
		json_object_set_new(meta, "namespace", json_string(ns));
	json_object_del(meta, "deletionTimestamp");
	json_object_del(meta, "deletionGracePeriodSeconds");
	json_object_del(meta, "managedFields");
	if (kind == &kinds[KIND_PODS])
		json_object_set_new(meta, "generation", json_integer(1));
}

struct obj *write_new(struct kind *kind, const char *ns, const char *name, json_t *obj)
{
	json_t *meta = json_object_get(obj, "metadata");

	if (!meta) {
		meta = json_object();
		json_object_set_new(obj, "metadata", meta);
	}
	json_object_set_new(meta, "name", json_string(name));
	stamp(kind, ns, meta);
	return store_add(version_new(kind, obj, store_next_rv()));
}

static bool dry_run(const struct call *call)
{
	return http_param(call->req, "dryRun");
}

void write_create(const struct call *call, struct reply *r)
{
	json_t *obj = body_object(call, r), *meta;
	const struct obj *old;
	struct version *v;
	const char *name;

	if (!obj)
		return;
	if (check_identity(call, obj, r) != 0)
		goto out;
	meta = json_object_get(obj, "metadata");
	if (json_is_string(json_object_get(meta, "generateName")))
		generate_name(meta);
	name = get_text(meta, "name");
	if (check_namespace(call, name, r) != 0 || admit_create(call->kind, obj, r) != 0)
		goto out;
	stamp(call->kind, call->ns, meta);
	v = version_new(call->kind, obj, store_next_rv());
	/* Quota is asked before the name: a repeated create in a full namespace
	 * hears 403, not 409, as from the real server. */
	if (call->kind == &kinds[KIND_PODS] &&
	    quota_check(call->ns, name, &v->facts->pod.requests, r) != 0) {
		version_unref(v);
		goto out;
	}
	old = store_find(call->kind, call->ns, name);
	if (old) {
		reply_error(
			r, 409, "AlreadyExists", call->kind, name, "%s%s%s%s \"%s\" already exists",
			old->v->deletion_us ? "object is being deleted: " : "", call->kind->plural,
			*call->kind->group ? "." : "", call->kind->group, name);
		version_unref(v);
		goto out;
	}
	reply_object(r, 201, v);
	if (dry_run(call)) {
		version_unref(v);
		goto out;
	}
	store_add(v);
	audit_write("create", v);
	gc_check_owners(v);
out:
	json_decref(obj);
}

/* Restore fields that a client may not change; a status endpoint changes the status only, the
 * others all but it. */
static void keep_servers_part(const struct call *call, const json_t *was, json_t *now)
{
	static const char *const fixed[] = { "uid",
					     "creationTimestamp",
					     "deletionTimestamp",
					     "deletionGracePeriodSeconds",
					     "namespace",
					     "name",
					     "generation" };
	json_t *old_meta = json_object_get(was, "metadata");
	json_t *meta = json_object_get(now, "metadata");

	if (strcmp(call->sub, "status") == 0) {
		json_t *status = json_incref(json_object_get(now, "status"));

		json_object_clear(now);
		json_object_update(now, (json_t *)was);
		if (status)
			json_object_set_new(now, "status", status);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		json_t *value = json_object_get(old_meta, fixed[i]);

		if (value)
			json_object_set(meta, fixed[i], value);
		else
			json_object_del(meta, fixed[i]);
	}
	json_object_del(meta, "managedFields");
	if (json_object_get(was, "status"))
		json_object_set(now, "status", json_object_get(was, "status"));
}

static int check_preconditions(const struct version *v, const char *uid, const char *rv,
			       struct reply *r)
{
	const struct facts *f = v->facts;
	char have[24];

	snprintf(have, sizeof(have), "%llu", (unsigned long long)v->rv);
	if (uid && *uid && strcmp(uid, f->uid) != 0) {
		reply_error(
			r, 409, "Conflict", v->kind, f->name,
			"Operation cannot be fulfilled on %s \"%s\": Precondition failed: UID in "
			"precondition: %s, UID in object meta: %s",
			v->kind->plural, f->name, uid, f->uid);
		return -1;
	}
	if (rv && *rv && strcmp(rv, have) != 0) {
		reply_error(
			r, 409, "Conflict", v->kind, f->name,
			"Operation cannot be fulfilled on %s \"%s\": the object has been modified; "
			"please apply your changes to the latest version and try again",
			v->kind->plural, f->name);
		return -1;
	}
	return 0;
}

/* Everything but the resourceVersion is the same. */
static bool same_text(const struct version *a, const struct version *b)
{
	const size_t a_rest = a->len - a->rv_off - a->rv_len;
	const size_t b_rest = b->len - b->rv_off - b->rv_len;

	return a->rv_off == b->rv_off && a_rest == b_rest && memcmp(a->s, b->s, a->rv_off) == 0 &&
	       memcmp(a->s + a->rv_off + a->rv_len, b->s + b->rv_off + b->rv_len, a_rest) == 0;
}

static json_t *patched(const struct call *call, const json_t *was, struct reply *r)
{
	const char *type = call->req->content_type;
	json_t *now, *patch = write_body(call, r);
	const char *why = NULL;

	if (!patch)
		return NULL;
	now = json_deep_copy(was);
	json_object_del(json_object_get(now, "metadata"), "resourceVersion");
	if (strncmp(type, "application/json-patch+json", 27) == 0) {
		if (patch_json(&now, patch, &why) != 0)
			reply_error(r, 422, "Invalid", call->kind, call->name,
				    "the server rejected our request due to an error in our "
				    "request: %s",
				    why);
	} else if (strncmp(type, "application/merge-patch+json", 28) == 0 ||
		   strncmp(type, "application/strategic-merge-patch+json", 38) == 0) {
		if (json_is_object(patch))
			patch_merge(now, patch, type[12] == 's');
		else
			reply_error(r, 400, "BadRequest", NULL, NULL,
				    "a patch must be a JSON object");
	} else {
		reply_error(
			r, 415, "UnsupportedMediaType", NULL, NULL,
			"the body of the request was in an unknown format - accepted media types "
			"include: application/json-patch+json, application/merge-patch+json, "
			"application/strategic-merge-patch+json");
	}
	json_decref(patch);
	if (!r->code && !json_is_object(json_object_get(now, "metadata")))
		reply_error(r, 422, "Invalid", call->kind, call->name, "metadata: Required value");
	if (r->code) {
		json_decref(now);
		return NULL;
	}
	return now;
}

void write_update(const struct call *call, struct reply *r)
{
	struct obj *o = store_find(call->kind, call->ns, call->name);
	json_t *was = NULL, *now = NULL;
	struct version *v;
	const json_t *meta;

	if (!o) {
		reply_not_found(r, call->kind, call->name);
		return;
	}
	was = version_json(o->v);
	if (!was) {
		reply_error(r, 500, "InternalError", call->kind, call->name,
			    "this object was poisoned on purpose and cannot be changed");
		return;
	}
	now = call->verb == VERB_PATCH ? patched(call, was, r) : body_object(call, r);
	if (!now || (call->verb == VERB_PUT && check_identity(call, now, r) != 0))
		goto out;
	meta = json_object_get(now, "metadata");
	if (call->verb == VERB_PATCH && *get_text(meta, "uid") &&
	    strcmp(get_text(meta, "uid"), o->v->facts->uid) != 0) {
		reply_causes(r, 422, "Invalid", call->kind, call->name,
			     json_pack("[{s:s,s:s,s:s}]", "reason", "FieldValueInvalid", "message",
				       "Invalid value: field is immutable", "field",
				       "metadata.uid"),
			     "%s \"%s\" is invalid: metadata.uid: Invalid value: \"%s\": field is "
			     "immutable",
			     call->kind->name, call->name, get_text(meta, "uid"));
		goto out;
	}
	if (check_preconditions(o->v, get_text(meta, "uid"), get_text(meta, "resourceVersion"),
				r) != 0)
		goto out;
	keep_servers_part(call, was, now);
	if (admit_update(o->v, now, r) != 0)
		goto out;
	v = version_new(call->kind, now, store_next_rv());
	if (same_text(v, o->v) || dry_run(call)) {
		reply_object(r, 200, dry_run(call) ? v : o->v);
		version_unref(v);
		goto out;
	}
	reply_object(r, 200, v);
	store_update(o, v);
	audit_write(call->verb == VERB_PATCH ? "patch" : "update", v);
	write_remove_if_done(o);
out:
	json_decref(was);
	json_decref(now);
}

void write_remove_if_done(struct obj *o)
{
	if (o->v->deletion_us && o->v->deletion_grace_s == 0 && o->v->facts->n_finalizers == 0)
		store_remove(o);
}

bool write_delete_object(struct obj *o, const struct delete_options *opt)
{
	struct version_edit e = { .deletion_us = now_us() };

	if (o->v->kind == &kinds[KIND_PODS])
		return pods_delete(o, opt);
	if (o->v->kind == &kinds[KIND_NAMESPACES]) {
		gc_delete_namespace(o);
		return false;
	}
	if (o->v->facts->n_finalizers == 0) {
		store_remove(o);
		return true;
	}
	if (!o->v->deletion_us)
		store_update(o, version_edit(o->v, store_next_rv(), &e));
	return false;
}

static int read_options(const struct call *call, json_t **body, struct delete_options *opt,
			struct reply *r)
{
	const char *grace = http_param(call->req, "gracePeriodSeconds");
	const json_t *j;
	uint64_t n;

	*opt = (struct delete_options){ .grace_s = -1 };
	*body = NULL;
	if (grace && uint_parse(grace, &n) == 0 && n <= INT32_MAX)
		opt->grace_s = (int64_t)n;
	if (call->req->body_len == 0)
		return 0;
	*body = body_object(call, r);
	if (!*body)
		return -1;
	j = json_object_get(*body, "gracePeriodSeconds");
	if (json_is_integer(j))
		opt->grace_s = json_integer_value(j);
	if (opt->grace_s < -1) {
		reply_error(r, 422, "Invalid", NULL, NULL,
			    "DeleteOptions is invalid: gracePeriodSeconds: Invalid value");
		return -1;
	}
	j = json_object_get(*body, "preconditions");
	opt->uid = json_string_value(json_object_get(j, "uid"));
	opt->rv = json_string_value(json_object_get(j, "resourceVersion"));
	return 0;
}

void write_delete(const struct call *call, struct reply *r)
{
	struct obj *o = store_find(call->kind, call->ns, call->name);
	struct delete_options opt;
	struct version *before;
	json_t *body = NULL;
	bool gone;

	if (read_options(call, &body, &opt, r) != 0)
		goto out;
	if (!o) {
		reply_not_found(r, call->kind, call->name);
		goto out;
	}
	if (check_preconditions(o->v, opt.uid, opt.rv, r) != 0)
		goto out;
	before = version_ref(o->v);
	if (dry_run(call)) {
		reply_object(r, 200, before);
	} else {
		gone = write_delete_object(o, &opt);
		audit_write("delete", before);
		if (gone && call->kind != &kinds[KIND_PODS] && call->kind != &kinds[KIND_SERVICES])
			reply_success(r, 200);
		else
			reply_object(r, 200, gone ? store_event(store_rv())->cur : o->v);
	}
	version_unref(before);
out:
	json_decref(body);
}
