/* The place of an error in a file, and the nearest known key: what every reader of schemas reports with.
 * Declared in schema.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/schema.h"

int gpuq_reader_fail(struct gpuq_reader *r, const struct gpuq_val *v, int code, const char *fmt,
		     ...)
{
	va_list ap;

	if (!r->err)
		return code;
	gpuq_fail_field(r->err, code, r->path, "%s", ""); /* the path, made printable */
	va_start(ap, fmt);
	vsnprintf(r->err->text, sizeof(r->err->text), fmt, ap);
	va_end(ap);
	if (r->path[0])
		gpuq_err_prefix(r->err, "%s", r->path);
	if (r->file && v && v->at.line)
		gpuq_err_prefix(r->err, "%s:%u:%u", r->file, v->at.line, v->at.col);
	else if (r->file)
		gpuq_err_prefix(r->err, "%s", r->file);
	return code;
}

size_t gpuq_reader_enter(struct gpuq_reader *r, const char *key)
{
	const size_t mark = strlen(r->path);

	snprintf(r->path + mark, sizeof(r->path) - mark, "%s%s", mark ? "." : "", key);
	return mark;
}

size_t gpuq_reader_enter_item(struct gpuq_reader *r, size_t ix)
{
	const size_t mark = strlen(r->path);

	snprintf(r->path + mark, sizeof(r->path) - mark, "[%zu]", ix);
	return mark;
}

size_t gpuq_reader_enter_member(struct gpuq_reader *r, const struct gpuq_val *list, size_t ix)
{
	const size_t mark = strlen(r->path);
	const struct gpuq_val *item = ix < list->n ? list->items[ix] : NULL;
	const char *name = r->by_name && item && item->type == GPUQ_MAP
				   ? gpuq_get_str(item, "name", NULL)
				   : NULL;

	if (!r->by_name)
		return gpuq_reader_enter_item(r, ix);
	/* A number would count members that are not in the file. */
	if (!name || strlen(name) > GPUQ_NAME_BYTES_MAX)
		name = "";
	snprintf(r->path + mark, sizeof(r->path) - mark, "[%s]", name);
	return mark;
}

void gpuq_reader_leave(struct gpuq_reader *r, size_t mark)
{
	r->path[mark] = '\0';
}

int gpuq_reader_fail_key(struct gpuq_reader *r, const struct gpuq_val *v, const char *key,
			 const char *what)
{
	const struct gpuq_val *at = gpuq_get(v, key);
	const size_t mark = gpuq_reader_enter(r, key);
	const int rc = gpuq_reader_fail(r, at ? at : v, GPUQ_EINVAL, "%s", what);

	gpuq_reader_leave(r, mark);
	return rc;
}

#define NEAR_BYTES_MAX 48
#define NEAR_DISTANCE_MAX 2

static int min(int a, int b)
{
	return a < b ? a : b;
}

/* Damerau-Levenshtein distance, in the form that edits no part twice, without
 * regard to case. Both strings are at most NEAR_BYTES_MAX long. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
	int rows[3][NEAR_BYTES_MAX + 1];

	for (size_t k = 0; k <= m; k++)
		rows[0][k] = (int)k;
	for (size_t i = 1; i <= n; i++) {
		int *two = rows[(i + 1) % 3], *one = rows[(i + 2) % 3], *row = rows[i % 3];

		row[0] = (int)i;
		for (size_t k = 1; k <= m; k++) {
			const int x = tolower((unsigned char)a[i - 1]);
			const int y = tolower((unsigned char)b[k - 1]);

			row[k] = min(min(row[k - 1], one[k]) + 1, one[k - 1] + (x != y));
			if (i > 1 && k > 1 && x == tolower((unsigned char)b[k - 2]) &&
			    tolower((unsigned char)a[i - 2]) == y)
				row[k] = min(row[k], two[k - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

const char *gpuq_nearest(const char *name, const char *const *names)
{
	const size_t n = strlen(name);
	const char *best = NULL;
	int least = NEAR_DISTANCE_MAX + 1;

	if (n > NEAR_BYTES_MAX)
		return NULL;
	for (; *names; names++) {
		const size_t m = strlen(*names);
		int d;

		if (m > NEAR_BYTES_MAX)
			continue;
		d = distance(name, n, *names, m);
		if (d < least && (size_t)d * 2 < n) {
			least = d;
			best = *names;
		}
	}
	return best;
}

/* ---- maps and lists of strings ---- */

const char *gpuq_strmap_get(const struct gpuq_strmap *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->keys[i], key) == 0)
			return m->vals[i];
	return NULL;
}

const char *gpuq_strmap_text(const struct gpuq_strmap *m, const char *key)
{
	const char *v = gpuq_strmap_get(m, key);

	return v ? v : "";
}

bool gpuq_strlist_has(const struct gpuq_strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i], s) == 0)
			return true;
	return false;
}

bool gpuq_strlist_passes(const struct gpuq_strlist *l, const char *s)
{
	return l->n == 0 || gpuq_strlist_has(l, s);
}

bool gpuq_strlist_same(const struct gpuq_strlist *a, const struct gpuq_strlist *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}
