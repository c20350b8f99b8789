#include <config.h>

#include "gpuqd/cluster/kube/watch/decode_cut.h"

#include <string.h>

#include "gpuqd/devices/hami.h"

/* As the apiserver writes it: without blanks. */
static const char member[] = "\"" HAMI_REGISTER "\":\"";

#define MEMBER (sizeof(member) - 1)

/* True if a backslash before p, behind begin, escapes it. */
static bool is_escaped(const char *begin, const char *p)
{
	const char *q = p;

	while (q > begin && q[-1] == '\\')
		q--;
	return (p - q) % 2 != 0;
}

/* Return the quote that ends the string which begins at p; NULL = it does not end. */
static const char *end_of(const char *p, const char *end)
{
	const char *begin = p;

	while ((p = memchr(p, '"', (size_t)(end - p))) != NULL && is_escaped(begin, p))
		p++;
	return p;
}

size_t kube_cut(const char *json, size_t n, char copy[KUBE_CUT_MAX], struct kube_cut *out)
{
	const char *end = json + n, *at = n > MEMBER ? memmem(json, n, member, MEMBER) : NULL,
		   *rest;
	size_t before, behind;

	/* A quote that is escaped is inside of another string. */
	if (!at || is_escaped(json, at))
		return 0;
	at += MEMBER;
	rest = end_of(at, end);
	if (!rest)
		return 0;
	before = (size_t)(at - json);
	behind = (size_t)(end - rest);
	if (before + behind > KUBE_CUT_MAX)
		return 0;
	memcpy(copy, json, before);
	memcpy(copy + before, rest, behind);
	*out = (struct kube_cut){ at, (size_t)(rest - at) };
	return before + behind;
}

bool kube_cut_plain(const struct kube_cut *cut, char to[KUBE_CUT_MAX])
{
	const char *p = cut->text, *end = p + cut->n;

	if (cut->n >= KUBE_CUT_MAX)
		return false;
	while (p < end) {
		char c = *p++;

		if (c == '\\') {
			c = p < end ? *p++ : '\0';
			if (c != '"' && c != '\\' && c != '/')
				return false;
		}
		if (c < ' ' || c > '~')
			return false;
		*to++ = c;
	}
	*to = '\0';
	return true;
}
