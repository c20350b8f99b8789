#include "gpuq/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/job.h"
#include "libgpuq/hostlist.h"
#include "libgpuq/limits.h"
#include "libgpuq/names.h"
#include "libgpuq/selector.h"
#include "libgpuq/spec.h"
#include "libgpuq/units.h"

#define IDS_MAX 10000

static int bad_id(const char *text, size_t n, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_EINVAL, "%.*s: expected a job id such as 17, 17_3 or 17_[4-9]",
			 (int)n, text);
}

/* Digits at *p as a number; false when there are none or too many. */
static bool number(const char **p, int64_t *out)
{
	const size_t n = strspn(*p, "0123456789");

	if (n == 0 || n > 18)
		return false;
	*out = strtoll(*p, NULL, 10);
	*p += n;
	return true;
}

static int no_single_id(const char *text, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_EINVAL, "%s: expected the id of one job such as 17 or 17_3%s",
			 text, strchr(text, '[') ? ": one element at a time here" : "");
}

int filter_id(const char *text, int64_t *id, int64_t *index, struct gpuq_err *err)
{
	const char *p = text;
	int64_t i, ix = -1;

	if (!number(&p, &i) || i == 0)
		return no_single_id(text, err);
	if (*p == '_') {
		p++;
		if (!number(&p, &ix))
			return no_single_id(text, err);
	}
	if (*p)
		return no_single_id(text, err);
	*id = i;
	*index = ix;
	return 0;
}

static int expand(struct gpuq_arena *a, int64_t id, const char *set, struct gpuq_val *list,
		  struct gpuq_err *err)
{
	struct gpuq_array array;
	int rc = gpuq_array_parse(a, set, &array, err);

	if (rc < 0)
		return rc;
	if (array.size > IDS_MAX)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%" PRId64 "_[%s]: more than %d elements; name "
				 "the whole array as %" PRId64,
				 id, set, IDS_MAX, id);
	for (size_t r = 0; r < array.n_ranges; r++) {
		const struct gpuq_range *g = &array.ranges[r];

		for (int64_t i = g->first; i <= g->last; i += g->step > 0 ? g->step : 1)
			gpuq_add(a, list,
				 gpuq_str(a, gpuq_arena_printf(a, "%" PRId64 "_%" PRId64, id, i)));
	}
	return 0;
}

static int one_id(struct gpuq_arena *a, const char *text, size_t n, struct gpuq_val *list,
		  struct gpuq_err *err)
{
	const char *word = gpuq_arena_strndup(a, text, n), *p = word, *close;
	int64_t id, index;
	int rc;

	if (!word)
		return gpuq_no_memory(err);
	if (!strchr(word, '[')) {
		rc = filter_id(word, &id, &index, err);
		if (rc < 0)
			return bad_id(text, n, err);
		gpuq_add(a, list, gpuq_str(a, word));
		return 0;
	}
	if (!number(&p, &id) || id == 0 || p[0] != '_' || p[1] != '[')
		return bad_id(text, n, err);
	p += 2;
	close = strchr(p, ']');
	if (!close || close[1])
		return bad_id(text, n, err);
	return expand(a, id, gpuq_arena_strndup(a, p, (size_t)(close - p)), list, err);
}

int filter_ids(struct gpuq_arena *a, const char *text, struct gpuq_val *list, struct gpuq_err *err)
{
	while (*text) {
		size_t n = 0;
		int rc;

		for (bool inside = false; text[n] && (inside || text[n] != ','); n++)
			inside = text[n] == '[' || (inside && text[n] != ']');
		rc = one_id(a, text, n, list, err);
		if (rc < 0)
			return rc;
		text += n + (text[n] == ',');
	}
	return 0;
}

bool filter_set(struct gpuq_arena *a, const char *text, int64_t *id, struct gpuq_array *set)
{
	const size_t n = strlen(text);
	const char *p = text, *inner;

	if (!number(&p, id) || *id == 0 || p[0] != '_' || p[1] != '[' || text[n - 1] != ']')
		return false;
	p += 2;
	inner = gpuq_arena_strndup(a, p, (size_t)(text + n - 1 - p));
	return inner && gpuq_array_parse(a, inner, set, NULL) == 0;
}

static struct gpuq_val *words(struct gpuq_arena *a, const char *text)
{
	struct gpuq_val *list = gpuq_list(a);

	while (*text) {
		const size_t n = strcspn(text, ",");

		if (n)
			gpuq_add(a, list, gpuq_strn(a, text, n));
		text += n + (text[n] == ',');
	}
	return list;
}

static int put_states(struct gpuq_arena *a, struct gpuq_val *params, const char *text,
		      struct gpuq_err *err)
{
	struct gpuq_val *given = words(a, text), *list = gpuq_list(a);

	for (size_t i = 0; given && i < given->n; i++) {
		const char *word = given->items[i]->s;
		const int s = gpuq_job_state_parse(word);

		if (strcasecmp(word, "all") == 0) {
			gpuq_set(a, params, "all", gpuq_bool(a, true));
			return 0;
		}
		if (s < 0)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "--states %s: no such state; see "
					 "gpuq-queue(1) for their names",
					 word);
		/* Jobs that have ended are looked for among the old ones too. */
		if (gpuq_job_state_ended((enum gpuq_job_state)s))
			gpuq_set(a, params, "all", gpuq_bool(a, true));
		gpuq_add(a, list, gpuq_str(a, gpuq_job_state_word((enum gpuq_job_state)s)));
	}
	gpuq_put(a, params, "states", list);
	return 0;
}

static int put_labels(struct gpuq_arena *a, struct gpuq_val *params, const char *text,
		      struct gpuq_err *err)
{
	struct gpuq_val *list = words(a, text);

	for (size_t i = 0; list && i < list->n; i++)
		if (gpuq_selector_check(list->items[i]->s, err) < 0)
			return gpuq_err_prefix(err, "--labels"), GPUQ_EINVAL;
	gpuq_put(a, params, "labels", list);
	return 0;
}

int filter_instant(const char *option, const char *text, int64_t *us, struct gpuq_err *err)
{
	const int64_t now_us = cli_now_us(), day_us = 86400 * GPUQ_US_PER_S;
	int64_t at_us, ago_us;

	/* "09:00" is a time of day here, the last one, and no duration of nine minutes. */
	if (!strchr(text, ':') && gpuq_duration_parse(text, &ago_us, NULL) == 0 && ago_us < now_us)
		at_us = now_us - ago_us;
	else if (gpuq_instant_parse(text, now_us, &at_us, NULL) < 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--%s %s: expected an instant such as "
				 "2026-12-01T09:00Z, or a duration such as 2h",
				 option, text);
	else if (at_us > now_us && !strpbrk(text, "-@Tn+"))
		at_us -= day_us;
	*us = at_us;
	return 0;
}

int filter_put_times(struct gpuq_arena *a, struct gpuq_val *params, const struct args *args,
		     struct gpuq_err *err)
{
	static const struct {
		enum opt_id id;
		const char *option, *key;
	} times[] = { { OPT_SINCE, "since", "since_us" }, { OPT_UNTIL, "until", "until_us" } };
	int64_t us = 0;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (!opt_given(args, times[i].id))
			continue;
		if (filter_instant(times[i].option, args->val[times[i].id], &us, err) < 0)
			return GPUQ_EINVAL;
		gpuq_put(a, params, times[i].key, gpuq_int(a, us > 0 ? us : 0));
	}
	return 0;
}

bool filter_given(const struct args *args)
{
	for (const struct opt *o = opts_filter; o->name; o++)
		if (args->val[o->id])
			return true;
	return false;
}

int filter_put(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	const struct args *args = &c->args;
	struct gpuq_val *ids, *list;
	int rc = 0;

	if (opt_given(args, OPT_ME) && opt_given(args, OPT_USERS))
		return gpuq_fail(err, GPUQ_EINVAL, "--me and --users cannot go together");
	if (opt_given(args, OPT_ME)) {
		const char *me = cli_user(c);

		if (!me)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "--me: the server does not report the user; use --users");
		list = gpuq_list(a);
		gpuq_add(a, list, gpuq_str(a, me));
		gpuq_put(a, params, "users", list);
	}
	if (opt_given(args, OPT_USERS))
		gpuq_put(a, params, "users", words(a, args->val[OPT_USERS]));
	if (opt_given(args, OPT_QUEUES))
		gpuq_put(a, params, "queues", words(a, args->val[OPT_QUEUES]));
	if (opt_given(args, OPT_NAMES))
		gpuq_put(a, params, "names", words(a, args->val[OPT_NAMES]));
	if (opt_given(args, OPT_NODES)) {
		list = gpuq_list(a);
		rc = hostlist_expand(a, args->val[OPT_NODES], HOSTLIST_GLOBS, list, err);
		gpuq_put(a, params, "nodes", list);
	}
	if (rc == 0 && opt_given(args, OPT_LABELS))
		rc = put_labels(a, params, args->val[OPT_LABELS], err);
	if (rc == 0 && opt_given(args, OPT_STATES))
		rc = put_states(a, params, args->val[OPT_STATES], err);
	if (rc == 0)
		rc = filter_put_times(a, params, args, err);
	/* A filter by time includes jobs that have ended. */
	if (rc == 0 && (opt_given(args, OPT_SINCE) || opt_given(args, OPT_UNTIL)))
		gpuq_set(a, params, "all", gpuq_bool(a, true));
	if (rc == 0 && opt_given(args, OPT_JOBS)) {
		ids = gpuq_list(a);
		rc = filter_ids(a, args->val[OPT_JOBS], ids, err);
		gpuq_put(a, params, "ids", ids);
	}
	return rc;
}

#define CHECKED_MAX 64 /* ids that are requested one by one */

static int ignore(void *arg, const struct gpuq_val *job)
{
	(void)arg;
	(void)job;
	return 1;
}

int filter_check_ids(struct cli *c, const struct gpuq_val *params, struct gpuq_err *err)
{
	const struct gpuq_val *ids = gpuq_get(params, "ids");

	for (size_t i = 0; ids && i < ids->n && i < CHECKED_MAX; i++) {
		int64_t id, index;
		int rc = filter_id(ids->items[i]->s, &id, &index, err);

		if (rc == 0)
			rc = job_for_each(c, id, index, ignore, NULL, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int filter_put_jobs(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	const struct gpuq_val *ids;
	int rc;

	for (int i = 0; i < c->args.n_rest; i++) {
		const char *more = c->args.rest[i], *given = c->args.val[OPT_JOBS];

		c->args.val[OPT_JOBS] =
			given ? gpuq_arena_printf(&c->arena, "%s,%s", given, more) : more;
	}
	rc = filter_put(c, params, err);
	ids = gpuq_get(params, "ids");
	/* A single id needs no check here: the caller uses filter_check_ids when the list is
	 * empty. */
	return rc == 0 && ids && ids->n > 1 ? filter_check_ids(c, params, err) : rc;
}
