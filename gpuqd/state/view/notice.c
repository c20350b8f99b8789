#include "gpuqd/state/view/notice.h"

#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/notify.h"
#include "gpuqd/state/view/view.h"
#include "libgpuq/wire/mp.h"

#define NODES_MAX 16 /* that a message names */

/* Return the nodes of its current attempt, each once. */
static struct gpuq_val *nodes_of(struct gpuq_arena *a, const struct job *j)
{
	struct gpuq_val *list = gpuq_list(a);
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		bool known = p->attempt != j->attempt;

		for (size_t i = 0; list && i < list->n && !known; i++)
			known = strcmp(list->items[i]->s, p->node->name) == 0;
		if (!known && list && list->n < NODES_MAX)
			gpuq_add(a, list, gpuq_str(a, p->node->name));
	}
	return list;
}

/* Return the job as receivers of notices see it: without what only the scheduler's state explains.
 */
static struct gpuq_val *job_of(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	static const char *const left_out[] = { "pods",     "reasons",        "evictions",
						"avoids",   "promise",        "use",
						"priority", "priority_terms", "planned_time" };
	struct gpuq_val *v = view_job(a, m, j, m->now_us);

	for (size_t i = 0; v && i < sizeof(left_out) / sizeof(left_out[0]); i++)
		gpuq_unset(v, left_out[i]);
	gpuq_put(a, v, "nodes", nodes_of(a, j));
	return v;
}

/* Write one message per recipient: a recipient that refuses its own delays no other. */
static void put(struct model *m, struct gpuq_arena *a, struct gpuq_val *v, const char *to,
		const char *address)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_set(a, v, "to", gpuq_str(a, to));
	gpuq_set(a, v, "address", gpuq_str(a, address));
	if (gpuq_val_ok(v))
		gpuq_mp_write(&b, v);
	if (!gpuq_val_ok(v) || b.failed)
		m->direct.failed = true;
	else
		change_batch_put(&m->direct, TABLE_OUTBOX, key,
				 change_key_outbox(key, m->next_notice++), b.data, b.len);
	m->meta_dirty = true;
	gpuq_buf_done(&b);
}

/* Add whose nodes they are, and the cloud's words. */
static void put_ask(const struct model *m, struct gpuq_arena *a, struct gpuq_val *v,
		    struct job_key key)
{
	for (const struct ask *k = m->asks; k; k = k->hh.next)
		if (k->owner.id == key.id && (key.index < 0 || k->owner.index == key.index)) {
			gpuq_put(a, v, "object", gpuq_str(a, k->pool));
			gpuq_put(a, v, "message", view_word(a, k->message));
			return;
		}
}

void notice_write(struct model *m, const struct job *j, unsigned what, enum gpuq_cause cause)
{
	const struct policy_notify *site = &m->policy.notify;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v;

	v = gpuq_map(&a);
	gpuq_put(&a, v, "time", gpuq_int(&a, m->now_us));
	gpuq_put(&a, v, "event", gpuq_str(&a, gpuq_notify_name(what)));
	if (cause != GPUQ_CAUSE_NONE)
		gpuq_put(&a, v, "cause", gpuq_str(&a, gpuq_cause_word(cause)));
	gpuq_put(&a, v, "job", job_of(&a, m, j));
	if (what == GPUQ_NOTIFY_REFUSED && j->life->trouble) {
		gpuq_put(&a, v, "object", gpuq_str(&a, j->life->trouble->object));
		gpuq_put(&a, v, "message", gpuq_str(&a, j->life->trouble->words));
	}
	if (what & (GPUQ_NOTIFY_PROVISIONED | GPUQ_NOTIFY_PROVISION_FAILED))
		put_ask(m, &a, v, j->key);
	if (notify_wants(j->wish->mail_on, j, what))
		put(m, &a, v, "mail", j->wish->mail);
	if (notify_wants(j->wish->web_on, j, what))
		put(m, &a, v, "webhook", j->wish->web);
	for (unsigned i = 0; i < site->n_hooks; i++)
		if (what == GPUQ_NOTIFY_REFUSED ? site->hooks[i].on & what
						: notify_wants(site->hooks[i].on, j, what))
			put(m, &a, v, "site", site->hooks[i].name);
	gpuq_arena_done(&a);
}
