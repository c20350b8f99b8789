#include "gpuqd/site/site_merge.h"

#include <stdlib.h>
#include <string.h>

const struct site_kind site_kinds[] = {
	{ "flavors", "flavor" },
	{ "pools", "pool" },
	{ "qos", "qos" },
	{ "queues", "queue" },
	{ "users", "user" },
	{ "groups", "group" },
	{ "licenses", "license" },
	{ "reservations", "reservation" },
	{ NULL, NULL },
};

/* A name may be written as a plain number. */
static const char *name_of(const struct gpuq_val *member)
{
	const struct gpuq_val *v = gpuq_get(member, "name");

	if (!v)
		return "";
	return v->type == GPUQ_STR ? v->s : v->src ? v->src : "";
}

/* Return the member of that name; NULL = the list has none, or is not a list. */
static struct gpuq_val *find(const struct gpuq_val *list, const char *name)
{
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (strcmp(name_of(list->items[i]), name) == 0)
			return list->items[i];
	return NULL;
}

struct gpuq_val *site_member(const struct gpuq_val *tree, const char *list, const char *name)
{
	return find(gpuq_get(tree, list), name);
}

/* Put a pair into a map, and keep its position in the file, which errors name. */
static void put(struct gpuq_arena *a, struct gpuq_val *map, const struct gpuq_pair *p)
{
	if (map && gpuq_put(a, map, p->key, p->val))
		map->pairs[map->n - 1].at = p->at;
}

/* ---- merging ---- */

/* Return the member with the keys of the file, and the old value of every key that the file does
 * not name. */
static struct gpuq_val *merge_member(struct gpuq_arena *a, const struct gpuq_val *old,
				     const struct gpuq_val *file)
{
	struct gpuq_val *v = gpuq_map(a);

	if (v)
		v->at = file->at;
	for (uint32_t i = 0; i < old->n; i++)
		if (!gpuq_get(file, old->pairs[i].key))
			put(a, v, &old->pairs[i]);
	for (uint32_t i = 0; i < file->n; i++)
		put(a, v, &file->pairs[i]);
	return v;
}

/* Existing members keep their places, since queues are ordered by age. An entry that is not a
 * valid member (no map, no name, a duplicate name) is passed on unchanged: the schema reports
 * it. */
static struct gpuq_val *merge_list(struct gpuq_arena *a, const struct gpuq_val *old,
				   const struct gpuq_val *file, bool prune)
{
	struct gpuq_val *v = gpuq_list(a);
	bool *used = gpuq_arena_calloc(a, (file ? file->n : 0) + 1, sizeof(*used));

	if (!v || !used)
		return NULL;
	if (file)
		v->at = file->at;
	for (uint32_t i = 0; old && i < old->n; i++) {
		const char *name = name_of(old->items[i]);
		uint32_t k = 0;

		while (file && k < file->n &&
		       (used[k] || file->items[k]->type != GPUQ_MAP ||
			strcmp(name_of(file->items[k]), name) != 0))
			k++;
		if (file && k < file->n) {
			used[k] = true;
			gpuq_add(a, v,
				 prune ? file->items[k]
				       : merge_member(a, old->items[i], file->items[k]));
		} else if (!prune) {
			gpuq_add(a, v, old->items[i]);
		}
	}
	for (uint32_t k = 0; file && k < file->n; k++)
		if (!used[k])
			gpuq_add(a, v, file->items[k]);
	return v;
}

/* True if the key is that of a list of named members. */
static bool is_list(const char *key)
{
	for (const struct site_kind *k = site_kinds; k->list; k++)
		if (strcmp(k->list, key) == 0)
			return true;
	return false;
}

int site_merge(struct gpuq_arena *a, const struct gpuq_val *old, const struct gpuq_val *file,
	       bool prune, struct gpuq_val **out, struct gpuq_err *err)
{
	struct gpuq_val *v = gpuq_map(a);

	if (file->type != GPUQ_MAP) {
		*out = gpuq_val_copy(a, file);
		return *out ? 0 : gpuq_no_memory(err);
	}
	/* The version is the file's own: it says how the file is meant. */
	for (uint32_t i = 0; i < file->n; i++) {
		const struct gpuq_pair *p = &file->pairs[i];
		struct gpuq_pair merged = *p;

		if (is_list(p->key) && p->val->type == GPUQ_NULL)
			continue;
		if (is_list(p->key) && p->val->type == GPUQ_LIST)
			merged.val = merge_list(a, gpuq_get(old, p->key), p->val, prune);
		put(a, v, &merged);
	}
	/* Lists are new ones in any case: members may be taken out of them. */
	for (uint32_t i = 0; !prune && i < old->n; i++) {
		struct gpuq_pair kept = old->pairs[i];
		const struct gpuq_val *given = gpuq_get(file, kept.key);

		if (strcmp(kept.key, "version") == 0 ||
		    (given && !(given->type == GPUQ_NULL && is_list(kept.key))))
			continue;
		if (is_list(kept.key))
			kept.val = merge_list(a, kept.val, NULL, false);
		put(a, v, &kept);
	}
	if (!gpuq_val_ok(v))
		return gpuq_no_memory(err);
	*out = v;
	return 0;
}

/* Return the kind of an object such as queue/research; NULL = there is no such kind. */
static const struct site_kind *kind_of(const char *object)
{
	const char *slash = strchr(object, '/');

	for (const struct site_kind *k = site_kinds; slash && k->list; k++)
		if (strlen(k->kind) == (size_t)(slash - object) &&
		    strncmp(k->kind, object, (size_t)(slash - object)) == 0)
			return k;
	return NULL;
}

int site_no_such(const struct gpuq_val *tree, const char *object, struct gpuq_err *err)
{
	const struct site_kind *k = kind_of(object);
	const struct gpuq_val *list = k ? gpuq_get(tree, k->list) : NULL;
	const char *name = strchr(object, '/'), *names[512], *near;
	uint32_t n = 0;

	if (!k)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s: expected a kind and a name, such as queue/research", object);
	for (uint32_t i = 0; list && i < list->n && n < 511; i++)
		names[n++] = name_of(list->items[i]);
	names[n] = NULL;
	near = gpuq_nearest(name + 1, names);
	return gpuq_fail(err, GPUQ_ENOENT, "no %s is named %s%s%s%s", k->kind, name + 1,
			 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

int site_remove(struct gpuq_val *tree, const char *object, struct gpuq_err *err)
{
	const struct site_kind *k = kind_of(object);
	struct gpuq_val *list = k ? gpuq_get(tree, k->list) : NULL;
	const char *name = k ? strchr(object, '/') + 1 : "";
	uint32_t at = 0;

	while (list && at < list->n && strcmp(name_of(list->items[at]), name) != 0)
		at++;
	if (!list || at == list->n)
		return site_no_such(tree, object, err);
	memmove(&list->items[at], &list->items[at + 1], (list->n - at - 1) * sizeof(*list->items));
	list->n--;
	return 0;
}

/* ---- differences ---- */

/* Append a difference to the list. */
static void note(struct gpuq_arena *a, struct gpuq_val *out, const char *kind, const char *name,
		 const char *action, struct gpuq_val *old, struct gpuq_val *new_)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "object", gpuq_str(a, gpuq_arena_printf(a, "%s/%s", kind, name)));
	gpuq_put(a, v, "action", gpuq_str(a, action));
	if (old)
		gpuq_put(a, v, "old", old);
	if (new_)
		gpuq_put(a, v, "new", new_);
	gpuq_add(a, out, v);
}

/* Return the value that the map has for the key, if it is equal to this one; else NULL. */
static struct gpuq_val *same_key(const struct gpuq_val *map, const struct gpuq_pair *p)
{
	struct gpuq_val *v = gpuq_get(map, p->key);

	return v && gpuq_val_equal(v, p->val) ? v : NULL;
}

/* Keys of x that y does not have alike. */
static struct gpuq_val *without(struct gpuq_arena *a, const struct gpuq_val *x,
				const struct gpuq_val *y)
{
	struct gpuq_val *v = gpuq_map(a);

	for (uint32_t i = 0; i < x->n; i++)
		if (!same_key(y, &x->pairs[i]) && strcmp(x->pairs[i].key, "name") != 0)
			gpuq_put(a, v, x->pairs[i].key, gpuq_val_copy(a, x->pairs[i].val));
	return v;
}

/* List the members that were removed, changed or added. */
static void diff_list(struct gpuq_arena *a, const struct site_kind *k, const struct gpuq_val *old,
		      const struct gpuq_val *new_, struct gpuq_val *out)
{
	struct gpuq_val *nothing = gpuq_map(a);

	for (uint32_t i = 0; nothing && old && i < old->n; i++) {
		const struct gpuq_val *was = old->items[i], *is = find(new_, name_of(was));

		if (!is)
			note(a, out, k->kind, name_of(was), "removed", without(a, was, nothing),
			     NULL);
		else if (!gpuq_val_equal(was, is))
			note(a, out, k->kind, name_of(was), "changed", without(a, was, is),
			     without(a, is, was));
	}
	for (uint32_t i = 0; nothing && new_ && i < new_->n; i++)
		if (!find(old, name_of(new_->items[i])))
			note(a, out, k->kind, name_of(new_->items[i]), "added", NULL,
			     without(a, new_->items[i], nothing));
}

struct gpuq_val *site_diff(struct gpuq_arena *a, const struct gpuq_val *old,
			   const struct gpuq_val *new_)
{
	struct gpuq_val *out = gpuq_list(a), *was = gpuq_map(a), *is = gpuq_map(a);

	for (uint32_t i = 0; i < old->n; i++)
		if (!is_list(old->pairs[i].key) && !same_key(new_, &old->pairs[i]))
			gpuq_put(a, was, old->pairs[i].key, gpuq_val_copy(a, old->pairs[i].val));
	for (uint32_t i = 0; i < new_->n; i++)
		if (!is_list(new_->pairs[i].key) && !same_key(old, &new_->pairs[i]))
			gpuq_put(a, is, new_->pairs[i].key, gpuq_val_copy(a, new_->pairs[i].val));
	if (was && is && was->n + is->n > 0)
		note(a, out, "site", "site", "changed", was, is);
	for (const struct site_kind *k = site_kinds; k->list; k++)
		diff_list(a, k, gpuq_get(old, k->list), gpuq_get(new_, k->list), out);
	return gpuq_val_ok(out) ? out : NULL;
}

/* ---- in order ---- */

/* Order members by name. */
static int by_name(const void *x, const void *y)
{
	const struct gpuq_val *const *p = x, *const *q = y;

	return strcmp(name_of(*p), name_of(*q));
}

/* True if the order of the list has a meaning: a node is in the first pool, a device of the first flavor, that fits. */
static bool is_ordered(const char *list)
{
	return strcmp(list, "pools") == 0 || strcmp(list, "flavors") == 0;
}

struct gpuq_val *site_sorted(struct gpuq_arena *a, const struct gpuq_val *tree)
{
	struct gpuq_val *v = gpuq_val_copy(a, tree);

	for (const struct site_kind *k = site_kinds; v && k->list; k++) {
		struct gpuq_val *list = gpuq_get(v, k->list);

		if (list && list->n && !is_ordered(k->list))
			qsort(list->items, list->n, sizeof(*list->items), by_name);
	}
	return v;
}
