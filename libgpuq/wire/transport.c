#include "libgpuq/wire/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/wire.h"

#define READ_BYTES 65536

int64_t gpuq_mono_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Milliseconds for poll(), rounded up so that it never spins before a deadline. */
static int poll_ms(int64_t deadline_us)
{
	int64_t left;

	if (deadline_us == GPUQ_NO_DEADLINE)
		return -1;
	left = deadline_us - gpuq_mono_us();
	if (left <= 0)
		return 0;
	return left > INT64_C(3600000000) ? 3600000 : (int)((left + 999) / 1000);
}

#define STOPPED (-1)

/* Wait for events. Returns what came, 0 when the deadline passed, STOPPED. */
static int await(const struct gpuq_transport *t, short events, int64_t deadline_us)
{
	/* poll() passes over a descriptor below 0. */
	struct pollfd p[] = { { .fd = t->fd, .events = events },
			      { .fd = t->stop_fd, .events = POLLIN } };

	for (;;) {
		const int n = poll(p, 2, poll_ms(deadline_us));

		if (n > 0)
			return p[1].revents ? STOPPED : p[0].revents;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return POLLERR;
		if (deadline_us != GPUQ_NO_DEADLINE && gpuq_mono_us() >= deadline_us)
			return 0;
	}
}

static int parse_address(const char *addr, struct sockaddr_un *un, struct gpuq_err *err)
{
	const char *path = addr + strlen("unix:");

	if (strncmp(addr, "unix:", 5) != 0 || path[0] != '/')
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'%s' is not a server address: expected unix:/path/to/gpuqd.sock, "
				 "ssh://[user@]host[:port] or tls://host[:port]",
				 addr);
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(un->sun_path))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the path of the socket '%s' is longer than %zu characters", path,
				 sizeof(un->sun_path) - 1);
	memcpy(un->sun_path, path, strlen(path) + 1);
	return 0;
}

static int connect_failed(const char *addr, int error, struct gpuq_err *err)
{
	if (error == EACCES || error == EPERM)
		return gpuq_fail(err, GPUQ_EPERM, "not allowed to connect to %s", addr);
	if (error == ENOENT || error == ECONNREFUSED)
		return gpuq_fail(err, GPUQ_EUNREACH,
				 "no gpuqd answers at %s: start it, or name another one with "
				 "--server or GPUQ_SERVER",
				 addr);
	return gpuq_fail(err, GPUQ_EUNREACH, "cannot connect to %s: %s", addr, strerror(error));
}

static int stopped(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECANCELED, "interrupted");
}

static int open_unix(const char *addr, int stop_fd, int64_t deadline_us, int *out,
		     struct gpuq_err *err)
{
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };
	struct sockaddr_un un;
	int rc = parse_address(addr, &un, err);
	int fd;

	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return connect_failed(addr, errno, err);
	/* EAGAIN: the queue of the listening socket is full, and nothing tells when it
	 * is not; so ask again a little later. */
	while (connect(fd, (const struct sockaddr *)&un, sizeof(un)) != 0) {
		const int error = errno;

		if (error == EINTR)
			continue;
		if (error != EAGAIN || gpuq_mono_us() >= deadline_us) {
			close(fd);
			return connect_failed(addr, error, err);
		}
		if (poll(&stop, 1, 20) > 0) {
			close(fd);
			return stopped(err);
		}
	}
	*out = fd;
	return 0;
}

int gpuq_transport_open(struct gpuq_transport *t, const struct gpuq_connect_opts *o,
			int64_t deadline_us, struct gpuq_err *err)
{
	struct gpuq_ssh ssh = { .errs = -1 };
	struct gpuq_tls *tls = NULL;
	int fd = -1, rc;

	if (strncmp(o->addr, "tls://", 6) == 0)
		rc = gpuq_tls_open(o, deadline_us, &fd, &tls, err);
	else if (strncmp(o->addr, "ssh://", 6) == 0)
		rc = gpuq_ssh_open(&ssh, o->addr, &fd, err);
	else
		rc = open_unix(o->addr, o->stop_fd, deadline_us, &fd, err);
	if (rc < 0)
		return rc;
	*t = (struct gpuq_transport){
		.fd = fd, .stop_fd = o->stop_fd, .heard_us = gpuq_mono_us(), .ssh = ssh, .tls = tls
	};
	return 0;
}

static void close_fd(struct gpuq_transport *t)
{
	gpuq_tls_close(t->tls);
	t->tls = NULL;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	t->ended = true;
	gpuq_buf_done(&t->in);
}

void gpuq_transport_explain(struct gpuq_transport *t, const char *addr, struct gpuq_err *err)
{
	const bool ended = t->ended;

	/* A server that refuses the client's certificate says so after the handshake. */
	if (t->tls && *gpuq_tls_why(t->tls))
		gpuq_fail(err, GPUQ_EUNREACH, "%.*s: %s", (int)strcspn(addr, "?"), addr,
			  gpuq_tls_why(t->tls));
	close_fd(t);
	if (ended)
		gpuq_ssh_explain(&t->ssh, addr, err);
}

void gpuq_transport_close(struct gpuq_transport *t)
{
	close_fd(t);
	gpuq_ssh_close(&t->ssh);
}

/* Read what is there. Returns 0 (perhaps with t->ended) or GPUQ_ENOMEM. */
static int read_some(struct gpuq_transport *t, struct gpuq_err *err)
{
	ssize_t n;

	gpuq_buf_drop(&t->in, t->taken);
	t->taken = 0;
	do {
		if (gpuq_buf_reserve(&t->in, READ_BYTES) < 0)
			return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a reply");
		n = t->tls ? gpuq_tls_recv(t->tls, t->in.data + t->in.len, READ_BYTES)
			   : recv(t->fd, t->in.data + t->in.len, READ_BYTES, 0);
		if (n > 0) {
			t->in.len += (size_t)n;
			t->heard_us = gpuq_mono_us();
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			t->ended = true;
		}
		/* The socket does not report bytes that TLS has decrypted: all are taken. */
	} while (n == READ_BYTES && t->tls);
	return 0;
}

int gpuq_transport_write(struct gpuq_transport *t, const void *bytes, size_t n, int64_t deadline_us,
			 size_t *sent, struct gpuq_err *err)
{
	const char *p = bytes;

	*sent = 0;
	while (*sent < n) {
		const ssize_t k = t->fd < 0 ? -1
				  : t->tls  ? gpuq_tls_send(t->tls, p + *sent, n - *sent)
					    : send(t->fd, p + *sent, n - *sent, MSG_NOSIGNAL);
		int got, rc;

		if (k >= 0) {
			*sent += (size_t)k;
			continue;
		}
		if (t->fd < 0 || (errno != EAGAIN && errno != EINTR))
			return gpuq_fail(err, GPUQ_EUNREACH,
					 "the connection to the server is broken");
		got = await(t,
			    t->ended || t->in.len > GPUQ_OUTPUT_BYTES_MAX ? POLLOUT
									  : POLLIN | POLLOUT,
			    deadline_us);
		if (got == 0)
			return gpuq_fail(err, GPUQ_ETIMEOUT, "the server takes no more bytes");
		if (got == STOPPED)
			return stopped(err);
		if (got & POLLIN) {
			rc = read_some(t, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int gpuq_transport_next(struct gpuq_transport *t, int64_t deadline_us, const char **bytes,
			size_t *n, struct gpuq_err *err)
{
	int rc, got;

	for (;;) {
		const char *p = t->in.data ? t->in.data + t->taken : "";

		rc = gpuq_mp_next(&t->scan, &gpuq_wire_limits, p, t->in.len - t->taken, n, err);
		if (rc < 0)
			return gpuq_err_prefix(err, "the server does not speak as expected"), rc;
		if (rc == 1) {
			memset(&t->scan, 0, sizeof(t->scan));
			*bytes = p;
			t->taken += *n;
			return 1;
		}
		if (t->fd < 0 || t->ended)
			return gpuq_fail(err, GPUQ_EUNREACH, "the server closed the connection");
		got = await(t, POLLIN, deadline_us);
		if (got == 0)
			return 0;
		if (got == STOPPED) {
			gpuq_transport_close(t);
			return stopped(err);
		}
		rc = read_some(t, err);
		if (rc < 0)
			return rc;
	}
}
