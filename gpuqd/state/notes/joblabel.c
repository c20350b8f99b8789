#include "gpuqd/state/notes/joblabel.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/selector.h"

const char *joblabel_find(const char *labels, const char *key, size_t n_key, size_t *n)
{
	for (const char *p = labels; p && *p;) {
		const size_t line = strcspn(p, "\n");

		if (line > n_key && memcmp(p, key, n_key) == 0 && p[n_key] == '=') {
			*n = line - n_key - 1;
			return p + n_key + 1;
		}
		p += line + (p[line] == '\n');
	}
	return NULL;
}

/* Add a label unless it is there: the job's own come before those of its template. */
static void add(struct gpuq_buf *out, const char *key, const char *value)
{
	size_t n;

	/* A template may hold values that only the API server checks later. */
	if (strpbrk(key, "=\n") || strchr(value, '\n') ||
	    joblabel_find(gpuq_buf_str(out), key, strlen(key), &n))
		return;
	gpuq_buf_printf(out, "%s%s=%s", out->len ? "\n" : "", key, value);
}

char *joblabel_take(const struct gpuq_spec *spec)
{
	const struct gpuq_val *t = spec->n_groups ? spec->groups[0].template_ : NULL;
	const struct gpuq_val *meta = t ? gpuq_get(t, "metadata") : NULL;
	const struct gpuq_val *map = meta ? gpuq_get(meta, "labels") : NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char *out;

	for (size_t i = 0; i < spec->labels.n; i++)
		add(&text, spec->labels.keys[i], spec->labels.vals[i]);
	for (uint32_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++)
		if (map->pairs[i].val->type == GPUQ_STR)
			add(&text, map->pairs[i].key, map->pairs[i].val->s);
	if (text.failed)
		abort(); /* the ledger is on disk: a restart is the recovery */
	out = text.len ? strdup(gpuq_buf_str(&text)) : NULL;
	gpuq_buf_done(&text);
	return out;
}

bool joblabel_match(const char *labels, const struct gpuq_strlist *selectors)
{
	for (size_t i = 0; i < selectors->n; i++) {
		size_t n_key, n = 0;
		const char *key = gpuq_selector_key(selectors->items[i], &n_key);
		const char *value = joblabel_find(labels, key, n_key, &n);

		if (!gpuq_selector_holds(selectors->items[i], value, n))
			return false;
	}
	return true;
}

struct gpuq_val *joblabel_view(struct gpuq_arena *a, const char *labels)
{
	struct gpuq_val *map = gpuq_map(a);

	for (const char *p = labels; p && *p;) {
		const size_t line = strcspn(p, "\n"), key = strcspn(p, "=");

		gpuq_put(a, map, gpuq_arena_strndup(a, p, key),
			 gpuq_strn(a, p + key + 1, line - key - 1));
		p += line + (p[line] == '\n');
	}
	return map;
}
