#include "gpuqd/flow/notify/outbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/notify/outbox_text.h"
#include "gpuqd/net/mail.h"
#include "gpuqd/net/webhook.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

#define UNDER_WAY_MAX 8 /* messages at once */
#define READ_AT_ONCE 256 /* records, so that the loop is not held */
#define PAUSE_US GPUQ_US_PER_S /* after a failure; doubled each time */
#define PAUSE_MOST_US (300 * GPUQ_US_PER_S)

struct entry { /* a message that is not sent yet */
	struct entry *next;
	uint64_t number;
	int64_t made_us;
};

/* An address; its messages are sent one after the other. */
struct receiver {
	UT_hash_handle hh;
	struct receiver *ready_prev, *ready_next;
	struct outbox *o;
	struct entry *first, *last;
	enum { IDLE, READY, PAUSED, UNDER_WAY } state;
	unsigned n_failed; /* in a row */
	int64_t next_us; /* of PAUSED, on the monotonic clock */
	struct webhook_call *web;
	struct mail_call *mail;
	char name[]; /* "mail:ann@example.org": kind and address */
};

struct outbox {
	struct journal *j;
	struct loop *l;
	struct outbox_opts opts;
	struct webhook *web;
	struct receiver *receivers; /* hash by name */
	struct receiver *ready; /* in the order in which they became ready */
	uint64_t read_to; /* messages with smaller numbers have been read */
	struct loop_timer *more, *pause;
	int64_t pause_us; /* when the timer fires */
	struct outbox_stats stats;
	bool stopped; /* callbacks must not send any more */
};

static void pump(struct outbox *o);

/* ---- messages and receivers ---- */

static struct receiver *receiver_get(struct outbox *o, const char *to, const char *address)
{
	const size_t n = strlen(to) + strlen(address) + 2;
	struct receiver *r = calloc(1, sizeof(*r) + n), *known = NULL;

	if (!r)
		abort(); /* the outbox is on disk: a restart is the recovery */
	snprintf(r->name, n, "%s:%s", to, address);
	HASH_FIND_STR(o->receivers, r->name, known);
	if (known) {
		free(r);
		return known;
	}
	r->o = o;
	HASH_ADD_STR(o->receivers, name, r);
	return r;
}

static void make_ready(struct receiver *r)
{
	r->state = READY;
	DL_APPEND2(r->o->ready, r, ready_prev, ready_next);
}

static void receiver_drop(struct receiver *r)
{
	struct entry *e;

	webhook_cancel(r->web);
	mail_cancel(r->mail);
	if (r->state == READY)
		DL_DELETE2(r->o->ready, r, ready_prev, ready_next);
	if (r->state == UNDER_WAY)
		r->o->stats.n_under_way--;
	while ((e = r->first) != NULL) {
		r->first = e->next;
		r->o->stats.n_waiting--;
		free(e);
	}
	HASH_DEL(r->o->receivers, r);
	free(r);
}

static void entry_add(struct receiver *r, uint64_t number, int64_t made_us)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	e->number = number;
	e->made_us = made_us;
	if (r->last)
		r->last->next = e;
	else
		r->first = e;
	r->last = e;
	r->o->stats.n_waiting++;
	if (r->state == IDLE)
		make_ready(r);
}

static void remove_record(struct outbox *o, uint64_t number)
{
	struct event ev = { .type = EV_NOTICES_DONE };

	ev.notices.numbers = &number;
	ev.notices.n = 1;
	/* Without disk space it stays, and is sent again once there is space. */
	(void)journal_apply(o->j, &ev, NULL);
}

/* Remove the receiver's first message, which was sent or given up. */
static void entry_done(struct receiver *r)
{
	struct entry *e = r->first;

	remove_record(r->o, e->number);
	r->first = e->next;
	if (!r->first)
		r->last = NULL;
	r->o->stats.n_waiting--;
	free(e);
}

/* ---- giving up ---- */

/* "webhook https://host": the rest of a URL may be a secret. */
static const char *label(const struct receiver *r, char *out, unsigned room)
{
	char host[128];

	if (strncmp(r->name, "webhook:", 8) == 0) {
		gpuq_url_host(r->name + 8, host, sizeof(host));
		snprintf(out, room, "webhook %s", host);
	} else {
		snprintf(out, room, "%s", r->name);
	}
	return out;
}

static void give_up(struct receiver *r, const struct gpuq_val *msg, const char *why)
{
	struct outbox *o = r->o;
	const struct gpuq_val *job = msg ? gpuq_get(msg, "job") : NULL;
	const int64_t index = job ? gpuq_get_int(job, "array_index", -1) : -1;
	char name[32], to[200], text[420];
	struct audit_note note = {
		.who = "", .action = "notify.given_up", .kind = "job", .name = name, .note = text
	};

	snprintf(name, sizeof(name), index >= 0 ? "%" PRId64 "_%" PRId64 : "%" PRId64,
		 job ? gpuq_get_int(job, "id", 0) : 0, index);
	snprintf(text, sizeof(text), "%s, to %s: %s", msg ? gpuq_get_str(msg, "event", "") : "",
		 label(r, to, sizeof(to)), why);
	note.owner = job ? gpuq_get_str(job, "user", "") : "";
	note.queue = job ? gpuq_get_str(job, "queue", "") : "";
	o->stats.n_given_up++;
	log_warn("notify.given_up", "job=%s to=%s why=%s", name, LOGS(to), LOGS(why));
	(void)audit_add(o->j, &note, NULL);
}

/* ---- reading messages ---- */

struct reading {
	struct outbox *o;
	struct gpuq_arena mem;
	size_t n;
};

static struct gpuq_val *decode(struct gpuq_arena *a, const void *bytes, size_t n)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	struct gpuq_val *v;

	return gpuq_mp_read(a, &lim, bytes, n, &v, NULL) == 0 ? v : NULL;
}

static int read_one(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	struct reading *x = arg;
	struct outbox *o = x->o;
	struct gpuq_val *msg;
	struct receiver *r;
	uint64_t number;

	if (key_len != OUTBOX_KEY_BYTES)
		return 0;
	number = change_key_outbox_number(key);
	gpuq_arena_reset(&x->mem);
	msg = decode(&x->mem, val, val_len);
	o->read_to = number + 1;
	x->n++;
	r = receiver_get(o, msg ? gpuq_get_str(msg, "to", "") : "",
			 msg ? gpuq_get_str(msg, "address", "") : "");
	entry_add(r, number, msg ? gpuq_get_int(msg, "time", 0) : 0);
	return 0;
}

/* Drop what arrived while the outbox is full. One audit entry stands for all: an entry for each
 * would fill the audit. */
static void drop_beyond(struct outbox *o)
{
	struct receiver *most = NULL;
	uint64_t n = 0;

	while (o->stats.n_waiting > GPUQ_OUTBOX_MAX) {
		struct entry *e;

		if (!most || !most->first || !most->first->next) {
			uint64_t n_most = 0;

			most = NULL;
			for (struct receiver *r = o->receivers; r; r = r->hh.next) {
				uint64_t k = 0;

				for (e = r->first; e; e = e->next)
					k++;
				if (k > n_most && k > 1) {
					n_most = k;
					most = r;
				}
			}
			if (!most)
				break;
		}
		/* The second: the first may be in progress. */
		e = most->first->next;
		most->first->next = e->next;
		if (!e->next)
			most->last = most->first;
		remove_record(o, e->number);
		free(e);
		o->stats.n_waiting--;
		o->stats.n_given_up++;
		n++;
	}
	if (n)
		log_warn("notify.full", "given_up=%" PRIu64 " waiting=%" PRIu64, n,
			 o->stats.n_waiting);
}

static void read_more(void *arg)
{
	struct outbox *o = arg;
	struct reading x = { o, GPUQ_ARENA_INIT(0), 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	unsigned char from[CHANGE_KEY_BYTES_MAX];
	const size_t n = change_key_outbox(from, o->read_to);

	o->more = NULL;
	if (store_each(journal_store(o->j), TABLE_OUTBOX, NULL, 0, from, n, false, READ_AT_ONCE,
		       read_one, &x, &err) < 0)
		log_err("notify.read", "error=%s", LOGS(err.text));
	gpuq_arena_done(&x.mem);
	drop_beyond(o);
	if (x.n == READ_AT_ONCE)
		o->more = loop_after(o->l, 0, read_more, o);
	pump(o);
}

static void on_durable(void *arg)
{
	struct outbox *o = arg;

	if (!o->stopped && !o->more && journal_model(o->j)->next_notice > o->read_to)
		read_more(o);
}

/* ---- sending ---- */

static void on_pause(void *arg);

static void plan_pause(struct outbox *o)
{
	int64_t next = 0;

	for (struct receiver *r = o->receivers; r; r = r->hh.next)
		if (r->state == PAUSED && (!next || r->next_us < next))
			next = r->next_us;
	if (o->pause && o->pause_us == next)
		return;
	loop_cancel(o->pause);
	o->pause = NULL;
	o->pause_us = next;
	if (next) {
		const int64_t now = loop_mono_us(o->l);

		o->pause = loop_after(o->l, next > now ? next - now : 0, on_pause, o);
	}
}

static void on_pause(void *arg)
{
	struct outbox *o = arg;
	const int64_t now = loop_mono_us(o->l);

	o->pause = NULL;
	for (struct receiver *r = o->receivers; r; r = r->hh.next)
		if (r->state == PAUSED && r->next_us <= now)
			make_ready(r);
	pump(o);
}

static void paused(struct receiver *r)
{
	int64_t pause = PAUSE_US;

	for (unsigned i = 1; i < r->n_failed && pause < PAUSE_MOST_US; i++)
		pause *= 2;
	r->next_us = loop_mono_us(r->o->l) + (pause < PAUSE_MOST_US ? pause : PAUSE_MOST_US);
	r->state = PAUSED;
}

/* Return the receiver's first message as it is stored; NULL = it is gone. */
static struct gpuq_val *message(struct outbox *o, const struct receiver *r, struct gpuq_arena *a)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const size_t n = change_key_outbox(key, r->first->number);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = NULL;

	if (store_get(journal_store(o->j), TABLE_OUTBOX, key, n, &b, &err) == 0)
		v = decode(a, b.data, b.len);
	gpuq_buf_done(&b);
	return v;
}

static void next_of(struct receiver *r)
{
	if (r->first)
		make_ready(r);
	else
		receiver_drop(r);
}

static void told(struct receiver *r, int rc, bool final, const struct gpuq_err *why)
{
	struct outbox *o = r->o;
	char to[200];

	r->web = NULL;
	r->mail = NULL;
	r->state = IDLE;
	o->stats.n_under_way--;
	if (rc == 0) {
		(void)FAILPOINT("notify.sent");
		r->n_failed = 0;
		entry_done(r);
		next_of(r);
		pump(o);
		return;
	}
	o->stats.n_failed++;
	o->stats.failed_us = loop_now_us(o->l);
	snprintf(o->stats.why, sizeof(o->stats.why), "%.64s: %.90s", label(r, to, sizeof(to)),
		 why->text);
	if (r->n_failed++ == 0 || final)
		log_notice("notify.failed", "to=%s error=%s", LOGS(to), LOGS(why->text));
	if (final) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);

		give_up(r, message(o, r, &a), why->text);
		gpuq_arena_done(&a);
		entry_done(r);
		next_of(r);
	} else {
		paused(r);
	}
	pump(o);
}

static void on_mail(void *arg, int rc, const struct gpuq_err *err)
{
	struct receiver *r = arg;

	r->o->stats.n_mails += rc == 0;
	told(r, rc, false, err);
}

static void on_web(void *arg, int rc, bool final, const struct gpuq_err *err)
{
	struct receiver *r = arg;

	r->o->stats.n_webhooks += rc == 0;
	told(r, rc, final, err);
}

/* Return its destination under the present rules; NULL = none, and *why. */
static const char *url_of(const struct outbox *o, const struct gpuq_val *msg, const char **why)
{
	const char *address = gpuq_get_str(msg, "address", "");

	if (strcmp(gpuq_get_str(msg, "to", ""), "webhook") == 0) {
		*why = "this URL is no longer allowed";
		return gpuq_url_allowed(address, &journal_model(o->j)->policy.notify.urls) ? address
											   : NULL;
	}
	for (size_t i = 0; i < o->opts.n_hooks; i++)
		if (strcmp(o->opts.hooks[i].name, address) == 0)
			return o->opts.hooks[i].url;
	*why = "this webhook of the site no longer exists";
	return NULL;
}

/* Begin to send the first message of r. Returns 0; or an error: give it up, or try later if
 * *again. */
static int begin(struct receiver *r, const struct gpuq_val *msg, bool *again, struct gpuq_err *err)
{
	struct outbox *o = r->o;
	const char *cluster_id = journal_model(o->j)->cluster_id, *url, *why = NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char id[64];
	int rc;

	*again = false;
	outbox_id(cluster_id, r->first->number, id);
	if (strcmp(gpuq_get_str(msg, "to", ""), "mail") == 0) {
		if (o->opts.mail_command.n == 0)
			return gpuq_fail(err, GPUQ_EINVAL, "mail is not configured");
		outbox_mail(msg, id, cluster_id, o->opts.mail_from, &text);
		rc = text.failed ? gpuq_no_memory(err)
				 : mail_send(o->l, &o->opts.mail_command, text.data, text.len,
					     o->opts.mail_timeout_us, on_mail, r, &r->mail, err);
	} else if (!(url = url_of(o, msg, &why))) {
		return gpuq_fail(err, GPUQ_EPERM, "%s", why);
	} else {
		outbox_json(msg, id, cluster_id, &text);
		rc = text.failed ? gpuq_no_memory(err)
				 : webhook_post(o->web, url, id, text.data, text.len, on_web, r,
						&r->web, err);
	}
	gpuq_buf_done(&text);
	*again = rc != 0;
	return rc;
}

static void start(struct receiver *r)
{
	struct outbox *o = r->o;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct gpuq_val *msg =
		walltime_tree(&a, NULL, message(o, r, &a), loop_ahead_us(o->l));
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool again = false;
	int rc = 0;

	DL_DELETE2(o->ready, r, ready_prev, ready_next);
	r->state = IDLE;
	if (!msg)
		rc = gpuq_fail(&err, GPUQ_ECORRUPT, "it cannot be read");
	else if (loop_now_us(o->l) - r->first->made_us > o->opts.keep_us)
		rc = gpuq_fail(&err, GPUQ_ETIMEOUT, "it could not be delivered in time%s%s",
			       *o->stats.why ? "; last: " : "", o->stats.why);
	else
		rc = begin(r, msg, &again, &err);
	if (rc == 0) {
		r->state = UNDER_WAY;
		o->stats.n_under_way++;
	} else if (again) {
		o->stats.n_failed++;
		o->stats.failed_us = loop_now_us(o->l);
		snprintf(o->stats.why, sizeof(o->stats.why), "%.158s", err.text);
		r->n_failed++;
		paused(r);
	} else {
		give_up(r, msg, err.text);
		entry_done(r);
		next_of(r);
	}
	gpuq_arena_done(&a);
}

static void pump(struct outbox *o)
{
	/* Messages that are given up at once must not hold the loop either. */
	for (unsigned i = 0; i < READ_AT_ONCE && o->ready && o->stats.n_under_way < UNDER_WAY_MAX;
	     i++)
		start(o->ready);
	if (o->ready && o->stats.n_under_way < UNDER_WAY_MAX && !o->more)
		o->more = loop_after(o->l, 0, read_more, o);
	plan_pause(o);
}

/* ---- entry points ---- */

static struct webhook_opts web_opts(const struct outbox_opts *o)
{
	return (struct webhook_opts){ o->webhook_timeout_us, o->proxy, o->agent };
}

void outbox_set_opts(struct outbox *o, const struct outbox_opts *opts)
{
	const struct webhook_opts wo = web_opts(opts);

	o->opts = *opts;
	webhook_set_opts(o->web, &wo);
	for (struct receiver *r = o->receivers; r; r = r->hh.next)
		if (r->state == PAUSED)
			make_ready(r);
	if (!o->more)
		o->more = loop_after(o->l, 0, read_more, o);
}

int outbox_new(struct journal *j, const struct outbox_opts *opts, struct outbox **out,
	       struct gpuq_err *err)
{
	const struct webhook_opts wo = web_opts(opts);
	struct outbox *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return gpuq_no_memory(err);
	o->j = j;
	o->l = journal_loop(j);
	o->opts = *opts;
	rc = webhook_new(o->l, &wo, &o->web, err);
	if (rc < 0) {
		free(o);
		return rc;
	}
	journal_on_durable(j, on_durable, o);
	o->more = loop_after(o->l, 0, read_more, o);
	*out = o;
	return 0;
}

static void forget(struct outbox *o)
{
	struct receiver *r, *next;

	HASH_ITER(hh, o->receivers, r, next)
		receiver_drop(r);
	o->read_to = 0;
}

void outbox_reload(struct outbox *o)
{
	if (!o)
		return;
	forget(o);
	loop_cancel(o->more);
	o->more = loop_after(o->l, 0, read_more, o);
}

void outbox_free(struct outbox *o)
{
	if (!o)
		return;
	o->stopped = true;
	forget(o);
	loop_cancel(o->more);
	loop_cancel(o->pause);
	webhook_free(o->web);
	free(o);
}

void outbox_stats(const struct outbox *o, struct outbox_stats *out)
{
	*out = o->stats;
	out->n_receivers = HASH_COUNT(o->receivers);
	out->oldest_us = 0;
	for (const struct receiver *r = o->receivers; r; r = r->hh.next)
		if (r->first && (!out->oldest_us || r->first->made_us < out->oldest_us))
			out->oldest_us = r->first->made_us;
}
