#include "config.h"

#include "gpuq/slurm/mpi/mpi_gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/slurm/mpi/hmac.h"
#include "libgpuq/base/fnv.h"

#define PORT_FIRST 20000 /* below those that the kernel gives to connections */
#define PORTS 12000
#define ANSWER_S 5
#define BACKLOG 1024
#define GREETING "gpuq-mpi2 "
#define OLD_GREETING "gpuq-mpi "

static uint16_t port_of(const struct mpi_step *s)
{
	return (uint16_t)(PORT_FIRST +
			  gpuq_fnv(GPUQ_FNV_START, s->shared, strlen(s->shared)) % PORTS);
}

int mpi_gate_open(const struct mpi_step *s)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
					  .sin6_port = htons(port_of(s)),
					  .sin6_addr = IN6ADDR_ANY_INIT };
	const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port_of(s)) };
	const int on = 1, off = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const bool is_six = fd >= 0;
	int rc;

	if (fd < 0)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (is_six)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	rc = is_six ? bind(fd, (const struct sockaddr *)&six, sizeof(six))
		    : bind(fd, (const struct sockaddr *)&four, sizeof(four));
	if (rc == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	close(fd);
	return -1;
}

/* ---- the key, which is not sent ---- */

/* The proof of one side, which the other cannot send back to it. */
static void prove(const struct mpi_step *s, const char *side, const char *joins, const char *serves,
		  char out[HMAC_HEX_BYTES])
{
	const char *const words[] = { "gpuq-mpi2", side, joins, serves, s->shared, NULL };

	hmac_words(s->key, words, out);
}

static bool differs(const char *a, const char *b, size_t n)
{
	unsigned char d = 0;

	for (size_t i = 0; i < n; i++)
		d |= (unsigned char)(a[i] ^ b[i]);
	return d != 0;
}

static bool is_number(const char *text, size_t n)
{
	return n == MPI_NUMBER_BYTES - 1 && strspn(text, "0123456789abcdef") >= n;
}

/* Its first line, without line feed. */
static enum mpi_heard answer(const struct mpi_step *s, struct mpi_caller *c)
{
	const size_t head = strlen(GREETING), n_name = strlen(s->shared);
	char number[MPI_NUMBER_BYTES], ours[MPI_NUMBER_BYTES], proof[HMAC_HEX_BYTES],
		line[MPI_LINE_MAX];
	int n;

	if (strncmp(c->in, OLD_GREETING, strlen(OLD_GREETING)) == 0)
		return MPI_HEARD_OLDER;
	if (strncmp(c->in, GREETING, head) != 0 ||
	    !is_number(c->in + head, strcspn(c->in + head, " ")) ||
	    strlen(c->in) != head + sizeof(number) + n_name ||
	    strcmp(c->in + head + sizeof(number), s->shared) != 0)
		return MPI_HEARD_WRONG;
	snprintf(number, sizeof(number), "%.32s", c->in + head);
	cli_key(ours);
	prove(s, "joins", number, ours, proof);
	snprintf(c->want, sizeof(c->want), "%s\n", proof);
	prove(s, "serves", number, ours, proof);
	n = snprintf(line, sizeof(line), GREETING "%s %s\n", ours, proof);
	c->answered = true;
	c->n = 0;
	return send(c->fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n ? MPI_HEARD_SOME
									      : MPI_HEARD_WRONG;
}

enum mpi_heard mpi_gate_hear(const struct mpi_step *s, struct mpi_caller *c)
{
	const ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, MSG_DONTWAIT);
	const size_t len = strlen(c->want);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return MPI_HEARD_SOME;
	if (n <= 0)
		return MPI_HEARD_WRONG;
	c->n += (size_t)n;
	end = memchr(c->in, '\n', c->n);
	if (!end)
		return c->n < sizeof(c->in) ? MPI_HEARD_SOME : MPI_HEARD_WRONG;
	/* It waits for a reply to each line. */
	if (end + 1 != c->in + c->n)
		return MPI_HEARD_WRONG;
	if (c->answered)
		return c->n == len && !differs(c->in, c->want, len) ? MPI_HEARD_KEY
								    : MPI_HEARD_WRONG;
	*end = '\0';
	return answer(s, c);
}

static bool take(int fd, void *to, size_t n)
{
	for (size_t have = 0; have < n;) {
		const ssize_t k = recv(fd, (char *)to + have, n - have, 0);

		if (k <= 0)
			return false;
		have += (size_t)k;
	}
	return true;
}

static int connect_to(const struct mpi_step *s)
{
	const struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	const struct timeval limit = { .tv_sec = ANSWER_S };
	struct addrinfo *list = NULL;
	char port[8];
	int fd = -1;

	snprintf(port, sizeof(port), "%u", port_of(s));
	if (getaddrinfo(s->host, port, &want, &list) != 0)
		return -1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd;
}

/* Show the key to one that shows it. */
static bool greet(const struct mpi_step *s, int fd)
{
	char number[MPI_NUMBER_BYTES], theirs[MPI_NUMBER_BYTES], proof[HMAC_HEX_BYTES + 1],
		line[MPI_LINE_MAX], reply[sizeof(GREETING) + MPI_NUMBER_BYTES + MPI_PROOF_BYTES];
	const size_t head = strlen(GREETING), n_reply = head + MPI_NUMBER_BYTES + MPI_PROOF_BYTES;
	int n;

	cli_key(number);
	n = snprintf(line, sizeof(line), GREETING "%s %.300s\n", number, s->shared);
	if (send(fd, line, (size_t)n, MSG_NOSIGNAL) != n || !take(fd, reply, n_reply) ||
	    strncmp(reply, GREETING, head) != 0 ||
	    !is_number(reply + head, strcspn(reply + head, " ")))
		return false;
	snprintf(theirs, sizeof(theirs), "%.32s", reply + head);
	prove(s, "serves", number, theirs, proof);
	if (differs(reply + head + MPI_NUMBER_BYTES, proof, MPI_PROOF_BYTES - 1))
		return false;
	prove(s, "joins", number, theirs, proof);
	proof[MPI_PROOF_BYTES - 1] = '\n';
	return send(fd, proof, MPI_PROOF_BYTES, MSG_NOSIGNAL) == MPI_PROOF_BYTES;
}

int mpi_gate_join(const struct mpi_step *s, char packet[MPI_PACKET_MAX], size_t *n)
{
	const struct timeval none = { .tv_sec = 0 };
	const int fd = connect_to(s);
	uint32_t size = 0;

	if (fd < 0)
		return -1;
	if (!greet(s, fd) || !take(fd, &size, sizeof(size)) || ntohl(size) >= MPI_PACKET_MAX ||
	    !take(fd, packet, ntohl(size))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	*n = ntohl(size);
	return fd;
}
