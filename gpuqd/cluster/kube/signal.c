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
	char *pod, *name, *namespace_, *uid, *node, *token; /* pod: as the sink is told of it */
	int signal;
	uint64_t more; /* bits of those that come after it; 1 << (number - 1) */
	bool program; /* the second try, without a shell */
	struct cluster_session *session; /* NULL = over, it got there */
	struct loop_timer *timer;
	bool held;
	int64_t grace_us;
};

/* A namespace where gpuqd may not run programs: asking again for each pod of a gang would only
 * cost time that the pod could use. */
struct denial {
	UT_hash_handle hh; /* by namespace */
	int64_t at_us;
	char *text;
	char namespace_[];
};

struct signals {
	struct loop *loop;
	struct http *http;
	struct signals_sink sink;
	struct sending *all;
	struct denial *denials;
};

static void forget(struct sending *x)
{
	HASH_DELETE(hh, x->owner->all, x);
	if (x->session)
		session_close(x->session);
	loop_cancel(x->timer);
	free(x->pod);
	free(x->name);
	free(x->namespace_);
	free(x->uid);
	free(x->node);
	free(x->token);
	free(x);
}

static void let_delete(struct sending *x, int64_t grace_us)
{
	const struct pod_ref ref = { .name = x->name,
				     .as = x->pod,
				     .namespace_ = x->namespace_,
				     .uid = x->uid,
				     .node = x->node,
				     .token = x->token };

	if (x->held)
		x->owner->sink.remove(x->owner->sink.arg, &ref, grace_us);
	forget(x);
}

/* ---- where it is not allowed ---- */

static void deny(struct signals *s, const char *namespace_, const char *text)
{
	struct denial *d;

	HASH_FIND_STR(s->denials, namespace_, d);
	if (!d) {
		d = calloc(1, sizeof(*d) + strlen(namespace_) + 1);
		if (!d)
			abort(); /* as loop_after() */
		memcpy(d->namespace_, namespace_, strlen(namespace_) + 1);
		HASH_ADD_STR(s->denials, namespace_, d);
	}
	free(d->text);
	d->text = strdup(text);
	d->at_us = loop_mono_us(s->loop);
}

static const char *denied(const struct signals *s, const char *namespace_)
{
	struct denial *d;

	HASH_FIND_STR(s->denials, namespace_, d);
	return d && d->text && loop_mono_us(s->loop) - d->at_us < DENIED_US ? d->text : NULL;
}

/* ---- how it fares ---- */

static void start(struct sending *x);
static void on_late(void *arg);

/* The next of several becomes the one at hand. */
static bool pop(struct sending *x)
{
	if (!x->more)
		return false;
	x->signal = __builtin_ctzll(x->more) + 1;
	x->more &= x->more - 1;
	return true;
}

static bool next(struct sending *x)
{
	if (!pop(x))
		return false;
	x->program = false;
	loop_cancel(x->timer);
	x->timer = loop_after(x->owner->loop, TRY_US, on_late, x);
	start(x);
	return true;
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
	x->owner->sink.told(x->owner->sink.arg, x->pod, x->signal, NULL);
	if (next(x))
		return;
	loop_cancel(x->timer);
	x->timer = loop_after(x->owner->loop, x->held ? x->grace_us : TOLD_US, on_grace, x);
}

static void not_sent(struct sending *x, const struct gpuq_err *err)
{
	log_notice("kube.not_signalled", "pod=%s signal=%d instead=%s why=%s", x->pod, x->signal,
		   x->held ? "TERM" : "none", LOGS(err->text));
	x->owner->sink.told(x->owner->sink.arg, x->pod, x->signal, err);
	if (!next(x))
		let_delete(x, x->grace_us);
}

static void on_late(void *arg)
{
	struct sending *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	x->timer = NULL;
	if (x->session)
		session_close(x->session);
	x->session = NULL;
	gpuq_fail(&err, GPUQ_EIO, "kill in the container did not end within 10 s");
	not_sent(x, &err);
}

/* It was removed first. */
static void on_gone(void *arg)
{
	struct sending *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	x->timer = NULL;
	x->held = false;
	gpuq_fail(&err, GPUQ_EGONE, "it has ended");
	do
		x->owner->sink.told(x->owner->sink.arg, x->pod, x->signal, &err);
	while (pop(x));
	forget(x);
}

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
	struct gpuq_err failed = GPUQ_ERR_INIT;

	session_close(x->session);
	x->session = NULL;
	if (err && err->code == GPUQ_EPERM)
		deny(x->owner, x->namespace_, err->text);
	if (err) {
		not_sent(x, err);
	} else if (exit_code == 0) {
		sent(x);
	} else if (exit_code >= 126 && !x->program) { /* no shell */
		x->program = true;
		start(x);
	} else {
		if (x->program)
			gpuq_fail(&failed, GPUQ_ECONFLICT,
				  "its image has neither a shell nor the program kill");
		else
			gpuq_fail(&failed, GPUQ_ECONFLICT, "kill ended with %d in the container",
				  exit_code);
		not_sent(x, &failed);
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
	x->session =
		session_open(x->owner->loop, x->owner->http, x->namespace_, x->name, &o, &sink);
}

int signals_send(struct signals *s, const char *namespace_, const struct pod_ref *ref, int signal,
		 struct gpuq_err *err)
{
	const char *why = denied(s, namespace_);
	struct sending *x;

	if (signal == SIGKILL || signal == SIGSTOP)
		return gpuq_fail(err, GPUQ_ECONFLICT,
				 "the first process of a container cannot be killed or stopped "
				 "from within; gpuq cancel ends it");
	if (why)
		return gpuq_fail(err, GPUQ_EPERM, "%s", why);
	HASH_FIND_STR(s->all, pod_ref_as(ref), x);
	if (x && x->held)
		return gpuq_fail(err, GPUQ_ECONFLICT, "it is being evicted");
	if (x && x->session) { /* one is on its way */
		if (signal != x->signal)
			x->more |= UINT64_C(1) << (signal - 1);
		return 0;
	}
	if (x)
		forget(x);
	x = calloc(1, sizeof(*x));
	if (x) {
		x->pod = strdup(pod_ref_as(ref));
		x->name = strdup(ref->name);
		x->namespace_ = strdup(namespace_);
		x->uid = strdup(ref->uid ? ref->uid : "");
		x->node = strdup(ref->node ? ref->node : "");
		x->token = strdup(ref->token ? ref->token : "");
	}
	if (!x || !x->pod || !x->name || !x->namespace_ || !x->uid || !x->node || !x->token)
		abort(); /* as loop_after() */
	x->owner = s;
	x->signal = signal;
	HASH_ADD_KEYPTR(hh, s->all, x->pod, strlen(x->pod), x);
	x->timer = loop_after(s->loop, TRY_US, on_late, x);
	start(x);
	return 0;
}

bool signals_hold(struct signals *s, const struct pod_ref *ref, int64_t grace_us)
{
	struct sending *x;

	HASH_FIND_STR(s->all, pod_ref_as(ref), x);
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
	if (x && !x->session) {
		forget(x);
	} else if (x) {
		session_close(x->session);
		x->session = NULL;
		loop_cancel(x->timer);
		x->timer = loop_after(s->loop, 0, on_gone, x);
	}
}

int signals_new(struct loop *l, struct http *h, const struct signals_sink *sink,
		struct signals **out, struct gpuq_err *err)
{
	struct signals *s = calloc(1, sizeof(*s));

	if (!s)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	s->loop = l;
	s->http = h;
	s->sink = *sink;
	*out = s;
	return 0;
}

void signals_free(struct signals *s)
{
	struct sending *x, *x_next;
	struct denial *d, *d_next;

	if (!s)
		return;
	HASH_ITER(hh, s->all, x, x_next)
		forget(x);
	HASH_ITER(hh, s->denials, d, d_next) {
		HASH_DEL(s->denials, d);
		free(d->text);
		free(d);
	}
	free(s);
}
