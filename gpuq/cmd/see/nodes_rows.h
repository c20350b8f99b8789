/* nodes_rows.h - the lines of a node in gpuq nodes
 *
 * Used by  cmd_nodes.c.
 */
#ifndef GPUQ_CMD_SEE_NODES_ROWS_H
#define GPUQ_CMD_SEE_NODES_ROWS_H

#include "gpuq/out.h"

/* Add one for each device; one for all those whose pods are not known, whose index is the list of
 * them ("0-3,5") and whose first one is `first`. A node without devices has a line, too. */
int nodes_rows(struct out *o, const struct gpuq_val *node);

#endif
