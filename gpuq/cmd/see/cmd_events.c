/* gpuq events: events of a job, new events as they occur, and changes by users. */
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/list.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

#define TICK_US (GPUQ_US_PER_S / 5) /* a signal is heeded though nothing happens */

static void time_text(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "time"));
}

static double time_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "time"), 0);
}

/* Everything that has no column of its own. */
static void detail_text(struct gpuq_buf *out, const struct row *r)
{
	static const char *const own[] = { "v", "time", "event", "job", "who", "attempt", "pod" };
	bool any = false;

	for (size_t i = 0; r->obj->type == GPUQ_MAP && i < r->obj->n; i++) {
		const char *key = r->obj->pairs[i].key;
		bool shown = false;

		for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			shown |= strcmp(own[k], key) == 0;
		if (shown)
			continue;
		gpuq_buf_printf(out, "%s%s=", any ? " " : "", key);
		view_cell(out, r->obj->pairs[i].val);
		any = true;
	}
	if (!any)
		gpuq_buf_addc(out, '-');
}

/* clang-format off */
static const struct column event_cols[] = {
	{ "TIME", 't', 0, "time", time_text, time_rank, "time" },
	{ "EVENT", 'e', 0, "event", NULL, NULL, "event" },
	{ "JOB", 'i', COL_RIGHT, "job", NULL, NULL, "job or array element" },
	{ "WHO", 'u', 0, "who", NULL, NULL, "user who caused it; - is gpuqd itself" },
	{ "ATTEMPT", 0, COL_RIGHT, "attempt", NULL, NULL, "attempt" },
	{ "POD", 0, COL_RIGHT, "pod", NULL, NULL, "index of the pod" },
	{ "DETAIL", 0, COL_CUT, NULL, detail_text, NULL, "details" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};

static const struct column audit_cols[] = {
	{ "TIME", 't', 0, "time", time_text, time_rank, "time" },
	{ "WHO", 'u', 0, "who", NULL, NULL, "user who did it" },
	{ "ACTION", 'e', 0, "action", NULL, NULL, "action" },
	{ "OBJECT", 'o', COL_CUT, "object", NULL, NULL, "changed object" },
	{ "OLD", 0, COL_CUT, "old", NULL, NULL, "old value" },
	{ "NEW", 0, COL_CUT, "new", NULL, NULL, "new value" },
	{ "NOTE", 0, COL_CUT, "note", NULL, NULL, "reason given for the change" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def event_list = {
	.cols = event_cols,
	.usual = "TIME,EVENT,JOB,WHO,ATTEMPT,POD,DETAIL",
	.spare = "ATTEMPT,POD,WHO",
	.sort = "TIME",
};

/* Lines that come one by one cannot be as wide as the widest. */
static const char follow_cols[] = "TIME:19,EVENT:16,JOB:.8,WHO:10,ATTEMPT:.7,POD:.3,DETAIL";

static const struct out_def audit_list = {
	.cols = audit_cols,
	.usual = "TIME,WHO,ACTION,OBJECT,OLD,NEW,NOTE",
	.spare = "NOTE",
	.sort = NULL,
};

static int put_job(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	int64_t id, index;

	if (c->args.n_rest == 0)
		return 0;
	if (filter_id(c->args.rest[0], &id, &index, err) < 0)
		return GPUQ_EINVAL;
	gpuq_put(a, params, "id", gpuq_int(a, id));
	if (index >= 0)
		gpuq_put(a, params, "index", gpuq_int(a, index));
	return 0;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	int rc = put_job(c, params, err);

	return rc < 0 ? rc : filter_put_times(&c->arena, params, &c->args, err);
}

static int fill_audit(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;

	list_put(c, OPT_USERS, params, "users");
	if (c->args.n_rest) {
		struct gpuq_val *objects = gpuq_list(a);

		gpuq_add(a, objects, gpuq_str(a, gpuq_arena_printf(a, "job/%s", c->args.rest[0])));
		gpuq_put(a, params, "objects", objects);
	}
	return filter_put_times(&c->arena, params, &c->args, err);
}

/* ---- --follow ---- */

struct follower {
	struct cli *c;
	struct out *out;
	int64_t last_us; /* of what was printed */
	bool watching; /* a job, from event.watch */
	bool may_be_over, finishing, ended;
	int rc;
};

static int on_event(void *arg, const struct gpuq_val *ev)
{
	struct follower *f = arg;

	if (cli_signals_seen())
		return 1;
	if (!ev)
		return 0;
	/* The end of the last printed turn may have come in the same turn. */
	if (f->finishing && gpuq_get_int(ev, "time", 0) <= f->last_us &&
	    (f->ended || strcmp(gpuq_get_str(ev, "event", ""), "job.ended") != 0))
		return 0;
	f->ended |= strcmp(gpuq_get_str(ev, "event", ""), "job.ended") == 0;
	f->last_us = gpuq_get_int(ev, "time", f->last_us);
	f->rc = out_add(f->out, ev, cli_now_us());
	if (f->rc == 0)
		f->rc = out_flush(f->out);
	f->may_be_over =
		f->watching && (strcmp(gpuq_get_str(ev, "event", ""), "job.ended") == 0 ||
				strcmp(gpuq_get_str(ev, "event", ""), "job.cancel_asked") == 0);
	return f->rc != 0 || f->may_be_over;
}

static int on_part(void *arg, const struct gpuq_val *job)
{
	bool *lives = arg;

	*lives |= !view_job_ended(job);
	return 0;
}

/* The job, and of an array every element, has ended. */
static bool is_over(struct cli *c, const struct gpuq_val *watch)
{
	struct gpuq_err err;
	bool lives = false;

	return job_for_each(c, gpuq_get_int(watch, "id", 0), gpuq_get_int(watch, "index", -1),
			    on_part, &lives, &err) >= 0 &&
	       !lives;
}

static int stream(struct follower *f, const char *method, const struct gpuq_val *params,
		  struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *reply;
	int rc = gpuq_stream(f->c->conn, method, params, TICK_US, on_event, f, &a, &reply, err);

	gpuq_arena_done(&a);
	return f->rc < 0 ? f->rc : rc;
}

static void head(const struct cli *c)
{
	struct gpuq_err err;
	struct out *out;

	if (opt_given(&c->args, OPT_NO_HEADER) || opt_given(&c->args, OPT_JSON) ||
	    out_new(&event_list, follow_cols, &c->args, &out, &err) < 0)
		return;
	out_flush(out); /* of nothing: the names of the columns */
	out_free(out);
}

/* Print stored events, then new ones, until a signal or the end of the job. After a restart of
 * the daemon it continues where it stopped. */
static int follow(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct follower f = { .c = c };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *params = gpuq_map(a), *watch = gpuq_map(a);
	struct args args = c->args;
	int rc;

	args.val[OPT_NO_HEADER] = "";
	args.val[OPT_SORT] = NULL;
	if (out_new(&event_list, follow_cols, &args, &f.out, &err) < 0)
		return cli_usage(c, "%s", err.text);
	cli_signals_catch();
	rc = fill(c, params, &err) < 0 || put_job(c, watch, &err) < 0 ? GPUQ_EINVAL : 0;
	if (rc < 0) {
		out_free(f.out);
		return cli_usage(c, "%s", err.text);
	}
	rc = cli_connect(c, &err);
	f.last_us = cli_now_us();
	if (rc == 0)
		head(c);
	if (rc == 0 && (c->args.n_rest || opt_given(&c->args, OPT_SINCE)))
		rc = stream(&f, "event.list", params, &err);
	f.watching = c->args.n_rest > 0;
	f.may_be_over = f.watching;
	while (rc >= 0 && !cli_signals_seen()) {
		rc = cli_connect(c, &err);
		if (rc == 0 && f.may_be_over && is_over(c, watch)) {
			f.watching = false;
			f.finishing = true;
			gpuq_set(a, params, "since_us", gpuq_int(a, f.last_us));
			rc = stream(&f, "event.list", params, &err);
			break;
		}
		gpuq_set(a, watch, "since_us", gpuq_int(a, f.last_us));
		if (rc == 0)
			rc = stream(&f, "event.watch", watch, &err);
		if (rc >= 0 && f.rc >= 0)
			continue;
		if (!cli_broken(rc))
			break;
		cli_say("%s", err.text);
		cli_disconnect(c);
		if (!watch_pause(1000000))
			break;
		rc = 0;
	}
	out_free(f.out);
	return rc < 0 && !cli_signals_seen() ? cli_fail(&err, true) : EXIT_DONE;
}

int cmd_events(struct cli *c)
{
	if (opt_given(&c->args, OPT_AUDIT) && opt_given(&c->args, OPT_FOLLOW))
		return cli_usage(c, "--audit and --follow cannot go together");
	if (opt_given(&c->args, OPT_USERS) && !opt_given(&c->args, OPT_AUDIT))
		return cli_usage(c, "--users goes with --audit");
	if (opt_given(&c->args, OPT_FOLLOW))
		return follow(c);
	if (opt_given(&c->args, OPT_AUDIT))
		return list_run(c, "audit.list", &audit_list, NULL, fill_audit, NULL);
	return list_run(c, "event.list", &event_list, NULL, fill, NULL);
}
