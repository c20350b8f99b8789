#include "gpuqd/flow/refusal/rejections.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/state/model.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

/* A node that refuses the pods of different jobs is avoided for 1, 2, 4 ... 60 s, and is suspect
 * after five refusals in ten minutes. */
#define BACKOFF_FIRST_US GPUQ_US_PER_S
#define BACKOFF_MAX_US (60 * GPUQ_US_PER_S)
#define REFUSALS_WINDOW_US (600 * GPUQ_US_PER_S)
#define REFUSALS_SUSPECT 5
#define REFUSALS_KEPT 8
/* A node that lacks a resource is believed to for 1, 2, 4 ... 60 minutes; devices, which a plugin may lack for
 * a moment, from a second on. */
#define SHORT_FIRST_US (60 * GPUQ_US_PER_S)
#define SHORT_MAX_US (3600 * GPUQ_US_PER_S)
/* Jobs are different when their users are, or that many requests of one user: a thousand jobs of one
 * kind that fit nowhere cost others no node. */
#define DIFFERENT_USERS 2
#define DIFFERENT_REQUESTS 3

struct rejection {
	int64_t at_us;
	const char *user; /* interned */
	uint32_t request;
};

/* Those of a node for lack of one resource, or for all other reasons. */
struct past {
	UT_hash_handle hh;
	struct rejection last[REFUSALS_KEPT];
	unsigned n;
	char name[]; /* of the node, and of the resource behind a blank */
};

struct rejections {
	struct journal *j;
	struct past *all;
};

/* The refusals of late, and of how many users and requests they are. */
struct count {
	unsigned recent, users, requests;
};

static struct count count(const struct past *f, int64_t now)
{
	struct count c = { 0 };

	for (unsigned i = 0; i < REFUSALS_KEPT; i++) {
		bool user = true, request = true;

		if (!f->last[i].user || f->last[i].at_us <= now - REFUSALS_WINDOW_US)
			continue;
		for (unsigned k = 0; k < i; k++) {
			const bool is =
				f->last[k].user && f->last[k].at_us > now - REFUSALS_WINDOW_US;

			user &= !is || f->last[k].user != f->last[i].user;
			request &= !is || f->last[k].request != f->last[i].request;
		}
		c.recent++;
		c.users += user;
		c.requests += request;
	}
	return c;
}

static struct count add(struct rejections *r, const struct pod_rejection *is, int64_t now)
{
	char name[256 + GPUQ_RESOURCE_NAME_MAX + 2];
	struct past *f = NULL;

	snprintf(name, sizeof(name), "%s%s%s", is->node, is->short_of ? " " : "",
		 is->short_of ? is->short_of : "");
	HASH_FIND_STR(r->all, name, f);
	if (!f) {
		f = calloc(1, sizeof(*f) + strlen(name) + 1);
		if (!f)
			abort();
		memcpy(f->name, name, strlen(name) + 1);
		HASH_ADD_STR(r->all, name, f);
	}
	f->last[f->n++ % REFUSALS_KEPT] = (struct rejection){ now, is->user, is->request };
	return count(f, now);
}

/* Return the wait after so many refusals: each doubles it. */
static int64_t backoff_us(unsigned n, int64_t first_us, int64_t most_us)
{
	int64_t wait = first_us;

	for (unsigned i = 1; i < n && wait < most_us; i++)
		wait *= 2;
	return wait < most_us ? wait : most_us;
}

static void apply(struct rejections *r, struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (journal_apply(r->j, ev, &err) < 0)
		log_debug("refusal.skip", "error=%s", LOGS(err.text));
}

/* Others avoid the node once it has refused different jobs; where it only lacks devices, those do that
 * request some. */
static void avoid(struct rejections *r, const struct pod_rejection *is, struct count c, int64_t now)
{
	const int64_t wait = c.recent >= REFUSALS_SUSPECT
				     ? BACKOFF_MAX_US
				     : backoff_us(c.recent, BACKOFF_FIRST_US, BACKOFF_MAX_US);
	struct event ev = { .type = EV_NODE_BACKOFF };

	if (c.users < DIFFERENT_USERS && c.requests < DIFFERENT_REQUESTS) {
		log_info("node.refused_job", "node=%s user=%s times=%u", LOGS(is->node),
			 LOGS(is->user), c.recent);
		return;
	}
	ev.backoff.name = is->node;
	ev.backoff.until_us = is->short_of ? 0 : now + wait;
	ev.backoff.suspect = c.recent >= REFUSALS_SUSPECT;
	log_warn("node.refused_pod", "node=%s times=%u users=%u wait_s=%" PRId64, LOGS(is->node),
		 c.recent, c.users, wait / GPUQ_US_PER_S);
	apply(r, &ev);
}

/* A node that has no device to give, though it offers some, is not well. */
static bool names_devices(const struct rejections *r, const struct pod_rejection *is)
{
	const struct node *n = model_find_node(journal_model(r->j), is->node);

	return n && node_has_devices_by(n, is->short_of);
}

/* Correct the ledger of a resource that a node lacks, for longer each time that this proves to be so
 * still. The node is well, and open to jobs that request none of it. Pods that were on their way
 * when it was believed already prove nothing anew. */
static void correct(struct rejections *r, const struct pod_rejection *is, int64_t now)
{
	const struct node *n = model_find_node(journal_model(r->j), is->node);
	const struct node_short *had = n ? node_short_find(n, is->short_of) : NULL;
	const bool holds = had && had->until_us > now;
	const uint32_t times = had ? had->times + !holds : 1;
	/* Whatever is free there, it is less than the pod asked for. */
	const int64_t have = is->short_asked > 0 && is->short_have >= is->short_asked
				     ? is->short_asked - 1
				     : is->short_have;
	const int64_t lacks = n ? node_ledger_free(journal_model(r->j), n, is->short_of) - have : 0;
	const int64_t first = names_devices(r, is) ? BACKOFF_FIRST_US : SHORT_FIRST_US;
	const int64_t wait = backoff_us(times, first, SHORT_MAX_US);
	struct event ev = { .type = EV_NODE_SHORT };

	ev.short_of.name = is->node;
	ev.short_of.resource = is->short_of;
	ev.short_of.lacks = lacks > 0 ? lacks : 0;
	ev.short_of.until_us = holds ? had->until_us : now + wait;
	ev.short_of.times = times;
	log_warn("node.short", "node=%s resource=%s have=%" PRId64 " times=%u wait_s=%" PRId64,
		 LOGS(is->node), LOGS(is->short_of), is->short_have, times,
		 (ev.short_of.until_us - now) / GPUQ_US_PER_S);
	apply(r, &ev);
}

void rejections_note(struct rejections *r, const struct pod_rejection *is)
{
	const int64_t now = loop_now_us(journal_loop(r->j));
	const struct count c = add(r, is, now);

	if (is->short_of)
		correct(r, is, now);
	if (!is->short_of || names_devices(r, is))
		avoid(r, is, c, now);
}

struct rejections *rejections_new(struct journal *j)
{
	struct rejections *r = calloc(1, sizeof(*r));

	if (r)
		r->j = j;
	return r;
}

void rejections_free(struct rejections *r)
{
	struct past *f, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->all, f, next) {
		HASH_DEL(r->all, f);
		free(f);
	}
	free(r);
}
