#include "gpuqd/cluster/kube/watch/decode_dra.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/cel/cel_values.h"
#include "libgpuq/limits.h"

#define OPTIONS_MAX 8u /* subrequests of a request, as in Kubernetes */
#define ITEMS_MAX 32u /* requests, constraints and selectors of a claim, likewise */
#define RESERVED_MAX 256u

/* Something of an object is being read; wrong stays NULL while it can be. */
struct reading {
	struct kube_object *o;
	const char *wrong;
	bool doubled; /* a device has a name with the domain of its driver: it may have it without as well */
	/* The names that the last device has, by their place, without and with their domain: those of the
	 * next are mostly the same. */
	struct {
		const char *key, *name;
	} last[DRA_WORDS_MAX];
};

static void *room(struct reading *r, size_t n, size_t size)
{
	void *p = gpuq_arena_calloc(&r->o->arena, n + 1, size);

	if (!p)
		r->wrong = "no memory";
	return p;
}

/* Return how many members a list has; more than that are wrong, and none are read. */
static size_t list_of(struct reading *r, const json_t *list, size_t most, const char *what)
{
	const size_t n = json_array_size(list);

	if (n > most)
		r->wrong = what;
	return n > most ? 0 : n;
}

/* Return the first field that is not among those, NULL-terminated; NULL = there is none. */
static const char *unknown(const json_t *obj, const char *const *known)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)obj, key, v)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i] && !json_is_null(v))
			return key;
	}
	return NULL;
}

/* ---- ResourceSlice ---- */

/* Return the name with its domain: without one it is in that of the driver. */
static const char *qualify(struct reading *r, const char *driver, const char *name)
{
	const size_t n_driver = strlen(driver), n_name = strlen(name);
	char *s;

	if (strchr(name, '/')) {
		r->doubled |= strncmp(name, driver, n_driver) == 0 && name[n_driver] == '/';
		return name;
	}
	s = gpuq_arena_alloc(&r->o->arena, n_driver + n_name + 2);
	if (!s) {
		r->wrong = "no memory";
		return "";
	}
	memcpy(s, driver, n_driver);
	s[n_driver] = '/';
	memcpy(s + n_driver + 1, name, n_name + 1);
	return s;
}

/* Return the same for a word of a device that has `at` words before it. */
static const char *qualified(struct reading *r, const char *driver, const char *key, size_t at)
{
	if (!r->last[at].key || strcmp(r->last[at].key, key) != 0) {
		r->last[at].key = key;
		r->last[at].name = qualify(r, driver, key);
	}
	return r->last[at].name;
}

/* False: an attribute of a kind that selectors do not have. */
static bool read_attribute(const json_t *v, struct dra_word *out)
{
	const json_t *x = json_object_get(v, "string");

	if (json_is_string(x)) {
		out->type = GPUQ_CEL_STRING;
		out->text = json_string_value(x);
		return true;
	}
	x = json_object_get(v, "version");
	if (json_is_string(x)) {
		out->type = GPUQ_CEL_VERSION;
		out->text = json_string_value(x);
		return true;
	}
	x = json_object_get(v, "int");
	if (json_is_integer(x)) {
		out->type = GPUQ_CEL_INT;
		out->number = json_integer_value(x);
		return true;
	}
	x = json_object_get(v, "bool");
	out->type = GPUQ_CEL_BOOL;
	out->number = json_is_true(x);
	return json_is_boolean(x);
}

static bool read_milli(const json_t *v, int64_t *out)
{
	const char *text = kube_str(v, "value");

	return gpuq_cel_quantity(text, strlen(text), out);
}

/* Append a word; of two with one name, one of which has its domain by the driver, the first counts. */
static void add_word(const struct reading *r, struct dra_device *out, struct dra_word *words,
		     const char *name)
{
	struct dra_word *w = &words[out->n_words];

	for (uint32_t i = 0; r->doubled && i < out->n_words; i++)
		if (words[i].capacity == w->capacity && strcmp(words[i].name, name) == 0)
			return;
	w->name = name;
	out->n_words++;
}

static void read_words(struct reading *r, const json_t *device, const char *driver,
		       struct dra_device *out)
{
	json_t *attributes = json_object_get(device, "attributes"), *v;
	json_t *capacity = json_object_get(device, "capacity");
	const size_t n = json_object_size(attributes) + json_object_size(capacity);
	struct dra_word *words;
	const char *key;

	if (n > DRA_WORDS_MAX) {
		r->wrong = "a device has too many attributes";
		return;
	}
	words = room(r, n, sizeof(*words));
	if (!words)
		return;
	json_object_foreach(attributes, key, v)
	{
		struct dra_word *w = &words[out->n_words];

		*w = (struct dra_word){ .name = "" };
		if (read_attribute(v, w))
			add_word(r, out, words, qualified(r, driver, key, out->n_words));
	}
	json_object_foreach(capacity, key, v)
	{
		struct dra_word *w = &words[out->n_words];

		*w = (struct dra_word){ .type = GPUQ_CEL_QUANTITY, .capacity = true };
		if (read_milli(v, &w->number))
			add_word(r, out, words, qualified(r, driver, key, out->n_words));
	}
	out->words = words;
}

/* Read {counterSet or name, counters: {NAME: {value}}} of a device, or of a slice. */
static const struct dra_counter *read_counters(struct reading *r, const json_t *list,
					       const char *set, size_t *n)
{
	size_t i, most = 0;
	struct dra_counter *out;
	const char *key;
	json_t *item, *v;

	*n = 0;
	json_array_foreach((json_t *)(uintptr_t)list, i, item) most +=
		json_object_size(json_object_get(item, "counters"));
	if (most > DRA_WORDS_MAX * 8) {
		r->wrong = "there are too many counters";
		return NULL;
	}
	out = room(r, most, sizeof(*out));
	json_array_foreach((json_t *)(uintptr_t)list, i, item)
	{
		json_object_foreach(json_object_get(item, "counters"), key, v)
		{
			struct dra_counter c = { kube_str(item, set), key, 0 };

			if (!read_milli(v, &c.milli))
				r->wrong = "a counter is no quantity";
			else if (out)
				out[(*n)++] = c;
		}
	}
	return out;
}

static void read_taints(struct reading *r, const json_t *device, struct dra_device *out)
{
	const json_t *list = json_object_get(device, "taints");
	const size_t n = list_of(r, list, DRA_WORDS_MAX, "a device has too many taints");
	struct dra_taint *taints = room(r, n, sizeof(*taints));

	for (size_t i = 0; taints && i < n; i++) {
		const json_t *t = json_array_get(list, i);

		taints[i] = (struct dra_taint){ kube_str(t, "key"), kube_str(t, "value"),
						kube_str(t, "effect") };
	}
	out->taints = taints;
	out->n_taints = taints ? (uint16_t)n : 0;
}

/* Return the field by which gpuqd does not use the device, a static word; NULL = it does. */
static const char *odd_device(const json_t *device)
{
	static const char *const known[] = { "name",        "attributes",
					     "capacity",    "consumesCounters",
					     "taints",      "allowMultipleAllocations",
					     "bindsToNode", NULL };
	static const char *const fields[] = { "nodeName", "nodeSelector", "allNodes",
					      "bindingConditions", "bindingFailureConditions" };
	const char *key;

	if (json_is_true(json_object_get(device, "allowMultipleAllocations")))
		return "allowMultipleAllocations";
	key = unknown(device, known);
	for (size_t i = 0; key && i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(key, fields[i]) == 0)
			return fields[i];
	return key ? "a field that gpuqd does not know" : NULL;
}

static const struct dra_slice *read_slice(struct reading *r, const char *name)
{
	const json_t *spec = json_object_get(r->o->object, "spec");
	const json_t *pool = json_object_get(spec, "pool"),
		     *list = json_object_get(spec, "devices");
	const size_t n = list_of(r, list, DRA_DEVICES_MAX, "it has more than 128 devices");
	struct dra_slice *s = room(r, 1, sizeof(*s));
	struct dra_device *devices = room(r, n, sizeof(*devices));
	size_t n_counters;

	if (!s || !devices)
		return NULL;
	*s = (struct dra_slice){
		.name = name,
		.driver = kube_str(spec, "driver"),
		.pool = kube_str(pool, "name"),
		.generation = json_integer_value(json_object_get(pool, "generation")),
		.n_slices = json_integer_value(json_object_get(pool, "resourceSliceCount")),
		.node = kube_str(spec, "nodeName"),
		.devices = devices,
		.n_devices = (uint32_t)n,
	};
	if (!*s->driver || !*s->pool || s->n_slices < 1)
		r->wrong = "it names no driver, or no pool";
	for (size_t i = 0; i < n && !r->wrong; i++) {
		const json_t *d = json_array_get(list, i);
		size_t n_consumes;

		devices[i].name = kube_str(d, "name");
		if (!*devices[i].name)
			r->wrong = "a device has no name";
		read_words(r, d, s->driver, &devices[i]);
		devices[i].consumes = read_counters(r, json_object_get(d, "consumesCounters"),
						    "counterSet", &n_consumes);
		devices[i].n_consumes = (uint16_t)n_consumes;
		read_taints(r, d, &devices[i]);
		devices[i].odd = odd_device(d);
	}
	s->counters =
		read_counters(r, json_object_get(spec, "sharedCounters"), "name", &n_counters);
	s->n_counters = (uint32_t)n_counters;
	return s;
}

/* ---- requests ---- */

static struct gpuq_strlist read_selectors(struct reading *r, const json_t *list, const char **odd)
{
	const size_t n = list_of(r, list, ITEMS_MAX, "it has more than 32 selectors");
	struct gpuq_strlist out = { room(r, n, sizeof(*out.items)), 0 };

	for (size_t i = 0; out.items && i < n; i++) {
		const char *text =
			json_string_value(kube_path(json_array_get(list, i), "cel", "expression"));

		if (text)
			out.items[out.n++] = text;
		else
			*odd = "a selector without cel";
	}
	return out;
}

static const struct gpuq_toleration *read_tolerations(struct reading *r, const json_t *list,
						      uint32_t *n_out)
{
	const size_t n = list_of(r, list, ITEMS_MAX, "it has more than 32 tolerations");
	struct gpuq_toleration *out = room(r, n, sizeof(*out));

	for (size_t i = 0; out && i < n; i++) {
		const json_t *t = json_array_get(list, i);

		out[i] = (struct gpuq_toleration){
			.key = kube_str(t, "key"),
			.exists = strcmp(kube_str(t, "operator"), "Exists") == 0,
			.value = kube_str(t, "value"),
			.effect = kube_str(t, "effect"),
			.seconds = -1,
		};
	}
	*n_out = out ? (uint32_t)n : 0;
	return out;
}

static void read_option(struct reading *r, const json_t *v, struct dra_option *out,
			const char **odd)
{
	static const char *const known[] = { "name",        "deviceClassName",
					     "selectors",   "allocationMode",
					     "count",       "tolerations",
					     "adminAccess", NULL };
	const char *mode = kube_str(v, "allocationMode"), *key = unknown(v, known);
	const json_t *count = json_object_get(v, "count");

	out->name = kube_str(v, "name");
	out->class_ = kube_str(v, "deviceClassName");
	out->selectors = read_selectors(r, json_object_get(v, "selectors"), odd);
	out->tolerations =
		read_tolerations(r, json_object_get(v, "tolerations"), &out->n_tolerations);
	out->all = strcmp(mode, "All") == 0;
	out->count = json_is_integer(count) ? json_integer_value(count) : 1;
	if (!out->all && *mode && strcmp(mode, "ExactCount") != 0)
		key = "allocationMode";
	if (json_is_true(json_object_get(v, "adminAccess")))
		key = "adminAccess";
	if (key)
		*odd = gpuq_arena_printf(&r->o->arena, "%.64s", key);
	if (!*odd)
		r->wrong = "no memory";
}

static void read_request(struct reading *r, const json_t *v, struct dra_request *out,
			 const char **odd)
{
	static const char *const known[] = { "name", "exactly", "firstAvailable", NULL };
	const json_t *list = json_object_get(v, "firstAvailable");
	const json_t *exactly = json_object_get(v, "exactly");
	const size_t n = list_of(r, list, OPTIONS_MAX, "a request has more than 8 alternatives");
	struct dra_option *options = room(r, n ? n : 1, sizeof(*options));
	const char *key = unknown(v, known);

	out->name = kube_str(v, "name");
	out->options = options;
	if (!options)
		return;
	for (size_t i = 0; i < n; i++)
		read_option(r, json_array_get(list, i), &options[i], odd);
	out->n_options = (uint32_t)n;
	if (n == 0 && json_is_object(exactly)) {
		read_option(r, exactly, &options[0], odd);
		out->n_options = 1;
	}
	if (key || out->n_options == 0)
		*odd = "a request of a kind that gpuqd does not know";
}

static struct gpuq_strlist read_names(struct reading *r, const json_t *list)
{
	const size_t n = list_of(r, list, ITEMS_MAX, "a list of requests has more than 32 names");
	struct gpuq_strlist out = { room(r, n, sizeof(*out.items)), 0 };

	for (size_t i = 0; out.items && i < n; i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (name)
			out.items[out.n++] = name;
	}
	return out;
}

static const char *read_config(struct reading *r, const json_t *list)
{
	char *text, *kept;

	if (json_array_size(list) == 0)
		return "";
	text = json_dumps(list, JSON_COMPACT);
	kept = text ? gpuq_arena_strdup(&r->o->arena, text) : NULL;
	free(text);
	if (!kept)
		r->wrong = "no memory";
	return kept ? kept : "";
}

static void read_spec(struct reading *r, const json_t *spec, struct dra_spec *out)
{
	static const char *const known[] = { "requests", "constraints", "config", NULL };
	static const char *const outer[] = { "devices", NULL };
	static const char *const in_constraint[] = { "requests", "matchAttribute", NULL };
	const json_t *devices = json_object_get(spec, "devices");
	const json_t *list = json_object_get(devices, "requests");
	const json_t *constraints = json_object_get(devices, "constraints");
	const size_t n = list_of(r, list, ITEMS_MAX, "it has more than 32 requests");
	const size_t m = list_of(r, constraints, ITEMS_MAX, "it has more than 32 constraints");
	struct dra_request *requests = room(r, n, sizeof(*requests));
	struct dra_constraint *c = room(r, m, sizeof(*c));
	const char *odd = unknown(devices, known);

	if (!odd)
		odd = unknown(spec, outer);
	out->odd = odd ? odd : "";
	for (size_t i = 0; requests && i < n; i++)
		read_request(r, json_array_get(list, i), &requests[i], &out->odd);
	for (size_t i = 0; c && i < m; i++) {
		const json_t *v = json_array_get(constraints, i);
		const char *key = unknown(v, in_constraint);

		c[i].attribute = kube_str(v, "matchAttribute");
		c[i].requests = read_names(r, json_object_get(v, "requests"));
		if (key)
			out->odd = key;
	}
	out->requests = requests;
	out->n_requests = requests ? (uint32_t)n : 0;
	out->constraints = c;
	out->n_constraints = c ? (uint32_t)m : 0;
	out->config = read_config(r, json_object_get(devices, "config"));
}

/* ---- DeviceClass, ResourceClaim, ResourceClaimTemplate ---- */

static const struct dra_class *read_class(struct reading *r, const char *name)
{
	static const char *const known[] = { "selectors", "config", "extendedResourceName", NULL };
	const json_t *spec = json_object_get(r->o->object, "spec");
	struct dra_class *c = room(r, 1, sizeof(*c));
	const char *odd = unknown(spec, known);

	if (!c)
		return NULL;
	c->name = name;
	c->odd = odd ? odd : "";
	c->selectors = read_selectors(r, json_object_get(spec, "selectors"), &c->odd);
	c->extended = kube_str(spec, "extendedResourceName");
	c->config = read_config(r, json_object_get(spec, "config"));
	return c;
}

/* The node that the devices of an allocation belong to; any = "". */
static const char *node_of(const json_t *allocation, const char **odd)
{
	const json_t *terms = kube_path(allocation, "nodeSelector", "nodeSelectorTerms");
	const json_t *term = json_array_get(terms, 0);
	const json_t *field = json_array_get(json_object_get(term, "matchFields"), 0);
	const json_t *values = json_object_get(field, "values");

	if (!json_object_get(allocation, "nodeSelector"))
		return "";
	if (json_array_size(terms) == 1 && json_array_size(values) == 1 &&
	    json_array_size(json_object_get(term, "matchFields")) == 1 &&
	    json_array_size(json_object_get(term, "matchExpressions")) == 0 &&
	    strcmp(kube_str(field, "key"), "metadata.name") == 0 &&
	    strcmp(kube_str(field, "operator"), "In") == 0) {
		const char *name = json_string_value(json_array_get(values, 0));

		return name ? name : "";
	}
	*odd = "an allocation to several nodes";
	return "";
}

static void read_results(struct reading *r, const json_t *allocation, struct dra_claim *c)
{
	const json_t *list = kube_path(allocation, "devices", "results");
	const size_t n = list_of(r, list, DRA_RESULTS_MAX, "it has more than 32 devices");
	struct dra_result *out = room(r, n, sizeof(*out));

	for (size_t i = 0; out && i < n; i++) {
		const json_t *v = json_array_get(list, i);

		/* Access of administrators takes nothing from others. */
		if (!json_is_true(json_object_get(v, "adminAccess")))
			out[c->n_results++] =
				(struct dra_result){ kube_str(v, "request"), kube_str(v, "driver"),
						     kube_str(v, "pool"), kube_str(v, "device") };
	}
	c->results = out;
}

static const char *owner_of(const json_t *meta, const char *key)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(meta, "ownerReferences"), i, item)
	{
		if (strcmp(kube_str(item, "kind"), "Pod") == 0)
			return kube_str(item, key);
	}
	return "";
}

static bool protected(const json_t *meta)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(meta, "finalizers"), i, item)
	{
		if (json_is_string(item) &&
		    strcmp(json_string_value(item), KUBE_CLAIM_FINALIZER) == 0)
			return true;
	}
	return false;
}

static const struct dra_claim *read_claim(struct reading *r, const char *namespace_,
					  const char *name, const char *cluster_id)
{
	const json_t *meta = json_object_get(r->o->object, "metadata");
	const json_t *status = json_object_get(r->o->object, "status");
	const json_t *allocation = json_object_get(status, "allocation");
	const json_t *reserved = json_object_get(status, "reservedFor");
	const json_t *notes = json_object_get(meta, "annotations");
	const size_t n = list_of(r, reserved, RESERVED_MAX, "it has more than 256 consumers");
	struct dra_claim *c = room(r, 1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct dra_claim){
		.namespace_ = namespace_,
		.name = name,
		.uid = kube_str(meta, "uid"),
		.version = r->o->version,
		.owner = owner_of(meta, "uid"),
		.owner_name = owner_of(meta, "name"),
		.pod_claim = kube_str(notes, KUBE_A_POD_CLAIM),
		.ours = strcmp(kube_str(json_object_get(meta, "labels"), KUBE_L_CLUSTER),
			       cluster_id) == 0,
		.taken = strcmp(kube_str(notes, KUBE_A_ALLOCATED), cluster_id) == 0,
		.leaving = *kube_str(meta, "deletionTimestamp") != '\0',
		.finalizer = protected(meta),
		.allocated = json_is_object(allocation),
		.reserved = { room(r, n, sizeof(*c->reserved.items)), 0 },
		.consumers = { room(r, n, sizeof(*c->consumers.items)), 0 },
	};
	read_spec(r, json_object_get(r->o->object, "spec"), &c->spec);
	c->node = node_of(allocation, &c->spec.odd);
	read_results(r, allocation, c);
	for (size_t i = 0; c->reserved.items && c->consumers.items && i < n; i++) {
		const json_t *v = json_array_get(reserved, i);

		c->reserved.items[c->reserved.n++] = kube_str(v, "uid");
		c->consumers.items[c->consumers.n++] = kube_str(v, "name");
	}
	return c;
}

static const struct dra_template *read_template(struct reading *r, const char *namespace_,
						const char *name)
{
	struct dra_template *t = room(r, 1, sizeof(*t));

	if (!t)
		return NULL;
	t->namespace_ = namespace_;
	t->name = name;
	read_spec(r, kube_path(r->o->object, "spec", "spec"), &t->spec);
	return t;
}

int kube_read_dra(struct kube_object *o, enum object_kind kind, const char *cluster_id,
		  struct object_fact *out, struct gpuq_err *err)
{
	const json_t *meta = json_object_get(o->object, "metadata");
	struct reading r = { .o = o };
	struct object_fact f = { .kind = kind,
				 .namespace_ = kube_str(meta, "namespace"),
				 .name = kube_str(meta, "name"),
				 .volume = "",
				 .class_ = "",
				 .selected = "" };

	if (!*f.name)
		return gpuq_fail(err, GPUQ_EINVAL, "an object without a name");
	switch (kind) {
	case OBJECT_SLICE:
		f.dra.slice = read_slice(&r, f.name);
		break;
	case OBJECT_DEVICE_CLASS:
		f.dra.class_ = read_class(&r, f.name);
		break;
	case OBJECT_DEVICE_CLAIM:
		f.dra.claim = read_claim(&r, f.namespace_, f.name, cluster_id);
		break;
	default:
		f.dra.template_ = read_template(&r, f.namespace_, f.name);
	}
	if (r.wrong)
		return gpuq_fail(err, GPUQ_EINVAL, "%.200s: %s", f.name, r.wrong);
	*out = f;
	return 0;
}
