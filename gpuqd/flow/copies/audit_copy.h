/* audit_copy.h - checks a copy in its target against its manifest, and its database
 *
 * Owns     nothing.
 * Touches  a target; a child, gpuqd --audit. It blocks.
 * Used by  rota.c.
 *
 * In a process of its own, because a damaged database ends the process that maps it, and so that its memory
 * goes away with it.
 */
#ifndef GPUQD_FLOW_COPIES_AUDIT_COPY_H
#define GPUQD_FLOW_COPIES_AUDIT_COPY_H

#include "gpuqd/flow/copies/shelf.h"

struct audit_tool {
	const char *self; /* the program gpuqd */
	const char *config; /* its --config; NULL = none was given */
	int64_t limit_us;
	const atomic_bool *stop;
};

/* Fetch it, compare size and SHA-256 with the manifest, and open it as a start does. Returns 0 and
 * what was found: "whole: ..." or "damaged: ..."; < 0 when that cannot be said. */
int audit_copy(struct target *t, const struct shelf_copy *c, const struct audit_tool *tool,
	       char found[200], struct gpuq_err *err);

#endif
