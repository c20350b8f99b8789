/* A driver's library for machines without one: the part of NVML that devices.c uses.
 * $FAKE_NVML names a file with a line per device, "UUID MIB PRODUCT", or "lost" for one
 * that fell off the bus, or "hang" for a driver that never answers. $FAKE_NVML_USE names one
 * with a line per device, the percent that it does now; without a number it does not tell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NOT_SUPPORTED 3
#define NO_PERMISSION 4
#define GPU_IS_LOST 15

static struct fake {
	char uuid[64], product[64];
	unsigned long long mib;
} fakes[16];
static unsigned n_fakes;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned ix, void **out);
int nvmlDeviceGetUUID(void *d, char *out, unsigned room);
int nvmlDeviceGetName(void *d, char *out, unsigned room);
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long out[3]);

int nvmlDeviceGetUtilizationRates(void *d, unsigned out[2]);
int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, int *level);
int nvmlDeviceGetP2PStatus(void *a, void *b, int what, int *status);
int nvmlDeviceGetMinorNumber(void *d, unsigned *out);

/* Devices of a product with SXM in its name are joined in pairs: 0 and 2, 1 and 3, ... */
EXPORT int nvmlDeviceGetP2PStatus(void *a, void *b, int what, int *status)
{
	const long x = (struct fake *)a - fakes, y = (struct fake *)b - fakes;

	*status = what == 2 && x / 4 == y / 4 && x % 2 == y % 2 &&
				  strstr(fakes[x].product, "SXM") && strstr(fakes[y].product, "SXM")
			  ? 0
			  : 1;
	return 0;
}

EXPORT int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, int *level)
{
	(void)a, (void)b;
	*level = 50;
	return 0;
}

/* The driver numbers devices as it finds them, here from the last to the first. */
EXPORT int nvmlDeviceGetMinorNumber(void *d, unsigned *out)
{
	*out = n_fakes - 1 - (unsigned)((struct fake *)d - fakes);
	return 0;
}

EXPORT int nvmlInit_v2(void)
{
	const char *path = getenv("FAKE_NVML");
	FILE *f = path ? fopen(path, "r") : NULL;
	char line[160];

	if (!f)
		return NO_PERMISSION;
	while (n_fakes < 16 && fgets(line, sizeof(line), f)) {
		struct fake *d = &fakes[n_fakes++];

		if (strncmp(line, "hang", 4) == 0)
			pause();
		if (sscanf(line, "%63s %llu %63[^\n]", d->uuid, &d->mib, d->product) != 3)
			memset(d, 0, sizeof(*d));
	}
	fclose(f);
	return 0;
}

EXPORT int nvmlShutdown(void)
{
	return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = n_fakes;
	return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned ix, void **out)
{
	if (!fakes[ix].uuid[0])
		return GPU_IS_LOST;
	*out = &fakes[ix];
	return 0;
}

EXPORT int nvmlDeviceGetUUID(void *d, char *out, unsigned room)
{
	snprintf(out, room, "%s", ((struct fake *)d)->uuid);
	return 0;
}

EXPORT int nvmlDeviceGetName(void *d, char *out, unsigned room)
{
	snprintf(out, room, "%s", ((struct fake *)d)->product);
	return 0;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *d, unsigned long long out[3])
{
	out[0] = ((struct fake *)d)->mib << 20;
	out[1] = out[0];
	out[2] = 0;
	return 0;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *d, unsigned out[2])
{
	const char *path = getenv("FAKE_NVML_USE");
	FILE *f = path ? fopen(path, "r") : NULL;
	const long ix = (struct fake *)d - fakes;
	int found = 0;
	char line[64];

	if (!f)
		return NOT_SUPPORTED;
	for (long i = 0; i <= ix && fgets(line, sizeof(line), f); i++)
		found = i == ix && sscanf(line, "%u", &out[0]) == 1;
	fclose(f);
	out[1] = 0;
	return found ? 0 : NOT_SUPPORTED;
}
