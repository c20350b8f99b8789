#include "gpuqd/state/record/podrecord.h"

#include <stddef.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"
#include "libgpuq/utf8.h"
#include "libgpuq/val.h"
#include "libgpuq/yaml.h"

#define TEXT_BYTES_MAX 256 /* of one string */

struct text {
	int64_t v; /* of the format */
	struct podrecord r;
};

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct text, member_),          \
		__VA_ARGS__                                                                        \
	}
#define NEEDED GPUQ_F_REQUIRED

static const struct gpuq_field fields[] = {
	F("v", GPUQ_K_INT, v, .flags = NEEDED, .min = 1, .max = INT64_MAX),
	F("user", GPUQ_K_STR, r.user, .flags = NEEDED, .min = 1, .max = TEXT_BYTES_MAX),
	F("uid", GPUQ_K_INT, r.uid, .min = 0, .max = UINT32_MAX),
	F("gid", GPUQ_K_INT, r.gid, .min = 0, .max = UINT32_MAX),
	F("queue", GPUQ_K_NAME, r.queue, .flags = NEEDED),
	F("qos", GPUQ_K_NAME, r.qos, .flags = NEEDED),
	F("account", GPUQ_K_STR, r.account, .min = 0, .max = TEXT_BYTES_MAX),
	F("name", GPUQ_K_STR, r.name, .min = 0, .max = TEXT_BYTES_MAX),
	F("flavor", GPUQ_K_STR, r.flavor, .min = 0, .max = GPUQ_NAME_BYTES_MAX),
	F("submit", GPUQ_K_INT, r.submit_us, .min = 0, .max = INT64_MAX),
	F("limit", GPUQ_K_LIMIT, r.limit_us, .min = 1, .max = INT64_MAX),
	F("gpus", GPUQ_K_INT, r.gpus_milli, .min = 0, .max = GPUQ_GPUS_PER_POD_MAX * 1000),
	F("cpu", GPUQ_K_INT, r.cpu_milli, .min = 0, .max = INT64_MAX),
	F("memory", GPUQ_K_INT, r.memory_bytes, .min = 0, .max = INT64_MAX),
	F("pods", GPUQ_K_INT, r.pods, .min = 1, .max = GPUQ_PODS_MAX),
	F("group", GPUQ_K_INT, r.group, .min = 0, .max = GPUQ_PODS_MAX),
	F("nth", GPUQ_K_INT, r.group_index, .min = 0, .max = GPUQ_PODS_MAX),
	F("element", GPUQ_K_INT, r.element_id, .min = 0, .max = UINT32_MAX),
	{ .key = NULL },
};

/* Set the members that an annotation leaves out. */
static void defaults(void *obj)
{
	struct text *t = obj;

	t->r.limit_us = GPUQ_UNLIMITED;
	t->r.pods = 1;
}

static const struct gpuq_schema schema = {
	.name = "record", .size = sizeof(struct text), .fields = fields, .defaults = defaults
};

/* Copy without control characters, at most max bytes; NULL where s is empty, or without memory. */
static const char *clean(struct gpuq_arena *a, const char *s, size_t max)
{
	const char *nul = s ? memchr(s, '\0', max + 1) : NULL;
	const size_t n = !s ? 0 : nul ? (size_t)(nul - s) : max + 1;
	size_t at = 0;
	char *out = n ? gpuq_arena_alloc(a, n + 1) : NULL;

	while (out && at < n) {
		uint32_t code = 0;
		const size_t len = gpuq_utf8_next(s + at, n - at, &code);

		if (len > 1 && at + len <= max && code >= 0xa0) {
			memcpy(out + at, s + at, len);
			at += len;
		} else if (at + 1 > max || (len > 1 && at + len > max)) {
			break; /* the cut is between two characters */
		} else if (len == 1 && code >= 0x20 && code != 0x7f) {
			out[at] = s[at];
			at++;
		} else {
			out[at++] = '?';
		}
	}
	if (out)
		out[at] = '\0';
	return out && *out ? out : NULL;
}

/* Print the record with names cut to name_max bytes. False if it is still larger than an
 * annotation may be, or without memory. */
static bool write_cut(const struct podrecord *r, size_t name_max, struct gpuq_buf *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct text t = { .v = PODRECORD_VERSION, .r = *r };
	struct gpuq_val *v;
	bool fits;

	t.r.user = clean(&mem, r->user, TEXT_BYTES_MAX);
	t.r.name = clean(&mem, r->name, name_max);
	t.r.account = clean(&mem, r->account, name_max);
	t.r.flavor = r->flavor && *r->flavor ? r->flavor : NULL;
	v = gpuq_schema_write(&mem, &schema, &t);
	if (v)
		gpuq_json_write(&b, v, 0);
	fits = v && !b.failed && b.len <= PODRECORD_BYTES_MAX;
	if (fits)
		gpuq_buf_add(out, b.data, b.len);
	gpuq_buf_done(&b);
	gpuq_arena_done(&mem);
	return fits;
}

int podrecord_write(const struct podrecord *r, struct gpuq_buf *out, struct gpuq_err *err)
{
	for (size_t most = TEXT_BYTES_MAX; most > 0; most /= 4)
		if (write_cut(r, most, out))
			return 0;
	return gpuq_fail(err, GPUQ_ETOOBIG, "the record of the pod takes more than %u bytes",
			 PODRECORD_BYTES_MAX);
}

/* Return text that an annotation may contain. */
static const char *text_of(struct gpuq_arena *a, const char *s)
{
	const char *out = clean(a, s, TEXT_BYTES_MAX);

	return out ? out : "";
}

int podrecord_read(struct gpuq_arena *a, const char *text, size_t n, struct podrecord *out,
		   struct gpuq_err *err)
{
	struct gpuq_reader r = { .arena = a, .lenient = true, .err = err };
	struct gpuq_val **docs;
	struct text t;
	size_t n_docs;
	int rc;

	if (n > PODRECORD_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ETOOBIG, "a record of %zu bytes; it has at most %u", n,
				 PODRECORD_BYTES_MAX);
	if (n == 0 || *text != '{')
		return gpuq_fail(err, GPUQ_EINVAL, "not a record: it does not begin with {");
	rc = gpuq_yaml_parse(a, "record", text, n, &docs, &n_docs, err);
	if (rc == 0 && n_docs != 1)
		rc = gpuq_fail(err, GPUQ_EINVAL, "not a record: it is no single object");
	/* Check the version first: a later one may use the same names for other things. */
	if (rc == 0 && gpuq_get_int(docs[0], "v", 0) > PODRECORD_VERSION)
		rc = gpuq_fail(err, GPUQ_EVERSION,
			       "a record of version %lld; this gpuqd reads version %d",
			       (long long)gpuq_get_int(docs[0], "v", 0), PODRECORD_VERSION);
	if (rc == 0)
		rc = gpuq_schema_read(&r, &schema, docs[0], &t);
	if (rc != 0)
		return rc;
	t.r.user = text_of(a, t.r.user);
	t.r.name = text_of(a, t.r.name);
	t.r.account = text_of(a, t.r.account);
	t.r.flavor = text_of(a, t.r.flavor);
	*out = t.r;
	return 0;
}
