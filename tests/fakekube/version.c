#include "version.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const phases[] = { "", "Pending", "Running", "Succeeded", "Failed" };

const char *phase_text(enum phase phase)
{
	return phases[phase];
}

static enum phase phase_parse(const char *s)
{
	for (size_t i = 1; s && i < ARRAY_LEN(phases); i++) {
		if (strcmp(s, phases[i]) == 0)
			return (enum phase)i;
	}
	return PHASE_NONE;
}

static int dump_to_buf(const char *p, size_t n, void *b)
{
	buf_add(b, p, n);
	return 0;
}

static void add_json(struct buf *b, const json_t *j)
{
	if (json_dump_callback(j, dump_to_buf, b, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		abort();
}

static struct version *version_alloc(struct kind *kind, struct facts *facts, size_t len,
				     uint64_t rv)
{
	struct version *v = xmalloc(sizeof(*v) + len + 2);

	memset(v, 0, sizeof(*v));
	v->refs = 1;
	v->kind = kind;
	v->facts = facts;
	v->rv = rv;
	v->len = (uint32_t)len;
	return v;
}

static void version_seal(struct version *v)
{
	v->s[v->len] = ',';
	v->s[v->len + 1] = '\0';
}

static const char *const omitted_when_empty[] = { "labels", "annotations", "finalizers",
						  "ownerReferences" };

struct version *version_new(struct kind *kind, json_t *obj, uint64_t rv)
{
	json_t *meta = json_object_get(obj, "metadata");
	json_t *status = json_object_get(obj, "status");
	const char *deletion = json_string_value(json_object_get(meta, "deletionTimestamp"));
	const char *ip = json_string_value(json_object_get(status, "podIP"));
	static struct buf b; /* kept: growing it anew for each write is a fifth of its cost */
	uint32_t rv_off, rv_len, status_off = 0;
	struct version *v;
	const char *key;
	json_t *value;

	b.len = 0;
	for (size_t i = 0; i < ARRAY_LEN(omitted_when_empty); i++) {
		const json_t *at = json_object_get(meta, omitted_when_empty[i]);

		if (at && !json_object_size(at) && !json_array_size(at))
			json_object_del(meta, omitted_when_empty[i]);
	}
	json_object_del(meta, "resourceVersion");
	buf_adds(&b, "{\"metadata\":");
	add_json(&b, meta);
	b.len--; /* the brace: the resourceVersion goes before it */
	buf_adds(&b, ",\"resourceVersion\":\"");
	rv_off = (uint32_t)b.len;
	buf_addf(&b, "%llu", (unsigned long long)rv);
	rv_len = (uint32_t)b.len - rv_off;
	buf_adds(&b, "\"}");
	json_object_foreach(obj, key, value)
	{
		if (strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0 ||
		    strcmp(key, "metadata") == 0 || strcmp(key, "status") == 0)
			continue;
		buf_adds(&b, ",");
		buf_add_json(&b, key, strlen(key));
		buf_adds(&b, ":");
		add_json(&b, value);
	}
	if (status) {
		buf_adds(&b, ",\"status\":");
		status_off = (uint32_t)b.len;
		add_json(&b, status);
	}
	buf_adds(&b, "}");

	v = version_alloc(kind, facts_new(kind, obj), b.len, rv);
	memcpy(v->s, b.s, b.len);
	version_seal(v);
	v->rv_off = rv_off;
	v->rv_len = rv_len;
	v->status_off = status_off;
	v->phase = phase_parse(json_string_value(json_object_get(status, "phase")));
	if (ip && strlen(ip) < sizeof(v->pod_ip))
		strcpy(v->pod_ip, ip);
	if (deletion) {
		v->deletion_us = time_parse(deletion);
		v->deletion_grace_s =
			json_integer_value(json_object_get(meta, "deletionGracePeriodSeconds"));
	}
	return v;
}

/* Phase and podIP of a status text that the simulated kubelet wrote: they stand
 * at fixed places, see kubelet_status.c. */
static void read_own_status(struct version *v, const char *status, size_t len)
{
	static const char ip_key[] = "\"podIP\":\"";
	const char *ip = memmem(status, len, ip_key, sizeof(ip_key) - 1);
	char phase[12];

	v->pod_ip[0] = '\0';
	if (ip && sscanf(ip + sizeof(ip_key) - 1, "%15[0-9.]", v->pod_ip) != 1)
		v->pod_ip[0] = '\0';
	if (sscanf(status, "{\"phase\":\"%11[A-Za-z]", phase) == 1)
		v->phase = phase_parse(phase);
}

struct version *version_edit(const struct version *prev, uint64_t rv, const struct version_edit *e)
{
	static const char rv_key[] = "\"resourceVersion\":\"";
	const size_t at = prev->rv_off - (sizeof(rv_key) - 1);
	const size_t rv_end = prev->rv_off + prev->rv_len;
	const bool status = e->status && prev->status_off;
	char mark[128] = "", number[24], when[TIME_TEXT_SIZE];
	size_t mark_len = 0, tail, len;
	struct version *v;
	char *p;
	int rv_len;

	if (e->deletion_us)
		mark_len = (size_t)snprintf(
			mark, sizeof(mark),
			"\"deletionTimestamp\":\"%s\",\"deletionGracePeriodSeconds\":%lld,",
			time_text(when, e->deletion_us), (long long)e->deletion_grace_s);
	rv_len = snprintf(number, sizeof(number), "%llu", (unsigned long long)rv);
	tail = status ? prev->status_off - rv_end : prev->len - rv_end;
	len = prev->rv_off + mark_len + (size_t)rv_len + tail + (status ? e->status_len + 1 : 0);

	v = version_alloc(prev->kind, prev->facts, len, rv);
	prev->facts->refs++;
	v->phase = prev->phase;
	memcpy(v->pod_ip, prev->pod_ip, sizeof(v->pod_ip));
	v->deletion_us = e->deletion_us ? e->deletion_us : prev->deletion_us;
	v->deletion_grace_s = e->deletion_us ? e->deletion_grace_s : prev->deletion_grace_s;
	v->raw = prev->raw;
	v->rv_off = prev->rv_off + (uint32_t)mark_len;
	v->rv_len = (uint32_t)rv_len;

	p = v->s;
	p = mempcpy(p, prev->s, at);
	p = mempcpy(p, mark, mark_len);
	p = mempcpy(p, prev->s + at, prev->rv_off - at);
	p = mempcpy(p, number, (size_t)rv_len);
	p = mempcpy(p, prev->s + rv_end, tail);
	if (prev->status_off)
		v->status_off =
			prev->status_off + (uint32_t)mark_len + (uint32_t)rv_len - prev->rv_len;
	if (status) {
		p = mempcpy(p, e->status, e->status_len);
		*p = '}';
		if (prev->kind == &kinds[KIND_PODS])
			read_own_status(v, e->status, e->status_len);
	}
	version_seal(v);
	return v;
}

struct version *version_raw(struct kind *kind, struct facts *facts, const char *text, size_t len,
			    uint64_t rv)
{
	static const char rv_key[] = "\"resourceVersion\":\"";
	const char *at = memmem(text, len, rv_key, sizeof(rv_key) - 1);
	struct version *v = version_alloc(kind, facts, len, rv);

	if (!at)
		abort();
	memcpy(v->s, text, len);
	version_seal(v);
	at += sizeof(rv_key) - 1;
	v->rv_off = (uint32_t)(at - text);
	v->rv_len = (uint32_t)(strchr(at, '"') - at);
	v->phase = PHASE_PENDING;
	v->raw = true;
	return v;
}

struct version *version_ref(struct version *v)
{
	v->refs++;
	return v;
}

void version_unref(struct version *v)
{
	if (!v || --v->refs)
		return;
	facts_unref(v->facts);
	free(v);
}

json_t *version_json(const struct version *v)
{
	json_t *obj, *whole;

	if (v->raw)
		return NULL;
	obj = json_loadb(v->s, v->len, JSON_ALLOW_NUL, NULL);
	if (!obj)
		abort(); /* our own text */
	whole = json_pack("{s:s,s:s}", "kind", v->kind->name, "apiVersion", v->kind->api_version);
	json_object_update(whole, obj);
	json_decref(obj);
	return whole;
}

void version_text(const struct version *v, struct buf *out)
{
	buf_add(out, v->kind->prefix, v->kind->prefix_len);
	buf_add(out, v->s + 1, v->len - 1);
}

const char *version_label(const struct version *v, const char *key)
{
	for (size_t i = 0; i < v->facts->n_labels; i++) {
		if (strcmp(v->facts->labels[i].key, key) == 0)
			return v->facts->labels[i].value;
	}
	return NULL;
}
