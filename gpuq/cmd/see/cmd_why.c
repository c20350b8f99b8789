/* gpuq why: why a job is pending and what would start it; why it started or was preempted. */
#include "gpuq/cmd/see/cmd_why.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/cmd/see/provisioning.h"
#include "gpuq/reasons.h"
#include "gpuq/cmd/job/start.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

static size_t count(const struct gpuq_val *list)
{
	return list && list->type == GPUQ_LIST ? list->n : 0;
}

/* ---- head ---- */

static void print_head(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text)
{
	const int64_t since_us = gpuq_get_int(job, "eligible_time", 0);

	view_job_id(text, job);
	gpuq_buf_printf(text, " %s of %s in queue %s, ", gpuq_get_str(job, "name", "?"),
			gpuq_get_str(job, "user", "?"), gpuq_get_str(job, "queue", "?"));
	line_pods(text, gpuq_get(job, "gpus"), gpuq_get_int(job, "pod_count", 1));
	line_print("Job", text);
	gpuq_buf_adds(text, gpuq_get_str(job, "state", "?"));
	if (view_job_started(job) && !view_job_ended(job)) {
		gpuq_buf_adds(text, " for ");
		line_clock(text, view_job_elapsed_us(job, now_us));
	} else if (!view_job_ended(job) && since_us > 0 && since_us < now_us) {
		gpuq_buf_adds(text, " for ");
		line_clock(text, now_us - since_us);
	}
	if (line_says(gpuq_get(job, "message")))
		gpuq_buf_printf(text, ": %s", gpuq_get_str(job, "message", ""));
	line_print("State", text);
}

static void print_reasons(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text)
{
	const struct gpuq_val *reasons = gpuq_get(job, "reasons");

	for (size_t i = 0; i < count(reasons); i++) {
		const char *doc = gpuq_reason_doc_of(gpuq_get_str(reasons->items[i], "code", ""));

		reason_text(text, reasons->items[i], now_us);
		line_print(line_label("Reason", i), text);
		if (line_says(gpuq_get(reasons->items[i], "message"))) {
			gpuq_buf_adds(text, "  ");
			view_cell(text, gpuq_get(reasons->items[i], "message"));
			line_print("", text);
		}
		if (*doc) {
			gpuq_buf_printf(text, "  %s", doc);
			line_print("", text);
		}
	}
}

/* ---- rank in the queue order ---- */

static void print_rank(const struct gpuq_val *w, struct gpuq_buf *text)
{
	static const char *const names[] = { "qos",  "fairshare", "age", "stretch",
					     "size", "boost",     "nice" };
	const struct gpuq_val *ahead = gpuq_get(w, "ahead"), *terms = gpuq_get(w, "terms");
	const int64_t place = gpuq_get_int(w, "place", 0);

	if (place > 0) {
		gpuq_buf_printf(text, "%" PRId64 " of %" PRId64 " in its queue", place,
				gpuq_get_int(w, "waiting", place));
		line_print("Rank", text);
	}
	if (line_says(terms)) {
		gpuq_buf_printf(text, "%" PRId64, gpuq_get_int(terms, "total", 0));
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (gpuq_get_int(terms, names[i], 0))
				gpuq_buf_printf(text, "%s%s %" PRId64,
						strcmp(names[i], "nice") == 0 ? " - " : " + ",
						names[i], gpuq_get_int(terms, names[i], 0));
		line_print("Priority", text);
	}
	for (size_t i = 0; i < count(ahead); i++) {
		const struct gpuq_val *j = ahead->items[i];
		const char *by = gpuq_get_str(j, "by", "");

		gpuq_buf_printf(text, "%s of %s, ", gpuq_get_str(j, "job", "?"),
				gpuq_get_str(j, "user", "?"));
		line_gpus(text, gpuq_get(j, "gpus"));
		if (strcmp(by, "submit") == 0)
			gpuq_buf_adds(text, ": submitted earlier");
		else
			gpuq_buf_printf(text, ": %" PRId64 " more point%s of %s",
					gpuq_get_int(j, "points", 0),
					line_s(gpuq_get_int(j, "points", 0)), by);
		line_print(line_label("Before it", i), text);
	}
	if (place > (int64_t)count(ahead) + 1) {
		gpuq_buf_printf(text, "and %" PRId64 " more; see gpuq prio",
				place - 1 - (int64_t)count(ahead));
		line_print("", text);
	}
}

static void print_standing(const struct gpuq_val *job, const struct gpuq_val *w,
			   struct gpuq_buf *text)
{
	static const struct {
		const char *standing, *where, *means;
	} words[] = {
		{ "quota", "within the quota of queue", "borrowed devices can be reclaimed" },
		{ "fair_share", "within the fair share of queue",
		  "devices can be reclaimed from queues above their share" },
		{ "beyond", "beyond the fair share of queue", "idle devices only" },
	};
	const char *standing = gpuq_get_str(w, "standing", "");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].standing, standing) != 0)
			continue;
		gpuq_buf_printf(text, "%s %s: %s", words[i].where, gpuq_get_str(job, "queue", "?"),
				words[i].means);
		line_print("Entitled", text);
	}
}

/* Add the words with commas, between two texts; nothing where there are none. */
static void add_words(struct gpuq_buf *text, const char *before, const struct gpuq_val *list,
		      const char *after)
{
	for (size_t i = 0; i < count(list); i++) {
		gpuq_buf_adds(text, i ? ", " : before);
		view_cell(text, list->items[i]);
	}
	gpuq_buf_adds(text, count(list) ? after : "");
}

/* Add a text with an object in place of its %s. */
static void add_named(struct gpuq_buf *text, const char *form, const char *object)
{
	const char *mark = strstr(form, "%s");

	gpuq_buf_add(text, form, (size_t)(mark - form));
	gpuq_buf_adds(text, object);
	gpuq_buf_adds(text, mark + 2);
}

static void print_free(const struct gpuq_val *w, struct gpuq_buf *text)
{
	const struct gpuq_val *f = gpuq_get(w, "free");

	if (!line_says(f))
		return;
	line_gpus(text, gpuq_get(f, "gpus"));
	gpuq_buf_adds(text, " of its flavors, at most ");
	view_cell(text, gpuq_get(f, "largest"));
	gpuq_buf_adds(text, " on one node");
	line_print("Free", text);
}

/* Print the node, label, taint or flavor that keeps the job off all nodes, and the nearest change. */
static void print_missing(const struct gpuq_val *w, struct gpuq_buf *text)
{
	static const struct {
		const char *what, *name, *change;
	} words[] = {
		{ "node", "no other node than %s is allowed, which does not do",
		  "without naming nodes" },
		{ "exclude", "%s is excluded", "without excluding it" },
		{ "label", "no node with label %s would do", "without this label" },
		{ "flavor", "no node of flavor %s would do", "with their flavor" },
		{ "sharing", "only nodes with %s would do",
		  "with whole devices, or another way of sharing" },
		{ "taint", "taint %s is not tolerated", "with a toleration of it" },
		{ "spot", "nodes that the cloud may take away are not used (%s)",
		  "with spot: allow" },
	};
	const struct gpuq_val *list = gpuq_get(w, "missing");

	for (size_t i = 0; i < count(list); i++) {
		const struct gpuq_val *m = list->items[i], *there = gpuq_get(m, "there");
		const struct gpuq_val *nodes = gpuq_get(m, "nodes");
		const int64_t n = gpuq_get_int(m, "n_nodes", 0);
		size_t k = 0;

		while (k < sizeof(words) / sizeof(words[0]) &&
		       strcmp(words[k].what, gpuq_get_str(m, "what", "")) != 0)
			k++;
		if (k == sizeof(words) / sizeof(words[0]))
			continue;
		add_named(text, words[k].name, gpuq_get_str(m, "object", "?"));
		add_words(text, " (there are: ", there, ")");
		if (*gpuq_get_str(m, "note", ""))
			gpuq_buf_printf(text, ": %s", gpuq_get_str(m, "note", ""));
		line_print(line_label("Missing", i), text);
		if (n == 0)
			continue;
		gpuq_buf_printf(text, "  %s %" PRId64 " node%s would do: ", words[k].change, n,
				line_s(n));
		add_words(text, "", nodes, (int64_t)count(nodes) < n ? ", ..." : "");
		line_print("", text);
	}
}

/* Print the pool whose machine comes nearest to a pod that nothing could hold. */
static void print_nearest(const struct gpuq_val *w, struct gpuq_buf *text)
{
	const struct gpuq_val *n = gpuq_get(w, "nearest");

	if (!line_says(n))
		return;
	view_cell(text, gpuq_get(n, "text"));
	line_print("Nearest", text);
}

/* Print whose jobs hold the devices, and why they may stay. */
static void print_holders(const struct gpuq_val *w, struct gpuq_buf *text)
{
	static const struct {
		const char *why, *means;
	} words[] = {
		{ "not_preemptible", "their qos is not preemptible" },
		{ "own_queue", "they are of the same queue" },
		{ "unlimited_quota", "its quota is unlimited" },
		{ "quota", "within its quota" },
		{ "not_reclaimable", "reclaimable is false" },
		{ "min_runtime", "within their minimum run time" },
		{ "fair_share", "within its fair share" },
		{ "room", "preempting them would not let this job start" },
	};
	const struct gpuq_val *list = gpuq_get(w, "holders");

	for (size_t i = 0; i < count(list); i++) {
		const struct gpuq_val *h = list->items[i], *users = gpuq_get(h, "users");
		const int64_t n = gpuq_get_int(h, "jobs", 0);
		const char *why = gpuq_get_str(h, "why", ""), *means = why;

		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			if (strcmp(words[k].why, why) == 0)
				means = words[k].means;
		gpuq_buf_printf(text, "%s: ", gpuq_get_str(h, "queue", "?"));
		line_gpus(text, gpuq_get(h, "gpus"));
		gpuq_buf_printf(text, " of %" PRId64 " job%s of ", n, line_s(n));
		for (size_t k = 0; k < count(users); k++)
			if (users->items[k]->type == GPUQ_STR)
				gpuq_buf_printf(text, "%s%s", k ? ", " : "", users->items[k]->s);
		gpuq_buf_printf(text, ": %s", means);
		line_print(line_label("Held by", i), text);
	}
}

static void print_queues(const struct gpuq_val *w, struct gpuq_buf *text)
{
	const struct gpuq_val *queues = gpuq_get(w, "queues");

	for (size_t i = 0; i < count(queues); i++) {
		const struct gpuq_val *q = queues->items[i];

		for (int64_t k = gpuq_get_int(q, "depth", 0); k > 0 && text->len < 64; k--)
			gpuq_buf_adds(text, "  ");
		gpuq_buf_printf(text, "%s: holds ", gpuq_get_str(q, "name", "?"));
		view_cell(text, gpuq_get(q, "allocated"));
		gpuq_buf_adds(text, ", fair share ");
		view_cell(text, gpuq_get(q, "fair_share"));
		gpuq_buf_adds(text, " (quota ");
		view_cell(text, gpuq_get(q, "quota"));
		if (gpuq_get(q, "limit") && gpuq_get(q, "limit")->type != GPUQ_STR) {
			gpuq_buf_adds(text, ", limit ");
			view_cell(text, gpuq_get(q, "limit"));
		}
		gpuq_buf_printf(text, "), %" PRId64 " pending", gpuq_get_int(q, "waiting", 0));
		line_print(line_label("Queues", i), text);
	}
}

/* ---- what would help ---- */

static void add_jobs(struct gpuq_buf *text, const struct gpuq_val *jobs)
{
	for (size_t i = 0; i < count(jobs); i++) {
		gpuq_buf_printf(text, "%s%s (%s, ", i ? ", " : "",
				gpuq_get_str(jobs->items[i], "job", "?"),
				gpuq_get_str(jobs->items[i], "user", "?"));
		line_gpus(text, gpuq_get(jobs->items[i], "gpus"));
		gpuq_buf_addc(text, ')');
	}
}

/* "64 CPUs a pod instead of 200" */
static void amount_text(struct gpuq_buf *text, const struct gpuq_val *c)
{
	static const char *const words[][2] = { { "cpu", "CPUs" },
						{ "memory", "of memory" },
						{ "gpu_memory", "of GPU memory" } };
	const char *object = gpuq_get_str(c, "object", "?");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(object, words[i][0]) == 0)
			object = words[i][1];
	reason_amount(text, c, "to");
	gpuq_buf_printf(text, " %s a pod instead of ", object);
	reason_amount(text, c, "from");
}

static void change_text(struct gpuq_buf *text, const struct gpuq_val *c, int64_t now_us)
{
	const char *what = gpuq_get_str(c, "change", "");
	const struct gpuq_val *jobs = gpuq_get(c, "jobs");

	if (strcmp(what, "lift") == 0) {
		gpuq_buf_printf(text, "without %s", gpuq_get_str(c, "code", "?"));
		if (line_says(gpuq_get(c, "object")))
			gpuq_buf_printf(text, " (%s)", gpuq_get_str(c, "object", ""));
		gpuq_buf_printf(text, ", which the %s can lift", gpuq_get_str(c, "who", "?"));
	} else if (strcmp(what, "gpus") == 0 || strcmp(what, "pods") == 0) {
		gpuq_buf_adds(text, "with ");
		view_cell(text, gpuq_get(c, "to"));
		gpuq_buf_printf(text, " %s%s%s instead of ", what[0] == 'g' ? "GPU" : "pod",
				view_number(gpuq_get(c, "to"), 0) == 1 ? "" : "s",
				what[0] == 'g' ? " a pod" : "");
		view_cell(text, gpuq_get(c, "from"));
	} else if (strcmp(what, "amount") == 0) {
		gpuq_buf_adds(text, "with ");
		amount_text(text, c);
	} else if (strcmp(what, "flavor") == 0) {
		gpuq_buf_printf(text, "on flavor %s", gpuq_get_str(c, "to", "?"));
	} else if (strcmp(what, "time") == 0) {
		gpuq_buf_adds(text, "with a time limit of ");
		line_clock(text, gpuq_get_int(c, "to_s", 0) * GPUQ_US_PER_S);
	} else if (strcmp(what, "move") == 0) {
		gpuq_buf_adds(text, "if this job is relocated: ");
		add_jobs(text, jobs);
	} else if (strcmp(what, "end") == 0) {
		const int64_t at_us = gpuq_get_int(c, "end_time", 0);

		gpuq_buf_adds(text, count(jobs) == 1 ? "after this job has ended: "
						     : "after these jobs have ended: ");
		add_jobs(text, jobs);
		if (at_us > now_us) {
			gpuq_buf_adds(text, ", at most in ");
			line_clock(text, at_us - now_us);
		}
	}
	if (strcmp(gpuq_get_str(c, "how", ""), "claim") == 0)
		gpuq_buf_adds(text, " (by preempting others)");
}

/* True if a line above names a change after which nodes would do: then to say that nothing helps is
 * wrong, and when it would start there depends on what they run. */
static bool would_do(const struct gpuq_val *w)
{
	const struct gpuq_val *list = gpuq_get(w, "missing");

	for (size_t i = 0; i < count(list); i++)
		if (gpuq_get_int(list->items[i], "n_nodes", 0) > 0)
			return true;
	return false;
}

static void print_changes(const struct gpuq_val *w, int64_t now_us, struct gpuq_buf *text)
{
	const struct gpuq_val *changes = gpuq_get(w, "changes"), *victims = gpuq_get(w, "victims");
	const char *next = gpuq_get_str(w, "next", "wait");
	size_t n = 0;

	if (strcmp(next, "start") == 0) {
		gpuq_buf_adds(text, "in the next scheduling cycle");
		line_print("Would start", text);
	} else if (strcmp(next, "claim") == 0) {
		gpuq_buf_adds(text, "after its victims are gone: ");
		add_jobs(text, victims);
		line_print("Would start", text);
	}
	for (size_t i = 0; i < count(changes); i++) {
		change_text(text, changes->items[i], now_us);
		line_print(line_label("Would start", n++), text);
	}
	if (n == 0 && strcmp(next, "wait") == 0 && !would_do(w)) {
		gpuq_buf_printf(text, "no single change found that lets it start now%s",
				gpuq_get_bool(w, "cut_short", false) ? " (search cut short)" : "");
		line_print("Would start", text);
	}
}

/* ---- what was decided ---- */

static void print_starts(const struct gpuq_val *v, struct gpuq_buf *text)
{
	const struct gpuq_val *starts = gpuq_get(v, "starts");

	for (size_t i = 0; i < count(starts); i++) {
		const struct gpuq_val *s = starts->items[i];

		view_time(text, gpuq_get(s, "decided_time"));
		gpuq_buf_adds(text, " after being pending for ");
		line_clock(text, gpuq_get_int(s, "waited_s", 0) * GPUQ_US_PER_S);
		line_print(line_label("Decided", i), text);
		if (line_says(gpuq_get(s, "ahead_of"))) {
			gpuq_buf_printf(text, "  backfilled ahead of job %s, which is planned for ",
					gpuq_get_str(s, "ahead_of", "?"));
			view_time(text, gpuq_get(s, "planned_time"));
			line_print("", text);
		} else if (gpuq_get_bool(s, "backfilled", false)) {
			gpuq_buf_adds(text, "  backfilled ahead of a planned start");
			line_print("", text);
		}
		if (!line_says(gpuq_get(s, "flavor")))
			continue;
		gpuq_buf_printf(text, "  queue %s held ", gpuq_get_str(s, "queue", "?"));
		view_cell(text, gpuq_get(s, "allocated"));
		gpuq_buf_printf(text, " of %s, fair share ", gpuq_get_str(s, "flavor", "?"));
		view_cell(text, gpuq_get(s, "fair_share"));
		gpuq_buf_adds(text, " (quota ");
		view_cell(text, gpuq_get(s, "quota"));
		gpuq_buf_printf(text, "); %" PRId64 " other%s pending in it",
				gpuq_get_int(s, "jobs_behind", 0),
				line_s(gpuq_get_int(s, "jobs_behind", 0)));
		line_print("", text);
		if (line_says(gpuq_get(s, "yield_time"))) {
			gpuq_buf_adds(text, "  its devices are reserved for another job from ");
			view_time(text, gpuq_get(s, "yield_time"));
			line_print("", text);
		}
	}
}

static void print_avoids(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(job, "avoids");

	for (size_t i = 0; i < count(list); i++) {
		gpuq_buf_printf(text, "node %s, which failed it, unless no other fits, until ",
				gpuq_get_str(list->items[i], "node", "?"));
		view_time(text, gpuq_get(list->items[i], "until_time"));
		line_print(line_label("Avoids", i), text);
	}
}

static void print_refused_by(const struct gpuq_val *v, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(v, "refused_by");

	for (size_t i = 0; i < count(list); i++) {
		gpuq_buf_printf(text, "%s by the kubelet of node %s, which offers it, until ",
				gpuq_get_str(list->items[i], "resource", "?"),
				gpuq_get_str(list->items[i], "node", "?"));
		view_time(text, gpuq_get(list->items[i], "until_time"));
		line_print(line_label("Refused", i), text);
	}
}

static void print_evictions(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(job, "evictions");

	for (size_t i = 0; i < count(list); i++) {
		const struct gpuq_val *e = list->items[i];

		view_time(text, gpuq_get(e, "time"));
		gpuq_buf_printf(text, " %s", gpuq_get_str(e, "cause", "?"));
		if (line_says(gpuq_get(e, "by")))
			gpuq_buf_printf(text, " for job %s", gpuq_get_str(e, "by", ""));
		if (line_says(gpuq_get(e, "by_queue")))
			gpuq_buf_printf(text, " of queue %s", gpuq_get_str(e, "by_queue", ""));
		line_print(line_label("Evicted", i), text);
		if (line_says(gpuq_get(e, "why"))) {
			gpuq_buf_printf(text, "  %s", gpuq_get_str(e, "why", ""));
			line_print("", text);
		}
		if (!line_says(gpuq_get(e, "rule")))
			continue;
		gpuq_buf_printf(text, "  rule %s: %s", gpuq_get_str(e, "rule", ""),
				gpuq_rule_doc(gpuq_get_str(e, "rule", "")));
		line_print("", text);
	}
}

static void print_claims(const struct gpuq_val *v, struct gpuq_buf *text)
{
	static const struct {
		const char *key, *words;
	} passed[] = {
		{ "firm", "cannot be evicted" },
		{ "busy", "are ending or starting" },
		{ "shielded", "are protected" },
		{ "not_needed", "are within their queue's entitlement, or not needed" },
	};
	const struct gpuq_val *claims = gpuq_get(v, "claims");

	for (size_t i = 0; i < count(claims); i++) {
		const struct gpuq_val *c = claims->items[i], *sides = gpuq_get(c, "sides");

		view_time(text, gpuq_get(c, "decided_time"));
		gpuq_buf_printf(text, " job %s needed ", gpuq_get_str(c, "job", "?"));
		view_cell(text, gpuq_get(c, "need"));
		gpuq_buf_printf(text, " of %s", gpuq_get_str(c, "flavor", "devices"));
		line_print(line_label("Claim", i), text);
		for (size_t k = 0; k < count(sides); k++) {
			const struct gpuq_val *s = sides->items[k];

			gpuq_buf_printf(text, "  queue %s: ", gpuq_get_str(s, "queue", "?"));
			view_cell(text, gpuq_get(s, "before"));
			gpuq_buf_adds(text, " -> ");
			view_cell(text, gpuq_get(s, "after"));
			gpuq_buf_adds(text, ", fair share ");
			view_cell(text, gpuq_get(s, "fair_share"));
			gpuq_buf_adds(text, ", quota ");
			view_cell(text, gpuq_get(s, "quota"));
			line_print("", text);
		}
		for (size_t k = 0; k < sizeof(passed) / sizeof(passed[0]); k++) {
			const int64_t n = gpuq_get_int(gpuq_get(c, "passed"), passed[k].key, 0);

			if (n == 0)
				continue;
			gpuq_buf_printf(text, "  passed over: %" PRId64 " that %s", n,
					passed[k].words);
			line_print("", text);
		}
	}
}

/* Where the scheduler stopped short of what it might have found. */
static void print_bounds(const struct gpuq_val *w, struct gpuq_buf *text)
{
	static const struct {
		const char *bound, *stopped, *what;
	} words[] = {
#define X(sym, word, stopped, counted) { word, stopped, counted },
		GPUQ_BOUNDS(X)
#undef X
	};
	const struct gpuq_val *bounds = gpuq_get(w, "bounds");

	for (size_t i = 0, n = 0; i < count(bounds); i++) {
		const char *bound = gpuq_get_str(bounds->items[i], "bound", "");

		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
			if (strcmp(words[k].bound, bound) != 0)
				continue;
			gpuq_buf_printf(text, "%s: %" PRId64 " %s", words[k].stopped,
					gpuq_get_int(bounds->items[i], "most", 0), words[k].what);
			line_print(line_label("Bounded", n++), text);
		}
	}
}

void why_print(const struct gpuq_val *v, FILE *f)
{
	const struct gpuq_val *job = gpuq_get(v, "job"), *w = gpuq_get(v, "waiting");
	const int64_t now_us = cli_now_us();
	struct gpuq_buf text = GPUQ_BUF_INIT;

	line_to(f);
	print_head(job, now_us, &text);
	print_reasons(job, now_us, &text);
	provisioning_lines(job, now_us, &text);
	if (line_says(w)) {
		print_standing(job, w, &text);
		print_missing(w, &text);
		print_nearest(w, &text);
		print_free(w, &text);
		print_holders(w, &text);
		start_lines(gpuq_get(v, "start"), now_us, &text);
		print_changes(w, now_us, &text);
		print_bounds(w, &text);
		print_rank(w, &text);
		print_queues(w, &text);
	}
	view_job_nodes(&text, job);
	line_print("Nodes", &text);
	print_starts(v, &text);
	print_evictions(job, &text);
	print_avoids(job, &text);
	print_refused_by(v, &text);
	print_claims(v, &text);
	line_to(NULL);
	gpuq_buf_done(&text);
}

int why_get(struct cli *c, int64_t id, int64_t index, struct gpuq_val **v, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a);

	gpuq_put(a, params, "id", gpuq_int(a, id));
	if (index >= 0)
		gpuq_put(a, params, "index", gpuq_int(a, index));
	return cli_call(c, "job.why", params, "", v, err);
}

int cmd_why(struct cli *c)
{
	struct gpuq_val *ids = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;

	for (int i = 0; i < c->args.n_rest; i++)
		if (filter_ids(&c->arena, c->args.rest[i], ids, &err) < 0)
			return cli_usage(c, "%s", err.text);
	for (size_t i = 0; i < ids->n; i++) {
		struct gpuq_val *v;
		int64_t id, index;

		if (filter_id(ids->items[i]->s, &id, &index, &err) < 0)
			return cli_usage(c, "%s", err.text);
		if (why_get(c, id, index, &v, &err) < 0)
			return cli_fail(&err, true);
		if (opt_given(&c->args, OPT_JSON)) {
			out_json(v);
			continue;
		}
		if (i)
			putchar('\n');
		why_print(v, stdout);
	}
	return EXIT_DONE;
}
