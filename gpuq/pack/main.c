/* gpuq-pack: the directory that --code names as an archive, for gpuq. A program of its own, since one that
 * links libcrypto starts in several times the time of gpuq.
 *
 * usage: gpuq-pack DIR [TRACE]
 *
 * Standard output gets "TRACE DIGEST BYTES SETTLED": the trace of the files, the archive's digest and size, and
 * whether the trace may be relied upon. Given the trace that it would print, it prints that alone and makes no
 * archive. The archive goes to descriptor 3. An error is one line on standard error, and exit code 1. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpuq/pack/archive.h"

#define ARCHIVE_FD 3
/* A file that changes twice within the resolution of its time looks as if it had changed once. */
#define SETTLED_S 2

static bool is_settled(const struct tree *t, time_t now)
{
	for (size_t i = 0; i < t->n; i++)
		if (S_ISREG(t->files[i].st.st_mode) &&
		    t->files[i].st.st_ctim.tv_sec + SETTLED_S > now)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	char trace[ARCHIVE_HEX_BYTES], digest[ARCHIVE_HEX_BYTES];
	const time_t now = time(NULL);
	struct tree t = { .fd = -1 };
	int64_t bytes = 0;
	int rc;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: gpuq-pack DIR [TRACE]\n");
		return 2;
	}
	rc = tree_read(&mem, argv[1], &t, &err);
	if (rc == 0)
		rc = archive_trace(&t, trace, &err);
	if (rc == 0 && argc == 3 && strcmp(argv[2], trace) == 0) {
		printf("%s\n", trace);
	} else if (rc == 0) {
		rc = archive_write(&t, ARCHIVE_FD, digest, &bytes, &err);
		if (rc == 0)
			printf("%s %s %" PRId64 " %d\n", trace, digest, bytes, is_settled(&t, now));
	}
	if (rc < 0)
		fprintf(stderr, "%s\n", err.text);
	tree_done(&t);
	gpuq_arena_done(&mem);
	return rc < 0 ? 1 : 0;
}
