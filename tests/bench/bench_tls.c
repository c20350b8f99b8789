/* The cost of TLS.
 *
 *   bench_tls shakes PORT SECONDS         handshakes a second with a server on the loopback, one after another
 *   bench_tls hold PORT CONNECTIONS TOKENFILE...
 *                                         so many connections that have said hello, with these tokens in turn; prints
 *                                         how many there are and holds them until standard input ends
 *   bench_tls calls ADDRESS MODULE CALLS TOKENFILE...
 *                                         calls a second: CALLS of them on a connection for each token, "-" = none
 *
 * Connections come from many addresses of the loopback, as one has few handshakes a second.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "libgpuq/client.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/wire.h"

#define ADDRESSES 250
#define USERS_MAX 256
#define OUTSTANDING 64
#define ALPN "\x0agpuq-rpc/1"

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_tls: %s\n", what);
	exit(1);
}

static void read_token(const char *file, char out[GPUQ_CREDENTIAL_BYTES_MAX])
{
	FILE *f = fopen(file, "r");

	if (!f || !fgets(out, GPUQ_CREDENTIAL_BYTES_MAX, f))
		die(file);
	out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

/* ---- connections ---- */

static SSL_CTX *context(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)ALPN, sizeof(ALPN) - 1))
		die("no context");
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	return ctx;
}

/* Connect from the n-th address and shake hands; NULL where the server says no. */
static SSL *connect_from(SSL_CTX *ctx, unsigned n, int port)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	SSL *ssl = SSL_new(ctx);

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + n % ADDRESSES);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fd < 0 || !ssl || bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 || SSL_set_fd(ssl, fd) != 1 ||
	    SSL_connect(ssl) != 1) {
		SSL_free(ssl);
		close(fd);
		return NULL;
	}
	return ssl;
}

static void hang_up(SSL *ssl)
{
	const int fd = SSL_get_fd(ssl);

	SSL_free(ssl);
	close(fd);
}

static int shakes(int port, double seconds)
{
	SSL_CTX *ctx = context();
	const double start = now_s();
	unsigned n = 0;
	double end;

	while ((end = now_s()) < start + seconds) {
		SSL *ssl = connect_from(ctx, n++, port);

		if (!ssl)
			die("a handshake was refused");
		hang_up(ssl);
	}
	printf("%.0f\n", n / (end - start));
	SSL_CTX_free(ctx);
	return 0;
}

static bool greet(SSL *ssl, const char *token)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *params = gpuq_map(&a),
			*list = gpuq_put(&a, params, "proto", gpuq_list(&a));
	struct gpuq_val *auth = gpuq_put(&a, params, "auth", gpuq_map(&a));
	struct gpuq_buf b = GPUQ_BUF_INIT;
	char reply[4096];
	bool good;

	gpuq_add(&a, list, gpuq_int(&a, GPUQ_PROTO_MAJOR));
	gpuq_add(&a, list, gpuq_int(&a, GPUQ_PROTO_MINOR));
	gpuq_put(&a, params, "client", gpuq_str(&a, "bench"));
	gpuq_put(&a, auth, "token", gpuq_str(&a, token));
	gpuq_wire_request(&b, 1, "hello", params);
	good = SSL_write(ssl, b.data, (int)b.len) == (int)b.len &&
	       SSL_read(ssl, reply, sizeof(reply)) > 4 && (reply[0] & 0xff) == 0x94 &&
	       (reply[3] & 0xff) == 0xc0; /* [1, 1, no error, ...] */
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
	return good;
}

static int hold(int port, unsigned n, char **files, int n_files)
{
	struct rlimit fds;
	SSL_CTX *ctx = context();
	unsigned held = 0;
	char c;

	getrlimit(RLIMIT_NOFILE, &fds);
	fds.rlim_cur = fds.rlim_max;
	setrlimit(RLIMIT_NOFILE, &fds);
	for (unsigned i = 0; i < n; i++) {
		char token[GPUQ_CREDENTIAL_BYTES_MAX];
		SSL *ssl = connect_from(ctx, i, port);

		read_token(files[i % (unsigned)n_files], token);
		held += ssl && greet(ssl, token);
	}
	printf("%u\n", held);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

/* ---- calls ---- */

static struct gpuq *connect_as(const char *addr, const char *module, const char *file)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char token[GPUQ_CREDENTIAL_BYTES_MAX];
	struct gpuq_connect_opts o = {
		.addr = addr, .client = "bench", .stop_fd = -1, .module = module
	};
	struct gpuq *g;

	if (strcmp(file, "-") != 0) {
		read_token(file, token);
		o.token = token;
	}
	if (gpuq_connect_opts(&o, &g, &err) < 0)
		die(err.text);
	return g;
}

static void take(struct gpuq *g, struct gpuq_arena *a)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;
	uint32_t id;
	int rc = 0;

	if (gpuq_recv(g, 0, &id, a, &reply, &rc, &err) < 0 || rc < 0)
		die(err.text);
	gpuq_arena_reset(a);
}

static int calls(const char *addr, const char *module, unsigned n, char **files, int n_files)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq *all[USERS_MAX];
	double start;

	for (int k = 0; k < n_files; k++)
		all[k] = connect_as(addr, module, files[k]);
	start = now_s();
	for (int k = 0; k < n_files; k++) {
		unsigned sent = 0, got = 0;

		while (got < n) {
			struct gpuq_err err = GPUQ_ERR_INIT;
			uint32_t id;

			if (sent < n && sent - got < OUTSTANDING) {
				if (gpuq_send(all[k], "prio.weights", NULL, NULL, &id, &err) < 0)
					die(err.text);
				sent++;
			} else {
				take(all[k], &a);
				got++;
			}
		}
	}
	printf("%.0f\n", n * (unsigned)n_files / (now_s() - start));
	for (int k = 0; k < n_files; k++)
		gpuq_close(all[k]);
	gpuq_arena_done(&a);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "shakes") == 0)
		return shakes(atoi(argv[2]), atof(argv[3]));
	if (argc > 4 && strcmp(argv[1], "hold") == 0)
		return hold(atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4, argc - 4);
	if (argc > 5 && argc - 5 <= USERS_MAX && strcmp(argv[1], "calls") == 0)
		return calls(argv[2], argv[3], (unsigned)atoi(argv[4]), argv + 5, argc - 5);
	die("usage: see bench_tls.c");
}
