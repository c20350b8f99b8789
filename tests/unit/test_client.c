/* The client library against a server of the daemon's own room, over a socket in a
 * folder of the test. The client blocks, so it runs in a thread of its own; what it
 * found is looked at when it has ended. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/rpc/rpc.h"
#include "libgpuq/client.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/wire.h"

#define S INT64_C(1000000)

static struct loop *loop;
static struct rpc_server *server;
static char dir[32], path[64], addr[96];
static struct rpc_call *kept[GPUQ_OUTSTANDING_MAX];
static size_t n_kept;
static int told_closed;

static int on_echo(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	rpc_reply(call, rpc_call_params(call));
	return 0;
}

static int on_key(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	rpc_reply(call, gpuq_str(rpc_call_arena(call), rpc_call_key(call)));
	return 0;
}

static int on_fail(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params;
	gpuq_fail_field(err, GPUQ_ELIMIT, "spec.gpus", "too many, %s", rpc_call_peer(call)->user);
	err->retry_ms = 250;
	return err->code;
}

static void on_closed(void *arg, int why)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	told_closed = why;
	gpuq_fail(&err, why, "gone");
	rpc_fail(arg, &err);
}

/* Never answers by itself. */
static int on_keep(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	kept[n_kept++ % GPUQ_OUTSTANDING_MAX] = call;
	rpc_call_watch(call, NULL, on_closed, call);
	return 0;
}

/* Answers what was kept, the last one first. */
static int on_flush(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	while (n_kept > 0) {
		struct rpc_call *k = kept[--n_kept];

		rpc_reply(k, rpc_call_params(k));
	}
	rpc_reply(call, NULL);
	return 0;
}

struct counting {
	struct rpc_call *call;
	int64_t at, end;
};

static void count_on(void *arg)
{
	struct counting *k = arg;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct rpc_call *call = k->call;

	while (k->at < k->end && rpc_item(call, gpuq_int(&a, k->at)))
		k->at++;
	if (k->at == k->end)
		rpc_end(call, gpuq_int(&a, k->at));
	gpuq_arena_done(&a);
}

static void count_closed(void *arg, int why)
{
	struct counting *k = arg;

	on_closed(k->call, why);
}

static int on_count(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	struct counting *k = gpuq_arena_alloc(rpc_call_arena(call), sizeof(*k));

	(void)arg, (void)params, (void)err;
	*k = (struct counting){ .call = call, .end = gpuq_get_int(rpc_call_params(call), "n", 0) };
	rpc_call_watch(call, count_on, count_closed, k);
	count_on(k);
	return 0;
}

static int on_vanish(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err)
{
	(void)arg, (void)params, (void)err;
	on_keep(arg, call, params, err);
	rpc_server_stop(server);
	return 0;
}

static const struct rpc_method methods[] = {
	{ .name = "echo", .fn = on_echo },     { .name = "key", .fn = on_key },
	{ .name = "fail", .fn = on_fail },     { .name = "keep", .fn = on_keep },
	{ .name = "flush", .fn = on_flush },   { .name = "count", .stream = true, .fn = on_count },
	{ .name = "vanish", .fn = on_vanish }, { .name = NULL },
};

static void setup(void)
{
	const struct rpc_opts o = { .methods = methods, .server = "test/1", .version = "1" };
	struct gpuq_err err = GPUQ_ERR_INIT;

	log_init(LOG_L_ERR);
	strcpy(dir, "/tmp/gpuq-test-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	snprintf(addr, sizeof(addr), "unix:%s", path);
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(rpc_server_new(loop, &o, &server, &err), 0);
	cr_assert_eq(rpc_server_listen(server, addr, 0600, &err), 0, "%s", err.text);
}

static void teardown(void)
{
	rpc_server_free(server);
	loop_free(loop);
	unlink(path);
	rmdir(dir);
}

TestSuite(client, .init = setup, .fini = teardown, .timeout = 60);

struct job {
	void (*fn)(void);
	atomic_bool done;
};

static void *thread_main(void *arg)
{
	struct job *job = arg;

	job->fn();
	job->done = true;
	return NULL;
}

/* Run fn in a thread while the loop turns, until it returns. */
static void as_client(void (*fn)(void))
{
	struct job job = { .fn = fn };
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, thread_main, &job), 0);
	while (!job.done) {
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
		usleep(200);
	}
	pthread_join(t, NULL);
	for (int i = 0; i < 20; i++)
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
}

/* Results of the clients. */
static struct {
	int rc[8];
	struct gpuq_err err[8];
	struct gpuq *g;
	struct gpuq_arena arena;
	struct gpuq_val *reply[8];
	int64_t items, sum, ticks, stop_at;
	uint32_t ids[GPUQ_OUTSTANDING_MAX];
	bool ok;
} got;

static bool connected(void)
{
	got.rc[0] = gpuq_connect(addr, "test/1", 0, &got.g, &got.err[0]);
	return got.rc[0] == 0;
}

static struct gpuq_val *params_n(int64_t n)
{
	struct gpuq_val *m = gpuq_map(&got.arena);

	gpuq_put(&got.arena, m, "n", gpuq_int(&got.arena, n));
	return m;
}

static void call_things(void)
{
	if (!connected())
		return;
	got.rc[1] = gpuq_call(got.g, "echo", params_n(5), NULL, 0, &got.arena, &got.reply[1],
			      &got.err[1]);
	got.rc[2] =
		gpuq_call(got.g, "key", NULL, "k-1", 5 * S, &got.arena, &got.reply[2], &got.err[2]);
	got.rc[3] = gpuq_call(got.g, "fail", NULL, NULL, 0, &got.arena, &got.reply[3], &got.err[3]);
	got.rc[4] = gpuq_call(got.g, "none", NULL, NULL, 0, &got.arena, &got.reply[4], &got.err[4]);
}

Test(client, calls_and_is_answered)
{
	const struct gpuq_val *info;

	as_client(call_things);
	cr_assert_eq(got.rc[0], 0, "%s", got.err[0].text);
	info = gpuq_server_info(got.g);
	cr_expect_str_eq(gpuq_get_str(info, "server", ""), "test/1");
	cr_expect_str_eq(gpuq_get_str(info, "role", ""), "operator");
	cr_expect_eq(got.rc[1], 0);
	cr_expect_eq(gpuq_get_int(got.reply[1], "n", 0), 5);
	cr_expect_eq(got.rc[2], 0);
	cr_expect_str_eq(got.reply[2]->s, "k-1");
	cr_expect_eq(got.rc[3], GPUQ_ELIMIT);
	cr_expect_str_eq(got.err[3].field, "spec.gpus");
	cr_expect(strstr(got.err[3].text, "too many, ") == got.err[3].text);
	cr_expect_eq(got.err[3].retry_ms, 250);
	cr_expect_eq(got.rc[4], GPUQ_ENOMETHOD);
	cr_expect_null(got.reply[3]);
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static void misuse(void)
{
	struct gpuq_val *big = gpuq_map(&got.arena);
	char *text = calloc(1, GPUQ_MSG_BYTES_MAX);
	char key[200];

	if (!connected())
		return;
	memset(text, 'x', GPUQ_MSG_BYTES_MAX);
	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	gpuq_put(&got.arena, big, "t", gpuq_strn(&got.arena, text, GPUQ_MSG_BYTES_MAX));
	free(text);
	got.rc[1] = gpuq_call(got.g, "echo", big, NULL, 0, &got.arena, &got.reply[1], &got.err[1]);
	got.rc[2] = gpuq_call(got.g, "echo", gpuq_list(&got.arena), NULL, 0, &got.arena,
			      &got.reply[2], &got.err[2]);
	got.rc[3] = gpuq_call(got.g, "echo", NULL, key, 0, &got.arena, &got.reply[3], &got.err[3]);
	got.rc[4] =
		gpuq_call(got.g, "echo", NULL, "\xff", 0, &got.arena, &got.reply[4], &got.err[4]);
	got.rc[5] =
		gpuq_recv(got.g, 0, got.ids, &got.arena, &got.reply[5], &got.rc[7], &got.err[5]);
	/* None of that did the connection any harm. */
	got.rc[6] = gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[6], &got.err[6]);
}

Test(client, refuses_what_the_server_would)
{
	as_client(misuse);
	cr_expect_eq(got.rc[1], GPUQ_ETOOBIG);
	for (int i = 2; i <= 5; i++)
		cr_expect_eq(got.rc[i], GPUQ_EINVAL, "%d: %s", i, got.err[i].text);
	cr_expect_eq(got.rc[6], 0, "%s", got.err[6].text);
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static int on_item(void *arg, const struct gpuq_val *item)
{
	(void)arg;
	if (!item) {
		got.ticks++;
		return got.stop_at < 0 && got.ticks == 2 ? 77 : 0;
	}
	got.items++;
	got.sum += item->i;
	/* One call at a time: this one must be refused, and not disturb the stream. */
	if (got.items == 1)
		got.rc[5] =
			gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[5], NULL);
	return got.items == got.stop_at ? 42 : 0;
}

static void stream_all(void)
{
	if (connected())
		got.rc[1] = gpuq_stream(got.g, "count", params_n(1000), 0, on_item, NULL,
					&got.arena, &got.reply[1], &got.err[1]);
	got.rc[2] = gpuq_stream(got.g, "fail", NULL, 0, on_item, NULL, &got.arena, &got.reply[2],
				&got.err[2]);
}

Test(client, takes_a_whole_stream)
{
	as_client(stream_all);
	cr_assert_eq(got.rc[1], 0, "%s", got.err[1].text);
	cr_expect_eq(got.items, 1000, "far more than the first credit");
	cr_expect_eq(got.sum, 999 * 1000 / 2);
	cr_expect_eq(got.reply[1]->i, 1000);
	cr_expect_eq(got.rc[5], GPUQ_EINVAL);
	cr_expect_eq(got.rc[2], GPUQ_ELIMIT);
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static void stream_some(void)
{
	got.stop_at = 100;
	if (!connected())
		return;
	got.rc[1] = gpuq_stream(got.g, "count", params_n(1000000), 0, on_item, NULL, &got.arena,
				&got.reply[1], &got.err[1]);
	got.rc[2] = gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[2], &got.err[2]);
	got.stop_at = -1;
	got.rc[3] = gpuq_stream(got.g, "keep", NULL, 1000, on_item, NULL, &got.arena, &got.reply[3],
				&got.err[3]);
	got.rc[4] = gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[4], &got.err[4]);
}

Test(client, leaves_a_stream_when_it_has_enough)
{
	as_client(stream_some);
	cr_expect_eq(got.rc[1], 42);
	cr_expect_eq(got.items, 100, "no item after the callback said stop");
	cr_expect_eq(told_closed, GPUQ_ECANCELED);
	cr_expect_eq(got.rc[2], 0, "the connection is as good as before");
	cr_expect_eq(got.rc[3], 77, "a tick may end it as well");
	cr_expect_eq(got.rc[4], 0);
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static void send_many(void)
{
	bool seen[GPUQ_OUTSTANDING_MAX] = { false };

	if (!connected())
		return;
	got.ok = true;
	for (size_t i = 0; i < GPUQ_OUTSTANDING_MAX; i++)
		got.ok = got.ok && gpuq_send(got.g, i < 100 ? "keep" : "echo", params_n((int64_t)i),
					     NULL, &got.ids[i], NULL) == 0;
	got.rc[1] = gpuq_send(got.g, "echo", NULL, NULL, &got.ids[0], &got.err[1]);
	/* The echoes are answered; one is taken, and a place is free for the flush, whose
	 * call must put answers of the others aside. */
	for (size_t n = 0; n < GPUQ_OUTSTANDING_MAX && got.ok; n++) {
		uint32_t id = 0;
		int call_rc = -1;

		if (n == 28)
			got.ok = gpuq_call(got.g, "flush", NULL, NULL, 0, &got.arena, &got.reply[2],
					   &got.err[2]) == 0;
		got.ok = got.ok &&
			 gpuq_recv(got.g, 20 * S, &id, &got.arena, &got.reply[1], &call_rc,
				   &got.err[3]) == 0 &&
			 call_rc == 0;
		for (size_t i = 0; i < GPUQ_OUTSTANDING_MAX; i++)
			if (got.ids[i] == id && !seen[i] &&
			    gpuq_get_int(got.reply[1], "n", -1) == (int64_t)i) {
				seen[i] = true;
				got.items++;
			}
	}
}

Test(client, has_many_calls_under_way)
{
	as_client(send_many);
	cr_expect(got.ok, "%s", got.err[3].text);
	cr_expect_eq(got.rc[1], GPUQ_EBUSY);
	cr_expect_eq(got.items, GPUQ_OUTSTANDING_MAX, "%lld", (long long)got.items);
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static void wait_in_vain(void)
{
	if (!connected())
		return;
	got.rc[1] = gpuq_call(got.g, "keep", NULL, NULL, S / 20, &got.arena, &got.reply[1],
			      &got.err[1]);
	got.rc[2] = gpuq_call(got.g, "echo", params_n(3), NULL, 0, &got.arena, &got.reply[2],
			      &got.err[2]);
}

Test(client, gives_up_at_its_deadline)
{
	as_client(wait_in_vain);
	cr_expect_eq(got.rc[1], GPUQ_ETIMEOUT);
	cr_expect_eq(told_closed, GPUQ_ECANCELED, "and says so");
	cr_expect_eq(got.rc[2], 0);
	cr_expect_eq(gpuq_get_int(got.reply[2], "n", 0), 3, "not the late answer of the other");
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static void lose_the_server(void)
{
	if (!connected())
		return;
	got.rc[1] =
		gpuq_call(got.g, "vanish", NULL, NULL, 0, &got.arena, &got.reply[1], &got.err[1]);
	got.rc[2] = gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[2], &got.err[2]);
	got.rc[3] = gpuq_connect(addr, "test/1", 0, &got.g, &got.err[3]);
}

Test(client, hears_why_the_server_goes)
{
	as_client(lose_the_server);
	cr_expect_eq(got.rc[1], GPUQ_EUNREACH);
	cr_expect_str_eq(got.err[1].text, "the server is stopping");
	cr_expect_eq(got.rc[2], GPUQ_EUNREACH);
	cr_expect_eq(got.rc[3], GPUQ_EUNREACH);
	cr_expect(access(path, F_OK) != 0, "the socket file is gone");
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

static void be_stopped(void)
{
	int stop[2];
	struct gpuq *late = NULL;

	if (pipe(stop) != 0)
		return;
	got.rc[0] = gpuq_connect_stop(addr, "test/1", 0, stop[0], &got.g, &got.err[0]);
	if (got.rc[0] == 0)
		got.rc[1] = gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[1],
				      &got.err[1]);
	got.ok = write(stop[1], "", 1) == 1;
	if (got.rc[0] == 0 && got.ok) {
		got.rc[2] = gpuq_call(got.g, "keep", NULL, NULL, 0, &got.arena, &got.reply[2],
				      &got.err[2]);
		got.rc[3] = gpuq_call(got.g, "echo", NULL, NULL, 0, &got.arena, &got.reply[3],
				      &got.err[3]);
		got.rc[4] = gpuq_connect_stop(addr, "test/1", 0, stop[0], &late, &got.err[4]);
	}
	close(stop[0]);
	close(stop[1]);
}

Test(client, a_call_ends_when_its_caller_is_stopped)
{
	as_client(be_stopped);
	cr_expect_eq(got.rc[0], 0, "%s", got.err[0].text);
	cr_expect_eq(got.rc[1], 0, "%s", got.err[1].text);
	cr_expect(got.ok);
	cr_expect_eq(got.rc[2], GPUQ_ECANCELED, "%s", got.err[2].text);
	cr_expect_eq(got.rc[3], GPUQ_EUNREACH, "its late answer would be another's");
	cr_expect_eq(got.rc[4], GPUQ_ECANCELED, "%s", got.err[4].text);
	gpuq_close(got.g);
	gpuq_arena_done(&got.arena);
}

/* We are the server's own user, and so its operator. */
#define OF_OPERATOR (GPUQ_CONNECTIONS_PER_UID + GPUQ_CONNECTIONS_RESERVE_OPERATOR)

static void fill_up(void)
{
	static struct gpuq *all[OF_OPERATOR + 1];
	size_t n = 0;

	while (n <= OF_OPERATOR && gpuq_connect(addr, "test/1", 0, &all[n], &got.err[1]) == 0)
		n++;
	got.items = (int64_t)n;
	got.rc[1] = got.err[1].code;
	gpuq_close(all[--n]);
	/* The server hears of the closing in its own time. */
	for (int i = 0; i < 500; i++) {
		got.rc[2] = gpuq_connect(addr, "test/1", 0, &all[n], &got.err[2]);
		if (got.rc[2] != GPUQ_EBUSY)
			break;
		usleep(10000);
	}
	n += got.rc[2] == 0;
	while (n > 0)
		gpuq_close(all[--n]);
}

Test(client, connections_of_one_user_are_limited)
{
	as_client(fill_up);
	cr_expect_eq(got.items, OF_OPERATOR);
	cr_expect_eq(got.rc[1], GPUQ_EBUSY, "%s", got.err[1].text);
	cr_expect_eq(got.rc[2], 0, "%s", got.err[2].text);
}

/* In a process of its own, with descriptors of its own: connect until the server says
 * that it has none left, let go, and get in again. */
static int crowd(void)
{
	struct gpuq *all[64];
	struct gpuq_err err = GPUQ_ERR_INIT;
	int n = 0, rc = 0;

	while (n < 64 && (rc = gpuq_connect(addr, "crowd/1", 30 * S, &all[n], &err)) == 0)
		n++;
	if (n == 0 || n == 64 || rc != GPUQ_EBUSY || !strstr(err.text, "descriptors") ||
	    err.retry_ms <= 0)
		return 1;
	while (n > 0)
		gpuq_close(all[--n]);
	for (int i = 0; i < 500; i++) {
		rc = gpuq_connect(addr, "crowd/1", 30 * S, &all[0], &err);
		if (rc != GPUQ_EBUSY)
			break;
		usleep(10000);
	}
	return rc == 0 ? 0 : 2;
}

Test(client, a_server_without_descriptors_says_so_and_recovers)
{
	struct rlimit few, old;
	int probe, status = -1;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(crowd());
	probe = dup(0);
	close(probe);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)probe + 10;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
		usleep(200);
	}
	setrlimit(RLIMIT_NOFILE, &old);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}

Test(client, refuses_addresses_that_are_none)
{
	static const struct {
		const char *addr;
		int rc;
	} cases[] = {
		{ "", GPUQ_EINVAL },
		{ "/run/sock", GPUQ_EINVAL },
		{ "unix:relative", GPUQ_EINVAL },
		{ "http://x", GPUQ_EINVAL },
		{ "unix:/nonexistent/gpuqd.sock", GPUQ_EUNREACH },
		{ "unix:/0123456789012345678901234567890123456789012345678901234567890123456789"
		  "0123456789012345678901234567890123456789",
		  GPUQ_EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq *g = NULL;

		cr_expect_eq(gpuq_connect(cases[i].addr, "t", S, &g, &err), cases[i].rc, "%s: %s",
			     cases[i].addr, err.text);
		cr_expect_null(g);
		cr_expect_neq(rpc_server_listen(server, cases[i].addr, 0600, &err), 0, "%s",
			      cases[i].addr);
	}
}

Test(client, a_socket_file_is_replaced_only_when_nobody_answers)
{
	const struct rpc_opts o = { .methods = methods, .server = "t", .version = "1" };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct rpc_server *second;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char other[128];
	struct stat st;
	FILE *f;
	int fd;

	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(rpc_server_new(loop, &o, &second, &err), 0);
	cr_expect_eq(rpc_server_listen(second, addr, 0600, &err), GPUQ_EBUSY, "%s", err.text);

	snprintf(other, sizeof(other), "unix:%s/stale", dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/stale", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	cr_expect_eq(rpc_server_listen(second, other, 0666, &err), 0, "%s", err.text);
	cr_assert_eq(stat(un.sun_path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0666);

	/* Another server's file at our place is not ours to remove. */
	unlink(un.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	rpc_server_free(second);
	cr_expect_eq(access(un.sun_path, F_OK), 0);
	close(fd);
	unlink(un.sun_path);

	f = fopen(un.sun_path, "w");
	fclose(f);
	cr_expect_eq(rpc_server_listen(server, other, 0600, &err), GPUQ_EINVAL, "%s", err.text);
	cr_expect_eq(access(un.sun_path, F_OK), 0, "a file that is no socket stays");
	unlink(un.sun_path);
}
