/* PMI-1: what ranks ask and are answered, line by line. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuq/slurm/mpi/pmi.h"

#define RANKS 5

struct world {
	struct pmi *p;
	char said[RANKS][4096]; /* to each rank */
	int aborted;
};

static void hear(void *arg, long rank, const char *line, size_t n)
{
	struct world *w = arg;

	strncat(w->said[rank], line, n);
}

static void die(void *arg, int code)
{
	((struct world *)arg)->aborted = code;
}

static struct world *world(long n, long per_node)
{
	static struct world w;

	w = (struct world){ .aborted = -1 };
	w.p = pmi_new(n, per_node, hear, die, &w);
	cr_assert_not_null(w.p);
	return &w;
}

static int say(struct world *w, long rank, const char *text)
{
	char line[PMI_LINE_MAX];

	w->said[rank][0] = '\0';
	snprintf(line, sizeof(line), "%s", text);
	return pmi_line(w->p, rank, line);
}

static void expect(struct world *w, long rank, const char *text, const char *answer)
{
	cr_assert_eq(say(w, rank, text), 0, "%s", text);
	cr_assert_str_eq(w->said[rank], answer);
}

Test(pmi, greeting_and_limits)
{
	struct world *w = world(2, 2);

	expect(w, 1, "cmd=init pmi_version=1 pmi_subversion=1",
	       "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
	expect(w, 0, "cmd=get_maxes",
	       "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n");
	expect(w, 0, "cmd=get_universe_size", "cmd=universe_size rc=0 size=2\n");
	expect(w, 0, "cmd=finalize", "cmd=finalize_ack rc=0\n");
	pmi_free(w->p);
}

Test(pmi, a_value_lasts_to_the_end_of_its_line_and_is_replaced)
{
	struct world *w = world(2, 2);

	expect(w, 0, "cmd=put kvsname=gpuq key=a value=one two = three",
	       "cmd=put_result rc=0 msg=success\n");
	expect(w, 1, "cmd=get kvsname=gpuq key=a",
	       "cmd=get_result rc=0 msg=success value=one two = three\n");
	expect(w, 1, "cmd=put kvsname=gpuq key=a value=", "cmd=put_result rc=0 msg=success\n");
	expect(w, 0, "cmd=get kvsname=gpuq key=a", "cmd=get_result rc=0 msg=success value=\n");
	expect(w, 0, "cmd=get kvsname=gpuq key=b",
	       "cmd=get_result rc=-1 msg=not_found value=unknown\n");
	expect(w, 0, "cmd=getbyidx kvsname=gpuq idx=2",
	       "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n");
	pmi_free(w->p);
}

Test(pmi, values_beyond_the_limits_are_refused)
{
	struct world *w = world(1, 1);
	char line[PMI_LINE_MAX];

	snprintf(line, sizeof(line), "cmd=put key=%064d value=1", 1);
	expect(w, 0, line, "cmd=put_result rc=-1 msg=refused\n");
	snprintf(line, sizeof(line), "cmd=put key=a value=%01024d", 1);
	expect(w, 0, line, "cmd=put_result rc=-1 msg=refused\n");
	snprintf(line, sizeof(line), "cmd=put key=a value=%01023d", 1);
	expect(w, 0, line, "cmd=put_result rc=0 msg=success\n");
	expect(w, 0, "cmd=put key=a", "cmd=put_result rc=-1 msg=refused\n");
	pmi_free(w->p);
}

Test(pmi, all_ranks_leave_a_barrier_together)
{
	struct world *w = world(3, 3);

	for (int round = 0; round < 2; round++) {
		expect(w, 0, "cmd=barrier_in", "");
		expect(w, 0, "cmd=barrier_in", ""); /* twice is once */
		expect(w, 2, "cmd=barrier_in", "");
		expect(w, 1, "cmd=barrier_in", "cmd=barrier_out rc=0\n");
		cr_assert_str_eq(w->said[0], "cmd=barrier_out rc=0\n");
		cr_assert_str_eq(w->said[2], "cmd=barrier_out rc=0\n");
	}
	pmi_free(w->p);
}

Test(pmi, blocks_of_ranks_that_share_a_node)
{
	static const struct {
		long n, per_node;
		const char *mapping;
	} rows[] = { { 4, 4, "(vector,(0,1,4))" },
		     { 4, 2, "(vector,(0,2,2))" },
		     { 5, 2, "(vector,(0,2,2),(2,1,1))" },
		     { 1, 8, "(vector,(0,1,1))" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world(rows[i].n, rows[i].per_node);
		char want[128];

		snprintf(want, sizeof(want), "cmd=get_result rc=0 msg=success value=%s\n",
			 rows[i].mapping);
		expect(w, 0, "cmd=get kvsname=gpuq key=PMI_process_mapping", want);
		pmi_free(w->p);
	}
}

Test(pmi, an_abort_names_its_code)
{
	struct world *w = world(1, 1);

	expect(w, 0, "cmd=abort exitcode=9", "");
	cr_assert_eq(w->aborted, 9);
	expect(w, 0, "cmd=abort exitcode=256", "");
	cr_assert_eq(w->aborted, 1);
	expect(w, 0, "cmd=abort", "");
	cr_assert_eq(w->aborted, 1);
	pmi_free(w->p);
}

Test(pmi, what_is_not_offered_is_refused_and_the_rest_is_no_pmi)
{
	static const char *const wrong[] = { "",     " ",         "GET / HTTP/1.0",
					     "cmd=", "cmd=dance", "cmd=dance key=a" };
	struct world *w = world(1, 1);

	expect(w, 0, "cmd=publish_name service=a port=1",
	       "cmd=publish_result rc=-1 info=not_supported\n");
	expect(w, 0, "cmd=lookup_name service=a", "cmd=lookup_result rc=-1 info=not_supported\n");
	expect(w, 0, "mcmd=spawn", "");
	expect(w, 0, "nprocs=2", "");
	expect(w, 0, "endcmd", "cmd=spawn_result rc=-1 errcodes=1\n");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert_eq(say(w, 0, wrong[i]), -1, "%s", wrong[i]);
	pmi_free(w->p);
}
