/* sshare: fair shares and use in Slurm's columns. A queue is an account, its users are below it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/filter.h"
#include "gpuq/out.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_table.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/view.h"

/* sshare's order, a blank for each level; a user is below its queue. */
static void account_text(struct gpuq_buf *out, const void *line)
{
	for (int64_t i = gpuq_get_int(line, "depth", 0); i > 0; i--)
		gpuq_buf_addc(out, ' ');
	gpuq_buf_adds(out, gpuq_get_str(line, "queue", ""));
}

static void user_text(struct gpuq_buf *out, const void *line)
{
	gpuq_buf_adds(out, gpuq_get_str(line, "user", ""));
}

static void cluster_text(struct gpuq_buf *out, const void *line)
{
	(void)line;
	gpuq_buf_adds(out, "gpuq");
}

static void partition_text(struct gpuq_buf *out, const void *line)
{
	(void)out;
	(void)line;
}

static void put_fixed(struct gpuq_buf *out, const struct gpuq_val *row, const char *key, int digits)
{
	const struct gpuq_val *v = gpuq_get(row, key);

	if (v && v->type != GPUQ_NULL)
		gpuq_buf_printf(out, "%.*f", digits, view_number(v, 0));
}

#define NUMBER(name, key, digits)                                                                  \
	static void name##_text(struct gpuq_buf *out, const void *line)                            \
	{                                                                                          \
		put_fixed(out, line, key, digits);                                                 \
	}
NUMBER(shares, "raw_shares", 0)
NUMBER(norm_shares, "norm_shares", 6)
NUMBER(usage, "raw_usage", 0)
NUMBER(norm_usage, "norm_usage", 6)
NUMBER(effective, "effective_usage", 6)
NUMBER(fair, "fair_share_factor", 6)

static void level_text(struct gpuq_buf *out, const void *line)
{
	const struct gpuq_val *v = gpuq_get(line, "level_fs");

	if (!v || v->type == GPUQ_NULL)
		gpuq_buf_adds(out, "inf");
	else
		gpuq_buf_printf(out, "%.6f", view_number(v, 0));
}

/* The budget, where there is one. */
static void minutes_text(struct gpuq_buf *out, const void *line)
{
	const struct gpuq_val *v = gpuq_get(line, "budget_gpu_minutes");

	if (v && v->type != GPUQ_NULL)
		gpuq_buf_printf(out, "gres/gpu=%.0f", view_number(v, 0));
}

static const struct slurm_column cols[] = {
	{ "Account", -20, account_text, NULL },
	{ "User", 10, user_text, NULL },
	{ "RawShares", 10, shares_text, NULL },
	{ "NormShares", 11, norm_shares_text, NULL },
	{ "RawUsage", 11, usage_text, NULL },
	{ "NormUsage", 11, norm_usage_text, NULL },
	{ "EffectvUsage", 13, effective_text, NULL },
	{ "FairShare", 10, fair_text, NULL },
	{ "LevelFS", 10, level_text, NULL },
	{ "GrpTRESMins", 30, minutes_text, NULL },
	{ "TRESRunMins", 30, NULL, NULL },
	{ "Cluster", 10, cluster_text, NULL },
	{ "Partition", 12, partition_text, NULL },
	{ NULL, 0, NULL, NULL },
};

struct rows {
	struct cli *c;
	const struct slurm_table *t;
	const char *only_user; /* with -U */
};

static void print_row(void *arg, const struct gpuq_val *row)
{
	const struct rows *r = arg;
	const char *user = gpuq_get_str(row, "user", NULL);

	if (r->only_user && (!user || strcmp(user, r->only_user) != 0))
		return;
	if (opt_given(&r->c->args, OPT_JSON))
		out_json(row);
	else
		slurm_table_line(r->t, row);
}

int slurm_sshare(struct cli *c)
{
	const bool own = opt_given(&c->args, OPT_ME);
	const char *format = c->args.val[OPT_FORMAT];
	struct slurm_table t = { .cols = cols };
	struct rows r = { .c = c, .t = &t };
	struct gpuq_val *params = gpuq_map(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (!format && opt_given(&c->args, OPT_LONG))
		format = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,"
			 "FairShare,LevelFS,GrpTRESMins,TRESRunMins";
	else if (!format)
		format = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
	if (!slurm_table_fields(&t, format))
		return 1;
	slurm_table_options(&t, &c->args);
	/* Without being told whose: one's own. */
	if (!opt_given(&c->args, OPT_ALL) && !opt_given(&c->args, OPT_USERS))
		c->args.val[OPT_ME] = "";
	rc = cli_connect(c, &err);
	if (rc == 0)
		rc = filter_put(c, params, &err);
	if (rc < 0)
		return slurm_fail(&err);
	r.only_user = own ? cli_user(c) : NULL;
	if (!opt_given(&c->args, OPT_NO_HEADER) && !opt_given(&c->args, OPT_JSON))
		slurm_table_head(&t);
	rc = slurm_each(c, "shares.list", params, NULL, print_row, &r, &err);
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}
