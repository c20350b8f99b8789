#define _GNU_SOURCE /* struct ucred */
#include "gpuqd/rpc/peer.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <uthash.h>

#include "gpuqd/rpc/conn.h"
#include "libgpuq/limits.h"

/* Names are requested again after so long: people join, and directories that did not
 * answer come back. */
#define NAMED_US (600 * INT64_C(1000000))
#define NAMELESS_US (60 * INT64_C(1000000))
#define PASSWD_BYTES 65536

struct user {
	uid_t uid;
	const char *name; /* in the arena */
	int64_t until_us;
	struct flight_user share;
	UT_hash_handle hh;
};

/* A user of another machine. */
struct remote_user {
	UT_hash_handle hh;
	struct flight_user share;
	char name[];
};

struct rpc_users {
	struct user *by_uid;
	struct remote_user *by_name;
	struct gpuq_arena names; /* grows only when a name changes */
};

struct rpc_users *users_new(void)
{
	return calloc(1, sizeof(struct rpc_users));
}

void users_free(struct rpc_users *u)
{
	struct remote_user *r, *more;
	struct user *x, *next;

	if (!u)
		return;
	HASH_ITER(hh, u->by_uid, x, next) {
		HASH_DEL(u->by_uid, x);
		free(x);
	}
	HASH_ITER(hh, u->by_name, r, more) {
		HASH_DEL(u->by_name, r);
		free(r);
	}
	gpuq_arena_done(&u->names);
	free(u);
}

static struct user *find(struct rpc_users *u, uid_t uid)
{
	struct user *x;

	HASH_FIND(hh, u->by_uid, &uid, sizeof(uid), x);
	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->uid = uid;
	HASH_ADD(hh, u->by_uid, uid, sizeof(x->uid), x);
	return x;
}

const char *users_name(struct rpc_users *u, uid_t uid, int64_t now_us)
{
	struct user *x = find(u, uid);
	struct passwd pw, *got = NULL;
	char number[24];
	const char *name = number;
	char *buf;

	if (!x)
		return NULL;
	if (x->name && now_us < x->until_us)
		return x->name;
	buf = malloc(PASSWD_BYTES);
	if (!buf)
		return x->name;
	snprintf(number, sizeof(number), "%lu", (unsigned long)uid);
	if (getpwuid_r(uid, &pw, buf, PASSWD_BYTES, &got) == 0 && got && got->pw_name[0])
		name = got->pw_name;
	if (!x->name || strcmp(x->name, name) != 0) {
		const char *copy = gpuq_arena_strdup(&u->names, name);

		if (copy)
			x->name = copy;
	}
	x->until_us = now_us + (name == number ? NAMELESS_US : NAMED_US);
	free(buf);
	return x->name;
}

struct flight_user *users_share(struct rpc_users *u, uid_t uid)
{
	struct user *x = find(u, uid);

	return x ? &x->share : NULL;
}

/* Names come from outside, and there may be ever new ones. */
static void forget_idle(struct rpc_users *u)
{
	struct remote_user *r, *next;

	HASH_ITER(hh, u->by_name, r, next)
		if (r->share.connections == 0 && r->share.bytes == 0) {
			HASH_DEL(u->by_name, r);
			free(r);
		}
}

struct flight_user *users_remote(struct rpc_users *u, const char *name, const char **own)
{
	const size_t n = strlen(name);
	struct remote_user *r;

	HASH_FIND(hh, u->by_name, name, n, r);
	if (!r) {
		if (HASH_COUNT(u->by_name) >= GPUQ_IDENTITIES_MAX)
			forget_idle(u);
		r = calloc(1, sizeof(*r) + n + 1);
		if (!r)
			return NULL;
		memcpy(r->name, name, n + 1);
		HASH_ADD_KEYPTR(hh, u->by_name, r->name, n, r);
	}
	if (own)
		*own = r->name;
	return &r->share;
}

int peer_of_socket(int fd, struct rpc_users *u, int64_t now_us, struct rpc_peer *out)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);
	const char *name;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) != 0)
		return GPUQ_EIO;
	name = users_name(u, cred.uid, now_us);
	if (!name)
		return GPUQ_ENOMEM;
	*out = (struct rpc_peer){ .auth = RPC_AUTH_UNIX,
				  .uid = cred.uid,
				  .gid = cred.gid,
				  .pid = cred.pid,
				  .user = name,
				  .role = RPC_ROLE_USER };
	return 0;
}
