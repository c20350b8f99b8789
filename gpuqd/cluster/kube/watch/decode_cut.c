#include <config.h>

#include "gpuqd/cluster/kube/watch/decode_cut.h"

#include <stdbool.h>
#include <string.h>

#include "gpuqd/devices/hami.h"

/* As the apiserver writes it: without blanks. */
static const char member[] = "\"" HAMI_REGISTER "\":\"";

#define MEMBER (sizeof(member) - 1)

/* The characters that a string has as they are. */
static const bool is_own[256] = {
	[' '] = true,
	['!'] = true,
	['#' ... '['] = true,
	[']' ... '~'] = true,
};

/* True if a backslash before p, behind begin, escapes it. */
static bool is_escaped(const char *begin, const char *p)
{
	const char *q = p;

	while (q > begin && q[-1] == '\\')
		q--;
	return (p - q) % 2 != 0;
}

/* Write the string that begins at p without its escapes, and set *at to the quote behind it. False: it does not end, is
 * longer than fits, or has other escapes and characters than those of plain text. */
static bool unescape(const char *p, const char *end, char to[KUBE_CUT_MAX], const char **at)
{
	const size_t n = (size_t)(end - p);
	/* A quote ends each run below. */
	const char *const last = memrchr(p, '"', n < KUBE_CUT_MAX ? n : KUBE_CUT_MAX - 1);

	while (last && p <= last) {
		while (is_own[(unsigned char)*p])
			*to++ = *p++;
		if (*p == '"') {
			*to = '\0';
			*at = p;
			return true;
		}
		if (*p != '\\' || (p[1] != '"' && p[1] != '\\' && p[1] != '/'))
			return false;
		*to++ = p[1];
		p += 2;
	}
	return false;
}

size_t kube_cut(const char *json, size_t n, char copy[KUBE_CUT_MAX], char plain[KUBE_CUT_MAX])
{
	const char *end = json + n, *at = n > MEMBER ? memmem(json, n, member, MEMBER) : NULL,
		   *rest;
	size_t before, behind;

	/* A quote that is escaped is inside of another string. */
	if (!at || is_escaped(json, at))
		return 0;
	at += MEMBER;
	if (!unescape(at, end, plain, &rest))
		return 0;
	before = (size_t)(at - json);
	behind = (size_t)(end - rest);
	if (before + behind > KUBE_CUT_MAX)
		return 0;
	memcpy(copy, json, before);
	memcpy(copy + before, rest, behind);
	return before + behind;
}
