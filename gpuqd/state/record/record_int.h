/* record_int.h - shared by the files of the records; no other room includes it */
#ifndef GPUQD_STATE_RECORD_RECORD_INT_H
#define GPUQD_STATE_RECORD_RECORD_INT_H

#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"

void *record_alloc(size_t n, size_t size); /* zeroed, never NULL */
/* Read a name of the model. It is often that of the previous record: last (NULL = none) is tried
 * first. */
/* A choice among the alternatives of claims. */
void record_put_choice(struct gpuq_buf *b, struct gpuq_alternatives c);
struct gpuq_alternatives record_get_choice(struct rec *r);
const char *record_get_name(struct model *m, struct rec *r, const char *last);
char *record_get_dup(struct rec *r); /* on the heap; nil gives NULL */
char *record_get_line(struct rec *r); /* as above; "" gives NULL, too */
void record_get_text(struct rec *r, char *out, size_t room);

int record_load_job(struct model *m, struct job_key key, struct rec *r, struct gpuq_err *err);

#endif
