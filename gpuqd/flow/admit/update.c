#include "gpuqd/flow/admit/update.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/admit/draft_int.h"
#include "gpuqd/flow/admit/draft_depends.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/admit/update_keys.h"
#include "libgpuq/units.h"

#define NICE_MOST 1000000

static const char *refusal(const struct update_key *row)
{
	return row->rights == ACCESS_OPERATE
		       ? "only operators may set it; use nice"
		       : "only the owner of the job may change it: it affects what runs as the "
			 "owner or where reports are sent";
}

/* Return 0, an error, or 1: the change of the whole array does not apply to this element. */
static int check_keys(const struct job *j, bool adopted, bool element, bool whole, unsigned rights,
		      const struct gpuq_val *set, struct gpuq_err *err)
{
	bool any = false;

	if (!set || set->type != GPUQ_MAP || set->n == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "set", "expected a change");
	for (uint32_t i = 0; i < set->n; i++) {
		const char *key = set->pairs[i].key;
		const struct update_key *row = update_key(key);
		const bool always = row->when == UPDATE_ALWAYS;

		if (row->when == UPDATE_NEVER)
			return gpuq_fail_field(err, GPUQ_EINVAL, key, "it cannot change: %s",
					       row->instead);
		if (!(row->rights & rights) && gpuq_spec_has_key(key))
			return gpuq_fail_field(err, GPUQ_EPERM, key, "%s", refusal(row));
		if (whole && strcmp(key, "array") == 0)
			continue;
		any = true;
		if (!gpuq_spec_has_key(key))
			continue; /* reported when the whole spec is read */
		/* They stay as they are, and gpuqd would add copies of its own. */
		if (adopted && row->pods)
			return gpuq_fail_field(err, GPUQ_EINVAL, key,
					       "its pods are not gpuqd's to make again: change "
					       "them where they come from");
		if (model_job_is_live(j) && !always && whole)
			return 1;
		if (model_job_is_live(j) && !always)
			return gpuq_fail_field(err, GPUQ_ECONFLICT, key,
					       "only a pending job can be changed");
		if (element && !whole && (row->when == UPDATE_WAITING || strcmp(key, "array") == 0))
			return gpuq_fail_field(err, GPUQ_EINVAL, key,
					       "it is the same for all elements of an array: name "
					       "the whole array");
	}
	return any ? 0 : 1;
}

/* Set the throttle alone ("%5"), or the same elements with another throttle. */
static int change_array(struct gpuq_arena *a, const struct job *master, struct gpuq_val *tree,
			struct gpuq_err *err)
{
	const char *text = gpuq_get_str(tree, "array", NULL), *cut;
	struct gpuq_array array = { 0 };
	struct gpuq_buf same = GPUQ_BUF_INIT;
	const char *full;
	bool alike;
	int rc;

	if (!master->array)
		return gpuq_fail_field(err, GPUQ_EINVAL, "array",
				       "the job is not an array, and cannot become one");
	cut = text ? strchr(text, '%') : NULL;
	if (!text || (cut == text && !cut[1]))
		return gpuq_fail_field(err, GPUQ_EINVAL, "array",
				       "expected %%N, at most N at once");
	full = cut == text ? gpuq_arena_printf(a, "%s%s", master->array->indices, text) : text;
	rc = full ? gpuq_array_parse(a, full, &array, err) : gpuq_no_memory(err);
	if (rc < 0)
		return rc;
	gpuq_array_print(&array, &same);
	alike = strcmp(gpuq_buf_str(&same), master->array->indices) == 0;
	gpuq_buf_done(&same);
	if (!alike)
		return gpuq_fail_field(err, GPUQ_EINVAL, "array",
				       "only its throttle can change, as in %s%%10",
				       master->array->indices);
	gpuq_set(a, tree, "array", gpuq_str(a, full));
	return 0;
}

static int read_spec(struct journal *j, uint32_t id, struct gpuq_arena *a, struct gpuq_val **out,
		     struct gpuq_err *err)
{
	struct gpuq_spec spec;
	int rc = order_spec(journal_store(j), id, a, &spec, err);

	if (rc == 0 && !(*out = gpuq_spec_write(a, &spec)))
		rc = gpuq_no_memory(err);
	return rc;
}

/* Put into the tree what differs from the stored description, because it was changed later or for
 * this element alone. */
static void put_own(struct gpuq_arena *a, const struct job *job, struct gpuq_val *tree)
{
	char text[32];

	gpuq_set(a, tree, "queue", gpuq_str(a, job->queue->name));
	gpuq_set(a, tree, "qos", gpuq_str(a, job->qos));
	gpuq_duration_print(job->time_limit_us, text, sizeof(text));
	gpuq_set(a, tree, "time", gpuq_str(a, text));
	gpuq_set(a, tree, "nice", gpuq_int(a, job->wish->nice));
	if (job->wish->fixed_priority)
		gpuq_set(a, tree, "priority", gpuq_int(a, job->wish->fixed_priority));
	else
		gpuq_unset(tree, "priority");
	gpuq_unset(tree, "hold");
	/* A begin time that has passed is no reason to refuse. */
	gpuq_unset(tree, "begin");
	gpuq_unset(tree, "deadline");
}

/* Drop the flavors that its queue chose; the new queue chooses again. */
static void forget_choice(const struct job *job, struct gpuq_val *tree)
{
	const struct gpuq_strlist *chosen = draft_queue_flavors(job->queue);

	if (chosen && gpuq_strlist_same(&job->request->spec.flavors, chosen))
		gpuq_unset(tree, "flavor");
}

static bool given(const struct gpuq_val *set, const char *key)
{
	return gpuq_get(set, key) != NULL;
}

/* Return the text of the change for the job's events, which all users can read: keys that only the
 * owner may change can hold secrets, and only their names appear. */
static const char *changes_text(struct gpuq_arena *a, const struct gpuq_val *set)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *s;

	for (uint32_t i = 0; i < set->n && b.len < GPUQ_TEXT_BYTES_MAX; i++) {
		gpuq_buf_printf(&b, "%s%s", i ? " " : "", set->pairs[i].key);
		if (update_key(set->pairs[i].key)->rights == ACCESS_OWN)
			continue;
		gpuq_buf_adds(&b, "=");
		if (set->pairs[i].val->type == GPUQ_STR)
			gpuq_buf_adds(&b, set->pairs[i].val->s);
		else
			gpuq_json_write(&b, set->pairs[i].val, 0);
	}
	s = gpuq_arena_strndup(a, gpuq_buf_str(&b),
			       b.len < GPUQ_TEXT_BYTES_MAX ? b.len : GPUQ_TEXT_BYTES_MAX);
	gpuq_buf_done(&b);
	return s ? s : "";
}

/* Check a move to another queue. That may mean another namespace, service account or image: the
 * author of the move decides what runs as the job's owner. */
static int check_move(const struct model *m, const struct job *job, const struct queue *to,
		      unsigned rights, struct gpuq_err *err)
{
	if (rights & ACCESS_OWN || access_same_pods(m->site, job->queue->name, m->site, to->name))
		return 0;
	return gpuq_fail_field(
		err, GPUQ_EPERM, "queue",
		"only the job's owner may move it to queue %s: pods of queue %s differ "
		"in namespace, service account, image, volumes, environment, pull secrets or pod "
		"policy",
		to->name, job->queue->name);
}

int update_job(struct journal *j, struct cluster *c, const struct submit_who *who, unsigned rights,
	       struct job_key key, bool whole, const struct gpuq_val *set, bool dry_run,
	       struct gpuq_arena *a, struct gpuq_val **warnings, struct gpuq_err *err)
{
	const struct model *m = journal_model(j);
	const struct job *master = model_find_job(m, (struct job_key){ key.id, -1 });
	const struct job *job = model_find_job(m, key);
	const bool element = key.index >= 0;
	struct submit_who owner = *who;
	struct draft d = { .j = j, .m = m, .cluster = c, .who = &owner, .a = a };
	struct event ev = { .type = EV_JOB_UPDATED, .job = key };
	struct gpuq_val *tree;
	int rc;

	job = job ? job : master;
	if (!job || job->ended)
		return gpuq_fail(err, GPUQ_EGONE, "already ended");
	if (!dry_run) {
		rc = journal_has_space(j, err);
		if (rc < 0)
			return rc;
	}
	whole = whole && element;
	rc = check_keys(job, model_is_adopted(m, job) && !FAILPOINT("update.adopted"), element,
			whole, rights, set, err);
	if (rc == 0)
		rc = read_spec(j, key.id, a, &tree, err);
	if (rc != 0)
		return rc;
	put_own(a, job, tree);
	if (given(set, "queue"))
		forget_choice(job, tree);
	for (uint32_t i = 0; i < set->n; i++) {
		if (set->pairs[i].val->type == GPUQ_NULL)
			gpuq_unset(tree, set->pairs[i].key);
		else
			gpuq_set(a, tree, set->pairs[i].key, gpuq_val_copy(a, set->pairs[i].val));
	}
	if (given(set, "array") && !whole)
		rc = change_array(a, job, tree, err);
	/* An operator who changes another user's job does not lend it an operator's rights. */
	if (strcmp(owner.user, job->user) != 0)
		owner.groups = NULL;
	owner.user = job->user;
	owner.operator_ = who->operator_ && strcmp(who->user, job->user) == 0;
	d.now_us = loop_now_us(journal_loop(j));
	d.instead = job;
	d.depends_stay = !given(set, "depends");
	d.by = who;
	if (rc == 0)
		rc = draft_check(&d, tree, err);
	if (rc == 0)
		rc = check_move(m, job, d.queue, rights, err);
	if (rc == 0 && model_job_is_live(job) && d.time_limit_us > job->time_limit_us &&
	    !(rights & ACCESS_MANAGE))
		rc = gpuq_fail_field(
			err, GPUQ_EPERM, "time",
			"on a running job, only managers and operators can extend it; the "
			"owner can shorten it");
	if (rc == 0 && job->array && !d.spec.array.n_ranges)
		rc = gpuq_fail_field(err, GPUQ_EINVAL, "array",
				     "an array cannot become a single job");
	if (rc == 0 && warnings)
		*warnings = draft_warnings(&d);
	if (rc == 0 && !dry_run) {
		ev.updated.spec = &d.spec;
		ev.updated.spec_bytes = element ? NULL : d.bytes.data;
		ev.updated.spec_len = element ? 0 : d.bytes.len;
		ev.updated.request_bytes = d.request.data;
		ev.updated.request_len = d.request.len;
		ev.updated.queue = d.queue->name;
		ev.updated.qos = d.qos->name;
		ev.updated.time_limit_us = d.time_limit_us;
		ev.updated.depends = given(set, "depends");
		ev.updated.begin = given(set, "begin");
		ev.updated.deadline = given(set, "deadline");
		ev.updated.who = who->user;
		ev.updated.changes = changes_text(a, set);
		rc = journal_apply(j, &ev, err);
		if (rc == 0 && ev.updated.depends)
			draft_tell_past(&d);
	}
	draft_done(&d);
	return rc;
}

/* ---- first of its owner's jobs ---- */

/* True if j has the same owner and queue, is pending and ranks before `than`. */
static bool is_rival(const struct job *j, const struct job *than)
{
	return j != than && !j->ended && !model_job_is_live(j) && j->user == than->user &&
	       j->queue == than->queue && !(j->array && j->array->n_waiting == 0) &&
	       (j->outlook->terms.total > than->outlook->terms.total ||
		(j->outlook->terms.total == than->outlook->terms.total &&
		 j->submit_us <= than->submit_us));
}

int top_begin(struct journal *j, struct job_key key, struct top *t, struct gpuq_err *err)
{
	const struct model *m = journal_model(j);
	const struct job *top = model_find_job(m, key), *it;
	int64_t highest = INT64_MIN, nicest = INT64_MIN;

	*t = (struct top){ .key = key };
	if (!top || top->ended || model_job_is_live(top))
		return gpuq_fail(err, GPUQ_ECONFLICT, "not pending");
	DL_FOREACH2(index_of_user(m, top->user), it, user_next) {
		if (!is_rival(it, top))
			continue;
		if (!job_keys_add(&t->rivals, it->key))
			return top_done(t), gpuq_no_memory(err);
		highest = it->outlook->terms.total > highest ? it->outlook->terms.total : highest;
		nicest = it->wish->nice > nicest ? it->wish->nice : nicest;
	}
	if (t->rivals.n == 0)
		return 0;
	/* The share is rounded up: together they lose at least as much as it gains. */
	t->gain = highest - top->outlook->terms.total + 1;
	t->share = (t->gain + (int64_t)t->rivals.n - 1) / (int64_t)t->rivals.n;
	if (top->wish->nice - t->gain < -NICE_MOST)
		return top_done(t),
		       gpuq_fail(err, GPUQ_ECONFLICT,
				 "too many jobs rank between it and the first of those jobs");
	if (nicest + t->share > NICE_MOST)
		return top_done(t), gpuq_fail(err, GPUQ_ECONFLICT,
					      "one of those jobs has the largest nice value");
	return 0;
}

static void add_nice(struct journal *j, struct job_key key, int64_t more)
{
	const struct job *it = model_find_job(journal_model(j), key);
	struct event ev = { .type = EV_JOB_NICED, .job = key };

	/* It may have started since, or its nice was changed. */
	if (!it || it->ended || model_job_is_live(it) || it->wish->nice + more > NICE_MOST ||
	    it->wish->nice + more < -NICE_MOST)
		return;
	ev.nice = it->wish->nice + more;
	(void)journal_apply(j, &ev, NULL);
}

bool top_step(struct journal *j, struct top *t)
{
	if (t->rivals.n == 0)
		return false;
	if (t->at < t->rivals.n) {
		add_nice(j, t->rivals.items[t->at++], t->share);
		return true;
	}
	add_nice(j, t->key, -t->gain);
	return false;
}

void top_done(struct top *t)
{
	job_keys_done(&t->rivals);
}
