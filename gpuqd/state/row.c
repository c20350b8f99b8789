/* Records without an object in memory: the audit log, outgoing messages, and traces of jobs that
 * have left memory. Applying such an event changes the store alone. And the reverse: objects of the
 * cluster that are in memory alone. */
#include "gpuqd/state/model_int.h"

#include <stdio.h>
#include <string.h>

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

/* The node of a slice, or of a claim's devices, before it changes or goes, copied. */
static void node_of(const struct model *m, const struct object_fact *f, char out[256])
{
	const struct dra *d = objects_dra(m->objects);
	const struct dra_slice *s = f->kind == OBJECT_SLICE ? dra_slice(d, f->name) : NULL;
	const struct dra_claim *c =
		f->kind == OBJECT_DEVICE_CLAIM ? dra_claim(d, f->namespace_, f->name) : NULL;

	snprintf(out, 256, "%s", s ? s->node : c ? dra_claim_node(d, c) : "");
}

/* The offer of nodes follows from slices and classes, what foreign pods have of it from claims. */
static void settle(struct model *m, const struct object_fact *f, const char *before, int64_t at_us)
{
	char after[256];

	if (f->kind == OBJECT_DEVICE_CLAIM)
		pod_claim_seen(m, f->namespace_, f->name, at_us);

	if (f->kind == OBJECT_DEVICE_CLASS)
		node_settle_class(m, f->name);
	if (f->kind == OBJECT_UNHEALTHY)
		node_settle_one(m, f->name + strlen(OBJECT_UNHEALTHY_PREFIX));
	if (f->kind != OBJECT_SLICE && f->kind != OBJECT_DEVICE_CLAIM)
		return;
	node_of(m, f, after);
	for (int i = 0; i < (strcmp(before, after) == 0 ? 1 : 2); i++) {
		const char *name = i ? after : before;

		if (f->kind == OBJECT_SLICE)
			node_settle_one(m, name);
		else if (*name)
			node_recount_claims(m, name);
	}
}

int row_apply_object_seen(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	char before[256];

	node_of(m, ev->object, before);
	if (!objects_seen(m->objects, ev->object))
		return gpuq_fail(err, GPUQ_EINVAL, "%s is as before", ev->object->name);
	settle(m, ev->object, before, ev->at_us);
	return 0;
}

int row_apply_object_gone(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const struct object_fact *f = ev->object;

	char before[256];

	node_of(m, f, before);
	if (!objects_gone(m->objects, f->kind, f->namespace_, f->name))
		return gpuq_fail(err, GPUQ_ENOENT, "%s is not known", f->name);
	settle(m, f, before, ev->at_us);
	return 0;
}

int row_apply_objects_known(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	objects_known(m->objects, ev->objects.kind, ev->objects.known, ev->objects.why,
		      ev->objects.home);
	if (ev->objects.kind == OBJECT_SLICE && !ev->objects.known)
		node_settle_class(m, NULL);
	if (ev->objects.kind == OBJECT_DEVICE_CLAIM && !ev->objects.known)
		node_recount_claims(m, NULL);
	if (ev->objects.kind == OBJECT_UNHEALTHY && !ev->objects.known)
		node_settle_all(m);
	return 0;
}
