/* The cost of a list and a watch of nodes: bench_nodes ROW reads 200 nodes of a list, and four changes of each;
 * row 1 as kubelets report them, row 2 with the cards that HAMi's plugin registers. For counting instructions. */
#include <stdio.h>
#include <stdlib.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/decode_node.h"
#include "gpuqd/cluster/kube/watch/decode_object.h"
#include "gpuqd/cluster/kube/watch/split.h"
#include "libgpuq/buf.h"

#define NODES 200
#define CARDS 8
#define IMAGES 30
#define CHANGES 4

static size_t n_devices;

static void put_node(struct gpuq_buf *b, int i, bool hami)
{
	gpuq_buf_printf(
		b,
		"{\"metadata\":{\"name\":\"node-%05d\",\"uid\":\"6f1ed002-ab59-4d3b-9b8f-%012d\","
		"\"resourceVersion\":\"%d\",\"labels\":{\"kubernetes.io/arch\":\"amd64\","
		"\"kubernetes.io/os\":\"linux\",\"kubernetes.io/hostname\":\"node-%05d\","
		"\"node.kubernetes.io/instance-type\":\"a2-ultragpu-8g\","
		"\"topology.kubernetes.io/zone\":\"zone-%d\"},\"annotations\":{"
		"\"node.alpha.kubernetes.io/ttl\":\"0\"",
		i, i, 1000 + i, i, i % 4);
	if (hami) {
		gpuq_buf_adds(b, ",\"hami.io/node-nvidia-register\":\"[");
		for (int c = 0; c < CARDS; c++)
			gpuq_buf_printf(
				b,
				"%s{\\\"id\\\":\\\"GPU-%08d-ab59-4d3b-9b8f-%012d\\\",\\\"index\\\":"
				"%d,"
				"\\\"count\\\":10,\\\"devmem\\\":81920,\\\"devcore\\\":100,"
				"\\\"type\\\":"
				"\\\"NVIDIA-NVIDIA A100-SXM4-80GB\\\",\\\"numa\\\":%d,\\\"mode\\\":"
				"\\\"hami-core\\\",\\\"health\\\":true}",
				c ? "," : "", i, c, c, c / 4);
		gpuq_buf_adds(b, "]\"");
	}
	gpuq_buf_printf(
		b,
		"}},\"spec\":{\"podCIDR\":\"10.0.0.0/24\",\"providerID\":\"x:///"
		"node-%05d\"},\"status\":{"
		"\"capacity\":{\"cpu\":\"128\",\"memory\":\"1056000000Ki\",\"pods\":\"110\","
		"\"ephemeral-storage\":\"1000Gi\",\"nvidia.com/"
		"gpu\":\"%d\"},\"allocatable\":{\"cpu\":"
		"\"128\",\"memory\":\"1055000000Ki\",\"pods\":\"110\",\"ephemeral-storage\":"
		"\"990Gi\","
		"\"nvidia.com/gpu\":\"%d\"},\"conditions\":[",
		i, hami ? 10 * CARDS : CARDS, hami ? 10 * CARDS : CARDS);
	for (int c = 0; c < 4; c++)
		gpuq_buf_printf(
			b,
			"%s{\"type\":\"%s\",\"status\":\"%s\",\"lastHeartbeatTime\":"
			"\"2026-11-27T16:00:00Z\",\"lastTransitionTime\":\"2026-11-20T08:00:00Z\","
			"\"reason\":\"KubeletHasSufficientResources\",\"message\":\"kubelet has "
			"sufficient resources available\"}",
			c ? "," : "",
			(const char *const[]){ "MemoryPressure", "DiskPressure", "PIDPressure",
					       "Ready" }[c],
			c == 3 ? "True" : "False");
	gpuq_buf_adds(b, "],\"images\":[");
	for (int c = 0; c < IMAGES; c++)
		gpuq_buf_printf(b,
				"%s{\"names\":[\"registry.example/team/image-%02d@sha256:%064d\","
				"\"registry.example/team/image-%02d:v1\"],\"sizeBytes\":%d}",
				c ? "," : "", c, c, c, 100000000 + c);
	gpuq_buf_adds(b, "]}}");
}

static bool on_item(void *arg, enum split_what what, const char *json, size_t n)
{
	struct kube_object *o = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct node_fact fact;

	if (what == SPLIT_META)
		return true;
	kube_object_done(o);
	if (kube_parse_item(json, n, o, &err) != 0 || kube_read_node(o, &fact, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	n_devices += fact.n_devices;
	return true;
}

static void feed(struct gpuq_buf *text, struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct split s;

	split_init(&s, SPLIT_LIST, on_item, o);
	if (split_feed(&s, gpuq_buf_str(text), text->len, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	split_done(&s);
}

int main(int argc, char **argv)
{
	const bool hami = argc > 1 && atoi(argv[1]) == 2;
	struct gpuq_buf list = GPUQ_BUF_INIT;
	struct kube_object object = { 0 };

	gpuq_buf_adds(
		&list,
		"{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
	for (int i = 0; i < NODES; i++) {
		if (i)
			gpuq_buf_addc(&list, ',');
		put_node(&list, i, hami);
	}
	gpuq_buf_adds(&list, "]}");
	for (int i = 0; i <= CHANGES; i++)
		feed(&list, &object);
	kube_object_done(&object);
	gpuq_buf_done(&list);
	printf("%s %zu\n",
	       hami ? "nodes with cards that HAMi registers" : "nodes as kubelets report them",
	       n_devices);
	return 0;
}
