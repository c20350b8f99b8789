/* gpuq nodes: one line a device (or, with --summary, a node). */
#include "gpuq/cmd/see/cmd_nodes.h"
#include "gpuq/cmd/see/nodes_rows.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"
#include "gpuq/command.h"
#include "gpuq/list.h"
#include "gpuq/view.h"
#include "libgpuq/hostlist.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

/* Words of gpuqd before the resources that the kubelet of a node refuses. */
#define NOTE_REFUSES "its kubelet refuses "

static void name_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "name", "-"));
}

static void state_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "state", "-"));
}

/* Print the state of the device; - for a node without devices. */
static void device_state_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, r->sub ? gpuq_get_str(r->sub, "state", "-") : "-");
}

static void index_text(struct gpuq_buf *out, const struct row *r)
{
	view_cell(out, r->sub ? gpuq_get(r->sub, "index") : NULL);
}

static double index_rank(const struct row *r)
{
	const struct gpuq_val *first = r->sub ? gpuq_get(r->sub, "first") : NULL;

	return r->sub ? view_number(first ? first : gpuq_get(r->sub, "index"), -1) : -1;
}

static void free_text(struct gpuq_buf *out, const struct row *r)
{
	char text[32];

	if (!r->sub) {
		view_cell(out, gpuq_get(r->obj, "free_gpus"));
		return;
	}
	gpuq_milli_print(gpuq_get_int(r->sub, "free_milli", 0), text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static double free_rank(const struct row *r)
{
	return r->sub ? view_number(gpuq_get(r->sub, "free_milli"), 0) / 1000
		      : view_number(gpuq_get(r->obj, "free_gpus"), 0);
}

static void cores_text(struct gpuq_buf *out, const struct gpuq_val *milli)
{
	char text[32];

	gpuq_milli_print(milli && milli->type == GPUQ_INT ? milli->i : 0, text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void cpus_text(struct gpuq_buf *out, const struct row *r)
{
	cores_text(out, gpuq_get(r->obj, "cpu_milli"));
}

static double cpus_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "cpu_milli"), 0);
}

static void free_cpus_text(struct gpuq_buf *out, const struct row *r)
{
	cores_text(out, gpuq_get(r->obj, "free_cpu_milli"));
}

static double free_cpus_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "free_cpu_milli"), 0);
}

static void ram_text(struct gpuq_buf *out, const struct row *r)
{
	view_mib(out, gpuq_get(r->obj, "memory_mib"));
}

static double ram_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "memory_mib"), 0);
}

static void free_ram_text(struct gpuq_buf *out, const struct row *r)
{
	view_mib(out, gpuq_get(r->obj, "free_memory_mib"));
}

static double free_ram_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "free_memory_mib"), 0);
}

static void memory_text(struct gpuq_buf *out, const struct row *r)
{
	view_mib(out, r->sub ? gpuq_get(r->sub, "memory_mib") : NULL);
}

static double memory_rank(const struct row *r)
{
	return r->sub ? view_number(gpuq_get(r->sub, "memory_mib"), 0) : 0;
}

static void free_memory_text(struct gpuq_buf *out, const struct row *r)
{
	view_mib(out, r->sub ? gpuq_get(r->sub, "free_memory_mib") : NULL);
}

static double free_memory_rank(const struct row *r)
{
	return r->sub ? view_number(gpuq_get(r->sub, "free_memory_mib"), 0) : 0;
}

/* Ids, or objects that have one. */
static void jobs_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *jobs = r->sub ? gpuq_get(r->sub, "jobs") : NULL;

	if (!jobs || jobs->type != GPUQ_LIST || jobs->n == 0) {
		gpuq_buf_addc(out, '-');
		return;
	}
	for (size_t i = 0; i < jobs->n; i++) {
		if (i)
			gpuq_buf_addc(out, ',');
		if (jobs->items[i]->type == GPUQ_MAP)
			view_job_id(out, jobs->items[i]);
		else
			view_cell(out, jobs->items[i]);
	}
}

/* Print the memory of the device that pods hold, including foreign ones. */
static void used_memory_text(struct gpuq_buf *out, const struct row *r)
{
	view_mib(out, r->sub ? gpuq_get(r->sub, "used_memory_mib") : NULL);
}

static double used_memory_rank(const struct row *r)
{
	return r->sub ? view_number(gpuq_get(r->sub, "used_memory_mib"), 0) : 0;
}

/* Print each user once, in the order of the pods. */
static void users_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *pods = r->sub ? gpuq_get(r->sub, "pods") : NULL;
	bool any = false;

	for (size_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n; i++) {
		const char *user = gpuq_get_str(pods->items[i], "user", "?");
		bool known = false;

		for (size_t k = 0; k < i; k++)
			known |= strcmp(user, gpuq_get_str(pods->items[k], "user", "?")) == 0;
		if (known)
			continue;
		gpuq_buf_printf(out, "%s%s", any ? "," : "", user);
		any = true;
	}
	if (!any)
		gpuq_buf_addc(out, '-');
}

/* "rdma/hca 1/2": how many of each are free */
static void resources_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *map = gpuq_get(r->obj, "resources");
	const size_t at = out->len;

	for (size_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++)
		view_free(out, i ? "," : "", map->pairs[i].key, map->pairs[i].val, "total");
	if (out->len == at)
		gpuq_buf_addc(out, '-');
}

/* A profile of instances that are had by claims, which are parts of their cards. */
struct profile {
	const char *name;
	int64_t n, free;
};

/* Count a part by its profile; those beyond the room are left out. Returns how many profiles there are. */
static size_t count_part(struct profile *all, size_t n, size_t room, const struct gpuq_val *part)
{
	const char *name = gpuq_get_str(part, "profile", NULL);
	size_t i = 0;

	if (!name)
		return n;
	while (i < n && strcmp(all[i].name, name) != 0)
		i++;
	if (i == room)
		return n;
	if (i == n)
		all[n++] = (struct profile){ name, 0, 0 };
	all[i].n++;
	all[i].free += strcmp(gpuq_get_str(part, "state", ""), "free") == 0;
	return n;
}

static void claimed_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *devices = gpuq_get(r->obj, "devices");
	struct profile all[16];
	size_t n = 0;

	for (size_t i = 0; devices && devices->type == GPUQ_LIST && i < devices->n; i++) {
		const struct gpuq_val *parts = gpuq_get(devices->items[i], "parts");

		for (size_t k = 0; parts && parts->type == GPUQ_LIST && k < parts->n; k++)
			n = count_part(all, n, sizeof(all) / sizeof(all[0]), parts->items[k]);
	}
	for (size_t i = 0; i < n; i++)
		gpuq_buf_printf(out, "%s%s %lld/%lld", i ? "," : "", all[i].name,
				(long long)all[i].free, (long long)all[i].n);
}

/* "1g.10gb 5/7": how many instances of each profile are free */
static void instances_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *list = gpuq_get(r->obj, "mig");
	const size_t at = out->len;

	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		view_free(out, i ? "," : "", gpuq_get_str(list->items[i], "profile", "?"),
			  list->items[i], "count");
	if (out->len == at)
		claimed_text(out, r);
	if (out->len == at)
		gpuq_buf_addc(out, '-');
}

/* "17/ann/lab(0.3),18/bob/lab(0.5)": its parts that pods hold */
static void tenants_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *list = r->sub ? gpuq_get(r->sub, "parts") : NULL;
	const size_t at = out->len;

	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *p = list->items[i];
		const char *job = gpuq_get_str(p, "job", NULL);
		char part[32];

		if (strcmp(gpuq_get_str(p, "state", "free"), "free") == 0)
			continue;
		gpuq_milli_print(gpuq_get_int(p, "milli", 0), part, sizeof(part));
		gpuq_buf_adds(out, out->len > at ? "," : "");
		if (job)
			gpuq_buf_printf(out, "%s/%s/%s(%s)", job, gpuq_get_str(p, "user", "?"),
					gpuq_get_str(p, "queue", "?"), part);
		else
			gpuq_buf_printf(out, "foreign(%s)", part);
	}
	if (out->len == at)
		gpuq_buf_addc(out, '-');
}

static void percent_text(struct gpuq_buf *out, const struct row *r, const char *key)
{
	const struct gpuq_val *v = r->sub ? gpuq_get(r->sub, key) : NULL;

	view_cell(out, v);
	if (v && v->type == GPUQ_INT)
		gpuq_buf_addc(out, '%');
}

static void free_cores_text(struct gpuq_buf *out, const struct row *r)
{
	percent_text(out, r, "free_cores");
}

static void used_cores_text(struct gpuq_buf *out, const struct row *r)
{
	percent_text(out, r, "used_cores");
}

static double free_cores_rank(const struct row *r)
{
	return r->sub ? view_number(gpuq_get(r->sub, "free_cores"), 0) : 0;
}

static double used_cores_rank(const struct row *r)
{
	return r->sub ? view_number(gpuq_get(r->sub, "used_cores"), 0) : 0;
}

/* "demo until 14:00" */
static void reserved_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *v = gpuq_get(r->obj, "reservation");

	view_cell(out, v && v->type == GPUQ_MAP ? gpuq_get(v, "name") : NULL);
	if (v && v->type == GPUQ_MAP) {
		gpuq_buf_adds(out, " until ");
		view_time(out, gpuq_get(v, "end_time"));
	}
}

/* "its kubelet refuses rdma/hca until 14:00": the first of them that ends; of a suspect node until when it is avoided */
static void note_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *refuses = gpuq_get(r->obj, "refuses"), *first = NULL,
			      *avoided = gpuq_get(r->obj, "avoided_until_time");

	view_cell(out, gpuq_get(r->obj, "note"));
	if (strcmp(gpuq_get_str(r->obj, "state", ""), "suspect") == 0 && avoided &&
	    avoided->type == GPUQ_INT) {
		gpuq_buf_adds(out, ", avoided until ");
		view_time(out, avoided);
		return;
	}
	if (strncmp(gpuq_get_str(r->obj, "note", ""), NOTE_REFUSES, strlen(NOTE_REFUSES)) != 0)
		return;
	for (uint32_t i = 0; refuses && i < refuses->n; i++) {
		const struct gpuq_val *at = gpuq_get(refuses->items[i], "until_time");

		if (!first || (at && at->i < first->i))
			first = at;
	}
	if (!first)
		return;
	gpuq_buf_adds(out, " until ");
	view_time(out, first);
}

/* clang-format off */
static const struct column cols[] = {
	{ "NODE", 'n', COL_CUT, NULL, name_text, NULL, "the node" },
	{ "STATE", 't', COL_STATE, NULL, state_text, NULL, "state of the node" },
	{ "POOL", 0, COL_CUT, "pool", NULL, NULL, "its pool" },
	{ "FLAVOR", 'f', COL_CUT, "flavor", NULL, NULL, "flavor of its devices" },
	{ "GPUS", 0, COL_RIGHT, "gpus", NULL, NULL, "devices of the node" },
	{ "FREE_GPUS", 0, COL_RIGHT, "free_gpus", NULL, NULL, "free devices of the node" },
	{ "GPU", 0, COL_RIGHT, NULL, index_text, index_rank, "index of the device" },
	{ "PRODUCT", 0, COL_CUT, "product", NULL, NULL, "product name of the device" },
	{ "MEMORY", 0, COL_RIGHT, NULL, memory_text, memory_rank, "memory of the device" },
	{ "FREE_MEMORY", 0, COL_RIGHT, NULL, free_memory_text, free_memory_rank, "free memory of the device" },
	{ "USED_MEMORY", 0, COL_RIGHT, NULL, used_memory_text, used_memory_rank, "allocated memory of the device" },
	{ "FREE", 0, COL_RIGHT, NULL, free_text, free_rank, "free part of the device" },
	{ "FREE_CORES", 0, COL_RIGHT, NULL, free_cores_text, free_cores_rank, "free percent of the cores of the device" },
	{ "USED_CORES", 0, COL_RIGHT, NULL, used_cores_text, used_cores_rank, "allocated percent of these cores" },
	{ "DEVICE_STATE", 0, COL_STATE, NULL, device_state_text, NULL, "state of the device" },
	{ "UUID", 0, COL_CUT, "uuid", NULL, NULL, "UUID of the device" },
	{ "JOBS", 0, COL_CUT, NULL, jobs_text, NULL, "jobs on the device" },
	{ "USERS", 0, COL_CUT, NULL, users_text, NULL, "users of these jobs" },
	{ "BY", 0, COL_CUT, NULL, tenants_text, NULL, "jobs on its parts or instances: JOB/USER/QUEUE(PART)" },
	{ "FOREIGN_PODS", 0, COL_RIGHT, "foreign_pods", NULL, NULL, "pods on the node that gpuq did not create" },
	{ "FOREIGN_GPUS", 0, COL_RIGHT, "foreign_gpus", NULL, NULL, "devices of the node that such pods hold" },
	{ "CPUS", 0, COL_RIGHT, NULL, cpus_text, cpus_rank, "cores of the node" },
	{ "FREE_CPUS", 0, COL_RIGHT, NULL, free_cpus_text, free_cpus_rank, "free cores of the node" },
	{ "RAM", 0, COL_RIGHT, NULL, ram_text, ram_rank, "memory of the node" },
	{ "FREE_RAM", 0, COL_RIGHT, NULL, free_ram_text, free_ram_rank, "free memory of the node" },
	{ "SHARING", 0, COL_CUT, "sharing", NULL, NULL, "system that allocates its devices" },
	{ "ISOLATION", 0, 0, "isolation", NULL, NULL, "isolation of the pods on the device" },
	{ "MIG", 0, COL_CUT, NULL, instances_text, NULL, "MIG instances of the node by profile: free/all" },
	{ "RESOURCES", 0, COL_CUT, NULL, resources_text, NULL, "countable resources of the node: free/all" },
	{ "RESERVED", 0, COL_CUT, NULL, reserved_text, NULL, "reservation that holds the node now, and its end" },
	{ "CAUSE", 0, COL_CUT, "cause", NULL, NULL, "cause for which the node, or its free devices, are not in use" },
	{ "NOTE", 0, COL_CUT, NULL, note_text, NULL, "reason of its drain, or the condition that keeps work away" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

const struct out_def node_list = {
	.cols = cols,
	.usual = "NODE,STATE,POOL,FLAVOR,GPU,PRODUCT,MEMORY,FREE,JOBS,NOTE",
	.spare = "POOL,MEMORY,FLAVOR,PRODUCT",
	.sort = "NODE,GPU",
	.rows = nodes_rows,
};

static const struct out_def by_node = {
	.cols = cols,
	.usual = "NODE,STATE,POOL,FLAVOR,GPUS,FREE_GPUS,RESERVED,NOTE",
	.spare = "RESERVED",
	.sort = "NODE",
};

/* Refuse an unknown state, which would silently select nothing. */
static int check_states(const char *words, struct gpuq_err *err)
{
	static const char *const known[] = {
#define X(sym, word) word,
		GPUQ_NODE_STATES(X)
#undef X
	};
	const size_t n_known = sizeof(known) / sizeof(known[0]);

	for (size_t n; *words; words += n + (words[n] == ',')) {
		size_t i = 0;

		n = strcspn(words, ",");
		while (n && i < n_known &&
		       (strlen(known[i]) != n || strncasecmp(known[i], words, n) != 0))
			i++;
		if (i == n_known)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "--states %.*s: no such state of a node; see "
					 "gpuq-nodes(1) for their names",
					 (int)n, words);
	}
	return 0;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	const char *nodes = c->args.val[OPT_NODES], *states = c->args.val[OPT_STATES];
	struct gpuq_val *names = gpuq_list(a);
	int rc = 0;

	for (int i = 0; i < c->args.n_rest && rc == 0; i++)
		rc = hostlist_expand(a, c->args.rest[i], HOSTLIST_GLOBS, names, err);
	if (rc == 0 && nodes)
		rc = hostlist_expand(a, nodes, HOSTLIST_GLOBS, names, err);
	if (rc == 0 && states)
		rc = check_states(states, err);
	if (names && names->n)
		gpuq_put(a, params, "names", names);
	return rc;
}

static bool keep(const struct cli *c, const struct gpuq_val *obj)
{
	return list_has(c->args.val[OPT_STATES], gpuq_get_str(obj, "state", ""));
}

struct pools {
	struct cli *c;
	struct out *out;
	int rc;
};

/* Add a line for a pool that grows: for what was requested and is not there, or where it is at zero. */
static int on_pool(void *arg, const struct gpuq_val *pool)
{
	struct pools *p = arg;
	struct gpuq_arena *a = &p->c->arena;
	const int64_t asked = gpuq_get_int(pool, "asked", 0),
		      nodes = gpuq_get_int(pool, "nodes", 0);
	struct gpuq_buf name = GPUQ_BUF_INIT;
	struct gpuq_val *v = gpuq_map(a);

	if (!pool || !gpuq_get_int(pool, "max_nodes", 0) || (nodes && !asked))
		return 0;
	gpuq_buf_printf(&name, "%s %" PRId64 " of %" PRId64, gpuq_get_str(pool, "name", "?"), nodes,
			gpuq_get_int(pool, "max_nodes", 0));
	if (asked)
		gpuq_buf_printf(&name, ", asked %" PRId64, asked);
	gpuq_put(a, v, "name", gpuq_str(a, gpuq_buf_str(&name)));
	gpuq_put(a, v, "state",
		 gpuq_str(a, gpuq_node_state_word(asked ? GPUQ_NODE_PROVISIONING
							: GPUQ_NODE_PLANNED)));
	gpuq_put(a, v, "pool", gpuq_str(a, gpuq_get_str(pool, "name", "?")));
	gpuq_put(a, v, "flavor", gpuq_str(a, gpuq_get_str(pool, "flavor", "-")));
	gpuq_put(a, v, "gpus", gpuq_int(a, gpuq_get_int(pool, "gpus_per_node", 0) * asked));
	gpuq_put(a, v, "free_gpus", gpuq_int(a, 0));
	gpuq_put(a, v, "note", gpuq_get(pool, "failure"));
	gpuq_buf_done(&name);
	if (keep(p->c, v))
		p->rc = out_add(p->out, v, cli_now_us());
	return p->rc;
}

/* Add what is no node yet. */
static int add_pools(struct cli *c, struct out *out, struct gpuq_err *err)
{
	struct pools p = { c, out, 0 };
	struct gpuq_val *reply;
	int rc = gpuq_stream(c->conn, "pool.list", NULL, 0, on_pool, &p, &c->arena, &reply, err);

	return p.rc < 0 ? gpuq_fail(err, p.rc, "out of memory") : rc < 0 ? rc : 0;
}

int cmd_nodes(struct cli *c)
{
	const bool summary = opt_given(&c->args, OPT_SUMMARY);
	const struct out_def *def = summary ? &by_node : &node_list;
	/* Scripts read names of nodes. */
	const bool pools = summary && !opt_given(&c->args, OPT_NO_HEADER) &&
			   !opt_given(&c->args, OPT_JSON) && c->args.n_rest == 0 &&
			   !c->args.val[OPT_NODES];

	return list_run_more(c, "node.list", def, NULL, fill, keep, pools ? add_pools : NULL);
}
