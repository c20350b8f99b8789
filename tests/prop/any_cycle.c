#include "tests/prop/any.h"

#include <string.h>

static void plan(const struct snapshot *s, struct gpuq_buf *out, struct any *next, bool gone,
		 const char **fault)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan p;

	if (sched_cycle(s, &mem, &p, &err) < 0) {
		*fault = "the cycle failed";
	} else {
		plan_print(s, &p, out);
		*fault = any_check(s, &p);
	}
	if (!*fault && next && !any_next(next, &p, gone))
		next->n_jobs = 0;
	gpuq_arena_done(&mem);
}

/* Keep the lines that say what is done: not why jobs wait, nor what is requested. */
static void keep_actions(struct gpuq_buf *text, struct gpuq_buf *out)
{
	static const char *const others[] = { "wait ", "ask ", "asked " };

	for (const char *p = gpuq_buf_str(text); *p;) {
		const size_t n = strcspn(p, "\n");
		bool other = false;

		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			other |= strncmp(p, others[i], strlen(others[i])) == 0;
		if (!other)
			gpuq_buf_add(out, p, n + (p[n] == '\n'));
		p += n + (p[n] == '\n');
	}
}

/* Nodes that do not exist change nothing of what is done: no job is preempted for them, or delayed. */
static const char *without_requests(const struct any *a, struct gpuq_buf *text)
{
	static struct any less;
	struct gpuq_buf got = GPUQ_BUF_INIT, one = GPUQ_BUF_INIT, other = GPUQ_BUF_INIT;
	const char *fault = NULL, *wrong = NULL;
	struct snapshot *s;

	less = *a;
	for (int i = 0; i < less.n_nodes; i++)
		if (less.nodes[i].node.state >= SNAP_ASKED)
			less.nodes[i].node.state = SNAP_DOWN;
	s = any_build(&less, 0, &fault);
	if (s) {
		plan(s, &got, NULL, false, &wrong);
		keep_actions(&got, &one);
		keep_actions(text, &other);
		if (!wrong && strcmp(gpuq_buf_str(&one), gpuq_buf_str(&other)) != 0)
			wrong = "nodes that do not exist change what is done";
	}
	snapshot_free(s);
	gpuq_buf_done(&got);
	gpuq_buf_done(&one);
	gpuq_buf_done(&other);
	return wrong;
}

const char *any_cycle(struct any *a, uint64_t order, bool gone, struct gpuq_buf *text,
		      struct gpuq_buf *again)
{
	const char *fault = NULL, *other = NULL, *requests = NULL;
	struct snapshot *s = any_build(a, 0, &fault), *t = any_build(a, order | 1, &other);

	if (s && t) {
		plan(t, again, NULL, gone, &other);
		/* A bound on the work ends it elsewhere. */
		if (!other && a->config.max_steps == 0)
			requests = without_requests(a, again);
		plan(s, text, a, gone, &fault);
		if (strcmp(gpuq_buf_str(text), gpuq_buf_str(again)) != 0 && !fault)
			fault = "another order of storage, another plan";
		fault = fault ? fault : requests;
	} else if (!s != !t) {
		fault = "refused in one order, not in the other";
	} else {
		gpuq_buf_adds(text, fault);
		a->n_jobs = 0;
		fault = NULL;
	}
	snapshot_free(s);
	snapshot_free(t);
	return fault;
}
