#include "gpuqd/cluster/kube/watch/decode_plain.h"

#include <stdbool.h>
#include <string.h>

#include "libgpuq/limits.h"

#define KEY_MAX 256u
#define DIGITS_MAX 18 /* that fit an integer, whichever they are */

/* The bytes that are still to be read. */
struct text {
	const char *at, *end;
	unsigned depth;
};

static json_t *value(struct text *t);

static void skip_spaces(struct text *t)
{
	while (t->at < t->end &&
	       (*t->at == ' ' || *t->at == '\n' || *t->at == '\r' || *t->at == '\t'))
		t->at++;
}

/* True if that is the next character but spaces, which is passed then. */
static bool take(struct text *t, char c)
{
	skip_spaces(t);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* Pass the plain characters and return the first of them; the quote behind them stays. */
static const char *plain_run(struct text *t)
{
	const char *const from = t->at;

	while (t->at < t->end && is_plain(*t->at))
		t->at++;
	return from;
}

/* Have the library read a string of which `from` is the first character, and all up to t->at is plain. */
static json_t *odd_string(struct text *t, const char *from)
{
	while (t->at < t->end && *t->at != '"')
		t->at += *t->at == '\\' && t->end - t->at > 1 ? 2 : 1;
	if (t->at == t->end)
		return NULL;
	t->at++;
	return json_loadb(from - 1, (size_t)(t->at - from + 1), JSON_ALLOW_NUL | JSON_DECODE_ANY,
			  NULL);
}

/* The three readers below begin behind the first character of their value. */
static json_t *string(struct text *t)
{
	const char *const from = plain_run(t);

	if (t->at == t->end || *t->at != '"')
		return odd_string(t, from);
	t->at++;
	return json_stringn_nocheck(from, (size_t)(t->at - from - 1));
}

static bool read_key(struct text *t, char key[KEY_MAX])
{
	const char *from;
	size_t n;

	if (!take(t, '"'))
		return false;
	from = plain_run(t);
	n = (size_t)(t->at - from);
	if (t->at == t->end || *t->at != '"' || n >= KEY_MAX)
		return false;
	memcpy(key, from, n);
	key[n] = '\0';
	t->at++;
	return true;
}

static json_t *object(struct text *t)
{
	json_t *out = json_object();
	char key[KEY_MAX];

	if (take(t, '}'))
		return out;
	while (read_key(t, key) && take(t, ':') &&
	       json_object_set_new_nocheck(out, key, value(t)) == 0) {
		if (take(t, ','))
			continue;
		if (take(t, '}'))
			return out;
		break;
	}
	json_decref(out);
	return NULL;
}

static json_t *array(struct text *t)
{
	json_t *out = json_array();

	if (take(t, ']'))
		return out;
	while (json_array_append_new(out, value(t)) == 0) {
		if (take(t, ','))
			continue;
		if (take(t, ']'))
			return out;
		break;
	}
	json_decref(out);
	return NULL;
}

static bool is_digit(const struct text *t)
{
	return t->at < t->end && *t->at >= '0' && *t->at <= '9';
}

static json_t *integer(struct text *t)
{
	const bool negative = take(t, '-');
	const char *const from = t->at;
	json_int_t n = 0;

	for (; is_digit(t) && t->at - from < DIGITS_MAX; t->at++)
		n = n * 10 + (*t->at - '0');
	if (t->at == from || is_digit(t) || (*from == '0' && t->at - from > 1) ||
	    (t->at < t->end && strchr(".eE", *t->at)))
		return NULL;
	return json_integer(negative ? -n : n);
}

static json_t *word(struct text *t)
{
	static const struct {
		const char *text;
		json_t *(*make)(void);
	} words[] = { { "true", json_true }, { "false", json_false }, { "null", json_null } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t n = strlen(words[i].text);

		if ((size_t)(t->end - t->at) >= n && memcmp(t->at, words[i].text, n) == 0) {
			t->at += n;
			return words[i].make();
		}
	}
	return integer(t);
}

static json_t *value(struct text *t)
{
	json_t *out = NULL;

	if (t->depth == GPUQ_KUBE_DEPTH_MAX)
		return NULL;
	t->depth++;
	if (take(t, '"'))
		out = string(t);
	else if (take(t, '{'))
		out = object(t);
	else if (take(t, '['))
		out = array(t);
	else
		out = word(t);
	t->depth--;
	return out;
}

json_t *kube_plain(const char *json, size_t n)
{
	struct text t = { json, json + n, 0 };
	json_t *out = take(&t, '{') ? object(&t) : NULL;

	skip_spaces(&t);
	if (t.at == t.end)
		return out;
	json_decref(out);
	return NULL;
}
