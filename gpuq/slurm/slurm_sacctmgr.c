/* sacctmgr: what programs ask of it before they submit. gpuq has no associations: an account is any
 * word. Those listed are the leaf queues, which limit what their jobs get, and the accounts that
 * the jobs of a user name. Changes are gpuq apply's. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_table.h"
#include "gpuq/slurm/slurm_words.h"
#include "libgpuq/units.h"

/* ---- columns ---- */

/* A line is an object of our own, a member for each column. */
#define MEMBER(name)                                                                               \
	static void name##_text(struct gpuq_buf *out, const void *line)                            \
	{                                                                                          \
		gpuq_buf_adds(out, gpuq_get_str(line, #name, ""));                                 \
	}
MEMBER(user)
MEMBER(account)
MEMBER(parent)
MEMBER(qos)
MEMBER(level)
MEMBER(name)
MEMBER(priority)
MEMBER(grace)
MEMBER(mode)
MEMBER(max_wall)
MEMBER(factor)
MEMBER(host)
MEMBER(limit)

static void cluster_text(struct gpuq_buf *out, const void *line)
{
	(void)line;
	gpuq_buf_adds(out, "gpuq");
}

static void one_text(struct gpuq_buf *out, const void *line)
{
	(void)line;
	gpuq_buf_addc(out, '1');
}

static void no_text(struct gpuq_buf *out, const void *line)
{
	(void)out;
	(void)line;
}

#define ASSOCIATION                                                                                \
	{ "Share", 9, one_text, NULL }, { "Priority", 10, no_text, NULL },                         \
		{ "GrpJobs", 7, no_text, NULL }, { "GrpTRES", 13, limit_text, NULL },              \
		{ "GrpSubmit", 9, no_text, NULL }, { "GrpSubmitJobs", 13, no_text, NULL },         \
		{ "GrpWall", 11, no_text, NULL }, { "GrpTRESMins", 13, no_text, NULL },            \
		{ "MaxJobs", 7, no_text, NULL }, { "MaxTRES", 13, no_text, NULL },                 \
		{ "MaxTRESPerNode", 14, no_text, NULL }, { "MaxSubmit", 9, no_text, NULL },        \
		{ "MaxSubmitJobs", 13, no_text, NULL }, { "MaxWall", 11, max_wall_text, NULL },    \
		{ "MaxTRESMins", 13, no_text, NULL }, { "QOS", 20, qos_text, NULL },               \
		{ "DefaultQOS", 9, no_text, "Def QOS" },                                           \
	{                                                                                          \
		"GrpTRESRunMins", 13, no_text, NULL                                                \
	}

static const struct slurm_column user_cols[] = {
	{ "User", 10, user_text, NULL },
	{ "DefaultAccount", 10, account_text, "Def Acct" },
	{ "AdminLevel", 9, level_text, "Admin" },
	{ "Cluster", 10, cluster_text, NULL },
	{ "Account", 10, account_text, NULL },
	{ "Partition", 10, no_text, NULL },
	{ "Coordinators", 20, no_text, "Coord Accounts" },
	{ "DefaultWCKey", 10, no_text, "Def WCKey" },
	ASSOCIATION,
	{ NULL, 0, NULL, NULL },
};

static const struct slurm_column account_cols[] = {
	{ "Account", 10, account_text, NULL },
	{ "Description", 20, account_text, "Descr" },
	{ "Organization", 20, parent_text, "Org" },
	{ "Cluster", 10, cluster_text, NULL },
	{ "ParentName", 10, parent_text, "Par Name" },
	{ "User", 10, user_text, NULL },
	{ "Coordinators", 20, no_text, "Coord Accounts" },
	ASSOCIATION,
	{ NULL, 0, NULL, NULL },
};

static const struct slurm_column assoc_cols[] = {
	{ "Cluster", 10, cluster_text, NULL },
	{ "Account", 10, account_text, NULL },
	{ "User", 10, user_text, NULL },
	{ "Partition", 10, no_text, NULL },
	{ "ParentName", 10, parent_text, "Par Name" },
	ASSOCIATION,
	{ NULL, 0, NULL, NULL },
};

static const struct slurm_column qos_cols[] = {
	{ "Name", 10, name_text, NULL },
	{ "Priority", 10, priority_text, NULL },
	{ "GraceTime", 10, grace_text, NULL },
	{ "Preempt", 10, no_text, NULL },
	{ "PreemptExemptTime", 19, no_text, NULL },
	{ "PreemptMode", 11, mode_text, NULL },
	{ "Flags", 40, no_text, NULL },
	{ "UsageThreshold", 11, no_text, "UsageThres" },
	{ "UsageFactor", 11, factor_text, NULL },
	{ "GrpTRES", 13, no_text, NULL },
	{ "GrpJobs", 7, no_text, NULL },
	{ "MaxTRES", 13, no_text, NULL },
	{ "MaxTRESPU", 13, no_text, NULL },
	{ "MaxTRESPerUser", 13, no_text, "MaxTRESPU" },
	{ "MaxWall", 11, max_wall_text, NULL },
	{ "MaxWallDurationPerJob", 11, max_wall_text, "MaxWall" },
	{ "MaxJobsPU", 9, no_text, NULL },
	{ "MaxJobsPerUser", 9, no_text, "MaxJobsPU" },
	{ "MaxSubmitPU", 11, no_text, NULL },
	{ "MaxSubmitJobsPerUser", 11, no_text, "MaxSubmitPU" },
	{ NULL, 0, NULL, NULL },
};

static const struct slurm_column cluster_cols[] = {
	{ "Cluster", 10, cluster_text, NULL },
	{ "ControlHost", 15, host_text, NULL },
	{ "ControlPort", 12, no_text, NULL },
	{ "RPC", 5, no_text, NULL },
	{ "Classification", 14, no_text, NULL },
	ASSOCIATION,
	{ NULL, 0, NULL, NULL },
};

/* ---- what there is ---- */

struct manager {
	struct cli *c;
	struct gpuq_arena *a;
	struct slurm_table t;
	struct gpuq_val *queues, *site, *lines;
	const char *user, *account; /* only this one; NULL = all */
	bool by_account; /* -s, withassoc: a line for each account */
};

static bool wanted(const char *only, const char *name)
{
	return !only || strcasecmp(only, name) == 0;
}

static void put(const struct manager *m, struct gpuq_val *line, const char *key, const char *text)
{
	gpuq_put(m->a, line, key, gpuq_str(m->a, text ? text : ""));
}

static const char *wall_of(const struct manager *m, const struct gpuq_val *obj, const char *key)
{
	const int64_t s = gpuq_get_int(obj, key, -1);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *out = "";

	if (s >= 0) {
		slurm_elapsed(&b, s * GPUQ_US_PER_S);
		out = gpuq_arena_strdup(m->a, gpuq_buf_str(&b));
	}
	gpuq_buf_done(&b);
	return out ? out : "";
}

static void take_queue(void *arg, const struct gpuq_val *q)
{
	struct manager *m = arg;

	gpuq_add(m->a, m->queues, gpuq_val_copy(m->a, q));
}

static bool is_leaf(const struct manager *m, const char *name)
{
	for (uint32_t i = 0; i < m->queues->n; i++)
		if (strcmp(gpuq_get_str(m->queues->items[i], "parent", ""), name) == 0)
			return false;
	return true;
}

static bool listed(const struct gpuq_val *list, const char *name)
{
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (strcmp(list->items[i]->s, name) == 0)
			return true;
	return false;
}

static void add_name(const struct manager *m, struct gpuq_val *list, const char *name)
{
	if (name && *name && !listed(list, name))
		gpuq_add(m->a, list, gpuq_str(m->a, name));
}

struct named {
	const struct manager *m;
	struct gpuq_val *accounts, *users;
	struct gpuq_val *uses; /* by user: accounts that its jobs name */
};

static void take_job(void *arg, const struct gpuq_val *job)
{
	struct named *n = arg;

	const char *user = gpuq_get_str(job, "user", "");
	struct gpuq_val *own = (struct gpuq_val *)gpuq_get(n->uses, user);

	if (!own) {
		own = gpuq_list(n->m->a);
		gpuq_put(n->m->a, n->uses, user, own);
	}
	if (own)
		add_name(n->m, own, gpuq_get_str(job, "account", NULL));
	add_name(n->m, n->accounts, gpuq_get_str(job, "account", NULL));
	add_name(n->m, n->users, gpuq_get_str(job, "user", NULL));
}

/* The accounts and users that jobs name, those that have ended included. */
static int from_jobs(const struct manager *m, struct named *n, struct gpuq_err *err)
{
	static const char *const keys[] = { "user", "account", NULL };
	struct gpuq_val *params = gpuq_map(m->a), *users = gpuq_list(m->a);

	if (m->user) {
		gpuq_add(m->a, users, gpuq_str(m->a, m->user));
		gpuq_put(m->a, params, "users", users);
	}
	gpuq_put(m->a, params, "all", gpuq_bool(m->a, true));
	gpuq_put(m->a, params, "limit", gpuq_int(m->a, INT64_MAX));
	return slurm_each(m->c, "job.list", params, keys, take_job, n, err);
}

/* The qos that a queue, or one above it, allows; NULL = all. */
static const struct gpuq_val *site_queue(const struct manager *m, const char *name)
{
	const struct gpuq_val *list = gpuq_get(m->site, "queues");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (strcmp(gpuq_get_str(list->items[i], "name", ""), name) == 0)
			return list->items[i];
	return NULL;
}

static const char *join(const struct manager *m, const struct gpuq_val *list, const char *key)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *out;

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *v = key ? gpuq_get(list->items[i], key) : list->items[i];

		if (v && v->type == GPUQ_STR)
			gpuq_buf_printf(&b, "%s%s", b.len ? "," : "", v->s);
	}
	out = b.len ? gpuq_arena_strdup(m->a, gpuq_buf_str(&b)) : "";
	gpuq_buf_done(&b);
	return out ? out : "";
}

static const char *qos_of(const struct manager *m, const char *queue)
{
	const struct gpuq_val *q = queue ? site_queue(m, queue) : NULL, *all;
	const char *names = "";

	/* The nearest on the path that names any. */
	for (; q && !*names; q = site_queue(m, gpuq_get_str(q, "parent", "")))
		names = join(m, gpuq_get(q, "qos"), NULL);
	if (*names)
		return names;
	all = gpuq_get(m->site, "qos");
	names = join(m, all, "name");
	/* It is always there. */
	for (uint32_t i = 0; all && all->type == GPUQ_LIST && i < all->n; i++)
		if (strcmp(gpuq_get_str(all->items[i], "name", ""), "normal") == 0)
			return names;
	return *names ? gpuq_arena_printf(m->a, "normal,%s", names) : "normal";
}

/* May the user submit there? A queue that names no users takes all. */
static bool may_use(const struct manager *m, const struct gpuq_val *q, const char *user)
{
	const struct gpuq_val *rules = site_queue(m, gpuq_get_str(q, "name", ""));
	const struct gpuq_val *users = gpuq_get(rules, "users");

	return !users || users->type != GPUQ_LIST || users->n == 0 || !user ||
	       listed(users, user) || gpuq_get(rules, "groups");
}

static void add_line(struct manager *m, const char *user, const char *account,
		     const struct gpuq_val *queue)
{
	struct gpuq_val *line = gpuq_map(m->a);

	if (!wanted(m->account, account))
		return;
	put(m, line, "user", user);
	put(m, line, "account", account);
	put(m, line, "parent", queue ? gpuq_get_str(queue, "parent", "root") : "root");
	put(m, line, "level", "None");
	put(m, line, "qos", qos_of(m, queue ? account : NULL));
	put(m, line, "max_wall", queue ? wall_of(m, queue, "max_time_s") : "");
	put(m, line, "limit", "");
	gpuq_add(m->a, m->lines, line);
}

/* A line for each account that the user (NULL = none in particular) may name. */
static void add_accounts(struct manager *m, const char *user, const struct named *n)
{
	const struct gpuq_val *names;

	for (uint32_t i = 0; i < m->queues->n; i++) {
		const struct gpuq_val *q = m->queues->items[i];
		const char *name = gpuq_get_str(q, "name", "");

		if (is_leaf(m, name) && may_use(m, q, user))
			add_line(m, user, name, q);
	}
	names = user ? gpuq_get(n->uses, user) : n->accounts;
	for (uint32_t i = 0; names && i < names->n; i++)
		if (!site_queue(m, names->items[i]->s) &&
		    strcmp(names->items[i]->s, "default") != 0)
			add_line(m, user, names->items[i]->s, NULL);
}

static int each_user(struct manager *m, bool by_account, struct gpuq_err *err)
{
	struct named n = { m, gpuq_list(m->a), gpuq_list(m->a), gpuq_map(m->a) };
	const struct gpuq_val *users = gpuq_get(m->site, "users");
	int rc = from_jobs(m, &n, err);

	for (uint32_t i = 0; users && users->type == GPUQ_LIST && i < users->n; i++)
		add_name(m, n.users, gpuq_get_str(users->items[i], "name", NULL));
	add_name(m, n.users, cli_user(m->c));
	/* A user that nothing names may submit as well. */
	add_name(m, n.users, m->user);
	for (uint32_t i = 0; rc == 0 && i < n.users->n; i++) {
		const char *user = n.users->items[i]->s;

		if (!wanted(m->user, user))
			continue;
		if (by_account)
			add_accounts(m, user, &n);
		else
			add_line(m, user, m->account ? m->account : "default", NULL);
	}
	return rc;
}

static int users(struct manager *m, struct gpuq_err *err)
{
	return each_user(m, m->by_account || m->account, err);
}

static int associations(struct manager *m, struct gpuq_err *err)
{
	return each_user(m, true, err);
}

static int accounts(struct manager *m, struct gpuq_err *err)
{
	struct named n = { m, gpuq_list(m->a), gpuq_list(m->a), gpuq_map(m->a) };
	int rc = m->by_account ? each_user(m, true, err) : from_jobs(m, &n, err);

	if (rc == 0 && !m->by_account)
		add_accounts(m, NULL, &n);
	return rc;
}

static int qualities(struct manager *m, struct gpuq_err *err)
{
	const struct gpuq_val *list = gpuq_get(m->site, "qos");
	bool usual = false;

	(void)err;
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i <= list->n; i++) {
		const struct gpuq_val *q = i < list->n ? list->items[i] : NULL;
		const char *name = gpuq_get_str(q, "name", "normal");
		struct gpuq_val *line = gpuq_map(m->a);

		if (!q && usual)
			break;
		usual |= strcmp(name, "normal") == 0;
		if (!wanted(m->account, name))
			continue;
		put(m, line, "name", name);
		put(m, line, "priority",
		    gpuq_arena_printf(m->a, "%" PRId64, gpuq_get_int(q, "priority", 0)));
		put(m, line, "grace", gpuq_get_str(q, "grace", "00:00:00"));
		put(m, line, "mode", gpuq_get_bool(q, "preemptible", true) ? "requeue" : "cluster");
		put(m, line, "max_wall", gpuq_get_str(q, "max_time", ""));
		put(m, line, "factor", "1.000000");
		gpuq_add(m->a, m->lines, line);
	}
	if (m->lines->n == 0 && wanted(m->account, "normal")) {
		struct gpuq_val *line = gpuq_map(m->a);

		put(m, line, "name", "normal");
		put(m, line, "priority", "0");
		put(m, line, "grace", "00:00:00");
		put(m, line, "mode", "requeue");
		put(m, line, "factor", "1.000000");
		gpuq_add(m->a, m->lines, line);
	}
	return 0;
}

static int clusters(struct manager *m, struct gpuq_err *err)
{
	struct gpuq_val *line = gpuq_map(m->a);

	(void)err;
	put(m, line, "host", "localhost");
	put(m, line, "qos", qos_of(m, NULL));
	gpuq_add(m->a, m->lines, line);
	return 0;
}

/* ---- the command ---- */

static const struct {
	const char *entity; /* as many letters as tell it apart */
	int (*fill)(struct manager *m, struct gpuq_err *err);
	const struct slurm_column *cols;
	const char *usual, *more; /* columns, and with a line for each account */
	const char *change; /* what changes it */
} entities[] = {
	{ "acc", accounts, account_cols, "Account,Description,Organization",
	  "Account,Description,Organization,Cluster,ParentName,User,Share,QOS",
	  "gpuq apply changes queues; an account is recorded with a job and needs no record of its "
	  "own" },
	{ "ass", associations, assoc_cols,
	  "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,"
	  "GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,"
	  "GrpTRESRunMins",
	  NULL, "gpuq apply changes who may use which queue, and with what limits" },
	{ "clus", clusters, cluster_cols, "Cluster,ControlHost,ControlPort,RPC,Share,QOS", NULL,
	  "a server has one cluster" },
	{ "qos", qualities, qos_cols,
	  "Name,Priority,GraceTime,Preempt,PreemptMode,Flags,UsageThreshold,UsageFactor,MaxWall",
	  NULL, "gpuq apply changes qos" },
	{ "user", users, user_cols, "User,DefaultAccount,AdminLevel",
	  "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,MaxJobs,MaxSubmit,"
	  "MaxWall,"
	  "QOS,DefaultQOS",
	  "gpuq apply changes users" },
};

/* Those that have no list here. */
static const struct {
	const char *entity, *show, *change;
} elsewhere[] = {
	{ "conf", "gpuqd --print-config", "gpuqd.yaml(5)" },
	{ "coord", "gpuq export", "gpuq apply changes the managers of queues" },
	{ "event", "gpuq nodes, gpuq events --audit", "gpuq drain and gpuq resume" },
	{ "job", "gpuq history", "gpuq update changes jobs that have not ended" },
	{ "prob", "gpuq doctor", "see gpuq doctor" },
	{ "reso", "gpuq export", "gpuq apply changes licenses" },
	{ "reser", "gpuq reservations", "gpuq reserve" },
	{ "runaway", "gpuq doctor", "there are none: a job ends when its pods are gone" },
	{ "stats", "gpuq diag", "gpuq diag" },
	{ "trans", "gpuq events --audit", "see the changes of each object" },
	{ "tres", "gpuq nodes, gpuq export", "gpuq apply changes flavors" },
	{ "wckey", "gpuq history --labels", "labels need no record of their own" },
};

static bool is_entity(const char *known, const char *word)
{
	return *word && strncasecmp(known, word, strlen(known)) == 0;
}

static int refuse(const char *verb, const char *entity, bool shows)
{
	if (strcasecmp(verb, "dump") == 0)
		cli_say("error: use gpuq export for the site file");
	else if (strcasecmp(verb, "load") == 0)
		cli_say("error: use gpuq apply -f FILE to apply a site file");
	else if (strcasecmp(verb, "ping") == 0)
		cli_say("error: use gpuq version or scontrol ping");
	else {
		for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
			if (is_entity(entities[i].entity, entity)) {
				cli_say("error: there are no associations: see %s",
					entities[i].change);
				return 1;
			}
		for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
			if (is_entity(elsewhere[i].entity, entity)) {
				cli_say("error: there are no associations: see %s",
					shows ? elsewhere[i].show : elsewhere[i].change);
				return 1;
			}
		cli_say("error: there are no associations: gpuq queues, gpuq shares and gpuq "
			"export show what queues and users may have, gpuq apply changes it");
	}
	return 1;
}

/* "user=ann", "where", "format=user%20,account", "withassoc", or a bare name. */
static bool read_words(struct manager *m, size_t which, const char **format)
{
	char **words = m->c->args.rest + 2;

	for (int i = 0; i < m->c->args.n_rest - 2; i++) {
		const char *eq = strchr(words[i], '='), *value = eq ? eq + 1 : words[i];
		const size_t n = eq ? (size_t)(eq - words[i]) : strlen(words[i]);
		const bool names_user = n && strncasecmp("users", words[i], n) == 0;

		if (!eq && (strcasecmp(words[i], "where") == 0 || strcasecmp(words[i], "set") == 0))
			continue;
		if (!eq && (strncasecmp(words[i], "withassoc", 9) == 0)) {
			m->by_account = true;
		} else if (!eq && (strncasecmp(words[i], "with", 4) == 0 ||
				   strncasecmp(words[i], "only", 4) == 0 ||
				   strncasecmp(words[i], "tree", 4) == 0)) {
			continue; /* the list is the same with and without */
		} else if (eq && n >= 3 && strncasecmp("format", words[i], n) == 0) {
			*format = value;
		} else if (eq && n >= 2 && strncasecmp("clusters", words[i], n) == 0) {
			continue; /* there is one */
		} else if (eq && names_user) {
			m->user = value;
		} else if (eq && n >= 3 &&
			   (strncasecmp("accounts", words[i], n) == 0 ||
			    strncasecmp("names", words[i], n) == 0)) {
			m->account = value;
		} else if (eq) {
			cli_say("error: unknown condition %s; known are user=, account=, name=, "
				"cluster=, format=",
				words[i]);
			return false;
		} else if (entities[which].fill == users || entities[which].fill == associations) {
			m->user = value;
		} else {
			m->account = value;
		}
	}
	return true;
}

static int show(struct cli *c, size_t which)
{
	struct manager m = { .c = c,
			     .a = &c->arena,
			     .t = { .cols = entities[which].cols },
			     .queues = gpuq_list(&c->arena),
			     .lines = gpuq_list(&c->arena),
			     .by_account = opt_given(&c->args, OPT_S_ASSOC) };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *format = NULL;
	struct gpuq_val *reply;
	int rc;

	if (!read_words(&m, which, &format))
		return 1;
	if (!format)
		format = m.by_account && entities[which].more ? entities[which].more
							      : entities[which].usual;
	/* A column of associations requests them. */
	m.by_account |= strcasestr(format, "account") && entities[which].fill == users &&
			!strcasestr(format, "defaultaccount");
	if (!slurm_table_fields(&m.t, format))
		return 1;
	slurm_table_options(&m.t, &c->args);
	rc = cli_call(c, "site.get", NULL, "", &reply, &err);
	if (rc == 0) {
		m.site = gpuq_get(reply, "site");
		rc = slurm_each(c, "queue.list", gpuq_map(m.a), NULL, take_queue, &m, &err);
	}
	if (rc == 0)
		rc = entities[which].fill(&m, &err);
	if (rc < 0)
		return slurm_fail(&err);
	if (!opt_given(&c->args, OPT_NO_HEADER))
		slurm_table_head(&m.t);
	for (uint32_t i = 0; i < m.lines->n; i++)
		slurm_table_line(&m.t, m.lines->items[i]);
	return EXIT_DONE;
}

int slurm_sacctmgr(struct cli *c)
{
	const char *verb = c->args.n_rest > 0 ? c->args.rest[0] : "";
	const char *entity = c->args.n_rest > 1 ? c->args.rest[1] : "";
	const bool shows = strcasecmp(verb, "show") == 0 || strcasecmp(verb, "list") == 0;

	for (size_t i = 0; shows && i < sizeof(entities) / sizeof(entities[0]); i++)
		if (is_entity(entities[i].entity, entity))
			return show(c, i);
	return refuse(verb, entity, shows);
}
