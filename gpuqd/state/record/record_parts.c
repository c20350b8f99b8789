#include "gpuqd/state/record/record_parts.h"

#include <stdlib.h>
#include <string.h>

/* Positions are fixed for ever, as in record.c. */

bool record_has_parts(const struct node *n)
{
	const struct node_fact *f = &n->fact, *told = &n->told;

	return n->n_offered < n->n_devices || n->shorts[0].resource || (f->device && *f->device) ||
	       (told->device && *told->device) || f->n_mig || told->n_mig || f->n_resources ||
	       told->n_resources || f->links || f->numa || f->slots || f->replicas > 1 ||
	       told->replicas > 1;
}

static bool devices_same(const struct node *n)
{
	const struct node_fact *told = &n->told;

	if (told->n_devices != n->n_devices)
		return false;
	for (uint32_t i = 0; i < n->n_devices; i++)
		if (n->devices[i].uuid != told->devices[i].uuid ||
		    n->devices[i].product != told->devices[i].product ||
		    n->devices[i].memory_mib != told->devices[i].memory_mib ||
		    n->devices[i].healthy != told->devices[i].healthy)
			return false;
	return true;
}

/* Write how devices are divided and linked; n: of them. */
static void put_division(struct gpuq_buf *b, const struct node_fact *f, size_t n)
{
	varint_array(b, 7);
	varint_str(b, f->device ? f->device : "");
	varint_int(b, f->replicas);
	varint_int(b, f->slots);
	varint_array(b, (uint32_t)f->n_mig);
	for (size_t i = 0; i < f->n_mig; i++) {
		varint_array(b, 2);
		varint_str(b, f->mig[i].profile);
		varint_int(b, f->mig[i].count);
	}
	varint_array(b, (uint32_t)f->n_resources);
	for (size_t i = 0; i < f->n_resources; i++) {
		varint_array(b, 2);
		varint_str(b, f->resources[i].name);
		varint_int(b, f->resources[i].count);
	}
	varint_bin(b, f->links, f->links ? n * n : 0);
	varint_bin(b, f->numa, f->numa ? n : 0);
}

void record_put_labels(struct gpuq_buf *b, const struct gpuq_strmap *labels)
{
	varint_array(b, (uint32_t)labels->n);
	for (size_t i = 0; i < labels->n; i++) {
		varint_array(b, 2);
		varint_str(b, labels->keys[i]);
		varint_str(b, labels->vals[i]);
	}
}

static void put_devices(struct gpuq_buf *b, const struct node_fact *f)
{
	varint_array(b, (uint32_t)f->n_devices);
	for (size_t i = 0; i < f->n_devices; i++) {
		varint_array(b, 4);
		varint_str(b, f->devices[i].uuid);
		varint_str(b, f->devices[i].product);
		varint_int(b, f->devices[i].memory_mib);
		varint_bool(b, f->devices[i].healthy);
	}
}

static void put_shorts(struct gpuq_buf *b, const struct node *n)
{
	uint32_t k = 0;

	while (k < NODE_SHORTS_MAX && n->shorts[k].resource)
		k++;
	varint_array(b, k);
	for (uint32_t i = 0; i < k; i++) {
		varint_array(b, 5);
		varint_str(b, n->shorts[i].resource);
		varint_int(b, n->shorts[i].lacks);
		varint_int(b, n->shorts[i].until_us);
		varint_int(b, n->shorts[i].offered);
		varint_int(b, n->shorts[i].times);
	}
}

/* Labels and devices of the report are those of the node on most sites: then they are not written twice. */
void record_put_parts(struct gpuq_buf *b, const struct node *n)
{
	const bool labels = node_labels_same(&n->fact.labels, &n->told.labels),
		   devices = devices_same(n);

	varint_array(b, 9);
	put_division(b, &n->fact, n->n_devices);
	varint_int(b, n->n_offered);
	varint_str(b, n->odd ? n->odd : "");
	put_division(b, &n->told, n->told.n_devices);
	varint_bool(b, labels);
	varint_bool(b, devices);
	record_put_labels(b, labels ? &(const struct gpuq_strmap){ 0 } : &n->told.labels);
	put_devices(b, devices ? &(const struct node_fact){ 0 } : &n->told);
	put_shorts(b, n);
}

/* Return the bytes of n values; NULL = there are none. */
static const uint8_t *get_bytes(struct rec *r, size_t n)
{
	size_t len;
	const char *s = rec_get_str(r, &len);

	return s && len == n && n > 0 ? (const uint8_t *)s : NULL;
}

/* Read a list of names and numbers; it is on the heap. */
static struct gpuq_amount *get_amounts(struct model *m, struct rec *r, size_t *n)
{
	const uint32_t k = rec_get_array(r);
	struct gpuq_amount *out = record_alloc(k, sizeof(*out));

	for (uint32_t i = 0; i < k; i++) {
		const uint32_t more = rec_get_row(r, 2);

		out[i].name = record_get_name(m, r, NULL);
		out[i].count = rec_get_int(r);
		varint_skip_more(r, more);
	}
	*n = k;
	return out;
}

/* Lists that outlive the reading of a record only until the node has copied them. */
struct lists {
	struct gpuq_amount *mig, *resources;
	struct mig_fact *instances;
	struct device_fact *devices;
	struct gpuq_strmap labels;
};

static void lists_done(struct lists *l)
{
	free(l->mig);
	free(l->resources);
	free(l->instances);
	free(l->devices);
	free(l->labels.keys);
	free(l->labels.vals);
}

/* Read how devices are divided; the bytes are those of the record. */
static void get_division(struct model *m, struct rec *r, struct lists *l, struct node_fact *f,
			 struct rec *links, struct rec *numa)
{
	const uint32_t more = rec_get_row(r, 7);

	f->device = record_get_name(m, r, NULL);
	f->replicas = (uint32_t)rec_get_int(r);
	f->slots = (uint32_t)rec_get_int(r);
	l->mig = get_amounts(m, r, &f->n_mig);
	l->instances = record_alloc(f->n_mig, sizeof(*l->instances));
	for (size_t i = 0; i < f->n_mig; i++)
		l->instances[i] = (struct mig_fact){ l->mig[i].name, (uint32_t)l->mig[i].count };
	f->mig = l->instances;
	l->resources = get_amounts(m, r, &f->n_resources);
	f->resources = l->resources;
	*links = *r;
	varint_skip(r);
	*numa = *r;
	varint_skip(r);
	varint_skip_more(r, more);
}

static void take_bytes(struct node_fact *f, struct rec *links, struct rec *numa)
{
	f->links = get_bytes(links, f->n_devices * f->n_devices);
	f->numa = get_bytes(numa, f->n_devices);
}

void record_get_labels(struct model *m, struct rec *r, struct gpuq_strmap *out)
{
	const uint32_t k = rec_get_array(r);

	out->n = k;
	out->keys = record_alloc(k, sizeof(char *));
	out->vals = record_alloc(k, sizeof(char *));
	for (uint32_t i = 0; i < k; i++) {
		const uint32_t more = rec_get_row(r, 2);

		out->keys[i] = record_get_name(m, r, NULL);
		out->vals[i] = record_get_name(m, r, NULL);
		varint_skip_more(r, more);
	}
}

struct device_fact *record_get_devices(struct model *m, struct rec *r, size_t *n)
{
	const uint32_t k = rec_get_array(r);
	struct device_fact *out = record_alloc(k, sizeof(*out));

	for (uint32_t i = 0; i < k; i++) {
		const uint32_t more = rec_get_row(r, 4);

		out[i].uuid = record_get_name(m, r, NULL);
		out[i].product = record_get_name(m, r, NULL);
		out[i].memory_mib = rec_get_int(r);
		out[i].healthy = varint_get_bool(r);
		varint_skip_more(r, more);
	}
	*n = k;
	return out;
}

static void get_shorts(struct model *m, struct rec *r, struct node *n)
{
	const uint32_t k = rec_get_array(r);

	for (uint32_t i = 0; i < k; i++) {
		const uint32_t more = rec_get_row(r, 5);
		struct node_short s;

		s.resource = record_get_name(m, r, NULL);
		s.lacks = rec_get_int(r);
		s.until_us = rec_get_int(r);
		s.offered = rec_get_int(r);
		s.times = (uint32_t)rec_get_int(r);
		varint_skip_more(r, more);
		if (!r->bad && i < NODE_SHORTS_MAX)
			n->shorts[i] = s;
	}
}

/* Return the devices of the node as a fact has them; on the heap. */
static struct device_fact *own_devices(const struct node *n)
{
	struct device_fact *out = record_alloc(n->n_devices, sizeof(*out));

	for (uint32_t i = 0; i < n->n_devices; i++)
		out[i] = (struct device_fact){ n->devices[i].uuid, n->devices[i].product,
					       n->devices[i].memory_mib, n->devices[i].healthy };
	return out;
}

void record_get_parts(struct model *m, struct rec *r, struct node *n)
{
	struct node_fact f = { .n_devices = n->n_devices }, told = { 0 };
	struct rec links, numa, told_links, told_numa;
	struct lists own = { 0 }, was = { 0 };
	bool labels, devices;
	int64_t offered;
	const char *odd;
	uint32_t more = rec_get_array(r);

	if (more < 9) {
		varint_skip_more(r, more);
		return;
	}
	more -= 9;
	get_division(m, r, &own, &f, &links, &numa);
	offered = rec_get_int(r);
	odd = record_get_name(m, r, NULL);
	get_division(m, r, &was, &told, &told_links, &told_numa);
	labels = varint_get_bool(r);
	devices = varint_get_bool(r);
	record_get_labels(m, r, &was.labels);
	was.devices = record_get_devices(m, r, &told.n_devices);
	get_shorts(m, r, n);
	varint_skip_more(r, more);
	told.labels = labels ? n->fact.labels : was.labels;
	if (devices) {
		free(was.devices);
		was.devices = own_devices(n);
		told.n_devices = n->n_devices;
	}
	told.devices = was.devices;
	if (!r->bad) {
		take_bytes(&f, &links, &numa);
		take_bytes(&told, &told_links, &told_numa);
		node_set_parts(m, n, &f, &told);
		n->odd = *odd ? odd : NULL;
		if (offered >= 0 && offered < n->n_devices)
			n->n_offered = (uint32_t)offered;
	}
	lists_done(&own);
	lists_done(&was);
}
