#include "control.h"
#include "audit.h"
#include "faults.h"
#include "script.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reply_json(struct reply *r, int code, json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);

	reply_text(r, code, "application/json", text);
	buf_adds(&r->body, "\n");
	free(text);
	json_decref(j);
}

static json_t *resource_list(const char *group, const char *version)
{
	json_t *list = json_array();
	char api_version[64];
	bool any = false;

	snprintf(api_version, sizeof(api_version), "%s%s%s", group, *group ? "/" : "", version);
	for (size_t i = 0; i < KIND_COUNT; i++) {
		static const char *const subs[] = { "binding", "eviction", "log", "status" };
		const struct kind *k = &kinds[i];

		if (strcmp(k->group, group) != 0 || strcmp(k->version, version) != 0)
			continue;
		any = true;
		json_array_append_new(
			list, json_pack("{s:s,s:s,s:b,s:s,s:[s,s,s,s,s,s,s,s]}", "name", k->plural,
					"singularName", "", "namespaced", k->namespaced, "kind",
					k->name, "verbs", "create", "delete", "deletecollection",
					"get", "list", "patch", "update", "watch"));
		for (size_t n = 0; i == KIND_PODS && n < ARRAY_LEN(subs); n++)
			json_array_append_new(list,
					      json_pack("{s:o,s:s,s:b,s:s,s:[s]}", "name",
							json_sprintf("pods/%s", subs[n]),
							"singularName", "", "namespaced", 1, "kind",
							"Pod", "verbs", n < 2 ? "create" : "get"));
	}
	if (!any) {
		json_decref(list);
		return NULL;
	}
	return json_pack("{s:s,s:s,s:s,s:o}", "kind", "APIResourceList", "apiVersion", "v1",
			 "groupVersion", api_version, "resources", list);
}

static json_t *group_list(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < KIND_COUNT; i++) {
		const struct kind *k = &kinds[i];

		if (*k->group)
			json_array_append_new(list,
					      json_pack("{s:s,s:[{s:s,s:s}],s:{s:s,s:s}}", "name",
							k->group, "versions", "groupVersion",
							k->api_version, "version", k->version,
							"preferredVersion", "groupVersion",
							k->api_version, "version", k->version));
	}
	return json_pack("{s:s,s:s,s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups",
			 list);
}

bool discovery_get(const struct http_req *req, struct reply *r)
{
	const char *path = req->path;
	char group[64], version[16];
	int end = 0;
	json_t *j;

	if (strcmp(path, "/readyz") == 0 || strcmp(path, "/livez") == 0 ||
	    strcmp(path, "/healthz") == 0) {
		reply_text(r, 200, "text/plain", "ok");
		return true;
	}
	if (strcmp(path, "/version") == 0) {
		reply_json(r, 200,
			   json_pack("{s:s,s:s,s:s,s:s,s:s}", "major", "1", "minor", "36",
				     "gitVersion", "v1.36.3-fakekube", "platform", "linux/amd64",
				     "goVersion", "none"));
		return true;
	}
	if (strcmp(path, "/api") == 0) {
		reply_json(r, 200,
			   json_pack("{s:s,s:[s],s:[]}", "kind", "APIVersions", "versions", "v1",
				     "serverAddressByClientCIDRs"));
		return true;
	}
	if (strcmp(path, "/apis") == 0) {
		reply_json(r, 200, group_list());
		return true;
	}
	if (strcmp(path, "/api/v1") == 0)
		j = resource_list("", "v1");
	else if (sscanf(path, "/apis/%63[^/]/%15[^/]%n", group, version, &end) == 2 && !path[end])
		j = resource_list(group, version);
	else
		return false;
	if (!j)
		return false;
	reply_json(r, 200, j);
	return true;
}

static const char *denied = "";

void review_deny(const char *list)
{
	denied = list;
}

bool review_post(const struct http_req *req, struct reply *r)
{
	const char *verb = "", *resource = "", *sub = "";
	char text[200];
	const char *at;
	json_t *j;
	bool deny;
	size_t n;

	if (strcmp(req->path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") != 0 ||
	    strcmp(req->method, "POST") != 0)
		return false;
	j = json_loadb(req->body, req->body_len, 0, NULL);
	if (!j || json_unpack(j, "{s:{s:{s:s,s:s,s:s}}}", "spec", "resourceAttributes", "verb",
			      &verb, "resource", &resource, "subresource", &sub) != 0) {
		json_decref(j);
		reply_text(r, 400, "text/plain", "no review");
		return true;
	}
	n = (size_t)snprintf(text, sizeof(text), "%s/%s%s%s", verb, resource, *sub ? "/" : "", sub);
	at = strstr(denied, text);
	deny = at && (at == denied || at[-1] == ',') && (at[n] == '\0' || at[n] == ',');
	json_object_set_new(j, "status",
			    json_pack("{s:b,s:s}", "allowed", !deny, "reason",
				      deny ? "no rule of RBAC" : "RBAC: allowed"));
	reply_json(r, 201, j);
	return true;
}

static json_t *state_json(void)
{
	json_t *counts = json_object();

	for (size_t i = 0; i < KIND_COUNT; i++)
		if (kind_by_plural(kinds[i].plural) == &kinds[i])
			json_object_set_new(counts, kinds[i].plural,
					    json_integer((json_int_t)store_count(&kinds[i])));
	return json_pack("{s:I,s:I,s:i,s:i,s:o,s:o,s:o}", "resourceVersion", (json_int_t)store_rv(),
			 "oldestResourceVersion", (json_int_t)store_oldest_rv(), "watches",
			 (int)watch_count(), "connections", (int)http_conn_count(), "objects",
			 counts, "faults", rules_json(), "waiting", script_json());
}

void control_request(struct http_req *req, struct reply *r)
{
	const bool get = strcmp(req->method, "GET") == 0;
	const bool post = strcmp(req->method, "POST") == 0;
	char *why = NULL;
	json_t *j;

	if (get && strcmp(req->path, "/fake/audit") == 0) {
		reply_json(r, 200, audit_json(http_param_true(req, "jobs")));
	} else if (get && strcmp(req->path, "/fake/state") == 0) {
		reply_json(r, 200, state_json());
	} else if (get && strcmp(req->path, "/fake/help") == 0) {
		reply_text(r, 200, "text/plain", script_help());
	} else if (post && strcmp(req->path, "/fake/fault") == 0) {
		j = script_run("line", req->body ? req->body : "", req, &why);
		if (j) {
			reply_json(r, 200, j);
		} else {
			reply_error(r, 400, "BadRequest", NULL, NULL, "%s", why);
			free(why);
		}
	} else {
		reply_error(r, 404, "NotFound", NULL, NULL,
			    "known are GET /fake/audit[?jobs=1], /fake/state, /fake/help and POST "
			    "/fake/fault");
	}
}
