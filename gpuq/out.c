#include "gpuq/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/out_int.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/grow.h"

int out_new(const struct out_def *def, const char *shown, const struct args *args, struct out **out,
	    struct gpuq_err *err)
{
	struct out *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return gpuq_no_memory(err);
	o->def = def;
	o->json = opt_given(args, OPT_JSON);
	o->csv = opt_given(args, OPT_CSV);
	o->header = !opt_given(args, OPT_NO_HEADER);
	rc = out_read(o, shown, args, err);
	if (rc < 0)
		out_free(o);
	else
		*out = o;
	return rc;
}

void out_free(struct out *o)
{
	if (!o)
		return;
	gpuq_arena_done(&o->arena);
	gpuq_arena_done(&o->names);
	gpuq_buf_done(&o->text);
	gpuq_buf_done(&o->cell);
	gpuq_buf_done(&o->clean);
	free(o->lines);
	free(o);
}

const char *const *out_keys(const struct out *o)
{
	return o->keys.all ? NULL : o->keys.names;
}

void out_ask(const struct out *o, struct gpuq_arena *a, struct gpuq_val *params)
{
	struct gpuq_val *order = gpuq_list(a);

	if (!o->limit || !o->n_sort || !o->def->keys || o->def->rows)
		return;
	for (size_t i = 0; i < o->n_sort; i++) {
		const char *keys = o->sort[i]->key;

		if (!(o->sort[i]->flags & COL_ORDER))
			return;
		gpuq_add(a, order,
			 gpuq_str(a, gpuq_arena_printf(a, "%s%.*s", o->down[i] ? "-" : "",
						       (int)strcspn(keys, " "), keys)));
	}
	gpuq_put(a, params, "order", order);
	gpuq_put(a, params, "first", gpuq_int(a, (int64_t)o->limit));
}

int out_json(const struct gpuq_val *obj)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = view_json(&a, obj);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	int rc = v ? 0 : GPUQ_ENOMEM;

	if (v) {
		gpuq_json_write(&text, v, 0);
		puts(gpuq_buf_str(&text));
		rc = text.failed ? GPUQ_ENOMEM : 0;
	}
	gpuq_buf_done(&text);
	gpuq_arena_done(&a);
	return rc;
}

static int compare(const void *x, const void *y)
{
	const struct line *a = x, *b = y;
	const struct out *o = a->out;

	for (size_t i = 0; i < o->n_sort; i++) {
		const struct key *p = &a->keys[i], *q = &b->keys[i];
		int d;

		if (p->text && q->text)
			d = view_natural(p->text, q->text);
		else if (p->text || q->text)
			d = p->text ? 1 : -1; /* absent ("-") behind numbers */
		else
			d = p->number < q->number ? -1 : p->number > q->number;
		if (d)
			return o->down[i] ? -d : d;
	}
	return a->at < b->at ? -1 : 1;
}

/* Keep a line: its cells, one after the other, are in o->text. JSON has none. */
static int keep_line(struct out *o, const struct key *keys, const struct cell *cells)
{
	const size_t n_keys = o->n_sort * sizeof(*keys);
	const size_t n_cells = cells ? o->n_shown * sizeof(*cells) : 0;
	struct line *l;
	char *p;

	if (!grow_to(&o->lines, &o->room, o->n_lines + 1))
		return GPUQ_ENOMEM;
	p = gpuq_arena_alloc(&o->arena, n_keys + n_cells + o->text.len);
	if (!p || o->text.failed || o->cell.failed || o->clean.failed)
		return GPUQ_ENOMEM;
	memcpy(p, keys, n_keys);
	if (n_cells)
		memcpy(p + n_keys, cells, n_cells);
	memcpy(p + n_keys + n_cells, o->text.data, o->text.len);
	l = &o->lines[o->n_lines];
	*l = (struct line){ .text = p + n_keys + n_cells,
			    .keys = (const struct key *)(const void *)p,
			    .cells = (const struct cell *)(const void *)(p + n_keys),
			    .out = o,
			    .at = o->n_lines };
	o->mixed |= o->n_lines && o->n_sort && compare(l - 1, l) > 0;
	o->n_lines++;
	return 0;
}

void out_cell(const struct column *c, const struct row *r, struct gpuq_buf *out)
{
	const struct gpuq_val *v;

	if (c->text) {
		c->text(out, r);
		return;
	}
	v = r->sub ? gpuq_get(r->sub, c->key) : NULL;
	view_cell(out, v ? v : gpuq_get(r->obj, c->key));
}

static int fill_keys(struct out *o, struct key *keys, const struct row *r)
{
	for (size_t i = 0; i < o->n_sort; i++) {
		const struct column *c = o->sort[i];
		const struct gpuq_val *v = NULL;

		keys[i] = (struct key){ .text = NULL };
		if (c->rank) {
			keys[i].number = c->rank(r);
			continue;
		}
		if (c->key && r->sub)
			v = gpuq_get(r->sub, c->key);
		if (c->key && !v)
			v = gpuq_get(r->obj, c->key);
		if (v && (v->type == GPUQ_INT || v->type == GPUQ_REAL)) {
			keys[i].number = view_number(v, 0);
			continue;
		}
		gpuq_buf_clear(&o->cell);
		out_cell(c, r, &o->cell);
		keys[i].text = gpuq_arena_strdup(&o->arena, gpuq_buf_str(&o->cell));
		if (!keys[i].text)
			return GPUQ_ENOMEM;
	}
	return 0;
}

/* The text of a cell as it is shown, behind the others. */
static struct cell add_cell(struct out *o, const struct shown *s, const struct row *r)
{
	const size_t from = o->text.len;
	struct gpuq_buf *b = &o->cell;
	size_t n, wide;

	gpuq_buf_clear(b);
	out_cell(s->col, r, b);
	n = wide = b->len;
	if (!term_is_plain(b->data, n)) {
		gpuq_buf_clear(&o->clean);
		term_clean_str(&o->clean, gpuq_buf_str(b));
		b = &o->clean;
		n = b->len;
		wide = term_columns(gpuq_buf_str(b));
	}
	if (s->width) {
		term_fit(&o->text, gpuq_buf_str(b), (size_t)s->width, s->right);
		wide = (size_t)s->width;
	} else {
		gpuq_buf_add(&o->text, b->data, n);
	}
	gpuq_buf_addc(&o->text, '\0');
	return (struct cell){ (uint32_t)(o->text.len - from - 1), (uint32_t)wide };
}

int out_row(struct out *o, const struct gpuq_val *obj, const struct gpuq_val *sub)
{
	const struct row r = { obj, sub, o->now_us };
	struct key keys[OUT_SORT_MAX];
	struct cell cells[OUT_COLS_MAX];

	if (fill_keys(o, keys, &r) < 0)
		return GPUQ_ENOMEM;
	gpuq_buf_clear(&o->text);
	for (size_t i = 0; i < o->n_shown; i++)
		cells[i] = add_cell(o, &o->shown[i], &r);
	return keep_line(o, keys, cells);
}

static int keep_json(struct out *o, const struct gpuq_val *obj)
{
	const struct row r = { obj, NULL, o->now_us };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = view_json(&a, obj);
	struct key keys[OUT_SORT_MAX];
	int rc = v ? fill_keys(o, keys, &r) : GPUQ_ENOMEM;

	if (rc == 0) {
		gpuq_buf_clear(&o->text);
		gpuq_json_write(&o->text, v, 0);
		gpuq_buf_addc(&o->text, '\0');
		rc = keep_line(o, keys, NULL);
	}
	gpuq_arena_done(&a);
	return rc;
}

int out_add(struct out *o, const struct gpuq_val *obj, int64_t now_us)
{
	int rc;

	o->now_us = now_us;
	if (o->json && o->n_sort == 0) {
		rc = out_json(obj);
		o->n_printed++;
		return rc < 0 ? rc : o->limit && o->n_printed >= o->limit;
	}
	if (o->json)
		rc = keep_json(o, obj);
	else
		rc = o->def->rows ? o->def->rows(o, obj) : out_row(o, obj, NULL);
	if (rc < 0)
		return rc;
	/* With an order every line is needed, since the last may be the first. */
	return o->n_sort == 0 && o->limit && o->n_lines >= o->limit;
}

void out_forget(struct out *o)
{
	o->n_lines = 0;
	o->n_printed = 0;
	o->mixed = false;
	gpuq_arena_reset(&o->arena);
}

int out_flush(struct out *o)
{
	const size_t n = o->limit && o->limit < o->n_lines ? o->limit : o->n_lines;
	int rc;

	if (o->mixed)
		qsort(o->lines, o->n_lines, sizeof(*o->lines), compare);
	rc = out_print(o, n);
	fflush(stdout);
	out_forget(o);
	return rc;
}
