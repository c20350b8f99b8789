/* scope.h - what a token may be used for
 *
 * Owns     the list of scopes. Touches memory only.
 * Used by  rpc/ (a scope is a column of each method), state/token.c, rpc/method/m_token.c.
 *
 * A scope gives no right; it leaves those of the user that are named. On a unix socket all hold.
 */
#ifndef GPUQD_UTIL_SCOPE_H
#define GPUQD_UTIL_SCOPE_H

#include <stdint.h>

#include "libgpuq/schema.h"

/* X(symbol, word, what it is for). Bits are stored: rows are appended. */
#define SCOPES(X)                                                                                  \
	X(READ, "read", "lists, the state of jobs, output, reports")                               \
	X(SUBMIT, "submit", "new jobs")                                                            \
	X(CONTROL, "control", "cancel, hold, release, requeue, update; tokens")                    \
	X(SESSION, "session", "exec, attach, port-forward")                                        \
	X(MANAGE, "manage", "queues and other objects of the site")                                \
	X(OPERATE, "operate", "nodes, backups, recovery; the role operator")

enum scope_number {
#define X(sym, word, doc) SCOPE_NUMBER_##sym,
	SCOPES(X)
#undef X
		N_SCOPES
};

enum scope {
#define X(sym, word, doc) SCOPE_##sym = 1 << SCOPE_NUMBER_##sym,
	SCOPES(X)
#undef X
		SCOPE_ALL = (1 << N_SCOPES) - 1,
	SCOPE_DEFAULT = SCOPE_READ | SCOPE_SUBMIT | SCOPE_CONTROL
};

const char *scope_word(unsigned number); /* of enum scope_number */
/* Returns 0 and the scopes as bits, or GPUQ_EINVAL, which names those there are. */
int scope_parse(const struct gpuq_strlist *words, uint32_t *out, struct gpuq_err *err);

#endif
