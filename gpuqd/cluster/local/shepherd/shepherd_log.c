#include "config.h"

#include "gpuqd/cluster/local/shepherd/shepherd_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

void shepherd_log_stem(const char *pod, const char *uid, char out[256])
{
	snprintf(out, 256, "%s%s%s", pod, *uid ? "." : "", uid);
}

void shepherd_log_open(struct shepherd_log *l, int logs_dirfd, const char *stem)
{
	char name[300];
	struct stat st;

	memset(l, 0, sizeof(*l));
	l->max_bytes = LOG_POD_BYTES_MAX;
	l->free_bytes = LOG_FREE_BYTES_MIN;
	snprintf(name, sizeof(name), "%s.log", stem);
	l->fd = openat(logs_dirfd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (l->fd >= 0 && fstat(l->fd, &st) == 0)
		l->size = st.st_size;
}

int shepherd_log_reader(int logs_dirfd, const char *stem)
{
	char name[300];

	snprintf(name, sizeof(name), "%s.log", stem);
	return openat(logs_dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static bool has_room(const struct shepherd_log *l, size_t n)
{
	struct statvfs v;

	return fstatvfs(l->fd, &v) != 0 ||
	       (int64_t)v.f_bavail * (int64_t)v.f_frsize - (int64_t)n >= l->free_bytes;
}

static bool put(struct shepherd_log *l, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t k = write(l->fd, bytes, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			l->lost += (int64_t)n;
			return false;
		}
		l->size += k;
		bytes += k;
		n -= (size_t)k;
	}
	return true;
}

/* Let the oldest bytes go. A filesystem that cannot do holes begins anew instead. */
static void make_room(struct shepherd_log *l)
{
	const int64_t end = l->size - l->max_bytes;

	if (end - l->punched < (l->max_bytes > LOG_PUNCH_BYTES ? LOG_PUNCH_BYTES : l->max_bytes))
		return;
	if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end) == 0) {
		l->punched = end;
	} else if (ftruncate(l->fd, 0) == 0) {
		l->size = 0;
		l->punched = 0;
	}
}

void shepherd_log_write(struct shepherd_log *l, const char *bytes, size_t n)
{
	if (l->fd < 0)
		return;
	if (!has_room(l, n)) {
		l->lost += (int64_t)n;
		return;
	}
	if (l->lost > 0) {
		char note[96];
		int k = snprintf(note, sizeof(note),
				 "\n[gpuq: %" PRId64 " bytes of output could not be kept]\n",
				 l->lost);
		const int64_t lost = l->lost;

		if (!put(l, note, (size_t)k)) {
			l->lost = lost + (int64_t)n; /* still no room: the note waits */
			return;
		}
		l->lost -= lost;
	}
	put(l, bytes, n);
	make_room(l);
}

void shepherd_log_close(struct shepherd_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int shepherd_log_redirect(int logs_dirfd, const char *stem, const struct log_target *to)
{
	char name[300], fresh[300];
	bool ok;
	int fd;

	snprintf(name, sizeof(name), "%s.to", stem);
	snprintf(fresh, sizeof(fresh), ".%s.to", stem);
	fd = openat(logs_dirfd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	ok = dprintf(fd, "%" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRId64 " %s", to->dev, to->ino,
		     to->uid, to->offset, to->path) > 0;
	close(fd);
	if (!ok || renameat(logs_dirfd, fresh, logs_dirfd, name) != 0) {
		unlinkat(logs_dirfd, fresh, 0);
		return -1;
	}
	return 0;
}

bool shepherd_log_target(int logs_dirfd, const char *stem, char *text, struct log_target *out)
{
	char name[300];
	ssize_t n;
	int fd, at = 0;

	snprintf(name, sizeof(name), "%s.to", stem);
	fd = openat(logs_dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	n = read(fd, text, LOG_TARGET_BYTES_MAX - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNd64 "%n", &out->dev, &out->ino,
		   &out->uid, &out->offset, &at) != 4 ||
	    at == 0 || text[at] != ' ' || text[at + 1] != '/' || out->offset < 0)
		return false;
	out->path = text + at + 1;
	return true;
}
