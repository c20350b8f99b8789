#include "gpuqd/sim/pack/packing.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/intern.h"
#include "gpuqd/snapshot/snapshot.h"

/* Lists of nodes and pods as text, and the order in which pods arrive. */

#define COLUMNS_MAX 64
#define AMOUNT_MAX INT64_C(1000000000000)

struct csv {
	struct gpuq_arena *a;
	const char *file, *at, *end;
	unsigned line;
	const char *fields[COLUMNS_MAX];
	unsigned n_fields;
	struct gpuq_err *err;
};

/* Split the next line that is not empty into fields. Returns 1, 0 at the end, or negative. */
static int next_line(struct csv *c)
{
	while (c->at < c->end) {
		const char *eol = memchr(c->at, '\n', (size_t)(c->end - c->at));
		size_t n = (size_t)((eol ? eol : c->end) - c->at);
		char *line = gpuq_arena_alloc(c->a, n + 1);

		if (!line)
			return gpuq_fail(c->err, GPUQ_ENOMEM, "no memory");
		memcpy(line, c->at, n);
		c->at += n + (eol != NULL);
		c->line++;
		if (n > 0 && line[n - 1] == '\r')
			n--;
		line[n] = '\0';
		if (memchr(line, '\0', n))
			return gpuq_fail(c->err, GPUQ_EINVAL, "%s:%u: not a text", c->file,
					 c->line);
		if (n == 0)
			continue;
		for (c->n_fields = 0; line; c->n_fields++) {
			char *comma = strchr(line, ',');

			if (c->n_fields == COLUMNS_MAX)
				return gpuq_fail(c->err, GPUQ_EINVAL, "%s:%u: more than %d columns",
						 c->file, c->line, COLUMNS_MAX);
			c->fields[c->n_fields] = line;
			if (comma)
				*comma++ = '\0';
			line = comma;
		}
		return 1;
	}
	return 0;
}

/* Find the named columns in the first line; the last `optional` may be absent (UINT_MAX). */
static int find_columns(struct csv *c, const char *const *names, unsigned n, unsigned optional,
			unsigned *at)
{
	int rc = next_line(c);

	if (rc == 0)
		return gpuq_fail(c->err, GPUQ_EINVAL, "%s:1: expected a line with column names",
				 c->file);
	for (unsigned i = 0; rc > 0 && i < n; i++) {
		at[i] = 0;
		while (at[i] < c->n_fields && strcmp(c->fields[at[i]], names[i]) != 0)
			at[i]++;
		if (at[i] == c->n_fields)
			at[i] = UINT32_MAX;
		if (at[i] == UINT32_MAX && i < n - optional)
			return gpuq_fail(c->err, GPUQ_EINVAL,
					 "%s:%u: expected a column named %s in the first line",
					 c->file, c->line, names[i]);
	}
	return rc < 0 ? rc : 0;
}

static int field(struct csv *c, unsigned column, const char *name, const char **out)
{
	if (column >= c->n_fields)
		return gpuq_fail(c->err, GPUQ_EINVAL,
				 "%s:%u: expected a field for %s, the line "
				 "has only %u",
				 c->file, c->line, name, c->n_fields);
	*out = c->fields[column];
	return 0;
}

static int number(struct csv *c, unsigned column, const char *name, int64_t *out)
{
	const char *s = "";
	char *end;
	int rc = field(c, column, name, &s);

	if (rc < 0)
		return rc;
	*out = strtoll(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || *out > AMOUNT_MAX)
		return gpuq_fail(c->err, GPUQ_EINVAL,
				 "%s:%u: %s: expected a whole number, not '%s'", c->file, c->line,
				 name, s);
	return 0;
}

/* Return room for one more item at the end of a table in an arena. */
static void *push(struct csv *c, void *items, uint32_t n, size_t size)
{
	void *p;

	if (n & (n - 1))
		return items;
	p = gpuq_arena_calloc(c->a, n ? (size_t)n * 2 : 1, size);
	if (!p) {
		gpuq_fail(c->err, GPUQ_ENOMEM, "no memory");
		return NULL;
	}
	if (n)
		memcpy(p, items, n * size);
	return p;
}

static int read_node(struct csv *c, const unsigned *at, struct packing_node *n)
{
	int rc = field(c, at[0], "sn", &n->name);

	if (rc == 0)
		rc = number(c, at[1], "cpu_milli", &n->cpu_milli);
	if (rc == 0)
		rc = number(c, at[2], "memory_mib", &n->memory_mib);
	if (rc == 0)
		rc = number(c, at[3], "gpu", &n->gpus);
	if (rc == 0)
		rc = field(c, at[4], "model", &n->model);
	if (rc == 0 && !*n->name)
		rc = gpuq_fail(c->err, GPUQ_EINVAL, "%s:%u: sn: expected a name", c->file, c->line);
	if (rc == 0 && n->gpus > SNAP_DEVICES_MAX)
		rc = gpuq_fail(c->err, GPUQ_EINVAL, "%s:%u: gpu: expected 0 to %u devices", c->file,
			       c->line, SNAP_DEVICES_MAX);
	return rc;
}

int packing_read_nodes(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		       struct packing_lists *out, struct gpuq_err *err)
{
	static const char *const names[] = { "sn", "cpu_milli", "memory_mib", "gpu", "model" };
	struct csv c = { .a = a, .file = file, .at = text, .end = text + n, .err = err };
	struct intern seen = INTERN_INIT(a);
	unsigned at[5];
	int rc = find_columns(&c, names, 5, 0, at);

	out->n_nodes = 0;
	out->nodes = NULL;
	out->capacity_milli = 0;
	while (rc == 0 && (rc = next_line(&c)) > 0) {
		struct packing_node node;
		bool fresh = true;

		rc = read_node(&c, at, &node);
		if (rc == 0 && intern(&seen, node.name, strlen(node.name), &fresh) == INTERN_FAILED)
			rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		if (rc == 0 && !fresh)
			rc = gpuq_fail(err, GPUQ_EINVAL, "%s:%u: sn: another node is named %s",
				       file, c.line, node.name);
		if (rc < 0)
			break;
		out->nodes = push(&c, out->nodes, out->n_nodes, sizeof(node));
		if (!out->nodes) {
			rc = GPUQ_ENOMEM;
			break;
		}
		out->nodes[out->n_nodes++] = node;
		out->capacity_milli += node.gpus * SNAP_MILLI;
	}
	if (rc == 0 && out->capacity_milli == 0)
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s:%u: expected nodes with devices", file,
			       c.line);
	intern_done(&seen);
	return rc;
}

static int read_pod(struct csv *c, const unsigned *at, struct packing_pod *p)
{
	int rc = field(c, at[0], "name", &p->name);

	p->models = "";
	if (rc == 0)
		rc = number(c, at[1], "cpu_milli", &p->cpu_milli);
	if (rc == 0)
		rc = number(c, at[2], "memory_mib", &p->memory_mib);
	if (rc == 0)
		rc = number(c, at[3], "num_gpu", &p->gpus);
	if (rc == 0)
		rc = number(c, at[4], "gpu_milli", &p->gpu_milli);
	if (rc == 0 && at[5] != UINT32_MAX)
		rc = field(c, at[5], "gpu_spec", &p->models);
	if (rc < 0)
		return rc;
	if (!*p->name)
		return gpuq_fail(c->err, GPUQ_EINVAL, "%s:%u: name: expected a name", c->file,
				 c->line);
	if (p->gpus > SNAP_DEVICES_MAX)
		return gpuq_fail(c->err, GPUQ_EINVAL, "%s:%u: num_gpu: expected 0 to %u devices",
				 c->file, c->line, SNAP_DEVICES_MAX);
	if (p->gpus > 0 && (p->gpu_milli < 1 || p->gpu_milli > SNAP_MILLI ||
			    (p->gpus > 1 && p->gpu_milli != SNAP_MILLI)))
		return gpuq_fail(c->err, GPUQ_EINVAL,
				 "%s:%u: gpu_milli: expected 1 to 1000, and 1000 where num_gpu is "
				 "above 1",
				 c->file, c->line);
	if (p->gpus == 0)
		p->gpu_milli = 0;
	return 0;
}

static int cmp_pod(const void *x, const void *y)
{
	const struct packing_pod *a = x, *b = y;

	return strcmp(a->name, b->name);
}

static int find_kinds(struct gpuq_arena *a, struct packing_lists *l, struct gpuq_err *err)
{
	struct intern seen = INTERN_INIT(a);
	int rc = 0;

	l->kinds = gpuq_arena_calloc(a, l->n_pods, sizeof(*l->kinds));
	l->kind_counts = gpuq_arena_calloc(a, l->n_pods, sizeof(*l->kind_counts));
	l->n_kinds = 0;
	if (!l->kinds || !l->kind_counts)
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (uint32_t i = 0; rc == 0 && i < l->n_pods; i++) {
		struct packing_pod *p = &l->pods[i];
		const char *key =
			gpuq_arena_printf(a, "%lld %lld %lld %lld %s", (long long)p->cpu_milli,
					  (long long)p->memory_mib, (long long)p->gpus,
					  (long long)p->gpu_milli, p->models);
		bool fresh;

		p->kind = key ? intern(&seen, key, strlen(key), &fresh) : INTERN_FAILED;
		if (p->kind == INTERN_FAILED) {
			rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
			break;
		}
		if (fresh)
			l->kinds[l->n_kinds++] = i;
		l->kind_counts[p->kind]++;
	}
	intern_done(&seen);
	return rc;
}

int packing_read_pods(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		      struct packing_lists *out, struct gpuq_err *err)
{
	static const char *const names[] = { "name",    "cpu_milli", "memory_mib",
					     "num_gpu", "gpu_milli", "gpu_spec" };
	struct csv c = { .a = a, .file = file, .at = text, .end = text + n, .err = err };
	unsigned at[6];
	int64_t asked = 0;
	int rc = find_columns(&c, names, 6, 1, at);

	out->n_pods = 0;
	out->pods = NULL;
	while (rc == 0 && (rc = next_line(&c)) > 0) {
		struct packing_pod pod;

		rc = read_pod(&c, at, &pod);
		if (rc < 0)
			break;
		out->pods = push(&c, out->pods, out->n_pods, sizeof(pod));
		if (!out->pods) {
			rc = GPUQ_ENOMEM;
			break;
		}
		out->pods[out->n_pods++] = pod;
		asked += pod.gpus * pod.gpu_milli;
	}
	if (rc == 0 && asked == 0)
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s:%u: expected pods that ask for devices", file,
			       c.line);
	if (rc < 0)
		return rc;
	qsort(out->pods, out->n_pods, sizeof(*out->pods), cmp_pod);
	for (uint32_t i = 1; i < out->n_pods; i++)
		if (strcmp(out->pods[i - 1].name, out->pods[i].name) == 0)
			return gpuq_fail(err, GPUQ_EINVAL, "%s: two pods are named %s", file,
					 out->pods[i].name);
	return find_kinds(a, out, err);
}

/* ---- the order of arrival ---- */

/* Source: S. Vigna, splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Return one of 0..n-1, all equally likely. */
static uint32_t below(uint64_t *state, uint32_t n)
{
	const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
	uint64_t x;

	do
		x = next_random(state);
	while (x >= limit);
	return (uint32_t)(x % n);
}

int packing_arrivals(struct gpuq_arena *a, const struct packing_lists *l, uint64_t seed,
		     uint32_t load_percent, struct packing_arrival **out, uint32_t *n_out,
		     struct gpuq_err *err)
{
	const int64_t target = l->capacity_milli / 100 * load_percent;
	uint32_t *copies = gpuq_arena_calloc(a, l->n_pods, sizeof(*copies));
	struct csv room = { .a = a, .err = err };
	struct packing_arrival *list = NULL;
	uint64_t state = seed;
	int64_t asked = 0;
	uint32_t n = 0;

	if (!copies)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (; n < l->n_pods; n++) {
		list = push(&room, list, n, sizeof(*list));
		if (!list)
			return GPUQ_ENOMEM;
		list[n] = (struct packing_arrival){ n, 0 };
		asked += l->pods[n].gpus * l->pods[n].gpu_milli;
	}
	for (uint32_t i = n; i-- > 1;) {
		const uint32_t k = below(&state, i + 1);
		const struct packing_arrival t = list[i];

		list[i] = list[k];
		list[k] = t;
	}
	/* A list that requests more than the target loses pods; one that requests less gets copies,
	 * without the last that would exceed it. */
	while (asked > target && n > 0) {
		const uint32_t k = below(&state, n);

		asked -= l->pods[list[k].pod].gpus * l->pods[list[k].pod].gpu_milli;
		memmove(&list[k], &list[k + 1], (--n - k) * sizeof(*list));
	}
	for (;;) {
		const uint32_t k = below(&state, l->n_pods);

		if (asked + l->pods[k].gpu_milli > target)
			break;
		list = push(&room, list, n, sizeof(*list));
		if (!list)
			return GPUQ_ENOMEM;
		list[n++] = (struct packing_arrival){ k, ++copies[k] };
		asked += l->pods[k].gpus * l->pods[k].gpu_milli;
	}
	*out = list;
	*n_out = n;
	return 0;
}
