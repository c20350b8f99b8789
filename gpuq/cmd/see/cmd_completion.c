/* gpuq completion: shell completion scripts, generated from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"

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

static bool takes_file(const struct command *c)
{
	return c->stop_first && !c->takes_jobs;
}

static void bash_option(void *arg, const struct opt *o)
{
	(void)arg;
	if (o->letter)
		printf(" -%c", o->letter);
	printf(" --%s%s", o->name, o->arg == ARG_REQUIRED || o->arg == ARG_MANY ? "=" : "");
}

/* Kinds of arguments, for bash to complete. */
static const struct {
	int (*run)(struct cli *c);
	const char *words;
} named[] = {
	{ cmd_apply, "$(compgen -f -- \"$cur\")" },
	{ cmd_backup, "list verify $(compgen -f -- \"$cur\")" },
	{ cmd_drain, "$(gpuq nodes -s -h -o NODE 2>/dev/null)" },
	{ cmd_import, "kueue $(compgen -f -- \"$cur\")" },
	{ cmd_nodes, "$(gpuq nodes -s -h -o NODE 2>/dev/null)" },
	{ cmd_queues, "set stop start open close $(gpuq queues -h -o NAME 2>/dev/null)" },
	{ cmd_pools, "$(gpuq pools -h -o NAME 2>/dev/null)" },
	{ cmd_reservations, "$(gpuq reservations -h -o NAME 2>/dev/null)" },
	{ cmd_reserve, "$(gpuq reservations -h -o NAME 2>/dev/null)" },
	{ cmd_resume, "$(gpuq nodes -s -h -o NODE 2>/dev/null)" },
};

static void bash(void)
{
	fputs("# bash completion for gpuq; load it with: source <(gpuq completion bash)\n"
	      "_gpuq()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} cmd= i opts= words=\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\t[[ ${COMP_WORDS[i]} != -* ]] && { cmd=${COMP_WORDS[i]}; break; }\n"
	      "\tdone\n"
	      "\tcase $cmd in\n\t'') words='",
	      stdout);
	names(" ");
	puts("' opts='--server= --help --version' ;;");
	for (const struct command *c = commands; c->name; c++) {
		printf("\t%s%s%s) opts='", c->name, c->alias ? "|" : "", c->alias ? c->alias : "");
		opt_each(c, bash_option, NULL);
		putchar('\'');
		if (takes_file(c))
			fputs(" words=$(compgen -f -- \"$cur\")", stdout);
		else if (c->takes_jobs)
			fputs(" words=$(gpuq queue -h -o JOBID 2>/dev/null)", stdout);
		else if (c->run == cmd_completion)
			fputs(" words='bash zsh fish'", stdout);
		else if (c->run == cmd_help) {
			fputs(" words='", stdout);
			names(" ");
			putchar('\'');
		}
		for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
			if (c->run == named[i].run)
				printf(" words=\"%s\"", named[i].words);
		puts(" ;;");
	}
	fputs("\tesac\n"
	      "\t[[ $cur == -* ]] && words=$opts\n"
	      "\tlocal IFS=$' \\t\\n'\n"
	      "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "\t[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
	      "\treturn 0\n"
	      "}\n"
	      "complete -o filenames -F _gpuq gpuq\n",
	      stdout);
}

static void zsh_option(void *arg, const struct opt *o)
{
	const bool value = o->arg != ARG_NONE;

	(void)arg;
	if (o->letter) {
		printf(" \\\n\t\t\t'-%c%s[", o->letter, value && o->arg != ARG_OPTIONAL ? "+" : "");
		quoted(o->doc, "[]:\\");
		printf("]%s'", value && o->arg != ARG_OPTIONAL ? ":value:" : "");
	}
	printf(" \\\n\t\t\t'--%s%s[", o->name, value ? "=" : "");
	quoted(o->doc, "[]:\\");
	printf("]%s", o->arg == ARG_OPTIONAL ? "::" : value ? ":" : "");
	if (value)
		printf("%s:", o->metavar ? o->metavar : "value");
	putchar('\'');
}

static void zsh(void)
{
	puts("#compdef gpuq\n"
	     "# zsh completion for gpuq; put it into a file _gpuq in your fpath\n"
	     "_gpuq_jobs() { local -a jobs; jobs=(${(f)\"$(gpuq queue -h -o JOBID "
	     "2>/dev/null)\"})\n"
	     "\tcompadd -- ${jobs// /} }\n"
	     "_gpuq() {\n"
	     "\tlocal -a cmds\n"
	     "\tcmds=(");
	for (const struct command *c = commands; c->name; c++) {
		printf("\t\t'%s:", c->name);
		quoted(c->summary, ":\\");
		puts("'");
	}
	puts("\t)\n"
	     "\tif ((CURRENT == 2)); then _describe command cmds; return; fi\n"
	     "\tlocal cmd=$words[2]\n"
	     "\tshift words; ((CURRENT--))\n"
	     "\tcase $cmd in");
	for (const struct command *c = commands; c->name; c++) {
		printf("\t%s%s%s)\n\t\t_arguments -s", c->name, c->alias ? "|" : "",
		       c->alias ? c->alias : "");
		opt_each(c, zsh_option, NULL);
		if (takes_file(c))
			fputs(" \\\n\t\t\t'*:file:_files'", stdout);
		else if (c->takes_jobs)
			fputs(" \\\n\t\t\t'*:job:_gpuq_jobs'", stdout);
		else if (c->run == cmd_completion)
			fputs(" \\\n\t\t\t'1:shell:(bash zsh fish)'", stdout);
		puts(" ;;");
	}
	puts("\tesac\n}\n_gpuq \"$@\"");
}

static void fish_option(void *arg, const struct opt *o)
{
	const struct command *c = arg;

	printf("complete -c gpuq -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->arg == ARG_REQUIRED || o->arg == ARG_MANY)
		fputs(" -r", stdout);
	fputs(" -d '", stdout);
	quoted(o->doc, "");
	puts("'");
}

static void fish(void)
{
	puts("# fish completion for gpuq; load it with: gpuq completion fish | source");
	puts("complete -c gpuq -f");
	for (const struct command *c = commands; c->name; c++) {
		printf("complete -c gpuq -n __fish_use_subcommand -a %s -d '", c->name);
		quoted(c->summary, "");
		puts("'");
		if (takes_file(c))
			printf("complete -c gpuq -n '__fish_seen_subcommand_from %s' -F\n",
			       c->name);
		else if (c->takes_jobs)
			printf("complete -c gpuq -n '__fish_seen_subcommand_from %s' "
			       "-a '(gpuq queue -h -o JOBID 2>/dev/null | string trim)'\n",
			       c->name);
		else if (c->run == cmd_completion)
			printf("complete -c gpuq -n '__fish_seen_subcommand_from %s' "
			       "-a 'bash zsh fish'\n",
			       c->name);
		opt_each(c, fish_option, (void *)c);
	}
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
