/* Long work in small steps: those that are under way take turns, and share what a turn of the
 * loop has for them, so that ten of them hold it no longer than one. */
#include "gpuqd/base/loop_work.h"

#include "gpuqd/base/loop_int.h"

#include <stdlib.h>

#include <utlist.h>

#define TURN_US 5000 /* of one turn, for all of them */
#define SHARE_US 1000 /* of that, before the next one has its steps */

struct loop_work {
	struct loop_work *prev, *next;
	struct works *of;
	const char *name;
	loop_step_fn step;
	void *arg;
	bool cancelled; /* in its own step */
};

struct works {
	struct loop *l;
	struct loop_work *list, *now; /* the first work runs next */
	struct loop_timer *timer;
};

static void on_turn(void *arg);

static void next_turn(struct works *ws)
{
	if (ws->list && !ws->timer)
		ws->timer = loop_after(ws->l, 0, on_turn, ws);
}

/* Run some steps of the first work; then move it behind the others, or remove it. */
static void some_steps(struct works *ws)
{
	const int64_t begun_us = loop_clock_us();
	struct loop_work *w = ws->list;
	const char *before = loop_enter(ws->l, w->name);
	bool more;

	ws->now = w;
	do
		more = w->step(w->arg);
	while (more && !w->cancelled && loop_clock_us() - begun_us < SHARE_US);
	ws->now = NULL;
	loop_leave(ws->l, before);
	DL_DELETE(ws->list, w);
	if (more && !w->cancelled)
		DL_APPEND(ws->list, w);
	else
		free(w);
}

static void on_turn(void *arg)
{
	struct works *ws = arg;
	const int64_t begun_us = loop_clock_us();

	ws->timer = NULL;
	while (ws->list && loop_clock_us() - begun_us < TURN_US)
		some_steps(ws);
	next_turn(ws);
}

struct loop_work *loop_work_as(struct loop *l, const char *name, loop_step_fn step, void *arg)
{
	struct works *ws = loop_works(l);
	struct loop_work *w = calloc(1, sizeof(*w));

	if (!w)
		abort(); /* as loop_after(): it would never be done */
	*w = (struct loop_work){ .of = ws, .name = name, .step = step, .arg = arg };
	DL_APPEND(ws->list, w);
	next_turn(ws);
	return w;
}

void loop_work_cancel(struct loop_work *w)
{
	struct works *ws;

	if (!w)
		return;
	ws = w->of;
	if (w == ws->now) {
		w->cancelled = true; /* freed once its step has returned */
		return;
	}
	DL_DELETE(ws->list, w);
	free(w);
}

struct works *works_new(struct loop *l)
{
	struct works *ws = calloc(1, sizeof(*ws));

	if (ws)
		ws->l = l;
	return ws;
}

void works_free(struct works *ws)
{
	struct loop_work *w, *next;

	if (!ws)
		return;
	DL_FOREACH_SAFE(ws->list, w, next)
		free(w);
	loop_cancel(ws->timer);
	free(ws);
}
