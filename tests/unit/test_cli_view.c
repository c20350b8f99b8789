#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/filter.h"
#include "gpuq/cmd/job/result.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"

static const struct {
	const char *names, *folded;
	size_t n;
} folds[] = {
	{ "a", "a", 1 },
	{ "n2 n1", "n[1-2]", 2 },
	{ "n1 n3 n2 n5", "n[1-3,5]", 4 },
	{ "n9 n10 n11", "n[9-11]", 3 },
	{ "n09 n10", "n[09-10]", 2 },
	{ "n1 n01", "n[1,01]", 2 }, /* two names, and no run */
	{ "n1 n1", "n1", 1 },
	{ "gpu-1.rack gpu-2.rack", "gpu-[1-2].rack", 2 },
	{ "b1 a1", "a1,b1", 2 },
	{ "n99999999999999999999 n1", "n1,n99999999999999999999", 2 },
};

Test(view, folds_names_of_nodes)
{
	for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++) {
		struct gpuq_buf out = GPUQ_BUF_INIT;
		char text[128];
		const char *names[8];
		size_t n = 0;

		snprintf(text, sizeof(text), "%s", folds[i].names);
		for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
			names[n++] = w;
		cr_expect_eq(view_fold(&out, names, n), folds[i].n, "%s", folds[i].names);
		cr_expect_str_eq(gpuq_buf_str(&out), folds[i].folded, "%s", folds[i].names);
		gpuq_buf_done(&out);
	}
}

Test(view, orders_as_people_count)
{
	static const char *const sorted[] = { "", "a", "a1", "a2", "a02", "a10", "a10b", "b" };
	const int n = sizeof(sorted) / sizeof(sorted[0]);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			cr_expect_eq(view_natural(sorted[i], sorted[k]) > 0, i > k, "%s %s",
				     sorted[i], sorted[k]);
}

static const struct {
	const char *text;
	int rc;
	const char *ids; /* joined by spaces */
} ids[] = {
	{ "17", 0, "17" },
	{ "17_3,18", 0, "17_3 18" },
	{ "17_[1-3,9]", 0, "17_1 17_2 17_3 17_9" },
	{ "17_[0-4:2],5", 0, "17_0 17_2 17_4 5" },
	{ "0", GPUQ_EINVAL, "" },
	{ "x", GPUQ_EINVAL, "" },
	{ "17_", GPUQ_EINVAL, "" },
	{ "17_[", GPUQ_EINVAL, "" },
	{ "17_[1]x", GPUQ_EINVAL, "" },
	{ "17_3_4", GPUQ_EINVAL, "" },
	{ "-1", GPUQ_EINVAL, "" },
	{ "17_[0-99999]", GPUQ_EINVAL, "" }, /* more than a user would type */
	{ "9999999999999999999", GPUQ_EINVAL, "" },
};

Test(filter, reads_job_ids)
{
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_buf out = GPUQ_BUF_INIT;
		struct gpuq_val *list = gpuq_list(&a);

		cr_expect_eq(filter_ids(&a, ids[i].text, list, &err), ids[i].rc, "%s: %s",
			     ids[i].text, err.text);
		for (size_t k = 0; ids[i].rc == 0 && k < list->n; k++)
			gpuq_buf_printf(&out, "%s%s", k ? " " : "", list->items[k]->s);
		cr_expect_str_eq(gpuq_buf_str(&out), ids[i].ids, "%s", ids[i].text);
		gpuq_buf_done(&out);
		gpuq_arena_done(&a);
	}
}

/* No state of a job but COMPLETED may look like success, and none is forgotten. */
Test(result, only_completed_is_zero)
{
	for (int s = 0; s < N_GPUQ_JOB_STATES; s++)
		for (int started = 0; started < 2; started++)
			for (int code = -1; code < 2; code++) {
				const struct board_job j = { .id = 1,
							     .index = -1,
							     .state = s,
							     .started = started,
							     .has_exit = code >= 0,
							     .exit_code = code < 0 ? 0 : code };
				const int got = result_code(&j);

				cr_expect_eq(got == 0, s == GPUQ_JOB_COMPLETED, "%s",
					     gpuq_job_state_word((enum gpuq_job_state)s));
				cr_expect_eq(got == EXIT_LIVES_ON,
					     !gpuq_job_state_ended((enum gpuq_job_state)s), "%s",
					     gpuq_job_state_word((enum gpuq_job_state)s));
			}
}

static struct gpuq_val *job(struct gpuq_arena *a, int64_t index, const char *state, int64_t code)
{
	struct gpuq_val *j = gpuq_map(a);

	gpuq_put(a, j, "id", gpuq_int(a, 17));
	if (index >= 0)
		gpuq_put(a, j, "array_index", gpuq_int(a, index));
	gpuq_put(a, j, "state", gpuq_str(a, state));
	if (code >= 0)
		gpuq_put(a, j, "exit_code", gpuq_int(a, code));
	return j;
}

Test(result, an_array_lives_while_one_element_does)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct board b = { NULL, 0, 0 };
	const struct target all = { 17, -1 }, one = { 17, 1 };
	struct result r;
	bool changed;

	board_update(&b, job(&a, 0, "RUNNING", -1), &changed);
	cr_expect(changed);
	board_update(&b, job(&a, 0, "RUNNING", -1), &changed);
	cr_expect_not(changed);
	board_update(&b, job(&a, 1, "CANCELLED", -1), &changed);
	result_of(&b, &all, &r);
	cr_expect_eq(r.code, EXIT_LIVES_ON);
	cr_expect_not(board_ended(&b, &all, 1));
	result_of(&b, &one, &r);
	cr_expect_eq(r.code, EXIT_CANCELLED);
	cr_expect(board_ended(&b, &one, 1));
	/* An element that never left the array is told of by the array's own line. */
	board_clear(&b);
	board_update(&b, job(&a, -1, "CANCELLED", -1), NULL);
	cr_expect(board_ended(&b, &one, 1));
	result_of(&b, &one, &r);
	cr_expect_eq(r.code, EXIT_CANCELLED);
	cr_expect_eq(r.index, 1);
	board_clear(&b);
	board_update(&b, job(&a, 1, "CANCELLED", -1), NULL);
	board_update(&b, job(&a, 0, "FAILED", 5), NULL);
	result_of(&b, &all, &r);
	cr_expect_eq(r.code, EXIT_CANCELLED); /* the highest of all */
	board_done(&b);
	gpuq_arena_done(&a);
}
