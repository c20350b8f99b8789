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

struct ballast {
	pthread_mutex_t mu;
	char *dir;
	int fd; /* -1: it could not be opened */
	bool whole;
};

static bool has_free(const struct ballast *b, uint64_t bytes)
{
	struct statvfs v;

	return statvfs(b->dir, &v) != 0 || (uint64_t)v.f_bavail * v.f_frsize >= bytes;
}

static bool is_whole(int fd)
{
	struct stat s;

	return fd >= 0 && fstat(fd, &s) == 0 && s.st_size >= BALLAST_BYTES &&
	       (int64_t)s.st_blocks * 512 >= BALLAST_BYTES;
}

static void make(struct ballast *b)
{
	if (b->fd < 0 || !has_free(b, BALLAST_BYTES + BESIDE_BYTES))
		return;
	b->whole = posix_fallocate(b->fd, 0, BALLAST_BYTES) == 0; /* blocks, not a hole */
	if (!b->whole && ftruncate(b->fd, 0) != 0)
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
	b->whole = is_whole(b->fd);
	if (!b->whole)
		make(b);
	if (!b->whole)
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
	was = b->whole && ftruncate(b->fd, 0) == 0;
	b->whole = false;
	pthread_mutex_unlock(&b->mu);
	if (was)
		log_warn("store.ballast",
			 "dir=%s: no space left: ends and cancellations are written to the reserve "
			 "of %d MiB; no jobs are accepted",
			 LOGS(b->dir), BALLAST_BYTES >> 20);
	return was;
}

bool ballast_ready(struct ballast *b)
{
	bool was, ready;

	if (!b)
		return true;
	pthread_mutex_lock(&b->mu);
	was = b->whole;
	if (!was)
		make(b);
	ready = b->whole;
	pthread_mutex_unlock(&b->mu);
	if (ready && !was)
		log_notice("store.ballast", "dir=%s: space is available again", LOGS(b->dir));
	return ready && has_free(b, BESIDE_BYTES);
}
