/* The server of PMIx. Where all ranks of a step are clients of this one, a fence is complete when the
 * library says so, and nothing is exchanged between servers; otherwise the host is asked. */
#include "config.h"

#include "gpuq/slurm/mpi/pmix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>
#include <pmix_server.h>

#define INFO_MAX 24

static char name[PMIX_MAX_NSLEN + 1];
static int asks = -1; /* -1 = all ranks are ours */

/* ---- what the library asks of its host ---- */

static void free_ask(struct pmix_ask *a)
{
	free(a->ranks);
	free(a->data);
	free(a);
}

/* Write its address, which the reader then owns. Returns 0, or -1: nothing was written. */
static int ask(struct pmix_ask *a)
{
	return write(asks, &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : -1;
}

/* Ranks of a collective: none if all of the step are meant. */
static int take_ranks(struct pmix_ask *a, const pmix_proc_t procs[], size_t n)
{
	a->ranks = calloc(n + 1, sizeof(*a->ranks));
	if (!a->ranks)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (procs[i].rank == PMIX_RANK_WILDCARD) {
			a->n_ranks = 0;
			return 0;
		}
		a->ranks[a->n_ranks++] = procs[i].rank;
	}
	return 0;
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
				  size_t n, pmix_op_cbfunc_t done, void *arg)
{
	(void)proc;
	(void)object;
	(void)info;
	(void)n;
	(void)done;
	(void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
				  void *arg)
{
	(void)proc;
	(void)object;
	(void)done;
	(void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

/* The rank ends with its code by itself; srun then ends the others of this node. */
static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
			      pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t done, void *arg)
{
	struct pmix_ask *a = asks >= 0 ? calloc(1, sizeof(*a)) : NULL;

	(void)proc;
	(void)object;
	(void)msg;
	(void)procs;
	(void)n;
	(void)done;
	(void)arg;
	if (a) {
		*a = (struct pmix_ask){ .kind = PMIX_ASK_ABORT, .code = status & 0xff };
		if (ask(a) < 0)
			free_ask(a);
	}
	return PMIX_OPERATION_SUCCEEDED;
}

static void give_back(void *data)
{
	free(data);
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[],
			      size_t n, char *data, size_t n_data, pmix_modex_cbfunc_t done,
			      void *arg)
{
	struct pmix_ask *a;

	(void)info;
	(void)n;
	if (asks < 0) {
		done(PMIX_SUCCESS, data, n_data, arg, give_back, data);
		return PMIX_SUCCESS;
	}
	a = calloc(1, sizeof(*a));
	if (!a || take_ranks(a, procs, n_procs) < 0) {
		free(a);
		return PMIX_ERR_NOMEM;
	}
	a->kind = PMIX_ASK_FENCE;
	a->done = (void *)(uintptr_t)done;
	a->arg = arg;
	a->data = data;
	a->n = n_data;
	if (ask(a) == 0)
		return PMIX_SUCCESS;
	a->data = NULL;
	free_ask(a);
	return PMIX_ERROR;
}

static pmix_status_t on_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t n,
			      pmix_modex_cbfunc_t done, void *arg)
{
	struct pmix_ask *a = asks >= 0 ? calloc(1, sizeof(*a)) : NULL;

	(void)info;
	(void)n;
	if (!a || strcmp(proc->nspace, name) != 0) {
		free(a);
		return PMIX_ERR_NOT_FOUND;
	}
	if (take_ranks(a, proc, 1) < 0) {
		free(a);
		return PMIX_ERR_NOMEM;
	}
	a->kind = PMIX_ASK_VALUES;
	a->done = (void *)(uintptr_t)done;
	a->arg = arg;
	if (ask(a) == 0)
		return PMIX_SUCCESS;
	free_ask(a);
	return PMIX_ERROR;
}

/* Runs in the thread of the host. */
static void answer(struct pmix_ask *a, int ok, const char *data, size_t n)
{
	const pmix_modex_cbfunc_t done = (pmix_modex_cbfunc_t)(uintptr_t)a->done;
	char *copy = ok && n ? malloc(n) : NULL;

	if (copy)
		memcpy(copy, data, n);
	if (!ok || (n && !copy))
		done(PMIX_ERROR, NULL, 0, a->arg, NULL, NULL);
	else
		done(PMIX_SUCCESS, copy, copy ? n : 0, a->arg, give_back, copy);
	free_ask(a);
}

/* Take the values of a rank of ours, which the library keeps. */
static void on_found(pmix_status_t status, char *data, size_t n, void *arg)
{
	struct pmix_ask *a = arg;

	a->code = status == PMIX_SUCCESS ? 0 : -1;
	a->data = a->code == 0 && n ? malloc(n) : NULL;
	a->n = a->data ? n : 0;
	if (a->data)
		memcpy(a->data, data, n);
	if (ask(a) < 0)
		free_ask(a);
}

static void find(uint32_t rank, uint32_t id)
{
	struct pmix_ask *a = calloc(1, sizeof(*a));
	pmix_proc_t proc;

	if (!a)
		return;
	*a = (struct pmix_ask){ .kind = PMIX_ASK_GIVEN, .id = id };
	PMIX_LOAD_PROCID(&proc, name, rank);
	if (PMIx_server_dmodex_request(&proc, on_found, a) != PMIX_SUCCESS)
		on_found(PMIX_ERROR, NULL, 0, a);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[],
				size_t n, pmix_op_cbfunc_t done, void *arg)
{
	(void)procs;
	(void)n_procs;
	(void)info;
	(void)n;
	(void)done;
	(void)arg;
	return asks < 0 ? PMIX_OPERATION_SUCCEEDED : PMIX_ERR_NOT_SUPPORTED;
}

static pmix_server_module_t host = {
	.client_finalized = on_finalized,
	.abort = on_abort,
	.fence_nb = on_fence,
	.direct_modex = on_modex,
	.connect = on_connect,
	.disconnect = on_connect,
	.client_connected2 = on_connected,
};

/* ---- calls that end later ---- */

struct wait {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	int done;
	pmix_status_t status;
};

static void wake(pmix_status_t status, void *arg)
{
	struct wait *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = 1;
	w->status = status;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
}

static pmix_status_t wait_for(struct wait *w, pmix_status_t status)
{
	if (status != PMIX_SUCCESS)
		return status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
	return w->status;
}

#define WAIT_INIT                                                                                  \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, PMIX_SUCCESS               \
	}

/* ---- the step ---- */

struct infos {
	pmix_info_t *items;
	size_t n;
};

static void add(struct infos *x, const char *key, const void *value, pmix_data_type_t type)
{
	PMIX_INFO_LOAD(&x->items[x->n], key, value, type);
	x->n++;
}

static void add_count(struct infos *x, const char *key, long n)
{
	const uint32_t count = (uint32_t)n;

	add(x, key, &count, PMIX_UINT32);
}

static void add_rank(struct infos *x, const char *key, long n)
{
	const pmix_rank_t rank = (pmix_rank_t)n;

	add(x, key, &rank, PMIX_PROC_RANK);
}

static void add_small(struct infos *x, const char *key, long n)
{
	const uint16_t rank = (uint16_t)n;

	add(x, key, &rank, PMIX_UINT16);
}

/* The place of one rank. */
static void add_one(struct infos *x, const struct pmix_step *s, long rank)
{
	struct infos in = { .n = 0 };
	pmix_data_array_t *array;
	const long node = rank / s->per_node;

	PMIX_DATA_ARRAY_CREATE(array, 9, PMIX_INFO);
	in.items = array->array;
	add_rank(&in, PMIX_RANK, rank);
	add_count(&in, PMIX_APPNUM, 0);
	add_rank(&in, PMIX_APPLDR, 0);
	add_rank(&in, PMIX_GLOBAL_RANK, rank);
	add_rank(&in, PMIX_APP_RANK, rank);
	add_small(&in, PMIX_LOCAL_RANK, rank % s->per_node);
	add_small(&in, PMIX_NODE_RANK, rank % s->per_node);
	add_count(&in, PMIX_NODEID, node);
	add(&in, PMIX_HOSTNAME, s->nodes[node], PMIX_STRING);
	x->items[x->n].value.type = PMIX_DATA_ARRAY;
	x->items[x->n].value.data.darray = array;
	snprintf(x->items[x->n].key, sizeof(x->items[x->n].key), "%s", PMIX_PROC_INFO_ARRAY);
	x->n++;
}

static long first_of(const struct pmix_step *s)
{
	return s->node * s->per_node;
}

/* Ranks of our node. */
static long here_of(const struct pmix_step *s)
{
	const long left = s->n - first_of(s);

	return left < s->per_node ? left : s->per_node;
}

static long nodes_of(const struct pmix_step *s)
{
	return (s->n + s->per_node - 1) / s->per_node;
}

static int add_maps(struct infos *x, const struct pmix_step *s)
{
	char *list[3] = { NULL, NULL, NULL }, *nodes = NULL, *ranks = NULL;
	size_t sizes[3];
	FILE *f[3];
	int rc = -1;

	/* Names of the hosts, ranks of each, and ranks of ours. */
	for (int k = 0; k < 3; k++) {
		f[k] = open_memstream(&list[k], &sizes[k]);
		if (!f[k])
			return -1; /* this process ends */
	}
	for (long i = 0; i < nodes_of(s); i++)
		fprintf(f[0], "%s%s", i ? "," : "", s->nodes[i]);
	for (long i = 0; i < s->n; i++) {
		const char *between = i % s->per_node ? "," : ";";

		fprintf(f[1], "%s%ld", i ? between : "", i);
		if (i / s->per_node == s->node)
			fprintf(f[2], "%s%ld", i > first_of(s) ? "," : "", i);
	}
	for (int k = 0; k < 3; k++)
		fclose(f[k]);
	if (PMIx_generate_regex(list[0], &nodes) == PMIX_SUCCESS &&
	    PMIx_generate_ppn(list[1], &ranks) == PMIX_SUCCESS) {
		add(x, PMIX_NODE_MAP, nodes, PMIX_REGEX);
		add(x, PMIX_PROC_MAP, ranks, PMIX_REGEX);
		add(x, PMIX_LOCAL_PEERS, list[2], PMIX_STRING);
		rc = 0;
	}
	free(nodes);
	free(ranks);
	for (int k = 0; k < 3; k++)
		free(list[k]);
	return rc;
}

static pmix_status_t declare(const struct pmix_step *s)
{
	struct wait w = WAIT_INIT;
	struct infos x = { .n = 0 };
	const long first = first_of(s), here = here_of(s);
	const bool no = false;
	pmix_status_t rc;

	PMIX_INFO_CREATE(x.items, (size_t)s->n + INFO_MAX);
	if (add_maps(&x, s) < 0)
		return PMIX_ERROR;
	add(&x, PMIX_JOBID, s->name, PMIX_STRING);
	add(&x, PMIX_SPAWNED, &no, PMIX_BOOL);
	add(&x, PMIX_TMPDIR, s->folder, PMIX_STRING);
	add(&x, PMIX_NSDIR, s->folder, PMIX_STRING);
	add_count(&x, PMIX_UNIV_SIZE, s->n);
	add_count(&x, PMIX_JOB_SIZE, s->n);
	add_count(&x, PMIX_MAX_PROCS, s->n);
	add_count(&x, PMIX_APP_SIZE, s->n);
	add_count(&x, PMIX_JOB_NUM_APPS, 1);
	add_count(&x, PMIX_LOCAL_SIZE, here);
	add_count(&x, PMIX_NODE_SIZE, here);
	add_count(&x, PMIX_NUM_NODES, nodes_of(s));
	add_rank(&x, PMIX_LOCALLDR, first);
	for (long i = 0; i < s->n; i++)
		add_one(&x, s, i);
	rc = wait_for(&w, PMIx_server_register_nspace(s->name, (int)here, x.items, x.n, wake, &w));
	PMIX_INFO_FREE(x.items, (size_t)s->n + INFO_MAX);
	for (long i = first; i < first + here && rc == PMIX_SUCCESS; i++) {
		struct wait one = WAIT_INIT;
		pmix_proc_t proc;

		PMIX_LOAD_PROCID(&proc, s->name, (pmix_rank_t)i);
		rc = wait_for(&one, PMIx_server_register_client(&proc, geteuid(), getegid(), NULL,
								wake, &one));
	}
	return rc;
}

static int start(const struct pmix_step *s, char ***env, char why[256])
{
	pmix_info_t info[8];
	struct infos x = { .items = info, .n = 0 };
	pmix_proc_t first;
	pmix_status_t rc;

	asks = s->asks;
	snprintf(name, sizeof(name), "%s", s->name);
	for (size_t i = 0; i < 8; i++)
		PMIX_INFO_CONSTRUCT(&info[i]);
	add(&x, PMIX_SERVER_TMPDIR, s->folder, PMIX_STRING);
	add(&x, PMIX_SYSTEM_TMPDIR, s->folder, PMIX_STRING);
	add(&x, PMIX_HOSTNAME, s->nodes[s->node], PMIX_STRING);
	rc = PMIx_server_init(&host, info, x.n);
	if (rc == PMIX_SUCCESS)
		rc = declare(s);
	PMIX_LOAD_PROCID(&first, s->name, (pmix_rank_t)first_of(s));
	if (rc == PMIX_SUCCESS)
		rc = PMIx_server_setup_fork(&first, env);
	if (rc == PMIX_SUCCESS)
		return 0;
	snprintf(why, 256, "%s", PMIx_Error_string(rc));
	return -1;
}

static void stop(void)
{
	PMIx_server_finalize();
}

extern const struct pmix_module gpuq_pmix_module;
__attribute__((visibility("default"))) const struct pmix_module gpuq_pmix_module = {
	.version = PMIX_MODULE_VERSION,
	.start = start,
	.answer = answer,
	.find = find,
	.stop = stop,
};
