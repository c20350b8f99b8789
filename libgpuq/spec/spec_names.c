/* `queue` of a job: a name, or several of which the server takes the first that accepts the job; `account`: a word that
 * is recorded. */
#include "libgpuq/spec/spec_kinds.h"

#include <string.h>

#include "libgpuq/limits.h"

int spec_queues_ok(struct gpuq_arena *a, const char *text, const char **bad)
{
	char *copy = gpuq_arena_strdup(a, text), *name, *save = NULL;
	size_t n = 0;

	if (!copy)
		return GPUQ_ENOMEM;
	*bad = "";
	if (!*text || *text == ',' || text[strlen(text) - 1] == ',' || strstr(text, ",,"))
		return GPUQ_EINVAL;
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		*bad = name;
		if (!spec_name_ok(name))
			return GPUQ_EINVAL;
		if (++n > GPUQ_QUEUES_ASKED_MAX)
			return GPUQ_ERANGE;
	}
	return 0;
}

static int queues_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const char *bad,
		*text = v->type == GPUQ_STR ? gpuq_arena_strndup(r->arena, v->s, v->n) : "";
	int rc;

	if (!text)
		return gpuq_no_memory(r->err);
	rc = v->type == GPUQ_STR && strlen(text) == v->n ? spec_queues_ok(r->arena, text, &bad)
							 : GPUQ_EINVAL;
	if (rc == GPUQ_ENOMEM)
		return gpuq_no_memory(r->err);
	if (rc < 0)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected a name of at most %u letters, digits, '.', '_' and "
				 "'-', or up to %u of them with commas%s%.80s%s",
				 GPUQ_NAME_BYTES_MAX, GPUQ_QUEUES_ASKED_MAX,
				 v->type == GPUQ_STR ? ", found '" : "", text,
				 v->type == GPUQ_STR ? "'" : "");
	*(const char **)out = text;
	return 0;
}

static struct gpuq_val *text_write(struct gpuq_arena *a, const void *in)
{
	const char *text = *(const char *const *)in;

	return text ? gpuq_str(a, text) : NULL;
}

const struct gpuq_custom spec_queues_kind = { queues_read, text_write };

/* Accounts of other systems have more in them than names of queues: ann@v100. */
bool spec_account_ok(const char *s)
{
	const size_t n = strlen(s);

	return n >= 1 && n <= GPUQ_NAME_BYTES_MAX &&
	       strspn(s,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+:/=") ==
		       n;
}

static int account_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const char *text = v->type == GPUQ_STR ? gpuq_arena_strndup(r->arena, v->s, v->n) : "";

	if (!text)
		return gpuq_no_memory(r->err);
	if (!spec_account_ok(text) || strlen(text) != v->n)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected an account of at most %u letters, digits and '._-@+:/='",
				 GPUQ_NAME_BYTES_MAX);
	*(const char **)out = text;
	return 0;
}

const struct gpuq_custom spec_account_kind = { account_read, text_write };
