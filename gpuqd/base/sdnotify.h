/* sdnotify.h - report readiness to the service manager (sd_notify's protocol)
 *
 * Owns     the address in $NOTIFY_SOCKET and the watchdog's period.
 * Touches  the environment (the variables are taken out, children must not speak for
 *          us) and one datagram socket. Never blocks.
 * Used by  daemon.c.
 *
 * Without a service manager every call does nothing and succeeds. A datagram that
 * cannot be delivered is dropped: the manager then acts on its own time limits, which
 * is what it is for.
 */
#ifndef GPUQD_BASE_SDNOTIFY_H
#define GPUQD_BASE_SDNOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Read and unset $NOTIFY_SOCKET, $WATCHDOG_USEC, $WATCHDOG_PID. Call once, early. */
void sdnotify_init(void);

/* How often the manager wants to hear WATCHDOG=1, in us; 0 = it does not. Callers
 * send at half of it. */
int64_t sdnotify_watchdog_us(void);

/* Each sends one message; true when it was handed to the kernel. */
bool sdnotify_ready(void); /* READY=1 */
bool sdnotify_reloading(void); /* RELOADING=1 with the monotonic time; READY=1 follows */
bool sdnotify_stopping(void); /* STOPPING=1 */
bool sdnotify_watchdog(void); /* WATCHDOG=1 */

/* STATUS=, one line for `systemctl status`; newlines become spaces. */
bool sdnotify_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
