#include "config.h"

#include "gpuq/slurm/mpi/exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "gpuq/cli.h"
#include "libgpuq/buf.h"

#define FRAME_BYTES_MAX (64u << 20) /* of one frame, and of the values of a fence */
#define PIECE_BYTES 65536
#define FLUSH_US 1000000
#define HOST_BYTES 256

enum kind {
	HERE, /* value: the part that speaks; its host. Its first frame */
	ABORT, /* value: exit code */
	FENCE, /* value: how many ranks; the ranks, then values */
	FENCED, /* value: 1 = complete; all values */
	FIND, /* value: a rank */
	FOUND, /* value: 1 = found; its values */
	RUN, /* a command */
	HALT,
	RAN, /* value: its exit code */
};

struct frame {
	uint32_t n, kind, id, value;
};

struct link {
	int fd; /* -1 = none, or it is closed */
	bool gone; /* it was there */
	char host[HOST_BYTES];
	struct gpuq_buf in, out;
};

/* A frame that is to be answered, under an id of ours: to the module, or to the part that asked. */
struct wait {
	struct wait *next;
	uint32_t id;
	struct pmix_ask *ask;
	long from; /* the part that asked, where ask is NULL */
	uint32_t theirs; /* its id */
	long of; /* the part that was asked */
};

/* Kept by the first part. */
struct fence {
	struct fence *next;
	uint32_t *ranks; /* none: all */
	size_t n_ranks;
	struct pmix_ask *own;
	struct gpuq_buf data;
	long missing;
	struct {
		bool needed, asked;
		uint32_t id;
	} parts[];
};

struct exchange {
	const struct mpi_step *step;
	const struct pmix_module *module; /* NULL = PMIx is not served */
	const struct exchange_host *host;
	int asks[2];
	long n_parts;
	struct link *
		links; /* by part; ours is not used, or where it is not the first's, leads to the first */
	struct link *strangers; /* as many: those that have not named their part */
	struct wait *waits;
	struct fence *fences;
	uint32_t last_id;
};

struct exchange *exchange_new(const struct mpi_step *s, const struct exchange_host *host)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	*x = (struct exchange){ .step = s,
				.host = host,
				.n_parts = (s->n + s->per_node - 1) / s->per_node };
	x->links = calloc((size_t)x->n_parts, sizeof(*x->links));
	x->strangers = calloc((size_t)x->n_parts, sizeof(*x->strangers));
	if (!x->links || !x->strangers || pipe2(x->asks, O_CLOEXEC) < 0)
		return NULL; /* this process ends */
	fcntl(x->asks[0], F_SETFL, O_NONBLOCK);
	for (long i = 0; i < x->n_parts; i++) {
		x->links[i] =
			(struct link){ .fd = -1,
				       .in = GPUQ_BUF_INIT_MAX(FRAME_BYTES_MAX + PIECE_BYTES) };
		x->strangers[i] = x->links[i];
	}
	gethostname(x->links[s->part].host, HOST_BYTES - 1);
	return x;
}

int exchange_asks(const struct exchange *x)
{
	return x->asks[1];
}

void exchange_serve(struct exchange *x, const struct pmix_module *m)
{
	x->module = m;
}

static bool is_first(const struct exchange *x)
{
	return x->step->part == 0;
}

/* ---- frames ---- */

static void shut(struct link *l)
{
	close(l->fd);
	l->fd = -1;
	l->gone = true;
	gpuq_buf_done(&l->in);
	gpuq_buf_done(&l->out);
}

static void push(struct link *l)
{
	while (l->fd >= 0 && l->out.len > 0) {
		const ssize_t n = send(l->fd, l->out.data, l->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* one that has closed is seen when it is read */
			return;
		gpuq_buf_drop(&l->out, (size_t)n);
	}
}

/* A frame whose bytes are those of two pieces. */
static void put_two(struct link *l, struct frame f, const void *one, size_t n_one, const void *two,
		    size_t n_two)
{
	const uint32_t head[4] = { htonl((uint32_t)(n_one + n_two)), htonl(f.kind), htonl(f.id),
				   htonl(f.value) };

	if (l->fd < 0)
		return;
	gpuq_buf_add(&l->out, head, sizeof(head));
	if (n_one)
		gpuq_buf_add(&l->out, one, n_one);
	if (n_two)
		gpuq_buf_add(&l->out, two, n_two);
	push(l);
}

static void put(struct link *l, enum kind kind, uint32_t id, uint32_t value, const void *data,
		size_t n)
{
	put_two(l, (struct frame){ .kind = kind, .id = id, .value = value }, data, n, NULL, 0);
}

static struct link *link_to(struct exchange *x, long part)
{
	return &x->links[is_first(x) ? part : 0];
}

/* ---- what waits for a reply ---- */

static uint32_t wait_add(struct exchange *x, struct wait w)
{
	struct wait *copy = malloc(sizeof(*copy));

	if (!copy)
		_exit(1);
	w.id = ++x->last_id;
	*copy = w;
	LL_PREPEND(x->waits, copy);
	return w.id;
}

static void wait_end(struct exchange *x, struct wait *w, bool ok, const char *data, size_t n)
{
	LL_DELETE(x->waits, w);
	if (w->ask)
		x->module->answer(w->ask, ok, data, n);
	else
		put(&x->links[w->from], FOUND, w->theirs, ok, data, n);
	free(w);
}

static void wait_answered(struct exchange *x, uint32_t id, bool ok, const char *data, size_t n)
{
	struct wait *w;

	LL_SEARCH_SCALAR(x->waits, w, id, id);
	if (w)
		wait_end(x, w, ok, data, n);
}

/* ---- fences, at the first part ---- */

static void fence_end(struct exchange *x, struct fence *f, bool ok)
{
	LL_DELETE(x->fences, f);
	ok = ok && !f->data.failed;
	if (f->own)
		x->module->answer(f->own, ok, f->data.data, ok ? f->data.len : 0);
	for (long i = 1; i < x->n_parts; i++)
		if (f->parts[i].asked)
			put(&x->links[i], FENCED, f->parts[i].id, ok, f->data.data,
			    ok ? f->data.len : 0);
	gpuq_buf_done(&f->data);
	free(f->ranks);
	free(f);
}

static struct fence *fence_new(struct exchange *x, const uint32_t *ranks, size_t n_ranks)
{
	struct fence *f = calloc(1, sizeof(*f) + (size_t)x->n_parts * sizeof(f->parts[0]));

	if (!f || !(f->ranks = malloc((n_ranks + 1) * sizeof(*ranks))))
		_exit(1);
	if (n_ranks)
		memcpy(f->ranks, ranks, n_ranks * sizeof(*ranks));
	f->n_ranks = n_ranks;
	f->data.max_bytes = FRAME_BYTES_MAX;
	for (size_t i = 0; i < n_ranks; i++)
		if (ranks[i] < x->step->n)
			f->parts[ranks[i] / x->step->per_node].needed = true;
	for (long i = 0; i < x->n_parts; i++) {
		f->parts[i].needed |= n_ranks == 0;
		f->missing += f->parts[i].needed;
	}
	LL_APPEND(x->fences, f);
	return f;
}

/* The first of these ranks that the part has not asked for yet. */
static struct fence *fence_of(struct exchange *x, long part, const uint32_t *ranks, size_t n_ranks)
{
	struct fence *f;

	LL_FOREACH(x->fences, f)
	if (!f->parts[part].asked && f->n_ranks == n_ranks &&
	    (n_ranks == 0 || memcmp(f->ranks, ranks, n_ranks * sizeof(*ranks)) == 0))
		return f;
	return fence_new(x, ranks, n_ranks);
}

static bool fence_can_end(const struct exchange *x, const struct fence *f)
{
	for (long i = 0; i < x->n_parts; i++)
		if (f->parts[i].needed && !f->parts[i].asked && x->links[i].gone)
			return false;
	return true;
}

/* A part asks: with an ask of ours, or under its id. */
static void fence_join(struct exchange *x, long part, const struct wait *w, const uint32_t *ranks,
		       size_t n_ranks, const char *data, size_t n)
{
	struct fence *f = fence_of(x, part, ranks, n_ranks);

	f->parts[part].asked = true;
	f->parts[part].id = w->theirs;
	f->missing -= f->parts[part].needed;
	if (w->ask)
		f->own = w->ask;
	if (n)
		gpuq_buf_add(&f->data, data, n);
	if (f->missing == 0 || !fence_can_end(x, f))
		fence_end(x, f, f->missing == 0);
}

/* ---- values of one rank ---- */

static void find(struct exchange *x, struct wait w, uint32_t rank)
{
	const long of = rank < x->step->n ? (long)rank / x->step->per_node : -1;
	uint32_t id;

	w.of = is_first(x) ? of : 0;
	id = wait_add(x, w);
	if (of < 0 || (of != x->step->part && link_to(x, of)->fd < 0))
		wait_answered(x, id, false, NULL, 0);
	else if (of == x->step->part)
		x->module->find(rank, id);
	else
		put(link_to(x, of), FIND, id, rank, NULL, 0);
}

/* ---- what the module asks ---- */

static void abort_others(struct exchange *x, const struct link *but, int code)
{
	for (long i = 0; i < x->n_parts; i++)
		if (&x->links[i] != but)
			put(&x->links[i], ABORT, 0, (uint32_t)code, NULL, 0);
}

void exchange_abort(struct exchange *x, int code)
{
	abort_others(x, NULL, code);
}

static void free_ask(struct pmix_ask *a)
{
	free(a->ranks);
	free(a->data);
	free(a);
}

static void take_fence(struct exchange *x, struct pmix_ask *a)
{
	const struct wait w = { .ask = a };
	uint32_t id;

	if (is_first(x)) {
		fence_join(x, 0, &w, a->ranks, a->n_ranks, a->data, a->n);
		return;
	}
	for (size_t i = 0; i < a->n_ranks; i++)
		a->ranks[i] = htonl(a->ranks[i]);
	id = wait_add(x, w);
	if (x->links[0].fd < 0)
		wait_answered(x, id, false, NULL, 0);
	else
		put_two(&x->links[0],
			(struct frame){ .kind = FENCE, .id = id, .value = (uint32_t)a->n_ranks },
			a->ranks, a->n_ranks * sizeof(*a->ranks), a->data, a->n);
}

static void take_ask(struct exchange *x, struct pmix_ask *a)
{
	switch (a->kind) {
	case PMIX_ASK_FENCE:
		take_fence(x, a);
		return;
	case PMIX_ASK_VALUES:
		find(x, (struct wait){ .ask = a }, a->n_ranks ? a->ranks[0] : UINT32_MAX);
		return;
	case PMIX_ASK_GIVEN:
		if (is_first(x))
			wait_answered(x, a->id, a->code == 0, a->data, a->n);
		else
			put(&x->links[0], FOUND, a->id, a->code == 0, a->data, a->n);
		break;
	case PMIX_ASK_ABORT:
		abort_others(x, NULL, a->code ? a->code : 1);
		x->host->abort(x->host->arg, a->code ? a->code : 1);
		break;
	}
	free_ask(a);
}

/* ---- what other parts say ---- */

/* A connection has closed. */
static void on_gone(struct exchange *x, long part)
{
	struct wait *w, *next_wait;
	struct fence *f, *next;

	LL_FOREACH_SAFE(x->waits, w, next_wait)
	if (w->of == part || !is_first(x))
		wait_end(x, w, false, NULL, 0);
	LL_FOREACH_SAFE(x->fences, f, next)
	if (!fence_can_end(x, f))
		fence_end(x, f, false);
	x->host->gone(x->host->arg, part);
}

static int on_fence(struct exchange *x, long part, const struct frame *f, const char *data)
{
	const size_t n = (size_t)f->value * sizeof(uint32_t);
	uint32_t *ranks;

	if (!x->module || !is_first(x) || f->value > MPI_RANKS_MAX || n > f->n)
		return -1;
	ranks = malloc(n + 1);
	if (!ranks)
		return -1;
	memcpy(ranks, data, n);
	for (uint32_t i = 0; i < f->value; i++)
		ranks[i] = ntohl(ranks[i]);
	fence_join(x, part, &(struct wait){ .theirs = f->id }, ranks, f->value, data + n, f->n - n);
	free(ranks);
	return 0;
}

static int on_frame(struct exchange *x, long part, const struct frame *f, const char *data)
{
	switch (f->kind) {
	case ABORT:
		if (is_first(x))
			abort_others(x, &x->links[part], (int)f->value);
		x->host->abort(x->host->arg, (int)(f->value & 0xff ? f->value & 0xff : 1));
		return 0;
	case FENCE:
		return on_fence(x, part, f, data);
	case FENCED:
	case FOUND:
		wait_answered(x, f->id, f->value == 1, data, f->n);
		return 0;
	case FIND:
		if (!x->module)
			return -1;
		if (is_first(x))
			find(x, (struct wait){ .from = part, .theirs = f->id }, f->value);
		else
			x->module->find(f->value, f->id);
		return 0;
	case RUN:
		if (is_first(x))
			return -1;
		x->host->run(x->host->arg, f->id, data, f->n);
		return 0;
	case HALT:
		if (is_first(x))
			return -1;
		x->host->halt(x->host->arg, f->id);
		return 0;
	case RAN:
		if (!is_first(x))
			return -1;
		x->host->ran(x->host->arg, f->id, (int)(f->value & 0xff));
		return 0;
	default:
		return -1;
	}
}

/* Take a whole frame from what was read. Returns its bytes; NULL: not yet, or (*bad) never. */
static const char *take_frame(struct link *l, struct frame *f, bool *bad)
{
	uint32_t head[4];

	if (l->in.len < sizeof(head))
		return NULL;
	memcpy(head, l->in.data, sizeof(head));
	*f = (struct frame){ ntohl(head[0]), ntohl(head[1]), ntohl(head[2]), ntohl(head[3]) };
	*bad = f->n > FRAME_BYTES_MAX;
	return *bad || l->in.len < sizeof(head) + f->n ? NULL : l->in.data + sizeof(head);
}

/* Returns false when it has ended. */
static bool read_some(struct link *l)
{
	ssize_t n;

	if (gpuq_buf_reserve(&l->in, PIECE_BYTES) < 0)
		return false;
	n = recv(l->fd, l->in.data + l->in.len, PIECE_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	l->in.len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

static void read_link(struct exchange *x, long part)
{
	struct link *l = &x->links[part];
	const bool open = read_some(l);
	bool bad = false;
	struct frame f;
	const char *data;

	while (l->fd >= 0 && !bad && (data = take_frame(l, &f, &bad))) {
		bad = on_frame(x, part, &f, data) < 0;
		gpuq_buf_drop(&l->in, 4 * sizeof(uint32_t) + f.n);
	}
	if (!open || bad) {
		shut(l);
		on_gone(x, part);
	}
}

/* A stranger becomes the part that it names. */
static void read_stranger(struct exchange *x, struct link *s)
{
	const bool open = read_some(s);
	struct frame f = { 0 };
	bool bad = false;
	const char *host = take_frame(s, &f, &bad);
	struct link *l;

	bad |= s->in.len >= 4 * sizeof(uint32_t) && (f.kind != HERE || f.n >= HOST_BYTES);
	if (host && !bad && f.value > 0 && f.value < x->n_parts && x->links[f.value].fd < 0 &&
	    !x->links[f.value].gone) {
		memcpy(s->host, host, f.n);
		gpuq_buf_drop(&s->in, 4 * sizeof(uint32_t) + f.n);
		l = &x->links[f.value];
		*l = *s;
		*s = (struct link){ .fd = -1, .in = GPUQ_BUF_INIT_MAX(s->in.max_bytes) };
		read_link(x, f.value);
	} else if (!open || bad || host) {
		shut(s);
	}
}

void exchange_add(struct exchange *x, int fd)
{
	struct link *l = NULL;

	for (long i = 0; i < x->n_parts && !l; i++)
		if (is_first(x) && x->strangers[i].fd < 0)
			l = &x->strangers[i];
	if (!is_first(x))
		l = &x->links[0];
	if (!l) {
		close(fd);
		return;
	}
	l->fd = fd;
	if (!is_first(x))
		put(l, HERE, 0, (uint32_t)x->step->part, x->links[x->step->part].host,
		    strlen(x->links[x->step->part].host));
}

bool exchange_is_open(const struct exchange *x)
{
	for (long i = 0; i < x->n_parts; i++)
		if (x->links[i].fd >= 0 || x->strangers[i].fd >= 0)
			return true;
	return false;
}

long exchange_n_parts(const struct exchange *x)
{
	return x->n_parts;
}

bool exchange_is_whole(const struct exchange *x)
{
	for (long i = 1; i < x->n_parts; i++)
		if (x->links[i].fd < 0)
			return false;
	return true;
}

const char *exchange_host_of(const struct exchange *x, long part)
{
	return x->links[part].host;
}

/* ---- commands ---- */

void exchange_run(struct exchange *x, long part, uint32_t id, const char *command, size_t n)
{
	put(&x->links[part], RUN, id, 0, command, n);
}

void exchange_halt(struct exchange *x, long part, uint32_t id)
{
	put(&x->links[part], HALT, id, 0, NULL, 0);
}

void exchange_ran(struct exchange *x, uint32_t id, int code)
{
	put(&x->links[0], RAN, id, (uint32_t)code, NULL, 0);
}

/* ---- the loop ---- */

long exchange_fill(const struct exchange *x, struct pollfd *fds)
{
	long n = 0;

	fds[n++] = (struct pollfd){ x->asks[0], POLLIN, 0 };
	for (long i = 0; i < x->n_parts; i++)
		fds[n++] =
			(struct pollfd){ x->links[i].fd,
					 (short)(POLLIN | (x->links[i].out.len ? POLLOUT : 0)), 0 };
	for (long i = 0; i < x->n_parts; i++)
		fds[n++] = (struct pollfd){ x->strangers[i].fd, POLLIN, 0 };
	return n;
}

void exchange_attend(struct exchange *x, const struct pollfd *fds)
{
	const struct pollfd *links = fds + 1, *strangers = links + x->n_parts;
	struct pmix_ask *a;

	while (fds[0].revents && read(x->asks[0], &a, sizeof(a)) == (ssize_t)sizeof(a))
		take_ask(x, a);
	for (long i = 0; i < x->n_parts; i++) {
		if (links[i].revents & POLLOUT && x->links[i].fd == links[i].fd)
			push(&x->links[i]);
		if (links[i].revents & ~POLLOUT && x->links[i].fd == links[i].fd)
			read_link(x, i);
	}
	for (long i = 0; i < x->n_parts; i++)
		if (strangers[i].revents && x->strangers[i].fd == strangers[i].fd)
			read_stranger(x, &x->strangers[i]);
}

void exchange_flush(struct exchange *x)
{
	const int64_t until_us = cli_mono_us() + FLUSH_US;
	bool left = true;

	for (; left && cli_mono_us() < until_us; poll(NULL, 0, left ? 5 : 0)) {
		left = false;
		for (long i = 0; i < x->n_parts; i++) {
			push(&x->links[i]);
			left |= x->links[i].fd >= 0 && x->links[i].out.len > 0;
		}
	}
}
