#include "gpuqd/state/view/view_val.h"

#include "libgpuq/spec/profile.h"
#include "libgpuq/units.h"

struct gpuq_val *view_isolation(struct gpuq_arena *a, int isolation)
{
	return isolation < 0 ? gpuq_null(a)
			     : gpuq_str(a, gpuq_isolation_word((enum gpuq_isolation)isolation));
}

struct gpuq_val *view_instant(struct gpuq_arena *a, int64_t us)
{
	return us > 0 ? gpuq_int(a, us) : gpuq_null(a);
}

struct gpuq_val *view_word(struct gpuq_arena *a, const char *s)
{
	return s && *s ? gpuq_str(a, s) : gpuq_null(a);
}

struct gpuq_val *view_profile(struct gpuq_arena *a, const char *profile)
{
	char name[GPUQ_PROFILE_ROOM];

	return view_word(a, profile ? gpuq_profile_name(profile, name) : NULL);
}

struct gpuq_val *view_devices(struct gpuq_arena *a, int64_t milli)
{
	if (milli == GPUQ_UNLIMITED)
		return gpuq_str(a, "unlimited");
	return milli % 1000 == 0 ? gpuq_int(a, milli / 1000) : gpuq_real(a, (double)milli / 1000);
}

const char *view_key(struct gpuq_arena *a, struct job_key key)
{
	return key.index >= 0 ? gpuq_arena_printf(a, "%u_%d", key.id, key.index)
			      : gpuq_arena_printf(a, "%u", key.id);
}
