#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sim/trace/trace_figures.h"

#define HOUR_US (3600 * GPUQ_US_PER_S)

static int cmp_double(const void *x, const void *y)
{
	const double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Sort the values and return their percentiles by nearest rank: the smallest value that at least p
 * percent do not exceed. */
static struct trace_spread spread(double *values, size_t n)
{
	struct trace_spread out = { 0 };
	double sum = 0;

	if (n == 0)
		return out;
	qsort(values, n, sizeof(*values), cmp_double);
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	out.mean = sum / (double)n;
	out.p50 = values[(50 * n + 99) / 100 - 1];
	out.p90 = values[(90 * n + 99) / 100 - 1];
	out.p95 = values[(95 * n + 99) / 100 - 1];
	out.p99 = values[(99 * n + 99) / 100 - 1];
	out.max = values[n - 1];
	return out;
}

/* ---- shares ---- */

/* An instant at which the demand or the use of an account changes. */
struct change {
	int64_t at_us;
	uint32_t account;
	int32_t wanted, used;
};

struct shares {
	uint32_t n_accounts, n_hours;
	bool by_user;
	struct change *changes;
	size_t n_changes;
	int64_t *wanted, *used; /* by account: GPUs now */
	double *due; /* by account: GPUs it is entitled to now */
	double *used_in, *due_in; /* by account and hour: GPU-hours */
	double *errors; /* scratch */
};

static uint32_t account_of(const struct shares *s, const struct trace_job *j)
{
	return s->by_user ? j->user : j->queue;
}

static int cmp_change(const void *x, const void *y)
{
	const struct change *a = x, *b = y;

	return (a->at_us > b->at_us) - (a->at_us < b->at_us);
}

static void list_changes(struct shares *s, const struct trace *t, const struct trace_log *l)
{
	for (uint32_t i = 0; i < t->n_jobs; i++) {
		const struct trace_job *j = &t->jobs[i];
		const uint32_t account = account_of(s, j);
		const int32_t gpus = (int32_t)j->gpus;

		s->changes[s->n_changes++] = (struct change){ j->submit_us, account, gpus, 0 };
		s->changes[s->n_changes++] =
			(struct change){ l->attempts[l->last_attempt[i]].end_us, account, -gpus,
					 0 };
	}
	for (uint32_t i = 0; i < l->n_attempts; i++) {
		const struct trace_attempt *a = &l->attempts[i];
		const uint32_t account = account_of(s, &t->jobs[a->job]);
		const int32_t gpus = (int32_t)t->jobs[a->job].gpus;

		s->changes[s->n_changes++] = (struct change){ a->start_us, account, 0, gpus };
		s->changes[s->n_changes++] = (struct change){ a->end_us, account, 0, -gpus };
	}
	qsort(s->changes, s->n_changes, sizeof(*s->changes), cmp_change);
}

/* Progressive filling: all accounts get the same, none more than its demand. */
static void divide(struct shares *s, double capacity)
{
	double level = 0, left = capacity;
	uint32_t hungry = 0;

	for (uint32_t i = 0; i < s->n_accounts; i++) {
		s->due[i] = 0;
		hungry += s->wanted[i] > 0;
	}
	while (hungry > 0) {
		double sum = 0;
		uint32_t n = 0;

		level += left / hungry;
		for (uint32_t i = 0; i < s->n_accounts; i++) {
			const double wanted = (double)s->wanted[i];

			s->due[i] = wanted < level ? wanted : level;
			sum += s->due[i];
			n += wanted > level;
		}
		left = capacity - sum;
		if (n == hungry || left <= capacity * 1e-12)
			return;
		hungry = n;
	}
}

/* Add use and entitlement from one instant to another, hour by hour. */
static void account_for(struct shares *s, int64_t origin, int64_t from, int64_t to)
{
	while (from < to) {
		const int64_t hour = (from - origin) / HOUR_US;
		const int64_t end = origin + (hour + 1) * HOUR_US, until = end < to ? end : to;
		const double d = (double)(until - from) / (double)HOUR_US;

		for (uint32_t i = 0; i < s->n_accounts; i++) {
			s->used_in[(size_t)i * s->n_hours + (size_t)hour] += d * (double)s->used[i];
			s->due_in[(size_t)i * s->n_hours + (size_t)hour] += d * s->due[i];
		}
		from = until;
	}
}

static void sweep(struct shares *s, int64_t from, int64_t to, double capacity)
{
	int64_t now = from;

	for (size_t i = 0; i < s->n_changes && now < to;) {
		const int64_t at = s->changes[i].at_us < to ? s->changes[i].at_us : to;

		account_for(s, from, now, at);
		now = at > now ? at : now;
		for (; i < s->n_changes && s->changes[i].at_us <= now; i++) {
			s->wanted[s->changes[i].account] += s->changes[i].wanted;
			s->used[s->changes[i].account] += s->changes[i].used;
		}
		divide(s, capacity);
	}
	account_for(s, from, now, to);
}

static double window_error(struct shares *s, uint32_t hours)
{
	const uint32_t width = hours < s->n_hours ? hours : s->n_hours;
	size_t n = 0;

	for (uint32_t i = 0; i < s->n_accounts; i++) {
		for (uint32_t h = 0; h + width <= s->n_hours; h++) {
			double used = 0, due = 0;

			for (uint32_t k = h; k < h + width; k++) {
				used += s->used_in[(size_t)i * s->n_hours + k];
				due += s->due_in[(size_t)i * s->n_hours + k];
			}
			if (due > 0)
				s->errors[n++] = fabs(used - due) / due;
		}
	}
	return spread(s->errors, n).p95;
}

static double jain_index(const struct shares *s)
{
	double sum = 0, squares = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_accounts; i++) {
		double used = 0, due = 0;

		for (uint32_t h = 0; h < s->n_hours; h++) {
			used += s->used_in[(size_t)i * s->n_hours + h];
			due += s->due_in[(size_t)i * s->n_hours + h];
		}
		if (due <= 0)
			continue;
		n++;
		sum += used / due;
		squares += used / due * used / due;
	}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}

static void shares_done(struct shares *s)
{
	free(s->changes);
	free(s->wanted);
	free(s->used);
	free(s->due);
	free(s->used_in);
	free(s->due_in);
	free(s->errors);
}

static int measure_shares(const struct trace *t, const struct trace_log *l, int64_t from,
			  int64_t to, double capacity, struct trace_figures *out,
			  struct gpuq_err *err)
{
	struct shares s = { .by_user = t->queues.n == 1 };
	size_t cells;
	int rc = 0;

	s.n_accounts = s.by_user ? t->users.n : t->queues.n;
	s.n_hours = (uint32_t)((to - from + HOUR_US - 1) / HOUR_US);
	s.n_hours += s.n_hours == 0;
	cells = (size_t)s.n_accounts * s.n_hours;
	s.changes = calloc(2 * ((size_t)t->n_jobs + l->n_attempts), sizeof(*s.changes));
	s.wanted = calloc(s.n_accounts, sizeof(*s.wanted));
	s.used = calloc(s.n_accounts, sizeof(*s.used));
	s.due = calloc(s.n_accounts, sizeof(*s.due));
	s.used_in = calloc(cells, sizeof(*s.used_in));
	s.due_in = calloc(cells, sizeof(*s.due_in));
	s.errors = calloc(cells, sizeof(*s.errors));
	if (!s.changes || !s.wanted || !s.used || !s.due || !s.used_in || !s.due_in || !s.errors) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for %u accounts over %u hours",
			       s.n_accounts, s.n_hours);
	} else {
		list_changes(&s, t, l);
		sweep(&s, from, to, capacity);
		out->share_error_hour = window_error(&s, 1);
		out->share_error_day = window_error(&s, 24);
		out->share_error_week = window_error(&s, 168);
		out->jain = jain_index(&s);
	}
	shares_done(&s);
	return rc;
}

/* ---- waits and use ---- */

/* Return the longest wait in accounts that request, in total, no more than an equal part of the
 * capacity. An account that requests more waits longer by design where shares are fair. */
static double longest_inside(const struct trace *t, const double *wait, const double *asked,
			     double part)
{
	const bool by_user = t->queues.n == 1;
	double longest = 0;

	for (uint32_t i = 0; i < t->n_jobs; i++)
		if (asked[by_user ? t->jobs[i].user : t->jobs[i].queue] <= part &&
		    wait[i] > longest)
			longest = wait[i];
	return longest;
}

/* capacity: GPU-seconds of the time that the figures cover. */
static int measure_jobs(const struct trace *t, const struct trace_log *l, double bound_s,
			double capacity, struct trace_figures *out, struct gpuq_err *err)
{
	const bool by_user = t->queues.n == 1;
	const uint32_t n_accounts = by_user ? t->users.n : t->queues.n;
	double *wait = calloc(t->n_jobs, sizeof(*wait)), *bsld = calloc(t->n_jobs, sizeof(*bsld));
	double *response = calloc(t->n_jobs, sizeof(*response));
	double *sum = calloc(n_accounts, sizeof(*sum)), *count = calloc(n_accounts, sizeof(*count));
	double *asked = calloc(n_accounts, sizeof(*asked));
	double least = INFINITY, most = 0;
	int rc = 0;

	if (!wait || !bsld || !response || !sum || !count || !asked) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for the figures of %u jobs", t->n_jobs);
		goto out;
	}
	for (uint32_t i = 0; i < t->n_jobs; i++) {
		const struct trace_job *j = &t->jobs[i];
		const struct trace_attempt *a = &l->attempts[l->last_attempt[i]];
		const double duration = (double)j->duration_us / 1e6;
		const double least_s = duration > bound_s ? duration : bound_s;
		const uint32_t account = by_user ? j->user : j->queue;

		wait[i] = (double)(a->start_us - j->submit_us) / 1e6;
		response[i] = (double)(a->end_us - j->submit_us) / 1e6;
		bsld[i] = least_s > 0 ? response[i] / least_s : 1;
		if (bsld[i] < 1)
			bsld[i] = 1;
		sum[account] += bsld[i];
		count[account]++;
		asked[account] += duration * j->gpus;
		if (j->gpus < TRACE_BIG_GPUS)
			continue;
		out->n_big++;
		out->big_wait_s += wait[i];
	}
	for (uint32_t i = 0; i < n_accounts; i++) {
		if (count[i] == 0)
			continue;
		least = sum[i] / count[i] < least ? sum[i] / count[i] : least;
		most = sum[i] / count[i] > most ? sum[i] / count[i] : most;
	}
	out->bsld_ratio = most / least;
	if (out->n_big)
		out->big_wait_s /= out->n_big;
	out->max_wait_inside_s = longest_inside(t, wait, asked, capacity / n_accounts);
	out->wait_s = spread(wait, t->n_jobs);
	out->response_s = spread(response, t->n_jobs);
	out->bsld = spread(bsld, t->n_jobs);
out:
	free(wait);
	free(bsld);
	free(response);
	free(sum);
	free(count);
	free(asked);
	return rc;
}

int trace_figures(const struct trace *t, const struct trace_site *site, const struct trace_log *l,
		  int64_t bound_us, struct trace_figures *out, struct gpuq_err *err)
{
	const double capacity = (double)site->n_nodes * site->gpus_per_node;
	int64_t end = t->last_us, last_end = t->first_us;
	double busy = 0, all = 0, lost = 0;
	int rc;

	*out = (struct trace_figures){ .n_jobs = t->n_jobs, .preemptions = l->n_evictions };
	for (uint32_t i = 0; i < l->n_attempts; i++)
		if (l->attempts[i].end_us > last_end)
			last_end = l->attempts[i].end_us;
	if (end == t->first_us)
		end = last_end;
	for (uint32_t i = 0; i < l->n_attempts; i++) {
		const struct trace_attempt *a = &l->attempts[i];
		const double gpus = t->jobs[a->job].gpus;
		const int64_t until = a->end_us < end ? a->end_us : end;

		if (until > a->start_us)
			busy += gpus * (double)(until - a->start_us);
		all += gpus * (double)(a->end_us - a->start_us);
		if (a->evicted)
			lost += gpus * (double)(a->end_us - a->start_us);
	}
	out->utilisation = end > t->first_us ? busy / (capacity * (double)(end - t->first_us)) : 0;
	out->lost = all > 0 ? lost / all : 0;
	out->makespan_s = (double)(last_end - t->first_us) / 1e6;
	rc = measure_jobs(t, l, (double)bound_us / 1e6,
			  capacity * (double)(end - t->first_us) / 1e6, out, err);
	return rc < 0 ? rc : measure_shares(t, l, t->first_us, end, capacity, out, err);
}
