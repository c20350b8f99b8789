/* guard.h - ends the process in order when the mapped file cannot be read
 *
 * Owns     the handlers of SIGBUS and SIGSEGV, the list of maps.
 * Used by  store/.
 *
 * A file that became shorter, a disk that cannot be read or a page that was damaged after it was
 * checked end the process by a signal somewhere inside LMDB, or by its assertion. Here that
 * becomes exit 74 with the table in the message. A fault anywhere else stays what it was.
 */
#ifndef GPUQD_STORE_GUARD_H
#define GPUQD_STORE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Watch where the file of fd is mapped. */
void guard_map(int fd);
void guard_unmap(int fd);

/* The table that this thread reads or writes (NULL = none), and whether it is inside LMDB. */
struct guard {
	const char *table;
	volatile bool inside;
};
extern _Thread_local struct guard guard_here;

/* End the process: the table that was read is damaged, and what is the sign of it. */
_Noreturn void guard_exit(const char *what);

#endif
