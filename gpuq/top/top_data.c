/* The rows of gpuq top: read from the server, filtered, sorted. Declared in top.h; called by cmd_top.c. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "gpuq/cmd/see/cmd_why.h"
#include "gpuq/cmd/see/cmd_queues.h"
#include "gpuq/cmd/see/cmd_nodes.h"
#include "gpuq/cols_job.h"
#include "gpuq/filter.h"
#include "gpuq/term.h"
#include "gpuq/top/top.h"
#include "gpuq/view.h"
#include "libgpuq/grow.h"
#include "libgpuq/units.h"

#define ROWS_MAX 5000 /* no more is read, and each is requested again and again */

/* clang-format off */
const struct top_kind top_kinds[N_TOP_PANES] = {
	[TOP_JOBS] = { "jobs", "job.list", &job_list,
		       "JOBID,QUEUE,NAME,USER,ST,TIME,GPUS,USE,PRIORITY,NODELIST(REASON)", "ST" },
	[TOP_NODES] = { "nodes", "node.list", &node_list,
			"NODE,STATE,FLAVOR,GPU,DEVICE_STATE,MEMORY,FREE_MEMORY,FREE,JOBS", "NODE" },
	[TOP_QUEUES] = { "queues", "queue.list", &queue_list,
			 "NAME,QUOTA,LIMIT,FAIR_SHARE,ALLOCATED,HELD,PENDING,RUNNING,USED", "" },
};
/* clang-format on */

static const char *clean(struct top *t, const char *text)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *out;

	term_clean_str(&b, text);
	out = gpuq_arena_strdup(&t->data, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return out ? out : "";
}

/* ---- the pane ---- */

static void find_columns(struct top_list *l, const struct top_kind *k)
{
	l->n_cols = 0;
	for (const char *p = k->shown; *p && l->n_cols < TOP_COLS_MAX;) {
		const size_t n = strcspn(p, ",");

		for (const struct column *c = k->def->cols; c->name; c++)
			if (strlen(c->name) == n && strncmp(c->name, p, n) == 0)
				l->cols[l->n_cols++] = c;
		p += n + (p[n] == ',');
	}
}

void top_set_pane(struct top *t, enum top_pane pane)
{
	const char *sort = top_kinds[pane].sort;

	t->pane = pane;
	t->at = t->first = 0;
	t->filter[0] = '\0';
	t->list.n_rows = 0;
	find_columns(&t->list, &top_kinds[pane]);
	t->down = *sort == '-';
	t->sort = t->list.n_cols; /* none: as the server sends them */
	for (size_t i = 0; i < t->list.n_cols; i++)
		if (strcmp(t->list.cols[i]->name, sort + t->down) == 0)
			t->sort = i;
}

static struct top_row *new_row(struct top *t)
{
	struct top_list *l = &t->list;

	if (!grow_to(&l->rows, &l->room, l->n_rows + 1))
		return NULL;
	l->rows[l->n_rows] = (struct top_row){ .id = NULL };
	return &l->rows[l->n_rows++];
}

static int add_row(struct top *t, const struct gpuq_val *obj, const struct gpuq_val *sub)
{
	const struct row r = { obj, sub, cli_now_us() };
	struct top_row *row = new_row(t);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (!row)
		return GPUQ_ENOMEM;
	for (size_t i = 0; i < t->list.n_cols; i++) {
		const struct column *c = t->list.cols[i];
		const struct gpuq_val *v = c->key ? gpuq_get(obj, c->key) : NULL;

		gpuq_buf_clear(&text);
		out_cell(c, &r, &text);
		row->cells[i] = clean(t, gpuq_buf_str(&text));
		row->ranked[i] = c->rank || (v && (v->type == GPUQ_INT || v->type == GPUQ_REAL));
		row->ranks[i] = c->rank ? c->rank(&r) : view_number(v, 0);
	}
	if (t->pane == TOP_JOBS) {
		char id[48];
		const int64_t index = gpuq_get_int(obj, "array_index", -1);

		if (index < 0)
			snprintf(id, sizeof(id), "%" PRId64, gpuq_get_int(obj, "id", 0));
		else
			snprintf(id, sizeof(id), "%" PRId64 "_%" PRId64, gpuq_get_int(obj, "id", 0),
				 index);
		row->id = gpuq_arena_strdup(&t->data, id);
	}
	gpuq_buf_done(&text);
	return 0;
}

enum { ENOUGH = 1 };

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct top *t = arg;
	const struct gpuq_val *devices = gpuq_get(item, "devices");
	int rc = 0;

	if (cli_signals_seen())
		return ENOUGH;
	if (!item)
		return 0;
	if (t->list.n_rows >= ROWS_MAX) {
		t->list.cut = true;
		return ENOUGH;
	}
	if (t->pane != TOP_NODES || !devices || devices->type != GPUQ_LIST || devices->n == 0)
		return add_row(t, item, NULL);
	for (uint32_t i = 0; i < devices->n && rc == 0; i++)
		rc = add_row(t, item, devices->items[i]);
	return rc;
}

static int read_list(struct top *t, struct gpuq_err *err)
{
	const struct top_kind *k = &top_kinds[t->pane];
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct out_keys keys = { .n = 0 };
	struct gpuq_val *reply;
	int rc;

	t->list.n_rows = 0;
	t->list.cut = false;
	out_keys_add(&keys, &mem, k->def->keys);
	for (size_t i = 0; i < t->list.n_cols; i++)
		out_keys_add(&keys, &mem, t->list.cols[i]->key);
	rc = keys.all ? gpuq_stream(t->c->conn, k->method, NULL, GPUQ_US_PER_S, on_item, t, &mem,
				    &reply, err)
		      : gpuq_stream_rows(t->c->conn, k->method, NULL, keys.names, GPUQ_US_PER_S,
					 on_item, t, &mem, &reply, err);
	gpuq_arena_done(&mem);
	return rc < 0 ? rc : 0;
}

/* ---- the lines above it ---- */

/* "3 allocated, 5 free" of a map of numbers. */
static void add_counts(struct gpuq_buf *text, const struct gpuq_val *map)
{
	const char *sep = "";

	for (uint32_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++) {
		if (view_number(map->pairs[i].val, 0) == 0)
			continue;
		gpuq_buf_adds(text, sep);
		view_cell(text, map->pairs[i].val);
		gpuq_buf_printf(text, " %s", map->pairs[i].key);
		sep = ", ";
	}
	if (!*sep)
		gpuq_buf_adds(text, "none");
}

static void read_head(struct top *t, const struct gpuq_val *status)
{
	const struct gpuq_val *cluster = gpuq_get(status, "cluster");
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const time_t now = time(NULL);
	char clock[16];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	gpuq_buf_printf(&text, "gpuq top  %s  %s cluster", clock,
			gpuq_get_str(cluster, "kind", "?"));
	if (gpuq_get_int(cluster, "stale_since", 0)) {
		gpuq_buf_adds(&text, ", STALE since ");
		view_time(&text, gpuq_get(cluster, "stale_since"));
	}
	if (gpuq_get_bool(cluster, "read_only", false))
		gpuq_buf_adds(&text, ", READ ONLY: no space");
	else if (gpuq_get_bool(cluster, "no_new_jobs", false))
		gpuq_buf_adds(&text, ", NO NEW JOBS: disk full");
	t->head[0] = clean(t, gpuq_buf_str(&text));
	gpuq_buf_clear(&text);
	gpuq_buf_adds(&text, "GPUs  ");
	view_cell(&text, gpuq_get(status, "gpus"));
	gpuq_buf_adds(&text, ": ");
	add_counts(&text, gpuq_get(status, "devices"));
	t->head[1] = clean(t, gpuq_buf_str(&text));
	gpuq_buf_clear(&text);
	gpuq_buf_adds(&text, "Jobs  ");
	add_counts(&text, gpuq_get(status, "jobs"));
	t->head[2] = clean(t, gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

/* The displayed rows stay in t->data until a complete new picture has been read. */
void top_read(struct top *t)
{
	struct gpuq_arena old = t->data;
	const struct top_list was = t->list;
	const char *head[3] = { t->head[0], t->head[1], t->head[2] };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *status;
	int rc;

	t->data = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	t->list.rows = NULL;
	t->list.n_rows = t->list.room = 0;
	gpuq_arena_reset(&t->c->arena);
	rc = cli_call(t->c, "status.get", NULL, "", &status, &err);
	if (rc == 0)
		rc = read_list(t, &err);
	t->read_us = cli_mono_us();
	if (rc == 0) {
		read_head(t, status);
		t->trouble = NULL;
		gpuq_arena_done(&old);
		free(was.rows);
		return;
	}
	free(t->list.rows);
	gpuq_arena_done(&t->data);
	t->data = old;
	t->list = was;
	memcpy(t->head, head, sizeof(head));
	t->trouble = clean(t, err.text[0] ? err.text : gpuq_err_text(err.code));
	if (cli_broken(rc))
		cli_disconnect(t->c);
}

/* ---- order ---- */

static bool matches(const struct top *t, const struct top_row *r)
{
	if (!t->filter[0])
		return true;
	for (size_t i = 0; i < t->list.n_cols; i++)
		if (strcasestr(r->cells[i], t->filter))
			return true;
	return false;
}

struct ordered {
	const struct top *t;
	struct top_row row;
	size_t at;
	bool kept;
};

static int compare(const void *x, const void *y)
{
	const struct ordered *a = x, *b = y;
	const size_t k = a->t->sort;
	int d = 0;

	if (a->kept != b->kept)
		return a->kept ? -1 : 1;
	if (k < a->t->list.n_cols && a->row.ranked[k] && b->row.ranked[k])
		d = a->row.ranks[k] < b->row.ranks[k] ? -1 : a->row.ranks[k] > b->row.ranks[k];
	else if (k < a->t->list.n_cols)
		d = view_natural(a->row.cells[k], b->row.cells[k]);
	if (d)
		return a->t->down ? -d : d;
	return a->at < b->at ? -1 : 1;
}

void top_arrange(struct top *t, size_t *n)
{
	struct ordered *all = calloc(t->list.n_rows + 1, sizeof(*all));

	*n = 0;
	if (!all)
		return;
	for (size_t i = 0; i < t->list.n_rows; i++) {
		all[i] = (struct ordered){ t, t->list.rows[i], i, matches(t, &t->list.rows[i]) };
		*n += all[i].kept;
	}
	if (t->list.n_rows)
		qsort(all, t->list.n_rows, sizeof(*all), compare);
	for (size_t i = 0; i < t->list.n_rows; i++)
		t->list.rows[i] = all[i].row;
	free(all);
}

/* ---- one job ---- */

void top_read_job(struct top *t)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = NULL;
	int64_t id, index;
	size_t size;
	FILE *f;

	gpuq_arena_reset(&t->c->arena);
	if (filter_id(t->job, &id, &index, &err) == 0)
		why_get(t->c, id, index, &v, &err);
	free(t->text);
	t->text = NULL;
	f = open_memstream(&t->text, &size);
	if (!f)
		return;
	if (v)
		why_print(v, f);
	else
		fprintf(f, "%s\n", clean(t, err.text));
	fclose(f);
}

void top_done(struct top *t)
{
	gpuq_arena_done(&t->data);
	free(t->list.rows);
	free(t->text);
}
