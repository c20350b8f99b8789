#include "gpuq/slurm/slurm_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/term.h"
#include "libgpuq/schema.h"

void slurm_table_options(struct slurm_table *t, const struct args *args)
{
	t->ends = opt_given(args, OPT_PARSABLE);
	if (t->ends || opt_given(args, OPT_S_PARSABLE2))
		t->between = args->val[OPT_S_DELIMITER] ? args->val[OPT_S_DELIMITER] : "|";
}

/* The column of that name, or the first that begins so: sacctmgr takes abbreviations. */
static const struct slurm_column *find(const struct slurm_table *t, const char *word)
{
	const struct slurm_column *col, *begins = NULL;

	for (col = t->cols; col->name; col++) {
		if (strcasecmp(col->name, word) == 0)
			return col;
		if (!begins && *word && strncasecmp(col->name, word, strlen(word)) == 0)
			begins = col;
	}
	return begins;
}

static void no_field(const struct slurm_table *t, const char *word)
{
	const char *names[SLURM_FIELDS_MAX + 1], *near;
	size_t n = 0;

	for (const struct slurm_column *col = t->cols; col->name && n < SLURM_FIELDS_MAX; col++)
		names[n++] = col->name;
	names[n] = NULL;
	near = gpuq_nearest(word, names);
	cli_say("error: no field %s%s%s%s%s", word, near ? "; did you mean " : "", near ? near : "",
		t->help ? "; " : "", t->help ? t->help : "");
}

bool slurm_table_fields(struct slurm_table *t, const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, ","), len = strcspn(text, ",%");
		const struct slurm_column *col;
		char word[64];

		snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), text);
		col = find(t, word);
		if (!col || t->n == SLURM_FIELDS_MAX) {
			no_field(t, word);
			return false;
		}
		if (!col->text)
			cli_say("warning: %s is not recorded: its column stays empty", col->name);
		t->shown[t->n] = col;
		t->width[t->n] = len < n ? (int)strtol(text + len + 1, NULL, 10) : col->width;
		if (t->width[t->n] == 0 || abs(t->width[t->n]) > 1000)
			t->width[t->n] = col->width;
		t->n++;
		text += n + (text[n] == ',');
	}
	return t->n > 0;
}

/* A column as Slurm cuts it: a plus sign says that there is more. */
static void add_cell(struct gpuq_buf *line, const char *cell, int width)
{
	const size_t want = (size_t)abs(width);
	struct gpuq_buf clean = GPUQ_BUF_INIT;
	size_t n = strlen(cell);

	if (!term_is_plain(cell, n)) {
		term_clean_str(&clean, cell);
		cell = gpuq_buf_str(&clean);
		n = clean.len;
	}
	term_fit(line, cell, n > want ? want - 1 : want, n <= want && width > 0);
	if (n > want)
		gpuq_buf_addc(line, '+');
	gpuq_buf_addc(line, ' ');
	gpuq_buf_done(&clean);
}

static void put_line(struct gpuq_buf *line)
{
	gpuq_buf_addc(line, '\n');
	fwrite(gpuq_buf_str(line), 1, line->len, stdout);
	gpuq_buf_done(line);
}

static const char *head_of(const struct slurm_column *col)
{
	return col->head ? col->head : col->name;
}

void slurm_table_head(const struct slurm_table *t)
{
	struct gpuq_buf line = GPUQ_BUF_INIT;

	for (size_t i = 0; i < t->n; i++) {
		if (t->between)
			gpuq_buf_printf(&line, "%s%s", head_of(t->shown[i]),
					i + 1 < t->n || t->ends ? t->between : "");
		else
			add_cell(&line, head_of(t->shown[i]), t->width[i]);
	}
	put_line(&line);
	for (size_t i = 0; !t->between && i < t->n; i++) {
		for (int k = 0; k < abs(t->width[i]); k++)
			gpuq_buf_addc(&line, '-');
		gpuq_buf_addc(&line, ' ');
	}
	if (!t->between)
		put_line(&line);
}

void slurm_table_line(const struct slurm_table *t, const void *of)
{
	struct gpuq_buf cell = GPUQ_BUF_INIT, line = GPUQ_BUF_INIT;

	for (size_t i = 0; i < t->n; i++) {
		gpuq_buf_clear(&cell);
		if (t->shown[i]->text)
			t->shown[i]->text(&cell, of);
		if (!t->between) {
			add_cell(&line, gpuq_buf_str(&cell), t->width[i]);
			continue;
		}
		term_clean_str(&line, gpuq_buf_str(&cell));
		if (i + 1 < t->n || t->ends)
			gpuq_buf_adds(&line, t->between);
	}
	put_line(&line);
	gpuq_buf_done(&cell);
}
