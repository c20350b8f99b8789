/* cmd_why.h - gpuq why for one job: the reply of the server, and its text
 *
 * Touches  the server; a given file.
 * Used by  top.
 */
#ifndef GPUQ_CMD_SEE_CMD_WHY_H
#define GPUQ_CMD_SEE_CMD_WHY_H

#include <stdio.h>

#include "gpuq/cli.h"

/* A job in full, as gpuq why prints it: the server's answer, and it in words on f. */
int why_get(struct cli *c, int64_t id, int64_t index, struct gpuq_val **v, struct gpuq_err *err);
void why_print(const struct gpuq_val *v, FILE *f);

#endif
