#include "config.h"

#include "gpuqd/cluster/local/shepherd/last_words.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static bool is_file(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fcntl(fd, F_GETFL) & O_APPEND;
}

union room {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

void last_words_send(int socket, const void *bytes, size_t n, int fd)
{
	union room room = { .bytes = { 0 } };
	struct iovec v = { (void *)(uintptr_t)bytes, n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (is_file(fd)) {
		m.msg_control = room.bytes;
		m.msg_controllen = sizeof(room.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	sendmsg(socket, &m, MSG_NOSIGNAL);
}

long last_words_receive(int socket, void *bytes, size_t n, int *fd)
{
	union room room;
	struct iovec v = { bytes, n };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = room.bytes,
			    .msg_controllen = sizeof(room.bytes) };
	const ssize_t got = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	int came;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return got;
	memcpy(&came, CMSG_DATA(c), sizeof(int));
	if (*fd >= 0)
		close(*fd);
	*fd = is_file(came) ? came : -1;
	if (*fd < 0)
		close(came);
	return got;
}

static const char *variable(const struct order *o, const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < o->env.n; i++)
		if (strncmp(o->env.items[i], name, n) == 0 && o->env.items[i][n] == '=')
			return o->env.items[i] + n + 1;
	return "";
}

size_t last_words(const struct order *o, const char *why, char out[LAST_WORDS_BYTES])
{
	const char *id = variable(o, "SLURM_JOB_ID");
	const time_t t = time(NULL);
	char when[32] = "";
	struct tm tm;
	int n;

	if (!o->script || !*id || strcmp(variable(o, "GPUQ_POD_INDEX"), "0") != 0)
		return 0;
	if (localtime_r(&t, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	n = snprintf(out, LAST_WORDS_BYTES,
		     "slurmstepd: error: *** JOB %.20s ON %.200s CANCELLED AT %s%s%.60s ***\n", id,
		     o->node, when, *why ? " DUE TO " : "", why);
	return n > 0 && n < LAST_WORDS_BYTES ? (size_t)n : 0;
}
