#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "gpuqd/sim/trace/trace_read.h"
#include "libgpuq/buf.h"

/* Reader of traces: comma-separated values after a line of column names; unknown columns are
 * skipped. */

#define FILE_BYTES_MAX (1u << 30)
#define COLUMNS_MAX 64
#define SECONDS_MAX INT64_C(1000000000000) /* some 30,000 years: sums stay far from overflow */
#define GPUS_MAX 1000000

enum column {
	C_JOB,
	C_SUBMIT,
	C_DURATION,
	C_GPUS,
	C_PROCS,
	C_QUEUE,
	C_USER,
	C_ESTIMATE,
	C_PREEMPTIBLE,
	N_COLUMNS
};
static const char *const column_names[N_COLUMNS] = { "job",  "submit_s",   "duration_s",
						     "gpus", "procs",      "queue",
						     "user", "estimate_s", "preemptible" };

struct field {
	char *text; /* NUL-terminated */
	uint32_t at; /* byte in its line, from 1 */
};

struct reader {
	const char *name;
	uint32_t line;
	struct field fields[COLUMNS_MAX];
	uint32_t n_fields;
	int where[N_COLUMNS]; /* number of the field; -1 = no such column */
	struct trace *t;
	uint32_t room;
	struct gpuq_err *err;
};

static int refuse(struct reader *r, uint32_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct reader *r, uint32_t at, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = gpuq_failv(r->err, GPUQ_EINVAL, fmt, ap);
	va_end(ap);
	gpuq_err_prefix(r->err, "%s:%u:%u", r->name, r->line, at);
	return rc;
}

static int read_all(const char *name, struct gpuq_buf *out, struct gpuq_err *err)
{
	const bool standard = strcmp(name, "-") == 0;
	gzFile f = standard ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(name, "rb");
	int rc = 0, n = 1, problem;

	if (!f)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", name,
				 errno ? strerror(errno) : "no memory");
	gzbuffer(f, 1u << 17);
	while (rc == 0 && n > 0) {
		rc = gpuq_buf_reserve(out, 1u << 18);
		if (rc < 0)
			break;
		n = gzread(f, out->data + out->len, 1u << 18);
		if (n > 0)
			out->len += (size_t)n;
	}
	if (rc < 0) {
		gpuq_fail(err, rc, "%s: larger than %u bytes", name, FILE_BYTES_MAX);
	} else if (n < 0 || (gzerror(f, &problem), problem == Z_BUF_ERROR)) {
		const char *text = gzerror(f, &problem);

		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", name,
			       problem == Z_ERRNO ? strerror(errno)
			       : *text            ? text
						  : "the compressed file ends early");
	}
	gzclose(f);
	return rc;
}

/* Split the next line, in place. A field may be quoted; "" is a quote. *text advances past the
 * line. */
static int split_line(struct reader *r, char **text, const char *end)
{
	char *p = *text, *line = p;

	r->line++;
	r->n_fields = 0;
	for (;;) {
		struct field f = { .text = p, .at = (uint32_t)(p - line) + 1 };
		char *to = p, stop;

		if (p < end && *p == '"') {
			for (p++; p < end && *p != '\n' && (*p != '"' || p[1] == '"'); p++) {
				p += *p == '"';
				*to++ = *p;
			}
			if (p >= end || *p != '"')
				return refuse(r, f.at, "the quote is not closed in its line");
			p++;
			if (p < end && !strchr(",\r\n", *p))
				return refuse(r, (uint32_t)(p - line) + 1,
					      "text behind a closing quote");
		} else {
			while (p < end && *p != ',' && *p != '\n')
				p++;
			to = p;
		}
		if (p < end && *p == '\r' && (p + 1 == end || p[1] == '\n'))
			p++;
		stop = p < end ? *p : '\n';
		if (to > f.text && stop == '\n' && to[-1] == '\r')
			to--;
		*to = '\0';
		if (r->n_fields == COLUMNS_MAX)
			return refuse(r, f.at, "more than %d columns", COLUMNS_MAX);
		r->fields[r->n_fields++] = f;
		p += p < end;
		if (stop == '\n') {
			*text = p;
			return 0;
		}
	}
}

static int read_header(struct reader *r)
{
	for (int c = 0; c < N_COLUMNS; c++)
		r->where[c] = -1;
	for (uint32_t i = 0; i < r->n_fields; i++) {
		for (int c = 0; c < N_COLUMNS; c++) {
			if (strcmp(r->fields[i].text, column_names[c]) != 0)
				continue;
			if (r->where[c] >= 0)
				return refuse(r, r->fields[i].at, "the column %s stands twice",
					      column_names[c]);
			r->where[c] = (int)i;
		}
	}
	for (int c = C_JOB; c <= C_DURATION; c++)
		if (r->where[c] < 0)
			return refuse(r, 1,
				      "no column %s; needed are job, submit_s, duration_s "
				      "and gpus or procs",
				      column_names[c]);
	if (r->where[C_GPUS] < 0 && r->where[C_PROCS] < 0)
		return refuse(r, 1, "no column gpus or procs");
	if (r->where[C_GPUS] >= 0 && r->where[C_PROCS] >= 0)
		return refuse(
			r, r->fields[r->where[C_PROCS]].at,
			"columns gpus and procs; only one of them can say how much a job requests");
	return 0;
}

static const struct field *field(const struct reader *r, enum column c)
{
	return r->where[c] < 0 ? NULL : &r->fields[r->where[c]];
}

/* Read seconds with up to six decimals, in microseconds. */
static int read_seconds(struct reader *r, enum column c, int64_t *out)
{
	const struct field *f = field(r, c);
	const char *p = f->text;
	int64_t whole = 0, part = 0, unit = GPUQ_US_PER_S;

	for (; *p >= '0' && *p <= '9' && whole < SECONDS_MAX; p++)
		whole = whole * 10 + (*p - '0');
	if (p != f->text && *p == '.') {
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
			unit /= 10;
			part += (*p - '0') * unit;
		}
		while (*p == '0')
			p++;
	}
	if (p == f->text || *p || whole >= SECONDS_MAX)
		return refuse(r, f->at + (uint32_t)(p - f->text),
			      "%s \"%s\": expected seconds, such as 90 or 90.5", column_names[c],
			      f->text);
	*out = whole * GPUQ_US_PER_S + part;
	return 0;
}

static int read_gpus(struct reader *r, uint32_t *out)
{
	const enum column c = r->where[C_GPUS] >= 0 ? C_GPUS : C_PROCS;
	const struct field *f = field(r, c);
	char *end;
	long n;

	errno = 0;
	n = strtol(f->text, &end, 10);
	if (end == f->text || *end || errno || n < 0 || n > GPUS_MAX)
		return refuse(r, f->at, "%s \"%s\": expected a whole number, 0 to %d",
			      column_names[c], f->text, GPUS_MAX);
	*out = (uint32_t)n;
	return 0;
}

/* Some traces write 1.0 for yes. */
static int read_preemptible(struct reader *r, bool *out)
{
	static const char *const no[] = { "0", "0.0", "false", "no" };
	static const char *const yes[] = { "1", "1.0", "true", "yes" };
	const struct field *f = field(r, C_PREEMPTIBLE);

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		if (strcmp(f->text, no[i]) && strcmp(f->text, yes[i]))
			continue;
		*out = strcmp(f->text, yes[i]) == 0;
		return 0;
	}
	return refuse(r, f->at, "preemptible \"%s\": expected 0 or 1", f->text);
}

static int read_name(struct reader *r, enum column c, struct intern *names, const char *absent,
		     uint32_t *out)
{
	const struct field *f = field(r, c);
	const char *name = f && *f->text ? f->text : absent;

	*out = intern(names, name, strlen(name) + 1, NULL);
	if (*out == INTERN_FAILED)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory for a trace");
	return 0;
}

static struct trace_job *new_job(struct reader *r)
{
	struct trace *t = r->t;

	if (t->n_jobs == r->room) {
		const uint32_t bigger = r->room ? 2 * r->room : 4096;
		struct trace_job *jobs = realloc(t->jobs, bigger * sizeof(*jobs));

		if (!jobs)
			return NULL;
		t->jobs = jobs;
		r->room = bigger;
	}
	t->jobs[t->n_jobs] = (struct trace_job){ .estimate_us = GPUQ_UNLIMITED };
	return &t->jobs[t->n_jobs];
}

static int read_job(struct reader *r)
{
	struct trace_job *j = new_job(r);
	const struct field *f;
	int rc;

	if (!j)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory for a trace");
	for (int c = 0; c < N_COLUMNS; c++)
		if (r->where[c] >= (int)r->n_fields)
			return refuse(r, r->fields[r->n_fields - 1].at,
				      "the line has %u columns; %s would be number %d", r->n_fields,
				      column_names[c], r->where[c] + 1);
	j->line = r->line;
	rc = read_gpus(r, &j->gpus);
	if (rc == 0)
		rc = read_seconds(r, C_SUBMIT, &j->submit_us);
	if (rc == 0)
		rc = read_seconds(r, C_DURATION, &j->duration_us);
	/* Empty or negative: no estimate, as in workload archives. */
	f = field(r, C_ESTIMATE);
	if (rc == 0 && f && *f->text && *f->text != '-')
		rc = read_seconds(r, C_ESTIMATE, &j->estimate_us);
	if (rc == 0 && field(r, C_PREEMPTIBLE))
		rc = read_preemptible(r, &j->preemptible);
	if (rc == 0 && j->gpus == 0) {
		r->t->n_dropped++;
		return 0;
	}
	if (rc == 0)
		rc = read_name(r, C_QUEUE, &r->t->queues, "default", &j->queue);
	if (rc == 0)
		rc = read_name(r, C_USER, &r->t->users, "user", &j->user);
	if (rc < 0)
		return rc;
	j->id = gpuq_arena_strdup(&r->t->arena, field(r, C_JOB)->text);
	if (!j->id)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory for a trace");
	r->t->n_jobs++;
	return 0;
}

static int cmp_arrival(const void *x, const void *y)
{
	const struct trace_job *a = x, *b = y;

	if (a->submit_us != b->submit_us)
		return a->submit_us < b->submit_us ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

int trace_read(const char *name, struct trace *t, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(FILE_BYTES_MAX);
	struct reader r = { .name = name, .t = t, .err = err };
	char *p;
	const char *end;
	int rc;

	*t = (struct trace){ .arena = GPUQ_ARENA_INIT(0) };
	t->queues.arena = t->users.arena = &t->arena;
	rc = read_all(name, &text, err);
	gpuq_buf_str(&text); /* the NUL after it lets the parser read one byte ahead */
	p = text.data;
	end = text.data + text.len;
	if (rc == 0 && (text.len == 0 || text.failed)) {
		r.line = 1;
		rc = text.failed
			     ? gpuq_fail(err, GPUQ_ENOMEM, "no memory for a trace")
			     : refuse(&r, 1, "the file is empty; expected a line of column names");
	}
	if (rc == 0)
		rc = split_line(&r, &p, end);
	if (rc == 0)
		rc = read_header(&r);
	while (rc == 0 && p < end) {
		rc = split_line(&r, &p, end);
		/* A blank line is skipped. */
		if (rc == 0 && (r.n_fields > 1 || *r.fields[0].text))
			rc = read_job(&r);
	}
	gpuq_buf_done(&text);
	if (rc == 0 && t->n_jobs == 0)
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s:%u:1: no job that requests a GPU", name,
			       r.line);
	if (rc < 0)
		return rc;
	t->has_estimates = r.where[C_ESTIMATE] >= 0;
	qsort(t->jobs, t->n_jobs, sizeof(*t->jobs), cmp_arrival);
	t->first_us = t->jobs[0].submit_us;
	t->last_us = t->jobs[t->n_jobs - 1].submit_us;
	return 0;
}

void trace_done(struct trace *t)
{
	free(t->jobs);
	intern_done(&t->queues);
	intern_done(&t->users);
	gpuq_arena_done(&t->arena);
	*t = (struct trace){ .arena = GPUQ_ARENA_INIT(0) };
}

const char *trace_queue(const struct trace *t, uint32_t queue)
{
	return t->queues.keys[queue].bytes;
}

/* Return the next number of a pseudo-random sequence that is the same on every machine. Source: S.
 * Vigna, "splitmix64", 2015. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int trace_estimate(struct trace *t, enum trace_estimates how, int64_t factor_milli,
		   struct gpuq_err *err)
{
	uint64_t state = 42;

	if (how == TRACE_FILE && !t->has_estimates)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--estimates file: the trace has no column estimate_s");
	for (uint32_t i = 0; how != TRACE_FILE && i < t->n_jobs; i++) {
		struct trace_job *j = &t->jobs[i];
		const uint64_t span = (uint64_t)(factor_milli - 1000) + 1;
		const int64_t milli =
			how == TRACE_EXACT ? 1000 : 1000 + (int64_t)(next_random(&state) % span);

		j->estimate_us =
			j->duration_us / 1000 * milli + j->duration_us % 1000 * milli / 1000;
	}
	return 0;
}

int trace_site_for(const struct trace *t, struct trace_site *site, struct gpuq_err *err)
{
	uint64_t gpus = 0;
	double work = 0, span = (double)(t->last_us - t->first_us);

	if (site->gpus_per_node == 0)
		site->gpus_per_node = 8;
	for (uint32_t i = 0; i < t->n_jobs; i++) {
		work += (double)t->jobs[i].gpus * (double)t->jobs[i].duration_us;
		gpus = t->jobs[i].gpus > gpus ? t->jobs[i].gpus : gpus;
	}
	if (site->n_nodes == 0) {
		const double load = span > 0 ? work / span / 0.9 : 0;

		gpus = load > (double)gpus ? (uint64_t)load : gpus;
		gpus = (gpus + site->gpus_per_node - 1) / site->gpus_per_node;
		site->n_nodes = gpus < TRACE_NODES_MAX ? (uint32_t)gpus : TRACE_NODES_MAX;
	}
	for (uint32_t i = 0; i < t->n_jobs; i++)
		if (t->jobs[i].gpus > (uint64_t)site->n_nodes * site->gpus_per_node)
			return gpuq_fail(
				err, GPUQ_EINVAL,
				"line %u: job %s requests %u GPUs, and %u nodes of %u have "
				"%" PRIu64 "; give more with --nodes or --gpus-per-node",
				t->jobs[i].line, t->jobs[i].id, t->jobs[i].gpus, site->n_nodes,
				site->gpus_per_node, (uint64_t)site->n_nodes * site->gpus_per_node);
	return 0;
}
