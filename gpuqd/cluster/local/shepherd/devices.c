#include "config.h"

#include "gpuqd/cluster/local/shepherd/devices.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The part of NVML that is used, by its documented ABI. Loaded at run time, because the library
 * comes with the driver and is on no build machine. */
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_use {
	unsigned gpu, memory; /* percent of the time, over the last second at most */
};
typedef struct nvml_device *nvml_device;

struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*by_index)(unsigned ix, nvml_device *out);
	int (*uuid)(nvml_device d, char *out, unsigned room);
	int (*name)(nvml_device d, char *out, unsigned room);
	int (*memory)(nvml_device d, struct nvml_memory *out);
	/* older drivers lack these */
	int (*ancestor)(nvml_device a, nvml_device b, int *level);
	int (*p2p)(nvml_device a, nvml_device b, int what, int *status);
	int (*use)(nvml_device d, struct nvml_use *out);
	int (*minor)(nvml_device d, unsigned *out);
};

#define P2P_NVLINK 2
#define P2P_OK 0

/* The nearest thing on the way between two devices, as NVML numbers it. */
static const struct {
	int level;
	char speed;
} ancestors[] = {
	{ 0, '6' }, /* one board */
	{ 10, '5' }, /* one switch */
	{ 20, '4' }, /* several switches */
	{ 30, '3' }, /* one host bridge */
	{ 40, '2' }, /* one NUMA node */
	{ 50, '1' }, /* the whole machine */
};

static bool load(struct nvml *n)
{
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	const struct {
		const char *symbol;
		void *slot;
	} table[] = {
		{ "nvmlInit_v2", &n->init },
		{ "nvmlShutdown", &n->shutdown },
		{ "nvmlDeviceGetCount_v2", &n->count },
		{ "nvmlDeviceGetHandleByIndex_v2", &n->by_index },
		{ "nvmlDeviceGetUUID", &n->uuid },
		{ "nvmlDeviceGetName", &n->name },
		{ "nvmlDeviceGetMemoryInfo", &n->memory },
	};

	const struct {
		const char *symbol;
		void *slot;
	} more[] = {
		{ "nvmlDeviceGetTopologyCommonAncestor", &n->ancestor },
		{ "nvmlDeviceGetP2PStatus", &n->p2p },
		{ "nvmlDeviceGetUtilizationRates", &n->use },
		{ "nvmlDeviceGetMinorNumber", &n->minor },
	};

	if (!lib)
		return false;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *fn = dlsym(lib, table[i].symbol);

		if (!fn)
			return false;
		memcpy(table[i].slot, &fn, sizeof(fn)); /* POSIX: dlsym gives functions too */
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		void *fn = dlsym(lib, more[i].symbol);

		memcpy(more[i].slot, &fn, sizeof(fn));
	}
	return true;
}

/* Product names as node labels carry them: "NVIDIA-A100-SXM4-80GB". */
static void print_line(FILE *out, const char *uuid, char *product, long long mib, bool healthy,
		       const char *links, int minor)
{
	for (char *p = product; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '_')
			*p = '-';
	fprintf(out, "%s\t%s\t%lld\t%d\t%s\t%d\n", uuid, product, mib, healthy, links, minor);
}

static char speed_of(const struct nvml *n, nvml_device a, nvml_device b)
{
	int status = -1, level = -1;

	if (n->p2p && n->p2p(a, b, P2P_NVLINK, &status) == 0 && status == P2P_OK)
		return '9';
	if (!n->ancestor || n->ancestor(a, b, &level) != 0)
		return '0';
	for (size_t i = 0; i < sizeof(ancestors) / sizeof(ancestors[0]); i++)
		if (ancestors[i].level == level)
			return ancestors[i].speed;
	return '0';
}

/* A device that does not answer keeps its place, without links. */
static void find_links(const struct nvml *n, unsigned count, unsigned of, char *out)
{
	nvml_device a = NULL, b = NULL;
	bool any = false;

	for (unsigned i = 0; i < count; i++) {
		out[i] = '0';
		if (i != of && n->by_index(of, &a) == 0 && n->by_index(i, &b) == 0)
			out[i] = speed_of(n, a, b);
		any |= out[i] != '0';
	}
	out[any ? count : 0] = '\0';
}

static int from_nvml(FILE *out)
{
	char links[DEVICES_LINKED_MAX + 1] = "";
	struct nvml n = { 0 };
	unsigned count = 0;

	if (!load(&n) || n.init() != 0)
		return -1;
	if (n.count(&count) != 0)
		count = 0;
	for (unsigned i = 0; i < count; i++) {
		char uuid[96] = "", product[96] = "";
		struct nvml_memory mem = { 0 };
		unsigned minor = 0;
		nvml_device d = NULL;
		bool told;
		/* A device that fell off the bus still has its number but answers nothing. */
		bool healthy = n.by_index(i, &d) == 0 && n.uuid(d, uuid, sizeof(uuid)) == 0;

		if (healthy)
			healthy =
				n.name(d, product, sizeof(product)) == 0 && n.memory(d, &mem) == 0;
		if (count <= DEVICES_LINKED_MAX)
			find_links(&n, count, i, links);
		told = healthy && n.minor && n.minor(d, &minor) == 0;
		print_line(out, uuid, product, (long long)(mem.total >> 20), healthy, links,
			   told ? (int)minor : -1);
	}
	n.shutdown();
	return (int)count;
}

/* ---- what they do ---- */

#define LOOK_US INT64_C(1000000) /* the driver reports the last second at most */

struct watched {
	nvml_device d;
	char uuid[96];
	int most; /* percent since it was last printed; -1 = the driver did not say */
	unsigned long long most_bytes; /* of memory taken; 0 = the driver did not say */
};

/* Take each device's maximum since the last report. A device with a missing sample counts as
 * unmeasured: it may have been busy then. A partitioned device is never measured. */
static void look(const struct nvml *n, struct watched *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct nvml_memory memory = { 0 };
		struct nvml_use use = { 0 };

		if (!w[i].uuid[0])
			continue;
		if (n->memory(w[i].d, &memory) == 0 && memory.used > w[i].most_bytes)
			w[i].most_bytes = memory.used;
		if (n->use(w[i].d, &use) != 0 || use.gpu > 100)
			w[i].most = w[i].most > 0 ? w[i].most : -1;
		else if ((int)use.gpu > w[i].most && (w[i].most >= 0 || use.gpu > 0))
			w[i].most = (int)use.gpu;
	}
}

static bool print_use(FILE *out, struct watched *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (w[i].uuid[0])
			fprintf(out, "%s\t%d\t%llu\n", w[i].uuid, w[i].most * 10, w[i].most_bytes);
		w[i].most = 0;
		w[i].most_bytes = 0;
	}
	fputc('\n', out);
	return fflush(out) == 0;
}

int devices_watch(FILE *out, int64_t every_us)
{
	const int64_t look_us = every_us < LOOK_US ? every_us : LOOK_US;
	const struct timespec pause = { look_us / 1000000, look_us % 1000000 * 1000 };
	const int64_t looks = every_us / look_us;
	struct nvml n = { 0 };
	struct watched *w;
	unsigned count = 0;

	if (!load(&n) || !n.use || n.init() != 0 || n.count(&count) != 0 || count == 0)
		return -1;
	w = calloc(count, sizeof(*w));
	for (unsigned i = 0; w && i < count; i++)
		if (n.by_index(i, &w[i].d) != 0 ||
		    n.uuid(w[i].d, w[i].uuid, sizeof(w[i].uuid)) != 0)
			w[i].uuid[0] = '\0';
	do {
		for (int64_t i = 0; w && i < looks; i++) {
			nanosleep(&pause, NULL);
			look(&n, w, count);
		}
	} while (w && print_use(out, w, count));
	free(w);
	n.shutdown();
	return 0;
}

/* "Model: \t\t NVIDIA A100" -> the text behind the colon, if line is about key. */
static bool value_of(const char *line, const char *key, char *out, size_t room)
{
	const size_t n = strlen(key);

	if (strncmp(line, key, n) != 0 || line[n] != ':')
		return false;
	line += n + 1;
	line += strspn(line, " \t");
	snprintf(out, room, "%.*s", (int)strcspn(line, "\n"), line);
	return true;
}

int devices_print_proc(const char *dir, FILE *out)
{
	struct dirent **found = NULL;
	int n = scandir(dir, &found, NULL, alphasort), devices = 0;

	for (int i = 0; i < n; i++) {
		char path[512], line[256], uuid[96] = "", product[96] = "", minor[16] = "-1";
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/information", dir, found[i]->d_name);
		f = found[i]->d_name[0] == '.' ? NULL : fopen(path, "re");
		free(found[i]);
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			value_of(line, "Model", product, sizeof(product));
			value_of(line, "GPU UUID", uuid, sizeof(uuid));
			value_of(line, "Device Minor", minor, sizeof(minor));
		}
		fclose(f);
		/* The driver prints question marks until the device was used once. */
		if (strchr(uuid, '?'))
			uuid[0] = '\0';
		print_line(out, uuid, product, 0, true, "", (int)strtol(minor, NULL, 10));
		devices++;
	}
	free(found);
	return devices;
}

int devices_print(FILE *out)
{
	int n = from_nvml(out);

	return n >= 0 ? n : devices_print_proc("/proc/driver/nvidia/gpus", out);
}
