#include "gpuqd/flow/backup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"

struct backup {
	struct store *store;
	int fd;
	int64_t bytes;
};

int backup_new(struct journal *j, struct backup **out, struct gpuq_err *err)
{
	struct backup *b = calloc(1, sizeof(*b));

	if (!b)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	b->store = journal_store(j);
	b->fd = store_scratch(b->store, err);
	if (b->fd < 0) {
		free(b);
		return err->code;
	}
	*out = b;
	return 0;
}

void backup_free(struct backup *b)
{
	if (!b)
		return;
	close(b->fd);
	free(b);
}

int backup_make(struct backup *b, struct gpuq_err *err)
{
	struct stat st;
	int rc = store_copy(b->store, b->fd, err);

	if (rc == 0 && fstat(b->fd, &st) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "backup: %s", strerror(errno));
	if (rc == 0)
		b->bytes = st.st_size;
	return rc;
}

int64_t backup_bytes(const struct backup *b)
{
	return b->bytes;
}

int64_t backup_read(struct backup *b, int64_t at, void *out, size_t room, struct gpuq_err *err)
{
	const ssize_t n = pread(b->fd, out, room, at);

	if (n < 0)
		return gpuq_fail(err, GPUQ_EIO, "backup: %s", strerror(errno));
	return n;
}
