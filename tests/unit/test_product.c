/* Kinds of devices by their products, and what jobs call them. */
#include <criterion/criterion.h>

#include "gpuqd/site/product.h"

static const struct {
	const char *product;
	int64_t memory_mib;
	const char *kind;
} cases[] = {
	{ "NVIDIA-A100-SXM4-40GB", 40960, "a100-40g" },
	{ "NVIDIA A100-SXM4-80GB", 0, "a100-80g" },
	{ "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 0, "a100-80g" },
	{ "A100-PCIE-40GB", 0, "a100-40g" },
	{ "NVIDIA-A100-80GB-PCIe", 81251, "a100-80g" },
	{ "nvidia-tesla-a100", 0, "a100-40g" },
	{ "nvidia-a100-80gb", 0, "a100-80g" },
	{ "a100", 81920, "a100-80g" },
	{ "a100", 39800, "a100-40g" },
	{ "a100", 0, "a100" },
	{ "A100_80GB", 0, "a100-80g" },
	{ "a100-8g", 81920, "a100-8g" },
	{ "Tesla-V100-SXM2-16GB", 16384, "v100-16g" },
	{ "Tesla V100S-PCIE-32GB", 32768, "v100-32g" },
	{ "Tesla-T4", 15360, "t4" },
	{ "nvidia-tesla-t4", 0, "t4" },
	{ "NVIDIA-L4", 23034, "l4" },
	{ "NVIDIA-L40S", 46068, "l40s" },
	{ "NVIDIA-L40", 46068, "l40" },
	{ "NVIDIA-A10", 23028, "a10" },
	{ "NVIDIA-A10G", 23028, "a10g" },
	{ "NVIDIA-H100-80GB-HBM3", 81559, "h100" },
	{ "NVIDIA H100 NVL", 95830, "h100" },
	{ "nvidia-h200-141gb", 0, "h200" },
	{ "NVIDIA-B200", 183359, "b200" },
	{ "AMD_Instinct_MI300X_OAM", 0, "mi300x" },
	{ "NVIDIA GeForce RTX 4090", 24564, "rtx4090" },
	{ "Acme Quick", 0, "acme-quick" },
	{ "", 40960, "" },
};

Test(product, kinds)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char kind[PRODUCT_BYTES];

		product_kind(cases[i].product, cases[i].memory_mib, kind);
		cr_expect_str_eq(kind, cases[i].kind, "%s: %s", cases[i].product, kind);
	}
}

Test(product, names_of_jobs)
{
	cr_expect(product_is("a100-40g", "A100"));
	cr_expect(product_is("a100-40g", "a100-40gb"));
	cr_expect(product_is("a100-40g", "NVIDIA-A100-SXM4-40GB"));
	cr_expect(!product_is("a100-40g", "a100-80g"));
	cr_expect(!product_is("a100", "a100-80g"), "the size is not known");
	cr_expect(!product_is("l40s", "l4"));
	cr_expect(!product_is("a100-40g", "a10"));
	cr_expect(product_is("acme-quick", "ACME Quick"));
	cr_expect(!product_is("acme-quick", "acme"));
	cr_expect(!product_is("", "t4"));
	cr_expect(!product_is("t4", ""));
}

Test(product, labels)
{
	const char *keys[] = { "cloud.google.com/gke-accelerator",
			       "karpenter.k8s.aws/instance-gpu-name",
			       "karpenter.k8s.aws/instance-gpu-memory" };
	const char *vals[] = { "nvidia-l4", "a100", "81920" };
	struct gpuq_strmap google = { keys, vals, 1 }, amazon = { keys + 1, vals + 1, 2 };
	int64_t mib;

	cr_expect_str_eq(product_of_labels(&google, &mib), "nvidia-l4");
	cr_expect_eq(mib, 0);
	cr_expect_str_eq(product_of_labels(&amazon, &mib), "a100");
	cr_expect_eq(mib, 81920);
	cr_expect_str_eq(product_of_labels(&(struct gpuq_strmap){ 0 }, &mib), "");
}

Test(product, labels_of_others_than_nvidia)
{
	const char *keys[] = { "nvidia.com/gpu.product", "amd.com/gpu.product-name" };
	const char *vals[] = { "NVIDIA-H100", "AMD_Instinct_MI300X" };
	const struct gpuq_strmap both = { keys, vals, 2 }, one = { keys, vals, 1 };
	int64_t mib;

	cr_expect_str_eq(product_of_labels(&both, &mib), "NVIDIA-H100");
	cr_expect_str_eq(product_of_others(&both, &mib), "AMD_Instinct_MI300X");
	cr_expect_str_eq(product_of_others(&one, &mib), "");
}
