/* The lowest layer of the model: find its objects, answer simple questions about them, and note
 * that an object is to be stored. Every other file of the room builds on this one. */
#include "gpuqd/devices/backend.h"
#include "gpuqd/state/model_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "libgpuq/grow.h"
#include "libgpuq/spec/profile.h"

/* ---- permanent names ---- */

static uint32_t str_hash(const void *item)
{
	return ((const struct str *)item)->hash;
}

static const char *str_find(const struct model *m, const char *s, uint32_t hash)
{
	struct str *p;

	table_each(&m->strs, hash, p)
		if (p->hash == hash && strcmp(p->s, s) == 0)
			return p->s;
	return NULL;
}

/* Interned strings live as long as the model, and equal ones have equal addresses. */
const char *model_intern(struct model *m, const char *s)
{
	const char *found;
	struct str *p;
	uint32_t hash;
	size_t len;

	if (!s || !*s)
		return "";
	len = strlen(s);
	hash = hash_bytes(s, len);
	found = str_find(m, s, hash);
	if (found)
		return found;
	p = malloc(sizeof(*p) + len + 1);
	if (!p)
		abort(); /* the ledger is on disk: a restart is the recovery */
	p->hash = hash;
	memcpy(p->s, s, len + 1);
	table_add(&m->strs, p, str_hash);
	return p->s;
}

const char *model_interned(const struct model *m, const char *s)
{
	return s && *s ? str_find(m, s, hash_bytes(s, strlen(s))) : "";
}

/* ---- objects by name ---- */

struct job *model_find_job(const struct model *m, struct job_key key)
{
	struct job *j;

	table_each(&m->jobs_by_key, job_key_hash(key), j)
		if (j->key.id == key.id && j->key.index == key.index)
			return j;
	return NULL;
}

struct job *model_find_element(const struct model *m, uint32_t number)
{
	struct job *j;

	table_each(&m->elements, hash_number(number), j)
		if (j->life->element_id == number)
			return j;
	return NULL;
}

struct node *model_find_node(const struct model *m, const char *name)
{
	struct node *n = NULL;

	HASH_FIND_STR(m->nodes, name, n);
	return n;
}

struct queue *model_find_queue(const struct model *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_queues; i++)
		if (strcmp(m->queues[i]->name, name) == 0)
			return m->queues[i];
	return NULL;
}

struct pod *model_find_pod(const struct model *m, struct pod_key key)
{
	struct job *j = model_find_job(m, key.job);
	struct pod *p;

	if (!j)
		return NULL;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == key.attempt && p->index == key.index)
			return p;
	return NULL;
}

struct idem_key *model_find_key(const struct model *m, const char *user, const char *key)
{
	unsigned char bytes[CHANGE_KEY_BYTES_MAX];

	return keys_find(&m->keys, bytes, change_key_strs(bytes, user, key, NULL));
}

void model_pod_key_name(const char *cluster_id, struct pod_key key, char *out)
{
	/* The names of pods are the identity by which a restarted gpuqd recognises them, so their
	 * form must never change. */
	if (key.job.index >= 0)
		snprintf(out, 64, "gpuq-%s-%" PRIu32 "-%" PRId32 "-%" PRIu32 "-%" PRIu32,
			 cluster_id, key.job.id, key.job.index, key.attempt, key.index);
	else
		snprintf(out, 64, "gpuq-%s-%" PRIu32 "-%" PRIu32 "-%" PRIu32, cluster_id,
			 key.job.id, key.attempt, key.index);
}

bool model_is_adopted(const struct model *m, const struct job *j)
{
	return m->origins && j->key.index < 0 && origin_of(m->origins, j->key.id);
}

/* Return the place of a pod among all pods of its job. */
static uint32_t place_of(const struct pod *p)
{
	const struct request_spec *spec = &p->job->request->spec;
	uint32_t at = p->group_index;

	for (uint32_t g = 0; g < p->group && g < spec->n_groups; g++)
		at += (uint32_t)spec->groups[g].pods_min;
	return at;
}

const struct origin_pod *model_pod_origin(const struct model *m, const struct pod *p)
{
	const struct origin *o =
		m->origins && p->job->key.index < 0 ? origin_of(m->origins, p->job->key.id) : NULL;
	const uint32_t at = o ? place_of(p) : 0;

	return o && at < o->n_pods ? &o->pods[at] : NULL;
}

bool model_pod_is_unmade(const struct model *m, const struct pod *p)
{
	const struct origin_pod *o = model_pod_origin(m, p);

	return p->state == GPUQ_POD_PLANNED && (!o || origin_is_suspended(o->of));
}

bool model_owner_runs(const struct model *m, const struct job *j)
{
	const struct origin *own = origin_of(m->origins, j->key.id);

	for (const struct origin *o = own ? origin_first(m->origins) : NULL; o; o = o->hh.next) {
		const struct job *k = model_find_job(m, (struct job_key){ o->job, -1 });

		if (k && k != j && strcmp(o->uid, own->uid) == 0 && model_job_is_live(k) &&
		    !model_job_is_over(k))
			return true;
	}
	return false;
}

struct pod *model_find_origin(const struct model *m, const struct origin_pod *o)
{
	struct job *j = model_find_job(m, (struct job_key){ o->of->job, -1 });
	struct pod *p;

	if (!j || !j->started_once)
		return NULL;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && place_of(p) == o->place &&
		    p->state != GPUQ_POD_GONE)
			return p;
	return NULL;
}

void model_pod_name(const struct model *m, const struct pod *p, char *out)
{
	model_pod_key_name(m->cluster_id, model_pod_key(p), out);
}

bool model_pod_name_parse(const struct model *m, const char *name, struct pod_key *key)
{
	uint32_t part[4];
	int n = 0;
	char *end;

	if (strncmp(name, "gpuq-", 5) != 0 || strncmp(name + 5, m->cluster_id, 8) != 0 ||
	    name[13] != '-')
		return false;
	/* Three numbers, or four for an array's element: job, element, attempt, index. */
	for (name += 14; n < 4; name = end + 1) {
		unsigned long x;

		if (*name < '0' || *name > '9')
			return false;
		x = strtoul(name, &end, 10);
		if (x > UINT32_MAX)
			return false;
		part[n++] = (uint32_t)x;
		if (*end == '\0')
			break;
		if (*end != '-')
			return false;
	}
	if (*end != '\0' || n < 3 || (n == 4 && part[1] > INT32_MAX))
		return false;
	key->job.id = part[0];
	key->job.index = n == 4 ? (int32_t)part[1] : -1;
	key->attempt = part[n - 2];
	key->index = part[n - 1];
	return true;
}

bool model_job_is_live(const struct job *j)
{
	return j->state == GPUQ_JOB_STARTING || j->state == GPUQ_JOB_RUNNING ||
	       j->state == GPUQ_JOB_COMPLETING;
}

bool model_job_is_over(const struct job *j)
{
	return j->life->leave_us || j->life->outcome != GPUQ_JOB_PENDING;
}

bool model_element_waits(const struct array *a, int64_t index)
{
	return job_ranges_has(a->waiting, a->n_waiting_ranges, index);
}

bool model_pod_takes(const struct pod *p)
{
	return p->state < GPUQ_POD_ENDED;
}

bool model_pod_has_device(const struct pod *p, uint32_t device)
{
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i] == device)
			return true;
	return false;
}

/* Return the thousandths of a device of the node that so much memory is, rounded down: the memory itself is counted
 * as well, and three thirds of it are no more than one device. */
static int64_t memory_share(const struct node *n, int64_t bytes)
{
	const int64_t mib = n->n_devices ? n->devices[0].memory_mib : 0;
	const int64_t share = mib > 0 ? (bytes >> 20) * 1000 / mib : 0;

	return share > 0 ? share : 1;
}

int64_t model_share_cores(const struct node *n, const struct request_group *g, int64_t charged)
{
	int64_t cores = amount_percent(g->gpu_cores);

	if (g->mig || g->gpu_memory_bytes == 0 || !n || n->fact.replicas > 1)
		return charged;
	if (g->gpus_milli % 1000 > cores)
		cores = g->gpus_milli % 1000;
	/* The charge of memory alone may be that of units larger than those of this node; else it is that of its cores,
	 * rounded up. */
	if (cores == 0 && n->n_devices && n->devices[0].memory_mib > 0 &&
	    charged > memory_share(n, g->gpu_memory_bytes) + 1)
		cores = memory_share(n, g->gpu_memory_bytes);
	return amount_cores(charged, cores, n->fact.slots);
}

const char *model_pod_mig(const struct pod *p)
{
	return p->mig || !p->job->request ? p->mig : p->job->request->spec.groups[p->group].mig;
}

int64_t model_pod_instances(const struct pod *p)
{
	const int64_t n =
		p->job->request ? p->job->request->spec.groups[p->group].gpus_milli / 1000 : 0;

	return !model_pod_mig(p) ? 0 : n > 0 ? n : 1;
}

bool model_pod_has_instances(const struct pod *p, const char *profile)
{
	const char *has = model_pod_takes(p) ? model_pod_mig(p) : NULL;

	return has && gpuq_profile_kin(has, profile);
}

int64_t model_instances_held(const struct node *n, const char *profile)
{
	const struct pod *p;
	int64_t count = 0;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_has_instances(p, profile))
			count += model_pod_instances(p);
	return count;
}

bool model_offers_instances(const struct node *n, const char *profile)
{
	for (size_t i = 0; i < n->fact.n_mig; i++)
		if (gpuq_profile_kin(n->fact.mig[i].profile, profile))
			return true;
	return false;
}

bool model_device_is_held(const struct node *n, uint32_t device)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] == device)
				return true;
	return false;
}

int64_t model_pod_cores(const struct pod *p)
{
	const int64_t charged = p->n_devices ? p->gpus_milli / p->n_devices : 0;

	return p->job->request && !p->mig
		       ? model_share_cores(p->node, &p->job->request->spec.groups[p->group],
					   charged)
		       : charged;
}

uint32_t model_job_pods(const struct job *j)
{
	return j->request->n_pods;
}

int64_t model_job_gpus_milli(const struct job *j)
{
	return j->request->gpus_milli;
}

bool model_job_attempt_over(const struct job *j)
{
	struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && model_pod_takes(p))
			return false;
	return true;
}

/* ---- objects to be stored ---- */

void model_job_dirty(struct model *m, struct job *j)
{
	/* A job that changed may no longer equal those it was grouped with. */
	equivalent_forget(m, j);
	if (j->dirty)
		return;
	if (!grow_to(&m->dirty_jobs, &m->room_dirty_jobs, (size_t)m->n_dirty_jobs + 1))
		abort();
	j->dirty = true;
	j->dirty_at = m->n_dirty_jobs;
	m->dirty_jobs[m->n_dirty_jobs++] = j;
}

void model_set_policy(struct model *m, const struct policy *p)
{
	m->policy = *p;
}

void model_set_objects(struct model *m, struct objects *o)
{
	objects_free(m->objects);
	m->objects = o;
}

const struct job *model_find_waiting(const struct model *m, struct job_key key)
{
	const struct job *j = model_find_job(m, key);

	if (j || key.index < 0)
		return j && j->state == GPUQ_JOB_PENDING ? j : NULL;
	j = model_find_job(m, (struct job_key){ key.id, -1 });
	return j && j->array && model_element_waits(j->array, key.index) ? j : NULL;
}

const char *model_queue_namespace(const struct queue *q)
{
	/* The nearest queue on the path that names one decides. */
	for (; q; q = q->parent)
		if (q->site->namespace_)
			return q->site->namespace_;
	return "";
}

void model_set_besides(struct model *m, bool has)
{
	m->has_besides = has;
}

bool model_is_dirty(const struct model *m)
{
	return m->n_dirty_jobs || m->direct.n || m->meta_dirty || m->site_dirty || m->nodes_dirty ||
	       m->usages_dirty || m->dirty_accounts || m->recovery_dirty;
}

/* ---- requests ---- */

/* Give a new request its id, which is stored with the model, so that none is used twice. */
static struct request *add_request(struct model *m, struct request *r)
{
	r->id = m->next_request_id++;
	r->n_jobs = 1;
	r->dirty = true;
	m->meta_dirty = true;
	request_add(&m->requests, r);
	return r;
}

/* Jobs with equal requests share one, by the bytes of their encoding. */
struct request *model_request_intern(struct model *m, const void *bytes, size_t n,
				     struct gpuq_err *err)
{
	struct request *r = request_find_bytes(&m->requests, bytes, n);

	if (r) {
		r->n_jobs++;
		return r;
	}
	if (request_decode_after(&m->requests, bytes, n, &r, err) != 0)
		return NULL;
	return add_request(m, r);
}

struct request *model_request_borrow(struct model *m, const struct gpuq_spec *spec,
				     const void *bytes, size_t n)
{
	struct request *r = request_find_bytes(&m->requests, bytes, n);

	if (r) {
		r->n_jobs++;
		return r;
	}
	r = must(request_borrow(spec, bytes, n));
	r->as_written = true;
	return add_request(m, r);
}

void model_request_put(struct model *m, struct request *r)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	/* The last job to use it is gone. */
	if (!r || --r->n_jobs > 0)
		return;
	change_batch_put(&m->direct, TABLE_REQUEST, key, change_key_u32(key, r->id), NULL, 0);
	request_remove(&m->requests, r);
}

/* ---- devices ---- */

/* Nodes of the local cluster have no backend: gpuqd decides. */
bool model_pod_devices_known(const struct pod *p)
{
	return p->devices_from == DEVICES_TOLD || !p->node->backend || p->node->backend->decided;
}

/* ---- isolation ---- */

/* A site may call replicas whole devices (replicas_as_gpus). They are no more apart for that. */
static bool is_renamed(const struct node *n)
{
	return n->told.replicas > 1 && n->fact.replicas <= 1;
}

enum gpuq_isolation model_node_isolation(const struct node *n, bool part)
{
	const struct backend *b = n->backend;

	if (!part && !is_renamed(n))
		return GPUQ_ISOLATION_EXCLUSIVE;
	if (!part)
		b = backend_of(gpuq_strmap_text(&n->told.labels, SHARE_LABEL));
	return b ? b->isolates : GPUQ_ISOLATION_NONE;
}

int model_pod_isolation(const struct pod *p)
{
	if (p->rides || p->beside)
		return GPUQ_ISOLATION_NONE;
	if (p->gpus_milli <= 0)
		return ISOLATION_NO_DEVICES;
	if (model_pod_mig(p))
		return gpuq_profile_is_shared(model_pod_mig(p)) ? GPUQ_ISOLATION_TIME_SLICE
								: GPUQ_ISOLATION_MIG;
	return (int)model_node_isolation(p->node,
					 p->n_devices && p->gpus_milli / p->n_devices < 1000);
}

int model_job_isolation(const struct job *j)
{
	int least = ISOLATION_NO_DEVICES;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		const int one = p->attempt == j->attempt && !p->dropped ? model_pod_isolation(p)
									: ISOLATION_NO_DEVICES;

		if (one >= 0 && (least < 0 || one < least))
			least = one;
	}
	return least;
}

int64_t model_pool_nodes(const struct model *m, const char *pool)
{
	int64_t n = 0;

	node_each(m, node)
		n += !node->gone && node->pool && strcmp(node->pool, pool) == 0;
	return n;
}

enum gpuq_isolation model_queue_isolation(const struct queue *q)
{
	int most = GPUQ_ISOLATION_NONE;

	for (; q; q = q->parent)
		if (q->site->isolation > most)
			most = q->site->isolation;
	return (enum gpuq_isolation)most;
}

void model_classes(const struct model *m, struct gpuq_arena *a, struct gpuq_strlist *out)
{
	out->items = gpuq_arena_calloc(a, m->site->flavors.n + 1, sizeof(*out->items));
	out->n = 0;
	if (!out->items)
		abort();
	site_each(site_flavor, m->site->flavors, f)
		if (f->device_class)
			out->items[out->n++] = f->device_class;
}
