#include "res.h"

#include <stdlib.h>
#include <string.h>

static const char **names;
static size_t n_names;

int res_id(const char *name)
{
	static const char *const first[] = { "cpu", "memory", "pods", "nvidia.com/gpu" };

	if (n_names == 0) {
		names = xmalloc(sizeof(first));
		memcpy(names, first, sizeof(first));
		n_names = ARRAY_LEN(first);
	}
	for (size_t i = 0; i < n_names; i++) {
		if (strcmp(names[i], name) == 0)
			return (int)i;
	}
	names = xrealloc(names, (n_names + 1) * sizeof(*names));
	names[n_names] = xstrdup(name);
	return (int)n_names++;
}

const char *res_name(int id)
{
	return names[id];
}

bool res_is_extended(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && strncmp(name, "requests.", 9) != 0 &&
	       !(slash - name >= 13 && memcmp(slash - 13, "kubernetes.io", 13) == 0);
}

int64_t res_get(const struct res *r, int id)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (r->item[i].id == id)
			return r->item[i].value;
	}
	return 0;
}

bool res_has(const struct res *r, int id)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (r->item[i].id == id)
			return true;
	}
	return false;
}

void res_set(struct res *r, int id, int64_t value)
{
	unsigned i = 0;

	while (i < r->n && r->item[i].id != id)
		i++;
	if (i == RES_MAX)
		return;
	if (i == r->n)
		r->n++;
	r->item[i] = (struct res_item){ id, value };
}

void res_add(struct res *to, const struct res *r, int sign)
{
	for (unsigned i = 0; i < r->n; i++) {
		const int id = r->item[i].id;

		res_set(to, id, res_get(to, id) + sign * r->item[i].value);
	}
}

static void res_max(struct res *to, const struct res *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (r->item[i].value > res_get(to, r->item[i].id))
			res_set(to, r->item[i].id, r->item[i].value);
	}
}

void res_read(struct res *r, const json_t *quantities)
{
	const char *name;
	json_t *q;

	r->n = 0;
	json_object_foreach((json_t *)quantities, name, q)
	{
		int64_t milli;

		if (json_is_integer(q))
			milli = json_integer_value(q) * 1000;
		else if (!json_is_string(q) || quantity_parse(json_string_value(q), &milli) != 0)
			continue;
		if (strcmp(name, "cpu") != 0)
			milli = milli / 1000 + (milli % 1000 > 0);
		res_set(r, res_id(name), milli);
	}
}

static void container_requests(struct res *r, const json_t *container)
{
	res_read(r, json_object_get(json_object_get(container, "resources"), "requests"));
}

void res_of_pod(struct res *r, const json_t *spec)
{
	struct res app = { 0 }, init = { 0 }, sidecars = { 0 }, one;
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(spec, "containers"), i, c)
	{
		container_requests(&one, c);
		res_add(&app, &one, 1);
	}
	json_array_foreach(json_object_get(spec, "initContainers"), i, c)
	{
		const char *policy = json_string_value(json_object_get(c, "restartPolicy"));

		container_requests(&one, c);
		if (policy && strcmp(policy, "Always") == 0) {
			res_add(&app, &one, 1);
			res_add(&sidecars, &one, 1);
			one = sidecars;
		} else {
			res_add(&one, &sidecars, 1);
		}
		res_max(&init, &one);
	}
	res_max(&app, &init);
	res_read(&one, json_object_get(json_object_get(spec, "resources"), "requests"));
	for (unsigned k = 0; k < one.n; k++)
		res_set(&app, one.item[k].id, one.item[k].value);
	res_read(&one, json_object_get(spec, "overhead"));
	res_add(&app, &one, 1);
	*r = app;
}
