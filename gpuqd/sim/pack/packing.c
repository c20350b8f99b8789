#include "gpuqd/sim/pack/packing.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/place/packer.h"
#include "gpuqd/sim/pack/file.h"
#include "libgpuq/buf.h"
#include "libgpuq/val.h"

#define FILE_BYTES_MAX (256u << 20)
#define LOAD_FIRST 80 /* percent; then every ten */
#define LOAD_MAX 1000
#define FIGURES_MAX ((LOAD_MAX - LOAD_FIRST) / 10 + 1)

struct options {
	uint64_t seed;
	uint32_t load;
	enum packer_policy policy;
	bool json;
	const char *placements; /* NULL = not wanted */
	const char *files[2];
};

static const char *const policies[] = { "default", "bestfit", "fgd", NULL };

struct outcome {
	uint32_t placed, failed;
	int64_t allocated_milli[FIGURES_MAX]; /* at LOAD_FIRST, then every ten percent */
	uint32_t n_figures;
};

/* ---- the cluster, and each kind of pod as a job with that many elements ---- */

static uint32_t add_kind(struct gpuq_arena *a, struct snapshot *s, const struct packing_pod *p)
{
	struct gpuq_require models = { .key = "model", .op = GPUQ_OP_IN };
	struct gpuq_term term = { .all = &models, .n = 1 };
	struct snap_group g = {
		.name = "main",
		.pods_min = 1,
		.pods_max = 1,
		.gpus_milli = p->gpus * p->gpu_milli,
		.cpu_milli = p->cpu_milli,
		.memory_bytes = p->memory_mib << 20,
		.required = &term,
	};
	struct snap_request r = { .groups = &g, .n_groups = 1 };
	char *names = gpuq_arena_strdup(a, p->models);
	const char **items = gpuq_arena_calloc(a, strlen(p->models) + 1, sizeof(*items));

	if (!names || !items)
		return SNAP_NONE;
	models.values.items = items;
	while (*names) {
		char *end = strchr(names, '|');

		items[models.values.n++] = names;
		names = end ? end + 1 : names + strlen(names);
		if (end)
			*end = '\0';
	}
	/* Pods without devices can go anywhere. */
	g.n_required = p->gpus > 0 && models.values.n > 0;
	return snapshot_add_request(s, &r);
}

static struct snapshot *make_snapshot(struct gpuq_arena *a, const struct packing_lists *l,
				      struct gpuq_err *err)
{
	struct snap_config config;
	struct snap_queue queue;
	struct snapshot *s;
	uint32_t user, in;

	snapshot_config_default(&config);
	s = snapshot_new(&config);
	if (!s) {
		gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		return NULL;
	}
	snapshot_add_flavor(s, "gpu", 0);
	user = snapshot_user(s, "pods");
	snapshot_queue_default(&queue);
	queue.name = "pods";
	in = snapshot_add_queue(s, &queue);
	for (uint32_t i = 0; i < l->n_nodes; i++) {
		static const char *key = "model"; /* borrowed until sealed */
		struct snap_node n;

		snapshot_node_default(&n);
		n.name = l->nodes[i].name;
		n.flavor = 0;
		n.cpu_milli = l->nodes[i].cpu_milli;
		n.memory_bytes = l->nodes[i].memory_mib << 20;
		n.n_devices = (uint32_t)l->nodes[i].gpus;
		n.labels = (struct gpuq_strmap){ &key, &l->nodes[i].model, 1 };
		snapshot_add_node(s, &n);
	}
	for (uint32_t i = 0; i < l->n_kinds; i++) {
		const struct snap_range range = { 0, (int32_t)l->kind_counts[i] - 1, 1 };
		struct snap_job j;

		snapshot_job_default(&j);
		j.key = (struct snap_key){ i + 1, -1 };
		j.request = add_kind(a, s, &l->pods[l->kinds[i]]);
		j.queue = in;
		j.user = user;
		j.ranges = &range;
		j.n_ranges = 1;
		snapshot_add_job(s, &j);
	}
	if (snapshot_seal(s, err) < 0) {
		snapshot_free(s);
		return NULL;
	}
	return s;
}

/* ---- the experiment ---- */

static void print_placement(FILE *f, const struct packing_lists *l, uint32_t index,
			    const struct packing_arrival *at, const struct snapshot *s,
			    const struct plan_pod *pod, const uint32_t *devices)
{
	fprintf(f, "%u,%s", index, l->pods[at->pod].name);
	if (at->copy)
		fprintf(f, "#%u", at->copy);
	fprintf(f, ",%s,", pod ? s->nodes[pod->node].name : "");
	for (uint32_t d = 0; pod && d < pod->n_devices; d++)
		fprintf(f, "%s%u", d ? ";" : "", devices[pod->device_first + d]);
	fprintf(f, ",%d\n", pod ? pod->milli : 0);
}

static int run(const struct packing_lists *l, const struct snapshot *s,
	       const struct packing_arrival *arrivals, uint32_t n, const struct options *o, FILE *f,
	       struct outcome *out, struct gpuq_err *err)
{
	const uint32_t wanted = o->load < LOAD_FIRST ? 0 : (o->load - LOAD_FIRST) / 10 + 1;
	int64_t arrived = 0, allocated = 0;
	struct packer *p;
	int rc = packer_new(s, o->policy, &p, err);

	if (rc < 0)
		return rc;
	*out = (struct outcome){ .n_figures = wanted };
	if (f)
		fprintf(f, "index,pod,node,devices,milli\n");
	for (uint32_t i = 0, figure = 0; i < n; i++) {
		const struct packing_pod *pod = &l->pods[arrivals[i].pod];
		const struct plan_pod *at = NULL;
		const uint32_t *devices = NULL;
		uint32_t n_at;

		rc = packer_place(p, pod->kind, &at, &n_at, &devices, err);
		if (rc < 0)
			break;
		arrived += pod->gpus * pod->gpu_milli;
		if (rc > 0)
			allocated += pod->gpus * pod->gpu_milli;
		out->placed += rc > 0;
		out->failed += rc == 0;
		if (f)
			print_placement(f, l, i, &arrivals[i], s, rc > 0 ? at : NULL, devices);
		while (figure < wanted &&
		       (i + 1 == n ||
			arrived * 100 >= l->capacity_milli * (int64_t)(LOAD_FIRST + figure * 10)))
			out->allocated_milli[figure++] = allocated;
	}
	packer_free(p);
	return rc < 0 ? rc : 0;
}

static double unallocated_pct(const struct packing_lists *l, int64_t allocated_milli)
{
	return 100.0 - 100.0 * (double)allocated_milli / (double)l->capacity_milli;
}

static int print_json(const struct packing_lists *l, const struct options *o,
		      const struct outcome *out)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf line = GPUQ_BUF_INIT;
	struct gpuq_val *v = gpuq_map(&a), *pct = gpuq_map(&a);
	int ok;

	gpuq_put(&a, v, "pods", gpuq_str(&a, o->files[1]));
	gpuq_put(&a, v, "seed", gpuq_int(&a, (int64_t)o->seed));
	gpuq_put(&a, v, "policy", gpuq_str(&a, policies[o->policy]));
	for (uint32_t i = 0; i < out->n_figures; i++)
		gpuq_put(&a, pct, gpuq_arena_printf(&a, "%u", LOAD_FIRST + i * 10),
			 gpuq_real(&a, unallocated_pct(l, out->allocated_milli[i])));
	gpuq_put(&a, v, "unallocated_pct", pct);
	gpuq_put(&a, v, "placed", gpuq_int(&a, out->placed));
	gpuq_put(&a, v, "failed", gpuq_int(&a, out->failed));
	gpuq_json_write(&line, v, 0);
	ok = !line.failed && printf("%s\n", gpuq_buf_str(&line)) >= 0;
	gpuq_buf_done(&line);
	gpuq_arena_done(&a);
	return ok;
}

static int print_text(const struct packing_lists *l, const struct options *o,
		      const struct outcome *out)
{
	printf("%s, seed %llu, policy %s: %u pods placed, %u refused, %lld devices\n", o->files[1],
	       (unsigned long long)o->seed, policies[o->policy], out->placed, out->failed,
	       (long long)(l->capacity_milli / SNAP_MILLI));
	for (uint32_t i = 0; i < out->n_figures; i++)
		printf("  %4u %% arrived  %6.2f %% unallocated\n", LOAD_FIRST + i * 10,
		       unallocated_pct(l, out->allocated_milli[i]));
	return !ferror(stdout);
}

/* ---- files and options ---- */

static int read_file(struct gpuq_buf *out, const char *name, struct gpuq_err *err)
{
	FILE *f = fopen(name, "r");
	int rc;

	if (!f)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", name, strerror(errno));
	rc = file_read(f, name, out, err);
	fclose(f);
	return rc;
}

static int read_lists(struct gpuq_arena *a, const struct options *o, struct packing_lists *l,
		      struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(FILE_BYTES_MAX);
	int rc = read_file(&text, o->files[0], err);

	if (rc == 0)
		rc = packing_read_nodes(a, o->files[0], text.data, text.len, l, err);
	gpuq_buf_clear(&text);
	if (rc == 0)
		rc = read_file(&text, o->files[1], err);
	if (rc == 0)
		rc = packing_read_pods(a, o->files[1], text.data, text.len, l, err);
	gpuq_buf_done(&text);
	return rc;
}

static int pack(const struct options *o, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct packing_lists l = { 0 };
	struct packing_arrival *arrivals;
	struct snapshot *s = NULL;
	struct outcome out;
	FILE *f = NULL;
	uint32_t n;
	int rc = read_lists(&a, o, &l, err);

	if (rc == 0)
		rc = packing_arrivals(&a, &l, o->seed, o->load, &arrivals, &n, err);
	if (rc < 0)
		goto out;
	s = make_snapshot(&a, &l, err);
	if (!s) {
		rc = err->code;
		goto out;
	}
	if (o->placements) {
		f = fopen(o->placements, "w");
		if (!f) {
			rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", o->placements, strerror(errno));
			goto out;
		}
	}
	rc = run(&l, s, arrivals, n, o, f, &out, err);
	if (f && fclose(f) != 0 && rc == 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", o->placements, strerror(errno));
	if (rc == 0 && !(o->json ? print_json(&l, o, &out) : print_text(&l, o, &out)))
		rc = gpuq_fail(err, GPUQ_EIO, "standard output: %s", strerror(errno));
out:
	snapshot_free(s);
	gpuq_arena_done(&a);
	return rc;
}

static bool to_number(const char *s, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && errno == 0 && *out <= max;
}

/* Return the value of --NAME VALUE or --NAME=VALUE at argv[*i]; NULL = another option, or no
 * value. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
	const size_t n = strlen(name);

	if (strncmp(argv[*i], name, n) != 0)
		return NULL;
	if (argv[*i][n] == '=')
		return argv[*i] + n + 1;
	return argv[*i][n] == '\0' && *i + 1 < argc ? argv[++*i] : NULL;
}

static int wrong(const char *what, const char *value, const char *expected)
{
	fprintf(stderr, "gpuq-sim: %s: expected %s, not '%s'\n", what, expected, value);
	return 2;
}

/* Returns 0 or the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
	unsigned files = 0;

	for (int i = 2; i < argc; i++) {
		const char *v;
		uint64_t number;

		if (strcmp(argv[i], "--json") == 0) {
			o->json = true;
		} else if ((v = value_of("--seed", argc, argv, &i)) != NULL) {
			if (!to_number(v, INT64_MAX, &o->seed))
				return wrong("--seed", v, "a whole number");
		} else if ((v = value_of("--load", argc, argv, &i)) != NULL) {
			if (!to_number(v, LOAD_MAX, &number) || number == 0)
				return wrong("--load", v, "1 to 1000 percent");
			o->load = (uint32_t)number;
		} else if ((v = value_of("--policy", argc, argv, &i)) != NULL) {
			unsigned p = 0;

			while (policies[p] && strcmp(policies[p], v) != 0)
				p++;
			if (!policies[p])
				return wrong("--policy", v, "default, bestfit or fgd");
			o->policy = (enum packer_policy)p;
		} else if ((v = value_of("--placements", argc, argv, &i)) != NULL) {
			o->placements = v;
		} else if (argv[i][0] == '-' || files == 2) {
			fprintf(stderr, "gpuq-sim: pack: unexpected %s\nusage: " PACKING_USAGE,
				argv[i]);
			return 2;
		} else {
			o->files[files++] = argv[i];
		}
	}
	if (files == 2)
		return 0;
	fprintf(stderr,
		"gpuq-sim: pack: expected a list of nodes and one of pods\nusage: " PACKING_USAGE);
	return 2;
}

int packing_main(int argc, char **argv)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct options o = { .seed = 42, .load = 130 };
	int status;

	if (argc == 3 && strcmp(argv[2], "--help") == 0)
		return fputs("usage: " PACKING_USAGE, stdout) < 0;
	status = read_options(argc, argv, &o);

	if (status == 0 && pack(&o, &err) < 0) {
		fprintf(stderr, "gpuq-sim: %s\n", err.text);
		status = 1;
	}
	return status;
}
