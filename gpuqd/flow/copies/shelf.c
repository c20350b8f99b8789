#include "gpuqd/flow/copies/shelf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "libgpuq/grow.h"

void shelf_done(struct shelf *s)
{
	free(s->items);
	free(s->segments);
	*s = (struct shelf){ .items = NULL };
}

struct shelf_copy *shelf_find(const struct shelf *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->items[i].name, name) == 0)
			return &s->items[i];
	return NULL;
}

static void manifest_name(const char *copy, char out[NAMES_BYTES])
{
	snprintf(out, NAMES_BYTES, "%.200s" NAMES_MANIFEST, copy);
}

int shelf_put_manifest(struct target *t, const struct manifest *m, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char name[NAMES_BYTES];
	int rc;

	manifest_name(m->file, name);
	manifest_write(m, &text);
	rc = target_put_text(t, name, &text, err);
	gpuq_buf_done(&text);
	return rc;
}

/* A manifest that cannot be read makes no list fail: the copy counts as one without. */
static void read_manifest(struct target *t, const char *name, struct shelf_copy *c)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = target_get_text(t, name, MANIFEST_BYTES_MAX, &text, &err);

	if (rc == 0)
		rc = manifest_read(c->name, text.data ? text.data : "", text.len, &c->manifest,
				   &err);
	c->sealed = rc == 0;
	if (rc < 0)
		log_warn("backup.manifest", "error=%s", LOGS(err.text));
	gpuq_buf_done(&text);
}

static void take_manifest(struct target *t, const struct target_list *l, const struct shelf *known,
			  struct shelf_copy *c)
{
	const struct shelf_copy *was = known ? shelf_find(known, c->name) : NULL;
	char name[NAMES_BYTES];

	manifest_name(c->name, name);
	if (!target_find(l, name))
		return;
	if (was && was->sealed) {
		c->sealed = true;
		c->manifest = was->manifest;
		return;
	}
	read_manifest(t, name, c);
}

/* False: no memory. */
static bool add_segment(struct shelf *s, const char *prefix, const char *name)
{
	struct segment_name seg;

	if (!names_read_segment(prefix, name, &seg))
		return true;
	if (!grow_to(&s->segments, &s->segments_room, s->n_segments + 1))
		return false;
	s->segments[s->n_segments++] = seg;
	return true;
}

int shelf_read(struct target *t, const char *prefix, const struct shelf *known, struct shelf *out,
	       struct gpuq_err *err)
{
	struct target_list l = { .items = NULL };
	struct shelf s = { .items = NULL };
	int rc = target_list(t, prefix, &l, err);

	for (size_t i = l.n; rc == 0 && i-- > 0;) {
		struct shelf_copy c = { .bytes = l.items[i].bytes };

		if (!names_read_copy(prefix, l.items[i].name, &c.stamp)) {
			if (!add_segment(&s, prefix, l.items[i].name))
				rc = gpuq_no_memory(err);
			continue;
		}
		snprintf(c.name, sizeof(c.name), "%s", l.items[i].name);
		take_manifest(t, &l, known, &c);
		if (grow_to(&s.items, &s.room, s.n + 1))
			s.items[s.n++] = c;
		else
			rc = gpuq_no_memory(err);
	}
	target_list_done(&l);
	if (rc < 0) {
		shelf_done(&s);
		return rc;
	}
	*out = s;
	return 0;
}

/* The manifest first: a copy without one is a copy, a manifest without one is nothing. */
static int delete_copy(struct target *t, const struct shelf_copy *c, struct gpuq_err *err)
{
	char name[NAMES_BYTES];
	int rc = 0;

	manifest_name(c->name, name);
	if (c->sealed)
		rc = target_remove(t, name, err);
	return rc == 0 ? target_remove(t, c->name, err) : rc;
}

int shelf_trim(struct target *t, struct shelf *s, const char *ours, int64_t now_us,
	       const struct backup_keeps *keep, struct gpuq_err *err)
{
	struct names_copy *names = calloc(s->n + 1, sizeof(*names));
	bool *stays = calloc(s->n + 1, sizeof(*stays));
	size_t made = s->n, n = 0;
	int rc = 0, n_deleted = 0;

	for (size_t i = 0; names && i < s->n; i++) {
		names[i] =
			(struct names_copy){ s->items[i].stamp, s->items[i].manifest.id.store_id };
		if (strcmp(s->items[i].name, ours) == 0)
			made = i;
	}
	if (names && stays)
		names_keep(names, s->n, now_us, made, keep, stays);
	else
		rc = gpuq_no_memory(err);
	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		if (!stays[i])
			rc = delete_copy(t, &s->items[i], err);
		if (!stays[i] && rc == 0)
			n_deleted++;
		else
			s->items[n++] = s->items[i];
	}
	if (rc == 0)
		s->n = n;
	free(names);
	free(stays);
	return rc == 0 ? n_deleted : rc;
}

/* ---- segments ---- */

static bool is_of(const struct segment_name *seg, const struct store_identity *is)
{
	return seg->span.epoch == is->epoch &&
	       strncmp(seg->store, is->store_id, NAMES_STORE_LEN) == 0;
}

/* Some copy can be brought forward by it. */
static bool has_base(const struct shelf *s, const struct segment_name *seg)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i].sealed && is_of(seg, &s->items[i].manifest.id) &&
		    s->items[i].manifest.id.seq < seg->span.last)
			return true;
	return false;
}

int shelf_trim_segments(struct target *t, const char *prefix, struct shelf *s, int64_t now_us,
			const struct backup_keeps *keep, struct gpuq_err *err)
{
	char name[NAMES_BYTES];
	size_t n = 0;
	int rc = 0, n_deleted = 0;

	for (size_t i = 0; i < s->n_segments; i++) {
		const struct segment_name *seg = &s->segments[i];
		const bool stays =
			stamp_us(&seg->stamp) > now_us - keep->log_us && has_base(s, seg);

		names_segment(prefix, seg, name);
		if (!stays && rc == 0)
			rc = target_remove(t, name, err);
		if (stays || rc < 0)
			s->segments[n++] = *seg;
		else
			n_deleted++;
	}
	s->n_segments = n;
	return rc == 0 ? n_deleted : rc;
}

static int by_first(const void *x, const void *y)
{
	const struct segment_name *a = x, *b = y;

	return a->span.first < b->span.first   ? -1
	       : a->span.first > b->span.first ? 1
	       : a->span.last < b->span.last   ? -1
					       : a->span.last > b->span.last;
}

int shelf_segments(const struct shelf *s, const struct store_identity *is,
		   struct segment_name **out, size_t *n_out, struct gpuq_err *err)
{
	struct segment_name *all = calloc(s->n_segments + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < s->n_segments; i++)
		if (is_of(&s->segments[i], is))
			all[n++] = s->segments[i];
	qsort(all, n, sizeof(*all), by_first);
	*out = all;
	*n_out = n;
	return 0;
}

uint64_t shelf_reach(const struct shelf *s, const struct store_identity *is)
{
	struct segment_name *all = NULL;
	uint64_t reach = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct store_identity *id = &s->items[i].manifest.id;

		if (s->items[i].sealed && id->epoch == is->epoch &&
		    strcmp(id->store_id, is->store_id) == 0 && id->seq > reach)
			reach = id->seq;
	}
	if (!reach || shelf_segments(s, is, &all, &n, NULL) < 0)
		return reach;
	for (size_t i = 0; i < n; i++)
		reach = batchlog_reach(&all[i].span, 1, is->epoch, reach);
	free(all);
	return reach;
}
