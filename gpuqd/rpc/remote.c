#include "gpuqd/rpc/remote.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/listener.h>
#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/rpc/server.h"
#include "gpuqd/rpc/tls.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/wire.h"

#define US INT64_C(1000000)
#define BACKLOG 1024
#define ACCEPTS_PER_TURN 64
#define NO_FD_WAIT_US (US / 5)
#define LOOK_US (60 * US) /* at the certificates */
#define HOST_BYTES 256
#define SHAKE_US (US / GPUQ_HANDSHAKES_PER_S)
#define FORGET_US (60 * US)

/* Where connections come from: an IPv4 address, or the /64 of an IPv6 one. */
struct stranger {
	UT_hash_handle hh;
	unsigned char net[8];
	unsigned n; /* connections that have not said who they are */
	int64_t next_us; /* its next handshake; behind now while it has some in hand */
};

struct listener {
	struct listener *next;
	struct remote *remote;
	struct evconnlistener *ev;
	struct loop_timer *again;
	unsigned accepts;
	char *addr;
};

struct remote {
	struct rpc_server *server;
	struct listener *listeners;
	struct tls *tls; /* NULL until the first socket */
	struct loop_timer *look;
	struct stranger *strangers;
	unsigned n; /* of all addresses */
};

struct remote *remote_new(struct rpc_server *s)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (r)
		r->server = s;
	return r;
}

static struct tls_files files_of(const struct remote *r)
{
	const struct rpc_tls *t = &server_opts(r->server)->tls;

	return (struct tls_files){ t->cert, t->key, t->client_ca };
}

void remote_reload(struct remote *r)
{
	const struct tls_files files = files_of(r);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = r->tls ? tls_reload(r->tls, &files, &err) : 0;

	if (rc > 0)
		log_notice("tls.reload", "cert=%s", LOGS(files.cert));
	else if (rc < 0)
		log_err("tls.reload", "error=%s: the old certificate stays", LOGS(err.text));
}

static void on_look(void *arg)
{
	struct remote *r = arg;

	remote_reload(r);
	r->look = loop_after(server_loop(r->server), LOOK_US, on_look, r);
}

void remote_stop(struct remote *r)
{
	struct listener *l;

	loop_cancel(r->look);
	r->look = NULL;
	while ((l = r->listeners) != NULL) {
		r->listeners = l->next;
		if (l->ev)
			evconnlistener_free(l->ev);
		loop_cancel(l->again);
		free(l->addr);
		free(l);
	}
}

void remote_free(struct remote *r)
{
	struct stranger *x, *next;

	if (!r)
		return;
	remote_stop(r);
	HASH_ITER(hh, r->strangers, x, next) {
		HASH_DEL(r->strangers, x);
		free(x);
	}
	tls_free(r->tls);
	free(r);
}

/* ---- addresses ---- */

static void net_of(const struct sockaddr *sa, unsigned char net[8])
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;

	memset(net, 0, 8);
	if (sa->sa_family == AF_INET)
		memcpy(net + 4, &in->sin_addr, 4);
	else if (sa->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		memcpy(net + 4, in6->sin6_addr.s6_addr + 12, 4);
	else if (sa->sa_family == AF_INET6)
		memcpy(net, in6->sin6_addr.s6_addr, 8);
}

static void forget_idle(struct remote *r, int64_t now_us)
{
	struct stranger *x, *next;

	HASH_ITER(hh, r->strangers, x, next)
		if (x->n == 0 && x->next_us < now_us - FORGET_US) {
			HASH_DEL(r->strangers, x);
			free(x);
		}
}

static struct stranger *stranger_of(struct remote *r, const struct sockaddr *sa, int64_t now_us)
{
	unsigned char net[8];
	struct stranger *x;

	net_of(sa, net);
	HASH_FIND(hh, r->strangers, net, sizeof(net), x);
	if (x)
		return x;
	/* Addresses are many where one host has a whole network: old ones go now and then. */
	if (HASH_COUNT(r->strangers) % GPUQ_STRANGERS_MAX == GPUQ_STRANGERS_MAX - 1)
		forget_idle(r, now_us);
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	memcpy(x->net, net, sizeof(net));
	HASH_ADD(hh, r->strangers, net, sizeof(x->net), x);
	return x;
}

void remote_net(const struct rpc_conn *c, char out[RPC_NET_BYTES])
{
	*out = '\0';
	for (size_t k = 0; c->stranger && k < sizeof(c->stranger->net); k++)
		snprintf(out + 2 * k, 3, "%02x", c->stranger->net[k]);
}

void remote_known(struct remote *r, struct rpc_conn *c)
{
	if (!c->stranger)
		return;
	c->stranger->n--;
	r->n--;
	c->stranger = NULL;
}

/* When it may shake hands, from now; a second's worth may come at once. -1: not in time. */
static int64_t wait_of(struct stranger *x, int64_t now_us)
{
	int64_t wait_us;

	if (x->next_us < now_us - US)
		x->next_us = now_us - US;
	wait_us = x->next_us + SHAKE_US - now_us;
	if (wait_us > GPUQ_HELLO_TIMEOUT_S * US)
		return -1;
	x->next_us += SHAKE_US;
	return wait_us > 0 ? wait_us : 0;
}

static void name_of(const struct sockaddr *sa, socklen_t n, char *out, size_t size)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo(sa, n, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "?");
	else
		snprintf(out, size, "%.40s", strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host);
}

/* ---- connections ---- */

static void on_again(void *arg)
{
	struct listener *l = arg;

	l->again = NULL;
	l->accepts = 0;
	evconnlistener_enable(l->ev);
}

static void pause_listener(struct listener *l, int64_t us)
{
	if (l->again)
		return;
	evconnlistener_disable(l->ev);
	l->again = loop_after(server_loop(l->remote->server), us, on_again, l);
}

/* A peer that has gone without a word is noticed. */
static void set_options(int fd)
{
	const int one = 1, idle_s = 15, every_s = 15, times = 3, timeout_ms = 45000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

static void turn_away(struct remote *r, int fd, const char *address, const char *why)
{
	close(fd);
	server_log_turned_away(r->server, address, why);
}

static void on_accept(struct evconnlistener *ev, evutil_socket_t fd, struct sockaddr *sa, int n,
		      void *arg)
{
	struct listener *l = arg;
	struct remote *r = l->remote;
	const int64_t now_us = loop_mono_us(server_loop(r->server));
	struct stranger *x = stranger_of(r, sa, now_us);
	struct tls_conn *tls;
	struct rpc_conn *c;
	char address[64];
	int64_t wait_us;

	(void)ev;
	if (++l->accepts >= ACCEPTS_PER_TURN)
		pause_listener(l, 0);
	name_of(sa, (socklen_t)n, address, sizeof(address));
	if (r->n >= GPUQ_STRANGERS_MAX) {
		turn_away(r, fd, address, "too many unauthenticated connections");
		return;
	}
	if (!x || x->n >= GPUQ_STRANGERS_PER_ADDRESS) {
		turn_away(r, fd, address, "too many unauthenticated connections from this address");
		return;
	}
	wait_us = wait_of(x, now_us);
	if (wait_us < 0) {
		turn_away(r, fd, address, "too many handshakes from this address");
		return;
	}
	set_options(fd);
	tls = tls_accept(r->tls, fd);
	c = tls ? conn_new_tls(r->server, fd, tls, address, wait_us) : NULL;
	if (!c) {
		tls_end(tls);
		turn_away(r, fd, address, "no memory for a connection");
		return;
	}
	c->stranger = x;
	x->n++;
	r->n++;
}

static void on_accept_error(struct evconnlistener *ev, void *arg)
{
	struct listener *l = arg;

	(void)ev;
	log_warn("rpc.accept", "socket=%s error=%s", LOGS(l->addr), strerror(errno));
	pause_listener(l, NO_FD_WAIT_US);
}

/* ---- listening ---- */

/* host:port or [host]:port, apart; without a port the usual one. */
static int split(const char *addr, char host[HOST_BYTES], char port[8], struct gpuq_err *err)
{
	const bool brackets = *addr == '[';
	const char *end = brackets ? strchr(addr, ']') : addr + strcspn(addr, ":");
	const char *p = addr + brackets;
	const char *rest = end ? end + brackets : NULL;

	if (!end || end == p || (size_t)(end - p) >= HOST_BYTES ||
	    (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1) ||
		       !rest[1] || strlen(rest + 1) > 5)))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'tls://%s' is not an address to listen on: expected "
				 "tls://address:port, with [] around an IPv6 address",
				 addr);
	snprintf(host, HOST_BYTES, "%.*s", (int)(end - p), p);
	snprintf(port, 8, "%s", *rest ? rest + 1 : GPUQ_TLS_PORT);
	return 0;
}

static int open_socket(const char *addr, const struct addrinfo *ai, int *out, struct gpuq_err *err)
{
	const int one = 1, zero = 0;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (ai->ai_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
			*out = fd;
			return 0;
		}
	}
	error = errno;
	if (fd >= 0)
		close(fd);
	return gpuq_fail(err,
			 error == EADDRINUSE ? GPUQ_EBUSY
			 : error == EACCES   ? GPUQ_EPERM
					     : GPUQ_EIO,
			 "cannot listen on tls://%s: %s", addr, strerror(error));
}

int remote_listen(struct remote *r, const char *addr, struct gpuq_err *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	const struct tls_files files = files_of(r);
	char host[HOST_BYTES], port[8];
	struct addrinfo *ai = NULL;
	struct listener *l;
	int fd = -1, rc = split(addr, host, port, err);

	if (rc == 0 && getaddrinfo(host, port, &hints, &ai) != 0)
		rc = gpuq_fail(err, GPUQ_EINVAL, "tls://%s: %s is not an address of this machine",
			       addr, host);
	if (rc == 0 && !r->tls)
		rc = tls_new(&files, &r->tls, err);
	if (rc == 0)
		rc = open_socket(addr, ai, &fd, err);
	if (ai)
		freeaddrinfo(ai);
	if (rc < 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (l) {
		l->remote = r;
		l->addr = strdup(addr);
		l->ev = evconnlistener_new(loop_base(server_loop(r->server)), on_accept, l,
					   LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, fd);
	}
	if (!l || !l->ev || !l->addr) {
		if (!l || !l->ev)
			close(fd);
		else
			evconnlistener_free(l->ev);
		if (l)
			free(l->addr);
		free(l);
		return gpuq_no_memory(err);
	}
	evconnlistener_set_error_cb(l->ev, on_accept_error);
	l->next = r->listeners;
	r->listeners = l;
	if (!r->look)
		r->look = loop_after(server_loop(r->server), LOOK_US, on_look, r);
	return 0;
}
