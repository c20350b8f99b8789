#include "gpuq/cmd/job/submission.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/cmd/job/code.h"
#include "gpuq/command.h"
#include "gpuq/file.h"
#include "gpuq/help.h"
#include "gpuq/view.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "libgpuq/utf8.h"

extern char **environ;

#define WHOLE_MAX 20 /* jobs that are answered with whole objects */

static bool waits(const struct cli *c)
{
	return c->cmd->waits || opt_given(&c->args, OPT_WAIT);
}

int submission_refused(const struct cli *c)
{
	return waits(c) ? EXIT_REJECTED : EXIT_REFUSED;
}

static int refuse(const struct cli *c, const struct gpuq_err *err)
{
	const int code =
		cli_exit_code(err, false) == EXIT_SERVER ? EXIT_SERVER : submission_refused(c);

	cli_say("%s%s", c->cmd->slurm ? "error: Batch job submission failed: " : "",
		err->text[0] ? err->text : gpuq_err_text(err->code));
	return waits(c) ? result_none(NULL, gpuq_err_name(err->code), code) : code;
}

/* One warning a line. */
static void warn_lines(const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, "\n");

		if (n)
			cli_say("warning: %.*s", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strcmp(path, "-") == 0)
		return "stdin";
	return slash ? slash + 1 : path;
}

static bool given_wrap(const struct args *args)
{
	for (size_t i = 0; i < args->n_job; i++)
		if (strncmp(args->job[i], "--wrap=", 7) == 0)
			return true;
	return false;
}

/* -o means the form of a dry run's output where it says yaml or json, and the job's
 * output file everywhere else, as for sbatch. */
int submission_output(struct cli *c, struct gpuq_err *err)
{
	struct args *args = &c->args;
	const char *o = args->val[OPT_OUTPUT];
	const char **more;

	if (!o ||
	    (opt_given(args, OPT_DRY_RUN) && (strcmp(o, "yaml") == 0 || strcmp(o, "json") == 0)))
		return 0;
	more = gpuq_arena_calloc(&c->arena, args->n_job + 2, sizeof(*more));
	if (!more)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < args->n_job; i++)
		more[i] = args->job[i];
	more[args->n_job++] = gpuq_arena_printf(&c->arena, "--output=%s", o);
	args->job = more;
	args->val[OPT_OUTPUT] = NULL;
	return 0;
}

/* The local cluster runs a job in its submitter's directory and environment. Elsewhere the
 * environment is useless and may hold secrets; without a server the kind of cluster is unknown,
 * but nothing is sent. */
static bool wants_environ(struct cli *c)
{
	struct gpuq_err err;
	const char *kind;

	if (cli_connect(c, &err) < 0)
		return false;
	kind = gpuq_get_str(gpuq_get(gpuq_server_info(c->conn), "cluster"), "kind", "");
	return strcmp(kind, "local") == 0;
}

static int read_environ(struct gpuq_arena *a, struct gpuq_strmap *out, struct gpuq_err *err)
{
	size_t n = 0;

	while (environ[n])
		n++;
	out->keys = gpuq_arena_calloc(a, n, sizeof(*out->keys));
	out->vals = gpuq_arena_calloc(a, n, sizeof(*out->vals));
	if (!out->keys || !out->vals)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		const char *eq = strchr(environ[i], '=');

		/* Proofs of identity are for the server, not for jobs and its database. */
		if (!eq || eq == environ[i] || strncmp(environ[i], "GPUQ_TOKEN", 10) == 0)
			continue;
		out->keys[out->n] = gpuq_arena_strndup(a, environ[i], (size_t)(eq - environ[i]));
		out->vals[out->n] = eq + 1;
		if (!out->keys[out->n++])
			return gpuq_no_memory(err);
	}
	return 0;
}

static int read_context(struct cli *c, struct gpuq_context *x, struct gpuq_err *err)
{
	const mode_t mask = umask(0);
	char *cwd = getcwd(NULL, 0), host[256] = "";

	umask(mask);
	if (gethostname(host, sizeof(host) - 1) == 0 && *host)
		x->host = gpuq_arena_strdup(&c->arena, host);
	x->umask = mask;
	x->cwd = cwd ? gpuq_arena_strdup(&c->arena, cwd) : NULL;
	free(cwd);
	return wants_environ(c) ? read_environ(&c->arena, &x->environ, err) : 0;
}

/* Note the words as the job's command, as far as they fit; those of a script begin with its path. */
static int note_command(struct cli *c, struct gpuq_context *x, const char *const *words,
			bool script, struct gpuq_err *err)
{
	const char *first = words[0];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	size_t n;

	while (script && strncmp(first, "./", 2) == 0)
		first += 2;
	if (script && *first != '/' && x->cwd)
		gpuq_buf_printf(&b, "%s/", x->cwd);
	gpuq_buf_adds(&b, first);
	for (size_t i = 1; words[i]; i++)
		gpuq_buf_printf(&b, " %s", words[i]);
	n = b.len < GPUQ_TEXT_BYTES_MAX ? b.len : GPUQ_TEXT_BYTES_MAX;
	x->command =
		b.failed ? NULL : gpuq_arena_strndup(&c->arena, b.data, gpuq_utf8_check(b.data, n));
	gpuq_buf_done(&b);
	return x->command ? 0 : gpuq_no_memory(err);
}

/* Behind "--" stands a command of its own, where a command is as good as a file. */
static bool takes_command(const struct cli *c)
{
	return c->cmd->slurm || strstr(c->cmd->synopsis, "-- COMMAND") != NULL;
}

/* gpuq run -- COMMAND, or --wrap: no file. */
static int read_command(struct cli *c, struct gpuq_spec_opts *opts, struct gpuq_context *context,
			const char *const *command, struct submission *s, struct gpuq_err *err)
{
	struct gpuq_spec *spec = gpuq_arena_calloc(&c->arena, 1, sizeof(*spec));
	int rc;

	if (!spec)
		return gpuq_no_memory(err);
	rc = submission_output(c, err);
	if (rc == 0 && command)
		rc = note_command(c, context, command, false, err);
	opts->argv = c->args.job;
	opts->default_name = command         ? base_name(command[0])
			     : c->cmd->slurm ? "wrap" /* as sbatch has it */
					     : NULL;
	if (rc == 0)
		rc = gpuq_spec_from_command(&c->arena, opts, command, spec, err);
	if (rc == 0)
		s->specs = (struct gpuq_specs){ .items = spec, .n = 1, .form = GPUQ_FORM_JOB };
	return rc;
}

/* Does the first line that says something begin a map of YAML or JSON? */
static bool is_map(const char *text, size_t n)
{
	const char *const end = text + n, *p = text;

	while (p < end) {
		const char *line = p, *stop = memchr(p, '\n', (size_t)(end - p));

		p = stop ? stop + 1 : end;
		while (line < p &&
		       (*line == ' ' || *line == '\t' || *line == '\r' || *line == '\n'))
			line++;
		if (line == p || *line == '#')
			continue;
		if (*line == '{' || (p - line >= 3 && memcmp(line, "---", 3) == 0))
			return true;
		while (line < p && (isalnum((unsigned char)*line) || *line == '_'))
			line++;
		return line < p && *line == ':';
	}
	return false;
}

/* A file: what follows a script is the script's, behind others it is ours. */
static int read_file(struct cli *c, struct gpuq_spec_opts *opts, struct gpuq_context *context,
		     struct submission *s, struct gpuq_buf *warnings, int *code,
		     struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(GPUQ_YAML_BYTES_MAX);
	const char *path = c->args.rest[0];
	bool script;
	int rc = file_read(path, &text, err);

	script = rc == 0 && text.len >= 2 && memcmp(text.data, "#!", 2) == 0;
	/* sbatch's words, which programs look for; a job file may be given to it as well. */
	if (rc == 0 && !script && c->cmd->slurm && !is_map(text.data ? text.data : "", text.len)) {
		cli_say("error: This does not look like a batch script: the first line must be #! "
			"and the path of an interpreter, such as #!/bin/sh");
		*code = 1;
		goto out;
	}
	if (!script && c->args.n_rest > 1) {
		/* rest[0] takes the place of the program's name. */
		if (opt_parse(c->cmd, c->args.n_rest, c->args.rest, false, &c->args) < 0) {
			*code = waits(c) ? EXIT_SERVER : EXIT_USAGE;
			goto out;
		}
		if (opt_given(&c->args, OPT_HELP)) {
			help_print(c->cmd);
			*code = EXIT_DONE;
			goto out;
		}
		if (c->args.n_rest > 0) {
			*code = cli_usage(c, "%s: only a script takes arguments", c->args.rest[0]);
			goto out;
		}
	} else if (script) {
		opts->args = (const char *const *)c->args.rest + 1;
	}
	if (rc == 0)
		rc = submission_output(c, err);
	if (rc == 0 && script && strcmp(path, "-") != 0)
		rc = note_command(c, context, (const char *const *)c->args.rest, true, err);
	opts->argv = c->args.job;
	opts->ignore_unknown = opt_given(&c->args, OPT_IGNORE_UNKNOWN);
	opts->ignore_other_kinds = opt_given(&c->args, OPT_IGNORE_OTHER_KINDS);
	opts->file = path;
	opts->default_name = base_name(path);
	if (rc == 0)
		rc = gpuq_specs_read(&c->arena, opts, text.data ? text.data : "", text.len,
				     &s->specs, warnings, err);
out:
	gpuq_buf_done(&text);
	return rc;
}

static int64_t to_wall(int64_t us)
{
	const int64_t part = us % 1000000;
	const time_t t = (time_t)(us / 1000000);
	struct tm tm;

	localtime_r(&t, &tm);
	return (int64_t)timegm(&tm) * 1000000 + part;
}

static int64_t from_wall(int64_t wall_us)
{
	const time_t t = (time_t)(wall_us / 1000000);
	struct tm tm;

	gmtime_r(&t, &tm);
	tm.tm_isdst = -1; /* that of the day it is about */
	return (int64_t)mktime(&tm) * 1000000 + wall_us % 1000000;
}

int submission_read(struct cli *c, struct submission *s)
{
	static const struct gpuq_zone zone = { to_wall, from_wall };
	struct gpuq_buf warnings = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_context *context = gpuq_arena_alloc(&c->arena, sizeof(*context));
	struct gpuq_spec_opts opts = { .now_us = cli_now_us(),
				       .context = context,
				       .slurm = c->cmd->slurm,
				       .zone = &zone,
				       .warnings = &warnings };
	int rc, code = -1;

	if (c->args.n_rest == 0 && !given_wrap(&c->args))
		return cli_usage(c, takes_command(c) ? "expected FILE, or -- and a command"
						     : "expected FILE, or - for standard input");
	if (!context)
		rc = gpuq_no_memory(&err);
	else
		rc = read_context(c, context, &err);
	if (rc < 0)
		return refuse(c, &err);
	if (c->args.dashes && takes_command(c) && c->args.n_rest > 0)
		rc = read_command(c, &opts, context, (const char *const *)c->args.rest, s, &err);
	else if (c->args.n_rest == 0)
		rc = read_command(c, &opts, context, NULL, s, &err);
	else
		rc = read_file(c, &opts, context, s, &warnings, &code, &err);
	if (code < 0) {
		warn_lines(gpuq_buf_str(&warnings));
		if (rc < 0)
			code = refuse(c, &err);
	}
	gpuq_buf_done(&warnings);
	return code;
}

/* Several jobs of one file have the same surroundings: they travel once. */
static void share_context(struct gpuq_arena *a, struct gpuq_val *map, struct gpuq_val *specs)
{
	struct gpuq_val *context = gpuq_get(specs->items[0], "context");

	if (!context || specs->n < 2)
		return;
	for (size_t i = 1; i < specs->n; i++)
		if (!gpuq_val_equal(context, gpuq_get(specs->items[i], "context")))
			return;
	for (size_t i = 0; i < specs->n; i++)
		gpuq_unset(specs->items[i], "context");
	gpuq_put(a, map, "context", context);
}

/* The call for n of the jobs, from the first-th on. */
static int params(struct cli *c, const struct submission *s, size_t first, size_t n, bool dry_run,
		  struct gpuq_val **out, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *map = gpuq_map(a), *list = gpuq_list(a);

	for (size_t i = first; i < first + n; i++) {
		struct gpuq_val *tree = gpuq_spec_write(a, &s->specs.items[i]);

		if (!tree)
			return gpuq_no_memory(err);
		gpuq_add(a, list, tree);
	}
	share_context(a, map, list);
	gpuq_put(a, map, "specs", list);
	gpuq_put(a, map, "dry_run", gpuq_bool(a, dry_run));
	if (c->args.val[OPT_LEASE])
		gpuq_put(a, map, "lease", gpuq_str(a, c->args.val[OPT_LEASE]));
	/* Whole objects of many jobs would be no message. */
	if (n > WHOLE_MAX)
		gpuq_put(a, map, "brief", gpuq_bool(a, true));
	*out = map;
	return 0;
}

struct gpuq_val *submission_params(struct cli *c, struct submission *s, struct gpuq_err *err)
{
	struct gpuq_val *map = NULL;

	/* A plan carries nothing. */
	for (size_t i = 0; i < s->specs.n; i++)
		s->specs.items[i].code =
			(struct gpuq_spec_code){ .none = s->specs.items[i].script != NULL };
	if (params(c, s, 0, s->specs.n, true, &map, err) < 0)
		return NULL;
	gpuq_unset(map, "dry_run");
	gpuq_unset(map, "brief");
	return map;
}

/* Print a warning that many jobs share only once. */
static void warn_jobs(const struct gpuq_val *jobs)
{
	const char *last = "";

	for (size_t i = 0; i < jobs->n; i++) {
		const struct gpuq_val *w = gpuq_get(jobs->items[i], "warnings");

		for (size_t k = 0; w && w->type == GPUQ_LIST && k < w->n; k++) {
			if (w->items[k]->type != GPUQ_STR || strcmp(last, w->items[k]->s) == 0)
				continue;
			last = w->items[k]->s;
			cli_say("warning: %s", last);
		}
	}
}

static int send_some(struct cli *c, struct submission *s, size_t first, size_t n, bool dry_run,
		     struct gpuq_val *jobs, struct gpuq_err *err)
{
	struct gpuq_val *map = NULL, *reply;
	const struct gpuq_val *got;
	int rc = params(c, s, first, n, dry_run, &map, err);

	if (rc == 0)
		rc = cli_call(c, "job.submit", map, dry_run ? "" : c->args.val[OPT_KEY], &reply,
			      err);
	if (rc < 0)
		return rc;
	got = gpuq_get(reply, "jobs");
	if (!got || got->type != GPUQ_LIST || got->n == 0)
		return gpuq_fail(err, GPUQ_EPROTO, "the server's reply has no job");
	for (size_t i = 0; i < got->n; i++)
		gpuq_add(&c->arena, jobs, got->items[i]);
	return 0;
}

/* Put the place of a script's directive in front of what the server says of its option. */
static void add_place(const struct submission *s, struct gpuq_err *err)
{
	const struct gpuq_strmap *places = &s->specs.places;

	for (size_t i = places->n; i-- > 0;) {
		if (strcmp(places->keys[i], err->field) != 0)
			continue;
		if (*places->vals[i])
			gpuq_err_prefix(err, "%s--%s", places->vals[i], places->keys[i]);
		return;
	}
}

/* Carry the directories of the jobs. Many of one file have the same. */
static int carry_all(struct cli *c, struct submission *s, bool dry_run, struct gpuq_err *err)
{
	const struct gpuq_spec *last = NULL;
	const char *last_dir = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->specs.n; i++) {
		struct gpuq_spec *spec = &s->specs.items[i];
		const char *dir = spec->code.digest ? NULL : spec->code.dir;

		if (dir && last_dir && strcmp(dir, last_dir) == 0) {
			spec->code = last->code;
			continue;
		}
		rc = code_carry(c, spec, dry_run, err);
		last = spec;
		last_dir = dir;
	}
	return rc;
}

/* The queue has it that scripts carry the directory of submission: add it to those that say nothing. False: no job
 * is such a script. */
static bool add_code(struct submission *s)
{
	bool added = false;

	for (size_t i = 0; i < s->specs.n; i++) {
		struct gpuq_spec *spec = &s->specs.items[i];

		if (!spec->script || spec->code.dir || spec->code.none)
			continue;
		spec->code.dir = ".";
		added = true;
	}
	return added;
}

static bool wants_code(const struct gpuq_err *err)
{
	return err->code == GPUQ_ENOENT && strcmp(err->field, "code") == 0;
}

static int send_all(struct cli *c, struct submission *s, bool dry_run, struct gpuq_val *jobs,
		    struct gpuq_err *err)
{
	/* All or none is one call; a dry run may as well be several. */
	const size_t n = dry_run && s->specs.n > WHOLE_MAX ? 1 : s->specs.n;
	int rc = carry_all(c, s, dry_run, err);

	for (size_t i = 0; rc == 0 && i < s->specs.n; i += n)
		rc = send_some(c, s, i, n, dry_run, jobs, err);
	return rc;
}

/* ---- of several queues the one that starts it first ---- */

#define COMPARE_US (2 * GPUQ_US_PER_S) /* a busy server is not asked for long */
#define SOONER_US GPUQ_US_PER_S /* less is no difference: the order given counts */

struct start {
	bool accepted, now;
	int64_t at_us; /* INT64_MAX: unknown */
};

static void plan_in(struct cli *c, const struct gpuq_spec *spec, const char *queue,
		    struct start *out)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_spec one = *spec;
	struct gpuq_val *map = gpuq_map(a), *list = gpuq_list(a), *reply;
	const struct gpuq_val *plans, *start;
	struct gpuq_err err = GPUQ_ERR_INIT;

	*out = (struct start){ .at_us = INT64_MAX };
	one.queue = queue;
	one.code = (struct gpuq_spec_code){ .none = spec->script != NULL };
	gpuq_add(a, list, gpuq_spec_write(a, &one));
	gpuq_put(a, map, "specs", list);
	if (!gpuq_val_ok(map) || cli_call(c, "plan.get", map, "", &reply, &err) < 0)
		return;
	plans = gpuq_get(reply, "plans");
	start = plans && plans->type == GPUQ_LIST && plans->n ? gpuq_get(plans->items[0], "start")
							      : NULL;
	out->accepted = true;
	out->at_us = gpuq_get_int(start, "start_time", INT64_MAX);
	out->now = strcmp(gpuq_get_str(start, "by", ""), "now") == 0;
}

static void say_sooner(struct cli *c, const char *list, const char *queue, int64_t at_us)
{
	struct gpuq_buf when = GPUQ_BUF_INIT;

	view_time(&when, gpuq_int(&c->arena, at_us));
	cli_say("warning: queue %s is the one of %s that would start the job first, at %s", queue,
		list, gpuq_buf_str(&when));
	gpuq_buf_done(&when);
}

/* Name the queue that is planned to start it first, as Slurm does, where that is another than the first
 * that accepts it. Otherwise the order that was given counts. A key means the same job at each
 * try, and plans change. */
static void choose_queue(struct cli *c, struct gpuq_spec *spec)
{
	const char *list = spec->queue, *best = NULL;
	const int64_t since_us = cli_now_us();
	int64_t best_us = INT64_MAX;
	bool first = true;

	if (!list || !strchr(list, ',') || c->args.val[OPT_KEY] || spec->hold || spec->begin_us ||
	    spec->n_depends)
		return;
	for (const char *at = list; *at; at += *at == ',') {
		const size_t n = strcspn(at, ",");
		const char *queue = gpuq_arena_strndup(&c->arena, at, n);
		struct start s;

		at += n;
		if (!queue || cli_now_us() - since_us > COMPARE_US)
			return;
		plan_in(c, spec, queue, &s);
		if (!s.accepted)
			continue;
		if (first || (s.at_us != INT64_MAX &&
			      (best_us == INT64_MAX || s.at_us < best_us - SOONER_US))) {
			best = first ? NULL : queue;
			best_us = s.at_us;
		}
		first = false;
		if (s.now)
			break;
	}
	if (!best)
		return;
	say_sooner(c, list, best, best_us);
	spec->queue = best;
}

int submission_send(struct cli *c, struct submission *s, bool dry_run)
{
	struct gpuq_val *jobs = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = cli_connect(c, &err);

	if (rc == 0 && s->specs.n == 1)
		choose_queue(c, &s->specs.items[0]);
	if (rc == 0)
		rc = send_all(c, s, dry_run, jobs, &err);
	if (rc < 0 && wants_code(&err) && add_code(s)) {
		jobs = gpuq_list(&c->arena);
		rc = send_all(c, s, dry_run, jobs, &err);
	}
	if (rc < 0) {
		add_place(s, &err);
		return refuse(c, &err);
	}
	s->jobs = jobs;
	warn_jobs(s->jobs);
	return -1;
}

struct target *submission_targets(struct cli *c, const struct submission *s, size_t *n)
{
	struct target *t = gpuq_arena_calloc(&c->arena, s->jobs->n, sizeof(*t));

	for (size_t i = 0; t && i < s->jobs->n; i++)
		t[i] = (struct target){ gpuq_get_int(s->jobs->items[i], "id", 0), -1 };
	*n = s->jobs->n;
	return t;
}
