#define _GNU_SOURCE /* accept4 */
#include "gpuqd/rpc/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/listener.h>

#include "gpuqd/base/log.h"
#include "gpuqd/rpc/conn.h"
#include "gpuqd/rpc/peer.h"
#include "gpuqd/rpc/remote.h"
#include "gpuqd/rpc/call.h"
#include "gpuqd/util/scope.h"
#include "libgpuq/limits.h"

#define US INT64_C(1000000)
#define BACKLOG 4096
#define ACCEPTS_PER_TURN 64 /* a flood of connects must not starve the rest */
#define NO_FD_WAIT_US (US / 5) /* the socket stays readable: do not spin on it */
#define SWEEP_US (2 * US)
#define LOG_US US

struct listener {
	struct listener *next;
	struct rpc_server *server;
	struct evconnlistener *ev;
	struct loop_timer *again;
	unsigned accepts;
	char *path;
	dev_t dev; /* of the socket file, so that only ours is removed */
	ino_t ino;
};

struct rpc_server {
	struct loop *loop;
	struct rpc_opts opts;
	char **operators; /* ends with NULL */
	struct rpc_users *users;
	struct listener *listeners;
	struct rpc_conn *conns;
	struct rpc_call *calls;
	struct loop_timer *sweep;
	int reserve_fd; /* given up for a moment to turn a connection away */
	struct rpc_stats stats;
	struct flight flight;
	struct flight_user strangers; /* the share of all whose user is not known yet */
	struct remote *remote; /* tls:// */
	int64_t logged_us;
	unsigned not_logged;
};

static const char *const role_words[] = { "anybody", "user", "manager", "operator" };

const char *rpc_role_word(enum rpc_role r)
{
	return (size_t)r < sizeof(role_words) / sizeof(role_words[0]) ? role_words[r] : "?";
}

static const char *const auth_words[] = { "unix", "certificate", "token", "jwt", "review", "none" };

const char *rpc_auth_word(enum rpc_auth a)
{
	return (size_t)a < sizeof(auth_words) / sizeof(auth_words[0]) ? auth_words[a] : "?";
}

struct loop *server_loop(const struct rpc_server *s)
{
	return s->loop;
}

const struct rpc_opts *server_opts(const struct rpc_server *s)
{
	return &s->opts;
}

struct flight *server_flight(struct rpc_server *s)
{
	return &s->flight;
}

struct rpc_conn *server_conns(struct rpc_server *s)
{
	return s->conns;
}

struct flight_user *server_share(struct rpc_server *s, const struct rpc_peer *peer)
{
	if (peer->auth == RPC_AUTH_NONE)
		return &s->strangers;
	return peer->auth == RPC_AUTH_UNIX ? users_share(s->users, peer->uid)
					   : users_remote(s->users, peer->user, NULL);
}

struct rpc_call **server_calls(struct rpc_server *s)
{
	return &s->calls;
}

const struct rpc_method *server_method(const struct rpc_server *s, const char *name)
{
	for (const struct rpc_method *m = s->opts.methods; m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

enum rpc_role server_role(const struct rpc_server *s, const struct rpc_peer *peer)
{
	const bool local = peer->auth == RPC_AUTH_UNIX;
	char number[24] = "";

	if (peer->auth == RPC_AUTH_NONE)
		return RPC_ROLE_ANY;
	if (local && peer->uid == geteuid())
		return RPC_ROLE_OPERATOR;
	if (local)
		snprintf(number, sizeof(number), "%lu", (unsigned long)peer->uid);
	for (char **name = s->operators; name && *name; name++)
		if ((local || peer->scopes & SCOPE_OPERATE) &&
		    (strcmp(*name, peer->user) == 0 || strcmp(*name, number) == 0))
			return RPC_ROLE_OPERATOR;
	/* A token with this scope was issued by an operator. */
	if (peer->auth == RPC_AUTH_TOKEN && peer->scopes & SCOPE_OPERATE)
		return RPC_ROLE_OPERATOR;
	if (s->opts.is_manager && s->opts.is_manager(s->opts.arg, peer->user))
		return RPC_ROLE_MANAGER;
	return RPC_ROLE_USER;
}

void server_count_call(struct rpc_server *s, bool failed)
{
	s->stats.calls++;
	s->stats.failed += failed;
}

static unsigned per_user(const struct rpc_server *s)
{
	return s->opts.connections_per_user ? s->opts.connections_per_user
					    : GPUQ_CONNECTIONS_PER_UID;
}

/* True if a connection beside this many of its user, and this many in all, is one of a reserve. */
static bool is_beyond(const struct rpc_server *s, unsigned of_user, unsigned in_all)
{
	return of_user >= per_user(s) || in_all >= GPUQ_CONNECTIONS_MAX;
}

int server_may_last(const struct rpc_server *s, struct rpc_conn *c, struct gpuq_err *err)
{
	const unsigned least = GPUQ_LASTING_PER_USER, each = 2 * per_user(s);
	const unsigned most = each > least ? each : least;

	c->reserve =
		c->reserve && is_beyond(s, c->share->connections - 1, s->stats.connections - 1);
	if (!c->reserve && c->share->lasting < most)
		return 0;
	if (c->reserve)
		gpuq_fail(err, GPUQ_EBUSY,
			  "user %s has %u connections already (connections_per_user); further ones "
			  "are for short calls only",
			  c->peer.user, c->share->connections - 1);
	else
		gpuq_fail(err, GPUQ_EBUSY,
			  "user %s has %u calls already that last, such as waits and output that "
			  "is followed",
			  c->peer.user, most);
	if (err)
		err->retry_ms = 1000;
	return GPUQ_EBUSY;
}

void rpc_server_set_connections(struct rpc_server *s, unsigned per_user)
{
	s->opts.connections_per_user = per_user;
}

void server_conn_opened(struct rpc_server *s, struct rpc_conn *c)
{
	c->reserve = is_beyond(s, c->share->connections, s->stats.connections);
	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	s->stats.connections++;
	s->stats.accepted++;
	c->share->connections++;
}

void server_conn_gone(struct rpc_server *s, struct rpc_conn *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	s->stats.connections--;
	c->share->connections--;
	remote_known(s->remote, c);
}

/* At most one line a second; the next one says how many there were. */
static bool may_log(struct rpc_server *s, unsigned *not_logged)
{
	const int64_t now = loop_mono_us(s->loop);

	if (s->logged_us && now - s->logged_us < LOG_US) {
		s->not_logged++;
		return false;
	}
	s->logged_us = now;
	*not_logged = s->not_logged;
	s->not_logged = 0;
	return true;
}

void server_log_closed(struct rpc_server *s, const struct rpc_conn *c, const struct gpuq_err *err)
{
	unsigned more;

	if (may_log(s, &more))
		log_notice("rpc.closed",
			   "user=%s address=%s pid=%d client=%s why=%s text=%s not_logged=%u",
			   LOGS(c->peer.user), LOGS(c->address), (int)c->peer.pid, LOGS(c->client),
			   gpuq_err_name(err->code), LOGS(err->text), more);
}

void rpc_server_stats(const struct rpc_server *s, struct rpc_stats *out)
{
	*out = s->stats;
	out->open_calls = 0;
	for (const struct rpc_call *c = s->calls; c; c = c->all_next)
		out->open_calls++;
	out->flight_bytes = s->flight.bytes;
	out->waiting = s->flight.n_waiting;
}

/* Turn a connection away, saying why as far as one write goes. */
static void refuse(struct rpc_server *s, int fd, const struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	ssize_t sent = 0;
	unsigned more;

	gpuq_wire_closing(&b, err);
	if (!b.failed)
		sent = send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)sent; /* without a client there is no reply */
	gpuq_buf_done(&b);
	close(fd);
	s->stats.refused++;
	if (may_log(s, &more))
		log_warn("rpc.refused", "text=%s not_logged=%u", LOGS(err->text), more);
}

void server_log_turned_away(struct rpc_server *s, const char *address, const char *why)
{
	unsigned more;

	s->stats.refused++;
	if (may_log(s, &more))
		log_warn("rpc.refused", "address=%s text=%s not_logged=%u", LOGS(address),
			 LOGS(why), more);
}

void server_log_refused(struct rpc_server *s, const struct rpc_conn *c, const struct gpuq_err *err)
{
	unsigned more;

	s->stats.refused++;
	if (!may_log(s, &more))
		return;
	log_warn("auth.refused", "address=%s text=%s not_logged=%u", LOGS(c->address),
		 LOGS(err->text), more);
	if (s->opts.refused)
		s->opts.refused(s->opts.arg, c->address, err->text, more);
}

static int check_limits(struct rpc_server *s, const struct rpc_peer *peer, struct gpuq_err *err)
{
	const struct flight_user *u = server_share(s, peer);
	/* Operators may still come in, to see what is wrong. */
	const bool is_operator = server_role(s, peer) == RPC_ROLE_OPERATOR;
	const unsigned reserve =
		is_operator ? GPUQ_CONNECTIONS_RESERVE_OPERATOR : GPUQ_CONNECTIONS_RESERVE;
	const unsigned most = GPUQ_CONNECTIONS_MAX + (is_operator ? reserve : 0);

	if (!u || u->connections >= per_user(s) + reserve)
		gpuq_fail(err, GPUQ_EBUSY,
			  "user %s has %u connections already (connections_per_user, and %u for "
			  "short calls)",
			  peer->user, u ? u->connections : 0, reserve);
	else if (s->stats.connections >= most)
		gpuq_fail(err, GPUQ_EBUSY, "the server has %u connections already",
			  s->stats.connections);
	else
		return 0;
	if (err)
		err->retry_ms = 1000;
	return GPUQ_EBUSY;
}

int server_conn_known(struct rpc_server *s, struct rpc_conn *c, const struct rpc_peer *peer,
		      struct gpuq_err *err)
{
	struct rpc_peer known = *peer;
	struct flight_user *share = users_remote(s->users, peer->user, &known.user);
	int rc = share ? check_limits(s, &known, err) : gpuq_no_memory(err);

	if (rc < 0)
		return rc;
	remote_known(s->remote, c);
	flight_drop(s, c->share, c->counted);
	c->share->connections--;
	c->share = share;
	c->reserve = is_beyond(s, share->connections, s->stats.connections - 1);
	share->connections++;
	flight_add(s, share, c->counted);
	c->peer = known;
	return 0;
}

void rpc_server_drop(struct rpc_server *s, const char *credential, const struct gpuq_err *why)
{
	for (struct rpc_conn *c = s->conns; c; c = c->next)
		if (c->credential && strcmp(c->credential, credential) == 0)
			conn_close(c, why);
}

void rpc_server_set_certificate_user(struct rpc_server *s, bool by_email)
{
	struct gpuq_err why = GPUQ_ERR_INIT;

	if (s->opts.tls.by_email == by_email)
		return;
	s->opts.tls.by_email = by_email;
	gpuq_fail(&why, GPUQ_EAUTH, "auth.certificate_user was changed: connect again");
	for (struct rpc_conn *c = s->conns; c; c = c->next)
		if (c->peer.auth == RPC_AUTH_CERT)
			conn_close(c, &why);
}

bool rpc_server_uses(const struct rpc_server *s, const char *credential)
{
	for (const struct rpc_conn *c = s->conns; c; c = c->next)
		if (c->credential && strcmp(c->credential, credential) == 0)
			return true;
	return false;
}

void rpc_server_reload_tls(struct rpc_server *s)
{
	remote_reload(s->remote);
}

static void on_again(void *arg)
{
	struct listener *l = arg;

	l->again = NULL;
	l->accepts = 0;
	if (l->server->reserve_fd < 0)
		l->server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	evconnlistener_enable(l->ev);
}

static void pause_listener(struct listener *l, int64_t us)
{
	if (l->again)
		return;
	evconnlistener_disable(l->ev);
	l->again = loop_after(l->server->loop, us, on_again, l);
}

static void on_accept(struct evconnlistener *ev, evutil_socket_t fd, struct sockaddr *sa, int n,
		      void *arg)
{
	struct listener *l = arg;
	struct rpc_server *s = l->server;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct rpc_peer peer;

	(void)ev, (void)sa, (void)n;
	if (++l->accepts >= ACCEPTS_PER_TURN)
		pause_listener(l, 0);
	if (peer_of_socket(fd, s->users, loop_mono_us(s->loop), &peer) < 0) {
		gpuq_fail(&err, GPUQ_EIO, "cannot identify the connecting user");
		refuse(s, fd, &err);
	} else if (check_limits(s, &peer, &err) < 0) {
		refuse(s, fd, &err);
	} else if (!conn_new(s, fd, &peer)) {
		gpuq_fail(&err, GPUQ_ENOMEM, "no memory for a connection");
		refuse(s, fd, &err);
	}
}

/* No descriptor is left, or another lack: give up the reserve to tell the first in the
 * queue so, then leave the rest waiting for a while. */
static void on_accept_error(struct evconnlistener *ev, void *arg)
{
	struct listener *l = arg;
	struct rpc_server *s = l->server;
	const int error = errno;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int fd;

	if ((error == EMFILE || error == ENFILE) && s->reserve_fd >= 0) {
		close(s->reserve_fd);
		s->reserve_fd = -1;
		fd = accept4(evconnlistener_get_fd(ev), NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		gpuq_fail(&err, GPUQ_EBUSY, "the server is out of file descriptors");
		err.retry_ms = 1000;
		if (fd >= 0)
			refuse(s, fd, &err);
		s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	} else {
		log_warn("rpc.accept", "socket=%s error=%s", LOGS(l->path), strerror(error));
	}
	pause_listener(l, NO_FD_WAIT_US);
}

static void on_sweep(void *arg)
{
	struct rpc_server *s = arg;
	const int64_t now = loop_mono_us(s->loop);

	/* Nothing here kills a connection at once, so the list holds still. */
	for (struct rpc_conn *c = s->conns; c; c = c->next)
		conn_sweep(c, now);
	s->sweep = loop_after(s->loop, SWEEP_US, on_sweep, s);
}

int rpc_server_set_operators(struct rpc_server *s, const char *const *names, struct gpuq_err *err)
{
	size_t n = 0;
	char **copy;

	while (names && names[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(names[i]);
		if (!copy[i]) {
			while (i > 0)
				free(copy[--i]);
			free(copy);
			copy = NULL;
		}
	}
	if (!copy)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (char **x = s->operators; x && *x; x++)
		free(*x);
	free(s->operators);
	s->operators = copy;
	return 0;
}

int rpc_server_new(struct loop *l, const struct rpc_opts *opts, struct rpc_server **out,
		   struct gpuq_err *err)
{
	struct rpc_server *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	s->loop = l;
	s->opts = *opts;
	s->opts.operators = NULL;
	s->users = users_new();
	s->remote = remote_new(s);
	s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rc = s->users && s->remote ? rpc_server_set_operators(s, opts->operators, err)
				   : gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	if (rc < 0) {
		rpc_server_free(s);
		return rc;
	}
	s->sweep = loop_after(l, SWEEP_US, on_sweep, s);
	*out = s;
	return 0;
}

/* True if a server answers on the socket file. */
static bool answered(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes;

	if (fd < 0)
		return true; /* not known: leave it alone */
	/* EAGAIN: its queue is full, so there is one. */
	yes = connect(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 || errno != ECONNREFUSED;
	close(fd);
	return yes;
}

static int bind_failed(const char *path, struct gpuq_err *err)
{
	const int error = errno;

	if (error == EACCES || error == EPERM)
		return gpuq_fail(err, GPUQ_EPERM, "not allowed to create the socket %s", path);
	if (error == ENOENT)
		return gpuq_fail(err, GPUQ_EIO,
				 "cannot create the socket %s: its directory is missing", path);
	return gpuq_fail(err, GPUQ_EIO, "cannot create the socket %s: %s", path, strerror(error));
}

static int bind_path(int fd, const struct sockaddr_un *un, struct gpuq_err *err)
{
	/* No client may connect before the mode is set. */
	const mode_t old = umask(0177);
	struct stat st;
	int rc = bind(fd, (const struct sockaddr *)un, sizeof(*un));

	if (rc != 0 && errno == EADDRINUSE) {
		if (lstat(un->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
			umask(old);
			return gpuq_fail(err, GPUQ_EINVAL, "%s exists and is not a socket",
					 un->sun_path);
		}
		if (answered(un)) {
			umask(old);
			return gpuq_fail(err, GPUQ_EBUSY, "another server answers at %s",
					 un->sun_path);
		}
		unlink(un->sun_path);
		rc = bind(fd, (const struct sockaddr *)un, sizeof(*un));
	}
	umask(old);
	return rc == 0 ? 0 : bind_failed(un->sun_path, err);
}

static int open_socket(const char *path, mode_t mode, int *out, struct stat *st,
		       struct gpuq_err *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd, rc;

	if (path[0] != '/' || strlen(path) >= sizeof(un.sun_path))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'%s' is not a socket path: expected / and at most %zu characters",
				 path, sizeof(un.sun_path) - 1);
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return bind_failed(path, err);
	rc = bind_path(fd, &un, err);
	if (rc == 0 &&
	    (chmod(path, mode) != 0 || lstat(path, st) != 0 || listen(fd, BACKLOG) != 0)) {
		rc = bind_failed(path, err);
		unlink(path);
	}
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

static void listener_free(struct listener *l)
{
	struct stat st;

	if (l->ev)
		evconnlistener_free(l->ev); /* closes the socket */
	loop_cancel(l->again);
	if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	free(l->path);
	free(l);
}

int rpc_server_listen(struct rpc_server *s, const char *addr, mode_t mode, struct gpuq_err *err)
{
	struct listener *l;
	struct stat st;
	int fd = -1, rc;

	if (strncmp(addr, "tls://", 6) == 0)
		return remote_listen(s->remote, addr + 6, err);
	if (strncmp(addr, "unix:", 5) != 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'%s' is not an address to listen on: expected unix:/path or "
				 "tls://address:port",
				 addr);
	rc = open_socket(addr + 5, mode, &fd, &st, err);
	if (rc < 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (l) {
		l->server = s;
		l->dev = st.st_dev;
		l->ino = st.st_ino;
		l->path = strdup(addr + 5);
		l->ev = evconnlistener_new(loop_base(s->loop), on_accept, l,
					   LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, fd);
	}
	if (!l || !l->path || !l->ev) {
		if (!l || !l->ev)
			close(fd);
		if (l)
			listener_free(l);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a socket");
	}
	evconnlistener_set_error_cb(l->ev, on_accept_error);
	l->next = s->listeners;
	s->listeners = l;
	return 0;
}

static void stop_listening(struct rpc_server *s)
{
	struct listener *l;

	while ((l = s->listeners) != NULL) {
		s->listeners = l->next;
		listener_free(l);
	}
}

void rpc_server_stop(struct rpc_server *s)
{
	struct gpuq_err why = GPUQ_ERR_INIT;

	stop_listening(s);
	remote_stop(s->remote);
	gpuq_fail(&why, GPUQ_EUNREACH, "the server is stopping");
	for (struct rpc_conn *c = s->conns; c; c = c->next)
		conn_close(c, &why);
}

void rpc_server_free(struct rpc_server *s)
{
	if (!s)
		return;
	stop_listening(s);
	while (s->conns)
		conn_kill(s->conns);
	while (s->calls)
		call_abandon(s->calls);
	loop_cancel(s->sweep);
	remote_free(s->remote);
	for (char **x = s->operators; x && *x; x++)
		free(*x);
	free(s->operators);
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	users_free(s->users);
	free(s);
}
