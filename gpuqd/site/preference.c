/* The flavors that jobs of a queue use by default. */
#include "gpuqd/site/site.h"
#include "gpuqd/site/site_rows.h"
#include "libgpuq/spec.h"

static int read_preference(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct site_queue *q = (void *)((char *)out - offsetof(struct site_queue, flavors));

	return gpuq_flavors_read(r, v, &q->flavors, &q->flavor_rules);
}

static struct gpuq_val *write_preference(struct gpuq_arena *mem, const void *in)
{
	const struct site_queue *q =
		(const void *)((const char *)in - offsetof(struct site_queue, flavors));

	return gpuq_flavors_write(mem, &q->flavors, q->flavor_rules);
}

const struct gpuq_custom site_preference_custom = { read_preference, write_preference };
