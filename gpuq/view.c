#include "gpuq/view.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libgpuq/names.h"
#include "libgpuq/pattern.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

#define JSON_VERSION 1

/* Keys whose integers are instants. `time` is one of an event, and in these objects: in a spec it is the
 * walltime. */
static bool is_instant(const char *key, const char *parent)
{
	static const char *const dated[] = { "",         "evictions", "last_failure",
					     "measured", "use",       "mig_layout" };
	const size_t n = strlen(key);

	if (strcmp(parent, "unmet_nodes") == 0)
		return false; /* its keys are names of pools */
	if (n > 5 && strcmp(key + n - 5, "_time") == 0)
		return true;
	if (strcmp(key, "since") == 0 || strcmp(key, "stale_since") == 0 ||
	    strcmp(key, "last_seen") == 0)
		return true;
	if (strcmp(key, "deadline") == 0)
		return strcmp(parent, "provisioning") == 0;
	for (size_t i = 0; strcmp(key, "time") == 0 && i < sizeof(dated) / sizeof(dated[0]); i++)
		if (strcmp(parent, dated[i]) == 0)
			return true;
	return false;
}

static struct gpuq_val *convert(struct gpuq_arena *a, const struct gpuq_val *v, const char *key,
				const char *parent)
{
	struct gpuq_val *out;
	char text[32];

	switch (v->type) {
	case GPUQ_INT:
		if (!is_instant(key, parent))
			break;
		gpuq_instant_print(v->i, text, sizeof(text));
		return gpuq_str(a, text);
	case GPUQ_LIST:
		out = gpuq_list(a);
		for (size_t i = 0; i < v->n; i++)
			gpuq_add(a, out, convert(a, v->items[i], "", key));
		return out;
	case GPUQ_MAP:
		if (strcmp(key, "spec") == 0)
			break; /* in gpuq's own form already */
		out = gpuq_map(a);
		for (size_t i = 0; i < v->n; i++)
			gpuq_put(a, out, v->pairs[i].key,
				 convert(a, v->pairs[i].val, v->pairs[i].key, *key ? key : parent));
		return out;
	default:
		break;
	}
	return gpuq_val_copy(a, v);
}

struct gpuq_val *view_json(struct gpuq_arena *a, const struct gpuq_val *obj)
{
	struct gpuq_val *out = gpuq_map(a);

	gpuq_put(a, out, "v", gpuq_int(a, JSON_VERSION));
	for (size_t i = 0; obj->type == GPUQ_MAP && i < obj->n; i++)
		if (strcmp(obj->pairs[i].key, "v") != 0)
			gpuq_put(a, out, obj->pairs[i].key,
				 convert(a, obj->pairs[i].val, obj->pairs[i].key, ""));
	return out;
}

void view_cell(struct gpuq_buf *out, const struct gpuq_val *v)
{
	if (!v || v->type == GPUQ_NULL ||
	    ((v->type == GPUQ_LIST || v->type == GPUQ_MAP) && !v->n)) {
		gpuq_buf_addc(out, '-');
		return;
	}
	switch (v->type) {
	case GPUQ_BOOL:
		gpuq_buf_adds(out, v->b ? "yes" : "no");
		break;
	case GPUQ_INT:
		gpuq_buf_addi(out, v->i);
		break;
	case GPUQ_REAL:
		gpuq_buf_printf(out, "%.6g", v->d);
		break;
	case GPUQ_STR:
		gpuq_buf_add(out, v->s, v->n);
		break;
	case GPUQ_LIST:
		for (size_t i = 0; i < v->n; i++) {
			if (i)
				gpuq_buf_addc(out, ',');
			view_cell(out, v->items[i]);
		}
		break;
	case GPUQ_MAP:
		for (size_t i = 0; i < v->n; i++) {
			gpuq_buf_printf(out, "%s%s=", i ? "," : "", v->pairs[i].key);
			view_cell(out, v->pairs[i].val);
		}
		break;
	default:
		gpuq_buf_addc(out, '?');
	}
}

double view_number(const struct gpuq_val *v, double dflt)
{
	if (v && v->type == GPUQ_INT)
		return (double)v->i;
	return v && v->type == GPUQ_REAL ? v->d : dflt;
}

static bool is_set(const struct gpuq_val *map, const char *key)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	return v && v->type != GPUQ_NULL;
}

void view_job_id(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const struct gpuq_val *id = gpuq_get(job, "id"), *index = gpuq_get(job, "array_index");
	const struct gpuq_val *array = gpuq_get(job, "array");
	const char *indices;
	int64_t throttle;

	if (!id || id->type == GPUQ_NULL) {
		gpuq_buf_addc(out, '-');
		return;
	}
	gpuq_buf_addi(out, id->type == GPUQ_INT ? id->i : 0);
	if (index && index->type == GPUQ_INT) {
		gpuq_buf_addc(out, '_');
		gpuq_buf_addi(out, index->i);
		return;
	}
	if (!array || array->type != GPUQ_MAP)
		return;
	indices = gpuq_get_str(array, "waiting", gpuq_get_str(array, "indices", ""));
	if (!*indices)
		return;
	throttle = gpuq_get_int(array, "throttle", 0);
	gpuq_buf_printf(out, "_[%s", indices);
	if (throttle > 0)
		gpuq_buf_printf(out, "%%%" PRId64, throttle);
	gpuq_buf_addc(out, ']');
}

int view_job_state(const struct gpuq_val *job)
{
	return gpuq_job_state_parse(gpuq_get_str(job, "state", ""));
}

bool view_job_ended(const struct gpuq_val *job)
{
	const int s = view_job_state(job);

	return s >= 0 && gpuq_job_state_ended((enum gpuq_job_state)s);
}

bool view_job_started(const struct gpuq_val *job)
{
	const int s = view_job_state(job);

	return s == GPUQ_JOB_RUNNING || s == GPUQ_JOB_COMPLETING || s == GPUQ_JOB_COMPLETED ||
	       is_set(job, "start_time");
}

int64_t view_job_elapsed_us(const struct gpuq_val *job, int64_t now_us)
{
	const int64_t start_us = gpuq_get_int(job, "start_time", 0);
	const int64_t end_us = start_us > 0 ? gpuq_get_int(job, "end_time", now_us) : 0;

	return end_us > start_us ? end_us - start_us : 0;
}

int view_natural(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			const size_t za = strspn(a, "0"), zb = strspn(b, "0");
			const size_t na = strspn(a + za, "0123456789");
			const size_t nb = strspn(b + zb, "0123456789");
			int d;

			if (na != nb)
				return na < nb ? -1 : 1;
			d = strncmp(a + za, b + zb, na);
			if (d)
				return d;
			if (za != zb)
				return za < zb ? -1 : 1;
			a += za + na;
			b += zb + nb;
			continue;
		}
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		a++;
		b++;
	}
	return *a ? 1 : *b ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
	return view_natural(*(const char *const *)a, *(const char *const *)b);
}

/* Where the last run of digits of a name is, [*from, *to). */
static bool last_digits(const char *name, size_t *from, size_t *to)
{
	size_t n = strlen(name);

	while (n > 0 && !isdigit((unsigned char)name[n - 1]))
		n--;
	*to = n;
	while (n > 0 && isdigit((unsigned char)name[n - 1]))
		n--;
	*from = n;
	/* Longer numbers are no counters, and would not fit below. */
	return *to > *from && *to - *from < 18;
}

/* b follows a in a run: same text around, same width (or none padded), number + 1. */
static bool follows(const char *a, const char *b)
{
	size_t af, at, bf, bt;

	if (!last_digits(a, &af, &at) || !last_digits(b, &bf, &bt) || af != bf)
		return false;
	if (strncmp(a, b, af) != 0 || strcmp(a + at, b + bt) != 0)
		return false;
	if (at - af != bt - bf && (a[af] == '0' || b[bf] == '0'))
		return false;
	return strtoll(b + bf, NULL, 10) == strtoll(a + af, NULL, 10) + 1;
}

static bool same_frame(const char *a, const char *b)
{
	size_t af, at, bf, bt;

	return last_digits(a, &af, &at) && last_digits(b, &bf, &bt) && af == bf &&
	       strncmp(a, b, af) == 0 && strcmp(a + at, b + bt) == 0;
}

size_t view_fold(struct gpuq_buf *out, const char **names, size_t n)
{
	size_t kept = 0, i = 0, from, to, end, last;

	if (n == 0)
		return 0;
	qsort(names, n, sizeof(*names), by_name);
	for (size_t k = 0; k < n; k++)
		if (kept == 0 || strcmp(names[kept - 1], names[k]) != 0)
			names[kept++] = names[k];
	while (i < kept) {
		if (i)
			gpuq_buf_addc(out, ',');
		for (end = i; end + 1 < kept && same_frame(names[i], names[end + 1]); end++)
			;
		if (end == i) {
			gpuq_buf_adds(out, names[i++]);
			continue;
		}
		last_digits(names[i], &from, &to);
		gpuq_buf_add(out, names[i], from);
		gpuq_buf_addc(out, '[');
		for (size_t k = i; k <= end; k = last + 1) {
			for (last = k; last < end && follows(names[last], names[last + 1]); last++)
				;
			if (k > i)
				gpuq_buf_addc(out, ',');
			last_digits(names[k], &from, &to);
			gpuq_buf_add(out, names[k] + from, to - from);
			if (last == k)
				continue;
			last_digits(names[last], &from, &to);
			gpuq_buf_addc(out, '-');
			gpuq_buf_add(out, names[last] + from, to - from);
		}
		last_digits(names[end], &from, &to);
		gpuq_buf_printf(out, "]%s", names[end] + to);
		i = end + 1;
	}
	return kept;
}

size_t view_pods(const struct gpuq_val *job)
{
	const struct gpuq_val *list = gpuq_get(job, "pods.node");

	list = list ? list : gpuq_get(job, "pods");
	return list && list->type == GPUQ_LIST ? list->n : 0;
}

const char *view_pod_node(const struct gpuq_val *job, size_t i)
{
	const struct gpuq_val *nodes = gpuq_get(job, "pods.node");

	if (!nodes)
		return gpuq_get_str(gpuq_get(job, "pods")->items[i], "node", "");
	return nodes->items[i]->type == GPUQ_STR ? nodes->items[i]->s : "";
}

size_t view_job_nodes(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const size_t n_pods = view_pods(job);
	const char **names;
	size_t n = 0, kept;

	if (n_pods == 0)
		return 0;
	names = calloc(n_pods, sizeof(*names));
	if (!names) {
		out->failed = true;
		return 0;
	}
	for (size_t i = 0; i < n_pods; i++) {
		const char *node = view_pod_node(job, i);

		if (*node)
			names[n++] = node;
	}
	kept = view_fold(out, names, n);
	free(names);
	return kept;
}

/* " (ImagePullBackOff)": what keeps its pods from running. */
static void start_trouble(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const struct gpuq_val *objects = gpuq_get(job, "reasons.object");
	const struct gpuq_val *reasons = gpuq_get(job, "reasons");
	const char *object = "";

	if (objects && objects->type == GPUQ_LIST && objects->n &&
	    objects->items[0]->type == GPUQ_STR)
		object = objects->items[0]->s;
	else if (reasons && reasons->type == GPUQ_LIST && reasons->n)
		object = gpuq_get_str(reasons->items[0], "object", "");
	if (*object)
		gpuq_buf_printf(out, " (%s)", object);
}

void view_job_place(struct gpuq_buf *out, const struct gpuq_val *job)
{
	const int s = view_job_state(job);
	const bool waiting = s == GPUQ_JOB_PENDING || s == GPUQ_JOB_PROVISIONING;
	const char *reason = gpuq_get_str(job, "reason", "");

	if (!waiting && view_job_nodes(out, job) > 0) {
		if (s == GPUQ_JOB_STARTING)
			start_trouble(out, job);
		return;
	}
	if (*reason) {
		gpuq_buf_addc(out, '(');
		gpuq_buf_adds(out, reason);
		gpuq_buf_addc(out, ')');
	} else if (waiting) {
		gpuq_buf_adds(out, "(None)");
	}
}

void view_job_file(struct gpuq_buf *out, const struct gpuq_val *job, const char *key)
{
	const char *path = gpuq_get_str(job, key, NULL);
	const struct pattern_vars v = {
		.job = (uint32_t)gpuq_get_int(job, "id", 0),
		.array_index = gpuq_get_int(job, "array_index", -1),
		.number = (uint32_t)gpuq_get_int(job, "element_id", 0),
		.name = gpuq_get_str(job, "name", ""),
		.user = gpuq_get_str(job, "user", ""),
		.node = view_pods(job) ? view_pod_node(job, 0) : "%N",
	};
	const struct gpuq_val *array = gpuq_get(job, "array");

	if (!path)
		gpuq_buf_addc(out, '-');
	else if (v.job == 0 || (v.array_index < 0 && array && array->type == GPUQ_MAP))
		gpuq_buf_adds(out, path);
	else
		pattern_expand(path, &v, out);
}

void view_mib(struct gpuq_buf *out, const struct gpuq_val *mib)
{
	char text[32];

	if (!mib || mib->type != GPUQ_INT || mib->i < 0 || mib->i > INT64_MAX >> 20) {
		gpuq_buf_addc(out, '-');
		return;
	}
	gpuq_bytes_print(mib->i << 20, text, sizeof(text));
	gpuq_buf_adds(out, text);
}

void view_free(struct gpuq_buf *out, const char *before, const char *name, const struct gpuq_val *v,
	       const char *all)
{
	const int64_t n[] = { gpuq_get_int(v, "free", 0), gpuq_get_int(v, all, 0) };
	char text[2][32];

	for (int i = 0; i < 2; i++)
		if (gpuq_resource_is_bytes(name))
			gpuq_bytes_print(n[i] >> 20 << 20, text[i], sizeof(text[i]));
		else
			snprintf(text[i], sizeof(text[i]), "%" PRId64, n[i]);
	gpuq_buf_printf(out, "%s%s %s/%s", before, name, text[0], text[1]);
}

void view_time(struct gpuq_buf *out, const struct gpuq_val *us)
{
	struct tm tm;
	char text[32];
	time_t s;

	if (!us || us->type != GPUQ_INT) {
		gpuq_buf_addc(out, '-');
		return;
	}
	s = (time_t)(us->i / GPUQ_US_PER_S);
	if (!localtime_r(&s, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, sizeof(text), "?");
	gpuq_buf_adds(out, text);
}

void view_money(struct gpuq_buf *out, const struct gpuq_val *row)
{
	const char *currency = gpuq_get_str(row, "currency", "");

	if (view_number(gpuq_get(row, "cost"), -1) < 0)
		gpuq_buf_addc(out, '-');
	else
		gpuq_buf_printf(out, "%.2f%s%s", view_number(gpuq_get(row, "cost"), 0),
				*currency ? " " : "", currency);
}

int64_t view_used(const struct gpuq_val *job, const char *key)
{
	return gpuq_get_int(gpuq_get(job, "used"), key, -1);
}

int64_t view_used_cpu_ms(const struct gpuq_val *job)
{
	const int64_t user = view_used(job, "user_ms"), system = view_used(job, "system_ms");

	/* An older gpuqd has no sum. */
	return user < 0 || system < 0 ? view_used(job, "cpu_ms") : user + system;
}
