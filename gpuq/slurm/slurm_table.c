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
static void put_cell(const char *cell, int width)
{
	const size_t want = (size_t)abs(width);
	struct gpuq_buf clean = GPUQ_BUF_INIT, fit = GPUQ_BUF_INIT;

	term_clean_str(&clean, cell);
	if (clean.len > want) {
		term_fit(&fit, gpuq_buf_str(&clean), want - 1, false);
		gpuq_buf_addc(&fit, '+');
	} else {
		term_fit(&fit, gpuq_buf_str(&clean), want, width > 0);
	}
	printf("%s ", gpuq_buf_str(&fit));
	gpuq_buf_done(&clean);
	gpuq_buf_done(&fit);
}

static const char *head_of(const struct slurm_column *col)
{
	return col->head ? col->head : col->name;
}

void slurm_table_head(const struct slurm_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->between)
			printf("%s%s", head_of(t->shown[i]),
			       i + 1 < t->n || t->ends ? t->between : "");
		else
			put_cell(head_of(t->shown[i]), t->width[i]);
	}
	putchar('\n');
	for (size_t i = 0; !t->between && i < t->n; i++) {
		for (int k = 0; k < abs(t->width[i]); k++)
			putchar('-');
		putchar(' ');
	}
	if (!t->between)
		putchar('\n');
}

void slurm_table_line(const struct slurm_table *t, const void *line)
{
	struct gpuq_buf cell = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;

	for (size_t i = 0; i < t->n; i++) {
		gpuq_buf_clear(&cell);
		gpuq_buf_clear(&clean);
		if (t->shown[i]->text)
			t->shown[i]->text(&cell, line);
		if (!t->between) {
			put_cell(gpuq_buf_str(&cell), t->width[i]);
			continue;
		}
		term_clean_str(&clean, gpuq_buf_str(&cell));
		printf("%s%s", gpuq_buf_str(&clean), i + 1 < t->n || t->ends ? t->between : "");
	}
	putchar('\n');
	gpuq_buf_done(&cell);
	gpuq_buf_done(&clean);
}
