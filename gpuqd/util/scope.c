#include "gpuqd/util/scope.h"

#include <string.h>

static const char *const words[] = {
#define X(sym, word, doc) word,
	SCOPES(X)
#undef X
};

const char *scope_word(unsigned number)
{
	return number < N_SCOPES ? words[number] : "?";
}

int scope_parse(const struct gpuq_strlist *list, uint32_t *out, struct gpuq_err *err)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < list->n; i++) {
		unsigned k = 0;

		while (k < N_SCOPES && strcmp(words[k], list->items[i]) != 0)
			k++;
		if (k == N_SCOPES)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "%.64s is no scope: expected read, submit, control, "
					 "session, manage or operate",
					 list->items[i]);
		bits |= 1u << k;
	}
	*out = bits;
	return 0;
}
