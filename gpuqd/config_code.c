#include "gpuqd/config_code.h"

#include "gpuqd/config_backup.h"
#include "gpuqd/net/s3.h"
#include "gpuqd/net/s3_presign.h"
#include "libgpuq/spec.h"
#include "libgpuq/units.h"

#define VALID_MIN_US (60 * GPUQ_US_PER_S)
#define VALID_MAX_US (S3_PRESIGN_S_MAX * GPUQ_US_PER_S)

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_),                                                    \
		.offset = offsetof(struct code_store_plan, member_), __VA_ARGS__                   \
	}

static const struct gpuq_field nfs_fields[] = {
	{ .key = "server",
	  .kind = GPUQ_K_STR,
	  .offset = offsetof(struct gpuq_nfs, server),
	  .flags = GPUQ_F_REQUIRED,
	  .doc = "host of the file server" },
	{ .key = "path",
	  .kind = GPUQ_K_STR,
	  .offset = offsetof(struct gpuq_nfs, path),
	  .flags = GPUQ_F_REQUIRED,
	  .doc = "directory that it exports" },
	{ .key = NULL },
};

static const struct gpuq_schema nfs_schema = { .name = "nfs",
					       .size = sizeof(struct gpuq_nfs),
					       .fields = nfs_fields };

#define V(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct gpuq_volume, member_),   \
		__VA_ARGS__                                                                        \
	}

/* clang-format off */
static const struct gpuq_field volume_fields[] = {
	V("claim", GPUQ_K_STR, claim, .doc = "PersistentVolumeClaim of this name, in the namespace of each queue"),
	V("nfs", GPUQ_K_OBJECT_PTR, nfs, .sub = &nfs_schema, .doc = "directory of a file server, as {server, path}"),
	V("sub_path", GPUQ_K_STR, sub_path, .doc = "directory of the volume that to is; default: its root"),
	{ .key = NULL },
};
/* clang-format on */

static int check_volume(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct gpuq_volume *o = obj;

	if (!o->claim == !o->nfs)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected one of claim and nfs");
	if (o->nfs && o->nfs->path[0] != '/')
		return gpuq_reader_fail(r, gpuq_get(v, "nfs"), GPUQ_EINVAL,
					"expected nfs.path to begin with '/'");
	if (o->sub_path && (!*o->sub_path || *o->sub_path == '/' || gpuq_path_goes_up(o->sub_path)))
		return gpuq_reader_fail(r, gpuq_get(v, "sub_path"), GPUQ_EINVAL,
					"expected a path below the volume, without '..'");
	return 0;
}

static const struct gpuq_schema volume_schema = { .name = "volume",
						  .size = sizeof(struct gpuq_volume),
						  .fields = volume_fields,
						  .check = check_volume };

/* clang-format off */
static const struct gpuq_field fields[] = {
	F("to", GPUQ_K_STR, to, .flags = GPUQ_F_REQUIRED, .form = "https URL or directory", .doc = "where they are put: an object store that speaks S3 and that pods reach as well, as https://HOST/BUCKET/PREFIX, or a directory that pods see as volume"),
	F("s3", GPUQ_K_OBJECT, s3, .sub = &config_s3_schema, .doc = "how the object store is used, as in backup"),
	F("volume", GPUQ_K_OBJECT_PTR, volume, .sub = &volume_schema, .doc = "volume by which pods see the directory"),
	F("timeout", GPUQ_K_DURATION, timeout_us, .min = GPUQ_US_PER_S, .max = VALID_MAX_US, .doc = "time after which a transfer is aborted"),
	F("valid", GPUQ_K_DURATION, valid_us, .min = VALID_MIN_US, .max = VALID_MAX_US, .doc = "time from the creation of a pod within which it must have fetched the code from an object store, from 1 minute to 7 days"),
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
	const bool is_dir = *p->to == '/';

	if (is_dir && !p->volume)
		return gpuq_reader_fail(r, gpuq_get(v, "to"), GPUQ_EINVAL,
					"a directory needs volume, by which pods see it");
	if (is_dir && gpuq_get(v, "s3"))
		return gpuq_reader_fail(r, gpuq_get(v, "s3"), GPUQ_EINVAL,
					"expected no s3 beside a directory");
	if (!is_dir && p->volume)
		return gpuq_reader_fail(r, gpuq_get(v, "volume"), GPUQ_EINVAL,
					"expected no volume beside an address");
	if (is_dir)
		return 0;
	if (!s3_is_url(p->to, (enum s3_style)p->s3.style, &err))
		return gpuq_reader_fail(r, gpuq_get(v, "to"), GPUQ_EINVAL, "%s", err.text);
	return 0;
}

const struct gpuq_schema config_code_schema = { .name = "code_store",
						.size = sizeof(struct code_store_plan),
						.fields = fields,
						.defaults = defaults,
						.check = check };
