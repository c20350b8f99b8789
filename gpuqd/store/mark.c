#include "gpuqd/store/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/store/crc32c.h"

#define MARK_BYTES 128
#define BODY_BYTES 109 /* before the checksum */

static void print(const struct store_identity *id, char out[MARK_BYTES])
{
	char text[MARK_BYTES + 1];
	int n;

	memset(out, ' ', MARK_BYTES);
	n = snprintf(text, sizeof(text),
		     "gpuq mark 1\nstore %s\nepoch %010" PRIu32 "\nseq %020" PRIu64 "\n",
		     id->store_id, id->epoch, id->seq);
	memcpy(out, text, (size_t)n);
	snprintf(text, sizeof(text), "crc %08x", crc32c(out, BODY_BYTES));
	memcpy(out + BODY_BYTES, text, 12);
	out[MARK_BYTES - 1] = '\n';
}

int mark_read(const char *dir, struct store_identity *out)
{
	char path[4200], text[MARK_BYTES + 1], again[MARK_BYTES];
	struct store_identity id = { .epoch = 0 };
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/" MARK_FILE, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? GPUQ_ENOENT : GPUQ_ECORRUPT;
	n = pread(fd, text, MARK_BYTES, 0);
	close(fd);
	if (n != MARK_BYTES)
		return GPUQ_ECORRUPT;
	text[MARK_BYTES] = '\0';
	if (sscanf(text, "gpuq mark 1\nstore %32[0-9a-f]\nepoch %10" SCNu32 "\nseq %20" SCNu64,
		   id.store_id, &id.epoch, &id.seq) != 3)
		return GPUQ_ECORRUPT;
	print(&id, again);
	if (memcmp(text, again, MARK_BYTES) != 0)
		return GPUQ_ECORRUPT;
	*out = id;
	return 0;
}

bool mark_write(int fd, const struct store_identity *id)
{
	char text[MARK_BYTES];

	print(id, text);
	return pwrite(fd, text, MARK_BYTES, 0) == MARK_BYTES;
}

static int failed(const char *path, struct gpuq_err *err)
{
	return gpuq_fail(err, errno == ENOSPC || errno == EDQUOT ? GPUQ_ESTORAGE : GPUQ_EIO,
			 "%s: %s", path, strerror(errno));
}

int mark_open(const char *dir, struct gpuq_err *err)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/" MARK_FILE, dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? failed(path, err) : fd;
}

int mark_make(const char *dir, const struct store_identity *id, struct gpuq_err *err)
{
	char path[4200], part[4200];
	int fd, at, rc = 0;

	snprintf(path, sizeof(path), "%s/" MARK_FILE, dir);
	snprintf(part, sizeof(part), "%s/" MARK_FILE ".new", dir);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return failed(part, err);
	if (!mark_write(fd, id) || fsync(fd) != 0 || rename(part, path) != 0)
		rc = failed(path, err);
	at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rc == 0 && (at < 0 || fsync(at) != 0))
		rc = failed(dir, err);
	if (at >= 0)
		close(at);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}
