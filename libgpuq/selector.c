#include "libgpuq/selector.h"

#include <string.h>

#define KEY_BYTES_MAX 317 /* of Kubernetes: prefix, '/', name */
#define VALUE_BYTES_MAX 63

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_text(const char *s, size_t n, const char *also)
{
	for (size_t i = 0; i < n; i++)
		if (!is_word(s[i]) && (!s[i] || !strchr(also, s[i])))
			return false;
	return true;
}

static bool is_part(const char *s, size_t n)
{
	return n > 0 && n <= VALUE_BYTES_MAX && is_word(s[0]) && is_word(s[n - 1]) &&
	       is_text(s, n, "._-");
}

bool gpuq_label_key_ok(const char *key)
{
	const char *slash = strchr(key, '/');

	if (!slash)
		return is_part(key, strlen(key));
	for (const char *p = key; p < slash; p++)
		if (!(*p >= 'a' && *p <= 'z') && !(*p >= '0' && *p <= '9') && *p != '.' &&
		    *p != '-')
			return false;
	return slash != key && slash - key <= 253 && is_part(slash + 1, strlen(slash + 1));
}

bool gpuq_label_value_ok(const char *value)
{
	return !*value || is_part(value, strlen(value));
}

const char *gpuq_selector_key(const char *text, size_t *n)
{
	text += *text == '!';
	*n = strcspn(text, "=!");
	return text;
}

/* Return the text after "=", "==" or "!="; NULL without any of them. */
static const char *value_of(const char *text, bool *unequal)
{
	size_t n;
	const char *p = gpuq_selector_key(text, &n);

	p += n;
	*unequal = *p == '!';
	if (*unequal)
		return p[1] == '=' ? p + 2 : NULL;
	if (*p != '=')
		return NULL;
	return p + (p[1] == '=' ? 2 : 1);
}

int gpuq_selector_check(const char *text, struct gpuq_err *err)
{
	size_t n;
	const char *key = gpuq_selector_key(text, &n);
	bool unequal;
	const char *value = value_of(text, &unequal);

	if (n > 0 && n <= KEY_BYTES_MAX && is_text(key, n, "-_./") &&
	    (value ? *text != '!' && strlen(value) <= VALUE_BYTES_MAX &&
			     is_text(value, strlen(value), "-_.")
		   : key[n] == '\0'))
		return 0;
	return gpuq_fail(err, GPUQ_EINVAL,
			 "%.80s: expected labels such as team=a, stage!=b, team (any value) or "
			 "!team (no such label)",
			 text);
}

bool gpuq_selector_holds(const char *text, const char *value, size_t n)
{
	bool unequal;
	const char *want = value_of(text, &unequal);

	if (!want)
		return (*text == '!') == !value;
	return (value && strlen(want) == n && memcmp(value, want, n) == 0) != unequal;
}
