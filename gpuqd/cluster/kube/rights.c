#include "gpuqd/cluster/kube/rights.h"

#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/capacity/capacity_body.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define AT_ONCE 4u
#define DEVICES "claims of devices"
#define DRA_GROUP "resource.k8s.io"
/* Asked for where a pool does so. */
#define GROWING "pools that grow"
#define CUTTING "pools with mig: manager"
#define LOCKING                                                                                    \
	"pools with sharing: hami" /* asked for where one is so, or a node has HAMi's register */
#define STANDING "pools of an autoscaler"
/* Asked for where the site names namespaces of it. */
#define ADOPTING "adopt of the site"
#define GANGS "adopt of the site, gangs"
#define SUSPENDED "adopt of the site, suspended Jobs"
#define UNHEALTHY "cards that gpushare lists as unhealthy" /* asked for where a node has it */
#define KUBELETS "kubelet_metrics: what jobs used" /* asked for where the key is set */

/* A right, as etc/kubernetes/base and optional give it. */
static const struct right {
	const char *feature;
	bool needed; /* gpuqd is of no use without it; else the feature is off */
	enum {
		WHOLE,
		SPACED,
		OWN,
		SYSTEM,
		ADOPTS
	} where; /* the cluster; each namespace of jobs; the daemon's own; kube-system; each of adopt of the site */
	const char *group, *resource, *subresource, *name;
	const char *verbs[5];
} table[] = {
	{ "seeing nodes", true, WHOLE, "", "nodes", "", "", { "get", "list", "watch" } },
	{ "seeing pods", true, WHOLE, "", "pods", "", "", { "get", "list", "watch" } },
	{ "knowing the cluster again",
	  true,
	  WHOLE,
	  "",
	  "namespaces",
	  "",
	  "kube-system",
	  { "get" } },
	{ "running jobs", true, SPACED, "", "pods", "", "", { "create", "delete", "patch" } },
	{ "gpuq logs", true, SPACED, "", "pods", "log", "", { "get" } },
	{ "scripts", true, SPACED, "", "configmaps", "", "", { "get", "create", "delete" } },
	{ "gangs", true, SPACED, "", "services", "", "", { "get", "create", "delete" } },
	{ "volume_claims: owner", false, SPACED, "", "persistentvolumeclaims", "", "", { "get" } },
	{ "secrets: owner", false, SPACED, "", "secrets", "", "", { "get" } },
	{ "causes of failed mounts", false, SPACED, "", "events", "", "", { "list" } },
	{ "requests that a LimitRange adds",
	  false,
	  WHOLE,
	  "",
	  "limitranges",
	  "",
	  "",
	  { "list", "watch" } },
	{ "overhead, nodes and tolerations of a RuntimeClass",
	  false,
	  WHOLE,
	  "node.k8s.io",
	  "runtimeclasses",
	  "",
	  "",
	  { "list", "watch" } },
	{ "nodes of volumes",
	  false,
	  WHOLE,
	  "",
	  "persistentvolumeclaims",
	  "",
	  "",
	  { "list", "watch" } },
	{ "nodes of volumes", false, WHOLE, "", "persistentvolumes", "", "", { "list", "watch" } },
	{ "claims bound at their first pod",
	  false,
	  WHOLE,
	  "storage.k8s.io",
	  "storageclasses",
	  "",
	  "",
	  { "list", "watch" } },
	{ "claims bound at their first pod",
	  false,
	  SPACED,
	  "",
	  "persistentvolumeclaims",
	  "",
	  "",
	  { "patch" } },
	{ "claims bound at their first pod, and queues with start: bind",
	  false,
	  SPACED,
	  "",
	  "pods",
	  "binding",
	  "",
	  { "create" } },
	{ DEVICES, false, WHOLE, DRA_GROUP, "resourceslices", "", "", { "list", "watch" } },
	{ DEVICES, false, WHOLE, DRA_GROUP, "deviceclasses", "", "", { "list", "watch" } },
	{ DEVICES, false, WHOLE, DRA_GROUP, "resourceclaims", "", "", { "list", "watch" } },
	{ DEVICES, false, WHOLE, DRA_GROUP, "resourceclaimtemplates", "", "", { "list", "watch" } },
	{ DEVICES,
	  false,
	  SPACED,
	  DRA_GROUP,
	  "resourceclaims",
	  "",
	  "",
	  { "create", "patch", "delete" } },
	{ DEVICES, false, SPACED, DRA_GROUP, "resourceclaims", "status", "", { "patch" } },
	{ DEVICES, false, WHOLE, DRA_GROUP, "resourceclaims", "binding", "", { "patch" } },
	{ LOCKING, false, WHOLE, "", "nodes", "", "", { "patch" } },
	{ CUTTING, false, WHOLE, "", "nodes", "", "", { "patch" } },
	{ UNHEALTHY, false, SYSTEM, "", "configmaps", "", "", { "list", "watch" } },
	{ GROWING,
	  false,
	  WHOLE,
	  "autoscaling.x-k8s.io",
	  "provisioningrequests",
	  "",
	  "",
	  { "list", "watch" } },
	{ GROWING,
	  false,
	  SPACED,
	  "autoscaling.x-k8s.io",
	  "provisioningrequests",
	  "",
	  "",
	  { "get", "create", "delete" } },
	{ GROWING,
	  false,
	  SPACED,
	  "",
	  "podtemplates",
	  "",
	  "",
	  { "get", "create", "delete", "patch" } },
	{ STANDING, false, SPACED, "", "pods", "status", "", { "patch" } },
	{ STANDING, false, WHOLE, "", "nodes", "", "", { "patch" } },
	{ STANDING,
	  false,
	  WHOLE,
	  "scheduling.k8s.io",
	  "priorityclasses",
	  "",
	  CAPACITY_PRIORITY_CLASS,
	  { "get" } },
	{ KUBELETS, false, WHOLE, "", "nodes", "proxy", "", { "get" } },
	{ "gpuq exec", false, SPACED, "", "pods", "exec", "", { "create" } },
	{ "gpuq attach", false, SPACED, "", "pods", "attach", "", { "create" } },
	{ "gpuq port-forward", false, SPACED, "", "pods", "portforward", "", { "create" } },
	{ "tokens of service accounts",
	  false,
	  WHOLE,
	  "authentication.k8s.io",
	  "tokenreviews",
	  "",
	  "",
	  { "create" } },
	{ ADOPTING, false, ADOPTS, "", "pods", "", "", { "get", "delete" } },
	{ ADOPTING, false, ADOPTS, "", "pods", "binding", "", { "create" } },
	{ ADOPTING, false, ADOPTS, "", "events", "", "", { "create" } },
	{ GANGS, false, ADOPTS, "scheduling.x-k8s.io", "podgroups", "", "", { "get" } },
	{ GANGS, false, ADOPTS, "scheduling.volcano.sh", "podgroups", "", "", { "get" } },
	{ GANGS, false, ADOPTS, "jobset.x-k8s.io", "jobsets", "", "", { "get" } },
	{ GANGS, false, ADOPTS, "kubeflow.org", "pytorchjobs", "", "", { "get" } },
	{ GANGS, false, ADOPTS, "kubeflow.org", "mpijobs", "", "", { "get" } },
	{ GANGS, false, ADOPTS, "ray.io", "rayclusters", "", "", { "get" } },
	{ SUSPENDED, false, ADOPTS, "batch", "jobs", "", "", { "get", "list", "watch", "patch" } },
	{ SUSPENDED, false, ADOPTS, "batch", "jobs", "status", "", { "patch" } },
	{ SUSPENDED, false, ADOPTS, "", "pods", "", "", { "patch" } },
	{ SUSPENDED, false, ADOPTS, "kueue.x-k8s.io", "workloads", "", "", { "list" } },
	{ "one daemon of an identity",
	  false,
	  OWN,
	  "coordination.k8s.io",
	  "leases",
	  "",
	  "",
	  { "get", "create", "patch" } },
};

#define POLICY "ValidatingAdmissionPolicy gpuq-devices"
#define POLICY_BINDING "ValidatingAdmissionPolicyBinding gpuq-devices"
#define POLICIES "/apis/admissionregistration.k8s.io/v1/"

/* True for what is bound in each namespace that is managed, whatever pods it has. */
static bool holds_where_managed(const json_t *match)
{
	const json_t *labels = kube_path(match, "namespaceSelector", "matchLabels");
	const size_t n = json_object_size(labels);

	return json_array_size(kube_path(match, "namespaceSelector", "matchExpressions")) == 0 &&
	       json_object_size(kube_path(match, "objectSelector", "matchLabels")) == 0 &&
	       json_array_size(kube_path(match, "objectSelector", "matchExpressions")) == 0 &&
	       json_array_size(json_object_get(match, "resourceRules")) == 0 &&
	       json_array_size(json_object_get(match, "excludeResourceRules")) == 0 &&
	       (n == 0 || (n == 1 && strcmp(kube_str(labels, "gpuq.io/managed"), "true") == 0));
}

/* True for a binding by which what the policy refuses is refused. */
static bool denies(const json_t *binding)
{
	const json_t *v, *actions = kube_path(binding, "spec", "validationActions");
	bool found = false;
	size_t i;

	json_array_foreach(actions, i, v) found =
		found || (json_is_string(v) && strcmp(json_string_value(v), "Deny") == 0);
	return found && holds_where_managed(kube_path(binding, "spec", "matchResources")) &&
	       strcmp(kube_str(json_object_get(binding, "spec"), "policyName"), "gpuq-devices") ==
		       0;
}

/* True for a namespace in which the policies of etc/kubernetes/optional hold. */
static bool is_managed(const json_t *namespace_)
{
	return strcmp(kube_str(kube_path(namespace_, "metadata", "labels"), "gpuq.io/managed"),
		      "true") == 0;
}

/* Objects of the cluster that systems which share devices bring, and kinds that it serves. */
static const struct thing {
	const char *name, *path;
	const char *item; /* path is a list: the name of one in it; NULL = path itself */
	bool (*holds)(const json_t *object); /* it has to be like this as well; NULL = as it is */
	bool spaced; /* one for each namespace of jobs, whose name follows path and name */
} things[] = {
	{ .name = "resource.k8s.io/v1", .path = "/apis/resource.k8s.io/v1" },
	{ .name = "resource.k8s.io/v1beta2", .path = "/apis/resource.k8s.io/v1beta2" },
	{ .name = POLICY, .path = POLICIES "validatingadmissionpolicies/gpuq-devices" },
	{ .name = POLICY_BINDING,
	  .path = POLICIES "validatingadmissionpolicybindings/gpuq-devices",
	  .holds = denies },
	{ .name = "managed namespace ",
	  .path = "/api/v1/namespaces/",
	  .holds = is_managed,
	  .spaced = true },
	{ .name = "PriorityClass " CAPACITY_PRIORITY_CLASS,
	  .path = "/apis/scheduling.k8s.io/v1/priorityclasses/" CAPACITY_PRIORITY_CLASS },
	{ .name = "RuntimeClass nvidia",
	  .path = "/apis/node.k8s.io/v1/runtimeclasses?fieldSelector=metadata.name%3Dnvidia",
	  .item = "nvidia" },
};

#define N_THINGS (sizeof(things) / sizeof(things[0]))

struct question {
	struct rights *r;
	const struct right *right;
	const struct thing *thing; /* instead of a right */
	struct http_req *req;
	struct cluster_right answer;
	char resource[96], why[160], ns[64];
};

struct rights {
	struct http *http;
	const char *own; /* the daemon's namespace */
	cluster_rights_fn fn;
	void *arg;
	struct question *questions;
	size_t n, n_asked, n_answered;
};

static void ask_more(struct rights *r);

static void finish(struct rights *r)
{
	struct cluster_right *list = calloc(r->n, sizeof(*list));
	const cluster_rights_fn fn = r->fn;
	void *const arg = r->arg;

	for (size_t i = 0; list && i < r->n; i++)
		list[i] = r->questions[i].answer;
	fn(arg, list, list ? r->n : 0);
	free(list);
	rights_free(r);
}

/* True if a list of objects has one of that name. */
static bool lists(const json_t *root, const char *name)
{
	const json_t *item, *items = json_object_get(root, "items");
	size_t i;

	json_array_foreach(items, i,
			   item) if (strcmp(kube_str(json_object_get(item, "metadata"), "name"),
					    name) == 0) return true;
	return false;
}

/* Note whether a thing is there. */
static void found(struct question *q, const struct http_answer *a, const json_t *root)
{
	q->answer.asked = a->complete && (a->status == 200 || a->status == 404);
	q->answer.allowed = q->answer.asked && a->status == 200 &&
			    (!q->thing->item || lists(root, q->thing->item)) &&
			    (!q->thing->holds || q->thing->holds(root));
	if (!q->answer.asked && a->status)
		snprintf(q->why, sizeof(q->why), "HTTP status %d", a->status);
	else if (!q->answer.asked)
		snprintf(q->why, sizeof(q->why), "%.150s", a->error);
}

static void answered(void *arg, const struct http_answer *a)
{
	struct question *q = arg;
	struct rights *r = q->r;
	json_t *root = a->complete ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	const json_t *st = json_object_get(root, "status");

	q->req = NULL;
	if (q->thing) {
		found(q, a, root);
	} else if (a->status >= 200 && a->status < 300 && json_is_object(st)) {
		q->answer.asked = true;
		q->answer.allowed = json_is_true(json_object_get(st, "allowed"));
		snprintf(q->why, sizeof(q->why), "%s", kube_str(st, "reason"));
	} else if (a->status) {
		snprintf(q->why, sizeof(q->why), "HTTP status %d", a->status);
	} else {
		snprintf(q->why, sizeof(q->why), "%.150s", a->error);
	}
	json_decref(root);
	r->n_answered++;
	if (r->n_answered == r->n)
		finish(r);
	else
		ask_more(r);
}

static char *body_of(const struct question *q)
{
	const struct right *t = q->right;
	json_t *root = json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s, s:s, s:s}}}", "apiVersion",
				 "authorization.k8s.io/v1", "kind", "SelfSubjectAccessReview",
				 "spec", "resourceAttributes", "namespace", q->ns, "verb",
				 q->answer.verb, "group", t->group, "resource", t->resource,
				 "subresource", t->subresource, "name", t->name);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

static void ask_more(struct rights *r)
{
	while (r->n_asked < r->n && r->n_asked - r->n_answered < AT_ONCE) {
		struct question *q = &r->questions[r->n_asked++];
		char *body = q->thing ? NULL : body_of(q), path[160];
		struct http_call call = { .method = "POST",
					  .path = PATH,
					  .body = body ? body : "{}",
					  .n_body = body ? strlen(body) : 2,
					  .first = true,
					  .on_end = answered,
					  .arg = q };

		snprintf(path, sizeof(path), "%s%s", q->thing ? q->thing->path : "", q->ns);
		if (q->thing)
			call = (struct http_call){ .method = "GET",
						   .path = path,
						   .first = true,
						   .on_end = answered,
						   .arg = q };

		q->req = http_start(r->http, &call);
		free(body);
	}
}

/* Files of etc/kubernetes that grant the rights of features beside those of base. */
static const struct {
	const char *feature, *file;
} files[] = {
	{ "secrets: owner", "optional/secrets.yaml" },
	{ "causes of failed mounts", "optional/events.yaml" },
	{ DEVICES, "optional/dra.yaml" },
	{ LOCKING, "optional/hami.yaml" },
	{ CUTTING, "optional/mig.yaml" },
	{ UNHEALTHY, "optional/gpushare.yaml" },
	{ GROWING, "optional/provisioning.yaml" },
	{ STANDING, "optional/autoscaler.yaml" },
	{ KUBELETS, "optional/metrics.yaml" },
	{ "gpuq exec", "optional/exec.yaml" },
	{ "gpuq attach", "optional/exec.yaml" },
	{ "gpuq port-forward", "optional/exec.yaml" },
	{ "tokens of service accounts", "optional/identity.yaml" },
	{ ADOPTING, "optional/adopt.yaml" },
	{ GANGS, "optional/adopt.yaml" },
	{ SUSPENDED, "optional/adopt.yaml" },
};

static const char *file_of(const char *feature)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(files[i].feature, feature) == 0)
			return files[i].file;
	return "base/20-rbac.yaml";
}

/* Rights of what has to be switched on, and the member of cluster_rights_of that says so. */
static const struct {
	const char *feature;
	size_t on; /* offset of a bool */
} switches[] = {
	{ DEVICES, offsetof(struct cluster_rights_of, claims) },
	{ GROWING, offsetof(struct cluster_rights_of, grows) },
	{ STANDING, offsetof(struct cluster_rights_of, stands) },
	{ CUTTING, offsetof(struct cluster_rights_of, cuts) },
	{ LOCKING, offsetof(struct cluster_rights_of, hami) },
	{ UNHEALTHY, offsetof(struct cluster_rights_of, gpushare) },
	{ KUBELETS, offsetof(struct cluster_rights_of, kubelets) },
};

/* True for a right of something that is not switched on. */
static bool is_off(const char *feature, const struct cluster_rights_of *of)
{
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		if (strcmp(feature, switches[i].feature) == 0)
			return !*(const bool *)((const char *)of + switches[i].on);
	return false;
}

static void ask_thing(struct rights *r, struct question *q, const struct thing *t, const char *ns)
{
	q->r = r;
	q->thing = t;
	snprintf(q->ns, sizeof(q->ns), "%s", ns);
	snprintf(q->resource, sizeof(q->resource), "%s%s", t->name, ns);
	q->answer = (struct cluster_right){
		.verb = "",
		.resource = q->resource,
		.feature = "",
		.namespace_ = "",
		.group = "",
		.file = "",
		.why = q->why,
	};
}

static size_t fill(struct rights *r, const struct cluster_rights_of *of)
{
	size_t at = 0;

	for (size_t i = 0; i < N_THINGS; i++)
		for (size_t k = 0; k < (things[i].spaced ? of->n : 1); k++, at++)
			if (r->questions)
				ask_thing(r, &r->questions[at], &things[i],
					  things[i].spaced ? of->namespaces[k] : "");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *const *spaces = table[i].where == ADOPTS ? of->adopts : of->namespaces;
		const bool spaced = table[i].where == ADOPTS || table[i].where == SPACED;
		const size_t n = table[i].where == ADOPTS ? of->n_adopts : of->n;

		if (is_off(table[i].feature, of))
			continue;
		for (size_t k = 0; k < (spaced ? n : 1); k++)
			for (size_t v = 0; table[i].verbs[v]; v++, at++) {
				struct question *q = r->questions ? &r->questions[at] : NULL;

				if (!q)
					continue;
				q->r = r;
				q->right = &table[i];
				snprintf(q->ns, sizeof(q->ns), "%s",
					 spaced                     ? spaces[k]
					 : table[i].where == OWN    ? r->own
					 : table[i].where == SYSTEM ? OBJECT_UNHEALTHY_NAMESPACE
								    : "");
				snprintf(q->resource, sizeof(q->resource), "%s%s%s",
					 table[i].resource, *table[i].subresource ? "/" : "",
					 table[i].subresource);
				q->answer = (struct cluster_right){
					.feature = table[i].feature,
					.verb = table[i].verbs[v],
					.resource = q->resource,
					.namespace_ = q->ns,
					.group = table[i].group,
					.file = file_of(table[i].feature),
					.why = q->why,
					.needed = table[i].needed,
				};
			}
	}
	return at;
}

int rights_ask(struct http *h, const char *own, const struct cluster_rights_of *of,
	       cluster_rights_fn fn, void *arg, struct rights **out, struct gpuq_err *err)
{
	struct rights *r = calloc(1, sizeof(*r));

	if (!r)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	r->http = h;
	r->own = own;
	r->fn = fn;
	r->arg = arg;
	r->n = fill(r, of);
	r->questions = calloc(r->n, sizeof(*r->questions));
	if (!r->questions) {
		free(r);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	fill(r, of);
	*out = r;
	ask_more(r);
	return 0;
}

void rights_free(struct rights *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		http_cancel(r->questions[i].req);
	free(r->questions);
	free(r);
}
