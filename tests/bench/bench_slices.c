/* The cost of reading the devices of a cluster from ResourceSlices: a list of 10,000 slices of 16 devices each, as
 * the apiserver pages it, read into a model that has the nodes. Prints the seconds of processor time, the MB
 * that the model is larger, and those of the slices. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/decode_dra.h"
#include "gpuqd/cluster/kube/watch/split.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/buf.h"
#include "tests/bench/bench_core.h"

#define SLICES 10000
#define PAGE 500
#define DEVICES 16

static void apply(struct model *m, const struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (model_apply(m, ev, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
}

/* The attributes are those that NVIDIA's driver publishes of a GPU. */
static void put_device(struct gpuq_buf *b, int node, int i)
{
	gpuq_buf_printf(
		b,
		"{\"name\":\"gpu-%d\",\"attributes\":{\"type\":{\"string\":\"gpu\"},\"uuid\":{"
		"\"string\":"
		"\"GPU-%08d-ab59-4d3b-9b8f-%012d\"},\"productName\":{\"string\":\"NVIDIA "
		"A100-SXM4-80GB\"},\"brand\":{\"string\":\"Nvidia\"},\"architecture\":{\"string\":"
		"\"Ampere\"},\"cudaComputeCapability\":{\"version\":\"8.0.0\"},\"driverVersion\":{"
		"\"version\":\"580.95.5\"},\"cudaDriverVersion\":{\"version\":\"13.0.0\"},"
		"\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:%02x:00.0\"},"
		"\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:%02x\"}},\"capacity\":{"
		"\"memory\":{\"value\":\"80Gi\"}}}",
		i, node, i, i + 16, i / 4);
}

static void put_slice(struct gpuq_buf *b, int node)
{
	gpuq_buf_printf(
		b,
		"{\"metadata\":{\"name\":\"node-%05d-gpu.nvidia.com-x7k2p\",\"uid\":\"6f1ed002-"
		"ab59-"
		"4d3b-9b8f-%012d\",\"resourceVersion\":\"%d\",\"generation\":1},\"spec\":{"
		"\"driver\":\"gpu.nvidia.com\",\"nodeName\":\"node-%05d\",\"pool\":{\"name\":"
		"\"node-%05d\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":[",
		node, node, 1000 + node, node, node);
	for (int i = 0; i < DEVICES; i++) {
		if (i)
			gpuq_buf_addc(b, ',');
		put_device(b, node, i);
	}
	gpuq_buf_adds(b, "]}}");
}

struct reading {
	struct model *m;
	struct kube_object o;
};

static bool on_item(void *arg, enum split_what what, const char *json, size_t n)
{
	struct reading *r = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct object_fact f;

	if (what == SPLIT_META)
		return true;
	if (kube_parse_item(json, n, &r->o, &err) != 0 ||
	    kube_read_dra(&r->o, OBJECT_SLICE, "0123abcd", &f, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	apply(r->m, &(struct event){ .type = EV_OBJECT_SEEN, .object = &f });
	kube_object_done(&r->o);
	return true;
}

static void read_page(struct reading *r, const struct gpuq_buf *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct split s;

	split_init(&s, SPLIT_LIST, on_item, r);
	if (split_feed(&s, text->data, text->len, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	split_done(&s);
}

static void add_nodes(struct model *m)
{
	for (int i = 0; i < SLICES; i++) {
		char name[32];
		struct node_fact f = { .note = "",
				       .name = name,
				       .cpu_milli = 128000,
				       .memory_bytes = INT64_C(1) << 40,
				       .max_pods = 110,
				       .ready = true };

		snprintf(name, sizeof(name), "node-%05d", i);
		apply(m, &(struct event){ .type = EV_NODE_SEEN, .node = &f });
	}
}

static size_t in_use(void)
{
	return mallinfo2().uordblks;
}

int main(void)
{
	struct reading r = { .m = model_new("0123abcd"), .o = KUBE_OBJECT_INIT };
	struct gpuq_buf page = GPUQ_BUF_INIT;
	double seconds = 0;
	size_t before, devices = 0;

	if (!r.m)
		return 1;
	add_nodes(r.m);
	before = in_use();
	for (int i = 0; i < SLICES; i += PAGE) {
		gpuq_buf_clear(&page);
		gpuq_buf_adds(
			&page,
			"{\"kind\":\"ResourceSliceList\",\"metadata\":{\"resourceVersion\":\"1\"},"
			"\"items\":[");
		for (int k = 0; k < PAGE; k++) {
			if (k)
				gpuq_buf_addc(&page, ',');
			put_slice(&page, i + k);
		}
		gpuq_buf_adds(&page, "]}");
		seconds -= bench_seconds();
		read_page(&r, &page);
		seconds += bench_seconds();
	}
	gpuq_buf_done(&page);
	node_each(r.m, n)
		devices += n->n_devices;
	if (devices != (size_t)SLICES * DEVICES) {
		fprintf(stderr, "%zu devices, not %d\n", devices, SLICES * DEVICES);
		return 1;
	}
	printf("%.2f %.1f %.1f\n", seconds, (double)(in_use() - before) / 1e6,
	       (double)dra_bytes(objects_dra(r.m->objects)) / 1e6);
	model_free(r.m);
	return 0;
}
