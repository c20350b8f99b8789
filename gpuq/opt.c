#include "gpuq/opt.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "libgpuq/buf.h"
#include "libgpuq/schema.h"
#include "libgpuq/spec.h"

#define SEVERAL_MAX 6 /* options that are named for an abbreviation */

/* clang-format off */
const struct opt opts_common[] = {
	{ OPT_SERVER, "server", 0, ARG_REQUIRED, "ADDR", "the server: unix:/path, ssh://host, tls://host" },
	{ OPT_HELP, "help", 0, ARG_NONE, NULL, "print this help and exit" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

const struct opt opts_help[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

const struct opt opts_list[] = {
	{ OPT_NO_HEADER, "no-header", 'h', ARG_NONE, NULL, "omit the header line" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "COLS", "columns, separated by commas; NAME:20 sets a width, a leading + adds to the default" },
	{ OPT_SORT, "sort", 'S', ARG_REQUIRED, "COLS", "sort by these columns; -COL sorts descending" },
	{ OPT_LIMIT, "limit", 0, ARG_REQUIRED, "N", "print at most N lines" },
	{ OPT_WATCH, "watch", 0, ARG_OPTIONAL, "SECONDS", "print it again every SECONDS (2)" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print one JSON object a line" },
	{ OPT_CSV, "csv", 0, ARG_NONE, NULL, "print comma-separated values (RFC 4180)" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

const struct opt opts_filter[] = {
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "the caller's jobs" },
	{ OPT_QUEUES, "queues", 'q', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_STATES, "states", 't', ARG_MANY, "STATES", "jobs in these states, long or short words, or \"all\"" },
	{ OPT_NAMES, "names", 'n', ARG_MANY, "NAMES", "jobs with these names" },
	{ OPT_LABELS, "labels", 'l', ARG_MANY, "LABELS", "jobs with these labels: team=a,stage!=b,has,!lacks" },
	{ OPT_NODES, "nodes", 'w', ARG_MANY, "NODES", "jobs with a pod on one of these nodes" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs: 17, 17_3, 17_[4-9]" },
	{ OPT_SINCE, "since", 0, ARG_REQUIRED, "TIME", "jobs that ended since TIME, or were submitted since then and have not ended; an instant, or a duration before now" },
	{ OPT_UNTIL, "until", 0, ARG_REQUIRED, "TIME", "the same until TIME" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

const struct opt opts_waiting[] = {
	{ OPT_TIMEOUT, "timeout", 0, ARG_REQUIRED, "DURATION", "stop waiting after DURATION, exit 253; the job keeps running" },
	{ OPT_VERBOSE, "verbose", 'v', ARG_NONE, NULL, "print each change of state on standard error" },
	{ 0, NULL, 0, 0, NULL, NULL },
};
/* clang-format on */

#define ALL_MAX 224

/* Every option of one command, in getopt's two forms. */
struct table {
	struct opt rows[ALL_MAX];
	size_t n;
	bool letters[128];
};

static bool has_name(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->rows[i].name, name) == 0)
			return true;
	return false;
}

static void add(struct table *t, struct opt o)
{
	/* One slot stays free for getopt's end mark. */
	if (t->n == ALL_MAX - 1 || has_name(t, o.name))
		return;
	if (o.letter) {
		if (t->letters[(unsigned char)o.letter & 127])
			o.letter = 0;
		else
			t->letters[(unsigned char)o.letter & 127] = true;
	}
	t->rows[t->n++] = o;
}

static void collect(const struct command *cmd, struct table *t)
{
	t->n = 0;
	memset(t->letters, 0, sizeof(t->letters));
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		add(t, *o);
	for (size_t g = 0; g < OPT_GROUPS_MAX && cmd->groups[g]; g++)
		for (const struct opt *o = cmd->groups[g]; o->name; o++)
			add(t, *o);
	for (const struct opt *o = opts_common; o->name; o++)
		add(t, *o);
	if (!cmd->job_options)
		return;
	for (const struct gpuq_spec_option *s = gpuq_spec_options; s->name; s++)
		add(t, (struct opt){ -1, s->name, s->letter, s->arg, s->metavar, s->doc });
	for (const struct gpuq_spec_option *s = gpuq_spec_unused; cmd->slurm && s->name; s++)
		add(t, (struct opt){ OPT_S_IGNORED, s->name, s->letter, s->arg, "VALUE", s->doc });
	for (const struct gpuq_spec_option *s = gpuq_spec_refused; cmd->slurm && s->name; s++)
		add(t, (struct opt){ OPT_S_REFUSED, s->name, s->letter, s->arg, "VALUE", s->doc });
}

void opt_each(const struct command *cmd, opt_fn fn, void *arg)
{
	struct table t;

	collect(cmd, &t);
	for (size_t i = 0; i < t.n; i++)
		fn(arg, &t.rows[i]);
}

bool opt_given(const struct args *args, enum opt_id id)
{
	return args->val[id] != NULL;
}

static int keep_job_option(struct args *args, const struct opt *o, const char *value)
{
	const char **more = gpuq_arena_calloc(args->arena, args->n_job + 2, sizeof(*more));
	const char *text = value ? gpuq_arena_printf(args->arena, "--%s=%s", o->name, value)
				 : gpuq_arena_printf(args->arena, "--%s", o->name);

	if (!more || !text)
		return cli_say("out of memory"), -1;
	if (args->n_job)
		memcpy(more, args->job, args->n_job * sizeof(*more));
	more[args->n_job++] = text;
	args->job = more;
	return 0;
}

static int keep(struct args *args, const struct opt *o, const char *value)
{
	if (o->id < 0)
		return keep_job_option(args, o, value);
	if (o->id == OPT_S_REFUSED) {
		cli_say("error: --%s is not offered: %s", o->name, o->doc);
		return -1;
	}
	if (o->id == OPT_S_IGNORED)
		cli_say("warning: --%s is ignored: %s", o->name, o->doc);
	if (o->arg == ARG_MANY && args->val[o->id]) {
		value = gpuq_arena_printf(args->arena, "%s,%s", args->val[o->id], value);
		if (!value)
			return cli_say("out of memory"), -1;
	}
	args->val[o->id] = value ? value : "";
	return 0;
}

/* How it is called. */
static const char *ours(const struct command *cmd)
{
	return cmd->slurm ? "" : "gpuq ";
}

/* Return the prefix of messages; empty where a command's own name already precedes them. */
static const char *blame(const struct command *cmd)
{
	return cmd->slurm ? "error" : cmd->name;
}

/* Tell which options an abbreviation could mean; false when it is none of several. */
static bool several(const struct command *cmd, const struct table *t, const char *name)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (strncmp(t->rows[i].name, name, strlen(name)) == 0 && ++n <= SEVERAL_MAX)
			gpuq_buf_printf(&b, "%s--%s", n > 1 ? ", " : "", t->rows[i].name);
	if (n > 1)
		cli_say("%s: option --%s could be %s%s; see %s%s --help", blame(cmd), name,
			gpuq_buf_str(&b), n > SEVERAL_MAX ? ", ..." : "", ours(cmd), cmd->name);
	gpuq_buf_done(&b);
	return n > 1;
}

static void complain(const struct command *cmd, const struct table *t, const char *word, int c)
{
	const char *names[ALL_MAX + 1], *near;
	char name[64];
	size_t n;

	if (c == ':') {
		cli_say("%s: option %s needs a value; see %s%s --help", blame(cmd), word, ours(cmd),
			cmd->name);
		return;
	}
	if (strncmp(word, "--", 2) != 0) {
		cli_say("%s: no option -%c; see %s%s --help", blame(cmd), optopt, ours(cmd),
			cmd->name);
		return;
	}
	n = strcspn(word + 2, "=");
	if (n >= sizeof(name))
		n = sizeof(name) - 1;
	memcpy(name, word + 2, n);
	name[n] = '\0';
	if (has_name(t, name)) {
		cli_say("%s: option --%s takes no value; see %s%s --help", blame(cmd), name,
			ours(cmd), cmd->name);
		return;
	}
	if (several(cmd, t, name))
		return;
	for (size_t i = 0; i < t->n; i++)
		names[i] = t->rows[i].name;
	names[t->n] = NULL;
	near = gpuq_nearest(name, names);
	if (near)
		cli_say("%s: no option --%s; did you mean --%s?", blame(cmd), name, near);
	else
		cli_say("%s: no option --%s; see %s%s --help", blame(cmd), name, ours(cmd),
			cmd->name);
}

int opt_parse(const struct command *cmd, int argc, char **argv, bool stop_first, struct args *args)
{
	struct option longs[ALL_MAX] = { { NULL, 0, NULL, 0 } };
	char shorts[3 * ALL_MAX + 3], *p = shorts;
	struct table t;
	int c, ix, at;

	collect(cmd, &t);
	if (stop_first)
		*p++ = '+';
	*p++ = ':'; /* getopt itself stays silent and tells a missing value apart */
	for (size_t i = 0; i < t.n; i++) {
		const struct opt *o = &t.rows[i];

		longs[i].name = o->name;
		longs[i].val = 0x100 + (int)i; /* letters are below */
		longs[i].has_arg = o->arg == ARG_NONE       ? no_argument
				   : o->arg == ARG_OPTIONAL ? optional_argument
							    : required_argument;
		if (!o->letter)
			continue;
		*p++ = o->letter;
		if (o->arg != ARG_NONE)
			*p++ = ':';
		if (o->arg == ARG_OPTIONAL)
			*p++ = ':';
	}
	*p = '\0';

	optind = 0; /* glibc: start afresh */
	opterr = 0;
	args->dashes = false;
	for (;;) {
		at = optind ? optind : 1;
		if (cmd->terminal && at < argc &&
		    (strcmp(argv[at], "-it") == 0 || strcmp(argv[at], "-ti") == 0)) {
			args->val[OPT_STDIN] = args->val[OPT_TTY] = "";
			optind = at + 1;
			continue;
		}
		c = getopt_long(argc, argv, shorts, longs, &ix);
		if (c == -1)
			break;
		if (c == '?' || c == ':') {
			complain(cmd, &t, argv[optind - 1], c);
			return -1;
		}
		for (size_t i = 0; i < t.n; i++) {
			if (c != 0x100 + (int)i && c != t.rows[i].letter)
				continue;
			if (keep(args, &t.rows[i], optarg) < 0)
				return -1;
			break;
		}
	}
	args->dashes = at < argc && optind == at + 1 && strcmp(argv[at], "--") == 0;
	args->rest = argv + optind;
	args->n_rest = argc - optind;
	return 0;
}
