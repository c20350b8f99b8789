#include "gpuqd/flow/admit/submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/record/token.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/util/hash.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/admit/accounts.h"
#include "gpuqd/flow/admit/draft_int.h"
#include "gpuqd/flow/admit/draft_reservation.h"
#include "gpuqd/flow/admit/draft_depends.h"
#include "gpuqd/flow/admit/draft_devices.h"
#include "gpuqd/flow/admit/draft_isolation.h"
#include "gpuqd/flow/admit/draft_resources.h"
#include "gpuqd/flow/advise/estimate.h"
#include "gpuqd/flow/admit/warn/flavor_warn.h"
#include "gpuqd/flow/admit/warn/run_limit.h"
#include "gpuqd/flow/admit/warn/volume_warn.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/admit/limits.h"
#include "gpuqd/flow/admit/warn/place_warn.h"
#include "gpuqd/flow/script/script.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

int draft_unknown(const char *what, const char *field, const char *name, const char *const *names,
		  struct gpuq_err *err)
{
	const char *near = gpuq_nearest(name, names);

	return gpuq_fail_field(err, GPUQ_ENOENT, field, "no %s is named %s%s%s%s", what, name,
			       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Among those to which its token is restricted, too. */
static bool may_submit(const struct draft *d, const struct queue *q)
{
	if (d->who->adopts && strcmp(d->who->adopts, q->name) == 0)
		return true;
	return access_submit(d->m, q, d->who->user, d->who->groups, d->who->operator_) &&
	       token_has_queue(d->who->queues, q);
}

/* Return the namespace of the queue's pods; NULL = there are none in a namespace. */
static const char *namespace_of(const struct draft *d, const struct queue *q)
{
	for (; q; q = q->parent)
		if (q->site->namespace_)
			return q->site->namespace_;
	return d->cluster ? d->cluster->namespace_ : NULL;
}

/* Pods that name their namespace go to queues of that; adopted ones also where the site has them go. */
static bool is_in_namespace(const struct draft *d, const struct queue *q)
{
	const char *own = namespace_of(d, q), *asked = d->spec.namespace_;

	return (d->who->adopts && strcmp(d->who->adopts, q->name) == 0) || !asked || !own ||
	       strcmp(asked, own) == 0;
}

static int nearest_queue(const struct draft *d, const char *name, struct gpuq_err *err)
{
	const char *names[256];
	struct gpuq_buf list = GPUQ_BUF_INIT;
	const char *near;
	size_t n = 0;

	for (uint32_t i = 0; i < d->m->n_queues && n < 255; i++)
		if (!d->m->queues[i]->n_children && may_submit(d, d->m->queues[i]) &&
		    is_in_namespace(d, d->m->queues[i]))
			names[n++] = d->m->queues[i]->name;
	names[n] = NULL;
	near = name ? gpuq_nearest(name, names) : NULL;
	for (size_t i = 0; i < n && list.len < 200; i++)
		gpuq_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	if (near)
		gpuq_fail_field(err, GPUQ_ENOENT, "queue", "no queue is named %s; did you mean %s?",
				name, near);
	else if (name)
		gpuq_fail_field(err, GPUQ_ENOENT, "queue", "no queue is named %s; you may use: %s",
				name, n ? gpuq_buf_str(&list) : "none");
	else if (n)
		gpuq_fail_field(err, GPUQ_EINVAL, "queue", "expected a queue, one of: %s",
				gpuq_buf_str(&list));
	else
		gpuq_fail_field(err, GPUQ_EPERM, "queue", "%s may use no queue", d->who->user);
	gpuq_buf_done(&list);
	return err ? err->code : GPUQ_ENOENT;
}

/* Checked first: if -q prod names an unknown qos and prod is a queue, the message should not be
 * that no queue is named. */
static int check_qos_exists(struct draft *d, struct gpuq_err *err)
{
	const char *name = d->spec.qos, *names[128];
	size_t n = 0;

	if (!name || site_qos_find(d->m->site, name))
		return 0;
	if (model_find_queue(d->m, name))
		return gpuq_fail_field(err, GPUQ_ENOENT, "qos",
				       "no qos is named %s, it is a queue: -p %s, or queue: %s",
				       name, name, name);
	names[n++] = "normal";
	site_each(site_qos, d->m->site->qos, q)
		if (n < 127)
			names[n++] = q->name;
	names[n] = NULL;
	return draft_unknown("qos", "qos", name, names, err);
}

/* Choose the queue: the job's, the user's default, `default`, or the only one the user may use. */
static int check_queue(struct draft *d, struct gpuq_err *err)
{
	const char *name = d->spec.queue;
	const struct queue *only = NULL;
	uint32_t n = 0;

	if (!name) {
		site_each(site_user, d->m->site->users, u)
			if (strcmp(u->name, d->who->user) == 0)
				name = u->default_queue;
	}
	if (!name && model_find_queue(d->m, "default"))
		name = "default";
	if (!name) {
		for (uint32_t i = 0; i < d->m->n_queues; i++)
			if (!d->m->queues[i]->n_children && may_submit(d, d->m->queues[i])) {
				only = d->m->queues[i];
				n++;
			}
		if (n != 1)
			return nearest_queue(d, NULL, err);
		name = only->name;
	}
	d->queue = model_find_queue(d->m, name);
	if (!d->queue)
		return nearest_queue(d, name, err);
	if (d->queue->n_children)
		return gpuq_fail_field(err, GPUQ_EINVAL, "queue",
				       "queue %s has queues below it: use one of those", name);
	d->spec.queue = d->queue->name;
	return 0;
}

static int check_user(struct draft *d, struct gpuq_err *err)
{
	if (!may_submit(d, d->queue))
		return gpuq_fail_field(err, GPUQ_EPERM, "queue", "%s may not use queue %s",
				       d->who->user, d->queue->name);
	for (const struct queue *q = d->queue; q; q = q->parent)
		if (q->site->closed)
			return gpuq_fail_field(err, GPUQ_EPERM, "queue",
					       "queue %s is closed: it accepts no jobs", q->name);
	return 0;
}

static int check_namespace(struct draft *d, struct gpuq_err *err)
{
	if (!is_in_namespace(d, d->queue))
		return gpuq_fail_field(err, GPUQ_EPERM, "metadata.namespace",
				       "namespace %s is not the one of queue %s, which is %s: omit "
				       "it, or name the queue of that namespace",
				       d->spec.namespace_, d->queue->name,
				       namespace_of(d, d->queue));
	return 0;
}

/* Return the first of the queue's qos that are made for interactive jobs. */
static const char *interactive_qos(const struct draft *d, const struct gpuq_strlist *allowed)
{
	for (size_t i = 0; allowed && i < allowed->n; i++) {
		const struct site_qos *q = site_qos_find(d->m->site, allowed->items[i]);

		if (q && q->interactive)
			return q->name;
	}
	return NULL;
}

static int check_qos(struct draft *d, struct gpuq_err *err)
{
	const struct gpuq_strlist *allowed = NULL;
	const char *name = d->spec.qos;

	for (const struct queue *q = d->queue; q && !allowed; q = q->parent)
		if (q->site->qos.n)
			allowed = &q->site->qos;
	if (!name && d->spec.tty)
		name = interactive_qos(d, allowed);
	if (!name)
		name = allowed && !gpuq_strlist_has(allowed, "normal") ? allowed->items[0]
								       : "normal";
	d->qos = site_qos_find(d->m->site, name);
	if (allowed && !gpuq_strlist_has(allowed, name))
		return gpuq_fail_field(err, GPUQ_EPERM, "qos", "queue %s does not allow qos %s",
				       d->queue->name, name);
	d->spec.qos = d->qos->name;
	return 0;
}

static int check_time(struct draft *d, struct gpuq_err *err)
{
	int64_t t = d->spec.time_us, usual = 0, max = GPUQ_UNLIMITED;
	char a[32], b[32];

	for (const struct queue *q = d->queue; q; q = q->parent) {
		if (!usual)
			usual = q->site->default_time_us;
		if (q->site->max_time_us && q->site->max_time_us < max)
			max = q->site->max_time_us;
	}
	if (d->qos->max_time_us && d->qos->max_time_us < max)
		max = d->qos->max_time_us;
	if (!t)
		t = usual && usual < max ? usual : max;
	if (t > max) {
		gpuq_duration_print(t, a, sizeof(a));
		gpuq_duration_print(max, b, sizeof(b));
		return gpuq_fail_field(err, GPUQ_ELIMIT, "time",
				       "%s is longer than queue %s and qos %s allow, which is %s",
				       a, d->queue->name, d->qos->name, b);
	}
	if (d->spec.time_min_us > t) {
		gpuq_duration_print(d->spec.time_min_us, a, sizeof(a));
		gpuq_duration_print(t, b, sizeof(b));
		return gpuq_fail_field(err, GPUQ_EINVAL, "time_min",
				       "time_min is %s, more than the job's time, which is %s", a,
				       b);
	}
	d->time_limit_us = t;
	if (d->spec.deadline_us && d->spec.deadline_us <= walltime_of(d->now_us, d->m->ahead_us))
		return gpuq_fail_field(err, GPUQ_EINVAL, "deadline", "the deadline has passed");
	return 0;
}

static const struct site_queue *prefers(const struct queue *q)
{
	while (q && q->site->flavors.n == 0)
		q = q->parent;
	return q ? q->site : NULL;
}

const struct gpuq_strlist *draft_queue_flavors(const struct queue *q)
{
	return prefers(q) ? &prefers(q)->flavors : NULL;
}

const struct gpuq_flavor_rule *draft_queue_rule(const struct queue *q, size_t flavor)
{
	const struct gpuq_flavor_rule *rules = prefers(q) ? prefers(q)->flavor_rules : NULL;

	return rules ? &rules[flavor] : NULL;
}

/* Refuse rules that could have no effect: of kinds of devices, or of requests that nothing makes. */
static int check_rules(const struct draft *d, struct gpuq_err *err)
{
	const struct gpuq_spec *s = &d->spec;

	if (s->flavor_rules && d->m->site->flavors.n == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "flavor",
				       "the site has no flavors: expected kinds of devices "
				       "without for, refusals and max_price");
	for (size_t i = 0; s->flavor_rules && i < s->flavors.n; i++) {
		bool asks = s->flavor_rules[i].refusals == 0 || s->flavor_rules[i].for_us > 0;

		site_each(site_pool, d->m->site->pools, p)
			asks |= site_pool_grows(p) && strcmp(p->flavor, s->flavors.items[i]) == 0;
		if (!asks)
			return gpuq_fail_field(err, GPUQ_EINVAL, "flavor",
					       "no pool of %s requests nodes, so that none is ever "
					       "refused: expected 'for' beside refusals",
					       s->flavors.items[i]);
	}
	return 0;
}

/* A job that requests devices and names no flavor gets the queue's default flavors. A job that has
 * started keeps what it has. */
static int check_flavors(struct draft *d, struct gpuq_err *err)
{
	const struct gpuq_strlist *flavors = draft_queue_flavors(d->queue);
	bool asks = false;

	for (size_t i = 0; i < d->spec.n_groups; i++)
		asks |= d->spec.groups[i].gpus_milli > 0;
	if (asks && flavors && d->spec.flavors.n == 0 && !d->names_devices &&
	    !(d->instead && model_job_is_live(d->instead))) {
		d->spec.flavors = *flavors;
		d->spec.flavor_rules = draft_queue_rule(d->queue, 0);
	}
	return check_rules(d, err);
}

static int check_run_limit(struct draft *d, struct gpuq_err *err)
{
	return run_limit_check(d->m, &d->spec, d->time_limit_us, err);
}

/* As in Slurm: a nice below 0 requires a right over the queue, which does not move with the job to
 * another queue. */
static int check_nice(struct draft *d, struct gpuq_err *err)
{
	const struct submit_who *by = d->by ? d->by : d->who;

	if (d->spec.nice >= 0 ||
	    (d->instead && d->instead->queue == d->queue &&
	     d->spec.nice >= d->instead->wish->nice) ||
	    access_manage(d->m, d->queue, by->user, by->operator_))
		return 0;
	return gpuq_fail_field(err, GPUQ_EPERM, "nice",
			       "only managers of queue %s and operators may set it below 0",
			       d->queue->name);
}

/* As in Slurm: a fixed priority replaces the computed one. An update has checked the right
 * already. */
static int check_priority(struct draft *d, struct gpuq_err *err)
{
	if (d->spec.priority == 0 || d->who->operator_ || d->instead)
		return 0;
	return gpuq_fail_field(err, GPUQ_EPERM, "priority", "only operators may set it; use nice");
}

/* Check the destinations of reports: a script that requests mail needs a site that sends it, and
 * each destination must be allowed. */
static int check_notify(struct draft *d, struct gpuq_err *err)
{
	const struct policy_notify *site = &d->m->policy.notify;
	const char *owner = d->instead ? d->instead->user : d->who->user;
	struct gpuq_notify mail, web;

	gpuq_spec_told(&d->spec, owner, &mail, &web);
	if (mail.on && !site->mail) {
		gpuq_buf_adds(&d->warnings,
			      "mail: not configured (notify.mail_command of gpuqd.yaml)\n");
	} else if (mail.on) {
		if (gpuq_mail_check(mail.mail, err) < 0) {
			gpuq_err_prefix(err, "recipient of mails (mail_user): '%.80s'", mail.mail);
			return err->code;
		}
		if (site->mail_to.n && strcmp(mail.mail, owner) != 0 &&
		    !gpuq_mail_allowed(mail.mail, &site->mail_to))
			return gpuq_fail_field(err, GPUQ_EPERM, "mail_user",
					       "mail to %s is not allowed here: it must end with "
					       "one of notify.mail_allowed, such as %s",
					       mail.mail, site->mail_to.items[0]);
	}
	if (web.on && !gpuq_url_allowed(web.webhook, &site->urls))
		return gpuq_fail_field(
			err, GPUQ_EPERM, "notify.webhook", "this URL is not allowed here: %s%s",
			site->urls.n ? "it must begin with one of "
				       "notify.webhook_allowed, such as "
				     : "no URL is allowed (notify.webhook_allowed of gpuqd.yaml)",
			site->urls.n ? site->urls.items[0] : "");
	return 0;
}

static int check_limits(struct draft *d, struct gpuq_err *err)
{
	return limits_check(d, err);
}

static int check_licenses(struct draft *d, struct gpuq_err *err)
{
	for (size_t i = 0; i < d->spec.licenses.n; i++) {
		const char *name = d->spec.licenses.keys[i];
		const char *names[128];
		const struct site_license *known = NULL;
		size_t n = 0;

		site_each(site_license, d->m->site->licenses, l) {
			if (strcmp(l->name, name) == 0)
				known = l;
			if (n < 127)
				names[n++] = l->name;
		}
		names[n] = NULL;
		if (!known)
			return draft_unknown("license", "licenses", name, names, err);
		if (strtoll(d->spec.licenses.vals[i], NULL, 10) > known->count)
			gpuq_buf_printf(&d->warnings,
					"the job requests %s of license %s, there are %" PRId64
					": it is pending until there are more\n",
					d->spec.licenses.vals[i], name, known->count);
	}
	return 0;
}

static bool is_kube(const struct draft *d)
{
	return d->cluster && strcmp(d->cluster->ops->kind, "kube") == 0;
}

/* True for a job that is submitted to Kubernetes. */
static bool goes_to_pods(const struct draft *d)
{
	return !d->instead && is_kube(d);
}

static struct script_job script_of(const struct draft *d)
{
	return (struct script_job){ d->m, d->queue, d->who->user, &d->spec, &d->whole };
}

static int check_code(struct draft *d, struct gpuq_err *err)
{
	const struct script_job j = script_of(d);

	return goes_to_pods(d) ? script_check_code(&j, err) : 0;
}

static int choose_launch(struct draft *d, struct gpuq_err *err)
{
	const struct script_job j = script_of(d);

	(void)err;
	d->spec.launch.yes |= !d->instead && script_launches(&j);
	return 0;
}

static int check_cluster(struct draft *d, struct gpuq_err *err)
{
	const struct pod_keys_for f = { .queue = d->queue->name,
					.user = d->who->user,
					.flavor = "",
					.local = d->cluster && d->cluster->ops->kind &&
						 strcmp(d->cluster->ops->kind, "local") == 0 };
	struct site_walls walls;
	const char *image = NULL;
	int rc = pod_keys_merge(d->m->site, &f, &d->spec, d->a, &d->whole, err);

	if (rc < 0 || !d->cluster || !d->cluster->ops->spec_check)
		return rc;
	if (d->whole.n_groups && !d->spec.groups[0].image)
		image = d->whole.groups[0].image;
	for (const struct queue *q = d->queue; q && !image; q = q->parent)
		image = q->site->pod.image;
	walls_of_queue(d->m->site, d->queue->name, &walls);
	return d->cluster->ops->spec_check(d->cluster, &d->spec, &d->whole, image ? image : "",
					   &walls, &d->warnings, err);
}

static int check_dir(struct draft *d, struct gpuq_err *err)
{
	bool known = is_kube(d);

	/* A flavor may have the volume, and which one it gets is not decided yet. */
	site_each(site_flavor, d->m->site->flavors, f)
		known = known && f->pod.volumes.n == 0;
	return place_check_dir(d->a, &d->spec, &d->whole, known, &d->warnings, err);
}

static int check_devices(struct draft *d, struct gpuq_err *err)
{
	return draft_devices(d->m, d->queue, &d->spec, &d->warnings, err);
}

static int check_isolation(struct draft *d, struct gpuq_err *err)
{
	return draft_isolation(d->m, d->queue, &d->spec, err);
}

static int check_encoding(struct draft *d, struct gpuq_err *err)
{
	struct gpuq_val *v = gpuq_spec_write(d->a, &d->spec);
	int rc;

	if (!v)
		return gpuq_no_memory(err);
	gpuq_mp_write(&d->bytes, v);
	if (d->bytes.len > GPUQ_SPEC_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ETOOBIG,
				 "the job takes %zu bytes with its script and environment, %u are "
				 "allowed: put large data in a file or volume",
				 d->bytes.len, GPUQ_SPEC_BYTES_MAX);
	rc = request_encode(&d->whole, &d->request, err);
	return rc;
}

static int check_stored(struct draft *d, struct gpuq_err *err)
{
	return limits_check_stored(d, err);
}

static const struct {
	const char *name;
	int (*fn)(struct draft *d, struct gpuq_err *err);
} checks[] = {
	{ "origin", draft_check_origin },
	{ "qos-exists", check_qos_exists },
	{ "queue", check_queue },
	{ "user", check_user },
	{ "namespace", check_namespace },
	{ "qos", check_qos },
	{ "time", check_time },
	{ "resources", draft_check_resources },
	{ "flavors", check_flavors },
	{ "run-limit", check_run_limit },
	{ "nice", check_nice },
	{ "priority", check_priority },
	{ "limits", check_limits },
	{ "licenses", check_licenses },
	{ "reservation", draft_check_reservation },
	{ "depends", draft_check_depends },
	{ "launch", choose_launch },
	{ "cluster", check_cluster },
	{ "names-of-devices", draft_name_devices },
	{ "code", check_code },
	{ "directory", check_dir },
	{ "devices", check_devices },
	{ "isolation", check_isolation },
	{ "service-accounts", accounts_check },
	{ "notify", check_notify },
	{ "encoding", check_encoding },
	{ "stored", check_stored },
};

static int read_spec(struct draft *d, const struct gpuq_val *spec, struct gpuq_err *err)
{
	struct gpuq_reader r = { .arena = d->a,
				 .now_us = walltime_of(d->now_us, d->m->ahead_us),
				 .err = err };

	return gpuq_spec_read(&r, spec, &d->spec);
}

static void warn_script(struct draft *d)
{
	const struct script_job j = script_of(d);

	if (goes_to_pods(d))
		script_warn_directory(&j, &d->warnings);
	if (!d->instead)
		script_warn_pods(&j, &d->warnings);
}

/* Read the spec and have it checked, for one of its queues; NULL: it names one at most. */
static int check_for(struct draft *d, const struct gpuq_val *spec, const char *queue,
		     struct gpuq_err *err)
{
	int rc = read_spec(d, spec, err);

	if (rc == 0 && queue)
		d->spec.queue = queue;
	for (size_t i = 0; rc == 0 && i < sizeof(checks) / sizeof(checks[0]); i++)
		rc = checks[i].fn(d, err);
	if (rc == 0) {
		place_warn_size(d->m, d->queue, &d->spec, &d->warnings);
		flavor_warn(d->m, &d->spec, &d->warnings);
		run_limit_warn(d->m, &d->spec, d->time_limit_us, &d->warnings);
		place_warn(d->m, &d->spec, &d->warnings);
		volume_warn(d->m, d->queue, &d->spec, &d->warnings);
		warn_script(d);
	}
	return rc;
}

/* A queue that does not accept the job leaves nothing behind for the next. */
static void begin_again(struct draft *d)
{
	draft_done(d);
	d->bytes = d->request = d->warnings = (struct gpuq_buf)GPUQ_BUF_INIT;
	d->spec = d->whole = (struct gpuq_spec){ .name = NULL };
	d->queue = NULL;
	d->qos = NULL;
	d->names_devices = false;
	d->time_limit_us = 0;
}

/* Take the first queue of the list that accepts the job, as far as its rules and limits tell at once. */
static int check_queues(struct draft *d, const struct gpuq_val *spec, const char *list,
			struct gpuq_err *err)
{
	struct gpuq_buf refused = GPUQ_BUF_INIT;
	struct gpuq_err first = GPUQ_ERR_INIT;
	int rc = read_spec(d, spec, err); /* it may be refused whatever the queue */

	if (rc < 0)
		return rc;
	rc = GPUQ_EINVAL;
	for (const char *at = list; *at && rc != 0 && rc != GPUQ_ENOMEM;) {
		const size_t n = strcspn(at, ",");
		const char *name = gpuq_arena_strndup(d->a, at, n);

		*err = (struct gpuq_err)GPUQ_ERR_INIT;
		begin_again(d);
		rc = name ? check_for(d, spec, name, err) : gpuq_no_memory(err);
		if (rc < 0 && !first.code)
			first = *err;
		if (rc < 0)
			gpuq_buf_printf(&refused, "; queue %s does not accept it: %s",
					name ? name : "", err->text);
		at += n + (at[n] == ',');
	}
	if (rc == 0)
		gpuq_buf_printf(&d->warnings,
				"queue %s is the first of %s that accepts the job%s\n",
				d->queue->name, list, gpuq_buf_str(&refused));
	else if (rc != GPUQ_ENOMEM)
		rc = gpuq_fail_field(err, first.code, first.field,
				     "none of the queues accepts the job%s",
				     gpuq_buf_str(&refused));
	gpuq_buf_done(&refused);
	return rc;
}

int draft_check(struct draft *d, const struct gpuq_val *spec, struct gpuq_err *err)
{
	struct gpuq_err own = GPUQ_ERR_INIT;
	const char *list = gpuq_get_str(spec, "queue", "");

	return strchr(list, ',') ? check_queues(d, spec, list, err ? err : &own)
				 : check_for(d, spec, NULL, err);
}

struct gpuq_val *draft_warnings(struct draft *d)
{
	struct gpuq_val *list = gpuq_list(d->a);
	const char *s = gpuq_buf_str(&d->warnings);

	while (*s) {
		size_t n = strcspn(s, "\n");

		if (n)
			gpuq_add(d->a, list, gpuq_strn(d->a, s, n));
		s += n + (s[n] == '\n');
	}
	return list;
}

/* Return the hash that tells whether a repeated key comes with the same request. The submitter's
 * environment differs from one CI step to the next and is not part of the request. */
static uint64_t spec_hash(uint64_t h, const struct gpuq_val *spec)
{
	struct gpuq_buf raw = GPUQ_BUF_INIT;

	for (uint32_t i = 0; spec->type == GPUQ_MAP && i < spec->n; i++)
		if (strcmp(spec->pairs[i].key, "context") != 0) {
			gpuq_buf_adds(&raw, spec->pairs[i].key);
			gpuq_mp_write(&raw, spec->pairs[i].val);
		}
	h = gpuq_fnv(h, raw.data, raw.len);
	gpuq_buf_done(&raw);
	return h;
}

static int repeat(struct journal *j, const struct idem_key *k, uint64_t hash, const char *key,
		  struct gpuq_arena *a, struct submit_result *out, struct gpuq_err *err)
{
	const struct model *m = journal_model(j);
	int64_t now = loop_now_us(journal_loop(j));

	if (k->hash != hash)
		return gpuq_fail(err, GPUQ_ECONFLICT,
				 "key %s was used for another request (job %" PRIu32 ")", key,
				 k->first_id);
	out->first_id = k->first_id;
	out->n_jobs = k->n_jobs;
	out->repeated = true;
	out->jobs = gpuq_list(a);
	for (uint32_t i = 0; i < k->n_jobs; i++) {
		struct job_key jk = { k->first_id + i, -1 };
		const struct job *job = model_find_job(m, jk);
		struct gpuq_val *v =
			job ? view_job(a, m, job, now) : history_job(journal_store(j), jk, a);

		if (!v) /* not stored yet: try again once it is */
			return gpuq_fail_field(err, GPUQ_ENOENT, "depends",
					       "job %" PRIu32 " is no longer known", jk.id);
		gpuq_set(a, v, "warnings", gpuq_list(a));
		gpuq_add(a, out->jobs, v);
	}
	return 0;
}

static int emit(struct draft *d, const char *key, uint64_t hash, int64_t lease_us, uint32_t *id,
		struct gpuq_err *err)
{
	struct event ev = { .type = EV_JOB_SUBMITTED, .at_us = d->now_us };
	int rc;

	ev.job = (struct job_key){ d->m->next_job_id, -1 };
	ev.submitted.spec = &d->spec;
	ev.submitted.spec_bytes = d->bytes.data;
	ev.submitted.spec_len = d->bytes.len;
	ev.submitted.request_bytes = d->request.data;
	ev.submitted.request_len = d->request.len;
	ev.submitted.user = d->who->user;
	ev.submitted.uid = d->who->uid;
	ev.submitted.gid = d->who->gid;
	ev.submitted.queue = d->queue->name;
	ev.submitted.qos = d->qos->name;
	ev.submitted.time_limit_us = d->time_limit_us;
	ev.submitted.key = key;
	ev.submitted.key_hash = hash;
	ev.submitted.lease_us = lease_us;
	rc = journal_apply(d->j, &ev, err);
	if (rc < 0)
		return rc;
	*id = ev.job.id;
	draft_tell_past(d);
	log_info("job.submitted",
		 "job=%" PRIu32 " user=%s queue=%s name=%s gpus_milli=%" PRId64 " pods=%" PRId64,
		 *id, LOGS(d->who->user), d->queue->name, LOGS(d->spec.name),
		 gpuq_spec_gpus_milli(&d->spec), gpuq_spec_pods(&d->spec));
	return 0;
}

void draft_done(struct draft *d)
{
	gpuq_buf_done(&d->bytes);
	gpuq_buf_done(&d->request);
	gpuq_buf_done(&d->warnings);
}

int submit_jobs(struct journal *j, struct cluster *c, const struct submit_who *who,
		const struct gpuq_val *specs, const char *key, int64_t lease_us, bool dry_run,
		struct gpuq_arena *a, struct submit_result *out, struct gpuq_err *err)
{
	const struct model *m = journal_model(j);
	uint64_t hash = GPUQ_FNV_START;
	int64_t now = loop_now_us(journal_loop(j)), n_before = 0;
	const struct idem_key *known = NULL;
	struct stored before = { 0, 0 };
	struct draft *drafts;
	size_t n = 0;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (!specs || specs->type != GPUQ_LIST || specs->n == 0 || specs->n > GPUQ_DOCS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "specs", "expected a list of 1 to %u jobs",
				       GPUQ_DOCS_MAX);
	if (!dry_run) {
		rc = journal_has_space(j, err);
		if (rc < 0)
			return rc;
	}
	if (recovery_waits(m) && !dry_run)
		return gpuq_fail(err, GPUQ_EBUSY,
				 "gpuqd was restored from a backup and has not listed the cluster "
				 "yet: a job number might be used twice; retry");
	drafts = gpuq_arena_calloc(a, specs->n, sizeof(*drafts));
	if (!drafts)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < specs->n; i++)
		hash = spec_hash(hash, specs->items[i]);
	/* Before the checks: what they depend on may have changed since the first time. */
	known = key && !dry_run ? model_find_key(m, who->user, key) : NULL;
	if (known)
		return repeat(j, known, hash, key, a, out, err);
	for (; n < specs->n && rc == 0; n++) {
		struct draft *d = &drafts[n];

		d->j = j;
		d->m = m;
		d->cluster = c;
		d->who = who;
		d->now_us = now;
		d->a = a;
		d->n_before = n_before;
		d->stored_before = before;
		rc = draft_check(d, specs->items[n], err);
		n_before += rc == 0 && d->spec.array.n_ranges ? d->spec.array.size : 1;
		before.n_jobs++;
		before.bytes += (int64_t)d->bytes.len;
		if (rc != 0 && specs->n > 1)
			gpuq_err_prefix(err, "job %zu of %u", n + 1, specs->n);
	}
	if (rc == 0)
		out->jobs = gpuq_list(a);
	if (rc == 0 && dry_run && !(out->guests = gpuq_arena_calloc(a, n, sizeof(*out->guests))))
		rc = gpuq_no_memory(err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct draft *d = &drafts[i];
		struct gpuq_val *v;
		uint32_t id = 0;

		if (!dry_run) {
			rc = emit(d, key, hash, lease_us, &id, err);
			if (rc < 0)
				break;
			out->first_id = out->first_id ? out->first_id : id;
			out->n_jobs++;
			v = view_job(a, m, model_find_job(m, (struct job_key){ id, -1 }), now);
		} else {
			v = view_spec(a, &d->spec, who->user, d->time_limit_us);
			gpuq_put(a, v, "spec", gpuq_spec_write(a, &d->spec));
			out->guests[out->n_guests++] =
				(struct start_guest){ &d->spec, who->user, d->queue->name,
						      d->qos->name, d->time_limit_us };
		}
		gpuq_set(a, v, "warnings", draft_warnings(d));
		gpuq_add(a, out->jobs, v);
	}
	for (size_t i = 0; i < n; i++)
		draft_done(&drafts[i]);
	return rc;
}
