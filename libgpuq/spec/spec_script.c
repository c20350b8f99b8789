/* Options as words: the command line's, and the #GPUQ and #SBATCH lines of a script.
 *
 * As sbatch does it: a directive begins its line, directives end at the first line
 * that is neither a comment nor empty, and a word that begins with '#' ends one. A
 * script may carry both kinds; what #GPUQ says wins over #SBATCH, the command line
 * over both. */
#include "libgpuq/spec/spec_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"

#define WORDS_MAX 256u

struct word {
	const char *text;
	uint32_t col; /* from 1 */
};

/* Put the place and the option in front of what went wrong with it. */
static int option_failed(const char *place, const char *name, struct gpuq_err *err)
{
	if (err->code == GPUQ_ENOENT) /* an unknown option makes the file invalid */
		err->code = GPUQ_EINVAL;
	return gpuq_err_prefix(err, "%s%s%s", place, name[1] ? "--" : "-", name);
}

/* Note where an option was given. */
static int note_place(struct spec_opts_state *st, const char *name)
{
	const struct gpuq_spec_option *o = spec_option_find(name);
	const size_t n = st->places.n;
	const char **keys = gpuq_arena_calloc(st->arena, n + 1, sizeof(*keys));
	const char **vals = gpuq_arena_calloc(st->arena, n + 1, sizeof(*vals));

	if (!keys || !vals)
		return GPUQ_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		keys[i] = st->places.keys[i];
		vals[i] = st->places.vals[i];
	}
	keys[n] = o ? o->name : name;
	vals[n] = st->place;
	st->places = (struct gpuq_strmap){ keys, vals, n + 1 };
	return 0;
}

static int apply(struct spec_opts_state *st, const char *name, const char *value,
		 struct gpuq_err *err)
{
	struct gpuq_err local = GPUQ_ERR_INIT;
	int rc = spec_opts_apply(st, name, value, &local);

	if (rc == GPUQ_ENOENT && st->opts->ignore_unknown && st->from_file) {
		if (st->warnings)
			gpuq_buf_printf(st->warnings, "%s%s%s: %s, skipped\n", st->place,
					name[1] ? "--" : "-", name, local.text);
		st->skipped = true;
		return 0;
	}
	if (rc >= 0)
		return note_place(st, name) < 0 ? gpuq_no_memory(err) : 0;
	if (rc == GPUQ_ENOENT && st->from_file) {
		const struct gpuq_err plain = local;

		gpuq_fail(&local, GPUQ_ENOENT, "%s (--ignore-unknown skips such lines)",
			  plain.text);
	}
	if (err) {
		*err = local;
		return option_failed(st->place, name, err);
	}
	return rc == GPUQ_ENOENT ? GPUQ_EINVAL : rc;
}

/* One word that begins with '-', and the next where it takes its value from there.
 * Returns how many words were used, or a code. */
static int one_option(struct spec_opts_state *st, const struct word *w, size_t n,
		      struct gpuq_err *err)
{
	const char *text = w[0].text;

	if (text[0] == '-' && text[1] == '-' && text[2]) {
		const char *eq = strchr(text, '=');
		const char *name =
			eq ? gpuq_arena_strndup(st->arena, text + 2, (size_t)(eq - text - 2))
			   : text + 2;
		const struct gpuq_spec_option *o;
		const char *value = eq ? eq + 1 : NULL;
		bool next;
		int rc;

		if (!name)
			return gpuq_no_memory(err);
		name = spec_option_whole(name);
		if (!name[0] || !name[1]) /* it would be looked up as a letter */
			return gpuq_fail(err, GPUQ_EINVAL, "%sexpected an option, not '%.80s'",
					 st->place, text);
		o = spec_option_find(name);
		next = o && o->arg == 'r' && !eq && n > 1;
		rc = apply(st, name, next ? w[1].text : value, err);
		return rc < 0 ? rc : next ? 2 : 1;
	}
	if (text[0] == '-' && text[1]) {
		for (const char *p = text + 1; *p; p++) {
			const char name[2] = { *p, 0 };
			const struct gpuq_spec_option *o = spec_option_find(name);
			const char *value = NULL;
			bool next = false;
			int rc;

			if (o && o->arg == 'r' && p[1])
				value = p[1] == '=' ? p + 2 : p + 1;
			else if (o && o->arg == 'r' && n > 1)
				next = true;
			rc = apply(st, name, next ? w[1].text : value, err);
			if (rc < 0)
				return rc;
			if (value || next)
				return next ? 2 : 1;
		}
		return 1;
	}
	if (strcmp(text, "hetjob") == 0 || strcmp(text, "packjob") == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s%s: a job of several parts is a job file with groups here",
				 st->place, text);
	return gpuq_fail(err, GPUQ_EINVAL, "%sexpected an option, not '%.80s'", st->place, text);
}

static int apply_words(struct spec_opts_state *st, const struct word *w, size_t n, uint32_t line,
		       struct gpuq_err *err)
{
	for (size_t i = 0; i < n;) {
		int used;

		if (line) {
			st->place = gpuq_arena_printf(st->arena, "%s:%u:%u: ", st->opts->file, line,
						      w[i].col);
			if (!st->place)
				return gpuq_no_memory(err);
		}
		used = one_option(st, &w[i], n - i, err);
		if (used < 0)
			return used;
		i += (size_t)used;
		if (st->skipped) { /* and what may have been its value */
			while (i < n && w[i].text[0] != '-')
				i++;
			st->skipped = false;
		}
	}
	return 0;
}

int spec_opts_argv(struct spec_opts_state *st, const char *const *argv, struct gpuq_err *err)
{
	st->from_file = false;
	st->slurm = st->opts->slurm;
	st->place = "";
	st->level++;
	for (size_t n = 0; argv && argv[n];) {
		const struct word w[2] = { { argv[n], 0 }, { argv[n + 1], 0 } };
		int used = one_option(st, w, w[1].text ? 2 : 1, err);

		if (used < 0)
			return used;
		n += (size_t)used;
	}
	return 0;
}

/* Cut line[0..n) into words, with quotes and backslashes as sbatch reads them. */
static int cut(struct spec_opts_state *st, const char *line, size_t n, size_t from,
	       uint32_t line_no, struct word *w, size_t *n_words, struct gpuq_err *err)
{
	size_t i = from;

	*n_words = 0;
	for (;;) {
		char *out, quote = 0;
		size_t len = 0, start;

		while (i < n && isspace((unsigned char)line[i]))
			i++;
		if (i == n || line[i] == '#')
			return 0;
		if (*n_words == WORDS_MAX)
			return gpuq_fail(err, GPUQ_ERANGE, "%s:%u:%zu: expected at most %u words",
					 st->opts->file, line_no, i + 1, WORDS_MAX);
		start = i;
		out = gpuq_arena_alloc(st->arena, n - i + 1);
		if (!out)
			return gpuq_no_memory(err);
		for (; i < n && (quote || !isspace((unsigned char)line[i])); i++) {
			if (line[i] == '\\' && i + 1 < n && quote != '\'')
				out[len++] = line[++i];
			else if (quote ? line[i] == quote : line[i] == '"' || line[i] == '\'')
				quote = quote ? 0 : line[i];
			else
				out[len++] = line[i];
		}
		if (quote)
			return gpuq_fail(err, GPUQ_EINVAL, "%s:%u:%zu: expected a closing %c",
					 st->opts->file, line_no, start + 1, quote);
		w[(*n_words)++] = (struct word){ out, (uint32_t)(start + 1) };
	}
}

/* Length of the marker that line begins with, 0 for none. Slurm takes options without a space behind it. */
static size_t marker(const char *line, size_t n, const char *mark)
{
	const size_t len = strlen(mark);

	if (n < len || memcmp(line, mark, len) != 0 ||
	    (n > len && !isspace((unsigned char)line[len]) && line[len] != '-'))
		return 0;
	return len;
}

static bool is_blank(const char *line, size_t n)
{
	while (n && isspace((unsigned char)line[n - 1]))
		n--;
	return n == 0;
}

static int read_directives(struct spec_opts_state *st, const char *text, size_t n, const char *mark,
			   struct gpuq_err *err)
{
	uint32_t line_no = 0;

	st->from_file = true;
	st->slurm = mark[1] == 'S';
	st->level++;
	for (size_t at = 0; at < n;) {
		const char *line = text + at;
		const char *end = memchr(line, '\n', n - at);
		const size_t len = end ? (size_t)(end - line) : n - at;
		const size_t skip = marker(line, len, mark);
		struct word w[WORDS_MAX];
		size_t n_words;
		int rc;

		line_no++;
		at += len + 1;
		if (len && line[0] != '#' && !is_blank(line, len))
			return 0;
		if (!skip)
			continue;
		if (st->slurm)
			st->spec->slurm_env = true;
		rc = cut(st, line, len, skip, line_no, w, &n_words, err);
		if (rc == 0)
			rc = apply_words(st, w, n_words, line_no, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int spec_script_read(struct spec_opts_state *st, const char *text, size_t n, struct gpuq_err *err)
{
	const char *file = st->opts->file;
	const char *nul = memchr(text, 0, n), *cr = memchr(text, '\r', n);
	struct gpuq_spec *s = st->spec;
	int rc;

	if (nul)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: expected a text, but there is a NUL byte",
				 file);
	if (cr && cr + 1 < text + n && cr[1] == '\n')
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"%s:1:1: expected lines that end in a newline only: these end as on "
			"DOS (dos2unix mends it)",
			file);
	rc = read_directives(st, text, n, "#SBATCH", err);
	if (rc == 0)
		rc = read_directives(st, text, n, "#GPUQ", err);
	st->place = "";
	if (rc < 0)
		return rc;
	s->script = gpuq_arena_strndup(st->arena, text, n);
	if (!s->script)
		return gpuq_no_memory(err);
	s->script_bytes = n;
	return 0;
}
