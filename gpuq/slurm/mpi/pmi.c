#include "config.h"

#include "gpuq/slurm/mpi/pmi.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#define KVS "gpuq"
#define NAME_MAX_BYTES 64 /* of the only key space, and of a key */
#define VALUE_MAX_BYTES 1024

struct value {
	UT_hash_handle hh;
	char *text; /* follows the key */
	char key[];
};

struct pmi {
	long n, n_waiting;
	bool *waiting; /* in the barrier */
	struct value *values;
	size_t bytes;
	pmi_send_fn send;
	pmi_abort_fn abort;
	void *arg;
};

struct words {
	char *cmd, *key, *value, *index, *exitcode;
};

__attribute__((format(printf, 3, 4))) static void answer(struct pmi *p, long rank, const char *fmt,
							 ...)
{
	char line[NAME_MAX_BYTES * 2 + VALUE_MAX_BYTES + 128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line) - 1)
		return;
	line[n++] = '\n';
	p->send(p->arg, rank, line, (size_t)n);
}

static long number(const char *text, long dflt)
{
	char *end;
	const long n = text ? strtol(text, &end, 10) : dflt;

	return text && end == text ? dflt : n;
}

/* ---- values ---- */

static int put(struct pmi *p, const char *key, const char *text)
{
	const size_t n_key = strlen(key) + 1, n_text = strlen(text) + 1;
	struct value *v, *old;

	if (n_key > NAME_MAX_BYTES || n_text > VALUE_MAX_BYTES ||
	    p->bytes + n_key + n_text > PMI_BYTES_MAX)
		return -1;
	v = malloc(sizeof(*v) + n_key + n_text);
	if (!v)
		return -1;
	memcpy(v->key, key, n_key);
	v->text = v->key + n_key;
	memcpy(v->text, text, n_text);
	HASH_FIND_STR(p->values, key, old);
	if (old) {
		HASH_DEL(p->values, old);
		p->bytes -= strlen(old->key) + strlen(old->text) + 2;
		free(old);
	}
	HASH_ADD_KEYPTR(hh, p->values, v->key, n_key - 1, v);
	p->bytes += n_key + n_text;
	return 0;
}

/* The ranks of each node, as MPICH reads them: blocks (first node, nodes, ranks of each). */
static int put_mapping(struct pmi *p, long per_node)
{
	const long full = p->n / per_node, rest = p->n % per_node;
	char text[128];
	int n = snprintf(text, sizeof(text), "(vector");

	if (full)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ",(0,%ld,%ld)", full, per_node);
	if (rest)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ",(%ld,1,%ld)", full, rest);
	snprintf(text + n, sizeof(text) - (size_t)n, ")");
	return put(p, "PMI_process_mapping", text);
}

struct pmi *pmi_new(long n_ranks, long per_node, pmi_send_fn send, pmi_abort_fn abort, void *arg)
{
	struct pmi *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct pmi){ .n = n_ranks, .send = send, .abort = abort, .arg = arg };
	p->waiting = calloc((size_t)n_ranks, sizeof(*p->waiting));
	if (p->waiting && put_mapping(p, per_node) == 0)
		return p;
	pmi_free(p);
	return NULL;
}

void pmi_free(struct pmi *p)
{
	struct value *v, *next;

	HASH_ITER(hh, p->values, v, next) {
		HASH_DEL(p->values, v);
		free(v);
	}
	free(p->waiting);
	free(p);
}

/* ---- commands ---- */

static void on_init(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1");
}

static void on_maxes(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=maxes rc=0 kvsname_max=%d keylen_max=%d vallen_max=%d", NAME_MAX_BYTES,
	       NAME_MAX_BYTES, VALUE_MAX_BYTES);
}

static void on_appnum(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=appnum rc=0 appnum=0");
}

static void on_universe(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=universe_size rc=0 size=%ld", p->n);
}

static void on_kvsname(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=my_kvsname rc=0 kvsname=" KVS);
}

static void on_put(struct pmi *p, long rank, const struct words *w)
{
	const int rc = w->key && w->value ? put(p, w->key, w->value) : -1;

	answer(p, rank, "cmd=put_result rc=%d msg=%s", rc, rc ? "refused" : "success");
}

static void on_get(struct pmi *p, long rank, const struct words *w)
{
	struct value *v = NULL;

	if (w->key)
		HASH_FIND_STR(p->values, w->key, v);
	if (v)
		answer(p, rank, "cmd=get_result rc=0 msg=success value=%s", v->text);
	else
		answer(p, rank, "cmd=get_result rc=-1 msg=not_found value=unknown");
}

static void on_index(struct pmi *p, long rank, const struct words *w)
{
	long at = number(w->index, 0);
	struct value *v = p->values;

	for (long i = 0; v && i < at; i++)
		v = v->hh.next;
	if (v)
		answer(p, rank, "cmd=getbyidx_results rc=0 nextidx=%ld key=%s val=%s", at + 1,
		       v->key, v->text);
	else
		answer(p, rank, "cmd=getbyidx_results rc=-1 reason=no_more_keyvals");
}

static void on_barrier(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	if (!p->waiting[rank]) {
		p->waiting[rank] = true;
		p->n_waiting++;
	}
	if (p->n_waiting < p->n)
		return;
	memset(p->waiting, 0, (size_t)p->n * sizeof(*p->waiting));
	p->n_waiting = 0;
	for (long i = 0; i < p->n; i++)
		answer(p, i, "cmd=barrier_out rc=0");
}

static void on_finalize(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=finalize_ack rc=0");
}

/* No answer: the rank waits for its end. */
static void on_abort(struct pmi *p, long rank, const struct words *w)
{
	const int code = (int)(number(w->exitcode, 1) & 0xff);

	(void)rank;
	p->abort(p->arg, code ? code : 1);
}

/* These are not offered. */
static void on_publish(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=publish_result rc=-1 info=not_supported");
}

static void on_unpublish(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=unpublish_result rc=-1 info=not_supported");
}

static void on_lookup(struct pmi *p, long rank, const struct words *w)
{
	(void)w;
	answer(p, rank, "cmd=lookup_result rc=-1 info=not_supported");
}

static const struct command {
	const char *name;
	void (*run)(struct pmi *p, long rank, const struct words *w);
} commands[] = {
	{ "init", on_init },
	{ "get_maxes", on_maxes },
	{ "get_appnum", on_appnum },
	{ "get_universe_size", on_universe },
	{ "get_my_kvsname", on_kvsname },
	{ "put", on_put },
	{ "get", on_get },
	{ "getbyidx", on_index },
	{ "barrier_in", on_barrier },
	{ "finalize", on_finalize },
	{ "abort", on_abort },
	{ "publish_name", on_publish },
	{ "unpublish_name", on_unpublish },
	{ "lookup_name", on_lookup },
};

/* Words are separated by spaces; a value that is put lasts to the end of its line. */
static void split(char *line, struct words *w)
{
	const struct {
		const char *name;
		char **to;
	} known[] = { { "cmd=", &w->cmd },
		      { "key=", &w->key },
		      { "value=", &w->value },
		      { "idx=", &w->index },
		      { "exitcode=", &w->exitcode } };

	while (*line && !w->value) {
		char *end;

		line += strspn(line, " ");
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			const size_t n = strlen(known[i].name);

			if (strncmp(line, known[i].name, n) == 0 && !*known[i].to)
				*known[i].to = line + n;
		}
		if (w->value)
			return;
		end = line + strcspn(line, " ");
		line = end + (*end != '\0');
		*end = '\0';
	}
}

int pmi_line(struct pmi *p, long rank, char *line)
{
	struct words w = { 0 };

	/* Lines that follow mcmd=spawn end with endcmd: then the refusal is due. */
	if (strncmp(line, "mcmd=", 5) == 0 || strncmp(line, "cmd=", 4) != 0) {
		if (strcmp(line, "endcmd") == 0)
			answer(p, rank, "cmd=spawn_result rc=-1 errcodes=1");
		return strchr(line, '=') || strcmp(line, "endcmd") == 0 ? 0 : -1;
	}
	split(line, &w);
	for (size_t i = 0; w.cmd && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(w.cmd, commands[i].name) == 0) {
			commands[i].run(p, rank, &w);
			return 0;
		}
	return -1;
}
