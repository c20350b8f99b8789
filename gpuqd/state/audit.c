/* Who changed what. Records go straight to the store: nothing in memory stands for them. */
#include "gpuqd/state/model_int.h"

int audit_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	if (ev->type == EV_AUDIT_DROPPED) {
		for (size_t i = 0; i < ev->audit_dropped.n; i++)
			change_batch_put(&m->direct, TABLE_AUDIT,
					 ev->audit_dropped.keys + i * AUDIT_KEY_BYTES,
					 AUDIT_KEY_BYTES, NULL, 0);
		return 0;
	}
	if (ev->audited.len == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "nothing is to be noted");
	/* The number tells apart what happened in one turn. */
	change_batch_put(&m->direct, TABLE_AUDIT, key,
			 change_key_audit(key, ev->at_us, (uint32_t)m->n_audit++),
			 ev->audited.bytes, ev->audited.len);
	return 0;
}
