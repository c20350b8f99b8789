#include "gpuqd/site/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kind of device. A product is of it if one of its words is `name` or `word`. */
static const struct kind {
	const char *name, *word;
	int sizes[2]; /* in GB, smaller first; 0 = sold with one */
} kinds[] = {
	{ "k80", NULL, { 0 } },       { "p4", NULL, { 0 } },        { "p40", NULL, { 0 } },
	{ "p100", NULL, { 0 } },      { "t4", "t4g", { 0 } },       { "v100", "v100s", { 16, 32 } },
	{ "a2", NULL, { 0 } },        { "a10", NULL, { 0 } },       { "a10g", NULL, { 0 } },
	{ "a16", NULL, { 0 } },       { "a30", NULL, { 0 } },       { "a40", NULL, { 0 } },
	{ "a100", NULL, { 40, 80 } }, { "a800", NULL, { 40, 80 } }, { "a4000", NULL, { 0 } },
	{ "a5000", NULL, { 0 } },     { "a6000", NULL, { 0 } },     { "l4", NULL, { 0 } },
	{ "l20", NULL, { 0 } },       { "l40", NULL, { 0 } },       { "l40s", NULL, { 0 } },
	{ "h20", NULL, { 0 } },       { "h100", NULL, { 0 } },      { "h800", NULL, { 0 } },
	{ "h200", NULL, { 0 } },      { "gh200", NULL, { 0 } },     { "b100", NULL, { 0 } },
	{ "b200", NULL, { 0 } },      { "b300", NULL, { 0 } },      { "gb200", NULL, { 0 } },
	{ "gb300", NULL, { 0 } },     { "rtx3090", "3090", { 0 } }, { "rtx4090", "4090", { 0 } },
	{ "rtx5090", "5090", { 0 } }, { "mi100", NULL, { 0 } },     { "mi210", NULL, { 0 } },
	{ "mi250", NULL, { 0 } },     { "mi250x", NULL, { 0 } },    { "mi300a", NULL, { 0 } },
	{ "mi300x", NULL, { 0 } },    { "mi325x", NULL, { 0 } },    { "mi350x", NULL, { 0 } },
	{ "mi355x", NULL, { 0 } },
};

/* Labels that have the product of a node's devices, the most exact first; NVIDIA's own is the first. */
static const struct {
	const char *product, *memory_mib; /* NULL = no label has the memory */
} labels_of[] = {
	{ "nvidia.com/gpu.product", "nvidia.com/gpu.memory" },
	{ "amd.com/gpu.product-name", NULL },
	{ "beta.amd.com/gpu.product-name", NULL },
	{ "gpu.intel.com/product", NULL },
	{ "cloud.google.com/gke-accelerator", NULL },
	{ "cloud.google.com/gke-tpu-accelerator", NULL },
	{ "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory" },
	{ "eks.amazonaws.com/instance-gpu-name", "eks.amazonaws.com/instance-gpu-memory" },
	{ "k8s.amazonaws.com/accelerator", NULL },
	{ "karpenter.azure.com/sku-gpu-name", NULL },
};

/* Copy in lower case, with a hyphen for all that is neither a letter nor a digit. */
static void flatten(const char *from, char out[PRODUCT_BYTES])
{
	size_t n = 0;

	for (; *from && n + 1 < PRODUCT_BYTES; from++) {
		const char c = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;

		out[n++] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
	}
	out[n] = '\0';
}

/* True if the text has the word, between hyphens. */
static bool has_word(const char *text, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == '-') && (at[n] == '-' || at[n] == '\0'))
			return true;
	return false;
}

/* Return the size that a word of the text names, as 80gb or 80g, before the profile of instances; 0 =
 * none. One that the kind is not sold with is not another size of it. */
static int size_named(const char *text)
{
	const char *end = strstr(text, "-mig-");

	for (const char *at = text; at && (!end || at < end); at = strchr(at, '-')) {
		char *rest;
		long n;

		at += *at == '-';
		n = strtol(at, &rest, 10);
		if (rest == at || *rest != 'g' || n <= 0 || n > 9999)
			continue;
		rest += rest[1] == 'b' ? 2 : 1;
		if (*rest == '-' || *rest == '\0')
			return (int)n;
	}
	return 0;
}

/* Return the size of so much memory. A driver reports some per cent less, or a little more. */
static int size_measured(int64_t mib, const int sizes[2])
{
	if (mib <= 0)
		return 0;
	return mib < (int64_t)(sizes[0] + sizes[1]) * 512 ? sizes[0] : sizes[1];
}

void product_kind(const char *product, int64_t memory_mib, char out[PRODUCT_BYTES])
{
	char flat[PRODUCT_BYTES];

	flatten(product, flat);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];
		int size = 0;

		if (!has_word(flat, k->name) && !(k->word && has_word(flat, k->word)))
			continue;
		if (k->sizes[0])
			size = size_named(flat);
		if (k->sizes[0] && size == 0)
			size = size_measured(memory_mib, k->sizes);
		/* A cloud's label names the smaller one without its size. */
		if (k->sizes[0] && size == 0 && has_word(flat, "tesla"))
			size = k->sizes[0];
		if (size)
			snprintf(out, PRODUCT_BYTES, "%s-%dg", k->name, size);
		else
			snprintf(out, PRODUCT_BYTES, "%s", k->name);
		return;
	}
	memcpy(out, flat, PRODUCT_BYTES);
}

/* Search from a row of the table on. */
static const char *of_labels(const struct gpuq_strmap *labels, size_t from, int64_t *memory_mib)
{
	*memory_mib = 0;
	for (size_t i = from; i < sizeof(labels_of) / sizeof(labels_of[0]); i++) {
		const char *product = gpuq_strmap_text(labels, labels_of[i].product);

		if (!*product)
			continue;
		/* The memory is that of an instance where the label names its profile. */
		if (labels_of[i].memory_mib && !strstr(product, "-MIG-"))
			*memory_mib = strtoll(gpuq_strmap_text(labels, labels_of[i].memory_mib),
					      NULL, 10);
		return product;
	}
	return "";
}

const char *product_of_labels(const struct gpuq_strmap *labels, int64_t *memory_mib)
{
	return of_labels(labels, 0, memory_mib);
}

const char *product_of_others(const struct gpuq_strmap *labels, int64_t *memory_mib)
{
	return of_labels(labels, 1, memory_mib);
}

bool product_is(const char *kind, const char *wanted)
{
	char want[PRODUCT_BYTES];
	size_t n;

	product_kind(wanted, 0, want);
	n = strlen(want);
	if (n == 0 || strncmp(kind, want, n) != 0)
		return false;
	if (kind[n] == '\0')
		return true;
	if (kind[n] != '-')
		return false;
	kind += n + 1;
	for (n = 0; kind[n] >= '0' && kind[n] <= '9'; n++)
		;
	return n > 0 && strcmp(kind + n, "g") == 0;
}
