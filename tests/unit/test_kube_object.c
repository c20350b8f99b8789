/* Objects on which pods depend, as the apiserver has them: limits, runtimes, claims, volumes, classes. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/cluster/kube/watch/decode_object.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define META "\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}"

static struct kube_object object;

static int thing(enum object_kind kind, const char *json, struct object_fact *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	kube_object_done(&object);
	cr_assert_eq(kube_parse_item(json, strlen(json), &object, &err), 0, "%s", err.text);
	return kube_read_object(&object, kind, out, &err);
}

Test(kube_object, reads_the_defaults_of_containers)
{
	struct object_fact f;

	cr_assert_eq(thing(OBJECT_LIMITS,
			   "{" META ",\"spec\":{\"limits\":[{\"type\":\"Pod\",\"defaultRequest\":"
			   "{\"cpu\":\"9\"}},{\"type\":\"Container\",\"default\":{\"cpu\":\"8\"},"
			   "\"defaultRequest\":{\"cpu\":\"500m\",\"memory\":\"1Gi\","
			   "\"ephemeral-storage\":\"2Gi\",\"nvidia.com/gpu\":1}}]}}",
			   &f),
		     0);
	cr_assert_eq(f.n_amounts, 2);
	cr_expect_str_eq(f.amounts[0].name, "ephemeral-storage");
	cr_expect_eq(f.amounts[0].count, INT64_C(2) << 30);
	cr_expect_str_eq(f.amounts[1].name, "nvidia.com/gpu");
	cr_expect_eq(f.cpu_milli, 500);
	cr_expect_eq(f.memory_bytes, 1 << 30);
	cr_expect_str_eq(f.namespace_, "n");
}

Test(kube_object, reads_the_overhead_nodes_and_tolerations_of_a_runtime)
{
	struct object_fact f;

	cr_assert_eq(thing(OBJECT_RUNTIME,
			   "{\"metadata\":{\"name\":\"kata\"},\"overhead\":{\"podFixed\":{\"cpu\":"
			   "\"250m\",\"memory\":\"120Mi\",\"ephemeral-storage\":\"1Gi\"}},"
			   "\"scheduling\":{\"nodeSelector\":"
			   "{\"kata\":\"yes\"},\"tolerations\":[{\"key\":\"a\",\"operator\":"
			   "\"Exists\"},{\"key\":\"b\",\"value\":\"c\",\"effect\":\"NoExecute\","
			   "\"tolerationSeconds\":60}]}}",
			   &f),
		     0);
	cr_assert_eq(f.n_tolerations, 2);
	cr_expect(f.tolerations[0].exists);
	cr_expect_str_eq(f.tolerations[0].effect, "");
	cr_expect_eq(f.tolerations[0].seconds, -1);
	cr_expect_not(f.tolerations[1].exists);
	cr_expect_str_eq(f.tolerations[1].value, "c");
	cr_expect_eq(f.tolerations[1].seconds, 60);
	cr_expect_eq(f.cpu_milli, 250);
	cr_assert_eq(f.n_amounts, 1);
	cr_expect_eq(f.amounts[0].count, 1 << 30);
	cr_assert_eq(f.n_required, 1);
	cr_expect_str_eq(f.required[0].all[0].key, "kata");
	cr_expect_str_eq(f.required[0].all[0].values.items[0], "yes");
}

static const struct {
	const char *json;
	enum claim_state state;
	const char *volume, *selected;
} claims[] = {
	{ "{" META ",\"spec\":{\"storageClassName\":\"late\"},\"status\":{\"phase\":\"Pending\"}}",
	  CLAIM_PENDING, "", "" },
	{ "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"annotations\":"
	  "{\"volume.kubernetes.io/selected-node\":\"n7\"}},\"spec\":{\"volumeName\":\"early\"}}",
	  CLAIM_PENDING, "early", "n7" },
	{ "{" META ",\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Bound\"}}",
	  CLAIM_BOUND, "pv", "" },
	{ "{" META ",\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Lost\"}}", CLAIM_LOST,
	  "pv", "" },
};

Test(kube_object, reads_claims)
{
	struct object_fact f;

	for (size_t i = 0; i < N(claims); i++) {
		cr_assert_eq(thing(OBJECT_CLAIM, claims[i].json, &f), 0, "%zu", i);
		cr_expect_eq(f.state, claims[i].state, "%zu", i);
		cr_expect_str_eq(f.volume, claims[i].volume, "%zu", i);
		cr_expect_str_eq(f.selected, claims[i].selected, "%zu", i);
	}
}

Test(kube_object, reads_the_nodes_of_a_volume)
{
	struct object_fact f;

	cr_assert_eq(
		thing(OBJECT_VOLUME,
		      "{\"metadata\":{\"name\":\"pv\",\"labels\":{\"topology.kubernetes.io/zone\":"
		      "\"a__b\"}},\"spec\":{\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":["
		      "{"
		      "\"matchExpressions\":[{\"key\":\"disk\",\"operator\":\"In\",\"values\":["
		      "\"x\","
		      "\"y\"]}]}]}}}}",
		      &f),
		0);
	cr_assert_eq(f.n_required, 1);
	cr_assert_eq(f.required[0].n, 2);
	cr_expect_eq(f.required[0].all[0].values.n, 2);
	cr_expect_str_eq(f.required[0].all[1].key, "topology.kubernetes.io/zone");
	cr_expect_str_eq(f.required[0].all[1].values.items[1], "b");
	/* An operator that is not known could mean anything: the volume is left out. */
	cr_expect_eq(
		thing(OBJECT_VOLUME,
		      "{\"metadata\":{\"name\":\"pv\"},\"spec\":{\"nodeAffinity\":{\"required\":"
		      "{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"disk\","
		      "\"operator\":"
		      "\"Near\"}]}]}}}}",
		      &f),
		GPUQ_EINVAL);
}

Test(kube_object, knows_classes_that_wait_for_a_pod)
{
	struct object_fact f;

	cr_assert_eq(thing(OBJECT_CLASS,
			   "{\"metadata\":{\"name\":\"late\"},\"volumeBindingMode\":"
			   "\"WaitForFirstConsumer\"}",
			   &f),
		     0);
	cr_expect(f.waits);
	cr_expect_not(f.makes_none);
	cr_assert_eq(thing(OBJECT_CLASS, "{\"metadata\":{\"name\":\"now\"}}", &f), 0);
	cr_expect_not(f.waits);
	cr_assert_eq(
		thing(OBJECT_CLASS,
		      "{\"metadata\":{\"name\":\"local\"},\"provisioner\":"
		      "\"kubernetes.io/no-provisioner\",\"allowedTopologies\":["
		      "{\"matchLabelExpressions\":[{\"key\":\"zone\",\"values\":[\"a\",\"b\"]}]},"
		      "{\"matchLabelExpressions\":[{\"key\":\"rack\",\"values\":[\"r\"]}]}]}",
		      &f),
		0);
	cr_expect(f.makes_none);
	cr_assert_eq(f.n_required, 2);
	cr_expect_str_eq(f.required[0].all[0].key, "zone");
	cr_expect_str_eq(f.required[0].all[0].values.items[1], "b");
	cr_expect_str_eq(f.required[1].all[0].values.items[0], "r");
}

Test(kube_object, reads_what_a_claim_and_its_volume_have_to_agree_in)
{
	struct object_fact f;

	cr_assert_eq(
		thing(OBJECT_CLAIM,
		      "{" META ",\"spec\":{\"storageClassName\":\"local\",\"accessModes\":["
		      "\"ReadWriteOnce\",\"ReadOnlyMany\"],\"volumeMode\":\"Block\",\"selector\":"
		      "{\"matchLabels\":{\"a\":\"b\"}},\"resources\":{\"requests\":{\"storage\":"
		      "\"2Gi\"}}}}",
		      &f),
		0);
	cr_expect_str_eq(f.class_, "local");
	cr_expect_eq(f.size_bytes, INT64_C(2) << 30);
	cr_expect_eq(f.modes, ACCESS_WRITE_ONCE | ACCESS_READ_MANY);
	cr_expect(f.block && f.selects);
	cr_assert_eq(
		thing(OBJECT_VOLUME,
		      "{\"metadata\":{\"name\":\"pv\"},\"spec\":{\"storageClassName\":\"local\","
		      "\"accessModes\":[\"ReadWriteOncePod\"],\"capacity\":{\"storage\":\"3Gi\"}},"
		      "\"status\":{\"phase\":\"Available\"}}",
		      &f),
		0);
	cr_expect_str_eq(f.class_, "local");
	cr_expect_eq(f.size_bytes, INT64_C(3) << 30);
	cr_expect_eq(f.modes, ACCESS_ONE_POD);
	cr_expect(f.unclaimed && !f.block);
	cr_assert_eq(
		thing(OBJECT_VOLUME,
		      "{\"metadata\":{\"name\":\"pv\"},\"spec\":{\"claimRef\":{\"name\":\"c\"}},"
		      "\"status\":{\"phase\":\"Available\"}}",
		      &f),
		0);
	cr_expect_not(f.unclaimed);
}
