#include "gpuq/cmd/job/target.h"

#include <stdlib.h>

#include "gpuq/filter.h"

struct gpuq_val *target_params(struct cli *c, const char *text, int *code)
{
	const char *pod = c->args.val[OPT_POD], *container = c->args.val[OPT_CONTAINER];
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *v = gpuq_map(a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t id, index;
	long long n = 0;
	char *end;

	if (filter_id(text, &id, &index, &err) < 0) {
		*code = cli_usage(c, "%s", err.text);
		return NULL;
	}
	if (pod) {
		n = strtoll(pod, &end, 10);
		if (!*pod || *end || n < 0 || n > INT32_MAX) {
			*code = cli_usage(c, "--pod %s: expected a number from 0", pod);
			return NULL;
		}
	}
	gpuq_put(a, v, "id", gpuq_int(a, id));
	gpuq_put(a, v, "index", gpuq_int(a, index));
	gpuq_put(a, v, "pod", gpuq_int(a, n));
	if (container)
		gpuq_put(a, v, "container", gpuq_str(a, container));
	return v;
}
