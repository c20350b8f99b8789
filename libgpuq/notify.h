/* notify.h - events that a job reports, and to whom
 *
 * Owns     the names of the events, struct gpuq_notify, and the checks of addresses
 *          and URLs.
 * Touches  memory only.
 * Used by  spec.h (job files, options), the daemon (recipients, limits of the site).
 */
#ifndef LIBGPUQ_NOTIFY_H
#define LIBGPUQ_NOTIFY_H

#include <stdbool.h>

#include "libgpuq/err.h"

struct gpuq_strlist;

/* X(symbol, word, Slurm's mail type) - bits, in this order for ever: they are stored. */
#define GPUQ_NOTIFY(X)                                                                             \
	X(BEGIN, "begin", "BEGIN")                                                                 \
	X(END, "end", "END")                                                                       \
	X(FAIL, "fail", "FAIL")                                                                    \
	X(REQUEUE, "requeue", "REQUEUE")                                                           \
	X(PREEMPT, "preempt", NULL)                                                                \
	X(INVALID_DEPEND, "invalid_depend", "INVALID_DEPEND")                                      \
	X(TIME_LIMIT, "time_limit", "TIME_LIMIT")                                                  \
	X(TIME_90, "time_90", "TIME_LIMIT_90")                                                     \
	X(TIME_80, "time_80", "TIME_LIMIT_80")                                                     \
	X(TIME_50, "time_50", "TIME_LIMIT_50")                                                     \
	X(ARRAY_TASKS, "array_tasks", "ARRAY_TASKS")                                               \
	X(PROVISIONED, "provisioned", NULL)                                                        \
	X(PROVISION_FAILED, "provision_failed", NULL)

enum gpuq_notify_bit {
#define X(sym, word, slurm) GPUQ_NOTIFY_BIT_##sym,
	GPUQ_NOTIFY(X)
#undef X
		N_GPUQ_NOTIFY_BITS
};

enum gpuq_notify_on {
#define X(sym, word, slurm) GPUQ_NOTIFY_##sym = 1 << GPUQ_NOTIFY_BIT_##sym,
	GPUQ_NOTIFY(X)
#undef X
	/* The events of Slurm's ALL: all but those of the time limit, and an array as a whole. */
	GPUQ_NOTIFY_ALL = GPUQ_NOTIFY_BEGIN | GPUQ_NOTIFY_END | GPUQ_NOTIFY_FAIL |
			  GPUQ_NOTIFY_REQUEUE | GPUQ_NOTIFY_PREEMPT | GPUQ_NOTIFY_INVALID_DEPEND |
			  GPUQ_NOTIFY_PROVISIONED | GPUQ_NOTIFY_PROVISION_FAILED,
	/* The cluster refuses jobs: an event of the site, which only its hooks can request. */
	GPUQ_NOTIFY_REFUSED = 1 << 30,
	GPUQ_NOTIFY_TIMES = GPUQ_NOTIFY_TIME_90 | GPUQ_NOTIFY_TIME_80 | GPUQ_NOTIFY_TIME_50
};

struct gpuq_notify {
	unsigned on; /* enum gpuq_notify_on, or'ed; 0 = nothing is reported */
	const char *mail; /* address, or NULL */
	const char *webhook; /* http or https, or NULL */
};

#define GPUQ_MAIL_BYTES_MAX 254u
#define GPUQ_URL_BYTES_MAX 1024u

/* "begin", and "all", "none"; with slurm also "BEGIN", "ALL", "NONE", "STAGE_OUT" (nothing).
 * False: there is no such word. */
bool gpuq_notify_word(const char *word, bool slurm, unsigned *on);
const char *gpuq_notify_name(unsigned bit); /* one of them: "begin"; NULL = none */

/* A user's name or NAME@DOMAIN of letters, digits and ._%+=- alone, so that it can stand in
 * a header and on a command line and be nothing else. */
int gpuq_mail_check(const char *address, struct gpuq_err *err);
/* http://HOST[:PORT]/... or https://, of printable ASCII, without a user, a fragment, or
 * steps ("..", "%2e") that would lead out of a prefix of it. */
int gpuq_url_check(const char *url, struct gpuq_err *err);
/* Does a URL that was checked begin with one of these? */
bool gpuq_url_allowed(const char *url, const struct gpuq_strlist *prefixes);
/* Does an address end with one of these ("@example.org")? */
bool gpuq_mail_allowed(const char *address, const struct gpuq_strlist *ends);
/* "https://host" of a URL: what follows may be a secret. */
void gpuq_url_host(const char *url, char *out, unsigned room);

#endif
