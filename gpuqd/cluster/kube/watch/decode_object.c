#include "gpuqd/cluster/kube/watch/decode_object.h"

#include <string.h>

#include "gpuqd/cluster/kube/watch/decode_amounts.h"
#include "libgpuq/units.h"

/* More requirements, or values, than that are no restriction that a person wrote. */
#define ITEMS_MAX 1024

/* The operators of a NodeSelectorRequirement. */
static const struct {
	const char *word;
	int op;
} operators[] = {
	{ "In", GPUQ_OP_IN },         { "NotIn", GPUQ_OP_NOT_IN },
	{ "Exists", GPUQ_OP_EXISTS }, { "DoesNotExist", GPUQ_OP_NOT_EXISTS },
	{ "Gt", GPUQ_OP_GT },         { "Lt", GPUQ_OP_LT },
};

/* ---- LimitRange, RuntimeClass ---- */

static void at_least(int64_t *to, int64_t n)
{
	if (n > *to)
		*to = n;
}

/* The apiserver completes defaultRequest from default and min when it stores a LimitRange, which has
 * one item for containers. */
static bool read_limits(struct kube_object *o, struct object_fact *out)
{
	size_t i;
	json_t *item;

	json_array_foreach(kube_path(o->object, "spec", "limits"), i, item)
	{
		const json_t *asks = json_object_get(item, "defaultRequest");

		if (strcmp(kube_str(item, "type"), "Container") != 0)
			continue;
		if (!json_is_object(asks))
			asks = json_object_get(item, "default");
		at_least(&out->cpu_milli, kube_quantity(asks, "cpu", gpuq_milli_parse));
		at_least(&out->memory_bytes, kube_quantity(asks, "memory", gpuq_bytes_parse));
		if (kube_read_amounts(o, asks, &out->amounts, &out->n_amounts) < 0)
			return false;
	}
	return true;
}

static struct gpuq_require *room_for(struct kube_object *o, size_t n)
{
	return gpuq_arena_calloc(&o->arena, n + 1, sizeof(struct gpuq_require));
}

static bool one_term(struct kube_object *o, struct gpuq_require *all, size_t n,
		     struct object_fact *out)
{
	struct gpuq_term *t = gpuq_arena_calloc(&o->arena, 1, sizeof(*t));

	if (!t)
		return false;
	*t = (struct gpuq_term){ .all = all, .n = n };
	out->required = t;
	out->n_required = 1;
	return true;
}

static bool require_value(struct kube_object *o, const char *key, const char *value,
			  struct gpuq_require *out)
{
	const char **items = gpuq_arena_calloc(&o->arena, 1, sizeof(*items));

	if (!items)
		return false;
	items[0] = value;
	*out = (struct gpuq_require){ key, GPUQ_OP_IN, { items, 1 } };
	return true;
}

/* The apiserver gives them to the pods of the class. */
static bool read_tolerations(struct kube_object *o, struct object_fact *out)
{
	const json_t *list = kube_path(o->object, "scheduling", "tolerations");
	const size_t n = json_array_size(list);
	struct gpuq_toleration *all;

	if (n == 0)
		return true;
	all = n > ITEMS_MAX ? NULL : gpuq_arena_calloc(&o->arena, n, sizeof(*all));
	if (!all)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		const json_t *seconds = json_object_get(v, "tolerationSeconds");

		all[i] = (struct gpuq_toleration){
			.key = kube_str(v, "key"),
			.exists = strcmp(kube_str(v, "operator"), "Exists") == 0,
			.value = kube_str(v, "value"),
			.effect = kube_str(v, "effect"),
			.seconds = json_is_integer(seconds) ? json_integer_value(seconds) : -1,
		};
	}
	out->tolerations = all;
	out->n_tolerations = n;
	return true;
}

static bool read_runtime(struct kube_object *o, struct object_fact *out)
{
	const json_t *fixed = kube_path(o->object, "overhead", "podFixed");
	json_t *labels = kube_path(o->object, "scheduling", "nodeSelector"), *v;
	struct gpuq_require *all;
	const char *key;
	size_t n = 0;

	out->cpu_milli = kube_quantity(fixed, "cpu", gpuq_milli_parse);
	out->memory_bytes = kube_quantity(fixed, "memory", gpuq_bytes_parse);
	if (!read_tolerations(o, out) ||
	    kube_read_amounts(o, fixed, &out->amounts, &out->n_amounts) < 0)
		return false;
	if (json_object_size(labels) == 0)
		return true;
	all = room_for(o, json_object_size(labels));
	if (!all)
		return false;
	json_object_foreach(labels, key, v)
	{
		if (json_is_string(v) && !require_value(o, key, json_string_value(v), &all[n++]))
			return false;
	}
	return one_term(o, all, n, out);
}

/* ---- PersistentVolumeClaim, PersistentVolume ---- */

static unsigned read_modes(const json_t *spec)
{
	static const struct {
		const char *word;
		unsigned mode;
	} words[] = { { "ReadWriteOnce", ACCESS_WRITE_ONCE },
		      { "ReadOnlyMany", ACCESS_READ_MANY },
		      { "ReadWriteMany", ACCESS_WRITE_MANY },
		      { "ReadWriteOncePod", ACCESS_ONE_POD } };
	unsigned modes = 0;
	size_t i;
	json_t *item;

	json_array_foreach(json_object_get(spec, "accessModes"), i, item)
	{
		const char *word = json_string_value(item);

		for (size_t k = 0; word && k < sizeof(words) / sizeof(words[0]); k++)
			if (strcmp(word, words[k].word) == 0)
				modes |= words[k].mode;
	}
	return modes;
}

/* Read what has to match between a claim and its volume. */
static void read_storage(const json_t *spec, const json_t *sizes, struct object_fact *out)
{
	out->class_ = kube_str(spec, "storageClassName");
	out->size_bytes = kube_quantity(sizes, "storage", gpuq_bytes_parse);
	out->modes = read_modes(spec);
	out->block = strcmp(kube_str(spec, "volumeMode"), "Block") == 0;
}

static void read_claim(const json_t *object, struct object_fact *out)
{
	const char *phase = kube_str(json_object_get(object, "status"), "phase");
	const json_t *spec = json_object_get(object, "spec");
	const json_t *notes = kube_path(object, "metadata", "annotations");

	out->state = strcmp(phase, "Bound") == 0  ? CLAIM_BOUND
		     : strcmp(phase, "Lost") == 0 ? CLAIM_LOST
						  : CLAIM_PENDING;
	out->volume = kube_str(spec, "volumeName");
	out->selects = json_object_size(json_object_get(spec, "selector")) > 0;
	read_storage(spec, kube_path(spec, "resources", "requests"), out);
	if (out->state == CLAIM_PENDING)
		out->selected = kube_str(notes, KUBE_A_SELECTED_NODE);
}

static bool read_values(struct kube_object *o, const json_t *v, struct gpuq_strlist *out)
{
	const json_t *values = json_object_get(v, "values");
	const size_t n = json_array_size(values);
	const char **items = gpuq_arena_calloc(&o->arena, n + 1, sizeof(*items));

	if (!items || n > ITEMS_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(values, i));

		items[i] = s ? s : "";
	}
	*out = (struct gpuq_strlist){ items, n };
	return true;
}

static bool read_require(struct kube_object *o, const json_t *v, const char *key,
			 struct gpuq_require *out)
{
	const char *word = kube_str(v, "operator");
	struct gpuq_strlist values;

	if (!read_values(o, v, &values))
		return false;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (strcmp(word, operators[i].word) != 0)
			continue;
		*out = (struct gpuq_require){ key, operators[i].op, values };
		return true;
	}
	return false;
}

/* Volumes of older plugins say where they are by labels: one zone, or several, "a__b". */
static bool read_zones(struct kube_object *o, struct gpuq_require *all, size_t *n)
{
	static const char *const keys[] = { "topology.kubernetes.io/zone",
					    "topology.kubernetes.io/region" };
	const json_t *labels = kube_path(o->object, "metadata", "labels");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *text = kube_str(labels, keys[i]);
		const char **items;
		size_t n_items = 1;

		if (!*text)
			continue;
		for (const char *p = text; (p = strstr(p, "__")) != NULL; p += 2)
			n_items++;
		items = gpuq_arena_calloc(&o->arena, n_items, sizeof(*items));
		if (!items || n_items > ITEMS_MAX)
			return false;
		for (size_t k = 0; k < n_items; k++) {
			const char *end = strstr(text, "__");

			items[k] = gpuq_arena_strndup(&o->arena, text,
						      end ? (size_t)(end - text) : strlen(text));
			if (!items[k])
				return false;
			text = end ? end + 2 : "";
		}
		all[(*n)++] = (struct gpuq_require){ keys[i], GPUQ_OP_IN, { items, n_items } };
	}
	return true;
}

static bool read_term(struct kube_object *o, const json_t *v, const struct gpuq_require *zones,
		      size_t n_zones, struct gpuq_term *out)
{
	static const char *const lists[] = { "matchExpressions", "matchFields" };
	size_t room = n_zones, n = 0, i;
	struct gpuq_require *all;
	json_t *item;

	for (int k = 0; k < 2; k++)
		room += json_array_size(json_object_get(v, lists[k]));
	all = room > ITEMS_MAX ? NULL : room_for(o, room);
	if (!all)
		return false;
	for (int k = 0; k < 2; k++)
		json_array_foreach(json_object_get(v, lists[k]), i, item)
		{
			if (!read_require(o, item, kube_str(item, "key"), &all[n++]))
				return false;
		}
	/* A term without requirements matches no node: it stays so. */
	for (size_t z = 0; n > 0 && z < n_zones; z++)
		all[n++] = zones[z];
	*out = (struct gpuq_term){ .all = all, .n = n };
	return true;
}

/* Read where a class has its volumes made: each term of labels and their values. */
static bool read_topologies(struct kube_object *o, struct object_fact *out)
{
	const json_t *list = json_object_get(o->object, "allowedTopologies");
	const size_t n = json_array_size(list);
	struct gpuq_term *terms = NULL;

	if (n == 0)
		return true;
	terms = n > ITEMS_MAX ? NULL : gpuq_arena_calloc(&o->arena, n, sizeof(*terms));
	for (size_t i = 0; terms && i < n; i++) {
		const json_t *labels =
			json_object_get(json_array_get(list, i), "matchLabelExpressions");
		const size_t n_labels = json_array_size(labels);
		struct gpuq_require *all = n_labels > ITEMS_MAX ? NULL : room_for(o, n_labels);

		if (!all)
			return false;
		for (size_t k = 0; k < n_labels; k++) {
			const json_t *label = json_array_get(labels, k);

			all[k] = (struct gpuq_require){ .key = kube_str(label, "key"),
							.op = GPUQ_OP_IN };
			if (!read_values(o, label, &all[k].values))
				return false;
		}
		terms[i] = (struct gpuq_term){ .all = all, .n = n_labels };
	}
	out->required = terms;
	out->n_required = terms ? n : 0;
	return terms != NULL;
}

static bool read_volume(struct kube_object *o, struct object_fact *out)
{
	const json_t *required =
		kube_path(kube_path(o->object, "spec", "nodeAffinity"), "required", NULL);
	const json_t *list = json_object_get(required, "nodeSelectorTerms");
	const size_t n = json_array_size(list);
	struct gpuq_require *zones = room_for(o, 2);
	const json_t *spec = json_object_get(o->object, "spec");
	const char *phase = kube_str(json_object_get(o->object, "status"), "phase");
	struct gpuq_term *terms;
	size_t n_zones = 0;

	read_storage(spec, json_object_get(spec, "capacity"), out);
	out->unclaimed = strcmp(phase, "Available") == 0 && !json_object_get(spec, "claimRef") &&
			 !kube_path(o->object, "metadata", "deletionTimestamp");
	if (!zones || n > ITEMS_MAX || !read_zones(o, zones, &n_zones))
		return false;
	if (n == 0)
		return n_zones == 0 || one_term(o, zones, n_zones, out);
	terms = gpuq_arena_calloc(&o->arena, n, sizeof(*terms));
	if (!terms)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!read_term(o, json_array_get(list, i), zones, n_zones, &terms[i]))
			return false;
	out->required = terms;
	out->n_required = n;
	return true;
}

/* ---- all of them ---- */

int kube_read_object(struct kube_object *o, enum object_kind kind, struct object_fact *out,
		     struct gpuq_err *err)
{
	const json_t *meta = json_object_get(o->object, "metadata");
	struct object_fact f = { .kind = kind,
				 .namespace_ = kube_str(meta, "namespace"),
				 .name = kube_str(meta, "name"),
				 .volume = "",
				 .class_ = "",
				 .selected = "" };
	bool ok = true;

	if (!*f.name)
		return gpuq_fail(err, GPUQ_EINVAL, "an object without a name");
	switch (kind) {
	case OBJECT_LIMITS:
		ok = read_limits(o, &f);
		break;
	case OBJECT_RUNTIME:
		ok = read_runtime(o, &f);
		break;
	case OBJECT_CLAIM:
		read_claim(o->object, &f);
		break;
	case OBJECT_VOLUME:
		ok = read_volume(o, &f);
		break;
	case OBJECT_CLASS:
		f.waits = strcmp(kube_str(o->object, "volumeBindingMode"),
				 "WaitForFirstConsumer") == 0;
		f.makes_none = strcmp(kube_str(o->object, "provisioner"),
				      "kubernetes.io/no-provisioner") == 0;
		ok = read_topologies(o, &f);
		break;
	case OBJECT_UNHEALTHY:
		f.selected = kube_str(json_object_get(o->object, "data"), "gpus");
		break;
	default:
		ok = false;
	}
	if (!ok)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: its nodes or tolerations cannot be read",
				 f.name);
	*out = f;
	return 0;
}
