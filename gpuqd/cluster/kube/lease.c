#include "gpuqd/cluster/kube/lease.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define PATH "/apis/coordination.k8s.io/v1/namespaces/"
#define A_PLACE "gpuq.io/place"
#define A_WORDS "gpuq.io/holder"
#define A_WAITS "gpuq.io/waits"
#define WORDS_MAX 256
#define CALL_US INT64_C(4000000)
#define LOOK_US INT64_C(1000000) /* a Lease of another is read again */
#define OFF_US INT64_C(30000000) /* where it may not be written, it is tried again */
#define RELEASES_MAX 3 /* tries to release it beside others' writes */
#define NOTE_US INT64_C(5000000) /* a daemon that waits says so */
#define NOTE_OLD_US (4 * NOTE_US)

enum stage {
	LOOK, /* read it */
	MAKE, /* there is none: create it */
	TAKE, /* it is free */
	RENEW, /* it is ours */
	NOTE, /* write that this daemon waits */
	RELEASE,
};

struct kube_lease {
	struct loop *loop;
	struct http *http;
	struct http_req *req;
	struct loop_timer *again;
	enum stage stage; /* of the request under way, or of the next */
	char name[32], id[80], words[WORDS_MAX], place[96], namespace_[64];
	lease_fn fn;
	void *arg;
	int64_t sent_us; /* the request under way */
	/* As last read. */
	char version[64], holder[128];
	int64_t transitions;
	/* Another holder: what it showed last, and since when. */
	char shown[256];
	int64_t since_us, noted_us;
	bool lived;
	/* Ours. */
	bool held, off, told_off;
	char waits[WORDS_MAX]; /* the note as written, its count included */
	int64_t waits_us;
	unsigned n_notes, n_releases;
	/* As reported last. */
	char by[WORDS_MAX], kept_out[WORDS_MAX];
	bool told;
	void (*done)(void *arg);
	void *done_arg;
};

static void ask(struct kube_lease *s, enum stage stage);

static int64_t now_us(void)
{
	return clock_us(CLOCK_BOOTTIME);
}

static void on_again(void *arg)
{
	struct kube_lease *s = arg;

	s->again = NULL;
	ask(s, s->stage);
}

static void ask_later(struct kube_lease *s, enum stage stage, int64_t wait_us)
{
	s->stage = stage;
	loop_cancel(s->again);
	s->again = loop_after(s->loop, wait_us, on_again, s);
}

/* ---- what is reported ---- */

static void tell(struct kube_lease *s, const char *by)
{
	const char *waits = *by ? "" : s->waits;
	const struct cluster_fence f = { .by = by, .waits = waits, .lived = s->lived };
	const bool same =
		s->told && strcmp(s->by, by) == 0 && (*s->kept_out == '\0') == (*waits == '\0');

	if (same || s->done)
		return;
	s->told = true;
	snprintf(s->by, sizeof(s->by), "%s", by);
	snprintf(s->kept_out, sizeof(s->kept_out), "%s", waits);
	if (!*by)
		s->lived = false;
	s->fn(s->arg, &f);
}

/* Without a Lease there is no fence: gpuqd works as it does alone. */
static void go_without(struct kube_lease *s, const char *why)
{
	if (!s->told_off)
		log_notice("lease.off",
			   "lease=%s/%s why=%s: two daemons with copies of one state directory "
			   "would not notice one another; etc/kubernetes/base has the right",
			   LOGS(s->namespace_), s->name, LOGS(why));
	s->told_off = s->off = true;
	s->held = false;
	http_act_until(s->http, 0);
	tell(s, "");
	ask_later(s, LOOK, OFF_US);
}

/* ---- one request ---- */

static void put_time(json_t *to, const char *key)
{
	char text[64], day[32];
	const int64_t wall_us = clock_us(CLOCK_REALTIME);
	const time_t seconds = wall_us / 1000000;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%06" PRId64 "Z", day, wall_us % 1000000);
	json_object_set_new(to, key, json_string(text));
}

static json_t *as_holder(const struct kube_lease *s, enum stage stage)
{
	json_t *spec = json_pack("{s:s, s:i}", "holderIdentity", s->id, "leaseDurationSeconds",
				 (int)(LEASE_STOOD_US / 1000000));
	json_t *meta =
		json_pack("{s:{s:s, s:s}}", "annotations", A_PLACE, s->place, A_WORDS, s->words);
	json_t *notes = json_object_get(meta, "annotations");

	put_time(spec, "renewTime");
	if (stage != RENEW) {
		put_time(spec, "acquireTime");
		json_object_set_new(spec, "leaseTransitions", json_integer(s->transitions + 1));
	}
	if (stage == MAKE)
		json_object_set_new(meta, "name", json_string(s->name));
	else
		json_object_set_new(meta, "resourceVersion", json_string(s->version));
	/* A note that is no longer repeated goes. */
	if (stage == TAKE || (stage == RENEW && !*s->waits))
		json_object_set_new(notes, A_WAITS, json_null());
	return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "coordination.k8s.io/v1", "kind",
			 "Lease", "metadata", meta, "spec", spec);
}

static json_t *body_of(struct kube_lease *s, enum stage stage)
{
	char note[WORDS_MAX + 16];

	switch (stage) {
	case LOOK:
		return NULL;
	case MAKE:
	case TAKE:
	case RENEW:
		return as_holder(s, stage);
	case NOTE:
		snprintf(note, sizeof(note), "%s #%u", s->words, ++s->n_notes);
		return json_pack("{s:{s:{s:s}}}", "metadata", "annotations", A_WAITS, note);
	case RELEASE:
		return json_pack("{s:{s:s, s:{s:n}}, s:{s:n}}", "metadata", "resourceVersion",
				 s->version, "annotations", A_PLACE, "spec", "holderIdentity");
	}
	return NULL;
}

static void answered(void *arg, const struct http_answer *a);

static void ask(struct kube_lease *s, enum stage stage)
{
	json_t *body = body_of(s, stage);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char path[200];
	const struct http_call call = {
		.method = stage == LOOK   ? "GET"
			  : stage == MAKE ? "POST"
					  : "PATCH",
		.path = path,
		.body = text,
		.n_body = text ? strlen(text) : 0,
		.content_type =
			stage == LOOK || stage == MAKE ? NULL : "application/merge-patch+json",
		.first = true,
		.limit_us = stage == RELEASE ? RELEASE_MAX_US : CALL_US,
		.on_end = answered,
		.arg = s,
	};

	json_decref(body);
	snprintf(path, sizeof(path), PATH "%s/leases%s%s", s->namespace_, stage == MAKE ? "" : "/",
		 stage == MAKE ? "" : s->name);
	s->stage = stage;
	s->sent_us = now_us();
	s->req = http_start(s->http, &call);
	free(text);
}

/* ---- what it shows ---- */

static void read_object(struct kube_lease *s, const json_t *o, char words[WORDS_MAX])
{
	const json_t *meta = json_object_get(o, "metadata"), *spec = json_object_get(o, "spec");
	const json_t *notes = json_object_get(meta, "annotations");
	const char *waits = kube_str(notes, A_WAITS);

	snprintf(s->version, sizeof(s->version), "%s", kube_str(meta, "resourceVersion"));
	snprintf(s->holder, sizeof(s->holder), "%s", kube_str(spec, "holderIdentity"));
	s->transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
	snprintf(words, WORDS_MAX, "%s",
		 *kube_str(notes, A_WORDS) ? kube_str(notes, A_WORDS) : s->holder);
	/* A note counts as long as it is repeated. */
	if (strcmp(waits, s->waits) != 0) {
		snprintf(s->waits, sizeof(s->waits), "%s", waits);
		s->waits_us = now_us();
	} else if (*waits && now_us() - s->waits_us > NOTE_OLD_US) {
		*s->waits = '\0';
	}
}

static bool is_former_self(const struct kube_lease *s, const json_t *o)
{
	const json_t *notes = kube_path(o, "metadata", "annotations");
	const size_t n = strcspn(s->id, "/") + 1; /* the database, not the start */

	return *s->place && strcmp(kube_str(notes, A_PLACE), s->place) == 0 &&
	       strncmp(s->holder, s->id, n) == 0;
}

/* It is another's: wait until it has stood unchanged. */
static void wait_for_it(struct kube_lease *s, const json_t *o, const char *words)
{
	const json_t *spec = json_object_get(o, "spec");
	char shown[sizeof(s->shown)];

	snprintf(shown, sizeof(shown), "%.120s %.60s %" PRId64, s->holder,
		 kube_str(spec, "renewTime"), s->transitions);
	if (strcmp(shown, s->shown) != 0) {
		s->lived |= *s->shown != '\0';
		s->since_us = now_us();
		snprintf(s->shown, sizeof(s->shown), "%s", shown);
	}
	s->lived |= s->held; /* it took the Lease from us */
	if (s->held || !s->told || !*s->by)
		log_err("lease.other",
			"lease=%s/%s by=%s: another gpuqd acts under this identity; nothing is "
			"started or removed here. If this state directory is a copy, end this "
			"gpuqd; if it moved here, end the other",
			LOGS(s->namespace_), s->name, LOGS(words));
	s->held = s->off = false;
	tell(s, words);
	if (now_us() - s->since_us >= LEASE_STOOD_US)
		ask_later(s, TAKE, 0);
	else if (!s->noted_us || now_us() - s->noted_us >= NOTE_US)
		ask_later(s, NOTE, LOOK_US);
	else
		ask_later(s, LOOK, LOOK_US);
}

static void read_it(struct kube_lease *s, const json_t *o)
{
	char words[WORDS_MAX];

	read_object(s, o, words);
	if (strcmp(s->holder, s->id) == 0)
		ask_later(s, RENEW, 0);
	else if (!*s->holder || is_former_self(s, o))
		ask_later(s, TAKE, 0);
	else
		wait_for_it(s, o, words);
}

/* It was written, by us as its holder. */
static void holds(struct kube_lease *s, const json_t *o)
{
	char words[WORDS_MAX];
	const bool new_waits = *s->kept_out == '\0';

	read_object(s, o, words);
	if (!s->held)
		log_notice("lease.held", "lease=%s/%s", LOGS(s->namespace_), s->name);
	s->held = true;
	s->off = s->told_off = false;
	*s->shown = '\0';
	http_act_until(s->http, s->sent_us + LEASE_ACT_US);
	if (*s->waits && new_waits)
		log_err("lease.waits",
			"lease=%s/%s by=%s: another gpuqd with this identity was started and "
			"waits; "
			"its state directory is a copy, or this one is: end one of them",
			LOGS(s->namespace_), s->name, LOGS(s->waits));
	tell(s, "");
	ask_later(s, RENEW, LEASE_RENEW_US);
}

static void done(struct kube_lease *s)
{
	void (*const fn)(void *arg) = s->done;

	if (fn) {
		s->done = NULL;
		fn(s->done_arg);
	}
}

static void answered(void *arg, const struct http_answer *a)
{
	struct kube_lease *s = arg;
	const enum stage stage = s->stage;
	json_t *o = a->complete && a->status / 100 == 2 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	char words[WORDS_MAX];
	struct status st;

	s->req = NULL;
	status_read(a, &st);
	if (stage == RELEASE && st.kind == STATUS_CONFLICT && s->n_releases++ < RELEASES_MAX) {
		ask(s, LOOK); /* one that waits has written its note meanwhile */
	} else if (stage == RELEASE || (s->done && !o)) {
		done(s);
	} else if (s->done) {
		read_object(s, o, words);
		if (strcmp(s->holder, s->id) == 0)
			ask(s, RELEASE);
		else
			done(s);
	} else if (o && (stage == LOOK || stage == NOTE)) {
		if (stage == NOTE)
			s->noted_us = now_us();
		read_it(s, o);
	} else if (o) {
		holds(s, o);
	} else if (st.kind == STATUS_GONE && stage != MAKE) {
		ask_later(s, MAKE, 0);
	} else if (st.kind == STATUS_EXISTS || st.kind == STATUS_CONFLICT) {
		ask_later(s, LOOK, 0);
	} else if (st.kind == STATUS_FORBIDDEN || st.kind == STATUS_GONE ||
		   st.kind == STATUS_REFUSED || st.kind == STATUS_QUOTA) {
		go_without(s, st.text);
	} else {
		ask_later(s, LOOK, LOOK_US); /* until http_act_until(): then nothing is sent */
	}
	json_decref(o);
}

struct kube_lease *kube_lease_new(struct loop *l, struct http *h, const struct lease_opts *o,
				  lease_fn fn, void *arg)
{
	struct kube_lease *s = calloc(1, sizeof(*s));
	uint64_t number = 0;

	if (!s || getrandom(&number, sizeof(number), 0) != sizeof(number)) {
		free(s);
		return NULL;
	}
	s->loop = l;
	s->http = h;
	s->fn = fn;
	s->arg = arg;
	snprintf(s->name, sizeof(s->name), "gpuqd-%.16s", o->cluster_id);
	snprintf(s->id, sizeof(s->id), "%.40s/%016" PRIx64, o->store_id, number);
	snprintf(s->words, sizeof(s->words), "%s", o->words);
	snprintf(s->place, sizeof(s->place), "%s", o->place);
	snprintf(s->namespace_, sizeof(s->namespace_), "%s", o->namespace_);
	ask(s, LOOK);
	return s;
}

void kube_lease_release(struct kube_lease *s, void (*fn)(void *arg), void *arg)
{
	s->done = fn;
	s->done_arg = arg;
	loop_cancel(s->again);
	s->again = NULL;
	if (s->req)
		return; /* its outcome decides what is there to give up */
	if (s->held)
		ask(s, RELEASE);
	else
		done(s);
}

void kube_lease_free(struct kube_lease *s)
{
	if (!s)
		return;
	http_cancel(s->req);
	loop_cancel(s->again);
	free(s);
}
