/* rpc_rig.h - a server of the rpc room in a test's hands
 *
 * One end of a socket pair is a connection of the server, the other is the test's; the
 * loop turns between them. Used by tests/unit/test_rpc*.c only.
 */
#ifndef TESTS_UNIT_RPC_RIG_H
#define TESTS_UNIT_RPC_RIG_H

#include <criterion/criterion.h>

#include "gpuqd/rpc/conn.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

extern struct loop *loop;
extern struct rpc_server *server;
extern struct gpuq_arena arena;

/* Calls that the server's methods record for the test. */
extern struct seen {
	struct rpc_call *call; /* of "later", which answers when the test does */
	int closed; /* why, as told */
	char items[256]; /* what the client of "later" sent, as JSON, a space behind each */
	int64_t count, sent; /* of "count", a stream of n numbers, and "flood" */
	unsigned resumed;
	bool hold; /* keep messages back */
	struct {
		rpc_release_fn fn;
		void *arg;
	} held[512];
	size_t n_held;
} seen;

void rig_setup(void);
void rig_teardown(void);
void turn(void); /* let the loop do what is to be done */
void on_item(void *arg, const struct gpuq_val *item); /* adds to seen.items */
void on_closed(void *arg, int why); /* sets seen.closed and fails the call arg */

/* The client's end. */
struct peer {
	int fd;
	struct rpc_conn *conn;
	struct gpuq_buf in;
	size_t taken;
	bool ended;
};

struct peer peer_as(uid_t uid, const char *user);
struct peer greeted(uid_t uid, const char *user); /* and hello is said */
void peer_done(struct peer *p);

void say_bytes(struct peer *p, const void *bytes, size_t n);
void say(struct peer *p, uint32_t id, const char *method, const char *params);
void say_note(struct peer *p, void (*write)(struct gpuq_buf *b, uint32_t id), uint32_t id);
void grant_10(struct gpuq_buf *b, uint32_t id); /* for say_note */

/* The next message as JSON; "" when there is none, "end" when the server hung up. */
const char *hear(struct peer *p);
bool starts(const char *s, const char *with);

#define HEAR(p, want) cr_expect_str_eq(hear(p), want)
#define HEAR_START(p, want)                                                                        \
	do {                                                                                       \
		const char *got_ = hear(p);                                                        \
		cr_expect(starts(got_, want), "got %s", got_);                                     \
	} while (0)

#endif
