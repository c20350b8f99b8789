/* cmd_nodes.h - the columns of the list of nodes
 *
 * Touches  memory only.
 * Used by  cmd_nodes.c, top_data.c.
 */
#ifndef GPUQ_CMD_SEE_CMD_NODES_H
#define GPUQ_CMD_SEE_CMD_NODES_H

#include "gpuq/out.h"

extern const struct out_def node_list;

#endif
