/* Volumes, variables, working directory and image that a site gives to the pods of jobs. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/site/pod_keys.h"
#include "gpuqd/site/site.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

static struct gpuq_arena mem; /* to the end of the test */

static struct gpuq_val *parse(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&mem, "f", text, strlen(text), &docs, &n, &err), 0, "%s\n%s",
		     err.text, text);
	cr_assert_eq(n, 1);
	return docs[0];
}

static struct site *site_of(const struct gpuq_val *v)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct site *s = NULL;

	cr_assert_eq(site_read(v, "f", 0, &s, &err), 0, "%s", err.text);
	return s;
}

static const char *const given =
	"version: 1\n"
	"image: site\n"
	"workdir: /users/%u\n"
	"env: {A: site, B: site, C: site}\n"
	"volumes: [{nfs: {server: s, path: /export}, path: '/users/%u', sub_path: 'h/%u'}]\n"
	"flavors: [{name: big, env: {A: flavor}, volumes: [{claim: fast, path: /scratch}]}]\n"
	"users: [{name: ann, groups: [ml, all]}, {name: bob}]\n"
	"queues:\n"
	"- {name: top, env: {B: top}, workdir: /top, image: top, volumes: [{claim: top, path: "
	"/data}]}\n"
	"- {name: low, parent: top, env: {A: low}, volumes: [{claim: low, path: '/data/%q/%g'}]}\n";

static const struct gpuq_group *given_to(struct gpuq_arena *a, struct site *s, const char *user,
					 const char *flavor, struct gpuq_spec *spec)
{
	const struct pod_keys_for f = { "low", user, flavor, false };
	struct gpuq_spec *out = gpuq_arena_calloc(a, 1, sizeof(*out));
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(pod_keys_merge(s, &f, spec, a, out, &err), 0, "%s", err.text);
	return &out->groups[0];
}

Test(pod_keys, the_job_wins_then_flavor_queue_and_site)
{
	static const char *keys[] = { "C" }, *vals[] = { "job" };
	struct gpuq_volume own = { .claim = "own", .path = "/scratch" };
	struct gpuq_group g = { .env = { keys, vals, 1 }, .volumes = &own, .n_volumes = 1 };
	struct gpuq_spec spec = { .groups = &g, .n_groups = 1 };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct site *s = site_of(parse(given));
	const struct gpuq_group *got = given_to(&a, s, "ann", "big", &spec);

	cr_expect_str_eq(gpuq_strmap_get(&got->env, "A"), "flavor");
	cr_expect_str_eq(gpuq_strmap_get(&got->env, "B"), "top");
	cr_expect_str_eq(gpuq_strmap_get(&got->env, "C"), "job");
	cr_expect_eq(got->env.n, 3);
	cr_assert_eq(got->n_volumes, 4);
	cr_expect_str_eq(got->volumes[0].claim, "own");
	cr_expect_str_eq(got->volumes[1].path, "/data/low/ml");
	cr_expect_str_eq(got->volumes[2].path, "/data");
	cr_expect_str_eq(got->volumes[3].path, "/users/ann");
	cr_expect_str_eq(got->volumes[3].sub_path, "h/ann");
	cr_expect_str_eq(got->workdir, "/top");
	cr_expect_str_eq(got->image, "top");
	cr_expect_eq(g.n_volumes, 1, "the spec of the job stays as it is");
	spec.context.cwd = "/users/ann/project";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/users/ann/project");
	spec.chdir = "./logs/../out//";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/users/ann/project/out");
	spec.chdir = "../../bob";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/users/ann/project",
			 "not below the volume");
	spec.chdir = "/users/ann/x/..";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/users/ann");
	spec.code.digest = "d";
	spec.code.subdir = "sub";
	spec.chdir = "../a/./b";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/gpuq-code/a/b");
	spec.code.digest = spec.chdir = NULL;
	spec.context.cwd = "/users/annabel";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/top");
	spec.context.cwd = "/users/ann/../bob";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/top");
	g.workdir = "/own";
	cr_expect_str_eq(given_to(&a, s, "ann", "", &spec)->workdir, "/own");
	site_free(s);
	gpuq_arena_done(&a);
}

Test(pod_keys, a_name_that_is_no_part_of_a_path_is_refused)
{
	static const struct {
		const char *user, *says;
	} wrong[] = { { "bob", "in no group of the site" },
		      { "..", "the user '..' cannot be part" },
		      { "a/b", "the user 'a/b' cannot be part" } };
	struct gpuq_group g = { .n_volumes = 0 };
	struct gpuq_spec spec = { .groups = &g, .n_groups = 1 }, out;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct site *s = site_of(parse(given));

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct pod_keys_for f = { i ? "top" : "low", wrong[i].user, "", false };
		struct gpuq_err err = GPUQ_ERR_INIT;

		cr_expect_eq(pod_keys_merge(s, &f, &spec, &a, &out, &err), GPUQ_EINVAL);
		cr_expect_not_null(strstr(err.text, wrong[i].says), "%s", err.text);
	}
	site_free(s);
	gpuq_arena_done(&a);
}

Test(pod_keys, wrong_keys_of_a_site_are_refused)
{
	static const char *const wrong[] = {
		"volumes: [{claim: a, path: data}]",
		"volumes: [{claim: a, path: /a/../b}]",
		"volumes: [{claim: a, path: /a, sub_path: ../b}]",
		"volumes: [{claim: a, path: /a, sub_path: /b}]",
		"volumes: [{claim: a, path: '/a/%z'}]",
		"volumes: [{claim: a, path: '/a/%'}]",
		"volumes: [{claim: a, path: /a}, {claim: b, path: /a}]",
		"volumes: [{claim: a, nfs: {server: s, path: /x}, path: /a}]",
		"volumes: [{nfs: {server: s, path: x}, path: /a}]",
		"volumes: [{nfs: {server: s}, path: /a}]",
		"volumes: [{host_path: /a, path: /a}]",
		"workdir: home",
		"env: {'A=B': x}",
		"env: {'': x}",
		"queues: [{name: a, env: {1A: x}}]",
		"flavors: [{name: a, env: {NVIDIA_VISIBLE_DEVICES: all}}]",
		"queues: [{name: a, volumes: [{host_path: /a, path: /a}]}]",
		"flavors: [{name: a, volumes: [{host_path: /a, path: /a}]}]",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct site *s = NULL;

		cr_expect_eq(site_read(parse(gpuq_arena_printf(&a, "version: 1\n%s\n", wrong[i])),
				       "f", 0, &s, &err),
			     GPUQ_EINVAL, "%s", wrong[i]);
		cr_expect_eq(strncmp(err.text, "f:2:", 4), 0, "%s: %s", wrong[i], err.text);
		site_free(s);
		gpuq_arena_done(&a);
	}
}

/* Queues of which each differs in one key from the first, and two that do not. */
Test(pod_keys, queues_give_the_same_or_not)
{
	static const char text[] =
		"version: 1\n"
		"env: {S: s}\n"
		"queues:\n"
		"- {name: a, env: {A: x, B: y}, volumes: [{claim: c, path: /d}], workdir: /d, "
		"image: i}\n"
		"- {name: same, env: {B: y, A: x}, volumes: [{claim: c, path: /d}], workdir: /d, "
		"image: i}\n"
		"- {name: below, parent: a}\n"
		"- {name: env, env: {A: x, B: z}, volumes: [{claim: c, path: /d}], workdir: /d, "
		"image: i}\n"
		"- {name: claim, env: {A: x, B: y}, volumes: [{claim: o, path: /d}], workdir: /d, "
		"image: i}\n"
		"- {name: sub, env: {A: x, B: y}, volumes: [{claim: c, path: /d, sub_path: s}], "
		"workdir: /d, "
		"image: i}\n"
		"- {name: workdir, env: {A: x, B: y}, volumes: [{claim: c, path: /d}], image: i}\n"
		"- {name: image, env: {A: x, B: y}, volumes: [{claim: c, path: /d}], workdir: /d}\n"
		"- {name: more, parent: a, env: {C: z}}\n"
		"- {name: marked, volumes: [{claim: c, path: '/%q'}]}\n"
		"- {name: marked2, parent: marked}\n";
	static const struct {
		const char *other;
		bool same;
	} rows[] = { { "same", true },   { "below", true }, { "env", false },
		     { "claim", false }, { "sub", false },  { "workdir", false },
		     { "image", false }, { "more", false }, { "marked", false } };
	struct site *s = site_of(parse(text));

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(pod_keys_same(s, "a", s, rows[i].other), rows[i].same, "%s",
			     rows[i].other);
		cr_expect_eq(pod_keys_same(s, rows[i].other, s, "a"), rows[i].same, "%s",
			     rows[i].other);
	}
	cr_expect(pod_keys_same(s, "marked", s, "marked"));
	cr_expect(!pod_keys_same(s, "marked", s, "marked2"), "its name is part of a path");
	site_free(s);
	gpuq_arena_done(&mem);
}
