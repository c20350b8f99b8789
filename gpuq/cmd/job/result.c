#include "gpuq/cmd/job/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/view.h"
#include "libgpuq/grow.h"
#include "libgpuq/names.h"

void board_done(struct board *b)
{
	free(b->items);
	*b = (struct board){ NULL, 0, 0 };
}

void board_clear(struct board *b)
{
	b->n = 0;
}

/* Return the index of the first entry that is not before this one. */
static size_t place_of(const struct board *b, int64_t id, int64_t index)
{
	size_t from = 0, to = b->n;

	while (from < to) {
		const size_t mid = from + (to - from) / 2;
		const struct board_job *j = &b->items[mid];

		if (j->id < id || (j->id == id && j->index < index))
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static bool has(const struct board *b, size_t at, int64_t id, int64_t index)
{
	return at < b->n && b->items[at].id == id && b->items[at].index == index;
}

static struct board_job *entry(struct board *b, int64_t id, int64_t index)
{
	const size_t at = place_of(b, id, index);

	if (has(b, at, id, index))
		return &b->items[at];
	if (!grow_to(&b->items, &b->room, b->n + 1))
		return NULL;
	memmove(&b->items[at + 1], &b->items[at], (b->n++ - at) * sizeof(b->items[0]));
	b->items[at] = (struct board_job){ .id = id, .index = index, .state = -1 };
	return &b->items[at];
}

struct board_job *board_update(struct board *b, const struct gpuq_val *job, bool *changed)
{
	struct board_job *j =
		entry(b, gpuq_get_int(job, "id", 0), gpuq_get_int(job, "array_index", -1));
	const struct gpuq_val *exit_code = gpuq_get(job, "exit_code");
	struct gpuq_buf place = GPUQ_BUF_INIT;
	struct board_job was;

	if (!j)
		return NULL;
	was = *j;
	j->state = view_job_state(job);
	j->started = view_job_started(job);
	j->has_exit = exit_code && exit_code->type == GPUQ_INT;
	j->exit_code = j->has_exit ? exit_code->i : 0;
	j->attempt = gpuq_get_int(job, "attempt", 0);
	j->element_id = gpuq_get_int(job, "element_id", 0);
	snprintf(j->reason, sizeof(j->reason), "%s", gpuq_get_str(job, "reason", ""));
	snprintf(j->queue, sizeof(j->queue), "%s", gpuq_get_str(job, "queue", ""));
	view_job_nodes(&place, job);
	snprintf(j->place, sizeof(j->place), "%s", gpuq_buf_str(&place));
	gpuq_buf_done(&place);
	if (changed)
		*changed = j->state != was.state || j->attempt != was.attempt ||
			   strcmp(j->reason, was.reason) != 0 || strcmp(j->place, was.place) != 0;
	return j;
}

/* The element that the target names by its own number, or NULL. */
static struct board_job *by_number(const struct board *b, int64_t number)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].element_id == number)
			return &b->items[i];
	return NULL;
}

/* Return the next entry that belongs to the target: the job, an element of it, or the element itself.
 * The array's own entry stands for elements that have no object of their own yet. */
static struct board_job *next_of(const struct board *b, const struct target *t,
				 const struct board_job *after)
{
	size_t at = after ? (size_t)(after - b->items) + 1 : place_of(b, t->id, -1);

	if (after && (t->index >= 0 || after->id != t->id))
		return NULL;
	if (!after && t->index < 0 && !(at < b->n && b->items[at].id == t->id))
		return by_number(b, t->id);
	if (t->index >= 0 && has(b, place_of(b, t->id, t->index), t->id, t->index))
		at = place_of(b, t->id, t->index);
	else if (t->index >= 0 && !has(b, at, t->id, -1))
		return NULL;
	return at < b->n && b->items[at].id == t->id ? &b->items[at] : NULL;
}

#define board_each(b, t, j)                                                                        \
	for (const struct board_job *j = next_of(b, t, NULL); j; j = next_of(b, t, j))

static bool started(const struct board *b, const struct target *t)
{
	board_each(b, t, j)
		if (j->started)
			return true;
	return false;
}

static bool ended(const struct board *b, const struct target *t)
{
	bool any = false;

	board_each(b, t, j) {
		if (j->state < 0 || !gpuq_job_state_ended((enum gpuq_job_state)j->state))
			return false;
		any = true;
	}
	return any;
}

bool board_started(const struct board *b, const struct target *targets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!started(b, &targets[i]) && !ended(b, &targets[i]))
			return false;
	return true;
}

bool board_ended(const struct board *b, const struct target *targets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!ended(b, &targets[i]))
			return false;
	return true;
}

int result_code(const struct board_job *j)
{
	const int own = j->has_exit ? (int)(j->exit_code & 0xff) : 0;

	switch (j->state) {
	case GPUQ_JOB_COMPLETED:
		return EXIT_DONE;
	case GPUQ_JOB_FAILED:
		return own ? own : 1; /* only COMPLETED is 0 */
	case GPUQ_JOB_OUT_OF_MEMORY:
		return own ? own : 137;
	case GPUQ_JOB_TIMEOUT:
		return EXIT_TIME;
	case GPUQ_JOB_DEADLINE:
		return j->started ? EXIT_TIME : EXIT_NEVER_STARTED;
	case GPUQ_JOB_CANCELLED:
		return EXIT_CANCELLED;
	case GPUQ_JOB_NODE_FAIL:
	case GPUQ_JOB_PREEMPTED:
		return EXIT_INFRA;
	default:
		return EXIT_LIVES_ON;
	}
}

void result_of(const struct board *b, const struct target *t, struct result *out)
{
	const struct board_job *worst = NULL;

	board_each(b, t, j)
		if (!worst || result_code(j) > result_code(worst))
			worst = j;
	*out = (struct result){
		.has_id = true, .id = t->id, .index = t->index, .state = -1, .code = EXIT_LIVES_ON
	};
	if (!worst)
		return;
	/* An array with elements that have not ended is reported as still running. */
	board_each(b, t, j)
		if (result_code(j) == EXIT_LIVES_ON)
			worst = j;
	out->state = worst->state;
	out->has_exit = worst->has_exit;
	out->exit_code = worst->exit_code;
	out->code = result_code(worst);
	memcpy(out->reason, worst->reason, sizeof(out->reason));
}

void result_print(const struct result *r)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_val *v = gpuq_map(&a);

	gpuq_put(&a, v, "id", r->has_id ? gpuq_int(&a, r->id) : gpuq_null(&a));
	if (r->has_id && r->index >= 0)
		gpuq_put(&a, v, "array_index", gpuq_int(&a, r->index));
	gpuq_put(&a, v, "state",
		 r->state < 0 ? gpuq_null(&a)
			      : gpuq_str(&a, gpuq_job_state_word((enum gpuq_job_state)r->state)));
	gpuq_put(&a, v, "exit_code", r->has_exit ? gpuq_int(&a, r->exit_code) : gpuq_null(&a));
	gpuq_put(&a, v, "reason", r->reason[0] ? gpuq_str(&a, r->reason) : gpuq_null(&a));
	gpuq_json_write(&text, v, 0);
	fflush(stdout);
	fprintf(stderr, "gpuq-result: %s\n", gpuq_buf_str(&text));
	gpuq_buf_done(&text);
	gpuq_arena_done(&a);
}

int result_none(const struct target *t, const char *reason, int code)
{
	struct result r = { .has_id = t != NULL,
			    .id = t ? t->id : 0,
			    .index = t ? t->index : -1,
			    .state = -1,
			    .code = code };

	snprintf(r.reason, sizeof(r.reason), "%s", reason);
	result_print(&r);
	return code;
}
