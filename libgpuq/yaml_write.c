#include <string.h>

#include "libgpuq/utf8.h"
#include "libgpuq/val.h"
#include "libgpuq/yaml_plain.h"

/* Whether text may stand without quotes: few characters are let through, so that no
 * reader, of YAML 1.1 or 1.2, in block or flow context, can take it for another thing. */
static bool may_be_plain(const char *s, size_t n)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_/.";
	static const char others[] = "+-@%=:~ ";
	struct yaml_plain p;

	/* At the start of a line "..." ends the document, whatever follows it. */
	if (n == 0 || strlen(s) != n || !strchr(letters, s[0]) || strncmp(s, "...", 3) == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!strchr(letters, s[i]) && !strchr(others, s[i]))
			return false;
		if ((s[i] == ':' || s[i] == ' ') && (i + 1 == n || s[i + 1] == ' '))
			return false;
	}
	/* Digits and colons alone are a number to base 60 in YAML 1.1. */
	if (strchr(s, ':') && strspn(s, "0123456789:.") == n)
		return false;
	if (n == 1 && strchr("yYnN", s[0]))
		return false;
	return !yaml_plain_resolve(s, n, &p) && p.type == GPUQ_STR;
}

/* Whether text of several lines reads back from a literal block ("|"). */
static bool may_be_literal(const char *s, size_t n)
{
	const char *nl = memchr(s, '\n', n);

	if (!nl || s[0] == ' ' || s[0] == '\t' || s[0] == '\n')
		return false;
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t len = gpuq_utf8_next(s + i, n - i, &c);

		if (len == 0 || (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c <= 0x9f) ||
		    c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff)
			return false;
		i += len;
	}
	return true;
}

static void indent(struct gpuq_buf *b, int level)
{
	for (int i = 0; i < level; i++)
		gpuq_buf_adds(b, "  ");
}

static void write_literal(struct gpuq_buf *b, const char *s, size_t n, int level)
{
	const bool ended = s[n - 1] == '\n';

	gpuq_buf_adds(b, !ended ? "|-\n" : s[n - 2] == '\n' ? "|+\n" : "|\n");
	for (const char *p = s, *end = s + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);

		if (len)
			indent(b, level ? level : 1);
		gpuq_buf_add(b, p, len);
		gpuq_buf_addc(b, '\n');
		p += len + 1;
	}
}

static void write_str(struct gpuq_buf *b, const char *s, size_t n)
{
	if (may_be_plain(s, n))
		gpuq_buf_add(b, s, n);
	else
		gpuq_json_str(b, s, n);
}

/* Readers need not look further than 1024 characters for the colon of a key that is
 * not announced by "?"; quoting can make one six times as long. */
static void write_key(struct gpuq_buf *b, const char *key, int level)
{
	const size_t n = strlen(key);
	const bool announced = n > 128;

	if (announced)
		gpuq_buf_adds(b, "? ");
	write_str(b, key, n);
	if (announced) {
		gpuq_buf_addc(b, '\n');
		indent(b, level);
	}
	gpuq_buf_addc(b, ':');
}

/* Write v, whose members stand at `level`, behind what is already on the line. A
 * container behind a key starts on the next line; behind "- " on the same one. */
static void write_val(struct gpuq_buf *b, const struct gpuq_val *v, int level, bool behind_key)
{
	const bool container = v && (v->type == GPUQ_LIST || v->type == GPUQ_MAP) && v->n > 0;

	if (!container) {
		if (behind_key)
			gpuq_buf_addc(b, ' ');
		if (v && v->type == GPUQ_STR && may_be_literal(v->s, v->n)) {
			write_literal(b, v->s, v->n, level);
			return;
		}
		if (v && v->type == GPUQ_STR)
			write_str(b, v->s, v->n);
		else
			gpuq_json_write(b, v, 0);
		gpuq_buf_addc(b, '\n');
		return;
	}
	if (behind_key)
		gpuq_buf_addc(b, '\n');
	for (uint32_t i = 0; i < v->n; i++) {
		if (i || behind_key)
			indent(b, level);
		if (v->type == GPUQ_LIST) {
			gpuq_buf_adds(b, "- ");
			write_val(b, v->items[i], level + 1, false);
		} else {
			write_key(b, v->pairs[i].key, level);
			write_val(b, v->pairs[i].val, level + 1, true);
		}
	}
}

void gpuq_yaml_write(struct gpuq_buf *b, const struct gpuq_val *v)
{
	write_val(b, v, 0, false);
}
