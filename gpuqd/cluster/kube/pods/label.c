#include "gpuqd/cluster/kube/pods/label.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/base/fnv.h"

static bool alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool inside(char c)
{
	return alnum(c) || c == '-' || c == '_' || c == '.';
}

static uint32_t hash(const char *s)
{
	const uint64_t h = gpuq_fnv(GPUQ_FNV_START, s, strlen(s));

	return (uint32_t)(h ^ (h >> 32));
}

void label_value(const char *name, char out[LABEL_ROOM])
{
	const size_t n = strlen(name), most = LABEL_ROOM - 1 - 9;
	bool fits = n < LABEL_ROOM;
	size_t at = 0;

	for (size_t i = 0; i < n && fits; i++)
		fits = i == 0 || i == n - 1 ? alnum(name[i]) : inside(name[i]);
	if (fits) {
		memcpy(out, name, n + 1);
		return;
	}
	for (size_t i = 0; i < n && at < most; i++) {
		if (at == 0 && !alnum(name[i]))
			out[at++] = 'x';
		else
			out[at++] = inside(name[i]) ? name[i] : '_';
	}
	snprintf(out + at, LABEL_ROOM - at, "-%08" PRIx32, hash(name));
}
