#include "config.h"

#include "gpuqd/cluster/local/shepherd/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/cluster/local/shepherd/shepherd_child.h"

#define CHUNK_BYTES 32768
#define LOOK_MS 1000 /* where inotify sees nothing: network file systems, no instances left */
#define TAIL_BYTES_MAX (INT64_C(64) << 20) /* examined backwards for tail_lines */
#define EXIT_TROUBLE 71

void log_request_write(struct gpuq_buf *b, const struct log_request *r)
{
	gpuq_buf_printf(b, "1 %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64,
			r->uid, r->gid, r->target.dev, r->target.ino, r->target.offset,
			r->tail_lines);
	gpuq_buf_addc(b, '\0');
	gpuq_buf_add(b, r->target.path, strlen(r->target.path) + 1);
}

bool log_request_read(const char *text, size_t n, struct log_request *out)
{
	const char *nul = memchr(text, '\0', n), *path = nul ? nul + 1 : NULL;
	struct log_request r = { 0 };
	int at = 0;

	if (!path || !memchr(path, '\0', n - (size_t)(path - text)) || *path != '/' ||
	    sscanf(text,
		   "1 %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 "%n",
		   &r.uid, &r.gid, &r.target.dev, &r.target.ino, &r.target.offset, &r.tail_lines,
		   &at) != 6 ||
	    text[at] != '\0' || r.uid == LOG_READER_NO_ID || r.target.offset < 0)
		return false;
	r.target.path = path;
	*out = r;
	return true;
}

int64_t log_tail(int fd, int64_t from, int64_t n)
{
	static char chunk[CHUNK_BYTES];
	struct stat st;
	int64_t at, low, lines = 0;

	if (fstat(fd, &st) != 0)
		return from;
	at = st.st_size;
	low = at - TAIL_BYTES_MAX > from ? at - TAIL_BYTES_MAX : from;
	if (n == 0)
		return at;
	while (at > low) {
		const int64_t begin = at - CHUNK_BYTES > low ? at - CHUNK_BYTES : low;
		const ssize_t k = pread(fd, chunk, (size_t)(at - begin), begin);

		if (k <= 0)
			break;
		for (ssize_t i = k - 1; i >= 0; i--) {
			if (chunk[i] != '\n' || begin + i == st.st_size - 1)
				continue;
			if (++lines == n)
				return begin + i + 1;
		}
		at = begin;
	}
	return low;
}

/* Wait for the whole request, which comes in few pieces. */
static bool hear_request(char *text, size_t room, struct log_request *out)
{
	size_t n = 0;

	while (n < room && !log_request_read(text, n, out)) {
		const ssize_t k = recv(STDIN_FILENO, text + n, room - n, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		n += (size_t)k;
	}
	return n < room;
}

/* Become the owner for good. Nothing of this process, the environment of the daemon least of
 * all, can be read by the owner's other processes. */
static bool become(const struct log_request *r)
{
	const struct passwd *pw = r->gid == LOG_READER_NO_ID ? getpwuid(r->uid) : NULL;
	gid_t gid = r->gid;

	if (geteuid() != 0)
		return r->uid == geteuid();
	if (r->gid == LOG_READER_NO_ID && !pw)
		return false;
	if (pw)
		gid = pw->pw_gid;
	return shepherd_child_become(r->uid, gid) && getuid() == r->uid && geteuid() == r->uid &&
	       prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* The job's file, if the path still leads to it. */
static int open_target(const struct log_target *t)
{
	struct stat st;
	int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_dev == t->dev &&
	    (uint64_t)st.st_ino == t->ino)
		return fd;
	close(fd);
	return -1;
}

static bool send_all(const char *bytes, size_t n)
{
	while (n > 0) {
		const ssize_t k = send(STDIN_FILENO, bytes, n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		bytes += k;
		n -= (size_t)k;
	}
	return true;
}

/* Send what the file holds behind *offset. False: the daemon has gone, or the file cannot be
 * read. */
static bool send_rest(int fd, int64_t *offset)
{
	static char chunk[CHUNK_BYTES];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == 0 && st.st_size < *offset)
		*offset = 0; /* it was emptied and begins anew */
	while ((n = pread(fd, chunk, sizeof(chunk), *offset)) > 0) {
		*offset += n;
		if (!send_all(chunk, (size_t)n))
			return false;
	}
	return n == 0;
}

/* Has the daemon shut down its half? */
static bool is_last(void)
{
	char byte;

	return recv(STDIN_FILENO, &byte, 1, MSG_DONTWAIT) == 0;
}

static void wait_for_more(int changes)
{
	struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
			      { .fd = changes, .events = POLLIN } };
	char events[4096];

	if (poll(p, 2, LOOK_MS) > 0 && p[1].revents)
		while (read(changes, events, sizeof(events)) > 0)
			;
}

int log_reader_main(void)
{
	char text[LOG_TARGET_BYTES_MAX + 256], path[64];
	struct log_request r;
	int64_t offset;
	int fd, changes;
	bool last;

	if (!hear_request(text, sizeof(text), &r) || !become(&r))
		return EXIT_TROUBLE;
	fd = open_target(&r.target);
	if (fd < 0)
		return 0;
	offset = r.target.offset;
	if (r.tail_lines >= 0)
		offset = log_tail(fd, offset, r.tail_lines);
	changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (changes >= 0)
		inotify_add_watch(changes, path, IN_MODIFY);
	do {
		/* Asked before reading: what was written until then is sent. */
		last = is_last();
		if (!send_rest(fd, &offset))
			break;
		if (!last)
			wait_for_more(changes);
	} while (!last);
	return 0;
}
