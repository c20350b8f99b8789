/* Records: what a newer gpuqd of the same schema added to them is skipped, and those of
 * schema 1 become the same records. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model_int.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/util/varint.h"
#include "gpuqd/state/record/upgrade.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"
#include "libgpuq/wire/wire.h"
#include "tests/unit/model_rig.h"

/* ---- a model with something in every list of every record ---- */

static void evict(struct model *m, struct job_key key)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = key, .at_us = T0 + 60 };

	ev.evict = (__typeof__(ev.evict)){ .cause = GPUQ_CAUSE_RECLAIM,
					   .by = "3",
					   .rule = "quota",
					   .by_queue = "default",
					   .why = "it had 2 of 1",
					   .grace_us = -1 };
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
}

static void nominate(struct model *m, struct job_key key, struct job_key victim)
{
	const uint16_t devices[] = { 2, 3 };
	const struct placed_pod pod = {
		.node = "n0", .devices = devices, .n_devices = 2, .gpus_milli = 2000
	};
	struct event ev = { .type = EV_JOB_NOMINATED, .job = key, .at_us = T0 + 61 };

	ev.nominated = (__typeof__(ev.nominated)){ .flavor = "default",
						   .pods = &pod,
						   .n_pods = 1,
						   .victims = &victim,
						   .n_victims = 1,
						   .rule = "quota",
						   .why = "2 of 1" };
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
}

static struct model *full(void)
{
	const char *keys[] = { "rack", "zone" }, *vals[] = { "r1", "z9" };
	const struct taint_fact taints[] = { { "a", "b", "NoSchedule", false },
					     { "c", "", "NoExecute", false } };
	const struct device_fact devices[] = { { "GPU-0", "H100", 81920, true },
					       { "GPU-1", "H100", 81920, false },
					       { "GPU-2", "H100", 81920, true },
					       { "GPU-3", "H100", 81920, true } };
	struct node_fact f = { .name = "n0",
			       .cpu_milli = 64000,
			       .memory_bytes = INT64_C(1) << 38,
			       .max_pods = 110,
			       .labels = { keys, vals, 2 },
			       .taints = taints,
			       .n_taints = 2,
			       .devices = devices,
			       .n_devices = 4,
			       .ready = true,
			       .note = "fine" };
	struct event node = { .type = EV_NODE_SEEN, .at_us = T0, .node = &f };
	struct model *m = model_new(CLUSTER);
	struct event apart = { .type = EV_JOB_FRAGMENTED, .job = { 4, -1 }, .at_us = T0 + 70 };

	cr_assert_eq(model_apply(m, &node, NULL), 0);
	submit_text(m,
		    "{command: [a], gpus: 2, name: one, time: 1h, retry: {limit: 2, on: [exit:3]}, "
		    "labels: {team: v}, comment: note, notify: {on: [end], mail: a@example.org}}",
		    "key");
	submit_text(m, "{command: [a], gpus: 1, array: 0-9%2, hold: true}", NULL);
	submit_text(m,
		    "{command: [a], gpus: 2, depends: [afterok:1, afterany:2], "
		    "begin: 2030-01-01T00:00:00Z, deadline: 2040-01-01T00:00:00Z}",
		    NULL);
	submit_text(m, "{command: [a], gpus: 2, nice: 7}", NULL);
	submit_text(m, "{command: [a], gpus: 2}", NULL);
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0 + 40, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 50, 0, POD_FAULT_NONE), 0);
	evict(m, J1);
	nominate(m, (struct job_key){ 5, -1 }, J1);
	apart.fragmented.flavor = "default";
	apart.fragmented.milli = 2000;
	cr_assert_eq(model_apply(m, &apart, NULL), 0);
	pod_avoid(m, model_find_job(m, (struct job_key){ 4, -1 }), model_intern(m, "n0"), T0 + 90);
	accounting_charge_grant(m, "default", 60 * GPUQ_US_PER_S); /* of no cluster */
	return m;
}

/* Another job that ran and ended: usage, a charge, and a line of history. */
static void run_one(struct model *m)
{
	const struct job_key key = { 6, -1 };
	enum event_type end;

	submit_text(m, "{command: [a], gpus: 1}", NULL);
	cr_assert_eq(place(m, key, 1, "n0", 2), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, key, 0, 0, T0 + 80, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, key, 0, 0, T0 + 81, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(
		pod_event(m, EV_POD_ENDED, key, 0, 0, T0 + 90 * GPUQ_US_PER_S, 0, POD_FAULT_NONE),
		0);
	cr_assert_eq(verdict(m, key, T0 + 91 * GPUQ_US_PER_S, &end), 0);
	cr_assert_eq(
		pod_event(m, EV_POD_GONE, key, 0, 0, T0 + 92 * GPUQ_US_PER_S, 0, POD_FAULT_NONE),
		0);
	cr_assert_null(model_find_job(m, key), "it is history");
}

/* A job that ran; what it left beside its pods is written down, unless that is nothing. */
static size_t n_left_beside(bool nothing)
{
	const struct event ev = { .type = EV_JOB_NOTHING_BESIDE,
				  .at_us = T0 + 95 * GPUQ_US_PER_S,
				  .job = J1,
				  .nothing_beside = nothing };
	struct model *m = fresh(1, 4);
	enum event_type end;
	struct batch b;
	size_t n = 0;

	model_set_besides(m, true);
	submit_text(m, "{command: [a], gpus: 1}", NULL);
	cr_assert_eq(place(m, J1, 1, "n0", 2), 0);
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 96 * GPUQ_US_PER_S, 0, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 97 * GPUQ_US_PER_S, &end), 0);
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, 0, T0 + 98 * GPUQ_US_PER_S, 0, 0), 0);
	cr_assert_null(model_find_job(m, J1));
	change_batch_init(&b);
	model_collect(m, &b);
	for (size_t i = 0; i < b.n; i++)
		n += b.items[i].table == TABLE_BESIDE && b.items[i].val;
	change_batch_done(&b);
	model_free(m);
	return n;
}

Test(record, what_a_job_left_beside_its_pods_is_written_down)
{
	cr_expect_eq(n_left_beside(false), 1u);
	cr_expect_eq(n_left_beside(true), 0u);
}

static void write_all(struct model *m, struct disk *d)
{
	job_each_rw(m, j) {
		struct pod *p;

		model_job_dirty(m, j);
		DL_FOREACH2(j->pods, p, job_next)
			p->dirty = true;
	}
	for (struct node *n = m->nodes; n; n = n->hh.next)
		n->dirty = m->nodes_dirty = true;
	for (struct usage *u = m->usages; u; u = u->hh.next)
		u->dirty = m->usages_dirty = true;
	m->meta_dirty = true;
	disk_write(d, m);
}

static struct disk clone(const struct disk *d)
{
	struct disk x = { calloc(d->n, sizeof(*x.r)), d->n };

	for (size_t i = 0; i < d->n; i++) {
		x.r[i] = d->r[i];
		x.r[i].val = malloc(d->r[i].val_len + 1);
		memcpy(x.r[i].val, d->r[i].val, d->r[i].val_len);
	}
	return x;
}

static const struct record *same_key(const struct disk *d, const struct record *r)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->r[i].table == r->table && d->r[i].key_len == r->key_len &&
		    memcmp(d->r[i].key, r->key, r->key_len) == 0)
			return &d->r[i];
	return NULL;
}

/* ---- the lists of the records ---- */

/* A letter for each field: '.' one value or a list of values; '[' a list of rows, '(' a nested
 * record, either of which may be followed by the letters of its items or fields, up to ']' or
 * ')'. Text after the last field, or the last of an item, may come from a newer gpuqd. */
static const struct {
	enum table table;
	const char *fields;
} forms[] = {
	{ TABLE_NODE, "..........[..][...][....]" },
	{ TABLE_POD, "..................." },
	{ TABLE_JOB, "..........." /* to the time of submission */
		     "..........................(.......[...])" /* to the array */
		     "[......][....]......(..[..][.......])......(...)...(....)..[..].." },
	{ TABLE_USAGE, "(.......)..." },
	{ TABLE_CHARGE, "....[....][..]." },
	{ TABLE_KEY, "...." },
	{ TABLE_ACCOUNT, "...." },
};

static const char *form_of(enum table t)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].table == t)
			return forms[i].fields;
	return NULL;
}

static const char *skip_form(const char *f)
{
	int depth = 0;

	do {
		depth += *f == '[' || *f == '(';
		depth -= *f == ']' || *f == ')';
		f++;
	} while (depth > 0);
	return f;
}

static void copy_raw(struct rec *r, struct gpuq_buf *b)
{
	const unsigned char *from = r->p;

	varint_skip(r);
	cr_assert(!r->bad);
	gpuq_buf_add(b, from, (size_t)(r->p - from));
}

/* Values of kinds that no record has today. */
static void add_unknown(struct gpuq_buf *b)
{
	static const unsigned char map[] = { 0x82, 0xa1, 'a', 0x01, 0xa1, 'b', 0x92, 0xc0, 0xc3 };
	static const unsigned char real[] = { 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0 };
	static const unsigned char ext[] = { 0xd4, 0x05, 0x00 };

	gpuq_buf_add(b, map, sizeof(map));
	gpuq_buf_add(b, real, sizeof(real));
	gpuq_buf_add(b, ext, sizeof(ext));
}

static void widen(struct rec *r, const char *form, struct gpuq_buf *b);

static void widen_field(struct rec *r, const char *form, struct gpuq_buf *b)
{
	if (*form == '.') {
		copy_raw(r, b);
	} else if (*form == '(') {
		widen(r, form + 1, b);
	} else {
		const uint32_t n = rec_get_array(r);

		varint_array(b, n);
		for (uint32_t i = 0; i < n; i++)
			widen(r, form + 1, b);
	}
}

/* The same fields and three more; but an empty record stays one. Those of a job and of use have what was used, that of a
 * node its layout, who drained it and how its devices are divided, which are not written where there is none. */
static void widen(struct rec *r, const char *form, struct gpuq_buf *b)
{
	const uint32_t n = rec_get_array(r);
	const bool last = form == form_of(TABLE_JOB) || form == form_of(TABLE_NODE) ||
			  form == form_of(TABLE_USAGE) || form == form_of(TABLE_CHARGE);
	uint32_t i = 0;

	varint_array(b, n ? n + 3 + last + (form == form_of(TABLE_NODE) ? 3 : 0) : 0);
	if (n == 0)
		return;
	for (const char *f = form; *f && *f != ']' && *f != ')'; f = skip_form(f), i++)
		widen_field(r, f, b);
	cr_assert_eq(i, n, "%u fields, not %u", n, i);
	if (last)
		varint_array(b, 0);
	if (form == form_of(TABLE_NODE)) {
		varint_str(b, "");
		varint_int(b, 0);
		varint_array(b, 0);
	}
	add_unknown(b);
}

static void set(struct record *r, const struct gpuq_buf *b)
{
	free(r->val);
	r->val = malloc(b->len + 1);
	memcpy(r->val, b->data, b->len);
	r->val_len = b->len;
}

Test(record, what_a_newer_gpuqd_added_is_skipped)
{
	struct disk d = { 0 }, wide, again = { 0 };
	struct model *m = full();
	size_t n_widened = 0;

	run_one(m);
	model_find_job(m, J1)->pods->choice = (struct gpuq_alternatives){ 3, 5 };
	for (struct job *j = m->jobs; j; j = j->next)
		if (j->life->promise)
			j->life->promise->pods[0].choice =
				(struct gpuq_alternatives){ 60000, 60000 };
	write_all(m, &d);
	model_free(m);
	wide = clone(&d);
	for (size_t i = 0; i < wide.n; i++) {
		struct record *r = &wide.r[i];
		struct rec in = { r->val, r->val + r->val_len, false };
		struct gpuq_buf b = GPUQ_BUF_INIT;

		if (!form_of(r->table))
			continue;
		/* The list of charges of a day of use may grow by itself. */
		widen(&in, form_of(r->table), &b);
		cr_assert(!in.bad && in.p == in.end);
		set(r, &b);
		gpuq_buf_done(&b);
		n_widened++;
	}
	cr_assert_geq(n_widened, 8u);
	m = disk_load(&wide);
	cr_assert_eq(m->n_jobs, 5u);
	write_all(m, &again);
	model_free(m);
	for (size_t i = 0; i < d.n; i++) {
		const struct record *r = same_key(&again, &d.r[i]);

		if (!form_of(d.r[i].table) || d.r[i].table == TABLE_CHARGE ||
		    d.r[i].table == TABLE_KEY || d.r[i].table == TABLE_ACCOUNT)
			continue;
		cr_assert_not_null(r, "table %s", table_names[d.r[i].table]);
		cr_expect(r->val_len == d.r[i].val_len &&
				  memcmp(r->val, d.r[i].val, r->val_len) == 0,
			  "table %s", table_names[d.r[i].table]);
	}
	disk_free(&d);
	disk_free(&wide);
	disk_free(&again);
}

/* Write a job's row as before elements had numbers of their own. */
static void shorten(struct record *rec)
{
	struct rec r = { rec->val, rec->val + rec->val_len, false };
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const uint32_t n = rec_get_array(&r);

	varint_array(&b, n ? n - 1 : 0);
	for (uint32_t i = 0; i + 1 < n; i++)
		copy_raw(&r, &b);
	set(rec, &b);
	gpuq_buf_done(&b);
}

Test(record, jobs_of_before_elements_had_numbers_are_read)
{
	struct disk d = { 0 }, old, again = { 0 };
	struct model *m = full();
	size_t n_jobs = 0;

	write_all(m, &d);
	model_free(m);
	old = clone(&d);
	for (size_t i = 0; i < old.n; i++)
		if (old.r[i].table == TABLE_JOB) {
			shorten(&old.r[i]);
			n_jobs++;
		}
	cr_assert_gt(n_jobs, 3u);
	m = disk_load(&old);
	cr_assert_eq(m->n_jobs, 5u);
	write_all(m, &again);
	model_free(m);
	for (size_t i = 0; i < d.n; i++) {
		const struct record *r = same_key(&again, &d.r[i]);

		if (d.r[i].table != TABLE_JOB)
			continue;
		cr_assert_not_null(r);
		cr_expect(r->val_len == d.r[i].val_len &&
			  memcmp(r->val, d.r[i].val, r->val_len) == 0);
	}
	disk_free(&d);
	disk_free(&old);
	disk_free(&again);
}

/* So are keys of a site and of a request that a newer gpuqd knows. */
Test(record, keys_of_a_newer_site_are_skipped)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a), *q = gpuq_map(&a), *queues = gpuq_list(&a);
	struct model *m = model_new("ffffffff");
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_put(&a, v, "version", gpuq_int(&a, 1));
	gpuq_put(&a, v, "clusters", gpuq_list(&a));
	gpuq_put(&a, q, "name", gpuq_str(&a, "newer"));
	gpuq_put(&a, q, "burst", gpuq_map(&a));
	gpuq_add(&a, queues, q);
	gpuq_put(&a, v, "queues", queues);
	gpuq_mp_write(&b, v);
	cr_assert_eq(record_load(m, TABLE_SITE, (const unsigned char *)"site", 4,
				 (const unsigned char *)b.data, b.len, &err),
		     0, "%s", err.text);
	cr_expect_not_null(model_find_queue(m, "newer"));
	model_free(m);
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
}

Test(record, a_row_that_is_too_short_is_damage)
{
	struct model *m = full();
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct disk d = { 0 };

	write_all(m, &d);
	model_free(m);
	m = model_new("ffffffff");
	for (size_t i = 0; i < d.n; i++) {
		struct record *r = &d.r[i];
		unsigned char *at;

		if (r->table != TABLE_NODE)
			continue;
		/* The first label: two strings. */
		for (at = r->val; at + 9 <= r->val + r->val_len; at++)
			if (memcmp(at, "\x92\xa4rack\xa2r1", 9) == 0)
				break;
		cr_assert_leq(at + 9, r->val + r->val_len);
		memcpy(at, "\x91\xa7rackXr1", 9);
		cr_expect_eq(record_load(m, r->table, r->key, r->key_len, r->val, r->val_len, &err),
			     GPUQ_ECORRUPT);
	}
	model_free(m);
	disk_free(&d);
}

/* ---- schema 1 ---- */

/* As 0.1.0 wrote it: the items of a list one behind the other. */
static void flatten_field(struct rec *r, const char *form, struct gpuq_buf *b)
{
	struct rec count = *r;
	uint32_t n, width;

	if (*form != '[') {
		copy_raw(r, b);
		return;
	}
	n = rec_get_array(&count);
	width = n ? rec_get_array(&count) : 0;
	varint_array(b, n * width);
	rec_get_array(r);
	for (uint32_t i = 0; i < n; i++) {
		rec_get_array(r);
		for (uint32_t k = 0; k < width; k++)
			copy_raw(r, b);
	}
}

/* indices, size, throttle, waiting, live, exit, state, ranges: their number, then they. */
static void flatten_array(struct rec *r, struct gpuq_buf *b)
{
	uint32_t n = rec_get_array(r), n_ranges;
	struct rec at = *r;

	if (n == 0) {
		varint_array(b, 0);
		return;
	}
	varint_skip_more(&at, 7);
	n_ranges = rec_get_array(&at);
	varint_array(b, 8 + 3 * n_ranges);
	for (int i = 0; i < 7; i++)
		copy_raw(r, b);
	varint_int(b, n_ranges);
	rec_get_array(r);
	for (uint32_t i = 0; i < n_ranges; i++) {
		rec_get_array(r);
		for (int k = 0; k < 3; k++)
			copy_raw(r, b);
	}
}

static void flatten_promise(struct rec *r, struct gpuq_buf *b)
{
	const uint32_t n = rec_get_array(r);
	uint32_t n_pods;

	varint_array(b, n);
	if (n == 0)
		return;
	copy_raw(r, b);
	copy_raw(r, b);
	flatten_field(r, "[..]", b);
	n_pods = rec_get_array(r);
	varint_array(b, 5 * n_pods);
	for (uint32_t i = 0; i < 7 * n_pods; i++)
		if (i % 7 == 0) {
			cr_assert_eq(rec_get_array(r), 7u);
			copy_raw(r, b);
		} else if (i % 7 < 5) {
			copy_raw(r, b);
		} else {
			varint_skip(
				r); /* the profile of its instances, the choice of alternatives */
		}
}

static void flatten(struct record *rec)
{
	struct rec r = { rec->val, rec->val + rec->val_len, false };
	const char *form = form_of(rec->table);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const uint32_t n = rec_get_array(&r);
	uint32_t i = 0;

	if (rec->table == TABLE_USAGE) {
		struct rec us = r;
		const uint32_t n_us = rec_get_array(&us);

		varint_skip(&r);
		varint_array(&b, 3 + n_us);
		copy_raw(&us, &b);
		for (int k = 0; k < 3; k++)
			copy_raw(&r, &b);
		for (uint32_t k = 1; k < n_us; k++)
			copy_raw(&us, &b);
		set(rec, &b);
		gpuq_buf_done(&b);
		return;
	}
	if (rec->table == TABLE_CHARGE) {
		struct gpuq_buf list = GPUQ_BUF_INIT;
		struct rec in;

		struct rec count = r;

		varint_skip_more(&count, 4);
		varint_array(&b, 4 + 4 * rec_get_array(&count));
		for (int k = 0; k < 4; k++)
			copy_raw(&r, &b);
		flatten_field(&r, "[....]", &list);
		in = (struct rec){ (unsigned char *)list.data,
				   (unsigned char *)list.data + list.len, false };
		rec_get_array(&in);
		gpuq_buf_add(&b, in.p, (size_t)(in.end - in.p));
		gpuq_buf_done(&list);
		set(rec, &b);
		gpuq_buf_done(&b);
		return;
	}
	varint_array(&b, rec->table == TABLE_JOB ? n - 2 : n);
	for (const char *f = form; *f; f = skip_form(f), i++) {
		if (rec->table == TABLE_JOB && (i == 12 || i == 62))
			varint_skip(&r); /* the size of the spec, the element's own number */
		else if (rec->table == TABLE_JOB && strncmp(f, "(.......[", 9) == 0)
			flatten_array(&r, &b);
		else if (rec->table == TABLE_JOB && strncmp(f, "(..[", 4) == 0)
			flatten_promise(&r, &b);
		else
			flatten_field(&r, f, &b);
	}
	cr_assert(!r.bad && r.p == r.end);
	set(rec, &b);
	gpuq_buf_done(&b);
}

/* The key as it was. */
static void strip(struct record *r)
{
	const size_t n = strlen(CLUSTER_DEFAULT);

	switch (r->table) {
	case TABLE_NODE:
		r->key_len -= n + 1;
		memmove(r->key, r->key + n + 1, r->key_len);
		break;
	case TABLE_USAGE:
		r->key_len -= r->key[r->key_len - 1] == '\0' ? 1 : n + 1;
		break;
	case TABLE_POD:
	case TABLE_CHARGE:
	case TABLE_HISTORY:
	case TABLE_BESIDE:
		r->key_len -= n;
		break;
	default:
		break;
	}
}

Test(record, those_of_schema_1_become_the_same)
{
	struct upgrade u = UPGRADE_INIT;
	struct disk d = { 0 }, old;
	struct model *m = full();
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n_seen[N_TABLES] = { 0 };
	struct batch out;

	m->has_besides = true;
	write_all(m, &d);
	run_one(m);
	write_all(m, &d); /* with the charge and what it left */
	model_free(m);
	old = clone(&d);
	for (size_t i = 0; i < d.n; i++) {
		strip(&old.r[i]);
		if (form_of(d.r[i].table))
			flatten(&old.r[i]);
	}
	/* SPEC before JOB, as the store does it. */
	change_batch_init(&out);
	for (int jobs = 0; jobs < 2; jobs++)
		for (size_t i = 0; i < old.n; i++)
			if ((old.r[i].table == TABLE_JOB) == jobs)
				cr_assert_eq(upgrade_record(&u, 1, old.r[i].table, old.r[i].key,
							    old.r[i].key_len, old.r[i].val,
							    old.r[i].val_len, &out, &err),
					     0, "%s", err.text);
	cr_assert_eq(upgrade_record(&u, 1, N_TABLES, NULL, 0, NULL, 0, &out, &err), 0);
	cr_expect_eq(out.n, d.n);
	for (size_t i = 0; i < out.n; i++) {
		const struct change *c = &out.items[i];
		struct record key = { .table = c->table, .key_len = c->key_len };
		const struct record *r;

		memcpy(key.key, c->key, c->key_len);
		r = same_key(&d, &key);
		cr_assert_not_null(r, "a key of table %s", table_names[c->table]);
		/* The isolation was not recorded then. */
		cr_expect(r->val_len == c->val_len &&
				  memcmp(r->val, c->val,
					 c->val_len - (c->table == TABLE_CHARGE ? 1 : 0)) == 0,
			  "a record of table %s", table_names[c->table]);
		n_seen[c->table]++;
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		cr_expect_gt(n_seen[forms[i].table], 0u, "table %s", table_names[forms[i].table]);
	cr_expect_gt(n_seen[TABLE_HISTORY], 0u);
	cr_expect_gt(n_seen[TABLE_SPEC], 0u);
	change_batch_done(&out);
	upgrade_done(&u);
	disk_free(&d);
	disk_free(&old);
}

/* Records of schema 1 that earlier builds wrote end before the last field. */
Test(record, short_records_of_schema_1_are_filled_up)
{
	static const unsigned char key[8] = { 0, 0, 0, 7, 0, 0, 0, 0 };
	struct upgrade u = UPGRADE_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch out;
	struct rec r;

	varint_array(&b, 36);
	for (int i = 0; i < 35; i++)
		varint_int(&b, i);
	varint_bin(&b, "", 0);
	change_batch_init(&out);
	cr_assert_eq(upgrade_record(&u, 1, TABLE_JOB, key, sizeof(key),
				    (const unsigned char *)b.data, b.len, &out, &err),
		     0, "%s", err.text);
	r = (struct rec){ out.items[0].val, out.items[0].val + out.items[0].val_len, false };
	cr_expect_eq(rec_get_array(&r), 63u);
	varint_skip_more(&r, 63);
	cr_expect(!r.bad && r.p == r.end);
	cr_expect_eq(upgrade_record(&u, 1, TABLE_JOB, key, sizeof(key),
				    (const unsigned char *)b.data, b.len - 1, &out, &err),
		     GPUQ_ECORRUPT);
	cr_expect_eq(upgrade_record(&u, 7, TABLE_JOB, key, sizeof(key), key, 1, &out, &err),
		     GPUQ_EVERSION);
	change_batch_done(&out);
	gpuq_buf_done(&b);
}

/* Objects that schema 1 stored call the rules by letters; what else they hold stays. */
Test(record, an_upgrade_renames_rules_in_histories_and_logs)
{
	static const enum table tables[] = { TABLE_HISTORY, TABLE_LOG };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT, text = GPUQ_BUF_INIT;
	struct gpuq_val *v = gpuq_map(&a), *list = gpuq_list(&a), *one = gpuq_map(&a);

	gpuq_put(&a, v, "name", gpuq_str(&a, "G"));
	gpuq_put(&a, one, "rule", gpuq_str(&a, "own+G"));
	gpuq_add(&a, list, one);
	gpuq_put(&a, v, "evictions", list);
	gpuq_mp_write(&b, v);
	for (size_t i = 0; i < 2; i++) {
		static const unsigned char key[12] = { 0, 0, 0, 1 };
		struct upgrade u = UPGRADE_INIT;
		struct batch out;

		change_batch_init(&out);
		cr_assert_eq(upgrade_record(&u, 1, tables[i], key, sizeof(key),
					    (const unsigned char *)b.data, b.len, &out, &err),
			     0, "%s", err.text);
		cr_assert_eq(out.n, 1);
		cr_assert_eq(gpuq_mp_read(&a, &gpuq_wire_limits, out.items[0].val,
					  out.items[0].val_len, &v, NULL),
			     0);
		gpuq_buf_clear(&text);
		gpuq_json_write(&text, v, 0);
		cr_expect_str_eq(
			gpuq_buf_str(&text),
			"{\"name\":\"G\",\"evictions\":[{\"rule\":\"own+reclaim-quota\"}]}");
		change_batch_done(&out);
		upgrade_done(&u);
	}
	gpuq_buf_done(&b);
	gpuq_buf_done(&text);
	gpuq_arena_done(&a);
}
