#include "gpuqd/flow/copies/shelf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "libgpuq/grow.h"

void shelf_done(struct shelf *s)
{
	free(s->items);
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

int shelf_read(struct target *t, const char *prefix, const struct shelf *known, struct shelf *out,
	       struct gpuq_err *err)
{
	struct target_list l = { .items = NULL };
	struct shelf s = { .items = NULL };
	int rc = target_list(t, prefix, &l, err);

	for (size_t i = l.n; rc == 0 && i-- > 0;) {
		struct shelf_copy c = { .bytes = l.items[i].bytes };

		if (!names_read_copy(prefix, l.items[i].name, &c.stamp))
			continue;
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
	struct stamp *stamps = calloc(s->n + 1, sizeof(*stamps));
	bool *stays = calloc(s->n + 1, sizeof(*stays));
	size_t made = s->n, n = 0;
	int rc = 0, n_deleted = 0;

	for (size_t i = 0; stamps && i < s->n; i++) {
		stamps[i] = s->items[i].stamp;
		if (strcmp(s->items[i].name, ours) == 0)
			made = i;
	}
	if (stamps && stays)
		names_keep(stamps, s->n, now_us, made, keep, stays);
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
	free(stamps);
	free(stays);
	return rc == 0 ? n_deleted : rc;
}
