/* Records without an object in memory: the audit log, outgoing messages, and traces of jobs that
 * have left memory. Applying such an event changes the store alone. And the reverse: objects of the
 * cluster that are in memory alone. */
#include "gpuqd/state/model_int.h"

int row_apply_audited(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	if (ev->audited.len == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "nothing is to be noted");
	/* The number distinguishes entries of one turn. */
	change_batch_put(&m->direct, TABLE_AUDIT, key,
			 change_key_audit(key, ev->at_us, (uint32_t)m->n_audit++),
			 ev->audited.bytes, ev->audited.len);
	return 0;
}

int row_apply_audit_dropped(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	for (size_t i = 0; i < ev->audit_dropped.n; i++)
		change_batch_put(&m->direct, TABLE_AUDIT,
				 ev->audit_dropped.keys + i * AUDIT_KEY_BYTES, AUDIT_KEY_BYTES,
				 NULL, 0);
	return 0;
}

int row_apply_notices_done(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	(void)err;
	for (size_t i = 0; i < ev->notices.n; i++)
		change_batch_put(&m->direct, TABLE_OUTBOX, key,
				 change_key_outbox(key, ev->notices.numbers[i]), NULL, 0);
	return 0;
}

int row_apply_beside_gone(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	(void)err;
	change_batch_put(&m->direct, TABLE_BESIDE, key,
			 change_key_cluster(key, change_key_job(key, ev->job.id, ev->job.index),
					    CLUSTER_DEFAULT),
			 NULL, 0);
	return 0;
}

/* Apply changes to jobs that left memory long ago: model_apply() of the record room knows their
 * records. */
int row_apply_history(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)m;
	(void)ev;
	(void)err;
	return 0;
}

int row_apply_object_seen(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	return objects_seen(m->objects, ev->object)
		       ? 0
		       : gpuq_fail(err, GPUQ_EINVAL, "%s is as before", ev->object->name);
}

int row_apply_object_gone(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const struct object_fact *f = ev->object;

	return objects_gone(m->objects, f->kind, f->namespace_, f->name)
		       ? 0
		       : gpuq_fail(err, GPUQ_ENOENT, "%s is not known", f->name);
}

int row_apply_objects_known(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	objects_known(m->objects, ev->objects.kind, ev->objects.known, ev->objects.home);
	return 0;
}
