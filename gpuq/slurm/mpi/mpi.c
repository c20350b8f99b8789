#include "config.h"

#include "gpuq/slurm/mpi/mpi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/slurm/mpi/mpi_gate.h"
#include "gpuq/slurm/mpi/mpi_int.h"

/* How long to wait for the srun that serves; told after TELL_US. */
#define JOIN_US 60000000
#define JOIN_UNASKED_US 5000000
#define TELL_US 3000000
/* Pods of a cluster may get their images one long after the other. */
#define JOIN_PODS_US (10 * JOIN_US)
#define JOIN_PODS_UNASKED_US JOIN_US

struct mpi {
	pid_t pid; /* 0 = another srun serves */
	int control;
	int fd; /* of the rank that is started next; -1 = none */
	bool pmi, network; /* ranks connect through it */
	long n;
	const char *id_base; /* "" = ranks inherit a connection */
	char *env[256]; /* of rank 0, into packet */
	size_t n_env;
	char packet[MPI_PACKET_MAX];
};

/* ---- types ---- */

/* A program that speaks PMI-2 alone is not served: most that are started with pmi2 speak PMI-1 too. */
static const struct type {
	const char *name;
	unsigned serves, must;
} types[] = {
	{ "none", 0, 0 },
	{ "pmi1", MPI_PMI, 0 },
	{ "pmi2", MPI_PMI, 0 },
	{ "pmix", MPI_PMIX, MPI_PMIX },
	{ "pmix_v3", MPI_PMIX, MPI_PMIX },
	{ "pmix_v4", MPI_PMIX, MPI_PMIX },
	{ "pmix_v5", MPI_PMIX, MPI_PMIX },
	{ "launch", MPI_LAUNCH, MPI_LAUNCH },
};

void mpi_print_types(void)
{
	char *module = mpi_module();

	puts("MPI plugin types are...");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!(types[i].must & MPI_PMIX) || module)
			printf("\t%s\n", types[i].name);
	free(module);
}

static const struct type *find_type(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

bool mpi_is_type(const char *type)
{
	return find_type(type) != NULL;
}

bool mpi_is_launch(const char *type)
{
	const struct type *t = type ? find_type(type) : NULL;

	return t && t->serves == MPI_LAUNCH;
}

/* ---- the process ---- */

static int read_hello(struct mpi *m, ssize_t n, struct gpuq_err *err)
{
	const char *end = m->packet + (n > 0 ? n : 0);
	char *at = m->packet;

	if (n <= 0)
		return gpuq_fail(err, GPUQ_EINTERNAL, "the process that serves MPI ended");
	m->packet[n] = '\0';
	if (*at)
		return gpuq_fail(err, GPUQ_EINVAL, "%s", at);
	m->id_base = ++at;
	for (at += strlen(at) + 1; at < end && m->n_env < 255; at += strlen(at) + 1)
		m->env[m->n_env++] = at;
	return 0;
}

static int take_hello(struct mpi *m, struct gpuq_err *err)
{
	return read_hello(m, recv(m->control, m->packet, sizeof(m->packet) - 1, 0), err);
}

socklen_t mpi_address(struct sockaddr_un *a, const char *shared)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "gpuq-mpi-%ld-%s", (long)geteuid(),
		 shared);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

bool mpi_is_ours(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

/* A process of its own, at the other end of m->control. joined is NULL at the first part. */
static int serve(struct mpi *m, const struct mpi_step *s, const struct type *t,
		 const struct mpi_joined *joined, struct gpuq_err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return gpuq_fail(err, GPUQ_EINTERNAL, "the process that serves MPI: %s",
				 strerror(errno));
	m->control = pair[0];
	fflush(NULL);
	m->pid = cli_fork(SIG_IGN);
	if (m->pid == 0) {
		close(pair[0]);
		mpi_serve(s, t->serves, t->must, joined, pair[1]);
	}
	close(pair[1]);
	if (m->pid < 0)
		return gpuq_fail(err, GPUQ_EINTERNAL, "the process that serves MPI: %s",
				 strerror(errno));
	return take_hello(m, err);
}

/* Have our process join that of another machine. */
static int join_elsewhere(struct mpi *m, const struct mpi_step *s, const struct type *t,
			  struct gpuq_err *err)
{
	struct mpi_joined joined = { .strings = m->packet };
	int rc;

	joined.gate = mpi_gate_join(s, m->packet, &joined.n);
	if (joined.gate < 0)
		return GPUQ_EUNREACH;
	rc = serve(m, s, t, &joined, err);
	close(joined.gate);
	return rc;
}

/* Try once. One of a step before this, whose tasks have not ended yet, hangs up. */
static int join_once(struct mpi *m, const struct mpi_step *s, struct gpuq_err *err)
{
	struct sockaddr_un a;
	socklen_t n;

	n = mpi_address(&a, s->shared);
	m->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return m->control >= 0 && connect(m->control, (struct sockaddr *)&a, n) == 0 &&
			       mpi_is_ours(m->control)
		       ? take_hello(m, err)
		       : GPUQ_EUNREACH;
}

/* The process of another srun. Pods of a cluster do not start at the same time. */
static int join(struct mpi *m, const struct mpi_step *s, const struct type *t, struct gpuq_err *err)
{
	const bool waits = s->type || s->host;
	const int64_t begun_us = cli_mono_us();
	const int64_t limit_us = s->host   ? (s->type ? JOIN_PODS_US : JOIN_PODS_UNASKED_US)
				 : s->type ? JOIN_US
					   : JOIN_UNASKED_US;
	bool told = false;

	for (;; poll(NULL, 0, s->host ? 200 : 20)) {
		const int rc = s->host ? join_elsewhere(m, s, t, err) : join_once(m, s, err);

		if (rc == 0 || m->pid > 0)
			return rc;
		if (m->control >= 0)
			close(m->control);
		m->control = -1;
		*err = (struct gpuq_err)GPUQ_ERR_INIT;
		if (cli_signals_seen())
			return gpuq_fail(err, GPUQ_ECANCELED, "interrupted");
		if (cli_mono_us() >= begun_us + limit_us)
			return gpuq_fail(err, GPUQ_ETIMEOUT,
					 "the first pod has not started its part of this step%s",
					 s->host ? ", or its gpuq is older" : "");
		if (!told && waits && cli_mono_us() >= begun_us + TELL_US) {
			cli_say("waiting for the first pod to start its part of this step");
			told = true;
		}
	}
}

int mpi_start(const struct mpi_step *s, struct mpi **out, struct gpuq_err *err)
{
	static const struct type all = { "", MPI_PMI | MPI_PMIX, 0 };
	const struct type *t = s->type ? find_type(s->type) : &all;
	struct mpi *m;
	int rc;

	*out = NULL;
	if (!t)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--mpi=%s is not known: --mpi=list prints the types", s->type);
	if (t->serves == 0)
		return 0;
	if (s->n > MPI_RANKS_MAX)
		return !s->type ? 0
				: gpuq_fail(err, GPUQ_EINVAL, "--mpi serves at most %d tasks",
					    MPI_RANKS_MAX);
	m = calloc(1, sizeof(*m));
	if (!m)
		return gpuq_no_memory(err);
	m->fd = m->control = -1;
	m->n = s->n;
	m->network = mpi_is_networked(s);
	m->pmi = (t->serves & MPI_PMI) != 0;
	rc = s->part > 0 ? join(m, s, t, err) : serve(m, s, t, NULL, err);
	if (rc == 0) {
		*out = m;
		return 0;
	}
	mpi_stop(m, 1);
	/* If it was not asked for, the program may need none. */
	return rc == GPUQ_ETIMEOUT && !s->type ? 0 : rc;
}

void mpi_stop(struct mpi *m, int code)
{
	const long end = -(long)code;

	if (!m)
		return;
	if (m->fd >= 0)
		close(m->fd);
	if (code && m->pid > 0)
		send(m->control, &end, sizeof(end), MSG_NOSIGNAL);
	else if (code)
		send(m->control, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (m->control >= 0)
		close(m->control);
	while (m->pid > 0 && waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
		if (cli_signals_seen())
			kill(m->pid, SIGKILL);
	free(m);
}

/* ---- ranks ---- */

static int hand_over(int control, long rank, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} extra = { .bytes = { 0 } };
	struct iovec iov = { &rank, sizeof(rank) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = extra.bytes,
			      .msg_controllen = sizeof(extra.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(control, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

void mpi_prepare(struct mpi *m, long rank)
{
	int pair[2];

	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	if (!m->pmi || m->network)
		return;
	/* Without a connection the rank is alone, as it is without srun. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	if (hand_over(m->control, rank, pair[1]) == 0)
		m->fd = pair[0];
	else
		close(pair[0]);
	close(pair[1]);
}

static void set_number(const char *name, long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	setenv(name, text, 1);
}

void mpi_become(const struct mpi *m, long rank)
{
	for (size_t i = 0; i < m->n_env; i++)
		putenv(m->env[i]);
	if (getenv("PMIX_RANK"))
		set_number("PMIX_RANK", rank);
	if (!m->pmi)
		return;
	/* MPICH 5 does not choose where it is offered both. */
	if (getenv("PMIX_RANK"))
		setenv("MPIR_CVAR_PMI_VERSION", "1", 0);
	if (m->fd >= 0) {
		fcntl(m->fd, F_SETFD, 0);
		set_number("PMI_FD", m->fd);
	}
	if (*m->id_base)
		set_number("PMI_ID", strtol(m->id_base, NULL, 10) + rank);
	set_number("PMI_RANK", rank);
	set_number("PMI_SIZE", m->n);
}

int mpi_aborted(struct mpi *m)
{
	int code;

	return recv(m->control, &code, sizeof(code), MSG_DONTWAIT) == sizeof(code) ? code : -1;
}

int mpi_wait(struct mpi *m)
{
	int code = 0;

	cli_signals_catch();
	while (recv(m->control, &code, sizeof(code), 0) < 0 && errno == EINTR)
		if (cli_signals_seen())
			return 128 + cli_signals_seen();
	return code;
}

bool mpi_is_variable(const char *entry)
{
	return strncmp(entry, "PMI_", 4) == 0 || strncmp(entry, "PMIX_", 5) == 0;
}
