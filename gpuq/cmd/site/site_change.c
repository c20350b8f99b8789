#include "gpuq/cmd/site/site_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

struct gpuq_val *site_tree(struct gpuq_arena *a, const char *list, struct gpuq_val *members)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "version", gpuq_int(a, 1));
	gpuq_put(a, v, list, members);
	return v;
}

int site_put(struct gpuq_arena *a, struct gpuq_val *map, const char *text, struct gpuq_err *err)
{
	const size_t n = strcspn(text, "=");
	const char *value = text + n + 1;
	char *key = gpuq_arena_strndup(a, text, n), *sub;
	struct gpuq_val **docs, *v;
	size_t n_docs = 0;
	int rc;

	if (!key)
		return gpuq_no_memory(err);
	if (text[n] == '\0' || n == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: expected key=value", text);
	rc = gpuq_yaml_parse(a, key, value, strlen(value), &docs, &n_docs, err);
	if (rc < 0)
		return rc;
	if (n_docs > 1)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: expected one value", text);
	if (n_docs == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s: expected a value; null resets the key to its default", text);
	v = docs[0];
	if (strcmp(key, "name") == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "name: an existing object cannot be renamed");
	sub = strchr(key, '.');
	if (sub) {
		struct gpuq_val *inner;

		*sub++ = '\0';
		inner = gpuq_get(map, key);
		if (!inner || inner->type != GPUQ_MAP)
			inner = gpuq_set(a, map, key, gpuq_map(a));
		map = inner;
		key = sub;
	} else if (gpuq_get(map, key)) {
		return gpuq_fail(err, GPUQ_EINVAL, "%s: it is given twice", key);
	}
	if (sub && gpuq_get(map, key))
		return gpuq_fail(err, GPUQ_EINVAL, "%.*s: it is given twice", (int)n, text);
	gpuq_set(a, map, key, v);
	return 0;
}

/* ---- printing ---- */

/* Up to and with the newline, escaped. */
static void print_clean(const char *head, const char *text)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	term_clean_str(&b, text);
	printf("%s%s\n", head, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
}

static void print_keys(char sign, const struct gpuq_val *keys)
{
	for (uint32_t i = 0; keys && keys->type == GPUQ_MAP && i < keys->n; i++) {
		const struct gpuq_val *v = keys->pairs[i].val;
		struct gpuq_buf line = GPUQ_BUF_INIT;

		gpuq_buf_printf(&line, "  %c %s: ", sign, keys->pairs[i].key);
		if (v->type == GPUQ_STR)
			gpuq_buf_add(&line, v->s, v->n);
		else
			gpuq_json_write(&line, v, 0);
		print_clean("", gpuq_buf_str(&line));
		gpuq_buf_done(&line);
	}
}

static void print_change(const struct gpuq_val *change)
{
	struct gpuq_buf line = GPUQ_BUF_INIT;

	gpuq_buf_printf(&line, "%s %s", gpuq_get_str(change, "object", ""),
			gpuq_get_str(change, "action", ""));
	print_clean("", gpuq_buf_str(&line));
	gpuq_buf_done(&line);
	print_keys('-', gpuq_get(change, "old"));
	print_keys('+', gpuq_get(change, "new"));
}

/* clang-format off */
static void cell_for(struct gpuq_buf *out, const struct row *r)
{
	const char *by = gpuq_get_str(r->obj, "by", ""), *queue = gpuq_get_str(r->obj, "by_queue", "");

	gpuq_buf_printf(out, *by ? "%s%s%s%s" : "-", by, *queue ? " (" : "", queue, *queue ? ")" : "");
}

static void cell_ran(struct gpuq_buf *out, const struct row *r)
{
	char text[32];

	gpuq_duration_clock((int64_t)(view_number(gpuq_get(r->obj, "ran_s"), 0) * 1e6), text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void cell_loses(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%.2f", view_number(gpuq_get(r->obj, "lost_gpu_seconds"), 0) / 3600);
}

static void cell_then(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_bool(r->obj, "shrinks", false)    ? "shrinks"
			   : gpuq_get_bool(r->obj, "restarts", false) ? "restarts at once"
								      : "waits");
}

static void cell_job(struct gpuq_buf *out, const struct row *r)
{
	view_job_id(out, r->obj);
}

static const struct column cols[] = {
	{ "JOBID", 0, COL_RIGHT, NULL, cell_job, NULL, "the job" },
	{ "USER", 0, 0, "user", NULL, NULL, "owner" },
	{ "QUEUE", 0, 0, "queue", NULL, NULL, "queue" },
	{ "GPUS", 0, COL_RIGHT, "gpus", NULL, NULL, "devices it loses" },
	{ "RAN", 0, COL_RIGHT, NULL, cell_ran, NULL, "run time" },
	{ "LOSES", 0, COL_RIGHT, NULL, cell_loses, NULL, "GPU-hours since its last checkpoint" },
	{ "THEN", 0, 0, NULL, cell_then, NULL, "consequence for the job" },
	{ "FOR", 0, 0, NULL, cell_for, NULL, "the job that takes its place, and its queue" },
	{ "RULE", 0, 0, "rule", NULL, NULL, "the rule that allows it" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def victims = {
	.cols = cols,
	.usual = "JOBID,USER,QUEUE,GPUS,RAN,LOSES,THEN,FOR,RULE",
	.spare = "RULE,QUEUE",
};

static int print_victims(const struct gpuq_val *reply, bool dry_run)
{
	static const struct args none;
	const struct gpuq_val *list = gpuq_get(reply, "evictions");
	const int64_t n = gpuq_get_int(reply, "evicts", 0);
	const double hours = view_number(gpuq_get(reply, "lost_gpu_seconds"), 0) / 3600;
	struct gpuq_err err;
	struct out *out;
	int rc;

	if (gpuq_get_bool(reply, "cut_short", false))
		cli_say("warning: the preview was cut short, there may be more evictions");
	if (n == 0) {
		if (dry_run)
			puts("Would evict no jobs");
		return 0;
	}
	printf("%s %" PRId64 " job%s and lose%s %.2f GPU-hours:\n",
	       dry_run ? "Would evict" : "Evicts", n, line_s(n), dry_run ? "" : "s", hours);
	rc = out_new(&victims, NULL, &none, &out, &err);
	for (uint32_t i = 0; rc == 0 && list && i < list->n; i++)
		rc = out_add(out, list->items[i], 0);
	if (rc == 0)
		rc = out_flush(out);
	out_free(out);
	return rc;
}

/* Name the jobs that keep running, but can be preempted from now on. */
static void print_evictable(const struct gpuq_val *reply, bool dry_run)
{
	const struct gpuq_val *list = gpuq_get(reply, "evictable");
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (!list || list->type != GPUQ_LIST || list->n == 0)
		return;
	printf("%s %u job%s evictable, as queue %s has no quota any more:",
	       dry_run ? "Would make" : "Makes", list->n, line_s(list->n),
	       gpuq_get_str(list->items[0], "queue", "default"));
	for (uint32_t i = 0; i < list->n; i++) {
		gpuq_buf_adds(&text, i ? ", " : " ");
		view_job_id(&text, list->items[i]);
		gpuq_buf_printf(&text, " (%s)", gpuq_get_str(list->items[i], "user", "?"));
	}
	printf("%s\n", gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

static void print_warnings(const struct gpuq_val *reply)
{
	const struct gpuq_val *list = gpuq_get(reply, "warnings");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (list->items[i]->type == GPUQ_STR)
			cli_say("warning: %s", list->items[i]->s);
}

static int print(const struct gpuq_val *reply, bool dry_run, const char *done)
{
	const struct gpuq_val *changes = gpuq_get(reply, "changes");
	const uint32_t n = changes && changes->type == GPUQ_LIST ? changes->n : 0;

	print_warnings(reply);
	for (uint32_t i = 0; (dry_run || !done) && i < n; i++)
		print_change(changes->items[i]);
	if (n == 0) {
		puts("Nothing changes");
		return EXIT_DONE;
	}
	if (print_victims(reply, dry_run) < 0)
		return EXIT_REFUSED;
	print_evictable(reply, dry_run);
	if (dry_run)
		printf("%u change%s, not applied; the site is at generation %" PRId64 "\n", n,
		       line_s(n), gpuq_get_int(reply, "generation", 0));
	else
		printf("%s %u change%s\n", done ? done : "Applied", n, line_s(n));
	return EXIT_DONE;
}

static int count_option(const struct cli *c, enum opt_id id, struct gpuq_arena *a,
			struct gpuq_val *params, const char *key, const char *name)
{
	const char *text = c->args.val[id];
	char *end;
	long long n;

	if (!text)
		return 0;
	n = strtoll(text, &end, 10);
	if (*text < '0' || *text > '9' || *end)
		return cli_usage(c, "--%s=%s: expected a number", name, text);
	gpuq_put(a, params, key, gpuq_int(a, n));
	return 0;
}

int site_change(struct cli *c, struct gpuq_val *params, const char *done)
{
	const bool dry_run = opt_given(&c->args, OPT_DRY_RUN);
	struct gpuq_arena *a = &c->arena;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;
	int code = count_option(c, OPT_YES_EVICT, a, params, "yes_evict", "yes-evict");

	if (code == 0)
		code = count_option(c, OPT_GENERATION, a, params, "generation", "generation");
	if (code)
		return code;
	if (dry_run)
		gpuq_put(a, params, "dry_run", gpuq_bool(a, true));
	if (cli_call(c, "site.apply", params, dry_run ? "" : NULL, &reply, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON)) {
		print_warnings(reply);
		return out_json(reply) < 0 ? EXIT_REFUSED : EXIT_DONE;
	}
	return print(reply, dry_run, done);
}
