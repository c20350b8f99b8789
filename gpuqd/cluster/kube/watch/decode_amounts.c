#include "gpuqd/cluster/kube/watch/decode_amounts.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

/* The largest amount that is read; sums stay far from the end of the range. */
#define AMOUNT_MAX (INT64_MAX / 256)

static bool is_counted(const char *name)
{
	switch (gpuq_resource_kind(name)) {
	case GPUQ_RESOURCE_COUNTED:
	case GPUQ_RESOURCE_DEVICE:
	case GPUQ_RESOURCE_REPLICA:
		return true;
	default:
		return false;
	}
}

static int64_t amount_of(const json_t *list, const char *name)
{
	const int64_t n = gpuq_resource_is_bytes(name)
				  ? kube_quantity(list, name, gpuq_bytes_parse)
				  : kube_quantity(list, name, gpuq_milli_parse) / 1000;

	return n < AMOUNT_MAX ? n : AMOUNT_MAX;
}

/* Read those resources of a list that count as `counted` says. */
static int read_amounts(struct kube_object *o, const json_t *list,
			bool (*counted)(const char *name), const struct gpuq_amount **out,
			size_t *n_out)
{
	struct gpuq_amount *items;
	size_t n = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)list, key, v) n += counted(key);
	if (n > KUBE_RESOURCES_MAX)
		return GPUQ_ETOOBIG;
	items = gpuq_arena_calloc(&o->arena, n + 1, sizeof(*items));
	if (!items)
		return GPUQ_ENOMEM;
	n = 0;
	json_object_foreach((json_t *)list, key, v)
	{
		if (counted(key))
			items[n++] = (struct gpuq_amount){ key, amount_of(list, key) };
	}
	*out = items;
	*n_out = gpuq_amounts_sort(items, n);
	return 0;
}

int kube_read_node_amounts(struct kube_object *o, struct node_fact *out)
{
	return read_amounts(o, kube_path(o->object, "status", "allocatable"), is_counted,
			    &out->resources, &out->n_resources);
}

static bool is_no_own(const char *name)
{
	const enum gpuq_resource_kind kind = gpuq_resource_kind(name);

	return kind != GPUQ_RESOURCE_OWN && kind != GPUQ_RESOURCE_UNKNOWN;
}

int kube_read_amounts(struct kube_object *o, const json_t *list, const struct gpuq_amount **out,
		      size_t *n)
{
	return read_amounts(o, list, is_no_own, out, n);
}

/* ---- pods ---- */

/* Return what a container, or a pod as a whole, holds of one resource: its requests, else its
 * limits. */
static int64_t asked(const json_t *of, const char *name)
{
	const json_t *res = json_object_get(of, "resources");
	const json_t *requests = json_object_get(res, "requests");

	return amount_of(
		json_object_get(requests, name) ? requests : json_object_get(res, "limits"), name);
}

/* The sum of the containers, against the largest init container; sidecars count on both sides. */
static int64_t pod_asks(const json_t *spec, const char *name)
{
	int64_t app = 0, sidecars = 0, init = 0, whole;
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(spec, "containers"), i, c) app += asked(c, name);
	json_array_foreach(json_object_get(spec, "initContainers"), i, c)
	{
		const int64_t one = asked(c, name) + sidecars;

		if (strcmp(kube_str(c, "restartPolicy"), "Always") == 0) {
			app += one - sidecars;
			sidecars = one;
		}
		init = one > init ? one : init;
	}
	app = app > init ? app : init;
	whole = asked(spec, name);
	app = whole ? whole : app;
	return app + amount_of(json_object_get(spec, "overhead"), name);
}

struct names {
	const char *items[KUBE_RESOURCES_MAX];
	size_t n;
};

/* Note the counted names of a map, each once. */
static void note(const json_t *list, struct names *names)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)list, key, v)
	{
		size_t k = 0;

		if (!is_counted(key))
			continue;
		while (k < names->n && strcmp(names->items[k], key) != 0)
			k++;
		if (k == names->n && k < KUBE_RESOURCES_MAX)
			names->items[names->n++] = key;
	}
}

static void note_of(const json_t *of, struct names *names)
{
	const json_t *res = json_object_get(of, "resources");

	note(json_object_get(res, "requests"), names);
	note(json_object_get(res, "limits"), names);
}

int kube_read_pod_amounts(struct kube_object *o, struct pod_fact *out)
{
	static const char *const lists[] = { "containers", "initContainers" };
	const json_t *spec = json_object_get(o->object, "spec");
	struct gpuq_amount *items;
	struct names names = { .n = 0 };
	size_t i;
	json_t *c;

	for (size_t k = 0; k < 2; k++)
		json_array_foreach(json_object_get(spec, lists[k]), i, c) note_of(c, &names);
	note_of(spec, &names);
	note(json_object_get(spec, "overhead"), &names);
	if (names.n == 0)
		return 0;
	items = gpuq_arena_calloc(&o->arena, names.n, sizeof(*items));
	if (!items)
		return GPUQ_ENOMEM;
	for (i = 0; i < names.n; i++)
		items[i] = (struct gpuq_amount){ names.items[i], pod_asks(spec, names.items[i]) };
	names.n = gpuq_amounts_sort(items, names.n);
	out->resources = items;
	out->n_resources = names.n < GPUQ_RESOURCES_MAX ? names.n : GPUQ_RESOURCES_MAX;
	return 0;
}

size_t kube_pod_words(const json_t *pod, struct gpuq_amount out[KUBE_WORDS_MAX])
{
	const json_t *spec = json_object_get(pod, "spec");
	size_t n = 0;

	for (size_t i = 0; gpuq_resource_words[i] && n < KUBE_WORDS_MAX; i++) {
		const int64_t sum = pod_asks(spec, gpuq_resource_words[i]);

		if (sum > 0)
			out[n++] = (struct gpuq_amount){ gpuq_resource_words[i], sum };
	}
	return n;
}

/* ---- refusals ---- */

/* Return what follows a word of the message; NULL without it. */
static const char *text_after(const char *message, const char *word)
{
	const char *at = strstr(message, word);

	return at ? at + strlen(word) : NULL;
}

/* The same for a number; -1 without it. */
static int64_t number_after(const char *message, const char *word)
{
	const char *at = text_after(message, word);
	char *end;
	long long n;

	if (!at)
		return -1;
	n = strtoll(at, &end, 10);
	return end == at || n < 0 ? -1 : n;
}

/* The kubelet's admission has two forms: "OutOfNAME" with "requested: R, used: U, capacity: C", and
 * the device manager's "... devices unavailable for NAME. Requested: R, Available: A, ..." or "no
 * healthy devices present; cannot allocate unhealthy devices NAME, ...". */
void kube_read_shortage(struct gpuq_arena *a, struct pod_fact *out)
{
	const char *name = NULL, *at;
	int64_t have = 0;

	if (out->fault != POD_FAULT_REJECTED)
		return;
	if (strncmp(out->reason, "OutOf", 5) == 0) {
		const int64_t used = number_after(out->message, "used: ");
		const int64_t capacity = number_after(out->message, "capacity: ");

		name = out->reason + 5;
		have = used >= 0 && capacity > used ? capacity - used : 0;
	} else if ((at = text_after(out->message, "unavailable for ")) ||
		   (at = text_after(out->message, "unhealthy devices "))) {
		size_t n = strcspn(at, ", \t\n");

		n -= n > 0 && at[n - 1] == '.';
		name = n < GPUQ_RESOURCE_NAME_MAX ? gpuq_arena_strndup(a, at, n) : NULL;
		have = number_after(out->message, "Available: ");
	}
	if (!name || !*name || strlen(name) > GPUQ_RESOURCE_NAME_MAX ||
	    gpuq_resource_kind(name) == GPUQ_RESOURCE_UNKNOWN ||
	    gpuq_resource_kind(name) == GPUQ_RESOURCE_WORD)
		return;
	out->short_of = name;
	out->short_have = have > 0 ? have : 0;
}
