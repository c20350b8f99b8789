/* The options of sbatch and gpuq: one table for #GPUQ and #SBATCH lines and for the command
 * line. spec_resources.c computes their sum once. */
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/spec/spec_kinds.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libgpuq/buf.h"
#include "libgpuq/limits.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

#define SEVERAL_MAX 6 /* options that are named for an abbreviation */

int spec_opt_bad(struct gpuq_err *err, const char *expected, const char *got)
{
	return gpuq_fail(err, GPUQ_EINVAL, "expected %s, not '%.80s'", expected, got);
}

int spec_opt_count(const char *text, int64_t min, int64_t max, const char *what, int64_t *out,
		   struct gpuq_err *err)
{
	const char *p = text;

	if (spec_digits(&p, min, max, out) && !*p)
		return 0;
	return gpuq_fail(err, GPUQ_EINVAL, "expected %s from %lld to %lld, not '%.80s'", what,
			 (long long)min, (long long)max, text);
}

int spec_opt_set_text(struct spec_opts_state *st, const char *v, const char **out,
		      struct gpuq_err *err)
{
	const char *copy = gpuq_arena_strdup(st->arena, v);

	if (!copy)
		return gpuq_no_memory(err);
	if (!*v)
		return gpuq_fail(err, GPUQ_EINVAL, "expected a value, not nothing");
	*out = copy;
	return 0;
}

static int set_name(struct spec_opts_state *st, const char *v, const char **out,
		    struct gpuq_err *err)
{
	if (strchr(v, ','))
		return spec_opt_bad(err, "one name (alternatives are not offered)", v);
	if (!spec_name_ok(v))
		return spec_opt_bad(err, "a name: letters, digits, '.', '_', '-'", v);
	return spec_opt_set_text(st, v, out, err);
}

void spec_opt_warn(struct spec_opts_state *st, const char *name, const char *text)
{
	if (st->warnings)
		gpuq_buf_printf(st->warnings, "%s%s%s: %s\n", st->place, name[1] ? "--" : "-", name,
				text);
}

/* "KEY=VALUE" into a map. */
static int set_pair(struct spec_opts_state *st, const char *v, struct gpuq_strmap *m,
		    struct gpuq_err *err)
{
	const struct gpuq_spec *s = st->spec;
	const char *eq = strchr(v, '='), *key, *problem = NULL;
	int rc;

	if (!eq || eq == v)
		return spec_opt_bad(err, "KEY=VALUE", v);
	key = gpuq_arena_strndup(st->arena, v, (size_t)(eq - v));
	if (key && (m == &s->labels || m == &s->annotations))
		problem = spec_label_fault(key, eq + 1, m == &s->labels, SPEC_WORDS);
	if (problem)
		return gpuq_fail(err, GPUQ_EINVAL, "%.80s: %s", key, problem);
	rc = spec_map_set(st->arena, m, key, gpuq_arena_strdup(st->arena, eq + 1));
	return rc < 0 ? spec_map_failed(err, rc) : 0;
}

#define NAME_OPTION(field)                                                                         \
	static int spec_opt_##field(struct spec_opts_state *st, const char *v,                     \
				    struct gpuq_err *err)                                          \
	{                                                                                          \
		return set_name(st, v, &st->spec->field, err);                                     \
	}
#define TEXT_OPTION(field)                                                                         \
	static int spec_opt_##field(struct spec_opts_state *st, const char *v,                     \
				    struct gpuq_err *err)                                          \
	{                                                                                          \
		return spec_opt_set_text(st, v, &st->spec->field, err);                            \
	}
#define LINE_OPTION(field)                                                                         \
	static int spec_opt_##field(struct spec_opts_state *st, const char *v,                     \
				    struct gpuq_err *err)                                          \
	{                                                                                          \
		const int rc = spec_line_ok(v, err);                                               \
                                                                                                   \
		return rc < 0 ? rc : spec_opt_set_text(st, v, &st->spec->field, err);              \
	}
#define FLAG_OPTION(name, field, value)                                                            \
	static int spec_opt_##name(struct spec_opts_state *st, const char *v,                      \
				   struct gpuq_err *err)                                           \
	{                                                                                          \
		(void)v;                                                                           \
		(void)err;                                                                         \
		st->spec->field = (value);                                                         \
		return 0;                                                                          \
	}

static int spec_opt_account(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	if (!spec_account_ok(v))
		return spec_opt_bad(err, "an account: letters, digits and '._-@+:/='", v);
	return spec_opt_set_text(st, v, &st->spec->account, err);
}

static int spec_opt_queue(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const char *bad;
	const int rc = spec_queues_ok(st->arena, v, &bad);

	if (rc == GPUQ_ENOMEM)
		return gpuq_no_memory(err);
	if (rc == GPUQ_ERANGE)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u queues",
				 GPUQ_QUEUES_ASKED_MAX);
	if (rc < 0)
		return spec_opt_bad(err, "names: letters, digits, '.', '_', '-', with commas",
				    *bad ? bad : v);
	return spec_opt_set_text(st, v, &st->spec->queue, err);
}

NAME_OPTION(qos)
NAME_OPTION(reservation)
TEXT_OPTION(comment)
LINE_OPTION(output)
LINE_OPTION(error)
LINE_OPTION(input)
LINE_OPTION(chdir)
FLAG_OPTION(hold, hold, true)
FLAG_OPTION(requeue, requeue, true)
FLAG_OPTION(no_requeue, requeue, false)
FLAG_OPTION(exclusive, exclusive, true)

static int spec_opt_job_name(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const char *name = spec_name_from(st->arena, v);

	if (!name)
		return gpuq_no_memory(err);
	if (!spec_job_name_ok(v)) {
		if (st->warnings)
			gpuq_buf_printf(st->warnings, "%s--job-name: '%.300s' becomes '%s'\n",
					st->place, v, name);
	}
	st->spec->name = name;
	return 0;
}

static int spec_opt_kill_on_invalid_dep(struct spec_opts_state *st, const char *v,
					struct gpuq_err *err)
{
	if (strcmp(v, "yes") != 0 && strcmp(v, "no") != 0)
		return spec_opt_bad(err, "yes or no", v);
	st->spec->kill_on_invalid_dep = *v == 'y';
	return 0;
}

static int spec_opt_code(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_spec_code c = { .none = strcmp(v, "none") == 0 };
	const int rc = c.none ? 0 : spec_line_ok(v, err);

	if (rc == 0 && !c.none && spec_opt_set_text(st, v, &c.dir, err) < 0)
		return err->code;
	if (rc == 0)
		st->spec->code = c;
	return rc;
}

static int spec_opt_slurm_env(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	if (v && strcmp(v, "yes") != 0 && strcmp(v, "no") != 0)
		return spec_opt_bad(err, "yes or no", v);
	st->spec->slurm_env = !v || *v == 'y';
	return 0;
}

static int spec_opt_launch(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	(void)v;
	(void)err;
	st->spec->launch = (struct gpuq_choice){ .yes = true };
	return 0;
}

static int spec_opt_no_launch(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	(void)v;
	(void)err;
	st->spec->launch = (struct gpuq_choice){ .no = true };
	return 0;
}

static int spec_opt_open_mode(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	if (strcmp(v, "append") != 0 && strcmp(v, "truncate") != 0)
		return spec_opt_bad(err, "append or truncate", v);
	st->spec->append = *v == 'a';
	return 0;
}

/* ---- time ---- */

static int spec_opt_time(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	int64_t us;
	int rc = gpuq_duration_parse(v, &us, err);

	if (rc == 0)
		st->spec->time_us = us ? us : GPUQ_UNLIMITED; /* 0 = no limit, as sbatch */
	return rc;
}

static int spec_opt_time_min(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	int64_t us;
	int rc = gpuq_duration_parse(v, &us, err);

	if (rc == 0 && us < GPUQ_US_PER_S)
		rc = spec_opt_bad(err, "a time of a second or more", v);
	if (rc == 0)
		st->spec->time_min_us = us;
	return rc;
}

/* It says which instant it means wherever it is read: now+2h, @1764579600, ...Z, ...+02:00 */
static bool is_absolute(const char *v)
{
	const char *t = strpbrk(v, "Tt");

	return strncmp(v, "now", 3) == 0 || *v == '@' || v[strcspn(v, "zZ")] ||
	       (isdigit((unsigned char)*v) && t && t[strcspn(t, "+-")]);
}

/* Slurm's commands and lines mean the clock on the submitter's wall, gpuq's UTC. */
static int instant(struct spec_opts_state *st, const char *v, int64_t *out, struct gpuq_err *err)
{
	const struct gpuq_zone *zone = st->slurm ? st->opts->zone : NULL;
	const int64_t now_us = st->opts->now_us;
	int64_t wall_us;
	int rc;

	if (!zone || is_absolute(v))
		return gpuq_instant_parse(v, now_us, out, err);
	rc = gpuq_instant_parse(v, zone->to_wall(now_us), &wall_us, err);
	if (rc == 0)
		*out = zone->from_wall(wall_us);
	return rc;
}

static int spec_opt_begin(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return instant(st, v, &st->spec->begin_us, err);
}

static int spec_opt_deadline(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return instant(st, v, &st->spec->deadline_us, err);
}

static int spec_opt_signal(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_signal_parse(v, st->spec, err);
}

static int spec_opt_grace(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return gpuq_duration_parse(v, &st->spec->grace_us, err);
}

static int spec_opt_checkpoint(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_checkpoint *c = &st->spec->checkpoint;
	const char *at = strchr(v, '@');
	const char *name = at ? gpuq_arena_strndup(st->arena, v, (size_t)(at - v)) : v;
	int64_t grace_us = c->grace_us;
	int signal;

	if (!name)
		return gpuq_no_memory(err);
	signal = gpuq_signal_number(name);
	if (signal == 0 || (at && gpuq_duration_parse(at + 1, &grace_us, NULL) < 0))
		return spec_opt_bad(err, "SIGNAL[@GRACE] such as USR1@2m", v);
	c->signal = signal;
	c->grace_us = grace_us;
	return 0;
}

static int spec_opt_retry(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_retry got = { .on = 0 };
	const char *p = v;
	struct gpuq_strlist words;

	if (!spec_digits(&p, 0, GPUQ_RETRY_MAX, &got.limit) || (*p && *p != ':'))
		return spec_opt_bad(err, "LIMIT[:ON,...] such as 3 or 3:infra,exit:75", v);
	if (*p && spec_split(st->arena, p + 1, ',', &words) < 0)
		return gpuq_no_memory(err);
	if (*p && words.n == 0) /* a limit without a cause would never retry */
		return spec_opt_bad(err, "LIMIT[:ON,...] such as 3 or 3:infra,exit:75", v);
	for (size_t i = 0; *p && i < words.n; i++) {
		int rc = spec_retry_word(st->arena, words.items[i], &got, err);

		if (rc < 0)
			return rc;
	}
	if (!*p && got.limit)
		got.on = GPUQ_RETRY_INFRA | GPUQ_RETRY_FAILURE;
	st->spec->retry = got;
	return 0;
}

/* ---- what and when ---- */

static int spec_opt_array(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return gpuq_array_parse(st->arena, v, &st->spec->array, err);
}

static int spec_opt_dependency(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_spec fresh = { 0 };
	int rc = spec_depends_parse(st->arena, v, &fresh, err);

	if (rc < 0)
		return rc;
	st->spec->depends = fresh.depends;
	st->spec->n_depends = fresh.n_depends;
	st->spec->depends_any = fresh.depends_any;
	return 0;
}

static int spec_opt_licenses(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_licenses_parse(st->arena, v, &st->spec->licenses, err);
}

static int spec_opt_nice(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const bool minus = v && *v == '-';
	int64_t n = 100; /* sbatch's default */
	int rc = v ? spec_opt_count(v + minus, 0, 1000000, "a number", &n, err) : 0;

	if (rc == 0)
		st->spec->nice = minus ? -n : n;
	return rc;
}

static int spec_opt_priority(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	if (strcasecmp(v, "TOP") == 0)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"TOP is not offered: operators may say a number, and --nice of the "
			"other jobs lets this one go first");
	return spec_opt_count(v, 1, GPUQ_PRIORITY_MAX, "a number (--hold holds a job)",
			      &st->spec->priority, err);
}

/* Add to the words of earlier options, as sbatch does; NONE takes them back. #GPUQ lines and
 * gpuq submit replace the words of #SBATCH lines. */
static int add_mail(struct spec_opts_state *st, const struct gpuq_strlist *l, struct gpuq_err *err)
{
	struct gpuq_strlist *all = &st->spec->mail_type, more;
	const bool adds = st->mail_level == st->level || (st->mail_level && st->slurm);
	bool none = !adds;

	for (size_t i = 0; i < l->n; i++)
		none = none || strcmp(l->items[i], "NONE") == 0;
	st->mail_level = st->level;
	if (none || all->n == 0) {
		*all = *l;
		return 0;
	}
	if (l->n == 0)
		return 0;
	more.items = gpuq_arena_calloc(st->arena, all->n + l->n, sizeof(*more.items));
	if (!more.items)
		return gpuq_no_memory(err);
	memcpy(more.items, all->items, all->n * sizeof(*more.items));
	memcpy(more.items + all->n, l->items, l->n * sizeof(*more.items));
	more.n = all->n + l->n;
	*all = more;
	return 0;
}

static int spec_opt_mail_type(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	char *upper = gpuq_arena_strdup(st->arena, v);
	struct gpuq_strlist l;
	unsigned on;
	int rc;

	/* Slurm takes End as well. */
	for (char *p = upper; p && *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
	if (!upper || spec_split(st->arena, upper, ',', &l) < 0)
		return gpuq_no_memory(err);
	rc = spec_notify_words(&l, true, &on, err);
	return rc < 0 ? rc : add_mail(st, &l, err);
}

static int spec_opt_mail_user(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const int rc = gpuq_mail_check(v, err);

	if (rc < 0 && strchr(v, '$'))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'%.80s': no shell replaces variables in these lines: write the "
				 "address, or leave it out for the submitter's",
				 v);
	return rc < 0 ? rc : spec_opt_set_text(st, v, &st->spec->mail_user, err);
}

static int spec_opt_notify(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_strlist l;

	if (spec_split(st->arena, v, ',', &l) < 0)
		return gpuq_no_memory(err);
	return spec_notify_words(&l, false, &st->spec->notify.on, err);
}

static int spec_opt_webhook(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_notify *n = &st->spec->notify;
	int rc = gpuq_url_check(v, err);

	if (rc == 0)
		rc = spec_opt_set_text(st, v, &n->webhook, err);
	if (rc == 0 && !n->on)
		n->on = GPUQ_NOTIFY_END | GPUQ_NOTIFY_FAIL;
	return rc;
}

static int spec_opt_label(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return set_pair(st, v, &st->spec->labels, err);
}

static int spec_opt_annotation(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return set_pair(st, v, &st->spec->annotations, err);
}

static int spec_opt_flavor(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_flavors_parse(st->arena, v, st->spec, err);
}

static int spec_opt_spot(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	for (int i = GPUQ_SPOT_AVOID; i < N_GPUQ_SPOTS; i++)
		if (strcmp(v, gpuq_spots[i]) == 0) {
			st->spec->spot = i;
			return 0;
		}
	return spec_opt_bad(err, "avoid, allow or only", v);
}

static int spec_opt_wrap(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const char *text = gpuq_arena_printf(st->arena, SPEC_WRAP_HEAD "%s\n", v);

	if (!text)
		return gpuq_no_memory(err);
	if (st->spec->script || (st->spec->n_groups && st->spec->groups[0].command.n))
		return gpuq_fail(err, GPUQ_EINVAL, "expected no script or command beside it");
	st->spec->script = text;
	st->spec->script_bytes = strlen(text);
	return 0;
}

/* ---- environment ---- */

static int set_env(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	for (size_t i = 0; i < st->spec->n_groups; i++) {
		int rc = set_pair(st, v, &st->spec->groups[i].env, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ALL, NONE, or a list of NAME and NAME=VALUE: what of the submitter's environment
 * goes along. Only the local cluster has a use for it; what is given here with a
 * value is the job's own on every cluster. */
static int spec_opt_export(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const struct gpuq_context *from = st->opts->context;
	struct gpuq_strmap kept = { 0 };
	struct gpuq_strlist words;
	bool all = false;

	if (spec_split(st->arena, v, ',', &words) < 0)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < words.n; i++) {
		const char *w = words.items[i], *value;

		if (strcmp(w, "ALL") == 0) {
			all = true;
		} else if (strcmp(w, "NONE") == 0 || strcmp(w, "NIL") == 0) {
			if (words.n > 1)
				return spec_opt_bad(err, "NONE alone", v);
		} else if (strchr(w, '=')) {
			int rc = set_env(st, w, err);

			if (rc < 0)
				return rc;
		} else {
			int rc = 0;

			value = from ? gpuq_strmap_get(&from->environ, w) : NULL;
			if (value)
				rc = spec_map_set(st->arena, &kept, w, value);
			if (rc < 0)
				return spec_map_failed(err, rc);
		}
	}
	st->environ_set = !all;
	st->environ = kept;
	return 0;
}

/* ---- where ---- */

static int spec_opt_constraint(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_term *terms;
	size_t n;
	int rc = spec_constraint_parse(st->arena, v, &terms, &n, err);

	for (size_t i = 0; rc == 0 && i < st->spec->n_groups; i++)
		rc = spec_require(st->arena, &st->spec->groups[i], terms, n, err);
	st->alike = rc == 0 && strchr(v, '[') ? v : st->alike;
	return rc;
}

/* Alternatives that weigh alike: a node is preferred once for each that it meets. */
static int spec_opt_prefer(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_term *terms;
	size_t n;
	int rc = spec_constraint_parse(st->arena, v, &terms, &n, err);

	for (size_t i = 0; rc == 0 && i < n; i++)
		terms[i].weight = 50;
	for (size_t i = 0; rc == 0 && i < st->spec->n_groups; i++) {
		st->spec->groups[i].preferred = terms;
		st->spec->groups[i].n_preferred = n;
	}
	return rc;
}

/* A slash makes it the name of a file of nodes for sbatch. */
static int no_file(const char *v, const char *option, struct gpuq_err *err)
{
	if (!strchr(v, '/'))
		return 0;
	return gpuq_fail(err, GPUQ_EINVAL,
			 "'%.80s': files of nodes are not read: submit with "
			 "--%s=$(paste -sd, FILE)",
			 v, option);
}

static int spec_opt_nodelist(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_strlist l;
	int rc = no_file(v, "nodelist", err);

	if (rc == 0)
		rc = spec_hostlist(st->arena, v, &l, err);
	for (size_t i = 0; rc == 0 && i < st->spec->n_groups; i++)
		st->spec->groups[i].nodes = l;
	return rc;
}

static int spec_opt_exclude(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_strlist l;
	int rc = no_file(v, "exclude", err);

	if (rc == 0)
		rc = spec_hostlist(st->arena, v, &l, err);
	for (size_t i = 0; rc == 0 && i < st->spec->n_groups; i++)
		st->spec->groups[i].exclude = l;
	return rc;
}

static int spec_opt_topology(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_group *g = &st->spec->groups[0];

	if (strncmp(v, "preferred:", 10) == 0)
		return spec_opt_set_text(st, v + 10, &g->topology_preferred, err);
	return spec_opt_set_text(st, v, &g->topology_required, err);
}

/* ---- what each pod has ---- */

static int spec_opt_gpu_memory(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return gpuq_bytes_parse(v, &st->spec->groups[0].gpu_memory_bytes, err);
}

static int spec_opt_gpu_cores(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	char near[SPEC_NEAREST_ROOM];

	if (spec_opt_count(v, 1, 100, "a percentage", &st->spec->groups[0].gpu_cores, NULL) == 0)
		return 0;
	return gpuq_fail(err, GPUQ_EINVAL, "expected a percentage from 1 to 100, not '%.80s'%s", v,
			 spec_nearest_count(v, 0, 100, near));
}

static int spec_opt_mig(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_mig_parse(st->arena, v, &st->spec->groups[0], err);
}

static int spec_opt_mig_ok(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	(void)v;
	(void)err;
	st->spec->groups[0].mig_ok = true;
	return 0;
}

static int spec_opt_isolation(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	for (int i = 0; i < N_GPUQ_ISOLATIONS; i++)
		if (strcmp(v, gpuq_isolations[i]) == 0) {
			st->spec->isolation = i;
			return 0;
		}
	return spec_opt_bad(err, "exclusive, mig, mps, memory-limited, time-slice or none", v);
}

static int spec_opt_image(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_opt_set_text(st, v, &st->spec->groups[0].image, err);
}

static int spec_opt_env(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return set_env(st, v, err);
}

static int spec_opt_volume(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_group *g = &st->spec->groups[0];
	const char *colon = strchr(v, ':'), *path = colon ? colon + 1 : "";
	const size_t n = strlen(path);
	const bool ro = n > 3 && strcmp(path + n - 3, ":ro") == 0;
	struct gpuq_volume *grown;
	const char *plain;

	if (!colon || colon == v || *path != '/')
		return spec_opt_bad(err, "CLAIM:/PATH[:ro]", v);
	if (g->n_volumes >= GPUQ_VOLUMES_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u volumes", GPUQ_VOLUMES_MAX);
	grown = gpuq_arena_calloc(st->arena, g->n_volumes + 1, sizeof(*grown));
	if (!grown)
		return gpuq_no_memory(err);
	if (g->n_volumes)
		memcpy(grown, g->volumes, g->n_volumes * sizeof(*grown));
	grown[g->n_volumes].claim = gpuq_arena_strndup(st->arena, v, (size_t)(colon - v));
	grown[g->n_volumes].path = gpuq_arena_strndup(st->arena, path, ro ? n - 3 : n);
	grown[g->n_volumes].read_only = ro;
	if (!grown[g->n_volumes].claim || !grown[g->n_volumes].path)
		return gpuq_no_memory(err);
	plain = gpuq_path_plain(st->arena, grown[g->n_volumes].path);
	if (!plain)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < g->n_volumes; i++)
		if (strcmp(grown[i].path, plain) == 0)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "another volume is mounted at %.80s already", plain);
	grown[g->n_volumes].path = plain;
	g->volumes = grown;
	g->n_volumes++;
	return 0;
}

/* ---- the table ---- */

enum {
	ONE_GROUP = 1 /* about the pods of the only group */,
	NOT_MANIFEST = 2 /* a manifest says it itself */,
	COMMAND_LINE = 4,
	PODS = ONE_GROUP | NOT_MANIFEST
};

/* X(function, name, letter, argument, metavar, flags, doc): Slurm's first, in its
 * words, then what only gpuq has. */
/* clang-format off */
#define OPTIONS(X) \
	X(account, "account", 'A', 'r', "NAME", 0, "Account, recorded for reports") \
	X(array, "array", 'a', 'r', "SET", 0, "One job for each index: 0-99%10") \
	X(begin, "begin", 'b', 'r', "TIME", 0, "Earliest start") \
	X(chdir, "chdir", 'D', 'r', "DIR", 0, "Working directory (local cluster)") \
	X(comment, "comment", 0, 'r', "TEXT", 0, "Any text") \
	X(constraint, "constraint", 'C', 'r', "LABELS", 0, "Nodes with these labels: a&b, a|b, key=value") \
	X(cpus_per_gpu, "cpus-per-gpu", 0, 'r', "N", PODS, "CPUs for each device") \
	X(cpus_per_task, "cpus-per-task", 'c', 'r', "N", PODS, "CPUs of each task") \
	X(deadline, "deadline", 0, 'r', "TIME", 0, "Latest end") \
	X(dependency, "dependency", 'd', 'r', "LIST", 0, "Dependencies on jobs: afterok:12,afterany:13") \
	X(error, "error", 'e', 'r', "FILE", 0, "Standard error (local cluster)") \
	X(exclude, "exclude", 'x', 'r', "NODES", 0, "None of these nodes") \
	X(exclusive, "exclusive", 0, 'o', NULL, 0, "Whole nodes") \
	X(export, "export", 0, 'r', "LIST", 0, "Environment: ALL, NONE, or NAME[=VALUE],...") \
	X(gpus, "gpus", 'G', 'r', "[TYPE:]N", PODS, "Devices of the whole job") \
	X(gpus_per_node, "gpus-per-node", 'g', 'r', "[TYPE:]N", PODS, "Devices of each pod") \
	X(gpus_per_task, "gpus-per-task", 0, 'r', "[TYPE:]N", PODS, "Devices of each task") \
	X(gres, "gres", 0, 'r', "gpu[:TYPE]:N,NAME:N", PODS, "Devices and other resources of each pod") \
	X(hold, "hold", 'H', 'n', NULL, 0, "Hold the job until it is released") \
	X(input, "input", 'i', 'r', "FILE", 0, "Standard input (local cluster)") \
	X(job_name, "job-name", 'J', 'r', "NAME", 0, "Name of the job") \
	X(kill_on_invalid_dep, "kill-on-invalid-dep", 0, 'r', "yes|no", 0, "Cancel the job when its dependency can no longer be met") \
	X(licenses, "licenses", 'L', 'r', "NAME[:N],...", 0, "Licenses the job requires") \
	X(mail_type, "mail-type", 0, 'r', "LIST", 0, "Events that are mailed to --mail-user") \
	X(mail_user, "mail-user", 0, 'r', "USER", 0, "Recipient of mails") \
	X(mem, "mem", 0, 'r', "SIZE", PODS, "Memory of each pod; a plain number is MiB") \
	X(mem_per_cpu, "mem-per-cpu", 0, 'r', "SIZE", PODS, "Memory for each CPU") \
	X(mem_per_gpu, "mem-per-gpu", 0, 'r', "SIZE", PODS, "Memory for each device") \
	X(nice, "nice", 0, 'o', "N", 0, "Subtract N from the priority (100)") \
	X(no_requeue, "no-requeue", 0, 'n', NULL, 0, "Never requeue the job") \
	X(nodelist, "nodelist", 'w', 'r', "NODES", 0, "Only these nodes: n[1-4],m1") \
	X(nodes, "nodes", 'N', 'r', "N[-M]", PODS, "Number of pods, one per node") \
	X(ntasks, "ntasks", 'n', 'r', "N", PODS, "Tasks of the whole job") \
	X(ntasks_per_gpu, "ntasks-per-gpu", 0, 'r', "N", PODS, "Tasks for each device") \
	X(ntasks_per_node, "ntasks-per-node", 0, 'r', "N", PODS, "Tasks of each pod") \
	X(open_mode, "open-mode", 0, 'r', "append|truncate", 0, "How output files are opened") \
	X(output, "output", 'o', 'r', "FILE", 0, "Standard output (local cluster)") \
	X(queue, "partition", 'p', 'r', "QUEUES", 0, "Queue, or several: the one that starts the job first") \
	X(prefer, "prefer", 0, 'r', "LABELS", 0, "Prefer nodes with these labels") \
	X(isolation, "isolation", 0, 'r', "WORD", 0, "Minimum isolation of its devices from other pods") \
	X(priority, "priority", 0, 'r', "N", 0, "Fixed priority; operators only") \
	X(qos, "qos", 'q', 'r', "NAME", 0, "Quality of service") \
	X(requeue, "requeue", 0, 'n', NULL, 0, "Requeue the job after an eviction (default)") \
	X(reservation, "reservation", 0, 'r', "NAME", 0, "Run inside this reservation") \
	X(signal, "signal", 0, 'r', "[B:]SIG[@S]", 0, "Signal sent before the time limit") \
	X(ntasks_per_node, "tasks-per-node", 0, 'r', "N", PODS, "Same as --ntasks-per-node") \
	X(time, "time", 't', 'r', "TIME", 0, "Time limit: 90m, 12h, D-HH:MM:SS, minutes") \
	X(time_min, "time-min", 0, 'r', "TIME", 0, "Minimum time limit for backfill") \
	X(wrap, "wrap", 0, 'r', "COMMAND", COMMAND_LINE | PODS, "Run this in a shell") \
	X(annotation, "annotation", 0, 'r', "KEY=VALUE", 0, "Annotation of the pods") \
	X(checkpoint, "checkpoint", 0, 'r', "SIG[@TIME]", 0, "Preemption signal and grace period") \
	X(image, "container-image", 0, 'r', "IMAGE", PODS, "Same as --image") \
	X(code, "code", 0, 'r', "DIR", NOT_MANIFEST, "Run in a copy of this directory, sent along; none: without") \
	X(cpus, "cpus", 0, 'r', "N", PODS, "CPUs of each pod") \
	X(env, "env", 0, 'r', "NAME=VALUE", NOT_MANIFEST, "Environment variable") \
	X(flavor, "flavor", 0, 'r', "NAME[:TIME],...", 0, "Kinds of device, in order; TIME: wait so long for it") \
	X(spot, "spot", 0, 'r', "WORD", 0, "Run on nodes that may be taken away: avoid, allow, only") \
	X(gpu_cores, "gpu-cores", 0, 'r', "PERCENT", PODS, "Percent of each device's cores") \
	X(gpu_memory, "gpu-memory", 0, 'r', "SIZE", PODS, "Memory of each device: a share of one") \
	X(grace, "grace", 0, 'r', "TIME", 0, "Grace period between TERM and KILL") \
	X(image, "image", 0, 'r', "IMAGE", PODS, "Container image") \
	X(label, "label", 0, 'r', "KEY=VALUE", 0, "Label of the job and its pods") \
	X(launch, "launch", 0, 'n', NULL, NOT_MANIFEST, "Run in the first pod alone; mpirun finds the others") \
	X(no_launch, "no-launch", 0, 'n', NULL, NOT_MANIFEST, "Run in every pod, also where the queue has it otherwise") \
	X(mig, "mig", 0, 'r', "PROFILES", PODS, "MIG profile or profiles; --gpus counts instances") \
	X(mig_ok, "mig-ok", 0, 'n', NULL, PODS, "Accept a MIG instance that has --gpu-memory") \
	X(job_name, "name", 0, 'r', "NAME", 0, "Same as --job-name") \
	X(nodes, "pods", 0, 'r', "N[-M]", PODS, "Same as --nodes") \
	X(notify, "notify", 0, 'r', "LIST", 0, "Report begin, end, fail, preempt, time_80, ...") \
	X(queue, "queue", 0, 'r', "QUEUES", 0, "Same as --partition") \
	X(retry, "retry", 0, 'r', "N[:ON,...]", 0, "Retries after infra, failure, oom, timeout, exit:CODE") \
	X(slurm_env, "slurm-env", 0, 'o', "yes|no", 0, "Set SLURM_* variables as well; #SBATCH lines imply it") \
	X(topology, "topology", 0, 'r', "LEVEL", PODS, "All pods in one domain; preferred:LEVEL if possible") \
	X(volume, "volume", 0, 'r', "CLAIM:PATH[:ro]", PODS, "Mount a volume claim") \
	X(webhook, "webhook", 0, 'r', "URL", 0, "URL for --notify events")

const struct gpuq_spec_option gpuq_spec_options[] = {
#define X(fn, name, letter, arg, metavar, flags, doc) { name, letter, arg, metavar, doc },
	OPTIONS(X)
#undef X
	{ .name = NULL },
};

static const struct {
	spec_option_fn *apply;
	unsigned flags;
} actions[] = {
#define X(fn, name, letter, arg, metavar, flags, doc) { spec_opt_##fn, flags },
	OPTIONS(X)
#undef X
};

/* clang-format on */

static const struct gpuq_spec_option *find_in(const struct gpuq_spec_option *table,
					      const char *name)
{
	for (; table->name; table++)
		if (name[1] ? strcmp(table->name, name) == 0
			    : table->letter && table->letter == name[0])
			return table;
	return NULL;
}

const struct gpuq_spec_option *spec_option_find(const char *name)
{
	const struct gpuq_spec_option *o = find_in(gpuq_spec_options, name);

	if (!o)
		o = find_in(spec_client_options, name);
	if (!o)
		o = find_in(gpuq_spec_unused, name);
	return o ? o : find_in(gpuq_spec_refused, name);
}

static const struct gpuq_spec_option *const tables[] = { gpuq_spec_options, spec_client_options,
							 gpuq_spec_unused, gpuq_spec_refused };

/* Return how many options begin with name; the first few of them are appended to list. */
static size_t begin_with(const char *name, const char **first, struct gpuq_buf *list)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct gpuq_spec_option *o = tables[i]; o->name; o++) {
			if (strncmp(o->name, name, strlen(name)) != 0)
				continue;
			if (n == 0)
				*first = o->name;
			if (++n <= SEVERAL_MAX && list)
				gpuq_buf_printf(list, "%s--%s", n > 1 ? ", " : "", o->name);
		}
	}
	return n;
}

const char *spec_option_whole(const char *name)
{
	const char *first;

	/* A single letter is more likely a short option with a dash too many. */
	if (!name[0] || !name[1] || spec_option_find(name))
		return name;
	return begin_with(name, &first, NULL) == 1 ? first : name;
}

int spec_option_unknown(const char *name, struct gpuq_err *err)
{
	const char *names[sizeof(actions) / sizeof(actions[0]) + 1];
	struct gpuq_buf list = GPUQ_BUF_INIT;
	const char *near;
	size_t n = 0;

	for (const struct gpuq_spec_option *o = gpuq_spec_options; o->name; o++)
		names[n++] = o->name;
	names[n] = NULL;
	n = name[0] && name[1] ? begin_with(name, &near, &list) : 0;
	if (n > 1)
		gpuq_fail(err, GPUQ_ENOENT, "could be %s%s", gpuq_buf_str(&list),
			  n > SEVERAL_MAX ? ", ..." : "");
	gpuq_buf_done(&list);
	if (n > 1)
		return GPUQ_ENOENT;
	near = gpuq_nearest(name, names);
	if (near)
		return gpuq_fail(err, GPUQ_ENOENT, "unknown option, did you mean --%s?", near);
	return gpuq_fail(err, GPUQ_ENOENT, "unknown option");
}

/* An option of sbatch that is about nothing that a job has. */
static int no_field(struct spec_opts_state *st, const char *name, const char *value,
		    struct gpuq_err *err)
{
	const struct gpuq_spec_option *o = find_in(spec_client_options, name);

	if (o && value)
		return gpuq_fail(err, GPUQ_EINVAL, "expected no value, not '%.80s'", value);
	if (o) {
		st->asks |= 1u << (o - spec_client_options);
		return 0;
	}
	o = find_in(gpuq_spec_refused, name);
	if (o)
		return gpuq_fail(err, GPUQ_EINVAL, "is not offered: %s", o->doc);
	o = find_in(gpuq_spec_unused, name);
	if (!o)
		return spec_option_unknown(name, err);
	if (st->warnings)
		gpuq_buf_printf(st->warnings, "%s%s%s is ignored: %s\n", st->place,
				name[1] ? "--" : "-", name, o->doc);
	return 0;
}

int spec_opts_apply(struct spec_opts_state *st, const char *name, const char *value,
		    struct gpuq_err *err)
{
	const struct gpuq_spec_option *o = find_in(gpuq_spec_options, name);
	const size_t ix = o ? (size_t)(o - gpuq_spec_options) : 0;

	if (!o)
		return no_field(st, name, value, err);
	if (o->arg == 'r' && !value)
		return gpuq_fail(err, GPUQ_EINVAL, "expected a value: %s", o->metavar);
	if (o->arg == 'n' && value)
		return gpuq_fail(err, GPUQ_EINVAL, "expected no value, not '%.80s'", value);
	if ((actions[ix].flags & COMMAND_LINE) && st->from_file)
		return gpuq_fail(err, GPUQ_EINVAL, "is for the command line only");
	if ((actions[ix].flags & NOT_MANIFEST) && st->is_manifest)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the manifest says this itself: change it there");
	if ((actions[ix].flags & ONE_GROUP) && st->spec->n_groups > 1)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "the job has several groups of pods: say it in the file");
	return actions[ix].apply(st, value, err);
}
