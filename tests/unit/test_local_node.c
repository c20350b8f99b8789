/* Devices that are found from the driver, and lost again. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/cluster/local/local_int.h"
#include "gpuqd/cluster/local/local_node.h"
#include "tests/unit/local_world.h"

static struct world w;
static char dir[] = "/tmp/gpuq-nvml-XXXXXX";

static char *in_dir(const char *name)
{
	static char path[2][128];
	static int at;

	snprintf(path[at ^= 1], sizeof(path[0]), "%s/%s", dir, name);
	return path[at];
}

static void have(const char *lines)
{
	FILE *f = fopen(in_dir("devices"), "w");

	fputs(lines, f);
	fclose(f);
}

/* The fake library under the name that the driver's has. */
static void setup(void)
{
	char exe[4096], fake[4200];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[n > 0 ? n : 0] = '\0';
	*strrchr(exe, '/') = '\0';
	snprintf(fake, sizeof(fake), "%s/.libs/fake_nvml.so", exe);
	cr_assert(mkdtemp(dir));
	cr_assert_eq(access(fake, R_OK), 0, "%s", fake);
	cr_assert_eq(symlink(fake, in_dir("libnvidia-ml.so.1")), 0);
	setenv("LD_LIBRARY_PATH", dir, 1);
	setenv("FAKE_NVML", in_dir("devices"), 1);
}

static void teardown(void)
{
	world_done(&w);
	unlink(in_dir("libnvidia-ml.so.1"));
	unlink(in_dir("devices"));
	rmdir(dir);
}

TestSuite(local_node, .init = setup, .fini = teardown, .timeout = 300);

static int healthy(void)
{
	int n = 0;

	for (size_t i = 0; i < w.n_devices; i++)
		n += w.devices[i].healthy;
	return n;
}

static bool healthy_are(struct world *world, void *arg)
{
	(void)world;
	return healthy() == *(int *)arg;
}

static void look_again(int want)
{
	local_node_check((struct local *)w.c);
	cr_assert(world_wait(&w, healthy_are, &want), "%d healthy, not %d", healthy(), want);
}

Test(local_node, devices_are_the_drivers)
{
	have("GPU-aaaa 81920 NVIDIA A100-SXM4-80GB\nlost\nGPU-cccc 16384 Tesla T4\n");
	world_open(&w, NULL, -1);
	cr_assert_eq(w.n_devices, 3);
	cr_expect_str_eq(w.uuids[0], "GPU-aaaa");
	cr_expect_str_eq(w.products[0], "NVIDIA-A100-SXM4-80GB");
	cr_expect_eq(w.devices[0].memory_mib, 81920);
	cr_expect(w.devices[0].healthy);
	cr_expect_not(w.devices[1].healthy);
	cr_expect_str_eq(w.products[2], "Tesla-T4");
}

Test(local_node, minors_are_the_drivers_and_not_the_order)
{
	const struct local *l;

	have("GPU-a 1024 X\nlost\nGPU-c 1024 X\n");
	world_open(&w, NULL, -1);
	l = (const struct local *)w.c;
	cr_assert_eq(l->node.n_devices, 3);
	cr_expect_eq(l->node.devices[0].minor, 2);
	cr_expect_eq(l->node.devices[1].minor, -1);
	cr_expect_eq(l->node.devices[2].minor, 0);
}

Test(local_node, links_are_the_drivers)
{
	static const uint8_t want[16] = { 0, 1, 9, 1, 1, 0, 1, 9, 9, 1, 0, 1, 1, 9, 1, 0 };

	have("GPU-a 1024 A100-SXM\nGPU-b 1024 A100-SXM\nGPU-c 1024 A100-SXM\nGPU-d 1024 "
	     "A100-SXM\n");
	world_open(&w, NULL, -1);
	cr_assert_eq(w.n_devices, 4);
	cr_assert(w.has_links);
	cr_expect_arr_eq(w.links, want, sizeof(want));
}

Test(local_node, links_are_not_told_where_a_device_is_lost)
{
	have("GPU-a 1024 A100-SXM\nlost\nGPU-c 1024 A100-SXM\n");
	world_open(&w, NULL, -1);
	cr_assert_eq(w.n_devices, 3);
	cr_expect_not(w.has_links);
}

Test(local_node, one_that_is_missing_keeps_its_place)
{
	have("GPU-a 1024 X\nGPU-b 1024 X\nGPU-c 1024 X\n");
	world_open(&w, NULL, -1);
	cr_assert_eq(healthy(), 3);
	have("GPU-a 1024 X\nGPU-c 1024 X\n");
	look_again(2);
	cr_expect_eq(w.n_devices, 3);
	cr_expect_not(w.devices[1].healthy);
	cr_expect_str_eq(w.uuids[2], "GPU-c");
	cr_expect(strstr(w.node_note, "1 of 3 devices"), "%s", w.node_note);
	have("GPU-a 1024 X\nGPU-b 1024 X\nGPU-c 1024 X\n");
	look_again(3);
	cr_expect_str_eq(w.node_note, "");
}

Test(local_node, no_driver_is_no_devices)
{
	world_open(&w, NULL, -1);
	/* The library is there and says no; /proc/driver/nvidia decides. */
	if (access("/proc/driver/nvidia/gpus", F_OK) != 0)
		cr_expect_eq(w.n_devices, 0);
	cr_expect_eq(w.lists, 1);
}
