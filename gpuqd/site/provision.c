#include "gpuqd/site/provision.h"
#include "gpuqd/site/site_merge.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/site/site_rows.h"
#include "libgpuq/selector.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

static const char *const kinds[] = { "none", "request", "autoscaler", NULL };
static const char *const failures[] = { "wait", "fail", NULL };
const char *const provision_effects[] = { "NoSchedule", "NoExecute", "PreferNoSchedule", NULL };

/* ---- the machine ---- */

/* Check the keys of a map, which the cluster takes as keys of labels, and its values where they are a
 * label's. */
static int check_labels(struct gpuq_reader *r, const struct gpuq_val *v, const char *field,
			const struct gpuq_strmap *labels, bool values)
{
	const struct gpuq_val *map = gpuq_get(v, field);

	for (size_t i = 0; i < labels->n; i++) {
		const char *why = NULL;

		if (!gpuq_label_key_ok(labels->keys[i]))
			why = "expected a label's key, such as team or example.com/team";
		else if (values && !gpuq_label_value_ok(labels->vals[i]))
			why = "expected a label's value: at most 63 of A-Z a-z 0-9 . _ -, letters "
			      "or digits at both ends";
		if (!why)
			continue;
		gpuq_reader_enter(r, field);
		return gpuq_reader_fail_key(r, map, labels->keys[i], why);
	}
	return 0;
}

static int taint_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct provision_taint *t = obj;

	if (!gpuq_label_key_ok(t->key))
		return gpuq_reader_fail_key(
			r, v, "key", "expected a label's key, such as team or example.com/team");
	if (t->value && !gpuq_label_value_ok(t->value))
		return gpuq_reader_fail_key(r, v, "value", "expected a label's value");
	return 0;
}

static const struct gpuq_field taint_fields[] = {
	F(provision_taint, "key", GPUQ_K_STR, key, .flags = GPUQ_F_REQUIRED, .min = 1, .max = 317,
	  .doc = "as Kubernetes has it"),
	F(provision_taint, "value", GPUQ_K_STR, value, .max = 63, .doc = "as Kubernetes has it"),
	F(provision_taint, "effect", GPUQ_K_ENUM, effect, .flags = GPUQ_F_REQUIRED,
	  .names = provision_effects, .doc = "as Kubernetes has it"),
	END,
};

static const struct gpuq_schema taint_schema = { .name = "taint",
						 .size = sizeof(struct provision_taint),
						 .fields = taint_fields,
						 .check = taint_check };

static const struct gpuq_field machine_fields[] = {
	F(provision_machine, "gpus", GPUQ_K_INT, gpus, .flags = GPUQ_F_REQUIRED, .min = 1,
	  .max = 1024, .doc = "devices of a node"),
	F(provision_machine, "cpus", GPUQ_K_MILLI, cpu_milli, .min = 1, .max = INT64_MAX,
	  .doc = "cpus of a node that pods may use"),
	F(provision_machine, "memory", GPUQ_K_BYTES, memory_bytes, .min = 1, .max = INT64_MAX,
	  .doc = "memory of a node that pods may use"),
	F(provision_machine, "product", GPUQ_K_STR, product, .min = 1, .max = 253,
	  .doc = "product of its devices"),
	F(provision_machine, "labels", GPUQ_K_STRMAP, labels, .doc = "labels that nodes come with"),
	F(provision_machine, "taints", GPUQ_K_OBJECTS, taints, .sub = &taint_schema,
	  .doc = "taints that nodes come with"),
	F(provision_machine, "resources", GPUQ_K_STRMAP, resources,
	  .doc = "further resources of a node, by name"),
	END,
};

int64_t provision_has(const struct provision_machine *m, const char *resource)
{
	const char *val = gpuq_strmap_get(&m->resources, resource);
	int64_t n = 0;

	if (val && !gpuq_resource_is_bytes(resource))
		n = strtoll(val, NULL, 10);
	else if (val && gpuq_bytes_parse(val, &n, NULL) < 0)
		n = 0;
	return n;
}

/* Check that its further resources are ones that are counted by their names. */
static int check_resources(struct gpuq_reader *r, const struct gpuq_val *v,
			   const struct provision_machine *m)
{
	const size_t whole = gpuq_reader_enter(r, "resources");

	for (size_t i = 0; i < m->resources.n; i++) {
		const char *name = m->resources.keys[i], *val = m->resources.vals[i];
		const struct gpuq_val *at = gpuq_get(gpuq_get(v, "resources"), name);
		const size_t mark = gpuq_reader_enter(r, name);
		int64_t n;
		char *end;

		if (gpuq_resource_kind(name) != GPUQ_RESOURCE_COUNTED)
			return gpuq_reader_fail(
				r, at, GPUQ_EINVAL,
				"expected a resource that is counted, such as rdma/hca or "
				"hugepages-2Mi; devices, cpus and memory have keys of their own");
		if (gpuq_resource_is_bytes(name) ? gpuq_bytes_parse(val, &n, NULL) < 0 || n <= 0
						 : (n = strtoll(val, &end, 10)) <= 0 || *end)
			return gpuq_reader_fail(r, at, GPUQ_EINVAL, "expected an amount above 0");
		gpuq_reader_leave(r, mark);
	}
	gpuq_reader_leave(r, whole);
	return 0;
}

/* Labels that count the devices of a node; `times`: how often the plugin offers each. */
static const struct {
	const char *label, *times;
} counts[] = {
	{ "nvidia.com/gpu.count", "nvidia.com/gpu.replicas" },
	{ "cloud.google.com/gke-accelerator-count", NULL },
	{ "karpenter.k8s.aws/instance-gpu-count", NULL },
};

/* Return the number in a label's value; 0 = none, or too large for devices of a node. */
static int64_t small(const char *text)
{
	const int64_t n = text ? strtoll(text, NULL, 10) : 0;

	return n > 0 && n <= 1024 ? n : 0;
}

/* Check that labels which count its devices say what it says itself: no node could be both. */
static int check_counts(struct gpuq_reader *r, const struct gpuq_val *v,
			const struct provision_machine *m)
{
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const char *text = gpuq_strmap_get(&m->labels, counts[i].label);
		const char *times =
			counts[i].times ? gpuq_strmap_get(&m->labels, counts[i].times) : NULL;

		if (!text || small(text) == m->gpus || small(text) * small(times) == m->gpus)
			continue;
		gpuq_reader_enter(r, "labels");
		gpuq_reader_enter(r, counts[i].label);
		return gpuq_reader_fail(r, gpuq_get(gpuq_get(v, "labels"), counts[i].label),
					GPUQ_EINVAL, "contradicts gpus, which is %lld",
					(long long)m->gpus);
	}
	return 0;
}

static int machine_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct provision_machine *m = obj;
	int rc = check_labels(r, v, "labels", &m->labels, true);

	if (rc == 0)
		rc = check_counts(r, v, m);
	return rc < 0 ? rc : check_resources(r, v, m);
}

static const struct gpuq_schema machine_schema = { .name = "machine",
						   .size = sizeof(struct provision_machine),
						   .fields = machine_fields,
						   .check = machine_check };

/* ---- the whole ---- */

static const struct gpuq_field fields[] = {
	F(provision, "kind", GPUQ_K_ENUM, kind, .names = kinds, .doc = "what makes the nodes"),
	F(provision, "class", GPUQ_K_STR, class_, .min = 1, .max = 253, .doc = "of its requests"),
	F(provision, "parameters", GPUQ_K_STRMAP, parameters, .doc = "of its requests"),
	F(provision, "machine", GPUQ_K_OBJECT_PTR, machine, .sub = &machine_schema,
	  .doc = "shape of its nodes"),
	F(provision, "min_nodes", GPUQ_K_INT, min_nodes, .max = PROVISION_NODES_MAX,
	  .doc = "nodes that stay"),
	F(provision, "max_nodes", GPUQ_K_INT, max_nodes, .min = 1, .max = PROVISION_NODES_MAX,
	  .doc = "nodes at most"),
	F(provision, "max_requests", GPUQ_K_INT, max_requests, .min = 1, .max = 100000,
	  .doc = "requests at once"),
	F(provision, "booking", GPUQ_K_DURATION, booking_us,
	  .doc = "time in which pods must use what was provisioned"),
	F(provision, "timeout", GPUQ_K_DURATION, timeout_us, .doc = "time limit of a request"),
	F(provision, "retries", GPUQ_K_INT, retries, .max = 100, .doc = "of a request that failed"),
	F(provision, "retry_base", GPUQ_K_DURATION, retry_base_us,
	  .doc = "pause before the first of them, then twice as long each"),
	F(provision, "retry_max", GPUQ_K_DURATION, retry_max_us, .doc = "longest pause"),
	F(provision, "node_selector_from", GPUQ_K_STRMAP, node_selector_from,
	  .doc = "labels of nodes whose values are details of the request"),
	F(provision, "max_run", GPUQ_K_DURATION, max_run_us, .doc = "maximum time limit there"),
	F(provision, "min_idle", GPUQ_K_DURATION, min_idle_us,
	  .doc = "time that a node is idle before it may go"),
	F(provision, "on_failure", GPUQ_K_ENUM, on_failure, .names = failures,
	  .doc = "what becomes of a job after the last retry"),
	F(provision, "evictable", GPUQ_K_BOOL, evictable,
	  .doc = "whether jobs on its nodes may be preempted"),
	F(provision, "placeholders", GPUQ_K_BOOL, placeholders,
	  .doc = "whether pods stand for nodes that are missing"),
	END,
};

static void defaults(void *obj)
{
	struct provision *p = obj;

	p->max_requests = 100;
	p->booking_us = 600 * GPUQ_US_PER_S;
	p->timeout_us = 6 * 3600 * GPUQ_US_PER_S;
	p->retries = 3;
	p->retry_base_us = 60 * GPUQ_US_PER_S;
	p->retry_max_us = 1800 * GPUQ_US_PER_S;
	p->max_run_us = PROVISION_RUN_MAX_S * GPUQ_US_PER_S;
	p->min_idle_us = 600 * GPUQ_US_PER_S;
	p->placeholders = true;
}

/* The kinds that use a key; other kinds refuse it. */
static const struct {
	const char *key;
	bool used[N_PROVISION_KINDS];
} users[] = {
	{ "kind", { true, true, true } },
	{ "class", { [PROVISION_REQUEST] = true } },
	{ "parameters", { [PROVISION_REQUEST] = true } },
	{ "max_requests", { [PROVISION_REQUEST] = true } },
	{ "booking", { [PROVISION_REQUEST] = true } },
	{ "node_selector_from", { [PROVISION_REQUEST] = true } },
	{ "evictable", { [PROVISION_REQUEST] = true } },
	{ "max_run", { [PROVISION_REQUEST] = true } },
	{ "placeholders", { [PROVISION_AUTOSCALER] = true } },
	/* Nodes of a request stay and go as its class has it. */
	{ "min_nodes", { [PROVISION_AUTOSCALER] = true } },
	{ "min_idle", { [PROVISION_AUTOSCALER] = true } },
};

static bool uses(int kind, const char *key)
{
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		if (strcmp(users[i].key, key) == 0)
			return users[i].used[kind];
	return kind != PROVISION_NONE;
}

/* Keys that a kind needs. */
static const struct {
	const char *key;
	int kind; /* -1 = all but none */
	const char *what;
} needs[] = {
	{ "class", PROVISION_REQUEST,
	  "missing; kind request needs it, for example queued-provisioning.gke.io" },
	{ "machine", -1, "missing; a pool that grows needs it, {gpus: N} at least" },
	{ "max_nodes", -1, "missing; a pool that grows needs it" },
};

static int check_parameters(struct gpuq_reader *r, const struct gpuq_val *v,
			    const struct provision *p)
{
	if (p->parameters.n > 100)
		return gpuq_reader_fail_key(r, v, "parameters", "expected 100 parameters at most");
	for (size_t i = 0; i < p->parameters.n; i++) {
		const size_t mark = gpuq_reader_enter(r, "parameters");
		const struct gpuq_val *map = gpuq_get(v, "parameters");
		int rc = 0;

		if (strlen(p->parameters.vals[i]) > 255)
			rc = gpuq_reader_fail_key(r, map, p->parameters.keys[i],
						  "expected 255 bytes at most");
		else if (strcmp(p->parameters.keys[i], "maxRunDurationSeconds") == 0)
			rc = gpuq_reader_fail_key(
				r, map, p->parameters.keys[i],
				"is set by gpuqd, from the time limit of the job and max_run");
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	return 0;
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct provision *p = obj;
	int rc;

	for (uint32_t i = 0; i < v->n; i++)
		if (v->pairs[i].val->type != GPUQ_NULL && !uses(p->kind, v->pairs[i].key))
			return gpuq_reader_fail_key(
				r, v, v->pairs[i].key,
				p->kind == PROVISION_NONE
					? "has no effect with kind none, which is the default"
				: p->kind == PROVISION_REQUEST
					? "has no effect with kind request"
					: "has no effect with kind autoscaler");
	for (size_t i = 0; p->kind != PROVISION_NONE && i < sizeof(needs) / sizeof(needs[0]); i++)
		if ((needs[i].kind < 0 || needs[i].kind == p->kind) && !gpuq_get(v, needs[i].key))
			return gpuq_reader_fail_key(r, v, needs[i].key, needs[i].what);
	if (p->kind == PROVISION_NONE)
		return 0;
	if (p->class_ && !site_is_dns(p->class_, true))
		return gpuq_reader_fail_key(r, v, "class",
					    "expected a name of a-z, 0-9, '-' and '.', such as "
					    "queued-provisioning.gke.io");
	if (p->min_nodes > p->max_nodes)
		return gpuq_reader_fail_key(r, v, "min_nodes", "more than max_nodes");
	if (p->retry_base_us <= 0)
		return gpuq_reader_fail_key(r, v, "retry_base", "expected more than 0");
	if (p->retry_base_us > p->retry_max_us)
		return gpuq_reader_fail_key(r, v, "retry_max", "less than retry_base");
	if (p->booking_us <= 0)
		return gpuq_reader_fail_key(r, v, "booking", "expected more than 0");
	if (p->timeout_us <= 0)
		return gpuq_reader_fail_key(r, v, "timeout", "expected more than 0");
	if (p->max_run_us <= 0 || p->max_run_us > PROVISION_RUN_MAX_S * GPUQ_US_PER_S)
		return gpuq_reader_fail_key(r, v, "max_run",
					    "expected 7d at most, and more than 0");
	if (p->max_run_us <= PROVISION_RUN_MARGIN_US &&
	    strcmp(provision_class(p), PROVISION_CLASS_QUEUED) == 0)
		return gpuq_reader_fail_key(
			r, v, "max_run",
			"expected more than 10m, in which a node may boot: nodes of "
			"this class are taken away after that time");
	if (p->on_failure == PROVISION_FAIL && p->retries == 0 && gpuq_get(v, "retry_base"))
		return gpuq_reader_fail_key(r, v, "retry_base", "has no effect without retries");
	rc = check_labels(r, v, "node_selector_from", &p->node_selector_from, false);
	return rc < 0 ? rc : check_parameters(r, v, p);
}

static const struct gpuq_schema schema = { .name = "provisioning",
					   .size = sizeof(struct provision),
					   .fields = fields,
					   .defaults = defaults,
					   .check = check };

/* Read it from a file, or from a site that was stored: one that gpuqd does not carry out is none
 * there, since earlier versions stored whatever was written. */
static int read_any(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct provision *p = gpuq_arena_calloc(r->arena, 1, sizeof(*p));
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_reader quiet = { .arena = r->arena, .now_us = r->now_us, .err = &err };
	int rc;

	if (!p)
		return gpuq_no_memory(r->err);
	rc = gpuq_schema_read(r->lenient ? &quiet : r, &schema, v, p);
	if (rc == GPUQ_ENOMEM || (rc < 0 && !r->lenient))
		return rc;
	if (rc < 0)
		*p = (struct provision){ .kind = PROVISION_NONE, .dropped = true };
	*(struct provision **)out = p;
	return 0;
}

static struct gpuq_val *write_any(struct gpuq_arena *mem, const void *in)
{
	const struct provision *p = *(const struct provision *const *)in;

	return p && p->kind != PROVISION_NONE ? gpuq_schema_write(mem, &schema, p) : NULL;
}

const struct gpuq_custom provision_custom = { read_any, write_any };

int provision_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct provision *p,
		    const struct gpuq_strmap *selector, const char *flavor)
{
	const struct gpuq_val *in = gpuq_get(v, "provisioning"), *machine;
	size_t mark;

	if (!p || p->kind == PROVISION_NONE)
		return 0;
	machine = gpuq_get(in, "machine");
	if (!flavor)
		return gpuq_reader_fail_key(r, v, "flavor", "missing; a pool that grows needs it");
	if (selector->n == 0)
		return gpuq_reader_fail_key(
			r, v, "selector", "missing; a pool that grows needs it, to know its nodes");
	mark = gpuq_reader_enter(r, "provisioning");
	for (size_t i = 0; i < selector->n; i++) {
		const char *has = gpuq_strmap_get(&p->machine->labels, selector->keys[i]);
		const struct gpuq_val *at = gpuq_get(machine, "labels");

		if (has && strcmp(has, selector->vals[i]) == 0)
			continue;
		gpuq_reader_enter(r, "machine");
		gpuq_reader_enter(r, "labels");
		return gpuq_reader_fail(r, at ? at : machine, GPUQ_EINVAL,
					"expected %.120s: %.80s as well, which the pool's selector "
					"asks for",
					selector->keys[i], selector->vals[i]);
	}
	gpuq_reader_leave(r, mark);
	return 0;
}

int provision_check_order(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s)
{
	const struct site_pool *all = s->pools.items;

	for (size_t i = 0; i < s->pools.n; i++) {
		struct provision *how = site_pool_grows(&all[i]) ? all[i].provisioning : NULL;
		const struct gpuq_val *list = gpuq_get(v, "pools"), *machine;
		size_t k = 0;

		while (how && k < i && !inventory_selects(&all[k].selector, &how->machine->labels))
			k++;
		if (!how || k == i)
			continue;
		if (r->stored) {
			*how = (struct provision){ .kind = PROVISION_NONE, .dropped = true };
			continue;
		}
		machine = gpuq_get(gpuq_get(list->items[i], "provisioning"), "machine");
		gpuq_reader_enter(r, "pools");
		gpuq_reader_enter_member(r, list, i);
		gpuq_reader_enter(r, "provisioning");
		gpuq_reader_enter(r, "machine");
		gpuq_reader_enter(r, "labels");
		return gpuq_reader_fail(
			r, gpuq_get(machine, "labels"), GPUQ_EINVAL,
			"nodes with these labels belong to pool %.80s, whose selector they meet "
			"and "
			"which comes first: expected labels that it does not select, or this pool "
			"before it",
			all[k].name);
	}
	return 0;
}
