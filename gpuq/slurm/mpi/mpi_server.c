/* The process that serves MPI: the PMI-1 connections of the ranks, and the module of PMIx, which
 * has its own thread. It ends when srun does. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuq/file.h"
#include "gpuq/cli.h"
#include "gpuq/slurm/carry.h"
#include "gpuq/slurm/mpi/exchange.h"
#include "gpuq/slurm/mpi/launch.h"
#include "gpuq/slurm/mpi/mpi_gate.h"
#include "gpuq/slurm/mpi/mpi_int.h"
#include "gpuq/slurm/mpi/pmi.h"
#include "gpuq/slurm/mpi/pmix.h"
#include "libgpuq/buf.h"

#define WRONG_IDS_MAX 100 /* then no rank may connect any more */
#define GUESTS_MAX 1024
#define CALLERS_MAX 64
#define PORT "PMI_PORT="
#define NAMESPACE "PMIX_NAMESPACE="
#define MEET_US                                                                                    \
	600000000 /* how long a launcher waits for the other parts; told after MEET_TELL_US */
#define MEET_TELL_US 3000000
#define STRANGERS_MAX 64 /* connections that have not named their rank */

struct conn {
	int fd; /* -1 = none */
	long rank; /* -1 = not known yet */
	size_t n;
	char in[PMI_LINE_MAX];
};

struct server {
	const struct mpi_step *step;
	int control; /* -1 = srun has ended its part */
	int listener, gate; /* for ranks; for other sruns. -1 = none */
	int guests[GUESTS_MAX]; /* sruns that joined; -1 = has ended */
	int n_guests, n_admitted; /* all that joined, also those of other machines */
	struct mpi_caller callers[CALLERS_MAX];
	struct gpuq_buf hello;
	uint32_t id_base;
	int n_wrong;
	struct pmi *pmi;
	struct conn *conns; /* one for each rank, then those of strangers */
	struct pollfd *fds;
	long n_conns;
	const struct pmix_module *pmix;
	struct exchange_host host;
	struct exchange *exchange; /* NULL = all ranks are of this machine */
	struct launch *launch; /* NULL = ranks are served */
	bool launched; /* its command has been let go */
	bool told, told_older; /* that it waits; that one could not join */
	int64_t begun_us;
	int out; /* standard output, of commands that are launched */
	int ended; /* the exit code of our tasks, which failed */
	char name[33]; /* of PMIx's namespace */
	char folder[256];
};

/* ---- PMIx ---- */

char *mpi_module(void)
{
	char path[FILE_PATH_BYTES];

	if (!file_beside("slurm/mpi/.libs/" PMIX_MODULE_FILE, path) &&
	    (access(PKGLIBDIR "/" PMIX_MODULE_FILE, R_OK) == 0 ||
	     !file_beside(FILE_MOVED_LIB PMIX_MODULE_FILE, path)))
		snprintf(path, sizeof(path), "%s", PKGLIBDIR "/" PMIX_MODULE_FILE);
	return access(path, R_OK) == 0 ? strdup(path) : NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

static int make_folder(struct server *s, char why[256])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(s->folder, sizeof(s->folder), "%s/gpuq-mpi-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(s->folder))
		return 0;
	snprintf(why, 256, "%.200s: %.50s", s->folder, strerror(errno));
	*s->folder = '\0';
	return -1;
}

/* Load the module and start it. Returns 0, or -1 with a sentence in why. */
static int start_pmix(struct server *s, char ***env, char why[256])
{
	char *file = mpi_module();
	void *lib = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
	const struct pmix_module *m = lib ? dlsym(lib, PMIX_MODULE_SYMBOL) : NULL;
	char components[FILE_PATH_BYTES];
	struct pmix_step step;

	snprintf(why, 256, "%s",
		 !file  ? "this gpuq was built without openpmix (libpmix-dev)"
		 : !lib ? dlerror()
			: "its module is of another version");
	free(file);
	if (!m || m->version != PMIX_MODULE_VERSION)
		return -1;
	if (make_folder(s, why) < 0)
		return -1;
	if (!*s->name)
		cli_key(s->name);
	step = (struct pmix_step){ .name = s->name,
				   .folder = s->folder,
				   .n = s->step->n,
				   .per_node = s->step->per_node,
				   .node = s->exchange ? s->step->part : 0,
				   .nodes = s->step->nodes,
				   .asks = s->exchange ? exchange_asks(s->exchange) : -1 };
	/* Files that the ranks share would stay when all are killed. */
	setenv("PMIX_MCA_gds", "hash", 1);
	/* Carried into a pod, libpmix has its components there. */
	if (file_beside(CARRY_COMPONENTS, components))
		setenv("PMIX_MCA_mca_base_component_path", components, 1);
	if (m->start(&step, env, why) < 0)
		return -1;
	s->pmix = m;
	if (s->exchange)
		exchange_serve(s->exchange, m);
	return 0;
}

/* ---- PMI-1 ---- */

static void hang_up(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	c->n = 0;
}

/* A rank that does not read what it asked for is not of this protocol. */
static void send_line(void *arg, long rank, const char *line, size_t n)
{
	struct server *s = arg;
	struct conn *c = &s->conns[rank];

	if (c->fd >= 0 && send(c->fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
		hang_up(c);
}

static void abort_here(void *arg, int code)
{
	const struct server *s = arg;

	send(s->control, &code, sizeof(code), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void abort_all(void *arg, int code)
{
	const struct server *s = arg;

	abort_here(arg, code);
	for (int i = 0; i < s->n_guests; i++)
		send(s->guests[i], &code, sizeof(code), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (s->exchange)
		exchange_abort(s->exchange, code);
}

/* The first line of a connection by the network: cmd=initack pmiid=N. */
static int welcome(struct server *s, struct conn *c, const char *line)
{
	const char *id = strstr(line, "pmiid=");
	const long rank = id ? strtol(id + 6, NULL, 10) - (long)s->id_base : -1;
	char set[128];
	int n;

	if (strncmp(line, "cmd=initack", 11) != 0 || rank < 0 || rank >= s->step->n ||
	    s->conns[rank].fd >= 0) {
		s->n_wrong++;
		return -1;
	}
	s->conns[rank].fd = c->fd;
	s->conns[rank].n = 0;
	c->fd = -1;
	n = snprintf(set, sizeof(set),
		     "cmd=initack rc=0\ncmd=set size=%ld\ncmd=set rank=%ld\ncmd=set debug=0\n",
		     s->step->n, rank);
	send_line(s, rank, set, (size_t)n);
	return 0;
}

static int take_line(struct server *s, struct conn *c, char *line)
{
	return c->rank < 0 ? welcome(s, c, line) : pmi_line(s->pmi, c->rank, line);
}

static void read_some(struct server *s, struct conn *c)
{
	const ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, MSG_DONTWAIT);
	char *end, *at = c->in;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	c->n += (size_t)n;
	while (c->fd >= 0 && (end = memchr(at, '\n', c->n - (size_t)(at - c->in)))) {
		*end = '\0';
		if (take_line(s, c, at) < 0)
			hang_up(c);
		at = end + 1;
	}
	if (c->fd < 0)
		return;
	c->n -= (size_t)(at - c->in);
	memmove(c->in, at, c->n);
	if (c->n == sizeof(c->in))
		hang_up(c);
}

static int listen_for_ranks(struct server *s)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr =
					 htonl(s->step->host ? INADDR_ANY : INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(s->listener, 1024) < 0 ||
	    getsockname(s->listener, (struct sockaddr *)&a, &n) < 0 ||
	    getrandom(&s->id_base, sizeof(s->id_base), 0) < 0)
		return -1;
	s->id_base = (s->id_base & 0x3fffffff) + 1;
	return ntohs(a.sin_port);
}

static void accept_one(struct server *s)
{
	const int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

	for (long i = s->step->n; i < s->n_conns && fd >= 0; i++)
		if (s->conns[i].fd < 0) {
			s->conns[i].fd = fd;
			s->conns[i].n = 0;
			return;
		}
	if (fd >= 0)
		close(fd);
}

/* The connection of a rank, from srun. Returns -1 when srun has closed, -2 when all is to end. */
static int take_rank(struct server *s)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} extra;
	long rank = -1;
	struct iovec iov = { &rank, sizeof(rank) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = extra.bytes,
			      .msg_controllen = sizeof(extra.bytes) };
	const ssize_t n = recvmsg(s->control, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n > 0 && rank < 0)
		s->ended = (int)-rank;
	if (n <= 0 || rank < 0)
		return n > 0 ? -2 : -1;
	if (!c || rank >= s->step->n)
		return 0;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	s->conns[rank].fd = fd;
	return 0;
}

/* ---- other sruns ---- */

static int open_gate(struct server *s)
{
	struct sockaddr_un a;
	const socklen_t n = mpi_address(&a, s->step->shared);

	for (int i = 0; s->step->host && i < 500 && s->gate < 0; i++) {
		s->gate = mpi_gate_open(s->step);
		if (s->gate < 0)
			poll(NULL, 0, 20);
	}
	if (s->step->host)
		return s->gate < 0 ? -1 : 0;

	s->gate = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The one of the step before may not have closed yet. */
	for (int i = 0; s->gate >= 0 && bind(s->gate, (struct sockaddr *)&a, n) < 0; i++) {
		if (errno != EADDRINUSE || i == 500)
			return -1;
		poll(NULL, 0, 20);
	}
	return s->gate >= 0 && listen(s->gate, GUESTS_MAX) == 0 ? 0 : -1;
}

static void admit(struct server *s, int fd)
{
	if (s->n_admitted == GUESTS_MAX ||
	    send(fd, s->hello.data, s->hello.len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)s->hello.len) {
		close(fd);
		return;
	}
	if (s->exchange)
		exchange_add(s->exchange, fd);
	else
		s->guests[s->n_guests++] = fd;
	/* All parts have started: what connects now is of the next step. */
	if (++s->n_admitted == s->step->n_joining) {
		close(s->gate);
		s->gate = -1;
	}
}

static void dismiss(struct mpi_caller *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Words of a caller, of which none can guess a part. */
static void listen_to(struct server *s, struct mpi_caller *c)
{
	const uint32_t size = htonl((uint32_t)s->hello.len);
	const enum mpi_heard heard = mpi_gate_hear(s->step, c);
	const int fd = c->fd;

	if (heard == MPI_HEARD_SOME)
		return;
	if (heard == MPI_HEARD_OLDER && !s->told_older)
		cli_say("error: the gpuq of another pod is older, and cannot join this step");
	s->told_older |= heard == MPI_HEARD_OLDER;
	if (heard != MPI_HEARD_KEY || s->gate < 0 ||
	    send(fd, &size, sizeof(size), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(size)) {
		dismiss(c);
		return;
	}
	c->fd = -1;
	admit(s, fd);
}

static void open_door(struct server *s)
{
	const int fd = accept4(s->gate, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && !s->step->host && mpi_is_ours(fd)) {
		admit(s, fd);
		return;
	}
	for (int i = 0; i < CALLERS_MAX && fd >= 0 && s->step->host; i++)
		if (s->callers[i].fd < 0) {
			s->callers[i] = (struct mpi_caller){ .fd = fd };
			return;
		}
	if (fd >= 0)
		close(fd);
}

static void see_off(struct server *s, int i)
{
	int code = 0;
	const ssize_t n = recv(s->guests[i], &code, sizeof(code), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(s->guests[i]);
	s->guests[i] = -1;
	if (n == sizeof(code) && code)
		abort_all(s, code & 0xff);
}

static bool any_guest(const struct server *s)
{
	if (s->exchange && s->step->part == 0 && exchange_is_open(s->exchange))
		return true;
	for (int i = 0; i < s->n_guests; i++)
		if (s->guests[i] >= 0)
			return true;
	return false;
}

static long fill(struct server *s)
{
	long n = 0;

	s->fds[n++] = (struct pollfd){ s->control, POLLIN, 0 };
	s->fds[n++] = (struct pollfd){ s->n_wrong < WRONG_IDS_MAX ? s->listener : -1, POLLIN, 0 };
	s->fds[n++] = (struct pollfd){ s->gate, POLLIN, 0 };
	for (long i = 0; i < s->n_conns; i++)
		s->fds[n++] = (struct pollfd){ s->conns[i].fd, POLLIN, 0 };
	for (int i = 0; i < CALLERS_MAX; i++)
		s->fds[n++] = (struct pollfd){ s->callers[i].fd, POLLIN, 0 };
	for (int i = 0; i < s->n_guests; i++)
		s->fds[n++] = (struct pollfd){ s->guests[i], POLLIN, 0 };
	if (s->launch)
		n += launch_fill(s->launch, s->fds + n);
	return s->exchange ? n + exchange_fill(s->exchange, s->fds + n) : n;
}

/* ---- a launcher ---- */

static bool is_whole(const struct server *s)
{
	return s->exchange ? exchange_is_whole(s->exchange) : s->n_admitted >= s->step->n_joining;
}

/* Let the command of the first part go when all other parts are there. Returns -1 after a refusal. */
static int let_go(struct server *s)
{
	struct gpuq_buf own = GPUQ_BUF_INIT;
	const int64_t now_us = cli_mono_us();
	char why[256] = "the other pods have not started their parts of this step";
	int rc = 0;

	if (now_us > s->begun_us + MEET_TELL_US && !s->told)
		cli_say("waiting for the other pods to start their parts of this step");
	s->told |= now_us > s->begun_us + MEET_TELL_US;
	if (!is_whole(s) && now_us < s->begun_us + MEET_US)
		return 0;
	gpuq_buf_add(&own, "\0", 2);
	if (!is_whole(s) || make_folder(s, why) < 0 ||
	    launch_open(s->launch, s->folder, &own) < 0) {
		gpuq_buf_clear(&own);
		gpuq_buf_printf(&own, "--mpi=launch: %s", why);
		rc = -1;
	}
	send(s->control, own.data, own.len, MSG_NOSIGNAL);
	gpuq_buf_done(&own);
	s->launched = true;
	return rc;
}

/* How long to wait for what is not a descriptor's; -1 = not at all. */
static int pause_ms(const struct server *s)
{
	if (s->launch && launch_is_busy(s->launch))
		return 50;
	return s->launch && !s->launched ? 500 : -1;
}

/* True when there is nothing to serve any more. */
static bool is_over(const struct server *s)
{
	if (s->launch && s->exchange && s->step->part > 0 && !exchange_is_open(s->exchange))
		return true;
	return s->control < 0 && (s->launch || !any_guest(s));
}

/* ---- the loop ---- */

static void attend(struct server *s)
{
	while (!is_over(s)) {
		if (s->launch && !s->launched && let_go(s) < 0)
			return;
		const long n = fill(s);
		struct pollfd *conns = s->fds + 3, *callers = conns + s->n_conns,
			      *guests = callers + CALLERS_MAX, *others = guests + s->n_guests;
		int rc = 0;

		if (poll(s->fds, (nfds_t)n, pause_ms(s)) < 0)
			continue;
		for (long i = 0; i < s->n_conns; i++)
			if (conns[i].revents && s->conns[i].fd == conns[i].fd)
				read_some(s, &s->conns[i]);
		for (int i = 0; &guests[i] < others; i++)
			if (guests[i].revents)
				see_off(s, i);
		if (s->launch) {
			launch_attend(s->launch, others);
			others += LAUNCH_FDS;
		}
		if (s->exchange)
			exchange_attend(s->exchange, others);
		for (int i = 0; i < CALLERS_MAX; i++)
			if (callers[i].revents && s->callers[i].fd == callers[i].fd)
				listen_to(s, &s->callers[i]);
		if (s->fds[1].revents)
			accept_one(s);
		if (s->fds[2].revents && s->gate >= 0)
			open_door(s);
		if (s->fds[0].revents)
			rc = take_rank(s);
		if (rc < -1) {
			abort_all(s, s->ended);
			return;
		}
		if (rc < 0) {
			close(s->control);
			s->control = -1;
		}
	}
}

static int start_pmi(struct server *s)
{
	s->n_conns = s->step->n + (mpi_is_networked(s->step) ? STRANGERS_MAX : 0);
	s->conns = calloc((size_t)s->n_conns, sizeof(*s->conns));
	s->fds = calloc((size_t)s->n_conns + 3 + CALLERS_MAX + GUESTS_MAX + LAUNCH_FDS +
				EXCHANGE_FDS((size_t)s->step->n),
			sizeof(*s->fds));
	s->pmi = pmi_new(s->step->n, s->step->per_node, send_line, abort_all, s);
	if (!s->conns || !s->fds || !s->pmi)
		return -1;
	for (long i = 0; i < s->n_conns; i++) {
		s->conns[i].fd = -1;
		s->conns[i].rank = i < s->step->n ? i : -1;
	}
	return 0;
}

/* ---- the process ---- */

static void settle(void)
{
	static const int deaf[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
				    SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE };
	struct rlimit files;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Signals end it by way of srun and its tasks. */
	for (size_t i = 0; i < sizeof(deaf) / sizeof(deaf[0]); i++)
		signal(deaf[i], SIG_IGN);
	prctl(PR_SET_NAME, "srun");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		close(null);
	}
}

static void put(struct gpuq_buf *b, const char *text)
{
	gpuq_buf_add(b, text, strlen(text) + 1);
}

/* Write what an srun is told, whose ranks reach us at this address, if they speak PMI. */
static void put_hello(const struct server *s, const char *address, char **env, struct gpuq_buf *out)
{
	gpuq_buf_addc(out, '\0');
	if (address)
		gpuq_buf_printf(out, "%u", s->id_base);
	gpuq_buf_addc(out, '\0');
	if (address) {
		gpuq_buf_printf(out, PORT "%s", address);
		gpuq_buf_addc(out, '\0');
	}
	for (char **e = env; e && *e; e++)
		if (mpi_is_variable(*e))
			put(out, *e);
}

/* Read the strings of the first part: where its PMI is, and the name of PMIx's namespace. */
static const char *read_hello(struct server *s, const struct mpi_joined *joined)
{
	const char *at = joined->strings, *end = at + joined->n, *address = NULL;

	for (int i = 0; at < end; i++, at += strnlen(at, (size_t)(end - at)) + 1) {
		if (i == 1)
			s->id_base = (uint32_t)strtoul(at, NULL, 10);
		if (strncmp(at, PORT, strlen(PORT)) == 0)
			address = at + strlen(PORT);
		if (strncmp(at, NAMESPACE, strlen(NAMESPACE)) == 0)
			snprintf(s->name, sizeof(s->name), "%s", at + strlen(NAMESPACE));
	}
	return address;
}

/* The first part: open for ranks and other sruns. Returns 0 or -1 with a sentence in why; port is 0 where ranks of
 * PMI-1 inherit their connections, or have none. */
static int open_first(struct server *s, unsigned serves, int *port, char why[256])
{
	if (s->step->shared && open_gate(s) < 0) {
		snprintf(why, 256, "another srun serves the same command of this job");
		return -1;
	}
	if (!(serves & MPI_PMI) || !mpi_is_networked(s->step))
		return 0;
	*port = listen_for_ranks(s);
	return *port < 0 ? -1 : 0;
}

/* ---- what other parts ask ---- */

static void on_run(void *arg, uint32_t id, const char *command, size_t n)
{
	struct server *s = arg;

	if (s->launch)
		launch_run(s->launch, id, command, n);
	else
		exchange_ran(s->exchange, id, 255);
}

static void on_halt(void *arg, uint32_t id)
{
	const struct server *s = arg;

	if (s->launch)
		launch_halt(s->launch, id);
}

static void on_ran(void *arg, uint32_t id, int code)
{
	const struct server *s = arg;

	if (s->launch)
		launch_ran(s->launch, id, code);
}

static void on_gone(void *arg, long part)
{
	const struct server *s = arg;

	if (s->launch && s->step->part == 0)
		launch_gone(s->launch, part);
}

static int open_exchange(struct server *s, const struct mpi_joined *joined)
{
	s->host = (struct exchange_host){ .arg = s,
					  .abort = joined ? abort_here : abort_all,
					  .run = on_run,
					  .halt = on_halt,
					  .ran = on_ran,
					  .gone = on_gone };
	s->exchange = exchange_new(s->step, &s->host);
	if (s->exchange && joined)
		exchange_add(s->exchange, joined->gate);
	return s->exchange ? 0 : -1;
}

/* Tell srun how to reach us; its ranks need no name for that, which might not be known yet. Returns 0, or -1 after a
 * refusal. */
static int greet(struct server *s, unsigned serves, unsigned must, const struct mpi_joined *joined)
{
	struct gpuq_buf own = GPUQ_BUF_INIT;
	const char *address = joined ? read_hello(s, joined) : NULL;
	char why[256] = "out of memory", **env = NULL, here[300], there[300], name[64];
	char *only_name[] = { name, NULL };
	int port = 0, rc = start_pmi(s);

	if (joined && *s->name)
		must = serves & MPI_PMIX;
	else if (joined)
		serves &= ~(unsigned)MPI_PMIX;
	if (rc == 0 && s->step->host)
		rc = open_exchange(s, joined);
	if (rc == 0 && serves & MPI_LAUNCH) {
		s->launch = launch_new(s->step, s->exchange, s->out);
		s->launched = joined != NULL;
		rc = s->launch ? 0 : -1;
	}
	if (rc == 0 && (serves & MPI_PMIX) && start_pmix(s, &env, why) < 0 && (must & MPI_PMIX))
		rc = -1;
	if (rc == 0 && !joined)
		rc = open_first(s, serves, &port, why);
	if (rc < 0)
		gpuq_buf_printf(&own, "--mpi=%s: %s", s->step->type ? s->step->type : "all", why);
	snprintf(here, sizeof(here), "127.0.0.1:%d", port);
	snprintf(there, sizeof(there), "%.255s:%d", s->step->host ? s->step->host : "127.0.0.1",
		 port);
	snprintf(name, sizeof(name), NAMESPACE "%s", s->name);
	put_hello(s, port > 0 ? here : address, env, &own);
	if (s->step->host)
		put_hello(s, port > 0 ? there : NULL, s->pmix ? only_name : NULL, &s->hello);
	else
		put_hello(s, port > 0 ? there : NULL, env, &s->hello);
	if (s->hello.len > MPI_PACKET_MAX || !s->hello.data || own.len > MPI_PACKET_MAX ||
	    !own.data)
		return -1;
	if (rc < 0 || !s->launch || joined)
		send(s->control, own.data, own.len, MSG_NOSIGNAL);
	gpuq_buf_done(&own);
	return rc;
}

void mpi_serve(const struct mpi_step *step, unsigned serves, unsigned must,
	       const struct mpi_joined *joined, int fd)
{
	struct server s = {
		.step = step,
		.control = fd,
		.listener = -1,
		.gate = -1,
		.hello = GPUQ_BUF_INIT,
		.begun_us = cli_mono_us(),
		.out = fcntl(1, F_DUPFD_CLOEXEC, 3),
	};

	settle();
	for (int i = 0; i < CALLERS_MAX; i++)
		s.callers[i].fd = -1;
	if (greet(&s, serves, must, joined) == 0)
		attend(&s);
	if (s.exchange)
		exchange_flush(s.exchange);
	if (s.launch)
		launch_end(s.launch);
	if (s.pmix)
		s.pmix->stop();
	if (*s.folder)
		nftw(s.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}
