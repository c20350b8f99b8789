/* failpoint.h - named places where a test can make the program fail
 *
 * Owns     the list of places that were compiled in, and what the environment asks of
 *          them. Touches the environment; kills the process on request.
 * Used by  whatever promises to survive being killed: dispatch, the store, the local
 *          cluster and its shepherd.
 *
 * A place is written as an expression:
 *   FAILPOINT("local.create.renamed");                     may kill, abort or delay
 *   if (FAILPOINT("store.commit")) return -EIO;            may also fail the step
 * and exists only when configured with --enable-failpoints; else it is `false`.
 *
 * $GPUQ_FAILPOINT="name[:nth]=action[,name...]" arms places: the nth (default: first)
 * passage does the action, once; "name:*" means each passage. Actions:
 *   kill       SIGKILL to oneself        abort      abort()
 *   eio        the expression is true    delay:MS   sleep
 */
#ifndef GPUQD_BASE_FAILPOINT_H
#define GPUQD_BASE_FAILPOINT_H

#include <stdbool.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

struct failpoint {
	const char *name;
	unsigned passed; /* how often it was passed */
};

#ifdef GPUQ_FAILPOINTS
/* The linker gathers the places of all files in one section, so that a test can list
 * every one of them without a register kept by hand. */
#define FAILPOINT(place)                                                                           \
	({                                                                                         \
		static struct failpoint fp_here_ = { (place), 0 };                                 \
		static struct failpoint *const fp_listed_                                          \
			__attribute__((used, section("gpuq_failpoints"))) = &fp_here_;             \
		failpoint_pass(fp_listed_);                                                        \
	})
#else
#define FAILPOINT(place) (false)
#endif

/* A place was passed: do what was asked. True = the caller is to fail with EIO. */
bool failpoint_pass(struct failpoint *fp);

/* Call fn once for each place that is compiled into this program; none without
 * --enable-failpoints. The same name may stand in several places. */
void failpoint_each(void (*fn)(void *arg, const char *name), void *arg);

#endif
