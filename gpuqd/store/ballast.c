#include "gpuqd/store/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpuqd/base/log.h"

/* Free beside the ballast: a batch may take that much before the next look. */
#define BESIDE_BYTES (1 << 20)

#define LEAST_BYTES (1 << 20) /* of a smaller file */

struct ballast {
	pthread_mutex_t mu;
	char *dir;
	int fd; /* -1: it could not be opened */
	int64_t bytes; /* of the file; 0: it was given up */
};

static int64_t free_bytes(const struct ballast *b)
{
	struct statvfs v;

	return statvfs(b->dir, &v) != 0 ? INT64_MAX / 2 : (int64_t)(v.f_bavail * v.f_frsize);
}

static bool is_whole(int fd)
{
	struct stat s;

	return fd >= 0 && fstat(fd, &s) == 0 && s.st_size >= BALLAST_BYTES &&
	       (int64_t)s.st_blocks * 512 >= BALLAST_BYTES;
}

static void make(struct ballast *b, int64_t spare_bytes)
{
	const int64_t room = b->bytes + free_bytes(b) - BESIDE_BYTES;
	int64_t want = BALLAST_BYTES;

	if (room < want && spare_bytes >= BALLAST_SPARE_BYTES && room >= LEAST_BYTES)
		want = room;
	if (b->fd < 0 || room < want || want <= b->bytes)
		return;
	if (posix_fallocate(b->fd, 0, want) == 0) /* blocks, not a hole */
		b->bytes = want;
	else if (ftruncate(b->fd, b->bytes) != 0)
		log_err("store.ballast", "error=%s", strerror(errno));
}

struct ballast *ballast_open(const char *dir)
{
	struct ballast *b = calloc(1, sizeof(*b));
	char path[4200];

	if (!b)
		return NULL;
	b->dir = strdup(dir);
	if (!b->dir) {
		free(b);
		return NULL;
	}
	pthread_mutex_init(&b->mu, NULL);
	snprintf(path, sizeof(path), "%s/" BALLAST_FILE, dir);
	b->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	b->bytes = is_whole(b->fd) ? BALLAST_BYTES : 0;
	if (b->fd >= 0 && !b->bytes && ftruncate(b->fd, 0) != 0)
		log_err("store.ballast", "error=%s", strerror(errno));
	make(b, 0);
	if (!b->bytes)
		log_warn("store.ballast",
			 "dir=%s: no space for the reserve of %d MiB for a full disk; no jobs are "
			 "accepted until there is",
			 LOGS(dir), BALLAST_BYTES >> 20);
	return b;
}

void ballast_close(struct ballast *b)
{
	if (!b)
		return;
	if (b->fd >= 0)
		close(b->fd);
	pthread_mutex_destroy(&b->mu);
	free(b->dir);
	free(b);
}

bool ballast_release(struct ballast *b)
{
	bool was;

	if (!b)
		return false;
	pthread_mutex_lock(&b->mu);
	was = b->bytes && ftruncate(b->fd, 0) == 0;
	b->bytes = 0;
	pthread_mutex_unlock(&b->mu);
	if (was)
		log_warn("store.ballast",
			 "dir=%s: no space left: ends and cancellations are written to the reserve "
			 "of %d MiB; no jobs are accepted",
			 LOGS(b->dir), BALLAST_BYTES >> 20);
	return was;
}

bool ballast_ready(struct ballast *b, int64_t spare_bytes)
{
	bool was, ready;

	if (!b)
		return true;
	pthread_mutex_lock(&b->mu);
	was = b->bytes;
	if (b->bytes < BALLAST_BYTES)
		make(b, spare_bytes);
	ready = b->bytes >= BALLAST_BYTES || (b->bytes && spare_bytes >= BALLAST_SPARE_BYTES);
	pthread_mutex_unlock(&b->mu);
	if (ready && !was)
		log_notice("store.ballast", "dir=%s: space is available again", LOGS(b->dir));
	return ready && (spare_bytes >= BALLAST_BYTES || free_bytes(b) >= BESIDE_BYTES);
}
