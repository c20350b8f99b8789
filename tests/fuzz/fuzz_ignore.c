/* Rules of ignore files: any text is read, any path is matched, and the same text gives the same answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/pack/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool ask(const char *rules, size_t n, const char *path)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct ignore ig = { .a = &mem };
	bool is;

	if (!ignore_add(&ig, "", rules, n) || !ignore_add(&ig, "a", rules, n))
		abort();
	is = ignore_has(&ig, path, false);
	/* A rule for files as well holds for a directory. */
	if (is && ig.n == 2 && !ignore_has(&ig, path, true))
		abort();
	ignore_cut(&ig, 0);
	if (ignore_has(&ig, path, true))
		abort();
	gpuq_arena_done(&mem);
	return is;
}

/* The rules, NUL, the path. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = memchr(data, 0, n);
	const size_t len = end ? (size_t)(end - data) : n;
	char *rules, *path;

	if (n > 8192)
		return 0;
	rules = malloc(len + 1);
	path = malloc(n - len + 2);
	if (!rules || !path)
		abort();
	memcpy(rules, data, len);
	memcpy(path, data + len, n - len);
	path[n - len] = path[n - len + 1] = '\0';
	if (ask(rules, len, end ? path + 1 : "a/b") != ask(rules, len, end ? path + 1 : "a/b"))
		abort();
	free(rules);
	free(path);
	return 0;
}
