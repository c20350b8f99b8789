/* fakeload - how fast can pods be made on an apiserver that speaks plain HTTP?
 *
 * usage: fakeload PORT PODS CONNECTIONS NODES [RUN]
 *
 * Creates PODS pods, one request in flight per connection, on node-0000 and
 * following in turn, each running for RUN (default: for ever) and asking for
 * no GPU. Prints the rate; exits 1 when any create was refused. This is the
 * yardstick for a client's own creates per second.
 */
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

static struct {
	struct event_base *base;
	uint64_t port, pods, conns, nodes;
	const char *run;
	uint64_t sent, done, refused;
	int64_t started_us;
} ld;

static void send_next(struct bufferevent *bev)
{
	char body[1024];
	const uint64_t i = ld.sent++;
	const int n = snprintf(
		body, sizeof(body),
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"load-%llu-%llu\","
		"\"labels\":{\"gpuq.io/job\":\"%llu\",\"gpuq.io/index\":\"0\",\"gpuq.io/"
		"attempt\":\"1\"},"
		"\"annotations\":{\"gpuq.io/token\":\"0123456789abcdef\",\"gpuq.test/%s\":\"%s\"}},"
		"\"spec\":{\"nodeName\":\"node-%04llu\",\"restartPolicy\":\"Never\",\"containers\":"
		"[{\"name\":\"main\",\"image\":\"busybox:1.36\",\"command\":[\"sh\",\"-c\","
		"\"true\"],"
		"\"resources\":{\"limits\":{\"cpu\":\"1m\",\"memory\":\"1Mi\"}}}]}}",
		(unsigned long long)ld.started_us, (unsigned long long)i, (unsigned long long)i,
		ld.run ? "run" : "hang", ld.run ? ld.run : "true",
		(unsigned long long)(i % ld.nodes));

	evbuffer_add_printf(bufferevent_get_output(bev),
			    "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: fakekube\r\n"
			    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			    n, body);
}

/* Take whole answers off the input; each makes room for one more request. */
static void on_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);

	(void)arg;
	for (;;) {
		struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
		const char *head, *length;
		size_t total;

		if (end.pos < 0)
			return;
		head = (const char *)evbuffer_pullup(in, end.pos + 4);
		length = memmem(head, (size_t)end.pos, "Content-Length: ", 16);
		total = (size_t)end.pos + 4 + (length ? strtoul(length + 16, NULL, 10) : 0);
		if (evbuffer_get_length(in) < total)
			return;
		if (strncmp(head, "HTTP/1.1 201", 12) != 0)
			ld.refused++;
		evbuffer_drain(in, total);
		if (++ld.done == ld.pods)
			event_base_loopbreak(ld.base);
		if (ld.sent < ld.pods)
			send_next(bev);
	}
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)arg;
	if (what & BEV_EVENT_CONNECTED)
		return;
	fputs("fakeload: a connection was lost\n", stderr);
	exit(EXIT_FAILURE);
}

static struct bufferevent *connect_one(void)
{
	const struct sockaddr_in sa = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)ld.port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct bufferevent *bev = bufferevent_socket_new(ld.base, -1, BEV_OPT_CLOSE_ON_FREE);

	bufferevent_setcb(bev, on_read, NULL, on_end, NULL);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(bev, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
		fputs("fakeload: cannot connect\n", stderr);
		exit(EXIT_FAILURE);
	}
	if (ld.sent < ld.pods)
		send_next(bev);
	return bev;
}

int main(int argc, char **argv)
{
	struct bufferevent **all;
	double seconds;

	if (argc < 5 || argc > 6 || uint_parse(argv[1], &ld.port) != 0 ||
	    uint_parse(argv[2], &ld.pods) != 0 || uint_parse(argv[3], &ld.conns) != 0 ||
	    uint_parse(argv[4], &ld.nodes) != 0 || !ld.pods || !ld.conns || !ld.nodes ||
	    ld.conns > 1000) {
		fputs("usage: fakeload PORT PODS CONNECTIONS NODES [RUN]\n", stderr);
		return 2;
	}
	ld.run = argc > 5 ? argv[5] : NULL;
	ld.base = event_base_new();
	ld.started_us = now_us();
	all = xcalloc(ld.conns, sizeof(*all));
	for (uint64_t i = 0; i < ld.conns; i++)
		all[i] = connect_one();
	event_base_dispatch(ld.base);
	seconds = (double)(now_us() - ld.started_us) / (double)SECOND_US;
	printf("%llu creates in %.3f s: %.0f/s, %llu refused\n", (unsigned long long)ld.done,
	       seconds, (double)ld.done / seconds, (unsigned long long)ld.refused);
	for (uint64_t i = 0; i < ld.conns; i++)
		bufferevent_free(all[i]);
	free(all);
	event_base_free(ld.base);
	return ld.refused ? EXIT_FAILURE : EXIT_SUCCESS;
}
