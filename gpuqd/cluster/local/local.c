/* The local cluster as an implementation of cluster.h: its operations, and the watch of its directory. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/shepherd/devlimit.h"
#include "gpuqd/cluster/local/local_int.h"
#include "gpuqd/cluster/local/local_use.h"
#include "gpuqd/cluster/local/local_session.h"
#include "gpuqd/cluster/local/local_pod.h"
#include "gpuqd/cluster/local/local_own.h"
#include "gpuqd/cluster/local/local_node.h"
#include "gpuqd/cluster/local/local_log.h"
#include "gpuqd/cluster/local/local_launch.h"
#include "gpuqd/cluster/local/local_kept.h"
#include "gpuqd/cluster/local/local_files.h"
#include "gpuqd/cluster/local/local_check.h"

/* How an ask ended, until it can be reported. */
struct local_answer {
	bool created; /* else deleted, or */
	int signal; /* sent */
	enum ask_outcome outcome;
	char *pod, *uid, *message;
	struct local_answer *next;
};

/* ---- telling ---- */

static void tell_answers(struct local *l)
{
	struct local_answer *a = l->answers;

	l->answers = NULL;
	l->answers_tail = &l->answers;
	while (a) {
		struct local_answer *next = a->next;

		if (a->signal && l->sink.signalled)
			l->sink.signalled(l->sink.arg, a->pod, a->signal, NULL);
		else if (a->signal)
			; /* not reported */
		else if (a->created)
			l->sink.created(l->sink.arg, a->pod, a->outcome, a->uid, a->message);
		else
			l->sink.deleted(l->sink.arg, a->pod, a->outcome, a->message);
		free(a->pod);
		free(a->uid);
		free(a->message);
		free(a);
		a = next;
	}
}

static void tell_pods(struct local *l)
{
	struct local_pod *p = l->dirty;

	l->dirty = NULL;
	l->dirty_tail = &l->dirty;
	while (p) {
		struct local_pod *next = p->next_dirty;
		const bool gone = p->gone; /* a receiver may drop it */
		struct pod_fact fact;

		p->dirty = false;
		p->next_dirty = NULL;
		local_pod_fact(l, p, &fact);
		if (p->on_disk && gone)
			l->sink.pod_gone(l->sink.arg, &fact);
		else if (p->on_disk) /* before that it is a wish, not a fact */
			l->sink.pod_seen(l->sink.arg, &fact);
		if (gone)
			local_pod_free(l, p);
		p = next;
	}
}

static void on_flush(void *arg)
{
	struct local *l = arg;

	l->flush = NULL;
	if (!l->listed)
		return; /* the first list tells everything */
	/* Report pods first: a receiver of a delete's result must know by then whether there was
	 * anything to delete. */
	tell_pods(l);
	tell_answers(l);
}

void local_flush_soon(struct local *l)
{
	if (l->started && !l->flush)
		l->flush = loop_after(l->loop, 0, on_flush, l);
}

void local_pod_report(struct local *l, struct local_pod *p)
{
	if (!p->dirty) {
		p->dirty = true;
		p->next_dirty = NULL;
		*l->dirty_tail = p;
		l->dirty_tail = &p->next_dirty;
	}
	local_flush_soon(l);
}

static struct local_answer *answer(struct local *l, const char *pod, enum ask_outcome o,
				   const char *uid, const char *message)
{
	struct local_answer *a = calloc(1, sizeof(*a));

	if (a) {
		a->pod = strdup(pod);
		a->uid = strdup(uid);
		a->message = strdup(message);
	}
	if (!a || !a->pod || !a->uid || !a->message)
		abort(); /* as loop_after: a lost answer would be a silent stall */
	a->outcome = o;
	*l->answers_tail = a;
	l->answers_tail = &a->next;
	local_flush_soon(l);
	return a;
}

void local_answer(struct local *l, bool created, const char *pod, enum ask_outcome o,
		  const char *uid, const char *message)
{
	answer(l, pod, o, uid, message)->created = created;
}

void local_answer_signal(struct local *l, const char *pod, int signal)
{
	answer(l, pod, ASK_OK, "", "")->signal = signal;
}

void local_answer_created(struct local *l, const struct local_pod *p, enum ask_outcome o,
			  const char *message)
{
	local_answer(l, true, p->name, o, p->uid, message);
}

void local_list(struct local *l)
{
	struct local_pod *p, *tmp;

	if (l->listed)
		return;
	l->listed = true;
	HASH_ITER(hh, l->pods, p, tmp) {
		struct pod_fact fact;

		if (!p->on_disk)
			continue;
		local_pod_fact(l, p, &fact);
		l->sink.pod_seen(l->sink.arg, &fact);
	}
	l->sink.list_done(l->sink.arg);
	l->sink.stale(l->sink.arg, 0, "");
	local_flush_soon(l);
}

/* ---- watching ---- */

static void advance_all(struct local *l)
{
	struct local_pod *p, *tmp;

	HASH_ITER(hh, l->pods, p, tmp)
		local_pod_advance(l, p);
}

static void on_inotify(evutil_socket_t fd, short what, void *arg)
{
	struct local *l = arg;
	char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(fd, buf, sizeof(buf));
	int last = -1;

	(void)what;
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const struct inotify_event *)(buf + at);
		struct local_pod *p;

		at += (ssize_t)(sizeof(*e) + e->len);
		if (e->mask & IN_Q_OVERFLOW) {
			advance_all(l);
			local_log_poke(l, NULL);
			continue;
		}
		if (e->wd == last) /* one look serves a run of events */
			continue;
		last = e->wd;
		HASH_FIND(hw, l->by_wd, &e->wd, sizeof(e->wd), p);
		if (p)
			local_pod_advance(l, p);
		else
			local_log_event(l, e->wd);
	}
}

/* Every pod is examined every tenth second, those that inotify does not watch (it has
 * limits per user) and those with something to do every second. */
static void on_tick(void *arg)
{
	struct local *l = arg;
	struct local_pod *p, *tmp;
	unsigned i = 0;

	l->tick = loop_after(l->loop, LOCAL_TICK_US, on_tick, l);
	l->ticks++;
	HASH_ITER(hh, l->pods, p, tmp) {
		const bool ended = p->state.how != HOW_NOT;

		if (ended ? p->forget
			  : p->wd < 0 || p->retry_at_us || p->owes_created || p->leave_unwritten ||
				    i % 10 == l->ticks % 10)
			local_pod_advance(l, p);
		i++;
	}
	local_log_poke(l, NULL);
	local_own_reap(l, false);
	if (loop_mono_us(l->loop) >= l->node.check_at_us)
		local_node_check(l);
	if (l->trim_due && loop_mono_us(l->loop) >= l->trim_at_us) {
		l->trim_due = false;
		l->trim_at_us = loop_mono_us(l->loop) + LOCAL_LOGS_TRIM_US;
		local_log_trim(l);
	}
}

/* ---- the table ---- */

static void on_start(void *arg)
{
	struct local *l = arg;

	l->flush = NULL;
	on_tick(l); /* examines the node; the first list follows it */
	advance_all(l);
	local_use_begin(l);
}

static int local_start(struct cluster *c, const struct cluster_sink *sink, struct gpuq_err *err)
{
	struct local *l = (struct local *)c;
	int rc;

	local_files_sweep(l->local_fd);
	rc = local_pods_load(l, err);
	if (rc != 0)
		return rc;
	l->sink = *sink;
	l->started = true;
	l->trim_due = true;
	l->flush = loop_after(l->loop, 0, on_start, l);
	return 0;
}

static void local_free(struct cluster *c)
{
	struct local *l = (struct local *)c;
	struct local_pod *p, *tmp;

	loop_cancel(l->flush);
	loop_cancel(l->tick);
	while (l->logs)
		local_log_close(l->logs);
	local_own_reap(l, true);
	local_launch_free_all(l);
	local_use_free(l);
	local_node_free(l);
	for (p = l->dirty; p; p = tmp) { /* those gone are in no table any more */
		tmp = p->next_dirty;
		if (p->gone)
			local_pod_free(l, p);
	}
	HASH_ITER(hh, l->pods, p, tmp) {
		HASH_DELETE(hh, l->pods, p);
		local_pod_free(l, p);
	}
	while (l->answers) {
		struct local_answer *a = l->answers;

		l->answers = a->next;
		free(a->pod);
		free(a->uid);
		free(a->message);
		free(a);
	}
	if (l->inotify_ev)
		event_free(l->inotify_ev);
	if (l->inotify_fd >= 0)
		close(l->inotify_fd);
	if (l->local_fd >= 0)
		close(l->local_fd);
	if (l->logs_fd >= 0)
		close(l->logs_fd);
	free(l->dir);
	free(l->shepherd);
	free(l);
}

static const struct cluster_ops ops = {
	.kind = "local",
	.start = local_start,
	.spec_check = local_spec_check,
	.pod_create = local_pod_create,
	.pod_delete = local_pod_delete,
	.pod_signal = local_pod_signal,
	.pod_forget = local_pod_forget,
	.highest_job = local_kept_highest_job,
	.log_open = local_log_open,
	.log_resume = local_log_resume,
	.log_close = local_log_close,
	.session_open = local_session_open,
	.session_write = local_session_write,
	.session_eof = local_session_eof,
	.session_resize = local_session_resize,
	.session_resume = local_session_resume,
	.session_close = local_session_close,
	.free = local_free,
};

static int open_dir(const char *dir, const char *name, mode_t mode, int *out, struct gpuq_err *err)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) - 300)
		return gpuq_fail(err, GPUQ_EINVAL, "the path of the state directory is too long");
	if (mkdir(path, mode) != 0 && errno != EEXIST)
		return gpuq_fail(err, GPUQ_EIO, "cannot make %s: %s", path, strerror(errno));
	*out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*out < 0 || fchmod(*out, mode) != 0)
		return gpuq_fail(err, GPUQ_EIO, "cannot open %s: %s", path, strerror(errno));
	return 0;
}

/* Refuse a state directory that other users than root can write to, under root: orders, scripts
 * and records in it are believed, and programs are run as any user because of them. */
static int check_dir(const char *dir, struct gpuq_err *err)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	if (stat(dir, &st) != 0)
		return gpuq_fail(err, GPUQ_EIO, "cannot examine %s: %s", dir, strerror(errno));
	if (st.st_uid != 0)
		return gpuq_fail(err, GPUQ_EPERM,
				 "the state directory %s belongs to user %u: its files could be "
				 "replaced; expected a directory of root (chown root)",
				 dir, (unsigned)st.st_uid);
	if ((st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && st.st_gid != 0))
		return gpuq_fail(
			err, GPUQ_EPERM,
			"the state directory %s has mode %04o: its files could be replaced; "
			"expected 0755 or less (chmod go-w)",
			dir, (unsigned)st.st_mode & 07777);
	return 0;
}

int cluster_local_new(struct loop *l, const struct cluster_local_opts *o, struct cluster **out,
		      struct gpuq_err *err)
{
	struct local *c = calloc(1, sizeof(*c));
	char why[200];
	int rc;

	if (!c)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for the local cluster");
	c->base.ops = &ops;
	c->loop = l;
	c->gpus = o->gpus;
	snprintf(c->cluster_id, sizeof(c->cluster_id), "%s", o->cluster_id ? o->cluster_id : "");
	c->measure_every_us = o->measure_every_us;
	c->no_new_privs = o->no_new_privs;
	c->device_cgroup = o->device_cgroup;
	c->local_fd = c->logs_fd = c->inotify_fd = -1;
	c->dirty_tail = &c->dirty;
	c->answers_tail = &c->answers;
	c->dir = realpath(o->dir, NULL);
	c->shepherd = strdup(o->shepherd);
	if (!c->dir || !c->shepherd) {
		rc = gpuq_fail(err, GPUQ_EIO, "cannot find the directory %s: %s", o->dir,
			       strerror(errno));
		goto fail;
	}
	rc = check_dir(c->dir, err);
	if (rc != 0)
		goto fail;
	if (c->device_cgroup && !devlimit_check(why)) {
		rc = gpuq_fail(
			err, GPUQ_EINVAL,
			"device_cgroup: %s; without the key jobs open all devices that their "
			"user can",
			why);
		goto fail;
	}
	/* Users traverse the first directory to their scripts; no user may read another's
	 * output. */
	rc = open_dir(c->dir, "local", 0711, &c->local_fd, err);
	if (rc == 0)
		rc = open_dir(c->dir, "logs", 0700, &c->logs_fd, err);
	if (rc == 0)
		rc = local_node_init(c, err);
	if (rc != 0)
		goto fail;
	c->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (c->inotify_fd >= 0) {
		c->inotify_ev =
			event_new(loop_base(l), c->inotify_fd, EV_READ | EV_PERSIST, on_inotify, c);
		if (!c->inotify_ev || event_add(c->inotify_ev, NULL) != 0) {
			rc = gpuq_fail(err, GPUQ_ENOMEM, "cannot watch %s", c->dir);
			goto fail;
		}
	} else {
		log_warn("local.no_inotify", "why=%s fallback=\"a look each second\"",
			 LOGS(strerror(errno)));
	}
	*out = &c->base;
	return 0;
fail:
	local_free(&c->base);
	return rc;
}
