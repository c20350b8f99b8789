/* code_keep.h - archives of --code stay as long as a job names them, and a while longer
 *
 * Owns     its timer. The files are store/codes.h's.
 * Touches  the model (reads).
 * Used by  daemon.c.
 */
#ifndef GPUQD_FLOW_CODE_CODE_KEEP_H
#define GPUQD_FLOW_CODE_CODE_KEEP_H

#include "libgpuq/err.h"

struct code_store;
struct codes;
struct journal;

struct code_keep;
int code_keep_new(struct journal *j, struct codes *codes, struct code_keep **out,
		  struct gpuq_err *err);
/* Where larger ones are as well; NULL = there is none. */
void code_keep_set_store(struct code_keep *k, struct code_store *s);
void code_keep_free(struct code_keep *k); /* NULL is allowed */

#endif
