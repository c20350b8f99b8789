#include "gpuqd/flow/admit/accounts.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/admit/draft_int.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/site/walls.h"

static const struct queue *with_rule(const struct queue *q)
{
	while (q && !q->site->service_accounts.n)
		q = q->parent;
	return q;
}

static int refuse(const struct draft *d, size_t group, const char *asked, struct gpuq_err *err)
{
	const struct gpuq_strlist *l = &with_rule(d->queue)->site->service_accounts;
	struct gpuq_buf names = GPUQ_BUF_INIT;
	char path[80];

	snprintf(path, sizeof(path), "groups[%zu].template.spec.serviceAccountName", group);
	for (size_t i = 0; i < l->n && names.len < 160; i++)
		gpuq_buf_printf(&names, "%s%s", i ? ", " : "", l->items[i]);
	gpuq_fail_field(err, GPUQ_EPERM, path,
			"%s: queue %s does not let manifests name %.80s; it allows %s", path,
			d->queue->name, asked, gpuq_buf_str(&names));
	gpuq_buf_done(&names);
	return err ? err->code : GPUQ_EPERM;
}

int accounts_check(struct draft *d, struct gpuq_err *err)
{
	struct site_walls walls;

	if (!d->cluster || strcmp(d->cluster->ops->kind, "kube") != 0)
		return 0;
	walls_of_queue(d->m->site, d->queue->name, &walls);
	for (size_t i = 0; i < d->spec.n_groups; i++) {
		const struct gpuq_group *g = &d->spec.groups[i];
		const char *asked = order_account_asked(g), *used = order_account(d->queue, g);

		if (!walls.tokens && gpuq_get_bool(gpuq_get(g->template_, "spec"),
						   "automountServiceAccountToken", false))
			gpuq_buf_adds(&d->warnings, "automountServiceAccountToken is not used: the "
						    "pods have no token\n");
		if (!*asked || strcmp(asked, used) == 0)
			continue;
		if (with_rule(d->queue))
			return refuse(d, i, asked, err);
		gpuq_buf_printf(&d->warnings,
				"serviceAccountName %.80s is not used: the pods of queue %s run as "
				"%s\n",
				asked, d->queue->name, *used ? used : "default");
	}
	return 0;
}
