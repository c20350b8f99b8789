#include "gpuqd/flow/census_watch.h"

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/state/view/census.h"
#include "gpuqd/flow/journal.h"

static void freeze(struct journal *j, const struct node *n, const char *why)
{
	struct event ev = { .type = EV_NODE_FROZEN };

	ev.drain.name = n->name;
	ev.drain.on = why != NULL;
	ev.drain.why = why ? why : "";
	ev.drain.who = "";
	if (why)
		log_err("node.frozen", "node=%s why=%s", n->name, LOGS(why));
	else
		log_info("node.thawed", "node=%s", n->name);
	journal_apply(j, &ev, NULL);
}

void census_watch(struct journal *j)
{
	node_each(journal_model(j), n) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		int rc = census_check(n, &err);

		if (FAILPOINT("census.check"))
			rc = gpuq_fail(&err, GPUQ_ECORRUPT, "a test says so");
		if (rc < 0 && !n->frozen)
			freeze(j, n, err.text);
		else if (rc == 0 && n->frozen)
			freeze(j, n, NULL);
	}
}
