/* gpuq completion: shell completion scripts, generated from the tables of commands and options. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "libgpuq/names.h"

/* Print text with a backslash before each byte of special, and ' quoted for a shell. */
static void quoted(const char *text, const char *special)
{
	for (; text && *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr(special, *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void names(const char *sep)
{
	for (const struct command *c = commands; c->name; c++)
		printf("%s%s", c == commands ? "" : sep, c->name);
}

/* ---- kinds of words ---- */

#define FILES "files" /* the kind that the shell knows by itself */

static bool is_files(const char *kind)
{
	return kind && strcmp(kind, FILES) == 0;
}

/* Kinds, and the command that prints the words of each, the same in all three shells. */
static const struct kind {
	const char *name, *from;
} kinds[] = {
	{ "queues", "gpuq queues -h -o NAME" },
	{ "users", "gpuq shares -h -o USER" },
	{ "qos", "gpuq slurm sacctmgr -n -P show qos format=Name" },
	{ "nodes", "gpuq nodes -s -h -o NODE" },
	{ "flavors", "gpuq nodes -s -h -o FLAVOR; gpuq pools -h -o FLAVOR" },
	{ "pools", "gpuq pools -h -o NAME" },
	{ "reservations", "gpuq reservations -h -o NAME" },
	{ "jobs", "gpuq queue -h -o JOBID" },
	{ "ended", "gpuq history -h -o JOBID --limit 100" },
	{ "everyjob", "gpuq queue -h -o JOBID; gpuq history -h -o JOBID --limit 100" },
	{ "labels", "gpuq queue -h -o LABELS" },
	{ "shown", "printf '%s\\n' job node partition config hostnames hostlist" },
	{ "entities", "printf '%s\\n' user account association qos cluster" },
	{ "nodestates", "printf '%s\\n' idle mixed full drained down suspect" },
	{ "states", NULL }, /* of jobs */
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Kinds of options by what the manual calls their value, or by their names. */
static const struct {
	const char *metavar, *name, *kind;
} of_options[] = {
	{ NULL, "constraint", NULL }, /* labels of nodes */
	{ NULL, "prefer", NULL },     { NULL, "mail-user", NULL },
	{ NULL, "qos", "qos" },       { NULL, "flavor", "flavors" },
	{ NULL, "pool", "pools" },    { NULL, "reservation", "reservations" },
	{ "QUEUE", NULL, "queues" },  { "QUEUES", NULL, "queues" },
	{ "USER", NULL, "users" },    { "USERS", NULL, "users" },
	{ "NODE", NULL, "nodes" },    { "NODES", NULL, "nodes" },
	{ "JOB", NULL, "jobs" },      { "JOBS", NULL, "jobs" },
	{ "LABELS", NULL, "labels" }, { "STATES", NULL, "states" },
	{ "FILE", NULL, FILES },      { "DIR", NULL, FILES },
	{ "PATH", NULL, FILES },
};

/* Kinds of arguments, and verbs that stand in their place. */
static const struct {
	int (*run)(struct cli *c);
	const char *kind, *verbs;
} of_arguments[] = {
	{ cmd_backup, FILES, "list verify" },
	{ cmd_apply, FILES, NULL },
	{ cmd_completion, NULL, "bash zsh fish" },
	{ cmd_drain, "nodes", NULL },
	{ cmd_import, FILES, "kueue" },
	{ cmd_nodes, "nodes", NULL },
	{ cmd_pools, "pools", NULL },
	{ cmd_queues, "queues", "set stop start open close grant" },
	{ cmd_reservations, "reservations", NULL },
	{ cmd_reserve, "reservations", NULL },
	{ cmd_resume, "nodes", NULL },
	{ cmd_shares, "queues", NULL },
	{ cmd_usage, "queues", NULL },
};

/* Commands that are about jobs that have ended, alone or as well: their arguments, and their options that
 * name jobs. */
static const struct {
	const char *name;
	bool slurm;
	const char *kind;
} of_jobs[] = {
	{ "resubmit", false, "ended" }, { "seff", true, "everyjob" },
	{ "logs", false, "everyjob" },  { "status", false, "everyjob" },
	{ "usage", false, "everyjob" }, { "history", false, "ended" },
	{ "sacct", true, "everyjob" },  { "events", false, "everyjob" },
};

static const char *kind_of_jobs(const struct command *c)
{
	for (size_t i = 0; i < sizeof(of_jobs) / sizeof(of_jobs[0]); i++)
		if (of_jobs[i].slurm == c->slurm && strcmp(of_jobs[i].name, c->name) == 0)
			return of_jobs[i].kind;
	return "jobs";
}

/* Kinds of arguments of names of Slurm whose first words are verbs, by the word before: "WORD=KIND ". */
static const struct {
	const char *name, *verbs, *after;
} of_words[] = {
	{ "scontrol",
	  "show hold uhold release requeue requeuehold top update wait_job write ping version",
	  "show=shown job=jobs hold=jobs uhold=jobs release=jobs requeue=jobs requeuehold=jobs "
	  "top=jobs wait_job=jobs batch_script=jobs node=nodes partition=queues" },
	{ "sacctmgr", "show list", "show=entities list=entities" },
};

/* Return the kinds by the words before of a command; NULL = it has none. Its verbs are in *verbs then. */
static const char *kinds_after(const struct command *c, const char **verbs)
{
	for (size_t i = 0; c->slurm && i < sizeof(of_words) / sizeof(of_words[0]); i++)
		if (strcmp(of_words[i].name, c->name) == 0) {
			*verbs = of_words[i].verbs;
			return of_words[i].after;
		}
	return NULL;
}

/* Return the kind of an option's value; NULL = any text. */
static const char *kind_of(const struct command *c, const struct opt *o)
{
	if (o->arg == ARG_NONE)
		return NULL;
	for (size_t i = 0; i < sizeof(of_options) / sizeof(of_options[0]); i++) {
		const char *m = of_options[i].metavar, *n = of_options[i].name;

		if (!(m ? o->metavar && strcmp(m, o->metavar) == 0 : strcmp(n, o->name) == 0))
			continue;
		if (of_options[i].kind && strcmp(of_options[i].kind, "states") == 0 &&
		    (c->run == cmd_nodes || strcmp(c->name, "sinfo") == 0))
			return "nodestates";
		if (of_options[i].kind && strcmp(of_options[i].kind, "jobs") == 0)
			return kind_of_jobs(c);
		return of_options[i].kind;
	}
	return NULL;
}

/* Return the kind of a command's arguments, and its verbs; each may be NULL. */
static const char *kind_of_arguments(const struct command *c, const char **verbs)
{
	*verbs = NULL;
	for (size_t i = 0; i < sizeof(of_arguments) / sizeof(of_arguments[0]); i++) {
		if (of_arguments[i].run != c->run)
			continue;
		*verbs = of_arguments[i].verbs;
		return of_arguments[i].kind;
	}
	if (c->takes_jobs ||
	    (c->slurm && (strcmp(c->name, "scancel") == 0 || strcmp(c->name, "seff") == 0)))
		return kind_of_jobs(c);
	return c->stop_first ? FILES : NULL;
}

/* Print the command that prints the words of a kind. */
static void source_of(const struct kind *k)
{
	if (k->from) {
		fputs(k->from, stdout);
		return;
	}
	fputs("printf '%s\\n'", stdout);
	for (int s = 0; s < N_GPUQ_JOB_STATES; s++)
		printf(" %s", gpuq_job_state_word((enum gpuq_job_state)s));
}

/* ---- bash and zsh: the words of a kind ---- */

static void words_function(const char *name)
{
	printf("%s()\n{\n\tcase $1 in\n", name);
	for (size_t i = 0; i < N_KINDS; i++) {
		printf("\t%s) ", kinds[i].name);
		source_of(&kinds[i]);
		puts(" ;;");
	}
	puts("\tesac 2>/dev/null | tr -d ' ' | tr , '\\n' | grep -v '^-*$' | sort -u\n}");
}

/* ---- bash ---- */

static void bash_option(void *arg, const struct opt *o)
{
	(void)arg;
	if (o->letter)
		printf(" -%c", o->letter);
	printf(" --%s%s", o->name, o->arg == ARG_REQUIRED || o->arg == ARG_MANY ? "=" : "");
}

/* A value that is of no kind is "text", of which nothing is known: the words of the
 * command's arguments must not take its place. */
static void bash_kind(void *arg, const struct opt *o)
{
	const char *kind = kind_of(arg, o);

	if ((!kind || is_files(kind)) && o->arg != ARG_REQUIRED && o->arg != ARG_MANY)
		return;
	if (!kind)
		kind = "text";
	printf(" --%s:%s", o->name, kind);
	if (o->letter)
		printf(" -%c:%s", o->letter, kind);
}

static void bash_command(const struct command *c)
{
	const char *verbs, *kind = kind_of_arguments(c, &verbs);
	const char *after = kinds_after(c, &verbs);

	printf("\t%s%s%s) opts='", c->name, c->alias ? "|" : "", c->alias ? c->alias : "");
	opt_each(c, bash_option, NULL);
	fputs("' kinds='", stdout);
	opt_each(c, bash_kind, (void *)(uintptr_t)c);
	printf(" ' args=%s words='%s'", kind ? kind : "''", verbs ? verbs : "");
	if (after)
		printf(" after=' %s '", after);
	if (c->run == cmd_help) {
		fputs(" words='", stdout);
		names(" ");
		putchar('\'');
	}
	puts(" ;;");
}

static void bash(void)
{
	fputs("# bash completion for gpuq; load it with: source <(gpuq completion bash)\n", stdout);
	words_function("_gpuq_of");
	fputs("_gpuq()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal cmd=${COMP_WORDS[0]##*/} i opts= words= kinds= args= kind= done= after=\n"
	      "\t[[ $cur == '=' ]] && cur=\n"
	      "\t[[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
	      "\tif [[ $cmd == gpuq ]]; then\n"
	      "\t\tcmd=\n"
	      "\t\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\t\t[[ ${COMP_WORDS[i]} != -* ]] && { cmd=${COMP_WORDS[i]}; break; }\n"
	      "\t\tdone\n"
	      "\tfi\n"
	      "\tcase $cmd in\n\t'') words='",
	      stdout);
	names(" ");
	puts("' opts='--server= --help --version' ;;");
	for (const struct command *c = commands; c->name; c++)
		bash_command(c);
	for (const struct command *c = commands_slurm(); c->name; c++)
		bash_command(c);
	fputs("\tesac\n"
	      "\t[[ $prev == -* && $kinds == *\" $prev:\"* ]] && { kind=${kinds#*\" $prev:\"}; "
	      "kind=${kind%% *}; }\n"
	      "\t[[ $after == *\" $prev=\"* ]] && { kind=${after#*\" $prev=\"}; kind=${kind%% *}; "
	      "}\n"
	      "\t[[ $after && $prev != \"${COMP_WORDS[0]}\" ]] && words=\n"
	      "\t[[ $kind == files ]] && kind= words= args=files\n"
	      "\tif [[ $kind ]]; then\n"
	      "\t\t[[ $cur == *,* ]] && done=${cur%,*},\n"
	      "\t\twords=$(_gpuq_of \"$kind\")\n"
	      "\telif [[ $cur == -* ]]; then words=$opts\n"
	      "\telif [[ $args == files ]]; then words+=\" $(compgen -f -- \"$cur\")\"\n"
	      "\telif [[ $args ]]; then words+=\" $(_gpuq_of \"$args\")\"\n"
	      "\tfi\n"
	      "\tlocal IFS=$' \\t\\n'\n"
	      "\tCOMPREPLY=($(compgen -P \"$done\" -W \"$words\" -- \"${cur#\"$done\"}\"))\n"
	      "\t[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
	      "\treturn 0\n"
	      "}\n"
	      "complete -o filenames -F _gpuq gpuq",
	      stdout);
	for (const struct command *c = commands_slurm(); c->name; c++)
		printf(" %s", c->name);
	putchar('\n');
}

/* ---- zsh ---- */

static void zsh_value(const struct command *c, const struct opt *o)
{
	const char *kind = kind_of(c, o);

	printf(o->arg == ARG_OPTIONAL ? "::%s:" : ":%s:", o->metavar ? o->metavar : "value");
	if (is_files(kind))
		fputs("_files", stdout);
	else if (kind)
		printf("_sequence _gpuq_words %s", kind);
}

static void zsh_option(void *arg, const struct opt *o)
{
	const bool value = o->arg != ARG_NONE;

	if (o->letter) {
		printf(" \\\n\t\t\t'-%c%s[", o->letter, value && o->arg != ARG_OPTIONAL ? "+" : "");
		quoted(o->doc, "[]:\\");
		putchar(']');
		if (value && o->arg != ARG_OPTIONAL)
			zsh_value(arg, o);
		putchar('\'');
	}
	printf(" \\\n\t\t\t'--%s%s[", o->name, value ? "=" : "");
	quoted(o->doc, "[]:\\");
	putchar(']');
	if (value)
		zsh_value(arg, o);
	putchar('\'');
}

static void zsh_command(const struct command *c)
{
	const char *verbs, *kind = kind_of_arguments(c, &verbs);
	const char *after = kinds_after(c, &verbs);

	printf("\t%s%s%s)\n\t\t_arguments -s", c->name, c->alias ? "|" : "",
	       c->alias ? c->alias : "");
	opt_each(c, zsh_option, (void *)(uintptr_t)c);
	if (after)
		printf(" \\\n\t\t\t'*:word:_gpuq_after \"%s\" \"%s\"'", verbs, after);
	else if (verbs && kind && !is_files(kind))
		printf(" \\\n\t\t\t'*:%s:_gpuq_words %s %s'", kind, kind, verbs);
	else if (verbs)
		printf(" \\\n\t\t\t'1:word:(%s)'", verbs);
	else if (is_files(kind))
		fputs(" \\\n\t\t\t'*:file:_files'", stdout);
	else if (kind)
		printf(" \\\n\t\t\t'*:%s:_gpuq_words %s'", kind, kind);
	puts(" ;;");
}

static void zsh(void)
{
	fputs("#compdef gpuq", stdout);
	for (const struct command *c = commands_slurm(); c->name; c++)
		printf(" %s", c->name);
	puts("\n# zsh completion for gpuq; put it into a file _gpuq in your fpath");
	words_function("_gpuq_of");
	puts("# words of a kind, and further ones; options of compadd come from _sequence\n"
	     "_gpuq_words() {\n"
	     "\tlocal -a opts found\n"
	     "\twhile [[ $1 == -* ]]; do\n"
	     "\t\topts+=($1); [[ $1 == -(P|S|r|R|p|s|W|x|X|J|V|M|F) ]] && { opts+=(\"$2\"); shift; "
	     "}; shift\n"
	     "\tdone\n"
	     "\tfound=(${(f)\"$(_gpuq_of $1)\"}); shift\n"
	     "\tcompadd $opts -- $found $@\n"
	     "}\n"
	     "# verbs, and words of a kind by the word before\n"
	     "_gpuq_after() {\n"
	     "\tlocal prev=$words[CURRENT-1] pair\n"
	     "\tfor pair in ${=2}; do\n"
	     "\t\t[[ $pair == $prev=* ]] && { _gpuq_words ${pair#*=}; return; }\n"
	     "\tdone\n"
	     "\t((CURRENT == 2)) && compadd -- ${=1}\n"
	     "}\n"
	     "_gpuq() {\n"
	     "\tlocal -a cmds\n"
	     "\tlocal cmd=${words[1]:t}\n"
	     "\tif [[ $cmd == gpuq ]]; then\n"
	     "\tcmds=(");
	for (const struct command *c = commands; c->name; c++) {
		printf("\t\t'%s:", c->name);
		quoted(c->summary, ":\\");
		puts("'");
	}
	puts("\t)\n"
	     "\tif ((CURRENT == 2)); then _describe command cmds; return; fi\n"
	     "\tcmd=$words[2]\n"
	     "\tshift words; ((CURRENT--))\n"
	     "\tfi\n"
	     "\tcase $cmd in");
	for (const struct command *c = commands; c->name; c++)
		zsh_command(c);
	for (const struct command *c = commands_slurm(); c->name; c++)
		zsh_command(c);
	puts("\tesac\n}\n_gpuq \"$@\"");
}

/* ---- fish ---- */

static void fish_target(const struct command *c)
{
	if (c->slurm)
		printf("complete -c %s", c->name);
	else
		printf("complete -c gpuq -n '__fish_seen_subcommand_from %s'", c->name);
}

static void fish_option(void *arg, const struct opt *o)
{
	const char *kind = kind_of(arg, o);

	fish_target(arg);
	printf(" -l %s", o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->arg == ARG_REQUIRED || o->arg == ARG_MANY)
		fputs(is_files(kind) ? " -r -F" : " -x", stdout);
	if (kind && !is_files(kind))
		printf(" -a '(__fish_complete_list , \"__gpuq_of %s\")'", kind);
	fputs(" -d '", stdout);
	quoted(o->doc, "");
	puts("'");
}

/* Offer verbs as the first word, and words of a kind by the word before. */
static void fish_after(const struct command *c)
{
	const char *verbs, *after = kinds_after(c, &verbs);

	printf("complete -c %s -n 'test (count (commandline -opc)) -eq 1' -a '%s'\n", c->name,
	       verbs);
	for (size_t n; *after; after += n + (after[n] == ' ')) {
		const size_t word = strcspn(after, "=");

		n = strcspn(after, " ");
		printf("complete -c %s -n 'test (commandline -opc)[-1] = %.*s' -a '(__gpuq_of "
		       "%.*s)'\n",
		       c->name, (int)word, after, (int)(n - word - 1), after + word + 1);
	}
}

static void fish_command(const struct command *c)
{
	const char *verbs, *kind = kind_of_arguments(c, &verbs);

	if (c->slurm)
		printf("complete -c %s -f\n", c->name);
	if (kinds_after(c, &verbs)) {
		fish_after(c);
		kind = verbs = NULL;
	}
	if (kind || verbs)
		fish_target(c);
	if (is_files(kind))
		fputs(" -F", stdout);
	else if (kind)
		printf(" -a '(__gpuq_of %s)'", kind);
	if (kind && verbs) {
		putchar('\n');
		fish_target(c);
	}
	if (verbs)
		printf(" -a '%s'", verbs);
	if (kind || verbs)
		putchar('\n');
	opt_each(c, fish_option, (void *)(uintptr_t)c);
}

static void fish(void)
{
	puts("# fish completion for gpuq; load it with: gpuq completion fish | source\n"
	     "function __gpuq_of\n\tbegin\n\tswitch $argv[1]");
	for (size_t i = 0; i < N_KINDS; i++) {
		printf("\tcase %s\n\t\t", kinds[i].name);
		source_of(&kinds[i]);
		putchar('\n');
	}
	puts("\tend\n\tend 2>/dev/null | tr -d ' ' | tr , '\\n' | grep -v '^-*$' | sort -u\nend\n"
	     "complete -c gpuq -f");
	for (const struct command *c = commands; c->name; c++) {
		printf("complete -c gpuq -n __fish_use_subcommand -a %s -d '", c->name);
		quoted(c->summary, "");
		puts("'");
		fish_command(c);
	}
	for (const struct command *c = commands_slurm(); c->name; c++)
		fish_command(c);
}

int cmd_completion(struct cli *c)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, c->args.rest[0]) != 0)
			continue;
		shells[i].print();
		return EXIT_DONE;
	}
	return cli_usage(c, "%s: expected bash, zsh or fish", c->args.rest[0]);
}
