#include "gpuqd/config_backup.h"

#include <string.h>

#include "gpuqd/net/s3.h"
#include "libgpuq/units.h"

/* More would make the retention's list of a directory long; nobody looks through more. */
#define COPIES_MAX 10000
#define EVERY_LEAST_US GPUQ_US_PER_S

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct backup_plan, member_),   \
		__VA_ARGS__                                                                        \
	}
#define K(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct backup_keeps, member_),  \
		__VA_ARGS__                                                                        \
	}

/* clang-format off */
static const struct gpuq_field keep_fields[] = {
	K("hourly", GPUQ_K_INT, hourly, .min = 1, .max = COPIES_MAX, .doc = "number of hours whose last copy is kept; hours without a copy do not count"),
	K("log", GPUQ_K_DURATION, log_us, .doc = "age up to which segments are kept"),
	K("daily", GPUQ_K_INT, daily, .min = 0, .max = COPIES_MAX, .doc = "number of days, in UTC, whose last copy is kept; days without a copy do not count"),
	{ .key = NULL },
};
/* clang-format on */

static void keep_defaults(void *obj)
{
	*(struct backup_keeps *)obj = (struct backup_keeps){
		.hourly = 48, .daily = 30, .log_us = 7 * INT64_C(86400) * GPUQ_US_PER_S
	};
}

static const struct gpuq_schema keep_schema = { .name = "keep",
						.size = sizeof(struct backup_keeps),
						.fields = keep_fields,
						.defaults = keep_defaults };

#define S(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct backup_s3, member_),     \
		__VA_ARGS__                                                                        \
	}

static const char *const style_words[] = {
	[S3_STYLE_PATH] = "path", [S3_STYLE_HOST] = "host", NULL
};

/* clang-format off */
static const struct gpuq_field s3_fields[] = {
	S("region", GPUQ_K_NAME, region, .doc = "region of the bucket; absent: AWS_REGION or AWS_DEFAULT_REGION of the environment, else us-east-1"),
	S("credentials", GPUQ_K_STR, credentials, .form = "file", .doc = "file with aws_access_key_id, aws_secret_access_key and perhaps aws_session_token in section [default], readable only by the owner; absent: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment"),
	S("ca", GPUQ_K_STR, ca, .form = "file", .doc = "certificates of the CAs of the server, PEM; absent: those of the system"),
	S("style", GPUQ_K_ENUM, style, .names = style_words, .doc = "where the address has the bucket: first in the path, or first in the name of the host"),
	{ .key = NULL },
};
/* clang-format on */

const struct gpuq_schema config_s3_schema = { .name = "s3",
					      .size = sizeof(struct backup_s3),
					      .fields = s3_fields };

/* clang-format off */
static const struct gpuq_field fields[] = {
	F("to", GPUQ_K_STR, to, .form = "path or https URL", .doc = "directory of the copies, or https://HOST/BUCKET/PREFIX of an object store that speaks S3; absent: no copies are made"),
	F("s3", GPUQ_K_OBJECT, s3, .sub = &config_s3_schema, .doc = "how an object store is used"),
	F("command", GPUQ_K_STRLIST, command, .form = "list of words", .doc = "program and arguments that store, list, fetch and delete copies, instead of to"),
	F("every", GPUQ_K_DURATION, every_us, .doc = "interval of copies, at least one second"),
	F("log_every", GPUQ_K_DURATION, log_every_us, .doc = "interval of segments, which hold the changes between copies, at least one second; 0 disables them"),
	F("audit_every", GPUQ_K_DURATION, audit_every_us, .doc = "interval of audits of the newest copy; 0 disables them"),
	F("timeout", GPUQ_K_DURATION, timeout_us, .doc = "time after which a command, a request to an object store or an audit is aborted, at least one second"),
	F("keep", GPUQ_K_OBJECT, keep, .sub = &keep_schema, .doc = "number of copies that are kept; the others are deleted"),
	{ .key = NULL },
};
/* clang-format on */

static void defaults(void *obj)
{
	struct backup_plan *p = obj;

	*p = (struct backup_plan){ .every_us = 3600 * GPUQ_US_PER_S,
				   .log_every_us = 10 * GPUQ_US_PER_S,
				   .audit_every_us = 86400 * GPUQ_US_PER_S,
				   .timeout_us = 3600 * GPUQ_US_PER_S };
	keep_defaults(&p->keep);
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct backup_plan *p = obj;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (p->every_us < EVERY_LEAST_US)
		return gpuq_reader_fail(r, gpuq_get(v, "every"), GPUQ_EINVAL,
					"expected 1s or more");
	if (p->log_every_us && p->log_every_us < EVERY_LEAST_US)
		return gpuq_reader_fail(r, gpuq_get(v, "log_every"), GPUQ_EINVAL,
					"expected 1s or more, or 0");
	if (p->to && p->command.n)
		return gpuq_reader_fail(r, gpuq_get(v, "command"), GPUQ_EINVAL,
					"expected to or command, not both");
	if (p->timeout_us < GPUQ_US_PER_S)
		return gpuq_reader_fail(r, gpuq_get(v, "timeout"), GPUQ_EINVAL,
					"expected 1s or more");
	if (backup_plan_is_s3(p))
		return s3_is_url(p->to, (enum s3_style)p->s3.style, &err)
			       ? 0
			       : gpuq_reader_fail(r, gpuq_get(v, "to"), GPUQ_EINVAL, "%s",
						  err.text);
	if (gpuq_get(v, "s3"))
		return gpuq_reader_fail(r, gpuq_get(v, "s3"), GPUQ_EINVAL,
					"expected to, https://HOST/BUCKET/PREFIX, with s3");
	if (p->to && (p->to[0] != '/' || p->to[strlen(p->to) - 1] == '/'))
		return gpuq_reader_fail(r, gpuq_get(v, "to"), GPUQ_EINVAL,
					"expected the absolute path of a directory, without a "
					"trailing /, or https://HOST/BUCKET/PREFIX");
	return 0;
}

const struct gpuq_schema config_backup_schema = { .name = "backup",
						  .size = sizeof(struct backup_plan),
						  .fields = fields,
						  .defaults = defaults,
						  .check = check };
