#include "gpuqd/default_rule.h"

#include <stdlib.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/units.h"

struct default_rule {
	struct journal *j;
	struct loop_timer *timer;
};

int default_rule_settle(struct model *m, int64_t now_us, struct gpuq_err *err)
{
	struct event ev = { .type = EV_DEFAULT_RULED, .at_us = now_us };
	char at[32];
	int rc;

	if (m->default_from_us >= 0)
		return 0;
	rc = model_apply(m, &ev, err);
	if (rc < 0 || !m->default_spared)
		return rc;
	gpuq_instant_print(m->default_from_us, at, sizeof(at));
	log_warn("site.default",
		 "from=%s: queue default has no quota of its own and other queues have one: from "
		 "then "
		 "on its quota is 0, and its jobs can be preempted; to keep all devices, apply "
		 "quota: unlimited to it",
		 at);
	return 0;
}

static void arm(struct default_rule *r);

static void fire(void *arg)
{
	struct default_rule *r = arg;
	struct event ev = { .type = EV_DEFAULT_RULED };
	struct gpuq_err err = GPUQ_ERR_INIT;

	r->timer = NULL;
	if (loop_now_us(journal_loop(r->j)) >= journal_model(r->j)->default_from_us) {
		if (journal_apply(r->j, &ev, &err) == 0) {
			log_notice("site.default", "the quota of queue default is 0");
			return;
		}
		log_err("site.default", "error=%s", LOGS(err.text));
	}
	arm(r);
}

static void arm(struct default_rule *r)
{
	const struct model *m = journal_model(r->j);
	const int64_t left_us = m->default_from_us - loop_now_us(journal_loop(r->j));

	if (m->default_spared)
		r->timer = loop_after(journal_loop(r->j),
				      left_us > GPUQ_US_PER_S ? left_us : GPUQ_US_PER_S, fire, r);
}

int default_rule_new(struct journal *j, struct default_rule **out, struct gpuq_err *err)
{
	struct default_rule *r = calloc(1, sizeof(*r));

	if (!r)
		return gpuq_no_memory(err);
	r->j = j;
	arm(r);
	*out = r;
	return 0;
}

void default_rule_free(struct default_rule *r)
{
	if (!r)
		return;
	loop_cancel(r->timer);
	free(r);
}
