/* slurm_table.h - the tables of sacct, sacctmgr and sshare
 *
 * Owns     nothing; columns and lines are the caller's.
 * Touches  standard output and error.
 * Used by  slurm_sacct.c, slurm_sacctmgr.c, slurm_sshare.c.
 */
#ifndef GPUQ_SLURM_SLURM_TABLE_H
#define GPUQ_SLURM_SLURM_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuq/cli.h"
#include "libgpuq/buf.h"

#define SLURM_FIELDS_MAX 128

/* A column as Slurm has it: a width below 0 is set to the left. One without a text is not recorded
 * here: its cells stay empty, and a warning says so. */
struct slurm_column {
	const char *name; /* for --format, in any case, and as far as it is unambiguous */
	int width;
	void (*text)(struct gpuq_buf *out, const void *line);
	const char *head; /* NULL = the name */
};

struct slurm_table {
	const struct slurm_column *cols; /* ends with name == NULL */
	const char *help; /* what lists the names, for messages; may be NULL */
	const struct slurm_column *shown[SLURM_FIELDS_MAX];
	int width[SLURM_FIELDS_MAX];
	size_t n;
	const char *between; /* with -p and -P; NULL = columns of fixed width */
	bool ends; /* with -p: behind the last one as well */
};

/* Take -p, -P and --delimiter of the command line. */
void slurm_table_options(struct slurm_table *t, const struct args *args);
/* Take columns as "User,Account%30". False after a message. */
bool slurm_table_fields(struct slurm_table *t, const char *text);
void slurm_table_head(const struct slurm_table *t);
void slurm_table_line(const struct slurm_table *t, const void *line);

#endif
