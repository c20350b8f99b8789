/* `code` of a job and --code: the directory that travels with it; booleans that may be left open. */
#include "libgpuq/spec/spec_kinds.h"

#include <string.h>

#include "libgpuq/limits.h"

/* clang-format off */
static const struct gpuq_field code_fields[] = {
	{ .key = "dir", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_spec_code, dir),
	  .doc = "The directory; a relative one counts from the directory of submission." },
	{ .key = "digest", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_spec_code, digest),
	  .doc = "SHA-256 of its archive, which the server has; written by gpuq." },
	{ .key = "bytes", .kind = GPUQ_K_INT, .min = 0, .max = GPUQ_CODE_BYTES_MAX,
	  .offset = offsetof(struct gpuq_spec_code, bytes), .doc = "Size of its archive." },
	{ .key = "subdir", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_spec_code, subdir),
	  .doc = "Directory below it where the job runs." },
	{ .key = NULL },
};
/* clang-format on */

static bool is_digest(const char *s)
{
	return strspn(s, "0123456789abcdef") == 64 && !s[64];
}

static int code_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct gpuq_spec_code *c = obj;

	if (c->digest && !is_digest(c->digest))
		return gpuq_reader_fail_key(r, v, "digest", "expected a SHA-256 of 64 hex digits");
	if (c->subdir && (*c->subdir == '/' || gpuq_path_goes_up(c->subdir)))
		return gpuq_reader_fail_key(r, v, "subdir",
					    "expected a path below the directory, without '..'");
	if (!c->dir || !*c->dir)
		return gpuq_reader_fail_key(r, v, "dir", "expected a directory");
	return 0;
}

static const struct gpuq_schema code_schema = { .name = "code",
						.size = sizeof(struct gpuq_spec_code),
						.fields = code_fields,
						.check = code_check };

static int code_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_spec_code c = { .dir = NULL };
	int rc = 0;

	if (v->type == GPUQ_MAP)
		rc = gpuq_schema_read(r, &code_schema, v, &c);
	else if (v->type == GPUQ_BOOL && v->b)
		c.dir = ".";
	else if (v->type == GPUQ_BOOL)
		c.none = true;
	else if (v->type == GPUQ_STR && v->n)
		c.dir = gpuq_arena_strndup(r->arena, v->s, v->n);
	else
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected a directory, true (that of submission) or false");
	if (rc == 0 && !c.none && !c.dir)
		return gpuq_no_memory(r->err);
	if (rc == 0)
		*(struct gpuq_spec_code *)out = c;
	return rc;
}

static struct gpuq_val *code_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_spec_code *c = in;

	if (c->none)
		return gpuq_bool(a, false);
	if (!c->dir)
		return NULL;
	return c->digest ? gpuq_schema_write(a, &code_schema, c) : gpuq_str(a, c->dir);
}

const struct gpuq_custom spec_code_kind = { code_read, code_write };

static int choice_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	if (v->type != GPUQ_BOOL)
		return spec_fail(r, v, GPUQ_EINVAL, "expected true or false");
	*(struct gpuq_choice *)out = (struct gpuq_choice){ .yes = v->b, .no = !v->b };
	return 0;
}

static struct gpuq_val *choice_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_choice *c = in;

	return c->yes || c->no ? gpuq_bool(a, c->yes) : NULL;
}

const struct gpuq_custom gpuq_choice_kind = { choice_read, choice_write };
