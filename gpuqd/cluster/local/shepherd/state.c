#include "config.h"

#include "gpuqd/base/clock.h"
#include "gpuqd/cluster/local/shepherd/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_BYTES_MAX 4096 /* four lines of at most 400 bytes, and what a crash cut */

static const char *const how_words[] = {
#define X(sym, word) word,
	POD_HOWS(X)
#undef X
};

int64_t state_now_us(void)
{
	return clock_us(CLOCK_REALTIME);
}

static int64_t up_us(void)
{
	return clock_us(CLOCK_BOOTTIME);
}

static enum pod_how how_parse(const char *word)
{
	for (size_t i = 0; i < sizeof(how_words) / sizeof(how_words[0]); i++)
		if (strcmp(word, how_words[i]) == 0)
			return (enum pod_how)i;
	return HOW_INFRA;
}

static void read_line(char *line, struct pod_state *s)
{
	struct pod_used u;
	char word[16];
	int at = 0;

	if (sscanf(line, "starting boot=%39s", s->boot) == 1) {
		s->starting = true;
	} else if (sscanf(line, "started pid=%d ticks=%" SCNu64 " at=%" SCNd64 " up=%" SCNd64,
			  &s->pid, &s->ticks, &s->started_us, &s->started_up_us) >= 3) {
		return;
	} else if (sscanf(line,
			  "used user=%" SCNd64 " system=%" SCNd64 " memory=%" SCNd64
			  " read=%" SCNd64 " written=%" SCNd64,
			  &u.user_us, &u.system_us, &u.memory_bytes, &u.read_bytes,
			  &u.written_bytes) == 5) {
		s->used = u;
		s->has_used = true;
	} else if (sscanf(line, "ended how=%15s code=%d at=%" SCNd64 " up=%" SCNd64 " text=%n",
			  word, &s->code, &s->ended_us, &s->ended_up_us, &at) == 4 &&
		   at > 0) {
		s->how = how_parse(word);
		snprintf(s->text, sizeof(s->text), "%s", line + at);
	} else if (sscanf(line, "ended how=%15s code=%d at=%" SCNd64 " text=%n", word, &s->code,
			  &s->ended_us, &at) == 3 &&
		   at > 0) {
		s->how = how_parse(word);
		snprintf(s->text, sizeof(s->text), "%s", line + at);
	}
}

int state_read(int dirfd, struct pod_state *out, struct gpuq_err *err)
{
	struct pod_state s = { .how = HOW_NOT };
	char text[STATE_BYTES_MAX + 1];
	size_t n = 0;
	ssize_t k;
	int fd = openat(dirfd, "state", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno == ENOENT) {
		*out = s;
		return 0;
	}
	if (fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "cannot open its state: %s", strerror(errno));
	while (n < STATE_BYTES_MAX && (k = read(fd, text + n, STATE_BYTES_MAX - n)) != 0) {
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0) {
			close(fd);
			return gpuq_fail(err, GPUQ_EIO, "cannot read its state: %s",
					 strerror(errno));
		}
		n += (size_t)k;
	}
	close(fd);
	text[n] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		read_line(line, &s);
	}
	*out = s;
	return 0;
}

int state_exit_code(const struct pod_state *s)
{
	switch (s->how) {
	case HOW_NOT:
		return 0;
	case HOW_SIGNAL:
		return 128 + s->code;
	default:
		return s->code;
	}
}

int state_open(int dirfd)
{
	return openat(dirfd, "state", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* A line is one write, with a newline in front: should a crash have cut the line
 * before it, this one still begins on its own. */
static int put(int fd, bool sync, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int put(int fd, bool sync, const char *fmt, ...)
{
	char line[512] = "\n";
	struct stat st;
	va_list ap;
	ssize_t k;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line + 1, sizeof(line) - 2, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	n = (int)strlen(line);
	for (int i = 1; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	k = write(fd, line, (size_t)n);
	if (k == n)
		return sync ? fdatasync(fd) : 0;
	/* A full disk takes a part at times: out again, the caller tries until it fits. */
	if (k > 0 && fstat(fd, &st) == 0 && ftruncate(fd, st.st_size - k) == 0)
		errno = ENOSPC;
	return -1;
}

int state_put_starting(int fd)
{
	char boot[40];

	clock_boot_id(boot);
	return put(fd, true, "starting boot=%s at=%" PRId64, boot[0] ? boot : "-", state_now_us());
}

int state_put_started(int fd, int pid, uint64_t ticks, int64_t at_us)
{
	return put(fd, true, "started pid=%d ticks=%" PRIu64 " at=%" PRId64 " up=%" PRId64, pid,
		   ticks, at_us, up_us());
}

int state_put_used(int fd, const struct pod_used *u)
{
	return put(fd, false,
		   "used user=%" PRId64 " system=%" PRId64 " memory=%" PRId64 " read=%" PRId64
		   " written=%" PRId64,
		   u->user_us, u->system_us, u->memory_bytes, u->read_bytes, u->written_bytes);
}

int state_put_ended(int fd, enum pod_how how, int code, const char *text)
{
	return put(fd, true, "ended how=%s code=%d at=%" PRId64 " up=%" PRId64 " text=%.250s",
		   how_words[how], code, state_now_us(), up_us(), text);
}

int state_lock(int dirfd)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -1;
	if (fcntl(fd, F_OFD_SETLK, &fl) != 0) {
		const int why = errno == EACCES ? EAGAIN : errno;

		close(fd);
		errno = why;
		return -1;
	}
	return fd;
}

bool state_locked(int dirfd)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(dirfd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool held;

	if (fd < 0)
		return false;
	held = fcntl(fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
	close(fd);
	return held;
}
