#include "gpuq/cmd/job/again.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

/* ---- which elements ---- */

struct elements {
	struct gpuq_arena *a;
	struct gpuq_array all; /* of the array */
	int64_t *done; /* indices that did complete, or have not ended yet */
	size_t n_done, room;
	bool whole; /* the job itself: no array */
	bool failed; /* of it: it ended without completing */
	bool no_memory;
};

static int by_index(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static bool is_done(const struct elements *e, int64_t index)
{
	return e->n_done && bsearch(&index, e->done, e->n_done, sizeof(*e->done), by_index);
}

static void add_done(struct elements *e, int64_t index)
{
	if (e->n_done == e->room) {
		const size_t room = e->room ? e->room * 2 : 64;
		int64_t *more = gpuq_arena_calloc(e->a, room, sizeof(*more));

		if (!more) {
			e->no_memory = true;
			return;
		}
		for (size_t i = 0; i < e->n_done; i++)
			more[i] = e->done[i];
		e->done = more;
		e->room = room;
	}
	e->done[e->n_done++] = index;
}

/* Pending elements have no object of their own; the array's object lists them. */
static void add_waiting(struct elements *e, const struct gpuq_val *job)
{
	const char *waiting = gpuq_get_str(gpuq_get(job, "array"), "waiting", "");
	struct gpuq_array set = { 0 };

	if (!*waiting || gpuq_array_parse(e->a, waiting, &set, NULL) < 0)
		return;
	for (size_t i = 0; i < set.n_ranges; i++)
		for (int64_t k = set.ranges[i].first; k <= set.ranges[i].last;
		     k += set.ranges[i].step)
			add_done(e, k);
}

static int look(void *arg, const struct gpuq_val *job)
{
	struct elements *e = arg;
	const int64_t index = gpuq_get_int(job, "array_index", -1);
	const char *indices = gpuq_get_str(gpuq_get(job, "array"), "indices", NULL);
	const bool failed = view_job_ended(job) && view_job_state(job) != GPUQ_JOB_COMPLETED;

	if (indices && !e->all.n_ranges && gpuq_array_parse(e->a, indices, &e->all, NULL) < 0)
		return GPUQ_EPROTO;
	if (!indices) {
		e->whole = true;
		e->failed = failed;
	} else if (index >= 0 && !failed) {
		add_done(e, index);
	} else if (index < 0) {
		add_waiting(e, job);
	}
	return e->no_memory ? GPUQ_ENOMEM : 0;
}

/* "3,7-9": what is left of the array; NULL = nothing. */
static const char *left(const struct elements *e)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *out;

	for (size_t i = 0; i < e->all.n_ranges; i++)
		for (int64_t k = e->all.ranges[i].first; k <= e->all.ranges[i].last;
		     k += e->all.ranges[i].step)
			if (!is_done(e, k))
				gpuq_buf_printf(&b, "%s%" PRId64, b.len ? "," : "", k);
	out = b.len ? gpuq_arena_strdup(e->a, gpuq_buf_str(&b)) : NULL;
	gpuq_buf_done(&b);
	return out;
}

/* ---- what was submitted ---- */

/* Put the elements into the spec's array, which keeps its throttle. */
static void set_array(struct gpuq_arena *a, struct gpuq_val *spec, const char *indices)
{
	const char *was = gpuq_get_str(spec, "array", ""), *throttle = strchr(was, '%');

	gpuq_set(a, spec, "array",
		 gpuq_str(a, gpuq_arena_printf(a, "%s%s", indices, throttle ? throttle : "")));
}

/* Drop the keys that applied to the time of the submission: begin, deadline, dependencies. */
static void drop_past(struct gpuq_val *spec, const struct gpuq_spec *read)
{
	const int64_t now_us = cli_now_us();

	gpuq_unset(spec, "depends");
	gpuq_unset(spec, "hold");
	if (read->begin_us <= now_us)
		gpuq_unset(spec, "begin");
	if (read->deadline_us <= now_us)
		gpuq_unset(spec, "deadline");
}

static int read_spec(struct cli *c, struct gpuq_val *tree, struct gpuq_context *context,
		     struct submission *s, struct gpuq_err *err)
{
	struct gpuq_spec_opts opts = { .now_us = cli_now_us(), .context = context };
	struct gpuq_buf text = GPUQ_BUF_INIT, warnings = GPUQ_BUF_INIT;
	int rc;

	gpuq_yaml_write(&text, tree);
	opts.file = "job";
	opts.argv = c->args.job;
	rc = text.failed ? gpuq_no_memory(err)
			 : gpuq_specs_read(&c->arena, &opts,
					   gpuq_arena_strndup(&c->arena, text.data, text.len),
					   text.len, &s->specs, &warnings, err);
	gpuq_buf_done(&text);
	gpuq_buf_done(&warnings);
	return rc;
}

static bool has_index(const struct gpuq_array *all, int64_t index)
{
	for (size_t i = 0; i < all->n_ranges; i++) {
		const struct gpuq_range *r = &all->ranges[i];

		if (index >= r->first && index <= r->last &&
		    (index - r->first) % (r->step > 0 ? r->step : 1) == 0)
			return true;
	}
	return false;
}

/* The elements that are named have to be some of the array. */
static int check_set(const struct gpuq_spec *old, const struct gpuq_array *set, int64_t id,
		     struct gpuq_err *err)
{
	for (size_t i = 0; i < set->n_ranges; i++)
		for (int64_t k = set->ranges[i].first; k <= set->ranges[i].last;
		     k += set->ranges[i].step)
			if (!has_index(&old->array, k))
				return gpuq_fail(err, GPUQ_ENOENT,
						 "job %" PRId64 " has no element %" PRId64, id, k);
	return 0;
}

int again_read(struct cli *c, const char *job, bool failed, struct submission *s,
	       struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_reader r = { .arena = a, .lenient = true, .stored = true, .err = err };
	struct gpuq_context *context = gpuq_arena_calloc(a, 1, sizeof(*context));
	struct gpuq_spec *old = gpuq_arena_calloc(a, 1, sizeof(*old));
	struct elements e = { .a = a };
	const struct gpuq_val *object = NULL;
	struct gpuq_val *tree;
	const char *indices = NULL;
	int64_t id, index = -1;
	const bool set = filter_set(a, job, &id, &e.all);
	int rc = set ? 0 : filter_id(job, &id, &index, err);

	*s = (struct submission){ .jobs = NULL };
	if (!context || !old)
		return gpuq_no_memory(err);
	if (rc < 0)
		return rc;
	object = job_with_spec(c, id, index, err);
	if (!object)
		return err->code;
	/* An element may have been named by its own number. */
	index = gpuq_get_int(object, "array_index", index);
	id = gpuq_get_int(object, "id", id);
	tree = gpuq_get(object, "spec");
	rc = gpuq_spec_read(&r, tree, old);
	if (rc == 0 && set)
		rc = check_set(old, &e.all, id, err);
	if (rc == 0 && failed)
		rc = job_for_each(c, id, index, look, &e, err);
	if (rc < 0)
		return rc;
	if (e.n_done)
		qsort(e.done, e.n_done, sizeof(*e.done), by_index);
	if (index >= 0)
		indices = !failed || !is_done(&e, index) ? gpuq_arena_printf(a, "%" PRId64, index)
							 : NULL;
	else if (set || (failed && !e.whole))
		indices = left(&e);
	if (failed && (e.whole ? !e.failed : !indices))
		return 0; /* nothing has */
	*context = old->context;
	context->resubmit_of = id;
	gpuq_unset(tree, "context");
	drop_past(tree, old);
	if (indices)
		set_array(a, tree, indices);
	return read_spec(c, tree, context, s, err);
}
