#include "gpuqd/base/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libgpuq/grow.h"

#define PARTS 8 /* files at least, when all is full */

struct part {
	uint64_t number;
	int64_t bytes;
};

struct spool {
	int dir_fd, fd; /* fd: the newest; -1 = none open */
	char *prefix;
	int64_t max_bytes, sum_bytes;
	struct part *parts; /* oldest first */
	size_t n_parts, room;
};

static void part_name(const struct spool *s, uint64_t number, char out[128])
{
	snprintf(out, 128, "%s-%08" PRIu64 ".mp", s->prefix, number);
}

static int add_part(struct spool *s, struct part p, struct gpuq_err *err)
{
	if (!grow_to(&s->parts, &s->room, s->n_parts + 1))
		return gpuq_no_memory(err);
	s->parts[s->n_parts++] = p;
	s->sum_bytes += p.bytes;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int find_parts(struct spool *s, const char *dir, struct gpuq_err *err)
{
	const size_t n = strlen(s->prefix);
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", dir, strerror(errno));
	while (rc == 0 && (e = readdir(d)) != NULL) {
		struct part p = { .number = 0 };
		struct stat st;
		char *end;

		if (strncmp(e->d_name, s->prefix, n) != 0 || e->d_name[n] != '-' ||
		    e->d_name[n + 1] < '0' || e->d_name[n + 1] > '9')
			continue;
		p.number = strtoull(e->d_name + n + 1, &end, 10);
		if (strcmp(end, ".mp") != 0 || fstatat(s->dir_fd, e->d_name, &st, 0) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		p.bytes = st.st_size;
		rc = add_part(s, p, err);
	}
	closedir(d);
	if (s->n_parts)
		qsort(s->parts, s->n_parts, sizeof(*s->parts), by_number);
	return rc;
}

int spool_open(const char *dir, const char *prefix, int64_t max_bytes, struct spool **out,
	       struct gpuq_err *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return gpuq_no_memory(err);
	s->fd = s->dir_fd = -1;
	s->max_bytes = max_bytes;
	s->prefix = strdup(prefix);
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		rc = gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO, "%s: %s", dir,
			       strerror(errno));
	else if (!s->prefix)
		rc = gpuq_no_memory(err);
	else
		rc = 0;
	if (rc == 0) {
		s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (s->dir_fd < 0)
			rc = gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO, "%s: %s", dir,
				       strerror(errno));
	}
	if (rc == 0)
		rc = find_parts(s, dir, err);
	if (rc < 0) {
		spool_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->prefix);
	free(s->parts);
	free(s);
}

/* A file that cannot be removed is no longer counted. */
static void forget_oldest(struct spool *s)
{
	char name[128];

	part_name(s, s->parts[0].number, name);
	unlinkat(s->dir_fd, name, 0);
	s->sum_bytes -= s->parts[0].bytes;
	memmove(&s->parts[0], &s->parts[1], --s->n_parts * sizeof(s->parts[0]));
}

static int next_part(struct spool *s, struct gpuq_err *err)
{
	struct part p = { s->n_parts ? s->parts[s->n_parts - 1].number + 1 : 1, 0 };
	char name[128];
	int rc;

	if (s->fd >= 0)
		close(s->fd);
	part_name(s, p.number, name);
	s->fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", name, strerror(errno));
	rc = add_part(s, p, err);
	if (rc < 0) {
		close(s->fd);
		s->fd = -1;
	}
	return rc;
}

int spool_add(struct spool *s, const void *bytes, size_t n, struct gpuq_err *err)
{
	struct part *newest;
	size_t done = 0;

	if (n > (uint64_t)s->max_bytes)
		return gpuq_fail(err, GPUQ_ETOOBIG,
				 "a record of %zu bytes, where all may have %" PRId64, n,
				 s->max_bytes);
	if (s->fd < 0 || s->parts[s->n_parts - 1].bytes + (int64_t)n > s->max_bytes / PARTS) {
		int rc = next_part(s, err);

		if (rc < 0)
			return rc;
	}
	while (s->n_parts > 1 && s->sum_bytes + (int64_t)n > s->max_bytes)
		forget_oldest(s);
	newest = &s->parts[s->n_parts - 1];
	while (done < n) {
		ssize_t k = write(s->fd, (const char *)bytes + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			gpuq_fail(err, GPUQ_EIO, "%s-%08" PRIu64 ".mp: %s", s->prefix,
				  newest->number, strerror(errno));
			if (ftruncate(s->fd, newest->bytes) != 0) {
				/* Half a record stays there: nothing follows it. */
				close(s->fd);
				s->fd = -1;
			}
			return GPUQ_EIO;
		}
		done += (size_t)k;
	}
	newest->bytes += (int64_t)n;
	s->sum_bytes += (int64_t)n;
	return 0;
}
