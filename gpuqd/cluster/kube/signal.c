#include "gpuqd/cluster/kube/signal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as loop_after(): the caller waits for an end */
#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/session.h"

#define TRY_US INT64_C(10000000) /* for one kill */
#define TOLD_US INT64_C(10000000) /* a signal and a delete this close are one message */
#define DENIED_US INT64_C(60000000) /* then it is asked again */
#define LAST_GRACE_US INT64_C(1000000) /* after a grace without TERM */

/* With a shell, whose kill is built in, and without. */
static const char *const by_shell[] = { "sh", "-c", NULL, NULL };
static const char *const by_program[] = { "kill", NULL, "1", NULL };

struct sending {
	UT_hash_handle hh; /* by pod */
	struct signals *owner;
	char *pod, *namespace_, *uid, *node, *token;
	int signal;
	bool program; /* the second try, without a shell */
	struct cluster_session *session; /* NULL = over, it got there */
	struct loop_timer *timer;
	bool held;
	int64_t grace_us;
};

struct signals {
	struct loop *loop;
	struct http *http;
	signals_delete_fn fn;
	void *arg;
	struct sending *all;
	int64_t denied_us; /* when; 0 = not */
};

static void forget(struct sending *x)
{
	HASH_DELETE(hh, x->owner->all, x);
	if (x->session)
		session_close(x->session);
	loop_cancel(x->timer);
	free(x->pod);
	free(x->namespace_);
	free(x->uid);
	free(x->node);
	free(x->token);
	free(x);
}

static void let_delete(struct sending *x, int64_t grace_us)
{
	const struct pod_ref ref = { .name = x->pod,
				     .namespace_ = x->namespace_,
				     .uid = x->uid,
				     .node = x->node,
				     .token = x->token };

	if (x->held)
		x->owner->fn(x->owner->arg, &ref, grace_us);
	forget(x);
}

static void on_grace(void *arg)
{
	struct sending *x = arg;

	x->timer = NULL;
	let_delete(x, LAST_GRACE_US);
}

/* It got there: what is held back waits for the grace. */
static void sent(struct sending *x)
{
	log_info("kube.signalled", "pod=%s signal=%d", x->pod, x->signal);
	loop_cancel(x->timer);
	x->timer = loop_after(x->owner->loop, x->held ? x->grace_us : TOLD_US, on_grace, x);
}

static void not_sent(struct sending *x, const char *why)
{
	log_notice("kube.not_signalled", "pod=%s signal=%d instead=%s why=%s", x->pod, x->signal,
		   x->held ? "TERM" : "none", LOGS(why));
	let_delete(x, x->grace_us);
}

static void on_late(void *arg)
{
	struct sending *x = arg;

	x->timer = NULL;
	not_sent(x, "it took too long");
}

static void start(struct sending *x);

static void on_opened(void *arg)
{
	(void)arg;
}

static bool on_data(void *arg, enum session_stream s, const char *bytes, size_t n)
{
	(void)arg, (void)s, (void)bytes, (void)n;
	return true;
}

static void on_ended(void *arg, int exit_code, const struct gpuq_err *err)
{
	struct sending *x = arg;
	char why[64];

	session_close(x->session);
	x->session = NULL;
	if (err && err->code == GPUQ_EPERM)
		x->owner->denied_us = loop_mono_us(x->owner->loop);
	if (err) {
		not_sent(x, err->text);
	} else if (exit_code == 0) {
		sent(x);
	} else if (exit_code >= 126 && !x->program) {
		x->program = true;
		start(x);
	} else {
		snprintf(why, sizeof(why), "kill ended with %d in the container", exit_code);
		not_sent(x, why);
	}
}

static void start(struct sending *x)
{
	const struct session_sink sink = { .arg = x,
					   .opened = on_opened,
					   .data = on_data,
					   .eof = on_opened,
					   .drained = on_opened,
					   .ended = on_ended };
	struct session_opts o = { .kind = SESSION_EXEC };
	char text[32];
	const char *argv[4];

	memcpy(argv, x->program ? by_program : by_shell, sizeof(argv));
	if (x->program) {
		snprintf(text, sizeof(text), "-%d", x->signal);
		argv[1] = text;
	} else {
		snprintf(text, sizeof(text), "kill -%d 1", x->signal);
		argv[2] = text;
	}
	o.command = (struct gpuq_strlist){ argv, 3 };
	x->session = session_open(x->owner->loop, x->owner->http, x->namespace_, x->pod, &o, &sink);
}

bool signals_send(struct signals *s, const char *namespace_, const struct pod_ref *ref, int signal)
{
	struct sending *x;

	/* The first process of a container cannot be killed or stopped from within. */
	if (signal == SIGKILL || signal == SIGSTOP ||
	    (s->denied_us && loop_mono_us(s->loop) - s->denied_us < DENIED_US))
		return false;
	HASH_FIND_STR(s->all, ref->name, x);
	if (x && x->session)
		return true; /* one is on its way */
	if (x)
		forget(x);
	x = calloc(1, sizeof(*x));
	if (x) {
		x->pod = strdup(ref->name);
		x->namespace_ = strdup(namespace_);
		x->uid = strdup(ref->uid ? ref->uid : "");
		x->node = strdup(ref->node ? ref->node : "");
		x->token = strdup(ref->token ? ref->token : "");
	}
	if (!x || !x->pod || !x->namespace_ || !x->uid || !x->node || !x->token)
		abort(); /* as loop_after() */
	x->owner = s;
	x->signal = signal;
	HASH_ADD_KEYPTR(hh, s->all, x->pod, strlen(x->pod), x);
	x->timer = loop_after(s->loop, TRY_US, on_late, x);
	start(x);
	return true;
}

bool signals_hold(struct signals *s, const struct pod_ref *ref, int64_t grace_us)
{
	struct sending *x;

	HASH_FIND_STR(s->all, ref->name, x);
	if (!x)
		return false;
	if (x->held && grace_us >= x->grace_us)
		return true;
	x->held = true;
	x->grace_us = grace_us;
	if (!x->session) {
		loop_cancel(x->timer);
		x->timer = loop_after(s->loop, grace_us, on_grace, x);
	}
	return true;
}

void signals_gone(struct signals *s, const char *pod)
{
	struct sending *x;

	HASH_FIND_STR(s->all, pod, x);
	if (x)
		forget(x);
}

int signals_new(struct loop *l, struct http *h, signals_delete_fn fn, void *arg,
		struct signals **out, struct gpuq_err *err)
{
	struct signals *s = calloc(1, sizeof(*s));

	if (!s)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	s->loop = l;
	s->http = h;
	s->fn = fn;
	s->arg = arg;
	*out = s;
	return 0;
}

void signals_free(struct signals *s)
{
	struct sending *x, *next;

	if (!s)
		return;
	HASH_ITER (hh, s->all, x, next)
		forget(x);
	free(s);
}
