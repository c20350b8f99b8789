/* gpuq port-forward: connections to a port here become connections to a port there. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/cmd/job/session.h"
#include "gpuq/cmd/job/target.h"
#include "gpuq/tty.h"

#define PORTS_MAX 16
#define GUESTS_MAX 48 /* connections at once: below what one user may have open */

struct port {
	int fd; /* listens on 127.0.0.1 */
	int here, there;
};

struct guest {
	bool used;
	int there;
	struct session s;
};

struct forward {
	struct cli *c;
	struct gpuq_val *target;
	struct port ports[PORTS_MAX];
	size_t n_ports;
	struct guest guests[GUESTS_MAX];
};

static bool number(const char *text, const char *end, int least, int *out)
{
	char *stop;
	const long n = strtol(text, &stop, 10);

	if (stop != end || stop == text || *text < '0' || *text > '9' || n < least || n > 65535)
		return false;
	*out = (int)n;
	return true;
}

/* "8080", "8080:80", "0:80" or ":80" (any free one). */
static bool parse(const char *text, struct port *p)
{
	const char *colon = strchr(text, ':'), *end = text + strlen(text);

	if (!colon) {
		if (!number(text, end, 1, &p->there))
			return false;
		p->here = p->there;
		return true;
	}
	p->here = 0;
	return (colon == text || number(text, colon, 0, &p->here)) &&
	       number(colon + 1, end, 1, &p->there);
}

static int listen_on(struct port *p)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)p->here) };
	socklen_t n = sizeof(sa);
	const int one = 1;

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0 || setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(p->fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(p->fd, 64) != 0 ||
	    getsockname(p->fd, (struct sockaddr *)&sa, &n) != 0)
		return errno;
	p->here = ntohs(sa.sin_port);
	return 0;
}

static void let_go(struct guest *g)
{
	session_done(&g->s);
	close(g->s.in_fd);
	g->used = false;
}

static void welcome(struct forward *f, const struct port *p)
{
	struct gpuq_arena *a = &f->c->arena;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct guest *g = NULL;
	int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (size_t i = 0; i < GUESTS_MAX && !g; i++)
		if (!f->guests[i].used)
			g = &f->guests[i];
	if (!g) {
		cli_say("port %d: %d connections are open already; this one is closed", p->here,
			GUESTS_MAX);
		close(fd);
		return;
	}
	*g = (struct guest){ .used = true,
			     .there = p->there,
			     .s = { .in_fd = fd, .out_fd = fd, .err_fd = -1, .socket = true } };
	gpuq_set(a, f->target, "port", gpuq_int(a, p->there));
	if (session_begin(&g->s, f->c, "job.forward", f->target, &err) == 0)
		return;
	cli_say("port %d: %s", p->there, err.text);
	let_go(g);
}

static void serve(struct guest *g, const struct pollfd *p)
{
	if (session_turn(&g->s, p) == SESSION_ON)
		return;
	if (g->s.lost && g->s.code == GPUQ_EUNKNOWN)
		cli_say("port %d: the connection to the server broke: this one is closed; new ones "
			"are accepted",
			g->there);
	else if (g->s.code &&
		 g->s.code != GPUQ_EIO) /* a client that goes away is none of our news */
		cli_say("port %d: %s", g->there, g->s.err.text);
	let_go(g);
}

/* Until a signal ends it, or the job has ended. */
static int pump(struct forward *f)
{
	static struct pollfd p[PORTS_MAX + GUESTS_MAX * SESSION_POLLS];
	const struct timespec turn = { 1, 0 };
	sigset_t during;

	tty_signals(&during);
	while (!tty_signal_taken()) {
		struct guest *at[GUESTS_MAX];
		size_t n = 0, n_guests = 0;

		for (size_t i = 0; i < f->n_ports; i++)
			p[n++] = (struct pollfd){ .fd = f->ports[i].fd, .events = POLLIN };
		for (size_t i = 0; i < GUESTS_MAX; i++)
			if (f->guests[i].used) {
				session_polls(&f->guests[i].s, p + n);
				at[n_guests++] = &f->guests[i];
				n += SESSION_POLLS;
			}
		if (ppoll(p, n, &turn, &during) < 0)
			continue;
		for (size_t i = 0; i < n_guests; i++)
			serve(at[i], p + f->n_ports + i * SESSION_POLLS);
		for (size_t i = 0; i < f->n_ports; i++)
			if (p[i].revents)
				welcome(f, &f->ports[i]);
	}
	return EXIT_DONE;
}

/* Report wrong jobs and missing rights before a client connects. */
static int probe(struct forward *f)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;
	struct gpuq_arena *a = &f->c->arena;

	gpuq_set(a, f->target, "port", gpuq_int(a, f->ports[0].there));
	gpuq_set(a, f->target, "probe", gpuq_bool(a, true));
	if (cli_call(f->c, "job.forward", f->target, "", &reply, &err) < 0)
		return cli_fail(&err, true);
	gpuq_unset(f->target, "probe");
	return -1;
}

int cmd_forward(struct cli *c)
{
	static struct forward f;
	int code = EXIT_USAGE, why;

	f.c = c;
	f.target = target_params(c, c->args.rest[0], &code);
	if (!f.target)
		return code;
	for (int i = 1; i < c->args.n_rest; i++) {
		if (f.n_ports == PORTS_MAX)
			return cli_usage(c, "%s: no more than %d ports", c->args.rest[i],
					 PORTS_MAX);
		if (!parse(c->args.rest[i], &f.ports[f.n_ports++]))
			return cli_usage(c, "%s: expected a port such as 8080, 8080:80 or :80",
					 c->args.rest[i]);
	}
	code = probe(&f);
	if (code >= 0)
		return code;
	for (size_t i = 0; i < f.n_ports; i++) {
		why = listen_on(&f.ports[i]);
		if (why) {
			cli_say("cannot listen on 127.0.0.1:%d: %s", f.ports[i].here,
				strerror(why));
			return EXIT_REFUSED;
		}
	}
	for (size_t i = 0; i < f.n_ports; i++)
		printf("Forwarding 127.0.0.1:%d -> %d\n", f.ports[i].here, f.ports[i].there);
	fflush(stdout);
	return pump(&f);
}
