#include "gpuqd/state/record/request.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "gpuqd/util/block.h"
#include "gpuqd/util/hash.h"
#include "gpuqd/util/varint.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "libgpuq/wire/mp.h"

/* True if the group lists the claim already. */
static bool is_kept(const struct gpuq_group *g, const char *claim)
{
	for (size_t i = 0; i < g->n_volumes; i++)
		if (strcmp(g->volumes[i].claim, claim) == 0)
			return true;
	return false;
}

static int by_claim(const void *a, const void *b)
{
	return strcmp(((const struct gpuq_volume *)a)->claim,
		      ((const struct gpuq_volume *)b)->claim);
}

/* Keep the claims of the group's volumes, each once and sorted, wherever they are mounted: a volume
 * may restrict the nodes. A manifest's are in its template. */
static bool keep_claims(struct gpuq_arena *mem, const struct gpuq_group *from,
			struct gpuq_group *to)
{
	const struct gpuq_val *list = gpuq_path(from->template_, "spec", "volumes", NULL);
	const size_t n_list = list && list->type == GPUQ_LIST ? list->n : 0;
	struct gpuq_volume *kept =
		gpuq_arena_calloc(mem, from->n_volumes + n_list + 1, sizeof(*kept));

	to->volumes = kept;
	to->n_volumes = 0;
	for (size_t i = 0; kept && i < from->n_volumes; i++)
		if (from->volumes[i].claim && !is_kept(to, from->volumes[i].claim))
			kept[to->n_volumes++].claim = from->volumes[i].claim;
	for (size_t i = 0; kept && i < n_list; i++) {
		const char *claim = gpuq_get_str(gpuq_get(list->items[i], "persistentVolumeClaim"),
						 "claimName", "");

		if (*claim && !is_kept(to, claim))
			kept[to->n_volumes++].claim = claim;
	}
	for (size_t i = 0; i < to->n_volumes; i++)
		kept[i].path = "/";
	if (to->n_volumes)
		qsort(kept, to->n_volumes, sizeof(*kept), by_claim);
	return kept != NULL;
}

/* Fields that do not affect where and when a job can run are left out, so that jobs which differ
 * only in them share a request. */
int request_encode(const struct gpuq_spec *spec, struct gpuq_buf *out, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_spec bare = { .n_groups = spec->n_groups };
	static const char *const none[] = { "true" };
	struct gpuq_val *v;
	int rc = 0;

	bare.flavors = spec->flavors;
	bare.flavor_rules = spec->flavor_rules;
	bare.spot = spec->spot;
	bare.licenses = spec->licenses;
	bare.exclusive = spec->exclusive;
	bare.isolation = spec->isolation;
	bare.requeue = true;
	bare.context.umask = -1;
	bare.groups = gpuq_arena_calloc(&mem, spec->n_groups, sizeof(*bare.groups));
	if (!bare.groups) {
		rc = gpuq_no_memory(err);
		goto out;
	}
	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *from = &spec->groups[i];
		struct gpuq_group *to = &bare.groups[i];

		*to = *from;
		to->image = NULL;
		to->workdir = NULL;
		to->template_ = NULL;
		/* A group needs a command to read back as valid. */
		to->command = (struct gpuq_strlist){ (const char **)none, 1 };
		to->args = (struct gpuq_strlist){ 0 };
		to->env = (struct gpuq_strmap){ 0 };
		if (!keep_claims(&mem, from, to)) {
			rc = gpuq_no_memory(err);
			goto out;
		}
	}
	v = gpuq_spec_write(&mem, &bare);
	if (v)
		gpuq_mp_write(out, v);
	if (!v || out->failed)
		rc = gpuq_no_memory(err);
out:
	gpuq_arena_done(&mem);
	return rc;
}

/* ---- the block of a request ---- */

/* Copy a list of strings into the block. */
static const char **take_strs(struct block *b, const char *const *items, size_t n)
{
	const char **to = n ? block_take(b, NULL, n * sizeof(*to)) : NULL;

	for (size_t i = 0; i < n; i++) {
		const char *s = block_take_str(b, items[i]);

		if (to)
			to[i] = s;
	}
	return to;
}

/* True if the group restricts or prefers nodes. Most do not, and then need no copy of it. */
static bool says_where(const struct gpuq_group *g)
{
	return g->n_required || g->n_preferred || g->n_tolerations || g->nodes.n || g->exclude.n ||
	       g->topology_required || g->topology_preferred || g->n_slices || g->n_volumes ||
	       g->n_claims || g->runtime_class;
}

/* Most names are this word: it is stored once. */
static const char *take_name(struct block *b, const char *name)
{
	static const char usual[] = "main";

	return strcmp(name, usual) == 0 ? usual : block_take_str(b, name);
}

/* Return the amounts of a group; its strings and `where` still belong to the group. */
static struct request_group amounts_of(const struct gpuq_group *g)
{
	return (struct request_group){ .name = g->name ? g->name : "main",
				       .mig = g->mig,
				       .mig_ok = g->mig_ok,
				       .mig_more = g->mig_more,
				       .where = says_where(g) ? g : NULL,
				       .pods_min = g->pods_min,
				       .pods_max = g->pods_max,
				       .gpus_milli = g->gpus_milli,
				       .gpu_memory_bytes = g->gpu_memory_bytes,
				       .gpu_cores = g->gpu_cores,
				       .cpu_milli = g->cpu_milli,
				       .memory_bytes = g->memory_bytes,
				       .resources = g->resources,
				       .n_resources = (uint32_t)g->n_resources };
}

static struct gpuq_strlist take_list(struct block *b, const struct gpuq_strlist *l)
{
	return (struct gpuq_strlist){ take_strs(b, l->items, l->n), l->n };
}

/* Copy terms with their requirements into the block. */
static struct gpuq_term *take_terms(struct block *b, const struct gpuq_term *terms, size_t n)
{
	struct gpuq_term *to = n ? block_take(b, terms, n * sizeof(*to)) : NULL;

	for (size_t i = 0; i < n; i++) {
		struct gpuq_require *all = block_take(b, terms[i].all, terms[i].n * sizeof(*all));

		for (size_t k = 0; k < terms[i].n; k++) {
			const struct gpuq_require from = terms[i].all[k];
			const struct gpuq_require copy = { block_take_str(b, from.key), from.op,
							   take_list(b, &from.values) };

			if (all)
				all[k] = copy;
		}
		if (to)
			to[i].all = all;
	}
	return to;
}

/* Copy the tolerations of a group into the block. */
static struct gpuq_toleration *take_tolerations(struct block *b, const struct gpuq_group *g)
{
	struct gpuq_toleration *to =
		g->n_tolerations ? block_take(b, g->tolerations, g->n_tolerations * sizeof(*to))
				 : NULL;

	for (size_t i = 0; i < g->n_tolerations; i++) {
		struct gpuq_toleration one = g->tolerations[i];

		one.key = block_take_str(b, one.key);
		one.value = block_take_str(b, one.value);
		one.effect = block_take_str(b, one.effect);
		if (to)
			to[i] = one;
	}
	return to;
}

/* Copy the levels of its topology request. */
static struct gpuq_slice *take_slices(struct block *b, const struct gpuq_group *g)
{
	struct gpuq_slice *to =
		g->n_slices ? block_take(b, g->slices, g->n_slices * sizeof(*to)) : NULL;

	for (size_t i = 0; i < g->n_slices; i++) {
		const char *level = block_take_str(b, g->slices[i].level);

		if (to)
			to[i].level = level;
	}
	return to;
}

/* A request keeps no more of a volume. */
static struct gpuq_volume *take_claims(struct block *b, const struct gpuq_group *g)
{
	struct gpuq_volume *to =
		g->n_volumes ? block_take(b, NULL, g->n_volumes * sizeof(*to)) : NULL;

	for (size_t i = 0; i < g->n_volumes; i++) {
		const char *claim = block_take_str(b, g->volumes[i].claim);

		if (to)
			to[i] = (struct gpuq_volume){ .claim = claim, .path = "/" };
	}
	return to;
}

static struct gpuq_strlist take_selectors(struct block *b, const struct gpuq_strlist *from)
{
	return (struct gpuq_strlist){ take_strs(b, from->items, from->n), from->n };
}

/* Copy the claims of devices. */
static struct gpuq_claim *take_device_claims(struct block *b, const struct gpuq_group *g)
{
	struct gpuq_claim *to = g->n_claims ? block_take(b, NULL, g->n_claims * sizeof(*to)) : NULL;

	for (size_t i = 0; i < g->n_claims; i++) {
		const struct gpuq_claim *from = &g->claims[i];
		struct gpuq_claim c = *from;

		c.name = block_take_str(b, from->name);
		c.claim = block_take_str(b, from->claim);
		c.template_ = block_take_str(b, from->template_);
		c.class_ = block_take_str(b, from->class_);
		c.selectors = take_selectors(b, &from->selectors);
		c.first = from->n_first ? block_take(b, NULL, from->n_first * sizeof(*c.first))
					: NULL;
		for (size_t k = 0; k < from->n_first; k++) {
			struct gpuq_claim_option o = from->first[k];

			o.class_ = block_take_str(b, o.class_);
			o.selectors = take_selectors(b, &from->first[k].selectors);
			if (c.first)
				c.first[k] = o;
		}
		if (to)
			to[i] = c;
	}
	return to;
}

/* Copy the amounts of a group, and what it says of its nodes. */
static const struct gpuq_group *take_where(struct block *b, const struct gpuq_group *g,
					   const struct request_group *amounts)
{
	struct gpuq_group *to = block_take(b, NULL, sizeof(*to));
	struct gpuq_group copy = { .name = amounts->name,
				   .mig = amounts->mig,
				   .mig_ok = amounts->mig_ok,
				   .mig_more = amounts->mig_more,
				   .pods_min = g->pods_min,
				   .pods_max = g->pods_max,
				   .gpus_milli = g->gpus_milli,
				   .gpu_memory_bytes = g->gpu_memory_bytes,
				   .gpu_cores = g->gpu_cores,
				   .cpu_milli = g->cpu_milli,
				   .memory_bytes = g->memory_bytes,
				   .resources = (struct gpuq_amount *)(uintptr_t)amounts->resources,
				   .n_resources = amounts->n_resources,
				   .n_required = g->n_required,
				   .n_preferred = g->n_preferred,
				   .n_tolerations = g->n_tolerations,
				   .n_slices = g->n_slices };

	copy.required = take_terms(b, g->required, g->n_required);
	copy.preferred = take_terms(b, g->preferred, g->n_preferred);
	copy.tolerations = take_tolerations(b, g);
	copy.nodes = take_list(b, &g->nodes);
	copy.exclude = take_list(b, &g->exclude);
	copy.topology_required = block_take_str(b, g->topology_required);
	copy.topology_preferred = block_take_str(b, g->topology_preferred);
	copy.slices = take_slices(b, g);
	copy.volumes = take_claims(b, g);
	copy.n_volumes = g->n_volumes;
	copy.runtime_class = block_take_str(b, g->runtime_class);
	copy.claims = take_device_claims(b, g);
	copy.n_claims = g->n_claims;
	copy.claims_beside = g->claims_beside;
	if (to)
		*to = copy;
	return to;
}

/* Copy amounts with their names into the block. */
static const struct gpuq_amount *take_amounts(struct block *b, const struct gpuq_amount *items,
					      uint32_t n)
{
	struct gpuq_amount *to = n ? block_take(b, items, n * sizeof(*to)) : NULL;

	for (uint32_t i = 0; i < n; i++) {
		const char *name = block_take_str(b, items[i].name);

		if (to)
			to[i].name = name;
	}
	return to;
}

/* owns: `where` is copied, too. */
static void take_groups(struct block *b, const struct gpuq_spec *spec, struct request *r, bool owns)
{
	struct request_group *to = block_take(b, NULL, spec->n_groups * sizeof(*to));

	for (size_t i = 0; i < spec->n_groups; i++) {
		struct request_group one = amounts_of(&spec->groups[i]);

		one.name = take_name(b, one.name);
		one.mig = block_take_str(b, one.mig);
		one.mig_more = take_list(b, &one.mig_more);
		one.resources = take_amounts(b, one.resources, one.n_resources);
		if (owns && one.where)
			one.where = take_where(b, one.where, &one);
		if (to)
			to[i] = one;
	}
	r->spec.groups = to;
	r->spec.n_groups = (uint32_t)spec->n_groups;
}

/* Fill the block; called twice: for its size, and to write. */
static struct request *fill(struct block *b, const struct gpuq_spec *spec, const void *bytes,
			    size_t n, bool owns)
{
	struct request head = { .len = (uint32_t)n };
	struct request *r = block_take(b, NULL, sizeof(head));

	take_groups(b, spec, &head, owns);
	head.spec.flavors.items = take_strs(b, spec->flavors.items, spec->flavors.n);
	head.spec.flavors.n = spec->flavors.n;
	if (spec->flavor_rules)
		head.spec.flavor_rules = block_take(b, spec->flavor_rules,
						    spec->flavors.n * sizeof(*spec->flavor_rules));
	head.spec.licenses.keys = take_strs(b, spec->licenses.keys, spec->licenses.n);
	head.spec.licenses.vals = take_strs(b, spec->licenses.vals, spec->licenses.n);
	head.spec.licenses.n = spec->licenses.n;
	head.spec.exclusive = spec->exclusive;
	head.spec.isolation = (uint8_t)spec->isolation;
	head.spec.spot = (uint8_t)spec->spot;
	head.bytes = block_take(b, bytes, n);
	head.n_pods = (uint32_t)gpuq_spec_pods(spec);
	head.gpus_milli = gpuq_spec_gpus_milli(spec);
	if (r)
		*r = head;
	return r;
}

/* Make a stored request of a spec. */
static struct request *make(const struct gpuq_spec *spec, const void *bytes, size_t n, bool owns)
{
	struct block b = { 0 };

	fill(&b, spec, bytes, n, owns);
	/* The first pass has added up the size: a request is one allocation, and is freed as one. */
	b = (struct block){ .at = calloc(1, b.n) };
	return b.at ? fill(&b, spec, bytes, n, owns) : NULL;
}

struct request *request_borrow(const struct gpuq_spec *spec, const void *bytes, size_t n)
{
	return make(spec, bytes, n, false);
}

int request_decode(const void *bytes, size_t n, struct request **out, struct gpuq_err *err)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_reader rd = { .arena = &mem, .err = err, .lenient = true, .stored = true };
	struct gpuq_spec spec = { 0 };
	struct gpuq_val *v;
	int rc = gpuq_mp_read(&mem, &lim, bytes, n, &v, err);

	if (rc == 0)
		rc = gpuq_spec_read(&rd, v, &spec);
	if (rc == 0) {
		*out = make(&spec, bytes, n, true);
		rc = *out ? 0 : gpuq_no_memory(err);
	}
	gpuq_arena_done(&mem);
	return rc;
}

bool request_spec_of(struct gpuq_arena *a, const struct gpuq_spec *spec, struct request_spec *out)
{
	struct request_group *groups = gpuq_arena_calloc(a, spec->n_groups, sizeof(*groups));

	for (size_t i = 0; groups && i < spec->n_groups; i++)
		groups[i] = amounts_of(&spec->groups[i]);
	*out = (struct request_spec){ .flavors = spec->flavors,
				      .flavor_rules = spec->flavor_rules,
				      .spot = (uint8_t)spec->spot,
				      .licenses = spec->licenses,
				      .groups = groups,
				      .n_groups = (uint32_t)spec->n_groups,
				      .exclusive = spec->exclusive,
				      .isolation = (uint8_t)spec->isolation };
	return groups != NULL;
}

void request_group_of(const struct request_group *g, struct gpuq_group *out)
{
	*out = g->where
		       ? *g->where
		       : (struct gpuq_group){ .name = g->name,
					      .mig = g->mig,
					      .mig_ok = g->mig_ok,
					      .mig_more = g->mig_more,
					      .pods_min = g->pods_min,
					      .pods_max = g->pods_max,
					      .gpus_milli = g->gpus_milli,
					      .gpu_memory_bytes = g->gpu_memory_bytes,
					      .gpu_cores = g->gpu_cores,
					      .cpu_milli = g->cpu_milli,
					      .memory_bytes = g->memory_bytes,
					      .resources =
						      (struct gpuq_amount *)(uintptr_t)g->resources,
					      .n_resources = g->n_resources };
}

/* ---- a request like the previous one ---- */

/* Return the length of the next value, and where it begins. */
static size_t value_at(struct rec *r, const unsigned char **from)
{
	*from = r->p;
	varint_skip(r);
	return r->bad ? 0 : (size_t)(r->p - *from);
}

/* True if the value is this text: a short string, whose header is one byte. */
static bool is_key(const unsigned char *p, size_t n, const char *key)
{
	return n == strlen(key) + 1 && p[0] == (0xa0 | (n - 1)) && memcmp(p + 1, key, n - 1) == 0;
}

/* Copy a value that is text, with room for its NUL. */
static bool text_of(const unsigned char *p, size_t n, char out[32])
{
	struct rec r = { p, p + n, false };
	size_t len;
	const char *s;

	if (n == 0 || (p[0] & 0xe0) != 0xa0)
		return false;
	s = rec_get_str(&r, &len);
	if (r.bad || len >= 32)
		return false;
	memcpy(out, s, len);
	out[len] = '\0';
	return true;
}

/* Read thousandths as gpuq_spec_write() writes them: a whole number, or a 64-bit binary fraction
 * that is a number of thousandths but for the last bits. */
static bool milli_at(const unsigned char *p, size_t n, int64_t *out)
{
	struct rec r = { p, p + n, false };
	uint64_t bits = 0, times, milli, rest;
	int shift;

	if (n > 0 && p[0] < 0x80) {
		*out = rec_get_int(&r) * 1000;
		return true;
	}
	if (n != 9 || p[0] != 0xcb)
		return false;
	for (int i = 1; i < 9; i++)
		bits = bits << 8 | p[i];
	/* The value is 53 bits, shifted right. A sign bit makes the shift negative. */
	shift = 1075 - (int)(bits >> 52);
	if (shift < 22 || shift > 62)
		return false;
	times = ((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52) * 1000;
	milli = (times + (UINT64_C(1) << (shift - 1))) >> shift;
	rest = milli << shift > times ? (milli << shift) - times : times - (milli << shift);
	*out = (int64_t)milli;
	return rest <= (UINT64_C(1) << shift) / 1000000;
}

/* Most of many different requests differ from the previous one only in cpus and memory. If these
 * bytes do, set g, the only group of that request, to theirs. */
static bool differs_in_amounts(const struct request *last, const void *bytes, size_t n,
			       struct gpuq_group *g)
{
	struct rec a = { last->bytes, last->bytes + last->len, false };
	struct rec b = { bytes, (const unsigned char *)bytes + n, false };
	struct gpuq_err err;
	char text[32];
	uint32_t left;

	/* The header of a map with few keys is one byte. */
	if (n == 0 || *a.p != *b.p || (*a.p & 0xf0) != 0x80)
		return false;
	left = *a.p++ & 0x0f;
	b.p++;
	while (left-- > 0) {
		const unsigned char *key, *key_b, *x, *y;
		const size_t n_key = value_at(&a, &key), n_key_b = value_at(&b, &key_b);
		const size_t n_x = value_at(&a, &x), n_y = value_at(&b, &y);

		if (a.bad || b.bad || n_key != n_key_b || memcmp(key, key_b, n_key) != 0)
			return false;
		if (n_x == n_y && memcmp(x, y, n_x) == 0)
			continue;
		if (is_key(key, n_key, "cpus")
			    ? !milli_at(y, n_y, &g->cpu_milli)
			    : !is_key(key, n_key, "memory") || !text_of(y, n_y, text) ||
				      gpuq_bytes_parse(text, &g->memory_bytes, &err) != 0)
			return false;
	}
	return a.p == a.end && b.p == b.end;
}

/* Return a request made from the last one with other cpus and memory; NULL if these bytes differ in
 * more, or it has no memory. */
static struct request *like_last(const struct request *last, const void *bytes, size_t n)
{
	struct gpuq_group g;
	struct gpuq_spec spec = { .groups = &g, .n_groups = 1 };

	if (!last || last->spec.n_groups != 1 || last->spec.groups[0].where)
		return NULL;
	request_group_of(&last->spec.groups[0], &g);
	if (!differs_in_amounts(last, bytes, n, &g))
		return NULL;
	spec.flavors = last->spec.flavors;
	spec.flavor_rules = last->spec.flavor_rules;
	spec.spot = last->spec.spot;
	spec.licenses = last->spec.licenses;
	spec.exclusive = last->spec.exclusive;
	spec.isolation = last->spec.isolation;
	return request_borrow(&spec, bytes, n);
}

int request_decode_after(const struct requests *all, const void *bytes, size_t n,
			 struct request **out, struct gpuq_err *err)
{
	struct request *r = like_last(all->list ? all->list->prev : NULL, bytes, n);

	if (!r)
		return request_decode(bytes, n, out, err);
	*out = r;
	return 0;
}

/* ---- all requests ---- */

static uint32_t hash_of_id(const void *item)
{
	return hash_number(((const struct request *)item)->id);
}

static uint32_t hash_of_bytes(const void *item)
{
	const struct request *r = item;

	return hash_bytes(r->bytes, r->len);
}

struct request *request_find(const struct requests *all, uint32_t id)
{
	struct request *r;

	table_each(&all->by_id, hash_number(id), r)
		if (r->id == id)
			return r;
	return NULL;
}

struct request *request_find_bytes(const struct requests *all, const void *bytes, size_t n)
{
	struct request *r;

	table_each(&all->by_bytes, hash_bytes(bytes, n), r)
		if (r->len == n && memcmp(r->bytes, bytes, n) == 0)
			return r;
	return NULL;
}

void request_add(struct requests *all, struct request *r)
{
	DL_APPEND(all->list, r);
	table_add(&all->by_id, r, hash_of_id);
	table_add(&all->by_bytes, r, hash_of_bytes);
}

void request_remove(struct requests *all, struct request *r)
{
	DL_DELETE(all->list, r);
	table_remove(&all->by_id, r, hash_of_id);
	table_remove(&all->by_bytes, r, hash_of_bytes);
	free(r);
}

void request_expect(struct requests *all, size_t n)
{
	table_reserve(&all->by_id, (uint32_t)n, hash_of_id);
	table_reserve(&all->by_bytes, (uint32_t)n, hash_of_bytes);
}

void request_done(struct requests *all)
{
	struct request *r, *next;

	DL_FOREACH_SAFE(all->list, r, next)
		free(r);
	table_done(&all->by_id);
	table_done(&all->by_bytes);
	all->list = NULL;
}
