/* rpc.h - requests of clients: sockets, identity, roles, one table of methods
 *
 * Owns     the listening sockets, the connections and the open calls.
 * Touches  unix sockets, the loop, the passwd database (names of users).
 * Used by  daemon.c, which gives the table; the methods, which answer.
 *
 * A method answers when it can: it gets a struct rpc_call, returns, and finishes the
 * call now or in any later turn by exactly one rpc_reply or rpc_fail; until then the
 * call and its memory live, even when its connection is long gone. A reply
 * is sent when the daemon's before_send hook says that everything it may depend on is
 * durable. Per connection, messages leave in order of creation. Methods deal
 * in ledger time (base/clock.h): what they reply becomes wall time here, and so does since_us and
 * until_us among the params the other way round.
 *
 * Limits and their reasons are in libgpuq/limits.h, the protocol in libgpuq/wire/wire.h.
 */
#ifndef GPUQD_RPC_RPC_H
#define GPUQD_RPC_RPC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/val.h"

struct loop;
struct rpc_call;
struct rpc_server;

enum rpc_role {
	RPC_ROLE_ANY, /* whoever may connect: one call of a connection, also before hello */
	RPC_ROLE_USER, /* has an identity; on a unix socket every caller does */
	RPC_ROLE_MANAGER, /* of some queue, as the daemon's is_manager says */
	RPC_ROLE_OPERATOR, /* gpuqd's own uid, and those named in the configuration */
};

const char *rpc_role_word(enum rpc_role r); /* "user" */

/* How it is known which user is at the other end. */
enum rpc_auth {
	RPC_AUTH_UNIX, /* by the kernel */
	RPC_AUTH_CERT, /* by a client certificate */
	RPC_AUTH_TOKEN, /* by a token that gpuqd issued */
	RPC_AUTH_JWT, /* by a web token of an issuer that the configuration names */
	RPC_AUTH_REVIEW, /* by a token that the cluster knows */
	RPC_AUTH_NONE, /* it is not: hello has not come */
};

const char *rpc_auth_word(enum rpc_auth a); /* "unix" */

/* The user at the other end. uid gives rights only where the kernel reports it: examine auth first. */
struct rpc_peer {
	enum rpc_auth auth;
	uid_t uid; /* not of unix: the account of that name where jobs are local, else -1 */
	gid_t gid;
	pid_t pid; /* 0 = of another machine */
	const char *user; /* the uid's name, else its number; the name that it proved */
	enum rpc_role role;
	/* Not of unix, where all of it is without limit. */
	uint32_t scopes; /* enum scope */
	const char *queues; /* to which it is restricted, joined by commas; "" or NULL = all */
	const char *groups; /* that its issuer says it is in, likewise; "" or NULL = none */
	int64_t expires_us; /* ledger time; 0 = never */
	const char *credential; /* id of a token, fingerprint of a certificate; NULL of unix */
};

/* The user of a token or a certificate; borrowed. */
struct rpc_identity {
	enum rpc_auth auth;
	const char *user, *queues, *groups, *credential;
	uint32_t scopes;
	int64_t expires_us;
};

/* The answer to authenticate(): the identity, or (id NULL) why there is none. */
typedef void (*rpc_authed_fn)(void *arg, const struct rpc_identity *id, const struct gpuq_err *err);

/* Certificates and private keys of tls:// sockets, PEM; NULL = none. */
struct rpc_tls {
	const char *cert, *key, *client_ca;
	bool by_email; /* certificates name users by an email address; else by a URI */
};

/* Answer a call. params is the method's struct, filled by its schema (NULL without
 * one). Returns 0 when the call is or will be finished; a negative code with *err is
 * as good as rpc_fail(call, err). */
typedef int (*rpc_fn)(void *arg, struct rpc_call *call, const void *params, struct gpuq_err *err);

/* One row per method: access, reading of params, and the manual's list. */
struct rpc_method {
	const char *name; /* "job.submit" */
	enum rpc_role least; /* least role of a caller */
	unsigned scope; /* enum scope: that a token needs */
	bool mutates; /* a repeat needs a key to be safe */
	bool stream; /* may send items before its reply */
	const struct gpuq_schema *params; /* NULL = taken as they are */
	rpc_fn fn;
	const char *doc; /* one sentence */
	size_t max_bytes; /* of its message; 0 = GPUQ_MSG_BYTES_PLAIN */
	bool lasts; /* as long as the client likes: not on a connection of the reserve */
};

/* rc is 0, or why what the message rests on is not stored: then the error goes out
 * instead. It may be called at once; arg is used up. */
typedef void (*rpc_release_fn)(void *arg, int rc, const struct gpuq_err *err);

struct rpc_opts {
	const struct rpc_method *methods; /* ends with name == NULL; lives on */
	void *arg; /* for the methods and the callbacks below */
	const char *server; /* "gpuqd/0.1.0", for hello */
	const char *version; /* "0.1.0" */
	/* Names (or numeric uids) of operators besides gpuqd's own uid; may be NULL.
	 * Copied. Ends with NULL. */
	const char *const *operators;
	unsigned connections_per_user; /* 0 = GPUQ_CONNECTIONS_PER_UID */
	/* Hold each message back until it may leave; NULL = it may at once. call is
	 * valid during the call only. */
	void (*before_send)(void *arg, struct rpc_call *call, rpc_release_fn release,
			    void *release_arg);
	/* Add to the reply to hello ({cluster: {kind}} and the like); may be NULL. */
	void (*describe)(void *arg, struct gpuq_arena *a, struct gpuq_val *info);
	/* True if user manages any queue; NULL = no user does. */
	bool (*is_manager)(void *arg, const char *user);
	/* Find out whose token it is; fn is called once, perhaps at once. NULL = tokens are refused. */
	void (*authenticate)(void *arg, const char *token, rpc_authed_fn fn, void *fn_arg);
	/* Map a name that was proved to an account of this machine (jobs are local): 0, or why it may
	 * have none. NULL = users need no account. */
	int (*account)(void *arg, const char *user, uid_t *uid, gid_t *gid, struct gpuq_err *err);
	/* Note in the audit that an identity was refused; at most once a second. NULL = it is not. */
	void (*refused)(void *arg, const char *address, const char *why, unsigned more);
	struct rpc_tls tls;
};

int rpc_server_new(struct loop *l, const struct rpc_opts *opts, struct rpc_server **out,
		   struct gpuq_err *err);

/* Listen on "unix:/path" or "tls://address:port" (mode is of the former); may be called several
 * times. A stale socket file is replaced. Returns 0, GPUQ_EINVAL (address, certificates), GPUQ_EBUSY
 * (another server answers there), GPUQ_EPERM, GPUQ_EIO. */
int rpc_server_listen(struct rpc_server *s, const char *addr, mode_t mode, struct gpuq_err *err);

/* As given to rpc_server_new; holds for open connections too. */
int rpc_server_set_operators(struct rpc_server *s, const char *const *names, struct gpuq_err *err);

/* Look at the files of opts.tls again; new connections get what is there now. */
void rpc_server_reload_tls(struct rpc_server *s);

/* As opts.tls.by_email; where it changes, connections by certificates end. */
void rpc_server_set_certificate_user(struct rpc_server *s, bool by_email);

/* Show out all connections of this credential. */
void rpc_server_drop(struct rpc_server *s, const char *credential, const struct gpuq_err *why);

/* True if a connection is there by this credential. */
bool rpc_server_uses(const struct rpc_server *s, const char *credential);

/* The bound on connections of one user, the reserve beside it; of new connections. */
void rpc_server_set_connections(struct rpc_server *s, unsigned per_user);

/* Take no more connections, remove the socket files, tell clients and release them
 * once what may leave has left. */
void rpc_server_stop(struct rpc_server *s);

/* Close everything. Calls that were not finished hear it by their closed callback and
 * must not be used after. NULL is allowed. */
void rpc_server_free(struct rpc_server *s);

struct rpc_stats {
	uint64_t accepted, refused; /* connections */
	uint64_t calls, failed; /* finished calls, and those with an error */
	unsigned connections, open_calls; /* now */
	uint64_t flight_bytes; /* unfinished messages, calls under way, unread replies; now */
	unsigned waiting; /* connections whose message waits for a part of the bound on them */
};
void rpc_server_stats(const struct rpc_server *s, struct rpc_stats *out);

/* As rpc_fail, of one who could not prove who it is: after GPUQ_AUTH_DELAY_S, logged and noted in the audit. */
void rpc_deny(struct rpc_call *c, const struct gpuq_err *err);
/* The network that the call came from, as text for counting: an IPv4 address, an IPv6 /64; "" = it is known who calls. */
#define RPC_NET_BYTES 17
void rpc_call_net(const struct rpc_call *c, char out[RPC_NET_BYTES]);

/* Properties of a call. All of them live as long as the call. */
const struct rpc_peer *rpc_call_peer(const struct rpc_call *c);
const struct rpc_method *rpc_call_method(const struct rpc_call *c);
const char *rpc_call_key(const struct rpc_call *c); /* idempotency key, or NULL */
int64_t rpc_call_deadline_us(const struct rpc_call *c); /* loop_mono_us clock; 0 = none */
int64_t rpc_call_ahead_us(const struct rpc_call *c); /* wall time less ledger time */
const struct gpuq_val *rpc_call_params(const struct rpc_call *c); /* a map; without "$" */
struct gpuq_arena *rpc_call_arena(struct rpc_call *c);

/* Register callbacks. resume: items may be sent again after rpc_item said no. closed: the client
 * has cancelled (why = GPUQ_ECANCELED, already replied) or is gone (GPUQ_EGONE): the method
 * should finish the call soon, from the callback if it likes. Without closed a call cannot be
 * cancelled. */
void rpc_call_watch(struct rpc_call *c, void (*resume)(void *arg),
		    void (*closed)(void *arg, int why), void *arg);

/* Finish the call. result may be NULL (nil) and is not used after. */
void rpc_reply(struct rpc_call *c, const struct gpuq_val *result);
void rpc_fail(struct rpc_call *c, const struct gpuq_err *err);

/* Send one item of a stream. false: not sent, as the client gave no credit or reads
 * too slowly; try the same item again when resume is called. Items for a client that
 * is gone are taken and dropped. */
bool rpc_item(struct rpc_call *c, const struct gpuq_val *item);
/* The same of a value that is MessagePack already. */
bool rpc_item_bytes(struct rpc_call *c, const struct gpuq_buf *value);
bool rpc_item_ready(struct rpc_call *c); /* as rpc_item, without an item; requests resume too */

/* Hear the items that the client sends, each as it comes; it lives until item returns,
 * which may finish the call. None comes before it was granted: a client that sends more is
 * shown out. Needs rpc_call_watch, whose arg is used. */
void rpc_call_take(struct rpc_call *c, void (*item)(void *arg, const struct gpuq_val *item));
void rpc_call_grant(struct rpc_call *c, unsigned n);

/* Finish a stream: rpc_reply under the name that reads well there. */
void rpc_end(struct rpc_call *c, const struct gpuq_val *result);

#endif
