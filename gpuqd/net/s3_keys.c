#include "gpuqd/net/s3_keys.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_BYTES 4400

static int bad(const char *file, int line, const char *what, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_EINVAL, "%s:%d: %s", file, line, what);
}

static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (isspace((unsigned char)*s))
		s++;
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static bool take(char *to, size_t size, const char *from)
{
	const size_t n = strlen(from);

	if (!n || n >= size || strpbrk(from, " \t"))
		return false;
	memcpy(to, from, n + 1);
	return true;
}

static int read_pair(const char *file, int line, char *text, struct s3_keys *k,
		     struct gpuq_err *err)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} rows[] = { { "aws_access_key_id", k->id, sizeof(k->id) },
		     { "aws_secret_access_key", k->secret, sizeof(k->secret) },
		     { "aws_session_token", k->session, sizeof(k->session) } };
	char *value = strchr(text, '='), *name;

	if (!value)
		return bad(file, line, "expected NAME = VALUE or [SECTION]", err);
	*value++ = '\0';
	name = trim(text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(name, rows[i].name) == 0)
			return take(rows[i].to, rows[i].size, trim(value))
				       ? 0
				       : bad(file, line, "expected a value without blanks", err);
	return 0; /* region, output and such */
}

/* Only [default], or lines before any section. */
static int read_lines(const char *file, FILE *f, struct s3_keys *k, struct gpuq_err *err)
{
	char line[LINE_BYTES], *s;
	bool ours = true;
	int rc = 0;

	for (int n = 1; rc == 0 && fgets(line, sizeof(line), f); n++) {
		if (!strchr(line, '\n') && !feof(f))
			rc = bad(file, n, "the line is too long", err);
		s = trim(line);
		if (*s == '[')
			ours = strcmp(s, "[default]") == 0;
		else if (rc == 0 && ours && *s && *s != '#' && *s != ';')
			rc = read_pair(file, n, s, k, err);
	}
	explicit_bzero(line, sizeof(line));
	return rc;
}

static int read_file(const char *file, struct s3_keys *k, struct gpuq_err *err)
{
	FILE *f = fopen(file, "re");
	struct stat st;
	int rc = 0;

	if (!f || fstat(fileno(f), &st) != 0)
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s: %s", file, strerror(errno));
	else if (st.st_mode & 077)
		rc = gpuq_fail(err, GPUQ_EINVAL,
			       "%s is accessible to others (mode %04o): "
			       "chmod 600 %s",
			       file, (unsigned)st.st_mode & 07777, file);
	else
		rc = read_lines(file, f, k, err);
	if (f)
		fclose(f);
	if (rc == 0 && (!*k->id || !*k->secret))
		rc = gpuq_fail(err, GPUQ_EINVAL,
			       "%s: expected aws_access_key_id and "
			       "aws_secret_access_key in section [default]",
			       file);
	return rc;
}

static int read_environment(const char *section, struct s3_keys *k, struct gpuq_err *err)
{
	const char *id = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY"),
		   *session = getenv("AWS_SESSION_TOKEN");

	if (!id || !secret || !take(k->id, sizeof(k->id), id) ||
	    !take(k->secret, sizeof(k->secret), secret) ||
	    (session && *session && !take(k->session, sizeof(k->session), session)))
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"%s.to: no credentials for S3: name a file in %s.s3.credentials, or "
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in gpuqd's environment",
			section, section);
	return 0;
}

int s3_keys_read(const char *section, const char *file, struct s3_keys *out, struct gpuq_err *err)
{
	struct s3_keys k = { .id = "" };
	int rc = file ? read_file(file, &k, err) : read_environment(section, &k, err);

	if (rc < 0 && file)
		rc = gpuq_err_prefix(err, "%s.s3.credentials", section);
	if (rc == 0)
		*out = k;
	explicit_bzero(&k, sizeof(k));
	return rc;
}
