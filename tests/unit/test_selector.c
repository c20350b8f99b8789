/* Labels of jobs, and what selects by them. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/notes/joblabel.h"
#include "libgpuq/selector.h"
#include "tests/unit/model_rig.h"

Test(selector, forms)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{ "team", true },        { "!team", true },    { "team=a", true },
		{ "team==a", true },     { "team!=a", true },  { "x.io/team=a.b-c_d", true },
		{ "team=", true },       { "team!=", true },   { "", false },
		{ "!", false },          { "=a", false },      { "!team=a", false },
		{ "team!a", false },     { "te am=a", false }, { "team=a=b", false },
		{ "team=a\x1b", false }, { "team=a!", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;

		cr_expect_eq(gpuq_selector_check(rows[i].text, &err) == 0, rows[i].ok, "'%s'",
			     rows[i].text);
	}
}

Test(selector, what_holds)
{
	static const struct {
		const char *labels, *selector;
		bool holds;
	} rows[] = {
		{ "team=a\nstage=b", "team=a", true },
		{ "team=a\nstage=b", "stage==b", true },
		{ "team=a", "team=b", false },
		{ "team=a", "team!=b", true },
		{ "team=a", "team!=a", false },
		{ "team=ab", "team=a", false },
		{ "team=a", "tea=a", false },
		{ "xteam=a", "team=a", false },
		{ "team=a", "team", true },
		{ "team=a", "!team", false },
		{ NULL, "team", false },
		{ NULL, "!team", true },
		{ NULL, "team!=a", true },
		{ NULL, "team=a", false },
		{ "team=", "team=", true },
		{ "team=", "team", true },
		{ "team=a\nteam2=b", "team2=b", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *one[] = { rows[i].selector };
		const struct gpuq_strlist l = { one, 1 };

		cr_expect_eq(joblabel_match(rows[i].labels, &l), rows[i].holds, "%s of %s",
			     rows[i].selector, rows[i].labels ? rows[i].labels : "nothing");
	}
}

/* From the job file and from a manifest's template, and over a restart. */
Test(selector, where_labels_come_from)
{
	struct model *m = fresh(1, 1), *again;
	struct disk d = { 0 };

	cr_assert_null(submit_text(m, "command: [x]\nlabels: {team: a, x.io/n: \"1\"}\n", NULL));
	cr_assert_null(
		submit_text(m,
			    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {team: b}}\n"
			    "spec: {containers: [{name: c, image: i}]}\n",
			    NULL));
	cr_assert_null(submit_text(m, "command: [x]\n", NULL));
	disk_write(&d, m);
	again = disk_load(&d);
	cr_assert_not_null(again);
	cr_expect_str_eq(model_find_job(again, J1)->labels, "team=a\nx.io/n=1");
	cr_expect_str_eq(model_find_job(again, (struct job_key){ 2, -1 })->labels, "team=b");
	cr_expect_null(model_find_job(again, (struct job_key){ 3, -1 })->labels);
	model_free(m);
	model_free(again);
	disk_free(&d);
}
