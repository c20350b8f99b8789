#include "patch.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

/* Lists of the API that strategic patches merge by a key of their items. */
static const char *merge_key(const char *list)
{
	static const struct {
		const char *list, *key;
	} keys[] = {
		{ "conditions", "type" }, { "containers", "name" }, { "initContainers", "name" },
		{ "volumes", "name" },    { "env", "name" },        { "ownerReferences", "uid" },
		{ "taints", "key" },      { "addresses", "type" },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].list, list) == 0)
			return keys[i].key;
	}
	return NULL;
}

static bool same_text(const json_t *a, const json_t *b)
{
	return json_is_string(a) && json_is_string(b) && json_equal(a, b);
}

static void merge_list(json_t *target, const json_t *patch, const char *key)
{
	json_t *item;
	size_t i;

	json_array_foreach(patch, i, item)
	{
		const json_t *id = json_object_get(item, key);
		const char *directive = json_string_value(json_object_get(item, "$patch"));
		json_t *old, *found = NULL;
		size_t k, at = 0;

		json_array_foreach(target, k, old)
		{
			if (same_text(json_object_get(old, key), id)) {
				found = old;
				at = k;
			}
		}
		if (directive && strcmp(directive, "delete") == 0) {
			if (found)
				json_array_remove(target, at);
		} else if (found) {
			patch_merge(found, item, true);
		} else {
			json_array_append_new(target, json_deep_copy(item));
		}
	}
}

/* finalizers: a list of texts that is a set. */
static void merge_set(json_t *target, const json_t *patch, bool remove)
{
	json_t *item, *old;
	size_t i, k;

	json_array_foreach(patch, i, item)
	{
		size_t at = json_array_size(target);

		json_array_foreach(target, k, old)
		{
			if (json_equal(old, item))
				at = k;
		}
		if (remove && at < json_array_size(target))
			json_array_remove(target, at);
		else if (!remove && at == json_array_size(target))
			json_array_append_new(target, json_deep_copy(item));
	}
}

static void merge_one(json_t *target, const char *key, const json_t *value, bool strategic)
{
	static const char delete_set[] = "$deleteFromPrimitiveList/";
	json_t *old = json_object_get(target, key);

	if (strategic && strncmp(key, delete_set, sizeof(delete_set) - 1) == 0) {
		merge_set(json_object_get(target, key + sizeof(delete_set) - 1), value, true);
	} else if (strategic && strncmp(key, "$setElementOrder/", 17) == 0) {
		return; /* the order of lists is not kept */
	} else if (json_is_null(value)) {
		json_object_del(target, key);
	} else if (json_is_object(value)) {
		if (!json_is_object(old)) {
			old = json_object();
			json_object_set_new(target, key, old);
		}
		patch_merge(old, value, strategic);
	} else if (strategic && json_is_array(value) && json_is_array(old) && merge_key(key)) {
		merge_list(old, value, merge_key(key));
	} else if (strategic && json_is_array(old) && strcmp(key, "finalizers") == 0) {
		merge_set(old, value, false);
	} else {
		json_object_set_new(target, key, json_deep_copy(value));
	}
}

void patch_merge(json_t *target, const json_t *patch, bool strategic)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)patch, key, value) merge_one(target, key, value, strategic);
}

/* Follow a JSON pointer to the parent of its last part, which is copied out
 * unescaped. NULL when the way does not exist. */
static json_t *pointer_parent(json_t *at, const char *path, char *last, size_t size)
{
	while (*path == '/') {
		size_t n = 0;
		uint64_t ix;

		for (path++; *path && *path != '/'; path++) {
			char ch = *path;

			if (ch == '~' && (path[1] == '0' || path[1] == '1'))
				ch = *++path == '0' ? '~' : '/';
			if (n + 1 < size)
				last[n++] = ch;
		}
		last[n] = '\0';
		if (!*path)
			return at;
		if (json_is_array(at))
			at = uint_parse(last, &ix) == 0 ? json_array_get(at, (size_t)ix) : NULL;
		else
			at = json_object_get(at, last);
		if (!at)
			return NULL;
	}
	return NULL;
}

static json_t *child(json_t *parent, const char *last)
{
	uint64_t ix;

	if (json_is_array(parent))
		return uint_parse(last, &ix) == 0 ? json_array_get(parent, (size_t)ix) : NULL;
	return json_object_get(parent, last);
}

static int put(json_t *parent, const char *last, const json_t *value, bool replace)
{
	uint64_t ix;

	if (!value)
		return -1;
	if (!json_is_array(parent))
		return json_object_set_new(parent, last, json_deep_copy(value));
	if (strcmp(last, "-") == 0)
		return json_array_append_new(parent, json_deep_copy(value));
	if (uint_parse(last, &ix) != 0)
		return -1;
	return replace ? json_array_set_new(parent, (size_t)ix, json_deep_copy(value))
		       : json_array_insert_new(parent, (size_t)ix, json_deep_copy(value));
}

static int patch_op(json_t *target, const json_t *op, const char **why)
{
	const char *verb = json_string_value(json_object_get(op, "op"));
	const char *path = json_string_value(json_object_get(op, "path"));
	const json_t *value = json_object_get(op, "value");
	char last[512];
	json_t *parent, *old;
	uint64_t ix;

	*why = "missing path";
	if (!verb || !path)
		return -1;
	parent = pointer_parent(target, path, last, sizeof(last));
	if (!parent)
		return -1;
	old = child(parent, last);
	if (strcmp(verb, "add") == 0)
		return put(parent, last, value, false);
	if (strcmp(verb, "test") == 0) {
		*why = "testing value failed";
		return old && value && json_equal(old, value) ? 0 : -1;
	}
	if (!old)
		return -1;
	if (strcmp(verb, "replace") == 0)
		return put(parent, last, value, true);
	if (strcmp(verb, "remove") == 0) {
		if (!json_is_array(parent))
			return json_object_del(parent, last);
		return uint_parse(last, &ix) == 0 ? json_array_remove(parent, (size_t)ix) : -1;
	}
	*why = "unknown operation: add, remove, replace and test are known";
	return -1;
}

int patch_json(json_t **target, const json_t *ops, const char **why)
{
	json_t *op;
	size_t i;

	*why = "a JSON patch is an array";
	if (!json_is_array(ops))
		return -1;
	json_array_foreach(ops, i, op)
	{
		if (patch_op(*target, op, why) != 0)
			return -1;
	}
	return 0;
}
