#include "libgpuq/notify.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libgpuq/schema.h"

static const char *const words[] = {
#define X(sym, word, slurm) word,
	GPUQ_NOTIFY(X)
#undef X
};

static const char *const slurm_words[] = {
#define X(sym, word, slurm) slurm,
	GPUQ_NOTIFY(X)
#undef X
};

bool gpuq_notify_word(const char *word, bool slurm, unsigned *on)
{
	const char *const *list = slurm ? slurm_words : words;

	if (strcmp(word, slurm ? "ALL" : "all") == 0) {
		*on |= GPUQ_NOTIFY_ALL;
		return true;
	}
	if (strcmp(word, slurm ? "NONE" : "none") == 0) {
		*on = 0;
		return true;
	}
	if (slurm && strcmp(word, "STAGE_OUT") == 0) /* there are no burst buffers here */
		return true;
	for (unsigned i = 0; i < N_GPUQ_NOTIFY_BITS; i++)
		if (list[i] && strcmp(word, list[i]) == 0) {
			*on |= 1u << i;
			return true;
		}
	return false;
}

const char *gpuq_notify_name(unsigned bit)
{
	for (unsigned i = 0; i < N_GPUQ_NOTIFY_BITS; i++)
		if (bit == 1u << i)
			return words[i];
	if (bit == GPUQ_NOTIFY_REFUSED)
		return "refused";
	return NULL;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int gpuq_mail_check(const char *address, struct gpuq_err *err)
{
	const size_t n = strlen(address);
	const char *at = strchr(address, '@');

	if (n == 0 || n > GPUQ_MAIL_BYTES_MAX)
		return gpuq_fail(err, GPUQ_EINVAL, "expected a mail address of 1 to %u characters",
				 GPUQ_MAIL_BYTES_MAX);
	for (size_t i = 0; i < n; i++) {
		const bool edge = i == 0 || (at && address + i == at + 1);

		if (is_word(address[i]) ||
		    (edge ? address[i] == '_' : strchr("._%+=-", address[i]) != NULL) ||
		    (address + i == at && i > 0 && i + 1 < n))
			continue;
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a mail address such as ann@example.org, of letters, "
				 "digits and ._%%+=-");
	}
	return 0;
}

/* Steps that a server may follow out of what was allowed, spelled out or encoded. */
static bool has_steps(const char *path)
{
	for (const char *p = path; *p; p++) {
		if (*p == '%' && (strncasecmp(p, "%2e", 3) == 0 || strncasecmp(p, "%2f", 3) == 0 ||
				  strncasecmp(p, "%5c", 3) == 0))
			return true;
		if (*p != '/' || p[1] != '.')
			continue;
		p += p[2] == '.' ? 2 : 1;
		if (strchr("/?#", p[1])) /* the end as well */
			return true;
	}
	return false;
}

int gpuq_url_check(const char *url, struct gpuq_err *err)
{
	const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
			   : strncmp(url, "http://", 7) == 0 ? url + 7
							     : NULL;
	const size_t n = strlen(url);
	size_t n_host;

	if (!host)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a URL that begins with https:// or "
				 "http://");
	if (n > GPUQ_URL_BYTES_MAX)
		return gpuq_fail(err, GPUQ_EINVAL, "expected a URL of at most %u characters",
				 GPUQ_URL_BYTES_MAX);
	for (size_t i = 0; i < n; i++)
		if (url[i] <= ' ' || url[i] > '~' || strchr("\"<>\\^`{|}#", url[i]))
			return gpuq_fail(err, GPUQ_EINVAL,
					 "expected a URL of plain characters, without a fragment");
	n_host = strcspn(host, "/?");
	if (n_host == 0 || host[n_host] != '/' || memchr(host, '@', n_host))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a URL such as https://HOST/PATH, without a user");
	if (has_steps(host + n_host))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a URL without '.' and '..' as steps "
				 "of its path");
	return 0;
}

bool gpuq_url_allowed(const char *url, const struct gpuq_strlist *prefixes)
{
	for (size_t i = 0; i < prefixes->n; i++)
		if (strncmp(url, prefixes->items[i], strlen(prefixes->items[i])) == 0)
			return true;
	return false;
}

bool gpuq_mail_allowed(const char *address, const struct gpuq_strlist *ends)
{
	const size_t n = strlen(address);

	for (size_t i = 0; i < ends->n; i++) {
		const size_t m = strlen(ends->items[i]);

		if (n > m && strcasecmp(address + n - m, ends->items[i]) == 0)
			return true;
	}
	return false;
}

void gpuq_url_host(const char *url, char *out, unsigned room)
{
	const char *host = strstr(url, "://");
	const size_t n = host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?") : 0;

	snprintf(out, room, "%.*s", (int)n, url);
}
