#include "libgpuq/wire/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libgpuq/wire/tls_module.h"
#include "libgpuq/wire/transport.h"
#include "libgpuq/wire/wire.h"

#define HOST_BYTES 256
#define PIN_BYTES 64
#define TURN_US INT64_C(3600000000)

struct gpuq_tls {
	const struct gpuq_tls_module *module;
	void *conn;
	char why[GPUQ_TLS_WHY_BYTES];
};

struct place {
	char host[HOST_BYTES], port[8], pin[PIN_BYTES];
};

static int bad(const char *addr, const char *why, struct gpuq_err *err)
{
	return gpuq_fail(
		err, GPUQ_EINVAL,
		"'%s' is not a server address: %s; expected tls://host[:port][?pin=sha256:...]",
		addr, why);
}

static bool is_pin(const char *s)
{
	return strncmp(s, "sha256:", 7) == 0 && strlen(s) == 7 + 43 &&
	       strspn(s + 7, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
		       43;
}

static int parse(const char *addr, struct place *out, struct gpuq_err *err)
{
	const char *host = addr + strlen("tls://"), *query = strchr(host, '?');
	const bool brackets = *host == '[';
	const char *end, *port = GPUQ_TLS_PORT;
	size_t n_port = strlen(port), n;

	host += brackets;
	end = brackets ? strchr(host, ']') : host + strcspn(host, ":?/");
	if (!end || end == host || (size_t)(end - host) >= HOST_BYTES)
		return bad(addr, "the host name is not valid", err);
	n = (size_t)(end - host);
	end += brackets;
	if (*end == ':') {
		port = end + 1;
		n_port = strspn(port, "0123456789");
		end = port + n_port;
		if (n_port == 0 || n_port > 5 || strtol(port, NULL, 10) < 1 ||
		    strtol(port, NULL, 10) > 65535)
			return bad(addr, "the port is not a number from 1 to 65535", err);
	}
	if (*end && end != query)
		return bad(addr, "unexpected text after the host", err);
	if (query && (strncmp(query, "?pin=", 5) != 0 || !is_pin(query + 5)))
		return bad(addr, "expected pin=sha256:... after ?", err);
	snprintf(out->host, sizeof(out->host), "%.*s", (int)n, host);
	snprintf(out->port, sizeof(out->port), "%.*s", (int)n_port, port);
	snprintf(out->pin, sizeof(out->pin), "%s", query ? query + 5 : "");
	return 0;
}

static int load(const char *file, const struct gpuq_tls_module **out, struct gpuq_err *err)
{
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	const struct gpuq_tls_module *m = lib ? dlsym(lib, GPUQ_TLS_MODULE_SYMBOL) : NULL;

	if (!m || m->version != GPUQ_TLS_MODULE_VERSION)
		return gpuq_fail(err, GPUQ_EUNREACH, "tls:// needs the module %s: %s", file,
				 m ? "it is of another version" : dlerror());
	*out = m;
	return 0;
}

/* 0, or GPUQ_ETIMEOUT, GPUQ_ECANCELED. */
static int await(int fd, short events, int stop_fd, int64_t deadline_us, struct gpuq_err *err)
{
	for (;;) {
		struct pollfd p[] = { { .fd = fd, .events = events },
				      { .fd = stop_fd, .events = POLLIN } };
		int64_t left_us =
			deadline_us == GPUQ_NO_DEADLINE ? TURN_US : deadline_us - gpuq_mono_us();

		if (left_us <= 0)
			return gpuq_fail(err, GPUQ_ETIMEOUT, "no answer in time");
		if (left_us > TURN_US)
			left_us = TURN_US;
		if (poll(p, 2, (int)((left_us + 999) / 1000)) > 0) {
			if (p[1].revents)
				return gpuq_fail(err, GPUQ_ECANCELED, "interrupted");
			return 0;
		}
	}
}

/* One address: 0 and *fd, GPUQ_EUNREACH with errno's words, or as await. */
static int connect_one(const struct addrinfo *ai, int stop_fd, int64_t deadline_us, int *out,
		       struct gpuq_err *err)
{
	const int one = 1;
	int error = 0, rc = 0,
	    fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t n = sizeof(error);

	if (fd < 0)
		return gpuq_fail(err, GPUQ_EUNREACH, "%s", strerror(errno));
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
		if (errno == EINPROGRESS || errno == EINTR)
			rc = await(fd, POLLOUT, stop_fd, deadline_us, err);
		else
			error = errno;
		if (rc == 0 && !error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
			error = errno;
	}
	if (rc == 0 && error)
		rc = gpuq_fail(err, GPUQ_EUNREACH, "%s", strerror(error));
	if (rc < 0) {
		close(fd);
		return rc;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	*out = fd;
	return 0;
}

static int connect_to(const struct place *to, int stop_fd, int64_t deadline_us, int *out,
		      struct gpuq_err *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG };
	struct addrinfo *all = NULL;
	int rc = getaddrinfo(to->host, to->port, &hints, &all);

	if (rc != 0)
		return gpuq_fail(err, GPUQ_EUNREACH, "%s", gai_strerror(rc));
	rc = GPUQ_EUNREACH;
	for (const struct addrinfo *ai = all; ai && rc == GPUQ_EUNREACH; ai = ai->ai_next)
		rc = connect_one(ai, stop_fd, deadline_us, out, err);
	freeaddrinfo(all);
	return rc;
}

static int shake(struct gpuq_tls *t, int fd, int stop_fd, int64_t deadline_us, struct gpuq_err *err)
{
	for (;;) {
		const enum gpuq_tls_step step = t->module->shake(t->conn, t->why);
		int rc;

		if (step == GPUQ_TLS_DONE)
			return 0;
		if (step == GPUQ_TLS_FAILED)
			return gpuq_fail(err, GPUQ_EAUTH, "%s", t->why);
		rc = await(fd, step == GPUQ_TLS_READ ? POLLIN : POLLOUT, stop_fd, deadline_us, err);
		if (rc < 0)
			return rc;
	}
}

int gpuq_tls_open(const struct gpuq_connect_opts *o, int64_t deadline_us, int *fd,
		  struct gpuq_tls **out, struct gpuq_err *err)
{
	struct gpuq_tls *t = NULL;
	struct place to;
	struct gpuq_tls_want want = {
		.host = to.host, .alpn = GPUQ_TLS_ALPN, .ca = o->ca, .cert = o->cert, .key = o->key
	};
	int s = -1, rc = parse(o->addr, &to, err);

	if (rc < 0)
		return rc;
	want.pin = *to.pin ? to.pin : o->ca ? NULL : o->pin;
	t = calloc(1, sizeof(*t));
	rc = t ? load(o->module ? o->module : PKGLIBDIR "/libgpuq-tls.so", &t->module, err)
	       : gpuq_no_memory(err);
	if (rc == 0)
		rc = connect_to(&to, o->stop_fd, deadline_us, &s, err);
	if (rc == 0) {
		t->conn = t->module->start(s, &want, t->why);
		rc = t->conn ? shake(t, s, o->stop_fd, deadline_us, err)
			     : gpuq_fail(err, GPUQ_EINVAL, "%s", t->why);
	}
	if (rc == 0) {
		*fd = s;
		*out = t;
		return 0;
	}
	gpuq_tls_close(t);
	if (s >= 0)
		close(s);
	if (rc == GPUQ_ETIMEOUT)
		rc = err ? (err->code = GPUQ_EUNREACH) : GPUQ_EUNREACH;
	if (rc != GPUQ_ECANCELED)
		gpuq_err_prefix(err, "%.*s", (int)strcspn(o->addr, "?"), o->addr);
	return rc;
}

void gpuq_tls_close(struct gpuq_tls *t)
{
	if (!t)
		return;
	if (t->conn)
		t->module->stop(t->conn);
	free(t);
}

ssize_t gpuq_tls_recv(struct gpuq_tls *t, void *bytes, size_t n)
{
	return t->module->recv(t->conn, bytes, n, t->why);
}

ssize_t gpuq_tls_send(struct gpuq_tls *t, const void *bytes, size_t n)
{
	return t->module->send(t->conn, bytes, n, t->why);
}

const char *gpuq_tls_pin(const struct gpuq_tls *t)
{
	return t->module->pin(t->conn);
}

const char *gpuq_tls_why(const struct gpuq_tls *t)
{
	return t->why;
}
