/* node.drain and node.resume: stop and resume starting jobs on nodes. Running jobs keep running,
 * unless they are to be requeued. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"

struct drain_params {
	struct gpuq_strlist names; /* or globs */
	const char *why;
	bool requeue; /* of drain: what runs there leaves, and waits again */
	bool dry_run;
};

static const struct gpuq_field drain_fields[] = {
	P(drain_params, "names", GPUQ_K_STRLIST, names, .flags = GPUQ_F_REQUIRED),
	P(drain_params, "why", GPUQ_K_STR, why),
	P(drain_params, "requeue", GPUQ_K_BOOL, requeue),
	P(drain_params, "dry_run", GPUQ_K_BOOL, dry_run),
	P_END,
};
const struct gpuq_schema p_node_drain = P_SCHEMA(drain_params, drain_fields);

struct meant {
	const struct node **items;
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Every name must mean something; a node that two of them mean is one. */
static int find(const struct model *m, const struct gpuq_strlist *names, struct gpuq_arena *a,
		struct meant *out, struct gpuq_err *err)
{
	bool *used = gpuq_arena_calloc(a, names->n + 1, sizeof(*used));

	out->items = gpuq_arena_calloc(a, HASH_COUNT(m->nodes) + 1, sizeof(const struct node *));
	if (!used || !out->items)
		return gpuq_no_memory(err);
	node_each(m, n) {
		bool is = false;

		for (size_t i = 0; i < names->n; i++)
			if (site_glob(names->items[i], n->name))
				is = used[i] = true;
		if (is)
			out->items[out->n++] = n;
	}
	for (size_t i = 0; i < names->n; i++)
		if (!used[i])
			return gpuq_fail(err, GPUQ_ENOENT,
					 strpbrk(names->items[i], "*?") ? "no node matches %s"
									: "no node is named %s",
					 names->items[i]);
	qsort(out->items, out->n, sizeof(*out->items), by_name);
	return 0;
}

static struct gpuq_val *view_drain(struct gpuq_arena *a, bool on, const char *why)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "drain", gpuq_bool(a, on));
	if (on && *why)
		gpuq_put(a, v, "why", gpuq_str(a, why));
	return v;
}

/* True if it gets no pods, or is reported suspect, because pods failed there. */
static bool is_avoided(const struct methods *m, const struct node *n)
{
	return n->suspect || n->backoff_until_us > loop_now_us(journal_loop(m->j));
}

/* Forget that pods failed there: the operator has looked at it. */
static int trust(struct methods *m, const char *name, struct gpuq_err *err)
{
	struct event ev = { .type = EV_NODE_BACKOFF };

	ev.backoff.name = name;
	return journal_apply(m->j, &ev, err);
}

static int apply(struct methods *m, struct rpc_call *c, const char *name, bool on, const char *why,
		 struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	const struct node *n = model_find_node(journal_model(m->j), name);
	struct event ev = { .type = EV_NODE_DRAIN };
	struct audit_note note = { .who = rpc_call_peer(c)->user,
				   .action = on ? "node.drain" : "node.resume",
				   .kind = "node",
				   .name = name,
				   .before = view_drain(a, n->drain, n->drain_why),
				   .after = view_drain(a, on, why) };
	int rc;

	ev.drain.name = name;
	ev.drain.on = on;
	ev.drain.why = why;
	ev.drain.who = note.who;
	rc = journal_apply(m->j, &ev, err);
	if (rc == 0 && !on && is_avoided(m, n))
		rc = trust(m, name, err);
	if (rc == 0)
		rc = audit_add(m->j, &note, err);
	if (rc == 0)
		log_notice(note.action, "node=%s by=%s why=%s", LOGS(name), LOGS(note.who),
			   LOGS(why));
	return rc;
}

/* Jobs with pods there, each once. */
static void jobs_on(const struct node *n, struct job_keys *out)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && !job_keys_add(out, p->job->key))
			abort(); /* a few words for each */
	job_keys_sort(out);
}

/* With its signals and its grace; those that leave already are left alone. */
static int64_t requeue(struct methods *m, struct rpc_call *c, const struct node *n, const char *why,
		       const struct job_keys *keys)
{
	const char *text = gpuq_arena_printf(rpc_call_arena(c), "node %s is drained%s%s", n->name,
					     *why ? ": " : "", why);
	int64_t told = 0;

	for (size_t i = 0; i < keys->n; i++) {
		const struct job *j = model_find_job(journal_model(m->j), keys->items[i]);
		struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = keys->items[i] };

		if (!j || !model_job_is_live(j) || model_job_is_over(j) || j->life->leave_us)
			continue;
		ev.evict.cause = GPUQ_CAUSE_DRAIN;
		ev.evict.rule = "drain";
		ev.evict.by = rpc_call_peer(c)->user;
		ev.evict.why = text ? text : "";
		ev.evict.grace_us = -1;
		told += journal_apply(m->j, &ev, NULL) == 0;
	}
	return told;
}

static int drain(struct methods *m, struct rpc_call *c, const struct drain_params *p, bool on,
		 struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a), *nodes = gpuq_list(a);
	const char *why = p->why ? p->why : "";
	struct meant meant = { NULL, 0 };
	int64_t changed = 0, jobs = 0, told = 0;
	int rc = find(journal_model(m->j), &p->names, a, &meant, err);

	for (size_t i = 0; rc == 0 && i < meant.n; i++) {
		const struct node *n = meant.items[i];
		struct gpuq_val *one = gpuq_map(a);
		struct job_keys keys = { 0 };
		const bool changes = n->drain != on || (!on && is_avoided(m, n)) ||
				     (on && *why && strcmp(n->drain_why, why) != 0);

		jobs_on(n, &keys);
		gpuq_put(a, one, "name", gpuq_str(a, n->name));
		gpuq_put(a, one, "jobs", gpuq_int(a, (int64_t)keys.n));
		gpuq_put(a, one, "changed", gpuq_bool(a, changes));
		gpuq_add(a, nodes, one);
		jobs += (int64_t)keys.n;
		changed += changes;
		if (changes && !p->dry_run)
			rc = apply(m, c, n->name, on, why, err);
		if (rc == 0 && on && p->requeue && !p->dry_run)
			told += requeue(m, c, n, *why ? why : n->drain_why, &keys);
		job_keys_done(&keys);
	}
	if (rc < 0)
		return rc;
	gpuq_put(a, v, "matched", gpuq_int(a, (int64_t)meant.n));
	gpuq_put(a, v, "changed", gpuq_int(a, changed));
	gpuq_put(a, v, "jobs", gpuq_int(a, jobs));
	if (on && p->requeue)
		gpuq_put(a, v, "requeued", gpuq_int(a, told));
	gpuq_put(a, v, "nodes", nodes);
	rpc_reply(c, v);
	return 0;
}

int m_node_drain(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return drain(arg, c, params, true, err);
}

int m_node_resume(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return drain(arg, c, params, false, err);
}
