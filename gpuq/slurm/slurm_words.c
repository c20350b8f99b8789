/* Translation of gpuq's words into Slurm's, and the formats of Slurm's lists and times. */
#include "gpuq/slurm/slurm_words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "gpuq/list.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

const struct passwd *slurm_user(const char *name)
{
	return name && *name ? getpwnam(name) : NULL;
}

int64_t slurm_number(const struct gpuq_val *job)
{
	return gpuq_get_int(job, "element_id", gpuq_get_int(job, "id", 0));
}

void slurm_time(struct gpuq_buf *out, const struct gpuq_val *us, const char *none)
{
	char text[32];
	struct tm tm;
	time_t t;

	if (!us || us->type != GPUQ_INT) {
		gpuq_buf_adds(out, none);
		return;
	}
	t = (time_t)(us->i / GPUQ_US_PER_S);
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	gpuq_buf_adds(out, text);
}

void slurm_end_time(struct gpuq_buf *out, const struct gpuq_val *job, const char *none)
{
	const int64_t start = gpuq_get_int(job, "start_time", 0);
	const int64_t limit = gpuq_get_int(job, "time_limit_s", -1);
	const struct gpuq_val *end = gpuq_get(job, "end_time");
	struct gpuq_val due = { .type = GPUQ_INT, .i = start + limit * GPUQ_US_PER_S };

	if (end && end->type == GPUQ_INT)
		slurm_time(out, end, none);
	else
		slurm_time(out, start && limit >= 0 ? &due : NULL, none);
}

void slurm_date(void)
{
	const time_t now = time(NULL);
	char text[64];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &tm);
	puts(text);
}

void slurm_limit(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const int64_t s = gpuq_get_int(job, "time_limit_s", -1);
	char text[48];

	gpuq_duration_clock(s < 0 ? GPUQ_UNLIMITED : s * GPUQ_US_PER_S, text, sizeof(text));
	gpuq_buf_adds(out, text);
}

void slurm_elapsed(struct gpuq_buf *out, int64_t us)
{
	const int64_t s = us / GPUQ_US_PER_S, days = s / 86400;

	if (days)
		gpuq_buf_printf(out, "%" PRId64 "-", days);
	gpuq_buf_printf(out, "%02d:%02d:%02d", (int)(s % 86400 / 3600), (int)(s % 3600 / 60),
			(int)(s % 60));
}

const char *slurm_state(const struct gpuq_val *job, bool letters)
{
	const int s = view_job_state(job);

	if (s < 0)
		return "?";
	if (s == GPUQ_JOB_PROVISIONING || s == GPUQ_JOB_STARTING)
		return letters ? "CF" : "CONFIGURING";
	return letters ? gpuq_job_state_short((enum gpuq_job_state)s)
		       : gpuq_job_state_word((enum gpuq_job_state)s);
}

const char *slurm_end_reason(const struct gpuq_val *job)
{
	switch (view_job_state(job)) {
	case GPUQ_JOB_FAILED:
		return "NonZeroExitCode"; /* Slurm's word also for a job ended by a signal */
	case GPUQ_JOB_TIMEOUT:
		return "TimeLimit";
	case GPUQ_JOB_OUT_OF_MEMORY:
		return "OutOfMemory";
	case GPUQ_JOB_DEADLINE:
		return "DeadLine";
	default:
		return NULL;
	}
}

const char *slurm_reason(const struct gpuq_val *job)
{
	static const struct {
		const char *ours, *theirs;
	} words[] = {
		{ "HeldUser", "JobHeldUser" },
		{ "HeldAdmin", "JobHeldAdmin" },
		{ "ArrayLimit", "JobArrayTaskLimit" },
		{ "License", "Licenses" },
		{ "HeldRetries", "JobHoldMaxRequeue" },
		{ "Deadline", "DeadLine" },
		{ "DependencyNever", "DependencyNeverSatisfied" },
		{ "NodesUnavailable", "ReqNodeNotAvail" },
		{ "NodesAvoided", "ReqNodeNotAvail" },
		{ "QueueStopped", "PartitionDown" },
	};
	const char *reason = slurm_end_reason(job);

	if (reason)
		return reason;
	reason = gpuq_get_str(job, "reason", NULL);
	if (!reason)
		return "None";
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].ours, reason) == 0)
			return words[i].theirs;
	return reason;
}

void slurm_exit(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const int64_t code = gpuq_get_int(job, "exit_code", 0) & 0xff;
	const int state = view_job_state(job);

	if (state == GPUQ_JOB_OUT_OF_MEMORY)
		gpuq_buf_adds(out, "0:125");
	else if (state != GPUQ_JOB_FAILED)
		gpuq_buf_adds(out, "0:0");
	else if (code > 128)
		gpuq_buf_printf(out, "0:%" PRId64, code - 128);
	else
		gpuq_buf_printf(out, "%" PRId64 ":0", code ? code : 1);
}

void slurm_gres(struct gpuq_buf *out, const struct gpuq_val *job)
{
	if (view_number(gpuq_get(job, "gpus"), 0) <= 0)
		return;
	gpuq_buf_adds(out, "gres/gpu:");
	view_cell(out, gpuq_get(job, "gpus"));
}

static int64_t cores(const struct gpuq_val *job)
{
	const double n = view_number(gpuq_get(job, "cpus"), 0);

	return (int64_t)n + (n > (double)(int64_t)n);
}

void slurm_cpus(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const int64_t n = cores(job);

	gpuq_buf_addi(out, n ? n : gpuq_get_int(job, "pod_count", 1));
}

static void put_mib(struct gpuq_buf *out, int64_t mib)
{
	if (mib <= 0)
		gpuq_buf_addc(out, '0');
	else if (mib % 1024 == 0)
		gpuq_buf_printf(out, "%" PRId64 "G", mib / 1024);
	else
		gpuq_buf_printf(out, "%" PRId64 "M", mib);
}

void slurm_all_memory(struct gpuq_buf *out, const struct gpuq_val *job)
{
	put_mib(out, gpuq_get_int(job, "memory_mib", 0));
}

void slurm_memory(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const int64_t pods = gpuq_get_int(job, "pod_count", 1);

	put_mib(out, gpuq_get_int(job, "memory_mib", 0) / (pods > 0 ? pods : 1));
}

void slurm_tres(struct gpuq_buf *out, const struct gpuq_val *job)
{
	if (cores(job))
		gpuq_buf_printf(out, "cpu=%" PRId64 ",", cores(job));
	if (gpuq_get_int(job, "memory_mib", 0) > 0) {
		gpuq_buf_adds(out, "mem=");
		slurm_all_memory(out, job);
		gpuq_buf_addc(out, ',');
	}
	gpuq_buf_printf(out, "node=%" PRId64, gpuq_get_int(job, "pod_count", 1));
	if (view_number(gpuq_get(job, "gpus"), 0) > 0) {
		gpuq_buf_adds(out, ",gres/gpu=");
		view_cell(out, gpuq_get(job, "gpus"));
	}
}

void slurm_dependency(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const struct gpuq_val *list = gpuq_get(job, "depends");

	if (!list || list->type != GPUQ_LIST || list->n == 0) {
		gpuq_buf_adds(out, "(null)");
		return;
	}
	for (uint32_t i = 0; i < list->n; i++) {
		gpuq_buf_adds(out, i ? "," : "");
		view_cell(out, list->items[i]);
		gpuq_buf_adds(out, "(unfulfilled)");
	}
}

/* One word of -O: "JobID:.18" */
static bool one_field(const struct slurm_field *fields, const char *text, size_t n,
		      struct gpuq_buf *out)
{
	const char *known[64], *near, *colon = memchr(text, ':', n), *width = "20";
	const size_t len = colon ? (size_t)(colon - text) : n;
	char word[64];
	size_t k = 0;

	snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : sizeof(word) - 1),
		 text);
	if (colon) {
		width = colon + 1;
		n -= len + 1;
	} else {
		n = 2;
	}
	for (; fields[k].word; k++) {
		if (strcasecmp(fields[k].word, word) != 0) {
			if (k < 63)
				known[k] = fields[k].word;
			continue;
		}
		gpuq_buf_printf(out, "%%%.*s%c", (int)n, width, fields[k].letter);
		return true;
	}
	known[k < 63 ? k : 63] = NULL;
	near = gpuq_nearest(word, known);
	cli_say("error: no field %s%s%s; see gpuq-slurm(7)", word, near ? "; did you mean " : "",
		near ? near : "");
	return false;
}

const char *slurm_format(const struct cli *c, const struct slurm_field *fields, const char *text)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *s = NULL;

	while (*text) {
		const size_t n = strcspn(text, ",");

		if (n && !one_field(fields, text, n, &out))
			goto out;
		text += n + (text[n] == ',');
	}
	s = gpuq_arena_strdup(c->args.arena, gpuq_buf_str(&out));
out:
	gpuq_buf_done(&out);
	return s;
}

/* "HH:MM[:SS] [AM|PM]" to the end of the text. */
static bool clock_of(const char *text, struct tm *tm)
{
	int h, mi, s = 0, n = 0;

	if (sscanf(text, "%2d:%2d%n:%2d%n", &h, &mi, &n, &s, &n) < 2)
		return false;
	text += n;
	text += strspn(text, " ");
	if (strcasecmp(text, "am") == 0 || strcasecmp(text, "pm") == 0) {
		if (h < 1 || h > 12)
			return false;
		h = h % 12 + (*text == 'p' || *text == 'P' ? 12 : 0);
		text += 2;
	}
	if (*text || h < 0 || h > 24 || mi < 0 || mi > 59 || s < 0 || s > 60)
		return false;
	tm->tm_hour = h;
	tm->tm_min = mi;
	tm->tm_sec = s;
	return true;
}

/* "YYYY-MM-DD", "MMDD[YY]", "MM/DD[/YY]" or "MM.DD[.YY]", by default of this year.
 * Returns the text after it, or NULL. */
static const char *date_of(const char *text, struct tm *tm)
{
	const size_t digits = strspn(text, "0123456789");
	int y = tm->tm_year + 1900, mo, d, n = 0;

	if (sscanf(text, "%4d-%2d-%2d%n", &y, &mo, &d, &n) != 3) {
		y = tm->tm_year + 1900;
		n = 0;
		if (digits == 6)
			sscanf(text, "%2d%2d%2d%n", &mo, &d, &y, &n);
		else if (digits == 4)
			sscanf(text, "%2d%2d%n", &mo, &d, &n);
		else if (text[digits] == '/')
			sscanf(text, "%2d/%2d%n/%4d%n", &mo, &d, &n, &y, &n);
		else if (text[digits] == '.')
			sscanf(text, "%2d.%2d%n.%4d%n", &mo, &d, &n, &y, &n);
	}
	if (n == 0 || mo < 1 || mo > 12 || d < 1 || d > 31)
		return NULL;
	tm->tm_year = y < 100 ? y + 100 : y - 1900;
	tm->tm_mon = mo - 1;
	tm->tm_mday = d;
	return text + n;
}

/* Words for an hour of a day, counted from today. */
static bool word_of(const char *text, struct tm *tm)
{
	static const struct {
		const char *word;
		int day, hour;
	} words[] = {
		{ "today", 0, 0 },      { "midnight", 0, 0 }, { "yesterday", -1, 0 },
		{ "tomorrow", 1, 0 },   { "noon", 0, 12 },    { "fika", 0, 15 },
		{ "elevenses", 0, 11 }, { "teatime", 0, 16 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(words[i].word, text) == 0) {
			tm->tm_mday += words[i].day;
			tm->tm_hour = words[i].hour;
			return true;
		}
	return false;
}

/* The text behind "now": nothing, "-3days", "+90". */
static int from_now(const char *text, int64_t *us)
{
	static const struct {
		const char *unit;
		int s;
	} units[] = { { "", 1 },         { "seconds", 1 },  { "minutes", 60 },
		      { "hours", 3600 }, { "days", 86400 }, { "weeks", 604800 } };
	time_t now = time(NULL);

	if (*text) {
		char *unit;
		const long k = strtol(text + 1, &unit, 10);
		const size_t len = strlen(unit);
		size_t i = 0;

		while (i < 6 && (strncmp(units[i].unit, unit, len) != 0 || (!len && i)))
			i++;
		if ((*text != '-' && *text != '+') || i == 6 || unit == text + 1)
			return GPUQ_EINVAL;
		now += (*text == '-' ? -1 : 1) * k * units[i].s;
	}
	*us = (int64_t)now * GPUQ_US_PER_S;
	return 0;
}

int slurm_instant(const char *text, int64_t *us)
{
	const time_t now = time(NULL);
	const char *rest;
	struct tm tm;

	if (strncmp(text, "now", 3) == 0)
		return from_now(text + 3, us);
	if (strncmp(text, "uts", 3) == 0) {
		char *end;
		const long long s = strtoll(text + 3, &end, 10);

		if (end == text + 3 || *end || s < 0 || s > INT64_MAX / GPUQ_US_PER_S)
			return GPUQ_EINVAL;
		*us = s * GPUQ_US_PER_S;
		return 0;
	}
	localtime_r(&now, &tm);
	tm.tm_isdst = -1;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	if (!word_of(text, &tm) && !clock_of(text, &tm)) {
		rest = date_of(text, &tm);
		if (!rest)
			return GPUQ_EINVAL;
		if (*rest && (!strchr("T -", *rest) || !clock_of(rest + 1, &tm)))
			return GPUQ_EINVAL;
	}
	*us = (int64_t)mktime(&tm) * GPUQ_US_PER_S;
	return 0;
}

const char *slurm_all(const struct cli *c, const struct column *cols)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *s;

	for (size_t i = 0; cols[i].name; i++)
		gpuq_buf_printf(&out, "%s%%%c", i ? "|" : "", cols[i].letter);
	s = gpuq_arena_strdup(c->args.arena, gpuq_buf_str(&out));
	gpuq_buf_done(&out);
	return s;
}

bool slurm_is_partition(const struct gpuq_val *queues, const struct gpuq_val *queue)
{
	const char *name = gpuq_get_str(queue, "name", "");

	for (size_t i = 0; i < queues->n; i++)
		if (strcmp(gpuq_get_str(queues->items[i], "parent", ""), name) == 0)
			return false;
	return true;
}

static const struct gpuq_val *find_queue(const struct gpuq_val *queues, const char *name)
{
	for (size_t i = 0; i < queues->n; i++)
		if (strcmp(gpuq_get_str(queues->items[i], "name", ""), name) == 0)
			return queues->items[i];
	return NULL;
}

bool slurm_may_use(const struct gpuq_val *queues, const struct gpuq_val *queue,
		   const struct gpuq_val *node)
{
	const char *flavor = gpuq_get_str(node, "flavor", "default");

	if (gpuq_get_int(node, "gpus", 0) == 0)
		return true;
	while (queue) {
		const struct gpuq_val *limit = gpuq_get(queue, "limit");

		if (limit && limit->type == GPUQ_MAP)
			limit = gpuq_get(limit, flavor);
		if (view_number(limit, 1) <= 0)
			return false;
		queue = find_queue(queues, gpuq_get_str(queue, "parent", ""));
	}
	return true;
}

int slurm_fail(const struct gpuq_err *err)
{
	const int code = cli_fail(err, false);

	return code == EXIT_SERVER ? code : 1;
}

int slurm_fail_job(struct gpuq_err *err)
{
	if (err->code == GPUQ_ENOENT)
		gpuq_err_prefix(err, "slurm_load_jobs error: Invalid job id specified");
	return slurm_fail(err);
}

bool slurm_keep(const struct cli *c, const struct gpuq_val *job)
{
	if (opt_given(&c->args, OPT_S_NOTME) && cli_user(c) &&
	    strcmp(cli_user(c), gpuq_get_str(job, "user", "")) == 0)
		return false;
	return list_has(c->args.val[OPT_S_ACCOUNTS], gpuq_get_str(job, "account", "")) &&
	       list_has(c->args.val[OPT_S_QOS], gpuq_get_str(job, "qos", ""));
}

bool slurm_is_spent_array(const struct gpuq_val *job)
{
	const struct gpuq_val *array = gpuq_get(job, "array"), *rest = gpuq_get(array, "rest");

	if (!gpuq_get_str(array, "indices", NULL) || gpuq_get_int(job, "array_index", -1) >= 0 ||
	    !view_job_ended(job))
		return false;
	/* An array that was cancelled before it started has no other line; records of before say no more. */
	return rest ? rest->type != GPUQ_MAP : view_job_state(job) != GPUQ_JOB_CANCELLED;
}

struct gpuq_val *slurm_rest(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const struct gpuq_val *rest = gpuq_get(gpuq_get(job, "array"), "rest");
	struct gpuq_val *v, *array;

	if (!rest || rest->type != GPUQ_MAP || !view_job_ended(job))
		return NULL;
	v = gpuq_val_copy(a, job);
	array = gpuq_val_copy(a, gpuq_get(job, "array"));
	gpuq_set(a, array, "waiting", gpuq_val_copy(a, gpuq_get(rest, "indices")));
	gpuq_set(a, v, "array", array);
	gpuq_set(a, v, "state", gpuq_val_copy(a, gpuq_get(rest, "state")));
	gpuq_set(a, v, "end_time", gpuq_val_copy(a, gpuq_get(rest, "end_time")));
	gpuq_set(a, v, "exit_code", gpuq_null(a));
	return v;
}

struct each {
	slurm_each_fn fn;
	void *arg;
};

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct each *e = arg;

	if (item)
		e->fn(e->arg, item);
	return 0;
}

int slurm_each(struct cli *c, const char *method, const struct gpuq_val *params,
	       const char *const *keys, slurm_each_fn fn, void *arg, struct gpuq_err *err)
{
	struct each e = { fn, arg };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *reply;
	int rc = cli_connect(c, err);

	if (rc == 0 && keys)
		rc = gpuq_stream_rows(c->conn, method, params, keys, 0, on_item, &e, &a, &reply,
				      err);
	else if (rc == 0)
		rc = gpuq_stream(c->conn, method, params, 0, on_item, &e, &a, &reply, err);
	gpuq_arena_done(&a);
	return rc < 0 ? rc : 0;
}
