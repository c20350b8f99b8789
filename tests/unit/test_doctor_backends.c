#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "gpuq/cmd/site/doctor_backends.h"
#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/yaml.h"

/* The findings of one backend, "broken: text -> advice" in a line each. */
struct found {
	const char *backend;
	struct gpuq_buf text;
};

static void note(void *arg, const struct doctor_backend *b)
{
	struct found *f = arg;

	if (strcmp(b->backend, f->backend) == 0)
		gpuq_buf_printf(&f->text, "%s: %s -> %s\n", b->state, b->text, b->advice);
}

static const struct gpuq_val *parsed(struct gpuq_arena *a, const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n = 0;

	cr_assert_eq(gpuq_yaml_parse(a, "-", text, strlen(text), &docs, &n, &err), 0, "%s",
		     err.text);
	cr_assert_eq(n, 1);
	return docs[0];
}

static void finds(const char *backend, const char *nodes, const char *rights, const char *want)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct found f = { backend, GPUQ_BUF_INIT };

	doctor_backends(&a, parsed(&a, nodes), parsed(&a, rights), "", note, &f);
	cr_expect_str_eq(gpuq_buf_str(&f.text), want);
	gpuq_buf_done(&f.text);
	gpuq_arena_done(&a);
}

#define SERVED "\"things\":[{\"name\":\"resource.k8s.io/v1\",\"found\":true}]"
#define RIGHT(verb, ns, allowed)                                                                   \
	"{\"feature\":\"claims of devices\",\"verb\":\"" verb                                      \
	"\",\"resource\":\"resourceclaims\",\"namespace\":\"" ns                                   \
	"\",\"asked\":true,\"allowed\":" allowed "}"
#define NODE "[{\"name\":\"n1\",\"gpus\":2,\"sharing\":\"dra\",\"served\":true}]"

Test(doctor_backends, claims_are_usable_where_their_rights_are)
{
	finds("dra", NODE,
	      "{" SERVED ",\"rights\":[" RIGHT("list", "", "true") "," RIGHT(
		      "create", "gpuq-jobs", "true") "," RIGHT("create", "team", "true") "]}",
	      "usable: dra: claims of devices are allocated (resource.k8s.io/v1) on n1 -> \n");
	finds("dra", NODE,
	      "{" SERVED ",\"rights\":[" RIGHT("list", "", "true") "," RIGHT(
		      "create", "gpuq-jobs", "true") "," RIGHT("create", "team", "false") "]}",
	      "broken: dra: the cluster has resource.k8s.io/v1, but gpuqd may not create "
	      "resourceclaims in namespace team -> apply the RoleBinding of "
	      "etc/kubernetes/optional/dra.yaml there\n"
	      "usable: dra: claims of devices are allocated (resource.k8s.io/v1) on n1, in "
	      "namespace gpuq-jobs -> \n");
}

Test(doctor_backends, a_right_of_the_cluster_or_of_every_namespace_breaks_claims)
{
	finds("dra", NODE,
	      "{" SERVED
	      ",\"rights\":[" RIGHT("list", "", "false") "," RIGHT("create", "team", "false") "]}",
	      "broken: dra: the cluster has resource.k8s.io/v1, but gpuqd may not list "
	      "resourceclaims -> apply etc/kubernetes/optional/dra.yaml, or its rule for that\n");
	finds("dra", NODE,
	      "{" SERVED ",\"rights\":[" RIGHT("create", "a", "false") "," RIGHT(
		      "create", "b", "false") "," RIGHT("delete", "a", "false") "]}",
	      "broken: dra: the cluster has resource.k8s.io/v1, but gpuqd may not create "
	      "resourceclaims in namespace a, b -> apply the RoleBinding of "
	      "etc/kubernetes/optional/dra.yaml there\n");
}

Test(doctor_backends, slices_that_cannot_be_used_are_broken)
{
#define UNUSABLE(n) "{\"name\":\"d" #n "\",\"why\":\"w" #n "\"}"
#define ADVICE                                                                                     \
	"see the log of the DRA driver there: a pool needs all slices of its newest generation, "  \
	"which agree on resourceSliceCount, and each device once\n"
	finds("dra", "[{\"name\":\"d1\",\"gpus\":0}]",
	      "{" SERVED ",\"unusable\":[" UNUSABLE(1) "]}",
	      "broken: dra: ResourceSlices are there, but devices of them cannot be used: d1 (w1) "
	      "-> " ADVICE);
	finds("dra", NODE,
	      "{" SERVED ",\"unusable\":[" UNUSABLE(1) "," UNUSABLE(2) "," UNUSABLE(3) "," UNUSABLE(
		      4) "],\"rights\":[" RIGHT("list", "", "true") "]}",
	      "broken: dra: ResourceSlices are there, but devices of them cannot be used: d1 (w1), "
	      "d2 (w2), d3 (w3) and 1 more -> " ADVICE
	      "usable: dra: claims of devices are allocated (resource.k8s.io/v1) on n1 -> \n");
}

Test(doctor_backends, claims_that_gpuqd_may_not_read_are_not_called_missing)
{
	finds("dra", "[]",
	      "{" SERVED ",\"claims\":{\"lack\":\"resource.k8s.io\",\"words\":\"cannot list\"}}",
	      "unserved: dra: the cluster has resource.k8s.io/v1, but gpuqd may not use it: cannot "
	      "list -> to use them, apply etc/kubernetes/optional/dra.yaml, and give a flavor its "
	      "device_class\n");
}

Test(doctor_backends, nodes_without_a_device_are_not_usable)
{
	finds("time-slicing", "[{\"name\":\"n1\",\"gpus\":0,\"sharing\":\"time-slicing\"}]", "{}",
	      "broken: time-slicing: none of the offered devices can be used: n1 -> NOTE of gpuq "
	      "nodes -s says why\n");
}

Test(doctor_backends, nodes_whose_devices_all_fail_are_not_usable)
{
	finds("hami",
	      "[{\"name\":\"n1\",\"gpus\":2,\"sharing\":\"hami\",\"devices\":[{\"state\":"
	      "\"unhealthy\"},"
	      "{\"state\":\"free\"}]},{\"name\":\"n2\",\"gpus\":1,\"sharing\":\"hami\",\"devices\":"
	      "[{"
	      "\"state\":\"unhealthy\"}]}]",
	      "{}", "usable: hami: usable on n1 -> \n");
	finds("hami",
	      "[{\"name\":\"n2\",\"gpus\":1,\"sharing\":\"hami\",\"devices\":[{\"state\":"
	      "\"unhealthy\"}]}]",
	      "{}",
	      "broken: hami: no device can be used now: n2 -> the finding nodes says why, and NOTE "
	      "of "
	      "gpuq nodes -s\n");
	finds("gpushare",
	      "[{\"name\":\"n1\",\"gpus\":2,\"sharing\":\"gpushare\",\"state\":\"suspect\","
	      "\"labels\":{"
	      "\"gpushare\":\"true\"}},{\"name\":\"n2\",\"gpus\":2,\"sharing\":\"gpushare\","
	      "\"state\":"
	      "\"drained\",\"labels\":{\"gpushare\":\"true\"}}]",
	      "{}", "usable: gpushare: usable on n2 -> \n");
	finds("dra",
	      "[{\"name\":\"n1\",\"gpus\":1,\"sharing\":\"dra\",\"devices\":[{\"state\":"
	      "\"unhealthy\"}]}]",
	      "{" SERVED ",\"rights\":[" RIGHT("list", "", "true") "]}",
	      "broken: dra: no device can be used now: n1 -> the finding nodes says why, and NOTE "
	      "of "
	      "gpuq nodes -s\n");
}

Test(doctor_backends, a_layout_that_failed_is_told_while_its_label_says_so_and_after)
{
	static const char *const nodes[] = {
		"[{\"name\":\"n1\",\"gpus\":2,\"sharing\":\"whole\",\"labels\":{"
		"\"nvidia.com/mig.config.state\":\"failed\"}}]",
		"[{\"name\":\"n1\",\"gpus\":2,\"sharing\":\"whole\",\"labels\":{},"
		"\"mig_layout\":{\"state\":\"failed\"}}]",
	};

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		finds("mig", nodes[i], "{}",
		      "broken: mig: the MIG manager could not cut the cards: n1 -> see the log of "
		      "the MIG manager; meanwhile pods use the cards as they are cut now\n");
}

Test(doctor_backends, the_single_strategy_needs_cards_cut_alike)
{
	static const char node[] =
		"[{\"name\":\"n1\",\"gpus\":0,\"labels\":{\"nvidia.com/mig.strategy\":\"single\","
		"\"nvidia.com/gpu.product\":\"NVIDIA-A100-MIG-INVALID\"}}]";

	finds("mig", node, "{}",
	      "broken: mig: the MIG strategy single needs all cards of a node cut into instances "
	      "of "
	      "one profile, and these are not: n1 -> cut all cards of the node alike, or set the "
	      "strategy of the device plugin and of GPU feature discovery to mixed\n");
	finds("whole devices", node, "{}", "absent: whole devices: no node has it -> \n");
}
