#include "libgpuq/spec/profile.h"

#include <stdio.h>
#include <string.h>

#define OWN_NAME '/' /* before the number of replicas that have a resource of their own */
#define KEPT_NAME ':' /* ... that have the one of whole instances */

/* Return what is behind ".shared"; NULL: it is of whole instances. */
static const char *tail_of(const char *profile)
{
	const char *p = strstr(profile, GPUQ_PROFILE_SHARED);

	if (p)
		p += strlen(GPUQ_PROFILE_SHARED);
	return p && (!*p || *p == OWN_NAME || *p == KEPT_NAME) ? p : NULL;
}

size_t gpuq_profile_whole(const char *profile)
{
	const char *tail = tail_of(profile);

	return tail ? (size_t)(tail - profile) - strlen(GPUQ_PROFILE_SHARED) : strlen(profile);
}

bool gpuq_profile_kin(const char *x, const char *y)
{
	size_t n = gpuq_profile_whole(x);

	if (n != gpuq_profile_whole(y))
		return false;
	while (n > 0 && (x[n - 1] == y[n - 1] || ((x[n - 1] == '+' || x[n - 1] == '.') &&
						  (y[n - 1] == '+' || y[n - 1] == '.'))))
		n--;
	return n == 0;
}

bool gpuq_profile_is_shared(const char *profile)
{
	return tail_of(profile) != NULL;
}

bool gpuq_profile_is_any(const char *profile)
{
	const char *tail = tail_of(profile);

	return tail && !*tail;
}

/* Profiles of cards with four compute slices. All others are assumed to have seven. */
static const struct {
	const char *profile;
	int64_t has;
} quarters[] = {
	{ "1g.6gb", 1 },  { "1g.6gb+me", 1 }, { "2g.12gb", 2 },    { "2g.12gb+me", 2 },
	{ "4g.24gb", 4 }, { "1g.6gb.me", 1 }, { "2g.12gb.me", 2 },
};

struct gpuq_slices gpuq_profile_slices(const char *profile)
{
	const size_t len = gpuq_profile_whole(profile);
	const char *p = profile;
	int64_t n = 0;

	for (size_t i = 0; i < sizeof(quarters) / sizeof(quarters[0]); i++)
		if (strlen(quarters[i].profile) == len &&
		    strncmp(quarters[i].profile, profile, len) == 0)
			return (struct gpuq_slices){ quarters[i].has, 4 };
	while (*p >= '0' && *p <= '9' && n < 100)
		n = n * 10 + (*p++ - '0');
	/* 1g.10gb; 1c.3g.20gb is one of the three slices of another. */
	if (n < 1 || n > GPUQ_MIG_SLICES || (*p != 'g' && *p != 'c'))
		return (struct gpuq_slices){ 1, 1 };
	return (struct gpuq_slices){ n, GPUQ_MIG_SLICES };
}

uint32_t gpuq_profile_replicas(const char *profile)
{
	const char *p = tail_of(profile);
	uint32_t n = 0;

	if (!p || !*p)
		return 1;
	for (p++; *p >= '0' && *p <= '9' && n < GPUQ_REPLICAS_MAX; p++)
		n = n * 10 + (uint32_t)(*p - '0');
	return n < 1 ? 1 : n < GPUQ_REPLICAS_MAX ? n : GPUQ_REPLICAS_MAX;
}

bool gpuq_profile_serves(const char *has, const char *asked)
{
	char name[GPUQ_PROFILE_ROOM];

	return gpuq_profile_same(has, asked) ||
	       (gpuq_profile_is_any(asked) && gpuq_profile_is_shared(has) &&
		gpuq_profile_same(gpuq_profile_name(has, name), asked));
}

static const char *cut(const char *profile, size_t len, char out[GPUQ_PROFILE_ROOM])
{
	snprintf(out, GPUQ_PROFILE_ROOM, "%.*s",
		 len < GPUQ_PROFILE_ROOM ? (int)len : GPUQ_PROFILE_ROOM - 1, profile);
	return out;
}

const char *gpuq_profile_name(const char *profile, char out[GPUQ_PROFILE_ROOM])
{
	const char *tail = tail_of(profile);

	return cut(profile, tail ? (size_t)(tail - profile) : strlen(profile), out);
}

const char *gpuq_profile_resource(const char *profile, char out[GPUQ_PROFILE_ROOM])
{
	const char *tail = tail_of(profile);

	if (tail && *tail == KEPT_NAME)
		cut(profile, gpuq_profile_whole(profile), out);
	else
		gpuq_profile_name(profile, out);
	for (char *p = out; *p; p++)
		if (*p == '+') /* not a letter of resource names */
			*p = '.';
	return out;
}

const char *gpuq_profile_share(const char *whole, bool renamed, uint32_t replicas,
			       char out[GPUQ_PROFILE_ROOM])
{
	if (replicas)
		snprintf(out, GPUQ_PROFILE_ROOM, "%.60s" GPUQ_PROFILE_SHARED "%c%u", whole,
			 renamed ? OWN_NAME : KEPT_NAME, replicas);
	else
		snprintf(out, GPUQ_PROFILE_ROOM, "%.60s" GPUQ_PROFILE_SHARED, whole);
	return out;
}

bool gpuq_profile_is_resource(const char *profile, const char *name)
{
	char own[GPUQ_PROFILE_ROOM];

	return gpuq_profile_same(gpuq_profile_resource(profile, own), name);
}
