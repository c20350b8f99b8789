/* audit.h - the record of what was accepted, and what ran
 *
 * Owns     the audit file (one JSON object per line) and the counts that tests
 *          of exactly-once are judged by. Nothing here is undone by a rewind.
 *
 * A pod that carries gpuq.io/job stands for one slot of a job: (cluster, job,
 * array-index, index). A slot is live while the object is there and not
 * terminal, or while the node still runs its containers. Two live pods of one
 * slot are a duplicate.
 */
#ifndef FAKEKUBE_AUDIT_H
#define FAKEKUBE_AUDIT_H

#include <stdint.h>
#include <event2/event.h>

#include "store.h"

/* path NULL: keep the counts only. Returns 0, or -1 with errno. */
int audit_init(struct event_base *base, const char *path);
void audit_done(void);

/* A write that a client or a controller asked for and got. */
void audit_write(const char *verb, const struct version *v);
/* The node starts a pod's containers; and has none of them any more. */
void audit_run(const struct facts *f);
void audit_run_end(const struct facts *f, enum phase phase, int exit_code);
/* The node found fewer free devices than the pod asks for. */
void audit_overcommit(const struct facts *f, int64_t available);
/* Anything else worth a line: a rewind, a node that went. */
void audit_note(const char *what, const char *name);
void audit_request(void);

/* Counts that scripts can wait for: "creates", "binds", ...; -1 if unknown. */
int64_t audit_counter(const char *name);
json_t *audit_json(bool jobs);
/* Carry the counts over a restart. */
json_t *audit_save(void);
void audit_load(const json_t *saved);

#endif
