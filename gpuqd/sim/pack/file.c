#include "gpuqd/sim/pack/file.h"

#include <errno.h>
#include <string.h>

int file_read(FILE *f, const char *name, struct gpuq_buf *out, struct gpuq_err *err)
{
	int rc = 0;

	while (rc == 0 && !feof(f) && !ferror(f)) {
		rc = gpuq_buf_reserve(out, 65536);
		if (rc == 0)
			out->len += fread(out->data + out->len, 1, 65536, f);
	}
	if (rc < 0)
		return gpuq_fail(err, rc, "%s: larger than %zu bytes", name, out->max_bytes);
	if (ferror(f))
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", name, strerror(errno));
	return 0;
}
