/* sinfo: queues as partitions, and the nodes that their jobs may run on. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/list.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_json.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/view.h"
#include "libgpuq/hostlist.h"
#include "libgpuq/units.h"

/* The lines are objects of our own: partition, avail, timelimit, nodes, state, nodelist... */

#define NODES_MAX 65536

struct world {
	struct cli *c;
	struct gpuq_val *queues, *nodes; /* lists, copies */
	const struct gpuq_val *wanted; /* names of nodes, or NULL */
	const char *format;
};

static void take_queue(void *arg, const struct gpuq_val *q)
{
	struct world *w = arg;

	gpuq_add(&w->c->arena, w->queues, gpuq_val_copy(&w->c->arena, q));
}

/* Slurm's word of a node's state; letters: its short form. */
static const char *state_of(const struct gpuq_val *n, bool letters)
{
	static const struct {
		const char *ours, *word, *letters;
	} words[] = {
		{ "idle", "idle", "idle" },         { "mixed", "mixed", "mix" },
		{ "alloc", "allocated", "alloc" },  { "drain", "draining", "drng" },
		{ "drained", "drained", "drain" },  { "down", "down", "down" },
		{ "reserved", "reserved", "resv" }, { "planned", "planned", "plnd" },
		{ "suspect", "unknown", "unk" },    { "provisioning", "powering_up", "pow_up" },
	};
	const char *state = gpuq_get_str(n, "state", "unknown");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].ours, state) == 0)
			return letters ? words[i].letters : words[i].word;
	return state;
}

static bool is_in(const struct gpuq_val *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i]->s, name) == 0)
			return true;
	return false;
}

/* -t idle,DRAIN,...: the words of a state in either form, and "drain" for both of its kinds. */
static bool has_state(const char *words, const struct gpuq_val *n)
{
	const char *names[] = { state_of(n, true), state_of(n, false), "all",
				strncmp(state_of(n, false), "drain", 5) == 0 ? "drain" : "all" };

	for (; *words; words += strcspn(words, ","), words += *words == ',')
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strcspn(words, ",") == strlen(names[i]) &&
			    strncasecmp(words, names[i], strlen(names[i])) == 0)
				return true;
	return false;
}

static bool is_dead(const struct gpuq_val *n)
{
	const char *state = state_of(n, true);

	return strcmp(state, "down") == 0 || strcmp(state, "unk") == 0;
}

static void take_node(void *arg, const struct gpuq_val *n)
{
	struct world *w = arg;
	const struct args *args = &w->c->args;

	if (args->val[OPT_STATES] && !has_state(args->val[OPT_STATES], n))
		return;
	if ((opt_given(args, OPT_S_DEAD) && !is_dead(n)) ||
	    (opt_given(args, OPT_S_RESPONDING) && is_dead(n)))
		return;
	if (w->wanted && !is_in(w->wanted, gpuq_get_str(n, "name", "")))
		return;
	if (w->nodes->n < NODES_MAX)
		gpuq_add(&w->c->arena, w->nodes, gpuq_val_copy(&w->c->arena, n));
}

/* A partition that is to be shown. */
static bool is_shown(const struct world *w, const struct gpuq_val *q)
{
	return slurm_is_partition(w->queues, q) &&
	       list_has(w->c->args.val[OPT_QUEUES], gpuq_get_str(q, "name", ""));
}

/* Return the nodes that the queue may use; without one, those that any of the shown ones may. */
static const struct gpuq_val *nodes_of(const struct world *w, const struct gpuq_val *queue)
{
	struct gpuq_val *list = gpuq_list(&w->c->arena);

	for (size_t i = 0; i < w->nodes->n; i++) {
		bool may = queue && slurm_may_use(w->queues, queue, w->nodes->items[i]);

		for (size_t k = 0; !queue && !may && k < w->queues->n; k++)
			may = is_shown(w, w->queues->items[k]) &&
			      slurm_may_use(w->queues, w->queues->items[k], w->nodes->items[i]);
		if (may)
			gpuq_add(&w->c->arena, list, w->nodes->items[i]);
	}
	return list;
}

static struct gpuq_val *text(struct gpuq_arena *a, struct gpuq_buf *b)
{
	return gpuq_str(a, gpuq_arena_strdup(a, gpuq_buf_str(b)));
}

static void put_gres(struct gpuq_arena *a, struct gpuq_val *line, const struct gpuq_val *n)
{
	const char *flavor = gpuq_get_str(n, "flavor", NULL);
	const int64_t gpus = gpuq_get_int(n, "gpus", 0);

	gpuq_put(a, line, "gres",
		 gpuq_str(a, gpus == 0 ? "(null)"
			     : flavor  ? gpuq_arena_printf(a, "gpu:%s:%" PRId64, flavor, gpus)
				       : gpuq_arena_printf(a, "gpu:%" PRId64, gpus)));
	gpuq_put(a, line, "gresused",
		 gpuq_str(a, gpuq_arena_printf(a, "gpu:%.0f",
					       (double)gpus -
						       view_number(gpuq_get(n, "free_gpus"), 0))));
	gpuq_put(a, line, "cpus", gpuq_int(a, gpuq_get_int(n, "cpu_milli", 0) / 1000));
	gpuq_put(a, line, "memory", gpuq_int(a, gpuq_get_int(n, "memory_mib", 0)));
	gpuq_put(a, line, "freemem", gpuq_int(a, gpuq_get_int(n, "free_memory_mib", 0)));
	gpuq_put(a, line, "allocmem",
		 gpuq_int(a, gpuq_get_int(n, "memory_mib", 0) -
				     gpuq_get_int(n, "free_memory_mib", 0)));
	gpuq_put(a, line, "sct",
		 gpuq_str(a, gpuq_arena_printf(a, "1:%" PRId64 ":1",
					       gpuq_get_int(n, "cpu_milli", 0) / 1000)));
}

/* A walltime of the queue as sinfo has it: 2-00:00:00. */
static void put_time(struct gpuq_arena *a, struct gpuq_val *line, const char *key,
		     const struct gpuq_val *q, const char *of, const char *none)
{
	const int64_t s = q ? gpuq_get_int(q, of, -1) : -1;
	char clock[48];

	if (s >= 0)
		gpuq_duration_clock(s * GPUQ_US_PER_S, clock, sizeof(clock));
	gpuq_put(a, line, key, gpuq_str(a, s < 0 ? none : gpuq_arena_strdup(a, clock)));
}

static bool is_used(const struct gpuq_val *n)
{
	static const char *const used[] = { "idle", "mix", "alloc", "resv", "plnd", NULL };

	for (int i = 0; used[i]; i++)
		if (strcmp(used[i], state_of(n, true)) == 0)
			return true;
	return false;
}

/* Why a node takes no jobs, as Slurm has it; what is to be said of one that does is gpuq's alone. */
static const char *reason_of(const struct gpuq_val *n)
{
	return n && !is_used(n) ? gpuq_get_str(n, "note", gpuq_get_str(n, "cause", "none"))
				: "none";
}

/* The time that goes with the reason: of a drain, else when it was last heard of. */
static const char *since_key(const struct gpuq_val *n)
{
	return gpuq_get_int(n, "drained_time", 0) ? "drained_time" : "last_seen";
}

/* Return the node's properties that columns show without summing: nodes that differ have
 * separate lines. */
static const char *likeness(struct world *w, const struct gpuq_val *n)
{
	struct gpuq_arena *a = &w->c->arena;
	const char *gpus = "", *cpus = "", *memory = "", *why = "", *seen = "", *features = "",
		   *by = "";

	for (const char *p = strchr(w->format, '%'); p; p = strchr(p, '%')) {
		p++;
		p += strspn(p, ".0123456789");
		if (*p == 'G' || *p == '&')
			gpus = gpuq_arena_printf(
				a, "%s %" PRId64 " %f", gpuq_get_str(n, "flavor", ""),
				gpuq_get_int(n, "gpus", 0),
				*p == 'G' ? 0.0 : view_number(gpuq_get(n, "free_gpus"), 0));
		else if (*p && strchr("cXYzZ", *p))
			cpus = gpuq_arena_printf(a, "%" PRId64, gpuq_get_int(n, "cpu_milli", 0));
		else if (*p && strchr("me$", *p))
			memory = gpuq_arena_printf(
				a, "%" PRId64 " %" PRId64, gpuq_get_int(n, "memory_mib", 0),
				*p == 'm' ? 0 : gpuq_get_int(n, "free_memory_mib", 0));
		else if (*p == 'E')
			why = reason_of(n);
		else if (*p == 'H')
			seen = gpuq_arena_printf(a, "%" PRId64, gpuq_get_int(n, since_key(n), 0));
		else if (*p == 'u' || *p == 'U')
			by = gpuq_get_str(n, "drained_by", "");
		else if (*p == 'f' || *p == 'b')
			features = gpuq_get_str(n, "flavor", "");
	}
	return gpuq_arena_printf(a, "%s|%s|%s|%s|%s|%s|%s|%s", state_of(n, true), gpus, cpus,
				 memory, why, seen, features, by);
}

/* Whole ones; a part of one that a pod has counts as one. */
struct cores {
	int64_t alloc, other, total; /* other: idle on a node that starts nothing */
};

static void add_cores(struct cores *c, const struct gpuq_val *n)
{
	const int64_t all = gpuq_get_int(n, "cpu_milli", 0) / 1000;
	const int64_t left = gpuq_get_int(n, "free_cpu_milli", 0) / 1000;

	c->total += all;
	c->alloc += all - left;
	c->other += is_used(n) ? 0 : left;
}

/* One line: some nodes of a queue (NULL: of none in particular), alike by state. */
static int add_line(struct world *w, struct out *out, const struct gpuq_val *q,
		    const struct gpuq_val *const *nodes, size_t n)
{
	struct gpuq_arena *a = &w->c->arena;
	struct gpuq_val *line = gpuq_map(a);
	const char *name = q ? gpuq_get_str(q, "name", "") : "";
	const char *state = q ? gpuq_get_str(q, "state", "") : "";
	const char **names = gpuq_arena_calloc(a, n + 1, sizeof(*names));
	int64_t alloc = 0, idle = 0, other = 0;
	struct cores cores = { 0 };
	struct gpuq_buf list = GPUQ_BUF_INIT, counts = GPUQ_BUF_INIT;
	const struct gpuq_val *first = n ? nodes[0] : NULL;
	int rc;

	if (!line || !names)
		return GPUQ_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *s = state_of(nodes[i], true);

		names[i] = gpuq_get_str(nodes[i], "name", "?");
		add_cores(&cores, nodes[i]);
		if (strcmp(s, "alloc") == 0 || strcmp(s, "mix") == 0)
			alloc++;
		else if (strcmp(s, "idle") == 0)
			idle++;
		else
			other++;
	}
	view_fold(&list, names, n);
	gpuq_buf_printf(&counts, "%" PRId64 "/%" PRId64 "/%" PRId64 "/%zu", alloc, idle, other, n);
	gpuq_put(a, line, "name", gpuq_str(a, name));
	gpuq_put(a, line, "partition",
		 gpuq_str(a, gpuq_arena_printf(a, "%s%s", name,
					       strcmp(name, "default") == 0 ? "*" : "")));
	/* Slurm's words: down starts nothing, drain takes nothing, inact neither. */
	gpuq_put(a, line, "avail",
		 gpuq_str(a, strcmp(state, "stopped") == 0  ? "down"
			     : strcmp(state, "closed") == 0 ? "drain"
			     : strchr(state, ',')           ? "inact"
							    : "up"));
	put_time(a, line, "timelimit", q, "max_time_s", "infinite");
	put_time(a, line, "defaulttime", q, "default_time_s", "n/a");
	gpuq_put(a, line, "some",
		 gpuq_str(a, gpuq_arena_printf(a, "%" PRId64 "/%" PRId64, alloc, idle)));
	gpuq_put(a, line, "nodes", gpuq_int(a, (int64_t)n));
	gpuq_put(a, line, "counts", text(a, &counts));
	gpuq_put(a, line, "cores",
		 gpuq_str(a, gpuq_arena_printf(a, "%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64,
					       cores.alloc, cores.total - cores.alloc - cores.other,
					       cores.other, cores.total)));
	gpuq_put(a, line, "state", gpuq_str(a, first ? state_of(first, true) : "n/a"));
	gpuq_put(a, line, "statelong", gpuq_str(a, first ? state_of(first, false) : "n/a"));
	gpuq_put(a, line, "nodelist", text(a, &list));
	gpuq_put(a, line, "reason", gpuq_str(a, reason_of(first)));
	gpuq_put(a, line, "flavor",
		 gpuq_str(a, first ? gpuq_get_str(first, "flavor", "(null)") : "(null)"));
	gpuq_put(a, line, "since", first ? gpuq_get(first, since_key(first)) : gpuq_null(a));
	gpuq_put(a, line, "by", gpuq_str(a, gpuq_get_str(first, "drained_by", "Unknown")));
	if (first)
		put_gres(a, line, first);
	gpuq_buf_done(&list);
	gpuq_buf_done(&counts);
	rc = out_add(out, line, 0);
	return rc < 0 ? rc : 0;
}

/* Nodes that are alike after the other, in the order of their first. */
static int add_alike(struct world *w, struct out *out, const struct gpuq_val *q,
		     const struct gpuq_val *nodes)
{
	const size_t n = nodes->n;
	const char **like = gpuq_arena_calloc(&w->c->arena, n + 1, sizeof(*like));
	const struct gpuq_val **alike = gpuq_arena_calloc(&w->c->arena, n + 1, sizeof(*alike));
	int rc = like && alike ? 0 : GPUQ_ENOMEM;

	if (rc == 0 && n == 0)
		return add_line(w, out, q, NULL, 0);
	for (size_t i = 0; rc == 0 && i < n; i++)
		like[i] = likeness(w, nodes->items[i]);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const char *of = like[i];
		size_t k = 0;

		if (!of)
			continue; /* has its line */
		for (size_t j = i; j < n; j++) {
			if (!like[j] || strcmp(like[j], of) != 0)
				continue;
			alike[k++] = nodes->items[j];
			like[j] = NULL;
		}
		rc = add_line(w, out, q, alike, k);
	}
	return rc;
}

/* Without a column of partitions a node is in one line, not in one for each of them. */
static bool names_queue(const char *format)
{
	for (const char *p = strchr(format, '%'); p; p = strchr(p, '%')) {
		p++;
		p += strspn(p, ".0123456789");
		if (*p && strchr("PRalLghrs", *p))
			return true;
	}
	return false;
}

static int add_all(struct world *w, struct out *out, bool singly)
{
	const struct cli *c = w->c;
	const bool named = names_queue(w->format);
	int rc = 0, shown = 0;

	if (opt_given(&c->args, OPT_REASON)) {
		for (size_t i = 0; rc == 0 && i < w->nodes->n; i++) {
			const struct gpuq_val *n = w->nodes->items[i];

			if (!is_used(n))
				rc = add_line(w, out, NULL, &n, 1);
		}
		return rc;
	}
	for (size_t i = 0; rc == 0 && i < w->queues->n; i++) {
		const struct gpuq_val *q = w->queues->items[i], *nodes;

		if (!is_shown(w, q))
			continue;
		if (shown++ && !named)
			break;
		nodes = nodes_of(w, named ? q : NULL);
		if (opt_given(&c->args, OPT_SUMMARY)) {
			rc = add_line(w, out, q, (const struct gpuq_val *const *)nodes->items,
				      nodes->n);
			continue;
		}
		if (!singly) {
			rc = add_alike(w, out, q, nodes);
			continue;
		}
		for (size_t k = 0; rc == 0 && k < nodes->n; k++) {
			const struct gpuq_val *n = nodes->items[k];

			rc = add_line(w, out, q, &n, 1);
		}
	}
	return rc;
}

static void seen_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_time(out, gpuq_get(r->obj, "since"), "Unknown");
}

/* "ann(1000)", with the number that this machine knows */
static void by_text(struct gpuq_buf *out, const struct row *r)
{
	const char *user = gpuq_get_str(r->obj, "by", "");
	const struct passwd *pw = slurm_user(user);

	gpuq_buf_adds(out, user);
	if (pw)
		gpuq_buf_printf(out, "(%ju)", (uintmax_t)pw->pw_uid);
}

#define CONSTANT(name, word)                                                                       \
	static void name##_text(struct gpuq_buf *out, const struct row *r)                         \
	{                                                                                          \
		(void)r;                                                                           \
		gpuq_buf_adds(out, word);                                                          \
	}
CONSTANT(all, "all")
CONSTANT(no, "no")
CONSTANT(size, "1-infinite")
CONSTANT(unlimited, "UNLIMITED")
CONSTANT(zero, "0")
CONSTANT(one, "1")
CONSTANT(none, "")
CONSTANT(unmeasured, "N/A")
CONSTANT(requeue, "REQUEUE")
CONSTANT(version, PACKAGE_VERSION)
CONSTANT(cluster, "gpuq")

/* clang-format off */
static const struct column cols[] = {
	{ "PARTITION", 'P', 0, "partition", NULL, NULL, "" },
	{ "PARTITION", 'R', 0, "name", NULL, NULL, "" },
	{ "AVAIL", 'a', 0, "avail", NULL, NULL, "" },
	{ "TIMELIMIT", 'l', 0, "timelimit", NULL, NULL, "" },
	{ "NODES", 'D', 0, "nodes", NULL, NULL, "" },
	{ "NODES(A/I/O/T)", 'F', 0, "counts", NULL, NULL, "" },
	{ "STATE", 't', 0, "state", NULL, NULL, "" },
	{ "STATE", 'T', 0, "statelong", NULL, NULL, "" },
	{ "NODELIST", 'N', 0, "nodelist", NULL, NULL, "" },
	{ "HOSTNAMES", 'n', 0, "nodelist", NULL, NULL, "" },
	{ "GRES", 'G', 0, "gres", NULL, NULL, "" },
	{ "GRES_USED", '&', 0, "gresused", NULL, NULL, "" },
	{ "NODES(A/I)", 'A', 0, "some", NULL, NULL, "" },
	{ "DEFAULTTIME", 'L', 0, "defaulttime", NULL, NULL, "" },
	{ "AVAIL_FEATURES", 'f', 0, "flavor", NULL, NULL, "" },
	{ "ACTIVE_FEATURES", 'b', 0, "flavor", NULL, NULL, "" },
	{ "GROUPS", 'g', 0, NULL, all_text, NULL, "" },
	{ "ROOT", 'r', 0, NULL, no_text, NULL, "" },
	{ "OVERSUBSCRIBE", 'h', 0, NULL, no_text, NULL, "" },
	{ "JOB_SIZE", 's', 0, NULL, size_text, NULL, "" },
	{ "USER", 'u', 0, "by", NULL, NULL, "" },
	{ "NODE_ADDR", 'o', 0, "nodelist", NULL, NULL, "" },
	{ "CPUS", 'c', 0, "cpus", NULL, NULL, "" },
	{ "CPUS(A/I/O/T)", 'C', 0, "cores", NULL, NULL, "" },
	{ "MEMORY", 'm', 0, "memory", NULL, NULL, "" },
	{ "FREE_MEM", 'e', 0, "freemem", NULL, NULL, "" },
	{ "REASON", 'E', 0, "reason", NULL, NULL, "" },
	{ "TIMESTAMP", 'H', 0, NULL, seen_text, NULL, "" },
	{ "ALLOCMEM", '$', 0, "allocmem", NULL, NULL, "" },
	/* A node is one socket of cores with one thread each, and no partition ranks before another. */
	{ "SOCKETS", 'X', 0, NULL, one_text, NULL, "" },
	{ "CORES", 'Y', 0, "cpus", NULL, NULL, "" },
	{ "THREADS", 'Z', 0, NULL, one_text, NULL, "" },
	{ "S:C:T", 'z', 0, "sct", NULL, NULL, "" },
	{ "MAX_CPUS_PER_NODE", 'B', 0, NULL, unlimited_text, NULL, "" },
	{ "TMP_DISK", 'd', 0, NULL, zero_text, NULL, "" },
	{ "CPU_LOAD", 'O', 0, NULL, unmeasured_text, NULL, "" },
	{ "WEIGHT", 'w', 0, NULL, one_text, NULL, "" },
	{ "PRIO_TIER", 'p', 0, NULL, one_text, NULL, "" },
	{ "PRIO_JOB_FACTOR", 'I', 0, NULL, one_text, NULL, "" },
	{ "PREEMPT_MODE", 'M', 0, NULL, requeue_text, NULL, "" },
	{ "ALLOCNODES", 'S', 0, NULL, all_text, NULL, "" },
	{ "RESERVATION", 'i', 0, NULL, none_text, NULL, "" },
	{ "USER", 'U', 0, NULL, by_text, NULL, "" },
	{ "VERSION", 'v', 0, NULL, version_text, NULL, "" },
	{ "CLUSTER", 'V', 0, NULL, cluster_text, NULL, "" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};

static const struct slurm_field fields[] = {
	{ "Partition", 'P' }, { "PartitionName", 'R' }, { "Available", 'a' }, { "Time", 'l' }, { "Nodes", 'D' },
	{ "NodeAIOT", 'F' }, { "StateCompact", 't' }, { "StateLong", 'T' }, { "NodeList", 'N' }, { "NodeHost", 'n' },
	{ "Gres", 'G' }, { "GresUsed", '&' }, { "NodeAI", 'A' }, { "DefaultTime", 'L' }, { "Features", 'f' }, { "features_act", 'b' },
	{ "Groups", 'g' }, { "Root", 'r' }, { "OverSubscribe", 'h' }, { "Size", 's' }, { "User", 'u' }, { "NodeAddr", 'o' },
	 { "CPUs", 'c' }, { "CPUsState", 'C' }, { "Memory", 'm' }, { "FreeMem", 'e' }, { "Reason", 'E' }, { "Timestamp", 'H' },
	{ "AllocMem", '$' }, { "AllocNodes", 'S' }, { "Cluster", 'V' }, { "Cores", 'Y' }, { "CPUsLoad", 'O' }, { "Disk", 'd' },
	{ "MaxCPUsPerNode", 'B' }, { "PreemptMode", 'M' }, { "PriorityJobFactor", 'I' }, { "PriorityTier", 'p' },
	{ "Reservation", 'i' }, { "SocketCoreThread", 'z' }, { "Sockets", 'X' }, { "Threads", 'Z' }, { "UserLong", 'U' },
	{ "Version", 'v' }, { "Weight", 'w' },
	{ NULL, 0 },
};
/* clang-format on */

static const struct out_def lines = { .cols = cols, .usual = "PARTITION", .sort = NULL };

/* Does the format name nodes one by one? Then each has a line. */
static bool wants_nodes(const char *format)
{
	for (const char *p = strchr(format, '%'); p; p = strchr(p, '%')) {
		p++;
		p += strspn(p, ".0123456789");
		if (*p && strchr("no", *p))
			return true;
	}
	return false;
}

/* The names of nodes stand first, one a line: as wide as the longest. */
static void fit_names(struct world *w)
{
	size_t widest = strlen("NODELIST");

	for (size_t i = 0; i < w->nodes->n; i++) {
		const size_t n = strlen(gpuq_get_str(w->nodes->items[i], "name", ""));

		widest = n > widest ? n : widest;
	}
	w->format = gpuq_arena_printf(&w->c->arena, "%%%zuN%s", widest, w->format + 2);
	w->c->args.val[OPT_FORMAT] = w->format;
}

/* A state of a node as --json has it: a base, and what it is beside. */
static void json_state(const struct gpuq_val *n, struct slurm_json_nodes *out)
{
	static const struct {
		const char *ours, *state, *flag;
	} words[] = {
		{ "idle", "IDLE", NULL },
		{ "mixed", "MIXED", NULL },
		{ "alloc", "ALLOCATED", NULL },
		{ "drain", "ALLOCATED", "DRAIN" },
		{ "drained", "IDLE", "DRAIN" },
		{ "down", "DOWN", NULL },
		{ "reserved", "IDLE", "RESERVED" },
		{ "planned", "IDLE", "PLANNED" },
		{ "provisioning", "IDLE", "POWERING_UP" },
		{ "leaving", "IDLE", "POWERING_DOWN" },
	};
	const char *state = gpuq_get_str(n, "state", "");

	out->state = "UNKNOWN";
	out->flag = NULL;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].ours, state) == 0) {
			out->state = words[i].state;
			out->flag = words[i].flag;
		}
}

/* An entry for each partition and state of nodes. */
static int print_json(struct world *w)
{
	struct gpuq_arena *a = &w->c->arena;
	struct gpuq_val *list = gpuq_list(a);

	for (size_t q = 0; q < w->queues->n; q++) {
		const struct gpuq_val *queue = w->queues->items[q], *nodes;

		if (!is_shown(w, queue))
			continue;
		nodes = nodes_of(w, queue);
		for (size_t i = 0; i < nodes->n; i++) {
			const char *state = gpuq_get_str(nodes->items[i], "state", "");
			struct slurm_json_nodes one = { .queue = queue };
			struct gpuq_val *alike = gpuq_list(a);
			bool had = false;

			for (size_t k = 0; k < nodes->n; k++) {
				if (strcmp(gpuq_get_str(nodes->items[k], "state", ""), state))
					continue;
				had |= k < i;
				gpuq_add(a, alike, nodes->items[k]);
			}
			if (had)
				continue;
			json_state(nodes->items[i], &one);
			one.nodes = alike;
			slurm_json_add_nodes(w->c, list, &one);
		}
	}
	return slurm_json_sinfo(w->c, list);
}

static int print_once(struct cli *c)
{
	const struct args *args = &c->args;
	struct world w = { .c = c,
			   .queues = gpuq_list(&c->arena),
			   .nodes = gpuq_list(&c->arena),
			   .format = args->val[OPT_FORMAT] };
	struct gpuq_val *none = gpuq_map(&c->arena), *wanted = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct out *out = NULL;
	int rc = 0;

	if (opt_given(args, OPT_NODES)) {
		rc = hostlist_expand(&c->arena, args->val[OPT_NODES], HOSTLIST_GLOBS, wanted, &err);
		w.wanted = wanted;
	}
	if (rc == 0)
		rc = slurm_each(c, "queue.list", none, NULL, take_queue, &w, &err);
	if (rc == 0)
		rc = slurm_each(c, "node.list", none, NULL, take_node, &w, &err);
	if (rc == 0 && opt_given(args, OPT_JSON))
		return print_json(&w);
	if (rc == 0 && strncmp(w.format, "%N ", 3) == 0)
		fit_names(&w);
	if (rc == 0)
		rc = out_new(&lines, NULL, &w.c->args, &out, &err);
	if (rc == 0)
		rc = add_all(&w, out,
			     opt_given(args, OPT_S_BY_NODE) || wants_nodes(args->val[OPT_FORMAT]));
	if (rc == 0)
		rc = out_flush(out);
	out_free(out);
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}

int slurm_sinfo(struct cli *c)
{
	const char **format = &c->args.val[OPT_FORMAT];

	if (*format && strcasecmp(*format, "%all") == 0)
		*format = slurm_all(c, cols);
	if (opt_given(&c->args, OPT_S_FORMAT))
		*format = slurm_format(c, fields, c->args.val[OPT_S_FORMAT]);
	else if (!*format && opt_given(&c->args, OPT_REASON))
		*format = "%20E %9u %19H %N";
	else if (!*format && opt_given(&c->args, OPT_SUMMARY))
		*format = "%9P %.5a %.10l %.16F %N";
	else if (!*format && opt_given(&c->args, OPT_S_BY_NODE))
		*format = opt_given(&c->args, OPT_LONG) ? "%N %.6D %.9P %.11T %4c %.8m %G %20E"
							: "%N %.6D %.9P %6t";
	else if (!*format)
		*format = getenv("SINFO_FORMAT") ? getenv("SINFO_FORMAT")
			  : opt_given(&c->args, OPT_LONG)
				  ? "%9P %.5a %.10l %.8s %.4r %.8h %.10g %.6D %.11T %N"
				  : "%9P %.5a %.10l %.6D %.6t %N";
	if (!*format)
		return 1;
	if (opt_given(&c->args, OPT_LONG) && !opt_given(&c->args, OPT_NO_HEADER) &&
	    !opt_given(&c->args, OPT_JSON))
		slurm_date();
	return watch_run(c, print_once);
}
