#include "libgpuq/yaml_plain.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *word;
	enum gpuq_type type;
	int64_t i;
} words[] = {
	{ "", GPUQ_NULL, 0 },      { "~", GPUQ_NULL, 0 },     { "null", GPUQ_NULL, 0 },
	{ "Null", GPUQ_NULL, 0 },  { "NULL", GPUQ_NULL, 0 },  { "true", GPUQ_BOOL, 1 },
	{ "True", GPUQ_BOOL, 1 },  { "TRUE", GPUQ_BOOL, 1 },  { "false", GPUQ_BOOL, 0 },
	{ "False", GPUQ_BOOL, 0 }, { "FALSE", GPUQ_BOOL, 0 },
};

static const char *const ambiguous[] = { "yes", "no", "on", "off" };
static const char *const not_numbers[] = { ".inf", "+.inf", "-.inf", ".nan" };

enum number { NO_NUMBER, DECIMAL, REAL };

static size_t digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* [-+]? [0-9]+, or with a point or an exponent. */
static enum number number_form(const char *s)
{
	enum number form = DECIMAL;
	size_t whole, part = 0;

	if (*s == '-' || *s == '+')
		s++;
	whole = digits(s);
	s += whole;
	if (*s == '.') {
		part = digits(s + 1);
		s += 1 + part;
		form = REAL;
	}
	if (whole + part == 0)
		return NO_NUMBER;
	if (*s == 'e' || *s == 'E') {
		s++;
		if (*s == '-' || *s == '+')
			s++;
		if (digits(s) == 0)
			return NO_NUMBER;
		s += digits(s);
		form = REAL;
	}
	return *s ? NO_NUMBER : form;
}

/* strtod() in the C locale, whatever the program's is. */
static double real(const char *s)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old;
	double d;

	if (!c)
		return NAN;
	old = uselocale(c);
	d = strtod(s, NULL);
	uselocale(old);
	freelocale(c);
	return d;
}

/* 0o17, 0x1f. */
static bool prefixed(const char *s, const char **what, struct yaml_plain *out)
{
	const int base = s[0] == '0' && s[1] == 'o' ? 8 : s[0] == '0' && s[1] == 'x' ? 16 : 0;
	char *end;
	long long i;

	if (!base || !isxdigit((unsigned char)s[2]))
		return false;
	errno = 0;
	i = strtoll(s + 2, &end, base);
	if (*end)
		return false;
	if (errno) {
		*what = "is too large; quote it if it is text";
		return true;
	}
	out->type = GPUQ_INT;
	out->i = i;
	return true;
}

static const char *resolve_number(const char *s, enum number form, struct yaml_plain *out)
{
	const char *unsigned_part = s + (*s == '-' || *s == '+');

	if (form == DECIMAL && unsigned_part[0] == '0' && unsigned_part[1])
		return "starts with 0, which may mean octal: omit the 0, use 0o for octal, or "
		       "quote it";
	if (form == DECIMAL) {
		errno = 0;
		out->i = strtoll(s, NULL, 10);
		if (errno == 0) {
			out->type = GPUQ_INT;
			return NULL;
		}
	}
	/* A longer integer is a real, as in other readers; its text is kept. */
	out->d = real(s);
	if (!isfinite(out->d))
		return "is not a number in range; quote it if it is text";
	out->type = GPUQ_REAL;
	return NULL;
}

const char *yaml_plain_resolve(const char *s, size_t n, struct yaml_plain *out)
{
	const char *what = NULL;
	enum number form;

	*out = (struct yaml_plain){ .type = GPUQ_STR };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(s, words[i].word) == 0) {
			out->type = words[i].type;
			out->i = words[i].i;
			return NULL;
		}
	for (size_t i = 0; i < sizeof(ambiguous) / sizeof(ambiguous[0]); i++)
		if (strcasecmp(s, ambiguous[i]) == 0)
			return "is ambiguous: write true or false, or quote it";
	for (size_t i = 0; i < sizeof(not_numbers) / sizeof(not_numbers[0]); i++)
		if (strcasecmp(s, not_numbers[i]) == 0)
			return "is not a number; quote it if it is text";
	if (n > 2 && prefixed(s, &what, out))
		return what;
	form = number_form(s);
	return form == NO_NUMBER ? NULL : resolve_number(s, form, out);
}

bool yaml_plain_octal(const char *s, struct yaml_plain *out)
{
	const size_t n = strspn(s, "01234567");

	/* 20 digits are 60 bits. */
	if (s[0] != '0' || n < 2 || n > 20 || s[n])
		return false;
	*out = (struct yaml_plain){ .type = GPUQ_INT, .i = strtoll(s, NULL, 8) };
	return true;
}
