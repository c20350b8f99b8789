#include "gpuqd/cluster/kube/metrics_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/base/fnv.h"

/* A metric tells how busy a device is, where full is all of it; how much memory of it is taken; or an amount of
 * a container, in units of full. */
static const struct metric {
	const char *name;
	enum { BUSY, TAKEN, OF_POD } kind;
	double full;
	enum use_what what;
} metrics[] = {
	{ "DCGM_FI_DEV_GPU_UTIL", BUSY, 100, 0 },
	{ "DCGM_FI_PROF_GR_ENGINE_ACTIVE", BUSY, 1, 0 },
	{ "DCGM_FI_DEV_FB_USED", TAKEN, 1048576, 0 },
	{ "container_cpu_usage_seconds_total", OF_POD, 1e6, USE_CPU },
	{ "container_cpu_user_seconds_total", OF_POD, 1e6, USE_CPU_USER },
	{ "container_cpu_system_seconds_total", OF_POD, 1e6, USE_CPU_SYSTEM },
	{ "container_memory_working_set_bytes", OF_POD, 1, USE_MEMORY },
	{ "container_fs_reads_bytes_total", OF_POD, 1, USE_READ },
	{ "container_fs_writes_bytes_total", OF_POD, 1, USE_WRITTEN },
};

/* Labels that tell whose device it is. Prometheus renames those of the exporter that it has
 * of its own, the exporter's pod and namespace. */
enum label {
	L_POD,
	L_EXPORTED_POD,
	L_UUID,
	L_GPU,
	L_INSTANCE,
	L_NAMESPACE,
	L_EXPORTED_NAMESPACE,
	L_CONTAINER,
	L_EXPORTED_CONTAINER,
	L_DEVICE,
	L_CPU,
	N_LABELS
};
static const char *const label_names[N_LABELS] = {
	[L_POD] = "pod",
	[L_EXPORTED_POD] = "exported_pod",
	[L_UUID] = "UUID",
	[L_GPU] = "gpu",
	[L_INSTANCE] = "GPU_I_ID",
	[L_NAMESPACE] = "namespace",
	[L_EXPORTED_NAMESPACE] = "exported_namespace",
	[L_CONTAINER] = "container",
	[L_EXPORTED_CONTAINER] = "exported_container",
	[L_DEVICE] = "device",
	[L_CPU] = "cpu",
};

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == ':';
}

static char *blanks(char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* The text of a label behind its quote, without escapes, in its place. Returns what is
 * behind the closing quote; NULL: there is none. */
static char *unquote(char *p, char **out)
{
	char *to = *out = p;

	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			*to++ = *++p == 'n' ? '\n' : *p;
		else
			*to++ = *p;
	}
	if (!*p)
		return NULL;
	*to = '\0';
	return p + 1;
}

/* {name="value",...}; NULL: it is none. */
static char *read_labels(char *p, char *values[N_LABELS])
{
	for (p = blanks(p + 1); *p != '}'; p = blanks(p)) {
		char *name = p, *value;
		size_t n;

		while (is_name(*p))
			p++;
		n = (size_t)(p - name);
		p = blanks(p);
		if (n == 0 || *p != '=')
			return NULL;
		p = blanks(p + 1);
		p = *p == '"' ? unquote(p + 1, &value) : NULL;
		if (!p)
			return NULL;
		for (int l = 0; l < N_LABELS; l++)
			if (strlen(label_names[l]) == n && strncmp(name, label_names[l], n) == 0)
				values[l] = value;
		p = blanks(p);
		if (*p == ',')
			p++;
		else if (*p != '}')
			return NULL;
	}
	return p + 1;
}

static bool read_number(char **p, double *out)
{
	char *from = blanks(*p), *end;

	*out = strtod(from, &end);
	if (end == from || (*end && *end != ' ' && *end != '\t'))
		return false;
	*p = end;
	return true;
}

/* Thousandths of all of it; the least that it does is not nothing. */
static int32_t milli_of(double value, double full)
{
	const double part = value / full * 1000;

	if (!isfinite(value) || value < 0 || value > full)
		return -1; /* DCGM's blanks are huge */
	return part > 0 && part < 1 ? 1 : (int32_t)part;
}

static int32_t whole(const char *s, int32_t dflt)
{
	char *end;
	const long n = s ? strtol(s, &end, 10) : -1;

	return s && *s && !*end && n >= 0 && n < 65536 ? (int32_t)n : dflt;
}

/* Metrics of Prometheus have milliseconds behind the value, those of OpenMetrics seconds. */
static bool is_old(const struct metrics_text *t, char *p)
{
	const double now_s = (double)t->now_us / 1e6;
	double at;

	if (!*blanks(p) || *blanks(p) == '#' || !read_number(&p, &at) || !isfinite(at))
		return false;
	if (at > 1e11)
		at /= 1000;
	return at < now_s - (double)METRICS_OLD_US / 1e6;
}

/* Return the label that the exporter set; "" where there is none. */
static const char *of_exporter(char *const values[N_LABELS], enum label exported, enum label own)
{
	return values[exported] ? values[exported] : values[own] ? values[own] : "";
}

static uint64_t add_label(uint64_t h, const char *value)
{
	return gpuq_fnv(h, value ? value : "", value ? strlen(value) + 1 : 1);
}

/* Report the amount of a container. Lines of whole pods repeat those of their containers. */
static void tell_amount(const struct metrics_text *t, const struct metric *m,
			char *const values[N_LABELS], double value)
{
	const char *container = of_exporter(values, L_EXPORTED_CONTAINER, L_CONTAINER);
	struct amount_fact f = { .pod = of_exporter(values, L_EXPORTED_POD, L_POD),
				 .namespace_ =
					 of_exporter(values, L_EXPORTED_NAMESPACE, L_NAMESPACE),
				 .what = m->what };

	if (!t->amount || !*f.pod || !*container || strcmp(container, "POD") == 0 ||
	    !isfinite(value) || value < 0 || value * m->full > 9e18)
		return;
	f.part = add_label(add_label(add_label(GPUQ_FNV_START, container), values[L_DEVICE]),
			   values[L_CPU]);
	f.value = (int64_t)(value * m->full);
	t->amount(t->arg, &f);
}

static void read_line(struct metrics_text *t, char *p)
{
	char *values[N_LABELS] = { NULL }, *name = p = blanks(p);
	struct use_fact f = { .pod = "", .node = "", .uuid = "", .index = -1, .milli = -1 };
	size_t n, m = 0;
	double value;

	while (is_name(*p))
		p++;
	n = (size_t)(p - name);
	while (m < sizeof(metrics) / sizeof(metrics[0]) &&
	       (strlen(metrics[m].name) != n || strncmp(name, metrics[m].name, n) != 0))
		m++;
	if (m == sizeof(metrics) / sizeof(metrics[0]))
		return;
	p = blanks(p);
	if (*p != '{' || !(p = read_labels(p, values)) || !read_number(&p, &value))
		return; /* without a device to attribute it to */
	if (metrics[m].kind == OF_POD) {
		if (!is_old(t, p))
			tell_amount(t, &metrics[m], values, value);
		return;
	}
	f.uuid = values[L_UUID] ? values[L_UUID] : "";
	f.index = whole(values[L_GPU], -1);
	if ((!*f.uuid && f.index < 0) || !t->fn)
		return;
	f.pod = of_exporter(values, L_EXPORTED_POD, L_POD);
	f.part = (uint32_t)(whole(values[L_INSTANCE], -1) + 1);
	if (metrics[m].kind == BUSY)
		f.milli = is_old(t, p) ? -1 : milli_of(value, metrics[m].full);
	else if (is_old(t, p) || !isfinite(value) || value < 1 || value > 1e9)
		return; /* DCGM's blanks are huge */
	else
		f.memory_bytes = (int64_t)(value * metrics[m].full);
	t->fn(t->arg, &f);
}

static void end_line(struct metrics_text *t)
{
	if (!t->skip && t->line.len && gpuq_buf_addc(&t->line, '\0') == 0)
		read_line(t, t->line.data);
	gpuq_buf_clear(&t->line);
	t->skip = false;
}

void metrics_text_init(struct metrics_text *t, int64_t now_us, metrics_fn fn, void *arg)
{
	*t = (struct metrics_text){ .fn = fn,
				    .arg = arg,
				    .now_us = now_us,
				    .line = GPUQ_BUF_INIT_MAX(METRICS_LINE_BYTES_MAX + 1) };
}

void metrics_text_feed(struct metrics_text *t, const char *bytes, size_t n)
{
	while (n > 0) {
		const char *nl = memchr(bytes, '\n', n);
		const size_t part = nl ? (size_t)(nl - bytes) : n;

		/* A comment, most of a page by its bytes, need not be kept. */
		t->skip |= t->line.len == 0 && part > 0 && bytes[0] == '#';
		t->skip |= t->line.len + part > METRICS_LINE_BYTES_MAX ||
			   memchr(bytes, '\0', part) != NULL;
		if (!t->skip)
			gpuq_buf_add(&t->line, bytes, part);
		if (nl)
			end_line(t);
		bytes += part + (nl != NULL);
		n -= part + (nl != NULL);
	}
}

void metrics_text_done(struct metrics_text *t)
{
	gpuq_buf_done(&t->line);
}
