/* dra_copy.h - objects of dra.h, each in one block of memory
 *
 * Used by  dra.c.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_COPY_H
#define GPUQD_DEVICES_DRA_DRA_COPY_H

#include "gpuqd/devices/dra/dra.h"

struct dra_block {
	unsigned char *at;
	size_t n;
};

void dra_block_done(struct dra_block *b);

/* Each aborts without memory. */
const struct dra_slice *dra_copy_slice(struct dra_block *b, const struct dra_slice *s);
const struct dra_class *dra_copy_class(struct dra_block *b, const struct dra_class *c);
const struct dra_claim *dra_copy_claim(struct dra_block *b, const struct dra_claim *c);
const struct dra_template *dra_copy_template(struct dra_block *b, const struct dra_template *t);

bool dra_same_slice(const struct dra_slice *a, const struct dra_slice *b);
bool dra_same_class(const struct dra_class *a, const struct dra_class *b);
bool dra_same_spec(const struct dra_spec *a, const struct dra_spec *b);

#endif
