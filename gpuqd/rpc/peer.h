/* peer.h - who is at the other end
 *
 * Owns     the names of users, and what each of them shares.
 * Touches  the credentials of sockets, the user database.
 * Used by  server.c.
 */
#ifndef GPUQD_RPC_PEER_H
#define GPUQD_RPC_PEER_H

#include "gpuqd/base/loop.h"
#include "gpuqd/rpc/rpc.h"

struct flight_user;
struct rpc_users;

struct rpc_users *users_new(void);
void users_free(struct rpc_users *u);
/* The name of uid; lives as long as u. NULL without memory. */
const char *users_name(struct rpc_users *u, uid_t uid, int64_t now_us);
/* The share of a user that is not known by a uid; *own (may be NULL) is its name, which lives as long as the
 * share is in use. NULL without memory. */
struct flight_user *users_remote(struct rpc_users *u, const char *name, const char **own);
struct flight_user *users_share(struct rpc_users *u, uid_t uid); /* NULL without memory */
int peer_of_socket(int fd, struct rpc_users *u, int64_t now_us, struct rpc_peer *out);

#endif
