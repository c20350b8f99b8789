#include "gpuqd/cluster/kube/pods/code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "libgpuq/limits.h"

int code_read(const char *path, char **out, struct gpuq_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	unsigned char *raw = NULL;
	char *text = NULL;
	size_t have = 0;
	struct stat st;
	ssize_t n = 1;
	int rc = 0;

	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = gpuq_fail(err, GPUQ_EIO,
			       "the code of the job is not stored any more (%s): submit it again",
			       strerror(errno));
		goto out;
	}
	if (st.st_size > (off_t)GPUQ_CODE_POD_BYTES) {
		rc = gpuq_fail(err, GPUQ_ETOOBIG,
			       "the code of the job is too large for a ConfigMap");
		goto out;
	}
	raw = malloc((size_t)st.st_size + 1);
	text = malloc(4 * (((size_t)st.st_size + 2) / 3) + 1);
	if (!raw || !text) {
		rc = gpuq_no_memory(err);
		goto out;
	}
	while (have < (size_t)st.st_size && n > 0) {
		n = read(fd, raw + have, (size_t)st.st_size - have);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			have += (size_t)n;
	}
	if (have != (size_t)st.st_size) {
		rc = gpuq_fail(err, GPUQ_EIO, "cannot read the code of the job: %s",
			       strerror(errno));
		goto out;
	}
	EVP_EncodeBlock((unsigned char *)text, raw, (int)have);
	*out = text;
	text = NULL;
out:
	if (fd >= 0)
		close(fd);
	free(raw);
	free(text);
	return rc;
}
