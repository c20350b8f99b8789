#include "gpuqd/util/require.h"

#include <stdint.h>
#include <string.h>

#include "libgpuq/names.h"

/* Read a decimal integer with sign; false when it is not one. */
static bool to_int(const char *s, int64_t *out)
{
	bool negative = *s == '-';
	int64_t v = 0;

	s += negative;
	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, *s - '0', &v))
			return false;
	}
	*out = negative ? -v : v;
	return true;
}

bool require_holds(const struct gpuq_require *r, const char *value)
{
	int64_t have, want;

	switch (r->op) {
	case GPUQ_OP_IN:
		return value && gpuq_strlist_has(&r->values, value);
	case GPUQ_OP_NOT_IN:
		return !value || !gpuq_strlist_has(&r->values, value);
	case GPUQ_OP_EXISTS:
		return value != NULL;
	case GPUQ_OP_NOT_EXISTS:
		return value == NULL;
	default:
		break;
	}
	if (!value || r->values.n != 1 || !to_int(value, &have) ||
	    !to_int(r->values.items[0], &want))
		return false;
	return r->op == GPUQ_OP_GT ? have > want : have < want;
}
