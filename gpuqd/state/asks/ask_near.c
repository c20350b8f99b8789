#include "gpuqd/state/asks/ask_near.h"

#include <string.h>

#include "gpuqd/util/amount.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

/* How far it is from what is requested: thousandths of what it has. */
#define FAR INT64_MAX
#define THOUSAND 1000

static int64_t far(int64_t need, int64_t has)
{
	if (need <= has)
		return 0;
	return has <= 0 || need / has > FAR / THOUSAND
		       ? FAR
		       : need / has * THOUSAND + need % has * THOUSAND / has;
}

static int64_t has_resource(const struct provision_machine *is, const char *name, int64_t need)
{
	return strcmp(name, GPUQ_RESOURCE_STORAGE) == 0 ? need : provision_has(is, name);
}

/* Return how far the machine is from holding the pod; 0 = it holds it. */
static int64_t lacks(const struct provision_machine *is, const struct ask_pod *pod)
{
	int64_t n = far(pod->gpus_milli, is->gpus * THOUSAND);

	if (is->cpu_milli)
		n = amount_sum(n, far(pod->cpu_milli, is->cpu_milli));
	if (is->memory_bytes)
		n = amount_sum(n, far(pod->memory_bytes, is->memory_bytes));
	for (uint32_t i = 0; i < pod->n_resources; i++)
		n = amount_sum(
			n, far(pod->resources[i].count,
			       has_resource(is, pod->resources[i].name, pod->resources[i].count)));
	return n;
}

/* Append what the machine has of what it lacks. */
static void describe(const struct site_pool *p, const struct ask_pod *pod, struct gpuq_buf *out)
{
	const struct provision_machine *is = p->provisioning->machine;
	const char *sep = " has ";
	char text[32];

	gpuq_buf_printf(out, "pool %s's machine", p->name);
	if (pod->gpus_milli > is->gpus * THOUSAND) {
		gpuq_buf_printf(out, "%s%lld gpu%s", sep, (long long)is->gpus,
				is->gpus == 1 ? "" : "s");
		sep = ", ";
	}
	if (is->cpu_milli && pod->cpu_milli > is->cpu_milli) {
		gpuq_milli_print(is->cpu_milli, text, sizeof(text));
		gpuq_buf_printf(out, "%s%s cpus", sep, text);
		sep = ", ";
	}
	if (is->memory_bytes && pod->memory_bytes > is->memory_bytes) {
		gpuq_bytes_print(is->memory_bytes, text, sizeof(text));
		gpuq_buf_printf(out, "%s%s of memory", sep, text);
		sep = ", ";
	}
	for (uint32_t i = 0; i < pod->n_resources; i++) {
		const struct gpuq_amount *r = &pod->resources[i];
		const int64_t has = has_resource(is, r->name, r->count);

		if (has >= r->count)
			continue;
		if (gpuq_resource_is_bytes(r->name))
			gpuq_bytes_print(has, text, sizeof(text));
		gpuq_buf_printf(out, "%s", sep);
		if (gpuq_resource_is_bytes(r->name))
			gpuq_buf_printf(out, "%s %s", text, r->name);
		else
			gpuq_buf_printf(out, "%lld %s", (long long)has, r->name);
		sep = ", ";
	}
}

const struct site_pool *ask_near(const struct site *s, const struct ask_pod *pod,
				 struct gpuq_buf *out)
{
	const struct site_pool *near = NULL;
	int64_t least = 0;

	site_each(site_pool, s->pools, p) {
		int64_t n;

		if (!site_pool_grows(p) || (pod->gpus_milli > 0 && pod->flavors->n > 0 &&
					    !gpuq_strlist_has(pod->flavors, p->flavor)))
			continue;
		n = lacks(p->provisioning->machine, pod);
		if (n == 0)
			return NULL;
		if (near && n >= least)
			continue;
		near = p;
		least = n;
	}
	if (near)
		describe(near, pod, out);
	return near;
}
