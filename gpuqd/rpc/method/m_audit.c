/* audit.list: changes by users, as far as the caller may see them. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"

#define LOOKED_AT_MAX 5000 /* records between two looks at the other connections */

struct audit_params {
	int64_t since_us, until_us, limit;
	struct gpuq_strlist objects, users, actions; /* globs; none = all */
	bool newest;
};

static const struct gpuq_field audit_fields[] = {
	P(audit_params, "since_us", GPUQ_K_INT, since_us, .min = 0, .max = INT64_MAX),
	P(audit_params, "until_us", GPUQ_K_INT, until_us, .min = 0, .max = INT64_MAX),
	P(audit_params, "limit", GPUQ_K_INT, limit, .min = 0, .max = INT64_MAX),
	P(audit_params, "objects", GPUQ_K_STRLIST, objects),
	P(audit_params, "users", GPUQ_K_STRLIST, users),
	P(audit_params, "actions", GPUQ_K_STRLIST, actions),
	P(audit_params, "newest", GPUQ_K_BOOL, newest),
	P_END,
};
const struct gpuq_schema p_audit_list = P_SCHEMA(audit_params, audit_fields);

struct listing {
	struct methods *m;
	struct rpc_call *c;
	const struct audit_params *p;
	size_t sent, looked_at;
	bool begun, resting;
	int why_closed; /* while it rested; 0 = it was not */
	unsigned char next[CHANGE_KEY_BYTES_MAX]; /* where to go on, once begun */
};

enum { WAIT = 1, ENOUGH, REST };

static bool matches(const struct gpuq_strlist *globs, const char *s)
{
	for (size_t i = 0; i < globs->n; i++)
		if (site_glob(globs->items[i], s))
			return true;
	return globs->n == 0;
}

/* An operator sees all; others what they did, what was done to their jobs, and what
 * befell the queues that they manage. */
static bool may_see(const struct listing *l, const struct gpuq_val *v)
{
	const struct model *m = journal_model(l->m->j);
	const char *user = rpc_call_peer(l->c)->user;
	const char *name = gpuq_get_str(v, "queue", NULL);
	const struct queue *q = name ? model_find_queue(m, name) : NULL;

	return peer_is_operator(l->c) || strcmp(gpuq_get_str(v, "who", ""), user) == 0 ||
	       strcmp(gpuq_get_str(v, "owner", ""), user) == 0 ||
	       (q && access_manage(m, q, user, false));
}

static int one(void *arg, const unsigned char *key, const struct gpuq_val *v)
{
	struct listing *l = arg;

	if (l->p->limit && l->sent >= (size_t)l->p->limit)
		return ENOUGH;
	memcpy(l->next, key, AUDIT_KEY_BYTES);
	l->begun = true;
	if (++l->looked_at > LOOKED_AT_MAX)
		return REST;
	if (!matches(&l->p->objects, gpuq_get_str(v, "object", "")) ||
	    !matches(&l->p->users, gpuq_get_str(v, "who", "")) ||
	    !matches(&l->p->actions, gpuq_get_str(v, "action", "")) || !may_see(l, v))
		return 0;
	if (!rpc_item(l->c, v))
		return WAIT;
	l->sent++;
	return 0;
}

static void go_on(void *arg);

static void end(struct listing *l, int why)
{
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(l->c, &err);
}

static void rested(void *arg)
{
	struct listing *l = arg;

	l->resting = false;
	if (l->why_closed)
		end(l, l->why_closed);
	else
		go_on(l);
}

static void go_on(void *arg)
{
	struct listing *l = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (l->resting)
		return;
	l->looked_at = 0;
	rc = audit_each(journal_store(l->m->j), l->p->since_us, l->p->until_us,
			l->begun ? l->next : NULL, l->p->newest, 0, one, l, &err);
	if (rc == WAIT)
		return;
	if (rc == REST) {
		l->resting = true;
		loop_after(journal_loop(l->m->j), 0, rested, l);
	} else if (rc < 0) {
		rpc_fail(l->c, &err);
	} else {
		rpc_end(l->c, NULL);
	}
}

static void closed(void *arg, int why)
{
	struct listing *l = arg;

	if (l->resting)
		l->why_closed = why; /* the timer has a hold of it */
	else
		end(l, why);
}

/* Changes of this turn are listed too: the list is read once they are durable. */
static void begin(void *arg, int rc, const struct gpuq_err *err)
{
	struct listing *l = arg;

	if (rc < 0) {
		rpc_fail(l->c, err);
		return;
	}
	rpc_call_watch(l->c, go_on, closed, l);
	go_on(l);
}

int m_audit_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct listing *l = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*l));

	if (!l)
		return gpuq_no_memory(err);
	*l = (struct listing){ .m = arg, .c = c, .p = params };
	journal_after(l->m->j, begin, l);
	return 0;
}
