#include "gpuqd/sim/trace/trace.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/sim/trace/trace_core.h"
#include "gpuqd/sim/trace/trace_figures.h"
#include "gpuqd/sim/trace/trace_peers.h"
#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* gpuq-sim trace: options, and the figures as text. */

static const char usage[] =
	"usage: gpuq-sim trace [options] FILE\n"
	"\n"
	"Replay a trace of jobs (comma-separated values, also gzipped; - is standard input)\n"
	"in virtual time and print pending times, slowdowns, utilisation and shares.\n"
	"\n"
	"  --nodes N            nodes (default: enough for a load of 90 %)\n"
	"  --gpus-per-node G    GPUs of each node (default 8)\n"
	"  --policy NAME        default, or for comparison fifo, easy, fair-easy\n"
	"  --estimates HOW      time limits of jobs: exact, file (column estimate_s),\n"
	"                       or xF: too long by a factor between 1 and F (default exact)\n"
	"  --bound TIME         of the bounded slowdown (default 10s)\n"
	"  --jobs-out OUT.csv   write a line for every attempt of every job\n"
	"  --json               print one object\n"
	"  --help               print this\n";

static const struct {
	const char *name;
	const struct trace_policy *policy;
	int variant;
} policies[] = {
	{ "default", &trace_core, 0 },
	{ "fifo", &trace_peers, TRACE_FIFO },
	{ "easy", &trace_peers, TRACE_EASY },
	{ "fair-easy", &trace_peers, TRACE_FAIR_EASY },
};
#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))

struct options {
	struct trace_site site;
	size_t policy;
	enum trace_estimates estimates;
	int64_t factor_milli, bound_us;
	const char *file, *jobs_out, *estimates_text;
	bool json, help;
};

static int read_count(const char *option, const char *text, uint32_t max, uint32_t *out,
		      struct gpuq_err *err)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n == 0 || n > max)
		return gpuq_fail(err, GPUQ_EINVAL, "%s %s: expected a number, 1 to %u", option,
				 text, max);
	*out = (uint32_t)n;
	return 0;
}

static int read_policy(const char *text, size_t *out, struct gpuq_err *err)
{
	for (size_t i = 0; i < N_POLICIES; i++) {
		if (strcmp(text, policies[i].name) != 0)
			continue;
		*out = i;
		return 0;
	}
	return gpuq_fail(err, GPUQ_EINVAL,
			 "--policy %s: there are default, fifo, easy and fair-easy", text);
}

static int read_estimates(const char *text, struct options *o, struct gpuq_err *err)
{
	struct gpuq_err ignored;

	o->estimates_text = text;
	o->estimates = strcmp(text, "exact") == 0  ? TRACE_EXACT
		       : strcmp(text, "file") == 0 ? TRACE_FILE
						   : TRACE_FACTOR;
	if (o->estimates != TRACE_FACTOR)
		return 0;
	if (*text != 'x' || text[1] < '0' || text[1] > '9' ||
	    gpuq_milli_parse(text + 1, &o->factor_milli, &ignored) < 0 || o->factor_milli < 1000 ||
	    o->factor_milli > 1000000)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--estimates %s: expected exact, file, or x and a factor from 1 "
				 "to 1000, such as x5",
				 text);
	return 0;
}

static int read_bound(const char *text, int64_t *out, struct gpuq_err *err)
{
	int64_t us;

	if (gpuq_duration_parse(text, &us, err) < 0 || us == GPUQ_UNLIMITED)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--bound %s: expected a time, such as 10s or 10m", text);
	*out = us;
	return 0;
}

static int read_options(int argc, char **argv, struct options *o, struct gpuq_err *err)
{
	enum { NODES = 256, GPUS, POLICY, ESTIMATES, BOUND, JOBS_OUT, JSON, HELP };
	static const struct option longs[] = {
		{ "nodes", required_argument, NULL, NODES },
		{ "gpus-per-node", required_argument, NULL, GPUS },
		{ "policy", required_argument, NULL, POLICY },
		{ "estimates", required_argument, NULL, ESTIMATES },
		{ "bound", required_argument, NULL, BOUND },
		{ "jobs-out", required_argument, NULL, JOBS_OUT },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	int c, rc = 0;

	*o = (struct options){ .bound_us = 10 * GPUQ_US_PER_S, .estimates_text = "exact" };
	optind = 0;
	opterr = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case NODES:
			rc = read_count("--nodes", optarg, TRACE_NODES_MAX, &o->site.n_nodes, err);
			break;
		case GPUS:
			rc = read_count("--gpus-per-node", optarg, 1024, &o->site.gpus_per_node,
					err);
			break;
		case POLICY:
			rc = read_policy(optarg, &o->policy, err);
			break;
		case ESTIMATES:
			rc = read_estimates(optarg, o, err);
			break;
		case BOUND:
			rc = read_bound(optarg, &o->bound_us, err);
			break;
		case JOBS_OUT:
			o->jobs_out = optarg;
			break;
		case JSON:
			o->json = true;
			break;
		case HELP:
			o->help = true;
			return 0;
		default:
			rc = gpuq_fail(err, GPUQ_EINVAL,
				       "%s: no such option, or its value is missing; see "
				       "gpuq-sim trace --help",
				       argv[optind - 1]);
		}
	}
	if (rc == 0 && argc - optind != 1)
		rc = gpuq_fail(err, GPUQ_EINVAL, "one FILE is needed; see gpuq-sim trace --help");
	if (rc == 0)
		o->file = argv[optind];
	return rc;
}

/* ---- progress ---- */

static bool progress_shown;

static void show_progress(const struct trace_log *l, int64_t now_us)
{
	static time_t last;
	static uint32_t calls;
	const time_t now = calls++ % 256 == 0 ? time(NULL) : last;

	if (last == 0)
		last = now;
	if (now == last)
		return;
	last = now;
	progress_shown = true;
	fprintf(stderr, "\r%u of %u jobs, day %" PRId64 " ", l->n_completed, l->trace->n_jobs,
		(now_us - l->trace->first_us) / (86400 * GPUQ_US_PER_S));
	fflush(stderr);
}

static void end_progress(void)
{
	if (progress_shown)
		fprintf(stderr, "\r\033[K");
}

/* ---- output ---- */

/* Write seconds with as many decimals as needed. */
static void put_seconds(FILE *f, int64_t us)
{
	fprintf(f, "%" PRId64, us / GPUQ_US_PER_S);
	if (us % GPUQ_US_PER_S)
		fprintf(f, ".%06" PRId64, us % GPUQ_US_PER_S);
}

static void put_id(FILE *f, const char *id)
{
	if (!strpbrk(id, ",\"\r\n")) {
		fputs(id, f);
		return;
	}
	fputc('"', f);
	for (; *id; id++)
		fprintf(f, *id == '"' ? "\"\"" : "%c", *id);
	fputc('"', f);
}

static void write_jobs(FILE *f, const struct trace_log *l)
{
	fputs("id,attempt,submit,start,end,nodes,outcome\n", f);
	for (uint32_t i = 0; i < l->n_attempts; i++) {
		const struct trace_attempt *a = &l->attempts[i];
		const struct trace_job *j = &l->trace->jobs[a->job];

		put_id(f, j->id);
		fprintf(f, ",%u,", a->number);
		put_seconds(f, j->submit_us);
		fputc(',', f);
		put_seconds(f, a->start_us);
		fputc(',', f);
		put_seconds(f, a->end_us);
		for (uint32_t k = 0; k < a->n_places; k++) {
			const struct trace_place *p = &l->places[a->place_first + k];

			fprintf(f, "%cn%u:%u", k ? ';' : ',', p->node + 1, p->gpus);
		}
		fprintf(f, ",%s\n", a->evicted ? "evicted" : "completed");
	}
}

/* Close the file and remove it if it could not be written completely. */
static int finish_jobs(const char *name, FILE *f, int rc, struct gpuq_err *err)
{
	const bool failed = ferror(f);

	errno = 0;
	if ((fclose(f) != 0 || failed) && rc == 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", name,
			       errno ? strerror(errno) : "could not be written");
	if (rc < 0 && strncmp(name, "/dev/", 5) != 0)
		unlink(name);
	return rc;
}

static int print_json(const struct trace_figures *f, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf line = GPUQ_BUF_INIT;
	struct gpuq_val *out = gpuq_map(&a);
	const struct {
		const char *name;
		double value;
	} reals[] = {
		{ "mean_wait_s", f->wait_s.mean },
		{ "p95_wait_s", f->wait_s.p95 },
		{ "max_wait_s", f->wait_s.max },
		{ "max_wait_inside_s", f->max_wait_inside_s },
		{ "mean_bsld", f->bsld.mean },
		{ "utilisation", f->utilisation },
		{ "big_job_mean_wait_s", f->big_wait_s },
		{ "share_error", f->share_error_day },
		{ "jain", f->jain },
		{ "makespan_s", f->makespan_s },
	};
	int rc = 0;

	gpuq_put(&a, out, "jobs", gpuq_int(&a, f->n_jobs));
	for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
		gpuq_put(&a, out, reals[i].name, gpuq_real(&a, reals[i].value));
	gpuq_put(&a, out, "preemptions", gpuq_int(&a, f->preemptions));
	gpuq_json_write(&line, out, 0);
	if (line.failed || line.len == 0)
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for the figures");
	else
		printf("%s\n", gpuq_buf_str(&line));
	gpuq_buf_done(&line);
	gpuq_arena_done(&a);
	return rc;
}

/* Print a duration in short: "55 s", "12.5 min", "7.3 h", "12.1 d". */
static const char *at_a_glance(double s, char *out, size_t room)
{
	static const struct {
		double from, unit;
		const char *name;
	} units[] = {
		{ 172800, 86400, "d" }, { 7200, 3600, "h" }, { 120, 60, "min" }, { 0, 1, "s" }
	};
	size_t i = 0;

	while (s < units[i].from)
		i++;
	snprintf(out, room, "%.4g %s", s / units[i].unit, units[i].name);
	return out;
}

static void print_times(const char *what, const struct trace_spread *s)
{
	char text[6][24];

	printf("%-19s %-10s %-10s %-10s %-10s %-10s %s\n", what,
	       at_a_glance(s->mean, text[0], sizeof(text[0])),
	       at_a_glance(s->p50, text[1], sizeof(text[1])),
	       at_a_glance(s->p90, text[2], sizeof(text[2])),
	       at_a_glance(s->p95, text[3], sizeof(text[3])),
	       at_a_glance(s->p99, text[4], sizeof(text[4])),
	       at_a_glance(s->max, text[5], sizeof(text[5])));
}

static void print_text(const struct options *o, const struct trace *t,
		       const struct trace_figures *f)
{
	char big[24], bound[32];

	gpuq_duration_print(o->bound_us, bound, sizeof(bound));
	printf("%u jobs of %u queues and %u users on %u nodes of %u GPUs; policy %s, estimates "
	       "%s\n",
	       f->n_jobs, t->queues.n, t->users.n, o->site.n_nodes, o->site.gpus_per_node,
	       policies[o->policy].name, o->estimates_text);
	if (t->n_dropped)
		printf("%u jobs that request no GPU were left out\n", t->n_dropped);
	printf("\n%-19s %-10s %-10s %-10s %-10s %-10s %s\n", "", "mean", "p50", "p90", "p95", "p99",
	       "max");
	print_times("wait", &f->wait_s);
	print_times("response", &f->response_s);
	printf("%-19s %-10.4g %-10.4g %-10.4g %-10.4g %-10.4g %.4g\n", "bounded slowdown",
	       f->bsld.mean, f->bsld.p50, f->bsld.p90, f->bsld.p95, f->bsld.p99, f->bsld.max);
	printf("\n%-27s %s (%u jobs)\n", "mean wait of 8 and more",
	       at_a_glance(f->big_wait_s, big, sizeof(big)), f->n_big);
	printf("%-27s %s\n", "longest wait inside shares",
	       at_a_glance(f->max_wait_inside_s, big, sizeof(big)));
	printf("%-27s %.2f %%\n", "utilisation", f->utilisation * 100);
	printf("%-27s %s\n", "makespan", at_a_glance(f->makespan_s, big, sizeof(big)));
	printf("%-27s %u (%.2f %% of GPU time lost)\n", "preemptions", f->preemptions,
	       f->lost * 100);
	printf("%-27s %.3f, %.3f, %.3f\n", "share error of 1h, 1d, 7d", f->share_error_hour,
	       f->share_error_day, f->share_error_week);
	printf("%-27s %.4f\n", "Jain's index of shares", f->jain);
	printf("%-27s %.3f (slowdowns are bounded at %s)\n", "worst to best account", f->bsld_ratio,
	       bound);
}

int trace_main(int argc, char **argv)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct trace_figures figures;
	struct trace_log log = { 0 };
	struct trace t = { 0 };
	struct options o;
	FILE *jobs = NULL;
	int rc = read_options(argc, argv, &o, &err);

	if (rc == 0 && o.help)
		return fputs(usage, stdout) < 0;
	if (rc < 0) {
		fprintf(stderr, "gpuq-sim: %s\n", err.text);
		return 2;
	}
	rc = trace_read(o.file, &t, &err);
	if (rc == 0)
		rc = trace_estimate(&t, o.estimates, o.factor_milli, &err);
	if (rc == 0 && (rc = trace_site_for(&t, &o.site, &err)) < 0)
		gpuq_err_prefix(&err, "%s", o.file);
	if (rc == 0)
		rc = trace_log_init(&log, &t, &err);
	/* Opened before the replay, so that an error shows early. */
	if (rc == 0 && o.jobs_out && !(jobs = fopen(o.jobs_out, "w")))
		rc = gpuq_fail(&err, GPUQ_EIO, "%s: %s", o.jobs_out, strerror(errno));
	if (rc == 0)
		rc = trace_replay(&t, &o.site, policies[o.policy].policy,
				  policies[o.policy].variant,
				  isatty(STDERR_FILENO) ? show_progress : NULL, &log, &err);
	end_progress();
	if (rc == 0)
		rc = trace_figures(&t, &o.site, &log, o.bound_us, &figures, &err);
	if (rc == 0 && jobs)
		write_jobs(jobs, &log);
	if (jobs)
		rc = finish_jobs(o.jobs_out, jobs, rc, &err);
	if (rc == 0 && o.json)
		rc = print_json(&figures, &err);
	else if (rc == 0)
		print_text(&o, &t, &figures);
	if (rc == 0 && fflush(stdout) != 0)
		rc = gpuq_fail(&err, GPUQ_EIO, "standard output: %s", strerror(errno));
	if (rc < 0)
		fprintf(stderr, "gpuq-sim: %s\n", err.text);
	trace_log_done(&log);
	trace_done(&t);
	return rc < 0;
}
