#include "gpuq/pack/ignore.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/grow.h"

#define PARTS_MAX 256 /* of a path; PATH_MAX allows more, no tree has them */

/* ---- reading ---- */

/* Cut blanks at the end, unless a backslash is in front of them. */
static void cut_blanks(char *line)
{
	size_t n = strlen(line);

	if (n && line[n - 1] == '\r')
		line[--n] = '\0';
	while (n && line[n - 1] == ' ' && !(n > 1 && line[n - 2] == '\\'))
		line[--n] = '\0';
}

static bool add_line(struct ignore *ig, const char *base, char *line)
{
	struct ignore_rule r = { .base = base };
	size_t n;

	cut_blanks(line);
	if (!*line || *line == '#')
		return true;
	if (*line == '!') {
		r.keeps = true;
		line++;
	}
	n = strlen(line);
	if (n && line[n - 1] == '/') {
		r.folder = true;
		line[--n] = '\0';
	}
	r.whole = strchr(line, '/') != NULL;
	if (*line == '/')
		line++;
	if (!*line)
		return true;
	r.pattern = line;
	if (!grow_arena(ig->a, &ig->rules, &ig->room, ig->n + 1, sizeof(r)))
		return false;
	ig->rules[ig->n++] = r;
	return true;
}

bool ignore_add(struct ignore *ig, const char *base, const char *text, size_t n)
{
	char *copy = gpuq_arena_strndup(ig->a, text, n), *line;
	const char *own = gpuq_arena_strdup(ig->a, base);

	if (!copy || !own)
		return false;
	if (strncmp(copy, "\xef\xbb\xbf", 3) == 0)
		copy += 3;
	while ((line = strsep(&copy, "\n")) != NULL)
		if (!add_line(ig, own, line))
			return false;
	return true;
}

void ignore_cut(struct ignore *ig, size_t n)
{
	ig->n = n;
}

/* ---- matching ---- */

/* Split a copy at its slashes; returns the number of parts, at most PARTS_MAX. */
static size_t split(char *copy, const char *text, size_t room, const char **parts)
{
	size_t n = 0;
	char *part;

	if (strlen(text) >= room)
		return 0;
	snprintf(copy, room, "%s", text);
	while (n < PARTS_MAX && (part = strsep(&copy, "/")) != NULL)
		parts[n++] = part;
	return n;
}

/* Match the parts one by one. "**" stands for any number of them, and at the end for one or more. Going
 * back to the last "**" alone is enough: an earlier one could match no more than that one can. */
static bool match_parts(const char *const *pattern, size_t n, const char *const *path, size_t m)
{
	size_t i = 0, k = 0, star = n, from = 0;

	while (k < m) {
		if (i < n && strcmp(pattern[i], "**") == 0) {
			if (i + 1 == n)
				return true;
			star = i++;
			from = k;
		} else if (i < n && fnmatch(pattern[i], path[k], 0) == 0) {
			i++;
			k++;
		} else if (star < n) {
			i = star + 1;
			k = ++from;
		} else {
			return false;
		}
	}
	return i == n;
}

static bool match_whole(const char *pattern, const char *path)
{
	const char *want[PARTS_MAX], *have[PARTS_MAX];
	char a[4096], b[4096];
	const size_t n = split(a, pattern, sizeof(a), want), m = split(b, path, sizeof(b), have);

	return n && m && match_parts(want, n, have, m);
}

static bool match(const struct ignore_rule *r, const char *path, bool folder)
{
	const size_t n = strlen(r->base);
	const char *last;

	if (r->folder && !folder)
		return false;
	if (n && (strncmp(path, r->base, n) != 0 || path[n] != '/'))
		return false;
	if (n)
		path += n + 1;
	if (r->whole)
		return match_whole(r->pattern, path);
	last = strrchr(path, '/');
	return fnmatch(r->pattern, last ? last + 1 : path, 0) == 0;
}

bool ignore_has(const struct ignore *ig, const char *path, bool folder)
{
	for (size_t i = ig->n; i-- > 0;)
		if (match(&ig->rules[i], path, folder))
			return !ig->rules[i].keeps;
	return false;
}
