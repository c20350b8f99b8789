#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/devices/gpu_manager.h"
#include "gpuqd/devices/gpushare.h"
#include "gpuqd/devices/hami.h"

#define MIB (INT64_C(1) << 20)

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define GIB (INT64_C(1) << 30)
#define BLOCK (INT64_C(256) << 20)

static struct gpuq_arena mem;

static void init(void)
{
	mem = (struct gpuq_arena)GPUQ_ARENA_INIT(1 << 20);
}

static void done(void)
{
	gpuq_arena_done(&mem);
}

Test(backend, words_of_nodes)
{
	static const char *const words[] = { "whole",    "mig",          "time-slicing", "mps",
					     "gpushare", "gpushare-mib", "gpu-manager" };

	for (size_t i = 0; i < N(words); i++)
		cr_expect_str_eq(backend_of(words[i])->word, words[i]);
	cr_expect_null(backend_of(""));
	cr_expect_null(backend_of("somebody's own"));
}

/* A node that contradicts its pool. */
static const struct {
	const char *pool, *word;
	size_t n_mig;
	bool fits;
} pools[] = {
	{ "auto", "whole", 0, true },
	{ "auto", "gpu-manager", 0, true },
	{ "whole", "whole", 0, true },
	{ "whole", "", 0, true },
	{ "whole", "whole", 2, false },
	{ "whole", "time-slicing", 0, false },
	{ "mig", "whole", 2, true },
	{ "mig", "mig", 1, true },
	{ "mig", "whole", 0, false },
	{ "gpushare", "gpushare-mib", 0, true },
	{ "gpushare", "gpu-manager", 0, false },
	{ "mps", "time-slicing", 0, false },
};

Test(backend, pools_that_name_one)
{
	for (size_t i = 0; i < N(pools); i++)
		cr_expect_eq(backend_fits_pool(pools[i].pool, pools[i].word, pools[i].n_mig),
			     pools[i].fits, "%s: %s, %zu instances", pools[i].pool, pools[i].word,
			     pools[i].n_mig);
}

/* Which nodes a pod cannot be on: the words that are barred. */
static const struct {
	const char *name;
	int64_t gpus_milli, memory, cores;
	const char *mig;
	const char *barred;
} asks[] = {
	{ "no device", 0, 0, 0, NULL, "" },
	{ "a whole device", 1000, 0, 0, NULL, "" },
	{ "half a device", 500, 0, 0, NULL, "whole" },
	{ "memory of one", 1000, 5 * GIB, 0, NULL, "whole" },
	{ "two devices", 2000, 0, 0, NULL, "gpushare gpushare-mib" },
	{ "memory of each of two", 2000, 5 * GIB, 0, NULL,
	  "whole gpushare gpushare-mib gpu-manager" },
	{ "cores", 1000, 0, 30, NULL, "whole" },
	{ "all cores", 1000, 0, 100, NULL, "gpushare gpushare-mib" },
	{ "all cores, some memory", 1000, GIB, 100, NULL,
	  "whole gpushare gpushare-mib gpu-manager" },
	{ "an instance", 1000, 0, 0, "1g.10gb", "" },
};

Test(backend, where_a_pod_cannot_be, .init = init, .fini = done)
{
	for (size_t i = 0; i < N(asks); i++) {
		const struct gpuq_group g = { .gpus_milli = asks[i].gpus_milli,
					      .gpu_memory_bytes = asks[i].memory,
					      .gpu_cores = asks[i].cores,
					      .mig = asks[i].mig };
		const char *const *barred = backend_barred(&g, false, &mem);
		char text[80] = "";

		for (; barred && *barred; barred++) {
			strcat(text, *text ? " " : "");
			strcat(text, *barred);
		}
		cr_expect_str_eq(text, asks[i].barred, "%s: %s", asks[i].name, text);
	}
}

/* Devices of claims are not those of a plugin; claims of other things leave those of a plugin where they are. */
Test(backend, where_a_pod_with_claims_cannot_be, .init = init, .fini = done)
{
	struct gpuq_group g = { .gpus_milli = 1000, .n_claims = 1 };
	const char *const *barred = backend_barred(&g, true, &mem);

	cr_assert(barred != NULL);
	for (; *barred; barred++)
		cr_expect_str_neq(*barred, "dra");
	g.claims_beside = true;
	barred = backend_barred(&g, true, &mem);
	cr_assert(barred && *barred);
	cr_expect_str_eq(barred[0], "dra");
	cr_expect_null(barred[1]);
}

/* ---- a request that no node could ever serve ---- */

static void shape(void *arg, const struct backend *b, struct backend_shape *out)
{
	const char *const *words = arg;

	for (size_t i = 0; words[i]; i++)
		if (strcmp(words[i], b->word) == 0)
			*out = (struct backend_shape){ 1, 15 * 1024 };
}

static const struct {
	const char *name, *nodes[3];
	int64_t gpus_milli, memory, cores;
	const char *why; /* NULL = it may be served */
} checks[] = {
	{ "AC-ALI-3", { "gpushare" }, 1000, 16 * GIB, 0, "largest device 15 GiB" },
	{ "what a device has", { "gpushare" }, 1000, 15 * GIB, 0, NULL },
	{ "no such nodes", { "whole" }, 1000, 16 * GIB, 0, NULL },
	{ "AC-ALI-13", { "gpushare" }, 2000, 10 * GIB, 0, "HAMi" },
	{ "another can", { "gpushare", "mps" }, 1000, 16 * GIB, 0, NULL },
	{ "cores that are not limited", { "gpushare" }, 1000, 0, 30, NULL },
	{ "all of them", { "gpushare" }, 1000, GIB, 100, "do not limit them" },
	{ "cores where there are", { "gpushare", "gpu-manager" }, 1000, 0, 30, NULL },
	{ "gpu-manager", { "gpu-manager" }, 1000, 16 * GIB, 30, "largest device 15 GiB" },
	{ "parts of several", { "gpu-manager" }, 2000, GIB, 0, "expected gpus: 1" },
	{ "whole ones", { "gpushare" }, 2000, 0, 0, NULL },
};

Test(backend, what_can_never_be_served)
{
	for (size_t i = 0; i < N(checks); i++) {
		const struct gpuq_group g = { .gpus_milli = checks[i].gpus_milli,
					      .gpu_memory_bytes = checks[i].memory,
					      .gpu_cores = checks[i].cores };
		struct gpuq_err err = GPUQ_ERR_INIT;
		const int rc =
			backend_validate(&g, shape, (void *)(uintptr_t)checks[i].nodes, &err);

		cr_expect_eq(rc, checks[i].why ? GPUQ_ERANGE : 0, "%s", checks[i].name);
		if (checks[i].why)
			cr_expect(strstr(err.text, checks[i].why), "%s: %s", checks[i].name,
				  err.text);
	}
}

/* ---- gpushare ---- */

Test(gpushare, units_of_a_node)
{
	int64_t mib = 0;

	cr_expect_str_eq(gpushare_offer(60, 4, &mib)->word, "gpushare");
	cr_expect_eq(mib, 15 * 1024);
	cr_expect_str_eq(gpushare_offer(4 * 16276, 4, &mib)->word, "gpushare-mib");
	cr_expect_eq(mib, 16276);
	cr_expect_str_eq(gpushare_offer(15, 0, &mib)->word, "gpushare",
			 "one device where the count is not told");
	cr_expect_null(gpushare_offer(0, 4, &mib));
	cr_expect_null(gpushare_offer(3, 4, &mib));
}

static const char *note(const struct backend_place *p, const char *key)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (strcmp(p->notes[i].key, key) == 0)
			return p->notes[i].value;
	return "";
}

static const int two = 2, few[] = { 0, 1 };

static const struct {
	const char *name, *word;
	int64_t device_mib, milli, memory;
	int64_t units; /* -1 = refused; 0 = asked for as it is */
} places[] = {
	{ "GiB", "gpushare", 15 * 1024, 333, 5 * GIB, 5 },
	{ "a part of a unit is one more", "gpushare", 15 * 1024, 350, 5 * GIB + 1, 6 },
	{ "MiB", "gpushare-mib", 16276, 500, 8138 * (GIB / 1024), 8138 },
	{ "half a device is rounded down", "gpushare", 15 * 1024, 500, 0, 7 },
	{ "a whole one", "gpushare", 15 * 1024, 1000, 0, 15 },
	{ "never nothing", "gpushare", 15 * 1024, 1, 0, 1 },
	{ "more than there is", "gpushare", 15 * 1024, 1000, 16 * GIB, -1 },
	{ "memory not known", "gpushare", 0, 500, 0, -1 },
	{ "no such node", "whole", 15 * 1024, 500, 0, 0 },
};

Test(gpushare, what_the_plugin_reads, .init = init, .fini = done)
{
	for (size_t i = 0; i < N(places); i++) {
		const struct gpuq_group g = { .gpus_milli = 1000,
					      .gpu_memory_bytes = places[i].memory };
		const struct backend_ask ask = { .group = &g,
						 .devices = &two,
						 .n_devices = 1,
						 .device_mib = places[i].device_mib,
						 .milli = places[i].milli,
						 .now_us = 1000000 };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct backend_place p;
		const struct backend *b;
		const int rc = backend_place(places[i].word, &ask, &mem, &b, &p, &err);

		cr_expect_eq(rc, places[i].units < 0 ? GPUQ_EINVAL : 0, "%s", places[i].name);
		cr_expect_eq(b != NULL, places[i].units > 0, "%s", places[i].name);
		if (!b)
			continue;
		cr_expect_eq(b->turn, TURN_EQUAL);
		cr_expect_eq(p.units, places[i].units, "%s", places[i].name);
		cr_expect_eq(p.n_limits, 1);
		cr_expect_str_eq(p.limits[0].name, GPUSHARE_RESOURCE);
		cr_expect_eq(p.limits[0].count, p.units);
		cr_expect_str_eq(note(&p, GPUSHARE_INDEX), "2");
		cr_expect_str_eq(note(&p, GPUSHARE_ASSIGNED), "false");
		cr_expect_eq(strtoll(note(&p, GPUSHARE_POD), NULL, 10), p.units);
	}
}

Test(gpushare, times_rise_when_the_clock_does_not, .init = init, .fini = done)
{
	const struct gpuq_group g = { .gpus_milli = 500 };
	const struct backend_ask ask = { .group = &g,
					 .devices = &two,
					 .n_devices = 1,
					 .device_mib = 15 * 1024,
					 .milli = 500,
					 .now_us = 1000000 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	long long last = 0;

	for (int i = 0; i < 5; i++) {
		const struct backend *b;
		struct backend_place p;
		long long now;

		cr_assert_eq(backend_place("gpushare", &ask, &mem, &b, &p, &err), 0);
		now = strtoll(note(&p, GPUSHARE_TIME), NULL, 10);
		cr_expect_gt(now, last);
		last = now;
	}
	cr_expect_geq(last, 1000000LL * 1000);
}

/* ---- gpu-manager ---- */

Test(gpu_manager, devices_of_a_node)
{
	int64_t mib = 0;

	/* AC-GAIA: two devices of 16,280 MiB are 127 blocks, of which each has 63. */
	cr_expect_eq(gpu_manager_offer(200, 127, &mib), 2);
	cr_expect_eq(mib, 63 * 256);
	cr_expect_eq(gpu_manager_offer(0, 127, &mib), 0);
	cr_expect_eq(gpu_manager_offer(400, 3, &mib), 0, "less than a block for each");
}

static const struct {
	const char *name;
	int64_t milli, memory, cores, limit;
	size_t n_devices;
	uint32_t attempt;
	int64_t core, blocks; /* 0 = not asked for; -1 = refused */
	bool predicted;
} vcudas[] = {
	{ "AC-GAIA-1", 300, 15 * BLOCK, 0, 0, 1, 0, 30, 15, true },
	{ "cores", 300, 15 * BLOCK, 30, 0, 1, 0, 30, 15, true },
	{ "AC-GAIA-7", 300, 15 * BLOCK, 30, 80, 1, 0, 30, 15, true },
	{ "AC-GAIA-2: not once more", 300, 15 * BLOCK, 0, 0, 1, 1, 30, 15, false },
	{ "half", 500, 0, 0, 0, 1, 0, 50, 31, true },
	{ "memory is rounded up", 16, BLOCK + 1, 0, 0, 1, 0, 1, 2, true },
	{ "AC-GAIA-3: whole ones", 1000, 0, 0, 0, 2, 0, 200, 0, false },
	{ "parts of two", 500, BLOCK, 0, 0, 2, 0, -1, 0, false },
	{ "more than a device", 1000, 64 * BLOCK, 0, 0, 1, 0, -1, 0, false },
};

static const struct {
	const char *name;
	int64_t milli, memory, cores;
	size_t n_devices, n_init, n_containers, at;
	const char *text; /* NULL = refused */
} hamis[] = {
	{ "AC-HAMI-1", 2000, 3000 * MIB, 30, 2, 1, 2, 1,
	  ";;GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;" },
	{ "AC-HAMI-4", 500, 0, 0, 1, 0, 1, 0, "GPU-a,NVIDIA,7680,50:;" },
	{ "rounded down", 330, 0, 0, 1, 0, 1, 0, "GPU-a,NVIDIA,5068,33:;" },
	{ "memory is rounded up", 1000, MIB + 1, 0, 1, 0, 1, 0, "GPU-a,NVIDIA,2,0:;" },
	{ "cores alone", 1000, 0, 40, 1, 0, 1, 0, "GPU-a,NVIDIA,6144,40:;" },
	{ "whole", 2000, 0, 0, 2, 0, 1, 0, "GPU-a,NVIDIA,15360,100:GPU-b,NVIDIA,15360,100:;" },
	{ "more than a card", 1000, 15361 * MIB, 0, 1, 0, 1, 0, NULL },
};

Test(hami, what_the_plugin_reads, .init = init, .fini = done)
{
	static const char *const uuids[] = { "GPU-a", "GPU-b" };

	for (size_t i = 0; i < N(hamis); i++) {
		const struct gpuq_group g = { .gpus_milli = hamis[i].milli,
					      .gpu_memory_bytes = hamis[i].memory,
					      .gpu_cores = hamis[i].cores };
		const struct backend_ask ask = {
			.group = &g,
			.node = "h1",
			.resource = "nvidia.com/gpu",
			.devices = few,
			.uuids = uuids,
			.n_devices = hamis[i].n_devices,
			.device_mib = 15360,
			.milli = hamis[i].cores ? hamis[i].cores * 10 : hamis[i].milli % 1000,
			.n_init = hamis[i].n_init,
			.n_containers = hamis[i].n_containers,
			.at = hamis[i].at,
			.now_us = 1000000,
		};
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct hami_devices read;
		const struct backend *b;
		struct backend_place p;
		const int rc = backend_place("hami", &ask, &mem, &b, &p, &err);

		cr_assert_eq(rc, hamis[i].text ? 0 : GPUQ_EINVAL, "%s: %s", hamis[i].name,
			     err.text);
		if (!hamis[i].text)
			continue;
		cr_assert_str_eq(note(&p, HAMI_TO_ALLOCATE), hamis[i].text, "%s: %s", hamis[i].name,
				 note(&p, HAMI_TO_ALLOCATE));
		cr_expect_eq(hami_devices_read(hamis[i].text, &mem, &read), 0);
		cr_expect_eq(read.n, hamis[i].n_devices, "%s", hamis[i].name);
		cr_expect_eq(read.mib, p.limits[1].count, "%s", hamis[i].name);
	}
}

Test(hami, text_of_others_is_no_devices, .init = init, .fini = done)
{
	static const char *const bad[] = {
		"",
		";",
		";;",
		"GPU-a",
		"GPU-a:",
		"GPU-a,NVIDIA,1,2",
		",NVIDIA,1,2:;",
		"GPU-a,NVIDIA,x,2:;",
		"GPU-a,NVIDIA,1,101:;",
		"GPU-a,NVIDIA,1,2,3:;",
		"GPU-a,NVIDIA,99999999999999999999,2:;",
		"a,N,1,1:;b",
	};

	for (size_t i = 0; i < N(bad); i++) {
		struct hami_devices read;

		cr_expect_eq(hami_devices_read(bad[i], &mem, &read), 0);
		cr_expect_eq(read.n, 0, "%s", bad[i]);
	}
}

Test(gpu_manager, what_the_plugin_reads, .init = init, .fini = done)
{
	for (size_t i = 0; i < N(vcudas); i++) {
		const struct gpuq_group g = {
			.gpus_milli = vcudas[i].memory || vcudas[i].cores
					      ? 1000
					      : vcudas[i].milli * (int64_t)vcudas[i].n_devices,
			.gpu_memory_bytes = vcudas[i].memory,
			.gpu_cores = vcudas[i].cores,
			.gpu_cores_limit = vcudas[i].limit,
		};
		const struct backend_ask ask = { .group = &g,
						 .node = "g1",
						 .devices = few,
						 .n_devices = vcudas[i].n_devices,
						 .device_mib = 63 * 256,
						 .milli = vcudas[i].milli,
						 .attempt = vcudas[i].attempt,
						 .at = 1,
						 .now_us = 1000000 };
		struct gpuq_err err = GPUQ_ERR_INIT;
		const struct backend *b;
		struct backend_place p;
		const int rc = backend_place("gpu-manager", &ask, &mem, &b, &p, &err);

		cr_expect_eq(rc, vcudas[i].core < 0 ? GPUQ_EINVAL : 0, "%s", vcudas[i].name);
		if (rc != 0)
			continue;
		cr_expect_eq(b->turn, TURN_NODE);
		cr_expect_eq(p.limits[0].count, vcudas[i].core, "%s", vcudas[i].name);
		cr_expect_eq(p.n_limits, vcudas[i].blocks ? 2 : 1);
		if (vcudas[i].blocks)
			cr_expect_eq(p.limits[1].count, vcudas[i].blocks, "%s", vcudas[i].name);
		cr_expect_str_eq(note(&p, VCUDA_INDEX "1"), vcudas[i].predicted ? "0" : "");
		cr_expect_str_eq(note(&p, VCUDA_NODE), vcudas[i].predicted ? "g1" : "");
		cr_expect_str_eq(note(&p, VCUDA_ASSIGNED), vcudas[i].predicted ? "false" : "");
		cr_expect_str_eq(note(&p, VCUDA_LIMIT), vcudas[i].limit ? "80" : "");
		cr_expect_eq(*note(&p, VCUDA_TIME) != '\0', vcudas[i].predicted);
	}
}

/* Devices of which so much is free, and which the plugin chooses for a pod that wants so much. */
static const struct {
	const char *name;
	struct backend_room free[3], want;
	int chosen;
} choices[] = {
	{ "AC-GAIA-1: fewest cores",
	  { { 400, 5120 }, { 600, 7680 }, { 1000, 16128 } },
	  { 300, 3840 },
	  0 },
	{ "too little memory",
	  { { 400, 5120 }, { 600, 7680 }, { 1000, 16128 } },
	  { 300, 6400 },
	  1 },
	{ "less memory among equals",
	  { { 400, 5120 }, { 400, 2560 }, { 400, 5120 } },
	  { 300, 2560 },
	  1 },
	{ "the first among equals",
	  { { 1000, 16128 }, { 1000, 16128 }, { 1000, 16128 } },
	  { 1, 256 },
	  0 },
	{ "none", { { 400, 5120 }, { 200, 16128 }, { 0, 0 } }, { 300, 6400 }, -1 },
	{ "a whole one: the last", { { 1000, 1 }, { 1000, 1 }, { 990, 1 } }, { 1000, 0 }, 1 },
	{ "two whole ones", { { 1000, 1 }, { 990, 1 }, { 1000, 1 } }, { 2000, 0 }, 0 },
	{ "two of one", { { 1000, 1 }, { 990, 1 }, { 990, 1 } }, { 2000, 0 }, -1 },
};

Test(gpu_manager, what_the_plugin_chooses)
{
	for (size_t i = 0; i < N(choices); i++)
		cr_expect_eq(backend_of("gpu-manager")->choose(choices[i].want, choices[i].free, 3),
			     choices[i].chosen, "%s", choices[i].name);
}

/* ---- what pods tell ---- */

static const struct {
	const char *name, *keys[4], *vals[4];
	int64_t core, blocks;
	const char *devices;
	int64_t milli, memory, unserved;
} pods[] = {
	{ "nothing", { 0 }, { 0 }, 0, 0, "", 0, 0, 0 },
	{ "gpushare, served",
	  { GPUSHARE_INDEX, GPUSHARE_DEVICE, GPUSHARE_POD, GPUSHARE_ASSIGNED },
	  { "1", "15", "5", "true" },
	  0,
	  0,
	  "1",
	  333,
	  0,
	  0 },
	{ "gpushare, not yet",
	  { GPUSHARE_INDEX, GPUSHARE_DEVICE, GPUSHARE_POD, GPUSHARE_ASSIGNED },
	  { "1", "15", "5", "false" },
	  0,
	  0,
	  "1",
	  333,
	  0,
	  5 },
	{ "a device that is none", { GPUSHARE_INDEX }, { "-1" }, 0, 0, "", 0, 0, 0 },
	{ "gpu-manager, predicted",
	  { VCUDA_INDEX "0", VCUDA_ASSIGNED },
	  { "1", "false" },
	  30,
	  15,
	  "1",
	  300,
	  15 * BLOCK,
	  UNSERVED_NODE },
	{ "gpu-manager, served",
	  { VCUDA_INDEX "0", VCUDA_ASSIGNED },
	  { "1", "true" },
	  30,
	  15,
	  "1",
	  300,
	  15 * BLOCK,
	  0 },
	{ "gpu-manager, no prediction", { 0 }, { 0 }, 30, 15, "", 300, 15 * BLOCK, UNSERVED_NODE },
	{ "whole ones",
	  { VCUDA_INDEX "0", VCUDA_INDEX "1", VCUDA_ASSIGNED },
	  { "3,2", "0", "true" },
	  300,
	  0,
	  "0 2 3",
	  3000,
	  0,
	  0 },
	{ "a word in the place of a list", { VCUDA_INDEX "0" }, { "all" }, 0, 0, "", 0, 0, 0 },
};

Test(backend, what_pods_tell, .init = init, .fini = done)
{
	for (size_t i = 0; i < N(pods); i++) {
		const struct gpuq_amount words[] = { { VCUDA_CORE, pods[i].core },
						     { VCUDA_MEMORY, pods[i].blocks } };
		struct gpuq_strmap notes = { (const char **)(uintptr_t)pods[i].keys,
					     (const char **)(uintptr_t)pods[i].vals, 0 };
		struct backend_seen seen;
		char text[40] = "";

		while (notes.n < 4 && pods[i].keys[notes.n])
			notes.n++;
		cr_assert_eq(backend_observe(&notes, words, 2, &mem, &seen), 0);
		for (size_t k = 0; k < seen.n_devices; k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d",
				 k ? " " : "", seen.devices[k]);
		cr_expect_str_eq(text, pods[i].devices, "%s: %s", pods[i].name, text);
		cr_expect_eq(seen.gpus_milli, pods[i].milli, "%s", pods[i].name);
		cr_expect_eq(seen.memory_bytes, pods[i].memory, "%s", pods[i].name);
		cr_expect_eq(seen.unserved, pods[i].unserved, "%s", pods[i].name);
	}
}
