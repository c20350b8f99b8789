#include "script.h"
#include "audit.h"
#include "commands.h"
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32
#define POLL_US 2000 /* how often counts are looked at */

/* A line, read and found good. */
struct line {
	struct line *next;
	int number;
	char *text, *copy; /* as written; cut into words */
	char *words[WORDS_MAX];
	size_t n_words;
	struct rule *rule; /* `on` */
	const struct command *command;
	struct args args;
	int64_t at_us; /* `at`: -1 if not */
	char *counter; /* `when`, or NULL */
	int64_t value;
	struct event *timer; /* of a line that waits */
};

static struct {
	struct event_base *base;
	struct line *waiting;
	struct event *poll;
} sc;

/* Cut in place at blanks; "..." keeps blanks; # begins a comment. */
static int split(struct line *l, struct buf *why)
{
	char *s = l->copy;

	for (;;) {
		char *to;
		bool quoted = false;

		s += strspn(s, " \t\r");
		if (!*s || *s == '#')
			return 0;
		if (l->n_words == WORDS_MAX) {
			buf_adds(why, "too many words");
			return -1;
		}
		l->words[l->n_words++] = to = s;
		for (; *s && (quoted || !strchr(" \t\r", *s)); s++) {
			if (*s == '"')
				quoted = !quoted;
			else
				*to++ = *s;
		}
		if (quoted) {
			buf_adds(why, "a \" is not closed");
			return -1;
		}
		if (*s)
			s++;
		*to = '\0';
	}
}

static int read_option(struct line *l, char *word, struct buf *why)
{
	const char *eq = strchr(word, '=');
	const struct command *c = l->command;

	for (size_t i = 0; eq && i < COMMAND_OPTIONS && c->options[i]; i++) {
		const size_t n = strcspn(c->options[i], ":");
		uint64_t u;
		int64_t us;

		if ((size_t)(eq - word) != n || memcmp(c->options[i], word, n) != 0)
			continue;
		if ((c->options[i][n + 1] == 'u' && uint_parse(eq + 1, &u) != 0) ||
		    (c->options[i][n + 1] == 'd' && duration_parse(eq + 1, &us) != 0)) {
			buf_addf(why, "bad value in '%s'", word);
			return -1;
		}
		l->args.option[i] = eq + 1;
		return 1;
	}
	return 0;
}

static int read_command(struct line *l, size_t from, struct buf *why)
{
	const char *wrong;

	for (size_t i = 0; from < l->n_words && i < n_commands; i++) {
		if (strcmp(commands[i].name, l->words[from]) == 0)
			l->command = &commands[i];
	}
	if (!l->command) {
		buf_addf(why, "unknown command '%s' (see fakekube --help)",
			 from < l->n_words ? l->words[from] : "");
		return -1;
	}
	for (size_t i = from + 1; i < l->n_words; i++) {
		const int rc = read_option(l, l->words[i], why);

		if (rc < 0)
			return -1;
		if (rc > 0)
			continue;
		if (l->args.n == l->command->max) {
			buf_addf(why, "%s: unknown word '%s'", l->command->name, l->words[i]);
			return -1;
		}
		l->args.arg[l->args.n++] = l->words[i];
	}
	if (l->args.n < l->command->min) {
		buf_addf(why, "%s: an argument is missing", l->command->name);
		return -1;
	}
	wrong = l->command->check ? l->command->check(&l->args) : NULL;
	if (wrong)
		buf_adds(why, wrong);
	return wrong ? -1 : 0;
}

/* `when COUNTER=N`. */
static int read_when(struct line *l, struct buf *why)
{
	char *eq = l->n_words > 1 ? strchr(l->words[1], '=') : NULL;
	uint64_t n = 0;

	if (!eq || uint_parse(eq + 1, &n) != 0) {
		buf_adds(why, "when: expected COUNTER=NUMBER");
		return -1;
	}
	l->counter = xstrndup(l->words[1], (size_t)(eq - l->words[1]));
	l->value = (int64_t)n;
	if (audit_counter(l->counter) < 0) {
		buf_addf(why, "when: unknown counter '%s' (GET /fake/audit names them)",
			 l->counter);
		return -1;
	}
	return 0;
}

static int read_line(struct line *l, struct buf *why)
{
	char *reason = NULL;
	size_t from = 0;

	l->at_us = -1;
	if (split(l, why) != 0)
		return -1;
	if (l->n_words == 0)
		return 0;
	if (strcmp(l->words[0], "at") == 0) {
		if (l->n_words < 2 || duration_parse(l->words[1], &l->at_us) != 0) {
			buf_adds(why, "at: expected a time such as 5s");
			return -1;
		}
		from = 2;
	} else if (strcmp(l->words[0], "when") == 0) {
		if (read_when(l, why) != 0)
			return -1;
		from = 2;
	}
	if (from < l->n_words && strcmp(l->words[from], "on") == 0) {
		l->rule = rule_parse(l->words + from + 1, l->n_words - from - 1, l->text, &reason);
		if (!l->rule)
			buf_adds(why, reason);
		free(reason);
		return l->rule ? 0 : -1;
	}
	return read_command(l, from, why);
}

static void line_free(struct line *l)
{
	if (l->rule)
		rule_free(l->rule);
	if (l->timer)
		event_free(l->timer);
	free(l->counter);
	free(l->copy);
	free(l->text);
	free(l);
}

static void lines_free(struct line *l)
{
	while (l) {
		struct line *next = l->next;

		line_free(l);
		l = next;
	}
}

static struct line *read_lines(const char *file, const char *text, char **why)
{
	struct line *head = NULL, **at = &head;
	struct buf b = BUF_INIT;
	int number = 0;

	while (*text) {
		const size_t n = strcspn(text, "\n");
		struct line *l = xcalloc(1, sizeof(*l));

		l->number = ++number;
		l->text = xstrndup(text, n);
		l->copy = xstrndup(text, n);
		text += n + (text[n] == '\n');
		if (read_line(l, &b) != 0) {
			struct buf full = BUF_INIT;

			buf_addf(&full, "%s:%d: %s", file, number, b.s);
			*why = full.s;
			buf_done(&b);
			line_free(l);
			lines_free(head);
			return NULL;
		}
		if (l->n_words == 0) {
			line_free(l);
			continue;
		}
		*at = l;
		at = &l->next;
	}
	*why = NULL;
	return head;
}

int script_check(const char *file, const char *text, char **why)
{
	struct line *head = read_lines(file, text, why);

	lines_free(head);
	return *why ? -1 : 0;
}

/* Do a line now. Returns what it says. */
static json_t *line_run(struct line *l)
{
	struct buf why = BUF_INIT;
	json_t *result;

	if (l->rule) {
		rule_add(l->rule);
		l->rule = NULL;
		result = json_object();
	} else {
		result = l->command->run(&l->args, &why);
	}
	if (!result) {
		fprintf(stderr, "fakekube: %s: %s\n", l->text, why.s ? why.s : "failed");
		result = json_pack("{s:s}", "error", why.s ? why.s : "failed");
	}
	json_object_set_new(result, "line", json_integer(l->number));
	buf_done(&why);
	return result;
}

static void waiting_take(struct line *l)
{
	struct line **at = &sc.waiting;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
}

static void on_at(evutil_socket_t fd, short what, void *arg)
{
	struct line *l = arg;

	(void)fd;
	(void)what;
	waiting_take(l);
	json_decref(line_run(l));
	line_free(l);
}

static void poll_soon(void)
{
	const struct timeval tv = { 0, POLL_US };

	evtimer_add(sc.poll, &tv);
}

static void on_poll(evutil_socket_t fd, short what, void *arg)
{
	struct line *l, *next;
	bool more = false;

	(void)fd;
	(void)what;
	(void)arg;
	for (l = sc.waiting; l; l = next) {
		next = l->next;
		if (!l->counter)
			continue;
		if (audit_counter(l->counter) < l->value) {
			more = true;
			continue;
		}
		waiting_take(l);
		json_decref(line_run(l));
		line_free(l);
	}
	if (more)
		poll_soon();
}

static void line_wait(struct line *l)
{
	const struct timeval tv = { l->at_us / SECOND_US, l->at_us % SECOND_US };
	struct line **at = &sc.waiting;

	while (*at)
		at = &(*at)->next;
	l->next = NULL;
	*at = l;
	l->args.keep = NULL; /* the request will be over by then */
	if (l->counter) {
		poll_soon();
		return;
	}
	l->timer = evtimer_new(sc.base, on_at, l);
	evtimer_add(l->timer, &tv);
}

json_t *script_run(const char *file, const char *text, const struct http_req *keep, char **why)
{
	struct line *head = read_lines(file, text, why), *next;
	json_t *results;

	if (*why)
		return NULL;
	results = json_array();
	for (struct line *l = head; l; l = next) {
		next = l->next;
		if (l->counter || l->at_us >= 0) {
			line_wait(l);
			continue;
		}
		l->args.keep = keep;
		json_array_append_new(results, line_run(l));
		line_free(l);
	}
	return results;
}

json_t *script_json(void)
{
	json_t *list = json_array();

	for (const struct line *l = sc.waiting; l; l = l->next)
		json_array_append_new(list, json_string(l->text));
	return list;
}

void script_init(struct event_base *base)
{
	sc.base = base;
	sc.poll = evtimer_new(base, on_poll, NULL);
}

void script_done(void)
{
	lines_free(sc.waiting);
	event_free(sc.poll);
}

const char *script_help(void)
{
	return "A script is lines; # begins a comment. A line that cannot be read is refused with\n"
	       "FILE:LINE before anything is done. Times are 150ms, 2s, 1m30s; a plain number\n"
	       "means seconds.\n"
	       "\n"
	       "  on VERB [RESOURCE[/SUB]] [WHICH ...] FAULT ...\n"
	       "      VERB      GET LIST WATCH POST PUT PATCH DELETE ANY\n"
	       "      RESOURCE  pods nodes configmaps ..., pods/binding, pods/log, *; default *\n"
	       "      WHICH     of the matching requests; all if nothing is said\n"
	       "        nth=N every=N from=N   the N-th; each N-th; all from the N-th on\n"
	       "        count=N prob=P         at most N times; with probability P (0..1]\n"
	       "        ns=GLOB name=GLOB      of this namespace, this object\n"
	       "      FAULT     one of\n"
	       "        status=CODE            refuse; retry-after=S message=TEXT reason=TEXT\n"
	       "        html garbage           a proxy's error page; an answer that is not JSON\n"
	       "        drop-before-commit drop-after-commit\n"
	       "                               close without an answer, not having or having done "
	       "it;\n"
	       "                               with reset, by RST\n"
	       "        hang hang-after-commit never answer, not having or having done it\n"
	       "        gone                   410: an answer (LIST), an ERROR event (WATCH)\n"
	       "        half-open close        streams: go silent with the connection open; break "
	       "off\n"
	       "        after=N after=TIME     ... after N events, or a time; for gone and garbage "
	       "too\n"
	       "      and any of\n"
	       "        delay=TIME             do it so much later, even when the client has left\n"
	       "        delay-after=TIME       do it, answer so much later\n"
	       "        slow-bytes=N/TIME      send N bytes each TIME\n"
	       "        truncate=N             close after N bytes of the body\n"
	       "        no-bookmarks           watches without bookmarks\n"
	       "      Every rule counts its own matching requests; the first whose turn it is "
	       "acts.\n"
	       "\n"
	       "  clear                        forget all rules\n"
	       "  down TIME | blackhole TIME   refuse connections; or let them hang\n"
	       "  close-watches                end all watches\n"
	       "  compact [to=RV]              forget history and continue tokens\n"
	       "  rewind to=RV | back=N        state and counter go back, as etcd restored\n"
	       "  poison pod [kind=nul|hugeint|big|deep|badutf8|types] [name=] [ns=] [node=]\n"
	       "  node-add NAME [gpus=N]       node-gone NAME    node-reboot NAME\n"
	       "  node-down NAME | node-up NAME     Ready=Unknown and its kubelet cut off\n"
	       "  cordon NAME | uncordon NAME\n"
	       "  devices NAME=N               allocatable GPUs\n"
	       "  foreign NODE [gpus=N] [name=] a running pod of someone else, namespace foreign\n"
	       "  delete-pod [NS/]NAME [grace=S]    label-pod [NS/]NAME KEY=VALUE\n"
	       "  token TEXT                   ask for this bearer token from now on\n"
	       "  at TIME LINE                 do the line so much later\n"
	       "  when COUNTER=N LINE          once a counter of /fake/audit has reached N\n"
	       "                               (creates deletes binds starts ends requests writes "
	       "...)\n";
}
