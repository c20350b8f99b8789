/* The stream of an apiserver: cut into objects whatever the chunks, each object read or refused.
 * Byte 0 is the kind (a list or a stream, pods or nodes) and the way of cutting; the rest is the
 * reply. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/adopt/gate.h"
#include "gpuqd/cluster/kube/adopt/suspended.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/decode_pod.h"
#include "gpuqd/cluster/kube/watch/decode_node.h"
#include "gpuqd/cluster/kube/watch/decode_dra.h"
#include "gpuqd/cluster/kube/watch/decode_object.h"
#include "gpuqd/cluster/kube/watch/decode_plain.h"
#include "gpuqd/cluster/kube/watch/split.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "libgpuq/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool keep(void *arg, enum split_what what, const char *json, size_t n)
{
	struct gpuq_buf *out = arg;

	gpuq_buf_addc(out, what == SPLIT_META ? 'M' : 'O');
	gpuq_buf_add(out, json, n);
	gpuq_buf_addc(out, '\n');
	return true;
}

static int cut(enum split_kind kind, const char *p, size_t n, size_t chunk, struct gpuq_buf *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct split s;
	int rc = 0;

	split_init(&s, kind, keep, out);
	while (n > 0 && rc == 0) {
		size_t k = chunk < n ? chunk : n;
		char *copy = malloc(k); /* of its very size, so that a look beyond is seen */

		memcpy(copy, p, k);
		rc = split_feed(&s, copy, k, &err);
		free(copy);
		p += k;
		n -= k;
	}
	if (rc == 0)
		rc = split_end(&s, &err);
	if (rc != 0 && (err.code != rc || !*err.text))
		abort();
	split_done(&s);
	return rc;
}

/* Objects that were read are kept, copied and forgotten. */
static void read_as_dra(struct kube_object *o)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct dra *d = dra_new(), *copy;
	struct dra_at *at;
	struct object_fact f;
	const char *odd;

	for (int k = OBJECT_SLICE; d && k < OBJECT_BINDING; k++) {
		if (kube_read_dra(o, (enum object_kind)k, "c", &f, &err) != 0)
			continue;
		if (k == OBJECT_SLICE && dra_slice_seen(d, f.dra.slice) &&
		    dra_slice_seen(d, f.dra.slice))
			abort();
		if (k == OBJECT_SLICE)
			dra_node(d, f.dra.slice->node, &a, &at, &odd);
		if (k == OBJECT_DEVICE_CLASS)
			dra_class_seen(d, f.dra.class_);
		if (k == OBJECT_DEVICE_CLAIM)
			dra_claim_seen(d, f.dra.claim);
		if (k == OBJECT_DEVICE_CLAIM)
			dra_check(d, &f.dra.claim->spec, NULL);
		if (k == OBJECT_DEVICE_TEMPLATE)
			dra_template_seen(d, f.dra.template_);
	}
	copy = d ? dra_copy(d) : NULL;
	dra_free(d);
	dra_free(copy);
	gpuq_arena_done(&a);
}

/* A Job that is suspended, or a pod behind the gate. */
static void read_as_job(struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	json_t *made[] = { suspended_pod(o->object),        suspended_to_start(o->object),
			   suspended_to_stop(o->object, 7), suspended_to_reset(o->object),
			   suspended_to_restore(o->object), gate_opening(o->object, "n") };
	const enum suspended_state is = suspended_state(o->object, &err);

	if ((is == SUSPENDED_REFUSED || is == SUSPENDED_NOT_OURS) && !*err.text)
		abort();
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		if (!made[i])
			abort();
		json_decref(made[i]);
	}
	gate_is_closed(o->object);
}

/* A claim as a volume, and so on: each reader refuses or copes. */
static void read_as_objects(struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct object_fact f;

	read_as_dra(o);
	read_as_job(o);
	for (int k = 0; k < OBJECT_SLICE; k++) {
		if (kube_read_object(o, (enum object_kind)k, &f, &err) != 0)
			continue;
		if (!*f.name || !f.namespace_ || !f.volume || !f.class_ || !f.selected ||
		    f.cpu_milli < 0 || f.memory_bytes < 0)
			abort();
		for (size_t t = 0; t < f.n_required; t++)
			for (size_t i = 0; i < f.required[t].n; i++)
				if (!f.required[t].all[i].key)
					abort();
	}
}

/* An object that is read without the JSON library is as that has it. */
static void compare(const char *json, size_t n)
{
	json_t *plain = kube_plain(json, n);
	json_t *want = plain ? json_loadb(json, n, JSON_ALLOW_NUL, NULL) : NULL;

	if (plain && !json_equal(plain, want))
		abort();
	json_decref(plain);
	json_decref(want);
}

static void read_one(const char *json, size_t n, bool event, bool node)
{
	struct kube_object o = KUBE_OBJECT_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct node_fact nf;
	struct pod_fact pf;
	int rc;

	compare(json, n);
	rc = event ? kube_parse_event(json, n, &o, &err) : kube_parse_item(json, n, &o, &err);

	if (rc == 0 && node && kube_read_node(&o, &nf, &err) == 0) {
		if (!*nf.name || !nf.note || nf.cpu_milli < 0 || nf.memory_bytes < 0 ||
		    nf.n_devices > GPUQ_GPUS_PER_POD_MAX)
			abort();
	}
	if (rc == 0 && !node && kube_read_pod(&o, "0123abcd", &pf, &err) == 0) {
		if (!*pf.name || !pf.reason || !pf.message || !pf.token || pf.gpus_milli < 0 ||
		    pf.cpu_milli < 0 || pf.memory_bytes < 0 || pf.exit_code < 0 ||
		    pf.exit_code > 255)
			abort();
		if (pf.phase == POD_FAILED && pf.fault == POD_FAULT_NONE && pf.exit_code == 0)
			abort(); /* a failure must never read as a success */
	}
	if (rc == 0)
		read_as_objects(&o);
	kube_object_done(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_buf whole = GPUQ_BUF_INIT, parts = GPUQ_BUF_INIT;
	struct status st;
	struct http_answer a = { .complete = true, .error = "" };
	bool list, node;
	const char *p, *end;
	int rc, rc2;

	if (n == 0)
		return 0;
	list = data[0] & 1;
	node = data[0] & 2;
	rc = cut(list ? SPLIT_LIST : SPLIT_STREAM, (const char *)data + 1, n - 1, n, &whole);
	rc2 = cut(list ? SPLIT_LIST : SPLIT_STREAM, (const char *)data + 1, n - 1,
		  1 + (data[0] >> 2), &parts);
	if (rc != rc2 || whole.len != parts.len ||
	    (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
		abort();
	for (p = whole.data, end = p + whole.len; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		/* Lines within an item are read as well, empty ones are not. */
		if (nl > p)
			read_one(p + 1, (size_t)(nl - p - 1), !list, node);
		p = nl + 1;
	}
	a.status = 200 + data[0] * 2;
	a.body = (const char *)data + 1;
	a.n = n - 1;
	status_read(&a, &st);
	if (memchr(st.text, '\0', sizeof(st.text)) == NULL)
		abort();
	gpuq_buf_done(&whole);
	gpuq_buf_done(&parts);
	return 0;
}
