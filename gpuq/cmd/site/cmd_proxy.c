/* gpuq proxy: bytes between standard input and output and the server's socket, for ssh. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/server.h"
#include "libgpuq/wire/transport.h"

#define CONNECT_US (10 * INT64_C(1000000))
#define PIECE_BYTES 65536

/* One direction. */
struct flow {
	int from, to;
	size_t at, n; /* of the bytes that have not left */
	bool ended; /* nothing more comes */
	bool broken;
	char bytes[PIECE_BYTES];
};

static bool again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void take(struct flow *f)
{
	const ssize_t n = read(f->from, f->bytes, sizeof(f->bytes));

	if (n > 0) {
		f->at = 0;
		f->n = (size_t)n;
	} else if (n == 0 || !again()) {
		f->ended = true;
	}
}

static void give(struct flow *f)
{
	const ssize_t n = write(f->to, f->bytes + f->at, f->n);

	if (n > 0) {
		f->at += (size_t)n;
		f->n -= (size_t)n;
	} else if (n < 0 && !again()) {
		f->broken = true;
	}
}

/* True while the direction goes on. */
static bool open_(const struct flow *f)
{
	return !f->broken && (!f->ended || f->n > 0);
}

/* Until either side has ended and what came from it has left. */
static void relay(struct flow *up, struct flow *down)
{
	while (open_(up) && open_(down)) {
		struct pollfd p[] = {
			{ .fd = up->n ? up->to : up->from, .events = up->n ? POLLOUT : POLLIN },
			{ .fd = down->n ? down->to : down->from,
			  .events = down->n ? POLLOUT : POLLIN },
		};

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents)
			up->n ? give(up) : take(up);
		if (p[1].revents)
			down->n ? give(down) : take(down);
	}
}

static int connect_to(struct cli *c, int *fd, struct gpuq_err *err)
{
	struct server_places places;
	struct gpuq_transport t = { .fd = -1 };
	int rc = server_find(&c->arena, c->args.val[OPT_SERVER], &places, err);

	for (size_t i = 0; rc == 0 && i < places.n; i++)
		if (strncmp(places.addr[i], "unix:", 5) != 0)
			rc = gpuq_fail(
				err, GPUQ_EINVAL,
				"%s: proxy connects to a unix socket only; name it by --server "
				"(the address is from %s)",
				places.addr[i], places.source);
	if (rc < 0)
		return rc;
	rc = GPUQ_EUNREACH;
	for (size_t i = 0; rc == GPUQ_EUNREACH && i < places.n; i++) {
		const struct gpuq_connect_opts o = { .addr = places.addr[i], .stop_fd = -1 };

		rc = gpuq_transport_open(&t, &o, gpuq_mono_us() + CONNECT_US, err);
	}
	if (rc == 0)
		*fd = t.fd;
	return rc;
}

int cmd_proxy(struct cli *c)
{
	static struct flow up, down;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int in = fcntl(0, F_GETFL), out = fcntl(1, F_GETFL), fd = -1;

	if (connect_to(c, &fd, &err) < 0) {
		cli_fail(&err, false);
		return EXIT_SERVER;
	}
	signal(SIGPIPE, SIG_IGN);
	fcntl(0, F_SETFL, in | O_NONBLOCK);
	fcntl(1, F_SETFL, out | O_NONBLOCK);
	up = (struct flow){ .from = 0, .to = fd };
	down = (struct flow){ .from = fd, .to = 1 };
	relay(&up, &down);
	/* Others may have these files as well. */
	fcntl(0, F_SETFL, in);
	fcntl(1, F_SETFL, out);
	close(fd);
	return EXIT_DONE;
}
