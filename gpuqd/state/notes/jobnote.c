#include "gpuqd/state/notes/jobnote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/notes/joblabel.h"
#include "gpuqd/state/objects/origin.h"

/* Add a note. A relative path is resolved here, where the directory it refers to is known; a line
 * feed would end the note. */
static void add(struct gpuq_buf *out, const char *key, const char *folder, const char *value)
{
	size_t from;

	if (!value || !*value)
		return;
	gpuq_buf_printf(out, "%s%s=", out->len ? "\n" : "", key);
	from = out->len;
	if (folder && *folder && *value != '/')
		gpuq_buf_printf(out, "%s/", folder);
	gpuq_buf_adds(out, value);
	for (size_t i = from; !out->failed && i < out->len; i++)
		if (out->data[i] == '\n')
			out->data[i] = ' ';
}

/* Add the directory as the local cluster uses it; for pods that of the first group. */
static void add_workdir(struct gpuq_buf *out, const struct gpuq_spec *spec)
{
	const char *from = spec->context.cwd, *to = spec->chdir;

	if ((!to || !*to) && spec->n_groups)
		to = spec->groups[0].workdir;
	add(out, JOBNOTE_WORKDIR, from, to && *to ? to : from);
}

/* Add the pods that it consists of, and their owner. */
static void add_origin(struct gpuq_buf *out, const struct gpuq_origin *o)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "%s %s %s %s%s", o->kind, o->name, o->namespace_, o->uid,
			o->gated ? " " ORIGIN_GATED : "");
	add(out, JOBNOTE_ORIGIN, NULL, gpuq_buf_str(&text));
	gpuq_buf_clear(&text);
	for (size_t i = 0; i < o->pods.n; i++)
		gpuq_buf_printf(&text, "%s%s", i ? "," : "", o->pods.items[i]);
	add(out, JOBNOTE_PODS, NULL, gpuq_buf_str(&text));
	out->failed |= text.failed;
	gpuq_buf_done(&text);
}

char *jobnote_take(const struct gpuq_spec *spec)
{
	struct gpuq_buf text = GPUQ_BUF_INIT, folder = GPUQ_BUF_INIT;
	const char *found;
	char *out, number[24];
	size_t n = 0;

	add_workdir(&text, spec);
	found = jobnote_find(gpuq_buf_str(&text), JOBNOTE_WORKDIR, &n);
	if (found)
		gpuq_buf_add(&folder, found, n);
	add(&text, JOBNOTE_STDOUT, gpuq_buf_str(&folder), spec->output);
	add(&text, JOBNOTE_STDERR, gpuq_buf_str(&folder), spec->error);
	add(&text, JOBNOTE_STDIN, gpuq_buf_str(&folder), spec->input);
	add(&text, JOBNOTE_COMMAND, NULL, spec->context.command);
	add(&text, JOBNOTE_INTERACTIVE, NULL, spec->context.interactive ? "1" : NULL);
	add(&text, JOBNOTE_COMMENT, NULL, spec->comment);
	add(&text, JOBNOTE_CODE, NULL, spec->code.digest);
	if (spec->context.resubmit_of) {
		snprintf(number, sizeof(number), "%" PRId64, spec->context.resubmit_of);
		add(&text, JOBNOTE_RESUBMIT_OF, NULL, number);
	}
	if (spec->context.origin)
		add_origin(&text, spec->context.origin);
	if (text.failed || folder.failed)
		abort(); /* the ledger is on disk: a restart is the recovery */
	out = text.len ? strdup(gpuq_buf_str(&text)) : NULL;
	gpuq_buf_done(&folder);
	gpuq_buf_done(&text);
	return out;
}

char *jobnote_with_pods(const char *notes, const char *pods, size_t n_pods)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	size_t n;
	const char *old = jobnote_find(notes, JOBNOTE_PODS, &n);
	char *out;

	if (old) {
		gpuq_buf_add(&text, notes, (size_t)(old - notes));
		gpuq_buf_add(&text, pods, n_pods);
		gpuq_buf_adds(&text, old + n);
	} else {
		gpuq_buf_adds(&text, notes ? notes : "");
	}
	if (text.failed)
		abort();
	out = text.len ? strdup(gpuq_buf_str(&text)) : NULL;
	gpuq_buf_done(&text);
	return out;
}

char *jobnote_with(const char *notes, const char *key, const char *value, size_t n_value)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const size_t n_key = strlen(key);
	char *out;

	for (const char *line = notes ? notes : ""; *line;) {
		const size_t n = strcspn(line, "\n");

		if (strncmp(line, key, n_key) != 0 || line[n_key] != '=')
			gpuq_buf_printf(&text, "%s%.*s", text.len ? "\n" : "", (int)n, line);
		line += n + (line[n] == '\n');
	}
	gpuq_buf_printf(&text, "%s%s=%.*s", text.len ? "\n" : "", key, (int)n_value, value);
	if (text.failed)
		abort();
	out = strdup(gpuq_buf_str(&text));
	gpuq_buf_done(&text);
	return out;
}

const char *jobnote_find(const char *notes, const char *key, size_t *n)
{
	return joblabel_find(notes, key, strlen(key), n);
}
