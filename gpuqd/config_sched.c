#include "gpuqd/config_sched.h"

#include "gpuqd/site/site.h"

#define KIND_WORD .kind = GPUQ_K_ENUM
#define KIND_FLAG .kind = GPUQ_K_BOOL
#define KIND_SPAN .kind = GPUQ_K_DURATION
#define KIND_COUNT .kind = GPUQ_K_INT
#define KIND_LIMIT .kind = GPUQ_K_LIMIT
#define KIND_DEVICES .kind = GPUQ_K_CUSTOM, .custom = &site_devices, .form = "number or unlimited"
#define X(kind_, member_, key_, dflt, absent, recorded, names_, least, most, doc_)                 \
	{ .key = (key_),                                                                           \
	  KIND_##kind_,                                                                            \
	  .offset = offsetof(struct policy_sched, member_),                                        \
	  .names = (names_),                                                                       \
	  .min = (least),                                                                          \
	  .max = (most),                                                                           \
	  .doc = (doc_) },

static const struct gpuq_field fields[] = { POLICY_SCHED_KEYS(X){ .key = NULL } };
#undef X

static void defaults(void *obj)
{
	*(struct policy_sched *)obj = policy_sched_default();
}

const struct gpuq_schema config_sched_schema = { .name = "scheduler",
						 .size = sizeof(struct policy_sched),
						 .fields = fields,
						 .defaults = defaults };
