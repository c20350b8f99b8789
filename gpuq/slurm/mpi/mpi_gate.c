#include "config.h"

#include "gpuq/slurm/mpi/mpi_gate.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "libgpuq/base/fnv.h"

#define PORT_FIRST 20000 /* below those that the kernel gives to connections */
#define PORTS 12000
#define ANSWER_S 5
#define BACKLOG 1024

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

void mpi_gate_line(const struct mpi_step *s, char out[MPI_LINE_MAX])
{
	snprintf(out, MPI_LINE_MAX, "gpuq-mpi %.100s %.300s\n", s->key, s->shared);
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

int mpi_gate_join(const struct mpi_step *s, char packet[MPI_PACKET_MAX], size_t *n)
{
	const struct timeval none = { .tv_sec = 0 };
	const int fd = connect_to(s);
	char line[MPI_LINE_MAX];
	uint32_t size = 0;

	if (fd < 0)
		return -1;
	mpi_gate_line(s, line);
	if (send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line) ||
	    !take(fd, &size, sizeof(size)) || ntohl(size) >= MPI_PACKET_MAX ||
	    !take(fd, packet, ntohl(size))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	*n = ntohl(size);
	return fd;
}
