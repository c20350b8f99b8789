#include "gpuq/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "libgpuq/units.h"

#define WATCH_US (2 * GPUQ_US_PER_S)

struct reader {
	struct cli *c;
	struct out *out;
	list_keep_fn keep;
	int64_t now_us;
	size_t n_items;
	int failed;
};

enum { ENOUGH = 1 };

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct reader *r = arg;
	int rc;

	if (cli_signals_seen())
		return ENOUGH;
	r->n_items += item != NULL;
	if (!item || (r->keep && !r->keep(r->c, item)))
		return 0;
	rc = out_add(r->out, item, r->now_us);
	if (rc < 0)
		r->failed = rc;
	return rc ? ENOUGH : 0;
}

/* One time round; *n_items came. A connection that broke since the last turn (the daemon was
 * restarted) is made again, unless lines have been printed already. */
static int read_list(struct cli *c, const char *method, const struct gpuq_val *params,
		     struct out *out, list_keep_fn keep, size_t *n_items, struct gpuq_err *err)
{
	struct reader r = { .c = c, .out = out, .keep = keep };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *reply;
	int rc;

	for (int tries = 0;; tries++) {
		rc = cli_connect(c, err);
		if (rc < 0)
			break;
		r.now_us = cli_now_us();
		r.n_items = 0;
		rc = out_keys(out) ? gpuq_stream_rows(c->conn, method, params, out_keys(out), 0,
						      on_item, &r, &a, &reply, err)
				   : gpuq_stream(c->conn, method, params, 0, on_item, &r, &a,
						 &reply, err);
		if (!cli_broken(rc))
			break;
		cli_disconnect(c);
		if (tries > 0 || r.n_items > 0)
			break;
	}
	gpuq_arena_done(&a);
	*n_items = r.n_items;
	if (r.failed)
		return gpuq_fail(err, r.failed, "out of memory");
	return rc < 0 ? rc : 0;
}

int list_once(struct cli *c, const char *method, const struct gpuq_val *params, struct out *out,
	      list_keep_fn keep, struct gpuq_err *err)
{
	size_t n_items;

	return read_list(c, method, params, out, keep, &n_items, err);
}

int64_t watch_us(const struct cli *c)
{
	const char *text = c->args.val[OPT_WATCH];
	char *end;
	double s;

	if (!text)
		return 0;
	if (!*text)
		return WATCH_US;
	s = strtod(text, &end);
	if (*end || !(s >= 0.1 && s <= 86400)) {
		cli_usage(c, "--watch=%s: expected seconds between 0.1 and 86400", text);
		return -1;
	}
	return (int64_t)(s * (double)GPUQ_US_PER_S);
}

void watch_head(const struct cli *c, bool first)
{
	char text[32];
	time_t now = time(NULL);
	struct tm tm;

	if (opt_given(&c->args, OPT_JSON))
		return;
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	else if (!first)
		putchar('\n');
	if (opt_given(&c->args, OPT_NO_HEADER))
		return;
	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s  gpuq %s\n", text, c->cmd->name);
}

bool watch_pause(int64_t us)
{
	struct timespec t = { us / GPUQ_US_PER_S, us % GPUQ_US_PER_S * 1000 };

	fflush(stdout);
	while (!cli_signals_seen() && nanosleep(&t, &t) != 0 && errno == EINTR)
		;
	return !cli_signals_seen();
}

int watch_run(struct cli *c, int (*once)(struct cli *c))
{
	const int64_t every_us = watch_us(c);
	int code;

	if (every_us < 0)
		return EXIT_USAGE;
	if (every_us)
		cli_signals_catch();
	for (bool first = true;; first = false) {
		if (every_us)
			watch_head(c, first);
		code = once(c);
		if (every_us && cli_signals_seen())
			return EXIT_DONE;
		if (code != EXIT_DONE || !every_us || !watch_pause(every_us))
			return code;
		/* Watching may last for days; nothing of the last turn is needed. */
		gpuq_arena_reset(&c->arena);
	}
}

static void add_words(struct gpuq_arena *a, struct gpuq_val *list, const char *words)
{
	while (words && *words) {
		const size_t n = strcspn(words, ",");

		if (n)
			gpuq_add(a, list, gpuq_strn(a, words, n));
		words += n + (words[n] == ',');
	}
}

void list_names(struct cli *c, enum opt_id id, struct gpuq_val *params)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *list = gpuq_list(a);

	for (int i = 0; i < c->args.n_rest; i++)
		gpuq_add(a, list, gpuq_str(a, c->args.rest[i]));
	add_words(a, list, c->args.val[id]);
	if (list && list->n)
		gpuq_put(a, params, "names", list);
}

void list_put(struct cli *c, enum opt_id id, struct gpuq_val *params, const char *key)
{
	struct gpuq_val *list = gpuq_list(&c->arena);

	add_words(&c->arena, list, c->args.val[id]);
	if (list && list->n)
		gpuq_put(&c->arena, params, key, list);
}

void list_users(struct cli *c, struct gpuq_val *params)
{
	struct gpuq_val *list = gpuq_list(&c->arena);
	const char *me = opt_given(&c->args, OPT_ME) ? cli_user(c) : NULL;

	add_words(&c->arena, list, c->args.val[OPT_USERS]);
	if (me)
		gpuq_add(&c->arena, list, gpuq_str(&c->arena, me));
	if (list && list->n)
		gpuq_put(&c->arena, params, "users", list);
}

bool list_has(const char *words, const char *word)
{
	const size_t len = strlen(word);

	if (!words)
		return true;
	while (*words) {
		const size_t n = strcspn(words, ",");

		if (n == len && strncasecmp(words, word, n) == 0)
			return true;
		words += n + (words[n] == ',');
	}
	return false;
}

int list_run(struct cli *c, const char *method, const struct out_def *def, const char *shown,
	     int (*fill)(struct cli *c, struct gpuq_val *params, struct gpuq_err *err),
	     list_keep_fn keep)
{
	return list_run_more(c, method, def, shown, fill, keep, NULL);
}

int list_run_more(struct cli *c, const char *method, const struct out_def *def, const char *shown,
		  int (*fill)(struct cli *c, struct gpuq_val *params, struct gpuq_err *err),
		  list_keep_fn keep,
		  int (*more)(struct cli *c, struct out *out, struct gpuq_err *err))
{
	struct gpuq_val *params = gpuq_map(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct out *out;
	const int64_t every_us = watch_us(c);
	int rc, code = EXIT_DONE;
	size_t n_items;

	if (every_us < 0)
		return EXIT_USAGE;
	if (out_new(def, shown, &c->args, &out, &err) < 0)
		return cli_usage(c, "%s", err.text);
	if (every_us)
		cli_signals_catch();
	rc = cli_connect(c, &err);
	if (rc < 0) {
		code = cli_fail(&err, false);
		goto out;
	}
	rc = fill ? fill(c, params, &err) : 0;
	if (rc < 0) {
		code = rc == GPUQ_EINVAL ? cli_usage(c, "%s", err.text) : cli_fail(&err, true);
		goto out;
	}
	if (!keep)
		out_ask(out, &c->arena, params);
	for (bool first = true;; first = false) {
		if (every_us)
			watch_head(c, first);
		rc = read_list(c, method, params, out, keep, &n_items, &err);
		if (rc == 0 && more)
			rc = more(c, out, &err);
		if (rc == 0 && first && n_items == 0)
			rc = filter_check_ids(c, params, &err);
		if (rc == 0)
			rc = out_flush(out);
		if (rc == 0 && every_us && watch_pause(every_us))
			continue;
		/* While watching, a daemon that restarts is worth waiting for. */
		if (rc < 0 && every_us && cli_broken(rc)) {
			cli_say("%s", err.text);
			out_forget(out);
			if (watch_pause(every_us))
				continue;
			rc = 0;
		}
		break;
	}
	if (rc < 0 && !(every_us && cli_signals_seen()))
		code = cli_fail(&err, opt_given(&c->args, OPT_JOBS) ||
					      (c->cmd->takes_jobs && c->args.n_rest > 0));
out:
	out_free(out);
	return code;
}
