#include "gpuqd/config_code.h"

#include "gpuqd/config_backup.h"
#include "gpuqd/net/s3.h"
#include "gpuqd/net/s3_presign.h"
#include "libgpuq/units.h"

#define VALID_MIN_US (60 * GPUQ_US_PER_S)
#define VALID_MAX_US (S3_PRESIGN_S_MAX * GPUQ_US_PER_S)

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_),                                                    \
		.offset = offsetof(struct code_store_plan, member_), __VA_ARGS__                   \
	}

/* clang-format off */
static const struct gpuq_field fields[] = {
	F("to", GPUQ_K_STR, to, .flags = GPUQ_F_REQUIRED, .form = "https URL", .doc = "address of an object store that speaks S3 and that pods reach as well, as https://HOST/BUCKET/PREFIX"),
	F("s3", GPUQ_K_OBJECT, s3, .sub = &config_s3_schema, .doc = "how it is used, as in backup"),
	F("timeout", GPUQ_K_DURATION, timeout_us, .min = GPUQ_US_PER_S, .max = VALID_MAX_US, .doc = "time after which a transfer is aborted"),
	F("valid", GPUQ_K_DURATION, valid_us, .min = VALID_MIN_US, .max = VALID_MAX_US, .doc = "time from the creation of a pod within which it must have fetched the code, from 1 minute to 7 days"),
	{ .key = NULL },
};
/* clang-format on */

static void defaults(void *obj)
{
	*(struct code_store_plan *)obj =
		(struct code_store_plan){ .timeout_us = 600 * GPUQ_US_PER_S,
					  .valid_us = 86400 * GPUQ_US_PER_S };
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct code_store_plan *p = obj;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!s3_is_url(p->to, (enum s3_style)p->s3.style, &err))
		return gpuq_reader_fail(r, gpuq_get(v, "to"), GPUQ_EINVAL, "%s", err.text);
	return 0;
}

const struct gpuq_schema config_code_schema = { .name = "code_store",
						.size = sizeof(struct code_store_plan),
						.fields = fields,
						.defaults = defaults,
						.check = check };
