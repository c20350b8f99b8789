#include "libgpuq/grow.h"
#include "libgpuq/spec/spec_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/utf8.h"

int spec_list_add(struct gpuq_arena *a, struct spec_list *l, const char *s)
{
	if (!s)
		return GPUQ_ENOMEM;
	if (!grow_arena(a, &l->items, &l->room, l->n + 1, sizeof(*l->items)))
		return GPUQ_ENOMEM;
	l->items[l->n++] = s;
	return 0;
}

struct gpuq_strlist spec_list_end(const struct spec_list *l)
{
	return (struct gpuq_strlist){ l->items, l->n };
}

int spec_map_set(struct gpuq_arena *a, struct gpuq_strmap *m, const char *key, const char *val)
{
	const char **keys, **vals;

	if (!key || !val)
		return GPUQ_ENOMEM;
	if (m->n >= GPUQ_MAP_MAX)
		return GPUQ_ETOOBIG;
	keys = gpuq_arena_calloc(a, m->n + 1, sizeof(*keys));
	vals = gpuq_arena_calloc(a, m->n + 1, sizeof(*vals));
	if (!keys || !vals)
		return GPUQ_ENOMEM;
	if (m->n) {
		memcpy(keys, m->keys, m->n * sizeof(*keys));
		memcpy(vals, m->vals, m->n * sizeof(*vals));
	}
	m->keys = keys;
	m->vals = vals;
	for (size_t i = 0; i < m->n; i++) {
		if (strcmp(keys[i], key) == 0) {
			vals[i] = val;
			return 0;
		}
	}
	keys[m->n] = key;
	vals[m->n++] = val;
	return 0;
}

int spec_map_failed(struct gpuq_err *err, int code)
{
	if (code == GPUQ_ETOOBIG)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u of them", GPUQ_MAP_MAX);
	return gpuq_no_memory(err);
}

bool spec_digits(const char **at, int64_t min, int64_t max, int64_t *out)
{
	const char *p = *at;
	int64_t n = 0;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		if (n > (INT64_MAX - 9) / 10)
			return false;
		n = 10 * n + (*p - '0');
	}
	if (n < min || n > max)
		return false;
	*at = p;
	*out = n;
	return true;
}

const char *spec_scalar(struct gpuq_arena *a, const struct gpuq_val *v)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *s = NULL;

	if (!v)
		return NULL;
	switch (v->type) {
	case GPUQ_STR:
		return v->s;
	case GPUQ_BOOL:
	case GPUQ_INT:
	case GPUQ_REAL:
		if (v->src)
			return v->src;
		gpuq_json_write(&b, v, 0);
		if (!b.failed)
			s = gpuq_arena_strndup(a, b.data, b.len);
		gpuq_buf_done(&b);
		return s;
	default:
		return NULL;
	}
}

int spec_split(struct gpuq_arena *a, const char *text, char sep, struct gpuq_strlist *out)
{
	struct spec_list l = { 0 };

	while (*text) {
		const char *end = strchr(text, sep);
		size_t n = end ? (size_t)(end - text) : strlen(text);
		const char *s = text;

		text += n + (end != NULL);
		while (n && isspace((unsigned char)*s)) {
			s++;
			n--;
		}
		while (n && isspace((unsigned char)s[n - 1]))
			n--;
		if (n && spec_list_add(a, &l, gpuq_arena_strndup(a, s, n)) < 0)
			return GPUQ_ENOMEM;
	}
	*out = spec_list_end(&l);
	return 0;
}

static bool name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

bool spec_name_ok(const char *name)
{
	const size_t n = strlen(name);

	if (n == 0 || n > GPUQ_NAME_BYTES_MAX || !isalnum((unsigned char)name[0]) ||
	    !isalnum((unsigned char)name[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!name_byte(name[i]))
			return false;
	return true;
}

bool spec_object_name_ok(const char *name, bool label)
{
	const char *letters = label ? "abcdefghijklmnopqrstuvwxyz0123456789-"
				    : "abcdefghijklmnopqrstuvwxyz0123456789-.";
	const size_t n = strlen(name);

	return n > 0 && n <= (label ? 63 : 253) && strspn(name, letters) == n &&
	       !strchr("-.", name[0]) && !strchr("-.", name[n - 1]);
}

bool spec_job_name_ok(const char *name)
{
	const size_t n = strlen(name);

	return n > 0 && n <= GPUQ_JOB_NAME_BYTES_MAX && gpuq_utf8_check(name, n) == n;
}

const char *spec_name_from(struct gpuq_arena *a, const char *text)
{
	char name[GPUQ_JOB_NAME_BYTES_MAX + 1];
	size_t n = 0, left = strlen(text);

	while (left > 0) {
		const size_t k = gpuq_utf8_next(text, left, NULL), step = k ? k : 1;

		if (n + step > GPUQ_JOB_NAME_BYTES_MAX)
			break;
		if (k)
			memcpy(name + n, text, k);
		else
			name[n] = '-';
		n += step;
		text += step;
		left -= step;
	}
	return n ? gpuq_arena_strndup(a, name, n) : gpuq_arena_strdup(a, "job");
}

bool gpuq_spec_is_wrap(const struct gpuq_spec *spec)
{
	const size_t n = strlen(SPEC_WRAP_HEAD);

	return spec->script && spec->script_bytes > n &&
	       memcmp(spec->script, SPEC_WRAP_HEAD, n) == 0;
}

bool gpuq_path_goes_up(const char *path)
{
	for (const char *p = path; *p;) {
		const size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

/* Write the parts of the path behind those that out has; "..", unless it is kept, takes one away. Returns their length. */
static size_t add_parts(char *out, size_t len, const char *path, bool keep_up)
{
	for (const char *p = path; *p;) {
		const size_t n = strcspn(p, "/");

		if (!keep_up && n == 2 && p[0] == '.' && p[1] == '.') {
			while (len > 0 && out[--len] != '/')
				;
		} else if (n > 0 && !(n == 1 && *p == '.')) {
			out[len++] = '/';
			memcpy(out + len, p, n);
			len += n;
		}
		p += n + (p[n] == '/');
	}
	return len;
}

static const char *end_path(char *out, size_t len)
{
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

const char *gpuq_path_plain(struct gpuq_arena *a, const char *path)
{
	char *out = gpuq_arena_alloc(a, strlen(path) + 2);

	return out ? end_path(out, add_parts(out, 0, path, true)) : NULL;
}

const char *gpuq_path_join(struct gpuq_arena *a, const char *from, const char *path)
{
	char *out = gpuq_arena_alloc(a, strlen(from) + strlen(path) + 3);

	if (!out)
		return NULL;
	return end_path(out, add_parts(out, *path == '/' ? 0 : add_parts(out, 0, from, false), path,
				       false));
}

bool gpuq_group_claimed(const struct gpuq_group *g)
{
	return g->n_claims > 0 && !g->claims_beside;
}

int64_t gpuq_group_shared_milli(const struct gpuq_group *g)
{
	int64_t n = 0;

	for (size_t i = 0; i < g->n_claims; i++)
		n += g->claims[i].shares;
	return n * 1000;
}

const struct gpuq_volume *gpuq_group_below(const struct gpuq_group *g, const char *path)
{
	const struct gpuq_volume *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < g->n_volumes && path && *path == '/' && !gpuq_path_goes_up(path);
	     i++) {
		size_t n = strlen(g->volumes[i].path);

		while (n > 1 && g->volumes[i].path[n - 1] == '/')
			n--;
		if (n >= longest && strncmp(g->volumes[i].path, path, n) == 0 &&
		    (!path[n] || path[n] == '/' || n == 1)) {
			found = &g->volumes[i];
			longest = n;
		}
	}
	return found;
}
