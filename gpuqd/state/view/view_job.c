/* A job as people and programs see it: one row of a table for each key. Declared in view.h. */
#include "gpuqd/state/view/view.h"

#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/state/notes/joblabel.h"
#include "gpuqd/state/notes/jobnote.h"
#include "gpuqd/state/view/view_ask.h"
#include "gpuqd/state/view/view_pod.h"
#include "gpuqd/state/view/view_reason.h"
#include "gpuqd/state/view/view_size.h"
#include "gpuqd/state/view/view_used.h"
#include "gpuqd/util/walltime.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/wire/mp.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

enum gpuq_job_state view_job_state(const struct job *j)
{
	const struct outlook *o = j->outlook;

	return j->state == GPUQ_JOB_PENDING && o->n_reasons &&
			       o->reasons[0].code == GPUQ_R_PROVISIONING
		       ? GPUQ_JOB_PROVISIONING
		       : (enum gpuq_job_state)j->state;
}

/* Return the elements that ended unstarted: {indices, state, end_time}; null = there are none. */
static struct gpuq_val *view_rest(struct gpuq_arena *a, const struct job *j)
{
	size_t n = 0;
	const char *s = jobnote_find(j->notes, JOBNOTE_REST, &n);
	const char *time = s ? memchr(s, ' ', n) : NULL;
	struct gpuq_val *v;
	char *end;

	if (!time)
		return gpuq_null(a);
	v = gpuq_map(a);
	gpuq_put(a, v, "state", gpuq_strn(a, s, (size_t)(time - s)));
	gpuq_put(a, v, "end_time", gpuq_int(a, strtoll(time, &end, 10)));
	gpuq_put(a, v, "indices", gpuq_strn(a, end + 1, n - (size_t)(end + 1 - s)));
	return v;
}

/* Return the array that the job is, or is an element of; null for other jobs. */
static struct gpuq_val *view_array(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	const struct job *master =
		j->key.index < 0 ? j : model_find_job(m, (struct job_key){ j->key.id, -1 });
	const struct array *ar = master ? master->array : NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_array waiting;
	struct gpuq_val *v;

	if (!ar)
		return gpuq_null(a);
	v = gpuq_map(a);
	gpuq_put(a, v, "indices", gpuq_str(a, ar->indices));
	gpuq_put(a, v, "size", gpuq_int(a, ar->size));
	gpuq_put(a, v, "throttle", ar->throttle ? gpuq_int(a, ar->throttle) : gpuq_null(a));
	if (j == master) {
		waiting =
			(struct gpuq_array){ ar->waiting, ar->n_waiting_ranges, ar->n_waiting, 0 };
		gpuq_array_print(&waiting, &text);
		gpuq_put(a, v, "waiting", gpuq_str(a, gpuq_buf_str(&text)));
		gpuq_put(a, v, "n_waiting", gpuq_int(a, ar->n_waiting));
		gpuq_put(a, v, "rest", view_rest(a, j));
		gpuq_buf_done(&text);
	}
	return v;
}

/* Return the use of all attempts: that of ended pods, and of running ones until now. */
static int64_t used_us(const struct job *j, int64_t now_us)
{
	int64_t us = j->life->gpu_us;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->state == GPUQ_POD_RUNNING && p->start_us && now_us > p->start_us)
			us += accounting_pod_us(p, p->start_us, now_us);
	return us;
}

/* Return the nominated placement, and the victims that must leave first. */
static struct gpuq_val *view_promise(struct gpuq_arena *a, const struct model *m,
				     const struct job *j)
{
	struct gpuq_val *v, *pods = gpuq_list(a), *victims = gpuq_list(a);

	if (!j->life->promise)
		return gpuq_null(a);
	v = gpuq_map(a);
	for (uint32_t i = 0; i < j->life->promise->n_pods; i++) {
		const struct promised_pod *pp = &j->life->promise->pods[i];
		struct gpuq_val *pv = gpuq_map(a), *devices_of = gpuq_list(a);

		gpuq_put(a, pv, "group", gpuq_str(a, j->request->spec.groups[pp->group].name));
		gpuq_put(a, pv, "node", gpuq_str(a, pp->node));
		for (uint32_t k = 0; k < pp->n_devices; k++)
			gpuq_add(a, devices_of, gpuq_int(a, pp->devices[k]));
		gpuq_put(a, pv, "devices", devices_of);
		gpuq_add(a, pods, pv);
	}
	for (uint32_t i = 0; i < j->life->promise->n_victims; i++)
		gpuq_add(a, victims, gpuq_str(a, view_key(a, j->life->promise->victims[i])));
	gpuq_put(a, v, "since", view_instant(a, j->life->promise->at_us));
	gpuq_put(a, v, "pods", pods);
	gpuq_put(a, v, "victims", victims);
	gpuq_put(a, v, "victims_left", gpuq_int(a, job_victims_left(m, j)));
	gpuq_put(a, v, "rule", view_word(a, j->life->promise->rule));
	gpuq_put(a, v, "why", view_word(a, j->life->promise->why));
	return v;
}

/* Return the last measured utilization of its devices. */
static struct gpuq_val *view_use(struct gpuq_arena *a, const struct model *m, const struct job *j,
				 int64_t now_us)
{
	struct gpuq_val *v;
	char rule[64];
	int64_t limit_us;

	if (!j->life->load || j->ended || j->state == GPUQ_JOB_PENDING)
		return gpuq_null(a);
	limit_us = load_idle_limit_us(m, j, rule);
	v = gpuq_map(a);
	gpuq_put(a, v, "time", view_instant(a, j->life->load->at_us));
	gpuq_put(a, v, "percent", gpuq_real(a, (double)j->life->load->milli / 10));
	gpuq_put(a, v, "idle_s", gpuq_int(a, load_idle_for_us(m, j, now_us) / GPUQ_US_PER_S));
	gpuq_put(a, v, "idle_limit_s",
		 limit_us ? gpuq_int(a, limit_us / GPUQ_US_PER_S) : gpuq_null(a));
	gpuq_put(a, v, "idle_rule", view_word(a, rule));
	return v;
}

/* Return the evictions of the job, the oldest first. */
static struct gpuq_val *view_evictions(struct gpuq_arena *a, const struct job *j)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; i < j->life->n_evictions; i++) {
		struct gpuq_val *e = gpuq_map(a);

		gpuq_put(a, e, "time", view_instant(a, j->life->evictions[i].at_us));
		gpuq_put(a, e, "cause", gpuq_str(a, gpuq_cause_word(j->life->evictions[i].cause)));
		gpuq_put(a, e, "rule", view_word(a, j->life->evictions[i].rule));
		gpuq_put(a, e, "by", view_word(a, j->life->evictions[i].by));
		gpuq_put(a, e, "by_queue", view_word(a, j->life->evictions[i].by_queue));
		gpuq_put(a, e, "why", view_word(a, j->life->evictions[i].why));
		gpuq_add(a, list, e);
	}
	return list;
}

/* Return the nodes that it avoids for now, after failing there. */
static struct gpuq_val *view_avoids(struct gpuq_arena *a, const struct job *j, int64_t now_us)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; j->life->avoids && i < j->life->avoids->n && !j->ended; i++) {
		const int64_t until_us = job_avoids_until(j, &j->life->avoids->items[i]);
		struct gpuq_val *e = gpuq_map(a);

		if (until_us <= now_us)
			continue;
		gpuq_put(a, e, "node", gpuq_str(a, j->life->avoids->items[i].node));
		gpuq_put(a, e, "until_time", view_instant(a, until_us));
		gpuq_add(a, list, e);
	}
	return list;
}

/* Return its unmet dependencies, in the words of a job file. */
static struct gpuq_val *view_depends(struct gpuq_arena *a, const struct job *j)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; i < deps_count(j) && !j->ended; i++) {
		const struct dep *d = &j->deps->items[i];
		const struct gpuq_depend said = { d->type, d->on.id, d->on.index, d->delay_us };

		if (d->state != DEP_DONE)
			gpuq_add(a, list, gpuq_str(a, gpuq_depend_print(a, &said)));
	}
	return list;
}

/* ---- the keys: each makes its value, whose text stays the model's, and trees in the arena ---- */

struct of {
	struct gpuq_arena *a;
	const struct model *m;
	const struct job *j;
	int64_t now_us;
};

static const struct gpuq_val null = { .type = GPUQ_NULL };

static struct gpuq_val number(int64_t i)
{
	return (struct gpuq_val){ .type = GPUQ_INT, .i = i };
}

static struct gpuq_val at(int64_t us)
{
	return us > 0 ? number(us) : null;
}

static struct gpuq_val text(const char *s)
{
	return (struct gpuq_val){ .type = GPUQ_STR, .n = (uint32_t)strlen(s), .s = s };
}

static struct gpuq_val word(const char *s)
{
	return s && *s ? text(s) : null;
}

static struct gpuq_val tree(const struct gpuq_val *v)
{
	return v ? *v : (struct gpuq_val){ .type = GPUQ_NULL, .broken = true };
}

#define KEY(name, ...)                                                                             \
	static struct gpuq_val of_##name(const struct of *x)                                       \
	{                                                                                          \
		const struct job *j = x->j;                                                        \
                                                                                                   \
		return __VA_ARGS__;                                                                \
	}
KEY(id, number(j->key.id))
KEY(array_index, j->key.index < 0 ? null : number(j->key.index))
KEY(element_id, j->life->element_id ? number(j->life->element_id) : null)
KEY(array, j->array || j->key.index >= 0 ? tree(view_array(x->a, x->m, j)) : null)
KEY(name, text(j->name))
KEY(user, text(j->user))
KEY(queue, text(j->queue->name))
KEY(account, word(j->wish->account))
KEY(qos, text(j->qos))
KEY(labels, tree(joblabel_view(x->a, j->labels)))
KEY(state, text(gpuq_job_state_word(view_job_state(j))))
KEY(reasons, tree(view_reasons(x->a, x->m, j)))
KEY(submit_time, at(j->submit_us))
KEY(start_time, at(j->life->start_us))
KEY(end_time, j->ended ? at(j->life->end_us) : null)
KEY(eligible_time, at(j->eligible_us))
KEY(planned_time, at(j->state == GPUQ_JOB_PENDING ? j->outlook->planned_us : 0))
KEY(time_limit_s,
    j->time_limit_us == GPUQ_UNLIMITED ? null : number(j->time_limit_us / GPUQ_US_PER_S))
KEY(time_min_s, j->wish->time_min_us ? number(j->wish->time_min_us / GPUQ_US_PER_S) : null)
KEY(exit_code, j->ended && j->life->exit_code >= 0 ? number(j->life->exit_code) : null)
KEY(attempt, number(j->attempt))
KEY(priority, number(j->outlook->terms.total))
KEY(flavor, word(j->life->flavor))
KEY(evictions, tree(view_evictions(x->a, j)))
KEY(use, j->life->load ? tree(view_use(x->a, x->m, j, x->now_us)) : null)
KEY(used, j->life->used ? tree(view_used(x->a, j->life->used, x->m->policy.use_hints)) : null)
KEY(avoids, tree(view_avoids(x->a, j, x->now_us)))
KEY(promise, j->life->promise ? tree(view_promise(x->a, x->m, j)) : null)
KEY(message, word(j->life->message))
KEY(provisioning, x->m->asks ? tree(view_ask(x->a, x->m, j)) : null)
/* Why an attempt was ended; for a cancelled job its state says so. */
KEY(end_cause, j->life->leave_cause == GPUQ_CAUSE_NONE || j->cancel_asked
		       ? null
		       : text(gpuq_cause_word(j->life->leave_cause)))
/* The terms of a pending job's priority; null before the first evaluation. */
KEY(priority_terms, j->state != GPUQ_JOB_PENDING || !j->outlook->ranked
			    ? null
			    : tree(priority_terms_val(x->a, &j->outlook->terms)))
KEY(isolation, model_job_isolation(j) < 0 || j->state == GPUQ_JOB_PENDING
		       ? null
		       : text(gpuq_isolation_word((enum gpuq_isolation)model_job_isolation(j))))
KEY(gpu_seconds, tree(gpuq_real(x->a, (double)ledger_gpu_ms(used_us(j, x->now_us)) / 1000)))

/* Return the first reason why it is pending; it explains the job. */
static struct gpuq_val of_reason(const struct of *x)
{
	const struct reason *r;
	struct reason now;

	return view_reason_list(x->j, &r, &now) ? text(gpuq_reason_word((enum gpuq_reason)r->code))
						: null;
}

/* Devices or cores. */
static struct gpuq_val amount(struct gpuq_arena *a, int64_t milli)
{
	return milli % 1000 == 0 ? number(milli / 1000) : tree(view_devices(a, milli));
}

/* Return cpus; null where they are not counted. */
static struct gpuq_val cpus(struct gpuq_arena *a, struct view_size s)
{
	return s.cpu_milli ? amount(a, s.cpu_milli) : null;
}

static struct gpuq_val memory_mib(struct view_size s)
{
	return s.memory_bytes ? number((s.memory_bytes + (1 << 20) - 1) >> 20) : null;
}

KEY(pod_count, number(job_is_elastic(j) ? view_size_of_job(j).pods : model_job_pods(j)))
KEY(gpus, amount(x->a, view_size_charged(x->m, j)))
KEY(cpus, cpus(x->a, view_size_of_job(j)))
KEY(memory_mib, memory_mib(view_size_of_job(j)))
KEY(resources, tree(view_size_resources(x->a, x->m, j)))
KEY(nice, number(j->wish->nice))
KEY(depends, j->deps ? tree(view_depends(x->a, j)) : (struct gpuq_val){ .type = GPUQ_LIST })

/* Return a note of the job, in place: the text is not copied. */
static struct gpuq_val note(const char *notes, const char *key)
{
	size_t n = 0;
	const char *s = jobnote_find(notes, key, &n);

	return s ? (struct gpuq_val){ .type = GPUQ_STR, .n = (uint32_t)n, .s = s } : null;
}

static struct gpuq_val is_batch(const char *notes)
{
	return (struct gpuq_val){ .type = GPUQ_BOOL,
				  .b = note(notes, JOBNOTE_INTERACTIVE).type == GPUQ_NULL };
}

static struct gpuq_val note_number(const char *notes, const char *key)
{
	size_t n = 0;
	const char *s = jobnote_find(notes, key, &n);

	return s ? number(strtoll(s, NULL, 10)) : null;
}
KEY(workdir, note(j->notes, JOBNOTE_WORKDIR))
KEY(stdout, note(j->notes, JOBNOTE_STDOUT))
KEY(stderr, note(j->notes, JOBNOTE_STDERR))
KEY(stdin, note(j->notes, JOBNOTE_STDIN))
KEY(command, note(j->notes, JOBNOTE_COMMAND))
KEY(batch, is_batch(j->notes))
KEY(cancelled_by, note(j->notes, JOBNOTE_CANCELLED_BY))
KEY(comment, note(j->notes, JOBNOTE_COMMENT))
KEY(code, note(j->notes, JOBNOTE_CODE))
KEY(resubmit_of, note_number(j->notes, JOBNOTE_RESUBMIT_OF))

/* Return the owner of the pods that it consists of; null for a job that was submitted. */
static struct gpuq_val *view_origin(struct gpuq_arena *a, const char *notes)
{
	static const char *const members[] = { "kind", "name", "namespace", "uid" };
	struct gpuq_val *v;
	size_t n = 0;
	const char *s = jobnote_find(notes, JOBNOTE_ORIGIN, &n), *end = s + n;

	if (!s)
		return gpuq_null(a);
	v = gpuq_map(a);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const char *blank = memchr(s, ' ', (size_t)(end - s));
		const char *stop = blank ? blank : end;

		gpuq_put(a, v, members[i], gpuq_strn(a, s, (size_t)(stop - s)));
		s = blank ? blank + 1 : end;
	}
	return v;
}
KEY(origin, x->m->origins ? tree(view_origin(x->a, j->notes)) : null)

/* True for pods of the current attempt; a job that is pending again shows none. */
static bool is_shown(const struct job *j, const struct pod *p)
{
	return p->attempt == j->attempt && j->state != GPUQ_JOB_PENDING;
}

/* Return the pods of its current attempt. */
static struct gpuq_val of_pods(const struct of *x)
{
	struct gpuq_val *list = gpuq_list(x->a);
	const struct pod *p;

	DL_FOREACH2(x->j->pods, p, job_next)
		if (is_shown(x->j, p))
			gpuq_add(x->a, list, view_pod(x->a, x->m, p));
	return tree(list);
}

/* Return their nodes, as often as pods are there. */
static struct gpuq_val of_pod_nodes(const struct of *x)
{
	struct gpuq_val *list;
	const struct pod *p;

	if (!x->j->pods)
		return (struct gpuq_val){ .type = GPUQ_LIST };
	list = gpuq_list(x->a);
	DL_FOREACH2(x->j->pods, p, job_next)
		if (is_shown(x->j, p))
			gpuq_add(x->a, list, gpuq_str(x->a, p->node->name));
	return tree(list);
}

/* Return what each of its reasons names, in their order. */
static struct gpuq_val of_reason_objects(const struct of *x)
{
	struct gpuq_val *list = gpuq_list(x->a);
	const struct reason *r;
	struct reason now;
	const size_t n = view_reason_list(x->j, &r, &now);

	for (size_t i = 0; i < n; i++)
		gpuq_add(x->a, list, gpuq_str(x->a, r[i].object));
	return tree(list);
}

/* In the order of a job's object. Keys with a dot are for rows alone: each selects a part of a
 * value. */
static const struct view_key {
	const char *name; /* member of the object */
	struct gpuq_val (*of)(const struct of *x); /* its value */
} keys[] = {
	{ "id", of_id },
	{ "array_index", of_array_index },
	{ "element_id", of_element_id },
	{ "array", of_array },
	{ "name", of_name },
	{ "user", of_user },
	{ "queue", of_queue },
	{ "account", of_account },
	{ "qos", of_qos },
	{ "labels", of_labels },
	{ "state", of_state },
	{ "reason", of_reason },
	{ "reasons", of_reasons },
	{ "submit_time", of_submit_time },
	{ "start_time", of_start_time },
	{ "end_time", of_end_time },
	{ "eligible_time", of_eligible_time },
	{ "planned_time", of_planned_time },
	{ "time_limit_s", of_time_limit_s },
	{ "time_min_s", of_time_min_s },
	{ "exit_code", of_exit_code },
	{ "attempt", of_attempt },
	{ "priority", of_priority },
	{ "flavor", of_flavor },
	{ "pod_count", of_pod_count },
	{ "gpus", of_gpus },
	{ "pods", of_pods },
	{ "gpu_seconds", of_gpu_seconds },
	{ "evictions", of_evictions },
	{ "end_cause", of_end_cause },
	{ "use", of_use },
	{ "avoids", of_avoids },
	{ "promise", of_promise },
	{ "priority_terms", of_priority_terms },
	{ "message", of_message },
	{ "cpus", of_cpus },
	{ "memory_mib", of_memory_mib },
	{ "nice", of_nice },
	{ "depends", of_depends },
	{ "workdir", of_workdir },
	{ "stdout", of_stdout },
	{ "stderr", of_stderr },
	{ "stdin", of_stdin },
	{ "command", of_command },
	{ "batch", of_batch },
	{ "cancelled_by", of_cancelled_by },
	{ "comment", of_comment },
	{ "code", of_code },
	{ "resubmit_of", of_resubmit_of },
	{ "provisioning", of_provisioning },
	{ "used", of_used },
	{ "isolation", of_isolation },
	{ "origin", of_origin },
	{ "resources", of_resources },
#define N_OBJECT 54
	{ "pods.node", of_pod_nodes },
	{ "reasons.object", of_reason_objects },
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(N_KEYS == N_OBJECT + 2, "the keys of an object stand before the parts");

/* Copy a value so that it outlives the model's next event. */
static struct gpuq_val *keep(struct gpuq_arena *a, const struct gpuq_val *v)
{
	struct gpuq_val *copy;

	if (v->type == GPUQ_STR)
		return gpuq_strn(a, v->s, v->n);
	copy = gpuq_null(a);
	if (copy)
		*copy = *v;
	return copy;
}

struct gpuq_val *view_job(struct gpuq_arena *a, const struct model *m, const struct job *j,
			  int64_t now_us)
{
	const struct of x = { a, m, j, now_us };
	struct gpuq_val *v = gpuq_map(a);

	for (size_t i = 0; i < N_OBJECT; i++) {
		const struct gpuq_val val = keys[i].of(&x);

		gpuq_put(a, v, keys[i].name, keep(a, &val));
	}
	return v;
}

/* Put a note of the job under the same key. */
static void put_note(struct gpuq_arena *a, struct gpuq_val *v, const char *notes, const char *key)
{
	const struct gpuq_val val = note(notes, key);

	gpuq_put(a, v, key, keep(a, &val));
}

void view_spec_facts(struct gpuq_arena *a, struct gpuq_val *v, const struct gpuq_spec *spec)
{
	const struct view_size s = view_size_of_spec(spec);
	const struct gpuq_val cores = cpus(a, s), mib = memory_mib(s);
	struct gpuq_val *depends = gpuq_list(a), again, batch;
	char *notes = jobnote_take(spec);

	for (size_t i = 0; i < spec->n_depends; i++)
		gpuq_add(a, depends, gpuq_str(a, gpuq_depend_print(a, &spec->depends[i])));
	gpuq_put(a, v, "cpus", keep(a, &cores));
	gpuq_put(a, v, "memory_mib", keep(a, &mib));
	gpuq_put(a, v, "nice", gpuq_int(a, spec->nice));
	gpuq_put(a, v, "depends", depends);
	put_note(a, v, notes, JOBNOTE_WORKDIR);
	put_note(a, v, notes, JOBNOTE_STDOUT);
	put_note(a, v, notes, JOBNOTE_STDERR);
	put_note(a, v, notes, JOBNOTE_STDIN);
	put_note(a, v, notes, JOBNOTE_COMMAND);
	batch = is_batch(notes);
	gpuq_put(a, v, "batch", keep(a, &batch));
	gpuq_put(a, v, "cancelled_by", gpuq_null(a));
	put_note(a, v, notes, JOBNOTE_COMMENT);
	put_note(a, v, notes, JOBNOTE_CODE);
	again = note_number(notes, JOBNOTE_RESUBMIT_OF);
	gpuq_put(a, v, JOBNOTE_RESUBMIT_OF, keep(a, &again));
	gpuq_put(a, v, "provisioning", gpuq_null(a));
	gpuq_put(a, v, "isolation", gpuq_null(a));
	gpuq_put(a, v, "origin", gpuq_null(a));
	gpuq_put(a, v, "resources", view_size_resources_of_spec(a, spec));
	free(notes);
}

/* ---- rows ---- */

struct view_row {
	int64_t ahead_us; /* wall time less ledger time */
	uint32_t n;
	struct {
		const char *name; /* member of a row */
		const struct view_key *key; /* NULL = unknown key */
	} cols[];
};

struct view_row *view_row_new(struct gpuq_arena *a, const struct gpuq_strlist *names,
			      int64_t ahead_us)
{
	struct view_row *r = gpuq_arena_calloc(a, 1, sizeof(*r) + names->n * sizeof(r->cols[0]));

	if (!r)
		return NULL;
	r->n = (uint32_t)names->n;
	r->ahead_us = ahead_us;
	for (uint32_t i = 0; i < r->n; i++) {
		r->cols[i].name = names->items[i];
		for (size_t k = 0; k < N_KEYS && !r->cols[i].key; k++)
			if (strcmp(keys[k].name, names->items[i]) == 0)
				r->cols[i].key = &keys[k];
	}
	return r;
}

void view_row_job(const struct view_row *r, struct gpuq_buf *out, struct gpuq_arena *scratch,
		  const struct model *m, const struct job *j, int64_t now_us)
{
	const struct of x = { scratch, m, j, now_us };

	gpuq_mp_write_list(out, r->n);
	for (uint32_t i = 0; i < r->n; i++) {
		const struct gpuq_val v = r->cols[i].key ? r->cols[i].key->of(&x) : null;

		if (v.broken)
			out->failed = true;
		gpuq_mp_write(out, walltime_tree(scratch, r->cols[i].name, &v, r->ahead_us));
	}
}

/* Write "pods.node" of an object: from each item of its list the one value. */
static void write_part(struct gpuq_buf *out, const struct gpuq_val *list, const char *key)
{
	gpuq_mp_write_list(out, list && list->type == GPUQ_LIST ? list->n : 0);
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		gpuq_mp_write(out, gpuq_get(list->items[i], key));
}

void view_row_object(const struct view_row *r, struct gpuq_buf *out, struct gpuq_arena *scratch,
		     const struct gpuq_val *job)
{
	gpuq_mp_write_list(out, r->n);
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->cols[i].key && r->cols[i].key->of == of_pod_nodes)
			write_part(out, gpuq_get(job, "pods"), "node");
		else if (r->cols[i].key && r->cols[i].key->of == of_reason_objects)
			write_part(out, gpuq_get(job, "reasons"), "object");
		else
			gpuq_mp_write(out, r->cols[i].key
						   ? walltime_tree(scratch, r->cols[i].name,
								   gpuq_get(job, r->cols[i].name),
								   r->ahead_us)
						   : NULL);
	}
}
