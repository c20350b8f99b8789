#include "tests/unit/model_rig.h"
#include "tests/unit/site_text.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/audit/model_audit.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"

/* ---- a store in memory ---- */

static int by_key(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
	int c = x->table != y->table ? (x->table < y->table ? -1 : 1) : memcmp(x->key, y->key, n);

	return c ? c : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static void audit(const struct model *m)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_eq(model_audit(m, &err), 0, "%s", err.text);
}

void disk_write(struct disk *d, struct model *m)
{
	struct batch b;

	audit(m);

	change_batch_init(&b);
	model_collect(m, &b);
	cr_assert(!b.failed);
	for (size_t i = 0; i < b.n; i++) {
		const struct change *c = &b.items[i];
		size_t k = 0;

		while (k < d->n && !(d->r[k].table == c->table && d->r[k].key_len == c->key_len &&
				     memcmp(d->r[k].key, c->key, c->key_len) == 0))
			k++;
		if (k < d->n) {
			free(d->r[k].val);
			d->r[k] = d->r[--d->n];
		}
		if (!c->val)
			continue;
		d->r = realloc(d->r, (d->n + 1) * sizeof(*d->r));
		d->r[d->n].table = c->table;
		d->r[d->n].key_len = c->key_len;
		memcpy(d->r[d->n].key, c->key, c->key_len);
		d->r[d->n].val = malloc(c->val_len + 1);
		memcpy(d->r[d->n].val, c->val, c->val_len);
		d->r[d->n++].val_len = c->val_len;
	}
	change_batch_done(&b);
	cr_assert(!model_is_dirty(m));
}

struct model *disk_load(struct disk *d)
{
	struct model *m = model_new("ffffffff");
	struct gpuq_err err = GPUQ_ERR_INIT;

	qsort(d->r, d->n, sizeof(*d->r), by_key);
	for (size_t t = 0; t < model_load_order_n; t++)
		for (size_t i = 0; i < d->n; i++)
			if (d->r[i].table == model_load_order[t])
				cr_assert_eq(record_load(m, d->r[i].table, d->r[i].key,
							 d->r[i].key_len, d->r[i].val,
							 d->r[i].val_len, &err),
					     0, "%s", err.text);
	audit(m);
	return m;
}

bool disk_has(const struct disk *d, enum table t, uint32_t id, int64_t index)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	size_t n = change_key_job(key, id, index);

	for (size_t i = 0; i < d->n; i++)
		if (d->r[i].table == t && d->r[i].key_len >= n && memcmp(d->r[i].key, key, n) == 0)
			return true;
	return false;
}

void disk_free(struct disk *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->r[i].val);
	free(d->r);
}

/* ---- events, shortly ---- */

struct model *fresh(int n_nodes, int n_devices)
{
	struct model *m = model_new(CLUSTER);
	struct device_fact devices[16];
	char name[16];

	for (int i = 0; i < n_devices; i++)
		devices[i] = (struct device_fact){ "GPU-x", "TEST", 1024, true };
	for (int i = 0; i < n_nodes; i++) {
		struct node_fact f = { .name = name,
				       .cpu_milli = 64000,
				       .memory_bytes = INT64_C(1) << 38,
				       .max_pods = 110,
				       .devices = devices,
				       .n_devices = (size_t)n_devices,
				       .ready = true,
				       .note = "" };
		struct event ev = { .type = EV_NODE_SEEN, .at_us = T0, .node = &f };

		snprintf(name, sizeof(name), "n%d", i);
		cr_assert_eq(model_apply(m, &ev, NULL), 0);
	}
	return m;
}

const char *submit_text(struct model *m, const char *text, const char *key)
{
	static struct gpuq_err err;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_spec_opts opts = { .file = "test", .default_name = "test", .now_us = T0 };
	struct gpuq_specs specs;
	struct gpuq_buf bytes = GPUQ_BUF_INIT, req = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_JOB_SUBMITTED, .at_us = T0 + 1 };
	const char *failed = NULL;

	err = (struct gpuq_err)GPUQ_ERR_INIT;
	if (gpuq_specs_read(&a, &opts, text, strlen(text), &specs, NULL, &err) != 0 ||
	    request_encode(&specs.items[0], &req, &err) != 0) {
		failed = err.text;
	} else {
		gpuq_mp_write(&bytes, gpuq_spec_write(&a, &specs.items[0]));
		ev.job = (struct job_key){ m->next_job_id, -1 };
		ev.submitted.spec = &specs.items[0];
		ev.submitted.spec_bytes = bytes.data;
		ev.submitted.spec_len = bytes.len;
		ev.submitted.request_bytes = req.data;
		ev.submitted.request_len = req.len;
		ev.submitted.user = "ann";
		ev.submitted.queue = specs.items[0].queue ? specs.items[0].queue : "default";
		ev.submitted.qos = "normal";
		ev.submitted.time_limit_us = GPUQ_UNLIMITED;
		ev.submitted.key = key;
		ev.submitted.key_hash = 42;
		if (model_apply(m, &ev, &err) != 0)
			failed = err.text;
	}
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&req);
	gpuq_arena_done(&a);
	return failed;
}

int place(struct model *m, struct job_key key, uint32_t n_pods, const char *node, uint16_t device)
{
	return place_at(m, key, n_pods, node, device, T0 + 10);
}

int place_at(struct model *m, struct job_key key, uint32_t n_pods, const char *node,
	     uint16_t device, int64_t at_us)
{
	struct placed_pod pods[8];
	uint16_t devices[8];
	struct event ev = { .type = EV_JOB_PLACED, .at_us = at_us, .job = key };

	for (uint32_t i = 0; i < n_pods; i++) {
		devices[i] = (uint16_t)(device + i);
		pods[i] = (struct placed_pod){ 0, i, node, &devices[i], 1, 1000, 0, NULL };
	}
	ev.placed.token = "0123456789abcdef0123456789abcdef";
	ev.placed.flavor = "default";
	ev.placed.pods = pods;
	ev.placed.n_pods = n_pods;
	return model_apply(m, &ev, NULL);
}

int pod_event(struct model *m, enum event_type t, struct job_key key, uint32_t attempt,
	      uint32_t index, int64_t at_us, int exit_code, enum pod_fault fault)
{
	struct event ev = { .type = t, .at_us = at_us, .pod = { key, attempt, index } };

	if (t == EV_POD_CREATED)
		ev.created.uid = "uid-1";
	if (t == EV_POD_STARTED)
		ev.started.start_us = at_us;
	if (t == EV_POD_ENDED) {
		ev.pod_ended.end_us = at_us;
		ev.pod_ended.exit_code = exit_code;
		ev.pod_ended.fault = fault;
		ev.pod_ended.message = "";
	}
	return model_apply(m, &ev, NULL);
}

int verdict(struct model *m, struct job_key key, int64_t at_us, enum event_type *type)
{
	struct job *j = model_find_job(m, key);
	struct event ev;

	cr_assert(j && model_job_attempt_over(j));
	job_verdict(j, &ev);
	ev.at_us = at_us;
	*type = ev.type;
	return model_apply(m, &ev, NULL);
}

void rig_site(struct model *m, const char *text)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct event ev = { .type = EV_SITE_APPLIED, .at_us = T0 };

	site_text_pack(text, &b);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
	gpuq_buf_done(&b);
}
