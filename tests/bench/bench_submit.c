/* How fast jobs become durable, beside the disk's own limit.
 *
 *   bench_submit raw DIR SECONDS JOBS    jobs per second through the store alone, JOBS of
 *                                        them (their records) in each commit
 *   bench_submit SERVER SECONDS OUT [different]
 *                                        submits per second through a running gpuqd with
 *                                        OUT calls under way (1: each waits for its answer)
 *   bench_submit fill SERVER JOBS FILE [KIND]
 *                                        JOBS of those that FILE describes, as fast as may be
 *
 * Prints one number. Jobs are held, so that nothing but taking them is measured. Different jobs
 * are those of FILE with another name, command, environment, time, cpus and memory each: no
 * two ask for the same. KIND is alike, different, alike+login, different+login or different+logins:
 * with a login the jobs bring the submitter's environment, as gpuq submit sends it, and with logins
 * each another one.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "libgpuq/client.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/spec.h"

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what, const struct gpuq_err *err)
{
	fprintf(stderr, "bench_submit: %s: %s\n", what, err->text);
	exit(1);
}

/* The records a submission makes: job, spec, counters, key; sizes as gpuqd writes them. */
static int raw(const char *dir, double seconds, int jobs)
{
	struct store_opts o = { .unsafe_fs = true };
	struct gpuq_err err = GPUQ_ERR_INIT;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	char val[512] = "x";
	struct store *st;
	bool is_new;
	uint32_t id = 0;
	double start, end;

	if (store_open(dir, &o, &st, &is_new, &err) < 0)
		die("store", &err);
	start = now_s();
	while ((end = now_s()) < start + seconds) {
		struct batch b;

		change_batch_init(&b);
		for (int i = 0; i < jobs; i++) {
			id++;
			change_batch_put(&b, TABLE_JOB, key, change_key_job(key, id, -1), val, 170);
			change_batch_put(&b, TABLE_SPEC, key, change_key_u32(key, id), val, 140);
			change_batch_put(&b, TABLE_KEY, key, change_key_u32(key, id), val, 24);
		}
		change_batch_put(&b, TABLE_META, "model", 5, val, 16);
		if (store_write_now(st, &b, &err) < 0)
			die("commit", &err);
		change_batch_done(&b);
	}
	store_close(st);
	printf("%.0f\n", id / (end - start));
	return 0;
}

static const char held[] = "name: bench\ngpus: 1\nhold: true\ncommand: [sleep, '1']\n";

#define VARIABLES 60 /* of an environment, as a login has them: about four KiB */

static struct gpuq_strmap environment(struct gpuq_arena *a)
{
	const char **names = gpuq_arena_calloc(a, VARIABLES, sizeof(*names));
	const char **values = gpuq_arena_calloc(a, VARIABLES, sizeof(*values));

	for (int i = 0; i < VARIABLES; i++) {
		names[i] = gpuq_arena_printf(a, "SITE_MODULE_%02d_PATH", i);
		values[i] =
			gpuq_arena_printf(a, "/opt/site/modules/%02d-%08x/lib:/opt/site/common/lib",
					  i, (unsigned)i * 2654435761u);
	}
	return (struct gpuq_strmap){ names, values, VARIABLES };
}

/* Two variables of each submission are its own. */
static void vary_environment(struct gpuq_arena *a, struct gpuq_spec *spec, uint64_t n)
{
	const char **values = gpuq_arena_calloc(a, VARIABLES, sizeof(*values));

	memcpy(values, spec->context.environ.vals, VARIABLES * sizeof(*values));
	values[7] = gpuq_arena_printf(a, "10.0.%" PRIu64 ".%" PRIu64 " 22", n / 250 % 250, n % 250);
	values[31] = gpuq_arena_printf(a, "/run/user/1000/session-%" PRIu64, n);
	spec->context.environ.vals = values;
}

/* Make number n of the different jobs of it. */
static void vary(struct gpuq_arena *a, struct gpuq_spec *spec, uint64_t n)
{
	struct gpuq_group *g = &spec->groups[0];
	const char **command = gpuq_arena_calloc(a, g->command.n + 2, sizeof(*command));
	const char **env = gpuq_arena_calloc(a, 4, sizeof(*env));

	memcpy(command, g->command.items, g->command.n * sizeof(*command));
	command[g->command.n] =
		gpuq_arena_printf(a, "--checkpoint=/data/runs/%" PRIu64 "/last.pt", n);
	g->command = (struct gpuq_strlist){ command, g->command.n + 1 };
	env[0] = "RUN_ID";
	env[1] = "RUN_OUTPUT";
	env[2] = gpuq_arena_printf(a, "%016" PRIx64, n * 0x9e3779b97f4a7c15);
	env[3] = gpuq_arena_printf(a, "/data/runs/%" PRIu64 "/output", n);
	g->env = (struct gpuq_strmap){ env, env + 2, 2 };
	g->cpu_milli = 100 + (int64_t)(n % 1000); /* as a small machine has them, too */
	g->memory_bytes = (int64_t)(64 + n / 1000 % 1000) << 20;
	spec->name = gpuq_arena_printf(a, "run-%" PRIu64, n);
	spec->time_us = (int64_t)(60 + n % 1000000) * 1000000;
}

struct kind {
	bool different, login, logins;
};

static struct kind kind_of(const char *word)
{
	return (struct kind){ .different = strncmp(word, "different", 9) == 0,
			      .login = strstr(word, "+login") != NULL,
			      .logins = strstr(word, "+logins") != NULL };
}

struct load {
	struct kind kind;
	struct gpuq_specs specs;
	struct gpuq_arena mem; /* of the specs */
	struct gpuq_arena call; /* of what is sent */
	struct gpuq_val *params; /* the same each time; NULL = different ones */
	uint64_t first; /* number of the first, other than that of any load before */
};

static struct gpuq_val *write_params(struct gpuq_arena *a, const struct gpuq_specs *specs)
{
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);

	for (size_t i = 0; i < specs->n; i++)
		gpuq_add(a, list, gpuq_spec_write(a, &specs->items[i]));
	gpuq_put(a, v, "specs", list);
	return v;
}

static void load_open(struct load *l, const char *text, struct kind kind)
{
	struct gpuq_spec_opts opts = { .file = "bench" };
	struct gpuq_err err = GPUQ_ERR_INIT;

	*l = (struct load){ .kind = kind, .first = (uint64_t)time(NULL) * 1000000 };
	if (gpuq_specs_read(&l->mem, &opts, text, strlen(text), &l->specs, NULL, &err) < 0)
		die("spec", &err);
	if (kind.login)
		l->specs.items[0].context.environ = environment(&l->mem);
	if (!kind.different)
		l->params = write_params(&l->mem, &l->specs);
}

static struct gpuq_val *load_params(struct load *l, uint64_t n)
{
	struct gpuq_group group;
	struct gpuq_spec one;
	struct gpuq_specs varied = { .items = &one, .n = 1 };

	if (l->params)
		return l->params;
	gpuq_arena_reset(&l->call);
	one = l->specs.items[0];
	group = one.groups[0];
	one.groups = &group;
	one.n_groups = 1;
	vary(&l->call, &one, l->first + n);
	if (l->kind.logins)
		vary_environment(&l->call, &one, l->first + n);
	return write_params(&l->call, &varied);
}

static void load_close(struct load *l)
{
	gpuq_arena_done(&l->call);
	gpuq_arena_done(&l->mem);
}

/* Until the time is over, or so many calls were answered. */
static int through(const char *server, const char *text, double seconds, uint64_t most,
		   unsigned out, struct kind kind)
{
	struct gpuq_arena reply = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v;
	struct load l;
	struct gpuq *g;
	unsigned under_way = 0;
	uint64_t n = 0, sent = 0;
	double start, end;
	uint32_t id;

	load_open(&l, text, kind);
	if (gpuq_connect(server, "bench_submit", 0, &g, &err) < 0)
		die("connect", &err);
	start = end = now_s();
	while ((end < start + seconds && n < most) || under_way) {
		while (under_way < out && end < start + seconds && sent < most) {
			char key[32];

			snprintf(key, sizeof(key), "b%" PRIu64 "-%.0f", sent, start * 1e6);
			v = load_params(&l, sent++);
			if (gpuq_send(g, "job.submit", v, key, &id, &err) < 0)
				die("send", &err);
			under_way++;
		}
		gpuq_arena_reset(&reply);
		int rc = 0;

		if (gpuq_recv(g, 0, &id, &reply, &v, &rc, &err) < 0 || rc < 0)
			die("submit", &err);
		under_way--;
		n++;
		end = now_s();
	}
	gpuq_close(g);
	gpuq_arena_done(&reply);
	load_close(&l);
	printf("%.0f\n", n / (end - start));
	return 0;
}

static int fill(const char *server, uint64_t jobs, const char *file, struct kind kind)
{
	char text[4096];
	FILE *f = fopen(file, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		fclose(f);
	return through(server, text, 1e9, jobs, 128, kind);
}

int main(int argc, char **argv)
{
	const bool kind_given = argc > 4 && (strncmp(argv[argc - 1], "different", 9) == 0 ||
					     strncmp(argv[argc - 1], "alike", 5) == 0);
	const struct kind kind = kind_of(kind_given ? argv[argc - 1] : "alike");

	if (argc == 5 && strcmp(argv[1], "raw") == 0)
		return raw(argv[2], strtod(argv[3], NULL), (int)strtol(argv[4], NULL, 10));
	argc -= kind_given;
	if (argc == 5 && strcmp(argv[1], "fill") == 0)
		return fill(argv[2], strtoull(argv[3], NULL, 10), argv[4], kind);
	if (argc == 4)
		return through(argv[1], held, strtod(argv[2], NULL), UINT64_MAX,
			       (unsigned)strtoul(argv[3], NULL, 10), kind);
	fprintf(stderr, "usage: bench_submit raw DIR SECONDS JOBS | "
			"SERVER SECONDS OUTSTANDING [KIND] | fill SERVER JOBS FILE [KIND]\n");
	return 2;
}
