#define _GNU_SOURCE /* memmem */
#include "gpuqd/net/s3_xml.h"

#include <string.h>

static const struct {
	const char *name;
	char is;
} entities[] = { { "&amp;", '&' },   { "&lt;", '<' },  { "&gt;", '>' },  { "&quot;", '"' },
		 { "&apos;", '\'' }, { "&#34;", '"' }, { "&#39;", '\'' } };

static void skip(struct s3_xml *x, size_t n)
{
	x->at += n;
	x->n -= n;
}

/* Move x behind the first tag of that name; lead is "<" or "</". empty: it was <tag/>. Returns
 * where it began, or NULL. */
static const char *pass_tag(struct s3_xml *x, const char *lead, const char *tag, bool *empty)
{
	const size_t n_lead = strlen(lead), n_tag = strlen(tag);
	const char *at, *end;

	while ((at = memmem(x->at, x->n, lead, n_lead))) {
		skip(x, (size_t)(at - x->at) + n_lead);
		if (x->n <= n_tag || memcmp(x->at, tag, n_tag) != 0 ||
		    !memchr("> \t\r\n/", x->at[n_tag], 6))
			continue;
		end = memchr(x->at, '>', x->n);
		if (!end)
			return NULL;
		*empty = end[-1] == '/';
		skip(x, (size_t)(end - x->at) + 1);
		return at;
	}
	return NULL;
}

bool s3_xml_next(struct s3_xml *rest, const char *tag, struct s3_xml *inside)
{
	struct s3_xml x = *rest;
	const char *from, *end;
	bool empty = false;

	if (!x.n || !pass_tag(&x, "<", tag, &empty))
		return false;
	from = x.at;
	end = empty ? from : pass_tag(&x, "</", tag, &empty);
	if (!end)
		return false;
	*inside = (struct s3_xml){ from, (size_t)(end - from) };
	*rest = x;
	return true;
}

/* How many bytes of in the character takes that is put to *c. */
static size_t character(const char *in, size_t n, char *c)
{
	for (size_t i = 0; *in == '&' && i < sizeof(entities) / sizeof(*entities); i++) {
		const size_t len = strlen(entities[i].name);

		if (n >= len && memcmp(in, entities[i].name, len) == 0) {
			*c = entities[i].is;
			return len;
		}
	}
	*c = *in;
	return 1;
}

bool s3_xml_text(const struct s3_xml *in, const char *tag, char *out, size_t size)
{
	struct s3_xml x = *in, inside;
	size_t n = 0, at = 0;

	*out = '\0';
	if (!s3_xml_next(&x, tag, &inside))
		return false;
	while (at < inside.n && n + 1 < size)
		at += character(inside.at + at, inside.n - at, &out[n++]);
	out[at < inside.n ? 0 : n] = '\0';
	return at == inside.n;
}
