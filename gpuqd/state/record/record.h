/* record.h - objects as stored bytes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  state/record/model_apply.c, flow (records of a store).
 */
#ifndef GPUQD_STATE_RECORD_RECORD_H
#define GPUQD_STATE_RECORD_RECORD_H

#include "gpuqd/state/model.h"
#include "gpuqd/state/model.h"

/* Load one stored record into an empty model. Tables come in the order of model_load_order; those
 * of TABLE_KEY may come on a thread of their own. Return 0, GPUQ_ECORRUPT (names the record),
 * GPUQ_EVERSION, GPUQ_ENOMEM. */
int record_load(struct model *m, enum table t, const unsigned char *key, size_t key_len,
		const unsigned char *val, size_t val_len, struct gpuq_err *err);
/* Read the namespace of a record of TABLE_BESIDE. False: there is none. */
bool record_beside_read(const unsigned char *val, size_t n, char namespace_[64]);
extern const enum table model_load_order[];
extern const size_t model_load_order_n;

void record_put(struct batch *out, enum table t, const unsigned char *key, size_t n,
		struct gpuq_buf *b); /* empties b */
void record_pod(struct model *m, const struct pod *p, struct batch *out);
void record_node(struct model *m, const struct node *n, struct batch *out);
void record_request(struct model *m, const struct request *r, struct batch *out);
void record_key(struct model *m, const struct idem_key *k, struct batch *out);
void record_meta(struct model *m, struct batch *out);
void record_site(struct model *m, struct batch *out);
void record_beside(const struct job *j, struct batch *out);

#endif
