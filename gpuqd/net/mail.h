/* mail.h - pass a message to a command, beside the loop
 *
 * Owns     each child process and its pipes, until its callback or its cancelling.
 * Touches  one child a call, in a process group of its own; no shell.
 * Used by  flow/notify/outbox.
 *
 * The message is the command's standard input. Its output is kept as far as needed to
 * report a failure.
 */
#ifndef GPUQD_NET_MAIL_H
#define GPUQD_NET_MAIL_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/schema.h"

struct loop;
struct mail_call;

/* Fits a pipe, so that writing a message never blocks. */
#define MAIL_BYTES_MAX 16384u

/* rc 0: the command took it (exit 0). */
typedef void (*mail_fn)(void *arg, int rc, const struct gpuq_err *err);

/* argv: the command and its arguments, at least one. It is killed after limit_us. fn is
 * called later, never from inside, once. Returns 0; GPUQ_EIO (it cannot be started),
 * GPUQ_ETOOBIG, GPUQ_ENOMEM, and then fn is not called. */
int mail_send(struct loop *l, const struct gpuq_strlist *argv, const char *text, size_t n,
	      int64_t limit_us, mail_fn fn, void *arg, struct mail_call **out,
	      struct gpuq_err *err);
void mail_cancel(struct mail_call *c); /* kills it; fn is not called; NULL is allowed */

#endif
