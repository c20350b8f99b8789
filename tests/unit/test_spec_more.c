/* Cases beyond the tables: contexts, commands, limits, templates that contradict the group. */
#include "tests/unit/spec_help.h"

#include <stdio.h>
#include <stdlib.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

static struct gpuq_arena arena = GPUQ_ARENA_INIT(64 << 20);

static void done(void)
{
	gpuq_arena_done(&arena);
}

TestSuite(spec_more, .fini = done);

static struct gpuq_spec read_one(const char *file, const char *text,
				 const struct gpuq_spec_opts *opts)
{
	struct gpuq_spec_opts o = opts ? *opts : (struct gpuq_spec_opts){ 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs = { 0 };

	o.file = file;
	o.now_us = NOW_US;
	cr_assert_eq(gpuq_specs_read(&arena, &o, text, strlen(text), &specs, NULL, &err), 0, "%s",
		     err.text);
	cr_assert_eq(specs.n, 1);
	return specs.items[0];
}

/* ---- the submitter's context ---- */

static const char *env_keys[] = { "HOME", "PATH", "SECRET" };
static const char *env_vals[] = { "/srv/ann", "/bin", "s" };
static const struct gpuq_context context = { .cwd = "/srv/ann/run",
					     .umask = 027,
					     .environ = { env_keys, env_vals, 3 } };
static const struct gpuq_spec_opts with_context = { .context = &context };

Test(spec_more, the_context_goes_along)
{
	const struct gpuq_spec s = read_one("a.yaml", "command: x\n", &with_context);

	cr_expect_str_eq(s.context.cwd, "/srv/ann/run");
	cr_expect_eq(s.context.umask, 027);
	cr_expect_eq(s.context.environ.n, 3);
}

Test(spec_more, export_chooses_of_the_environment)
{
	static const struct {
		const char *option;
		size_t n; /* of the submitter's variables */
	} cases[] = { { "ALL", 3 },  { "ALL,X=1", 3 }, { "NONE", 0 },          { "NIL", 0 },
		      { "HOME", 1 }, { "X=1", 0 },     { "HOME,PATH,X=1", 2 }, { "UNSET", 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];
		struct gpuq_spec s;

		snprintf(text, sizeof(text), "#!/bin/sh\n#SBATCH --export=%s\n", cases[i].option);
		s = read_one("a.sh", text, &with_context);
		cr_expect_eq(s.context.environ.n, cases[i].n, "--export=%s gives %zu",
			     cases[i].option, s.context.environ.n);
		cr_expect_str_eq(s.context.cwd, "/srv/ann/run");
		if (strstr(cases[i].option, "X=1"))
			cr_expect_str_eq(gpuq_strmap_get(&s.groups[0].env, "X"), "1");
	}
}

/* ---- scripts ---- */

Test(spec_more, a_script_travels_unchanged)
{
	static const char text[] = "#!/bin/bash\n#SBATCH -t 5\n\techo  \"a\" \\\n\n# end";
	const struct gpuq_spec s = read_one("a.sh", text, NULL);

	cr_expect_eq(s.script_bytes, sizeof(text) - 1);
	cr_expect_str_eq(s.script, text);
	cr_expect_eq(s.groups[0].command.n, 0);
}

Test(spec_more, arguments_are_for_scripts)
{
	static const char *const args[] = { "--epochs", "3", NULL };
	const struct gpuq_spec_opts opts = { .file = "a.yaml", .args = args };
	const struct gpuq_spec s = read_one("a.sh", "#!/bin/sh\n", &opts);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;

	cr_assert_eq(s.script_args.n, 2);
	cr_expect_str_eq(s.script_args.items[1], "3");
	cr_expect_eq(gpuq_specs_read(&arena, &opts, "command: x\n", 11, &specs, NULL, &err),
		     GPUQ_EINVAL);
	cr_expect_str_eq(err.text, "only a script takes arguments, and a.yaml is not a script");
}

Test(spec, annotations_of_other_systems_that_have_no_effect)
{
	static const char text[] = "command: x\nannotations: {nvidia.com/vgpu-mode: mig, "
				   "nvidia.com/numa-bind: 'true', "
				   "hami.io/node-scheduler-policy: binpack, mine: a}\n";
	struct gpuq_spec_opts opts = { .file = "job.yaml" };
	struct gpuq_buf w = GPUQ_BUF_INIT;
	struct gpuq_specs specs;

	cr_assert_eq(gpuq_specs_read(&arena, &opts, text, strlen(text), &specs, &w, NULL), 0);
	cr_expect_str_eq(gpuq_buf_str(&w),
			 "job.yaml:2:37: annotations.nvidia.com/vgpu-mode: is not used: how "
			 "devices are shared is set for a pool\n"
			 "job.yaml:2:64: annotations.nvidia.com/numa-bind: is not used: placement "
			 "is set for a pool\n"
			 "job.yaml:2:103: annotations.hami.io/node-scheduler-policy: is not used: "
			 "placement is set for a pool\n");
	gpuq_buf_done(&w);
}

Test(spec_more, unknown_directives_are_skipped_on_request)
{
	static const char text[] = "#!/bin/sh\n#SBATCH --site-option value --time=5\n"
				   "#SBATCH -Z x\n#SBATCH --hold\n";
	const struct gpuq_spec_opts opts = { .file = "a.sh",
					     .now_us = NOW_US,
					     .ignore_unknown = true };
	struct gpuq_buf w = GPUQ_BUF_INIT;
	struct gpuq_specs specs;

	cr_assert_eq(gpuq_specs_read(&arena, &opts, text, strlen(text), &specs, &w, NULL), 0);
	cr_expect_eq(specs.items[0].time_us, 5 * 60 * GPUQ_US_PER_S);
	cr_expect(specs.items[0].hold);
	cr_expect_str_eq(gpuq_buf_str(&w), "a.sh:2:9: --site-option: unknown option, skipped\n"
					   "a.sh:3:9: -Z: unknown option, skipped\n");
	gpuq_buf_done(&w);
}

/* A wrong value is a mistake, not a dialect. */
Test(spec_more, wrong_values_are_never_skipped)
{
	const struct gpuq_spec_opts opts = { .file = "a.sh", .ignore_unknown = true };
	static const char text[] = "#!/bin/sh\n#SBATCH --time=soon\n";
	struct gpuq_specs specs;

	cr_expect_eq(gpuq_specs_read(&arena, &opts, text, strlen(text), &specs, NULL, NULL),
		     GPUQ_EINVAL);
}

Test(spec_more, a_script_with_a_nul_or_too_long_is_refused)
{
	const struct gpuq_spec_opts opts = { .file = "a.sh" };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs = { .n = 77 };
	char *big = calloc(1, GPUQ_SPEC_BYTES_MAX + 2);

	cr_expect_eq(gpuq_specs_read(&arena, &opts, "#!/bin/sh\n\0x", 12, &specs, NULL, &err),
		     GPUQ_EINVAL);
	memset(big, '#', GPUQ_SPEC_BYTES_MAX + 1);
	big[1] = '!';
	cr_expect_eq(
		gpuq_specs_read(&arena, &opts, big, GPUQ_SPEC_BYTES_MAX + 1, &specs, NULL, &err),
		GPUQ_ETOOBIG);
	cr_expect_eq(gpuq_specs_read(&arena, &opts, big, GPUQ_SPEC_BYTES_MAX, &specs, NULL, &err),
		     GPUQ_ETOOBIG, "the encoded spec is what counts");
	cr_expect_eq(specs.n, 77);
	free(big);
}

/* ---- commands ---- */

Test(spec_more, a_command_line_is_a_job)
{
	static const char *const argv[] = { "--gpus=4", "-t", "5", "-Jname", NULL };
	static const char *const command[] = { "/usr/bin/python3", "-c", "print(1)", NULL };
	const struct gpuq_spec_opts opts = { .default_name = "python3", .argv = argv };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec s;

	cr_assert_eq(gpuq_spec_from_command(&arena, &opts, command, &s, &err), 0, "%s", err.text);
	cr_expect_str_eq(s.name, "name");
	cr_expect_eq(s.groups[0].gpus_milli, 4000);
	cr_expect_eq(s.groups[0].command.n, 3);
	cr_expect_str_eq(s.groups[0].command.items[2], "print(1)");
	cr_expect_eq(s.time_us, 300 * GPUQ_US_PER_S);
}

Test(spec_more, wrap_makes_a_script)
{
	static const char *const argv[] = { "--wrap=echo a; echo b", NULL };
	const struct gpuq_spec_opts opts = { .argv = argv };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec s;

	cr_assert_eq(gpuq_spec_from_command(&arena, &opts, NULL, &s, &err), 0, "%s", err.text);
	cr_expect_str_eq(s.script, "#!/bin/sh\n# made by --wrap\necho a; echo b\n");
	cr_expect_eq(s.script_bytes, strlen(s.script));
}

Test(spec_more, nothing_to_run_is_refused)
{
	const struct gpuq_spec_opts opts = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec s = { .n_groups = 77 };

	cr_expect_eq(gpuq_spec_from_command(&arena, &opts, NULL, &s, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.text,
			 "command: expected a command (or a script): there is nothing to run");
	cr_expect_eq(s.n_groups, 77);
}

/* ---- totals, limits ---- */

Test(spec_more, totals_count_the_gang)
{
	const struct gpuq_spec s =
		read_one("a.yaml",
			 "groups: [{name: w, pods: {min: 3, max: 9}, gpus: 2, command: x}, "
			 "{name: h, pods: 2, gpus: 0.5, command: x}, {name: l, command: x}]\n",
			 NULL);

	cr_expect_eq(gpuq_spec_pods(&s), 6);
	cr_expect_eq(gpuq_spec_gpus_milli(&s), 7000);
}

Test(spec_more, a_file_holds_so_many_jobs)
{
	const struct gpuq_spec_opts opts = { .file = "a.yaml" };
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;

	for (unsigned i = 0; i < GPUQ_DOCS_MAX; i++)
		gpuq_buf_adds(&b, "---\ncommand: x\n");
	cr_expect_eq(gpuq_specs_read(&arena, &opts, b.data, b.len, &specs, NULL, NULL), 0);
	cr_expect_eq(specs.n, GPUQ_DOCS_MAX);
	gpuq_buf_adds(&b, "---\ncommand: x\n");
	cr_expect_eq(gpuq_specs_read(&arena, &opts, b.data, b.len, &specs, NULL, &err),
		     GPUQ_ETOOBIG, "%s", err.text);
	gpuq_buf_done(&b);
}

/* Input whose cost grows with the square of its length is bounded, whatever its source. */
Test(spec_more, what_grows_is_bounded)
{
	static const struct {
		const char *head, *each, *tail;
	} cases[] = {
		{ "command: x\nlicenses: '", "l%u,", "'\n" },
		{ "command: x\nconstraint: ", "a%u&", "z\n" },
		{ "command: x\nnodes: [", "'n[1-1000]',", "m]\n" },
		{ "groups: [", "{name: g%u, command: x},", "]\n" },
		{ "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, env: [", "{name: V%u},",
		  "]}]}\n" },
		{ "#!/bin/sh\n#GPUQ --env=A=b\n", "#GPUQ --env=V%u=x\n", "" },
		{ "#!/bin/sh\n", "#GPUQ --volume=c:/v%u\n", "" },
		{ "#!/bin/sh\n#GPUQ ", "--hold ", "\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gpuq_spec_opts opts = { .file = "a" };
		struct gpuq_buf b = GPUQ_BUF_INIT;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_specs specs = { .n = 77 };
		int rc;

		gpuq_buf_adds(&b, cases[i].head);
		for (unsigned k = 0; k < 5000; k++) {
			const char *percent = strchr(cases[i].each, '%');

			if (!percent) {
				gpuq_buf_adds(&b, cases[i].each);
				continue;
			}
			gpuq_buf_add(&b, cases[i].each, (size_t)(percent - cases[i].each));
			gpuq_buf_printf(&b, "%u%s", k, percent + 2);
		}
		gpuq_buf_adds(&b, cases[i].tail);
		rc = gpuq_specs_read(&arena, &opts, b.data, b.len, &specs, NULL, &err);
		cr_expect_eq(rc, GPUQ_ERANGE, "case %zu: %s %s", i, gpuq_err_name(rc), err.text);
		cr_expect(strstr(err.text, "expected "), "%s", err.text);
		cr_expect_eq(specs.n, 77);
		gpuq_buf_done(&b);
		gpuq_arena_reset(&arena);
	}
}

Test(spec_more, no_memory_is_said_and_nothing_is_left)
{
	static const char *const texts[] = {
		"command: [a, b]\narray: 0-9\nenv: {A: b}\nretry: 3\n",
		"#!/bin/sh\n#SBATCH -N 2 --gres=gpu:2 -C a|b -w n[1-9]\n",
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: b}]}\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int rc = GPUQ_ENOMEM;

		for (size_t room = 64; rc == GPUQ_ENOMEM && room < 1 << 20; room += 64) {
			struct gpuq_arena small = GPUQ_ARENA_INIT(room);
			const struct gpuq_spec_opts opts = { .file = "a" };
			struct gpuq_specs specs = { .n = 77 };

			rc = gpuq_specs_read(&small, &opts, texts[i], strlen(texts[i]), &specs,
					     NULL, NULL);
			cr_assert(rc == 0 || (rc == GPUQ_ENOMEM && specs.n == 77), "room %zu: %s",
				  room, gpuq_err_name(rc));
			gpuq_arena_done(&small);
		}
		cr_expect_eq(rc, 0);
	}
}

/* ---- over the wire ---- */

static int read_wire(const char *yaml, struct gpuq_spec *out, struct gpuq_err *err)
{
	struct gpuq_reader r = { .arena = &arena, .now_us = NOW_US, .err = err };
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&arena, "wire", yaml, strlen(yaml), &docs, &n, err), 0, "%s",
		     err->text);
	return gpuq_spec_read(&r, docs[0], out);
}

#define TEMPLATE(spec, limits)                                                                     \
	"template: {metadata: {}, spec: {" spec                                                    \
	"containers: [{name: a, image: b, resources: {limits: {" limits "}}}]}}\n"

/* A client could ask for nothing and send a pod that takes everything. */
Test(spec_more, a_template_may_not_ask_for_more_than_the_spec)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{ "gpus: 1\ncpus: 0\n" TEMPLATE("", "nvidia.com/gpu: 1"), true },
		{ "gpus: 0\ncpus: 0\n" TEMPLATE("", "nvidia.com/gpu: 8"), false },
		{ "gpus: 1\ncpus: 0\n" TEMPLATE("", "nvidia.com/gpu: 2"), false },
		{ "gpus: 1\n" TEMPLATE("", "nvidia.com/gpu: 1, cpu: 64"), false },
		{ "gpus: 1\ncpus: 0\n" TEMPLATE("", "nvidia.com/gpu: 1, memory: 1Gi"), false },
		{ "gpus: 1\ncpus: 0\n" TEMPLATE("", "nvidia.com/mig-1g.5gb: 1"), false },
		{ "gpus: 1\ncpus: 0\nmig: 1g.5gb\n" TEMPLATE("", "nvidia.com/mig-1g.5gb: 1"),
		  true },
		{ "gpus: 0.3\ncpus: 0\n" TEMPLATE("", "tencent.com/vcuda-core: 30, "
						      "tencent.com/vcuda-memory: 4"),
		  false },
		{ "gpus: 1\ncpus: 0\n" TEMPLATE("nodeName: n1, ", "nvidia.com/gpu: 1"), false },
		{ "cpus: 0\ntemplate: [a]\n", false },
		{ "cpus: 0\ntemplate: {spec: {containers: [{name: a, env: [{name: "
		  "NVIDIA_VISIBLE_DEVICES, value: all}]}]}}\n",
		  false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_spec s;
		int rc = read_wire(cases[i].text, &s, &err);

		cr_expect_eq(rc, cases[i].ok ? 0 : GPUQ_EINVAL, "%s%s", cases[i].text, err.text);
		if (!cases[i].ok)
			cr_expect_eq(strncmp(err.field, "template", 8), 0, "%s", err.field);
	}
}

Test(spec_more, a_refusal_on_the_wire_names_the_field)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec s = { .n_groups = 77 };

	cr_expect_eq(
		read_wire("groups: [{name: a, command: x}, {name: b, command: x, gpus: 1.5}]\n", &s,
			  &err),
		GPUQ_EINVAL);
	cr_expect_str_eq(err.field, "groups[1].gpus");
	cr_expect_eq(s.n_groups, 77);
}

/* A path or a program is one line: a file, the wire and an update say so, and what an earlier
 * version has stored is still read. */
Test(spec_more, paths_and_programs_have_no_control_characters)
{
	static const struct {
		const char *json, *field, *text;
	} cases[] = {
		{ "{\"command\":[\"a\\nb\"]}", "command", "byte 2 is 0x0a" },
		{ "{\"command\":[\"x\"],\"workdir\":\"/a\\u007f\"}", "workdir", "byte 3 is 0x7f" },
		{ "{\"command\":[\"x\"],\"chdir\":\"\\ta\"}", "chdir", "byte 1 is 0x09" },
		{ "{\"command\":[\"x\"],\"output\":\"\u00e9\\u0085\"}", "output",
		  "byte 3 is 0xc2" },
		{ "{\"command\":[\"x\"],\"error\":\"a\\u001b\"}", "error", "byte 2 is 0x1b" },
		{ "{\"command\":[\"x\"],\"input\":\"a\\r\"}", "input", "byte 2 is 0x0d" },
		{ "{\"command\":[\"x\"],\"context\":{\"cwd\":\"/a\\n\"}}", "context",
		  "byte 3 is 0x0a" },
		{ "{\"groups\":[{\"name\":\"a\",\"command\":[\"x\"]},{\"name\":\"b\",\"command\":["
		  "\"y\\n\"]}]}",
		  "groups[1].command", "byte 2 is 0x0a" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpuq_reader r = { .arena = &arena, .now_us = NOW_US };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_spec spec;
		struct gpuq_val **docs;
		size_t n;

		cr_assert_eq(gpuq_yaml_parse(&arena, "x", cases[i].json, strlen(cases[i].json),
					     &docs, &n, &err),
			     0, "%s", err.text);
		r.err = &err;
		cr_expect_eq(gpuq_spec_read(&r, docs[0], &spec), GPUQ_EINVAL, "%s", cases[i].json);
		cr_expect_str_eq(err.field, cases[i].field);
		cr_expect_not_null(strstr(err.text, cases[i].text), "%s", err.text);
		r.path[0] = '\0';
		r.stored = true;
		cr_expect_eq(gpuq_spec_read(&r, docs[0], &spec), 0, "%s", err.text);
	}
	/* Later words, and what others are for, may have them. */
	read_one("a.yaml", "command: [sh, -c, \"a\\nb\"]\nargs: [\"\\n\"]\ncomment: \"a\\nb\"\n",
		 NULL);
	read_one("a.yaml", "command: |\n  echo a\n  echo b\noutput: \u00fc\u4e2d.txt\n", NULL);
}

/* Words of systems that share devices are refused in a file and on the wire, and what an earlier version has
 * stored with them is still read. */
Test(spec_more, words_of_other_systems_are_read_where_they_are_stored)
{
	static const struct {
		const char *json, *field;
	} cases[] = {
		{ "{\"command\":[\"x\"],\"annotations\":{\"gpu-fraction\":\"0.5\"}}",
		  "annotations.gpu-fraction" },
		{ "{\"command\":[\"x\"],\"labels\":{\"sharedgpu/gpu_request\":\"0.5\"}}",
		  "labels.sharedgpu/gpu_request" },
		{ "{\"template\":{\"metadata\":{\"labels\":{\"runai-gpu-group\":\"g\"}},\"spec\":{"
		  "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}},\"cpus\":0}",
		  "template.metadata.labels.runai-gpu-group" },
		{ "{\"template\":{\"metadata\":{\"annotations\":{\"gpu-fraction\":\"0.5\","
		  "\"gpu-fraction-container-name\":\"no\"}},\"spec\":{\"containers\":[{\"name\":"
		  "\"c\","
		  "\"image\":\"i\"}]}},\"cpus\":0,\"gpus\":0.5}",
		  "template.metadata.annotations.gpu-fraction-container-name" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpuq_reader r = { .arena = &arena, .now_us = NOW_US };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_spec spec;
		struct gpuq_val **docs;
		size_t n;

		cr_assert_eq(gpuq_yaml_parse(&arena, "x", cases[i].json, strlen(cases[i].json),
					     &docs, &n, &err),
			     0, "%s", err.text);
		r.err = &err;
		cr_expect_eq(gpuq_spec_read(&r, docs[0], &spec), GPUQ_EINVAL, "%s", cases[i].json);
		cr_expect_str_eq(err.field, cases[i].field);
		r.path[0] = '\0';
		r.stored = true;
		cr_expect_eq(gpuq_spec_read(&r, docs[0], &spec), 0, "%s", err.text);
	}
}

Test(spec_more, newer_clients_may_say_more)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_reader r = { .arena = &arena, .err = &err, .lenient = true };
	struct gpuq_val **docs;
	struct gpuq_spec s;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&arena, "-", "command: x\nfuture: 1\n", 21, &docs, &n, &err),
		     0);
	cr_expect_eq(gpuq_spec_read(&r, docs[0], &s), 0, "%s", err.text);
}

/* ---- the table of options ---- */

Test(spec_more, options_are_told_apart)
{
	for (const struct gpuq_spec_option *o = gpuq_spec_options; o->name; o++) {
		cr_expect_eq(spec_option_find(o->name), o, "--%s stands twice", o->name);
		cr_expect(o->doc && *o->doc, "--%s has no text", o->name);
		cr_expect(o->arg == 'n' || o->arg == 'r' || o->arg == 'o', "--%s", o->name);
		cr_expect(o->arg != 'r' || o->metavar, "--%s", o->name);
		if (o->letter) {
			const char letter[2] = { o->letter, 0 };

			cr_expect_eq(spec_option_find(letter), o, "-%s stands twice", letter);
		}
	}
}

/* ---- the manual ---- */

Test(spec_more, the_nearest_of_a_number_too_large_for_the_step_is_itself)
{
	char near[SPEC_NEAREST_ROOM];

	cr_expect_str_eq(spec_nearest(5e17, 1, 9e18, 0.01, near),
			 ": the nearest are 5e+17 and 5e+17");
	cr_expect_str_eq(spec_nearest(150, 0, 9e18, 100, near), ": the nearest are 100 and 200");
}

static void expect_item(const char *page, const char *item)
{
	cr_expect(strstr(page, item), "man/gpuq-job.5 has no \"%s\"", item);
}

Test(spec_more, the_manual_has_every_key_and_option)
{
	static const struct gpuq_schema *const schemas[] = { &gpuq_spec_schema,
							     &gpuq_group_schema };
	static char page[128 << 10];
	FILE *f = fopen(SRCDIR "/man/gpuq-job.5", "r");

	cr_assert_not_null(f);
	cr_assert_lt(fread(page, 1, sizeof(page) - 1, f), sizeof(page) - 1);
	fclose(f);
	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++)
		for (const struct gpuq_field *k = schemas[i]->fields; k->key; k++)
			if (!(k->flags & GPUQ_F_HIDDEN))
				expect_item(page,
					    gpuq_arena_printf(&arena, "\n.It Cm %s : ", k->key));
	for (const struct gpuq_spec_option *o = gpuq_spec_options; o->name; o++)
		expect_item(page, gpuq_arena_printf(&arena, "Fl -%s%s", o->name,
						    o->arg == 'n' ? "\n" : " Ns "));
}
