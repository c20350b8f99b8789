#include "config.h"

#include "gpuqd/cluster/local/devices.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What we use of NVML, by its documented ABI. Loaded at run time, because the library
 * comes with the driver and is on no build machine. */
struct nvml_memory {
	unsigned long long total, free, used;
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

	if (!lib)
		return false;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *fn = dlsym(lib, table[i].symbol);

		if (!fn)
			return false;
		memcpy(table[i].slot, &fn, sizeof(fn)); /* POSIX: dlsym gives functions too */
	}
	return true;
}

/* Product names as node labels carry them: "NVIDIA-A100-SXM4-80GB". */
static void print_line(FILE *out, const char *uuid, char *product, long long mib, bool healthy)
{
	for (char *p = product; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '_')
			*p = '-';
	fprintf(out, "%s\t%s\t%lld\t%d\n", uuid, product, mib, healthy);
}

static int from_nvml(FILE *out)
{
	struct nvml n = { 0 };
	unsigned count = 0;

	if (!load(&n) || n.init() != 0)
		return -1;
	if (n.count(&count) != 0)
		count = 0;
	for (unsigned i = 0; i < count; i++) {
		char uuid[96] = "", product[96] = "";
		struct nvml_memory mem = { 0 };
		nvml_device d = NULL;
		/* A device that fell off the bus still has its number but answers nothing. */
		bool healthy = n.by_index(i, &d) == 0 && n.uuid(d, uuid, sizeof(uuid)) == 0;

		if (healthy)
			healthy =
				n.name(d, product, sizeof(product)) == 0 && n.memory(d, &mem) == 0;
		print_line(out, uuid, product, (long long)(mem.total >> 20), healthy);
	}
	n.shutdown();
	return (int)count;
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
		char path[512], line[256], uuid[96] = "", product[96] = "";
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/information", dir, found[i]->d_name);
		f = found[i]->d_name[0] == '.' ? NULL : fopen(path, "re");
		free(found[i]);
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			value_of(line, "Model", product, sizeof(product));
			value_of(line, "GPU UUID", uuid, sizeof(uuid));
		}
		fclose(f);
		/* The driver prints question marks until the device was used once. */
		if (strchr(uuid, '?'))
			uuid[0] = '\0';
		print_line(out, uuid, product, 0, true);
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
