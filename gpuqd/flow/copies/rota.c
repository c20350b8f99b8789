#include "gpuqd/flow/copies/rota.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/flow/copies/backup.h"
#include "gpuqd/flow/copies/audit_copy.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "libgpuq/units.h"

#define RETRY_US (60 * GPUQ_US_PER_S)
#define AUDIT_RETRY_US (3600 * GPUQ_US_PER_S)
#define LATE_LEAST_US (5 * GPUQ_US_PER_S)
#define STOP_US (2 * GPUQ_US_PER_S)

/* A look through the target, with or without making a copy; the thread's until it is done. */
struct pass {
	int64_t begun_us; /* wall clock */
	bool make; /* false: look only when the next one is due */
	char name[NAMES_BYTES];
	int64_t bytes;
	int n_deleted;
	struct shelf shelf;
	int rc;
	struct gpuq_err err;
};

/* An audit; the thread's until it is done. */
struct audit {
	struct shelf_copy copy;
	int64_t begun_us;
	int rc;
	struct gpuq_err err;
};

struct asked {
	struct asked *next;
	char name[NAMES_BYTES];
	rota_verify_fn fn; /* NULL: it is no longer wanted */
	void *arg;
};

struct rota {
	struct journal *j;
	struct worker *worker;
	struct target *target;
	struct ship *ship; /* NULL = no segments */
	struct backup_plan plan;
	struct audit_tool tool;
	atomic_bool stop;
	char prefix[NAMES_PREFIX_BYTES], cluster_id[MANIFEST_CLUSTER_BYTES];
	struct loop_timer *timer, *audit_timer;
	bool copy_due, audit_due;
	struct shelf shelf; /* as it was found last */
	bool listed;
	int64_t start_us; /* wall clock */
	/* what is under way */
	const char *doing; /* NULL = nothing */
	int64_t since_us, since_mono_us;
	struct pass pass;
	struct audit audit;
	struct asked *asked; /* the first is what the audit is for, if that was requested */
	bool audit_is_asked;
	/* how it went */
	unsigned n_failed;
	int64_t failed_us;
	char why[sizeof(((struct gpuq_err *)0)->text)];
	char audit_why[sizeof(((struct gpuq_err *)0)->text)];
};

/* ---- a copy; on the thread ---- */

/* A copy of the same second, or of a clock that was set back, keeps its name. */
static void choose_name(struct rota *k, struct pass *p)
{
	int64_t at_us = p->begun_us;
	struct stamp s;

	do {
		stamp_write(at_us, &s);
		names_copy(k->prefix, &s, p->name);
		at_us += GPUQ_US_PER_S;
	} while (shelf_find(&p->shelf, p->name));
}

static int put(struct rota *k, struct pass *p, struct backup *b)
{
	struct manifest m = { .time_us = p->begun_us, .schema = STORE_SCHEMA };
	int rc = digest_file(backup_fd(b), -1, m.sha256, &m.bytes, &p->err);

	snprintf(m.file, sizeof(m.file), "%s", p->name);
	snprintf(m.cluster, sizeof(m.cluster), "%s", k->cluster_id);
	m.id = backup_identity(b);
	p->bytes = m.bytes;
	if (rc == 0)
		rc = target_has_room(k->target, m.bytes, &p->err);
	if (rc == 0)
		rc = target_put(k->target, p->name, backup_fd(b), m.sha256, false, &p->err);
	return rc == 0 ? shelf_put_manifest(k->target, &m, &p->err) : rc;
}

/* Beside the database first: however slow the target is, no reader holds back the pages that the
 * database may use again. */
static int copy(struct rota *k, struct pass *p)
{
	struct backup *b = NULL;
	int rc;

	choose_name(k, p);
	rc = backup_new(k->j, &b, &p->err);
	if (rc == 0)
		rc = backup_make(b, &p->err);
	if (rc == 0)
		rc = put(k, p, b);
	backup_free(b);
	return rc;
}

static int look_through(struct rota *k, struct pass *p)
{
	struct shelf now = { .items = NULL };
	int rc =
		shelf_read(k->target, k->prefix, p->shelf.n ? &p->shelf : &k->shelf, &now, &p->err);

	if (rc < 0)
		return rc;
	shelf_done(&p->shelf);
	p->shelf = now;
	return 0;
}

static void work(void *arg)
{
	struct rota *k = arg;
	struct pass *p = &k->pass;

	/* Leftovers first: they may be what takes the room. Old copies last: not before there is a
	 * newer one. */
	p->rc = look_through(k, p);
	if (p->rc == 0 && p->make)
		p->rc = copy(k, p);
	if (p->rc == 0 && p->make)
		p->rc = look_through(k, p);
	if (p->rc == 0 && p->make)
		p->rc = p->n_deleted = shelf_trim(k->target, &p->shelf, p->name, p->begun_us,
						  &k->plan.keep, &p->err);
	if (p->rc >= 0 && p->make)
		p->rc = shelf_trim_segments(k->target, k->prefix, &p->shelf, p->begun_us,
					    &k->plan.keep, &p->err);
}

/* ---- an audit; on the thread ---- */

static void audit_work(void *arg)
{
	struct rota *k = arg;
	struct audit *a = &k->audit;
	struct manifest *m = &a->copy.manifest;

	a->rc = audit_copy(k->target, &a->copy, &k->tool, m->audit, &a->err);
	if (a->rc < 0)
		return;
	m->audited_us = a->begun_us;
	if (a->copy.sealed)
		a->rc = shelf_put_manifest(k->target, m, &a->err);
}

/* ---- the schedule ---- */

static void next(struct rota *k);

static void begin(struct rota *k, const char *what, void (*fn)(void *), void (*done)(void *),
		  struct gpuq_err *err, int *rc)
{
	struct loop *l = journal_loop(k->j);

	k->doing = what;
	k->since_us = loop_wall_us(l);
	k->since_mono_us = loop_mono_us(l);
	*err = (struct gpuq_err)GPUQ_ERR_INIT;
	*rc = worker_run(k->worker, fn, done, k, err);
	if (*rc < 0)
		done(k);
}

static void on_due(void *arg)
{
	struct rota *k = arg;

	k->timer = NULL;
	k->copy_due = true;
	next(k);
}

static void on_audit_due(void *arg)
{
	struct rota *k = arg;

	k->audit_timer = NULL;
	k->audit_due = true;
	next(k);
}

static void tell_failure(struct rota *k)
{
	const struct pass *p = &k->pass;

	log_err("backup.failed", "to=%s error=%s", LOGS(target_text(k->target)), LOGS(p->err.text));
	if (k->n_failed++ == 0)
		k->failed_us = p->begun_us;
	snprintf(k->why, sizeof(k->why), "%s", p->err.text);
}

static int64_t newest_us(const struct rota *k)
{
	return k->shelf.n ? stamp_us(&k->shelf.items[0].stamp) : 0;
}

/* The audit of any copy that was the last; NULL = none was. */
static const struct shelf_copy *last_audited(const struct rota *k)
{
	const struct shelf_copy *last = NULL;

	for (size_t i = 0; i < k->shelf.n; i++) {
		const struct shelf_copy *c = &k->shelf.items[i];

		if (c->manifest.audited_us &&
		    (!last || c->manifest.audited_us > last->manifest.audited_us))
			last = c;
	}
	return last;
}

/* The next one is due a day after the last, whichever copy that was of. */
static void plan_audit(struct rota *k, int64_t least_us)
{
	const struct shelf_copy *last = last_audited(k);
	const int64_t every_us = k->plan.audit_every_us;
	int64_t wait_us = 0;

	if (!every_us || !k->shelf.n || k->audit_timer || k->audit_due)
		return;
	if (last)
		wait_us = last->manifest.audited_us + every_us - loop_wall_us(journal_loop(k->j));
	if (wait_us > every_us)
		wait_us = every_us; /* the clock was set back */
	if (wait_us < least_us)
		wait_us = least_us;
	k->audit_timer = loop_after(journal_loop(k->j), wait_us, on_audit_due, k);
}

static void copy_done(void *arg)
{
	struct rota *k = arg;
	struct pass *p = &k->pass;
	struct loop *l = journal_loop(k->j);
	const int64_t every_us = k->plan.every_us;
	int64_t wait_us = every_us < RETRY_US ? every_us : RETRY_US;

	k->doing = NULL;
	if (p->rc < 0) {
		tell_failure(k);
	} else {
		if (p->make) {
			log_notice("backup.written", "file=%s/%s bytes=%" PRId64 " deleted=%d",
				   LOGS(target_text(k->target)), LOGS(p->name), p->bytes,
				   p->n_deleted);
			k->n_failed = 0;
			*k->why = '\0';
		}
		shelf_done(&k->shelf);
		k->shelf = p->shelf;
		p->shelf = (struct shelf){ .items = NULL };
		k->listed = true;
		wait_us = k->shelf.n ? newest_us(k) + every_us - loop_wall_us(l) : 0;
		/* After a step of the clock the newest may be of a time that is yet to come. */
		if (wait_us > every_us)
			wait_us = every_us;
		if (wait_us < 0)
			wait_us = 0;
		/* The log of batches may fail again and again: a copy each minute is enough. */
		if (k->ship && ship_listed(k->ship, &k->shelf))
			wait_us = !p->make ? 0 : wait_us < RETRY_US ? wait_us : RETRY_US;
		plan_audit(k, 0);
	}
	shelf_done(&p->shelf);
	k->timer = loop_after(l, wait_us, on_due, k);
	next(k);
}

static void on_gap(void *arg)
{
	struct rota *k = arg;

	if (!k->timer) /* one is under way, which sees it */
		return;
	loop_cancel(k->timer);
	k->timer = loop_after(journal_loop(k->j), 0, on_due, k);
}

static void begin_copy(struct rota *k)
{
	struct pass *p = &k->pass;

	k->copy_due = false;
	/* The first time it only looks whether one is due. */
	*p = (struct pass){ .begun_us = loop_wall_us(journal_loop(k->j)), .make = k->listed };
	begin(k, "copy", work, copy_done, &p->err, &p->rc);
}

static void answer(struct rota *k)
{
	struct asked *a = k->asked;

	k->audit_is_asked = false;
	k->asked = a->next;
	if (a->fn)
		a->fn(a->arg, k->audit.rc, &k->audit.copy, &k->audit.err);
	free(a);
}

static void audit_done(void *arg)
{
	struct rota *k = arg;
	struct audit *a = &k->audit;
	struct shelf_copy *c = shelf_find(&k->shelf, a->copy.name);

	k->doing = NULL;
	if (a->rc < 0) {
		log_err("backup.audit", "file=%s error=%s", LOGS(a->copy.name), LOGS(a->err.text));
		snprintf(k->audit_why, sizeof(k->audit_why), "%s", a->err.text);
	} else {
		if (manifest_is_damaged(&a->copy.manifest))
			log_err("backup.audit", "file=%s found=%s", LOGS(a->copy.name),
				LOGS(a->copy.manifest.audit));
		else
			log_notice("backup.audit", "file=%s found=%s", LOGS(a->copy.name),
				   LOGS(a->copy.manifest.audit));
		*k->audit_why = '\0';
		if (c)
			c->manifest = a->copy.manifest;
	}
	if (k->audit_is_asked)
		answer(k);
	plan_audit(k, a->rc < 0 ? AUDIT_RETRY_US : 0);
	next(k);
}

static void begin_audit(struct rota *k, const struct shelf_copy *c)
{
	struct audit *a = &k->audit;

	*a = (struct audit){ .copy = *c, .begun_us = loop_wall_us(journal_loop(k->j)) };
	begin(k, "audit", audit_work, audit_done, &a->err, &a->rc);
}

/* The copy was deleted since it was requested. */
static void refuse_asked(struct rota *k)
{
	k->audit = (struct audit){ .rc = GPUQ_ENOENT };
	gpuq_fail(&k->audit.err, GPUQ_ENOENT, "%s: no copy has that name any more", k->asked->name);
	answer(k);
}

static void next(struct rota *k)
{
	const struct shelf_copy *c;

	if (k->doing)
		return;
	if (k->copy_due) {
		begin_copy(k);
		return;
	}
	while (k->asked && !(k->asked->fn && shelf_find(&k->shelf, k->asked->name)))
		refuse_asked(k);
	if (k->asked) {
		c = shelf_find(&k->shelf, k->asked->name);
		k->audit_is_asked = true;
		begin_audit(k, c);
	} else if (k->audit_due && k->shelf.n) {
		k->audit_due = false;
		begin_audit(k, &k->shelf.items[0]);
	}
}

/* ---- asked by others ---- */

int rota_verify(struct rota *k, const char *name, rota_verify_fn fn, void *arg,
		struct gpuq_err *err)
{
	const struct shelf_copy *c = name         ? shelf_find(&k->shelf, name)
				     : k->shelf.n ? &k->shelf.items[0]
						  : NULL;
	struct asked *a, **at = &k->asked;

	if (!c && !k->listed)
		return gpuq_fail(err, GPUQ_EBUSY, "%s has not been listed yet%s%s",
				 target_text(k->target), *k->why ? ": " : "", k->why);
	if (!c)
		return gpuq_fail(err, GPUQ_ENOENT, "%s: no copy%s%s: see gpuq backup list",
				 target_text(k->target), name ? " is called " : "",
				 name ? name : "");
	a = calloc(1, sizeof(*a));
	if (!a)
		return gpuq_no_memory(err);
	snprintf(a->name, sizeof(a->name), "%s", c->name);
	a->fn = fn;
	a->arg = arg;
	while (*at)
		at = &(*at)->next;
	*at = a;
	next(k);
	return 0;
}

void rota_verify_drop(struct rota *k, const void *arg)
{
	for (struct asked *a = k->asked; a; a = a->next)
		if (a->arg == arg)
			a->fn = NULL;
}

const struct shelf *rota_shelf(const struct rota *k)
{
	return &k->shelf;
}

struct rota_state rota_state(const struct rota *k)
{
	const struct loop *l = journal_loop(k->j);
	const int64_t may_us = k->plan.every_us > LATE_LEAST_US ? k->plan.every_us : LATE_LEAST_US;
	const int64_t last_us = newest_us(k),
		      from_us = last_us > k->start_us ? last_us : k->start_us;
	const struct shelf_copy *audited = last_audited(k);
	struct rota_state s = { .target = target_text(k->target),
				.every_us = k->plan.every_us,
				.doing = k->doing,
				.since_us = k->doing ? k->since_us : 0,
				.listed = k->listed,
				.n_copies = (int64_t)k->shelf.n,
				.last_us = last_us,
				.last_bytes = k->shelf.n ? k->shelf.items[0].bytes : 0,
				.n_failed = k->n_failed,
				.failed_us = k->failed_us,
				.why = k->why,
				.audited_us = audited ? audited->manifest.audited_us : 0,
				.audit = audited ? audited->manifest.audit : "",
				.audited = audited ? audited->name : "",
				.audit_why = k->audit_why };

	if (k->ship) {
		s.has_log = true;
		s.log = ship_state(k->ship);
	}
	s.late = k->doing && loop_mono_us(l) - k->since_mono_us > may_us;
	s.overdue = loop_wall_us(l) - from_us > 2 * may_us;
	for (size_t i = 0; i < k->shelf.n; i++)
		s.damaged |= manifest_is_damaged(&k->shelf.items[i].manifest);
	if (!k->n_failed)
		s.failed_us = 0;
	return s;
}

/* ---- begin and end ---- */

int rota_new(struct journal *j, const struct rota_opts *o, struct rota **out, struct gpuq_err *err)
{
	struct rota *k;
	int rc;

	if (!backup_plan_is_set(&o->plan))
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return gpuq_no_memory(err);
	k->j = j;
	k->plan = o->plan;
	k->tool = (struct audit_tool){ o->self, o->config, o->plan.timeout_us, &k->stop };
	k->start_us = loop_wall_us(journal_loop(j));
	names_prefix(o->cluster_id, k->prefix);
	snprintf(k->cluster_id, sizeof(k->cluster_id), "%s", o->cluster_id);
	rc = worker_new(journal_loop(j), &k->worker, err);
	if (rc == 0)
		rc = target_new(&o->plan, o->scratch, &k->stop, &k->target, err);
	if (rc == 0 && store_log(journal_store(j)))
		rc = ship_new(j,
			      &(struct ship_opts){ k->target, k->prefix, o->plan.log_every_us,
						   on_gap, k },
			      &k->ship, err);
	if (rc < 0) {
		rota_free(k);
		return rc;
	}
	k->timer = loop_after(journal_loop(j), 0, on_due, k);
	*out = k;
	return 0;
}

bool rota_stop(struct rota *k)
{
	bool ends;

	if (!k)
		return true;
	atomic_store(&k->stop, true);
	loop_cancel(k->timer);
	loop_cancel(k->audit_timer);
	k->timer = k->audit_timer = NULL;
	ends = ship_stop(k->ship);
	if (worker_end_within(k->worker, STOP_US) && ends)
		return true;
	log_warn("backup.abandoned", "to=%s: it does not answer", LOGS(target_text(k->target)));
	return false;
}

static void dropped(void *arg)
{
	(void)arg;
}

void rota_free(struct rota *k)
{
	if (!k)
		return;
	ship_free(k->ship);
	worker_free(k->worker, dropped);
	while (k->asked) {
		struct asked *a = k->asked;

		k->asked = a->next;
		free(a);
	}
	shelf_done(&k->shelf);
	shelf_done(&k->pass.shelf);
	target_free(k->target);
	free(k);
}
