/* cluster.rights: what the cluster lets gpuqd do, by feature. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/state/objects/objects.h"
#include "gpuqd/state/view/cards.h"
#include "gpuqd/state/view/view_node.h"

#define SPACES_MAX 16u /* namespaces that are asked about */
#define HELD_MAX 16u

struct asking {
	struct methods *m;
	struct rpc_call *call; /* NULL = the client is gone */
};

/* One review at a time is plenty. */
static void finished(struct asking *x)
{
	x->m->rights = NULL;
	free(x);
}

struct held {
	struct gpuq_arena *a;
	struct gpuq_val *list;
};

/* Some show the matter. */
static void add_held(void *arg, const char *namespace_, const char *owner, const char *by)
{
	struct held *h = arg;
	struct gpuq_val *v = h->list->n < HELD_MAX ? gpuq_map(h->a) : NULL;

	if (!v)
		return;
	gpuq_put(h->a, v, "namespace", gpuq_str(h->a, namespace_));
	gpuq_put(h->a, v, "owner", gpuq_str(h->a, owner));
	gpuq_put(h->a, v, "by", gpuq_str(h->a, by));
	gpuq_add(h->a, h->list, v);
}

static struct gpuq_val *held(struct cluster *c, struct gpuq_arena *a)
{
	struct held h = { a, gpuq_list(a) };

	if (c && c->ops->owners_held)
		c->ops->owners_held(c, add_held, &h);
	return h.list;
}

/* Return what keeps claims of devices from being allocated, with the words of the cluster; null = nothing does. */
static struct gpuq_val *view_claims(struct gpuq_arena *a, const struct objects *o)
{
	const char *words, *lack = objects_claims_lack(o, &words);
	struct gpuq_val *v = lack ? gpuq_map(a) : gpuq_null(a);

	if (lack) {
		gpuq_put(a, v, "lack", gpuq_str(a, lack));
		gpuq_put(a, v, "words", words ? gpuq_str(a, words) : gpuq_null(a));
	}
	return v;
}

static void on_rights(void *arg, const struct cluster_right *list, size_t n)
{
	struct asking *x = arg;
	struct gpuq_arena *a;
	struct gpuq_val *v, *rows, *things;

	if (x->call) {
		a = rpc_call_arena(x->call);
		v = gpuq_map(a);
		rows = gpuq_list(a);
		things = gpuq_list(a);
		for (size_t i = 0; i < n; i++) {
			struct gpuq_val *row = gpuq_map(a);

			if (!*list[i].verb) {
				gpuq_put(a, row, "name", gpuq_str(a, list[i].resource));
				gpuq_put(a, row, "found",
					 list[i].asked ? gpuq_bool(a, list[i].allowed)
						       : gpuq_null(a));
				gpuq_put(a, row, "why", gpuq_str(a, list[i].why));
				gpuq_add(a, things, row);
				continue;
			}
			gpuq_put(a, row, "feature", gpuq_str(a, list[i].feature));
			gpuq_put(a, row, "verb", gpuq_str(a, list[i].verb));
			gpuq_put(a, row, "resource", gpuq_str(a, list[i].resource));
			gpuq_put(a, row, "namespace", gpuq_str(a, list[i].namespace_));
			gpuq_put(a, row, "group", gpuq_str(a, list[i].group));
			gpuq_put(a, row, "file", gpuq_str(a, list[i].file));
			gpuq_put(a, row, "needed", gpuq_bool(a, list[i].needed));
			gpuq_put(a, row, "asked", gpuq_bool(a, list[i].asked));
			gpuq_put(a, row, "allowed", gpuq_bool(a, list[i].allowed));
			gpuq_put(a, row, "why", gpuq_str(a, list[i].why));
			gpuq_add(a, rows, row);
		}
		gpuq_put(a, v, "rights", rows);
		gpuq_put(a, v, "things", things);
		gpuq_put(a, v, "classes",
			 view_node_classes(a, objects_dra(journal_model(x->m->j)->objects)));
		gpuq_put(a, v, "doubled", view_node_doubled(a, journal_model(x->m->j)));
		gpuq_put(a, v, "unusable",
			 view_node_unusable(a, journal_model(x->m->j),
					    objects_dra(journal_model(x->m->j)->objects)));
		gpuq_put(a, v, "claims", view_claims(a, journal_model(x->m->j)->objects));
		gpuq_put(a, v, "held", held(x->m->cluster, a));
		rpc_reply(x->call, v);
	}
	finished(x);
}

static void on_closed(void *arg, int why)
{
	struct asking *x = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->call, &err);
	x->call = NULL;
}

/* The cluster goes, and its answers with it. */
void rights_drop_cluster(struct methods *m)
{
	struct asking *x = m->rights;
	struct gpuq_err err;

	if (!x)
		return;
	gpuq_fail(&err, GPUQ_EUNREACH, "the cluster is gone");
	if (x->call)
		rpc_fail(x->call, &err);
	finished(x);
}

static bool known(const char *const *list, size_t n, const char *ns)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], ns) == 0)
			return true;
	return false;
}

/* True if some group of the job requests devices by claims. */
static bool claims_devices(const struct job *j)
{
	const struct request_spec *spec = j->request ? &j->request->spec : NULL;

	for (uint32_t i = 0; spec && i < spec->n_groups; i++)
		if (spec->groups[i].where && spec->groups[i].where->n_claims)
			return true;
	return false;
}

/* True if jobs may request devices by claims, as far as the site or the nodes tell, or one does: without
 * the rights it is all that tells. */
static bool has_claims(const struct model *m)
{
	site_each(site_flavor, m->site->flavors, f)
		if (f->device_class)
			return true;
	site_each(site_pool, m->site->pools, p)
		if (p->sharing == SHARING_DRA)
			return true;
	job_each(m, j)
		if (!j->ended && claims_devices(j))
			return true;
	return node_any_of_claims(m);
}

int m_cluster_rights(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct model *model = journal_model(m->j);
	const char *spaces[SPACES_MAX];
	const char *adopts[SPACES_MAX];
	struct cluster_rights_of of = { .namespaces = spaces, .adopts = adopts };
	struct asking *x;
	size_t n = 0;
	int rc;

	(void)params;
	if (!m->cluster || !m->cluster->ops->rights) {
		struct gpuq_arena *a = rpc_call_arena(c);
		struct gpuq_val *v = gpuq_map(a);

		gpuq_put(a, v, "rights", gpuq_list(a)); /* none are needed here */
		rpc_reply(c, v);
		return 0;
	}
	if (m->rights)
		return gpuq_fail(err, GPUQ_EBUSY, "the rights are already being checked");
	if (m->cluster->namespace_)
		spaces[n++] = m->cluster->namespace_;
	for (uint32_t i = 0; i < model->n_queues && n < SPACES_MAX; i++) {
		const char *ns = model->queues[i]->site->namespace_;

		if (ns && !known(spaces, n, ns))
			spaces[n++] = ns;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return gpuq_no_memory(err);
	x->m = m;
	x->call = c;
	m->rights = x;
	rpc_call_watch(c, NULL, on_closed, x);
	of.n = n;
	if (model->site->adopt)
		site_each(site_adopted, model->site->adopt->namespaces, s)
			if (of.n_adopts < SPACES_MAX)
				adopts[of.n_adopts++] = s->name;
	of.claims = has_claims(model);
	of.gpushare = cards_any_of(model, "gpushare");
	of.hami = cards_any_of(model, "hami");
	site_each(site_pool, model->site->pools, p) {
		of.grows |= site_pool_requests(p);
		of.cuts |= layouts_are_on(p->mig);
		of.hami |= p->sharing == SHARING_HAMI;
		of.stands |= site_pool_grows(p) && !site_pool_requests(p);
	}
	rc = m->cluster->ops->rights(m->cluster, &of, on_rights, x, err);
	if (rc < 0) {
		rpc_call_watch(c, NULL, NULL, NULL);
		finished(x);
	}
	return rc;
}
